"""Whether the results of a study fit into memory or onto the disk: found out before anything is computed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ..errors import StudyError
from .plan import Plan


def refuse_beyond_memory(plan: Plan) -> None:
    """A StudyError if the results take more memory than the machine has."""
    needed, there = plan.stored_bytes(), memory_there()
    if needed > there:
        raise StudyError(
            f"samples is {plan.description.samples:,}: the results take {in_units(needed)} of memory, and this machine "
            f"has {in_units(there)}. Pass `out=` to keep them on disk, or choose fewer samples"
        )


def refuse_beyond_disk(plan: Plan, folder: Path) -> None:
    """A StudyError if the results take more than the free space, unless the study may stop early."""
    needed, there = plan.stored_bytes(), shutil.disk_usage(folder).free
    if needed > there and plan.description.stop_when is None:
        raise StudyError(
            f"samples is {plan.description.samples:,}: the results take up to {in_units(needed)}, and the disk of "
            f"{folder} has {in_units(there)} free. Choose fewer samples, fewer outputs, or another disk"
        )


def memory_there() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def in_units(size: float) -> str:
    """Bytes in words, with three digits."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000 or unit == "PB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"
