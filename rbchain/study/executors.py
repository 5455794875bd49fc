"""Executors: compute chunks in this process, in several or on a cluster. Each yields (chunk, outputs).

None of them changes a bit: a chunk is what its samples are, whoever computes it, and however often it takes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, TypeAlias

from ..drivers import threads
from ..errors import StudyError
from .plan import Plan

if TYPE_CHECKING:
    import numpy as np

#: A chunk, with its first sample and the one behind its last; and a chunk with its outputs.
Span = tuple[int, int, int]
Computed: TypeAlias = "tuple[int, dict[str, np.ndarray]]"
Executor: TypeAlias = "Callable[[Plan, Iterable[Span]], Generator[Computed, None, None]]"

MOST_ATTEMPTS = 3  # at a chunk whose worker dies


def local(plan: Plan, spans: Iterable[Span]) -> Generator[Computed, None, None]:
    """In this process, on all its threads."""
    for chunk, first, last in spans:
        yield chunk, plan.compute(first, last)


class _Worker:
    """A process that computes chunks, and a pipe to it alone: if it is killed, nothing else waits for it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.span: Span | None = None
        self.process: BaseProcess | None = None

    def start(self) -> None:
        """Make the process and the pipe, in a thread: Ctrl-C, which only the main thread sees, cannot cut that off."""
        with ThreadPoolExecutor(1) as starter:
            starter.submit(self._start).result()

    def _start(self) -> None:
        resource_tracker.ensure_running()  # here, because it unblocks SIGINT
        # a process inherits the signals that are blocked: Ctrl-C is for its parent, which ends it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        context = multiprocessing.get_context("spawn")
        self.pipe, its_pipe = context.Pipe()
        process = context.Process(target=_serve, args=(its_pipe, self.plan))
        process.start()
        self.process = process
        its_pipe.close()

    def begin(self, span: Span | None) -> None:
        """Give it a chunk to compute, if there is one."""
        self.span = span
        if span is not None:
            with contextlib.suppress(OSError):  # of a process that has died, as the pipe's end says too
                self.pipe.send(span[1:])

    def outputs(self) -> dict[str, np.ndarray] | None:
        """The outputs of its chunk, or the error in its place; None if the process has died."""
        try:
            found = self.pipe.recv()
        except (EOFError, OSError):
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def end(self) -> None:
        """Kill it, whatever it is at."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()


def _serve(pipe: Connection, plan: Plan) -> None:
    """Compute chunks in a worker process until the pipe's other end is closed."""
    threads.set_num_threads(1)  # for there are other workers
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            first, last = pipe.recv()
            try:
                found: Any = plan.compute(first, last)
            except Exception as error:
                found = error if _can_be_pickled(error) else StudyError(f"{type(error).__name__}: {error}")
            pipe.send(found)


def _can_be_pickled(value: Any) -> bool:
    """Whether another process gets a value back as it is."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # of classes that are not rbchain's own
        return False
    return True


def processes(plan: Plan, spans: Iterable[Span], workers: int | None = None) -> Generator[Computed, None, None]:
    """In several processes, one thread each. One that dies is replaced, and its chunk begun anew."""
    _check_picklable(plan)
    todo, attempts = iter(spans), Counter[int]()
    pool: list[_Worker] = []
    try:
        for span in islice(todo, workers or threads.get_num_threads()):
            pool.append(_Worker(plan))
            pool[-1].start()
            pool[-1].begin(span)
        while at_work := {worker: worker.span for worker in pool if worker.span is not None}:
            ready = wait([worker.pipe for worker in at_work])
            for worker, span in at_work.items():
                if worker.pipe not in ready:
                    continue
                outputs = worker.outputs()
                if outputs is not None:
                    worker.begin(next(todo, None))
                    yield span[0], outputs
                    continue
                attempts[span[0]] += 1
                if attempts[span[0]] == MOST_ATTEMPTS:
                    raise StudyError(f"the worker processes died {MOST_ATTEMPTS} times at chunk {span[0]}")
                worker.end()
                worker.start()
                worker.begin(span)
    finally:
        for worker in pool:
            worker.end()


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
    _check_picklable(plan)
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


def _check_picklable(plan: Plan) -> None:
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
