"""Run a driver; if Python calls functions for the whole batch, integrate to their instants and call them there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..acting.user_code import BatchFunction
from ..drivers import threads
from ..drivers.paused_trajectories import (
    memory_of_blocks,
    new_progress,
    paused_adaptive_steps,
    paused_fixed_steps,
    paused_rosenbrock_steps,
)
from ..drivers.trajectories import adaptive_steps, fixed_steps, rosenbrock_steps

#: The drivers that stop where functions have to compute outputs, by those that do not.
PAUSED_DRIVERS = {
    fixed_steps: paused_fixed_steps,
    adaptive_steps: paused_adaptive_steps,
    rosenbrock_steps: paused_rosenbrock_steps,
}


def run_driver(
    driver: Callable[..., None],
    new_memory: Callable[[], Any],
    arguments: tuple[Any, ...],
    samples: int,
    width: int,
    effort: float,
    functions: Mapping[int, BatchFunction],
) -> None:
    """Call a driver of `drivers.trajectories` until all samples have ended. Ctrl-C can stop it.

    Parameters
    ----------
    driver : function
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
        threads.run_interruptibly(driver, new_memory, arguments, samples, width, outcome.interrupt, effort)
        return
    calls, blocks = actions.shared.samplers.batch_calls, -(-samples // width)
    memory = memory_of_blocks(new_memory(), blocks)
    arguments = (*arguments, new_progress(tables, blocks, width, start.q.dtype))
    while True:
        calls.due[...] = 0
        threads.run_interruptibly(
            PAUSED_DRIVERS[driver], lambda: memory, arguments, samples, width, outcome.interrupt, effort
        )
        if not calls.due.any():
            return
        for column, function in enumerate(functions.values()):
            due = calls.due[:, column]
            if due.any():
                calls.outputs[column, :, : function.count] = function.compute_outputs(due, calls.measured[column])
