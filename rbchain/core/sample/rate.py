"""The calls of the integrators into the model: the rate of a state, and drives, events and user functions in a step.

Each function here has two forms: one for constant joint forces only, and one for drives, wrenches and events over time.
The type of `loads.actions` decides at compile time. Without actions, the compiled integrator contains no code for them.
"""

from ...compiling.jit import choose, kernel, only_if, routine
from ..algorithms.derivatives import BY_INPUT, BY_Q, BY_QD
from ..control import drive_layout as drive
from ..control.drive_slopes import share_of_forces
from ..control.drives import rate_under_actions, set_prescribed_state
from ..control.sampler_clocks import begin_samplers
from ..control.user_calls import call_user_derivatives
from ..forces.passive import friction_slope, mean_friction_slope, passive_stiffness_and_damping
from ..forces.signals import evaluate_signals, set_sample_signals
from ..lanes.lanes import constant_like, select, zeros_like
from ..loops.constraint_hooks import forward_dynamics_of_block
from ..tree import frame_layout as frame, joint_layout as joint, setting_layout as setting
from ..tree.kinematics import position_rates
from ..tree.layout import CALLS_ALLOWED, CALLS_STOPPED, PASSIVE_FRICTION, has_actions, replace_parameters, sample_entry

# An explicit Runge-Kutta method of fourth order is unstable for |h lambda| above these limits, for real and imaginary
# eigenvalues lambda: Hairer and Wanner (1996), Solving ODEs II, section IV.2.
REAL_STABILITY_LIMIT, IMAGINARY_STABILITY_LIMIT = 2.7853, 2.8284


# --- rates ------------------------------------------------------------------------------------------------------------


@routine
def rate_under_constant_forces(block, y, t, rate, k):
    """Compute the rate of the state y = (q, qd) under constant joint forces. It does not depend on the time t.

    y and `rate` are (nq + n, lanes): q in rad and m, qd in rad/s and m/s, and their time derivatives.
    """
    nq = block.q.shape[0]
    q, qd = y[:nq], y[nq:]
    position_rates(block.model, q, qd, rate[:nq], k)
    forward_dynamics_of_block(block, q, qd, rate[nq:], k)


# Compute the rate (rows, lanes) of the state y (rows, lanes) at time t, s.
evaluate = choose(has_actions, rate_under_actions, rate_under_constant_forces)


@only_if(has_actions, True)
@kernel
def is_autonomous(block):
    """Whether there are no signals, user functions and sampled controllers.

    All other actions depend on the state only. The outputs of sampled controllers may pass a lag.
    """
    actions = block.loads.actions
    has_functions = actions.settings[setting.FUNCTIONS] > 0 or actions.shared.samplers is not None
    return actions.shared.signals.shape[1] == 0 and not has_functions


@only_if(has_actions, True)
@kernel
def moves_freely(block, i):
    """Whether the velocity of dof i follows from the state. Else, it is the velocity of a signal."""
    kind = block.loads.actions.shared.drives[drive.KIND, i]
    return kind not in (drive.KIND_PRESCRIBED_POSITION, drive.KIND_PRESCRIBED_VELOCITY)


@only_if(has_actions, True)
@kernel
def has_exact_derivatives(block):
    """Whether the derivatives of all forces, including user functions, are known. Contacts have no derivatives."""
    actions = block.loads.actions
    is_known = actions.settings[setting.FUNCTIONS] == 0 or actions.settings[setting.DERIVATIVES] != 0
    return actions.modes is None and is_known


@only_if(has_actions)
@kernel
def hold_prescribed_dofs(block, linear, k):
    """Change K, D, C and M so that prescribed accelerations are constant, and no force depends on prescribed states.

    The row of M of a prescribed dof becomes a row of the identity matrix. The matrices of a closed loop must be
    projected before, because the changes of the constraints by a prescribed state do not act either.

    `linear` is a LinearizedRate: K, D and M are (n, n, lanes), C is (n, integrals, lanes).
    """
    K, D, M, C = linear.derivatives[BY_Q], linear.derivatives[BY_QD], linear.derivatives[BY_INPUT], linear.by_integral
    zero, one = constant_like(K, 0.0), constant_like(K, 1.0)
    for p in range(block.qd.shape[0]):
        kind = block.loads.actions.shared.drives[drive.KIND, p]
        for i in range(block.qd.shape[0]):
            if kind in drive.PRESCRIBED_KINDS:
                K[p, i, k], D[p, i, k], M[p, i, k] = zero, zero, one if i == p else zero
            if kind == drive.KIND_PRESCRIBED_POSITION:
                K[i, p, k] = zero
            if not moves_freely(block, p):
                D[i, p, k] = zero
        if kind in drive.PRESCRIBED_KINDS:
            for j in range(C.shape[1]):
                C[p, j, k] = zero


@only_if(has_actions)
@kernel
def set_time(block, t, k):
    """Evaluate the signals at time t, s."""
    block.loads.actions.time[0, k] = t
    evaluate_signals(block.loads.actions, k)


@only_if(has_actions, 0)
@kernel
def count_drives(block):
    """Return the number of columns of the table of drives."""
    return block.loads.actions.shared.drives.shape[1]


@only_if(has_actions, -1)
@kernel
def integral_row(block, d):
    """Return the row of the state that integrates the control error of drive d, or -1."""
    return block.loads.actions.shared.drives[drive.INTEGRAL, d]


@only_if(has_actions, -1)
@kernel
def dof_of_drive(block, d):
    """Return the dof of drive d."""
    return block.loads.actions.shared.drives[drive.DOF, d]


@only_if(has_actions, -1)
@kernel
def next_drive(block, d):
    """Return the next drive of the dof of drive d, or -1. The first drive of dof i is drive i."""
    return block.loads.actions.shared.drives[drive.NEXT, d]


@only_if(has_actions)
@kernel
def add_user_derivatives(block, y, derivatives, k):
    """Add the derivatives of user forces, after their actuators, to derivatives (2, n, n, lanes).

    These are the derivatives of joint forces, N m and N, with respect to q and qd in the state y (rows, lanes). Row i
    is dof i.
    """
    actions, nq, n = block.loads.actions, block.q.shape[0], block.qd.shape[0]
    if actions.settings[setting.DERIVATIVES] == 0:
        return
    for lane in range(actions.time.shape[1]):
        call_user_derivatives(actions, nq, n, y, derivatives, lane)
    for i in range(n):
        factor = share_of_forces(i, block, y, k)
        for j in range(n):
            for by in range(2):
                derivatives[by, i, j, k] = factor * derivatives[by, i, j, k]


@only_if(has_actions)
@kernel
def set_prescribed_states(block, y, t, k):
    """Set the prescribed positions, rad or m, and velocities, rad/s or m/s, of a state y (rows, lanes) at time t, s."""
    actions, nq, n, is_prescribed = block.loads.actions, block.q.shape[0], block.qd.shape[0], False
    for i in range(n):
        is_prescribed = is_prescribed or not moves_freely(block, i)
    if is_prescribed:
        set_time(block, t, k)
        for i in range(n):
            set_prescribed_state(i, block.model, actions, y[:nq], y[nq : nq + n], k)


# --- a new sample in a lane -------------------------------------------------------------------------------------------


@kernel
def set_constant_forces(block, tau, t, sample, lane):
    """Copy the joint forces of a sample from tau (samples, n) or (n,), N m and N, to a lane."""
    for i in range(block.qd.shape[0]):
        block.loads.tau[i, lane] = sample_entry(tau, sample, i)


@kernel
def set_controller_parameters(block, sample, lane):
    """Copy the parameters of the controllers' model of a sample to a lane."""
    actions = block.loads.actions
    if actions.settings[setting.CONTROLLER_MODEL] == 1:
        replace_parameters(actions.model.parameters, actions.shared.variation, sample, sample % block.qd.shape[1], lane)


@only_if(has_actions, otherwise=set_constant_forces)
@kernel
def set_sample_forces(block, tau, t, sample, lane):
    """Copy the joint forces and the numbers of the actions of a sample to a lane; its motion starts at time t, s.

    tau is (samples, n) or (n,), N m and N. `SharedActions.numbers` has a row for each sample, or one row for all.
    """
    actions = block.loads.actions
    for i in range(block.qd.shape[0]):
        actions.joints[joint.CONSTANT_FORCE, i, lane] = sample_entry(tau, sample, i)
    row = min(sample, actions.shared.numbers.shape[0] - 1)
    for j in range(actions.numbers.shape[0]):
        actions.numbers[j, lane] = constant_like(actions.numbers, actions.shared.numbers[row, j])
    actions.sample[lane] = sample
    actions.failures[lane] = CALLS_ALLOWED
    set_controller_parameters(block, sample, lane)
    for i in range(block.qd.shape[0]):
        actions.joints[joint.IMPLICIT_INERTIA, i, lane] = constant_like(actions.joints, 0.0)
    actions.time[0, lane] = constant_like(actions.time, t)
    set_sample_signals(actions, lane)
    begin_samplers(actions, t, lane)


# --- user functions ---------------------------------------------------------------------------------------------------


@only_if(has_actions, False)
@kernel
def has_failed_call(block, lane):
    """Whether a user function has raised an exception for the sample in a lane."""
    return block.loads.actions.failures[lane] > CALLS_ALLOWED


@only_if(has_actions)
@kernel
def record_failed_call(block, records, sample, lane):
    """Copy the code and the arguments of the failed call from a lane to the Records of its sample."""
    actions = block.loads.actions
    records.failures[sample] = actions.failures[lane]
    for j in range(actions.failed_calls.shape[0]):
        records.failed_calls[sample, j] = actions.failed_calls[j, lane]


@only_if(has_actions)
@kernel
def allow_calls(block, allowed, lane):
    """Allow or stop the calls of user functions for a lane."""
    block.loads.actions.failures[lane] = CALLS_ALLOWED if allowed else CALLS_STOPPED


@only_if(has_actions, False)
@kernel
def allows_calls(block, lane):
    """Whether user functions are called for a lane."""
    return block.loads.actions.failures[lane] == CALLS_ALLOWED


# --- stiffness in a step ----------------------------------------------------------------------------------------------


@kernel
def update_passive_stiffness_and_damping(block, y, k):
    """Store the stiffness and damping of the passive forces of all joints in the state y (rows, lanes), without drives.

    Writes joint.STIFFNESS, N m/rad or N/m, and joint.DAMPING, N m s/rad or N s/m.
    """
    joints, nq = block.loads.actions.joints, block.q.shape[0]
    for i in range(block.qd.shape[0]):
        stiffness, damping = passive_stiffness_and_damping(i, block.model, y[:nq], y[nq : nq + block.qd.shape[0]], k)
        joints[joint.STIFFNESS, i, k], joints[joint.DAMPING, i, k] = stiffness, damping


@kernel
def use_mean_slopes_of_friction(block, y, y_stage, k):
    """Replace the slopes of dry friction in the damping at a stage of a step by the mean slopes since its start y.

    The slope is large only near the velocity zero, which stages pass. The mean slope never exceeds the largest slope.
    y and `y_stage` are states (rows, lanes).
    """
    joints, model, nq = block.loads.actions.joints, block.model, block.q.shape[0]
    for i in range(block.qd.shape[0]):
        kinds = model.passive[i]
        if kinds & PASSIVE_FRICTION:
            v, w = y[nq + i, k], y_stage[nq + i, k]
            change = mean_friction_slope(i, kinds, model.parameters, v, w, k)
            change = change - friction_slope(i, kinds, model.parameters, w, k)
            joints[joint.DAMPING, i, k] = joints[joint.DAMPING, i, k] + change


@only_if(has_actions, otherwise=lambda block, h, k: False)
@kernel
def is_too_stiff(block, h, k):
    """Whether h lambda of any dof exceeds the stability limit, with lambda from its stiffness, damping and 1 / D.

    h is the length of the step, s; lambda is in 1/s. The result is one condition for each of the lanes k.
    Each dof is checked alone, with its articulated inertia D. Coupling between dofs can increase |lambda|, so a step
    that passes this check may still be unstable.
    """
    joints = block.loads.actions.joints
    share = zeros_like(joints[joint.DAMPING, 0, k])  # the largest h |lambda|, as a fraction of its limit
    of_damping = constant_like(joints, h / REAL_STABILITY_LIMIT)
    of_stiffness = constant_like(joints, (h / IMAGINARY_STABILITY_LIMIT) ** 2)
    for i in range(block.qd.shape[0]):
        D_inverse = block.work.dof[i, frame.DINV, k]
        real = of_damping * D_inverse * joints[joint.DAMPING, i, k]
        imaginary = of_stiffness * D_inverse * joints[joint.STIFFNESS, i, k]
        share = select(real > share, real, share)  # which ignores NaN
        share = select(imaginary > share, imaginary, share)
    return share > constant_like(joints, 1.0)


@only_if(has_actions)
@kernel
def set_step_length(block, h, k):
    """Store the length h of the step, s, where `apply_implicit_terms` reads it."""
    block.loads.actions.joints[joint.STEP_LENGTH, 0, k] = h
