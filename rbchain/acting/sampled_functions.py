"""The functions of sampled controllers: compiled, or called by Python for the whole batch with what they need."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from .controllers import model_of_controller
from .needs import NeededQuantities
from .packing import SampleNumbers
from .sampled import Sampled
from .user_code import (
    BatchFunction,
    UserCall,
    is_batch_function,
    name_of,
    rows_of_batch,
    user_function,
)
from .user_forces import UserForces

if TYPE_CHECKING:
    from ..facade.model import Model


def function_of(
    model: Model, drive: Sampled, outputs: int, numbers: SampleNumbers, dtype: np.dtype
) -> UserCall | BatchFunction:
    """Return the user function of a sampled drive, compiled or for the whole batch."""
    assert isinstance(drive.controller, UserForces)
    user, states = drive.controller, np.shape(drive.states)[-1] if np.ndim(drive.states) else 1
    what = f"Sampled UserForces with function {name_of(user.function)}"
    for name in ("derivatives", "parameter_derivatives"):
        if getattr(user, name) is not None:
            raise ArgumentError(
                f"{what}: it has {name}, which Sampled does not use, because its outputs are constant between "
                f"instants; remove {name}"
            )
    _refuse_computed_without_needs(drive, what, user.function)
    needed = None
    if drive.needs is not None:
        needed = NeededQuantities(drive.needs, model_of_controller(model, what, drive.needs.model, numbers.batch))
    if is_batch_function(user.function, states > 0, drive.needs is not None):
        parameters, initial = (
            rows_of_batch(f"{what}: {name}", values, numbers.batch).astype(dtype).astype(np.float64)
            for name, values in (("parameters", user.parameters), ("states", drive.states))
        )
        clock = float(drive.period), float(drive.phase)
        return BatchFunction(what, user.function, *clock, model.nq, parameters, initial, outputs, dtype, needed)
    first, count = numbers.add_row("parameters of Sampled UserForces", user.parameters)
    sizes, computed = (model.nq, model.nv, count), () if needed is None else needed.layout
    function = user_function("Sampled UserForces", user.function, sizes, (outputs,), states, True, computed)
    return UserCall(what, function, first, count, needed)


def _refuse_computed_without_needs(drive: Sampled, what: str, function: Any) -> None:
    """Raise an error for a function with an argument `computed` if its needs are not declared."""
    try:
        parameters = inspect.signature(getattr(function, "py_func", function)).parameters
    except (TypeError, ValueError):  # not callable, or without a signature
        return
    if drive.needs is None and "computed" in parameters:
        raise ArgumentError(
            f"{what}: it has a parameter called computed, but needs is not given; expected the quantities that it "
            "needs. Pass needs=rb.Needs(...) to Sampled, or rename the parameter"
        )
