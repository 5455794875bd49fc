"""The names that `dir` lists. Completion in editors and notebooks, `help` and the reference all read them from there.

Modules of rbchain use some attributes of each other's classes that are not part of the public interface. They cannot
be private, because no module reads a private attribute of another.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

#: Names of Python and of dataclasses. `help` would describe them for each class.
OF_PYTHON = (
    *("__annotations__", "__delattr__", "__dict__", "__dir__", "__getattr__", "__new__", "__reduce_ex__"),
    *("__setattr__", "__weakref__", "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__post_init__"),
)


def public_names(cls: type[Any], names: Iterable[str]) -> list[str]:
    """Return the names without those that the class or its base classes list in `internal_names`."""
    internal = {name for base in cls.__mro__ for name in vars(base).get("internal_names", ())}
    return [name for name in names if name not in internal]


class ListsPublicNames(type):
    """Metaclass of classes whose `dir` lists public names, such as `dir(rb.PID)`."""

    def __dir__(cls) -> list[str]:
        return public_names(cls, super().__dir__())


class HasPublicNames(metaclass=ListsPublicNames):
    """Base class of objects whose `dir` lists public names.

    A subclass lists its other names in `internal_names`.

    Examples
    --------
    >>> class Drive(HasPublicNames):
    ...     internal_names = ("label",)
    ...     joint, label = "elbow", "Drive of joint 'elbow'"
    >>> [name for name in dir(Drive) if not name.startswith("_")]
    ['joint']
    """

    internal_names: ClassVar[tuple[str, ...]] = ("internal_names", *OF_PYTHON)

    def __dir__(self) -> list[str]:
        return public_names(type(self), super().__dir__())
