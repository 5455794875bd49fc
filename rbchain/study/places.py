"""Errors that name the place in a study's description from which they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError

from ..errors import RbchainError, StudyError

Result = TypeVar("Result")


def call_at(place: str, call: Callable[..., Result], *arguments: Any, **settings: Any) -> Result:
    """Call a function; its errors become a StudyError that begins with the place in the description."""
    try:
        return call(*arguments, **settings)
    except ValidationError as error:
        message = "; ".join(problem["msg"].removeprefix("Value error, ") for problem in error.errors())
        raise StudyError(f"{place}: {message}") from None
    except (RbchainError, ValueError, TypeError) as error:
        raise StudyError(f"{place}: {error}") from None
