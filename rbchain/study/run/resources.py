"""Where a study runs, and with how much memory."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..plan.plan import Plan
from .chunks import chosen_chunk_size
from .executors import Executor, ExecutorName, executor_of


class Resources(NamedTuple):
    """Arguments of `Study.run` that do not change its results."""

    executor: ExecutorName = "local"
    workers: int | None = None
    scheduler: Any = None
    chunk: int | None = None
    memory: float | None = None

    def new_executor(self) -> Executor:
        """Return the executor. Raises a StudyError if an argument is invalid, or if the executor does not use it."""
        return executor_of(self.executor, self.workers, self.scheduler)

    def chunk_size(self, plan: Plan) -> int:
        """Return the number of samples that are computed at once. Raises a StudyError if an argument is invalid."""
        return chosen_chunk_size(plan, self.chunk, self.memory)
