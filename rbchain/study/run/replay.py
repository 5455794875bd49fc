"""Simulate samples of a study again, with the same bits, at the times of the study or at more times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...common.real_arrays import whole_number
from ...errors import ArgumentError, ModelError, StudyError
from ...facade.model import Model
from ...simulate.settings import times_to_save
from ...simulate.trajectory import Trajectory
from ..plan.plan import Plan

if TYPE_CHECKING:
    from ..study import Study

#: Times that differ by less than this, relative to the duration, are the same: they are computed in different ways.
SAME_TIME = 8 * np.finfo(float).eps

#: The entries of a trajectory that are equal if the motion is: also those between saved times are then equal.
COMPARED = ("q", "qd", "status", "steps", "rejections", "end_time", "end_q", "end_qd")


def sample(study: Study, k: int, save_at: npt.ArrayLike | None = None) -> tuple[dict[str, float], Model, Trajectory]:
    """Simulate sample k again. Its motion is the motion in the study, bit for bit.

    Parameters
    ----------
    k : int
        Number of the sample, from 0.
    save_at : int or (m,) array, s, optional
        Saved times, as for `Model.simulate`. The default is at least 201 times, which include the times of the
        study. It is the times of the study if more times would change the steps, and so the motion.

    Returns
    -------
    drawn : dict of float
        The drawn numbers by name.
    model : Model
    trajectory : Trajectory

    Raises
    ------
    StudyError
        If there is no sample k, its parameters are invalid, or times in `save_at` would change its motion.

    Examples
    --------
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1), samples=10, simulate={"duration": 1.0},
    ...     vary={"*.q": rb.Uniform("-20 deg", "20 deg")},
    ... )
    >>> drawn, model, motion = study.sample(3)
    >>> motion.q.shape, bool(abs(drawn["link1.q"]) < 0.35)
    ((201, 1), True)
    """
    plan, samples = study.plan, study.description.samples
    k = whole_number("sample", k, StudyError, least=0, most=samples - 1)
    drawn = plan.draw(k, k + 1)
    try:
        model = plan.samples(drawn, np.array([k])).build(only=0)
        motion = _motion_again(plan, *plan.accompanied(drawn, np.array([k])), save_at, 200)
    except (ModelError, ArgumentError) as error:
        raise StudyError(f"sample {k} has invalid parameters: {error}") from None
    return dict(zip(plan.columns, drawn[0].tolist(), strict=True)), model, motion[0]


def motions(study: Study, count: int = 30, first: int = 0, save_at: npt.ArrayLike | None = None) -> Trajectory:
    """Simulate some samples again, for example to show them with `study.motions().view()`.

    Parameters
    ----------
    count : int
        Number of samples, at least 2.
    first : int
        Number of the first sample.
    save_at : int or (m,) array, s, optional
        Saved times. The default is at least 101 times, as for `sample`.

    Returns
    -------
    Trajectory

    Raises
    ------
    StudyError
        If one of the samples has invalid parameters, or times in `save_at` would change the motions.

    Examples
    --------
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1), samples=10, simulate={"duration": 1.0},
    ...     vary={"*.q": rb.Uniform("-20 deg", "20 deg")},
    ... )
    >>> study.motions(4).q.shape
    (4, 101, 1)
    """
    samples = study.description.samples
    first = whole_number("first", first, StudyError, least=0, most=max(0, samples - 2))
    if samples < 2:
        raise StudyError("the study has 1 sample, but motions() needs at least 2; use sample(0) instead")
    count = min(whole_number("count", count, StudyError, least=2), samples - first)
    try:
        drawn, numbers = study.plan.draw(first, first + count), np.arange(first, first + count)
        return _motion_again(study.plan, drawn, numbers, save_at, 100)
    except (ModelError, ArgumentError) as error:
        raise StudyError(
            f"one of the samples {first} to {first + count - 1} has invalid parameters: {error}. Choose other "
            "samples by first and count"
        ) from None


def _motion_again(
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
