"""Raise an error for sampled controllers where they are not supported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..acting.actuators import Actuator
from ..acting.drives import PID
from ..acting.events import Event
from ..acting.numeric_fields import Drive
from ..acting.sampled import Sampled
from ..core.methods.settings import AdaptiveStepSettings, ContactStepSettings, FixedStepSettings
from ..core.tree import sampler_layout as sampler
from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..core.tree.sampler_layout import Samplers
    from ..drivers.trajectories import Actions
    from ..facade.model import Model

#: Largest relative error of times that are multiples of the step.
ROUND_OFF = 2.0 * float(np.finfo(float).eps)


def refuse_samplers(
    model: Model,
    actions: Actions | None,
    settings: FixedStepSettings | ContactStepSettings | AdaptiveStepSettings,
    times: np.ndarray,
) -> None:
    """Raise an ArgumentError for sampled controllers that the model or the steps do not support.

    `times` (m,) are the saved times, s.
    """
    if actions is None or actions.shared.samplers is None:
        return
    groups = actions.shared.samplers.groups
    if (
        model.kernel_model.constraint_tables is not None
        and groups[[sampler.GROUP_COMPENSATES, sampler.GROUP_COMPUTES]].any()
    ):
        raise ArgumentError(
            "Sampled: ComputedTorque and gravity_compensation do not support closed loops. Use them "
            "without Sampled, or use PID or UserForces"
        )
    if not isinstance(settings, AdaptiveStepSettings):
        _refuse_stops_between_steps(actions.shared.samplers, actions.shared.numbers, settings, times)


def outputs_of_samplers(actions: Actions) -> int:
    """Return the number of outputs of sampled controllers."""
    return 0 if actions.shared.samplers is None else int(actions.shared.samplers.channels.shape[1])


def refuse_derivatives_of_samplers(drives: Sequence[Drive], events: Sequence[Event], remedy: str) -> None:
    """Raise an ArgumentError for sampled controllers whose outputs have no known derivatives.

    `remedy` is the last sentence of the messages.
    """
    sampled = [drive for drive in drives if isinstance(drive, Sampled)]
    if not sampled:
        return
    for drive in sampled:
        what = f"derivatives do not support {drive.label()}"
        if not isinstance(drive.controller, PID):
            raise ArgumentError(
                f"{what}, because the derivatives of its outputs are not computed; expected a PID in Sampled. {remedy}"
            )
        for owner in (drive, *drive.sensors):
            if np.any(np.asarray(owner.resolution) != 0.0):
                of = "" if owner is drive else f" of its {type(owner).__name__}"
                raise ArgumentError(
                    f"{what}, because with a resolution{of}, its output changes in steps, which have no derivatives; "
                    f"expected resolution=0. {remedy}"
                )
    for actuator in drives:
        if events and isinstance(actuator, Actuator) and np.any(np.asarray(actuator.time_constant) != 0.0):
            raise ArgumentError(
                f"derivatives of events do not support {actuator.label()} with a time_constant; expected no events, or "
                f"time_constant=0. {remedy}"
            )


def _refuse_stops_between_steps(
    samplers: Samplers, numbers: np.ndarray, settings: FixedStepSettings | ContactStepSettings, times: np.ndarray
) -> None:
    """Refuse delays that differ between samples, unless all steps have the same length with any of them."""
    step, first = settings.step, samplers.groups[sampler.GROUP_DELAY]
    found = {"delay": numbers[:, first], "latency": numbers[:, first + 1]}
    if all((values == values[:1]).all() for values in found.values()):
        return
    found |= {"period": samplers.clocks[sampler.CLOCK_PERIOD], "phase": samplers.clocks[sampler.CLOCK_PHASE]}
    found |= {"saved time": np.append(times, settings.origin)}
    for name, values in found.items():
        error = abs(values - np.rint(values / step) * step)
        if (error > ROUND_OFF * abs(values)).any():
            worst = values.flat[error.argmax()]
            raise ArgumentError(
                f"Sampled: delay or latency differs between samples, and the {name} {worst:.9g} s is not a multiple of "
                f"the step, {step:g} s. With fixed steps, these times, the periods, phases and saved times must be "
                "multiples of the step. Use a shorter step, equal delays and latencies, or an adaptive method such as "
                '"rk45"'
            )
