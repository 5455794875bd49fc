"""The parameters of a model by their paths, and the fields of a model with new values of some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt, real_array
from ..errors import ModelError
from .description import CONSTRAINT_FIELDS, VARIABLE_FIELDS, ConstraintPlace, Description
from .inertia import tensors
from .paths import Match, Owned, matches
from .topology import Dofs

XYZ = ("x", "y", "z")
#: Entries of a symmetric tensor, in the order of its upper triangle.
TENSOR = ("xx", "xy", "xz", "yy", "yz", "zz")
CONSTRAINT_PREFIX = "constraint_"
#: The path of a mass with which the inertia tensor scales.
MASS_AND_INERTIA = "mass_and_inertia"


class Place(NamedTuple):
    """Place of a parameter in the arrays of a model: the name of an array, and the entry after the batch axes."""

    array: str
    entry: tuple[int, ...]


def parameters_of(description: Description, dofs: Dofs) -> dict[str, list[Owned[Place]]]:
    """Return the parameters of a model that may differ between samples."""
    counts = tuple(dofs.counts.tolist())
    return _parameters_of_names(description.body_names, description.joint_names, counts, description.constraints)


@lru_cache(maxsize=64)
def _parameters_of_names(
    bodies: tuple[str, ...],
    joints: tuple[str, ...],
    counts: tuple[int, ...],
    constraints: tuple[ConstraintPlace, ...],
) -> dict[str, list[Owned[Place]]]:
    first_dofs = np.cumsum([0, *counts]).tolist()
    found: dict[str, list[Owned[Place]]] = {}
    for name, axes in VARIABLE_FIELDS.items():
        field = name.removeprefix(CONSTRAINT_PREFIX)
        components = TENSOR if name == "inertia" else XYZ if axes[1:] == (3,) else ()
        if axes[:1] == ("n",):
            own = [Owned(body, Place(name, (i,)), components) for i, body in enumerate(bodies)]
        elif axes[:1] == ("nv",):
            own = [
                Owned(joint, Place(name, (first + dof,)), components, dof, count)
                for joint, first, count in zip(joints, first_dofs[:-1], counts, strict=True)
                for dof in range(count)
            ]
        elif name in CONSTRAINT_FIELDS:
            own = [
                Owned(place.name, Place(name, (i,)), components)
                for i, place in enumerate(constraints)
                if name in place.arrays
            ]
        else:
            own = [Owned("", Place(name, ()), XYZ if axes == (3,) else ())]
        found.setdefault(field, []).extend(own)
    return found


def relatives_of(description: Description) -> dict[str, str]:
    """Return the joints by the names of their bodies, and the bodies by the names of their joints."""
    pairs = [*zip(description.body_names, description.joint_names, strict=True)]
    return dict(pairs) | {joint: body for body, joint in pairs if joint not in description.body_names}


def fields_of_paths(description: Description, dofs: Dofs, paths: Mapping[str, npt.ArrayLike]) -> dict[str, np.ndarray]:
    """Return the fields with new values of the parameters that paths name, with batch axes if the values have them.

    Raises
    ------
    UnknownNameError
        If a path does not match any parameter.
    ModelError
        If a value does not fit its parameter, or two paths name the same one.
    """
    if not isinstance(paths, Mapping):
        raise ModelError(f'found {excerpt(paths)}; expected paths and values, such as {{"link2.mass": 1.5}}')
    known, relatives = parameters_of(description, dofs), relatives_of(description)
    known = known | {MASS_AND_INERTIA: known["mass"]}
    found = {path: matches(path, known, relatives) for path in paths}
    values = {path: _values(path, of_path[0], paths[path]) for path, of_path in found.items()}
    batches = {path: value.shape[: value.ndim - len(_shape(found[path][0]))] for path, value in values.items()}
    before = {name: getattr(description, name) for name in VARIABLE_FIELDS}
    batches |= {name: value.shape[: value.ndim - len(VARIABLE_FIELDS[name])] for name, value in before.items()}
    try:
        batch = np.broadcast_shapes(*batches.values())
    except ValueError:
        named = ", ".join(f"{name} {shape}" for name, shape in batches.items() if shape)
        raise ModelError(f"the batch shapes differ: {named}; expected shapes that NumPy broadcasts") from None
    varying = {name for name, value in before.items() if value.ndim > len(VARIABLE_FIELDS[name])}
    varying |= {of_path[0].owned.value.array for path, of_path in found.items() if batches[path]}
    fields: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(of_path[0].owned.value.array for of_path in found.values()):
        own = before[name].shape[before[name].ndim - len(VARIABLE_FIELDS[name]) :]
        fields[name] = np.array(np.broadcast_to(before[name], (*batch, *own) if name in varying else own))
    taken: dict[tuple[int | str, ...], str] = {}
    for path, match in [(path, match) for path, of_path in found.items() for match in of_path]:
        name, entry = match.owned.value
        for component in match.components or (-1,):
            other = taken.setdefault((name, *entry, component), path)
            if other != path:
                raise ModelError(
                    f"{other!r} and {path!r} both set {match.name!r}; expected one value for each parameter"
                )
        for place in [entry] if match.is_whole else [(*entry, *component) for component in _components(match)]:
            index: tuple[Any, ...] = (..., *place, *[slice(None)] * len(_shape(match)))
            fields[name][index] = values[path]
    scaled = [path for path in found if path.rpartition(".")[2] == MASS_AND_INERTIA]
    return (
        _with_scaled_inertia(description, fields, {path: found[path] for path in scaled}, taken) if scaled else fields
    )


def _with_scaled_inertia(
    description: Description,
    fields: dict[str, np.ndarray],
    found: Mapping[str, Sequence[Match[Place]]],
    taken: Mapping[tuple[int | str, ...], str],
) -> dict[str, np.ndarray]:
    """Return the fields with the inertia tensors of bodies scaled as their masses."""
    inertia = fields.get("inertia", description.inertia)
    batch = np.broadcast_shapes(fields["mass"].shape[:-1], inertia.shape[:-3], description.mass.shape[:-1])
    inertia = np.array(np.broadcast_to(inertia, (*batch, *inertia.shape[-3:])))
    for path, of_path in found.items():
        for match in of_path:
            (body,) = match.owned.value.entry
            others = {other for key, other in taken.items() if key[:2] == ("inertia", body)}
            if others:
                raise ModelError(f"{path!r} and {others.pop()!r} both set the inertia of a body; use one of the two")
            before = description.mass[..., body]
            if not (before > 0.0).all():
                raise ModelError(
                    f"{path!r} scales the inertia of a body without mass; expected its mass and its inertia"
                )
            inertia[..., body, :, :] *= (fields["mass"][..., body] / before)[..., None, None]
    return fields | {"inertia": inertia}


def _shape(match: Match[Place]) -> tuple[int, ...]:
    """Return the shape of the value of one sample."""
    axes = VARIABLE_FIELDS[match.owned.value.array][len(match.owned.value.entry) :]
    return tuple(int(axis) for axis in axes) if match.is_whole else ()


def _values(path: str, match: Match[Place], given: npt.ArrayLike) -> np.ndarray:
    """Return the values (..., *shape) of a parameter."""
    values, shape = real_array(path, given, ModelError), _shape(match)
    is_tensor = match.field == "inertia" and match.is_whole
    if is_tensor and values.shape[-2:] != shape and values.shape[-1:] == (len(TENSOR),):
        values = tensors(values)
    if values.shape[max(0, values.ndim - len(shape)) :] != shape:
        with_batch = ", ".join(["...", *map(str, shape)])
        raise ModelError(
            f"{path} has shape {values.shape}; expected {shape}, or ({with_batch}) with one value per sample"
        )
    return values


def _components(match: Match[Place]) -> list[tuple[int, ...]]:
    """Return the entries of a vector or a symmetric tensor that a path chooses."""
    if match.field != "inertia":
        return [(component,) for component in match.components]
    chosen = [tuple("xyz".index(axis) for axis in TENSOR[component]) for component in match.components]
    return [entry for pair in chosen for entry in {pair, pair[::-1]}]
