"""Parameters of springs and bushings between bodies, as columns of `simulate(derivatives=...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..acting.between_bodies import BETWEEN_BODIES, Bushing, SpringDamper, label_of
from ..core.linear import parameter_layout as codes
from ..model.parameter_paths import XYZ
from ..model.paths import Owned

#: The kinds of the columns of each class, by the fields that have derivatives.
KINDS: dict[type, dict[str, int]] = {
    SpringDamper: {
        "stiffness": codes.BY_SPRING_STIFFNESS,
        "damping": codes.BY_SPRING_DAMPING,
        "rest_length": codes.BY_REST_LENGTH,
        "point_a": codes.BY_POINT_A,
        "point_b": codes.BY_POINT_B,
    },
    Bushing: {
        "stiffness": codes.BY_BUSHING_STIFFNESS,
        "damping": codes.BY_BUSHING_DAMPING,
        "pose_a_translation": codes.BY_ORIGIN_A,
        "pose_b_translation": codes.BY_ORIGIN_B,
        "pose_a_rotation": codes.BY_TURN_A,
        "pose_b_rotation": codes.BY_TURN_B,
    },
}
#: Numbers in the upper triangle of a matrix of a bushing.
UPPER_ENTRIES = 21


class PlaceOfForce(NamedTuple):
    """A parameter of a spring or a bushing.

    `force` is its place among all forces, and `column` the place among the forces of its class.
    """

    force: int
    column: int
    kind: int

    @property
    def is_matrix(self) -> bool:
        """Whether the parameter is a matrix of a bushing."""
        return self.kind in codes.OF_MATRICES

    @property
    def is_vector(self) -> bool:
        """Whether the parameter is a point of a spring, or a translation or a rotation vector of a bushing."""
        return self.kind in codes.OF_ENDS

    def rows(self, components: Sequence[int]) -> np.ndarray:
        """Return the columns (COLUMN_ROWS, count) of `SensitivitySettings` for some components of a vector."""
        entries = np.asarray(components) if self.is_vector else np.arange(UPPER_ENTRIES if self.is_matrix else 1)
        return np.stack(np.broadcast_arrays(self.kind, 0, entries, self.column)).astype(np.int64)


def parameters_of_forces(forces: Sequence[Any]) -> dict[str, list[Owned[Any]]]:
    """Return the parameters of springs and bushings by field. The owner is the name, or the names of the bodies."""
    found: dict[str, list[Owned[Any]]] = {}
    counts = dict.fromkeys(BETWEEN_BODIES, 0)
    for i, force in enumerate(forces):
        if isinstance(force, BETWEEN_BODIES):
            for field, kind in KINDS[type(force)].items():
                place = PlaceOfForce(i, counts[type(force)], kind)
                components = XYZ if place.is_vector else ()
                found.setdefault(field, []).append(Owned(force.name or label_of(force), place, components))
            counts[type(force)] += 1
    return found


def matrices_of_columns(columns: np.ndarray, size: int) -> np.ndarray:
    """Return symmetric matrices (..., size, size) from columns (..., n) of their upper triangles.

    Each column is the derivative with respect to an entry and its mirror image together, so both entries get half of
    it.
    """
    upper = np.triu_indices(size)
    found = np.zeros((*columns.shape[:-1], size, size), columns.dtype)
    share = np.where(np.equal(*upper), 1.0, 0.5).astype(columns.dtype)
    for rows in (upper, upper[::-1]):
        found[..., rows[0], rows[1]] = share * columns
    return found
