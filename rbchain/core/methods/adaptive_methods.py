"""The adaptive integration methods: the functions of each, chosen at compile time by the type of its tableau.

A method is one file that fills a `MethodFunctions`, and one entry of METHODS.
"""

from ...compiling.jit import choose_among
from .dop853 import EIGHTH_ORDER
from .explicit_steps import RUNGE_KUTTA
from .radau import RADAU
from .rosenbrock import ROSENBROCK

METHODS = (RUNGE_KUTTA, EIGHTH_ORDER, ROSENBROCK, RADAU)


def _number_of(tableau):
    """Return the number of the method in METHODS for a tableau or its Numba type."""
    kind = getattr(tableau, "instance_class", type(tableau))
    return next(number for number, method in enumerate(METHODS) if method.tableau is kind)


def _of_method(name, position):
    """Return the function `name` of the method whose tableau is the argument number `position`."""
    functions = tuple(getattr(method, name) for method in METHODS)
    return choose_among(lambda *arguments: _number_of(arguments[position]), functions)


compute_step = _of_method("take_step", 2)
evaluations_of_step = _of_method("evaluations", 2)
error_of_step = _of_method("error", 1)
growth_of_iteration = _of_method("growth", 1)
keep_prediction = _of_method("after_accept", 1)
forget_prediction = _of_method("forget", 1)
predict_from = _of_method("predict_from", 1)
update_stiffness = _of_method("detect_stiffness", 1)
interpolate = _of_method("interpolate", 0)
polynomial_of_row = _of_method("polynomial", 0)
rates_of_step = _of_method("rates", 0)
memory_of_method = _of_method("allocate", 0)
record_of_method = _of_method("carve", 0)


def has_quartic(tableau, *_):
    """Whether the states within a step are the polynomials of `polynomial_of_row`."""
    return METHODS[_number_of(tableau)].has_quartic


def has_large_stages(tableau, *_):
    """Whether stages are much larger than the change in a step."""
    return METHODS[_number_of(tableau)].has_large_stages


def predicts(tableau, *_):
    """Whether a step predicts the next one."""
    return METHODS[_number_of(tableau)].predicts


def solves_saved_states(tableau, *_):
    """Whether the states at saved times are the ends of shorter steps."""
    return METHODS[_number_of(tableau)].solves_saved_states
