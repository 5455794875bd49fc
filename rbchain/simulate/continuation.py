"""How a trajectory has ended, so that `simulate(continue_from=motion)` can continue it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..acting.random_actions import actions_of_samples
from ..common.real_arrays import excerpt
from ..core.methods.settings import AdaptiveStepSettings, ContactStepSettings, FixedStepSettings
from ..core.sample import tally_layout as tallies
from ..core.sample.records import Outcome, Start
from ..errors import ArgumentError, Status
from .request import Request, checked_duration, checked_options_of_call
from .settings import ROUND_OFF_OF_STEPS, times_to_save
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..facade.model import Model


Settings = FixedStepSettings | ContactStepSettings | AdaptiveStepSettings


@dataclass(frozen=True)
class Continuation:
    """How a trajectory has ended.

    Attributes
    ----------
    request : Request
        Its arguments.
    states, memory : (samples, m) arrays
        The last states, as the integrator left them, and what else the results depend on (`sample_memory`).
    tally : (samples, tallies.RECORDED) array of int
        Statuses and counts.
    end_times : (samples,) array, s
    """

    request: Request
    states: np.ndarray
    memory: np.ndarray
    tally: np.ndarray
    end_times: np.ndarray

    @classmethod
    def of(cls, request: Request, outcome: Outcome) -> Continuation:
        """Return how a trajectory has ended, with copies, because the caller may change its arrays."""
        copies = (x.copy() for x in (outcome.end_states, outcome.memory, outcome.tally, outcome.end_times))
        return cls(request if request.continuation is None else replace(request, continuation=None), *copies)

    def start(self, start: Start, saved: Sequence[np.ndarray], outcome: Outcome) -> tuple[Start, int]:
        """Return the start of the next trajectory, and the number of its samples that have not ended.

        Fills the results of the others: NaN in the `saved` arrays (samples, times, ...), and their ends in `outcome`.
        """
        status, nq, nv = self.tally[:, tallies.STATUS], start.q.shape[-1], start.qd.shape[-1]
        q, qd = (np.ascontiguousarray(x) for x in (self.states[:, :nq], self.states[:, nq : nq + nv]))
        start = start._replace(q=q.reshape(start.q.shape), qd=qd.reshape(start.qd.shape), memory=self.memory)
        ended = status != Status.DONE
        if not ended.any():
            return start, len(status)
        for x in saved:
            x[ended] = np.nan
        outcome.tally[ended, tallies.STATUS], outcome.end_times[ended] = status[ended], self.end_times[ended]
        outcome.end_states[ended], outcome.memory[ended] = self.states[ended], self.memory[ended]
        active = np.flatnonzero(~ended)
        return start._replace(order=active), active.size


def _without_round_off(start: float, settings: Settings) -> float:
    """Return the end of a step that is closest to a time, if this time is a sum of many durations."""
    if isinstance(settings, AdaptiveStepSettings):
        return start
    end: float = settings.origin + round((start - settings.origin) / settings.step) * settings.step
    return end if abs(end - start) <= ROUND_OFF_OF_STEPS * settings.step else start


def continued(
    model: Model,
    motion: Trajectory,
    duration: float | None,
    saved: tuple[npt.ArrayLike | None, float | None],
    given: dict[str, Any],
    options: dict[str, Any],
) -> Request:
    """Return the arguments of a simulation that continues a trajectory.

    Parameters
    ----------
    model, motion, duration
        `motion` is `continue_from` of `simulate`.
    saved : tuple
        save_at and save_every.
    given : dict
        The arguments of `simulate` that the trajectory determines; all have to be None.
    options : dict
        dense_output, energy_error and on_failure.

    Raises
    ------
    ArgumentError
        If an argument that the trajectory determines is given, or the trajectory cannot be continued.
    """
    if not isinstance(motion, Trajectory):
        raise ArgumentError(f"continue_from is {excerpt(motion)}; expected a trajectory that simulate has returned")
    end = motion.continuation
    if end is None:
        raise ArgumentError(
            "continue_from is a part or a copy of a trajectory, or a trajectory from a file, without the state of its "
            "controllers; expected a trajectory as simulate has returned it"
        )
    before = end.request
    if model is not before.given[0] and model is not motion.model:
        raise ArgumentError("continue_from is a trajectory of another model; expected a trajectory of this one")
    wrong = [name for name, value in given.items() if value is not None]
    if wrong:
        raise ArgumentError(
            f"{wrong[0]} is {excerpt(given[wrong[0]])}, but continue_from continues a trajectory with its own "
            f"{wrong[0]}; omit {wrong[0]}. To change it, start a new simulation from motion.end_q and motion.end_qd"
        )
    of_call = checked_options_of_call(options)
    step = None if isinstance(before.settings, AdaptiveStepSettings) else before.settings.step
    start = _without_round_off(float(before.times[-1]), before.settings)
    times, asked = times_to_save(checked_duration(duration), *saved, step, start)
    numbers = np.arange(before.samples).reshape(before.batch)
    drives, forces = actions_of_samples(*before.given[1:], times[-1], numbers)
    return replace(
        before,
        end=float(times[-1]),
        times=times,
        asked=asked,
        drives=drives,
        forces=forces,
        continuation=end,
        **of_call,
    )
