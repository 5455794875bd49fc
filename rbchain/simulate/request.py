"""The first of the four calls of `simulate`: the check of its arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..acting.events import Event
from ..acting.numeric_fields import Drive, Force
from ..acting.random_actions import actions_of_samples
from ..acting.signal_arithmetic import AddsSignals
from ..common.failures import checked_on_failure
from ..common.process_options import current
from ..common.real_arrays import excerpt, finite_number, float32_array, real_array, true_or_false, whole_number
from ..core.methods.settings import AdaptiveStepSettings, ContactStepSettings, FixedStepSettings
from ..errors import ArgumentError
from ..model.arguments import with_batch
from .methods import Method, method_named
from .sensitivities import checked_names
from .settings import settings_of, times_to_save

if TYPE_CHECKING:
    from ..facade.model import Model
    from .continuation import Continuation


#: Largest round-off of the time at the start, as a fraction of a step.
LARGEST_ROUND_OFF = 1e-6


@dataclass(frozen=True)
class Request:
    """The checked arguments of `simulate`.

    Attributes
    ----------
    states : (q0, qd0, tau) arrays of (*batch, n)
    dtype : dtype
        Precision of the states.
    batch : tuple
        Shape of the batch.
    times : (m,) array, s
        All times that the driver saves. The first and the last one are the start and the end of the simulation.
    asked : slice
        The times that the caller asked for.
    end : float, s
        Time up to which signals have to be defined.
    drives, forces : sequences
        With the random signals and the noise of the samples.
    given : tuple
        The model, the drives and the forces as the caller gave them.
    names : tuple of str
        Names of the derivatives.
    dense_output : int
        Number of steps of each sample to keep.
    continuation : Continuation, optional
        How the trajectory ended that this simulation continues.
    """

    model: Model
    states: list[np.ndarray]
    dtype: np.dtype
    batch: tuple[int, ...]
    end: float
    times: np.ndarray
    asked: slice
    method: Method
    settings: FixedStepSettings | ContactStepSettings | AdaptiveStepSettings
    drives: Sequence[Drive]
    forces: Sequence[Force]
    events: Sequence[Event]
    given: tuple[Model, Sequence[Drive], Sequence[Force]]
    names: tuple[str, ...]
    control_derivative_errors: bool
    dense_output: int
    energy_error: bool
    continuation: Continuation | None = None

    @property
    def acting(self) -> tuple[Any, ...]:
        """All forces, and all drives after them."""
        return acting_of(self.drives, self.forces)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return math.prod(self.batch)


def check(
    model: Model,
    states: tuple[npt.ArrayLike | None, npt.ArrayLike, npt.ArrayLike],
    duration: float | None,
    t0: float,
    method: str,
    saved: tuple[npt.ArrayLike | None, float | None],
    actions: tuple[Sequence[Drive], Sequence[Force], Sequence[Event]],
    options: dict[str, Any],
) -> Request:
    """Return the checked arguments of `simulate`.

    Parameters
    ----------
    model, duration, t0, method
        As for `simulate`.
    saved : tuple
        save_at and save_every.
    states : tuple
        q0, qd0 and tau.
    actions : tuple
        drives, forces and events.
    options : dict
        All other arguments of `simulate`.

    Raises
    ------
    ArgumentError
        If a shape or a setting is invalid.
    """
    duration = checked_duration(duration)
    t0 = checked_start(t0, duration if options["step"] is None else options["step"])
    of_call = checked_options_of_call(options)
    drives, forces, events = actions
    names = checked_names(model, options["derivatives"], acting_of(drives, forces))
    arrays, dtype, batch = checked_states(model, ("q0", "qd0", "tau"), *states)
    of_method = method_named(method)
    times, asked = times_to_save(duration, *saved, None if of_method.is_adaptive else options["step"], t0)
    of_steps = {name: options[name] for name in ("step", "rtol", "atol", "max_step", "max_steps")}
    settings = settings_of(of_method, times=times, dtype=dtype, **of_steps)
    given = model, kept(drives), kept(forces)
    drives, forces = actions_of_samples(drives, forces, times[-1], np.arange(math.prod(batch)).reshape(batch))
    return Request(
        model=with_batch(model, batch),
        states=arrays,
        dtype=dtype,
        batch=batch,
        end=float(times[-1]),
        times=times,
        asked=asked,
        method=of_method,
        settings=settings,
        drives=drives,
        forces=forces,
        events=events,
        given=given,
        names=names,
        control_derivative_errors=current().control_derivative_errors,
        **of_call,
    )


def checked_options_of_call(options: dict[str, Any]) -> dict[str, Any]:
    """Return `dense_output` and `energy_error` for a Request. Raises ArgumentError, even for a wrong `on_failure`."""
    checked_on_failure(options["on_failure"], ArgumentError)
    return {
        "energy_error": true_or_false("energy_error", options["energy_error"], ArgumentError),
        "dense_output": whole_number("dense_output", options["dense_output"], ArgumentError, least=0),
    }


def acting_of(drives: Any, forces: Any) -> tuple[Any, ...]:
    """Return all forces, and all drives after them. Later checks raise an error for objects other than lists."""
    return tuple(item for items in (forces, drives) if isinstance(items, list | tuple) for item in items)


def checked_duration(duration: float | None) -> float:
    """Return the duration of a simulation, s."""
    if duration is None:
        raise ArgumentError("duration is missing; expected the duration of the simulation in s, such as duration=1.0")
    return finite_number("duration", duration, ArgumentError, above=0.0)


def checked_start(t0: float, shortest: float) -> float:
    """Return the time at the start, s. Raises ArgumentError if float64 does not resolve the shortest step there."""
    t0 = finite_number("t0", t0, ArgumentError, least=0.0)
    if math.ulp(t0) > LARGEST_ROUND_OFF * finite_number("step", shortest, ArgumentError, above=0.0):
        raise ArgumentError(
            f"t0 is {t0:g} s, where times are multiples of {math.ulp(t0):.2g} s; expected a time that resolves the "
            f"steps, or a simulation of {shortest:g} s. Start at t0=0 if nothing depends on time"
        )
    return t0


def kept(actions: Any) -> Any:
    """Return a copy of a list, which its owner may change later."""
    return tuple(actions) if isinstance(actions, list) else actions


def checked_times(function: str, t: npt.ArrayLike) -> np.ndarray:
    """Return the times of the samples, s."""
    times = real_array("t", t, ArgumentError)
    if not (np.isfinite(times) & (times >= 0.0)).all():
        raise ArgumentError(f"{function}: t is {excerpt(t)}; expected finite times from 0, s")
    return times


def checked_states(
    model: Model, names: tuple[str, str, str], q: npt.ArrayLike | None, qd: npt.ArrayLike, tau: npt.ArrayLike
) -> tuple[list[np.ndarray], np.dtype, tuple[int, ...]]:
    """Return positions, velocities and joint forces as arrays of one precision and one batch shape, and both of these.

    Messages call the arguments by the given names. The default of q is None, for the neutral positions. One number for
    qd or tau stands for all dofs. tau must fit into the batch of the states and the model. The precision is float32 if
    all arrays among q and qd are float32.
    """
    if isinstance(tau, AddsSignals):
        raise ArgumentError(
            f"{names[2]} is a signal, {tau!r}; expected a number or an array. Use "
            f"drives=[rb.PrescribedForce(joint, signal)] for forces that change with time"
        )
    is_neutral = q is None
    arrays = [
        real_array(name, x, ArgumentError, keep_float32=True)
        for name, x in zip(names, (model.neutral() if is_neutral else q, qd, tau), strict=True)
    ]
    precisions = {x.dtype for x in arrays[is_neutral:2] if x.ndim}
    if precisions == {np.dtype(np.float32)}:
        arrays = [float32_array(name, x, ArgumentError) for name, x in zip(names, arrays, strict=True)]
    if not arrays[1].ndim:
        arrays[1] = np.full(model.nv, arrays[1])
    arguments = model.kernel_model.state_arguments
    states, dtype, batch = arguments.check(names[:2], arrays[:2])
    if not arrays[2].ndim:
        return [*states, np.full((*batch, model.nv), arrays[2], dtype)], dtype, batch
    (forces,), _, of_forces = arguments.check(names[2:], arrays[2:], has_samples=False)
    if not _fits(of_forces, batch):  # probably a history, which would silently become a batch
        raise ArgumentError(
            f"{names[2]} has shape {forces.shape}, but {names[0]}, {names[1]} and the model have the batch shape "
            f"{batch}; expected a number, or an array that fits into {(*batch, model.nv)}. Pass joint forces "
            "that change with time as signals, such as rb.PrescribedForce(joint, rb.Signal.table(times, values))"
        )
    # a copy, because the trajectory keeps it
    return [*states, np.array(np.broadcast_to(forces, (*batch, model.nv)), dtype, order="C")], dtype, batch


def _fits(shape: tuple[int, ...], batch: tuple[int, ...]) -> bool:
    """Whether an array of this batch shape can be broadcast to a batch."""
    try:
        return np.broadcast_shapes(shape, batch) == batch
    except ValueError:
        return False
