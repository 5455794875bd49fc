"""Macros of xacro in a URDF file: the `xacro` extra expands them. Without arguments, the error lists remedies."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import FileFormatError, missing_package
from .notes import LEFT_OUT, Notes
from .xml_reading import label

PREFIX = "xacro:"
DEFINITIONS = ("macro", "property", "arg")  # they have no effect unless something uses them
LANGUAGE = ("include", "if", "unless", "insert_block", "call", "element", "attribute")
EXPRESSIONS = ("${", "$(")
#: Elements whose expressions do not change the motion.
DECLARED = re.compile(r"<xacro:arg\b[^>]*\bname\s*=\s*[\"']([^\"']+)[\"']")
WITHOUT_EFFECT = ("visual", "collision", "material", "sensor", "gazebo", "transmission", "ros2_control")


def command(path: Path) -> str:
    """Return the command that expands the macros of a file."""
    name = path.name.removesuffix(".xacro").removesuffix(".urdf").removesuffix(".xml")
    expanded = path.with_name(f"{name}.urdf")
    expanded = path.with_name(f"{name}_expanded.urdf") if expanded == path else expanded
    return f"xacro {shlex.quote(str(path))} > {shlex.quote(str(expanded))}"


def remedy(path: Path) -> str:
    """Return a sentence on how to expand the macros of a file."""
    return f"Pass arguments={{}} to load (extra xacro), or expand its macros with the program xacro: {command(path)}"


def expanded(path: Path, arguments: Mapping[str, Any]) -> bytes:
    """Expand the macros of a file with these arguments, by the packages xacrodoc and xacro.

    Raises FileFormatError if the file has an error or does not declare an argument, and ImportError without xacrodoc.
    """
    try:
        import xacro
        import xacrodoc  # finds packages without ROS
    except ImportError:
        raise ImportError(missing_package(f"{path}: arguments need the package xacrodoc", "xacro")) from None
    if not isinstance(arguments, Mapping):
        raise FileFormatError(
            f"{path}: arguments is {excerpt(arguments)}; expected a dict, such as {{'prefix': 'left_'}}"
        )
    texts = {
        str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in arguments.items()
    }
    before = len(xacro.all_includes)
    try:
        xacrodoc.packages.walk_up_from(path)
        found = xacro.process_file(str(path), mappings=texts).toxml()
    except Exception as error:  # xacro raises many types of exceptions, and evaluates Python
        raise FileFormatError(f"{path}: xacro cannot expand the file: {' '.join(str(error).split())}") from None
    files = [path, *map(Path, xacro.all_includes[before:])]
    known = {name for file in files if file.is_file() for name in DECLARED.findall(file.read_text(errors="replace"))}
    for name in texts:
        if name not in known:
            raise FileFormatError(
                f"{path}: the file has no argument {name!r}; its arguments are {excerpt(sorted(known))}"
                f"{did_you_mean(name, known)}"
            )
    return str(found).encode()


def check_macros(path: Path, robot: Any, notes: Notes) -> None:
    """Raise a FileFormatError for a file that uses xacro.

    Calls of macros that the file neither defines nor includes remain from an expansion. xacro cannot expand them, so
    rbchain omits and notes them.
    """
    defined = {element.get("name") for element in robot.iter() if _is_macro(element)}
    for element in _outside_macros(robot):
        name = label(element)
        if not name.startswith(PREFIX):
            continue
        name = name.removeprefix(PREFIX)
        if name in LANGUAGE or name in defined:
            line = element.sourceline
            raise FileFormatError(f"{path}: the file uses <{PREFIX}{name}> in line {line}. {remedy(path)}")
        if name not in DEFINITIONS:
            notes.put(LEFT_OUT, f"<{PREFIX}{name}>, a macro of xacro that the file does not define")


def check_expressions(path: Path, robot: Any) -> None:
    """Raise a FileFormatError for an attribute with an expression of xacro."""
    for element in _outside_macros(robot):
        for key, text in () if label(element).startswith(PREFIX) else element.attrib.items():
            if has_expression(text):
                where = f"the attribute {key} of <{label(element)}> in line {element.sourceline}"
                raise FileFormatError(f"{path}: {where} is {text!r}; expected a name. {remedy(path)}")


def has_expression(text: str) -> bool:
    """Whether a text contains an expression of xacro."""
    return any(expression in text for expression in EXPRESSIONS)


def _is_macro(element: Any) -> bool:
    return label(element) == f"{PREFIX}macro"


def _outside_macros(robot: Any) -> list[Any]:
    """Return all elements except the bodies of macros, and the parts without effect."""
    found, waiting = [], [robot]
    while waiting:
        element = waiting.pop()
        found.append(element)
        waiting += [child for child in element[::-1] if label(child) not in WITHOUT_EFFECT and not _is_macro(element)]
    return found
