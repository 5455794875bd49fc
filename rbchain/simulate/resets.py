"""New states and parameters of some samples of a stepper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt, real_array
from ..errors import ArgumentError
from ..model.description import VARIABLE_FIELDS
from .loops import closed_initial_states

if TYPE_CHECKING:
    from ..facade.model import Model


#: Arguments of other functions that a caller may give to `reset`, and what to give instead.
OTHER_NAMES = {
    "q0": "q",
    "qd0": "qd",
    "qpos": "q",
    "qvel": "qd",
    "samples": "the first position",
    "ids": "the first position",
}


def refuse_arguments(fields: Mapping[str, Any], others: Mapping[str, Any], study: Any) -> None:
    """Raise an error for arguments that `reset` calls by another name, and those that a study draws if it is given."""
    name = next((name for name in OTHER_NAMES if name in fields), None)
    if name is not None:
        raise ArgumentError(f"reset has no argument {name!r}; use {OTHER_NAMES[name]}")
    beside = next((name for name, value in {**others, **fields}.items() if value is not None), None)
    if study is not None and beside is not None:
        raise ArgumentError(
            f"reset has the arguments study and {beside}, but the study draws everything. Put {beside} into the study"
        )


def rows_of(samples: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of the samples that an index chooses in a batch. Raises ArgumentError for a wrong index."""
    if samples is None or isinstance(samples, Mapping):
        raise ArgumentError(
            f"samples is {excerpt(samples)}; expected numbers of samples, a slice, or an array of bool. Write "
            "reset(..., parameters) for all samples"
        )
    try:
        rows: np.ndarray = np.atleast_1d(np.arange(math.prod(shape)).reshape(shape)[samples]).reshape(-1)
    except (IndexError, ValueError) as error:
        raise ArgumentError(
            f"samples is {excerpt(samples)}, which is not an index of a batch of shape {shape} ({error}); expected "
            "numbers of samples, a slice, or an array of bool"
        ) from None
    if np.unique(rows).size != rows.size:
        raise ArgumentError(f"samples is {excerpt(samples)}, which contains a sample twice; expected each one once")
    return rows


def groups_of_equal(values: np.ndarray) -> list[np.ndarray]:
    """Return the places of equal values, one array for each value."""
    found, group = np.unique(values, return_inverse=True)
    return [np.flatnonzero(group == number) for number in range(len(found))]


def states_of_rows(name: str, given: npt.ArrayLike | None, default: np.ndarray) -> np.ndarray:
    """Return new states of samples (samples, n); the default if none are given."""
    if given is None:
        return default
    array = real_array(name, given, ArgumentError)
    if array.ndim > 2 and array.size == default.size:  # of samples along several axes
        array = array.reshape(-1, array.shape[-1])
    try:
        if array.ndim and array.shape[-1] != default.shape[1]:
            raise ValueError
        return np.broadcast_to(array, default.shape).astype(default.dtype)
    except ValueError:
        raise ArgumentError(
            f"{name} has shape {array.shape}; expected {default.shape[1:]} for one state of all samples to reset, or "
            f"{default.shape} for one of each"
        ) from None


def with_parameters(
    model: Model,
    batch: tuple[int, ...],
    rows: np.ndarray,
    paths: Mapping[str, npt.ArrayLike] | None,
    parameters: Mapping[str, Any],
) -> Model:
    """Return a model with new parameters of some samples of its batch, as for `Model.vary`.

    Without batch axes, the model has none either.
    """
    if not paths and not parameters:
        return model
    places = np.unravel_index(rows, batch) if batch else ()
    part = model[places] if model.batch_shape else model
    varied = part.vary(paths, **parameters)
    if varied.batch_shape not in ((), rows.shape):
        raise ArgumentError(
            f"the new parameters have the batch shape {varied.batch_shape}, but there are {rows.size} samples to "
            f"reset; expected parameters of one sample, or of each one with the batch shape {rows.shape}"
        )
    if not batch:
        return varied[0] if varied.batch_shape else varied
    return _with_values(model, batch, rows, varied, part)


def with_samples(model: Model, batch: tuple[int, ...], rows: np.ndarray, samples: Model) -> Model:
    """Return a model in which samples of its batch have the parameters of other samples.

    `samples` has the batch shape (rows,), or () for equal samples. Without batch axes, the model has none either.
    """
    return _with_values(model, batch, rows, samples if batch or not samples.batch_shape else samples[0], model)


def _with_values(model: Model, batch: tuple[int, ...], rows: np.ndarray, samples: Model, before: Model) -> Model:
    """Return a model with the fields of samples in some rows, except for those that `before` has, too."""
    places, values = np.unravel_index(rows, batch) if batch else (), {}
    for name, axes in VARIABLE_FIELDS.items():
        old, new = (getattr(x.description, name) for x in (model, samples))
        is_shared = old.ndim == new.ndim == len(axes)
        if new is getattr(before.description, name) or (is_shared and np.array_equal(old, new)):
            continue
        values[name] = np.array(np.broadcast_to(old, (*batch, *old.shape[old.ndim - len(axes) :])))
        values[name][places] = new
    return model.vary(**values) if values else model


def closed_rows(
    model: Model,
    held: np.ndarray,
    rows: np.ndarray,
    all_states: Sequence[np.ndarray],
    states: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Return new states of some samples that satisfy the constraints of a model of the whole batch to round-off.

    `all_states` are q and qd of all samples, which change. `held` are the dofs whose motion is prescribed.
    """
    for x, new in zip(all_states, states, strict=True):
        x[rows] = new
    arrays = [x.reshape(*model.batch_shape, x.shape[1]) if model.batch_shape else x for x in all_states]
    closed, failed = closed_initial_states(model, held, arrays)
    if failed[rows].any():
        raise ArgumentError(
            f"the new state of sample {int(rows[np.argmax(failed[rows])])} does not satisfy the constraints; expected "
            "a closed configuration. Use model.assemble and model.assemble_velocities"
        )
    return [x.reshape(-1, x.shape[-1])[rows] for x in closed]
