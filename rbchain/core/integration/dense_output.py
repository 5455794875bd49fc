"""Dense output: the continuous extension of a step, for each family of methods."""

from ..simd.jit import choose, kernel
from ..simd.lanes import constant_like
from .radau_tableau import is_radau
from .runge_kutta import combine, interpolate_runge_kutta
from .tableaus import is_rosenbrock


@kernel
def interpolate_rosenbrock(tableau, y, y_new, h, rates, theta, j, k):
    """Compute row j of the continuous extension at t + theta h: see `RosenbrockTableau`."""
    stages, one = tableau.dense.shape[1], constant_like(theta, 1.0)
    bend = combine(tableau.dense[0], stages, rates, j, k) + theta * (
        combine(tableau.dense[1], stages, rates, j, k) + theta * combine(tableau.dense[2], stages, rates, j, k)
    )
    return y[j, k] + theta * (y_new[j, k] - y[j, k] + (one - theta) * bend)


interpolate_rates = choose(lambda tableau, *_: is_rosenbrock(tableau), interpolate_rosenbrock, interpolate_runge_kutta)

# Compute row j of the state at t + theta h, from the rates of the step. Steps of a Radau method end at the saved times,
# because states within a step have a lower order.
interpolate = choose(
    is_radau,
    lambda tableau, y, y_new, h, rates, theta, j, k: y_new[j, k],
    lambda tableau, y, y_new, h, rates, theta, j, k: interpolate_rates(tableau, y, y_new, h, rates, theta, j, k),
)
