"""The inputs of a stepper: numbers of each sample that the program changes between steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..acting.inputs import InputPlace
from ..common.real_arrays import excerpt, real_array
from ..errors import ArgumentError
from ..model.named_items import NamedItems

if TYPE_CHECKING:
    from .preparation import Prepared


class Inputs(NamedItems[np.ndarray]):
    """The inputs of a stepper by their names. `inputs[name]` is an array (...) that you may change.

    `values` has the shape (samples, inputs), and `batch` is the shape of the batch.
    """

    _owner, _singular, _plural = "the stepper", "input", "inputs"

    def __init__(self, names: Sequence[str], values: np.ndarray, batch: tuple[int, ...]) -> None:
        self._names, self._values, self._batch = tuple(names), values, batch

    def _item(self, name: str) -> np.ndarray:
        return self._values[:, self._names.index(name)].reshape(self._batch)

    def _remark(self, name: Any) -> str:
        return super()._remark(name) or ". Use rb.Input(name) as a signal of a drive or force"

    def __setitem__(self, name: str, value: npt.ArrayLike) -> None:
        write_numbers(f"input {name!r}", self[name], value)

    def __repr__(self) -> str:
        return f"Inputs({dict(self)!r})"


def write_numbers(name: str, shown: np.ndarray, value: npt.ArrayLike) -> None:
    """Write a caller's numbers to an array that the caller sees. Raises ArgumentError if they do not fit."""
    array = real_array(name, value, ArgumentError)
    try:
        shown[...] = array
    except ValueError:
        raise ArgumentError(
            f"{name} has shape {array.shape}; expected an array that fits into {shown.shape}, or a number"
        ) from None


def initial_inputs(places: Sequence[InputPlace], samples: int) -> tuple[list[str], np.ndarray]:
    """Return the names of the inputs in the order of the signals, and their initial values (samples, inputs)."""
    found: dict[str, np.ndarray] = {}
    for term in (term for place in places for term in place.terms):
        if not np.array_equal(found.setdefault(term.name, term.value), term.value):
            raise ArgumentError(
                f"two inputs are called {term.name!r}, with the values {excerpt(found[term.name].tolist())} and "
                f"{excerpt(term.value.tolist())}; expected the same value, because both are one input"
            )
    return list(found), np.array([*found.values()]).reshape(len(found), samples).T.copy()


def write_inputs(prepared: Prepared, inputs: Inputs, dtype: np.dtype) -> np.ndarray:
    """Write the inputs to the arrays of the kernels, and return the samples (samples,) with numbers beyond `dtype`."""
    assert prepared.actions is not None  # it has places for inputs
    shared, flat = prepared.actions.shared, {name: inputs[name].reshape(-1) for name in inputs}
    is_wrong = np.zeros(len(prepared.not_assembled), bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for place in prepared.calls.inputs:
            found = place.write(flat, shared.numbers, shared.tables)
            is_wrong |= ~np.isfinite(found.astype(dtype)).all(1)
    return is_wrong
