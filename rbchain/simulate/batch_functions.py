"""Run the driver; if Python calls functions for the whole batch, integrate to their instants and call them there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..acting.user_code import BatchFunction
from ..drivers import threads


def run_driver(
    driver: Callable[..., None],
    new_memory: Callable[[int], Any],
    arguments: tuple[Any, ...],
    samples: int,
    width: int,
    effort: float,
    functions: Mapping[int, BatchFunction],
    spare: list[Any] | None = None,
) -> None:
    """Call the driver until all samples have ended. Ctrl-C can stop it.

    Parameters
    ----------
    driver : function
        `integrate_batch`, or `integrate_batch` for the types of these arguments.
    new_memory : function
        Allocates the memory of a call for a number of blocks.
    arguments : tuple
        The arguments of the driver between `memory` and `first`.
    samples, width : int
        Number of samples, and of lanes.
    effort : float
        Number of steps times degrees of freedom, or infinity.
    functions : mapping of int to BatchFunction
        The functions that Python calls for the whole batch, in the order of the columns of BatchCalls.
    spare : list, optional
        Memory of one block that earlier calls have used, and to which this call adds its own.
    """
    actions, times, _, outcome = arguments[-4:]
    if not functions:
        of_one = partial(new_memory, 1)
        threads.run_interruptibly(driver, of_one, arguments, samples, width, outcome.interrupt, effort, spare)
        return
    calls, memory = actions.shared.samplers.batch_calls, new_memory(-(-samples // width))
    effort *= min(1.0, min(function.period for function in functions.values()) / (times[-1] - times[0]))
    unused: list[np.ndarray] = []
    while True:
        calls.due[...] = 0
        taken: list[np.ndarray] = []
        of_thread = partial(_memory_of_thread, memory, unused, taken)
        threads.run_interruptibly(driver, of_thread, arguments, samples, width, outcome.interrupt, effort)
        unused += taken
        if np.count_nonzero(calls.due) == 0:  # `any` takes longer
            return
        for column, function in enumerate(functions.values()):
            due = calls.due[:, column]
            if np.count_nonzero(due):
                calls.outputs[column, :, : function.count] = function.compute_outputs(due, calls.measured[column])


def _memory_of_thread(memory: Any, unused: list[np.ndarray], taken: list[np.ndarray]) -> Any:
    """Return the memory of all samples for one thread. If the blocks share memory, each thread has its own.

    It comes from `unused` or is new, and is added to `taken`.
    """
    if memory.block.shape[0] == memory.clock.shape[0]:
        return memory
    block = threads.take_memory(unused, partial(np.empty_like, memory.block))
    taken.append(block)
    return memory._replace(block=block)
