"""Whether fixed steps are stable with the feedback of computed torque.

With an exact model, the error e of a degree of freedom and its integral z obey the linear equations

    e'' = - kp e - kd e' - ki z,   z' = e,

for any mechanism. A step multiplies (e, e', z) by a matrix. If its spectral radius exceeds 1, the errors grow, although
they decay in the exact solution. A force limit bounds them, so the motion remains finite.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from ..acting.drives import ComputedTorque
from ..common.real_arrays import FloatArray
from ..errors import ArgumentError
from .stable_steps import grows_in_steps, longest_stable

#: The exact errors do not grow if they change by less than this fraction in a step.
ROUND_OFF = 1e-6


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
        longest = longest_stable(partial(is_unstable, method, kp=gains[0], kd=gains[1], ki=gains[2]), step)
        raise ArgumentError(
            f"{drive.label()}: with kp = {gains[0]:g}, kd = {gains[1]:g}, ki = {gains[2]:g} and an exact model, errors "
            f'grow in steps of {step:g} s of "{method}"; expected steps of at most {longest:.3g} s. Choose a shorter '
            'step, smaller gains, or "rk45"'
        )


def is_unstable(method: str, h: float, kp: FloatArray, kd: FloatArray, ki: FloatArray) -> np.ndarray:
    """Whether errors grow in steps of length h, s, in which the exact ones do not, for each sample."""
    rates = np.zeros((*np.shape(kp), 3, 3))
    rates[..., 0, 1] = rates[..., 2, 0] = 1.0
    rates[..., 1, 0], rates[..., 1, 1], rates[..., 1, 2] = -kp, -kd, -ki
    with np.errstate(over="ignore", invalid="ignore"):
        decays = np.linalg.eigvals(rates).real.max(-1) * h < ROUND_OFF
    grows: np.ndarray = decays & grows_in_steps(method, h, rates, 1)
    return grows
