"""Drag on slender cylinders by strip theory (Morison et al. 1950), and its derivative with respect to the velocity.

A strip at z from the middle of a cylinder of length 2 h moves at u = a + z b normal to the axis, and its drag per
length is - factor |u| u. If |u| is far from zero on the whole cylinder, Gauss-Legendre quadrature computes the
integrals of |u| u and z |u| u to round-off. Otherwise |u| has a kink, or nearly one, and closed forms compute them:

    s = z + m,  u = u0 + s b,  m = a.b / b^2,  |u| = |b| R(s),  R^2 = s^2 + e^2,  e^2 = u0^2 / b^2
    F = |b| (u0 I0 + b I1),  M = |b| (u0 J0 + b J1),  In = integral of s^n R,  Jn = integral of z s^n R

R1 and R2 are the distances of the ends, p = (R1 + R2) / 2 and r = (R2 - R1) / 2 = m h / p the elliptic coordinates.
With q = h^2 - r^2 and L = log((p + h) / (p - h)), the integrals are

    I0 = p (r^2 + h^2) / h + e^2 L / 2           J0 = r (p^2 q / h^2 + 2 r^2 / 3) - m e^2 L / 2
    I1 = 2 r (3 p^2 + r^2) / 3                   J1 = p (3 p^2 q + r^2 (8 h^2 + q)) / (6 h) - e^2 I0 / 4

In all kernels, `c` is a `Strips`, and `da` and `db` are vectors (3).
"""

import math
from typing import Any, NamedTuple

from ...compiling.jit import kernel
from ..lanes.lanes import any_lane, constant_like, epsilon, select, zeros_like
from ..lanes.trig import logarithm
from ..spatial.vectors import Force, add3, cross, dot, scale3, subtract3
from ..tree import parameter_layout as param
from ..tree.layout import parameter

#: Nodes and weights of the Gauss-Legendre quadrature with five points on (-1, 1).
GAUSS_POINTS = (-0.9061798459386640, -0.5384693101056831, 0.0, 0.5384693101056831, 0.9061798459386640)
GAUSS_WEIGHTS = (0.2369268850561891, 0.4786286704993665, 0.5688888888888889, 0.4786286704993665, 0.2369268850561891)


class Strips(NamedTuple):
    """The velocities of the strips of a cylinder, and the quantities of the closed forms above, in world axes.

    `h`, `m`, `R1`, `R2` and `p` are lengths, m, and `e2` is in m^2. `a` (3) and `u0` (3) are in m/s. `b` (3) and
    `slope` are velocities per length, 1/s.
    """

    h: Any
    a: Any
    b: Any
    slope: Any  # |b|
    m: Any
    u0: Any
    e2: Any
    R1: Any
    R2: Any
    p: Any
    is_near: Any  # the closed forms hold in these lanes


@kernel
def strips(i, parameters, lin, omega, axis, k):
    """Return the strips of the body of dof i, whose middle moves at `lin`, with the angular velocity `omega`.

    `lin` (3), m/s, and `omega` (3), rad/s, are relative to the water. `axis` (3) is the unit vector along the cylinder.
    All are in world axes.
    """
    zero, one, half = zeros_like(lin[0]), constant_like(lin[0], 1.0), constant_like(lin[0], 0.5)
    h = zero + half * parameter(parameters, i, param.STRIP_LENGTH, k)  # in all lanes
    a, b = normal_to(axis, lin), cross(omega, axis)
    square = dot(b, b)
    m = dot(a, b) / select(square > zero, square, one)
    u0 = subtract3(a, scale3(m, b))
    e2 = dot(u0, u0) / select(square > zero, square, one)
    R1, R2 = math.sqrt((m - h) * (m - h) + e2), math.sqrt((m + h) * (m + h) + e2)
    p = half * (R1 + R2)
    # the error of the quadrature is about (p / h + sqrt(p^2 / h^2 - 1))^-10 (Trefethen 2008, theorem 4.5)
    is_near = (p + p < constant_like(lin[0], epsilon(lin[0]) ** -0.1) * h) & (square > zero)
    return Strips(h=h, a=a, b=b, slope=math.sqrt(square), m=m, u0=u0, e2=e2, R1=R1, R2=R2, p=p, is_near=is_near)


@kernel
def normal_to(axis, v):
    """Return the part (3) of the vector v (3) that is normal to the unit vector `axis` (3)."""
    return subtract3(v, scale3(dot(axis, v), axis))


@kernel
def strip_drag(i, parameters, lin, omega, axis, k):
    """Compute the drag on a slender cylinder about its middle, a Force in world axes, N m and N.

    `lin` (3), m/s, is the velocity of the middle relative to the water, `omega` (3), rad/s, the angular velocity, and
    `axis` (3) the unit vector along the cylinder, all in world axes.
    """
    c = strips(i, parameters, lin, omega, axis, k)
    force, moment = quadrature_of_drag(c)
    if any_lane(c.is_near):
        near_force, near_moment = closed_form_of_drag(c)
        force, moment = select3(c.is_near, near_force, force), select3(c.is_near, near_moment, moment)
    factor = -parameter(parameters, i, param.STRIP_FACTOR, k)
    return Force(cross(axis, scale3(factor, moment)), scale3(factor, force))


@kernel
def quadrature_of_drag(c):
    """Compute the integrals of |u| u (3), m^3/s^2, and z |u| u (3), m^4/s^2, by Gauss-Legendre quadrature."""
    zero = zeros_like(c.h)
    force, moment = (zero, zero, zero), (zero, zero, zero)
    for j in range(5):
        z = constant_like(c.h, GAUSS_POINTS[j]) * c.h
        u = add3(c.a, scale3(z, c.b))
        drag = scale3(constant_like(c.h, GAUSS_WEIGHTS[j]) * c.h * math.sqrt(dot(u, u)), u)
        force, moment = add3(force, drag), add3(moment, scale3(z, drag))
    return force, moment


@kernel
def closed_form_of_drag(c):
    """Compute the integrals of |u| u (3), m^3/s^2, and z |u| u (3), m^4/s^2, in closed form."""
    I0, I1, J0, J1 = integrals(c, log_of_ends(c))
    return scale3(c.slope, along_both(c, I0, I1)), scale3(c.slope, along_both(c, J0, J1))


@kernel
def along_both(c, x, y):
    """Return the vector x u0 + y b (3) for two numbers x and y."""
    return add3(scale3(x, c.u0), scale3(y, c.b))


@kernel
def integrals(c, L):
    """Compute the numbers I0, m^2, I1, m^3, J0, m^3, and J1, m^4."""
    h, p, m = c.h, c.p, c.m
    half, third = constant_like(h, 0.5), constant_like(h, 1.0 / 3.0)
    r = m * h / p
    p2, r2, h2 = p * p, r * r, h * h
    q = h2 - r2
    of_log = half * c.e2 * L
    I0 = p * (r2 + h2) / h + of_log
    I1 = (r + r) * (p2 + third * r2)
    J0 = r * (p2 * q / h2 + (third + third) * r2) - m * of_log
    J1 = half * third * p * ((p2 + p2 + p2) * q + r2 * (constant_like(h, 8.0) * h2 + q)) / h
    return I0, I1, J0, J1 - half * half * c.e2 * I0


@kernel
def log_of_ends(c):
    """Compute the number L, which its factor e^2 makes zero if one strip does not move and p = h."""
    smallest = constant_like(c.h, epsilon(c.h)) * c.h
    return logarithm((c.p + c.h) / max(c.p - c.h, smallest))


@kernel
def select3(condition, a, b):
    """Return the vector a (3) in lanes in which the condition is true, else b (3)."""
    return select(condition, a[0], b[0]), select(condition, a[1], b[1]), select(condition, a[2], b[2])


# --- derivative -------------------------------------------------------------------------------------------------------


@kernel
def strip_drag_along(i, parameters, v, w, axis, k):
    """Compute the derivative of `strip_drag` at v along w, each the velocity of the middle and the angular velocity.

    All velocities (3) and `axis` (3) are in world axes. The result is a Force, N m and N per unit of w.
    """
    (lin, omega), (w_lin, w_omega) = v, w
    c = strips(i, parameters, lin, omega, axis, k)
    da, db = normal_to(axis, w_lin), cross(w_omega, axis)
    force, moment = quadrature_of_derivative(c, da, db)
    if any_lane(c.is_near):
        near_force, near_moment = closed_form_of_derivative(c, da, db)
        force, moment = select3(c.is_near, near_force, force), select3(c.is_near, near_moment, moment)
    factor = -parameter(parameters, i, param.STRIP_FACTOR, k)
    return Force(cross(axis, scale3(factor, moment)), scale3(factor, force))


@kernel
def quadrature_of_derivative(c, da, db):
    """Compute the derivatives of the integrals by quadrature: the derivative of |u| u is |u| du + u (u . du) / |u|.

    `da` (3) and `db` (3) are changes of a and b. The results (3) have the units of the integrals, if the changes have
    the units of a and b.
    """
    zero, one = zeros_like(c.h), constant_like(c.h, 1.0)
    force, moment = (zero, zero, zero), (zero, zero, zero)
    for j in range(5):
        z = constant_like(c.h, GAUSS_POINTS[j]) * c.h
        u, du = add3(c.a, scale3(z, c.b)), add3(da, scale3(z, db))
        speed = math.sqrt(dot(u, u))
        drag = add3(scale3(speed, du), scale3(dot(u, du) / select(speed > zero, speed, one), u))
        drag = scale3(constant_like(c.h, GAUSS_WEIGHTS[j]) * c.h, drag)
        force, moment = add3(force, drag), add3(moment, scale3(z, drag))
    return force, moment


@kernel
def closed_form_of_derivative(c, da, db):
    """Compute the derivatives (3) of both integrals in closed form, along the changes `da` (3) and `db` (3)."""
    h, m, zero, one = c.h, c.m, zeros_like(c.h), constant_like(c.h, 1.0)
    square = c.slope * c.slope
    d_square = dot(c.b, db) + dot(c.b, db)
    dm = (dot(da, c.b) + dot(c.a, db) - m * d_square) / square
    du0 = subtract3(da, add3(scale3(dm, c.b), scale3(m, db)))
    de2 = (dot(c.u0, du0) + dot(c.u0, du0) - c.e2 * d_square) / square
    # where the end of the cylinder does not move, its distance has no derivative, but does not count either
    half_de2 = constant_like(h, 0.5) * de2
    dR1 = ((m - h) * dm + half_de2) / select(zero < c.R1, c.R1, one)
    dR2 = ((m + h) * dm + half_de2) / select(zero < c.R2, c.R2, one)
    dp = constant_like(h, 0.5) * (dR1 + dR2)
    L = log_of_ends(c)
    I0, I1, J0, J1 = integrals(c, L)
    dI0, dI1, dJ0, dJ1 = derivatives_of_integrals(c, L, I0, dm, dp, de2)
    d_slope = constant_like(h, 0.5) * d_square / c.slope
    d_force = add3(along_both(c, dI0, dI1), add3(scale3(I0, du0), scale3(I1, db)))
    d_moment = add3(along_both(c, dJ0, dJ1), add3(scale3(J0, du0), scale3(J1, db)))
    return (
        add3(scale3(d_slope, along_both(c, I0, I1)), scale3(c.slope, d_force)),
        add3(scale3(d_slope, along_both(c, J0, J1)), scale3(c.slope, d_moment)),
    )


@kernel
def derivatives_of_integrals(c, L, I0, dm, dp, de2):
    """Compute the derivatives of I0, I1, J0 and J1 along changes of m, p and e^2; all are numbers."""
    h, p, m = c.h, c.p, c.m
    half, third, two = constant_like(h, 0.5), constant_like(h, 1.0 / 3.0), constant_like(h, 2.0)
    r = m * h / p
    dr = (dm * h - r * dp) / p
    p2, r2, h2 = p * p, r * r, h * h
    q, dq, dp2, dr2 = h2 - r2, -two * r * dr, two * p * dp, two * r * dr
    # e^2 = (p^2 - h^2) q / h^2, so e^2 dL = - 2 q dp / h
    of_log, d_of_log = half * c.e2 * L, half * de2 * L - q * dp / h
    dI0 = (dp * (r2 + h2) + p * dr2) / h + d_of_log
    dI1 = two * (dr * (p2 + third * r2) + r * (dp2 + third * dr2))
    dJ0 = dr * (p2 * q / h2 + two * third * r2) + r * ((dp2 * q + p2 * dq) / h2 + two * third * dr2)
    dJ0 = dJ0 - dm * of_log - m * d_of_log
    three, eight = constant_like(h, 3.0), constant_like(h, 8.0)
    inner, d_inner = three * p2 * q + r2 * (eight * h2 + q), three * (dp2 * q + p2 * dq) + dr2 * (eight * h2 + q)
    dJ1 = half * third * (dp * inner + p * (d_inner + r2 * dq)) / h
    return dI0, dI1, dJ0, dJ1 - half * half * (de2 * I0 + c.e2 * dI0)
