"""Turn an event into codes for the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import excerpt
from ..core.motion import event_values as event_codes
from ..core.tree.layout import TOPOLOGY_COORDINATE
from ..errors import StateError
from .coordinates import dof_index, refuse_quaternion
from .events import Event
from .packing import SampleNumbers
from .user_code import UserCall, name_of, user_function

if TYPE_CHECKING:
    from ..facade.model import Model

MAX_RECORDS = 1_000_000


def flatten_event(
    model: Model, e: int, event: Event, numbers: SampleNumbers, boundscheck: bool
) -> tuple[np.ndarray, UserCall | None]:
    """Add the numbers of an event, and return its codes (EVENT_ROWS,) and its user function, if it has one."""
    _check_event(e, event)
    codes = np.zeros(event_codes.EVENT_ROWS, np.int64)
    codes[event_codes.EVENT_DIRECTION], codes[event_codes.EVENT_TERMINAL] = event.direction, bool(event.stop)
    if event.function is not None:
        codes[event_codes.EVENT_ROW] = -1
        first, count = numbers.add_row(f"event {e}: parameters", event.parameters)
        codes[event_codes.EVENT_NUMBERS], codes[event_codes.EVENT_NUMBER_COUNT] = first, count
        function = user_function(f"event {e}", event.function, model.nq, model.nv, count, (1,), boundscheck)
        codes[event_codes.EVENT_ADDRESS] = function.address
        return codes, UserCall(f"event {e} with function {name_of(event.function)}", function, first, count)
    what = f"event of joint {event.joint!r}"
    i = dof_index(model, what, event.joint, event.dof)
    if event.quantity not in ("position", "velocity"):
        raise StateError(f'{what}: quantity is {event.quantity!r}; expected "position" or "velocity"')
    if event.quantity == "velocity":
        row = model.nq + i
    else:
        refuse_quaternion(model, what, i, 'use quantity="velocity", or a function of the state')
        row = int(model.kernel_model.topology[TOPOLOGY_COORDINATE, i])
    codes[event_codes.EVENT_ROW], codes[event_codes.EVENT_NUMBERS] = row, numbers.add(f"{what}: value", event.value)
    return codes, None


def _check_event(e: int, event: Event) -> None:
    if not isinstance(event, Event):
        raise StateError(f"events contains {excerpt(event)}; expected objects of Event")
    if (event.joint is None) == (event.function is None):
        raise StateError(
            f"event {e} has joint {event.joint!r} and function {excerpt(event.function)}; expected exactly one of them"
        )
    if not isinstance(event.direction, (int, np.integer)) or event.direction not in (-1, 0, 1):
        raise StateError(
            f"event {e}: direction is {event.direction!r}; expected 1 (rising), -1 (falling) or 0 (both directions)"
        )
    if not isinstance(event.stop, (bool, np.bool_)):
        raise StateError(f"event {e}: stop is {event.stop!r}; expected True or False")
    whole = isinstance(event.max_records, (int, np.integer)) and not isinstance(event.max_records, bool)
    if not whole or not 1 <= event.max_records <= MAX_RECORDS:
        raise StateError(
            f"event {e}: max_records is {event.max_records!r}; expected a whole number from 1 to {MAX_RECORDS}"
        )
