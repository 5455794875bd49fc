"""Results of studies from folders, and the studies that computed them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import StudyError
from .show.datasets import dataset_in
from .store.description_files import study_file
from .store.inspection import inspect
from .store.provenance import Log
from .store.store import Store

if TYPE_CHECKING:
    import xarray

    from .study import Study


def load_results(folder: str | Path) -> xarray.Dataset:
    """Load the results of a study from a folder as an `xarray.Dataset`. Values are read from disk on access.

    rbchain first compares every file with its checksum, which takes about a second for 2 GB. Plain xarray can open
    `results.zarr` too. It detects changed values, but reads the values of a missing file as NaN or -1.

    Parameters
    ----------
    folder : path
        The folder that `Study.run` was given as `out`.

    Returns
    -------
    xarray.Dataset
        As from `Study.run`. `results.rbchain` summarizes, plots and analyzes them (`Results`).

    Raises
    ------
    StudyError
        If a file is damaged or missing. The message contains the file, and how to repair the results.

    Examples
    --------
    >>> import tempfile
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1), samples=4, simulate={"duration": 0.1},
    ...     vary={"*.q": rb.Normal(std=0.1)},
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = study.run(folder)
    ...     rb.load_results(folder).sizes["sample"]
    4
    """
    inspect(folder).check_undamaged()
    results = dataset_in(Path(folder))
    results.rbchain.reopen = partial(study_of_results, folder)
    return results


def study_of_results(folder: str | Path, *, code: bool = True) -> Study:
    """Read the study whose results are in a folder, from the file that its last run used or has written.

    Parameters
    ----------
    folder : path
        Folder of the results.
    code : bool
        As in `Study.read`.

    Raises
    ------
    StudyError
        If the folder contains no results, or if the file of the study is unknown or missing.
    """
    from .study import Study  # loads Numba, which results do not need

    if not Store.exists(folder):
        raise StudyError(
            f"{folder} contains no results to resume; expected the folder of an earlier run. To start a study, run "
            "`rbchain study run FILE --out FOLDER`"
        )
    log = Log(folder)
    file = log.study_file()
    for known in (file, study_file(folder)):
        if known is not None and known.is_file():
            return Study.read(known, code=code)
    missing = "its log does not name the file of the study"
    if log.reason_not_written():
        missing = f"the study comes from Python and cannot be read from files: {log.reason_not_written()}"
    elif file is not None:
        missing = f"the file of the study, {file.resolve()}, does not exist"
    raise StudyError(
        f"{folder}: {missing}. Run `rbchain study run FILE --out {folder}` for a study from a file. For a study from "
        f"Python, use the results that study.run({str(folder)!r}) returns, or set results.rbchain.study = study"
    )
