"""KernelModel: call drivers with the arrays of a mechanism. A state passes here from a method of `Model` to a driver.

It adds the checks of states and the working memory to the arrays. All calls for one model share these. Pinocchio
divides the same between `Model` and `Data`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..common.lock_free import cached_property
from ..compiling.jit import direct_call
from ..compiling.levels import LANE_WIDTHS
from ..core.loops import constraint_layout as closure
from ..drivers import closed_chains, dynamics, threads
from ..drivers.blocks import memory_size
from .arguments import FLOAT64, StateArguments, check_out
from .description import Description, indexed
from .determinable import Determinable

#: Single calls with at most this number of rows of result and scratch take at most about 1 ms. They keep Python's
#: global lock.
MAX_ROWS_OF_SINGLE_CALLS = 10_000
#: Number of states of each varied sample that are copied at once, next to each other for a driver.
COLUMNS = 64


def _no_result(*states: Any) -> None:
    """Leave all states to the checks in Python."""


class SingleCalls(dict[Callable[..., Any], Callable[..., np.ndarray | None]]):
    """For each driver a function that computes a single state of float64 without work in Python (`jit.direct_call`).

    It takes the arguments of the driver between the variation and the wrenches. It returns None for states that must be
    checked or converted in Python, and for drivers that have not been called for two single states.
    """

    def __missing__(self, driver: Callable[..., Any]) -> Callable[..., None]:
        return _no_result


class KernelModel(Determinable):
    """A mechanism with the arguments that drivers need besides states.

    Attributes
    ----------
    state_arguments : StateArguments
        The checks of the states of this model. `KernelArrays` and `Determinable` describe the others.
    spare_memory : dict
        Working memory by its use: for `compute`, by the size of a number, the lanes and the rows. Similar models
        share it.
    single_calls : SingleCalls
        The functions that compute single states.
    """

    def __init__(self, description: Description, similar: KernelModel | None = None) -> None:
        super().__init__(description, similar)
        self.state_arguments = StateArguments(description, self.dofs, self.batch_shape)
        self._shared = self.batch_shape == ()
        self.spare_memory: dict[tuple[int | str, ...], list[Any]] = {}
        if isinstance(self.similar, KernelModel):
            self.spare_memory = self.similar.spare_memory
        self.single_calls = SingleCalls()
        self._drivers_of_single_states: set[Callable[..., Any]] = set()

    def compute(
        self,
        driver: Callable[..., Any],
        shape: tuple[int, ...],
        names: Sequence[str],
        states: Sequence[Any],
        *wrenches: Any,
        scratch: int = 0,
        given: tuple[Any, ...] = (),
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Check the arguments, call a driver, and return its result for each sample.

        Parameters
        ----------
        driver : function
            A driver of `rbchain.drivers`.
        shape : tuple
            Shape of the result of one sample.
        names, states : sequences
            Names and values of the states, positions first.
        *wrenches : array_like or None
            Wrenches on the bodies, if the driver takes them.
        scratch : int
            Number of rows of working memory that the driver needs besides its result.
        given : tuple
            Arguments of the driver that are the same for all samples.
        out : array, optional
            The array for the result; None for new memory.

        Returns
        -------
        (..., *shape) array
        """
        if out is None and (not wrenches or wrenches[0] is None):
            # Compiled code checks a single state, because checks in Python would take longer than the dynamics.
            result = self.single_calls[driver](*given, *states)
            if result is not None:
                return result
        return self._compute(driver, shape, names, states, *wrenches, scratch=scratch, given=given, out=out)

    def _compute(
        self,
        driver: Callable[..., Any],
        shape: tuple[int, ...],
        names: Sequence[str],
        states: Sequence[Any],
        *wrenches: Any,
        scratch: int,
        given: tuple[Any, ...],
        out: np.ndarray | None,
    ) -> np.ndarray:
        """Compute as `compute` does, with checks and conversions in Python."""
        arrays, dtype, batch = self.state_arguments.check(names, states, *wrenches)
        if out is not None:
            check_out(out, (*batch, *shape), dtype, [*states, *wrenches])
        result: np.ndarray = np.empty((*batch, *shape), dtype) if out is None else out
        written: np.ndarray = result.view(np.ndarray)  # drivers do not accept subclasses
        samples, rows = math.prod(batch), math.prod(shape) + scratch
        if samples == 0:
            return result
        of_model = (*self.arrays(dtype), *given)
        if not self._shared and batch != self.batch_shape:
            self._compute_columns(driver, of_model, arrays, written, batch, rows)
            return result
        if batch:
            *arrays, written = [x.reshape(samples, x.size // samples) for x in (*arrays, written)]
        else:
            written = written.reshape(-1)
        arguments = (*of_model, *arrays, written)
        self._run(driver, [arguments], samples, dtype, LANE_WIDTHS[dtype.name] if batch else 1, rows)
        is_single = self._shared and not batch and dtype is FLOAT64 and out is None and all(x is None for x in wrenches)
        if not is_single or rows > MAX_ROWS_OF_SINGLE_CALLS:
            return result
        if driver not in self._drivers_of_single_states:  # a model of an optimizer may be called only once
            self._drivers_of_single_states.add(driver)
        elif driver not in self.single_calls:
            call = direct_call(driver, (self.new_memory(dtype, 1, rows), *arguments, 0, 1), shape)
            self.single_calls[driver] = _no_result if call is None else call
        return result

    def _compute_columns(
        self,
        driver: Callable[..., Any],
        of_model: tuple[Any, ...],
        arrays: Sequence[np.ndarray],
        result: np.ndarray,
        batch: tuple[int, ...],
        rows: int,
    ) -> None:
        """Call a driver for several states of each varied sample, one after the other.

        The states lie along the axes of `batch` that the batch of the model does not have, or in which it has length 1.
        """
        own = (*(1,) * (len(batch) - len(self.batch_shape)), *self.batch_shape)
        varying = [axis for axis, of_samples in enumerate(own) if batch[axis] != of_samples]
        if not varying:
            batch, varying, result = (1, *batch), [0], result[None]
            arrays = [x[None] for x in arrays]
        *outer, last = varying
        samples, dtype, axis = math.prod(own), result.dtype, last - len(outer)
        index: list[Any] = [slice(None)] * len(batch)
        for place in np.ndindex(*(batch[a] for a in outer)):
            for a, i in zip(outer, place, strict=True):
                index[a] = i
            for first in range(0, batch[last], COLUMNS):
                index[last] = slice(first, first + COLUMNS)
                given = [np.moveaxis(x[tuple(index)], axis, 0) for x in arrays]
                states = [np.ascontiguousarray(x).reshape(len(x), samples, x.shape[-1]) for x in given]
                written = np.moveaxis(result[tuple(index)], axis, 0)
                found = np.empty((len(written), samples, written.size // (len(written) * samples)), dtype)
                calls = [(*of_model, *column) for column in zip(*states, found, strict=True)]
                self._run(driver, calls, samples, dtype, LANE_WIDTHS[dtype.name], rows)
                written[...] = found.reshape(written.shape)

    def _run(
        self,
        driver: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        samples: int,
        dtype: np.dtype,
        width: int,
        rows: int,
    ) -> None:
        """Call a driver with these arguments for all samples in threads, one call after the other.

        A block of `width` lanes has `rows` rows of working memory.
        """
        spare = self.spare_memory.setdefault((dtype.itemsize, width, rows), [])
        max_threads = 1 + samples * self.nv // threads.DOFS_PER_THREAD
        new_memory = partial(self.new_memory, dtype, width, rows)
        for arguments in calls:
            threads.run(driver, spare, new_memory, arguments, samples, width, max_threads)

    def new_memory(self, dtype: np.dtype, width: int, rows: int) -> np.ndarray:
        """Allocate working memory for a block of `width` lanes, with these many rows for the driver.

        The rows that constraints need are added.
        """
        tables, constraints = self.constraint_tables, len(self.description.constraints)  # with added inertias
        rows += 0 if tables is None else int(tables.sizes[closure.MEMORY_SIZE])
        return np.empty(memory_size(self.topology, rows, width, dtype.itemsize, constraints), dtype)

    @cached_property
    def with_axis_of_states(self) -> KernelModel:
        """The model for several states of each sample, along one more axis after the batch."""
        if self._shared:
            return self
        model = KernelModel(indexed(self.description, (..., None)), self)
        model.of_float32 = indexed(self.of_float32, (..., None))
        model._arrays = self._arrays  # the same samples in the same order
        return model

    @cached_property
    def forward_dynamics_driver(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The driver of forward dynamics, for closed or open chains, and its argument `given` of `compute`."""
        if self.constraint_tables is None:
            return dynamics.forward_dynamics, ()
        return closed_chains.forward_dynamics, (self.constraint_tables,)

    @cached_property
    def zeros(self) -> np.ndarray:
        """Velocities of zero (nv,), which are only read."""
        return np.zeros(self.nv)

    def __reduce__(self) -> tuple[type[KernelModel], tuple[Description]]:
        return type(self), (self.description,)
