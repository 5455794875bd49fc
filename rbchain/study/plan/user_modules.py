"""Users' modules: the functions that a study file names as "module:name"."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...common.real_arrays import excerpt
from ...errors import StudyError


def imported_function(place: str, given: Any, folder: Path) -> tuple[Callable[..., Any], str, str]:
    """Import the function of a text such as "module:name". Modules next to the study file are found.

    The folder is added at the end of `sys.path`, so that its files do not replace installed modules. Child processes
    have the same path.

    Returns
    -------
    function : callable
    module, file : str
        Name and file of its module.

    Raises
    ------
    StudyError
        If there is no such function, or if another module has the name of a module next to the study file.
    """
    module_name, colon, name = str(given).partition(":")
    if not colon:
        raise StudyError(f'{place} is {given!r}; expected a function, or its place as "module:name"')
    home = str(folder.resolve())
    if home not in sys.path:
        sys.path.append(home)
        importlib.invalidate_caches()
    try:
        module = importlib.import_module(module_name)
        function = getattr(module, name)
    except (ValueError, ImportError, AttributeError) as error:
        raise StudyError(
            f'{place} is {given!r}, which cannot be imported: {error}. Expected "module:name" of a function in '
            f"{home}, or in a folder of PYTHONPATH"
        ) from None
    file = getattr(module, "__file__", None) or "built in"
    first_part = module_name.partition(".")[0]
    beside = [home_file for home_file in (folder / f"{first_part}.py", folder / first_part) if home_file.exists()]
    if beside and not _is_in(file, folder):
        raise StudyError(
            f"{place} is {given!r}, but there are two modules {first_part!r}: {beside[0].resolve()}, next to the study "
            f"file, and {file}, which Python found first. Rename the module next to the study file"
        )
    if not callable(function):
        raise StudyError(f"{place} is {given!r}, which is {excerpt(function)}; expected a function")
    return function, module_name, file


def _is_in(file: str, folder: Path) -> bool:
    return folder.resolve() in Path(file).resolve().parents


def refuse_code(place: str, given: Any) -> None:
    """Raise a StudyError if a description names a function, which would have to be imported."""
    if isinstance(given, str):
        raise StudyError(
            f"{place} is {given!r}, but importing code is not allowed (--no-code, or code=False); remove it, or "
            "allow the import if you trust the module"
        )
