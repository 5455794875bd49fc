"""Simulate samples of a study again, with the same bits, at the times of the study or at more times."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...errors import StudyError
from ...simulate.settings import times_to_save
from ...simulate.trajectory import Trajectory
from ..plan.plan import Plan

#: Times that differ by less than this, relative to the duration, are the same: they are computed in different ways.
SAME_TIME = 8 * np.finfo(float).eps

#: The entries of a trajectory that are equal if the motion is: also those between saved times are then equal.
COMPARED = ("q", "qd", "status", "steps", "rejections", "end_time", "end_q", "end_qd")


def motion_again(
    plan: Plan, values: np.ndarray, numbers: np.ndarray, save_at: npt.ArrayLike | None, least_intervals: int
) -> Trajectory:
    """Simulate samples again, with the steps of the study, so that their states have the same bits as the results.

    Saved times may end steps, or divide them, and then the motion is another one. So the samples are simulated at the
    times of the study, and at more times only if all states at the times of the study remain the same.

    Parameters
    ----------
    plan : Plan
    values, numbers : arrays (m, columns) and (m,)
        Draws and numbers of the samples.
    save_at : int or (times,) array, s, optional
        Times to save. By default, at least `least_intervals` intervals that divide the times of the study evenly, or
        the times of the study if more times would change the motion.
    least_intervals : int

    Raises
    ------
    StudyError
        If times in `save_at` would change the motion.
    """
    own = plan.nominal.times
    asked = _finer(own, least_intervals) if save_at is None else _asked(plan, save_at)
    times = np.union1d(own, asked)
    _, motion = plan.simulate(plan.samples(values, numbers))
    if times.size > own.size:
        _, finer = plan.simulate(plan.samples(values, numbers), times)
        if _is_same_motion(motion, finer.at_times(np.searchsorted(times, own))):
            motion = finer
        elif save_at is None:
            return motion
        else:
            simulation = plan.nominal.simulation
            raise StudyError(
                f"save_at contains times at which the study does not evaluate the motion. With method "
                f"{simulation.method!r} and these forces, they change the steps, and so the motion; expected some of "
                f"the {own.size} times of the study, every {own[1]:g} s. Omit save_at, or set simulate.samples of the "
                "study"
            )
    return motion.at_times(np.searchsorted(motion.t, asked))


def _finer(own: np.ndarray, least_intervals: int) -> np.ndarray:
    """Return the times of the study, each interval divided so often that there are at least `least_intervals`."""
    intervals = own.size - 1
    parts = -(-least_intervals // intervals)
    times = np.linspace(own[0], own[-1], intervals * parts + 1)
    times[::parts] = own
    return times


def _asked(plan: Plan, save_at: npt.ArrayLike) -> np.ndarray:
    """Return the times in `save_at`, rounded to a time of the study if it differs by round-off only."""
    duration, own = plan.nominal.simulation.duration, plan.nominal.times
    times, asked = times_to_save(duration, save_at)
    nearest = own[np.rint(times[asked] / own[1]).astype(int).clip(0, own.size - 1)]
    return np.where(np.abs(nearest - times[asked]) <= SAME_TIME * duration, nearest, times[asked])


def _is_same_motion(one: Trajectory, other: Trajectory) -> bool:
    """Return whether two trajectories have the same steps and the same states at the same times, to the last bit."""
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in COMPARED)
