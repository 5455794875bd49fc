"""Run or resume a study in a folder of results."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import StudyError
from .analyze.linear_analysis import linear_analysis
from .analyze.survivors import survivors_in
from .describe.identity import changes_that_are_not_noticed
from .run.chunks import run
from .run.compilation import compiled_in_parallel
from .run.parts import Part
from .run.resources import Resources
from .run.statistics import Statistics
from .show.initial_state import write_sketch
from .store.description_files import study_file, write_description
from .store.layout import SKETCH
from .store.opening import stored_results_in
from .store.provenance import Log
from .store.store import Store, locked

if TYPE_CHECKING:
    from .study import Study


def run_into(
    study: Study,
    out: str | Path,
    resources: Resources,
    *,
    progress: Callable[[int, Statistics], object] | None = None,
    part: Part | None = None,
) -> range:
    """Simulate the samples that are missing in a folder of results: `Study.run` without opening the results.

    `Study.run` describes the arguments. Returns the numbers of the samples of the study, or of a part of it.
    """
    plan, compute, size = study.plan, resources.new_executor(), resources.chunk_size(study.plan)
    if part is not None:
        size = part.chunk_size(plan, size)
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        with locked(out):
            exists = Store.exists(out)
            if not exists:  # the description of results that were deleted
                study_file(out).unlink(missing_ok=True)
                (Path(out) / SKETCH).unlink(missing_ok=True)
            store = Store.open(out, plan, study.effects) if exists else Store.create(out, plan, size, study.effects)
            log = Log(out)
            file = None if study.file is None else os.path.relpath(study.file, Path(out).resolve())
            for sentence in changes_that_are_not_noticed(plan.as_json()):
                warnings.warn(sentence, stacklevel=4)
            not_written = write_description(Path(out), plan) if file is None else ""
            entries = {"file": file} | ({"not_written": not_written} if not_written else {})
            log.write(event="started", samples=plan.description.samples, **entries)
            if store.grown_from is not None:
                log.write(event="grown", samples_before=store.grown_from)
            if store.repaired:
                log.write(event="repaired", files=[str(damage) for damage in store.repaired])
                warnings.warn(store.repair_message(), stacklevel=4)
            with compiled_in_parallel(plan):
                statistics = run(plan, store, compute, progress, part)
            if part is not None:
                log.write(event="part finished", part=[part.number, part.parts])
                return _samples_of(store, part)
            store.write_statistics(statistics.as_json(), survivors_in(stored_results_in(out)))
            log.write(event="finished", samples=statistics.count, failures=statistics.failures)
            if not (Path(out) / SKETCH).exists():
                write_sketch(plan, Path(out))
            # last, so that the study is finished even if a simulation at the means ends the process
            if store.repaired or not store.has_linear_analysis:
                store.write_linear_analysis(linear_analysis(plan, store, compute))
            return range(store.samples)
    except OSError as error:
        raise StudyError(
            f"{out}: the results cannot be written into this folder ({error.strerror or error}); choose another folder"
        ) from error


def _samples_of(store: Store, part: Part) -> range:
    """Return the numbers of the samples of a part."""
    chunks = part.chunks(store.chunks)
    return range(store.bounds(chunks.start)[0], store.bounds(chunks.stop - 1)[1]) if chunks else range(0)
