"""Check the arguments of functions of a state. A state passes here before a driver runs, except on the fast path."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ..common.misspelled import SuggestsAttributes
from ..common.pickles import PickledByName
from ..common.real_arrays import FLOAT32, FLOAT64, common_batch, excerpt, real_array
from ..drivers.single_states import QUATERNION_TOLERANCE
from ..errors import ArgumentError
from .description import Description
from .topology import Dofs

POSITIONS = ("q", "q0", "q1", "q_guess")  # arguments with nq values; all others have nv
_Samples = TypeVar("_Samples", bound="SampleSequence")
#: Largest difference between the norm of a quaternion and 1.
UNIT_LENGTH = {FLOAT64: QUATERNION_TOLERANCE, FLOAT32: 1e-5}


class StateArguments:
    """Check the states of one model: their shapes, their batch, and the norms of quaternions.

    Parameters
    ----------
    description : Description
    dofs : Dofs
        The degrees of freedom of the description.
    batch_shape : tuple
        Shape of the batch of samples whose parameters differ; () if all samples share them.
    """

    def __init__(self, description: Description, dofs: Dofs, batch_shape: tuple[int, ...]) -> None:
        self.body_names, self.dofs, self.batch_shape = description.body_names, dofs, batch_shape
        self.nq, self.nv, self.n_bodies = int(dofs.position_counts.sum()), dofs.body.size, dofs.counts.size

    def check(
        self,
        names: Sequence[str],
        states: Sequence[npt.ArrayLike],
        *wrenches: Any,
        has_samples: bool = True,
    ) -> tuple[list[np.ndarray], np.dtype, tuple[int, ...]]:
        """Return state arguments ready for a driver: C-contiguous, of one precision and one batch shape.

        Parameters
        ----------
        names : sequence of str
            Names of the arguments, for messages. Arguments in `POSITIONS` have nq numbers, all others nv.
        states : sequence of array_like
        *wrenches : array_like or None
            Wrenches on the bodies (..., n, 6), if the driver takes them; None for zero.
        has_samples : bool
            Whether the result depends on the samples of the model, and so their batch counts, too.

        Returns
        -------
        arrays : list of arrays
            The states in order, then the wrenches if the driver takes them, as (..., 6 nv), or (..., 0) for None.
        dtype : numpy dtype
        batch : tuple
            Shape of the batch, by NumPy's rule of broadcasting. The samples of the model count like an argument.

        Raises
        ------
        ArgumentError
            If a shape or a batch shape does not fit, an argument is not real, or a quaternion is not of norm 1.
        """
        arrays = [as_array(name, x) for name, x in zip(names, states, strict=True)]
        lengths = [("nq", self.nq) if name in POSITIONS else ("nv", self.nv) for name in names]
        trailing: list[tuple[int, ...]] = [(length,) for _, length in lengths]
        has_wrenches = len(wrenches) > 0 and wrenches[0] is not None
        if has_wrenches:
            names, arrays = (*names, "wrenches"), [*arrays, as_array("wrenches", wrenches[0])]
            lengths, trailing = [*lengths, ("n_bodies", self.n_bodies)], [*trailing, (self.n_bodies, 6)]
        for name, x, own, (symbol, length) in zip(names, arrays, trailing, lengths, strict=True):
            if x.shape[max(0, x.ndim - len(own)) :] != own:
                expected = ", ".join(["...", *map(str, own)])
                raise ArgumentError(
                    f"{name} has shape {x.shape}; expected ({expected}), because the model has {symbol} = {length}"
                )
            if name in POSITIONS and self.dofs.quaternions:
                self.check_quaternions(name, x)
        dtype = precision_of(arrays)
        batches = [x.shape[: x.ndim - len(own)] for x, own in zip(arrays, trailing, strict=True)]
        batch = self.batch_shape if has_samples else ()
        if any(shape not in ((), batch) for shape in batches):
            batch = self.common_batch(dict(zip(names, batches, strict=True)), has_samples)
        ready = []
        for x, own in zip(arrays, trailing, strict=True):
            # broadcast_to returns a read-only view, which np.require would copy even if the shape fits
            whole = x if x.shape == batch + own else np.broadcast_to(x, batch + own)
            is_ready = whole.dtype is dtype and whole.flags.carray
            ready.append(whole if is_ready else np.require(whole, dtype, ("C", "A", "W")))
        if has_wrenches:
            ready[-1] = self._to_dofs(ready[-1]).reshape(*batch, 6 * self.nv)
        elif wrenches:  # an empty array, because each driver would be compiled once more for None
            ready.append(np.empty((*batch, 0), dtype))
        return ready, dtype, batch

    def common_batch(self, batches: Mapping[str, tuple[int, ...]], has_samples: bool = True) -> tuple[int, ...]:
        """Return the batch of arguments, by their names, and of the model; raise an ArgumentError if there is none."""
        own = self.batch_shape if has_samples else ()
        is_behind = own and any(len(x) > len(own) and x[: len(own)] == own for x in batches.values())
        remedy = ". Use model[..., None] for several states of each sample, such as motion.q" if is_behind else ""
        return common_batch({**batches, **({"the model": own} if own else {})}, ArgumentError, remedy=remedy)

    def check_quaternions(self, name: str, q: np.ndarray) -> None:
        """Raise an error for finite quaternions whose norm is not 1. Others set the status of their sample."""
        allowed = UNIT_LENGTH.get(q.dtype, UNIT_LENGTH[FLOAT64])
        for at in self.dofs.quaternions:
            found = q[..., at : at + 4]
            square = np.einsum("...i,...i", found, found)
            # the square of 1 + x differs from 1 by 2 x
            bad = (abs(square - 1.0) > 2.0 * allowed) & np.isfinite(found).all(-1)
            if bad.any():
                sample = tuple(int(i) for i in np.argwhere(bad)[0])
                where = f" of sample {sample[0] if len(sample) == 1 else sample}" if sample else ""
                body = self.body_names[int(np.searchsorted(self.dofs.position_index, at, "right")) - 1]
                raise ArgumentError(
                    f"{name}{where}: the quaternion of body {body!r}, {name}[{at}:{at + 4}], is "
                    f"{found[sample].tolist()}; expected [x, y, z, w] with a norm of 1 to {allowed:g}. Divide it by "
                    "its norm, or use [0, 0, 0, 1] as in model.neutral()"
                )

    def _to_dofs(self, of_bodies: np.ndarray) -> np.ndarray:
        """Return values of bodies (..., n, m) as the kernels index them: (..., nv, m), in each body's last dof."""
        if self.nv == self.n_bodies:
            return of_bodies
        of_dofs = np.zeros((*of_bodies.shape[:-2], self.nv, of_bodies.shape[-1]), of_bodies.dtype)
        of_dofs[..., self.dofs.last, :] = of_bodies
        return of_dofs


def check_sample_index(index: Any, batch_shape: tuple[int, ...], *, has_new_axes: bool = False, by_name: str) -> None:
    """Raise an ArgumentError if an index is not one of NumPy for the axes of a batch, or a sample does not exist.

    None and Ellipsis are allowed if the index may have new axes. `by_name` is the expression to use instead of an index
    that is a name, which stands for `{0}`.
    """
    if isinstance(index, str):
        raise ArgumentError(
            f"the sample index is the name {index!r}; expected the number of a sample. For a name, use "
            f"{by_name.format(index)}"
        )
    entries = index if isinstance(index, tuple) else (index,)
    chosen = [k for k in entries if not (has_new_axes and (k is None or k is Ellipsis))]
    if not batch_shape and chosen:
        raise ArgumentError(f"the sample index is {excerpt(index)}, but this is not a batch; use it without an index")
    arrays = [np.asarray(k) for k in chosen if not isinstance(k, slice)]
    is_known = all(k.size == 0 or k.dtype.kind in ("iub" if k.ndim else "iu") for k in arrays)
    try:
        if is_known:
            _ = np.broadcast_to(False, batch_shape)[index]  # an array that needs no memory
            return
    except (IndexError, TypeError):  # TypeError for a slice of other types
        pass
    first, last = (0,) * len(batch_shape), tuple(size - 1 for size in batch_shape)
    is_flat = len(batch_shape) == 1
    expected = f"an integer from 0 to {last[0]}" if is_flat else f"a tuple of integers from {first} to {last}"
    raise ArgumentError(
        f"the sample index is {excerpt(index)}; expected {expected}, for a batch of shape {batch_shape}, or a slice or "
        "an array of these"
    )


def numbers_of_samples(index: Any, batch_shape: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of the samples in a batch that a valid index chooses, in the shape of the result."""
    return np.arange(math.prod(batch_shape)).reshape(batch_shape)[index]


class SampleSequence:
    """Base class of batches that are indexed by their samples: length, iteration along the first axis, and truth."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch."""
        raise NotImplementedError

    def __getitem__(self, samples: Any) -> Self:
        raise NotImplementedError

    def __len__(self) -> int:
        """Return the number of samples along the first axis of the batch. Raises TypeError without a batch."""
        if not self.batch_shape:
            raise TypeError(f"this {type(self).__name__} is not a batch, so it has no length")
        return self.batch_shape[0]

    def __iter__(self) -> Iterator[Self]:
        """Yield the samples, or the batches, along the first axis."""
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        """Return True, even without samples."""
        return True


class SampleArrays(PickledByName, SuggestsAttributes, SampleSequence):
    """Base class of results of a batch: dataclasses with the array `success`, in which all arrays have its axes first.

    Other results of the same batch may be among the fields. `shared_names` are the fields whose arrays are the same for
    all samples.
    """

    internal_names: ClassVar[tuple[str, ...]] = ("batch_shape", "shared_names")
    shared_names: ClassVar[tuple[str, ...]] = ()
    success: np.ndarray

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.success.shape

    def __getitem__(self, samples: Any) -> Self:
        """Return the results of one sample of the batch, or of several."""
        check_sample_index(samples, self.batch_shape, by_name="an index of the last axis of its arrays")
        own = {name: x for name, x in vars(self).items() if name not in self.shared_names}
        chosen: dict[str, Any] = {name: np.asarray(x[samples]) for name, x in own.items() if isinstance(x, np.ndarray)}
        chosen |= {name: x[samples] for name, x in own.items() if isinstance(x, SampleArrays)}
        return replace(cast(Any, self), **chosen)


def with_batch(samples: _Samples, batch: tuple[int, ...]) -> _Samples:
    """Return a varied model with a batch to which its own can be broadcast, so that samples may be repeated."""
    if samples.batch_shape in ((), batch):
        return samples
    numbers = np.broadcast_to(np.arange(math.prod(samples.batch_shape)).reshape(samples.batch_shape), batch)
    return samples[np.unravel_index(numbers, samples.batch_shape)]


def precision_of(arrays: Sequence[np.ndarray]) -> np.dtype:
    """Return float32 if all arguments are float32, and float64 otherwise."""
    return FLOAT32 if all([x.dtype == FLOAT32 for x in arrays]) else FLOAT64


def as_array(name: str, x: npt.ArrayLike) -> np.ndarray:
    """Return an argument as an array of float32 or float64. Raises ArgumentError, with its name, if it is not real."""
    return real_array(name, x, ArgumentError, keep_float32=True)


def check_out(out: np.ndarray, shape: tuple[int, ...], dtype: np.dtype, arguments: Sequence[Any]) -> None:
    """Raise an error for an `out` of the wrong shape, type or layout, or that shares memory with an argument."""
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise ArgumentError(f"out is a {type(out).__name__}; expected a NumPy array of shape {shape} and type {dtype}")
    if out.shape != shape or out.dtype != dtype or not out.flags.carray:
        flaws = [
            (not out.flags.writeable, ", read-only"),
            (not out.flags.c_contiguous, ", not C-contiguous"),
            (not out.flags.aligned, ", not aligned"),
        ]
        order = "".join(text for is_present, text in flaws if is_present)
        raise ArgumentError(
            f"out has shape {out.shape}, type {out.dtype}{order}; expected {shape}, {dtype}, C-contiguous and "
            f"writeable. Use out=np.empty({shape}, np.{dtype})"
        )
    check_overlap(out, arguments)


def check_overlap(out: np.ndarray | None, arguments: Sequence[Any]) -> None:
    """Raise an error for an `out` that shares memory with an argument."""
    if out is None:
        return
    if any(isinstance(x, np.ndarray) and np.may_share_memory(out, x) for x in arguments):
        raise ArgumentError(
            "out shares memory with an argument, which would be overwritten while it is read; expected a separate "
            "array. Use out=np.empty(shape)"
        )


def copied_to(out: np.ndarray | None, result: np.ndarray, arguments: Sequence[Any]) -> np.ndarray:
    """Return the result, copied into `out` if that is given."""
    if out is None:
        return result
    check_out(out, result.shape, result.dtype, arguments)
    out[...] = result
    return out


def names_of_frames(frames: Any) -> list[str]:
    """Return several names of frames as a list; raise an ArgumentError if they are not a sequence of names."""
    names = list(frames) if isinstance(frames, (list, tuple, np.ndarray)) else []
    if not names:
        raise ArgumentError(f"frame is {excerpt(frames)}; expected the name of a body or frame, or a list of names")
    return names


def named_samples(failed: np.ndarray) -> str:
    """Name the samples that failed, as the start of a sentence."""
    if not failed.ndim:
        return ""
    first = tuple(int(i) for i in np.argwhere(failed)[0])
    return (
        f"in {int(failed.sum())} of {failed.size} samples, the first being {first[0] if len(first) == 1 else first}, "
    )
