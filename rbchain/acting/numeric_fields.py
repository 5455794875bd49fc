"""Declaration of the fields of drives, sensors, forces and events that may have a value for each sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np

from ..common.real_arrays import excerpt, real_array
from ..common.values import Value
from ..errors import StateError
from ..model.pose import computed_pose
from .signals import as_signal, three_signals

#: Largest finite numbers. Fields with the smaller one are multiplied by other numbers before they are checked again.
LARGEST, LARGEST_FLOAT32 = float(np.finfo(np.float64).max), float(np.finfo(np.float32).max)
NUMBERS, SIGNAL, POSE = "numbers", "signal", "pose"


@dataclass(frozen=True)
class NumericField:
    """A field with one value for all samples, or one for each.

    Attributes
    ----------
    name : str
        Name of the field.
    unit : str
        SI unit; the units for a rotation and for a translation are separated by " or ". "1" if the number has no
        dimension; empty if the unit depends on the function or the entry.
    lower, upper : float
        Smallest and largest possible number.
    shape : tuple
        Shape of the value of one sample. None stands for any number of entries.
    kind : "numbers", "signal" or "pose"
        Type of the value. A signal of shape (3,) is a sequence of three signals.
    """

    name: str
    unit: str
    lower: float = -np.inf
    upper: float = np.inf
    shape: tuple[int | None, ...] = ()
    kind: str = NUMBERS

    def checked(self, what: str, value: Any) -> np.ndarray:
        """Return numbers (..., *shape). Raises StateError if the last axes or the numbers do not fit."""
        name = f"{what}: {self.name}"
        found = real_array(name, value, StateError)
        if found.shape[max(0, found.ndim - len(self.shape)) :] != self.shape:
            expected = ", ".join(map(str, self.shape))
            raise StateError(f"{name} has shape {found.shape}; expected {self.shape} or (..., {expected})")
        if not ((found >= self.lower) & (found <= self.upper)).all():
            raise StateError(f"{name} is {excerpt(found.tolist())}; expected {self._expected()}")
        return found

    def _expected(self) -> str:
        """Describe the possible numbers for a message."""
        if self.upper < LARGEST_FLOAT32:
            return f"numbers from {self.lower:g} to {self.upper:g}"
        numbers = "finite numbers" if np.isfinite(self.upper) else "numbers"
        return f"{numbers} of at least {self.lower:g}" if self.lower > -LARGEST_FLOAT32 else numbers

    def of_sample(self, value: Any, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> Any:
        """Return the value of one sample of a batch. None stays None."""
        if value is None:
            return None
        if self.kind == SIGNAL and self.shape:
            return tuple(signal.of_sample(i, batch_shape) for signal in three_signals(self.name, value))
        if self.kind == SIGNAL:
            return as_signal(self.name, value).of_sample(i, batch_shape)
        if self.kind == POSE:
            parts = (value.translation, (3,)), (value.rotation, (3, 3))
            return computed_pose(*(_of_sample(self.name, part, i, (*batch_shape, *shape)) for part, shape in parts))
        return _of_sample(self.name, value, i, (*batch_shape, *self.shape))


def _of_sample(name: str, value: Any, i: Any, shape: tuple[Any, ...]) -> np.ndarray:
    return np.broadcast_to(real_array(name, value, StateError), shape)[i]


@dataclass(frozen=True, eq=False)
class Declared(Value):
    """Base class of drives, sensors, forces and events. It declares which fields may differ between samples."""

    numeric_fields: ClassVar[tuple[NumericField, ...]] = ()

    @classmethod
    def numeric_field(cls, name: str) -> NumericField:
        """Return the declaration of a field."""
        return next(field for field in cls.numeric_fields if field.name == name)


@dataclass(frozen=True, eq=False)
class DeclaredForce(Declared):
    """Base class of the forces that act on bodies and joints."""

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> Self:
        """Return the force on one sample of a batch."""
        values = {
            field.name: field.of_sample(getattr(self, field.name), i, batch_shape) for field in self.numeric_fields
        }
        return replace(self, **values)


def fields_of_kind(owner: Declared | type[Declared], kind: str) -> list[str]:
    """Return the names of the fields of a class that are numbers, signals or poses."""
    return [field.name for field in owner.numeric_fields if field.kind == kind]
