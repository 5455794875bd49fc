"""Merge the parts of a study, which jobs of a cluster have computed into separate folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import StudyError
from .run.settings_of_run import settings_of_run
from .store.inspection import Findings, inspect
from .store.repair import samples_before
from .store.store import Store, locked

if TYPE_CHECKING:
    import xarray

    from .study import Study

SPANS_NAMED = 3  # in an error message


def merge(study: Study, out: str | Path, folders: Sequence[str | Path], **settings: Any) -> xarray.Dataset:
    """Merge the results of parts of the study, for job arrays on a cluster.

    Each job runs one part, with a separate folder: `study.run(f"part{k}", part=(k, 100))`. The merged results are
    the same as the results of a run of the whole study.

    Parameters
    ----------
    out : path
        Folder for all results.
    folders : sequence of paths
        Folders of the parts.
    **settings
        As for `Study.run`, for the simulations and gradients of the report after the last sample.

    Returns
    -------
    xarray.Dataset
        As from `Study.run`.

    Raises
    ------
    StudyError
        If a folder has damaged files, or results of another study, or if samples are in none of the folders. The
        message lists them. `out` then contains the samples that were found.

    Examples
    --------
    >>> import tempfile
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1), samples=10, simulate=rb.Simulation(0.1), vary={"*.q": rb.Normal(std=0.1)}
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = [f"{folder}/part{k}" for k in (1, 2)]
    ...     sizes = [study.run(parts[k - 1], part=(k, 2)).sizes["sample"] for k in (1, 2)]
    ...     print(sizes, study.merge(f"{folder}/all", parts).sizes["sample"])
    [5, 5] 10
    """
    run_settings = settings_of_run(study.run, "Study.merge", settings)
    merge_into(study, out, folders)
    return study.run(out, **run_settings)


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
