"""Digital loops that oscillate near their sampling rate, from the last outputs of their controllers.

The output of an unstable loop changes its sign at each instant, or with a delay of n periods at about each (2 n + 1)th
one. An unstable loop is recognized by one of these signs:

* The output alternates at each instant, and its amplitude has grown at each. Noise is not the reason: the probability
  that 13 independent numbers are in this order is 1 / 13!, which is 2e-10.
* The changes d of the output obey d_k = a d_(k-1) + b d_(k-2), the equation of an oscillation that grows. Its
  characteristic roots are complex, with a magnitude above 1 and a period of at most 8 instants. No one of 100,000
  sequences of 13 independent numbers obeyed such an equation to within twice the tolerance.
* A `PID` or `ComputedTorque` is at its limit L at each instant, and changes between L and -L at every h-th one. The
  response of the plant to this force then asks for more than L with the opposite sign. So the loop without a limit
  amplifies this oscillation. Noise also drives outputs from limit to limit, and user functions may switch between two
  forces on purpose: this sign does not count for them.
* The simulation has failed, and the output of a controller without noise has changed its sign more than once.
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
#: The same from one instant to the next for oscillations of several instants, whose equation has rounded coefficients.
GROWTH_OF_OSCILLATION = 1.01
#: Longest period of an oscillation, in instants. A reference may intend longer ones.
LONGEST_PERIOD = 8
#: Largest difference between a change of the output and the equation, as a share of the largest of three changes.
TOLERANCE_OF_EQUATION = 0.15
#: Share of the limit from which an output is at the limit.
AT_LIMIT = 1.0 - 1e-6
#: Share of the outputs below which their changes are rounding errors.
ROUNDING = 1e-9
#: Outcomes that an unstable loop can have.
DIVERGED = (Status.TOO_MANY_STEPS, Status.NOT_FINITE, Status.STEP_UNDERFLOW, Status.TOO_STIFF)
#: Distance of the noise of a sensor from its resolution, among the numbers of a sample.
NOISE = 2


def oscillating_dofs(actions: Actions | None, outcome: Outcome, start_time: float, n: int) -> np.ndarray:
    """Return the first dof (samples,) whose sampled controller makes its loop unstable near its rate; or -1.

    Parameters
    ----------
    actions : Actions, optional
    outcome : Outcome
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
    has_ended_well, has_diverged = np.isin(status, (Status.DONE, Status.STOPPED)), np.isin(status, DIVERGED)
    groups, dofs = samplers.channels[sampler.CHANNEL_GROUP], samplers.channels[sampler.CHANNEL_DOF]
    for channel in np.flatnonzero((groups >= 0) & (dofs >= 0))[::-1]:
        chosen = np.flatnonzero(has_ended_well & _has_enough_instants(samplers, numbers, instants, channel, start_time))
        x = outputs[chosen, :, channel]
        is_bounded = (np.abs(x) >= _level_of_limit(samplers, numbers[chosen], channel)[:, None]).all(1)
        unstable = _alternates_and_grows(x) | _obeys_a_growing_oscillation(x) | (is_bounded & _changes_regularly(x))
        found[chosen[unstable]] = dofs[channel]
        failed = np.flatnonzero(has_diverged & ~_has_noise(samplers, numbers, channel))
        changes = np.count_nonzero(_sign_changes(outputs[failed, :, channel]), axis=1)
        found[failed[changes > 1]] = dofs[channel]
    return found


def _sign_changes(x: np.ndarray, apart: int = 1) -> np.ndarray:
    """Return where outputs x (samples, instants) that are some instants apart have opposite signs."""
    signs = np.sign(x)  # products of the outputs could overflow
    return np.asarray(signs[:, apart:] * signs[:, :-apart] < 0.0)


def _alternates_and_grows(x: np.ndarray) -> np.ndarray:
    """Return the samples (samples,) whose outputs x (samples, instants) alternate, each larger than the one before."""
    return np.asarray(_sign_changes(x).all(1) & (np.abs(x[:, 1:]) > GROWTH * np.abs(x[:, :-1])).all(1))


def _obeys_a_growing_oscillation(x: np.ndarray) -> np.ndarray:
    """Return the samples (samples,) whose outputs x (samples, instants) are a growing oscillation of a few instants."""
    d = np.diff(x, axis=1)
    scale = np.abs(np.stack([d[:, 2:], d[:, 1:-1], d[:, :-2]])).max(0)
    moves = (scale > ROUNDING * np.abs(x).max(1, keepdims=True, initial=0.0)).all(1) & np.isfinite(scale).all(1)
    scale = np.where(moves[:, None], scale, np.inf)
    y, u, w = d[:, 2:] / scale, d[:, 1:-1] / scale, d[:, :-2] / scale
    # least squares of y = a u + b w
    uu, uw, ww, uy, wy = ((s * t).sum(1) for s, t in ((u, u), (u, w), (w, w), (u, y), (w, y)))
    determinant = uu * ww - uw * uw
    regular = determinant > ROUNDING
    inverse = 1.0 / np.where(regular, determinant, np.inf)
    a, b = (ww * uy - uw * wy) * inverse, (uu * wy - uw * uy) * inverse
    error = np.abs(a[:, None] * u + b[:, None] * w - y).max(1)
    magnitude = np.sqrt(np.maximum(-b, 0.0))  # of complex roots of z^2 = a z + b, whose real part is a / 2
    is_fast = (a * a < -4.0 * b) & (a <= 2.0 * magnitude * np.cos(2.0 * np.pi / LONGEST_PERIOD))
    return np.asarray(regular & (error < TOLERANCE_OF_EQUATION) & is_fast & (magnitude > GROWTH_OF_OSCILLATION))


def _changes_regularly(x: np.ndarray) -> np.ndarray:
    """Return the samples (samples,) whose outputs x (samples, instants) change their sign at every h-th instant."""
    return np.any([_sign_changes(x, h).all(1) for h in range(1, LONGEST_PERIOD // 2 + 1)], axis=0)


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
    limit = numbers[:, samplers.drives[drive.GAINS, channel] + drive.GAIN_LIMIT]
    resolution = numbers[:, samplers.channels[sampler.CHANNEL_NUMBERS, channel] + 1]
    is_known = ~_has_noise(samplers, numbers, channel) & (limit > 0.0)
    return np.where(is_known, np.maximum(AT_LIMIT * limit - resolution, 0.5 * limit), np.inf)


def _has_noise(samplers: Samplers, numbers: np.ndarray, channel: int) -> np.ndarray:
    """Return the samples (samples,) with noise of a sensor of a channel."""
    group = samplers.channels[sampler.CHANNEL_GROUP, channel]
    first, count = samplers.groups[[sampler.GROUP_FIRST_SENSOR, sampler.GROUP_SENSOR_COUNT], group]
    at_noise = samplers.sensors[sampler.SENSOR_NUMBERS, first : first + count] + NOISE
    return np.asarray((numbers[:, at_noise] > 0.0).any(1))
