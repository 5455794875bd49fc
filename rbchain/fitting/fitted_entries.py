"""The parameters to fit, by the names of fields or paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..common.misspelt import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ArgumentError, ModelError, UnknownNameError
from ..model.parameter_paths import MASS_AND_INERTIA
from ..model.paths import Match
from ..simulate.sensitivities import KINDS, parameters_at

if TYPE_CHECKING:
    from ..facade.model import Model


def fitted_entries(model: Model, parameters: Sequence[str]) -> dict[str, set[int] | None]:
    """Return the fields to fit, with the entries of their flat arrays; None for all.

    Raises an error if `fit` cannot estimate a parameter of this model.
    """
    if isinstance(parameters, str) or not isinstance(parameters, Sequence):
        raise ArgumentError(
            f'parameters is {excerpt(parameters)}; expected a list of names such as ["link2.mass", "damping"]'
        )
    if not parameters:
        raise ArgumentError('parameters is empty; expected names such as ["link2.mass", "damping"]')
    if model.batch_shape:
        raise ModelError(
            f"a fit needs one set of parameters, but the model has batch_shape {model.batch_shape}; expected (). Use "
            "model[i]"
        )
    found: dict[str, set[int] | None] = {}
    for name in parameters:
        if name in KINDS:
            entries: dict[str, set[int] | None] = {name: None}
        elif isinstance(name, str) and "." in name:
            matches = parameters_at(model, name)
            if matches[0].field == MASS_AND_INERTIA:
                raise ArgumentError(
                    f"parameters contains {name!r}, which fit does not support; expected the path of the mass, for "
                    "which the inertia tensor does not change, or of the inertia"
                )
            entries = {matches[0].field: {entry for match in matches for entry in _entries_of(match)}}
        else:
            raise UnknownNameError(
                f"parameters contains {excerpt(name)}; expected names among {', '.join(KINDS)}, or paths such as "
                f'"link2.mass"{did_you_mean(str(name), KINDS)}'
            )
        for field, numbers in entries.items():
            if field in found and (numbers is None or numbers & (found[field] or numbers)):
                raise ArgumentError(f"parameters is {excerpt(list(parameters))}; expected each parameter once")
            found[field] = None if numbers is None else numbers | (found.get(field) or set())
    return found


def _entries_of(match: Match[int]) -> list[int]:
    """Return the entries of a parameter in the flat array of its field; of an inertia the body."""
    if match.field == "inertia" and not match.is_whole:
        raise ArgumentError(f'{match.name} is fitted as a whole tensor; expected "{match.name}" without a component')
    return [3 * match.owned.value + c for c in match.components] if match.field == "cg" else [match.owned.value]
