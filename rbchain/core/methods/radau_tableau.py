"""The Radau IIA method of order 9 as a table of numbers.

Sources: Hairer and Wanner (1996), *Solving Ordinary Differential Equations II*, sections IV.5 and IV.8; Hairer and
Wanner (1999), "Stiff differential equations solved by Radau methods", J. Comput. Appl. Math. 111.
"""

import functools
from typing import NamedTuple

import numpy as np

STAGES = 5
# The stages converge until the estimated error of their iteration is below this fraction of the tolerance.
CONVERGENCE = 0.03
ROUND_OFF = 50.0  # changes of the stages below this multiple of the machine precision are round-off


class RadauTableau(NamedTuple):
    """A collocation method: the increments z_1 to z_s of a step of length h from y satisfy, for i = 1 to s,

        f(t + c_i h, y + z_i) = sum over j of inverse[i - 1, j - 1] z_j / h.

    The end of the step is y + z_s. The numbers `c` are numbered as the rates in `Stepper.rates`. Number 0 is the start
    of the step, 1 to s are the stages, and s + 1 is the end of the step.

    `inverse` (s, s) is the inverse of the Runge-Kutta matrix: `from_modes` B `to_modes`, (s, s) each, with a block
    diagonal matrix B. The first block is the real eigenvalue, the others are [[alpha, -beta], [beta, alpha]].
    `eigenvalues` (blocks, 2) has alpha and beta of each block. The other arrays are c (s + 2,), `error` (s,),
    `legendre` (s - 1, s) and `polynomial` (s, s).

    With a = eigenvalues[0, 0] / h, the difference from an embedded method of order s is

        (a - J)^-1 (f(t, y) + sum of error[j] z_j / h).

    The Legendre coefficients of order 1 to 4 of the rate in the step are `legendre` z / h. With g = `polynomial` z, the
    polynomial of the step at time t + h + x h is y + z_s + sum of g_m x^(m + 1). `order` is the order of the method
    plus one. The iteration continues until the error of the stages is below the share `convergence` of the tolerances.
    Changes of the stages below the share `round_off` of the tolerances count as round-off.
    """

    inverse: np.ndarray
    from_modes: np.ndarray
    to_modes: np.ndarray
    eigenvalues: np.ndarray
    c: np.ndarray
    error: np.ndarray
    legendre: np.ndarray
    polynomial: np.ndarray
    order: int
    convergence: float
    round_off: float


def is_radau(tableau: object, *_: object) -> bool:
    """Whether a tableau, or the Numba type of a tableau, belongs to a Radau method."""
    return getattr(tableau, "instance_class", type(tableau)) is RadauTableau


def radau_tableau(tolerance: float, round_off: float) -> RadauTableau:
    """Return the method for a relative tolerance, and a precision with this relative round-off."""
    share = ROUND_OFF * round_off / tolerance
    return _coefficients()._replace(convergence=float(min(1.0, max(CONVERGENCE, share))), round_off=float(share))


@functools.cache
def _coefficients() -> RadauTableau:
    """Return the method without the number that depends on the tolerance."""
    s = STAGES
    legendre = np.polynomial.legendre
    powers = np.arange(s)
    c = radau_nodes(s)
    inverse = np.linalg.inv(c[:, None] ** (powers + 1) / (powers + 1) @ np.linalg.inv(c[:, None] ** powers))
    values, vectors = np.linalg.eig(inverse)
    real = np.argmin(abs(values.imag))
    columns, eigenvalues = [vectors[:, real].real], [(values[real].real, 0.0)]
    for i in np.flatnonzero(values.imag > 1e-6):
        columns += [vectors[:, i].real, -vectors[:, i].imag]
        eigenvalues.append((values[i].real, values[i].imag))
    from_modes = np.array(columns).T
    # The embedded formula is the quadrature of order s with the weight 1 / eigenvalue at the start of the step.
    moments = 1.0 / (powers + 1)
    moments[0] -= 1.0 / eigenvalues[0][0]
    weights = np.linalg.solve((c[:, None] ** powers).T, moments)
    # The polynomial passes through the start of the step, where z is 0, and through the stages; z_s is subtracted.
    at_points = np.vstack([np.zeros(s), np.eye(s)])[:-1] - np.eye(s)[-1]
    return RadauTableau(
        inverse=inverse,
        from_modes=from_modes,
        to_modes=np.linalg.inv(from_modes),
        eigenvalues=np.array(eigenvalues),
        c=np.r_[0.0, c, 1.0],
        error=eigenvalues[0][0] * (weights @ inverse - np.eye(s)[-1]),
        legendre=(np.linalg.inv(legendre.legvander(2.0 * c - 1.0, s - 1)) @ inverse)[1:],
        polynomial=np.linalg.solve((np.r_[0.0, c][:-1, None] - 1.0) ** (powers + 1), at_points),
        order=2 * s,
        convergence=1.0,
        round_off=0.0,
    )


def radau_nodes(s: int = STAGES) -> np.ndarray:
    """Return the times (s,) of the stages in a step of length 1: the zeros of P_s - P_(s - 1).

    P are the Legendre polynomials on [0, 1].
    """
    legendre = np.polynomial.legendre.Legendre
    difference = legendre.basis(s, [0.0, 1.0]) - legendre.basis(s - 1, [0.0, 1.0])
    nodes = np.sort(difference.roots().real)
    nodes -= difference(nodes) / difference.deriv()(nodes)  # a Newton step, for the last digits
    nodes[-1] = 1.0
    return nodes
