"""Join a payload to one body, for `Model.with_payload`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..common.real_arrays import common_batch, excerpt
from ..errors import ModelError
from .description import Description, Frame
from .inertia import as_arrays, inertia_tensor, tensor_of_point
from .parameters import batch_shape_of
from .pose import numbers
from .topology import Dofs
from .varied_fields import value_of_all, varied_description


def description_with_payload(
    description: Description, dofs: Dofs, name: str, frame: Frame, payload: Mapping[str, Any], known: bool
) -> Description:
    """Return the description with a payload fixed to the body that carries the frame `name`.

    The payload has the arguments of `Model.with_payload`. If it is `known`, the nominal model has the payload too.
    """
    loaded = varied_description(description, dofs, fields_with_payload(description, name, frame, payload))
    if not known:
        return loaded
    design = description.nominal or description
    of_all = payload_of_all(name, payload)
    if description.nominal is None and not batch_shape_of(loaded):
        return replace(loaded, nominal=None)
    fields = fields_with_payload(design, name, frame, of_all)
    return replace(loaded, nominal=replace(varied_description(design, dofs, fields), nominal=None))


def fields_with_payload(
    description: Description, name: str, frame: Frame, given: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return mass, cg and inertia of all bodies, with a payload fixed to the body that carries the frame `name`.

    The payload is given in the axes of the frame. Fields have the batch axes of the description and of the payload.
    """
    if frame.body < 0:
        raise ModelError(
            f"payload on {name!r}: this frame is fixed to the world; expected a moving body or a frame fixed to one"
        )
    R = frame.pose.rotation
    payload, center, tensor = _payload_arrays(f"payload on {name!r}", **given)
    arm, tensor = center @ R.T + frame.pose.translation, R @ tensor @ R.T
    batches = {
        "mass": payload.shape,
        "cg": center.shape[:-1],
        "inertia": tensor.shape[:-2],
        "the model": np.broadcast_shapes(description.mass.shape[:-1], description.cg.shape[:-2]),
    }
    common_batch(batches, ModelError, f"payload on {name!r}: ")
    own_mass, own_cg = description.mass[..., frame.body], description.cg[..., frame.body, :]
    total = own_mass + payload
    moment = own_mass[..., None] * own_cg + payload[..., None] * arm
    center = np.where(total[..., None] > 0.0, moment / np.where(total > 0.0, total, 1.0)[..., None], arm)
    about_center = (
        description.inertia[..., frame.body, :, :]
        + tensor_of_point(own_mass, own_cg - center)
        + tensor
        + tensor_of_point(payload, arm - center)
    )
    return {
        "mass": _replaced(description.mass, frame.body, total, 1),
        "cg": _replaced(description.cg, frame.body, center, 2),
        "inertia": _replaced(description.inertia, frame.body, about_center, 3),
    }


def payload_of_all(name: str, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return mass, cg and inertia of a payload that is the same in all samples. Raises ModelError if they differ."""
    what = f"payload on {name!r}"
    arrays = zip(("mass", "cg", "inertia"), _payload_arrays(what, **given), strict=True)
    return {field: value_of_all(f"{what}: {field}", value, axes) for axes, (field, value) in enumerate(arrays)}


def _payload_arrays(
    what: str, mass: Any, cg: Any, inertia: Any, body: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mass (...), center of mass (..., 3) and tensor (..., 3, 3) of a payload.

    They are given, or an Inertia `body`, or several. `what` names the payload in error messages.
    """
    for name, value in (("mass", mass), ("inertia", inertia)):
        if as_arrays(value) is not None:
            raise ModelError(f"{what}: {name} is an Inertia; expected numbers. Pass the Inertia as body=")
    if body is None and mass is None:
        raise ModelError(f"{what}: the mass is missing; expected mass=, or an Inertia as body=")
    if body is not None:
        bodies = as_arrays(body)
        if bodies is None:
            raise ModelError(f"{what}: body is {excerpt(body)}; expected an Inertia, or several in lists")
        if mass is not None or np.any(cg) or np.any(inertia):
            raise ModelError(
                f"{what}: body is an Inertia, which contains mass, cg and tensor, but mass, cg or inertia is given as "
                "well. Pass either the Inertia, or mass, cg and inertia"
            )
        mass, cg, inertia = bodies
    mass, cg, tensor = (numbers(x, f"{what}: {name}") for x, name in ((mass, "mass"), (cg, "cg"), (inertia, "inertia")))
    if (mass < 0.0).any():
        raise ModelError(f"{what}: mass is {mass.tolist()}; expected zero or more")
    if cg.shape[-1:] != (3,):
        raise ModelError(f"{what}: cg has shape {cg.shape}; expected (3,), or (..., 3) with the batch axes first")
    return mass, cg, tensor if tensor.shape[-2:] == (3, 3) else inertia_tensor(tensor)


def _replaced(field: np.ndarray, body: int, value: np.ndarray, axes: int) -> np.ndarray:
    """Return a field of all bodies with the value of one body replaced; its last `axes` axes belong to a sample."""
    batch = np.broadcast_shapes(field.shape[: field.ndim - axes], value.shape[: value.ndim - axes + 1])
    changed = np.array(np.broadcast_to(field, (*batch, *field.shape[field.ndim - axes :])))
    changed[(slice(None),) * len(batch) + (body,)] = value
    return changed
