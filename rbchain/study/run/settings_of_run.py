"""Settings that functions of a study pass on to `Study.run`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...common.misspelled import did_you_mean
from ...errors import StudyError


def settings_of_run(
    run: Callable[..., Any],
    function: str,
    settings: dict[str, Any],
    *,
    own: Sequence[str] = (),
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """Return settings that a function passes to `Study.run`.

    `own` are the arguments of the function itself, for messages. The function does not pass the settings in `without`.
    Raises a StudyError for other settings.
    """
    ours = ("self", "out", "part", *without)
    known = [*own, *(name for name in inspect.signature(run).parameters if name not in ours)]
    for name in settings:
        if name not in known:
            raise StudyError(
                f"{function} has no argument {name!r}; expected one of {', '.join(known)}{did_you_mean(name, known)}"
            )
    return settings
