"""The functions of sampled controllers: compiled, or called by Python for the whole batch with what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError
from .controllers import model_of_controller
from .needs import NeededQuantities
from .packing import SampleNumbers
from .sampled import Sampled
from .user_code import (
    BatchFunction,
    UserCall,
    arguments_in_python,
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
    if user.derivatives is not None:
        raise ArgumentError(
            f"{what}: it has derivatives, which Sampled does not use, because its outputs are constant between "
            "instants; remove derivatives"
        )
    if is_batch_function(user.function, states > 0, drive.needs is not None):
        parameters, initial = (
            rows_of_batch(f"{what}: {name}", values, numbers.batch).astype(dtype).astype(np.float64)
            for name, values in (("parameters", user.parameters), ("states", drive.states))
        )
        clock = float(drive.period), float(drive.phase)
        needed = None
        if drive.needs is not None:
            own = model_of_controller(model, what, drive.needs.model, numbers.batch)
            needed = NeededQuantities(drive.needs, own)
        return BatchFunction(what, user.function, *clock, model.nq, parameters, initial, outputs, dtype, needed)
    _refuse_needs(drive, what, states > 0)
    first, count = numbers.add_row("parameters of Sampled UserForces", user.parameters)
    sizes = model.nq, model.nv, count
    function = user_function("Sampled UserForces", user.function, sizes, (outputs,), states, in_python=True)
    return UserCall(what, function, first, count)


def _refuse_needs(drive: Sampled, what: str, has_states: bool) -> None:
    """Refuse needs of a function that is not one in plain Python."""
    if drive.needs is not None:
        expected = ", ".join(arguments_in_python(has_states, True))
        raise ArgumentError(
            f"{what}: needs is given, which rbchain computes for functions in plain Python only; expected a "
            f"function({expected}), without the argument out. Remove needs, or give the function these parameters"
        )
