"""Compile the drivers of a study in parallel: a study calls about five, and each takes seconds to compile."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...compiling import machine_code
from ...drivers.threads import get_num_threads
from ...errors import RbchainError
from ...precompile.parallel import Workers, compile_signatures
from ...precompile.signatures import Signature, signatures_of

if TYPE_CHECKING:
    from ..plan.plan import Plan


def compute_briefly(plan: Plan) -> None:
    """Compute two samples in few steps, to call all drivers that the study calls."""
    simulation = plan.nominal.simulation
    few: dict[str, Any] = {"max_steps": 2} if simulation.is_adaptive else {"step": simulation.duration}
    short = replace(plan, nominal=replace(plan.nominal, simulation=simulation.model_copy(update=few)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short.compute(0, min(2, plan.description.samples))


def signatures_of_plan(plan: Plan, workers: Workers | None = None) -> list[Signature]:
    """Return the signatures of the drivers that a study calls.

    Raises RbchainError if the study cannot be sent to another process.
    """
    return signatures_of(partial(compute_briefly, plan), (workers or Workers()).start)


@contextlib.contextmanager
def compiled_in_parallel(plan: Plan) -> Iterator[None]:
    """While this is open, the first compilation starts processes that compile the study's other drivers."""
    workers, threads = Workers(), list[threading.Thread]()
    before = machine_code.while_compiling
    if get_num_threads() > 1:
        machine_code.while_compiling = partial(_start, plan, workers, threads, before)
    try:
        yield
    finally:
        machine_code.while_compiling = before
        workers.stop()
        for thread in threads:
            thread.join()


def _start(
    plan: Plan,
    workers: Workers,
    threads: list[threading.Thread],
    then: Callable[..., contextlib.AbstractContextManager[None]],
    driver: Callable[..., Any],
    types: tuple[Any, ...],
) -> contextlib.AbstractContextManager[None]:
    """Start a thread whose processes compile the drivers that this process does not compile itself.

    From now on, and for this driver too, `then` is called before this process compiles.
    """
    machine_code.while_compiling = then
    own = Signature(driver.__module__, driver.__name__, types)

    def compile_others() -> None:
        # if this fails, the study compiles one driver after the other, and reports the error
        with contextlib.suppress(RbchainError, OSError, AttributeError, TypeError):
            others = [signature for signature in signatures_of_plan(plan, workers) if signature != own]
            compile_signatures(others, processes=get_num_threads() - 1, workers=workers)

    threads.append(threading.Thread(target=compile_others, name="rbchain-compiles", daemon=True))
    threads[0].start()
    return then(driver, types)
