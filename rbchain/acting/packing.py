"""Collect the values and signals of actions, shared or of each sample, in arrays for the kernels."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt, real_array
from ..core.forces import signal_layout
from ..errors import ArgumentError
from .inputs import InputPlace, InputTerm, with_inputs
from .knots import classes_of_knots
from .numeric_fields import Declared
from .signals import Signal, SignalLike, as_signal

#: Part of the duration by which a signal may be shorter.
ROUND_OFF = 4e-16


def or_one_each(batch: tuple[int, ...]) -> str:
    """End of a message that expects one value for all samples, or an array with one for each sample."""
    if not batch:
        return ", because q0 and qd0 are a single state, of batch shape ()"
    return f", or an array of shape {batch} with one for each sample"


class SampleNumbers:
    """Numbers of actions, one column after the other; each is shared by all samples or has a value for each."""

    def __init__(self, batch: tuple[int, ...]) -> None:
        self.batch = batch
        self.columns: list[np.ndarray] = []

    def add(self, name: str, value: npt.ArrayLike) -> int:
        """Add a number, or one for each sample, and return its column. Raises ArgumentError if it does not fit."""
        found = self.for_each_sample(name, value)
        is_nan = np.isnan(found)
        if is_nan.any() if found.ndim else is_nan:
            raise ArgumentError(f"{name} is {excerpt(found.tolist())}; expected numbers, not NaN")
        self.columns.append(found.reshape(-1))
        return len(self.columns) - 1

    def add_field(self, what: str, owner: Declared, name: str) -> int:
        """Add a field of a drive or force as its class declares it, and return the first column.

        Raises ArgumentError if it does not fit. The message begins with `what`.
        """
        field, value = owner.numeric_field(name), getattr(owner, name)
        if type(value) is float and not field.shape and field.lower <= value <= field.upper:
            self.columns.append(np.array([value]))  # most fields; the checks below take ten times as long
            return len(self.columns) - 1
        if field.shape:
            found = field.checked(what, value)
            first, _ = self.add_row(f"{what}: {name}", found.reshape(*found.shape[: -len(field.shape)], -1))
            return first
        return self.add(f"{what}: {name}", field.checked(what, self.for_each_sample(f"{what}: {name}", value)))

    def for_each_sample(self, name: str, value: npt.ArrayLike) -> np.ndarray:
        """Return one value, or one for each sample in the batch shape. Raises ArgumentError if it does not fit."""
        if isinstance(value, Signal):
            raise ArgumentError(
                f"{name} is a signal, {value!r}; expected one number, or one for each sample, which "
                "cannot change with time"
            )
        found = real_array(name, value, ArgumentError)
        if found.shape in ((), self.batch):
            return found
        try:
            return np.broadcast_to(found, self.batch)
        except ValueError:
            raise ArgumentError(
                f"{name} has shape {found.shape}; expected one number{or_one_each(self.batch)}"
            ) from None

    def add_row(self, name: str, values: npt.ArrayLike) -> tuple[int, int]:
        """Add the numbers along the last axis of `values` (..., m), and return the first column and m."""
        values = np.atleast_1d(real_array(name, values, ArgumentError))
        first = len(self.columns)
        if values.shape == (0,):
            return first, 0
        if values.ndim == 1 and not np.isnan(values).any():
            self.columns += [*values.reshape(-1, 1)]
            return first, values.size
        if values.shape[:-1] not in ((), self.batch):
            try:
                np.broadcast_to(values[..., 0], self.batch)
            except ValueError:
                raise ArgumentError(
                    f"{name} has shape {values.shape}; expected m numbers, or m for each sample in the batch shape "
                    f"{self.batch}"
                ) from None
        for j in range(values.shape[-1]):
            self.add(name, values[..., j])
        return first, len(self.columns) - first

    def rows(self) -> np.ndarray:
        """Return the rows of all samples: (samples, m), or (1, m) if the samples share them."""
        sizes = {column.size for column in self.columns}
        if sizes == {1}:
            return np.concatenate(self.columns)[None]
        samples = math.prod(self.batch) if max(sizes, default=0) > 1 else 1
        rows = np.zeros((max(samples, 1), max(len(self.columns), 1)))
        for j, column in enumerate(self.columns):
            if column.size:
                rows[:, j] = column
        return rows


class SignalTables:
    """Signals as columns of integer codes, whose numbers are in `SampleNumbers` or in tables of pieces."""

    def __init__(self, numbers: SampleNumbers, duration: float) -> None:
        self.numbers, self.duration = numbers, duration
        self.codes: list[np.ndarray] = []
        self.tables: list[np.ndarray] = []
        self.knots: list[np.ndarray] = []
        self.inputs: list[InputPlace] = []
        self.size = self.most_coefficients = self.pieces = 0

    def add(self, name: str, value: SignalLike, derivatives: int) -> int:
        """Add a signal and return its number. Raises ArgumentError if it does not fit the batch or the duration.

        `derivatives` is as for `classes_of_knots`.
        """
        signal = self._for_batch(name, value)
        # 0.1 + 0.2 s is longer than 0.3 s by round-off, over which the last piece continues
        start = float(signal.breaks[..., 0].max(initial=-math.inf))
        if signal.end < self.duration * (1.0 - ROUND_OFF) or start > 0.0:
            if self.duration < math.inf:
                expected = f"a signal for the whole simulation, from 0 to {self.duration:.15g} s"
            else:
                expected = "a signal without an end, or a stepper with a duration, model.stepper(..., duration=...)"
            raise ArgumentError(f"{name} is defined from {start:.15g} to {signal.end:.15g} s; expected {expected}")
        given, codes = signal, np.zeros(signal_layout.ROWS, np.int64)
        if signal.inputs:
            signal = replace(signal, coefficients=self._with_inputs(signal), inputs=())
        codes[signal_layout.COEFFICIENT_COUNT] = signal.coefficients.shape[-1]
        if signal.breaks.shape == (1,) and signal.breaks[0] == 0.0:
            codes[signal_layout.KIND] = signal_layout.CONSTANT if signal.is_constant else signal_layout.POLYNOMIAL
            codes[signal_layout.FIRST_COEFFICIENT], _ = self.numbers.add_row(name, signal.coefficients[..., 0, :])
        else:
            codes[signal_layout.KIND] = signal_layout.TABLE
            self._add_table(signal, codes)
            codes[signal_layout.KNOTS] = self.pieces
            self.knots.append(classes_of_knots(signal, derivatives, self.duration))
            self.pieces += signal.breaks.shape[-1]
        codes[signal_layout.CHECKED_ORDER] = max(derivatives - 1, min(derivatives, 0))
        waves = signal.waves.reshape(*signal.waves.shape[:-2], math.prod(signal.waves.shape[-2:]))
        codes[signal_layout.SINES], _ = self.numbers.add_row(name, waves)
        codes[signal_layout.SINE_COUNT] = signal.waves.shape[-2]
        self.codes.append(codes)
        if given.inputs:
            self.inputs.append(self._in_signal(given, codes))
        return len(self.codes) - 1

    def add_number(self, name: str, value: SignalLike) -> int:
        """Add a number with inputs, and return its column in the numbers of samples. No signal has it.

        Raises ArgumentError if it does not fit the batch.
        """
        signal = self._for_batch(name, value)
        column = self.numbers.add(name, self._with_inputs(signal)[..., 0, 0])
        self.inputs.append(InputPlace(*self._terms_and_constants(signal), False, np.array([column])))
        return column

    def _for_batch(self, name: str, value: SignalLike) -> Signal:
        """Return a signal for all samples, or one for each sample. Raises ArgumentError if it does not fit."""
        signal, batch = as_signal(name, value), self.numbers.batch
        if signal.batch_shape not in ((), batch):
            raise ArgumentError(
                f"{name} contains signals of shape {signal.batch_shape}; expected one signal{or_one_each(batch)}"
            )
        return signal

    def _with_inputs(self, signal: Signal) -> np.ndarray:
        """Return the coefficients of each sample with the inputs, because a stepper changes them."""
        shape = *self.numbers.batch, *signal.coefficients.shape[-2:]
        coefficients = np.array(np.broadcast_to(signal.coefficients, shape))
        coefficients[..., 0] = with_inputs(coefficients[..., 0], signal.inputs)
        return coefficients

    def _add_table(self, signal: Signal, codes: np.ndarray) -> None:
        """Add the breaks and coefficients of a signal to the tables, and the place of the table to the codes."""
        pieces, count = signal.coefficients.shape[-2:]
        codes[signal_layout.PIECES], codes[signal_layout.TABLE_START] = pieces, self.size
        flat = signal.coefficients.reshape(-1, pieces * count)
        breaks = np.broadcast_to(signal.breaks.reshape(-1, pieces), (flat.shape[0], pieces))
        table = np.concatenate([breaks, flat], -1)
        codes[signal_layout.TABLE_STRIDE] = table.shape[1] if flat.shape[0] > 1 else 0
        self.tables.append(table.reshape(-1))
        self.size += table.size
        self.most_coefficients = max(self.most_coefficients, count)

    def _in_signal(self, signal: Signal, codes: np.ndarray) -> InputPlace:
        """Return where the numbers of a signal with inputs are."""
        terms, constants = self._terms_and_constants(signal)
        if codes[signal_layout.KIND] != signal_layout.TABLE:
            return InputPlace(terms, constants, False, codes[[signal_layout.FIRST_COEFFICIENT]])
        samples, (pieces, count) = len(constants), signal.coefficients.shape[-2:]
        start = codes[signal_layout.TABLE_START] + pieces + count * np.arange(pieces)
        at = start + codes[signal_layout.TABLE_STRIDE] * np.arange(samples)[:, None]
        return InputPlace(terms, constants, True, at)

    def _terms_and_constants(self, signal: Signal) -> tuple[tuple[InputTerm, ...], np.ndarray]:
        """Return the inputs of a signal, and its constant coefficients (samples, pieces) without them."""
        batch, pieces = self.numbers.batch, signal.coefficients.shape[-2]
        constants = np.broadcast_to(signal.coefficients[..., 0], (*batch, pieces))
        return tuple(term.flat(batch) for term in signal.inputs), constants.reshape(math.prod(batch), pieces).copy()

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the codes (signal_layout.ROWS, signals), the joined tables, and the classes of their knots."""
        codes = np.array(self.codes, np.int64).reshape(-1, signal_layout.ROWS).T.copy()
        (samples,) = np.broadcast_shapes((1,), *((len(given),) for given in self.knots))  # even of no samples
        classes = [np.broadcast_to(given, (samples, given.shape[1])) for given in self.knots]
        knots = np.concatenate([np.zeros((samples, 0), np.uint8), *classes], 1)
        return codes, np.concatenate([np.zeros(0), *self.tables]), knots
