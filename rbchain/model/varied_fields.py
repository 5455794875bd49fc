"""Check the fields given to `Model.vary` and `Model.replace`, and put them into the description of the new model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from ..common.misspelled import did_you_mean
from ..common.real_arrays import common_batch, excerpt, real_array
from ..errors import ModelError, UnknownNameError
from . import validation
from .declared_constraint import COMPLIANCES
from .description import CONSTRAINT_FIELDS, VARIABLE_FIELDS, Description
from .inertia import as_arrays, tensors
from .parameter_paths import MASS_AND_INERTIA, fields_of_paths
from .parameters import batch_shape_of, batch_shapes_of
from .passive import OF_POSITION, PASSIVE_FIELDS, PassiveForces, check_passive
from .paths import RENAMED
from .topology import Dofs

NOT_NEGATIVE = ("mass", "rotor_inertia", "volume", "strip_drag")


Numbers = Mapping[str, Any]


class VariedFields(TypedDict, total=False):
    """The keywords of `Model.vary` and `Model.replace`, so that type checkers find misspelled ones."""

    placement_rotation: npt.ArrayLike
    placement_translation: npt.ArrayLike
    axis: npt.ArrayLike
    pitch: npt.ArrayLike
    rotor_inertia: npt.ArrayLike
    gear_ratio: npt.ArrayLike
    stiffness: npt.ArrayLike
    rest_position: npt.ArrayLike
    cubic_stiffness: npt.ArrayLike
    damping: npt.ArrayLike
    friction: npt.ArrayLike
    static_friction: npt.ArrayLike
    stribeck_velocity: npt.ArrayLike
    friction_velocity: npt.ArrayLike
    stop_lower: npt.ArrayLike
    stop_upper: npt.ArrayLike
    limit_stiffness: npt.ArrayLike
    limit_damping: npt.ArrayLike
    friction_asymmetry: npt.ArrayLike
    mass: npt.ArrayLike
    cg: npt.ArrayLike
    inertia: npt.ArrayLike
    body: Sequence[Any] | np.ndarray
    gravity: npt.ArrayLike
    constraint_point_a: npt.ArrayLike
    constraint_point_b: npt.ArrayLike
    constraint_axes_a: npt.ArrayLike
    constraint_axes_b: npt.ArrayLike
    constraint_length: npt.ArrayLike
    constraint_ratio: npt.ArrayLike
    constraint_offset: npt.ArrayLike
    constraint_compliance: npt.ArrayLike
    constraint_angular_compliance: npt.ArrayLike
    constraint_relaxation_time: npt.ArrayLike
    fluid_density: npt.ArrayLike
    volume: npt.ArrayLike
    buoyancy_center: npt.ArrayLike
    added_mass: npt.ArrayLike
    added_volume: npt.ArrayLike
    linear_damping: npt.ArrayLike
    quadratic_damping: npt.ArrayLike
    strip_drag: npt.ArrayLike


def varied_description(
    description: Description, dofs: Dofs, fields: Numbers, paths: Numbers | None = None
) -> Description:
    """Return the description with new values of some fields and of the parameters that `paths` name.

    Each may have batch axes. Controllers do not know the new values: the nominal model remains the model that was
    varied.

    Raises ModelError if a field does not exist, has the wrong shape, or has a value that no mechanism can have.
    """
    checked: dict[str, Any] = {
        name: _checked_field(description, dofs, name, value) for name, value in _with_bodies_as_arrays(fields).items()
    }
    if paths is not None:
        given = fields_of_paths(description.replaced(checked), dofs, paths)
        checked |= {name: _checked_field(description, dofs, name, value) for name, value in given.items()}
    batches = batch_shapes_of(description.replaced(checked), VARIABLE_FIELDS)
    if len(set(batches.values())) > 1:
        batch = common_batch(batches, ModelError, "the varied fields: ")
        for name, shape in batches.items():
            if shape != batch:
                value = checked.get(name, getattr(description, name))
                checked[name] = np.ascontiguousarray(np.broadcast_to(value, (*batch, *value.shape[len(shape) :])))
    nominal = (description.nominal or description) if checked else description.nominal
    varied = description.replaced({**checked, "nominal": nominal})
    if "gear_ratio" in checked or "rotor_inertia" in checked:
        _refuse_lost_rotors(varied, dofs)
    if not checked.keys().isdisjoint(PASSIVE_FIELDS):
        # the fields limit each other, so they are checked together
        names = tuple(description.body_names[body] for body in dofs.body)
        check_passive(names, {field: getattr(varied, field) for field in PASSIVE_FIELDS})
    if "limit_stiffness" in checked:
        _refuse_lost_stops(varied, dofs)
    return varied


def replaced_description(
    description: Description, dofs: Dofs, fields: Numbers, paths: Numbers | None = None
) -> Description:
    """Return the description with new values of some fields and parameters, which controllers know.

    Raises ModelError as `varied_description` does, or if the samples of a new value differ.
    """
    varied = varied_description(description, dofs, fields, paths)
    before = description.nominal or description
    # the parameters that paths do not name keep the values that controllers know
    after = varied if before is description else varied_description(before, dofs, fields, paths)
    known: dict[str, Any] = {
        name: value_of_all(f"replace: {name}", getattr(after, name), len(axes))
        for name, axes in VARIABLE_FIELDS.items()
        if getattr(after, name) is not getattr(before, name)
    }
    has_nominal = description.nominal is not None or batch_shape_of(varied)
    return varied.replaced({"nominal": before.replaced(known) if has_nominal else None})


def value_of_all(what: str, value: np.ndarray, axes: int) -> np.ndarray:
    """Return the value that all samples share, without batch axes. Raises ModelError if the samples differ."""
    if value.ndim == axes:
        return value
    samples = value.reshape(-1, *value.shape[value.ndim - axes :]) if value.size else value
    if not value.size or (samples != samples[0]).any():
        raise ModelError(
            f"{what} has values that differ between the samples, with batch shape {value.shape[: value.ndim - axes]}, "
            "but a controller knows one model; expected one value for all samples. Use vary, or known=False"
        )
    return samples[0]


def _refuse_lost_rotors(description: Description, dofs: Dofs) -> None:
    """Raise an error for a gear ratio of 0 at a rotor with inertia, which would not be reflected to the joint."""
    lost = (description.gear_ratio == 0.0) & (description.rotor_inertia > 0.0)
    if lost.any():
        i = int(np.argwhere(lost)[0, -1])
        raise ModelError(
            f"gear_ratio of body {description.body_names[dofs.body[i]]!r} is 0, but its rotor_inertia is above 0; "
            "expected a ratio other than 0. Use 1 for a direct drive, or set rotor_inertia to 0"
        )


def _refuse_lost_stops(description: Description, dofs: Dofs) -> None:
    """Raise an error for a stiffness of stops at a degree of freedom that has no stop in any sample."""
    d, nv = description, len(description.dof_types)
    has_stop = (np.isfinite(d.stop_lower) | np.isfinite(d.stop_upper)).reshape(-1, nv).any(0)
    lost = (d.limit_stiffness != 0.0) & ~has_stop
    if lost.any():
        *sample, i = (int(index) for index in np.argwhere(lost)[0])
        where = f" of sample {sample[0] if len(sample) == 1 else tuple(sample)}" if sample else ""
        raise ModelError(
            f"limit_stiffness of body {d.body_names[dofs.body[i]]!r}{where} is {d.limit_stiffness[*sample, i]}, but "
            "the joint has no stop; expected 0, or a finite stop_lower or stop_upper. position_limits are not stops"
        )


def _with_bodies_as_arrays(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Replace `body`, which consists of Inertias, by the arrays of mass, cg and inertia."""
    if as_arrays(fields.get("inertia")) is not None:
        raise ModelError("inertia consists of Inertias, which also set mass and cg; expected tensors. Use body=")
    if "body" not in fields:
        return dict(fields)
    others, names = dict(fields), ("mass", "cg", "inertia")
    found = others.pop("body")
    bodies = as_arrays(found)
    if bodies is None:
        raise ModelError(f"body is {excerpt(found)}; expected one Inertia per body, in nested lists for samples")
    twice = sorted(others.keys() & names)
    if twice:
        raise ModelError(
            f"body consists of Inertias, which also set mass, cg and inertia, but {' and '.join(twice)} is given too; "
            "pass each quantity once"
        )
    return {**others, **dict(zip(names, bodies, strict=True))}


def _checked_field(description: Description, dofs: Dofs, name: str, value: npt.ArrayLike) -> np.ndarray:
    """Return a private copy of one field, of the right shape and with possible values."""
    if name not in VARIABLE_FIELDS:
        raise UnknownNameError(
            f"vary() has no field {name!r}; the fields that can vary are {', '.join(VARIABLE_FIELDS)}"
            f"{_hint_for_field(description, name)}"
        )
    value = _of_right_shape(description, name, value)
    if name == "gravity":
        _refuse_samples(~np.isfinite(value).all(-1), name, value, "finite numbers, in m/s^2")
        return value
    if name == "fluid_density":
        _refuse_samples(~((value >= 0.0) & (value < np.inf)), name, value, "a finite number of at least 0, in kg/m^3")
        return value
    if name in PASSIVE_FIELDS:
        _check_has_angle(description, dofs, name, value)
        return value
    if name in CONSTRAINT_FIELDS:
        return _checked_constraint_field(description, name, value)
    bodies = dofs.body if VARIABLE_FIELDS[name][0] == "nv" else range(len(description.body_names))
    names = tuple(description.body_names[body] for body in bodies)
    validation.check_finite(names, name, value, len(VARIABLE_FIELDS[name]) - 1)
    if name == "axis":
        return _checked_axes(description, dofs, value)
    if name == "placement_rotation":
        return validation.check_rotations(names, value)
    _check_physical(description, name, names, value)
    return value


def _hint_for_field(description: Description, name: str) -> str:
    """Return what to use instead of an unknown field: a path, a present name, or the most similar name."""
    for names, field in ((description.body_names, "mass"), (description.joint_names, "damping")):
        if name in names:
            return f'. {name!r} is the name of an owner; use a path such as {{"{name}.{field}": value}}'
    if name == MASS_AND_INERTIA:
        return f'. Use a path for each body, such as {{"{description.body_names[0]}.{name}": mass}}'
    now = RENAMED.get(name)
    return f"; it is now {now}" if now in VARIABLE_FIELDS else did_you_mean(name, VARIABLE_FIELDS)


def _checked_constraint_field(description: Description, name: str, value: np.ndarray) -> np.ndarray:
    """Return one field of the constraints, with possible values."""
    names = tuple(place.name for place in description.constraints)
    validation.check_finite(names, name, value, len(CONSTRAINT_FIELDS[name]) - 1, "constraint")
    if name in ("constraint_axes_a", "constraint_axes_b"):
        return validation.check_rotations(names, value, name, "constraint")
    if name.removeprefix("constraint_") in COMPLIANCES:
        return _checked_compliances(description, name, value)
    impossible = value <= 0.0 if name == "constraint_length" else value == 0.0
    if name in ("constraint_length", "constraint_ratio") and impossible.any():
        sample = tuple(int(i) for i in np.argwhere(impossible)[0])
        expected = "a positive number, in m" if name == "constraint_length" else "a number other than 0"
        where = f" of sample {sample[:-1]}" if len(sample) > 1 else ""
        raise ModelError(f"constraint {names[sample[-1]]!r}{where}: {name} is {value[sample]}; expected {expected}")
    return value


def _checked_compliances(description: Description, name: str, value: np.ndarray) -> np.ndarray:
    """Return compliances or relaxation times: positive numbers of compliant constraints, 0 of other constraints."""
    places = description.constraints
    applies = np.array([place.is_compliant and name in place.arrays for place in places], bool)
    wrong = np.where(applies, value <= 0.0, value != 0.0)
    if wrong.any():
        sample = tuple(int(i) for i in np.argwhere(wrong)[0])
        expected = "a positive number" if applies[sample[-1]] else "0, because it has none"
        where = f" of sample {sample[:-1]}" if len(sample) > 1 else ""
        raise ModelError(
            f"constraint {places[sample[-1]].name!r}{where}: {name} is {value[sample]}; expected {expected}. "
            "ModelBuilder.add_constraint decides which constraints are compliant"
        )
    return value


def _of_right_shape(description: Description, name: str, value: npt.ArrayLike) -> np.ndarray:
    found = np.array(real_array(name, value, ModelError))
    lengths: dict[str | int, int] = {
        "n": len(description.body_names),
        "nv": len(description.dof_types),
        "constraints": len(description.constraints),
    }
    trailing = tuple(axis if isinstance(axis, int) else lengths[axis] for axis in VARIABLE_FIELDS[name])
    if name == "inertia" and found.shape[-3:] != trailing and found.shape[-2:] == (trailing[0], 6):
        found = tensors(found)
    # axes of bodies, dofs and constraints broadcast as in NumPy, but a number does not stand for a vector or a tensor
    components = tuple(axis for axis in VARIABLE_FIELDS[name] if isinstance(axis, int))
    is_whole = found.ndim >= len(trailing) and found.shape[found.ndim - len(trailing) :] == trailing
    has_components = found.ndim >= len(components) and found.shape[found.ndim - len(components) :] == components
    if has_components and not is_whole:
        with contextlib.suppress(ValueError):
            found = np.array(np.broadcast_to(found, np.broadcast_shapes(found.shape, trailing)))
    if found.shape[max(0, found.ndim - len(trailing)) :] != trailing:
        with_batch = ", ".join(["...", *map(str, trailing)])
        raise ModelError(
            f"{name} has shape {found.shape}; expected {trailing}, or ({with_batch}) with the batch axes first"
        )
    return found


def _refuse_samples(bad: np.ndarray, name: str, value: np.ndarray, expected: str) -> None:
    """Raise for the first sample where `bad` (...) holds."""
    if not bad.any():
        return
    sample = tuple(int(i) for i in np.argwhere(bad)[0])
    where = f" of sample {sample[0] if len(sample) == 1 else sample}" if sample else ""
    raise ModelError(f"{name}{where} is {value[sample].tolist()}; expected {expected}")


def _check_has_angle(description: Description, dofs: Dofs, name: str, value: np.ndarray) -> None:
    """Raise an error for springs and stops at joints whose position is a quaternion."""
    unused = getattr(PassiveForces, name)
    if name not in OF_POSITION or not (value[..., dofs.in_quaternion_joint] != unused).any():
        return
    *sample, dof = np.argwhere((value != unused) & dofs.in_quaternion_joint)[0]
    body = int(dofs.body[dof])
    where = f" of sample {sample[0] if len(sample) == 1 else tuple(map(int, sample))}" if sample else ""
    raise ModelError(
        f"body {description.body_names[body]!r}{where}: {name} is {value[*sample, dof]}; expected {unused}, because a "
        f"{description.joint_types[body]} joint has no angle for springs or stops. Use damping or friction"
    )


def _checked_axes(description: Description, dofs: Dofs, value: np.ndarray) -> np.ndarray:
    """Return axes at unit length."""
    fixed = dofs.in_quaternion_joint
    if (value[..., fixed, :] != description.axis[..., fixed, :]).any():
        joints = sorted({description.joint_names[body] for body in dofs.body[fixed]})
        raise ModelError(
            f"axis cannot vary for the free or spherical joints {joints}, whose axes are x, y and z. Use the "
            "rows of model.axis for them"
        )
    return validation.check_axes(tuple(description.joint_names[body] for body in dofs.body), value)


def _check_physical(description: Description, name: str, names: Sequence[str], value: np.ndarray) -> None:
    """Raise an error for finite values of bodies or degrees of freedom that no mechanism can have."""
    if name in NOT_NEGATIVE:
        validation.check_not_negative(names, name, value)
    if name in ("added_mass", "added_volume", "inertia"):
        validation.check_symmetric(names, name, value)
    if name == "inertia" and description.nonphysical_inertia == "refuse":
        validation.check_inertia(names, value)
    if name == "pitch" and "screw" not in description.dof_types:
        kinds = ", ".join(sorted(set(description.joint_types)))
        raise ModelError(f"pitch cannot vary: no joint is a screw, the joint types are {kinds}; remove pitch")
