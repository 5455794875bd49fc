"""Robots by their names in the package robot_descriptions (the `robots` extra), which downloads their files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..common.misspelled import did_you_mean
from ..errors import FileFormatError, missing_package

PACKAGE = "robot_descriptions"
PATHS = ("URDF_PATH", "MJCF_PATH", "XACRO_PATH")


def file_of_robot(name: str) -> Path:
    """Return the URDF, xacro or MJCF file of a robot with a name such as "panda_description" or "panda_mj_description".

    Raises ImportError without the package, and FileFormatError if it has no such robot, or no file that rbchain reads.
    """
    try:
        known = import_module(PACKAGE).DESCRIPTIONS
    except ModuleNotFoundError:
        raise ImportError(missing_package(f"{name!r}: robots by name need the package {PACKAGE}", "robots")) from None
    if name not in known:
        raise FileFormatError(
            f"{name!r} is neither a file nor a robot of {PACKAGE}; expected a path, or one of {len(known)} names, such "
            f"as 'panda_description'{did_you_mean(name, known)}"
        )
    module = import_module(f"{PACKAGE}.{name}")
    for attribute in PATHS:
        if hasattr(module, attribute):
            return Path(getattr(module, attribute))
    raise FileFormatError(f"{name!r}: {PACKAGE} has no URDF, xacro or MJCF file of this robot")
