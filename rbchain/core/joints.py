"""What distinguishes the joints: S = (axis, 0) revolute, (0, axis) prismatic, (axis, advance axis) screw.

`axis` is the joint's direction in world axes, `advance` the travel along it per unit of q. The branches are on a
number that all lanes share; the revolute joint, by far the most common, does not pay for the others.
"""

from .jit import kernel
from .layout import PRISMATIC, REVOLUTE
from .spatial import Force, Motion, add3, cross, dot, rotate, rotate_back, scale3, symmetric, turn_about_z
from .trig import sincos


@kernel
def joint_rotation(joint, R, q):
    """Turn the axes R about their own z by the joint's angle."""
    if joint == PRISMATIC:
        return R
    s, c = sincos(q)
    return turn_about_z(R, s, c)


@kernel
def joint_travel(joint, r, axis, advance, q):
    """Move the joint origin along the axis by what the joint has travelled."""
    if joint == REVOLUTE:
        return r
    return add3(r, scale3(advance * q, axis))


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
