"""NamedItems: base class of the mappings that users index by names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ..common.misspelt import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import UnknownNameError

Item = TypeVar("Item")


class NamedItems(Mapping[str, Item]):
    """Items by their names. An unknown name raises an UnknownNameError; `in` and `get` accept any object.

    Attributes
    ----------
    owner, singular, plural : str
        What has the items, and what they are: "the model", "sensor" and "sensors".
    """

    owner: str
    singular: str
    plural: str

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names in their order."""

    @abstractmethod
    def _item(self, name: str) -> Item:
        """Return the item of a name that exists."""

    def _remark(self, name: Any) -> str:
        """Return what to do about an unknown name."""
        return did_you_mean(name, self.names) if isinstance(name, str) else ""

    def __getitem__(self, name: str) -> Item:
        if name not in self:
            known = f"its {self.plural} are {excerpt([*self.names])}" if self.names else "it has none"
            raise UnknownNameError(f"{self.owner} has no {self.singular} {excerpt(name)}; {known}{self._remark(name)}")
        return self._item(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.names

    def get(self, name: str, default: Any = None) -> Any:
        """Return the item of a name, or the default if there is none."""
        return self._item(name) if name in self else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
