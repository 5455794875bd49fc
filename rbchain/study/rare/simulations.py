"""Simulations of a method: margins of standard normal vectors by a study, all of them kept, and stored if asked."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import special

from ...common.whole_files import whole_file
from ...errors import StudyError
from ..describe.designs import SMALLEST
from ..plan.outcomes import WARNINGS, has_failed, sentences_of_warnings, status_in_words
from ..plan.plan import Plan
from ..run.executors import Executor
from ..run.resources import Resources

Undefined = Literal["failure", "no_failure"]


@dataclass(frozen=True)
class Settings:
    """Where and how to simulate: resources and their executor, and a folder for the results."""

    resources: Resources
    executor: Executor
    folder: Path | None


class Simulations:
    """Simulates samples of a study, counts them and keeps their results.

    Parameters
    ----------
    plan : Plan
    measure : str
    threshold, sign : float
        The margin is sign * (threshold - measure): the sign is 1 if large values are failures, and -1 otherwise.
    undefined : "failure", "no_failure" or None
        How samples without a value count.
    limit : int
        Largest number of simulations.
    """

    def __init__(
        self,
        plan: Plan,
        measure: str,
        threshold: float,
        sign: float,
        undefined: Undefined | None,
        limit: int,
        settings: Settings,
    ) -> None:
        variables = tuple(v for v in plan.variables if v.name in (measure, "status", WARNINGS))
        self.plan, self.measure, self.settings = replace(plan, variables=variables), measure, settings
        self.threshold, self.sign, self.undefined, self.limit = threshold, sign, undefined, limit
        self.count = 0
        self._kept: list[tuple[np.ndarray, ...]] = []

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Return the margins (m,) of standard normal vectors (m, d). Raises a StudyError if one is unknown."""
        found = self.exploring(u)
        if np.isnan(found).any():
            self._refuse_undefined()
        return found

    def exploring(self, u: np.ndarray) -> np.ndarray:
        """Return the margins (m,) of standard normal vectors (m, d); NaN if unknown."""
        return self.of_points(np.clip(special.ndtr(u), SMALLEST, 1.0 - 2 * SMALLEST), u)

    def of_points(self, points: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the margins (m,) of points (m, d) in the unit cube; NaN if unknown. `u` are their normal numbers."""
        if self.count + len(points) > self.limit:
            raise StudyError(
                f"the method needs more than the {self.limit:,} simulations that it may use: {self.count:,} are done, "
                f"and the nearest margin to a failure is {self._nearest():g} ({self.measure!r}, threshold "
                f"{self.threshold:g}); increase simulations"
            )
        values = self.plan.drawn.values(points)
        measured, status, warned = self._simulated(values)
        self.count += len(values)
        self._kept.append((u, values, measured, status, warned))
        return self._margins(measured)

    @property
    def u(self) -> np.ndarray:
        """Standard normal vectors (simulations, d) of all simulations."""
        return self._of_all(0)

    @property
    def values(self) -> np.ndarray:
        """Random inputs (simulations, d) of all simulations."""
        return self._of_all(1)

    @property
    def margins(self) -> np.ndarray:
        """Margins (simulations,) of all simulations."""
        return self._margins(self._of_all(2))

    @property
    def failed(self) -> int:
        """Number of simulations that failed."""
        return int(has_failed(self._of_all(3)).sum())

    @property
    def without_number(self) -> int:
        """Number of simulations that succeeded, but whose measure is NaN."""
        return int((np.isnan(self._of_all(2)) & ~has_failed(self._of_all(3))).sum())

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each warning that simulations have, with their number."""
        return tuple(sentences_of_warnings(self._of_all(4), self.count))

    def _of_all(self, index: int) -> np.ndarray:
        if len(self._kept) > 1:
            self._kept = [tuple(np.concatenate(arrays) for arrays in zip(*self._kept, strict=True))]
        return self._kept[0][index]

    def _nearest(self) -> float:
        known = self.margins[np.isfinite(self.margins)] if self._kept else np.zeros(0)
        return float(known.min()) if known.size else np.nan

    def _margins(self, measured: np.ndarray) -> np.ndarray:
        found = self.sign * (self.threshold - measured)
        if self.undefined is not None:
            found[np.isnan(measured)] = -np.inf if self.undefined == "failure" else np.inf
        return found

    def _refuse_undefined(self) -> None:
        measured, status = self._of_all(2), self._of_all(3)
        unknown = np.flatnonzero(np.isnan(measured))
        first, failed = unknown[0], has_failed(status[unknown])
        reason = status_in_words(int(status[unknown[failed][0]])) if failed.any() else f"{self.measure!r} is NaN"
        drawn = ", ".join(f"{n} = {x:.6g}" for n, x in zip(self.plan.columns, self.values[first], strict=True))
        raise StudyError(
            f"{unknown.size} of {self.count:,} simulations have no value: {int(failed.sum())} failed, and "
            f"{int((~failed).sum())} succeeded with {self.measure!r} NaN. {reason} The first one has {drawn}. This "
            "method requires you to choose how to count them: pass undefined='failure' or undefined='no_failure', "
            "change the settings of simulate, or use method='monte_carlo', whose interval covers both cases"
        )

    def _simulated(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the measure, the status and the warnings of the next samples, each (m,)."""
        found = np.empty(len(values)), np.empty(len(values), np.int64), np.empty(len(values), np.int64)
        for first, last, of_part in self._parts(values):
            for whole, part in zip(found, of_part, strict=True):
                whole[first:last] = part
        return found

    def _parts(self, values: np.ndarray) -> Iterator[tuple[int, int, tuple[np.ndarray, ...]]]:
        """Yield parts of the results, first the parts that the folder has."""
        missing = []
        first = 0
        size = self.settings.resources.chunk_size(self.plan.with_values(values))
        while first < len(values):
            stored = self._stored(self.count + first, values[first:])
            if stored is None:
                last = min(first + size, len(values))
                missing.append((first, last))
            else:
                last = first + len(stored[0])
                yield first, last, stored
            first = last
        start = self.count
        plan = replace(self.plan.with_values(values), table_start=start)
        spans = [(chunk, start + first, start + last) for chunk, (first, last) in enumerate(missing)]
        for chunk, outputs in self.settings.executor(plan, spans):
            first, last = missing[chunk]
            warned = outputs.get(WARNINGS, np.zeros(last - first, np.int64))
            found = outputs[self.measure], outputs["status"].astype(np.int64), warned.astype(np.int64)
            self._store(start + first, values[first:last], *found)
            yield first, last, found

    def _file(self, number: int) -> Path:
        assert self.settings.folder is not None
        return self.settings.folder / "simulations" / f"{number:012d}.npz"

    def _store(
        self, number: int, values: np.ndarray, measured: np.ndarray, status: np.ndarray, warned: np.ndarray
    ) -> None:
        if self.settings.folder is None:
            return
        self._file(number).parent.mkdir(exist_ok=True)
        with whole_file(self._file(number)) as partial, partial.open("wb") as file:
            np.savez(file, values=values, measured=measured, status=status, warnings=warned)

    def _stored(self, number: int, values: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Return the stored results of the samples that start at this number, as many as their file has."""
        if self.settings.folder is None or not self._file(number).exists():
            return None
        try:
            with self._file(number).open("rb") as opened, np.load(opened) as file:
                drawn, *found = (file[name] for name in ("values", "measured", "status", "warnings"))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            warnings.warn(f"{self._file(number)} is damaged; its simulations are computed again", stacklevel=2)
            return None
        count = min(len(drawn), len(values))
        if drawn[:count].tobytes() != np.ascontiguousarray(values[:count]).tobytes():
            raise StudyError(
                f"{self._file(number)}: the random inputs differ from the inputs of this analysis; they may come "
                "from another processor or other versions of NumPy and SciPy. Choose another folder"
            )
        return tuple(array[:count] for array in found)
