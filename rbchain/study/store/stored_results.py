"""Results in a Zarr group as arrays of NumPy, for reports and tables: xarray and pandas take a second to import."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np


class StoredArray:
    """An array of the results, with the attributes of `xarray.DataArray`. Values are read from disk on access.

    Attributes
    ----------
    name : str
    dims : tuple of str
        Names of the axes.
    dtype : numpy.dtype
    attrs : dict
    """

    def __init__(self, name: str, array: Any, attributes: dict[str, Any], numbers: range | np.ndarray) -> None:
        self.name, self.attrs = name, attributes
        self.dims: tuple[str, ...] = tuple(array.metadata.dimension_names)
        self.dtype: np.dtype[Any] = array.dtype
        self._array, self._numbers = array, numbers

    def __getitem__(self, selection: slice | np.ndarray) -> StoredArray:
        """Select entries along the first axis."""
        numbers = self._numbers[selection] if isinstance(selection, slice) else np.asarray(self._numbers)[selection]
        return StoredArray(self.name, self._array, self.attrs, numbers)

    @property
    def values(self) -> np.ndarray:
        """Read the selected values."""
        numbers = self._numbers
        selection = slice(numbers.start, numbers.stop, numbers.step) if isinstance(numbers, range) else numbers
        return np.asarray(self._array.oindex[selection])


class StoredResults:
    """The results of a study up to a sample. What it has in common with `xarray.Dataset` works in the same way.

    Attributes
    ----------
    attrs : dict
        Attributes of the whole group, except the names in `hidden`.
    """

    def __init__(self, group: Path, hidden: Container[str], samples: int | None = None) -> None:
        import zarr

        self._group: Any = zarr.open_group(group, mode="r")
        self._hidden, self._samples = hidden, samples
        attributes: dict[str, Any] = self._group.attrs.asdict()
        self._names: list[str] = attributes["arrays"]
        self.attrs: dict[str, Any] = self._visible(attributes)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> StoredArray:
        array = self._group[name]
        numbers = range(array.shape[0])
        if array.metadata.dimension_names[0] == "sample":
            numbers = numbers[: self._samples]
        return StoredArray(name, array, self._visible(array.attrs), numbers)

    def items(self) -> Iterator[tuple[str, StoredArray]]:
        """Yield the arrays with values for each sample, by name."""
        for name in self._names:
            array = self[name]
            if array.dims[0] == "sample":
                yield name, array

    def _visible(self, attributes: Any) -> dict[str, Any]:
        return {name: value for name, value in attributes.items() if name not in self._hidden}
