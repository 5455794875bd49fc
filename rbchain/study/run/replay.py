"""Simulate samples of a study again, bit for bit, at the times of the study or at more times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...common.real_arrays import whole_number
from ...errors import ArgumentError, ModelError, StudyError
from ...facade.model import Model
from ...simulate.methods import DEFAULT_TIMES
from ...simulate.settings import times_to_save
from ...simulate.trajectory import Trajectory
from ..plan.plan import Plan

if TYPE_CHECKING:
    from ..study import Study

#: Times that differ by less than this, relative to the duration, are the same: they are computed in different ways.
SAME_TIME = 8 * np.finfo(float).eps

#: The entries that decide whether two trajectories are equal; states between saved times are then equal, too.
COMPARED = ("q", "qd", "status", "steps", "rejections", "end_time", "end_q", "end_qd")


def sample(
    study: Study, k: int, *, save_at: npt.ArrayLike | None = None, save_every: float | None = None
) -> tuple[dict[str, float], Model, Trajectory]:
    """Simulate sample k again. Its trajectory is identical to the trajectory in the study.

    Parameters
    ----------
    k : int
        Number of the sample, from 0.
    save_at, save_every : int or (times,) array, s, and float, s, optional
        Saved times, as for `Model.simulate`. By default, the times of the study, and if these are fewer than 101, the
        times that divide each of their intervals evenly. If more times would change the steps,
        and so the trajectory, only the times of the study are saved.

    Returns
    -------
    drawn : dict of float
        The random inputs by name.
    model : Model
    trajectory : Trajectory

    Raises
    ------
    StudyError
        If there is no sample k, its parameters are invalid, or the saved times would change its trajectory.

    Examples
    --------
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1), samples=10, simulate={"duration": 1.0},
    ...     vary={"*.q": rb.Uniform("-20 deg", "20 deg")},
    ... )
    >>> drawn, model, motion = study.sample(3)
    >>> motion.q.shape, bool(abs(drawn["link1.q"]) < 0.35)
    ((101, 1), True)
    """
    plan, samples = study.plan, study.description.samples
    k = whole_number("sample", k, StudyError, least=0, most=samples - 1)
    drawn = plan.draw(k, k + 1)
    try:
        model = plan.samples(drawn, np.array([k])).build(only=0)
        motion = _motion_again(plan, *plan.accompanied(drawn, np.array([k])), (save_at, save_every))
    except (ModelError, ArgumentError) as error:
        raise StudyError(f"sample {k} has invalid parameters: {error}") from None
    return dict(zip(plan.columns, drawn[0].tolist(), strict=True)), model, motion[0]


def motions(
    study: Study,
    count: int = 30,
    first: int = 0,
    *,
    save_at: npt.ArrayLike | None = None,
    save_every: float | None = None,
) -> Trajectory:
    """Simulate some samples again, for example to show them with `study.motions().view()`.

    Parameters
    ----------
    count : int
        Number of samples, at least 2.
    first : int
        Number of the first sample.
    save_at, save_every : int or (times,) array, s, and float, s, optional
        Saved times, as for `sample`.

    Returns
    -------
    Trajectory

    Raises
    ------
    StudyError
        If one of the samples has invalid parameters, or the saved times would change the trajectories.

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
        return _motion_again(study.plan, drawn, numbers, (save_at, save_every))
    except (ModelError, ArgumentError) as error:
        raise StudyError(
            f"one of the samples {first} to {first + count - 1} has invalid parameters: {error}. Choose other "
            "samples by first and count"
        ) from None


def _motion_again(
    plan: Plan, values: np.ndarray, numbers: np.ndarray, saved: tuple[npt.ArrayLike | None, float | None]
) -> Trajectory:
    """Simulate samples again, with the steps of the study, so that their states equal the results, bit for bit.

    Saved times may end steps, or divide them, and this changes the trajectory. So the samples are simulated at the
    times of the study, and at more times only if all states at the times of the study remain the same.

    Parameters
    ----------
    plan : Plan
    values, numbers : arrays (m, columns) and (m,)
        Draws and numbers of the samples.
    saved : tuple
        save_at and save_every. If both are None, at least 101 times that divide the intervals of the study evenly, or
        the times of the study if more times would change the trajectory.

    Raises
    ------
    StudyError
        If the saved times would change the trajectory.
    """
    own, is_default = plan.nominal.times, all(x is None for x in saved)
    asked = _finer(own) if is_default else _asked(plan, *saved)
    times = np.union1d(own, asked)
    _, motion = plan.simulate(plan.samples(values, numbers))
    if times.size > own.size:
        _, finer = plan.simulate(plan.samples(values, numbers), times)
        if _is_same_motion(motion, finer.at_times(np.searchsorted(times, own))):
            motion = finer
        elif is_default:
            return motion
        else:
            simulation = plan.nominal.simulation
            raise StudyError(
                f"save_at or save_every gives times at which the study does not evaluate the state. With method "
                f"{simulation.method!r} and these forces, they change the steps, and so the trajectory; expected some "
                f"of the {own.size} times of the study, such as {own[1]:g} s. Omit save_at and save_every, or set "
                "simulate.save_at of the study"
            )
    return motion.at_times(np.searchsorted(motion.t, asked))


def _finer(own: np.ndarray) -> np.ndarray:
    """Return the times of the study, each interval divided so often that there are at least the default number."""
    parts = -(-(DEFAULT_TIMES - 1) // (own.size - 1))
    times = np.interp(np.arange((own.size - 1) * parts + 1) / parts, np.arange(own.size), own)
    times[::parts] = own
    return times


def _asked(plan: Plan, save_at: npt.ArrayLike | None, save_every: float | None) -> np.ndarray:
    """Return the times to save, each rounded to a time of the study if it differs by round-off only."""
    duration, own = plan.nominal.simulation.duration, plan.nominal.times
    times, saved = times_to_save(duration, save_at, save_every)
    asked = times[saved]
    after = np.searchsorted(own, asked).clip(1, own.size - 1)
    nearest = np.where(asked - own[after - 1] < own[after] - asked, own[after - 1], own[after])
    return np.where(np.abs(nearest - asked) <= SAME_TIME * duration, nearest, asked)


def _is_same_motion(one: Trajectory, other: Trajectory) -> bool:
    """Return whether two trajectories have the same steps and the same states at the same times, to the last bit."""
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in COMPARED)
