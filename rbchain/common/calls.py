"""Messages for wrong calls: former and misspelled names of arguments, and values by position that need keywords.

Python's own messages do not name the new name of an argument, or the missing keywords.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .misspelled import did_you_mean
from .public_names import HasPublicNames

Function = TypeVar("Function", bound=Callable[..., Any])


class Arguments:
    """The arguments of a function or a class, without the object or the class of a method.

    Parameters
    ----------
    function : function
    is_method : bool
        Whether the first argument is the object or the class of a method.
    instead : dict of str
        What to use instead of former names, and instead of names from other packages.
    hint : str
        Sentence for calls with too many values by position.
    """

    def __init__(
        self, function: Callable[..., Any], is_method: bool, instead: Mapping[str, str], hint: str = ""
    ) -> None:
        parameters = [*inspect.signature(function).parameters.values()][is_method:]
        by_keyword = [p for p in parameters if p.kind == p.KEYWORD_ONLY]
        self.instead, self.hint = instead, hint
        self.positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.required = [p.name for p in by_keyword if p.default is p.empty]
        self.optional = [p.name for p in by_keyword if p.default is not p.empty]
        self.names = {p.name for p in parameters if p.kind != p.POSITIONAL_ONLY}
        self.most = float("inf") if any(p.kind == p.VAR_POSITIONAL for p in parameters) else len(self.positional)
        self.takes_any_keyword = any(p.kind == p.VAR_KEYWORD for p in parameters)

    def fit(self, count: int, keywords: Mapping[str, Any]) -> bool:
        """Whether so many values may be given by position, and all keywords are arguments."""
        return count <= self.most and (self.takes_any_keyword or keywords.keys() <= self.names)

    def error(self, name: str, count: int, keywords: Mapping[str, Any]) -> TypeError:
        """Return the error for a call that does not fit. `name` is the name of the function or class."""
        if count > self.most:
            text = too_many_values(name, count, self.positional, self.required, self.optional)
            return TypeError(text + self.hint)
        keyword = next(keyword for keyword in keywords if keyword not in self.names)
        known = ", ".join(self.positional + self.required + self.optional) or "none"
        instead = f"expected {known}{did_you_mean(keyword, self.names)}"
        if keyword in self.instead:
            instead = f"use {self.instead[keyword]}"
        return TypeError(f"{name} has no argument {keyword!r}; {instead}")


def too_many_values(
    name: str, count: int, positional: Collection[str], required: Collection[str], optional: Collection[str]
) -> str:
    """Return the message for a call with too many values by position. It lists the arguments in their order.

    Examples
    --------
    >>> too_many_values("SpringDamper", 3, ["frame_a", "frame_b"], ["stiffness"], ["damping"])
    'SpringDamper was called with 3 values by position; expected frame_a, frame_b. Give the others by keyword: \
stiffness; optional: damping'
    """
    values = "1 value" if count == 1 else f"{count} values"
    expected = f"{', '.join(positional)}. Give the others" if positional else "none. Give them"
    keywords = "; optional: ".join(filter(None, (", ".join(required), ", ".join(optional))))
    return f"{name} was called with {values} by position; expected {expected} by keyword: {keywords}"


def explains_calls(*, is_method: bool = False, **instead: str) -> Callable[[Function], Function]:
    """Make a decorator of functions, whose wrong calls raise a TypeError that names the right arguments.

    Examples
    --------
    >>> @explains_calls(t_end="duration")
    ... def run(model, *, duration): ...
    >>> run("arm", t_end=1.0)
    Traceback (most recent call last):
    TypeError: run has no argument 't_end'; use duration
    """

    def decorated(function: Function) -> Function:
        arguments = Arguments(function, is_method, instead)

        @wraps(function)
        def checked(*values: Any, **keywords: Any) -> Any:
            count = len(values) - is_method
            if arguments.fit(count, keywords):
                return function(*values, **keywords)
            owner = values[0] if is_method and values else None
            prefix = "" if owner is None else f"{(owner if isinstance(owner, type) else type(owner)).__name__}."
            raise arguments.error(prefix + function.__name__, count, keywords)

        return checked  # type: ignore[return-value]

    return decorated


class ExplainsCalls(HasPublicNames):
    """Base class of classes, whose wrong calls raise a TypeError that names the right arguments.

    A subclass lists former names of its arguments in `renamed_arguments`, with their new names, which are also read
    from files. `foreign_arguments` states what to use instead of names from other packages. `hint_for_calls` is a
    sentence for calls with too many values by position.
    """

    internal_names: ClassVar[tuple[str, ...]] = ("renamed_arguments", "foreign_arguments", "hint_for_calls")
    renamed_arguments: ClassVar[dict[str, str]] = {}
    foreign_arguments: ClassVar[dict[str, str]] = {}
    hint_for_calls: ClassVar[str] = ""

    if not TYPE_CHECKING:  # the arguments are those of __init__

        def __new__(cls, *values, **keywords):
            arguments = _arguments_of(cls)
            if not arguments.fit(len(values), keywords):
                raise arguments.error(cls.__name__, len(values), keywords)
            return super().__new__(cls)


def with_present_names(cls: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a class in a file, in which former names are replaced by the present ones.

    Raises ValueError if an argument has both names.
    """
    renamed = getattr(cls, "renamed_arguments", {})
    for former, present in renamed.items():
        if former in given and present in given:
            raise ValueError(f"{present} is given twice, also by its former name {former}; remove {former}")
    return {renamed.get(name, name): value for name, value in given.items()}


@cache
def _arguments_of(cls: type[ExplainsCalls]) -> Arguments:
    return Arguments(cls.__init__, True, cls.foreign_arguments | cls.renamed_arguments, cls.hint_for_calls)
