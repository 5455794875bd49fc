"""Value types: objects that are equal if their fields are."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from .calls import ExplainsCalls
from .misspelled import SuggestsAttributes
from .pickles import PickledByName


class Value(PickledByName, ExplainsCalls, SuggestsAttributes):
    """Base class of immutable dataclasses with numbers, arrays and names, which are compared by their fields.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Pose((1, 0, 0)) == rb.Pose([1.0, 0.0, 0.0]), rb.Pose() == rb.Pose((1, 0, 0))
    (True, False)
    """

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Value) or fields(self) != fields(other):  # type: ignore[arg-type]
            return NotImplemented  # another class, except for a subclass without further fields
        return all(is_same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        # numbers have many forms that are equal, such as 1, 1.0 and arrays of them, so only names count
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return hash((fields(self), *(value for value in values if isinstance(value, str))))  # type: ignore[arg-type]


def is_same(a: Any, b: Any) -> bool:
    """Whether two fields are the same: equal numbers in arrays of one shape, equal items of sequences, or equal."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f"))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    return a is b or bool(a == b)


def private_copy(value: Any) -> Any:
    """Return a read-only copy of an array, and a copy of a list or tuple; other values are returned unchanged.

    A caller that changes its array later then does not change an object that was made from it.

    Examples
    --------
    >>> import numpy as np
    >>> gains = np.array([1.0, 2.0])
    >>> kept = private_copy(gains)
    >>> gains *= 10
    >>> kept.tolist()
    [1.0, 2.0]
    """
    if type(value) in (list, tuple):
        return type(value)(map(private_copy, value))
    if isinstance(value, np.generic) or not hasattr(value, "__array__"):
        return value
    copy = np.array(value)
    copy.flags.writeable = False
    return copy
