"""The parameters to fit, by the names of fields or paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..acting.numeric_fields import Force
from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ArgumentError, ModelError, UnknownNameError
from ..model.parameter_paths import MASS_AND_INERTIA
from ..model.paths import Match
from ..simulate.force_columns import PlaceOfForce
from ..simulate.sensitivity_columns import KINDS, parameters_at

if TYPE_CHECKING:
    from ..facade.model import Model


#: Fields with derivatives with respect to rotation vectors.
OF_ROTATIONS = ("placement_rotation", "axis")


def _not_fitted(name: str) -> str:
    """Return the message for a rotation."""
    return (
        f"parameters contains {name!r}, a rotation, which fit does not support; expected other parameters, such as "
        "placement_translation"
    )


def checked_names(model: Model, parameters: Sequence[str]) -> Sequence[str]:
    """Return the names of the parameters to fit. Raises an error for names that are neither fields nor paths."""
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
    for name in parameters:
        if name not in KINDS and not (isinstance(name, str) and "." in name):
            raise UnknownNameError(
                f"parameters contains {excerpt(name)}; expected names among {', '.join(KINDS)}, or paths such as "
                f'"link2.mass"{did_you_mean(str(name), KINDS)}'
            )
    return parameters


def fitted_entries(model: Model, names: Sequence[str], forces: Sequence[Force] = ()) -> dict[str, set[int] | None]:
    """Return the fields to fit, with the entries of their flat arrays; None for all.

    Parameters of springs among the forces have their paths instead of fields.

    Raises an error if `fit` cannot estimate a parameter of this model.
    """
    found: dict[str, set[int] | None] = {}
    for name in names:
        if name in OF_ROTATIONS:
            raise ArgumentError(_not_fitted(name))
        entries: dict[str, set[int] | None] = {name: None} if name in KINDS else _entries_at(model, name, forces)
        for field, numbers in entries.items():
            if field in found and (numbers is None or numbers & (found[field] or numbers)):
                raise ArgumentError(f"parameters is {excerpt(list(names))}; expected each parameter once")
            found[field] = None if numbers is None else numbers | (found.get(field) or set())
    return found


def _entries_at(model: Model, path: str, forces: Sequence[Force]) -> dict[str, set[int] | None]:
    """Return the fields and entries that a path names."""
    found: dict[str, set[int] | None] = {}
    for match in parameters_at(model, path, forces):
        if isinstance(match.owned.value, PlaceOfForce):
            if match.owned.value.is_matrix or match.owned.value.is_vector:
                what = "a matrix of a Bushing" if match.owned.value.is_matrix else "a point or a pose of a force"
                raise ArgumentError(
                    f"parameters contains {path!r}, {what}, which fit does not support; expected parameters of the "
                    "model, or stiffness, damping and rest_length of a SpringDamper"
                )
            found[match.name] = None
            continue
        if match.field == MASS_AND_INERTIA:
            raise ArgumentError(
                f"parameters contains {path!r}, which fit does not support; expected the path of the mass, for "
                "which the inertia tensor does not change, or of the inertia"
            )
        if match.field in OF_ROTATIONS:
            raise ArgumentError(_not_fitted(path))
        found[match.field] = (found.get(match.field) or set()) | set(_entries_of(match))
    return found


def _entries_of(match: Match[Any]) -> list[int]:
    """Return the entries of a parameter in the flat array of its field; of an inertia the body."""
    if match.field == "inertia" and not match.is_whole:
        raise ArgumentError(f'{match.name} is fitted as a whole tensor; expected "{match.name}" without a component')
    is_vector = match.field in ("cg", "gravity", "placement_translation")
    return [3 * match.owned.value + c for c in match.components] if is_vector else [match.owned.value]
