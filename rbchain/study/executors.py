"""Where chunks are computed: in this process, in several, or on a cluster. Each gives back (chunk, outputs).

None of them changes a bit: a chunk is what its samples are, whoever computes it, and however often it takes.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, TypeAlias

from ..drivers import threads
from ..errors import StudyError

if TYPE_CHECKING:
    import numpy as np

    from .plan import Plan

#: A chunk, with its first sample and the one behind its last; and a chunk with its outputs.
Span = tuple[int, int, int]
Computed: TypeAlias = "tuple[int, dict[str, np.ndarray]]"
Executor: TypeAlias = "Callable[[Plan, Iterable[Span]], Generator[Computed, None, None]]"

MOST_ATTEMPTS = 3  # at a chunk whose worker dies


def local(plan: Plan, spans: Iterable[Span]) -> Generator[Computed, None, None]:
    """In this process, on all its threads; the next chunk is computed while the last one is stored."""
    with ThreadPoolExecutor(1) as ahead:
        waiting: deque[tuple[int, Future[dict[str, np.ndarray]]]] = deque()
        for chunk, first, last in spans:
            waiting.append((chunk, ahead.submit(plan.compute, first, last)))
            if len(waiting) > 1:
                earlier, computed = waiting.popleft()
                yield earlier, computed.result()
        for chunk, computed in waiting:
            yield chunk, computed.result()


_plan: Any = None  # of this worker process


def _settle(plan: Plan) -> None:
    """Make a worker process one: the plan it works by, and one thread, for there are other workers."""
    global _plan  # noqa: PLW0603 - a process pool has no other way to give its workers something once
    _plan = plan
    threads.set_num_threads(1)


def _compute(first: int, last: int) -> dict[str, np.ndarray]:
    return _plan.compute(first, last)


def processes(plan: Plan, spans: Iterable[Span], workers: int | None = None) -> Generator[Computed, None, None]:
    """In several processes, one thread each. One that dies is replaced, and its chunk begun anew."""
    _check_it_travels(plan)
    workers = workers or threads.get_num_threads()
    context = multiprocessing.get_context("spawn")
    todo = deque(spans)
    attempts: dict[int, int] = {}
    while todo:
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_settle, initargs=(plan,))
        running: dict[Future[dict[str, np.ndarray]], Span] = {}
        try:
            while todo or running:
                while todo and len(running) < workers + 1:
                    chunk, first, last = todo.popleft()
                    running[pool.submit(_compute, first, last)] = (chunk, first, last)
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    outputs = future.result()
                    chunk, *_ = running.pop(future)
                    yield chunk, outputs
        except BrokenProcessPool:
            for span in sorted(running.values(), reverse=True):
                attempts[span[0]] = attempts.get(span[0], 0) + 1
                if attempts[span[0]] >= MOST_ATTEMPTS * workers:
                    raise StudyError(
                        f"the worker processes died {attempts[span[0]]} times at chunk {span[0]}"
                    ) from None
                todo.appendleft(span)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def dask(plan: Plan, spans: Iterable[Span], scheduler: Any = None) -> Generator[Computed, None, None]:
    """On the workers of a dask scheduler, whose address or `Client` is given."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ImportError(
            "executor 'dask' needs dask.distributed, which is missing: pip install 'rbchain[cluster]'"
        ) from None

    if scheduler is None:
        raise StudyError("executor 'dask' needs the address of a scheduler, such as tcp://10.0.0.1:8786")
    _check_it_travels(plan)
    own = not isinstance(scheduler, Client)
    try:
        client = Client(scheduler, timeout=20) if own else scheduler
    except (OSError, ValueError) as error:
        raise StudyError(f"scheduler {scheduler!r} cannot be reached: {error}") from None
    try:
        spans = iter(spans)
        running: dict[Any, tuple[int, Any]] = {}
        done = as_completed(with_results=True)

        def submit() -> None:
            for chunk, first, last in spans:
                future = client.submit(
                    _compute_once, plan.part(first, last), first, last, pure=False, retries=MOST_ATTEMPTS
                )
                running[future.key] = (chunk, future)
                done.add(future)
                return

        for _ in range(2 * max(1, sum(client.nthreads().values()))):
            submit()
        for future, outputs in done:
            chunk, _ = running.pop(future.key)
            yield chunk, outputs
            submit()
    finally:
        if own:
            client.close()


def _check_it_travels(plan: Plan) -> None:
    """A StudyError where what the study is cannot be sent to another process."""
    try:
        pickle.dumps(plan)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise StudyError(
            f"the study cannot go to another process: {error}; functions of your own must be a module's, or use "
            "executor 'local'"
        ) from None


def _compute_once(plan: Plan, first: int, last: int) -> dict[str, np.ndarray]:
    """On a dask worker, whose threads are the scheduler's business."""
    threads.set_num_threads(int(os.environ.get("RBCHAIN_NUM_THREADS", "1")))
    return plan.compute(first, last)
