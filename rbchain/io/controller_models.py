"""Controller models of drives in files: `controller_model = "nominal.toml"` is the file of the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..acting.controllers import NOMINAL, OWN
from ..errors import FileFormatError
from . import load
from .native import load_toml


def with_controller_model(drive: Any, folder: Path) -> Any:
    """Return the table of a drive with its `controller_model` read from the file of this name in `folder`.

    Raises FileFormatError if the file does not exist.
    """
    name = drive.get("controller_model") if isinstance(drive, Mapping) else None
    if not isinstance(name, str) or name in (NOMINAL, OWN):
        return drive
    path = folder / name
    if not path.is_file():
        where = f"{drive.get('type')} of joint {drive.get('joint')!r}"
        raise FileFormatError(
            f"{where}: controller_model is {name!r}, and there is no such file in {str(folder)!r}; expected "
            '"nominal", "own" or the name of a model file'
        )
    # without drives, which a controller does not need: a file that names itself would be read forever
    model = load_toml(path, with_drives=False) if path.suffix.lower() == ".toml" else load(path)
    return {**drive, "controller_model": model}
