"""Dense output: the continuous extension of a step, for each family of methods."""

from ...compiling.jit import choose, kernel
from ..lanes.lanes import constant_like
from .radau_tableau import is_radau
from .runge_kutta import combine, interpolate_runge_kutta, polynomial_of_runge_kutta
from .tableaus import is_rosenbrock


@kernel
def interpolate_rosenbrock(tableau, y, y_new, h, rates, theta, j, k):
    """Compute row j of the continuous extension at t + theta h: see `RosenbrockTableau`."""
    stages, one = tableau.dense.shape[1], constant_like(theta, 1.0)
    bend = combine(tableau.dense[0], stages, rates, j, k) + theta * (
        combine(tableau.dense[1], stages, rates, j, k) + theta * combine(tableau.dense[2], stages, rates, j, k)
    )
    return y[j, k] + theta * (y_new[j, k] - y[j, k] + (one - theta) * bend)


@kernel
def polynomial_of_rosenbrock(tableau, y, y_new, h, rates, j, k):
    """Return the coefficients of theta to theta^4 in the continuous extension of row j: see `RosenbrockTableau`."""
    stages, change = tableau.dense.shape[1], y_new[j, k] - y[j, k]
    first = combine(tableau.dense[0], stages, rates, j, k)
    second = combine(tableau.dense[1], stages, rates, j, k)
    third = combine(tableau.dense[2], stages, rates, j, k)
    return change + first, second - first, third - second, -third


@kernel
def interpolate_radau(tableau, y, y_new, h, rates, theta, j, k):
    """Compute row j of the polynomial of collocation at t + theta h, whose order is s + 1: see `RadauTableau`."""
    x, stages = theta - constant_like(theta, 1.0), tableau.polynomial.shape[0]
    total = constant_like(theta, 0.0) * theta
    for m in range(stages - 1, -1, -1):
        coefficient = constant_like(theta, tableau.polynomial[m, 0]) * rates[1, j, k]
        for i in range(1, stages):
            coefficient = coefficient + constant_like(theta, tableau.polynomial[m, i]) * rates[i + 1, j, k]
        total = x * (coefficient + total)
    return y_new[j, k] + total


interpolate_rates = choose(lambda tableau, *_: is_rosenbrock(tableau), interpolate_rosenbrock, interpolate_runge_kutta)

# Compute row j of the state at t + theta h, from the rates of the step. Saved states of a Radau method are not
# interpolated, because states within a step have a lower order (`saved_states`).
interpolate = choose(
    is_radau,
    interpolate_radau,
    lambda tableau, y, y_new, h, rates, theta, j, k: interpolate_rates(tableau, y, y_new, h, rates, theta, j, k),
)

polynomial_of_rates = choose(
    lambda tableau, *_: is_rosenbrock(tableau), polynomial_of_rosenbrock, polynomial_of_runge_kutta
)


@kernel
def polynomial_of_line(tableau, y, y_new, h, rates, j, k):
    """Return the coefficients of theta to theta^4 of the straight line between the ends of a step."""
    change = y_new[j, k] - y[j, k]
    return change, change - change, change - change, change - change


# Return the coefficients of theta to theta^4 in row j of the state at t + theta h, for each family of methods. The
# constant term is y[j, k]. Methods that have no states within a step have a line.
polynomial_of_row = choose(
    is_radau,
    polynomial_of_line,
    lambda tableau, y, y_new, h, rates, j, k: polynomial_of_rates(tableau, y, y_new, h, rates, j, k),
)
