"""Where chunks are computed: in this process, in several, or on a cluster. Each gives back (chunk, outputs).

None of them changes a bit: a chunk is what its samples are, whoever computes it, and however often it takes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
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
    """In this process, on all its threads."""
    for chunk, first, last in spans:
        yield chunk, plan.compute(first, last)


_plan: Any = None  # of this worker process


def _settle(plan: Plan) -> None:
    """Make a worker process one: the plan it works by, and one thread, for there are other workers."""
    global _plan  # noqa: PLW0603 - a process pool has no other way to give its workers something once
    _plan = plan
    threads.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process once its parent has gone, even by SIGKILL."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _compute(first: int, last: int) -> dict[str, np.ndarray]:
    return _plan.compute(first, last)


class _Workers(SpawnContext):
    """Starts processes that Ctrl-C does not reach, and ends them at once when told to."""

    def __init__(self) -> None:
        self.started: list[BaseProcess] = []

    def Process(self, *arguments: Any, **settings: Any) -> BaseProcess:  # type: ignore[override]
        self.started.append(SpawnProcess(*arguments, **settings))
        return self.started[-1]

    @staticmethod
    @contextlib.contextmanager
    def sheltered() -> Iterator[None]:
        """Within this, processes are started with SIGINT blocked: it is for their parent to end them."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def end(self) -> None:
        """Kill all of them, whatever they are at."""
        for process in self.started:
            if process.pid is not None:
                process.kill()


def processes(plan: Plan, spans: Iterable[Span], workers: int | None = None) -> Generator[Computed, None, None]:
    """In several processes, one thread each. If one dies, all are replaced, and their chunks begun anew."""
    _check_it_travels(plan)
    workers = workers or threads.get_num_threads()
    todo, attempts = iter(spans), Counter[int]()
    running: dict[Future[dict[str, np.ndarray]], Span] = {}
    begun: list[Span] = []
    while True:
        context = _Workers()
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_settle, initargs=(plan,))
        try:
            while True:
                for span in islice(todo, workers + 1 - len(running)):
                    begun = [span]
                    with context.sheltered():
                        running[pool.submit(_compute, *span[1:])] = span
                begun = []
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    outputs = future.result()
                    yield running.pop(future)[0], outputs
        except BrokenProcessPool:
            lost = sorted({*running.values(), *begun})  # a pool may break while it takes a chunk
            attempts.update(chunk for chunk, *_ in lost)
            chunk, most = attempts.most_common(1)[0]
            if most >= MOST_ATTEMPTS * workers:
                raise StudyError(f"the worker processes died {most} times at chunk {chunk}") from None
            todo, running = chain(lost, todo), {}
        finally:
            context.end()
            pool.shutdown(cancel_futures=True)


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
    running: dict[Any, tuple[int, Any]] = {}
    try:
        spans = iter(spans)
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
        if running:
            client.cancel([future for _, future in running.values()])
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
