"""Opening the results in a folder with xarray."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .inspection import inspect
from .layout import FOLDER, OF_CHECKS

if TYPE_CHECKING:
    import xarray


def open_dataset(folder: str | Path) -> xarray.Dataset:
    """The results in a folder as an `xarray.Dataset`, whose values are read when they are looked at.

    Every file is compared with its checksum first, which takes about a second for 2 GB. Plain xarray opens
    `results.zarr` too; it detects changed values, but reads those of a missing file as NaN or -1.

    Raises
    ------
    StudyError
        If a file is damaged or missing: the message names it, and says how to repair the results.
    """
    inspect(folder).refuse_damage()
    return dataset_in(Path(folder))


def open_finished(folder: str | Path) -> tuple[xarray.Dataset, int]:
    """The results up to the last sample that is done, and how many samples there are to be."""
    found = inspect(folder)
    found.refuse_damage()
    done = max((found.bounds(chunk)[1] for chunk in found.finished), default=0)
    return dataset_in(Path(folder)).isel(sample=slice(done)), found.samples or 0


def dataset_in(folder: Path) -> xarray.Dataset:
    import xarray

    found = xarray.open_zarr(folder / FOLDER, chunks=None, mask_and_scale=False, consolidated=False)
    for described in (found, *found.variables.values()):
        for name in OF_CHECKS:
            described.attrs.pop(name, None)
    return found.set_coords([name for name, variable in found.items() if "sample" not in variable.dims])
