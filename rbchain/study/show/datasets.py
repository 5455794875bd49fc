"""The results of a study as xarray datasets, from a folder or from memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..analyse.survivors import survivors_in
from ..store.inspection import inspect
from ..store.layout import FOLDER, OF_CHECKS, coordinates_of

if TYPE_CHECKING:
    import xarray

    from ..plan.plan import Plan
    from ..run.statistics import Statistics
    from ..store.store import InMemory


def open_dataset(folder: str | Path) -> xarray.Dataset:
    """Open the results in a folder as an `xarray.Dataset`. Values are read from disk on access.

    rbchain first compares every file with its checksum, which takes about a second for 2 GB. Plain xarray can open
    `results.zarr` too. It detects changed values, but reads the values of a missing file as NaN or -1.

    Parameters
    ----------
    folder : path
        The folder that `Study.run` was given as `out`.

    Returns
    -------
    xarray.Dataset
        As from `Study.run`.

    Raises
    ------
    StudyError
        If a file is damaged or missing. The message names the file, and how to repair the results.

    Examples
    --------
    >>> import tempfile
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     model=rb.Model.serial_chain(1), samples=4, simulate={"duration": 0.1},
    ...     vary=[{"parameter": "q", "distribution": {"kind": "normal", "std": 0.1}}],
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = study.run(folder)
    ...     rb.study.open_dataset(folder).sizes["sample"]
    4
    """
    inspect(folder).check_undamaged()
    return dataset_in(Path(folder))


def dataset_in(folder: Path) -> xarray.Dataset:
    """Open the results in a folder without a check of the checksums."""
    import xarray

    from . import accessor  # noqa: F401 - it adds the accessor `rbchain` to datasets

    dataset = xarray.open_zarr(folder / FOLDER, chunks=None, mask_and_scale=False, consolidated=False)
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
