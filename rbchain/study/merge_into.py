"""Merge the parts of a study, which jobs of a cluster have computed into separate folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import StudyError
from .store.inspection import Findings, inspect
from .store.repair import samples_before
from .store.store import Store, locked

if TYPE_CHECKING:
    from .study import Study

SPANS_NAMED = 3  # in an error message


def merge_into(study: Study, out: str | Path, folders: Sequence[str | Path]) -> None:
    """Copy the results of parts of a study from their folders into the folder `out`, which then has all samples.

    Raises
    ------
    StudyError
        If a folder contains damaged files, or the results of another study, or if samples are missing.
    """
    parts = [_checked(study, folder) for folder in folders]
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        with locked(out):
            if Store.exists(out):
                store = Store.open(out, study.plan, study.effects)
            else:
                store = Store.create(out, study.plan, _chunk_of(parts), study.effects)
            for part in parts:
                if part.chunk != store.chunk:
                    raise StudyError(
                        f"{part.folder} has chunks of {part.chunk} samples, and {out} has chunks of {store.chunk}; "
                        "expected chunks of one size. Run all parts with the same settings chunk and memory"
                    )
                store.take(part)
    except OSError as error:
        raise StudyError(f"{out}: the results cannot be written ({error.strerror or error})") from error
    missing = [store.missing(chunk) for chunk in range(store.chunks) if not store.is_finished(chunk)]
    if missing:
        spans = _joined(missing)
        named = ", ".join(f"{first:,} to {last - 1:,}" for first, last in spans[:SPANS_NAMED])
        more = ", ..." if len(spans) > SPANS_NAMED else ""
        raise StudyError(
            f"{sum(last - first for first, last in spans):,} of {store.samples:,} samples are in none of the folders: "
            f"samples {named}{more}. Run the missing parts, and merge them into {out}, too; or run the study into "
            f"{out}, which computes these samples"
        )


def _checked(study: Study, folder: str | Path) -> Findings:
    """Return the contents of the folder of a part."""
    findings = inspect(folder)
    findings.check_undamaged()
    if samples_before(findings, study.plan) != study.plan.description.samples:
        assert findings.attributes is not None
        raise StudyError(
            f"{folder} contains a part of this study with {findings.attributes['samples']:,} samples; expected "
            f"{study.plan.description.samples:,}. Merge the parts of the smaller study; its results can then grow"
        )
    return findings


def _chunk_of(parts: Sequence[Findings]) -> int:
    if not parts or parts[0].chunk is None:
        raise StudyError("there are no folders to merge; expected the folders of the parts of a study")
    return parts[0].chunk


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans that follow each other without a gap."""
    joined: list[tuple[int, int]] = []
    for first, last in spans:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined
