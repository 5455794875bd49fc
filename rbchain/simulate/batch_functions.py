"""Run a driver; if Python calls functions for the whole batch, integrate to their instants and call them there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..acting.user_code import BatchFunction
from ..drivers import threads
from ..drivers.paused_trajectories import memory_of_blocks, new_progress
from .method_drivers import MethodDriver


def run_driver(
    driver: MethodDriver,
    new_memory: Callable[[], Any],
    arguments: tuple[Any, ...],
    samples: int,
    width: int,
    effort: float,
    functions: Mapping[int, BatchFunction],
) -> None:
    """Call a driver until all samples have ended. Ctrl-C can stop it.

    Parameters
    ----------
    driver : MethodDriver
    new_memory : function
        Allocates the memory of a call.
    arguments : tuple
        The arguments of the driver between `memory` and `first`.
    samples, width : int
        Number of samples, and of lanes.
    effort : float
        Number of steps times degrees of freedom, or infinity.
    functions : mapping of int to BatchFunction
        The functions that Python calls for the whole batch, in the order of the columns of BatchCalls.
    """
    *_, tables, _, start, actions, _, _, outcome = arguments
    if not functions:
        threads.run_interruptibly(driver.run, new_memory, arguments, samples, width, outcome.interrupt, effort)
        return
    assert driver.run_to_calls is not None  # other methods refuse such functions
    calls, blocks = actions.shared.samplers.batch_calls, -(-samples // width)
    memory = memory_of_blocks(new_memory(), blocks)
    arguments = (*arguments, new_progress(tables, blocks, width, start.q.dtype))
    while True:
        calls.due[...] = 0
        threads.run_interruptibly(
            driver.run_to_calls, lambda: memory, arguments, samples, width, outcome.interrupt, effort
        )
        if not calls.due.any():
            return
        for column, function in enumerate(functions.values()):
            due = calls.due[:, column]
            if due.any():
                calls.outputs[column, :, : function.count] = function.compute_outputs(due, calls.measured[column])
