"""Whether fixed steps are stable with the feedback of computed torque.

With an exact model, the error e of a degree of freedom and its integral z obey the linear equations

    e'' = - kp e - kd e' - ki z,   z' = e,

for any mechanism. A step multiplies (e, e', z) by a matrix. If its spectral radius exceeds 1, the errors grow, although
they decay in the exact solution. A force limit bounds them, so the motion remains finite.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..acting.drives import ComputedTorque
from ..common.real_arrays import FloatArray
from ..errors import ArgumentError

#: Steps may multiply errors by this factor: errors that are not damped grow a little in steps of "moreau".
LARGEST_GROWTH = 1.001
#: The exact errors do not grow if they change by less than this fraction in a step.
ROUND_OFF = 1e-6
#: Largest relative error of the longest stable step in messages.
ACCURACY = 1e-3


def refuse_unstable_feedback(drives: Iterable[object], method: str, step: float) -> None:
    """Raise an ArgumentError for gains of computed torque with which fixed steps, s, of a method are unstable."""
    for drive in drives:
        if not isinstance(drive, ComputedTorque):
            continue
        kp, kd, ki = np.broadcast_arrays(*(np.asarray(x, float) for x in (drive.kp, drive.kd, drive.ki)))
        grows = is_unstable(method, step, kp, kd, ki)
        if not grows.any():
            continue
        sample = np.unravel_index(int(grows.argmax()), grows.shape)
        gains = kp[sample], kd[sample], ki[sample]
        low, high = 0.0, step
        while high - low > ACCURACY * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if is_unstable(method, middle, *gains) else (middle, high)
        raise ArgumentError(
            f"{drive.label()}: with kp = {gains[0]:g}, kd = {gains[1]:g}, ki = {gains[2]:g} and an exact model, errors "
            f'grow in steps of {step:g} s of "{method}"; expected steps of at most {low:.3g} s. Choose a shorter step, '
            'smaller gains, or "rk45"'
        )


def is_unstable(method: str, h: float, kp: FloatArray, kd: FloatArray, ki: FloatArray) -> np.ndarray:
    """Whether errors grow in steps of length h, s, in which the exact ones do not, for each sample."""
    rates = np.zeros((*np.shape(kp), 3, 3))
    rates[..., 0, 1] = rates[..., 2, 0] = 1.0
    rates[..., 1, 0], rates[..., 1, 1], rates[..., 1, 2] = -kp, -kd, -ki
    with np.errstate(over="ignore", invalid="ignore"):
        steps = STEPS[method](h, rates)
        decays = np.linalg.eigvals(rates).real.max(-1) * h < ROUND_OFF
    overflows = ~np.isfinite(steps).all((-2, -1))
    steps[overflows] = 0.0
    factor = abs(np.linalg.eigvals(steps)).max(-1)
    grows: np.ndarray = overflows | (decays & (factor > LARGEST_GROWTH))
    return grows


def _rk4(h: float, rates: FloatArray) -> FloatArray:
    """Return the matrices of a step of "rk4" for the rates (..., 3, 3) of (e, e', z)."""
    unit, x = np.eye(3), h * rates
    step: FloatArray = unit + x @ (unit + x @ (unit + x @ (unit + x / 4.0) / 3.0) / 2.0)
    return step


def _implicit(h: float, rates: FloatArray) -> FloatArray:
    """Return the matrices of a step of "implicit": the force of the start changes e', and the new e' changes e."""
    step = np.eye(3) + h * rates
    step[..., 0, :] = np.eye(3)[0] + h * step[..., 1, :]
    return step


def _moreau(h: float, rates: FloatArray) -> FloatArray:
    """Return the matrices of a step of "moreau": e in the middle, with the velocity of the start, and then the force.

    The velocity and the integral in the middle follow from a first force there.
    """
    e, v, z = np.eye(3)
    middle = np.broadcast_to(np.eye(3), rates.shape).copy()
    middle[..., 0, :] = e + 0.5 * h * v
    first = rates @ middle
    middle[..., 1, :], middle[..., 2, :] = v + 0.5 * h * first[..., 1, :], z + 0.5 * h * middle[..., 0, :]
    step = np.eye(3) + h * (rates @ middle)
    step[..., 0, :] = e + 0.5 * h * (v + step[..., 1, :])
    return step


STEPS = {"rk4": _rk4, "implicit": _implicit, "moreau": _moreau}
