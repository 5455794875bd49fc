"""Rotation vectors: the logarithm of a rotation, and its rate.

A rotation by the angle theta about the unit vector n has the rotation vector phi = theta n. With the angular velocity w
in the outer axes, its rate is (Bullo and Murray 1995; Chirikjian 2012, section 10.3)

    d phi / dt = J^-1 w = w - phi x w / 2 + beta phi x (phi x w),   beta = (1 - (theta / 2) cot(theta / 2)) / theta^2.
"""

import math
from typing import NamedTuple

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, select, zeros_like
from ..lanes.trig import arctan2
from .vectors import add3, cross, dot, scale3, subtract3

# Below this squared angle, series give beta and its derivative, because the closed forms lose digits.
SERIES_LIMIT = 1.0
# |B_2m| / (2 m)!, with the Bernoulli numbers B: the coefficients of beta = sum of BETA[m] theta^(2 m).
BETA = (
    *(8.3333333333333329e-2, 1.3888888888888889e-3, 3.3068783068783069e-5, 8.2671957671957672e-7),
    *(2.0876756987868099e-8, 5.2841901386874932e-10, 1.3382536530684679e-11, 3.3896802963225829e-13),
    *(8.5860620562778446e-15, 2.1748686985580619e-16, 5.5090028283602295e-18),
)


class RotationVector(NamedTuple):
    """The rotation vector phi (3), rad, with beta and its derivative with respect to theta^2."""

    phi: tuple
    beta: float
    beta_rate: float


@kernel
def rotation_vector(R):
    """Compute the rotation vector of a rotation matrix R (9), for angles up to pi.

    Take the quaternion from its largest component (Shepperd 1978), which is accurate for all angles. At the angle pi,
    phi and -phi are the same rotation; the result is one of them.
    """
    w, x, y, z = quaternion_of(R)
    s = math.sqrt(x * x + y * y + z * z)
    one, zero = constant_like(s, 1.0), constant_like(s, 0.0)
    half, is_turned = arctan2(s, w), s > zero
    scale = select(is_turned, (half + half) / select(is_turned, s, one), one + one)
    phi = (scale * x, scale * y, scale * z)
    beta, beta_rate = beta_and_rate(half, s, w)
    return RotationVector(phi, beta, beta_rate)


@kernel
def quaternion_of(R):
    """Compute the unit quaternion (w, x, y, z) of a rotation matrix R (9), with w >= 0."""
    one = constant_like(R[0], 1.0)
    x, y, z = R[7] - R[5], R[2] - R[6], R[3] - R[1]
    xy, xz, yz = R[1] + R[3], R[2] + R[6], R[5] + R[7]
    largest = R[0] + R[4] + R[8]
    found = (one + largest, x, y, z)
    found = select4(R[0] > largest, (x, one + R[0] - R[4] - R[8], xy, xz), found)
    largest = max(largest, R[0])
    found = select4(R[4] > largest, (y, xy, one - R[0] + R[4] - R[8], yz), found)
    largest = max(largest, R[4])
    found = select4(R[8] > largest, (z, xz, yz, one - R[0] - R[4] + R[8]), found)
    w, x, y, z = found
    scale = one / math.sqrt(w * w + x * x + y * y + z * z)
    scale = select(w < constant_like(w, 0.0), -scale, scale)
    return scale * w, scale * x, scale * y, scale * z


@kernel
def select4(condition, a, b):
    """Return the four numbers a (4) in lanes in which the condition is true, else b (4)."""
    return (
        select(condition, a[0], b[0]),
        select(condition, a[1], b[1]),
        select(condition, a[2], b[2]),
        select(condition, a[3], b[3]),
    )


@kernel
def beta_and_rate(half, s, w):
    """Compute beta and d beta / d(theta^2) from theta / 2, its sine s and its cosine w.

    All are numbers; `half` is theta / 2, rad. The derivative is - 1 / theta^4 + cot(theta / 2) / (4 theta^3) + 1 / (8
    theta^2 sin^2(theta / 2)).
    """
    one, two, four = constant_like(half, 1.0), constant_like(half, 2.0), constant_like(half, 4.0)
    u = four * half * half
    is_small = u < constant_like(half, SERIES_LIMIT)
    theta, sine = select(is_small, one, two * half), select(is_small, one, s)
    cot, squared = w / sine, theta * theta
    beta = (one - theta * cot / two) / squared
    rate = (one / (two * sine * sine) + cot / theta) / (four * squared) - one / (squared * squared)
    series, series_rate = zeros_like(u), zeros_like(u)
    for m in range(len(BETA) - 1, -1, -1):
        series_rate = series_rate * u + series
        series = series * u + constant_like(half, BETA[m])
    return select(is_small, series, beta), select(is_small, series_rate, rate)


@kernel
def rotation_vector_rate(r, w):
    """Compute J^-1 w, the rate of the rotation vector r at the angular velocity w in the outer axes.

    r is a RotationVector; w (3) and the result (3) are in rad/s.
    """
    turned = cross(r.phi, w)
    twice = cross(r.phi, turned)
    half = constant_like(r.beta, 0.5)
    return (
        w[0] - half * turned[0] + r.beta * twice[0],
        w[1] - half * turned[1] + r.beta * twice[1],
        w[2] - half * turned[2] + r.beta * twice[2],
    )


@kernel
def moment_of_rotation_vector(r, g):
    """Compute J^-T g (3): the moment, in the outer axes, of generalized forces g (3) along the rotation vector r.

    Both are in N m; r is a RotationVector.
    """
    minus = (-r.phi[0], -r.phi[1], -r.phi[2])
    return rotation_vector_rate(RotationVector(minus, r.beta, r.beta_rate), g)


@kernel
def rotation_vector_rate_along(r, d, w):
    """Compute the derivative of J^-1 w along the change d of the rotation vector r, at constant w.

    r is a RotationVector, d (3) is in rad, and w (3) is in the outer axes, rad/s. The result (3) is in rad/s.
    """
    turned = cross(r.phi, w)
    moved = cross(d, w)
    two, half = constant_like(r.beta, 2.0), constant_like(r.beta, 0.5)
    second = add3(cross(d, turned), cross(r.phi, moved))
    along_r = scale3(two * r.beta_rate * dot(r.phi, d), cross(r.phi, turned))
    return add3(subtract3(scale3(r.beta, second), scale3(half, moved)), along_r)


@kernel
def moment_of_rotation_vector_along(r, d, g):
    """Compute the derivative of J^-T g along the change d of the rotation vector r, at constant g.

    r is a RotationVector, d (3) is in rad, and g (3) and the result (3) are in N m.
    """
    minus, minus_d = (-r.phi[0], -r.phi[1], -r.phi[2]), (-d[0], -d[1], -d[2])
    return rotation_vector_rate_along(RotationVector(minus, r.beta, r.beta_rate), minus_d, g)
