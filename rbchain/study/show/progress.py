"""Progress bar of a study."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...common.progress import progress
from ..run.statistics import Statistics


@contextmanager
def bar_of(name: str, samples: int) -> Iterator[Callable[[int, Statistics], None]]:
    """Display a bar for the samples of a study; yield the function that advances it, the `progress` of `Study.run`.

    If a study stops early, the bar shows the number of samples it needed.
    """
    with progress(name, samples, after=0.0) as bar:
        started: list[float] = []
        computed = 0

        def advance(count: int, statistics: Statistics) -> None:
            nonlocal computed
            if not started:  # the first call counts the samples of earlier runs
                started.append(time.perf_counter())
                bar.advance(count, "finished before" if bar.done + count == bar.total else "")
                return
            computed += count
            rate = computed / (time.perf_counter() - started[0])
            failed = f", {statistics.failures:,} failed" if statistics.failures else ""
            bar.advance(count, f"{rate:,.0f} per s{failed}")

        yield advance
        bar.total = bar.done
