"""Sums, multiples and derivatives of signals, which are exact. `Signal` and `RandomSignal` have these operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.pickles import new
from ..common.real_arrays import FloatArray, excerpt, finite_array
from ..common.values import Value
from ..errors import ArgumentError

if TYPE_CHECKING:
    from .random_signals import RandomSignal
    from .signals import Signal


class AddsSignals(Value):
    """Base class of signals, with the operators +, - and * and /. The second operand of * and / is a number.

    Examples
    --------
    >>> import rbchain as rb
    >>> ramp = 2.0 * rb.Signal.polynomial([0.0, 1.0]) - 3.0
    >>> ramp([0.0, 5.0]).tolist()
    [-3.0, 7.0]
    """

    __array_ufunc__ = None  # so that NumPy leaves array * signal to the signal

    def __add__(self, other: Any) -> Any:
        return _combined(self, other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _combined(self, other, -1.0)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, factor: npt.ArrayLike) -> Any:
        if isinstance(factor, AddsSignals):
            raise ArgumentError(
                "the product of two signals is not a signal; multiply a signal by a number, or use UserForces"
            )
        number = finite_array("factor", factor, ArgumentError)
        terms = [term._replace(factor=number * term.factor) for term in _terms_of(self)]
        return _made(terms, multiple_of(_rest_of(self), number))

    __rmul__ = __mul__

    def __truediv__(self, divisor: npt.ArrayLike) -> Any:
        number = finite_array("divisor", divisor, ArgumentError)
        if not number.all():
            raise ArgumentError(f"divisor is {excerpt(divisor)}; expected numbers other than zero")
        return self * (1.0 / number)

    def __neg__(self) -> Any:
        return self * -1.0


class SignalTerm(NamedTuple):
    """A multiple of a random signal or of a derivative of it, with one factor, or one for each sample."""

    factor: FloatArray
    signal: RandomSignal
    order: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return new, ("SignalTerm", *self)


@dataclass(frozen=True, eq=False)
class SignalSum(AddsSignals):
    """A sum of multiples of random signals and of their derivatives, and a signal.

    Attributes
    ----------
    terms : tuple of SignalTerm
        Factors, random signals, and orders of the derivatives.
    rest : Signal
    """

    internal_names: ClassVar[tuple[str, ...]] = ("replaced",)
    terms: tuple[SignalTerm, ...]
    rest: Signal

    def replaced(self, function: Callable[[RandomSignal], Any]) -> Any:
        """Return the sum of the results of a function of the random signals, which are random signals or signals."""
        found, results = self.rest, dict[int, Any]()
        for factor, signal, order in self.terms:
            if id(signal) not in results:  # a signal and its derivative belong to one realization
                results[id(signal)] = function(signal)
            result = results[id(signal)]
            for _ in range(order):
                result = result.derivative()
            found = found + factor * result
        return found

    def derivative(self) -> SignalSum:
        """Return the derivative of the sum with respect to time.

        Raises
        ------
        ArgumentError
            If a term has no derivative, or if the rest jumps.
        """
        for term in self.terms:
            term.signal.refuse_derivative()
        terms = tuple(term._replace(order=term.order + 1) for term in self.terms)
        return SignalSum(terms, self.rest.derivative())

    @explains_calls(is_method=True, samples="sample_ids")
    def signal(self, duration: float, sample_ids: npt.ArrayLike = 0) -> Signal:
        """Return the signals of some samples, as `RandomSignal.signal` does.

        The random signals have the channels 0, 1, 2, ...
        """
        from .random_signals import numbers_of_samples

        channels, numbers = iter(range(len(self.terms))), numbers_of_samples(sample_ids)
        return self.replaced(lambda term: term.realized(duration, numbers, 0, next(channels)))


def _terms_of(value: Any) -> tuple[SignalTerm, ...]:
    """Return the random signals of a signal, with their factors and orders."""
    if isinstance(value, SignalSum):
        return value.terms
    return (SignalTerm(np.ones(()), value),) if hasattr(value, "realized") else ()


def _rest_of(value: Any) -> Signal:
    """Return the part of a signal that is not random."""
    from .signals import Signal, as_signal

    if isinstance(value, SignalSum):
        return value.rest
    return Signal.constant(0.0) if hasattr(value, "realized") else as_signal("a term of a sum", value)


def _combined(a: Any, b: Any, sign: float) -> Any:
    """Return a + sign b. A random signal that occurs twice is one term."""
    terms = list(_terms_of(a))
    for factor, signal, order in _terms_of(b):
        own = [i for i, other in enumerate(terms) if other.signal is signal and other.order == order]
        if own:
            terms[own[0]] = SignalTerm(terms[own[0]].factor + sign * factor, signal, order)
        else:
            terms.append(SignalTerm(sign * factor, signal, order))
    return _made(terms, sum_of(_rest_of(a), multiple_of(_rest_of(b), np.asarray(sign))))


def _made(terms: list[SignalTerm], rest: Signal) -> Any:
    return SignalSum(tuple(terms), rest) if terms else rest


def sum_of(a: Signal, b: Signal) -> Signal:
    """Return the sum of two signals, which is defined until the first of them ends."""
    breaks = _joined_breaks(a.breaks, b.breaks)
    parts = [_coefficients_from(signal, breaks) for signal in (a, b)]
    count = max(part.shape[-1] for part in parts)
    first, second = (np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, count - x.shape[-1])]) for x in parts)
    batch = np.broadcast_shapes(a.waves.shape[:-2], b.waves.shape[:-2])
    waves = [np.broadcast_to(x.waves, batch + x.waves.shape[-2:]) for x in (a, b)]
    inputs, end = (*a.inputs, *b.inputs), min(a.end, b.end)
    return type(a)(first + second, breaks=breaks, waves=np.concatenate(waves, -2), end=end, inputs=inputs)


def _joined_breaks(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the breaks of both signals. Raises ArgumentError if they differ between samples and are not the same."""
    if a.ndim == b.ndim == 1:
        return np.union1d(a, b)
    if b.shape[-1] == 1 or np.array_equal(a, b):
        return a
    if a.shape[-1] == 1:
        return b
    raise ArgumentError(
        f"the sum of two tables of {a.shape[-1]} and {b.shape[-1]} pieces, whose times differ between samples, is not "
        "available; expected the same times in both, or times that all samples share. Make one table of the sum"
    )


def _coefficients_from(signal: Signal, breaks: FloatArray) -> FloatArray:
    """Return the coefficients (..., pieces, m) of a signal in pieces that start at other breaks.

    The polynomial sum c_k (t + d)^k has the coefficients sum over k of binomial(k, j) c_k d^(k - j).
    """
    if breaks.ndim > 1 and signal.breaks.shape[-1] > 1:
        return signal.coefficients  # its own breaks
    if breaks.ndim > 1:
        given, later = np.repeat(signal.coefficients, breaks.shape[-1], -2), breaks - signal.breaks
        given = np.broadcast_to(given, (*np.broadcast_shapes(given.shape[:-1], later.shape), given.shape[-1]))
    else:
        piece = np.clip(np.searchsorted(signal.breaks, breaks, "right") - 1, 0, None)
        given, later = signal.coefficients[..., piece, :], breaks - signal.breaks[piece]
    found = np.zeros_like(given)
    for k in range(given.shape[-1]):
        for j in range(k + 1):
            found[..., j] += comb(k, j) * given[..., k] * later ** (k - j)
    return found


def multiple_of(signal: Signal, factor: FloatArray) -> Signal:
    """Return a signal times a factor (...), the same for all samples or different for each."""
    shape = np.broadcast_shapes(signal.waves.shape, (*factor.shape, 1, 1))
    waves = np.broadcast_to(signal.waves, shape).copy()
    waves[..., 0] *= factor[..., None]
    coefficients = signal.coefficients * factor[..., None, None]
    inputs = tuple(term.times(factor) for term in signal.inputs)
    return type(signal)(coefficients, breaks=signal.breaks, waves=waves, end=signal.end, inputs=inputs)


def derivative_of(signal: Signal) -> Signal:
    """Return the derivative of a signal. Raises ArgumentError if the signal jumps."""
    from ..core.forces.signal_breaks import KNOT_JUMP
    from .knots import classes_of_knots

    duration = signal.end if np.isfinite(signal.end) else float(signal.breaks[..., -1].max(initial=0.0)) + 1.0
    jumps = classes_of_knots(signal, 0, duration) == KNOT_JUMP
    if jumps.any():
        breaks = np.broadcast_to(signal.breaks.reshape(-1, jumps.shape[-1]), jumps.shape)
        raise ArgumentError(
            f"the signal jumps at t = {breaks[jumps][0]:g} s, where it has no derivative; expected a "
            'signal without jumps, such as Signal.table(times, values, interpolation="cubic")'
        )
    powers = signal.coefficients
    found = powers[..., 1:] * np.arange(1, powers.shape[-1]) if powers.shape[-1] > 1 else 0.0 * powers
    waves = signal.waves.copy()
    waves[..., 0] *= waves[..., 1]
    waves[..., 2] += 0.5 * np.pi
    return type(signal)(found, breaks=signal.breaks, waves=waves, end=signal.end)
