"""Progress of long work: a bar in terminals and notebooks, lines of the logger "rbchain" elsewhere.

Work of less than two seconds stays silent. `rb.options(progress=False)` and the environment variable RBCHAIN_QUIET=1
turn all messages off.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, ClassVar, Protocol

from .process_options import current

SILENT_SECONDS = 2.0  # work that takes less time is not reported
SECONDS_BETWEEN_LINES = 5.0  # of the log, during one piece of work

logger = logging.getLogger("rbchain")


def is_quiet() -> bool:
    """Return whether an option or RBCHAIN_QUIET turns messages off; an empty value and 0 do not."""
    return not current().progress or os.environ.get("RBCHAIN_QUIET", "") not in ("", "0")


def in_notebook() -> bool:
    """Return whether this process is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def in_terminal() -> bool:
    """Return whether stderr, which shows progress bars, is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def log(message: str, *arguments: object) -> None:
    """Log a message of level INFO. If the program has not configured logging, write it to stderr."""
    if is_quiet():
        return
    if logger.hasHandlers():
        logger.info(message, *arguments)
    elif logger.level <= logging.INFO:
        print(f"rbchain: {message % arguments}", file=sys.stderr, flush=True)


class Progress:
    """Amount of work done, as `progress` displays it.

    Attributes
    ----------
    total : int or None
        Units of work; None if the amount is not known.
    done : int
        Units of work that are done.
    note : str
        Text after the bar.
    is_estimate : bool
        Whether the total is estimated. Seconds are then shown instead of amounts.
    """

    def __init__(self, description: str, total: int | None, is_estimate: bool = False) -> None:
        self.description, self.total, self.is_estimate = description, total, is_estimate
        self.done, self.note = 0, ""
        self._started = time.monotonic()
        self._first: tuple[float, int] | None = None  # time and amount of the first advance
        self._last = self._started

    def advance(self, count: int = 1, note: str | None = None) -> None:
        """Add units of work that are done, and replace the note if one is given."""
        self.done += count
        self.note = self.note if note is None else note
        self._last = time.monotonic()
        if self._first is None:
            self._first = self._last, self.done

    @property
    def rate(self) -> float:
        """Units of work per second since the first units were done, which may wait for a compilation; 0 before."""
        if self._first is None or self._last == self._first[0]:
            return 0.0
        return (self.done - self._first[1]) / (self._last - self._first[0])

    @property
    def details(self) -> str:
        """Amount, note and seconds: "40/100, 12 s, about 18 s left", or "12 s of about 30 s" for an estimated total."""
        elapsed = time.monotonic() - self._started
        amount = [] if self.total is None or self.is_estimate else [f"{self.done}/{self.total}"]
        note = [self.note] if self.note else []
        seconds = f"{elapsed:.0f} s"
        if self.is_estimate and self.total is not None and 0 < self.done < self.total:
            seconds += f" of about {elapsed * self.total / self.done:.0f} s"
        parts = [*amount, *note, seconds]
        if not self.is_estimate and self.total is not None and self.done < self.total and self.rate > 0.0:
            parts.append(f"about {(self.total - self.done) / self.rate:.0f} s left")
        return ", ".join(parts)

    @property
    def text(self) -> str:
        """One line: "Writing swing.gif: 40/100, 12 s"."""
        return f"{self.description}: {self.details}"

    @property
    def html(self) -> str:
        """The same line with a bar, if the amount of work is known."""
        bar = "" if self.total is None else f'<progress value="{self.done}" max="{self.total}"></progress> '
        return f"<div>{escape(self.description)}: {bar}{escape(self.details)}</div>"


@contextmanager
def progress(
    description: str, total: int | None = None, *, after: float = SILENT_SECONDS, is_estimate: bool = False
) -> Iterator[Progress]:
    """Display the progress of the work inside a `with` statement.

    Parameters
    ----------
    description : str
        Name of the work: "Writing swing.gif".
    total : int, optional
        Units of work, which the caller counts by `advance`.
    after : float, s
        Display nothing if the work takes less time. At 0 it is always displayed.
    is_estimate : bool
        Whether `total` is an estimate.

    Examples
    --------
    >>> with progress("Adding numbers", total=3) as work:
    ...     for _ in range(3):
    ...         work.advance()
    >>> work.done
    3
    """
    work = Progress(description, total, is_estimate)
    if is_quiet():
        yield work
        return
    ended = threading.Event()
    # a thread of its own, because the work may be a single long call
    display = threading.Thread(target=_display, args=(work, ended, after), daemon=True)
    display.start()
    try:
        yield work
    finally:
        if is_estimate:
            work.total = None
        ended.set()
        display.join()


class _Display(Protocol):
    interval: float  # seconds between updates

    def show(self, work: Progress) -> None: ...
    def close(self, work: Progress) -> None: ...


def _display(work: Progress, ended: threading.Event, after: float) -> None:
    """Display work until it has ended."""
    if after and ended.wait(after):
        return
    display: _Display = _Notebook(work) if in_notebook() else _Terminal(work) if in_terminal() else _Lines(work)
    while not ended.wait(display.interval):
        display.show(work)
    display.close(work)


class _Lines:
    """A log line every few seconds, of the work that began last: other work waits for it."""

    active: ClassVar[list[Progress]] = []

    def __init__(self, work: Progress) -> None:
        self.interval = SECONDS_BETWEEN_LINES
        self.active.append(work)
        log("%s", work.description)

    def show(self, work: Progress) -> None:
        if self.active[-1] is work:
            log("%s", work.text)

    def close(self, work: Progress) -> None:
        self.active.remove(work)
        log("%s", work.text)


class _Notebook:
    """One output of a cell, which a saved notebook keeps as it was last."""

    interval = 0.25

    def __init__(self, work: Progress) -> None:
        from IPython.display import display

        self.output: Any = display(self._content(work), raw=True, display_id=True)

    def show(self, work: Progress) -> None:
        self.output.update(self._content(work), raw=True)

    close = show

    @staticmethod
    def _content(work: Progress) -> dict[str, str]:
        return {"text/plain": work.text, "text/html": work.html}


class _Terminal:
    """A line of a display that all bars of the process share: two displays would overwrite each other."""

    interval = 0.1
    shared: Any = None
    lines = 0
    lock = threading.Lock()

    def __init__(self, work: Progress) -> None:
        from rich import progress as bars
        from rich.console import Console

        with self.lock:
            if _Terminal.lines == 0:
                columns = ("{task.description}", bars.BarColumn(), "{task.fields[details]}")
                # sys.stdout is left alone: the main thread may replace it at the same time
                redirect: Any = {"redirect_stdout": False, "redirect_stderr": False}
                _Terminal.shared = bars.Progress(*columns, console=Console(stderr=True), **redirect)
                _Terminal.shared.start()
            _Terminal.lines += 1
        self.task = self.shared.add_task(self._plain(work.description), total=work.total, details="")

    def show(self, work: Progress) -> None:
        self.shared.update(self.task, completed=work.done, total=work.total, details=self._plain(work.details))

    def close(self, work: Progress) -> None:
        self.show(work)
        if work.total is None:
            self.shared.update(self.task, completed=1, total=1)
        with self.lock:
            _Terminal.lines -= 1
            if _Terminal.lines == 0:
                self.shared.stop()

    @staticmethod
    def _plain(text: str) -> str:
        """Text whose brackets rich does not read as markup."""
        from rich.markup import escape

        return escape(text)
