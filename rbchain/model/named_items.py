"""NamedItems: base class of the mappings that users index by names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from ..common.misspelt import did_you_mean
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
        return did_you_mean(name, self._names) if isinstance(name, str) else ""

    def __getitem__(self, name: str) -> Item:
        if name not in self:
            known = f"its {self._plural} are {excerpt([*self._names])}" if self._names else "it has none"
            raise UnknownNameError(
                f"{self._owner} has no {self._singular} {excerpt(name)}; {known}{self._remark(name)}"
            )
        return self._item(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._names

    def get(self, name: str, default: Any = None) -> Any:
        """Return the item of a name, or the default if there is none."""
        return self._item(name) if name in self else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
