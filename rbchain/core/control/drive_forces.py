"""Forces of drives and actuators in a state: references, feedback, limits and sums."""

from ...compiling.jit import kernel, only_if
from ..forces import signal_layout as signal
from ..lanes.lanes import constant_like, zeros_like
from ..tree import joint_layout as joint, sampler_layout as sampler, setting_layout as setting
from ..tree.sampler_layout import actions_have_samplers, actions_have_targets
from . import drive_layout as drive
from .actuators import (
    delivered_force,
    lagged_output,
)

# Kinds of drives whose force acts continuously.
CONTINUOUS_FORCES = (drive.KIND_FORCE, drive.KIND_PID, drive.KIND_COMPUTED_TORQUE)


@only_if(actions_have_samplers, otherwise=lambda actions, i: actions.shared.drives[drive.KIND, i])
@kernel
def drive_kind(actions, i):
    """Return the kind of the drive of dof i, or of its sampled controller while its group computes outputs."""
    samplers = actions.shared.samplers
    if actions.settings[setting.SAMPLED_GROUP] == samplers.channels[sampler.CHANNEL_GROUP, i] + 1:
        return samplers.drives[drive.KIND, i]
    return actions.shared.drives[drive.KIND, i]


@only_if(
    lambda d, total, gain, actions, k: actions_have_samplers(actions),
    otherwise=lambda d, total, gain, actions, k: total,
)
@kernel
def add_integral_of_samples(d, total, gain, actions, k):
    """Add a gain times the integral of a sampled controller to a number."""
    return total + gain * actions.sampled.integrals[d, k]


@only_if(actions_have_targets, otherwise=lambda actions, s, order, d, k: actions.values[s, order, k])
@kernel
def reference(actions, s, order, d, k):
    """Return the reference of drive d or its rate: the value of signal s plus the latched target.

    If the drive has a target, the signal is zero. Units: rad or m, and rad/s or m/s for the rate.
    """
    channel, value = actions.shared.samplers.targets[order, d], actions.values[s, order, k]
    return value if channel < 0 else value + actions.sampled.held[channel, k]


@kernel
def integral_of_error(d, block, y, k):
    """Return the integral of the control error of drive d, in rad s or m s: a row of y, or a state of its samples."""
    row = block.loads.actions.shared.drives[drive.INTEGRAL, d]
    total = y[row, k] if row >= 0 else zeros_like(y[0, k])
    return add_integral_of_samples(d, total, constant_like(y, 1.0), block.loads.actions, k)


@kernel
def feedback(d, block, y, k):
    """Compute KP e + KI (integral of e) + KD de/dt for drive d, with the position error e = reference - q.

    The result is in N m or N; for computed torque, in rad/s^2 or m/s^2.
    """
    actions, model, nq = block.loads.actions, block.model, block.q.shape[0]
    i, s, gains, row = (
        actions.shared.drives[drive.DOF, d],
        actions.shared.drives[drive.SIGNAL, d],
        actions.shared.drives[drive.GAINS, d],
        actions.shared.drives[drive.INTEGRAL, d],
    )
    error = reference(actions, s, signal.VALUE, d, k) - y[model.coordinate[i], k]
    rate = reference(actions, s, signal.RATE, d, k) - y[nq + i, k]
    total = actions.numbers[gains + drive.GAIN_KP, k] * error + actions.numbers[gains + drive.GAIN_KD, k] * rate
    if row >= 0:
        total = total + actions.numbers[gains + drive.GAIN_KI, k] * y[row, k]
    return add_integral_of_samples(d, total, actions.numbers[gains + drive.GAIN_KI, k], actions, k)


@kernel
def unlimited_force(d, block, y, k):
    """Compute the force of drive d before its limit, N m or N; zero for a sampled controller and without a drive."""
    actions, joints, drives = block.loads.actions, block.loads.actions.joints, block.loads.actions.shared.drives
    kind, i, force = drives[drive.KIND, d], drives[drive.DOF, d], zeros_like(y[0, k])
    if kind == drive.KIND_FORCE:
        force = force + actions.values[drives[drive.SIGNAL, d], signal.VALUE, k]
    elif kind == drive.KIND_PID:
        force = force + feedback(d, block, y, k)
        if drives[drive.LAGGED, d] >= 0:
            force = force + y[drives[drive.LAGGED, d], k]
        elif drives[drive.FEEDFORWARD, d] >= 0:
            force = force + actions.values[drives[drive.FEEDFORWARD, d], signal.VALUE, k]
    elif kind == drive.KIND_COMPUTED_TORQUE:
        force = force + joints[joint.COMPUTED_TORQUE, i, k]
    if drives[drive.COMPENSATES_GRAVITY, d] == 1:
        force = force + joints[joint.GRAVITY_FORCE, i, k]
    return force


@kernel
def sum_of_forces(i, block, y, k):
    """Compute the sum of the constant, user and drive forces of dof i, N m or N.

    Each drive has its own limit. The sum includes the outputs of sampled controllers.
    """
    actions = block.loads.actions
    drives, force = actions.shared.drives, lagged_output(i, actions, actions.time[0, k], k)
    if actions.settings[setting.FUNCTIONS] > 0:
        force = force + actions.joints[joint.USER_FORCE, i, k]
    d = i
    while d >= 0:
        if drives[drive.KIND, d] in CONTINUOUS_FORCES:
            limit = actions.numbers[drives[drive.GAINS, d] + drive.GAIN_LIMIT, k]
            force = force + min(max(unlimited_force(d, block, y, k), -limit), limit)
        d = drives[drive.NEXT, d]
    return force


@kernel
def actuator_force(i, block, y, k):
    """Compute the actuator force of dof i, N m or N: the force that its actuator delivers for the sum of its forces."""
    force, v = sum_of_forces(i, block, y, k), y[block.q.shape[0] + i, k]
    return delivered_force(i, block.loads.actions, force, v, k)
