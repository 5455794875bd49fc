"""Suggestions for misspelled names in error messages."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from .public_names import HasPublicNames, ListsPublicNames
from .real_arrays import excerpt


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean NAME?" with the most similar known name, or "" if no name is similar.

    Upper and lower case count as equal if no name is similar otherwise.

    Examples
    --------
    >>> did_you_mean("sample", ["samples", "seed"])
    '; did you mean samples?'
    """
    from difflib import get_close_matches  # only errors need it

    names = list(known)
    of_lower_case = {other.lower(): other for other in names}
    found = get_close_matches(name, names, n=1, cutoff=0.7)
    found = found or [of_lower_case[x] for x in get_close_matches(name.lower(), of_lower_case, n=1, cutoff=0.7)]
    return "".join(f"; did you mean {other}?" for other in found)


def one_of(name: str, value: Any, words: Sequence[str], error: type[Exception]) -> Any:
    """Return a caller's value; raise an `error` if it is not one of the words.

    Examples
    --------
    >>> one_of("axes", "wrld", ["world", "body"], ValueError)
    Traceback (most recent call last):
    ValueError: axes is 'wrld'; expected one of 'world', 'body'; did you mean world?
    """
    if isinstance(value, str) and value in words:
        return value
    hint = did_you_mean(value, words) if isinstance(value, str) else ""
    raise error(f"{name} is {excerpt(value)}; expected one of {', '.join(map(repr, words))}{hint}")


def no_attribute(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for an attribute that `owner` does not have; it suggests the most similar known public name."""
    public = [] if name.startswith("_") else [other for other in known if not other.startswith("_")]
    return AttributeError(f"{owner} has no attribute {name!r}{did_you_mean(name, public)}")


class NamesClassMethods(ListsPublicNames):
    """Metaclass of classes whose former class methods are in `renamed_attributes`: errors suggest the new function."""

    if not TYPE_CHECKING:  # with __getattr__, a type checker would accept every name

        def __getattr__(cls, name: str) -> Any:
            new = cls.renamed_attributes.get(name)
            text = f"type object {cls.__name__!r} has no attribute {name!r}"
            raise AttributeError(text if new is None else f"{text}; it is now {new}")


class SuggestsAttributes(HasPublicNames):
    """Base class whose error for a misspelled or renamed attribute suggests the right name.

    The suggestion is part of the message, because the interpreter adds its own only to tracebacks on the console.
    A subclass lists old names with their replacements in `renamed_attributes`, and names from other packages
    with the names here in `foreign_attributes`.
    """

    internal_names: ClassVar[tuple[str, ...]] = ("renamed_attributes", "foreign_attributes")
    renamed_attributes: ClassVar[dict[str, str]] = {}
    foreign_attributes: ClassVar[dict[str, str]] = {}

    if not TYPE_CHECKING:  # with __getattr__, a type checker would accept every name

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property raised the AttributeError: raise it again
                return object.__getattribute__(self, name)
            if name in type(self).renamed_attributes:
                new = type(self).renamed_attributes[name]
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}; it is now {new}")
            if name in type(self).foreign_attributes:
                here = type(self).foreign_attributes[name]
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}; use {here}")
            raise no_attribute(f"{type(self).__name__!r} object", name, dir(self))


class ClosedAttributes(SuggestsAttributes):
    """Base class whose objects accept only attributes that their class declares by an annotation, and private ones."""

    if not TYPE_CHECKING:  # with __setattr__, a type checker would accept every name

        def __setattr__(self, name: str, value: Any) -> None:
            declared = any(name in getattr(base, "__annotations__", ()) for base in type(self).__mro__)
            if not (declared or name.startswith("_")):
                if hasattr(self, name):
                    raise AttributeError(f"cannot set {name} of a {type(self).__name__}")
                raise no_attribute(f"{type(self).__name__!r} object", name, dir(self))
            object.__setattr__(self, name, value)
