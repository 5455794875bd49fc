"""Write files as a whole: a reader finds the old file or the new one, and a failed write leaves no part of a file."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

PARTIAL = ".partial"


@contextlib.contextmanager
def whole_file(path: str | Path, ending: str = PARTIAL) -> Iterator[Path]:
    """Yield the path of a file next to `path`, which replaces it at the end, or is removed if an exception is raised.

    Parameters
    ----------
    path : path
        A link is followed. A path that is not a file, such as a device, is yielded itself.
    ending : str
        Ending of the name of the file next to `path`.

    Raises
    ------
    FileNotFoundError
        If the folder of the file does not exist. The message contains its path.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{path} cannot be written, because the folder {str(path.parent)!r} does not exist; create it, or choose "
            "another folder"
        )
    partial = path.with_name(f"{path.name}{ending}")
    try:
        yield partial
        if path.exists():
            shutil.copymode(path, partial)
        os.replace(partial, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.add_note(f"{path} was not written. A file of this name that existed before has not changed.")
        raise
