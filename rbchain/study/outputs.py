"""Outputs of the samples: what is stored of each, and how it is computed from its trajectory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..actions.events import Event
from ..chain import Model
from ..errors import Status
from ..trajectory import Trajectory
from .description import Outputs
from .measures import Measure
from .nominal import Nominal
from .places import call_at

NOT_RUN = -1  # in the place of a Status: the sample has not been computed yet
STATUS_LABEL = f"how the sample ended: {Status.DONE:d} done, {Status.STOPPED:d} stopped by an event; else failed"


@dataclass(frozen=True)
class Variable:
    """An output of the study: its name, axes behind that of the samples, and what it is measured in."""

    name: str
    dims: tuple[str, ...] = ()
    dtype: type[np.generic] = np.float64
    units: str = ""
    label: str = ""


def variables_of(outputs: Outputs, measures: Sequence[Measure], nominal: Nominal) -> Iterator[Variable]:
    """What is kept of every sample; the status last, which says that the rest is there."""
    states = (("q", "position"), ("qd", "velocity"))
    yield Variable("parameters", ("parameter",), label="what was drawn")
    if outputs.final:
        yield from (Variable(f"{name}_final", (dim,), label=f"{name} at the end") for name, dim in states)
    if outputs.extremes:
        for name, dim in states:
            yield Variable(f"{name}_min", (dim,), label=f"least {name} at the times looked at")
            yield Variable(f"{name}_max", (dim,), label=f"greatest {name} at the times looked at")
    if outputs.motion:
        yield from (Variable(name, ("time", dim), label=name) for name, dim in states)
    if nominal.events:
        yield Variable("event_count", ("event",), np.int64, label="how often an event happened")
        yield Variable("event_time", ("event",), units="s", label="when an event happened first")
    for measure in measures:
        units = measure.units_in(nominal.model)
        yield Variable(measure.name, units=units, label=f"{measure.name} ({units})" if units else measure.name)
    yield Variable("end_time", units="s", label="time that the sample reached, of the times looked at")
    yield Variable("status", dtype=np.int8, label=STATUS_LABEL)


def has_failed(status: np.ndarray) -> np.ndarray:
    """Which samples were computed, and did not come to their end."""
    return ~np.isin(status, [NOT_RUN, *(s for s in Status if s.success)])


def no_outputs_of(variables: Sequence[Variable], sizes: Mapping[str, int], values: np.ndarray) -> dict[str, np.ndarray]:
    """The outputs of samples with draws (m, columns) that no sample can have."""
    found = {}
    for variable in variables:
        shape = (len(values), *(sizes[d] for d in variable.dims))
        found[variable.name] = np.full(shape, np.nan if variable.dtype is np.float64 else 0, variable.dtype)
    return found | {
        "parameters": values,
        "status": np.full(len(values), Status.INVALID_PARAMETERS, np.int8),
        "end_time": np.zeros(len(values)),
    }


def outputs_of(
    variables: Sequence[Variable],
    measures: Sequence[Measure],
    values: np.ndarray,
    many: Model,
    motion: Trajectory,
    events: Sequence[Event],
) -> dict[str, np.ndarray]:
    """All outputs of the samples with draws (m, columns), by name, from their models and motions."""
    failed = has_failed(motion.status)
    q, qd = motion.q, motion.qd
    ends = np.isfinite(qd).all(-1).sum(-1)
    motion = _held_after_stop(motion, events)
    found = {"parameters": values, "status": motion.status.astype(np.int8)}
    found["end_time"] = np.where(ends > 0, motion.t[np.maximum(ends, 1) - 1], 0.0)
    nan_if_failed = np.where(failed, np.nan, 1.0)
    for name, held, raw in (("q", motion.q, q), ("qd", motion.qd, qd)):
        found |= {
            name: raw,
            f"{name}_final": held[:, -1] * nan_if_failed[:, None],
            f"{name}_min": held.min(1) * nan_if_failed[:, None],
            f"{name}_max": held.max(1) * nan_if_failed[:, None],
        }
    if events:
        found["event_count"] = np.stack([record.count for record in motion.events], -1)
        found["event_time"] = np.stack([record.t[..., 0] for record in motion.events], -1)
    for i, measure in enumerate(measures):
        found[measure.name] = call_at(f"measures[{i}], {measure.name!r}", measure.values, many, motion) * nan_if_failed
    return {v.name: found[v.name].astype(v.dtype, copy=False) for v in variables}


def _held_after_stop(motion: Trajectory, events: Sequence[Event]) -> Trajectory:
    """The motion, in which a sample that an event stopped stays in the state it had then."""
    stopped = motion.status == Status.STOPPED
    if not stopped.any():
        return motion
    q, qd, t = motion.q.copy(), motion.qd.copy(), np.full(stopped.shape, np.inf)
    for event, record in zip(events, motion.events, strict=True):
        if event.stop:
            here = stopped & (record.count > 0) & np.isinf(t)
            t[here] = record.t[here, 0]
            later = here[:, None] & (motion.t >= t[:, None])
            q[later] = np.broadcast_to(record.q[:, :1], q.shape)[later]
            qd[later] = np.broadcast_to(record.qd[:, :1], qd.shape)[later]
    return replace(motion, q=q, qd=qd)
