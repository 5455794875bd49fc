"""Trajectories as xarray datasets, pandas data frames and Parquet files: methods of `Trajectory`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.body_contacts import BodyContact
from ..common.whole_files import whole_file

if TYPE_CHECKING:
    from pathlib import Path

    import pandas
    import xarray

    from .trajectory import Trajectory

AXES = ("x", "y", "z")


def to_xarray(motion: Trajectory) -> xarray.Dataset:
    """Return the trajectory as an xarray.Dataset, with names and units of the coordinates (extra `study`).

    It contains `q`, `qd`, the actuator forces `tau`, and `contact_forces` along `contact` and `axis`. `event_count` is
    the number of occurrences of each event, and `event_time` contains the times of the recorded occurrences along
    `occurrence`.

    Examples
    --------
    >>> import rbchain as rb
    >>> motion = rb.Model.serial_chain(2).simulate(duration=1.0, save_at=11, events=[rb.Event("link1", value=-1.0)])
    >>> found = motion.to_xarray()
    >>> found.tau.sel(velocity="link2").dims, found.event_count.values.tolist()
    (('time',), [1])
    """
    import xarray

    model, batch = motion.model, _batch_axes(motion)
    states: dict[str, tuple[Any, ...]] = {
        "q": ((*batch, "time", "position"), motion.q),
        "qd": ((*batch, "time", "velocity"), motion.qd),
    }
    labels: dict[str, Any] = {
        "time": ("time", motion.t, {"units": "s"}),
        "position": np.array(model.position_labels),
        "position_units": ("position", np.array(model.position_units)),
        "velocity": np.array(model.velocity_labels),
        "velocity_units": ("velocity", np.array(model.velocity_units)),
    }
    if motion.knows_tau_and_qdd:
        states["tau"] = ((*batch, "time", "velocity"), motion.tau)
        labels["force_units"] = ("velocity", np.array(_force_units(motion)))
    if motion.has_energy_error:
        states["energy_error"] = ((*batch, "time"), motion.energy_error, {"units": "J"})
    if motion.contact_forces.shape[-2]:
        states["contact_forces"] = ((*batch, "time", "contact", "axis"), motion.contact_forces, {"units": "N"})
        labels |= {"contact": np.array(_contact_labels(motion)), "axis": np.array(AXES)}
    if motion.events:
        states["event_count"] = ((*batch, "event"), np.stack([record.count for record in motion.events], -1))
        states["event_time"] = ((*batch, "event", "occurrence"), _times_of_events(motion), {"units": "s"})
    counts = {name: (batch, getattr(motion, name)) for name in ("status", "steps", "rejections", "evaluations")}
    return xarray.Dataset(states | counts, labels, {"model": model.name, "message": motion.message})


def to_dataframe(motion: Trajectory) -> pandas.DataFrame:
    """Return the trajectory as a pandas.DataFrame with a row for each sample and time (extra `study`).

    There is a column for each entry of q and of qd, with its label in `Model.position_labels` or `velocity_labels`. If
    a velocity has the label of its position, its column is "d " and the label. Columns of the actuator forces, such as
    "tau link1", and of contact forces, such as "SphereContact on 'foot' z", follow. The column "event 0" counts the
    recorded occurrences of the first event up to each time. `attrs["units"]` contains the units by column.

    Examples
    --------
    >>> import rbchain as rb
    >>> table = rb.Model.serial_chain(1).simulate(duration=1.0, save_at=11).to_dataframe()
    >>> list(table.columns), table.attrs["units"]["tau link1"]
    (['link1', 'd link1', 'tau link1'], 'N m')
    """
    import pandas

    samples = motion.status.size
    columns: list[str] = []
    units: list[str] = []
    arrays = []
    for names, of_names, values in _blocks(motion):
        columns.extend(names)
        units.extend(of_names)
        arrays.append(values.reshape(samples * motion.t.size, len(names)))
    table = np.concatenate(arrays, -1)
    sample_indices = [np.repeat(x.ravel(), motion.t.size) for x in np.indices(motion.status.shape)]
    index: Any = pandas.Index(motion.t, name="time")
    if sample_indices:
        axes = [*sample_indices, np.tile(motion.t, samples)]
        index = pandas.MultiIndex.from_arrays(axes, names=[*_batch_axes(motion), "time"])
    found = pandas.DataFrame(table, index, columns)
    found.attrs["units"] = dict(zip(columns, units, strict=True))
    return found


def _blocks(motion: Trajectory) -> Iterator[tuple[list[str], Sequence[str], np.ndarray]]:
    """Yield the columns of a table in groups: their names, their units and values (..., times, columns)."""
    model, labels = motion.model, motion.model.velocity_labels
    positions = list(model.position_labels)
    yield positions, model.position_units, motion.q
    velocities = [f"d {label}" if label in positions else label for label in labels]
    yield velocities, model.velocity_units, motion.qd
    if motion.knows_tau_and_qdd:
        yield [f"tau {label}" for label in labels], _force_units(motion), motion.tau
    forces = motion.contact_forces
    if forces.shape[-2]:
        names = [f"{contact} {axis}" for contact in _contact_labels(motion) for axis in AXES]
        yield names, ["N"] * len(names), forces.reshape(*forces.shape[:-2], len(names))
    for i, record in enumerate(motion.events):
        yield [f"event {i}"], ["1"], (record.t[..., None, :] <= motion.t[:, None]).sum(-1)[..., None]


def _batch_axes(motion: Trajectory) -> tuple[str, ...]:
    """Return the names of the axes of the batch."""
    axes = motion.status.ndim
    return ("sample",) if axes == 1 else tuple(f"sample_{i}" for i in range(axes))


def _force_units(motion: Trajectory) -> list[str]:
    """Return the unit of each entry of tau: "N m" or "N"."""
    return ["N m" if unit == "rad/s" else "N" for unit in motion.model.velocity_units]


def _contact_labels(motion: Trajectory) -> list[str]:
    """Return a label of each contact with a body: its name, or its class and frames; with a number if there are two."""
    labels = [force.name or force.label() for force in motion.forces if isinstance(force, BodyContact)]
    return [label if labels.count(label) == 1 else f"{label} ({i})" for i, label in enumerate(labels)]


def _times_of_events(motion: Trajectory) -> np.ndarray:
    """Return the times of the recorded occurrences of all events (..., events, occurrences), with NaN at their ends."""
    most = max(record.t.shape[-1] for record in motion.events)
    times = np.full((*motion.status.shape, len(motion.events), most), np.nan)
    for i, record in enumerate(motion.events):
        times[..., i, : record.t.shape[-1]] = record.t
    return times


def to_parquet(motion: Trajectory, path: str | Path) -> None:
    """Write `to_dataframe` to a Parquet file (extra `study`)."""
    with whole_file(path) as partial:
        to_dataframe(motion).to_parquet(partial)
