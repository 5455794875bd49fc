"""Drives: compute actuator forces, prescribed motions and the dynamics under them, to obtain the rate of a state.

A drive gives a force to a dof, or prescribes its motion. The actuator force of a dof is the sum of its constant force
and of the forces of its drives and of user functions. Hybrid dynamics computes the force that a prescribed motion
requires. Gravity compensation and computed torque run additional sweeps with the model of the controllers, without
passive joint forces, wrenches and drag. `y` (rows, lanes) is a state of the integrator, d the number of a drive.
"""

from ...compiling.jit import kernel, only_if, routine
from ..contacts.contact_rates import add_contact_forces
from ..forces import signal_layout as signal
from ..forces.passive import passive_force
from ..forces.signals import evaluate_signals
from ..lanes.lanes import constant_like
from ..loops.constraint_hooks import (
    forward_dynamics_of_block,
    has_constraints,
    hybrid_dynamics_of_block,
    hybrid_dynamics_of_controllers,
)
from ..tree import joint_layout as joint, setting_layout as setting
from ..tree.kinematics import position_rates
from ..tree.layout import apply_gravity
from . import drive_layout as drive
from .drive_forces import actuator_force, drive_kind, feedback, reference
from .drive_slopes import store_stiffness_and_damping
from .user_calls import call_user_forces

# The sweeps of an evaluation: gravity compensation, computed torque, and the motion itself.
GRAVITY_SWEEP, COMPUTED_TORQUE_SWEEP, MOTION_SWEEP = 0, 1, 2


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
