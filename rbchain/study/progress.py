"""A bar of how far a study is, in a terminal or a notebook."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .description import Description
from .statistics import Statistics


@contextmanager
def bar_of(description: Description, console: Console | None = None) -> Iterator[Callable[[int, Statistics], None]]:
    """A bar, and the function that moves it on: see `Study.run`. A study that stops early ends it there."""
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}")]
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        name, samples = escape(description.name), description.samples
        task = progress.add_task(name, total=samples, rate="")
        started: list[float] = []
        done = computed = 0

        def advance(count: int, statistics: Statistics) -> None:
            nonlocal done, computed
            done += count
            progress.advance(task, count)
            if not started:  # what earlier runs left
                started.append(time.perf_counter())
                progress.update(task, rate="compiling, the first time" if done < samples else "done before")
                return
            computed += count
            rate = computed / (time.perf_counter() - started[0])
            failed = f", {statistics.failures:,} failed" if statistics.failures else ""
            progress.update(task, rate=f"{rate:,.0f} per s{failed}")

        yield advance
        progress.update(task, total=done)
