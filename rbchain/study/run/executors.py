"""Executors: compute chunks in this process, in several processes or on a cluster. Each yields (chunk, outputs).

The outputs of a chunk depend on its samples only. So all executors give the same results, bit for bit.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from functools import partial
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ...common.misspelled import one_of
from ...common.process_options import change, current
from ...common.real_arrays import whole_number
from ...drivers import threads
from ...errors import StudyError, missing_package
from ..plan.plan import Plan

if TYPE_CHECKING:
    import numpy as np

#: A chunk, its first sample and the sample after its last; and a chunk with its outputs.
Span = tuple[int, int, int]
Computed: TypeAlias = "tuple[int, dict[str, np.ndarray]]"
Executor: TypeAlias = "Callable[[Plan, Iterable[Span]], Generator[Computed, None, None]]"

ExecutorName = Literal["local", "processes", "dask"]
EXECUTORS: tuple[ExecutorName, ...] = get_args(ExecutorName)
MOST_ATTEMPTS = 3  # to compute a chunk whose worker dies


def executor_of(name: str, workers: int | None, scheduler: Any) -> Executor:
    """Return the executor of this name. Raises a StudyError if there is none, or if it does not use an argument."""
    one_of("executor", name, EXECUTORS, StudyError)
    if workers is not None:
        workers = whole_number("workers", workers, StudyError, least=1)
    for argument, given, user in (("workers", workers, "processes"), ("scheduler", scheduler, "dask")):
        if given is not None and name != user:
            raise StudyError(
                f"{argument} is {given!r}, but executor {name!r} does not use it; remove {argument}, or choose "
                f"executor={user!r}"
            )
    if name == "processes":
        return partial(processes, workers=workers)
    return partial(dask, scheduler=scheduler) if name == "dask" else local


def local(plan: Plan, spans: Iterable[Span]) -> Generator[Computed, None, None]:
    """Compute the chunks in this process, on all its threads."""
    for chunk, first, last in spans:
        yield chunk, plan.compute(first, last)


class _Worker:
    """A worker process with its own pipe, so that killing it does not block the other workers."""

    def __init__(self, pickled: bytes) -> None:
        self.pickled = pickled
        self.span: Span | None = None
        self.process: BaseProcess | None = None

    def start(self) -> None:
        """Start the process in another thread: Ctrl-C reaches the main thread only and cannot interrupt the start."""
        threads.call_in_new_thread(self._start)

    def _start(self) -> None:
        resource_tracker.ensure_running()  # before SIGINT is blocked, because it unblocks SIGINT
        # the process inherits the blocked signal: on Ctrl-C its parent ends it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        context = multiprocessing.get_context("spawn")
        self.pipe, worker_pipe = context.Pipe()
        process = context.Process(target=_serve, args=(worker_pipe, self.pickled, current().boundscheck))
        process.start()
        self.process = process
        worker_pipe.close()

    def begin(self, span: Span | None) -> None:
        """Send a chunk to the worker, if there is one."""
        self.span = span
        if span is not None:
            with contextlib.suppress(OSError):  # the process has died; `outputs` reports it
                self.pipe.send(span[1:])

    def outputs(self) -> dict[str, np.ndarray] | None:
        """Return the outputs of the chunk, or raise its error; None if the process has died."""
        try:
            result = self.pipe.recv()
        except (EOFError, OSError):
            return None
        if isinstance(result, Exception):
            raise result
        return result

    def cause_of_death(self) -> str:
        """Describe how the process ended, and what to do."""
        assert self.process is not None
        self.process.join()
        code = self.process.exitcode or 0
        if code < 0:
            return f"signal {-code} killed it. If memory ran out, reduce workers or chunk"
        return (
            f"it ended with the exit code {code}. A script that runs a study in processes needs "
            '`if __name__ == "__main__":`, because each process imports it'
        )

    def end(self) -> None:
        """Kill the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()


def _serve(pipe: Connection, pickled: bytes, boundscheck: bool) -> None:
    """Compute chunks in a worker process until the pipe's other end is closed."""
    change(threads=1, boundscheck=boundscheck)  # each core has a worker
    try:
        plan: Plan = pickle.loads(pickled)
    except Exception as error:  # of importing a user's module, which may raise any error
        pipe.send(
            StudyError(
                f"a worker process cannot import what the study needs: {type(error).__name__}: {error}. Define its "
                "functions at the top level of a module that a new process can import, such as a file in a folder of "
                "PYTHONPATH, or use executor='local'"
            )
        )
        return
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            first, last = pipe.recv()
            try:
                result: Any = plan.compute(first, last)
            except Exception as error:
                result = error if _can_be_pickled(error) else StudyError(f"{type(error).__name__}: {error}")
            pipe.send(result)


def _can_be_pickled(value: Any) -> bool:
    """Tell whether a value can be sent to another process."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # any error that a user's class raises
        return False
    return True


def processes(plan: Plan, spans: Iterable[Span], workers: int | None = None) -> Generator[Computed, None, None]:
    """Compute the chunks in several processes of one thread. A process that dies is replaced and its chunk repeated."""
    pickled = _pickled(plan)
    waiting, attempts = iter(spans), Counter[int]()
    pool: list[_Worker] = []
    try:
        for span in islice(waiting, workers or threads.get_num_threads()):
            pool.append(_Worker(pickled))
            pool[-1].start()
            pool[-1].begin(span)
        while busy := {worker: worker.span for worker in pool if worker.span is not None}:
            ready = wait([worker.pipe for worker in busy])
            for worker, span in busy.items():
                if worker.pipe not in ready:
                    continue
                outputs = worker.outputs()
                if outputs is not None:
                    worker.begin(next(waiting, None))
                    yield span[0], outputs
                    continue
                attempts[span[0]] += 1
                if attempts[span[0]] == MOST_ATTEMPTS:
                    raise StudyError(
                        f"chunk {span[0]} (samples {span[1]} to {span[2] - 1}): the worker process died "
                        f"{MOST_ATTEMPTS} times; {worker.cause_of_death()}. To see an error, use executor='local'"
                    )
                worker.end()
                worker.start()
                worker.begin(span)
    finally:
        for worker in pool:
            worker.end()


def dask(plan: Plan, spans: Iterable[Span], scheduler: Any = None) -> Generator[Computed, None, None]:
    """Compute the chunks on the workers of a dask scheduler, given by its address or a `Client`."""
    try:
        from distributed import Client, as_completed
        from distributed.utils import silence_logging_cmgr
    except ImportError:
        raise ImportError(missing_package("executor 'dask' needs dask.distributed", "cluster")) from None

    if scheduler is None:
        raise StudyError(
            "scheduler is missing; executor 'dask' needs the address of a scheduler, such as tcp://10.0.0.1:8786, or a "
            "distributed.Client"
        )
    _pickled(plan)
    is_address = not isinstance(scheduler, Client)
    try:
        client = Client(scheduler, timeout=20) if is_address else scheduler
    except (OSError, ValueError) as error:
        raise StudyError(
            f"scheduler is {scheduler!r}, which cannot be reached: {error}. Expected the address of a running dask "
            "scheduler"
        ) from None
    running: dict[Any, tuple[int, Any]] = {}
    try:
        spans = iter(spans)
        done = as_completed(with_results=True)

        def submit() -> None:
            for chunk, first, last in spans:
                future = client.submit(
                    _compute_on_dask,
                    plan.part(first, last),
                    first,
                    last,
                    current().boundscheck,
                    pure=False,
                    retries=MOST_ATTEMPTS,
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
        if is_address:
            # A message that is on its way at this moment, and a result that the client fetches, are logged with their
            # tracebacks, and say nothing to the user.
            with (
                silence_logging_cmgr(logging.WARNING),
                silence_logging_cmgr(logging.CRITICAL, root="tornado.application"),
            ):
                client.close()
        else:
            for _, future in running.values():
                future.release()  # not `cancel`, which waits without end if Ctrl-C has blocked the client's thread


def _pickled(plan: Plan) -> bytes:
    """Pickle the study, or raise a StudyError if it cannot be sent to another process."""
    try:
        return pickle.dumps(plan)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise StudyError(
            f"the study cannot be sent to another process: {error}. Define its functions at the top level of a module "
            "that can be imported, or use executor='local'"
        ) from None


def _compute_on_dask(plan: Plan, first: int, last: int, boundscheck: bool) -> dict[str, np.ndarray]:
    """Compute samples on a dask worker, with one thread by default: dask distributes the cores."""
    change(threads=int(os.environ.get("RBCHAIN_NUM_THREADS", "1")), boundscheck=boundscheck)
    return plan.compute(first, last)
