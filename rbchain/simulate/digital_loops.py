"""Digital loops that oscillate at their sampling rate, from the last outputs of their controllers.

The output of such a loop changes its sign at each instant. An unstable loop is recognized by one of two signs:

* The amplitude has grown at each instant. Noise is not the reason: the probability that 13 independent numbers are in
  this order is 1 / 13!, which is 2e-10.
* A `PID` or `ComputedTorque` is at its limit L at each instant. The response of the plant to a force that alternates
  between L and -L then asks for more than L with the opposite sign. So the loop without a limit amplifies this
  oscillation. Noise also drives outputs from limit to limit, and user functions may switch between two forces on
  purpose: this sign does not count for them.
"""

from __future__ import annotations

import numpy as np

from ..core.control import drive_layout as drive
from ..core.motion.sample_memory import last_outputs
from ..core.sample import tally_layout as tallies
from ..core.sample.records import Outcome
from ..core.tree import sampler_layout as sampler
from ..core.tree.sampler_layout import Samplers
from ..drivers.trajectories import Actions
from ..errors import Status

#: Smallest growth of the amplitude from one instant to the next, above round-off.
GROWTH = 1.0 + 1e-9
#: Share of the limit from which an output is at the limit.
AT_LIMIT = 1.0 - 1e-6
#: Distance of the noise of a sensor from its resolution, among the numbers of a sample.
NOISE = 2


def oscillating_dofs(actions: Actions | None, outcome: Outcome, start_time: float, n: int) -> np.ndarray:
    """Return the first dof (samples,) whose sampled controller oscillates at its rate and is unstable; -1 without one.

    Parameters
    ----------
    actions : Actions, optional
    outcome : Outcome
        Samples that have failed have no such dof.
    start_time : float, s
    n : int
        Number of dofs.
    """
    status = outcome.tally[:, tallies.STATUS]
    found = np.full(status.shape, -1)
    samplers = None if actions is None else actions.shared.samplers
    if actions is None or samplers is None or not status.size:
        return found
    outputs, instants = last_outputs(outcome.memory, samplers, n)
    numbers = np.broadcast_to(actions.shared.numbers, (status.size, actions.shared.numbers.shape[1]))
    has_ended_well = np.isin(status, (Status.DONE, Status.STOPPED))
    groups, dofs = samplers.channels[sampler.CHANNEL_GROUP], samplers.channels[sampler.CHANNEL_DOF]
    for channel in np.flatnonzero((groups >= 0) & (dofs >= 0))[::-1]:
        chosen = np.flatnonzero(has_ended_well & _has_enough_instants(samplers, numbers, instants, channel, start_time))
        x = outputs[chosen, :, channel]
        alternates = (x[:, 1:] * x[:, :-1] < 0.0).all(1)
        grows = (np.abs(x[:, 1:]) > GROWTH * np.abs(x[:, :-1])).all(1)
        is_bounded = (np.abs(x) >= _level_of_limit(samplers, numbers[chosen], channel)[:, None]).all(1)
        found[chosen[alternates & (grows | is_bounded)]] = dofs[channel]
    return found


def _has_enough_instants(
    samplers: Samplers, numbers: np.ndarray, instants: np.ndarray, channel: int, start_time: float
) -> np.ndarray:
    """Return the samples (samples,) whose last outputs of a channel all belong to this motion."""
    group = samplers.channels[sampler.CHANNEL_GROUP, channel]
    period, phase = samplers.clocks[[sampler.CLOCK_PERIOD, sampler.CLOCK_PHASE], group]
    latency = numbers[:, samplers.groups[sampler.GROUP_DELAY, group] + 1]
    first = np.maximum((start_time + latency - phase) / period, 0.0)
    return np.asarray(instants[:, group] - sampler.LAST_OUTPUTS >= first)


def _level_of_limit(samplers: Samplers, numbers: np.ndarray, channel: int) -> np.ndarray:
    """Return the magnitude (samples,) from which an output without noise is at its limit; infinite for functions."""
    if channel >= samplers.drives.shape[1]:
        return np.full(len(numbers), np.inf)
    group = samplers.channels[sampler.CHANNEL_GROUP, channel]
    first, count = samplers.groups[[sampler.GROUP_FIRST_SENSOR, sampler.GROUP_SENSOR_COUNT], group]
    at_noise = samplers.sensors[sampler.SENSOR_NUMBERS, first : first + count] + NOISE
    limit = numbers[:, samplers.drives[drive.GAINS, channel] + drive.GAIN_LIMIT]
    resolution = numbers[:, samplers.channels[sampler.CHANNEL_NUMBERS, channel] + 1]
    is_known = ~(numbers[:, at_noise] > 0.0).any(1) & (limit > 0.0)
    return np.where(is_known, np.maximum(AT_LIMIT * limit - resolution, 0.5 * limit), np.inf)
