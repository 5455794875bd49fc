"""The derivatives of the rate of a state, and the matrix of a linearly implicit step.

The state y consists of the positions q, the velocities qd and the integrals z of control errors. With N(q) of
`position_rates`, its rate is

    q' = N(q) qd,   qd' = qdd(t, q, qd, z),   z' = r(t) - q of the dof.

A linearly implicit step of length h solves systems (a - J) (u, w, p) = (r, s, m) for the increments of q, qd and z. J
is the Jacobian of the rate, and a = 1 / (gamma h). The first and the last row are solved for u and p. One equation for
each dof remains,

    (a M + D + K X + C E / a^2) w = M s - K T u_0 + C p_0,
    u_0 = H r,   H = (a - dq'/dq)^-1,   p_0 = (m - u_0) / a,   X = T H N,

with K = - M dqdd/dq, D = - M dqdd/dqd and C = M dqdd/dz. K is a derivative on the tangent space, in the directions of
the velocities, and T of `tangents_of_rates` computes these directions from an increment of q. E selects the dof of each
integral. X is diagonal, 1 / a, except for the blocks of spherical and free joints. For a quaternion, dq'/dq is a skew
matrix G with G^2 = -|omega|^2 / 4, therefore H = (a + G) / (a^2 + |omega|^2 / 4).

If the forces have known derivatives, M is the mass matrix. Let tau be the joint forces of `inverse_dynamics` at the
accelerations qdd of the state, including the forces of water, and let F(q, qd) be the sum of all other joint forces.
For open trees,

    K = dtau/dq - dF/dq,   D = dtau/dqd - dF/dqd.

The passive force and the drive of a dof depend on its own state only, except for the forces that controllers compute
with their model (`controller_derivatives`). For closed loops, the derivatives of the forces J^T lambda are subtracted
from K. Let c be the accelerations of the rows, and X = (J M^-1 J^T)^-1 J. The derivatives of the constrained
accelerations follow from M dqdd = J^T dlambda - K dq - D dqd + C dz and dc = 0 (`constrained_derivatives`). The
equations above hold without multipliers if these matrices replace K, D and C:

    K - X^T (J M^-1 K - dc/dq),   D - X^T (J M^-1 D - dc/dqd),   C - X^T J M^-1 C.

They hold for all changes of the state, because stages of a step do not satisfy the constraints exactly. The equation
of a dof with a prescribed acceleration has no forces: its row of M is a row of the identity matrix, and its rows of K,
D and C are zero. Its column of K is zero if its position is prescribed. Its column of D is zero if its position or its
velocity is prescribed.

If the derivatives of a user function are not known, or contacts act, M is the identity matrix, and K, D and C are
central differences of the accelerations.
"""

from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import is_given, kernel, only_if, routine
from ..algorithms.derivatives import BY_Q, BY_QD
from ..algorithms.derivatives_between_bodies import derivatives_between_bodies
from ..algorithms.derivatives_in_water import WATER_DERIVATIVE_ROWS, add_derivatives_of_water
from ..algorithms.derivatives_of_wrenches import derivatives_of_wrenches
from ..control.controller_derivatives import (
    add_derivatives_of_controllers,
    computes_some_torques,
    differentiate_inverse_dynamics,
)
from ..control.drive_slopes import derivative_by_integral, derivatives_of_joint_force
from ..lanes.lane_records import lane_record
from ..lanes.lanes import constant_like, epsilon, zeros_like
from ..loops.constraint_hooks import (
    begin_derivatives_of_constraints,
    has_constraints,
    project_linearized_rate,
    subtract_derivatives_of_constraints,
)
from ..sample.rate import (
    add_user_derivatives,
    count_drives,
    dof_of_drive,
    evaluate,
    has_exact_derivatives,
    hold_prescribed_dofs,
    integral_row,
    is_autonomous,
    set_time,
)
from ..tree.kinematics import position_rates
from ..tree.layout import POSING_OWN, has_actions
from .linearized_tree import TREE_ROWS, follows_tree, linearize_tree

# A difference divides by the cube root of epsilon times the size of the number, which is at least this one (rad, m,
# rad/s, m/s). Its error is then about epsilon^(2/3).
SMALLEST_SIZE = 0.1


class LinearizedRate(NamedTuple):
    """Working memory of a linearly implicit step. All arrays end in lanes.

    * `derivatives` (3, n, n) holds K, D and M, with the indices of `algorithms.derivatives`. M is not used if it is the
      identity matrix. `by_integral` (n, integrals) is C, and `by_time` (rows,) is d rate / dt.
    * `factors` (n, n) and `pivots` (n,) are the factorized matrix, as in `algorithms.lu`.
    * `direction`, `tangent` (n,), `displacement` (nq,), `state` and `rates` (2, rows) are scratch memory.
    * `of_forces` (2, n, n) and `dofs` (n, WATER_DERIVATIVE_ROWS) are scratch memory of the exact derivatives.
    * `tree` (n, TREE_ROWS) is the memory of `linearized_tree`, for steps that use no matrix: they do not use
      `derivatives`, `factors` and `pivots`, and only the entries of `by_integral` of the own dof. It is None for
      methods that always use a matrix.
    * `of_constraints` is a ConstraintDerivatives, or None for an open chain.

    If M is the mass matrix, K, D and C are in N m or N per rad or m, per rad/s or m/s, and per rad s or m s.
    """

    derivatives: Annotated[np.ndarray, 3, "n", "n"]
    by_integral: Annotated[np.ndarray, "n", "integrals"]
    by_time: Annotated[np.ndarray, "nq + n + integrals"]
    factors: Annotated[np.ndarray, "n", "n"]
    pivots: np.ndarray
    direction: Annotated[np.ndarray, "n"]
    tangent: Annotated[np.ndarray, "n"]
    displacement: Annotated[np.ndarray, "nq"]
    state: Annotated[np.ndarray, "nq + n + integrals"]
    rates: Annotated[np.ndarray, 2, "nq + n + integrals"]
    of_forces: Annotated[np.ndarray, 2, "n", "n"]
    dofs: Annotated[np.ndarray, "n", WATER_DERIVATIVE_ROWS]
    tree: Annotated[np.ndarray, "n", TREE_ROWS]
    of_constraints: object


linearized_rate_size, carve_linearized_rate = lane_record(LinearizedRate, "n", "nq", "integrals")


# --- derivatives ------------------------------------------------------------------------------------------------------


@routine
def differentiate_rate(block, linear, y, rate, t, h, k):
    """Compute the derivatives of the rate at time t and state y, whose rate is `rate`; h is the length of the step.

    y and `rate` are (rows, lanes), t and h are numbers, s. Writes the derivatives of `linear`.
    """
    differentiate_by_time(block, linear, y, t, constant_like(y, relative_increment(y)) * h, k)
    differentiate_by_state(block, linear, y, rate, t, h, k)


@routine
def differentiate_by_state(block, linear, y, rate, t, h, k):
    """Compute K, D, C and M at time t and state y, whose rate is `rate`; h is the length of the step.

    y and `rate` are (rows, lanes), t and h are numbers, s.
    """
    if follows_tree(block, linear):
        set_time(block, t, k)
        linearize_tree(block, linear, y, rate, k)
    elif has_exact_derivatives(block):
        update_dynamics(block, linear, y, t, k)
        differentiate_exactly(block, linear, y, rate, t, k)
    else:
        difference_accelerations(block, linear, y, rate, t, h, k)


@routine
def difference_accelerations(block, linear, y, rate, t, h, k):
    """Compute K, D and C by central differences, with M = 1: K in 1/s^2, D in 1/s, C in 1/s^3 for equal units of dofs.

    y and `rate` are (rows, lanes), t and h are numbers, s.
    """
    nq, n = block.q.shape[0], block.qd.shape[0]
    minus = constant_like(y, -1.0)
    for i in range(n):
        linear.direction[i, k] = constant_like(y, 0.0)
    for i in range(n):
        linear.direction[i, k] = linear.direction[i, k] + constant_like(y, 1.0)
        position_rates(block.model, y[:nq], linear.direction, linear.displacement, k)
        linear.direction[i, k] = linear.direction[i, k] - constant_like(y, 1.0)
        step = increment(size_of_position(i, block, y, k) + abs(h * y[nq + i, k]))
        differentiate_along(block, linear, y, t, step, nq, linear.displacement, k)
        store_column(linear.derivatives[BY_Q], i, nq, linear.rates, minus * step, k)
        step = increment(abs(y[nq + i, k]) + abs(h * rate[nq + i, k]))
        differentiate_by_row(block, linear, y, t, step, nq + i, k)
        store_column(linear.derivatives[BY_QD], i, nq, linear.rates, minus * step, k)
    for i in range(y.shape[0] - nq - n):
        row = nq + n + i
        step = increment(abs(y[row, k]) + abs(h * rate[row, k]))
        differentiate_by_row(block, linear, y, t, step, row, k)
        store_column(linear.by_integral, i, nq, linear.rates, step, k)


@kernel
def relative_increment(y):
    """Return the cube root of epsilon, a number, for the precision of y."""
    return epsilon(y) ** (1.0 / 3.0)


@kernel
def increment(size):
    """Return the increment of a number with this absolute value.

    Both are numbers.
    """
    return constant_like(size, relative_increment(size)) * max(size, constant_like(size, SMALLEST_SIZE))


@kernel
def size_of_position(i, block, y, k):
    """Return the absolute position of dof i, or 0 for the dofs of free and spherical joints.

    y is (rows, lanes).
    """
    if block.model.posing[i] == POSING_OWN:
        return abs(y[block.model.coordinate[i], k])
    return zeros_like(y[block.q.shape[0] + i, k])


@kernel
def differentiate_along(block, linear, y, t, step, count, displacement, k):
    """Compute the rates at y plus and minus `step` times the displacement of its first `count` rows.

    Writes `linear.rates` (2, rows, lanes). y is (rows, lanes), and `displacement` (count, lanes). `step` is a number.
    """
    for side in range(2):
        signed = step if side == 0 else -step
        for j in range(y.shape[0]):
            linear.state[j, k] = y[j, k]
        for j in range(count):
            linear.state[j, k] = y[j, k] + signed * displacement[j, k]
        evaluate(block, linear.state, t, linear.rates[side], k)


@kernel
def differentiate_by_row(block, linear, y, t, step, row, k):
    """Compute the rates at y with `step` added to one row, and subtracted from it.

    Writes `linear.rates` (2, rows, lanes). y is (rows, lanes), and `step` a number in the unit of the row.
    """
    for side in range(2):
        for j in range(y.shape[0]):
            linear.state[j, k] = y[j, k]
        linear.state[row, k] = y[row, k] + (step if side == 0 else -step)
        evaluate(block, linear.state, t, linear.rates[side], k)


@kernel
def store_column(derivative, column, nq, rates, step, k):
    """Store a difference of accelerations as a column of a derivative.

    `derivative` is (n, columns, lanes), and `rates` (2, rows, lanes) are the rates at plus and minus `step`, a number.
    """
    factor = constant_like(step, 0.5) / step
    for i in range(derivative.shape[0]):
        derivative[i, column, k] = factor * (rates[0, nq + i, k] - rates[1, nq + i, k])


@kernel
def differentiate_by_time(block, linear, y, t, step, k):
    """Compute d rate / dt from the rates at t + step and t - step; zero if nothing depends on the time.

    Writes `linear.by_time` (rows, lanes). y is (rows, lanes), t and `step` are numbers, s.
    """
    if is_autonomous(block):
        for j in range(y.shape[0]):
            linear.by_time[j, k] = constant_like(y, 0.0)
        return
    # a step may be shorter than the distance of two numbers at t, such as before an impact at a saved time
    step = max(step, constant_like(y, 4.0 * epsilon(y)) * abs(t))
    later, earlier = t + step, t - step
    for side in range(2):
        t_side = later if side == 0 else earlier
        for j in range(y.shape[0]):
            linear.state[j, k] = y[j, k]
        evaluate(block, linear.state, t_side, linear.rates[side], k)
    for j in range(y.shape[0]):
        linear.by_time[j, k] = (linear.rates[0, j, k] - linear.rates[1, j, k]) / (later - earlier)


# --- exact derivatives ------------------------------------------------------------------------------------------------


@only_if(lambda block: not has_constraints(block), True)
@kernel
def reads_dynamics(block):
    """Whether exact derivatives read results of the dynamics of the state.

    These are the rows and factors of a closed loop, or the accelerations of the controllers' model under computed
    torque of some dofs.
    """
    return computes_some_torques(block)


@kernel
def update_dynamics(block, linear, y, t, k):
    """Compute the dynamics at time t and state y, if the exact derivatives read its results.

    y is (rows, lanes), and t a number, s.
    """
    if reads_dynamics(block):
        evaluate(block, y, t, linear.rates[0], k)


@routine
def differentiate_exactly(block, linear, y, rate, t, k):
    """Compute K, D, C and M from the derivatives of the joint forces.

    If `reads_dynamics` is true, the dynamics of the block must have been evaluated last in the state y. y and `rate`
    are (rows, lanes), and t is a number, s.
    """
    nq, n, model, loads = block.q.shape[0], block.qd.shape[0], block.model, block.loads
    q, qd = y[:nq], y[nq : nq + n]
    zero = constant_like(y, 0.0)
    set_time(block, t, k)
    for i in range(n):
        linear.tangent[i, k] = loads.tau[i, k]
        for j in range(n):
            linear.of_forces[BY_Q, i, j, k] = zero
            linear.of_forces[BY_QD, i, j, k] = zero
        for j in range(linear.by_integral.shape[1]):
            linear.by_integral[i, j, k] = zero
    add_user_derivatives(block, y, linear.of_forces, k)
    add_derivatives_of_controllers(block, linear, y, k)
    begin_derivatives_of_constraints(block, linear, k)
    differentiate_inverse_dynamics(block, model, q, qd, rate[nq : nq + n], linear, k)
    subtract_derivatives_of_constraints(block, linear, k)
    for i in range(n):
        loads.tau[i, k] = linear.tangent[i, k]
    add_derivatives_of_water(model, loads, linear.derivatives, linear.dofs, block.work, k)
    subtract_derivatives_of_actions(block, linear, y, k)
    project_linearized_rate(block, linear, k)
    hold_prescribed_dofs(block, linear, k)


@only_if(lambda block, *_: is_given(block, "loads", "actions", "between_bodies"))
@kernel
def add_derivatives_between_bodies(block, q, qd, derivatives, k):
    """Add the derivatives of springs and bushings to derivatives (2, n, n, lanes).

    q is (nq, lanes), and qd (n, lanes).
    """
    actions = block.loads.actions
    forces = actions.shared.springs, actions.shared.bushings, actions.numbers
    derivatives_between_bodies(block.model, q, qd, forces, derivatives, block.work, k)


@only_if(has_actions)
@kernel
def subtract_derivatives_of_actions(block, linear, y, k):
    """Subtract the derivatives of the forces of actions and of passive forces from K and D, and store them in C.

    Adds the derivatives of wrenches, springs and bushings to `of_forces` (2, n, n, lanes) before. y is (rows, lanes).
    """
    nq, n, of_forces = block.q.shape[0], block.qd.shape[0], linear.of_forces
    q, qd = y[:nq], y[nq : nq + n]
    if block.loads.actions.shared.wrenches.shape[1] > 0:
        derivatives_of_wrenches(block.model, block.loads.actions, of_forces, block.work, k)
    add_derivatives_between_bodies(block, q, qd, of_forces, k)
    for i in range(n):
        for j in range(n):
            linear.derivatives[BY_Q, i, j, k] = linear.derivatives[BY_Q, i, j, k] - of_forces[BY_Q, i, j, k]
            linear.derivatives[BY_QD, i, j, k] = linear.derivatives[BY_QD, i, j, k] - of_forces[BY_QD, i, j, k]
    subtract_derivatives_of_joints(block, linear, y, k)


@kernel
def subtract_derivatives_of_joints(block, linear, y, k):
    """Subtract the derivatives of passive forces and drives from K and D, and store them in C.

    y is (rows, lanes). The derivatives are in N m or N per rad, m, rad/s, m/s, rad s or m s.
    """
    nq, n = block.q.shape[0], block.qd.shape[0]
    for i in range(n):
        by_q, by_qd = derivatives_of_joint_force(i, block, y, k)
        # Passive forces and drives do not depend on the positions of spherical and free joints.
        if block.model.posing[i] == POSING_OWN:
            linear.derivatives[BY_Q, i, i, k] = linear.derivatives[BY_Q, i, i, k] - by_q
        linear.derivatives[BY_QD, i, i, k] = linear.derivatives[BY_QD, i, i, k] - by_qd
    for d in range(count_drives(block)):
        row, i = integral_row(block, d), dof_of_drive(block, d)
        if row >= 0:
            change = derivative_by_integral(d, block, y, k)
            linear.by_integral[i, row - nq - n, k] = linear.by_integral[i, row - nq - n, k] + change
