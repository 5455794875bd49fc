"""The results of a study as xarray datasets, from a folder or from memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..analyze.survivors import survivors_in
from ..store.layout import FOLDER, OF_CHECKS, coordinates_of

if TYPE_CHECKING:
    import xarray

    from ..plan.plan import Plan
    from ..run.statistics import Statistics
    from ..store.store import InMemory


def dataset_in(folder: Path) -> xarray.Dataset:
    """Open the results in a folder without a check of the checksums."""
    import xarray

    from . import accessor  # noqa: F401 - it adds the accessor `rbchain` to datasets

    dataset = xarray.open_zarr(folder / FOLDER, chunks=None, mask_and_scale=False, consolidated=False)
    dataset = dataset[dataset.attrs["arrays"]]  # in the order of the description, as in memory
    for described in (dataset, *dataset.variables.values()):
        for name in OF_CHECKS:
            described.attrs.pop(name, None)
    return dataset.set_coords([name for name, variable in dataset.items() if "sample" not in variable.dims])


def dataset_in_memory(store: InMemory, plan: Plan, statistics: Statistics) -> xarray.Dataset:
    """Return results in memory as an xarray Dataset."""
    import xarray

    from . import accessor  # noqa: F401 - it adds the accessor `rbchain` to datasets

    variables = {v.name: (("sample", *v.dims), store.arrays[v.name], v.attributes) for v in plan.variables}
    coordinates = {name: (dim, values, {"units": units}) for name, dim, values, units in coordinates_of(plan)}
    attributes = {"title": plan.description.name, "statistics": json.dumps(statistics.as_json())}
    results = xarray.Dataset(variables, coordinates, attributes)
    text = survivors_in(results)
    return results.assign_attrs(survivors=text) if text else results
