"""Which keys a measure needs, and which it does not use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from .kinds_of_quantities import OF_CONSTRAINTS, OF_MODES, OF_REACTIONS
from .reductions import AT_TIMES, OF_FORCES, OF_STEPS

if TYPE_CHECKING:
    from .measures import Measure

LONGEST_NAME = 200  # bytes; the results of a measure are in a folder of its name
NOT_AT_EVENTS = (*OF_FORCES, *AT_TIMES, "event_time")
OF_JOINTS = (
    *("position", "velocity", "torque", "tracking_error", *OF_REACTIONS),
    *("equilibrium", "gain_margin"),
)
#: Quantities of the origin of a frame that do not use `point`.
OF_ORIGINS = ("coordinate", "speed")
FOR_OTHER_POINTS = (
    "it is measured at the origin of the frame. For another point of a body, add a fixed frame there (a body with the "
    "joint Fixed), and name it in frame"
)


def check_keys(measure: Measure) -> None:
    """Raise a ValueError if a key that the measure needs is missing, or one that it does not use is given."""
    if not re.fullmatch(r"[^/\\.\x00-\x1f][^/\\\x00-\x1f]*", measure.name) or len(measure.name.encode()) > LONGEST_NAME:
        raise ValueError(
            f"name is {measure.name!r}; expected a name that a folder can have: up to {LONGEST_NAME} bytes, without "
            "slashes, backslashes, control characters and a dot at the beginning"
        )
    for key, kinds in (
        ("frame", ("distance", "distance_to_plane", "coordinate", "speed")),
        ("joint", OF_JOINTS),
        ("constraint", OF_CONSTRAINTS),
        ("normal", ("distance_to_plane",)),
        ("function", ("function",)),
    ):
        if key == "joint" and measure.quantity == "power":  # of one joint or of all
            continue
        if (getattr(measure, key) is None) == (measure.quantity in kinds):
            wrong = f"is missing; the quantity {measure.quantity!r} needs it"
            if measure.quantity not in kinds:
                wrong = (
                    f"is {getattr(measure, key)!r}, but the quantity {measure.quantity!r} does not use it; remove it"
                )
            raise ValueError(f"{key} {wrong}")
    for key, is_used in (
        ("dof", measure.joint is not None and measure.quantity not in OF_REACTIONS),
        ("mode", measure.quantity in OF_MODES),
        ("axis", measure.quantity == "coordinate"),
        ("point", measure.quantity in ("distance", "distance_to_plane")),
        ("band", measure.over == "settling_time"),
    ):
        value = getattr(measure, key)
        if value != type(measure).model_fields[key].default and not is_used:
            used_by = f"over = {measure.over!r}" if key == "band" else f"the quantity {measure.quantity!r}"
            instead = FOR_OTHER_POINTS if key == "point" and measure.quantity in OF_ORIGINS else "remove it"
            raise ValueError(f"{key} is {value!r}, but {used_by} does not use it; {instead}")
    _check_reduction(measure)


def _check_reduction(measure: Measure) -> None:
    """Raise a ValueError if a key that the reduction needs is missing, or one that it does not use is given."""
    if (measure.is_at_rest or measure.quantity == "event_time") and measure.over != "final":
        raise ValueError(
            f"over is {measure.over!r}, but the quantity {measure.quantity!r} has one number for each sample, which "
            "does not depend on the time; remove over"
        )
    if measure.over == "at_event" and measure.quantity in NOT_AT_EVENTS:
        raise ValueError(
            f"over is 'at_event', but the state at the event does not determine the quantity {measure.quantity!r}; "
            "expected a quantity of the state, such as 'position', 'speed' or 'energy'"
        )
    if (measure.event is None) == measure.is_at_event:
        user = "over = 'at_event'" if measure.over == "at_event" else f"the quantity {measure.quantity!r}"
        wrong = f"is {measure.event!r}, but {user} with over = {measure.over!r} does not use it; remove it"
        raise ValueError(f"event {f'is missing; {user} needs it' if measure.event is None else wrong}")
    of_step = measure.over in OF_STEPS and measure.quantity != "tracking_error"
    for key, needed in (("step_to", of_step), ("threshold", measure.over == "time_above")):
        if (getattr(measure, key) is None) == needed:
            wrong = f"is missing; over = {measure.over!r} needs it"
            if not needed:
                wrong = (
                    f"is {getattr(measure, key)!r}, but over = {measure.over!r} of {measure.quantity!r} does not use it"
                )
            raise ValueError(f"{key} {wrong}")
    if measure.over == "time_in_saturation" and measure.quantity != "torque":
        raise ValueError(f"over is 'time_in_saturation', but quantity is {measure.quantity!r}; expected 'torque'")
    if measure.normal is not None and not np.any(measure.normal):
        raise ValueError(f"normal is {list(measure.normal)}; expected a vector other than zero")
