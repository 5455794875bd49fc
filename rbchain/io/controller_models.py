"""The controllers' model of drives in files: `model = "nominal.toml"` names the file that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..actions.controllers import NOMINAL, TRUE
from ..errors import FileFormatError
from . import load
from .native import load_toml


def with_controller_model(drive: Any, folder: Path) -> Any:
    """The table of a drive with a Model in place of the name of its file, which is relative to `folder`.

    Raises FileFormatError if there is no such file.
    """
    name = drive.get("model") if isinstance(drive, Mapping) else None
    if not isinstance(name, str) or name in (NOMINAL, TRUE):
        return drive
    path = folder / name
    if not path.is_file():
        where = f"{drive.get('kind')} of joint {drive.get('joint')!r}"
        raise FileFormatError(
            f'{where}: model is {name!r}, and there is no such file in {str(folder)!r}; expected "nominal", "true" or '
            "the name of a model's file"
        )
    # without its drives, which no controller needs: a file may name itself
    model = load_toml(path, with_drives=False) if path.suffix.lower() == ".toml" else load(path)
    return {**drive, "model": model}
