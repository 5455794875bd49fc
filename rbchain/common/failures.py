"""The argument `on_failure`: what happens if a sample fails."""

from typing import Any, Literal, get_args

from .misspelled import one_of

OnFailure = Literal["warn", "raise", "ignore"]
WORDS = get_args(OnFailure)
RENAMED = {"status": "ignore", "nan": "ignore"}


def checked_on_failure(value: Any, error: type[Exception]) -> OnFailure:
    """Return the value, or raise an `error` if it is not one of the words. Names the new word for an old one.

    Examples
    --------
    >>> checked_on_failure("nan", ValueError)
    Traceback (most recent call last):
    ValueError: on_failure is 'nan'; expected one of 'warn', 'raise', 'ignore'. 'nan' is now called 'ignore'
    """
    new = RENAMED.get(value) if isinstance(value, str) else None
    if new:
        words = ", ".join(map(repr, WORDS))
        raise error(f"on_failure is {value!r}; expected one of {words}. {value!r} is now called {new!r}")
    return one_of("on_failure", value, WORDS, error)
