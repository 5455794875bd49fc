"""Run a study: pass each chunk of samples to an executor, store its results and update the statistics."""

from __future__ import annotations

import _thread
import contextlib
import sys
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from ...common.real_arrays import finite_number, whole_number
from ...errors import StudyError
from ..plan.plan import Plan
from ..store.store import InMemory, Store
from .executors import Executor
from .parts import Part
from .statistics import Statistics, is_narrow_enough

if TYPE_CHECKING:
    import numpy as np

CHUNK = 4096  # samples: enough for all lanes and threads, few enough for the caches
MEMORY = 1 << 30  # default limit for the chunks in memory, in bytes


def chunk_size(plan: Plan, memory: float) -> int:
    """Return the largest chunk size for which the chunks in memory need at most `memory` bytes."""
    at_once = int(memory / (4 * plan.bytes_per_sample()))  # one is computed, one stored, one waits; and copies
    if at_once < 1:
        raise StudyError(
            f"memory is {memory:.3g} bytes; expected at least {4 * plan.bytes_per_sample():.3g} bytes, which one "
            "sample needs"
        )
    return min(CHUNK, at_once, _most_samples(plan))


def chosen_chunk_size(plan: Plan, chunk: int | None, memory: float | None) -> int:
    """Return the chunk size of a run: `chunk`, or as many samples as the memory allows."""
    if chunk is None:
        return chunk_size(plan, finite_number("memory", MEMORY if memory is None else memory, StudyError, above=0.0))
    if memory is not None:
        raise StudyError(
            f"chunk is {chunk!r} and memory is {memory!r}, which both determine how many samples are computed at once; "
            "use one of the two"
        )
    return min(whole_number("chunk", chunk, StudyError, least=1), _most_samples(plan))


def _most_samples(plan: Plan) -> int:
    """Return the number of samples of a study, or a very large one if it can grow: its chunks would stay small."""
    return sys.maxsize if plan.description.design.can_grow else plan.description.samples


def run(
    plan: Plan,
    store: Store | InMemory,
    executor: Executor,
    progress: Callable[[int, Statistics], object] | None = None,
    part: Part | None = None,
) -> Statistics:
    """Compute the samples of the study, or of a part of it, that the store lacks; returns the Statistics.

    This thread computes a chunk or waits for it, while another thread stores the previous one. Ctrl-C reaches this
    thread only, so it does not wait for the computation of a chunk.
    """
    collector = _Collector(plan, store)
    chunks = range(store.chunks) if part is None else part.chunks(store.chunks)
    if progress is not None:
        progress(sum(store.missing(chunk)[0] - store.bounds(chunk)[0] for chunk in chunks), collector.statistics)
    collector.add_finished()
    missing = (chunk for chunk in chunks if not store.is_finished(chunk))
    computed = executor(plan, ((chunk, *store.missing(chunk)) for chunk in missing))
    with contextlib.closing(Writer(collector)) as writer, contextlib.closing(computed):

        def wait_for_writer() -> None:
            samples = writer.wait()
            if progress is not None and samples is not None:
                progress(samples, collector.statistics)

        while collector.ended is None and (chunk_and_outputs := next(computed, None)) is not None:
            wait_for_writer()
            if collector.ended is None:
                writer.begin(*chunk_and_outputs)
        wait_for_writer()
    if collector.ended is not None:
        store.end_at(collector.ended)
    elif collector.next == store.chunks:
        collector.statistics.finish()
    elif not all(map(store.is_finished, chunks)):
        raise StudyError(
            "the executor ended without an error before it computed all samples; run the same command again"
        )
    return collector.statistics


class Writer:
    """A thread that stores chunks.

    Ctrl-C can interrupt the thread that computes at any instruction. The locks of `threading` and `concurrent.futures`
    are written in Python. They stay locked if they are interrupted at a certain instruction, and the other thread then
    waits without end. A SimpleQueue is written in C and has no such instruction. So only queues connect the threads.
    """

    def __init__(self, collector: _Collector) -> None:
        self.collector = collector
        self.chunks: SimpleQueue[tuple[int, dict[str, np.ndarray]] | None] = SimpleQueue()
        self.written: SimpleQueue[int | Exception | None] = SimpleQueue()
        self.is_busy = False
        _thread.start_new_thread(self._store_chunks, ())  # Thread.start and Thread.join use such locks

    def _store_chunks(self) -> None:
        for chunk, outputs in iter(self.chunks.get, None):
            try:
                self.written.put(self.collector.store_chunk(chunk, outputs))
            except Exception as error:  # `wait` raises it in the thread that computes
                self.written.put(error)
        self.written.put(None)

    def begin(self, chunk: int, outputs: dict[str, np.ndarray]) -> None:
        """Begin to store a chunk."""
        self.chunks.put((chunk, outputs))
        self.is_busy = True

    def wait(self) -> int | None:
        """Wait for the chunk that is being stored. Returns its number of samples, or None if there is none."""
        if not self.is_busy:
            return None
        result = self.written.get()
        self.is_busy = False
        if isinstance(result, Exception):
            raise result
        return result

    def close(self) -> None:
        """Wait until the thread has stored its last chunk and ended."""
        self.chunks.put(None)
        while self.written.get() is not None:
            pass


class _Collector:
    """Stores chunks and adds them to the statistics.

    Samples are added to the statistics in their order, so that the sums and the decision to stop do not depend on the
    order of the chunks. A chunk that arrives early waits in the store.
    """

    def __init__(self, plan: Plan, store: Store | InMemory) -> None:
        self.store, self.statistics = store, Statistics(plan)
        self.names = [variable.name for variable in plan.variables]
        self.enough = is_narrow_enough(plan.description.stop_when)
        self.next = 0
        self.ended: int | None = None  # number of samples after which the study stopped early

    def store_chunk(self, chunk: int, outputs: dict[str, np.ndarray]) -> int:
        """Store a chunk, and add it to the statistics if it is the next one; returns its number of samples."""
        self.store.write(chunk, outputs)
        self.add_finished(chunk, outputs)
        return len(outputs["status"])

    def add_finished(self, own: int | None = None, outputs: dict[str, np.ndarray] | None = None) -> None:
        """Add all stored chunks that follow without a gap, unless the study stops early before."""
        while self.ended is None and self.next < self.store.chunks and self.store.is_finished(self.next):
            added = self._outputs_of_next(own, outputs)
            self.ended = self.statistics.add(added, self.enough)
            self.next += 1

    def _outputs_of_next(self, own: int | None, outputs: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:
        """Return the outputs of the next chunk: those that were just stored if they are whole, else the stored ones."""
        first, last = self.store.bounds(self.next)
        if self.next == own and outputs is not None and len(outputs["status"]) == last - first:
            return outputs
        return self.store.read(self.next, self.names)
