"""Check the settings of `simulate`, and choose the driver that integrates a state with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..acting.contacts import is_contact
from ..common.real_arrays import excerpt, finite_number, real_array, whole_number
from ..core.methods.settings import AdaptiveStepSettings, ContactStepSettings, FixedStepSettings
from ..core.methods.tableaus import Tableau
from ..core.sample.records import Tolerances
from ..errors import ArgumentError
from .methods import DEFAULT_TIMES, Method, names_of
from .tableaus import TABLEAUS, adaptive_tableau

#: Squares of errors divided by a smaller atol would overflow.
SMALLEST_ATOL = {"float64": 1e-100, "float32": 1e-12}
#: Maximum residual of the velocities of contacts by default, m/s or rad/s, and maximum depth that is not corrected.
CONTACT_TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
PENETRATION_TOLERANCE = {"float64": 1e-9, "float32": 1e-5}
#: Limits of counters, far beyond any run time that a user would accept.
MAX_FIXED_STEPS, MAX_ADAPTIVE_STEPS, MAX_TIMES = 1e12, 10**18, 10**9
#: A last interval below this fraction of `duration` is round-off of its quotient with `save_every` or `step`.
SHORTEST_INTERVAL = 1e-12
#: A duration or a time that differs from a multiple of `step` by this fraction of a step is this multiple.
ROUND_OFF_OF_STEPS = 1e-9
#: Difference of a saved time and the end, relative to the end, that is round-off of their sums.
ROUND_OFF_OF_END = 1e-15
LESS_MEMORY = "save fewer times, such as only the end by save_at=[duration]"
#: Ten million adaptive steps take about 30 s, so only a sample that would hardly ever finish reaches this limit.
DEFAULT_MAX_STEPS = 10_000_000
DEFAULT_RTOL = {"float64": 1e-8, "float32": 1e-5}
DEFAULT_ATOL = {"float64": 1e-10, "float32": 1e-7}
#: Steps resolve signals to this multiple of rtol, within limits: a force changes the velocity by little in one step.
TOLERANCE_OF_SIGNALS, TOLERANCES_OF_SIGNALS = 100.0, (1e-10, 1e-3)


class ExplainsMemory:
    """Explains errors of the allocations within it, whose size a setting determines.

    Parameters
    ----------
    found, remedy : str
        The setting that was found, and what to do.
    """

    def __init__(self, found: str, remedy: str) -> None:
        self.found, self.remedy = found, remedy

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, (MemoryError, OverflowError, ValueError)):  # beyond the limits of the machine or of NumPy
            raise ArgumentError(
                f"{self.found}, which needs more memory than this machine has ({error}); {self.remedy}"
            ) from None


def times_to_save(
    duration: float,
    save_at: npt.ArrayLike | None,
    save_every: float | None = None,
    step: float | None = None,
    t0: float = 0.0,
) -> tuple[np.ndarray, slice]:
    """Return all times that the driver saves, from t0 to the end, and the slice of the times that the caller asked for.

    Without `save_at` and `save_every`, the times are ends of steps of length `step`, so the length of the steps
    does not change. Without `step` too, they are evenly spaced.

    Raises ArgumentError if `save_at` is neither a number of times nor increasing times from t0 to the end, or if
    `save_every` is given too. `save_every` and `step` have to be above 0.
    """
    if save_every is not None:
        if save_at is not None:
            raise ArgumentError(
                f"save_at is {excerpt(save_at)} and save_every is {excerpt(save_every)}; use one of the two"
            )
        every = finite_number("save_every", save_every, ArgumentError, above=0.0)
        return t0 + _times_every(every, duration), slice(None)
    if save_at is None and step is not None:
        step = finite_number("step", step, ArgumentError, above=0.0)
        return t0 + _ends_of_steps(step, duration), slice(None)
    save_at = DEFAULT_TIMES if save_at is None else save_at
    if np.ndim(save_at) == 0:
        count = number_of_times(save_at)
        with ExplainsMemory(f"save_at is {save_at!r}", LESS_MEMORY):
            return np.linspace(t0, t0 + duration, count), slice(None)
    times = real_array("save_at", save_at, ArgumentError)
    if times.ndim != 1 or times.size == 0:
        raise ArgumentError(f"save_at has shape {times.shape}; expected a number of times, or a list of times in s")
    end = t0 + duration
    if t0 != 0.0 and abs(times[-1] - end) <= ROUND_OFF_OF_END * abs(end):
        end = float(times[-1])  # 0.1 + 0.7 is less than 0.8
    if t0 != 0.0 and abs(times[0] - t0) <= ROUND_OFF_OF_END * abs(t0):
        t0 = float(times[0])
    if not (times[0] >= t0 and times[-1] <= end):
        what = "0 to the duration" if t0 == 0.0 else f"the start, {t0:g} s, to the end"
        raise ArgumentError(
            f"save_at has times from {times[0]:g} to {times[-1]:g} s; expected times from {what}, {end:g} s"
        )
    if not (np.diff(times) > 0.0).all():
        i = int(np.flatnonzero(~(np.diff(times) > 0.0))[0])
        raise ArgumentError(
            f"save_at does not increase: entry {i} is {times[i]:g} s and entry {i + 1} is {times[i + 1]:g} s; expected "
            "increasing times. Use np.unique(save_at)"
        )
    first, count = int(times[0] > t0), times.size
    times = np.concatenate([[t0] * first, times, [end] * int(times[-1] < end)])
    return times, slice(first, first + count)


def number_of_times(save_at: Any) -> int:
    """Return the number of evenly spaced times. Raises ArgumentError for a float, which looks like an interval."""
    found = save_at.item() if isinstance(save_at, np.ndarray) else save_at
    if isinstance(found, int | np.integer) and not isinstance(found, bool) and 2 <= found <= MAX_TIMES:
        return int(found)
    is_interval = isinstance(found, float | np.floating) and math.isfinite(found) and found > 0.0
    remedy = f". For an interval between saved times in s, use save_every={found:g}" if is_interval else ""
    raise ArgumentError(
        f"save_at is {excerpt(save_at)}; expected the number of times, an int from 2 to {MAX_TIMES}, or a list of "
        f"times in s{remedy}"
    )


def _times_every(interval: float, duration: float) -> np.ndarray:
    """Return the multiples of an interval below the duration, and the duration. The last interval may be shorter."""
    intervals = duration / interval
    if intervals > MAX_TIMES:
        raise ArgumentError(
            f"save_every is {interval:g} s, which gives more than {MAX_TIMES} times in {duration:g} s; expected a "
            "longer interval"
        )
    with ExplainsMemory(f"save_every is {interval:g} s", LESS_MEMORY):
        times = np.arange(math.ceil(intervals * (1.0 - SHORTEST_INTERVAL)) + 1) * interval
    times[-1] = duration
    return times


@lru_cache(maxsize=64)  # loops that simulate a short time use the same times again and again
def _ends_of_steps(step: float, duration: float) -> np.ndarray:
    """Return at most the default number of times, from 0 to the duration, an equal number of steps apart.

    The last interval may have fewer steps.
    """
    steps = duration / step
    if steps > MAX_FIXED_STEPS:  # refused with the other settings
        return np.linspace(0.0, duration, DEFAULT_TIMES)
    steps = max(1, math.ceil(steps * (1.0 - SHORTEST_INTERVAL)))
    between = -(-steps // (DEFAULT_TIMES - 1))
    if steps % between == 0:
        return np.linspace(0.0, duration, steps // between + 1)
    return np.append(np.arange(0, steps, between) * (duration / steps), duration)


def settings_of(
    method: Method,
    step: float | None,
    rtol: float | None,
    atol: float | None,
    max_step: float | None,
    max_steps: int | None,
    times: np.ndarray,
    dtype: np.dtype,
) -> FixedStepSettings | ContactStepSettings | AdaptiveStepSettings:
    """Return the settings of the driver of a method. Raises ArgumentError if they do not fit the method."""
    if method.is_adaptive:
        return _adaptive_settings(method, step, rtol, atol, max_step, max_steps, dtype)
    if step is None:
        raise ArgumentError(
            f'step is None; method "{method.name}" needs the length of its steps in s, such as step=1e-3'
        )
    for name, setting in (("rtol", rtol), ("atol", atol), ("max_step", max_step), ("max_steps", max_steps)):
        if setting is not None and not (name == "atol" and method.has_contacts):
            raise ArgumentError(
                f'{name} is {setting!r}, but method "{method.name}" has steps of fixed length and no error control. '
                f'Remove {name}, or use method "rk45" or "rosenbrock"'
            )
    step = finite_number("step", step, ArgumentError, above=0.0)
    longest, most = times[-1] - times[0], MAX_FIXED_STEPS * step
    if longest > most:
        longest = (times[1:] - times[:-1]).max()
    if longest > most:
        raise ArgumentError(
            f"step is {step!r} s, which makes more than {MAX_FIXED_STEPS:.0e} steps between two saved times "
            f"{longest:g} s apart; expected a longer step"
        )
    tableau = TABLEAUS[method.name]
    assert isinstance(tableau, Tableau)
    if not method.has_contacts:
        return FixedStepSettings(tableau, step, float(times[0]))
    tolerance = CONTACT_TOLERANCE[dtype.name]
    if atol is not None:
        tolerance = finite_number("atol", atol, ArgumentError, least=float(np.finfo(dtype).eps))
    return ContactStepSettings(tableau, step, float(times[0]), tolerance, PENETRATION_TOLERANCE[dtype.name])


def _adaptive_settings(
    method: Method,
    step: float | None,
    rtol: float | None,
    atol: float | None,
    max_step: float | None,
    max_steps: int | None,
    dtype: np.dtype,
) -> AdaptiveStepSettings:
    if step is not None:
        raise ArgumentError(
            f'step is {step!r}, but method "{method.name}" chooses the length of its steps. Remove step '
            'and set rtol and atol, or use method "rk4" or "implicit"'
        )
    most = DEFAULT_MAX_STEPS if max_steps is None else max_steps
    most = whole_number("max_steps", most, ArgumentError, least=1, most=MAX_ADAPTIVE_STEPS)
    longest = math.inf if max_step is None else finite_number("max_step", max_step, ArgumentError, above=0.0)
    rtol, atol = _tolerances(rtol, atol, dtype)
    smallest, largest = TOLERANCES_OF_SIGNALS
    of_signals = min(largest, max(smallest, TOLERANCE_OF_SIGNALS * rtol))
    tolerances = Tolerances(rtol, atol, most, longest, of_signals)
    return AdaptiveStepSettings(adaptive_tableau(method.name, tolerances, dtype), tolerances)


def refuse_contacts(forces: Sequence[Any], method: Method) -> None:
    """Raise an error for dry friction, hard stops and contacts if the method does not support them."""
    for force in forces if isinstance(forces, (list, tuple)) else ():
        if is_contact(force) and not method.has_contacts:
            raise ArgumentError(
                f'forces contains {force.label()}, which method "{method.name}" does not support; expected '
                f"method {names_of(lambda method: method.has_contacts)}. PassiveForces has regularized friction and "
                "elastic stops for all methods"
            )


def refuse_events(events: Sequence[Any], method: Method) -> None:
    """Raise an error for events if the method does not locate them."""
    if not method.has_events and len(events) > 0:
        raise ArgumentError(
            f'events is not empty, but method "{method.name}" does not compute accurate states within its steps, which '
            'events require; remove events, or use method "rosenbrock"'
        )


def _tolerances(rtol: float | None, atol: float | None, dtype: np.dtype) -> tuple[float, float]:
    """Return tolerances that the step control can keep in this precision."""
    rtol = DEFAULT_RTOL[dtype.name] if rtol is None else finite_number("rtol", rtol, ArgumentError, least=0.0)
    atol = DEFAULT_ATOL[dtype.name] if atol is None else finite_number("atol", atol, ArgumentError, above=0.0)
    # where a component of the state passes zero, a relative tolerance alone allows no error at all
    smallest = SMALLEST_ATOL[dtype.name]
    if rtol >= 1.0 or atol < smallest:
        raise ArgumentError(
            f"rtol is {rtol!r} and atol is {atol!r}; expected rtol below 1, and atol of at least {smallest:g} in "
            f"{dtype.name}"
        )
    round_off = float(np.finfo(dtype).eps)
    if 0.0 < rtol < round_off:
        raise ArgumentError(
            f"rtol is {rtol!r}, below the round-off of {dtype.name}, which no step can reach; expected at least "
            f"{round_off:.2g}, or 0 for an absolute tolerance"
        )
    return rtol, atol
