"""Measurements of sampled controllers: the state at an instant, or what sensors measure of it."""

from ...compiling.jit import kernel, routine
from ..control.sampler_clocks import set_time_of_signals
from ..lanes.lanes import any_lane, constant_like, floor, select
from ..lanes.random_numbers import two_normals
from ..sample import control_layout as controls
from ..sample.rate import set_prescribed_states
from ..tree import sampler_layout as sampler


@kernel
def is_due(block, k):
    """Whether the current group computes outputs for a lane, or for each of the lanes k."""
    flags = block.loads.actions.sampled.flags
    return flags[sampler.FLAG_IS_DUE, k] > constant_like(flags, 0.0)


@kernel
def measure_lanes(block, stepper, g, k):
    """Measure the state in the lanes with FLAG_IS_DUE, and set the time of their signals to their instants, s.

    Writes `SamplerMemory.measured` (rows of the state, lanes).
    """
    actions, y = block.loads.actions, block.loads.actions.sampled.measured
    for j in range(y.shape[0]):
        y[j, k] = stepper.y[j, k]
    set_prescribed_states(block, y, stepper.control[controls.TIME, k], k)
    for lane in range(stepper.y.shape[1]):
        actions.time[0, lane] = stepper.control[controls.TIME, lane]
        if is_due(block, lane):
            set_time_of_signals(actions, g, lane)
    measure(block, g, k)


@kernel
def measure(block, g, k):
    """Replace `SamplerMemory.measured` by the measurements of the sensors of a group, in the lanes with FLAG_IS_DUE."""
    groups = block.loads.actions.shared.samplers.groups
    first = groups[sampler.GROUP_FIRST_SENSOR, g]
    last = first + groups[sampler.GROUP_SENSOR_COUNT, g]
    for s in range(first, last):
        compute_noise_of_sensor(block, g, s, k)
    for s in range(first, last):
        measure_by_sensor(block, g, s, k)


@kernel
def measure_by_sensor(block, g, s, k):
    """Replace rows of `SamplerMemory.measured` by the measurement of sensor s, in the lanes with FLAG_IS_DUE.

    The rows are a position or velocity, rad, m, rad/s or m/s, and the velocity from its differences, if there is one.
    """
    actions = block.loads.actions
    sampled, samplers, due = actions.sampled, actions.shared.samplers, is_due(block, k)
    y, row, at, velocity = (
        sampled.measured,
        samplers.sensors[sampler.SENSOR_ROW, s],
        samplers.sensors[sampler.SENSOR_NUMBERS, s],
        samplers.sensors[sampler.SENSOR_DIFFERENCE, s],
    )
    resolution, bias = float(actions.numbers[at, k]), float(actions.numbers[at + 1, k])
    value = rounded(float(y[row, k]) + bias + sampled.noise[s, k], resolution)
    if velocity >= 0:
        previous, period = float(sampled.positions[s, k]), samplers.clocks[sampler.CLOCK_PERIOD, g]
        is_known = abs(previous) >= 0.0  # it is NaN before the first measurement
        difference = select(is_known, (value - previous) / period, 0.0)
        y[velocity, k] = select(due, constant_like(y, difference), y[velocity, k])
        sampled.positions[s, k] = select(due, constant_like(y, value), sampled.positions[s, k])
    y[row, k] = select(due, constant_like(y, value), y[row, k])


@kernel
def compute_noise_of_sensor(block, g, s, k):
    """Compute the noise of sensor s for the next instant of group g, in the lanes with FLAG_IS_DUE.

    The noise has the unit of the row that the sensor measures.
    """
    sampled, sensors = block.loads.actions.sampled, block.loads.actions.shared.samplers.sensors
    deviation = sampled.deviations[s, k]
    has_noise = is_due(block, k) & (deviation != 0.0)
    if any_lane(has_noise):
        set_to_normals(
            sampled.noise[s],
            sensors[sampler.SENSOR_SEED, s],
            sampled.sample_numbers[s],
            sensors[sampler.SENSOR_CHANNEL, s],
            sampled.counts[sampler.COUNT_NEXT, g],
        )
    sampled.noise[s, k] = select(has_noise, deviation * sampled.noise[s, k], 0.0)


@routine
def set_to_normals(numbers, seed, samples, channel, instants):
    """Set `numbers` (lanes,) to the standard normal numbers of samples. The compiler vectorizes this loop.

    `samples` and `instants` (lanes,) are the numbers of the samples in the generator and the indices of the instants.
    """
    for lane in range(numbers.shape[0]):
        numbers[lane] = two_normals(int(seed), int(samples[lane]), int(channel), int(instants[lane]))[0]


@kernel
def rounded(value, resolution):
    """Return the multiple of the resolution that is closest to a value; the value if the resolution is zero."""
    is_rounded = resolution > 0.0
    unit = select(is_rounded, resolution, 1.0)
    return select(is_rounded, unit * floor(value / unit + 0.5), value)
