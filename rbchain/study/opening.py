"""Opening the results in a folder: with xarray, or as arrays of NumPy, which takes a second less."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .inspection import inspect
from .layout import FOLDER, OF_CHECKS
from .stored_results import StoredResults

if TYPE_CHECKING:
    import xarray


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


def open_finished(folder: str | Path) -> tuple[StoredResults, int]:
    """Open the results up to the last finished sample, and return the planned number of samples with them."""
    findings = inspect(folder)
    findings.check_undamaged()
    done = max((findings.bounds(chunk)[1] for chunk in findings.finished), default=0)
    return stored_results_in(folder, done), findings.samples or 0


def stored_results_in(folder: str | Path, samples: int | None = None) -> StoredResults:
    """Open the results in a folder up to a sample, as arrays of NumPy and without a check of the checksums."""
    return StoredResults(Path(folder) / FOLDER, OF_CHECKS, samples)


def dataset_in(folder: Path) -> xarray.Dataset:
    """Open the results in a folder without a check of the checksums."""
    import xarray

    from . import accessor  # noqa: F401 - it adds the accessor `rbchain` to datasets

    dataset = xarray.open_zarr(folder / FOLDER, chunks=None, mask_and_scale=False, consolidated=False)
    for described in (dataset, *dataset.variables.values()):
        for name in OF_CHECKS:
            described.attrs.pop(name, None)
    return dataset.set_coords([name for name, variable in dataset.items() if "sample" not in variable.dims])
