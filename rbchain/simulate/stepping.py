"""stepper(): check the arguments of a Stepper and make it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.events import Event
from ..acting.numeric_fields import Drive, Force
from ..acting.random_actions import random_signals_of
from ..common.calls import explains_calls
from ..common.failures import OnFailure, checked_on_failure
from ..common.real_arrays import excerpt, finite_number, whole_number
from ..core.tree.sampler_layout import MOST_SAMPLES
from ..errors import ArgumentError
from ..model.arguments import with_batch
from .methods import MethodName, method_named
from .request import Request, checked_start, checked_states, kept
from .settings import settings_of
from .stepper import Stepper

if TYPE_CHECKING:
    from ..facade.model import Model


@explains_calls(is_method=True, q="q0", qd="qd0", dt="step", timestep="step", ctrl="stepper.tau", contacts="forces")
def stepper(
    model: Model,
    q0: npt.ArrayLike | None = None,
    qd0: npt.ArrayLike = 0.0,
    *,
    method: MethodName = "rk4",
    tau: npt.ArrayLike = 0.0,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
    events: Sequence[Event] = (),
    step: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    max_step: float | None = None,
    max_steps: int | None = None,
    t0: float = 0.0,
    duration: float = math.inf,
    seed: int = 0,
    on_failure: OnFailure = "warn",
) -> Stepper:
    """Return a stepper: a batch of samples that advances step by step, so that Python code can run between steps.

    It contains the state of all samples, and everything else on which the results depend: clocks, queues and integrals
    of digital controllers, and the state of random signals. With the fixed-step methods, the results are identical, bit
    for bit, to the results in one call of `simulate`, if the periods, phases and delays of controllers are multiples of
    `step`. With the other methods, whose steps end at other times, both agree within the tolerances. `simulate`
    projects the saved states of closed loops onto the constraints once more, which changes their round-off.

    Parameters
    ----------
    model : Model
    q0, qd0, method, tau, drives, forces, step, rtol, atol, max_step, max_steps
        As for `simulate`. `tau` is the initial value of `Stepper.tau`.
    events : list of Event
        Events that end a sample: `stop=True`.
    t0 : float, s
        Time at the start of each episode; not negative.
    duration : float, s
        Maximum duration of an episode. It is needed for random signals and for signals that end.
    seed : int
        Seed of the random signals and the sensors without a seed.
    on_failure : "warn", "raise" or "ignore"
        As for `simulate`. A failed sample keeps its status and its last valid state until it is reset.

    Returns
    -------
    Stepper

    Raises
    ------
    ArgumentError
        As for `simulate`, or if an event does not end the sample.

    Examples
    --------
    Twenty pendulums with different masses and a controller in Python:

    >>> import numpy as np, rbchain as rb
    >>> pendulum = rb.Model.serial_chain(1)
    >>> many = pendulum.vary(mass=np.random.default_rng(0).uniform(0.5, 2.0, (20, 1)))
    >>> stepper = many.stepper([np.pi / 2], step=1e-3)
    >>> for _ in range(4):
    ...     stepper.tau[:] = -5.0 * (stepper.q - np.pi / 2) - 0.5 * stepper.qd
    ...     stepper.step(5)
    >>> round(float(stepper.t[0]), 9), stepper.q.shape
    (0.02, (20, 1))
    """
    checked_on_failure(on_failure, ArgumentError)
    arrays, dtype, batch = checked_states(model, ("q0", "qd0", "tau"), q0, qd0, tau)
    if math.prod(batch) > MOST_SAMPLES:
        raise ArgumentError(
            f"the batch has {math.prod(batch)} samples; expected at most {MOST_SAMPLES}, so that each episode has its "
            "own random numbers. Use several steppers"
        )
    of_method = method_named(method)
    length = 1.0 if step is None else finite_number("step", step, ArgumentError, above=0.0)
    t0 = checked_start(t0, length)
    times = np.array([t0, t0 + length])
    _refuse_recorded(events)
    drives, forces = kept(model.drives if drives is None else drives), kept(forces)
    if duration == math.inf and random_signals_of(drives) + random_signals_of(forces):
        raise ArgumentError(
            "duration is infinite, but drives or forces contain random signals; expected the longest duration of an "
            "episode in s, such as duration=10.0"
        )
    in_lanes = batch or (1,)
    request = Request(
        model=with_batch(model, batch),
        states=[x.reshape(*in_lanes, x.shape[-1]) for x in arrays],
        dtype=dtype,
        batch=in_lanes,
        end=t0 + (duration if duration == math.inf else finite_number("duration", duration, ArgumentError, above=0.0)),
        times=times,
        asked=slice(None),
        method=of_method,
        settings=settings_of(of_method, step, rtol, atol, max_step, max_steps, times, dtype),
        drives=drives,
        forces=forces,
        events=kept(events),
        given=(model, drives, forces),
        names=(),
        control_derivative_errors=True,
        dense_output=0,
        energy_error=False,
    )
    return Stepper(request, batch, whole_number("seed", seed, ArgumentError, least=0), on_failure)


def _refuse_recorded(events: object) -> None:
    """Raise an ArgumentError for events that a stepper would have to record; others than lists raise one later."""
    given = events if isinstance(events, list | tuple) else ()
    recorded = [event for event in given if isinstance(event, Event) and not event.stop]
    if recorded:
        raise ArgumentError(
            f"events contains {excerpt(recorded[0])}, which does not stop; a stepper records no events. Use stop=True, "
            "or simulate"
        )
