"""Mappings that users index by names: NamedItems, the base class of views, and NamedDict, a dict."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, SupportsIndex, TypeVar

from ..common.misspelled import did_you_mean
from ..common.pickles import new
from ..common.real_arrays import excerpt
from ..errors import UnknownNameError

Item = TypeVar("Item")


class NamedItems(Mapping[str, Item]):
    """Items by their names. An unknown name raises an UnknownNameError; `in` and `get` accept any object."""

    #: What has the items, and what they are: "the model", "sensor" and "sensors".
    _owner: str
    _singular: str
    _plural: str
    #: The names in their order.
    _names: tuple[str, ...]

    @abstractmethod
    def _item(self, name: str) -> Item:
        """Return the item of a name that exists."""

    def _remark(self, name: Any) -> str:
        """Return what to do about an unknown name."""
        return _similar(name, self._names)

    def __getitem__(self, name: str) -> Item:
        if name not in self:
            raise _unknown(self._owner, self._singular, self._plural, name, self._names, self._remark(name))
        return self._item(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._names

    def get(self, name: str, default: Any = None) -> Any:
        """Return the item with this name, or the default if there is none."""
        return self._item(name) if name in self else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class NamedDict(dict[str, Item]):
    """A dict that raises an UnknownNameError for an unknown name.

    `owner`, `singular` and `plural` are words for the error: "the model", "keyframe" and "keyframes".
    """

    def __init__(self, owner: str, singular: str, plural: str, items: Mapping[str, Item]) -> None:
        super().__init__(items)
        self._words = owner, singular, plural

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return new, (type(self).__name__,), self.__getstate__(), None, iter(self.items())

    def __missing__(self, name: Any) -> Item:
        raise _unknown(*self._words, name, self, _similar(name, self))


def _similar(name: Any, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown name, or "" if no known name is similar."""
    return did_you_mean(name, known) if isinstance(name, str) else ""


def _unknown(owner: str, singular: str, plural: str, name: Any, known: Iterable[str], remark: str) -> UnknownNameError:
    """Return the error for a name that none of the items of `owner` has."""
    names = [*known]
    found = f"its {plural} are {excerpt(names)}" if names else "it has none"
    return UnknownNameError(f"{owner} has no {singular} {excerpt(name)}; {found}{remark}")
