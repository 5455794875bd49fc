"""Find the degree of freedom of a named joint, for a drive or an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ArgumentError, UnknownNameError

if TYPE_CHECKING:
    from ..facade.model import Model


def joint_index(model: Model, what: str, joint: str | None) -> int:
    """Return the index of the body of a named joint. Errors begin with `what`."""
    if joint not in model.joint_names:
        hint = did_you_mean(joint, model.joint_names) if isinstance(joint, str) else ""
        if joint in model.body_names:
            hint = f". The joint of body {joint!r} is {model.joint_names[model.body_names.index(joint)]!r}"
        raise UnknownNameError(
            f"{what}: the model has no joint {joint!r}; its joints are {excerpt([*model.joint_names])}{hint}"
        )
    return model.joint_names.index(joint)


def dof_index(model: Model, what: str, joint: str | None, dof: int | None) -> int:
    """Return the index in qd of a degree of freedom of a named joint. Errors begin with `what`.

    `dof` may be None if the joint has one degree of freedom.
    """
    body = joint_index(model, what, joint)
    count = int(model.kernel_model.dofs.counts[body])
    if dof is None and count > 1:
        raise ArgumentError(
            f"{what}: joint {joint!r} has {count} degrees of freedom, but dof is not given; expected dof, an integer "
            f"from 0 to {count - 1}"
        )
    dof = 0 if dof is None else dof
    if not (isinstance(dof, (int, np.integer)) and 0 <= dof < count):
        plural, expected = ("s", f"an integer from 0 to {count - 1}") if count > 1 else ("", "0")
        raise ArgumentError(
            f"{what}: dof is {dof!r}, but joint {joint!r} has {count} degree{plural} of freedom; expected {expected}"
        )
    return int(model.velocity_index[body]) + int(dof)


def joints_of_dofs(model: Model, dofs: npt.ArrayLike) -> list[str]:
    """Return the names of the joints with these degrees of freedom, each once, in the order of the joints."""
    return [model.joint_names[body] for body in np.unique(model.kernel_model.dofs.body[np.asarray(dofs)])]


def refuse_quaternion(model: Model, what: str, i: int, remedy: str) -> None:
    """Raise an error if dof i belongs to a joint whose position is a quaternion instead of one value per dof."""
    if model.kernel_model.dofs.in_quaternion_joint[i]:
        kind = model.joint_types[int(model.kernel_model.dofs.body[i])]
        raise ArgumentError(f"{what}: a {kind} joint has no angle or displacement for each degree of freedom; {remedy}")
