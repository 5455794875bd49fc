"""Running a study: chunks in, results stored, statistics kept in the order of the samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import StudyError
from .executors import Executor
from .statistics import Statistics, is_narrow_enough

if TYPE_CHECKING:
    import numpy as np

    from .plan import Plan
    from .store import InMemory, Store

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

    Statistics follow the samples in their order, for their sums, and the decision to stop, to be the same however the
    chunks come in; a chunk that comes too early waits in the store.
    """
    statistics, names = Statistics(plan), [v.name for v in plan.variables]
    enough = is_narrow_enough(plan.description.stop_when)
    chunks, upto, ended = store.chunks, 0, None
    missing = [chunk for chunk in range(chunks) if not store.is_finished(chunk)]
    finished = set(range(chunks)) - set(missing)
    computed = executor(plan, ((chunk, *store.bounds(chunk)) for chunk in missing))

    def catch_up(own: int | None = None, outputs: dict[str, np.ndarray] | None = None) -> bool:
        """Statistics of all chunks that follow without a gap; whether that is enough."""
        nonlocal upto, ended
        while upto in finished and ended is None:
            ended = statistics.add(outputs if outputs is not None and upto == own else store.read(upto, names), enough)
            upto += 1
        return ended is not None

    if progress is not None:
        progress(sum(store.bounds(chunk)[1] - store.bounds(chunk)[0] for chunk in finished), statistics)
    try:
        if not catch_up():
            for chunk, outputs in computed:
                store.write(chunk, outputs)
                finished.add(chunk)
                if progress is not None:
                    progress(len(outputs["status"]), statistics)
                if catch_up(chunk, outputs):
                    break
    finally:
        computed.close()
    if ended is None:
        statistics.finish()
    else:
        store.end_at(ended)
    return statistics
