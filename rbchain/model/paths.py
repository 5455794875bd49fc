"""Paths of parameters: `owner.field` or `owner.field.component`, such as "link2.mass" or "link2.cg.x".

Owners are bodies, joints and constraints, in studies also drives, forces and contacts. The field is the argument of the
constructor, or the field of the model. Fields of the whole model have no owner: "gravity.y". The component is a letter
or a number: "link2.cg.x" is "link2.cg.0". For a joint with several degrees of freedom it is the number of one of them,
"base.damping.3"; without it, the path stands for all.

"*", "?" and "[1-3]" match parts of the names of owners and components, as in `fnmatch`, and "{link1,link4}.mass" lists
alternatives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Generic, NamedTuple, TypeVar

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ArgumentError, UnknownNameError
from .immersion import Immersion
from .passive import PassiveForces

T = TypeVar("T")
#: Former names of fields, with their present names.
RENAMED = PassiveForces.renamed_arguments | Immersion.renamed_arguments


class Owned(NamedTuple, Generic[T]):
    """A parameter that a path can name.

    Attributes
    ----------
    owner : str
        Empty for parameters of the whole model.
    value : T
        The item that the caller finds by the path.
    components : tuple of str
        Names of its components; () if a path cannot choose one of them.
    dof : int, optional
        Number of the degree of freedom in its joint; None if the owner is not a joint.
    dofs : int
        Number of degrees of freedom of the joint.
    """

    owner: str
    value: T
    components: tuple[str, ...] = ()
    dof: int | None = None
    dofs: int = 1


class Match(NamedTuple, Generic[T]):
    """A parameter that a path names, with the indices of the components that the path chooses.

    `is_whole` is True if it chooses none, and so stands for all of them.
    """

    field: str
    owned: Owned[T]
    components: tuple[int, ...]
    is_whole: bool

    @property
    def name(self) -> str:
        """The path of the parameter, without a component."""
        dof = str(self.owned.dof) if self.owned.dofs > 1 else ""
        return ".".join(part for part in (self.owned.owner, self.field, dof) if part)


#: All parameters that paths can name, by field.
Parameters = Mapping[str, Sequence[Owned[T]]]


def matches(path: str, parameters: Parameters[T], relatives: Mapping[str, str] | None = None) -> list[Match[T]]:
    """Return the parameters that a path names, in their order.

    `relatives` are names that are easily confused, such as joints by the names of their bodies.

    Raises
    ------
    ArgumentError
        If the path is not a string, or names no field.
    UnknownNameError
        If no parameter has this path. The message suggests the most similar name.
    """
    if not isinstance(path, str):
        raise ArgumentError(f'found {excerpt(path)}; expected a path such as "link2.mass"')
    found: dict[int, Match[T]] = {}
    for single in _alternatives(path):
        own = [match for split in _splits(single) for match in _matches(*split, parameters)]
        if not own:
            raise UnknownNameError(_message(single, parameters, relatives or {}))
        for match in own:
            before = found.get(id(match.owned))
            if before is not None:
                both = sorted({*before.components, *match.components})
                match = match._replace(components=tuple(both), is_whole=before.is_whole or match.is_whole)  # noqa: PLW2901
            found[id(match.owned)] = match
    return [
        found[id(owned)]
        for field in dict.fromkeys(match.field for match in found.values())
        for owned in parameters[field]
        if id(owned) in found
    ]


def _alternatives(path: str) -> list[str]:
    """Return the paths without braces, one for each alternative."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if braces is None:
        return [path]
    start, end = path[: braces.start()], path[braces.end() :]
    return [single for name in braces[1].split(",") for single in _alternatives(start + name.strip() + end)]


def _splits(path: str) -> Iterator[tuple[str, str, list[str]]]:
    """Return all pairs of an owner and a field that a path can mean, because names can contain dots."""
    parts = path.split(".")
    for i in range(max(len(parts) - 3, 0), len(parts)):
        yield ".".join(parts[:i]), parts[i], parts[i + 1 :]


def _matches(owner: str, field: str, rest: list[str], parameters: Parameters[T]) -> Iterator[Match[T]]:
    for owned in parameters.get(field, ()):
        if _is_name(owned.owner, owner):
            chosen = _chosen(owned, rest)
            if chosen:
                yield Match(field, owned, *chosen)


def _is_name(name: str, pattern: str) -> bool:
    return name == pattern or (bool(name) and fnmatchcase(name, pattern))


def _chosen(owned: Owned[T], rest: list[str]) -> tuple[tuple[int, ...], bool] | None:
    """Return the indices of the components that the rest of a path chooses, and whether they are all; None if none."""
    every = tuple(range(len(owned.components)))
    if rest and owned.dof is not None and _is_name(str(owned.dof), rest[0]):
        rest = rest[1:]
    if not rest:
        return every, True
    numbers = owned.dof is None  # the number after the field of a joint is the number of a degree of freedom
    chosen = tuple(i for i in every if _is_name(owned.components[i], rest[0]) or (numbers and rest[0] == str(i)))
    return (chosen, False) if chosen and len(rest) == 1 else None


def _message(path: str, parameters: Parameters[T], relatives: Mapping[str, str]) -> str:
    """Describe the names that a path without a match should use instead."""
    start = f"{path!r} is not the path of a parameter"
    for owner, field, rest in reversed([*_splits(path)]):  # the longest owner first, such as a signal of a drive
        if owner and parameters.get(field) and all(not owned.owner for owned in parameters[field]):
            return f"{start}: {field!r} belongs to the whole model; write {'.'.join([field, *rest])!r}"
        fields = [name for name, every in parameters.items() if any(_is_name(owned.owner, owner) for owned in every)]
        if field in fields:
            owned = next(owned for owned in parameters[field] if _is_name(owned.owner, owner))
            known = [*owned.components, *(map(str, range(owned.dofs)) if owned.dofs > 1 else ())]
            expected = f"one of {', '.join(known)}" if known else "no component"
            return f"{start}: {f'{owner}.{field}'.lstrip('.')!r} has no {'.'.join(rest)!r}; expected {expected}"
        now = RENAMED.get(field, field)
        if owner and now != field and now in parameters:
            is_owner = any(_is_name(owned.owner, owner) for owned in parameters[now])
            right = owner if is_owner else relatives.get(owner, owner)
            return f"{start}: {field!r} is now called {now!r}; write {'.'.join([right, now, *rest])!r}"
        if owner and fields:
            other = relatives.get(owner, "")
            if any(owned.owner == other for owned in parameters.get(field, ())):
                return f"{start}: {owner!r} has no {field!r}; did you mean {other}.{field}?"
            hint = did_you_mean(field, fields) or f"; expected one of {', '.join(fields)}"
            return f"{start}: {owner!r} has no {field!r}{hint}"
    for owner, field, _ in _splits(path):
        if owner and parameters.get(field):
            owners = list(dict.fromkeys(owned.owner for owned in parameters[field]))
            return (
                f"{start}: nothing named {owner!r} has {field!r}; expected one of {excerpt(owners)}"
                f"{did_you_mean(owner, owners)}"
            )
    if parameters.get(path):
        owner = next(owned.owner for owned in parameters[path])
        return f'{start}: {path!r} needs an owner, such as "{owner}.{path}", or "*.{path}" for all'
    hint = did_you_mean(path.rpartition(".")[2], parameters)
    return f'{start}; expected "owner.field" or "owner.field.component", such as "link2.mass" or "link2.cg.x"{hint}'
