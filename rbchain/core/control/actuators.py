"""Actuators: a lag of the outputs of sampled controllers, limits that depend on the velocity, and friction of gears.

The input u of a lag is the sum of the constant force and of the latched outputs. It is constant between two stops, the
times at which steps end for sampled controllers. The equation T df/dt = u - f of the force f therefore has a closed
solution, and the state of the integrator has no row for f. With the force f_0 at the time t_0 of the last stop,

    f(t) = f_0 e + u (1 - e),   e = exp(-(t - t_0) / T).

The largest force in the positive direction at the velocity v is a piecewise linear function F(v). The force of the
motor is clipped to [-F(-v), F(v)] in every evaluation. The friction of its gear grows with the clipped force c. The
joint receives the force

    c - mu |c| s(v),   s(v) = v / sqrt(v^2 + v_0^2).

Forces and velocities are one value for each lane.
"""

import math

from ...compiling.jit import is_given, kernel, only_if
from ..lanes.lanes import constant_like, full_like, nan_unless_finite, select, zeros_like
from ..tree import joint_layout as joint, sampler_layout as sampler
from ..tree.sampler_layout import actions_have_samplers
from . import drive_layout as drive

# Rows of `SharedActions.actuators`, one column for each degree of freedom. Indices refer to `BlockActions.numbers`.
ACTUATOR_TIME_CONSTANT = 0  # index of the time constant of the lag, or -1 without a lag
ACTUATOR_CURVE = 1  # index of F before its first point; then follow v_0, slope_0, v_1, slope_1, ..., v_(m-1)
ACTUATOR_POINTS = 2  # number m of points of F, or 0 without limits that depend on the velocity
ACTUATOR_GEAR = 3  # index of mu of the gear, which v_0 follows, or -1 without friction that grows with the force
ACTUATOR_ROWS = 4

LOG_2 = math.log(2.0)
# To reduce x to [0, log(2) / 2): if x is at least the first entry, subtract it and multiply exp(-x) by the second.
REDUCTIONS = tuple((n * LOG_2, 2.0**-n) for n in (32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5))
LONGEST = 44.0  # exp(-44) is less than round-off; the reductions reach 63.5 log(2) = 44.01
SERIES = tuple(1.0 / n for n in range(13, 0, -1))  # exp(x) = 1 + x (1 + x / 2 (1 + x / 3 (...)))


def has_actuators(block, *_):
    """Whether a block, or its Numba type, has actuators."""
    return is_given(block, "loads", "actions", "shared", "actuators")


def actions_have_lags(actions, *_):
    """Whether the actions of a block, or their Numba type, may have lags: lags require sampled controllers."""
    return actions_have_samplers(actions) and is_given(actions, "shared", "actuators")


# --- lags -------------------------------------------------------------------------------------------------------------


@kernel
def decay(x):
    """Return exp(-x) for x of at least -1, by a Taylor series after reduction to [0, log(2) / 2)."""
    one = constant_like(x, 1.0)
    x, scale = min(x, constant_like(x, LONGEST)), full_like(x, 1.0)
    for length, factor in REDUCTIONS:
        is_longer = x >= constant_like(x, length)
        scale = select(is_longer, scale * constant_like(x, factor), scale)
        x = select(is_longer, x - constant_like(x, length), x)
    series = full_like(x, 1.0)
    for inverse in SERIES:
        series = one - x * constant_like(x, inverse) * series
    return scale * series


@only_if(
    lambda i, actions, k: actions_have_samplers(actions),
    otherwise=lambda i, actions, k: actions.joints[joint.CONSTANT_FORCE, i, k],
)
@kernel
def held_force(i, actions, k):
    """Return the sum of the constant force and the latched outputs of sampled controllers on dof i, N m or N."""
    held, channels, drives = actions.sampled.held, actions.shared.samplers.channels, actions.shared.drives
    total, d = actions.joints[joint.CONSTANT_FORCE, i, k], i
    while d >= 0:
        if drives[drive.KIND, d] == drive.KIND_HELD:
            total = total + held[d, k]
        d = drives[drive.NEXT, d]
    for c in range(drives.shape[1], held.shape[0]):  # the outputs of user functions
        if channels[sampler.CHANNEL_DOF, c] == i:
            total = total + held[c, k]
    return total


@only_if(lambda i, actions: actions_have_lags(actions), False)
@kernel
def has_lag(i, actions):
    """Whether the forces of dof i pass a lag, in some samples."""
    return actions.shared.actuators[ACTUATOR_TIME_CONSTANT, i] >= 0


@kernel
def share_of_last_force(i, actions, t, k):
    """Return e, the share of the force f_0 in the force of dof i at time t, s, if it has a lag."""
    length = actions.numbers[actions.shared.actuators[ACTUATOR_TIME_CONSTANT, i], k]
    zero, one = zeros_like(length), constant_like(length, 1.0)
    is_lagged = length > zero
    # differences in time also evaluate the force a little before the stop
    x = max((t - actions.sampled.lag_start[0, k]) / select(is_lagged, length, one), -one)
    return select(is_lagged, decay(x), zero)


@only_if(
    lambda i, actions, t, k: actions_have_lags(actions),
    otherwise=lambda i, actions, t, k: held_force(i, actions, k),
)
@kernel
def lagged_output(i, actions, t, k):
    """Return the force of dof i, N m or N, that follows from its constant force and outputs at time t, s."""
    total = held_force(i, actions, k)
    if actions.shared.actuators[ACTUATOR_TIME_CONSTANT, i] < 0:
        return total
    e = share_of_last_force(i, actions, t, k)
    return actions.sampled.lagged[i, k] * e + total * (constant_like(total, 1.0) - e)


@only_if(actions_have_lags)
@kernel
def restart_lags(actions, t, lane):
    """Restart the lags of a lane at time t, s, from their current forces."""
    sampled = actions.sampled
    time = constant_like(sampled.lagged, t)
    for i in range(sampled.lagged.shape[0]):
        sampled.lagged[i, lane] = lagged_output(i, actions, time, lane)
    sampled.lag_start[0, lane] = time


@only_if(actions_have_lags)
@kernel
def begin_lags(actions, lane):
    """Set the forces of the lags of a lane with a new sample to zero; its motion starts at `actions.time`."""
    sampled = actions.sampled
    for i in range(sampled.lagged.shape[0]):
        sampled.lagged[i, lane] = constant_like(sampled.lagged, 0.0)
    sampled.lag_start[0, lane] = actions.time[0, lane]


@only_if(actions_have_lags, otherwise=lambda actions, c, t, lane: actions.sampled.held[c, lane])
@kernel
def output_at(actions, c, t, lane):
    """Return the output to save for channel c: with a lag, the whole force of its dof is saved in the first channel.

    The time t is in s. Forces are in N m or N; a target has the unit of its reference.
    """
    dof = actions.shared.samplers.channels[sampler.CHANNEL_DOF, c]
    if dof < 0 or actions.shared.actuators[ACTUATOR_TIME_CONSTANT, dof] < 0:
        return actions.sampled.held[c, lane]
    if c != dof:
        return constant_like(actions.sampled.held, 0.0)
    return lagged_output(dof, actions, constant_like(actions.sampled.held, t), lane)


@only_if(actions_have_lags)
@kernel
def recall_lags(actions, lane):
    """Set the forces of the lags to the latched outputs, which were saved after the lags."""
    for i in range(actions.sampled.lagged.shape[0]):
        actions.sampled.lagged[i, lane] = actions.sampled.held[i, lane]


# --- limits that depend on the velocity -------------------------------------------------------------------------------


@kernel
def force_on_curve(i, actions, v, k):
    """Return the largest force F(v) of dof i in the positive direction, N m or N, and dF/dv, N m s/rad or N s/m."""
    numbers, at = actions.numbers, actions.shared.actuators[ACTUATOR_CURVE, i]
    force, slope = numbers[at, k] + nan_unless_finite(v), nan_unless_finite(v)
    for p in range(actions.shared.actuators[ACTUATOR_POINTS, i] - 1):
        first, rate, last = numbers[at + 1 + 2 * p, k], numbers[at + 2 + 2 * p, k], numbers[at + 3 + 2 * p, k]
        force = force + rate * (min(max(v, first), last) - first)
        slope = select((v > first) & (v < last), rate, slope)
    return force, slope


@kernel
def clip_to_curve(i, actions, force, v, k):
    """Clip a force of dof i, N m or N, to the limits at the velocity v, rad/s or m/s."""
    if actions.shared.actuators[ACTUATOR_POINTS, i] == 0:
        return force
    upper, _ = force_on_curve(i, actions, v, k)
    lower, _ = force_on_curve(i, actions, -v, k)
    return min(max(force, -lower), upper)


@kernel
def place_on_curve(i, actions, force, v, k):
    """Return 1 if a force of dof i is between its limits, else 0, and d(clipped force)/dv.

    The derivative is in N m s/rad or N s/m.
    """
    one, zero = full_like(v, 1.0), zeros_like(v)
    if actions.shared.actuators[ACTUATOR_POINTS, i] == 0:
        return one, zero
    upper, rise = force_on_curve(i, actions, v, k)
    lower, fall = force_on_curve(i, actions, -v, k)
    is_above, is_below = force >= upper, force <= -lower
    slope = select(is_above, rise, select(is_below, fall, zero))
    return select(is_above | is_below, zero, one), slope


# --- friction that grows with the force -------------------------------------------------------------------------------


@kernel
def direction_of_friction(i, actions, v, k):
    """Return s(v) of the friction of the gear of dof i, and its derivative with respect to v, s/rad or s/m."""
    rest = actions.numbers[actions.shared.actuators[ACTUATOR_GEAR, i] + 1, k]
    inverse = constant_like(v, 1.0) / math.sqrt(v * v + rest * rest)
    return v * inverse, (rest * rest) * (inverse * inverse * inverse)


@only_if(
    lambda i, actions, force, v, k: is_given(actions, "shared", "actuators"),
    otherwise=lambda i, actions, force, v, k: force,
)
@kernel
def delivered_force(i, actions, force, v, k):
    """Return the force that the joint of dof i receives, N m or N, for the sum `force` of the forces of its drives.

    The sum is clipped to the limits at the velocity v, rad/s or m/s, and reduced or increased by the friction of the
    gear.
    """
    force, at = clip_to_curve(i, actions, force, v, k), actions.shared.actuators[ACTUATOR_GEAR, i]
    if at < 0:
        return force
    share, _ = direction_of_friction(i, actions, v, k)
    return force - actions.numbers[at, k] * abs(force) * share


@kernel
def slopes_of_delivered_force(i, actions, force, v, k):
    """Return the derivatives of `delivered_force` with respect to the sum of the forces, and to the velocity v.

    The second one is in N m s/rad or N s/m.
    """
    by_force, by_velocity = place_on_curve(i, actions, force, v, k)
    at, zero, one = actions.shared.actuators[ACTUATOR_GEAR, i], zeros_like(v), full_like(v, 1.0)
    if at < 0:
        return by_force, by_velocity
    clipped, (share, rise) = clip_to_curve(i, actions, force, v, k), direction_of_friction(i, actions, v, k)
    sign = select(clipped > zero, one, select(clipped < zero, -one, zero))
    factor = one - actions.numbers[at, k] * sign * share
    return factor * by_force, factor * by_velocity - actions.numbers[at, k] * abs(clipped) * rise


@kernel
def derivative_by_gear_friction(i, actions, force, v, k):
    """Return the derivative of `delivered_force` with respect to the gear friction mu, N m or N."""
    share, _ = direction_of_friction(i, actions, v, k)
    return -abs(clip_to_curve(i, actions, force, v, k)) * share


@kernel
def change_of_gear_slope(i, actions, force, v, w, is_counted, k):
    """Return the mean slope of the friction of a gear between the velocities v and w, less its slope at w if counted.

    The slope is - d force / d velocity, N m s/rad or N s/m, for the sum `force` of the forces at w, N m or N. Zero
    without this friction. `is_counted` is 1 or 0 for all lanes.
    """
    at = actions.shared.actuators[ACTUATOR_GEAR, i]
    if at < 0:
        return zeros_like(v)
    (before, _), (after, slope) = direction_of_friction(i, actions, v, k), direction_of_friction(i, actions, w, k)
    change = select(v == w, constant_like(v, 1.0), v - w)
    mean = select(v == w, slope, (before - after) / change)
    size = actions.numbers[at, k] * abs(clip_to_curve(i, actions, force, w, k))
    return size * (mean - constant_like(v, 1.0 * is_counted) * slope)
