"""Controller models of drives in files: `model = "nominal.toml"` is the file of the model that the drive uses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..acting.controllers import NOMINAL, TRUE
from ..errors import FileFormatError
from . import load
from .native import load_toml


def with_controller_model(drive: Any, folder: Path) -> Any:
    """Return the table of a drive with its `model` read from the file of this name, which is relative to `folder`.

    Raises FileFormatError if the file does not exist.
    """
    name = drive.get("model") if isinstance(drive, Mapping) else None
    if not isinstance(name, str) or name in (NOMINAL, TRUE):
        return drive
    path = folder / name
    if not path.is_file():
        where = f"{drive.get('kind')} of joint {drive.get('joint')!r}"
        raise FileFormatError(
            f'{where}: model is {name!r}, and there is no such file in {str(folder)!r}; expected "nominal", "true" or '
            "the name of a model file"
        )
    # without drives, which a controller does not need: a file that names itself would be read forever
    model = load_toml(path, with_drives=False) if path.suffix.lower() == ".toml" else load(path)
    return {**drive, "model": model}
