"""Functions of sampled controllers that Python calls once in each period for all samples of a batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import real_array
from ..errors import StateError
from .packing import SampleNumbers

ARGUMENTS = ("t", "q", "qd", "parameters")


@dataclass(frozen=True, eq=False)
class BatchFunction:
    """A function in Python, its clock, and the arrays that it receives.

    `parameters` and `states` are arrays (..., m) in the shape of the batch. `failures` are the descriptions of outputs
    that are not finite, by the numbers of the samples.
    """

    what: str
    function: Callable[..., Any]
    period: float
    phase: float
    nq: int
    parameters: np.ndarray
    states: np.ndarray
    count: int
    dtype: np.dtype
    failures: dict[int, str] = field(default_factory=dict)

    def compute_outputs(self, due: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """Call the function with the measured states (samples, nq + nv), and return its outputs (samples, count).

        `due` (samples,) is 1 + the index of the instant for samples that wait, and 0 for those that have ended.

        Raises
        ------
        StateError
            If the function does not return numbers of the expected shape. Exceptions of the function are not changed,
            but they have a note with the time.
        """
        t, batch = self.phase + self.period * (int(due.max()) - 1), self.parameters.shape[:-1]
        q, qd = (x.reshape(*batch, x.shape[-1]).copy() for x in np.split(measured, [self.nq], axis=-1))
        states = (self.states,) if self.states.shape[-1] else ()
        try:
            returned = self.function(t, q, qd, self.parameters.copy(), *states)
        except Exception as error:
            error.add_note(f"{self.what} raised this exception at t = {t:.6g} s.")
            raise
        self.states[...] = self.states.astype(self.dtype)  # as compiled code stores them
        found = self._checked(returned, t, (*batch, self.count)).reshape(-1, self.count)
        for sample in np.flatnonzero((due > 0) & ~np.isfinite(found).all(-1)):
            wrong = found[sample][~np.isfinite(found[sample])][0]
            self.failures[int(sample)] = f"{self.what} returned {wrong} at t = {t:.6g} s"
        return found

    def _checked(self, returned: Any, t: float, shape: tuple[int, ...]) -> np.ndarray:
        """Return what the function has returned as an array of this shape."""
        what = f"{self.what}: the result at t = {t:.6g} s"
        expected = f"expected an array of shape {shape}, the batch shape of q0 and the number of outputs"
        if returned is None:
            raise StateError(f"{what} is None; {expected}. Return the outputs")
        found = real_array(what, returned, StateError)
        if found.shape != shape:
            raise StateError(f"{what} has shape {found.shape}; {expected}")
        return found


def is_batch_function(function: Any, has_states: bool) -> bool:
    """Whether Python calls a user function for the whole batch, because it has no argument `out`.

    The last argument of a compiled function may have another name. It then has no default value.
    """
    if not callable(function) or hasattr(function, "py_func"):
        return False
    try:
        signature = inspect.signature(function)
        signature.bind(*ARGUMENTS, *(["states"] if has_states else []))
    except (TypeError, ValueError):  # it needs more arguments, or is a built-in function without a signature
        return False
    return "out" not in signature.parameters


def rows_of_batch(name: str, values: npt.ArrayLike, batch: tuple[int, ...]) -> np.ndarray:
    """Return numbers (m,) or (..., m) as an array (..., m) in the batch shape. Raises StateError if they do not fit."""
    numbers = SampleNumbers(batch)
    _, count = numbers.add_row(name, values)
    rows = numbers.rows()[:, :count]
    samples = int(np.prod(batch, dtype=int))
    return np.broadcast_to(rows, (samples, count)).reshape(*batch, count).copy()
