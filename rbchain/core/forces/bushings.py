"""Bushings: linear stiffness and damping between a frame A on one body and a frame B on another.

Let p be the position of the origin of B in A, in m, and phi the rotation vector of the axes of B in A, in rad. The
displacement is x = (p, phi). Stiffness K and damping D are symmetric 6 x 6 matrices. J is the Jacobian of dx/dt with
respect to the relative velocity. The wrench on body b, at the origin of B and in the axes of A, is

    -J^T (K x + D dx/dt).

Body a receives the opposite wrench at the same point. The elastic part is conservative, with the potential x^T K x / 2,
and the damping dissipates the power dx/dt^T D dx/dt. Simbody's Force::LinearBushing and Drake's
LinearBushingRollPitchYaw define the same law with three angles instead of the rotation vector; a rotation about one
axis is the same in all three. The rotation vector is singular only at the angle pi, where it jumps to its opposite.

If B turns freely about the z axis of A, as in a bearing, phi is the tilt z_A x z_B instead. With z = z_B in the axes of
A, phi = (-z_2, z_1, 0). For the relative angular velocity w, dphi/dt = z_3 w - w_3 z. Both are smooth at all angles.

In all kernels, `bushings` (BUSHING_ROWS, count) and `numbers` (m, lanes) hold the integers and the numbers below.
"""

from typing import NamedTuple

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, zeros_like
from ..spatial.rotations import (
    RotationVector,
    moment_of_rotation_vector,
    moment_of_rotation_vector_along,
    rotation_vector,
    rotation_vector_rate,
    rotation_vector_rate_along,
)
from ..spatial.storage import load_motion, number3
from ..spatial.vectors import Force, add3, compose, cross, dot, motion_at_tip, rotate, rotate_back, subtract3
from ..tree import frame_layout as frame
from ..tree.kinematics import body_axes
from .springs import arm_and_position

# Rows of an array of bushings (BUSHING_ROWS, count), one column for each bushing.
BUSHING_DOF_A, BUSHING_DOF_B = 0, 1  # dofs of the bodies; n for the world
BUSHING_NUMBERS = 2  # index of the first of its numbers
BUSHING_FREE_AXIS = 3  # 1 if B turns freely about the z axis of A, else 0
BUSHING_ROWS = 4
# Numbers of a bushing, in an array `numbers` (m, lanes): frames A and B in body axes, origin (3), m, then rotation (9);
# K and D (36 each), row by row.
BUSHING_ORIGIN_A, BUSHING_ROTATION_A = 0, 3
BUSHING_ORIGIN_B, BUSHING_ROTATION_B = 12, 15
BUSHING_STIFFNESS = 24
BUSHING_DAMPING = 60
BUSHING_NUMBER_COUNT = 96


class Bushing(NamedTuple):
    """State of a bushing.

    `arm_a` and `arm_b` (3) go from the joint origins of the bodies to the origin of B, in world axes, m. `axes` (9)
    is the rotation from A to world axes. In the axes of A, `p` (3), m, is the displacement of B, `r` its rotation
    vector, and `spin` (3), rad/s, its angular velocity. With `free_axis`, `r` holds the tilt as phi, and z_3 as
    beta. `force` (3) and `moment` (3) are K x + D dx/dt: along p, N, and along phi, N m. `world_spin` (3), rad/s,
    is the relative angular velocity in world axes. `at` is the index of the numbers of the bushing.
    """

    arm_a: tuple
    arm_b: tuple
    axes: tuple
    p: tuple
    r: RotationVector
    spin: tuple
    force: tuple
    moment: tuple
    world_spin: tuple
    at: int
    free_axis: int


@kernel
def number9(numbers, at, k):
    """Return a matrix (9) from an array of numbers (m, lanes), starting at index `at`."""
    return (*number3(numbers, at, k), *number3(numbers, at + 3, k), *number3(numbers, at + 6, k))


@kernel
def matrix6_times(numbers, at, x, y, k):
    """Multiply the matrix (6, 6) that starts at index `at` with (x, y), and return the two halves (3) of the result.

    `numbers` is (m, lanes), and x and y are vectors (3).
    """
    return matrix36_times(numbers, at, x, y, k), matrix36_times(numbers, at + 18, x, y, k)


@kernel
def matrix36_times(numbers, at, x, y, k):
    """Multiply the matrix (3, 6) that starts at index `at` of `numbers` (m, lanes) with two vectors x and y (3)."""
    return (
        dot(number3(numbers, at, k), x) + dot(number3(numbers, at + 3, k), y),
        dot(number3(numbers, at + 6, k), x) + dot(number3(numbers, at + 9, k), y),
        dot(number3(numbers, at + 12, k), x) + dot(number3(numbers, at + 15, k), y),
    )


@kernel
def bushing_state(s, model, bushings, numbers, work, k):
    """Compute the state of bushing s (reads R, V, LEVER and POSITION)."""
    a, b, at = bushings[BUSHING_DOF_A, s], bushings[BUSHING_DOF_B, s], bushings[BUSHING_NUMBERS, s]
    to_A, origin_A = arm_and_position(a, number3(numbers, at + BUSHING_ORIGIN_A, k), model, work, k)
    arm_b, origin_B = arm_and_position(b, number3(numbers, at + BUSHING_ORIGIN_B, k), model, work, k)
    d = subtract3(origin_B, origin_A)
    arm_a = add3(to_A, d)
    axes = compose(body_axes(a, model, work, k), number9(numbers, at + BUSHING_ROTATION_A, k))
    axes_B = compose(body_axes(b, model, work, k), number9(numbers, at + BUSHING_ROTATION_B, k))
    v_a, v_b = load_motion(work.dof, a, frame.V, k), load_motion(work.dof, b, frame.V, k)
    velocity = subtract3(motion_at_tip(v_b, arm_b).lin, motion_at_tip(v_a, arm_a).lin)
    world_spin = subtract3(v_b.ang, v_a.ang)
    free_axis, p = bushings[BUSHING_FREE_AXIS, s], rotate_back(axes, d)
    r = rotation_of(free_axis, compose(transposed(axes), axes_B))
    spin = rotate_back(axes, world_spin)
    rates = rotate_back(axes, velocity), rotation_rate(free_axis, r, spin)
    elastic = matrix6_times(numbers, at + BUSHING_STIFFNESS, p, r.phi, k)
    damping = matrix6_times(numbers, at + BUSHING_DAMPING, rates[0], rates[1], k)
    force, moment = add3(elastic[0], damping[0]), add3(elastic[1], damping[1])
    return Bushing(
        arm_a=arm_a,
        arm_b=arm_b,
        axes=axes,
        p=p,
        r=r,
        spin=spin,
        force=force,
        moment=moment,
        world_spin=world_spin,
        at=at,
        free_axis=free_axis,
    )


@kernel
def rotation_of(free_axis, R):
    """Compute phi of the rotation R (9) from A to B: the rotation vector, or the tilt of a bearing."""
    if free_axis == 1:
        z = (R[2], R[5], R[8])
        return RotationVector((-z[1], z[0], zeros_like(z[0])), z[2], zeros_like(z[0]))
    return rotation_vector(R)


@kernel
def axis_of_tilt(r):
    """Return the z axis of B (3) in the axes of A, from the tilt r."""
    return (r.phi[1], -r.phi[0], r.beta)


@kernel
def rotation_rate(free_axis, r, w):
    """Compute the rate of phi (3), rad/s, for the relative angular velocity w (3), rad/s, in the axes of A."""
    if free_axis == 1:
        return tilt_rate(axis_of_tilt(r), w)
    return rotation_vector_rate(r, w)


@kernel
def tilt_rate(z, w):
    """Compute the part z_3 w - w_3 z of a rate (3) for z and w (3)."""
    return (z[2] * w[0] - w[2] * z[0], z[2] * w[1] - w[2] * z[1], zeros_like(w[2]))


@kernel
def rotation_rate_along(free_axis, r, turn, w):
    """Compute the derivative of the rate (3) of phi along the rotation `turn` (3) of B, at constant w (3)."""
    if free_axis == 1:
        return tilt_rate(cross(turn, axis_of_tilt(r)), w)
    return rotation_vector_rate_along(r, rotation_vector_rate(r, turn), w)


@kernel
def moment_of_rotation(free_axis, r, g):
    """Compute the moment (3) of forces g (3) along phi, N m, in the axes of A: the transpose of the rate."""
    if free_axis == 1:
        return moment_of_tilt(axis_of_tilt(r), g)
    return moment_of_rotation_vector(r, g)


@kernel
def moment_of_tilt(z, g):
    """Compute the moment (3) z x (g x e_3) for z and g (3)."""
    return (z[2] * g[0], z[2] * g[1], -z[0] * g[0] - z[1] * g[1])


@kernel
def moment_of_rotation_along(free_axis, r, turn, g):
    """Compute the derivative of the moment (3) along the rotation `turn` (3) of B, at constant g (3)."""
    if free_axis == 1:
        return moment_of_tilt(cross(turn, axis_of_tilt(r)), g)
    return moment_of_rotation_vector_along(r, rotation_vector_rate(r, turn), g)


@kernel
def transposed(R):
    """Return the transpose (9) of a matrix R (9)."""
    return (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8])


@kernel
def in_world(bushing, force, moment):
    """Return minus a force (3), N, and a moment (3), N m, in the axes of A as a wrench (a Force) in world axes."""
    f, m = rotate(bushing.axes, force), rotate(bushing.axes, moment)
    return Force((-m[0], -m[1], -m[2]), (-f[0], -f[1], -f[2]))


@kernel
def bushing_wrench(bushing):
    """Return the wrench on body b about the origin of B, in world axes: a Force, N m and N."""
    return in_world(bushing, bushing.force, moment_of_rotation(bushing.free_axis, bushing.r, bushing.moment))


@kernel
def bushing_energy(s, model, bushings, numbers, work, k):
    """Compute the elastic energy x^T K x / 2 of bushing s, J."""
    bushing = bushing_state(s, model, bushings, numbers, work, k)
    p, phi = bushing.p, bushing.r.phi
    force, moment = matrix6_times(numbers, bushing.at + BUSHING_STIFFNESS, p, phi, k)
    return constant_like(work.dof, 0.5) * (dot(p, force) + dot(phi, moment))


@kernel
def bushing_power(s, model, bushings, numbers, work, k):
    """Compute the rate of the elastic energy of bushing s: x^T K dx/dt, W."""
    bushing = bushing_state(s, model, bushings, numbers, work, k)
    force, moment = matrix6_times(numbers, bushing.at + BUSHING_STIFFNESS, bushing.p, bushing.r.phi, k)
    rate, turn = bushing_rates(s, bushing, bushings, work, k)
    return dot(force, rate) + dot(moment, turn)


@kernel
def bushing_rates(s, bushing, bushings, work, k):
    """Return dx/dt of bushing s: of its displacement (3), m/s, and of its rotation vector (3), rad/s (reads V)."""
    v_a = load_motion(work.dof, bushings[BUSHING_DOF_A, s], frame.V, k)
    v_b = load_motion(work.dof, bushings[BUSHING_DOF_B, s], frame.V, k)
    velocity = subtract3(motion_at_tip(v_b, bushing.arm_b).lin, motion_at_tip(v_a, bushing.arm_a).lin)
    return rotate_back(bushing.axes, velocity), rotation_rate(bushing.free_axis, bushing.r, bushing.spin)


@kernel
def bushing_response(bushing, S, numbers, k):
    """Compute the derivative of the wrench on body b along the displacement S of body b, while body a does not move.

    S and the wrench are in world axes, at the fixed point of the world where the origin of B is. The relative velocity
    does not change as a spatial vector, so the velocity of the origin of B changes by world_spin x S. S is a
    Motion. The result is a Force for a unit of the displacement: N m and N per rad or m.
    """
    r, at, free_axis = bushing.r, bushing.at, bushing.free_axis
    move, turn = rotate_back(bushing.axes, S.lin), rotate_back(bushing.axes, S.ang)
    change = rotation_rate(free_axis, r, turn)
    rates = (
        rotate_back(bushing.axes, cross(bushing.world_spin, S.lin)),
        rotation_rate_along(free_axis, r, turn, bushing.spin),
    )
    elastic = matrix6_times(numbers, at + BUSHING_STIFFNESS, move, change, k)
    damping = matrix6_times(numbers, at + BUSHING_DAMPING, rates[0], rates[1], k)
    moment = moment_of_rotation(free_axis, r, add3(elastic[1], damping[1]))
    moment = add3(moment, moment_of_rotation_along(free_axis, r, turn, bushing.moment))
    wrench = in_world(bushing, add3(elastic[0], damping[0]), moment)
    return Force(add3(wrench.ang, cross(S.lin, bushing_wrench(bushing).lin)), wrench.lin)


@kernel
def bushing_damping_response(bushing, S, numbers, k):
    """Compute the derivative of the wrench on body b along the relative velocity S; axes and point as above.

    S is a Motion, and the result a Force: N m and N per rad/s or m/s.
    """
    move, turn = rotate_back(bushing.axes, S.lin), rotate_back(bushing.axes, S.ang)
    rate = rotation_rate(bushing.free_axis, bushing.r, turn)
    force, moment = matrix6_times(numbers, bushing.at + BUSHING_DAMPING, move, rate, k)
    return in_world(bushing, force, moment_of_rotation(bushing.free_axis, bushing.r, moment))
