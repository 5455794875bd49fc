"""Derivatives of the joint forces of springs and bushings by their parameters, for sensitivities.

A force between bodies a and b exerts the wrench W on b, and -W on a. With e, L and T of `springs`, for a taut spring,

    W = -T e,   dT/dstiffness = L - rest_length,   dT/ddamping = dL/dt,   dT/drest_length = -stiffness.

For a bushing with the displacement x and J of `bushings`, W = -J^T (K x + D dx/dt). Each column belongs to two
symmetric entries of K or D. If an end of the force moves on its body, dW/dp follows from the responses of
`algorithms.derivatives_between_bodies`. The joint forces follow from dW/dp on the paths to both bodies, after the paths
separate.
"""

from ...compiling.jit import is_given, kernel, only_if
from ..algorithms.derivatives_between_bodies import response_along, velocity_at
from ..algorithms.jacobians import comes_after
from ..forces.bushings import (
    BUSHING_DOF_A,
    BUSHING_DOF_B,
    BUSHING_NUMBERS,
    BUSHING_ROTATION_B,
    bushing_rates,
    bushing_state,
    bushing_wrench,
    in_world,
    moment_of_rotation,
    number9,
)
from ..forces.springs import (
    SPRING_DOF_A,
    SPRING_DOF_B,
    SPRING_NUMBERS,
    SPRING_STIFFNESS,
    SPRING_TENSION_ONLY,
    spring_force,
    spring_state,
    stretch_of_spring,
)
from ..lanes.lanes import select, zeros_like
from ..spatial.storage import load9
from ..spatial.vectors import (
    Force,
    Motion,
    add3,
    column_of,
    compose,
    cross_force,
    dot,
    force_at_root,
    motion_at_tip,
    rotate,
    scale3,
    subtract3,
    subtract_forces,
    z_axis,
)
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import joint_force
from ..tree.kinematics import (
    body_axes,
    force_on_parent,
    move_dof,
    origin_about_first_joint,
    place_about_first_joint,
)
from ..tree.layout import parameter
from .parameter_layout import (
    BETWEEN_BODIES,
    BY_BUSHING_STIFFNESS,
    BY_ORIGIN_A,
    BY_POINT_A,
    BY_SPRING_DAMPING,
    BY_SPRING_STIFFNESS,
    BY_TURN_A,
    BY_TURN_B,
    COLUMN_ENTRY,
    COLUMN_FORCE,
    COLUMN_KIND,
    OF_BUSHINGS,
    OF_ENDS,
    OF_ENDS_A,
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
    if kind in OF_ENDS:
        add_force_of_end(block, kind, s, columns[COLUMN_ENTRY, column], w, k)
        return
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
def add_force_of_end(block, kind, s, entry, w, k):
    """Add the derivatives of the joint forces with respect to an end of spring or bushing s to w (n, lanes).

    `entry` is the number of an axis. The derivatives are in N m or N per m or rad.
    """
    actions, model, work = block.loads.actions, block.model, block.work
    springs, bushings, numbers = actions.shared.springs, actions.shared.bushings, actions.numbers
    if kind in OF_BUSHINGS:
        bushing = bushing_state(s, model, bushings, numbers, work, k)
        a, b, W = bushings[BUSHING_DOF_A, s], bushings[BUSHING_DOF_B, s], bushing_wrench(bushing)
        S = displacement_of_frame(kind, s, bushing, entry, block, k)
        add_joint_forces_of_end((a, b), bushing, kind in OF_ENDS_A, S, W, block, w, k)
    else:
        spring = spring_state(s, model, springs, numbers, work, k)
        zero = zeros_like(spring.tension)
        a, b, W = springs[SPRING_DOF_A, s], springs[SPRING_DOF_B, s], Force((zero, zero, zero), spring_force(spring))
        e = column_of(body_axes(a if kind == BY_POINT_A else b, model, work, k), entry)
        add_joint_forces_of_end((a, b), spring, kind in OF_ENDS_A, Motion((zero, zero, zero), e), W, block, w, k)


@kernel
def displacement_of_frame(kind, s, bushing, entry, block, k):
    """Return the displacement S of frame A or B of bushing s by a unit of its parameter.

    The result is a Motion at the origin of B, in world axes.
    """
    bushings, numbers = block.loads.actions.shared.bushings, block.loads.actions.numbers
    zero = zeros_like(bushing.p[0])
    if kind == BY_TURN_A:
        turn = Motion(column_of(bushing.axes, entry), (zero, zero, zero))
        return motion_at_tip(turn, rotate(bushing.axes, bushing.p))
    dof = bushings[BUSHING_DOF_A, s] if kind == BY_ORIGIN_A else bushings[BUSHING_DOF_B, s]
    axes = body_axes(dof, block.model, block.work, k)
    if kind == BY_TURN_B:
        axes = compose(axes, number9(numbers, bushings[BUSHING_NUMBERS, s] + BUSHING_ROTATION_B, k))
        return Motion(column_of(axes, entry), (zero, zero, zero))
    return Motion((zero, zero, zero), column_of(axes, entry))


@kernel
def add_joint_forces_of_end(bodies, state, is_of_a, S, W, block, w, k):
    """Add the derivatives of the joint forces of a spring or bushing along a displacement S of one end to w (n, lanes).

    The end moves on its body: to displace the end on body a, displace both ends, which turns the wrench W on body b,
    and then move the end on b back. `bodies` are the dofs a and b, and `state` is the Spring or Bushing. S is a Motion
    and W a Force at the end on b, in world axes.
    """
    (a, b), model, work, numbers = bodies, block.model, block.work, block.loads.actions.numbers
    origin_a, origin_b = origin_about_first_joint(a, model, work, k), origin_about_first_joint(b, model, work, k)
    tip = add3(origin_b, state.arm_b)
    v = velocity_at(b, tip, model, work, k)
    if is_of_a:
        change = response_along(state, S, v, velocity_at(a, tip, model, work, k), numbers, k)
        change = subtract_forces(cross_force(S, W), change)
    else:
        change = response_along(state, S, v, v, numbers, k)
    f_a, f_b = force_at_root(change, subtract3(tip, origin_a)), force_at_root(change, state.arm_b)
    add_joint_forces(a, b, f_a, f_b, block, w, k)


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
