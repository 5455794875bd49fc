"""Motions as xarray datasets, pandas data frames and Parquet files: methods of `Trajectory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.whole_files import whole_file

if TYPE_CHECKING:
    from pathlib import Path

    import pandas
    import xarray

    from .trajectory import Trajectory


def to_xarray(motion: Trajectory) -> xarray.Dataset:
    """Return the motion as an xarray.Dataset, with names and units of the coordinates (extra `study`)."""
    import xarray

    model, batch = motion.model, tuple(f"sample_{i}" for i in range(motion.status.ndim))
    batch = ("sample",) if len(batch) == 1 else batch
    states: dict[str, tuple[Any, ...]] = {
        "q": ((*batch, "time", "position"), motion.q),
        "qd": ((*batch, "time", "velocity"), motion.qd),
    }
    if motion.has_energy_error:
        states["energy_error"] = ((*batch, "time"), motion.energy_error, {"units": "J"})
    counts = {name: (batch, getattr(motion, name)) for name in ("status", "steps", "rejections", "evaluations")}
    labels = {
        "time": ("time", motion.t, {"units": "s"}),
        "position": np.array(model.position_labels),
        "position_units": ("position", np.array(model.position_units)),
        "velocity": np.array(model.velocity_labels),
        "velocity_units": ("velocity", np.array(model.velocity_units)),
    }
    return xarray.Dataset(states | counts, labels, {"model": model.name, "message": motion.message})


def to_dataframe(motion: Trajectory) -> pandas.DataFrame:
    """Return the motion as a pandas.DataFrame with a row for each sample and time (extra `study`).

    There is a column for each entry of q and of qd, with its label in `Model.position_labels` or `velocity_labels`. If
    a velocity has the label of its position, its column is "d " and the label.
    """
    import pandas

    model, samples = motion.model, motion.status.size
    states = np.concatenate([motion.q, motion.qd], axis=-1).reshape(samples * motion.t.size, model.nq + model.nv)
    positions = model.position_labels
    columns = [*positions, *(f"d {label}" if label in positions else label for label in model.velocity_labels)]
    sample_indices = [np.repeat(x.ravel(), motion.t.size) for x in np.indices(motion.status.shape)]
    names = ["sample"] if len(sample_indices) == 1 else [f"sample_{i}" for i in range(len(sample_indices))]
    index = [*sample_indices, np.tile(motion.t, samples)]
    if len(index) == 1:
        return pandas.DataFrame(states, pandas.Index(index[0], name="time"), columns)
    return pandas.DataFrame(states, pandas.MultiIndex.from_arrays(index, names=[*names, "time"]), columns)


def to_parquet(motion: Trajectory, path: str | Path) -> None:
    """Write `to_dataframe` to a Parquet file (extra `study`)."""
    with whole_file(path) as partial:
        to_dataframe(motion).to_parquet(partial)
