"""Tables of a file of rbchain's own format: their keys, and the objects that they describe."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..common.calls import ExplainsCalls, with_present_names
from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import FileFormatError

Part = TypeVar("Part")


def expect_keys(where: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise a FileFormatError for a key that is not known."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        meant = did_you_mean(unknown[0], known)
        raise FileFormatError(f"{where} has the unknown key {unknown[0]!r}; expected {', '.join(known)}{meant}")


def tables_of(given: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list of tables with this key, which may be absent."""
    tables = given.get(key, [])
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise FileFormatError(f"{key} is {excerpt(tables)}; expected a list of tables, each written as [[{key}]]")
    return tables


def table_of(where: str, given: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the table with this key, which may be absent."""
    table = given.get(key, {})
    if not isinstance(table, dict):
        raise FileFormatError(f"{where}: {key} is {excerpt(table)}; expected a table such as {key} = {{ ... }}")
    return table


def fields_of(where: str, given: Mapping[str, Any], kind: type[ExplainsCalls]) -> dict[str, Any]:
    """Return the table of an object with the present names of its fields."""
    try:
        return with_present_names(kind, given)
    except ValueError as error:
        raise FileFormatError(f"{where}: {error}") from None


def made_of(where: str, kind: type[Part], given: Mapping[str, Any]) -> Part:
    """Construct a dataclass from a table of its fields."""
    known = dataclasses.fields(kind)  # type: ignore[arg-type]
    expect_keys(f"{where}: {kind.__name__}", given, [field.name for field in known])
    missing = [field.name for field in known if _is_required(field) and field.name not in given]
    if missing:
        raise FileFormatError(f"{where}: required keys of {kind.__name__} are missing: {', '.join(missing)}")
    try:
        return kind(**given)
    except TypeError as error:  # a value of a wrong type, such as a list as the shape of a visual
        raise FileFormatError(f"{where}: {kind.__name__}: {error}") from None


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def refuse_kind(where: str, given: Mapping[str, Any]) -> None:
    """Raise a FileFormatError for the former name of the key `type`."""
    if "kind" in given:
        raise FileFormatError(f"{where}: the key 'kind' is now called 'type'; found kind = {excerpt(given['kind'])}")
