"""The options of this process, which `rb.options` sets."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any


def _initial_threads() -> int:
    """Return RBCHAIN_NUM_THREADS or, if it is not set, the number of cores that this process may use."""
    setting = os.environ.get("RBCHAIN_NUM_THREADS")
    if not setting:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not setting.isdecimal() or int(setting) < 1:
        raise ValueError(
            f"environment variable RBCHAIN_NUM_THREADS is {setting!r}; expected a whole number of at least 1"
        )
    return int(setting)


@dataclass(frozen=True)
class Values:
    """The values of all options, which replace each other at once."""

    threads: int
    progress: bool
    boundscheck: bool
    control_derivative_errors: bool


_of_process = [Values(_initial_threads(), True, False, True)]


def current() -> Values:
    """Return the options of this process."""
    return _of_process[0]


def change(**values: Any) -> None:
    """Change some options of this process."""
    _of_process[0] = replace(_of_process[0], **values)
