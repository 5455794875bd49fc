"""Settings that functions of a study pass on to `Study.run`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...common.misspelt import did_you_mean
from ...errors import StudyError


def settings_of_run(run: Callable[..., Any], function: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings that a function passes to `Study.run`. Raises a StudyError if `Study.run` has no such setting."""
    known = [name for name in inspect.signature(run).parameters if name not in ("self", "out", "part")]
    for name in settings:
        if name not in known:
            raise StudyError(
                f"{function} has no argument {name!r}; expected one of {', '.join(known)}{did_you_mean(name, known)}"
            )
    return settings
