"""The response of linear models to inputs that oscillate.

With x' = A x + B u and y = C x + D u, the input u = exp(i w t) causes the output y = H(i w) exp(i w t) with

    H(i w) = C E^-1 B + D,   E = i w - A.

If a row or a column of E is multiplied by a number, the inverse stays as exact as before. So its error is measured by
the smallest condition number of all scalings of E, which is the spectral radius of |E^-1| |E|. Source: Bauer (1963),
"Optimally scaled matrices".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import FloatArray, excerpt, finite_array
from ..errors import ArgumentError
from ..model.arguments import SampleArrays

ComplexArray = npt.NDArray[np.complex128]

#: At larger condition numbers, a frequency counts as a pole: round-off would change the response by more than 1e-4.
LARGEST_CONDITION = 1e12


@dataclass(frozen=True, eq=False)
class FrequencyResponse(SampleArrays):
    """The result of `Model.frequency_response` and `LinearModel.frequency_response`.

    An input of amplitude 1 causes an output of amplitude `gain`, which leads the input by `phase`. `response[i]` is the
    response of one sample of a batch.

    Attributes
    ----------
    frequency : (f,) array, Hz
    response : (..., f, outputs, inputs) complex array
        In SI units. NaN for samples that failed, and at frequencies of undamped poles, where the response is unbounded.
        These are the undamped natural frequencies, and zero if the mechanism has rigid-body motions.
    gain : (..., f, outputs, inputs) array
        Absolute value of the response.
    phase : (..., f, outputs, inputs) array, rad
        Continuous along the frequencies, without jumps by 2 pi.
    inputs, outputs : tuples of str
        Their names, as in `LinearModel`.
    success : (...) array of bool
        False if a sample has no linear model.
    """

    shared_names: ClassVar[tuple[str, ...]] = ("frequency",)
    frequency: FloatArray
    response: ComplexArray
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    success: npt.NDArray[np.bool_]

    @property
    def gain(self) -> FloatArray:
        """Absolute value of the response."""
        return abs(self.response)

    @property
    def phase(self) -> FloatArray:
        """Phase of the response, rad, without jumps by 2 pi along the frequencies."""
        angles, count = np.angle(self.response), len(self.frequency)
        is_known = ~np.isnan(angles)
        numbers = np.where(is_known, np.arange(count)[:, None, None], 0)
        # `np.unwrap` would not return a number after a pole, so each pole has the phase at the frequency before
        last = np.maximum.accumulate(numbers, axis=-3) if count else numbers
        known = np.take_along_axis(np.where(is_known, angles, 0.0), last, -3)
        return np.where(is_known, np.unwrap(known, axis=-3), np.nan)


def checked_frequencies(frequency: npt.ArrayLike, period: float | None = None) -> FloatArray:
    """Return frequencies, Hz. Raises an ArgumentError if they are not finite values of at least 0 in one dimension.

    Values above half the sampling frequency of a discrete model raise an error too: its response is periodic there.
    """
    found = finite_array("frequency", frequency, ArgumentError)
    if found.ndim != 1 or (found < 0.0).any():
        what = f"has shape {found.shape}" if found.ndim != 1 else f"is {excerpt(found.tolist())}"
        raise ArgumentError(f"frequency {what}; expected an array (f,) of frequencies from 0, Hz")
    if period is not None and (found * period > 0.5 * (1.0 + 1e-9)).any():
        raise ArgumentError(
            f"frequency contains {found.max():g} Hz, but the controllers sample every {period:g} s; expected at "
            f"most half the sampling frequency, {0.5 / period:g} Hz, because sampling cannot distinguish "
            "higher frequencies from lower ones"
        )
    return found


def responses(frequency: FloatArray, matrices: Sequence[FloatArray], period: float | None = None) -> ComplexArray:
    """Compute the responses (..., f, outputs, inputs) at frequencies in Hz; NaN at poles.

    `matrices` are A, B, C and D with leading batch axes. They may be NaN. A discrete model has a `period`, s. i
    w is then exp(i w period).
    """
    A, B, C, D = matrices
    found = np.full((*A.shape[:-2], len(frequency), *D.shape[-2:]), np.nan, complex)
    is_usable = np.isfinite(A).all((-2, -1)) & np.isfinite(D).all((-2, -1))
    A, B, C, D = (x[is_usable] for x in matrices)
    for k, w in enumerate(2.0 * np.pi * frequency):
        s = 1j * w if period is None else np.exp(1j * w * period)
        found[is_usable, k] = C @ inverses(s * np.eye(A.shape[-1]) - A) @ B + D
    return found


def inverses(E: ComplexArray) -> ComplexArray:
    """Return the inverses of matrices (samples, n, n); NaN for those that are singular up to round-off."""
    if not E.size:
        return E
    try:
        found = np.linalg.inv(E)
    except np.linalg.LinAlgError:  # one of them is exactly singular
        is_singular = np.linalg.slogdet(E)[0] == 0.0
        E = E.copy()
        E[is_singular] = np.eye(E.shape[-1])
        found = np.linalg.inv(E)
        found[is_singular] = np.nan
    powers: FloatArray = abs(found) @ abs(E)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(3):  # the norm of the eighth power is about the spectral radius to the power of 8
            powers = powers @ powers
        is_regular = powers.max((1, 2)) <= LARGEST_CONDITION**8
    return np.where(is_regular[:, None, None], found, np.nan)
