"""Signals: values over time, for drives, wrenches and currents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal, Self, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray, excerpt, finite_array, real_array
from ..errors import ArgumentError
from . import random_processes
from .cubic_splines import OF_TABLE, cubic_spline
from .inputs import Input, InputTerm, with_inputs
from .random_signals import RandomSignal
from .signal_arithmetic import AddsSignals, SignalSum, derivative_of

if TYPE_CHECKING:
    from scipy.interpolate import PPoly


@dataclass(frozen=True, eq=False)
class Signal(AddsSignals):
    """A function of time: a polynomial or a piecewise polynomial, plus sines and inputs of a stepper.

    `Signal.constant`, `Signal.polynomial`, `Signal.sines` and `Signal.table` create signals. Arguments that expect a
    signal also accept a number, an array with one value for each sample, a piecewise polynomial of SciPy
    (`CubicSpline`, `PPoly`), or an `Input`. Arrays of coefficients may have leading batch axes, for one signal per
    sample. `Signal.noise`, `Signal.ornstein_uhlenbeck`, `Signal.random_walk` and `Signal.sea_state` create random
    signals.

    You can add and subtract signals, including random ones, and multiply and divide them by numbers, which may differ
    between samples.

    Attributes
    ----------
    breaks : (pieces,) or (..., pieces) array, s
        Start of each piece, the same for all samples or different for each. The first piece also applies before its
        start, and the last one after its end.
    coefficients : (..., pieces, m) array
        Coefficients of 1, t, t^2, ..., where t is the time since the start of the piece.
    waves : (..., sines, 3) array
        Amplitude, angular frequency (rad/s) and phase (rad) of each sine.
    end : float, s
        End of the time range in which the signal is defined. `simulate` raises an error for a longer duration.
    inputs : tuple of InputTerm
        Names of the inputs to add, their factors, their values at the start, and their ranges.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Signal.polynomial([1.0, 0.0, 2.0])([0.0, 0.5]).tolist()
    [1.0, 1.5]
    >>> rb.Signal.table([0, 1, 3], [0, 1, 0], interpolation="linear")([0.5, 2.0]).tolist()
    [0.5, 0.5]
    """

    hint_for_calls: ClassVar[str] = ". For a table of values, use Signal.table(times, values)"
    internal_names: ClassVar[tuple[str, ...]] = ("of_sample",)

    coefficients: FloatArray
    _: KW_ONLY
    breaks: FloatArray = field(default_factory=lambda: np.zeros(1))
    waves: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))
    end: float = np.inf
    inputs: tuple[InputTerm, ...] = ()

    def __post_init__(self) -> None:
        for name, axes in (("coefficients", 2), ("breaks", 1), ("waves", 2)):
            found = np.array(real_array(f"{name} of a signal", getattr(self, name), ArgumentError))
            if found.ndim < axes or not np.isfinite(found).all():
                raise ArgumentError(
                    f"{name} of a signal is {excerpt(found.tolist())}; expected finite numbers in an array of at least "
                    f"{axes} axes"
                )
            object.__setattr__(self, name, found)
        terms = (InputTerm(*term) for term in self.inputs)
        terms = (term._replace(factor=np.asarray(term.factor), value=np.asarray(term.value)) for term in terms)
        object.__setattr__(self, "inputs", tuple(terms))
        object.__setattr__(self, "end", float(real_array("end of a signal", self.end, ArgumentError)))
        if self.breaks.ndim > 1:  # so that the coefficients have the batch shape of the breaks
            batch = np.broadcast_shapes(self.breaks.shape[:-1], self.coefficients.shape[:-2])
            for name, axes in (("coefficients", 2), ("breaks", 1)):
                found = getattr(self, name)
                object.__setattr__(self, name, np.broadcast_to(found, (*batch, *found.shape[-axes:])))
        pieces = self.coefficients.shape[-2]
        if self.breaks.shape[-1] != pieces or not (np.diff(self.breaks) > 0.0).all() or self.waves.shape[-1] != 3:
            raise ArgumentError(
                f"a signal has breaks {excerpt(self.breaks.tolist())}, coefficients for {pieces} pieces, and waves of "
                f"shape {self.waves.shape}; expected {pieces} increasing breaks, and waves of shape (..., sines, 3)"
            )

    def __repr__(self) -> str:
        """Describe the signal in one line: a sampled signal has thousands of coefficients."""
        if self.is_constant and not self.batch_shape and not self.inputs:
            return f"Signal.constant({self.coefficients.item()!r})"
        (pieces, count), sines = self.coefficients.shape[-2:], self.waves.shape[-2]
        numbers = f"pieces={pieces}, degree={count - 1}, sines={sines}"
        numbers += f", inputs={[term.name for term in self.inputs]}" if self.inputs else ""
        return f"Signal({numbers}, batch_shape={self.batch_shape}, end={self.end:g})"

    @classmethod
    def constant(cls, value: npt.ArrayLike) -> Self:
        """Make a constant signal.

        Parameters
        ----------
        value : float or (...) array
            The value, or one for each sample.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Signal.constant(2.0)([0.0, 1.0]).tolist()
        [2.0, 2.0]
        """
        return cls(_numbers("value", value)[..., None, None])

    @classmethod
    def polynomial(cls, coefficients: npt.ArrayLike) -> Self:
        """Make the polynomial c0 + c1 t + c2 t^2 + ...

        Parameters
        ----------
        coefficients : (m,) or (..., m) array
            The coefficients c0, c1, ..., with t in s.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Signal.polynomial([1.0, 0.0, 2.0])([0.0, 0.5]).tolist()
        [1.0, 1.5]
        """
        found = _numbers("coefficients", coefficients, least_axes=1)
        return cls(found[..., None, :])

    @classmethod
    @explains_calls(is_method=True)
    def sines(
        cls,
        amplitude: npt.ArrayLike,
        angular_frequency: npt.ArrayLike,
        *,
        phase: npt.ArrayLike = 0.0,
        offset: npt.ArrayLike = 0.0,
    ) -> Self:
        """Make the signal offset + sum of amplitude sin(angular_frequency t + phase).

        Parameters
        ----------
        amplitude : float, (m,) or (..., m) array
            Amplitudes of m sines, which add up. A batch has one row for each sample, such as (samples, 1) for one sine.
        angular_frequency, phase : float, (m,) or (..., m) arrays, rad/s and rad
        offset : float or (...) array
            A constant, or one for each sample.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Signal.sines(2.0, angular_frequency=3.0, offset=1.0)(0.0).tolist()
        1.0

        Two samples with different amplitudes, and the sum of two sines:

        >>> quarter = 3.141592653589793 / 2
        >>> rb.Signal.sines([[1.0], [2.0]], 1.0)(quarter).tolist(), rb.Signal.sines([1.0, 2.0], 1.0)(quarter).tolist()
        ([1.0, 2.0], 3.0)
        """
        names = ("amplitude", "angular_frequency", "phase")
        given = zip(names, (amplitude, angular_frequency, phase), strict=True)
        sines = [_numbers(name, np.atleast_1d(real_array(name, x, ArgumentError)), least_axes=1) for name, x in given]
        try:
            waves = np.broadcast_arrays(*sines)
        except ValueError:
            found = ", ".join(f"{name} {x.shape}" for name, x in zip(names, sines, strict=True))
            raise ArgumentError(f"the shapes of the sines differ: {found}; expected equal shapes, or numbers") from None
        return cls(_numbers("offset", offset)[..., None, None], waves=np.stack(waves, -1))

    @classmethod
    @explains_calls(is_method=True, kind="interpolation")
    def table(
        cls, times: npt.ArrayLike, values: npt.ArrayLike, *, interpolation: Literal["cubic", "linear"] = "cubic"
    ) -> Self:
        """Make a signal that interpolates a table of values.

        Parameters
        ----------
        times : (m,) or (..., m) array, s
            Increasing times, the same for all samples or different for each. In a simulation, they must cover the
            range from 0 to its duration.
        values : (m,) or (..., m) array
            The values at these times.
        interpolation : "cubic" or "linear"
            "cubic" is SciPy's `CubicSpline` with not-a-knot conditions.

        Raises
        ------
        ArgumentError
            If shapes do not match, times do not increase, or the spline cannot be computed accurately.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Signal.table([0, 1, 3], [0, 1, 0], interpolation="linear")([0.5, 2.0]).tolist()
        [0.5, 0.5]
        """
        times, values = (_numbers(name, x, least_axes=1) for name, x in (("times", times), ("values", values)))
        if times.shape[-1] < 2 or values.shape[-1] != times.shape[-1]:
            raise ArgumentError(
                f"times has shape {times.shape} and values has shape {values.shape}; expected at least two "
                "times (m,) or (..., m), and a value for each time, (m,) or (..., m)"
            )
        if not (np.diff(times) > 0.0).all():
            raise ArgumentError(f"times of the table are {excerpt(times.tolist())}; expected increasing times")
        if interpolation not in ("linear", "cubic"):
            raise ArgumentError(f'interpolation is {interpolation!r}; expected "linear" or "cubic"')
        if interpolation == "cubic" and times.ndim == 1:
            return cls.pieces(cubic_spline(times, values))
        end = float(times[..., -1].min(initial=np.inf))
        if interpolation == "cubic":
            times, values = np.broadcast_arrays(times, values)
            rows = zip(times.reshape(-1, times.shape[-1]), values.reshape(-1, times.shape[-1]), strict=True)
            splines = [cls.pieces(cubic_spline(*row)).coefficients for row in rows]
            shape = (*times.shape[:-1], times.shape[-1] - 1, 4)
            return cls(np.array(splines).reshape(shape), breaks=times[..., :-1], end=end)
        with np.errstate(over="ignore"):
            slopes = np.diff(values) / np.diff(times)
        if not np.isfinite(slopes).all():
            raise ArgumentError(
                f"{OF_TABLE} {excerpt(times.tolist())} have slopes beyond float64's range; expected larger intervals "
                "between the times"
            )
        first = np.broadcast_to(values[..., :-1], slopes.shape)
        return cls(np.stack([first, slopes], -1), breaks=times[..., :-1], end=end)

    @classmethod
    def pieces(cls, piecewise: PPoly) -> Self:
        """Make a signal from a piecewise polynomial of SciPy.

        Parameters
        ----------
        piecewise : PPoly
            A piecewise polynomial over time in s, such as a `CubicSpline`. Further axes are batch axes.

        Examples
        --------
        >>> import rbchain as rb
        >>> from scipy.interpolate import CubicSpline
        >>> rb.Signal.pieces(CubicSpline([0, 1, 2, 3], [0, 1, 8, 27]))(1.5).round(9).tolist()
        3.375
        """
        if not (hasattr(piecewise, "c") and hasattr(piecewise, "x")):
            raise ArgumentError(f"piecewise is {excerpt(piecewise)}; expected a PPoly of SciPy, such as a CubicSpline")
        found = np.moveaxis(_numbers("the spline's coefficients", piecewise.c)[::-1], (0, 1), (-1, -2))
        axis = getattr(piecewise, "axis", 0)
        if axis and found.ndim - 2 != axis:
            raise ArgumentError(
                f"the spline interpolates along axis {axis}; expected the first or the last axis. Use "
                "CubicSpline(times, values, axis=-1)"
            )
        return cls(found, breaks=np.array(piecewise.x[:-1]), end=float(piecewise.x[-1]))

    noise = staticmethod(random_processes.noise)
    ornstein_uhlenbeck = staticmethod(random_processes.ornstein_uhlenbeck)
    random_walk = staticmethod(random_processes.random_walk)
    sea_state = staticmethod(random_processes.sea_state)

    def derivative(self) -> Signal:
        """Return the derivative of the signal with respect to time.

        Raises
        ------
        ArgumentError
            If the signal jumps.

        Examples
        --------
        >>> import rbchain as rb
        >>> (rb.Signal.polynomial([1.0, 2.0, 3.0]).derivative())([0.0, 1.0]).tolist()
        [2.0, 8.0]
        """
        return derivative_of(self)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch; () if all samples share the signal."""
        if self.coefficients.ndim == self.waves.ndim == 2 and not self.inputs:
            return ()
        of_inputs = [term.batch_shape for term in self.inputs]
        return np.broadcast_shapes(self.coefficients.shape[:-2], self.waves.shape[:-2], *of_inputs)

    @property
    def is_constant(self) -> bool:
        """Whether the signal does not change with time, except when a stepper changes its inputs."""
        return self.breaks.size == 1 and self.coefficients.shape[-1] == 1 and self.waves.shape[-2] == 0

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> Signal:
        """Return the signal of one sample of a batch, by its index."""
        coefficients, waves = (
            np.broadcast_to(x, (*batch_shape, *x.shape[-2:]))[i] for x in (self.coefficients, self.waves)
        )
        inputs = tuple(term.of_sample(i, batch_shape) for term in self.inputs)
        pieces = self.breaks.shape[-1:]
        breaks = self.breaks if self.breaks.ndim == 1 else np.broadcast_to(self.breaks, (*batch_shape, *pieces))[i]
        return Signal(coefficients, breaks=breaks, waves=waves, end=self.end, inputs=inputs)

    def __call__(self, t: npt.ArrayLike, derivative: int = 0) -> FloatArray:
        """Compute the signal, or a derivative of it, at times t (m,): a (..., m) array; at one time: (...).

        Times (..., m) contain a row for each sample. Inputs have their value at the start.
        """
        t = real_array("t", t, ArgumentError)
        if t.ndim == 0:
            return self(t[None], derivative)[..., 0]
        breaks = self.breaks
        if breaks.ndim > 1:
            batch = np.broadcast_shapes(t.shape[:-1], breaks.shape[:-1])
            t = np.broadcast_to(t, (*batch, t.shape[-1]))
            piece = np.clip((breaks[..., None, :] <= t[..., None]).sum(-1) - 1, 0, None)
            start = np.take_along_axis(np.broadcast_to(breaks, (*batch, breaks.shape[-1])), piece, -1)
        else:
            piece = np.clip(np.searchsorted(breaks, t, "right") - 1, 0, None)
            start = breaks[piece]
        if t.ndim > 1:
            every = np.broadcast_to(self.coefficients, (*t.shape[:-1], *self.coefficients.shape[-2:]))
            powers = np.take_along_axis(every, piece[..., None], -2)
        else:
            powers = self.coefficients[..., piece, :]
        for _ in range(derivative):
            powers = powers[..., 1:] * np.arange(1, powers.shape[-1])
        # the pieces of a table count the time from their break, a polynomial from zero
        elapsed = (t - start)[..., None] ** np.arange(powers.shape[-1])
        amplitude, w, phase = np.moveaxis(self.waves[..., None, :, :], -1, 0)
        waves = amplitude * w**derivative * np.sin(w * t[..., None] + phase + derivative * np.pi / 2)
        return with_inputs((powers * elapsed).sum(-1) + waves.sum(-1), () if derivative else self.inputs)


SignalLike: TypeAlias = "Signal | RandomSignal | SignalSum | Input | npt.ArrayLike | PPoly"
ThreeSignals: TypeAlias = Sequence[SignalLike] | np.ndarray


def as_signal(name: str, value: SignalLike) -> Signal:
    """Return a Signal, made of a number, an array, a PPoly or an Input. Raises ArgumentError, with the name."""
    if isinstance(value, Signal):
        return value
    if isinstance(value, Input):
        term = InputTerm(value.name, np.ones(()), np.asarray(value.value), value.lower, value.upper)
        return Signal(np.zeros((1, 1)), inputs=(term,))
    if type(value) is float and math.isfinite(value):
        return _constant(value.hex())
    if hasattr(value, "c") and hasattr(value, "x"):
        from scipy.interpolate import PPoly

        if not isinstance(value, PPoly):
            raise ArgumentError(f"{name} is a {type(value).__name__}; expected a PPoly, such as a CubicSpline")
        return Signal.pieces(value)
    if isinstance(value, (RandomSignal, SignalSum)):
        raise ArgumentError(
            f"{name} is a random signal, which differs between samples; expected the signals of some samples. Use its "
            "method signal(duration, sample_ids)"
        )
    if callable(value):
        raise ArgumentError(f"{name} is {excerpt(value)}; expected a Signal or numbers. Use UserForces for a function")
    return Signal(_numbers(name, value)[..., None, None])


@lru_cache(maxsize=256)
def _constant(hexadecimal: str) -> Signal:
    """Return a constant signal. Its text distinguishes 0.0 from -0.0, which would be the same key."""
    return Signal(np.full((1, 1), float.fromhex(hexadecimal)))


def three_signals(name: str, components: ThreeSignals) -> list[Signal]:
    """Return three signals, made of three signals or numbers, or of an array (..., 3). Raises ArgumentError."""
    if hasattr(components, "__array__"):
        if not (isinstance(components, np.ndarray) and components.dtype.kind == "O"):
            components = real_array(name, components, ArgumentError)
        components = np.moveaxis(components, -1, 0) if components.ndim else ()
    nested = hasattr(components, "__len__") and any(isinstance(x, (list, tuple)) for x in components)
    if nested or not hasattr(components, "__len__") or len(components) != 3:
        raise ArgumentError(f"{name} is {excerpt(components)}; expected three signals or numbers, or an array (..., 3)")
    return [as_signal(name, component) for component in components]


def _numbers(name: str, value: npt.ArrayLike, least_axes: int = 0) -> FloatArray:
    """Return finite values, even of no samples. Axes other than batch axes have at least one value."""
    found = finite_array(name, value, ArgumentError)
    if found.ndim < least_axes or 0 in found.shape[found.ndim - least_axes :]:
        raise ArgumentError(f"{name} has shape {found.shape}; expected (..., m) with at least one number")
    return found
