"""Run a study: hand each chunk of samples to an executor, store its results and update the statistics."""

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

CHUNK = 4096  # samples: enough for all lanes and threads, and few enough for the caches
MEMORY = 1 << 30  # bytes that chunks on their way may take


def chunk_size(plan: Plan, memory: float) -> int:
    """How many samples to compute at once: as many as memory allows for the chunks that are on their way."""
    at_once = int(memory / (4 * plan.bytes_per_sample()))  # one computed, one stored, one waiting, and copies
    if at_once < 1:
        raise StudyError(
            f"memory is {memory:.3g} bytes; expected at least {4 * plan.bytes_per_sample():.3g}, for one sample"
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
    collector = _Collector(plan, store)
    if progress is not None:
        progress(sum(last - first for first, last in map(store.bounds, store.finished)), collector.statistics)
    collector.add_finished()
    missing = (chunk for chunk in range(store.chunks) if not store.is_finished(chunk))
    computed = executor(plan, ((chunk, *store.bounds(chunk)) for chunk in missing))
    written: Future[int] | None = None

    def wait_for_writer() -> None:
        if written is not None:
            samples = written.result()
            if progress is not None:
                progress(samples, collector.statistics)

    with ThreadPoolExecutor(1) as writer, contextlib.closing(computed):
        while collector.ended is None and (found := next(computed, None)) is not None:
            wait_for_writer()
            written = writer.submit(collector.store_chunk, *found) if collector.ended is None else None
        wait_for_writer()
    if collector.ended is not None:
        store.end_at(collector.ended)
    elif collector.next == store.chunks:
        collector.statistics.finish()
    else:
        raise StudyError(f"chunk {collector.next} was not computed, though nothing failed; run the same command again")
    return collector.statistics


class _Collector:
    """Stores chunks, and takes them into the statistics.

    Statistics follow the samples in their order, for their sums, and the decision to stop, to be the same however the
    chunks come in; a chunk that comes too early waits in the store.
    """

    def __init__(self, plan: Plan, store: Store | InMemory) -> None:
        self.store, self.statistics = store, Statistics(plan)
        self.names = [variable.name for variable in plan.variables]
        self.enough = is_narrow_enough(plan.description.stop_when)
        self.next = 0
        self.ended: int | None = None  # after so many samples, if that is enough

    def store_chunk(self, chunk: int, outputs: dict[str, np.ndarray]) -> int:
        """Store a chunk, and add it to the statistics once it is its turn; returns how many samples it has."""
        self.store.write(chunk, outputs)
        self.add_finished(chunk, outputs)
        return len(outputs["status"])

    def add_finished(self, own: int | None = None, outputs: dict[str, np.ndarray] | None = None) -> None:
        """Add all chunks that follow without a gap, until that is enough."""
        while self.ended is None and self.store.is_finished(self.next):
            at_hand = outputs if self.next == own and outputs is not None else self.store.read(self.next, self.names)
            self.ended = self.statistics.add(at_hand, self.enough)
            self.next += 1
