"""Derivatives of the joint forces of springs and bushings by their parameters, for sensitivities.

A force between bodies a and b exerts the wrench W on b, and -W on a. With e, L and T of `springs`, for a taut spring,

    W = -T e,   dT/dstiffness = L - rest_length,   dT/ddamping = dL/dt,   dT/drest_length = -stiffness.

For a bushing with the displacement x and J of `bushings`, W = -J^T (K x + D dx/dt). Each column belongs to two
symmetric entries of K or D. The joint forces follow from dW/dp on the paths to both bodies, after the paths separate.
"""

from ...compiling.jit import is_given, kernel, only_if
from ..algorithms.jacobians import comes_after
from ..forces.bushings import (
    BUSHING_DOF_A,
    BUSHING_DOF_B,
    bushing_rates,
    bushing_state,
    in_world,
    moment_of_rotation,
)
from ..forces.springs import (
    SPRING_DOF_A,
    SPRING_DOF_B,
    SPRING_NUMBERS,
    SPRING_STIFFNESS,
    SPRING_TENSION_ONLY,
    spring_state,
    stretch_of_spring,
)
from ..lanes.lanes import select, zeros_like
from ..spatial.storage import load9
from ..spatial.vectors import Force, dot, force_at_root, scale3, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import joint_force
from ..tree.kinematics import force_on_parent, move_dof, place_about_first_joint
from ..tree.layout import parameter
from .parameter_layout import (
    BETWEEN_BODIES,
    BY_BUSHING_STIFFNESS,
    BY_SPRING_DAMPING,
    BY_SPRING_STIFFNESS,
    COLUMN_ENTRY,
    COLUMN_FORCE,
    COLUMN_KIND,
    OF_BUSHINGS,
)


def has_forces_between_bodies(block, *_):
    """Whether springs or bushings act in a block, or its Numba type."""
    return is_given(block, "loads", "actions", "between_bodies")


@only_if(has_forces_between_bodies)
@kernel
def place_bodies(block, columns, y, k):
    """Compute the poses and velocities of all bodies, if the columns contain parameters of forces between bodies.

    Writes R, LEVER, V and POSITION. `columns` is (COLUMN_ROWS, count), and y (rows, lanes).
    """
    nq, n, needed = block.q.shape[0], block.qd.shape[0], False
    for column in range(columns.shape[1]):
        needed = needed or columns[COLUMN_KIND, column] in BETWEEN_BODIES
    if needed:
        for i in range(n):
            move_dof(i, block.model, y[:nq], y[nq : nq + n], block.work, k)
            place_about_first_joint(i, block.model, block.work, k)


@only_if(has_forces_between_bodies)
@kernel
def add_force_between_bodies(block, columns, column, w, k):
    """Add the derivatives of the joint forces with respect to a parameter of a spring or a bushing to w (n, lanes).

    Reads R, LEVER, V and POSITION. `columns` is (COLUMN_ROWS, count). The derivatives are in N m or N per unit of the
    parameter.
    """
    actions, kind, s = block.loads.actions, columns[COLUMN_KIND, column], columns[COLUMN_FORCE, column]
    springs, bushings, numbers = actions.shared.springs, actions.shared.bushings, actions.numbers
    if kind in OF_BUSHINGS:
        bushing = bushing_state(s, block.model, bushings, numbers, block.work, k)
        f = wrench_by_matrix(s, bushing, kind, columns[COLUMN_ENTRY, column], block, k)
        a, b, arm_a, arm_b = bushings[BUSHING_DOF_A, s], bushings[BUSHING_DOF_B, s], bushing.arm_a, bushing.arm_b
    else:
        spring = spring_state(s, block.model, springs, numbers, block.work, k)
        zero = zeros_like(spring.tension)
        f = Force((zero, zero, zero), scale3(-tension_by_parameter(s, spring, kind, block, k), spring.direction))
        a, b, arm_a, arm_b = springs[SPRING_DOF_A, s], springs[SPRING_DOF_B, s], spring.arm_a, spring.arm_b
    add_joint_forces(a, b, force_at_root(f, arm_a), force_at_root(f, arm_b), block, w, k)


@kernel
def tension_by_parameter(s, spring, kind, block, k):
    """Return the derivative of a spring's tension with respect to one of its parameters, N per unit; zero if slack."""
    springs, numbers = block.loads.actions.shared.springs, block.loads.actions.numbers
    if kind == BY_SPRING_STIFFNESS:
        change = stretch_of_spring(s, block.model, springs, numbers, block.work, k)
    elif kind == BY_SPRING_DAMPING:
        change = dot(spring.direction, spring.velocity)
    else:
        change = -numbers[springs[SPRING_NUMBERS, s] + SPRING_STIFFNESS, k]
    zero = zeros_like(spring.tension)
    if springs[SPRING_TENSION_ONLY, s] == 1:
        change = select(spring.tension > zero, change + zero, zero)
    return change


@kernel
def wrench_by_matrix(s, bushing, kind, entry, block, k):
    """Return the derivative of the wrench of bushing s with respect to two symmetric entries of K or D.

    `entry` (0 to 20) counts the upper triangle. The result is a Force about the origin of B, in world axes: N m and N
    per unit.
    """
    row = 0
    while entry >= 6 - row:
        entry = entry - (6 - row)
        row = row + 1
    column = row + entry
    if kind == BY_BUSHING_STIFFNESS:
        p, phi = bushing.p, bushing.r.phi
    else:
        p, phi = bushing_rates(s, bushing, block.loads.actions.shared.bushings, block.work, k)
    of_row, of_column = component(p, phi, column), component(p, phi, row)
    force = (
        product(0, row, column, of_row, of_column),
        product(1, row, column, of_row, of_column),
        product(2, row, column, of_row, of_column),
    )
    moment = (
        product(3, row, column, of_row, of_column),
        product(4, row, column, of_row, of_column),
        product(5, row, column, of_row, of_column),
    )
    return in_world(bushing, force, moment_of_rotation(bushing.free_axis, bushing.r, moment))


@kernel
def component(p, phi, i):
    """Return component i (0 to 5) of the vector (p, phi), two vectors (3)."""
    if i == 0:
        return p[0]
    if i == 1:
        return p[1]
    if i == 2:
        return p[2]
    if i == 3:
        return phi[0]
    return phi[1] if i == 4 else phi[2]


@kernel
def product(i, row, column, of_row, of_column):
    """Return component i of E x for the matrix E with ones in (row, column) and (column, row) only."""
    if i == row:
        return of_row
    return of_column if i == column else zeros_like(of_row)


@kernel
def add_joint_forces(a, b, f_a, f_b, block, w, k):
    """Add the joint forces of the wrench f_b on the body of dof b, and of minus f_a on the body of dof a, to w.

    Both are Forces in world axes about the joint origins of their bodies. w is (n, lanes). Reads R and LEVER.
    """
    model, i, j = block.model, b, a
    while i != j:  # go up both paths until they meet
        if comes_after(i, j, model):
            w[i, k] = w[i, k] + force_of_dof(i, f_b, block, k)
            f_b = force_on_parent(i, f_b, model, block.work, k)
            i = model.parent[i]
        else:
            w[j, k] = w[j, k] - force_of_dof(j, f_a, block, k)
            f_a = force_on_parent(j, f_a, model, block.work, k)
            j = model.parent[j]


@kernel
def force_of_dof(i, f, block, k):
    """Return the joint force of dof i, N m or N, of a Force about its joint origin in world axes (reads R)."""
    axis = z_axis(load9(block.work.dof, i, frame.R, k))
    return joint_force(block.model.joint[i], axis, parameter(block.model.parameters, i, param.ADVANCE, k), f)
