"""Tables and memory of sampled controllers, which compute their outputs at instants and hold them in between.

Controllers with the same period, phase, delay, latency and sensors form a group. Its outputs are channels: channel d is
the force of drive d. Each user function has further channels: joint forces that it adds, or targets of PID
controllers.
"""

from typing import NamedTuple

import numpy as np

from ...compiling.jit import is_given, kernel
from ..lanes.lane_memory import window

# Rows of `Samplers.clocks`, one column for each group, s.
CLOCK_PERIOD, CLOCK_PHASE = 0, 1
CLOCK_ROWS_OF_GROUP = 2
# Rows of `Samplers.groups`, one column for each group. Indices of numbers refer to `BlockActions.numbers`.
GROUP_DELAY = 0  # index of the delay; the latency follows
GROUP_COMPENSATES = 1  # 1 if a controller of the group compensates gravity
GROUP_COMPUTES = 2  # 1 if the group contains computed torque
GROUP_FIRST_SENSOR, GROUP_SENSOR_COUNT = 3, 4
GROUP_FUNCTION = 5  # address of the user's function, or 0
GROUP_FUNCTION_NUMBERS, GROUP_FUNCTION_COUNT = 6, 7  # index of its first parameter, and their number
GROUP_FUNCTION_CODE = 8  # its code in `BlockActions.failures`
GROUP_CHANNEL = 9  # its first channel
GROUP_STATE, GROUP_STATE_COUNT = 10, 11  # its first discrete state in `SamplerMemory.states`, and their number
GROUP_STATE_NUMBERS = 12  # index of the initial value of its first state
GROUP_BATCH_CALL = 13  # 1 + its column in `BatchCalls` if Python calls its function for the whole batch, else 0
GROUP_OUTPUT_COUNT = 14  # number of outputs of its function, which are successive channels
GROUP_ROWS = 15
# Rows of `Samplers.channels`.
CHANNEL_GROUP = 0  # group of the channel, or -1 if the drive is no sampled controller
CHANNEL_NUMBERS = 1  # index of the largest rate of the output; the resolution of the output follows
CHANNEL_DOF = 2  # the dof that its force acts on, or -1 for a target
CHANNEL_ROWS = 3
# Rows of `Samplers.sensors`, one column for each sensor.
SENSOR_ROW = 0  # row of the state that it measures
SENSOR_NUMBERS = 1  # index of its resolution; the bias, the noise and the number of the sample follow
SENSOR_DIFFERENCE = 2  # row of the velocity that is computed from differences of its positions, or -1
SENSOR_SEED, SENSOR_CHANNEL = 3, 4  # of its random numbers
SENSOR_ROWS = 5
SENSOR_SAMPLE = 3  # distance of the number of the sample from the resolution
#: Largest number of samples whose random numbers differ between all episodes. The number of a sample in its episode is
#: sample + MOST_SAMPLES * episode, which is exact in float64.
MOST_SAMPLES = 1 << 26
# Rows of `Samplers.targets`.
TARGET_POSITION, TARGET_VELOCITY = 0, 1
TARGET_ROWS = 2
# Entries of `Samplers.sizes`.
SIZE_QUEUE, SIZE_STATES = 0, 1
SIZE_OUTPUTS, SIZE_NEEDED = 2, 3  # largest number of outputs of a function, and of numbers that one needs
SIZE_NEEDS_MEMORY = 4  # rows of the memory to compute these numbers
#: Number of the last outputs that the queue keeps at least, to recognize oscillations.
LAST_OUTPUTS = 13
# Rows of `SamplerMemory.counts`, for each group.
COUNT_NEXT = 0  # index of the next instant
COUNT_ACTING = 1  # index of the instant whose output begins to act next
COUNT_ROWS = 2
# Rows of `SamplerMemory.flags`.
FLAG_IS_DUE = 0  # 1 if the controllers of the current group compute their outputs
FLAG_HAS_CHANGED = 1  # 1 if outputs have changed at this stop
SAMPLER_FLAG_ROWS = 2


class BatchCalls(NamedTuple):
    """Arguments and outputs of the functions that Python calls for the whole batch, while all samples wait.

    * `due` (samples, functions) is 1 + the index of the instant at which a sample waits for a function, or 0.
    * `measured` (functions, samples, nq + nv) are the positions and velocities that were measured last.
    * `outputs` (functions, samples, SIZE_OUTPUTS) are the outputs for that instant.
    """

    due: np.ndarray
    measured: np.ndarray
    outputs: np.ndarray


class Samplers(NamedTuple):
    """The sampled controllers of all samples in a call.

    `clocks` (CLOCK_ROWS_OF_GROUP, groups) are the periods and phases, s. `groups` (GROUP_ROWS, groups), `channels`
    (CHANNEL_ROWS, channels), `sensors` (SENSOR_ROWS, sensors) and `sizes` (5,) are described above. `drives`
    (drive.ROWS, drives) describes the controllers as `SharedActions.drives` describes drives that act continuously.
    `batch_calls` is a BatchCalls, or None if Python calls no functions for the whole batch. `targets` (TARGET_ROWS,
    drives) are the channels that are the target of a PID controller, or -1; None without targets. `limits` (channels,)
    are the indices of the largest absolute outputs, or -1; None without such limits. `needs` is a
    `core.control.needed_quantities.Needs`, or None if no compiled function needs quantities of a model.
    """

    clocks: np.ndarray
    groups: np.ndarray
    channels: np.ndarray
    sensors: np.ndarray
    sizes: np.ndarray
    drives: np.ndarray
    batch_calls: object
    targets: object
    limits: object
    needs: object


class SamplerMemory(NamedTuple):
    """The state of the sampled controllers of the samples in one block.

    * `stops` (groups, lanes) are the times at which a group measures, or an output begins to act, s.
    * `noise` (sensors, lanes) is the noise of the last measurements, rad, m, rad/s or m/s, and `deviations` (sensors,
      lanes) is its standard deviation. `sample_numbers` (sensors, lanes) are the numbers of the samples in the
      generator.
    * `counts` (COUNT_ROWS, groups, lanes) are indices of instants.
    * `flags` (SAMPLER_FLAG_ROWS, lanes) are described above.
    * `held` (channels, lanes) are the latched outputs, which act now: forces, N m or N, or targets,
      rad, m, rad/s or m/s. `computed` (channels, lanes) are the outputs that were computed last.
    * `queue` (SIZE_QUEUE, channels, lanes) are computed outputs. The output of instant i has the index
      i modulo SIZE_QUEUE. SIZE_QUEUE is at least LAST_OUTPUTS.
    * `integrals` (drives, lanes) are the sums of control errors times the period, rad s or m s.
    * `states` (SIZE_STATES, lanes) are the discrete states of user functions.
    * `positions` (sensors, lanes) are the previous measurements of the sensors; NaN before the first one.
    * `measured` (rows of the state, lanes) is the measured state.
    * `lagged` (n, lanes) are the forces after the lags of actuators, N m or N, at the time `lag_start` (1, lanes), s.
    * `needed` (m,) is memory for the quantities that compiled functions need, SIZE_NEEDS_MEMORY values for each lane.
    """

    stops: np.ndarray
    noise: np.ndarray
    deviations: np.ndarray
    sample_numbers: np.ndarray
    counts: np.ndarray
    flags: np.ndarray
    held: np.ndarray
    computed: np.ndarray
    queue: np.ndarray
    integrals: np.ndarray
    states: np.ndarray
    positions: np.ndarray
    measured: np.ndarray
    lagged: np.ndarray
    lag_start: np.ndarray
    needed: np.ndarray


def sampler_sizes(samplers, n, state_size, width):
    """Return the numbers of floats in the precision of the states, of float64 and of integers of a SamplerMemory."""
    groups, channels = samplers.clocks.shape[1], samplers.channels.shape[1]
    rows = SAMPLER_FLAG_ROWS + (2 + int(samplers.sizes[SIZE_QUEUE])) * channels + samplers.drives.shape[1]
    rows += state_size + samplers.sensors.shape[1] + n + 1
    times = groups + 3 * samplers.sensors.shape[1]
    rows += int(samplers.sizes[SIZE_STATES] + samplers.sizes[SIZE_NEEDS_MEMORY])
    return rows * width, times * width, COUNT_ROWS * groups * width


@kernel
def samplers_in(memory, samplers, n, width):
    """Create the SamplerMemory of a block with n dofs and `width` lanes.

    `memory` contains three flat arrays with the numbers of `sampler_sizes`: floats, float64 and integers.
    """
    numbers, times, counts = memory
    groups, channels, sensors = samplers.clocks.shape[1], samplers.channels.shape[1], samplers.sensors.shape[1]
    noise = groups * width
    held = SAMPLER_FLAG_ROWS * width
    queue = held + 2 * channels * width
    integrals = queue + samplers.sizes[SIZE_QUEUE] * channels * width
    states = integrals + samplers.drives.shape[1] * width
    positions = states + samplers.sizes[SIZE_STATES] * width
    lagged = positions + sensors * width
    needed = lagged + (n + 1) * width
    measured = needed + samplers.sizes[SIZE_NEEDS_MEMORY] * width
    return SamplerMemory(
        stops=window(times, 0, (groups, width)),
        noise=window(times, noise, (sensors, width)),
        deviations=window(times, noise + sensors * width, (sensors, width)),
        sample_numbers=window(times, noise + 2 * sensors * width, (sensors, width)),
        counts=window(counts, 0, (COUNT_ROWS, groups, width)),
        flags=window(numbers, 0, (SAMPLER_FLAG_ROWS, width)),
        held=window(numbers, held, (channels, width)),
        computed=window(numbers, held + channels * width, (channels, width)),
        queue=window(numbers, queue, (samplers.sizes[SIZE_QUEUE], channels, width)),
        integrals=window(numbers, integrals, (samplers.drives.shape[1], width)),
        states=window(numbers, states, (samplers.sizes[SIZE_STATES], width)),
        positions=window(numbers, positions, (sensors, width)),
        measured=window(numbers, measured, (numbers.shape[0] // width - measured // width, width)),
        lagged=window(numbers, lagged, (n, width)),
        lag_start=window(numbers, lagged + n * width, (1, width)),
        needed=window(numbers, needed, (samplers.sizes[SIZE_NEEDS_MEMORY] * width,)),
    )


def has_samplers(block, *_):
    """Whether a block, or its Numba type, has sampled controllers."""
    return is_given(block, "loads", "actions", "sampled")


def actions_have_samplers(actions, *_):
    """Whether the actions of a block, or their Numba type, have sampled controllers."""
    return is_given(actions, "sampled")


def has_batch_calls(block, *_):
    """Whether Python calls functions of the sampled controllers for the whole batch."""
    return has_samplers(block) and is_given(block, "loads", "actions", "shared", "samplers", "batch_calls")


def actions_have_targets(actions, *_):
    """Whether the outputs of sampled controllers are targets of PID controllers."""
    return actions_have_samplers(actions) and is_given(actions, "shared", "samplers", "targets")


def has_targets(block, *_):
    """Whether the outputs of the sampled controllers of a block are targets of PID controllers."""
    return has_samplers(block) and is_given(block, "loads", "actions", "shared", "samplers", "targets")


def actions_have_limits(actions, *_):
    """Whether outputs of user functions of sampled controllers have limits."""
    return is_given(actions, "shared", "samplers", "limits")
