"""The interface of an adaptive integration method: the functions of its file, which `adaptive_methods` calls.

Each function that a method does not need has a default here. The type of the tableau identifies the method, in values
and in Numba's types. The kernels of this package use these arguments:

* `block` is a `core.tree.layout.Block`, `stepper` a `core.sample.records.Stepper`, `tolerances` a Tolerances.
* `y` and `y_new` (rows, lanes) are the states at the start and at the end of a step. A state has the rows of q, then
  the rows of qd, then other rows; j is the number of a row.
* `rates` (stages, rows, lanes) is `Stepper.rates`: rates of the state, per s. In the entries between the first and the
  last, implicit methods store increments of the state.
* `h` is the length of a step, s, and `theta` a fraction of it: one value for each lane. `lane` is the number of
  one lane.
* `a` is the factor of the identity matrix in the matrix a - J of an implicit step, 1/s.
* `linear` is a `core.linear.linearized_rate.LinearizedRate`.
"""

from collections.abc import Callable
from typing import NamedTuple

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, select, zeros_like
from ..sample import control_layout as controls


@kernel
def keep_error(stepper, tableau, error, k):
    """Return the error of a step, one value for each lane: the step cannot fail in another way."""
    return error


@kernel
def error_or_failure(stepper, tableau, error, k):
    """Return the error of a step, one value for each lane, or controls.FAILURE."""
    failure = stepper.control[controls.FAILURE, k]
    return select(failure > constant_like(error, 0.0), failure, error)


@kernel
def keep_growth(stepper, tableau, growth, lane):
    """Return the ratio of the next step length to this one unchanged."""
    return growth


@kernel
def after_any_step(stepper, tableau, accepted, k):
    """Do nothing after a step: the next one does not depend on it."""


@kernel
def forget_nothing(stepper, tableau, lane):
    """Do nothing where a lane starts again: a step depends on nothing before it."""


@kernel
def polynomial_of_line(tableau, y, y_new, h, rates, j, k):
    """Return the coefficients of theta to theta^4 of the straight line between the ends of a step."""
    change = y_new[j, k] - y[j, k]
    return change, zeros_like(change), zeros_like(change), zeros_like(change)


@kernel
def predict_nothing(stepper, tableau, offset, lane):
    """Do nothing where a step starts elsewhere: nothing predicts it."""


def allocate_nothing(tableau, topology, tables, integrals, state_size, width, dtype, blocks):
    """Return no memory. Called in Python."""


@kernel
def carve_nothing(tableau, memory, b, tables, nq, size):
    """Return no record, because the method needs no additional memory."""


def one_rate_per_stage(tableau):
    """Return the number of rates of a step, which is called in Python too and is therefore not compiled here."""
    return tableau.c.shape[0]


class MethodFunctions(NamedTuple):
    """The functions of a method.

    tableau : type
        Type of its tableau.
    take_step(block, stepper, tableau, tolerances, k)
        Computes the end of a step, `stepper.y_new`, and an estimate of its error, `stepper.change`.
    evaluations(block, stepper, tableau, lane)
        Returns the number of evaluations of the dynamics in a step.
    interpolate(tableau, y, y_new, h, rates, theta, j, k)
        Returns row j of the state at t + theta h.
    polynomial(tableau, y, y_new, h, rates, j, k)
        Returns the coefficients of theta to theta^4 in row j, whose constant term is y[j, k]. Methods whose states
        within a step are not polynomials of fourth degree have the line between the ends.
    error(stepper, tableau, error, k)
        Returns the error of a step, or a number that shortens a step that has failed.
    growth(stepper, tableau, growth, lane)
        Returns the ratio of the next step length to this one, from the ratio that the error allows.
    after_accept(stepper, tableau, accepted, k)
        Stores the prediction of the next step.
    forget(stepper, tableau, lane)
        Discards the prediction where the motion jumps or a new sample starts.
    predict_from(stepper, tableau, offset, lane)
        Sets where the next step starts for its prediction: `offset` steps after the end of the last accepted step.
    detect_stiffness(stepper, tableau, lane)
        Detects whether a sample is stiff for an explicit method.
    rates(tableau)
        Returns the number of rates in `Stepper.rates` that a step needs.
    allocate(tableau, topology, tables, integrals, state_size, width, dtype, blocks)
        Allocates the memory of the method for each block, as a tuple of arrays (blocks, ...) or None. Called in Python.
    carve(tableau, memory, b, tables, nq, size)
        Returns the record `Stepper.linear` of block b in this memory, for nq positions and `size` rows of the state.
    has_quartic : bool
        Whether `polynomial` is the interpolant.
    has_large_stages : bool
        Whether stages are much larger than the change in a step, so that states within it have a larger round-off.
    predicts : bool
        Whether a step predicts the next one. The steps to a stop that is near are then of equal length.
    solves_saved_states : bool
        Whether the states at saved times are the ends of shorter steps, because the interpolant has a lower order.
    """

    tableau: type
    take_step: Callable
    evaluations: Callable
    interpolate: Callable
    polynomial: Callable = polynomial_of_line
    error: Callable = keep_error
    growth: Callable = keep_growth
    after_accept: Callable = after_any_step
    forget: Callable = forget_nothing
    predict_from: Callable = predict_nothing
    detect_stiffness: Callable = forget_nothing
    rates: Callable = one_rate_per_stage
    allocate: Callable = allocate_nothing
    carve: Callable = carve_nothing
    has_quartic: bool = False
    has_large_stages: bool = False
    predicts: bool = False
    solves_saved_states: bool = False
