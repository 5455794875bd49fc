"""Declaration of the fields of drives, sensors, forces and events that may have a value for each sample."""

from __future__ import annotations

import ast
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np

from ..common.misspelled import one_of
from ..common.real_arrays import excerpt, real_array
from ..common.values import Value, private_copy
from ..errors import ArgumentError
from ..model.pose import Pose, computed_pose
from .inputs import Input
from .random_signals import RandomSignal
from .signal_arithmetic import SignalSum
from .signals import Signal, SignalLike, as_signal, three_signals

#: Largest finite numbers. Fields with the smaller one are multiplied by other numbers before they are checked again.
LARGEST, LARGEST_FLOAT32 = float(np.finfo(np.float64).max), float(np.finfo(np.float32).max)
NUMBERS, SIGNAL, POSE = "numbers", "signal", "pose"
RANDOM = RandomSignal, SignalSum
#: Smallest and largest values of the fields that are whole numbers.
WHOLE_NUMBERS = {
    "dof": (0, None),
    "max_records": (1, 1_000_000),
    "seed": (0, (1 << 63) - 1),
    "direction": (-1, 1),
}


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
    word : str
        A word that may stand for a signal; empty if there is none.
    takes_inputs : bool
        Whether a sum of multiples of an Input and constants may stand for the numbers.
    """

    name: str
    unit: str
    lower: float = -np.inf
    upper: float = np.inf
    shape: tuple[int | None, ...] = ()
    kind: str = NUMBERS
    word: str = ""
    takes_inputs: bool = False

    def checked(self, what: str, value: Any) -> np.ndarray:
        """Return numbers (..., *shape). Raises ArgumentError if the last axes or the numbers do not fit."""
        name = f"{what}: {self.name}"
        if isinstance(value, (Signal, Input, *RANDOM)):
            also = ". A multiple of an rb.Input is possible" if self.takes_inputs else ""
            raise ArgumentError(
                f"{name} is a signal, {value!r}; expected one number, or one for each sample, which cannot change with "
                f"time{also}"
            )
        found = real_array(name, value, ArgumentError)
        if self.shape == (None,):
            found = np.atleast_1d(found)  # one parameter of a function, or one of its states
        trailing = found.shape[max(0, found.ndim - len(self.shape)) :]
        own = tuple(m if size is None else size for m, size in zip(trailing, self.shape, strict=False))
        if len(trailing) != len(self.shape) or trailing != own:
            expected = ", ".join("m" if size is None else str(size) for size in self.shape)
            alone = f"({expected},)" if len(self.shape) == 1 else f"({expected})"
            raise ArgumentError(f"{name} has shape {found.shape}; expected {alone} or (..., {expected})")
        if not ((found >= self.lower) & (found <= self.upper)).all():
            raise ArgumentError(f"{name} is {excerpt(found.tolist())}; expected {self._expected()}")
        return found

    def has_inputs(self, value: Any) -> bool:
        """Whether a value of a field for numbers contains an Input, as the field permits."""
        is_input = isinstance(value, Input) or (isinstance(value, Signal) and value.is_constant and bool(value.inputs))
        return self.takes_inputs and is_input

    def check_inputs(self, what: str, value: SignalLike) -> None:
        """Raise an ArgumentError if numbers with inputs leave the bounds of the field in the ranges of the inputs."""
        signal = as_signal(self.name, value)
        lowest, highest = (signal.coefficients[..., 0, 0],) * 2
        for term in signal.inputs:
            ends = [term.factor * np.where(term.factor == 0.0, 0.0, end) for end in (term.lower, term.upper)]
            lowest, highest = lowest + np.minimum(*ends), highest + np.maximum(*ends)
        if (lowest < self.lower).any() or (np.isfinite(highest) & (highest > self.upper)).any():
            names = ", ".join(repr(term.name) for term in signal.inputs)
            raise ArgumentError(
                f"{what}: {self.name} reaches {np.min(lowest):g} in the range of the input {names}; expected "
                f"{self._expected()}. Set lower and upper of the rb.Input"
            )

    def check(self, what: str, value: Any) -> None:
        """Raise an error for a value that fits no model."""
        name = f"{what}: {self.name}"
        if self.has_inputs(value):
            self.check_inputs(what, value)
        elif self.kind == NUMBERS:
            self.checked(what, value)
        elif self.kind == POSE and not isinstance(value, Pose):
            raise ArgumentError(f"{name} is {excerpt(value)}; expected a Pose")
        elif self.kind == SIGNAL and isinstance(value, str) and self.word:
            if value != self.word:
                raise ArgumentError(f"{name} is {excerpt(value)}; expected a Signal, numbers, or {self.word!r}")
        elif self.kind == SIGNAL and not isinstance(value, RANDOM):  # a random signal was checked when it was made
            if not self.shape:
                as_signal(name, value)
            elif not any(isinstance(component, RANDOM) for component in np.ravel(np.array(value, object))):
                three_signals(name, value)

    def _expected(self) -> str:
        """Describe the possible values for a message."""
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
        if self.kind == SIGNAL or self.has_inputs(value):
            return as_signal(self.name, value).of_sample(i, batch_shape)
        if self.kind == POSE:
            parts = (value.translation, (3,)), (value.rotation, (3, 3))
            return computed_pose(*(_of_sample(self.name, part, i, (*batch_shape, *shape)) for part, shape in parts))
        return _of_sample(self.name, value, i, (*batch_shape, *self.shape))


def _of_sample(name: str, value: Any, i: Any, shape: tuple[Any, ...]) -> np.ndarray:
    found = real_array(name, value, ArgumentError)
    if None in shape:  # as long as the user wants
        shape = (*shape[:-1], found.shape[-1])
    return np.broadcast_to(found, shape)[i]


@dataclass(frozen=True, eq=False)
class Declared(Value):
    """Base class of drives, sensors, forces and events. It declares which fields may differ between samples.

    An object is checked when it is made, except for what depends on the model and on the batch. All have an optional
    `name`, by which paths of studies name their parameters.
    """

    internal_names: ClassVar[tuple[str, ...]] = ("label", "numeric_field", "numeric_fields", "of_sample")
    numeric_fields: ClassVar[tuple[NumericField, ...]] = ()
    name: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Raise ArgumentError if a field has a value of the wrong type, or a number that is not possible."""
        what = self.label()
        for numeric in self.numeric_fields:
            value = getattr(self, numeric.name)
            is_left_out = value is None and getattr(type(self), numeric.name, "required") is None
            if not is_left_out:
                numeric.check(what, value)
        for other in fields(self):
            _check_type(f"{what}: {other.name}", other, getattr(self, other.name))
            object.__setattr__(self, other.name, private_copy(getattr(self, other.name)))

    def label(self) -> str:
        """Return the name of the class and of the joint or the frame, for messages."""
        of_self = vars(self)  # getattr would prepare a suggestion for each name that the class does not have
        name, joint, frame = type(self).__name__, of_self.get("joint"), of_self.get("frame")
        if joint is not None:
            return f"{name} of joint {joint!r}"
        return name if frame is None else f"{name} on {frame!r}"

    @classmethod
    @cache
    def numeric_field(cls, name: str) -> NumericField:
        """Return the declaration of a field."""
        return next(field for field in cls.numeric_fields if field.name == name)

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> Self:
        """Return the object with the numbers of one sample of a batch."""
        given = {field.name: (field, getattr(self, field.name)) for field in self.numeric_fields}
        return replace(
            self,
            **{name: x.of_sample(value, i, batch_shape) for name, (x, value) in given.items() if value is not None},
        )


@dataclass(frozen=True, eq=False)
class Drive(Declared):
    """Base class of the drives: of forces and motions of joints, and of what shapes them."""


@dataclass(frozen=True, eq=False)
class Force(Declared):
    """Base class of the forces that act on bodies and joints."""


def _check_type(what: str, field: Field[Any], value: Any) -> None:
    """Raise an error unless a value is a name, flag, whole number, function or one of the words, as annotated."""
    kind = str(field.type)
    if kind.endswith(" | None"):
        if value is None:
            return
        kind = kind.removesuffix(" | None")
    if kind.startswith("Literal["):
        one_of(what, value, ast.literal_eval(kind.removeprefix("Literal")), ArgumentError)
    elif kind == "str" and not isinstance(value, str):
        world = ", or None for the world" if field.name in ("frame_a", "frame_b") else ""
        place = {"frame": "body or frame"}.get(field.name.split("_")[0], field.name)
        expected = "a string" if field.name == "name" else f"the name of a {place}"
        raise ArgumentError(f"{what} is {excerpt(value)}; expected {expected}{world}")
    elif kind == "bool" and not isinstance(value, (bool, np.bool)):
        raise ArgumentError(f"{what} is {excerpt(value)}; expected True or False")
    elif kind.startswith("Callable[") and not callable(value):
        raise ArgumentError(f"{what} is {excerpt(value)}; expected a function(t, q, qd, parameters, out)")
    elif kind == "int":
        least, most = WHOLE_NUMBERS[field.name]
        is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not is_whole or value < least or (most is not None and value > most):
            bound = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise ArgumentError(f"{what} is {excerpt(value)}; expected a whole number {bound}")


def fields_of_kind(owner: Declared | type[Declared], kind: str) -> list[str]:
    """Return the names of the fields of a class that are numbers, signals or poses."""
    return [field.name for field in owner.numeric_fields if field.kind == kind]


def fields_for_inputs(owner: Declared | type[Declared]) -> list[str]:
    """Return the names of the fields of a class that may contain inputs: signals, and some numbers."""
    return [field.name for field in owner.numeric_fields if field.kind == SIGNAL or field.takes_inputs]
