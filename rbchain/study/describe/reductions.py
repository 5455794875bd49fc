"""Reductions of the quantity of a measure over the trajectory of each sample, in SI units.

Extremes, integrals and crossings are found within the accepted steps of a trajectory if it has them (`in_steps`), and
otherwise from the values at its times (`responses`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...errors import StudyError
from ...simulate.trajectory import Trajectory
from . import crossings, in_steps, responses
from .in_steps import along
from .kinds_of_quantities import OF_BEARINGS
from .numbers import real_numbers
from .quantities import QUANTITIES, Case, first_occurrence, largest_output, quantity_of

if TYPE_CHECKING:
    from .measures import Measure

SMALLEST = float(np.finfo(float).tiny)
#: Values that exceed a level by less than this fraction of the largest value are at the level: projections and the
#: solver of "moreau" hold bodies at stops to 1e-10 of their units.
ROUND_OFF_OF_LEVELS = 2e-10

#: Reductions of a series (..., times) over time.
OVER = {
    "final": lambda x: x[..., -1],
    "max": lambda x: x.max(-1),
    "min": lambda x: x.min(-1),
    "mean": lambda x: x.mean(-1),
    "rms": lambda x: np.sqrt((x * x).mean(-1)),
    "peak": lambda x: np.abs(x).max(-1),
    "peak_to_peak": lambda x: x.max(-1) - x.min(-1),
}
#: The same of the extremes in the steps of a trajectory.
EXTREMES = {
    "max": in_steps.largest,
    "min": in_steps.smallest,
    "peak": lambda steps: in_steps.largest(steps.map(np.abs)),
    "peak_to_peak": lambda steps: in_steps.largest(steps) - in_steps.smallest(steps),
}
#: Quantities that are known at the saved times only.
AT_TIMES = ("function", "energy_error")
#: Quantities that the last state of a sample does not determine, because they need the drives and the forces.
OF_FORCES = ("torque", "power", *OF_BEARINGS)
#: Quantities whose final value is computed from the last states only.
OF_FRAMES = ("distance", "coordinate", "speed")
#: Reductions that need the final value of a step.
OF_STEPS = ("settling_time", "overshoot", "rise_time")


def reduced(case: Case) -> np.ndarray:
    """Return the measure of each sample of a trajectory, (...)."""
    measure, model, motion, drives = case
    if measure.over == "at_event":
        return _at_event(case)
    if measure.over == "final" and measure.quantity in OF_FRAMES and motion.t.size > 1:
        end = replace(motion, t=motion.t[-1:], q=motion.q[..., -1:, :], qd=motion.qd[..., -1:, :])
        final = reduced(Case(measure, model, end))
        if np.isfinite(final).all():  # else a sample has ended earlier
            return final
    if measure.is_in_steps and motion.dense_output is not None:
        steps = in_steps.in_steps(motion, [lambda part: quantity_of(Case(measure, model, part, drives))])[0]
        return reduced_in_steps(steps, case)
    series = real_numbers("the result of the function", QUANTITIES[measure.quantity].values(case))
    batch, times = motion.status.shape, motion.t.size
    if series.shape not in (batch, (*batch, times)):
        raise StudyError(
            f"the function returned an array of shape {series.shape}; expected {batch}, one number for each "
            f"sample, or {(*batch, times)}, one for each sample and time"
        )
    if series.shape == batch:
        return series
    if measure.over == "final" and measure.quantity not in AT_TIMES:
        series = _with_values_at_ends(series, case)
    return _of_series(_extended(series), case)


def _at_event(case: Case) -> np.ndarray:
    """Return the quantity of each sample in the state at the first occurrence of the event of the measure."""
    record = first_occurrence(case.measure, case.motion)
    state = _states(case.motion, record.t[..., :1], record.q[..., :1, :], record.qd[..., :1, :])
    x = quantity_of(case._replace(motion=state))[..., 0]
    return x - case.energy[..., 0] if case.measure.quantity == "energy_drift" else x


def _of_series(series: np.ndarray, case: Case) -> np.ndarray:
    """Return the measure of each sample from its quantity (..., times), which is linear between the times."""
    measure, model, motion, drives = case
    if measure.over in OVER:
        return OVER[measure.over](series)
    t = np.minimum(motion.t, motion.end_time[..., None])
    if measure.over in OF_STEPS:
        band = (measure.band,) if measure.over == "settling_time" else ()
        since_start = t - motion.start_time
        return getattr(responses, measure.over)(since_start, series, measure.in_si("step_to", model), *band)
    if measure.over == "time_above":
        return responses.time_above(t, series, measure.in_si("threshold", model))
    if measure.over == "time_in_saturation":
        return responses.time_in_saturation(t, series, largest_output(measure, model, drives)[..., None])
    magnitudes = {"integral": series, "integral_of_magnitude": np.abs(series), "integral_of_square": series**2}
    return responses.integral(t, magnitudes[measure.over])


def _with_values_at_ends(series: np.ndarray, case: Case) -> np.ndarray:
    """Return the series (..., times) with the value at the end of each sample that ended early as the last one."""
    measure, _, motion, _ = case
    is_missing = np.isnan(series[..., -1])
    if not is_missing.any() or (measure.quantity in OF_FORCES and motion.dense_output is None):
        return series
    ends = in_steps.ends_of(motion) if measure.quantity in OF_FORCES else _last_states(motion)
    x = quantity_of(case._replace(motion=ends))[..., 0]
    if measure.quantity == "energy_drift":
        x = x - case.energy[..., 0]
    last = np.where(is_missing, x, series[..., -1])
    return np.concatenate([series[..., :-1], last[..., None]], -1)


def _last_states(motion: Trajectory) -> Trajectory:
    """Return the last state of each sample as a trajectory of (..., 1) times, without actuator forces."""
    return _states(motion, motion.end_time[..., None], motion.end_q[..., None, :], motion.end_qd[..., None, :])


def _states(motion: Trajectory, t: np.ndarray, q: np.ndarray, qd: np.ndarray) -> Trajectory:
    """Return a trajectory of one time for each sample, (..., 1), with these states and without actuator forces."""
    counts = motion.status, motion.steps, motion.rejections, motion.evaluations
    return Trajectory(t, q, qd, *counts, model=motion.model, forces=motion.forces, end_time=motion.end_time)


def _extended(series: np.ndarray) -> np.ndarray:
    """Return the series (..., times) with the last finite number repeated to the end of each sample."""
    last = np.maximum(np.isfinite(series).cumsum(-1).argmax(-1), 0)
    times = np.minimum(np.arange(series.shape[-1]), last[..., None])
    return np.take_along_axis(series, times, -1)


def reduced_in_steps(steps: in_steps.Steps, case: Case) -> np.ndarray:
    """Return the measure of each sample (...) from its quantity in the steps of a trajectory."""
    return _of_steps(steps, case).reshape(case.motion.status.shape)


def _of_steps(steps: in_steps.Steps, case: Case) -> np.ndarray:
    measure, model, motion, drives = case
    if measure.quantity == "energy_drift":
        energy = steps.x[:, 0, 0]
        steps = steps.map(lambda x: x - along(energy, x))
    if measure.over in OF_STEPS:
        start = steps.x[:, 0, 0]
        return _response(measure, steps, start, measure.in_si("step_to", model))
    if measure.over == "time_above":
        threshold = measure.in_si("threshold", model)
        above = threshold + _round_off(steps, threshold)
        return crossings.time_above_zero(steps.map(lambda x: x - along(above, x)))
    if measure.over == "time_in_saturation":
        largest = np.broadcast_to(largest_output(measure, model, drives), motion.status.shape)
        least = responses.SATURATED * largest.reshape(-1)
        return crossings.time_above_zero(steps.map(lambda x: np.abs(x) - along(least, x) + SMALLEST))
    if measure.over in EXTREMES:
        return EXTREMES[measure.over](steps)
    if measure.over in ("mean", "rms"):
        squares = steps.map(np.square) if measure.over == "rms" else steps
        found = in_steps.mean(squares, in_steps.duration_of(motion))
        return np.sqrt(np.maximum(found, 0.0)) if measure.over == "rms" else found
    functions = {"integral_of_magnitude": np.abs, "integral_of_square": np.square}
    return in_steps.integral(steps.map(functions[measure.over]) if measure.over in functions else steps)


def _response(measure: Measure, steps: in_steps.Steps, start: np.ndarray, reference: float) -> np.ndarray:
    """Return a settling time, overshoot or rise time of a step from the values at the start."""
    if measure.over == "settling_time":
        band = measure.band * np.abs(start - reference) + _round_off(steps, reference)
        outside = steps.map(lambda x: np.abs(x - reference) - along(band, x))
        found = crossings.last_time(outside)
        return np.where(outside.end > 0.0, np.nan, np.where(np.isnan(found), 0.0, found - steps.times[:, 0, 0]))
    with np.errstate(divide="ignore", invalid="ignore"):
        if measure.over == "overshoot":
            beyond = steps.map(lambda x: (x - reference) / along(reference - start, x))
            return np.maximum(in_steps.largest(beyond), 0.0)
        progress = steps.map(lambda x: (x - along(start, x)) / along(reference - start, x))
        first, last = (crossings.first_time(progress.map(partial(np.add, -level))) for level in (0.1, 0.9))
        return last - first


def _round_off(steps: in_steps.Steps, level: float) -> np.ndarray:
    """Return by how much the values of each sample may exceed a level on which they are."""
    return ROUND_OFF_OF_LEVELS * np.maximum(np.abs(steps.x).max((1, 2), initial=0.0), abs(level))
