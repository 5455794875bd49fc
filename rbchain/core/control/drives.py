"""Drives: compute actuator forces, prescribed motions and the dynamics under them, to obtain the rate of a state.

A drive gives a force to a dof, or prescribes its motion. The actuator force of a dof is the sum of its constant force
and of the forces of its drives and of user functions. Hybrid dynamics computes the force that a prescribed motion
requires. Gravity compensation and computed torque run additional sweeps with the model of the controllers, without
passive joint forces, wrenches and drag. `y` (rows, lanes) is a state of the integrator, d the number of a drive.
"""

from ...compiling.jit import kernel, only_if, routine
from ..contacts.contact_rates import add_contact_forces
from ..forces import signal_layout as signal
from ..forces.passive import exact_passive_stiffness_and_damping, passive_force, passive_stiffness_and_damping
from ..forces.signals import evaluate_signals
from ..lanes.lanes import constant_like, full_like, select, zeros_like
from ..loops.constraint_hooks import (
    forward_dynamics_of_block,
    has_constraints,
    hybrid_dynamics_of_block,
    hybrid_dynamics_of_controllers,
)
from ..tree import joint_layout as joint, sampler_layout as sampler, setting_layout as setting
from ..tree.kinematics import position_rates
from ..tree.layout import apply_gravity, has_actions
from ..tree.sampler_layout import actions_have_samplers, actions_have_targets
from . import drive_layout as drive
from .actuators import (
    change_of_gear_slope,
    delivered_force,
    derivative_by_gear_friction,
    has_actuators,
    lagged_output,
    slopes_of_delivered_force,
)
from .user_calls import call_user_forces

# The sweeps of an evaluation: gravity compensation, computed torque, and the motion itself.
GRAVITY_SWEEP, COMPUTED_TORQUE_SWEEP, MOTION_SWEEP = 0, 1, 2
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
    """Add KI times the integral of a sampled controller to its output."""
    return total + gain * actions.sampled.integrals[d, k]


@routine
def rate_under_actions(block, y, t, rate, k):
    """Compute the rate of the state y at time t, in s, under drives and wrenches.

    The rows of y are q, qd, and the integrals of errors and the lagged forces of the drives. y and `rate` are
    (rows, lanes). Overwrites the prescribed positions and velocities in y.
    """
    actions, nq, n = block.loads.actions, block.q.shape[0], block.qd.shape[0]
    q, qd = y[:nq], y[nq : nq + n]
    actions.time[0, k] = t
    evaluate_signals(actions, k)
    for i in range(n):
        set_prescribed_state(i, block.model, actions, q, qd, k)
        actions.joints[joint.PASSIVE_FORCE, i, k] = passive_force(i, block.model, q, qd, k)
    position_rates(block.model, q, qd, rate[:nq], k)
    if actions.settings[setting.FUNCTIONS] > 0:
        for lane in range(actions.time.shape[1]):
            call_user_forces(actions, nq, n, y, lane)
    for sweep in range(3):
        if (
            sweep == MOTION_SWEEP
            or actions.settings[setting.COMPENSATES if sweep == GRAVITY_SWEEP else setting.COMPUTES] == 1
        ):
            sweep_under_actions(sweep, block, y, k)
    for i in range(n):
        rate[nq + i, k] = actions.joints[joint.QDD, i, k]
    drives = actions.shared.drives
    for d in range(drives.shape[1]):
        row = drives[drive.INTEGRAL, d]
        if row >= 0:
            position = q[block.model.coordinate[drives[drive.DOF, d]], k]
            rate[row, k] = reference(actions, drives[drive.SIGNAL, d], signal.VALUE, d, k) - position
        row = drives[drive.LAGGED, d]
        if row >= 0:
            change = actions.values[drives[drive.FEEDFORWARD, d], signal.VALUE, k] - y[row, k]
            rate[row, k] = change / actions.numbers[drives[drive.LAG, d], k]
    add_contact_forces(block, y, rate, k)


@kernel
def sweep_under_actions(sweep, block, y, k):
    """Run one sweep: the motion with the model of the mechanism, the other sweeps with the model of the controllers."""
    actions, joints, nq, n = block.loads.actions, block.loads.actions.joints, block.q.shape[0], block.qd.shape[0]
    actions.settings[setting.EXTERNAL_FORCES] = 1 if sweep == MOTION_SWEEP else 0
    model = block.model if sweep == MOTION_SWEEP else actions.model
    if actions.settings[setting.COMPENSATES] == 1 or actions.settings[setting.COMPUTES] == 1:
        apply_gravity(model, block.work, k)
    for i in range(n):
        set_joint_command(i, sweep, block, y, k)
    if sweep == MOTION_SWEEP and actions.settings[setting.IMPLICIT] == 1:
        store_stiffness_and_damping(block, y, k)
        for i in range(n):
            apply_implicit_terms(i, block, y[nq + i, k], k)
    q, qdd = y[:nq], joints[joint.QDD]
    if sweep == MOTION_SWEEP and actions.settings[setting.HYBRID] == 0:
        forward_dynamics_of_block(block, q, y[nq : nq + n], qdd, k)
        return
    if sweep == MOTION_SWEEP:
        hybrid_dynamics_of_block(block, q, joints[joint.QD], qdd, joints[joint.PRESCRIBED], k)
    else:
        hybrid_dynamics_of_controllers(block, model, q, joints[joint.QD], qdd, joints[joint.PRESCRIBED], k)
    for i in range(n):
        store_sweep_result(i, sweep, block, k)


@kernel
def set_prescribed_state(i, model, actions, q, qd, k):
    """Set the prescribed position and velocity of dof i in q (nq, lanes) and qd (n, lanes), if it has any."""
    kind, s = actions.shared.drives[drive.KIND, i], actions.shared.drives[drive.SIGNAL, i]
    if kind == drive.KIND_PRESCRIBED_POSITION:
        q[model.coordinate[i], k] = actions.values[s, signal.VALUE, k]
        qd[i, k] = actions.values[s, signal.RATE, k]
    elif kind == drive.KIND_PRESCRIBED_VELOCITY:
        qd[i, k] = actions.values[s, signal.VALUE, k]


@only_if(has_actions)
@kernel
def store_stiffness_and_damping(block, y, k):
    """Compute - d force / d position and - d force / d velocity of each dof, for its passive and its PID forces.

    Writes joint.STIFFNESS, N m/rad or N/m, and joint.DAMPING, N m s/rad or N s/m. A PID force at its limit is constant
    and adds nothing. An actuator adds the damping of its torque-speed curve, if the force is on it, and of its gear.
    """
    actions, model, nq = block.loads.actions, block.model, block.q.shape[0]
    q, qd = y[:nq], y[nq : nq + block.qd.shape[0]]
    for i in range(block.qd.shape[0]):
        stiffness, damping = passive_stiffness_and_damping(i, model, q, qd, k)
        d = i
        while d >= 0:
            if actions.shared.drives[drive.KIND, d] == drive.KIND_PID:
                gains, varies = actions.shared.drives[drive.GAINS, d], share_of_drive(d, block, y, k)
                stiffness = stiffness + varies * actions.numbers[gains + drive.GAIN_KP, k]
                damping = damping + varies * actions.numbers[gains + drive.GAIN_KD, k]
            d = actions.shared.drives[drive.NEXT, d]
        actions.joints[joint.STIFFNESS, i, k] = stiffness
        actions.joints[joint.DAMPING, i, k] = add_damping_of_actuator(i, damping, block, y, k)


@kernel
def slopes_of_actuator(i, block, y, k):
    """Return the derivatives of an actuator force with respect to the sum of forces of dof i, and to its velocity."""
    total, v = sum_of_forces(i, block, y, k), y[block.q.shape[0] + i, k]
    return slopes_of_delivered_force(i, block.loads.actions, total, v, k)


@only_if(lambda i, block, y, k: has_actuators(block), otherwise=lambda i, block, y, k: full_like(y[0, k], 1.0))
@kernel
def share_of_forces(i, block, y, k):
    """Return the derivative of the actuator force of dof i with respect to the sum of its forces.

    It is 1 without an actuator, and 0 on a torque-speed curve.
    """
    share, _ = slopes_of_actuator(i, block, y, k)
    return share


@only_if(lambda i, damping, block, y, k: has_actuators(block), otherwise=lambda i, damping, block, y, k: damping)
@kernel
def add_damping_of_actuator(i, damping, block, y, k):
    """Add the damping of the torque-speed curve and of the gear of dof i; negative damping is omitted."""
    _, slope = slopes_of_actuator(i, block, y, k)
    return damping + max(-slope, zeros_like(slope))


@only_if(lambda i, by_qd, block, y, k: has_actuators(block), otherwise=lambda i, by_qd, block, y, k: by_qd)
@kernel
def add_slope_of_actuator(i, by_qd, block, y, k):
    """Add the slopes of the torque-speed curve and of the gear of dof i to a derivative with respect to velocity."""
    _, slope = slopes_of_actuator(i, block, y, k)
    return by_qd + slope


@only_if(lambda block, *_: has_actuators(block))
@kernel
def use_mean_slopes_of_gears(block, y, y_stage, is_counted, k):
    """Count the friction of gears in the damping at a stage of a step with its mean slope since the start y.

    See `rate.use_mean_slopes_of_friction`. `is_counted` is 1 if the damping counts the slope at the stage already, else
    0. y and `y_stage` are states (rows, lanes).
    """
    joints, actions, nq = block.loads.actions.joints, block.loads.actions, block.q.shape[0]
    for i in range(block.qd.shape[0]):
        total, v, w = sum_of_forces(i, block, y_stage, k), y[nq + i, k], y_stage[nq + i, k]
        change = change_of_gear_slope(i, actions, total, v, w, is_counted, k)
        joints[joint.DAMPING, i, k] = joints[joint.DAMPING, i, k] + change


@only_if(lambda i, block, y, k: has_actuators(block), otherwise=lambda i, block, y, k: zeros_like(y[0, k]))
@kernel
def slope_of_gear_friction(i, block, y, k):
    """Return the derivative of the actuator force of dof i with respect to its gear friction, N m or N."""
    total, v = sum_of_forces(i, block, y, k), y[block.q.shape[0] + i, k]
    return derivative_by_gear_friction(i, block.loads.actions, total, v, k)


@kernel
def share_of_drive(d, block, y, k):
    """Return the derivative of an actuator force with respect to the force of drive d before its limit.

    It is 0 if the force is at its limit, and otherwise the result of `share_of_forces`.
    """
    actions, drives = block.loads.actions, block.loads.actions.shared.drives
    limit, one = actions.numbers[drives[drive.GAINS, d] + drive.GAIN_LIMIT, k], full_like(y[0, k], 1.0)
    is_below = select(abs(unlimited_force(d, block, y, k)) < limit, one, zeros_like(one))
    return is_below * share_of_forces(drives[drive.DOF, d], block, y, k)


@kernel
def set_joint_command(i, sweep, block, y, k):
    """Set the inputs of dof i for a sweep: its velocity, and its force or its prescribed acceleration.

    In the gravity sweep, the mechanism is at rest; dofs without drive.RESTS are held by other dofs, through the
    constraints. In the computed-torque sweep, the acceleration of a dof with
    computed torque is the acceleration of its signal plus feedback.
    """
    actions, joints = block.loads.actions, block.loads.actions.joints
    kind = drive_kind(actions, i)
    zero, one, v = constant_like(joints, 0.0), constant_like(joints, 1.0), y[block.q.shape[0] + i, k]
    if actions.settings[setting.IMPLICIT] == 1:
        joints[joint.IMPLICIT_INERTIA, i, k] = zero
    if sweep == GRAVITY_SWEEP:
        joints[joint.QD, i, k] = zero
        joints[joint.PRESCRIBED, i, k] = one
        joints[joint.QDD, i, k] = zero
        release_dof(i, block, k)
        return
    joints[joint.QD, i, k] = v
    is_prescribed = kind in drive.PRESCRIBED_KINDS
    joints[joint.PRESCRIBED, i, k] = (
        one if is_prescribed or (kind == drive.KIND_COMPUTED_TORQUE and sweep == COMPUTED_TORQUE_SWEEP) else zero
    )
    if is_prescribed:
        order = (
            signal.VALUE
            if kind == drive.KIND_PRESCRIBED_ACCELERATION
            else signal.RATE
            if kind == drive.KIND_PRESCRIBED_VELOCITY
            else signal.ACCELERATION
        )
        joints[joint.QDD, i, k] = actions.values[actions.shared.drives[drive.SIGNAL, i], order, k]
    elif kind == drive.KIND_COMPUTED_TORQUE and sweep == COMPUTED_TORQUE_SWEEP:
        s = actions.shared.drives[drive.SIGNAL, i]
        joints[joint.QDD, i, k] = actions.values[s, signal.ACCELERATION, k] + feedback(i, block, y, k)
    else:
        force = actuator_force(i, block, y, k)
        joints[joint.ACTUATOR_FORCE, i, k] = force
        block.loads.tau[i, k] = force
        if sweep == MOTION_SWEEP:
            block.loads.tau[i, k] = force + joints[joint.PASSIVE_FORCE, i, k]


@only_if(lambda i, block, k: has_constraints(block))
@kernel
def release_dof(i, block, k):
    """Let dof i move without a force in the gravity sweep, if other dofs hold it through the constraints."""
    if block.loads.actions.shared.drives[drive.RESTS, i] == 0:
        block.loads.actions.joints[joint.PRESCRIBED, i, k] = constant_like(block.q, 0.0)
        block.loads.tau[i, k] = constant_like(block.q, 0.0)


@only_if(actions_have_targets, otherwise=lambda actions, s, order, d, k: actions.values[s, order, k])
@kernel
def reference(actions, s, order, d, k):
    """Return the reference of drive d or its rate: the value of signal s plus the latched target.

    If the drive has a target, the signal is zero. Units: rad or m, and rad/s or m/s for the rate.
    """
    channel, value = actions.shared.samplers.targets[order, d], actions.values[s, order, k]
    return value if channel < 0 else value + actions.sampled.held[channel, k]


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


@kernel
def derivatives_of_actuator_force(i, block, y, k):
    """Return the derivatives of the actuator force of dof i with respect to its q, N m/rad, and qd, N m s/rad.

    The units are N/m and N s/m for a translation. A force at its limit has none. The derivatives do not include the
    forces that controllers compute with their model, or the forces of user functions.
    """
    actions, zero = block.loads.actions, zeros_like(y[0, k])
    drives, by_q, by_qd, d = actions.shared.drives, zero, zero, i
    while d >= 0:
        if drives[drive.KIND, d] == drive.KIND_PID:
            gains, factor = drives[drive.GAINS, d], share_of_drive(d, block, y, k)
            by_q = by_q - factor * actions.numbers[gains + drive.GAIN_KP, k]
            by_qd = by_qd - factor * actions.numbers[gains + drive.GAIN_KD, k]
        d = drives[drive.NEXT, d]
    return by_q, add_slope_of_actuator(i, by_qd, block, y, k)


@kernel
def derivative_by_integral(d, block, y, k):
    """Return the derivative of the actuator force with respect to the integral of drive d; zero unless it is a PID."""
    actions, drives = block.loads.actions, block.loads.actions.shared.drives
    if drives[drive.KIND, d] != drive.KIND_PID:
        return zeros_like(y[0, k])
    return share_of_drive(d, block, y, k) * actions.numbers[drives[drive.GAINS, d] + drive.GAIN_KI, k]


@kernel
def derivatives_of_joint_force(i, block, y, k):
    """Return the derivatives of the passive and the actuator force of dof i, as `derivatives_of_actuator_force`."""
    nq, n = block.q.shape[0], block.qd.shape[0]
    stiffness, damping = exact_passive_stiffness_and_damping(i, block.model, y[:nq], y[nq : nq + n], k)
    by_q, by_qd = derivatives_of_actuator_force(i, block, y, k)
    return by_q - stiffness, by_qd - damping


@kernel
def apply_implicit_terms(i, block, v, k):
    """Add the implicit terms of a step of length h for dof i: (M + h D + h^2 K) qdd = tau - h K qd.

    M is the mass matrix, K is the stiffness and D the damping of the dof, and v its velocity. h is in s.
    """
    joints = block.loads.actions.joints
    h, stiffness = joints[joint.STEP_LENGTH, 0, k], joints[joint.STIFFNESS, i, k]
    joints[joint.IMPLICIT_INERTIA, i, k] = h * (joints[joint.DAMPING, i, k] + h * stiffness)
    block.loads.tau[i, k] = block.loads.tau[i, k] - h * stiffness * v


@kernel
def store_sweep_result(i, sweep, block, k):
    """Store the force that a sweep has computed for dof i: gravity force, computed torque or prescribed motion."""
    actions, force = block.loads.actions, block.loads.tau[i, k]
    joints, kind = actions.joints, drive_kind(actions, i)
    if sweep == GRAVITY_SWEEP:
        joints[joint.GRAVITY_FORCE, i, k] = force
    elif sweep == COMPUTED_TORQUE_SWEEP:
        joints[joint.COMPUTED_TORQUE, i, k] = force
        joints[joint.MODEL_ACCELERATION, i, k] = joints[joint.QDD, i, k]
    elif kind in drive.PRESCRIBED_KINDS:
        joints[joint.ACTUATOR_FORCE, i, k] = force - joints[joint.PASSIVE_FORCE, i, k]
