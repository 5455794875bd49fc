"""Running a study: chunks in, results stored, statistics kept in the order of the samples."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from ..errors import StudyError
from .executors import Executor
from .plan import Plan
from .statistics import Statistics, is_narrow_enough
from .store import InMemory, Store

if TYPE_CHECKING:
    import numpy as np

CHUNK = 4096  # chains: enough for all lanes and threads, and few enough for the caches
MEMORY = 1 << 30  # bytes that chunks on their way may take


def chunk_size(plan: Plan, memory: float) -> int:
    """How many samples to compute at once: as many as memory allows for the chunks that are on their way."""
    at_once = int(memory / (4 * plan.bytes_per_sample()))  # one computed, one stored, one waiting, and copies
    if at_once < 1:
        raise StudyError(
            f"memory is {memory:.3g} bytes; expected at least {4 * plan.bytes_per_sample():.3g}, for one chain"
        )
    return min(CHUNK, at_once, plan.description.samples)


def run(
    plan: Plan,
    store: Store | InMemory,
    executor: Executor,
    progress: Callable[[int, Statistics], object] | None = None,
) -> Statistics:
    """Compute what is missing in the store; returns the Statistics of all of it.

    This thread computes a chunk, or waits for it, while another one stores the chunk before. So Ctrl-C, which reaches
    this thread only, does not wait for a computation.
    """
    books = _Books(plan, store)
    if progress is not None:
        progress(sum(last - first for first, last in map(store.bounds, store.finished)), books.statistics)
    books.catch_up()
    missing = (chunk for chunk in range(store.chunks) if not store.is_finished(chunk))
    computed = executor(plan, ((chunk, *store.bounds(chunk)) for chunk in missing))
    kept: Future[int] | None = None

    def wait_for_books() -> None:
        if kept is not None:
            samples = kept.result()
            if progress is not None:
                progress(samples, books.statistics)

    with ThreadPoolExecutor(1) as bookkeeper, contextlib.closing(computed):
        while books.ended is None and (found := next(computed, None)) is not None:
            wait_for_books()
            kept = bookkeeper.submit(books.keep, *found) if books.ended is None else None
        wait_for_books()
    if books.ended is not None:
        store.end_at(books.ended)
    elif books.next == store.chunks:
        books.statistics.finish()
    else:
        raise StudyError(f"chunk {books.next} was not computed, though nothing failed; run the same command again")
    return books.statistics


class _Books:
    """What is stored, and the statistics of it.

    Statistics follow the samples in their order, for their sums, and the decision to stop, to be the same however the
    chunks come in; a chunk that comes too early waits in the store.
    """

    def __init__(self, plan: Plan, store: Store | InMemory) -> None:
        self.store, self.statistics = store, Statistics(plan)
        self.names = [variable.name for variable in plan.variables]
        self.enough = is_narrow_enough(plan.description.stop_when)
        self.next = 0
        self.ended: int | None = None  # after so many samples, if that is enough

    def keep(self, chunk: int, outputs: dict[str, np.ndarray]) -> int:
        """Store a chunk, and add it to the statistics once it is its turn; returns how many samples it has."""
        self.store.write(chunk, outputs)
        self.catch_up(chunk, outputs)
        return len(outputs["status"])

    def catch_up(self, own: int | None = None, outputs: dict[str, np.ndarray] | None = None) -> None:
        """Add all chunks that follow without a gap, until that is enough."""
        while self.ended is None and self.store.is_finished(self.next):
            at_hand = outputs if self.next == own and outputs is not None else self.store.read(self.next, self.names)
            self.ended = self.statistics.add(at_hand, self.enough)
            self.next += 1
