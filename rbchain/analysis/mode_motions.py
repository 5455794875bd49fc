"""Motions of modes: one period of a small oscillation, for plots, films and the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..common.calls import explains_calls
from ..common.real_arrays import finite_number, whole_number
from ..errors import ArgumentError, Status
from ..simulate.trajectory import Trajectory

if TYPE_CHECKING:
    from .modes import Modes

#: Saved times of a period.
TIMES = 61


@explains_calls(is_method=True)
def motion(modes: Modes, mode: int, *, amplitude: float = 0.2) -> Trajectory:
    """Return one period of a mode as a trajectory, for `plot`, `film` and `view`.

    Parameters
    ----------
    mode : int
        Number of the mode, counted from 0.
    amplitude : float, rad or m
        The largest change of a position. The motion neither decays nor grows.

    Returns
    -------
    Trajectory
        Positions and velocities of 61 times. They are exact to first order in the amplitude, even with closed loops,
        which open to second order.

    Raises
    ------
    ArgumentError
        If the modes belong to a batch, or the mode does not exist or does not oscillate.

    Examples
    --------
    >>> import numpy as np, rbchain as rb
    >>> pendulum = rb.Model.serial_chain(2, length=1.5, gravity=(0, -10, 0))
    >>> swing = pendulum.modes([-np.pi / 2, 0.0]).motion(0, amplitude=0.3)
    >>> swing.q.shape, swing.t[-1].round(4).item(), swing.q.max(0).round(4).tolist()
    ((61, 2), 2.8439, [-1.2708, 0.1292])
    """
    if modes.batch_shape:
        raise ArgumentError(
            f"motion: the modes have the batch shape {modes.batch_shape}; expected the modes of one sample. Select "
            "one, such as modes[0]"
        )
    count = modes.eigenvalue.shape[-1]
    k = whole_number("mode", mode, ArgumentError, least=0, most=max(count - 1, 0))
    size = finite_number("amplitude", amplitude, ArgumentError, above=0.0)
    rate = modes.eigenvalue[k].imag if count else 0.0
    if not rate > 0.0:
        raise ArgumentError(
            f"motion: mode {k} does not oscillate, because the imaginary part of its eigenvalue is {rate:g}; expected "
            "a mode that oscillates"
        )
    shape = modes.shape[k] * (size / abs(modes.shape[k]).max())
    turn = np.exp(2j * np.pi * np.linspace(0.0, 1.0, TIMES))[:, None]
    zero = np.zeros((), np.int64)
    return Trajectory(
        np.linspace(0.0, 2.0 * np.pi / rate, TIMES),
        modes.model.integrate(np.tile(modes.q, (TIMES, 1)), (shape * turn).real),
        (1j * rate * shape * turn).real,
        *(np.full((), int(Status.DONE)), zero, zero, zero),
        model=modes.model,
    )
