"""Slopes of the value g(t, q, qd) of an event, at the states in which it occurs.

The value of a joint has known slopes. A user function is differentiated by central differences of eighth order. The
step is the one whose error is smallest. The error is the sum of the difference to the sixth order, half of the jump of
the slope at the state, and round-off. The jump J follows from the even part of the values,

    g(h) + g(-h) - 2 g(0) = J h + a h^2 + b h^4 + c h^6 + ...

Source: Fornberg (1988), "Generation of finite difference formulas on arbitrarily spaced grids", for the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..acting.coordinates import dof_index
from ..acting.events import Event
from ..acting.user_code import UserCall, UserCalls
from ..core.tree.layout import FAILED_FIRST_EVENT

if TYPE_CHECKING:
    from ..facade.model import Model

#: The value of an event at a time, s, positions (nq,) and velocities (nv,).
Value = Callable[[float, np.ndarray, np.ndarray], float]

OFFSETS = np.array([1.0, 2.0, 3.0, 4.0])  # in steps, on both sides
EIGHTH_ORDER = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
SIXTH_ORDER = np.array([3 / 4, -3 / 20, 1 / 60, 0.0])
#: Of the even parts at the offsets, for J times the step.
JUMP = np.linalg.solve(OFFSETS ** np.array([1, 2, 4, 6])[:, None], [1.0, 0.0, 0.0, 0.0])
#: Steps relative to the size of a variable, in the order in which they are tried.
STEPS = 2.0 ** -np.array([7, 11, 4, 15, 19, 23])
SHORT_STEP = 2.0**-11
#: Error at which no other step is tried, and largest error of all slopes, relative to the largest slope.
SMALL_ERROR, LARGEST_ERROR = 1e-12, 1e-6


def dof_of_event(model: Model, event: Event) -> int:
    """Return the degree of freedom that the event of a joint observes."""
    return dof_index(model, event.label(), event.joint, event.dof)


def value_of_function(calls: UserCalls, e: int, sample: int) -> Value:
    """Return the value of event e, which has a function, with the parameters of one sample.

    It is NaN where the function raises an exception.
    """
    call: UserCall = calls.functions[FAILED_FIRST_EVENT + e]
    parameters = calls.given[min(sample, len(calls.given) - 1), call.first : call.first + call.count]
    own = parameters.astype(calls.dtype).astype(np.float64)  # as the simulation passed them

    def value(t: float, q: np.ndarray, qd: np.ndarray) -> float:
        out = np.zeros(1)
        try:
            call.function.call(float(t), q.copy(), qd.copy(), own.copy(), out)
        except Exception:  # a user function may raise any exception
            return np.nan
        return float(out[0])

    return value


def slopes_of_function(model: Model, value: Value, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Compute the derivatives of the value of an event with respect to the time, the positions and the velocities.

    Parameters
    ----------
    model : Model
    value : function(t, q, qd)
    t : float, s
    q, qd : (nq,), (nv,) arrays

    Returns
    -------
    (1 + 2 nv,) array
        Derivatives with respect to positions are on the tangent space. All are NaN if the error of one of them exceeds
        1e-6 of the largest one. Both are multiplied by the size of their variable: 1 s, 1 rad or 1 m, and 1 rad/s or 1
        m/s, or the velocity if it is larger.
    """
    sizes = np.concatenate([np.ones(1 + qd.size), np.maximum(1.0, np.abs(qd))])
    slopes, errors = np.full(sizes.size, np.nan), np.full(sizes.size, np.inf)
    varies = np.zeros(sizes.size, bool)
    for step in STEPS:
        found, error = _differences(model, value, (t, q, qd), step * sizes)
        # a function that is constant over a short step only may be rounded, as in single precision
        is_rounded = varies & (found == 0.0) & (step < SHORT_STEP)
        error = np.where(np.isfinite(error) & ~is_rounded, error, np.inf)
        varies |= found != 0.0
        slopes, errors = np.where(error < errors, found, slopes), np.minimum(error, errors)
        if (errors * sizes).max() <= SMALL_ERROR * np.abs(slopes * sizes).max():
            break
    is_exact = (errors * sizes).max() <= LARGEST_ERROR * np.abs(slopes * sizes).max()
    return slopes if is_exact else np.full(sizes.size, np.nan)


def _differences(
    model: Model, value: Value, state: tuple[float, np.ndarray, np.ndarray], steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return central differences of a value at a state (t, q, qd), and their errors, with a step for each variable."""
    (t, q, qd), n = state, state[2].size
    offsets = np.concatenate([OFFSETS, -OFFSETS])[:, None]
    values, middle = np.empty((offsets.size, steps.size)), value(t, q, qd)
    times = t + offsets[:, 0] * steps[0]
    positions = model.nominal.integrate(q, (offsets * steps[1 : 1 + n])[..., None] * np.eye(n))
    velocities = qd + (offsets * steps[1 + n :])[..., None] * np.eye(n)
    for k in range(offsets.size):
        values[k, 0] = value(times[k], q, qd)
        for j in range(n):
            values[k, 1 + j] = value(t, positions[k, j], qd)
            values[k, 1 + n + j] = value(t, q, velocities[k, j])
    after, before = values[: OFFSETS.size], values[OFFSETS.size :]
    slopes, jumps = EIGHTH_ORDER @ (after - before) / steps, JUMP @ (after - middle + before - middle) / steps
    round_off = np.finfo(float).eps * np.abs(values).max(0) / steps
    return slopes, np.abs(slopes - SIXTH_ORDER @ (after - before) / steps) + 0.5 * np.abs(jumps) + round_off


def bend_of_function(
    model: Model, value: Value, state: tuple[float, np.ndarray, np.ndarray], rates: tuple[np.ndarray, ...], span: float
) -> float:
    """Estimate the second derivative of a value along a trajectory, from three values.

    `state` is (t, q, qd), `rates` are the accelerations (nv,) and their derivative (nv,), and `span` is a time, s.
    """
    (t, q, qd), (qdd, jerk) = state, rates

    def moved(h: float) -> float:
        return value(t + h, model.nominal.integrate(q, h * qd + h * h / 2 * qdd), qd + h * qdd + h * h / 2 * jerk)

    return (moved(span) - 2.0 * value(t, q, qd) + moved(-span)) / span**2
