"""Motions as xarray datasets and pandas data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas
    import xarray

    from .trajectory import Trajectory


def dataset_of(motion: Trajectory) -> xarray.Dataset:
    """Convert a motion to an xarray.Dataset: see `Trajectory.to_xarray`."""
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


def frame_of(motion: Trajectory) -> pandas.DataFrame:
    """Convert a motion to a pandas.DataFrame: see `Trajectory.to_dataframe`."""
    import pandas

    model, samples = motion.model, motion.status.size
    states = np.concatenate([motion.q, motion.qd], axis=-1).reshape(samples * motion.t.size, model.nq + model.nv)
    columns = [*model.position_labels, *(f"d {label}" for label in model.velocity_labels)]
    sample_indices = [np.repeat(x.ravel(), motion.t.size) for x in np.indices(motion.status.shape)]
    names = ["sample"] if len(sample_indices) == 1 else [f"sample_{i}" for i in range(len(sample_indices))]
    index = [*sample_indices, np.tile(motion.t, samples)]
    if len(index) == 1:
        return pandas.DataFrame(states, pandas.Index(index[0], name="time"), columns)
    return pandas.DataFrame(states, pandas.MultiIndex.from_arrays(index, names=[*names, "time"]), columns)
