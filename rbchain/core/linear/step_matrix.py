"""The matrix of a step of an implicit method, and its factors."""

from ...compiling.jit import kernel, routine
from ..algorithms.derivatives import BY_INPUT, BY_Q, BY_QD
from ..algorithms.lu import factorize
from ..lanes.lanes import constant_like
from ..sample.rate import count_drives, dof_of_drive, has_exact_derivatives, integral_row, moves_freely
from ..spatial.vectors import add3, cross, rotate, scale3
from ..tree.joints import quaternion_rate, quaternion_rotation
from ..tree.kinematics import position_rates, store_quaternion, store_turn_of_rate, tangents_of_rates
from ..tree.layout import POSING_FREE, POSING_OWN, POSING_SPHERICAL
from .linearized_tree import add_change_of_position, eliminate_along_tree, follows_tree, start_unit_changes


@routine
def factorize_step(block, linear, y, a, k):
    """Compute and factorize the matrix of a step from y; a = 1 / (gamma h).

    y is (rows, lanes), and a is a number, 1/s. Writes `linear.factors` (n, n, lanes) and `linear.pivots` (n, lanes), or
    `linear.tree` (n, TREE_ROWS, lanes).
    """
    nq, n, model, along_tree = block.q.shape[0], block.qd.shape[0], block.model, follows_tree(block, linear)
    one, zero = constant_like(y, 1.0), constant_like(y, 0.0)
    if along_tree:
        start_unit_changes(block, linear, a, k)
    else:
        start_matrix(block, linear, a, k)
    for i in range(n):
        linear.direction[i, k] = zero
    for j in range(n):
        if not moves_freely(block, j):
            continue
        first = model.first[j]
        if model.posing[first] == POSING_OWN:
            add_position(block, linear, j, j, one / a, along_tree, k)
            continue
        linear.direction[j, k] = linear.direction[j, k] + one
        position_rates(model, y[:nq], linear.direction, linear.displacement, k)
        linear.direction[j, k] = linear.direction[j, k] - one
        divide_positions(block, linear, y, linear.displacement, a, k)
        tangents_of_rates(model, y[:nq], linear.displacement, linear.tangent, k)
        for i in range(first, first + (6 if model.posing[first] == POSING_FREE else 3)):
            add_position(block, linear, j, i, linear.tangent[i, k], along_tree, k)
    if along_tree:
        eliminate_along_tree(block, linear, a, k)
        return
    for d in range(count_drives(block)):
        row, j = integral_row(block, d), dof_of_drive(block, d)
        if row >= 0:
            for i in range(n):
                linear.factors[i, j, k] = linear.factors[i, j, k] + linear.by_integral[i, row - nq - n, k] / (a * a)
    factorize(linear.factors, linear.pivots, k)


@kernel
def start_matrix(block, linear, a, k):
    """Set the matrix `linear.factors` (n, n, lanes) to a M + D; a is in 1/s."""
    n, is_exact = block.qd.shape[0], has_exact_derivatives(block)
    for i in range(n):
        for j in range(n):
            linear.factors[i, j, k] = linear.derivatives[BY_QD, i, j, k]
            if is_exact:
                linear.factors[i, j, k] = linear.factors[i, j, k] + a * linear.derivatives[BY_INPUT, i, j, k]
        if not is_exact:
            linear.factors[i, i, k] = linear.factors[i, i, k] + a


@kernel
def add_position(block, linear, j, i, x, along_tree, k):
    """Add x times column i of K to column j of the matrix.

    The matrix is `linear.factors` (n, n, lanes), and x is a number.
    """
    if along_tree:
        add_change_of_position(block, linear, j, i, x, k)
        return
    for row in range(linear.factors.shape[0]):
        linear.factors[row, j, k] = linear.factors[row, j, k] + linear.derivatives[BY_Q, row, i, k] * x


@kernel
def divide_positions(block, linear, y, r, a, k):
    """Replace r (nq, lanes) by H r = (a - dq'/dq)^-1 r. Overwrites `linear.tangent`.

    y is (rows, lanes), and a is a number, 1/s.
    """
    model, nq = block.model, block.q.shape[0]
    qd, inverse = y[nq : nq + block.qd.shape[0]], constant_like(a, 1.0) / a
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == POSING_OWN:
            r[at, k] = inverse * r[at, k]
        elif posing == POSING_SPHERICAL:
            divide_quaternion(r, at, (qd[i, k], qd[i + 1, k], qd[i + 2, k]), a, k)
        elif posing == POSING_FREE:
            divide_quaternion(r, at + 3, (qd[i + 3, k], qd[i + 4, k], qd[i + 5, k]), a, k)
            store_turn_of_rate(i + 3, at + 3, y, r, linear.tangent, k)
            turn = (linear.tangent[i + 3, k], linear.tangent[i + 4, k], linear.tangent[i + 5, k])
            R = quaternion_rotation(y[at + 3, k], y[at + 4, k], y[at + 5, k], y[at + 6, k])
            moved = rotate(R, cross(turn, (qd[i, k], qd[i + 1, k], qd[i + 2, k])))
            moved = scale3(inverse, add3((r[at, k], r[at + 1, k], r[at + 2, k]), moved))
            r[at, k], r[at + 1, k], r[at + 2, k] = moved


@kernel
def divide_quaternion(r, at, omega, a, k):
    """Replace r[at : at + 4] by (a r + r (omega, 0) / 2) / (a^2 + |omega|^2 / 4).

    r is (nq, lanes), omega (3) is the angular velocity in body axes, rad/s, and a is in 1/s.
    """
    x, y, z, w = r[at, k], r[at + 1, k], r[at + 2, k], r[at + 3, k]
    b, c, d, e = quaternion_rate(x, y, z, w, omega)
    square = omega[0] * omega[0] + omega[1] * omega[1] + omega[2] * omega[2]
    s = constant_like(a, 1.0) / (a * a + constant_like(a, 0.25) * square)
    store_quaternion(r, at, k, (s * (a * x + b), s * (a * y + c), s * (a * z + d), s * (a * w + e)))
