"""Motion subspaces S of the joints: (axis, 0) revolute, (0, axis) prismatic, (axis, advance axis) screw.

`axis` is the joint's direction in world axes, `advance` the travel along it per unit of q. The branches are on a
number that all lanes share; the revolute joint, by far the most common, does not pay for the others.

A free or spherical joint is six or three such joints at one point, with the axes x, y and z of the body that the last
of them carries. Unlike those of a sequence, these axes all move with that body.
"""

import math

from ..simd.jit import kernel
from ..simd.lanes import constant_like
from ..simd.trig import sincos
from ..spatial.vectors import Force, Motion, add3, cross, dot, rotate, rotate_back, scale3, symmetric, turn_about_z
from .layout import PRISMATIC, REVOLUTE


@kernel
def joint_rotation(joint, R, q):
    """Turn the axes R about their own z by the joint's angle."""
    if joint == PRISMATIC:
        return R
    s, c = sincos(q)
    return turn_about_z(R, s, c)


@kernel
def joint_travel(joint, r, axis, advance, q):
    """Move the joint origin along the axis by the travel of the joint."""
    if joint == REVOLUTE:
        return r
    return add3(r, scale3(advance * q, axis))


@kernel
def quaternion_rotation(x, y, z, w):
    """The rotation of a quaternion, which need not have unit length: an integrator's stages do not keep it."""
    s = constant_like(x, 2.0) / (x * x + y * y + z * z + w * w)
    one = constant_like(x, 1.0)
    return (
        *(one - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)),
        *(s * (x * y + z * w), one - s * (x * x + z * z), s * (y * z - x * w)),
        *(s * (x * z - y * w), s * (y * z + x * w), one - s * (x * x + y * y)),
    )


@kernel
def quaternion_rate(x, y, z, w, spin):
    """Rate of a quaternion whose body turns with the angular velocity `spin` in its own axes: q (spin, 0) / 2."""
    a, b, c = spin
    half = constant_like(x, 0.5)
    return (
        half * (w * a + y * c - z * b),
        half * (w * b + z * a - x * c),
        half * (w * c + x * b - y * a),
        -half * (x * a + y * b + z * c),
    )


@kernel
def normalize_quaternion(q, at, k):
    """Give the quaternion in q[at : at + 4] unit length; NaN if that is beyond the range."""
    x, y, z, w = q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k]
    square = x * x + y * y + z * z + w * w
    s = (constant_like(x, 1.0) + (square - square)) / math.sqrt(square)
    q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k] = s * x, s * y, s * z, s * w


@kernel
def add_joint_motion(joint, m, axis, advance, rate):
    """m + S rate"""
    if joint == PRISMATIC:
        return Motion(m.ang, add3(m.lin, scale3(rate, axis)))
    turning = Motion(add3(m.ang, scale3(rate, axis)), m.lin)
    if joint == REVOLUTE:
        return turning
    return Motion(turning.ang, add3(m.lin, scale3(advance * rate, axis)))


@kernel
def joint_bias(joint, v, axis, advance, rate):
    """v x S rate: the acceleration that the joint's axis gains because it moves with the body."""
    spin = scale3(rate, axis)
    across = cross(v.ang, spin)
    if joint == PRISMATIC:
        return Motion(scale3(rate - rate, axis), across)
    along = cross(v.lin, spin)
    if joint == REVOLUTE:
        return Motion(across, along)
    return Motion(across, add3(along, scale3(advance, across)))


@kernel
def joint_force(joint, axis, advance, f):
    """S^T f"""
    if joint == REVOLUTE:
        return dot(axis, f.ang)
    if joint == PRISMATIC:
        return dot(axis, f.lin)
    return dot(axis, f.ang) + advance * dot(axis, f.lin)


@kernel
def inertia_along(joint, A, axis, advance):
    """A S"""
    if joint == PRISMATIC:
        return Force(rotate(A.H, axis), symmetric(A.M, axis))
    turning = Force(symmetric(A.J, axis), rotate_back(A.H, axis))
    if joint == REVOLUTE:
        return turning
    return Force(
        add3(turning.ang, scale3(advance, rotate(A.H, axis))),
        add3(turning.lin, scale3(advance, symmetric(A.M, axis))),
    )


@kernel
def joint_motion(joint, axis, advance):
    """S"""
    zero = axis[0] - axis[0]
    if joint == PRISMATIC:
        return Motion((zero, zero, zero), axis)
    if joint == REVOLUTE:
        return Motion(axis, (zero, zero, zero))
    return Motion(axis, scale3(advance, axis))


@kernel
def rigid_along(joint, A, axis, advance):
    """A S of a rigid inertia."""
    if joint == PRISMATIC:
        return Force(cross(A.h, axis), scale3(A.m, axis))
    turning = Force(symmetric(A.J, axis), cross(axis, A.h))
    if joint == REVOLUTE:
        return turning
    return Force(add3(turning.ang, scale3(advance, cross(A.h, axis))), add3(turning.lin, scale3(advance * A.m, axis)))
