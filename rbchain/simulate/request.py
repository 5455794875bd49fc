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
from ..common.failures import checked_on_failure
from ..common.real_arrays import finite_number, float32_array, real_array, true_or_false, whole_number
from ..core.methods.settings import AdaptiveStepSettings, ContactStepSettings, FixedStepSettings
from ..errors import ArgumentError
from .methods import Method, method_named
from .sensitivities import checked_names
from .settings import settings_of, times_to_save

if TYPE_CHECKING:
    from ..facade.model import Model


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
        All times that the driver saves. The first and the last one are the start and the end of the motion.
    asked : slice
        The times that the caller asked for.
    names : tuple of str
        Names of the derivatives.
    dense_output : int
        Number of steps of each sample to keep.
    """

    model: Model
    states: list[np.ndarray]
    dtype: np.dtype
    batch: tuple[int, ...]
    duration: float
    times: np.ndarray
    asked: slice
    method: Method
    settings: FixedStepSettings | ContactStepSettings | AdaptiveStepSettings
    drives: Sequence[Drive]
    forces: Sequence[Force]
    events: Sequence[Event]
    names: tuple[str, ...]
    control_derivative_errors: bool
    dense_output: int
    energy_error: bool
    boundscheck: bool

    @property
    def samples(self) -> int:
        """Number of samples."""
        return math.prod(self.batch)


def check(
    model: Model,
    states: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    duration: float,
    method: str,
    save_at: npt.ArrayLike | None,
    actions: tuple[Sequence[Drive], Sequence[Force], Sequence[Event]],
    options: dict[str, Any],
) -> Request:
    """Return the checked arguments of `simulate`.

    Parameters
    ----------
    model, duration, method, save_at
        As for `simulate`.
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
    duration = finite_number("duration", duration, ArgumentError, above=0.0)
    times, asked = times_to_save(duration, save_at)
    checked_on_failure(options["on_failure"], ArgumentError)
    for name in ("boundscheck", "control_derivative_errors", "energy_error"):
        true_or_false(name, options[name], ArgumentError)
    names = checked_names(model, options["derivatives"])
    arrays, dtype, batch = checked_states(model, ("q0", "qd0", "tau"), *states)
    of_method = method_named(method)
    of_steps = {name: options[name] for name in ("step", "rtol", "atol", "max_step", "max_steps")}
    settings = settings_of(of_method, times=times, dtype=dtype, **of_steps)
    drives, forces, events = actions
    drives, forces = actions_of_samples(drives, forces, duration, np.arange(math.prod(batch)).reshape(batch))
    return Request(
        model=model,
        states=arrays,
        dtype=dtype,
        batch=batch,
        duration=duration,
        times=times,
        asked=asked,
        method=of_method,
        settings=settings,
        drives=drives,
        forces=forces,
        events=events,
        names=names,
        control_derivative_errors=bool(options["control_derivative_errors"]),
        dense_output=whole_number("dense_output", options["dense_output"], ArgumentError, least=0),
        energy_error=bool(options["energy_error"]),
        boundscheck=bool(options["boundscheck"]),
    )


def checked_states(
    model: Model, names: tuple[str, str, str], q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike
) -> tuple[list[np.ndarray], np.dtype, tuple[int, ...]]:
    """Return positions, velocities and joint forces as arrays of one precision and one batch shape, and both of these.

    `names` are the names of the arguments for messages. `tau` may be a number for all joints.
    """
    q, qd, tau = (
        real_array(name, x, ArgumentError, keep_float32=True) for name, x in zip(names, (q, qd, tau), strict=True)
    )
    if q.dtype == qd.dtype == np.float32:
        tau = float32_array(names[2], tau, ArgumentError)
    tau = tau.copy() if tau.ndim else np.full(model.nv, tau)  # a copy, because the trajectory keeps it
    states, dtype, batch = model.kernel_model.state_arguments.check(names, (q, qd, tau))
    return list(states), dtype, batch
