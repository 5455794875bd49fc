"""Whether the results of a study fit into memory or onto the disk: found out before anything is computed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ..errors import StudyError
from .plan import Plan


def refuse_beyond_memory(plan: Plan) -> None:
    """A StudyError if the results take more memory than the machine has."""
    needed, available = plan.stored_bytes(), total_memory()
    if needed > available:
        raise StudyError(
            f"samples is {plan.description.samples:,}: the results take {with_unit(needed)} of memory, and this "
            f"machine has {with_unit(available)}. Pass `out=` to keep them on disk, or choose fewer samples"
        )


def refuse_beyond_disk(plan: Plan, folder: Path) -> None:
    """A StudyError if the results take more than the free space, unless the study may stop early."""
    needed, available = plan.stored_bytes(), shutil.disk_usage(folder).free
    if needed > available and plan.description.stop_when is None:
        raise StudyError(
            f"samples is {plan.description.samples:,}: the results take up to {with_unit(needed)}, and the disk of "
            f"{folder} has {with_unit(available)} free. Choose fewer samples, fewer outputs, or another disk"
        )


def total_memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def with_unit(size: float) -> str:
    """A number of bytes with its unit, in three digits."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000 or unit == "PB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"
