"""Progress bar of a study."""

from __future__ import annotations

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
        is_first = True

        def advance(count: int, statistics: Statistics) -> None:
            nonlocal is_first
            if is_first:  # the first call counts the samples of earlier runs, which say nothing about the rate
                is_first = False
                bar.done, bar.note = count, "finished before" if count == bar.total else ""
                return
            bar.advance(count)
            rate = [f"{bar.rate:,.0f} per s"] if bar.rate else []
            failed = [f"{statistics.failures:,} failed"] if statistics.failures else []
            bar.note = ", ".join(rate + failed)

        yield advance
        bar.total = bar.done
