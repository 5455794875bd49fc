"""Derivatives of the forces that controllers compute with their model: gravity compensation and computed torque.

With the inverse dynamics ID and the mass matrix M of the controllers' model, without wrenches, springs and drag, but
with the added mass and the buoyancy of still water:

    gravity compensation:  F = ID(q, 0, 0),     dF/dq = dID/dq
    computed torque:       F = ID(q, qd, a),    dF/dq = dID/dq - M KP,  dF/dqd = dID/dqd - M KD,  dF/dz = M KI

a is the acceleration of the reference plus the feedback, and z are the integrals of the control errors. The derivative
of a force at its limit is zero.

If only some dofs c have computed torque, a is an input for these dofs and for the dofs with a prescribed acceleration.
The accelerations a_o of the other dofs o follow from the actuator forces f of these dofs, without passive forces
(hybrid dynamics). The derivatives of a by a change x of q, qd or z then follow from

    M_oo da_o + M_oa da_a = df/dx - dID_o/dx,    da_c/dx = - KP, - KD or KI of dof c,    dF_c/dx = dID_c/dx + M_c da/dx.

Source: Spong (1994), "Partial feedback linearization of underactuated mechanical systems"; Featherstone (2008),
section 9.2.

`linear` is a `core.linear.linearized_rate.LinearizedRate`. `y` (rows, lanes) is a state of the integrator: the rows of
q, then the rows of qd, then other rows. Derivatives with respect to q are in N m/rad or N/m, derivatives with respect
to qd in N m s/rad or N s/m.
"""

from ...compiling.jit import is_given, kernel, only_if, routine
from ..algorithms.derivatives import BY_INPUT, BY_Q, BY_QD, inverse_dynamics_derivatives
from ..algorithms.derivatives_in_water import add_derivatives_of_water
from ..algorithms.hybrid import hybrid_dynamics
from ..algorithms.lu import factorize, solve
from ..forces import signal_layout as signal
from ..lanes.lanes import constant_like, full_like, zeros_like
from ..loops.constraint_hooks import has_constraints
from ..tree import joint_layout as joint, setting_layout as setting
from ..tree.layout import apply_gravity, has_actions, remove_gravity
from . import drive_layout as drive
from .drive_forces import feedback
from .drive_slopes import derivative_by_integral, derivatives_of_actuator_force, share_of_drive


@kernel
def is_commanded(actions, i):
    """Whether dof i has computed torque, which commands its acceleration."""
    return actions.shared.drives[drive.KIND, i] == drive.KIND_COMPUTED_TORQUE


@only_if(has_actions, False)
@kernel
def computes_some_torques(block):
    """Whether some dofs have computed torque, and others do not."""
    actions = block.loads.actions
    if actions.settings[setting.COMPUTES] == 1:
        for i in range(block.qd.shape[0]):
            if not is_commanded(actions, i):
                return True
    return False


@kernel
def accelerates_with_input(actions, i):
    """Whether the acceleration of dof i is an input of the controllers' model under computed torque."""
    kind = actions.shared.drives[drive.KIND, i]
    return kind == drive.KIND_COMPUTED_TORQUE or kind in drive.PRESCRIBED_KINDS


@routine
def differentiate_inverse_dynamics(block, model, q, qd, qdd, linear, k):
    """Set `linear.derivatives` (3, n, n, lanes) to the derivatives of the inverse dynamics of a model.

    The model is the mechanism or the controllers' model. q is (nq, lanes), qd and qdd are (n, lanes). Overwrites
    loads.tau.
    """
    derivatives, n = linear.derivatives, block.qd.shape[0]
    for by in range(3):
        for i in range(n):
            for j in range(n):
                derivatives[by, i, j, k] = constant_like(derivatives, 0.0)
    inverse_dynamics_derivatives(model, q, qd, qdd, block.loads, derivatives, linear.dofs, block.work, k)


@kernel
def differentiate_controllers_model(block, q, qd, qdd, linear, k):
    """Set `linear.derivatives` to the derivatives of inverse dynamics of the controllers' model, with still water.

    q is (nq, lanes), qd and qdd are (n, lanes).
    """
    model = block.loads.actions.model
    differentiate_inverse_dynamics(block, model, q, qd, qdd, linear, k)
    add_derivatives_of_water(model, block.loads, linear.derivatives, linear.dofs, block.work, k)


@kernel
def add_gravity_compensation(block, linear, y, k):
    """Add the derivatives of gravity compensation to `linear.of_forces` (2, n, n, lanes)."""
    nq, n, actions = block.q.shape[0], block.qd.shape[0], block.loads.actions
    for i in range(n):
        linear.direction[i, k] = constant_like(y, 0.0)
    differentiate_controllers_model(block, y[:nq], linear.direction, linear.direction, linear, k)
    for d in range(actions.shared.drives.shape[1]):
        if actions.shared.drives[drive.COMPENSATES_GRAVITY, d] == 1:
            i, varies = actions.shared.drives[drive.DOF, d], share_of_drive(d, block, y, k)
            for j in range(n):
                change = varies * linear.derivatives[BY_Q, i, j, k]
                linear.of_forces[BY_Q, i, j, k] = linear.of_forces[BY_Q, i, j, k] + change


@kernel
def add_computed_torque(block, linear, y, k):
    """Add the derivatives of computed torque to `linear.of_forces`, and store those with respect to integrals in C.

    C is `linear.by_integral` (n, integrals, lanes). If only some dofs have computed torque, reads the accelerations of
    the last dynamics, which must be the dynamics of y.
    """
    nq, n, actions = block.q.shape[0], block.qd.shape[0], block.loads.actions
    drives = actions.shared.drives
    for i in range(n):
        if is_commanded(actions, i):
            acceleration = actions.values[drives[drive.SIGNAL, i], signal.ACCELERATION, k]
            linear.direction[i, k] = acceleration + feedback(i, block, y, k)
        else:
            linear.direction[i, k] = actions.joints[joint.MODEL_ACCELERATION, i, k]
    differentiate_controllers_model(block, y[:nq], y[nq : nq + n], linear.direction, linear, k)
    if computes_some_torques(block):
        add_some_computed_torques(block, linear, y, k)
    else:
        add_all_computed_torques(block, linear, y, k)


@kernel
def add_all_computed_torques(block, linear, y, k):
    """Add dID/dq - M KP and dID/dqd - M KD to `linear.of_forces` (2, n, n, lanes), and store M KI in C."""
    nq, n, actions, of_forces = block.q.shape[0], block.qd.shape[0], block.loads.actions, linear.of_forces
    drives, derivatives = actions.shared.drives, linear.derivatives
    for i in range(n):
        varies = share_of_drive(i, block, y, k)
        for j in range(n):
            gains, row, M = drives[drive.GAINS, j], drives[drive.INTEGRAL, j], derivatives[BY_INPUT, i, j, k]
            by_q = derivatives[BY_Q, i, j, k] - M * actions.numbers[gains + drive.GAIN_KP, k]
            by_qd = derivatives[BY_QD, i, j, k] - M * actions.numbers[gains + drive.GAIN_KD, k]
            of_forces[BY_Q, i, j, k] = of_forces[BY_Q, i, j, k] + varies * by_q
            of_forces[BY_QD, i, j, k] = of_forces[BY_QD, i, j, k] + varies * by_qd
            if row >= 0:
                linear.by_integral[i, row - nq - n, k] = varies * M * actions.numbers[gains + drive.GAIN_KI, k]


@routine
def add_some_computed_torques(block, linear, y, k):
    """Add the derivatives of computed torque of some dofs to `linear.of_forces`, and with respect to integrals to C.

    Reads the derivatives of the actuator forces of the other dofs. Overwrites `linear.factors` and `linear.pivots`.
    """
    n, actions, M = block.qd.shape[0], block.loads.actions, linear.derivatives[BY_INPUT]
    factorize_other_dofs(actions, linear, k)
    for j in range(n):
        for by in range(2):
            for i in range(n):
                change = change_of_input(i, block, y, by, k) if i == j else zeros_like(M[i, j, k])
                if not accelerates_with_input(actions, i):
                    change = change + (linear.of_forces[by, i, j, k] - linear.derivatives[by, i, j, k])
                linear.direction[i, k] = change
            solve(linear.factors, linear.pivots, linear.direction, k)
            for i in range(n):
                if is_commanded(actions, i):
                    change = linear.derivatives[by, i, j, k] + product_with_direction(i, M, linear, k)
                    change = share_of_drive(i, block, y, k) * change
                    linear.of_forces[by, i, j, k] = linear.of_forces[by, i, j, k] + change
    store_integrals_of_some_torques(block, linear, y, k)


@kernel
def factorize_other_dofs(actions, linear, k):
    """Factorize M, with a row of the identity matrix for each dof whose acceleration is an input.

    Writes `linear.factors` (n, n, lanes) and `linear.pivots`.
    """
    n, M = linear.pivots.shape[0], linear.derivatives[BY_INPUT]
    for i in range(n):
        is_input = accelerates_with_input(actions, i)
        for j in range(n):
            linear.factors[i, j, k] = full_like(M[i, j, k], 1.0 if i == j else 0.0) if is_input else M[i, j, k]
    factorize(linear.factors, linear.pivots, k)


@kernel
def store_integrals_of_some_torques(block, linear, y, k):
    """Store the derivatives of computed torque of some dofs with respect to the integrals of all dofs in C."""
    nq, n, actions, M = block.q.shape[0], block.qd.shape[0], block.loads.actions, linear.derivatives[BY_INPUT]
    drives = actions.shared.drives
    for d in range(drives.shape[1]):
        row = drives[drive.INTEGRAL, d]
        if row >= 0:
            for i in range(n):
                linear.direction[i, k] = constant_like(y, 0.0)
            linear.direction[drives[drive.DOF, d], k] = change_of_input_by_integral(d, block, y, k)
            solve(linear.factors, linear.pivots, linear.direction, k)
            for i in range(n):
                if is_commanded(actions, i):
                    change = share_of_drive(i, block, y, k) * product_with_direction(i, M, linear, k)
                    linear.by_integral[i, row - nq - n, k] = change


@kernel
def change_of_input(i, block, y, by, k):
    """Return the derivative of the input of dof i of the controllers' model with respect to its position or velocity.

    The input is the acceleration of a dof with computed torque, and the actuator force of the other dofs. Derivatives
    of accelerations are in 1/s^2 or 1/s.
    """
    actions = block.loads.actions
    by_q, by_qd = derivatives_of_actuator_force(i, block, y, k)
    if is_commanded(actions, i):
        gains = actions.shared.drives[drive.GAINS, i]
        by_q, by_qd = -actions.numbers[gains + drive.GAIN_KP, k], -actions.numbers[gains + drive.GAIN_KD, k]
    return by_q if by == BY_Q else by_qd


@kernel
def change_of_input_by_integral(d, block, y, k):
    """Return the derivative of the input of a drive's dof, as in `change_of_input`, with respect to its integral."""
    actions, drives = block.loads.actions, block.loads.actions.shared.drives
    if drives[drive.KIND, d] == drive.KIND_COMPUTED_TORQUE:
        return actions.numbers[drives[drive.GAINS, d] + drive.GAIN_KI, k]
    if accelerates_with_input(actions, drives[drive.DOF, d]):  # the other drives of its dof do not change it
        return zeros_like(y[0, k])
    return derivative_by_integral(d, block, y, k)


@kernel
def product_with_direction(i, M, linear, k):
    """Return the product of row i of M (n, n, lanes) and `linear.direction` (n, lanes)."""
    total = M[i, 0, k] * linear.direction[0, k]
    for j in range(1, linear.direction.shape[0]):
        total = total + M[i, j, k] * linear.direction[j, k]
    return total


@routine
def store_responses_of_controllers(block, linear, y, k):
    """Store the derivatives of computed torques with respect to the inputs of the controllers' model in `of_forces[0]`.

    The input of a dof with computed torque is its acceleration, and the input of another dof is its actuator force.
    `of_forces[0]` (n, n, lanes) has a column of zeros for each dof with a prescribed motion. Overwrites loads.tau,
    joint.QD, joint.QDD, joint.PRESCRIBED, R, V and A. Reads the forces of the last dynamics, which must be the dynamics
    of y.
    """
    n, actions, loads, responses = block.qd.shape[0], block.loads.actions, block.loads, linear.of_forces[0]
    one, zero, joints = constant_like(y, 1.0), constant_like(y, 0.0), block.loads.actions.joints
    actions.settings[setting.EXTERNAL_FORCES] = 0
    remove_gravity(actions.model, block.work, k)
    for j in range(n):
        is_input = is_commanded(actions, j) or not accelerates_with_input(actions, j)
        for i in range(n):
            joints[joint.QD, i, k] = zero
            joints[joint.QDD, i, k] = one if i == j and is_commanded(actions, j) else zero
            joints[joint.PRESCRIBED, i, k] = one if accelerates_with_input(actions, i) else zero
            loads.tau[i, k] = one if i == j else zero
        q, qd, qdd, prescribed = y[: block.q.shape[0]], joints[joint.QD], joints[joint.QDD], joints[joint.PRESCRIBED]
        hybrid_dynamics(actions.model, q, qd, loads, qdd, prescribed, block.work, k)
        for i in range(n):
            response = share_of_drive(i, block, y, k) * loads.tau[i, k]
            responses[i, j, k] = response if is_input and is_commanded(actions, i) else zeros_like(response)
    actions.settings[setting.EXTERNAL_FORCES] = 1
    apply_gravity(block.model, block.work, k)


def _has_controllers_with_model(block, *_):
    """Whether a controller may use its model: not in closed loops."""
    return is_given(block, "loads", "actions") and not has_constraints(block)


@only_if(_has_controllers_with_model)
@kernel
def add_derivatives_of_controllers(block, linear, y, k):
    """Add the derivatives of the forces of controllers to `linear.of_forces` and `linear.by_integral`.

    Before the call, `linear.of_forces` holds the derivatives of user forces, because the accelerations of the
    controllers' model depend on these forces.
    Overwrites `linear.derivatives`, `linear.direction` and loads.tau and, for computed torque of some dofs,
    `linear.factors` and `linear.pivots`.
    """
    actions = block.loads.actions
    if actions.settings[setting.COMPENSATES] == 0 and actions.settings[setting.COMPUTES] == 0:
        return
    actions.settings[setting.EXTERNAL_FORCES] = 0
    apply_gravity(actions.model, block.work, k)
    if actions.settings[setting.COMPENSATES] == 1:
        add_gravity_compensation(block, linear, y, k)
    if actions.settings[setting.COMPUTES] == 1:
        add_computed_torque(block, linear, y, k)
    actions.settings[setting.EXTERNAL_FORCES] = 1
    apply_gravity(block.model, block.work, k)
