"""Numbers of the degrees of freedom of one joint: one for all of them, or one for each."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt

from ..common.values import Value
from ..errors import ModelError
from .joint import AnyJoint
from .pose import numbers


def keep_numbers_of_dofs(value: Value) -> tuple[int, dict[str, np.ndarray]]:
    """Replace the fields of a new value by floats and by read-only copies of arrays (dofs,).

    Returns the number of degrees of freedom, 1 if no field is an array, and all fields as arrays (dofs,).

    Raises ModelError if a field is not a number or an array of numbers, or if arrays differ in length.
    """
    found = {field.name: numbers(getattr(value, field.name), field.name, finite=False) for field in fields(value)}  # type: ignore[arg-type]
    arrays = {name: array.shape for name, array in found.items() if array.shape}
    shape = next(iter(arrays.values()), (1,))
    for name, array in found.items():
        if len(array.shape) > 1 or array.shape not in ((), shape):
            first = next(iter(arrays))
            other = "" if name == first else f", as {first} has {shape[0]}"
            raise ModelError(
                f"{name} has shape {array.shape}; expected a number, or one for each degree of freedom of the "
                f"joint{other}"
            )
        array.flags.writeable = False
        object.__setattr__(value, name, array if array.shape else float(array))
    return shape[0], {name: np.broadcast_to(array, shape) for name, array in found.items()}


def of_dofs(name: str, joint: AnyJoint, what: str, value: npt.ArrayLike, finite: bool = True) -> np.ndarray:
    """Return an array (dofs,) from one value for all degrees of freedom of the joint of a body, or one for each."""
    found, count = numbers(value, f"body {name!r}: {what}", finite=finite), len(joint.dofs)
    if found.shape not in ((), (count,)):
        raise ModelError(
            f"body {name!r}: {what} has shape {found.shape}; expected a number, or an array of shape ({count},) for "
            f"the degrees of freedom of the {joint.kind} joint"
        )
    return np.broadcast_to(found, count).copy()
