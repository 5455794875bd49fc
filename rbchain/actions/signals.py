"""Signals: numbers that change with time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import StateError
from ..misspelt import SuggestsAttributes
from ..real_arrays import real_array

if TYPE_CHECKING:
    from scipy.interpolate import PPoly


@dataclass(frozen=True, eq=False)
class Signal(SuggestsAttributes):
    """A number over time: a polynomial, a table of polynomial pieces, or either plus sines.

    Made by `Signal.constant`, `Signal.polynomial`, `Signal.sines` or `Signal.table`; wherever a signal is expected, a
    number will do, an array with one number for each sample, or a piecewise polynomial of SciPy's (`CubicSpline`,
    `PPoly`). Arrays of coefficients may have the batch's axes in front: one signal for each sample.

    Attributes
    ----------
    breaks : (pieces,) array, s
        Where the pieces begin; the first holds before, and the last thereafter.
    coefficients : (..., pieces, m) array
        Of 1, t, t^2 ..., with t counted from the piece's break.
    waves : (..., sines, 3) array
        Amplitude, angular frequency (rad/s) and phase (rad) of each sine.
    end : float, s
        Until when the signal is given.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Signal.polynomial([1.0, 0.0, 2.0])([0.0, 0.5]).tolist()
    [1.0, 1.5]
    >>> rb.Signal.table([0, 1, 3], [0, 1, 0], kind="linear")([0.5, 2.0]).tolist()
    [0.5, 0.5]
    """

    coefficients: np.ndarray
    breaks: np.ndarray = field(default_factory=lambda: np.zeros(1))
    waves: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    end: float = np.inf

    def __post_init__(self) -> None:
        for name, axes in (("coefficients", 2), ("breaks", 1), ("waves", 2)):
            found = np.array(real_array(f"{name} of a signal", getattr(self, name), StateError))
            if found.ndim < axes or not np.isfinite(found).all():
                raise StateError(
                    f"{name} of a signal is {found.tolist()}; expected finite numbers of at least {axes} axes"
                )
            object.__setattr__(self, name, found)
        object.__setattr__(self, "end", float(real_array("end of a signal", self.end, StateError)))
        pieces = self.coefficients.shape[-2]
        if self.breaks.shape != (pieces,) or not (np.diff(self.breaks) > 0.0).all() or self.waves.shape[-1] != 3:
            raise StateError(
                f"a signal has breaks {self.breaks.tolist()} for {pieces} pieces, and waves of shape "
                f"{self.waves.shape}; expected as many breaks, each after the one before, and (..., sines, 3)"
            )

    @classmethod
    def constant(cls, value: npt.ArrayLike) -> Self:
        """A number, or one for each sample."""
        return cls(_numbers("value", value)[..., None, None])

    @classmethod
    def polynomial(cls, coefficients: npt.ArrayLike) -> Self:
        """c0 + c1 t + c2 t^2 + ... from its coefficients (..., m)."""
        found = _numbers("coefficients", coefficients, least_axes=1)
        return cls(found[..., None, :])

    @classmethod
    def sines(
        cls,
        amplitude: npt.ArrayLike,
        angular_frequency: npt.ArrayLike,
        phase: npt.ArrayLike = 0.0,
        offset: npt.ArrayLike = 0.0,
    ) -> Self:
        """offset + the sum of amplitude sin(angular_frequency t + phase) over sines (..., m); in rad/s and rad."""
        names = ("amplitude", "angular_frequency", "phase")
        given = zip(names, (amplitude, angular_frequency, phase), strict=True)
        waves = np.broadcast_arrays(*(np.atleast_1d(_numbers(name, x)) for name, x in given))
        return cls(_numbers("offset", offset)[..., None, None], waves=np.stack(waves, -1))

    @classmethod
    def table(cls, times: npt.ArrayLike, values: npt.ArrayLike, kind: str = "cubic") -> Self:
        """Through values (..., m) at times (m,) s: "linear", or SciPy's "cubic" spline (not-a-knot)."""
        times, values = _numbers("times", times), _numbers("values", values, least_axes=1)
        if times.ndim != 1 or times.size < 2 or values.shape[-1] != times.size:
            raise StateError(f"times has shape {times.shape} and values {values.shape}; expected (m,) and (..., m)")
        if not (np.diff(times) > 0.0).all():
            raise StateError(f"times of the table, {times.tolist()}, do not rise from each to the next")
        if kind not in ("linear", "cubic"):
            raise StateError(f'kind is {kind!r}; expected "linear" or "cubic"')
        if kind == "cubic":
            return cls.pieces(_cubic_spline(times, values))
        with np.errstate(over="ignore"):
            slopes = np.diff(values) / np.diff(times)
        if not np.isfinite(slopes).all():
            raise StateError(f"{_OF_TABLE} {times.tolist()} have slopes beyond float64's range; expected later times")
        return cls(np.stack([values[..., :-1], slopes], -1), times[:-1], end=float(times[-1]))

    @classmethod
    def pieces(cls, piecewise: PPoly) -> Self:
        """From SciPy's piecewise polynomials: a `PPoly`, such as a `CubicSpline`."""
        found = np.moveaxis(_numbers("the spline's coefficients", piecewise.c)[::-1], (0, 1), (-1, -2))
        axis = getattr(piecewise, "axis", 0)
        if axis and found.ndim - 2 != axis:
            raise StateError(f"the spline interpolates along axis {axis}; expected the last or the first")
        return cls(found, np.array(piecewise.x[:-1]), end=float(piecewise.x[-1]))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.coefficients.shape[:-2], self.waves.shape[:-2])

    @property
    def is_constant(self) -> bool:
        return self.breaks.size == 1 and self.coefficients.shape[-1] == 1 and self.waves.shape[-2] == 0

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> Signal:
        """The signal of one sample of a batch, by its index."""
        coefficients, waves = (
            np.broadcast_to(x, (*batch_shape, *x.shape[-2:]))[i] for x in (self.coefficients, self.waves)
        )
        return Signal(coefficients, self.breaks, waves, self.end)

    def __call__(self, t: npt.ArrayLike, derivative: int = 0) -> np.ndarray:
        """The signal, or a derivative of it, at times (m,): (..., m); at one time: (...)."""
        t = real_array("t", t, StateError)
        if t.ndim == 0:
            return self(t[None], derivative)[..., 0]
        piece = np.clip(np.searchsorted(self.breaks, t, "right") - 1, 0, None)
        powers = self.coefficients[..., piece, :]
        for _ in range(derivative):
            powers = powers[..., 1:] * np.arange(1, powers.shape[-1])
        # a table's pieces count from their break, a polynomial from zero
        elapsed = (t - self.breaks[piece])[..., None] ** np.arange(powers.shape[-1])
        amplitude, w, phase = np.moveaxis(self.waves[..., None, :, :], -1, 0)
        waves = amplitude * w**derivative * np.sin(w * t[..., None] + phase + derivative * np.pi / 2)
        return (powers * elapsed).sum(-1) + waves.sum(-1)


_OF_TABLE = "values of the table at times"


def _cubic_spline(times: np.ndarray, values: np.ndarray) -> PPoly:
    """SciPy's cubic spline, or a StateError where its equations have no accurate solution."""
    from scipy.interpolate import CubicSpline
    from scipy.linalg import LinAlgError, LinAlgWarning

    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            return CubicSpline(times, values, axis=-1)
    except (ValueError, LinAlgError, LinAlgWarning) as reason:
        raise StateError(f"{_OF_TABLE} {times.tolist()} have no accurate cubic spline: {reason}") from None


SignalLike: TypeAlias = "Signal | npt.ArrayLike | PPoly"
ThreeSignals: TypeAlias = Sequence[SignalLike] | np.ndarray


def as_signal(name: str, value: SignalLike) -> Signal:
    """A Signal from whatever stands for one, or a StateError that names it."""
    if isinstance(value, Signal):
        return value
    if hasattr(value, "c") and hasattr(value, "x"):
        from scipy.interpolate import PPoly

        if not isinstance(value, PPoly):
            raise StateError(f"{name} is a {type(value).__name__}; expected a PPoly, such as a CubicSpline")
        return Signal.pieces(value)
    if callable(value):
        raise StateError(f"{name} is {value!r}; expected a Signal, or numbers (a function of your own: UserForces)")
    return Signal(_numbers(name, value)[..., None, None])


def three_signals(name: str, components: ThreeSignals) -> list[Signal]:
    """Three signals, or numbers along the last axis of an array."""
    if hasattr(components, "__array__"):
        if not (isinstance(components, np.ndarray) and components.dtype.kind == "O"):
            components = real_array(name, components, StateError)
        components = np.moveaxis(components, -1, 0) if components.ndim else ()
    nested = hasattr(components, "__len__") and any(isinstance(x, (list, tuple)) for x in components)
    if nested or not hasattr(components, "__len__") or len(components) != 3:
        raise StateError(f"{name} is {components!r}; expected three signals or numbers")
    return [as_signal(name, component) for component in components]


def _numbers(name: str, value: npt.ArrayLike, least_axes: int = 0) -> np.ndarray:
    found = np.array(real_array(name, value, StateError))
    if found.ndim < least_axes or found.size == 0:
        raise StateError(f"{name} has shape {found.shape}; expected (..., m)")
    if not np.isfinite(found).all():
        raise StateError(f"{name} is {found.tolist()}; expected finite numbers")
    return found
