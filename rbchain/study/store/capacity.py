"""Checks before a run that the results fit into the memory or onto the disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ...errors import StudyError
from ..plan.plan import Plan


def check_memory(plan: Plan) -> None:
    """Raise a StudyError if the results need more memory than the machine has."""
    needed, available = plan.stored_bytes(), total_memory()
    if needed > available:
        raise StudyError(
            f"samples is {plan.description.samples:,}: the results need {with_unit(needed)} of memory, but this "
            f"machine has {with_unit(available)}. Pass `out=` to store them on disk, or reduce samples or outputs"
        )


def check_disk(plan: Plan, folder: Path) -> None:
    """Raise a StudyError if the results need more than the free space, unless the study may stop early."""
    needed, available = plan.stored_bytes(), shutil.disk_usage(folder).free
    if needed > available and plan.description.stop_when is None:
        raise StudyError(
            f"samples is {plan.description.samples:,}: the results need up to {with_unit(needed)}, but the disk of "
            f"{folder} has {with_unit(available)} free. Reduce samples or outputs, or choose a folder on another disk"
        )


def total_memory() -> int:
    """Return the memory of the machine in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def with_unit(size: float) -> str:
    """Format a number of bytes with three digits and a unit."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000 or unit == "PB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"
