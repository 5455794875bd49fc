"""The base class of all parts of a study's description. It accepts only known keys, and only real numbers."""

from collections.abc import Mapping
from inspect import Parameter, Signature
from numbers import Number
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ...common.calls import too_many_values
from ...common.misspelled import did_you_mean
from ...common.public_names import HasPublicNames, ListsPublicNames
from ...common.real_arrays import excerpt, real_array
from ...errors import StudyError
from .places import message_of

#: One name, or several.
Names = Annotated[tuple[str, ...], BeforeValidator(lambda x: (x,) if isinstance(x, str) else x)]


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class _Empty(BaseModel):
    pass


#: Methods and attributes of pydantic, which are not part of the interface of a study.
OF_PYDANTIC = tuple(dir(_Empty))


class CheckedCalls(ListsPublicNames, ModelMetaclass):
    """Metaclass of `Described`: calls accept the arguments in `positional` by position, and raise a StudyError."""

    if not TYPE_CHECKING:  # type checkers read the fields or the __init__ of each class

        def __call__(cls, *values: Any, **keys: Any) -> Any:
            names = cls.positional[: len(values)]
            if len(values) > len(names):
                fields = {name: field for name, field in cls.model_fields.items() if name not in cls.positional}
                required = [name for name, field in fields.items() if field.is_required()]
                optional = [name for name in fields if name not in required]
                raise StudyError(too_many_values(cls.__name__, len(values), cls.positional, required, optional))
            twice = [name for name in names if name in keys]
            if twice:
                raise StudyError(f"{cls.__name__}: {twice[0]} is given twice; expected one value")
            try:
                return super().__call__(**dict(zip(names, values, strict=True)), **keys)
            except ValidationError as error:
                raise StudyError(message_of(error)) from None


class Described(HasPublicNames, BaseModel, metaclass=CheckedCalls):
    """A part of a description."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)

    internal_names: ClassVar[tuple[str, ...]] = ("renamed", "positional", *OF_PYDANTIC)
    #: Keys of earlier versions and their present names.
    renamed: ClassVar[Mapping[str, str]] = {}
    #: Fields that Python calls may give by position.
    positional: ClassVar[tuple[str, ...]] = ()

    if not TYPE_CHECKING:  # type checkers know neither __signature__ nor its type

        @classmethod
        def __pydantic_init_subclass__(cls, **_: Any) -> None:
            cls.__signature__ = signature_for_help(cls)

    @model_validator(mode="before")
    @classmethod
    def _check_keys_and_numbers(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        for name, value in given.items():
            if name in cls.renamed:
                raise ValueError(
                    f"the key {name!r} is now called {cls.renamed[name]!r}; found {name} = {excerpt(value, longest=80)}"
                )
            if name not in cls.model_fields:
                raise ValueError(
                    f"unknown key {name!r}; expected one of {', '.join(cls.model_fields)}"
                    f"{did_you_mean(str(name), cls.model_fields)}"
                )
            refuse_unreal(name, value)
            if isinstance(value, bool | np.bool_) and not _accepts_truth_values(cls.model_fields[name].annotation):
                raise ValueError(f"{name} is {value}; expected a value other than true or false")
        return given


class _Required:
    def __repr__(self) -> str:
        return "<required>"


#: The default of a required argument after one with a default, in the signature for `help`.
REQUIRED = _Required()


def signature_for_help(cls: type[Described]) -> Signature:
    """Return the arguments of a call, without `type`, which only files need, and without annotations."""
    fields = {name: cls.model_fields[name] for name in (*cls.positional, *cls.model_fields) if name != "type"}
    parameters: list[Parameter] = []
    for name, field in fields.items():
        kind = Parameter.POSITIONAL_OR_KEYWORD if name in cls.positional else Parameter.KEYWORD_ONLY
        default: Any = Parameter.empty
        if not field.is_required():
            default = field.get_default(call_default_factory=True)
        elif name in cls.positional and any(p.default is not Parameter.empty for p in parameters):
            default = REQUIRED
        parameters.append(Parameter(name, kind, default=default))
    return Signature(parameters)


def _accepts_truth_values(annotation: Any) -> bool:
    return annotation is bool or bool in get_args(annotation)


def refuse_unreal(name: str, value: Any) -> None:
    """Raise a ValueError for a masked array or a complex number, even in a list: pydantic would drop a part of it."""
    if isinstance(value, list | tuple):
        for item in value:
            refuse_unreal(name, item)
    elif isinstance(value, Number | np.ndarray | np.generic):
        real_array(name, value, ValueError, truth_values=True)


def real_numbers(name: str, values: Any) -> np.ndarray:
    """Return a new float64 array of these values, in which true is 1 and false is 0, or raise a ValueError."""
    return np.array(real_array(name, values, ValueError, truth_values=True))


def _finite_read_only(values: npt.ArrayLike, info: ValidationInfo) -> np.ndarray:
    array = real_numbers(str(info.field_name), values)
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError("expected finite numbers, at least one")
    array.flags.writeable = False
    return array


def _positive(value: float | str) -> float | str:
    if not isinstance(value, str) and not value > 0.0:
        raise ValueError("expected a number above 0")
    return value


#: A number in SI units, or a string of a number and its unit, such as "2 mm".
if TYPE_CHECKING:
    Quantity = Any  # `in_si` converts the strings to numbers
else:
    Quantity = Annotated[float | str, Field(union_mode="left_to_right")]
Positive = Annotated[Quantity, AfterValidator(_positive)]
Numbers = Annotated[Any, BeforeValidator(_finite_read_only)]
