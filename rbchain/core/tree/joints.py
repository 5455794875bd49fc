"""Joint models: how one degree of freedom changes poses and velocities, and the products with its motion subspace S.

In all kernels here, `axis` (3) is the joint's axis in world axes, a unit vector. `advance` is the travel along it per
unit of q, m/rad for a screw:

    revolute   S = (axis, 0)
    prismatic  S = (0, axis)
    screw      S = (axis, advance axis)

`joint` is REVOLUTE, PRISMATIC or SCREW. All lanes share it, so kernels may branch on it. Revolute joints are by far the
most common ones, so they do no arithmetic for the other types.

A free joint is a sequence of six such joints at one point, a spherical joint one of three. Their axes are x, y and z of
the body, and all move with the body.
"""

import math

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, nan_unless_finite, zeros_like
from ..lanes.trig import sincos
from ..spatial.vectors import Force, Motion, add3, cross, dot, rotate, rotate_about_z, rotate_back, scale3, symmetric
from .layout import PRISMATIC, REVOLUTE


@kernel
def joint_rotation(joint, R, q):
    """Rotate the axes R (9) about their z axis by the joint angle q, rad."""
    if joint == PRISMATIC:
        return R
    s, c = sincos(q)
    return rotate_about_z(R, s, c)


@kernel
def joint_travel(joint, r, axis, advance, q):
    """Add the travel of the joint to r (3), world axes, m: r + advance q axis."""
    if joint == REVOLUTE:
        return r
    return add3(r, scale3(advance * q, axis))


@kernel
def quaternion_rotation(x, y, z, w):
    """Compute the rotation matrix (9) of a quaternion of any length.

    The stages of an integrator do not preserve unit length. The quaternion is (x, y, z, w). The rotation is from the
    axes that it turns to the fixed axes.
    """
    s = constant_like(x, 2.0) / (x * x + y * y + z * z + w * w)
    one = constant_like(x, 1.0)
    return (
        *(one - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)),
        *(s * (x * y + z * w), one - s * (x * x + z * z), s * (y * z - x * w)),
        *(s * (x * z - y * w), s * (y * z + x * w), one - s * (x * x + y * y)),
    )


@kernel
def quaternion_rate(x, y, z, w, omega):
    """Compute the rate of a quaternion, q (omega, 0) / 2, from the angular velocity omega in body axes, rad/s.

    The quaternion and the rate, 1/s, are (x, y, z, w); omega is (3).
    """
    a, b, c = omega
    half = constant_like(x, 0.5)
    return (
        half * (w * a + y * c - z * b),
        half * (w * b + z * a - x * c),
        half * (w * c + x * b - y * a),
        -half * (x * a + y * b + z * c),
    )


@kernel
def normalize_quaternion(q, at, k):
    """Normalize the quaternion in q[at : at + 4]; it becomes NaN if its squared length is not finite.

    q is (nq, lanes).
    """
    x, y, z, w = q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k]
    square = x * x + y * y + z * z + w * w
    s = (constant_like(x, 1.0) + nan_unless_finite(square)) / math.sqrt(square)
    q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k] = s * x, s * y, s * z, s * w


@kernel
def add_joint_motion(joint, m, axis, advance, rate):
    """Return the Motion m + S rate, in world axes.

    m is a velocity and `rate` in rad/s or m/s, or m is an acceleration and `rate` in rad/s^2 or m/s^2.
    """
    if joint == PRISMATIC:
        return Motion(m.ang, add3(m.lin, scale3(rate, axis)))
    rotated = Motion(add3(m.ang, scale3(rate, axis)), m.lin)
    if joint == REVOLUTE:
        return rotated
    return Motion(rotated.ang, add3(m.lin, scale3(advance * rate, axis)))


@kernel
def joint_bias(joint, v, axis, advance, rate):
    """Return v x S rate, the velocity-product acceleration c if v is the velocity of the frame.

    v and the result are Motions in world axes, at the joint origin. `rate` is in rad/s or m/s.
    """
    omega = scale3(rate, axis)
    across = cross(v.ang, omega)
    if joint == PRISMATIC:
        zero = zeros_like(axis[0])
        return Motion((zero, zero, zero), across)
    along = cross(v.lin, omega)
    if joint == REVOLUTE:
        return Motion(across, along)
    return Motion(across, add3(along, scale3(advance, across)))


@kernel
def joint_force(joint, axis, advance, f):
    """Return S^T f, the joint force, N m or N, of a Force f in world axes about the joint origin."""
    if joint == REVOLUTE:
        return dot(axis, f.ang)
    if joint == PRISMATIC:
        return dot(axis, f.lin)
    return dot(axis, f.ang) + advance * dot(axis, f.lin)


@kernel
def inertia_along(joint, A, axis, advance):
    """Return A S for an `Inertia` A: the Force, about the same point, of a unit acceleration of the joint."""
    if joint == PRISMATIC:
        return Force(rotate(A.H, axis), symmetric(A.M, axis))
    rotational = Force(symmetric(A.J, axis), rotate_back(A.H, axis))
    if joint == REVOLUTE:
        return rotational
    return Force(
        add3(rotational.ang, scale3(advance, rotate(A.H, axis))),
        add3(rotational.lin, scale3(advance, symmetric(A.M, axis))),
    )


@kernel
def joint_motion(joint, axis, advance):
    """Return S, a Motion in world axes at the joint origin for a unit velocity of the dof."""
    zero = zeros_like(axis[0])
    if joint == PRISMATIC:
        return Motion((zero, zero, zero), axis)
    if joint == REVOLUTE:
        return Motion(axis, (zero, zero, zero))
    return Motion(axis, scale3(advance, axis))


@kernel
def rigid_along(joint, A, axis, advance):
    """Return A S for a `Rigid` A: the Force, about the same point, of a unit acceleration of the joint."""
    if joint == PRISMATIC:
        return Force(cross(A.h, axis), scale3(A.m, axis))
    rotational = Force(symmetric(A.J, axis), cross(axis, A.h))
    if joint == REVOLUTE:
        return rotational
    return Force(
        add3(rotational.ang, scale3(advance, cross(A.h, axis))), add3(rotational.lin, scale3(advance * A.m, axis))
    )
