"""Parameters of user functions, as columns of `simulate(derivatives=...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..acting.user_forces import UserForces, name_in_paths
from ..core.linear import parameter_layout as codes
from ..errors import ArgumentError
from ..model.paths import Owned


class PlaceInFunction(NamedTuple):
    """The parameters of UserForces. `number` is their place among all UserForces."""

    forces: UserForces
    number: int

    def rows(self, path: str, entries: Sequence[int]) -> np.ndarray:
        """Return the columns (COLUMN_ROWS, count) of some of the parameters. Raises an ArgumentError."""
        if self.forces.parameter_derivatives is None:
            raise ArgumentError(
                f"derivatives contains {path!r}, but {self.forces.label()} has no parameter_derivatives; expected a "
                "function. Pass UserForces(..., parameter_derivatives=...)"
            )
        return np.stack(np.broadcast_arrays(codes.BY_USER_PARAMETER, 0, entries, self.number)).astype(np.int64)


def parameters_of_functions(acting: Sequence[Any]) -> dict[str, list[Owned[Any]]]:
    """Return the parameters of the UserForces among the drives by field. Without parameters, UserForces has none."""
    functions = [drive for drive in acting if isinstance(drive, UserForces)]
    found = []
    for number, forces in enumerate(functions):
        count = np.atleast_1d(forces.parameters).shape[-1]
        components = tuple(str(j) for j in range(count))
        if count:
            found.append(Owned[Any](name_in_paths(forces), PlaceInFunction(forces, number), components))
    return {"parameters": found} if found else {}
