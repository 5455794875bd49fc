"""The environment of processes that rbchain starts."""

import contextlib
import os
import sys
from collections.abc import Iterator

import numba


def environment_of_process(**variables: str) -> dict[str, str]:
    """Return the environment of a process with the imports and the cache of this process."""
    same = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(_folders()), "RBCHAIN_QUIET": "1"}
    if numba.config.CACHE_DIR:
        same["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR
    return os.environ | same | variables


def _folders() -> Iterator[str]:
    """Folders from which this process imports. As Python does, ignore entries that are not strings."""
    for folder in sys.path:
        if folder == "":
            with contextlib.suppress(OSError):  # the folder of the process may have been deleted
                yield os.getcwd()
        elif isinstance(folder, str):
            yield folder
