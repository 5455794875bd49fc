"""The linear systems of an implicit step for a complex number a, as real systems of twice the size.

`linearized_rate` reduces the systems (a - J) (u, w, p) = (r, s, m) to one equation for each dof. Those equations also
hold for a complex a = alpha + i beta. All increments are complex then. Complex numbers are pairs (real part, imaginary
part), and complex vectors are two arrays. With P = a M + D + K X + C E / a^2, the real system is

    [[re P, -im P], [im P, re P]] (re w, im w) = (re s, im s).

Systems for a real number have separate functions in `linearized_rate` and `rosenbrock`, which need a quarter of the
memory and of the operations.
"""

from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import kernel, routine
from ..algorithms.derivatives import BY_INPUT, BY_Q, BY_QD
from ..algorithms.lu import factorize, solve
from ..lanes.lane_records import lane_record
from ..lanes.lanes import constant_like, full_like, zeros_like
from ..sample.rate import count_drives, dof_of_drive, has_exact_derivatives, integral_row, moves_freely
from ..spatial.vectors import add3, cross, rotate
from ..tree.joints import quaternion_rate, quaternion_rotation
from ..tree.kinematics import position_rates, store_turn_of_rate, tangents_of_rates
from ..tree.layout import POSING_FREE, POSING_OWN, POSING_SPHERICAL
from .linearized_rate import LinearizedRate


class ComplexSystems(NamedTuple):
    """Working memory of complex systems with the same derivatives. All arrays end in lanes.

    * `linear` is the LinearizedRate, without memory for trees, at the state `center` (rows,).
    * `factors` (systems, 2 n, 2 n) and `pivots` (systems, 2 n) are the factorized matrices, as in `algorithms.lu`.
    * `right` (2 n,) is a right-hand side, and then the solution.
    * `tangents` (2, n), `directions` (2, n) and `displacements` (2, nq) are scratch memory for the real and the
      imaginary parts.
    """

    linear: LinearizedRate
    center: Annotated[np.ndarray, "rows"]
    factors: Annotated[np.ndarray, "systems", "2 * n", "2 * n"]
    pivots: np.ndarray
    right: Annotated[np.ndarray, "2 * n"]
    tangents: Annotated[np.ndarray, 2, "n"]
    directions: Annotated[np.ndarray, 2, "n"]
    displacements: Annotated[np.ndarray, 2, "nq"]


complex_systems_size, carve_complex_systems = lane_record(ComplexSystems, "systems", "n", "nq", "rows")


@kernel
def times(a, b):
    """Return the product of two complex numbers a and b: pairs (real part, imaginary part)."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


@kernel
def reciprocal(a):
    """Return the reciprocal of a complex number a: a pair (real part, imaginary part)."""
    factor = constant_like(a[0], 1.0) / (a[0] * a[0] + a[1] * a[1])
    return factor * a[0], -factor * a[1]


@routine
def factorize_complex_step(block, systems, number, a, k):
    """Compute and factorize the matrix of a system for the complex number a.

    a is a pair (real part, imaginary part), 1/s. Writes `systems.factors` (systems, 2 n, 2 n, lanes) and
    `systems.pivots`.
    """
    nq, n, model, linear, y = block.q.shape[0], block.qd.shape[0], block.model, systems.linear, systems.center
    factors = systems.factors[number]
    one, inverse, is_exact = constant_like(y, 1.0), reciprocal(a), has_exact_derivatives(block)
    zero = constant_like(y, 0.0)
    for i in range(n):
        for j in range(n):
            D = linear.derivatives[BY_QD, i, j, k]
            M = linear.derivatives[BY_INPUT, i, j, k] if is_exact else full_like(D, 1.0 if i == j else 0.0)
            store_entry(factors, i, j, (D + a[0] * M, a[1] * M), k)
        for side in range(2):
            systems.directions[side, i, k] = zero
    for j in range(n):
        if not moves_freely(block, j):
            continue
        first = model.first[j]
        if model.posing[first] == POSING_OWN:
            add_to_column(factors, j, linear.derivatives[BY_Q], j, inverse, k)
        else:
            systems.directions[0, j, k] = one
            position_rates(model, y[:nq], systems.directions[0], systems.displacements[0], k)
            systems.directions[0, j, k] = zero
            for i in range(nq):
                systems.displacements[1, i, k] = zero
            divide_complex_positions(block, systems, systems.displacements[0], systems.displacements[1], a, k)
            for side in range(2):
                tangents_of_rates(model, y[:nq], systems.displacements[side], systems.tangents[side], k)
            for i in range(first, first + (6 if model.posing[first] == POSING_FREE else 3)):
                x = systems.tangents[0, i, k], systems.tangents[1, i, k]
                add_to_column(factors, j, linear.derivatives[BY_Q], i, x, k)
    for d in range(count_drives(block)):
        row, j = integral_row(block, d), dof_of_drive(block, d)
        if row >= 0:
            add_to_column(factors, j, linear.by_integral, row - nq - n, times(inverse, inverse), k)
    factorize(factors, systems.pivots[number], k)


@kernel
def store_entry(matrix, i, j, x, k):
    """Store the complex number x, a pair, as the entry (i, j) of a matrix (2 n, 2 n, lanes)."""
    n = matrix.shape[0] // 2
    matrix[i, j, k], matrix[n + i, n + j, k] = x[0], x[0]
    matrix[n + i, j, k], matrix[i, n + j, k] = x[1], -x[1]


@kernel
def add_to_column(matrix, j, derivative, i, x, k):
    """Add the complex number x times column i of a derivative to column j of a matrix.

    `matrix` is (2 n, 2 n, lanes), `derivative` (n, columns, lanes), and x a pair (real part, imaginary part).
    """
    n = matrix.shape[0] // 2
    for row in range(n):
        re, im = x[0] * derivative[row, i, k], x[1] * derivative[row, i, k]
        store_entry(matrix, row, j, (matrix[row, j, k] + re, matrix[n + row, j, k] + im), k)


@kernel
def divide_complex_positions(block, systems, re, im, a, k):
    """Replace the complex r = (re, im), (nq, lanes) each, by H r = (a - dq'/dq)^-1 r. Overwrites `tangents`.

    a is a pair (real part, imaginary part), 1/s.
    """
    model, nq, inverse, y = block.model, block.q.shape[0], reciprocal(a), systems.center
    qd = y[nq : nq + block.qd.shape[0]]
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == POSING_OWN:
            re[at, k], im[at, k] = times(inverse, (re[at, k], im[at, k]))
        elif posing == POSING_SPHERICAL:
            divide_complex_quaternion(re, im, at, (qd[i, k], qd[i + 1, k], qd[i + 2, k]), a, k)
        elif posing == POSING_FREE:
            divide_complex_quaternion(re, im, at + 3, (qd[i + 3, k], qd[i + 4, k], qd[i + 5, k]), a, k)
            R = quaternion_rotation(y[at + 3, k], y[at + 4, k], y[at + 5, k], y[at + 6, k])
            v = (qd[i, k], qd[i + 1, k], qd[i + 2, k])
            real = moved_by_turn(i, at, y, re, systems.tangents[0], R, v, k)
            imaginary = moved_by_turn(i, at, y, im, systems.tangents[1], R, v, k)
            for axis in range(3):
                re[at + axis, k], im[at + axis, k] = times(inverse, (real[axis], imaginary[axis]))


@kernel
def moved_by_turn(i, at, y, r, tangent, R, v, k):
    """Return the position rows r[at : at + 3] of a free joint plus the change of R v by its quaternion rows.

    y is (rows, lanes), r (nq, lanes), and `tangent` (n, lanes) is scratch memory. R (9) is the rotation of the
    quaternion, and v (3) the velocity in body axes, m/s. The result (3) is in the placement frame.
    """
    store_turn_of_rate(i + 3, at + 3, y, r, tangent, k)
    turn = (tangent[i + 3, k], tangent[i + 4, k], tangent[i + 5, k])
    return add3((r[at, k], r[at + 1, k], r[at + 2, k]), rotate(R, cross(turn, v)))


@kernel
def divide_complex_quaternion(re, im, at, omega, a, k):
    """Replace the rows r that start at `at` by (a r + r (omega, 0) / 2) / (a^2 + |omega|^2 / 4).

    `re` and `im` are (nq, lanes). omega (3) is in body axes, rad/s, and a is a pair (real part, imaginary part), 1/s.
    """
    quarter = constant_like(re, 0.25) * (omega[0] * omega[0] + omega[1] * omega[1] + omega[2] * omega[2])
    square = times(a, a)
    by_turn = reciprocal((square[0] + quarter, square[1]))
    by_itself = times(a, by_turn)
    turned_re = quaternion_rate(re[at, k], re[at + 1, k], re[at + 2, k], re[at + 3, k], omega)
    turned_im = quaternion_rate(im[at, k], im[at + 1, k], im[at + 2, k], im[at + 3, k], omega)
    for row in range(4):
        own = times(by_itself, (re[at + row, k], im[at + row, k]))
        turned = times(by_turn, (turned_re[row], turned_im[row]))
        re[at + row, k], im[at + row, k] = own[0] + turned[0], own[1] + turned[1]


@routine
def solve_complex_system(block, systems, number, right, a, k):
    """Replace a right-hand side by its increments: `right` (2, rows, lanes) has its real and its imaginary parts.

    a is a pair (real part, imaginary part), 1/s.
    """
    nq, n, model, inverse, y = block.q.shape[0], block.qd.shape[0], block.model, reciprocal(a), systems.center
    re, im = right[0], right[1]
    divide_complex_positions(block, systems, re[:nq], im[:nq], a, k)
    for d in range(count_drives(block)):
        row = integral_row(block, d)
        if row >= 0:
            at = model.coordinate[dof_of_drive(block, d)]
            re[row, k], im[row, k] = times(inverse, (re[row, k] - re[at, k], im[row, k] - im[at, k]))
    tangents_of_rates(model, y[:nq], re[:nq], systems.tangents[0], k)
    tangents_of_rates(model, y[:nq], im[:nq], systems.tangents[1], k)
    set_right_hand_side(block, systems, re, 0, k)
    set_right_hand_side(block, systems, im, 1, k)
    solve(systems.factors[number], systems.pivots[number], systems.right, k)
    for i in range(n):
        re[nq + i, k], im[nq + i, k] = systems.right[i, k], systems.right[n + i, k]
        for side in range(2):
            w = systems.right[side * n + i, k]
            systems.directions[side, i, k] = w if moves_freely(block, i) else zeros_like(w)
    for side in range(2):
        position_rates(model, y[:nq], systems.directions[side], systems.displacements[side], k)
    divide_complex_positions(block, systems, systems.displacements[0], systems.displacements[1], a, k)
    for j in range(nq):
        re[j, k] = re[j, k] + systems.displacements[0, j, k]
        im[j, k] = im[j, k] + systems.displacements[1, j, k]
    for d in range(count_drives(block)):
        row = integral_row(block, d)
        if row >= 0:
            at = model.coordinate[dof_of_drive(block, d)]
            change = times(inverse, (systems.displacements[0, at, k], systems.displacements[1, at, k]))
            re[row, k], im[row, k] = re[row, k] - change[0], im[row, k] - change[1]


@kernel
def set_right_hand_side(block, systems, r, side, k):
    """Store M s - K T u_0 + C p_0 for the real (side 0) or the imaginary parts (side 1) of a right-hand side.

    r (rows, lanes) has these parts. Writes `systems.right` (2 n, lanes).
    """
    nq, n, is_exact, linear = block.q.shape[0], block.qd.shape[0], has_exact_derivatives(block), systems.linear
    for i in range(n):
        total = r[nq + i, k]
        if is_exact:
            total = zeros_like(total)
            for j in range(n):
                total = total + linear.derivatives[BY_INPUT, i, j, k] * r[nq + j, k]
        for j in range(n):
            total = total - linear.derivatives[BY_Q, i, j, k] * systems.tangents[side, j, k]
        for row in range(nq + n, r.shape[0]):
            total = total + linear.by_integral[i, row - nq - n, k] * r[row, k]
        systems.right[side * n + i, k] = total
