"""Inputs: values that a program changes between the steps of a stepper, in place of signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..common.pickles import new
from ..common.real_arrays import FloatArray, excerpt, finite_array, real_array
from ..errors import ArgumentError
from .signal_arithmetic import AddsSignals

if TYPE_CHECKING:
    from .signals import Signal


@dataclass(frozen=True, eq=False)
class Input(AddsSignals):
    """A value for each sample that stays in effect until the program changes it: `stepper.inputs[name][:] = ...`.

    Arguments that expect a signal also accept an Input, and so do the gains `kp` and `kd` of `PID`. Inputs with the
    same name share one value. Like signals, inputs can be added to signals and multiplied by numbers: the sum
    `rb.Signal.sines(1.0, 2.0) + 0.5 * rb.Input("gust")` is a signal.

    Only a stepper can change the value. In `simulate`, studies and `fit`, the input is the constant `value`.

    Parameters
    ----------
    name : str
        The key in `Stepper.inputs`.
    value : float or one for each sample
        The value at the start of each episode.
    lower, upper : float
        Range of the value. A smaller value acts as `lower`, and a larger one as `upper`.

    Raises
    ------
    ArgumentError
        If the name is empty or not a string, the value is not finite or beyond its range, or `lower` exceeds `upper`.

    Notes
    -----
    The derivatives of an input are zero, so a PID whose reference is an input damps the velocity of the joint.

    If an input of `PrescribedPosition` or `PrescribedVelocity` changes, the motion of the joint jumps, without an
    impulse on other joints. Use `PrescribedAcceleration` or a controller if the change is large.

    A digital controller reads an input at its sampling instants. At an instant that coincides with the end of a call to
    `step`, it reads the value that was set before this call.

    Examples
    --------
    >>> import rbchain as rb
    >>> arm = rb.Model.serial_chain(2)
    >>> wind = rb.Wrench("link2", force=(rb.Input("gust", 1.0), 0.0, 0.0))
    >>> stepper = arm.stepper([[0.0, 0.0], [0.0, 0.0]], step=1e-3, forces=[wind])
    >>> stepper.step(5)
    >>> stepper.inputs["gust"][:] = [2.0, -2.0]
    >>> stepper.step(5)
    """

    name: str
    value: npt.ArrayLike = 0.0
    lower: float = -np.inf
    upper: float = np.inf

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ArgumentError(f"the name of an input is {excerpt(self.name)}; expected a string, such as 'gust'")
        value = np.array(finite_array(f"value of input {self.name!r}", self.value, ArgumentError))
        lower, upper = (real_array(f"range of input {self.name!r}", x, ArgumentError) for x in (self.lower, self.upper))
        if lower.ndim or upper.ndim or not lower <= upper:
            raise ArgumentError(
                f"input {self.name!r}: lower is {excerpt(self.lower)} and upper is {excerpt(self.upper)}; expected two "
                "numbers, lower <= upper"
            )
        if not ((value >= lower) & (value <= upper)).all():
            raise ArgumentError(
                f"value of input {self.name!r} is {excerpt(value.tolist())}; expected numbers from {lower:g} to "
                f"{upper:g}"
            )
        object.__setattr__(self, "value", value if value.ndim else float(value))
        object.__setattr__(self, "lower", float(lower))
        object.__setattr__(self, "upper", float(upper))

    def derivative(self) -> Signal:
        """Return the derivative of the input with respect to time, which is zero between changes."""
        result: Signal = (1.0 * self).derivative()
        return result


class InputTerm(NamedTuple):
    """A multiple of an input in a signal: its name, the factor (...), the value (...) at the start, and its range."""

    name: str
    factor: FloatArray
    value: FloatArray
    lower: float = -np.inf
    upper: float = np.inf

    def __reduce__(self) -> tuple[Any, ...]:
        return new, ("InputTerm", *self)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch; () if all samples share the values."""
        return np.broadcast_shapes(self.factor.shape, self.value.shape)

    def times(self, factor: FloatArray) -> InputTerm:
        """Return a multiple of the term."""
        return self._replace(factor=self.factor * factor)

    def flat(self, batch: tuple[int, ...]) -> InputTerm:
        """Return the term with a value for each sample of a batch, along one axis."""
        factor, value = (np.broadcast_to(x, batch).reshape(-1) for x in (self.factor, self.value))
        return self._replace(factor=factor, value=value)

    def of_sample(self, i: Any, batch_shape: tuple[int, ...]) -> InputTerm:
        """Return the term of one sample of a batch."""
        factor, value = (np.broadcast_to(x, batch_shape)[i] for x in (self.factor, self.value))
        return self._replace(factor=factor, value=value)


def with_inputs(
    constants: FloatArray, terms: Sequence[InputTerm], values: Mapping[str, FloatArray] | None = None
) -> FloatArray:
    """Return constant coefficients (..., pieces) of a signal plus its inputs. The default is their initial values."""
    for term in terms:
        value = term.value if values is None else values[term.name]
        constants = constants + (term.factor * np.clip(value, term.lower, term.upper))[..., None]
    return constants


@dataclass(frozen=True)
class InputPlace:
    """The coefficients of a signal with inputs, in the arrays of the kernels.

    Attributes
    ----------
    terms : tuple of InputTerm
    constants : (samples, pieces) array
        Constant coefficients of the signal without its inputs.
    in_table : bool
        Whether the coefficients are in the tables of all signals, or in a column of the numbers of the samples.
    at : (samples, pieces) or (1,) array of int
        The places of the coefficients in the flat tables, or the column.
    """

    terms: tuple[InputTerm, ...]
    constants: np.ndarray
    in_table: bool
    at: np.ndarray

    def write(self, values: Mapping[str, FloatArray], numbers: np.ndarray, tables: np.ndarray) -> np.ndarray:
        """Write the coefficients for values (samples,) of the inputs to arrays, and return them (samples, pieces)."""
        found = with_inputs(self.constants, self.terms, values)
        if not found.size:  # the numbers of an empty batch have a row for kernels that read one
            return found
        if self.in_table:
            tables[self.at] = found
        else:
            numbers[:, self.at] = found
        return found
