"""The message of a trajectory: how many samples ended with which status, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..acting.coordinates import joints_of_dofs
from ..errors import Status
from .stiff_springs import longest_step

if TYPE_CHECKING:
    from .trajectory import Trajectory


def message(motion: Trajectory) -> str:
    """One line for each status that occurred: its number of samples, its meaning, and the first failed sample.

    Further lines state how many samples were stiff, and how many exceeded position limits. They also state in how many
    samples a digital control loop oscillates near its sampling rate, and in how many the impulses of contacts exceed
    their tolerance.
    """
    lines = []
    for status in Status:
        samples = np.flatnonzero(motion.status.reshape(-1) == status)
        if samples.size:
            first = int(samples[0])
            details = "" if status.success else _where_it_failed(motion, first, status)
            lines.append(f"{samples.size} of {motion.status.size}: {status.sentence}{details}")
    stiff = np.count_nonzero(motion.is_stiff)
    if stiff:
        lines.append(
            f"{stiff} of {motion.status.size}: The system is stiff: stability, not the tolerances, limits the "
            'step size. Use method="rosenbrock".'
        )
    return "\n".join(lines + warnings_about(motion))


def warnings_about(motion: Trajectory) -> list[str]:
    """One line for each reason to doubt a motion that did not fail, with its number of samples.

    Joints exceed their position limits, a digital control loop oscillates, or impulses of contacts are inexact.
    """
    lines = []
    if np.count_nonzero(motion.beyond_limits):  # faster than any()
        lines.append(_message_of_limits(motion))
    if np.count_nonzero(motion.oscillates):
        lines.append(_message_of_digital_loops(motion))
    missed = np.count_nonzero(motion.has_inexact_contacts)
    if missed:
        lines.append(
            f"{missed} of {motion.status.size}: The impulses of friction and contacts missed their tolerance, "
            f"{motion.contact_tolerance:g}. The maximum residual is {np.nanmax(motion.contact_residual):.1e} m/s or "
            "rad/s. Use a shorter step, or a larger atol if this residual is acceptable."
        )
    return lines


def _where_it_failed(motion: Trajectory, sample: int, status: Status) -> str:
    """Return a sentence with the time that a failed sample reached, or the exception of its user function."""
    index = sample_index(sample, motion.status.shape)
    who = "" if not index else f" Sample {index[0] if len(index) == 1 else index}"
    if status is Status.USER_FUNCTION_FAILED and index in motion.exceptions:
        return f"{who}: {motion.exceptions[index]}." if who else f" {motion.exceptions[index]}."
    reached = f"{who or ' It'} reached {float(motion.end_time[index]):.6g} s."
    end = motion.continuation
    longest = None
    if status is Status.TOO_STIFF and end is not None and not motion.steps[index]:
        longest = longest_step(end.request, sample)
    if longest is None:
        return reached
    return (
        f"{reached} With the springs, dampers and bushings between bodies at its start, steps are stable up to "
        f"{longest:.3g} s."
    )


def message_of_stepper(
    status: int,
    t: float,
    samples: Sequence[int],
    batch: tuple[int, ...],
    exceptions: Mapping[tuple[int, ...], str],
) -> str:
    """Return a message for samples that have failed in a call of a stepper, the first with this status at time t."""
    index = sample_index(samples[0], batch)
    who = f" Sample {index[0] if len(index) == 1 else index}" if batch else " It"
    sentence = Status(status).sentence
    detail = exceptions.get(index or (0,), sentence) if status == Status.USER_FUNCTION_FAILED else sentence
    return f"{len(samples)} of {math.prod(batch)} samples failed.{who} reached {t:.6g} s: {detail}"


def _message_of_limits(motion: Trajectory) -> str:
    """One line: how many samples have left the position limits of joints without stops, and the first of them."""
    count, first = _joint_of_first_sample(motion, motion.beyond_limits, motion.dof_beyond_limits)
    return (
        f"{count} of {motion.status.size}: The motion exceeds the position limits of a joint without stops: "
        f"{first}. Limits are not enforced unless you add stops. Use HardStops, or the elastic stops of "
        "PassiveForces."
    )


def _message_of_digital_loops(motion: Trajectory) -> str:
    """One line: in how many samples a digital control loop oscillates near its sampling rate, and the first of them."""
    count, first = _joint_of_first_sample(motion, motion.oscillates, motion.oscillating_dof)
    return (
        f"{count} of {motion.status.size}: A digital control loop oscillates near its sampling rate. The force of the "
        f"Sampled controller of joint {first} changes its direction every few instants, and the amplitude grows or is "
        "at the limit of the controller. Use a shorter period, a shorter delay, or smaller gains."
    )


def _joint_of_first_sample(motion: Trajectory, found: np.ndarray, dofs: np.ndarray) -> tuple[int, str]:
    """Return how many samples are `found`, and the joint of the dof of the first one, such as "'elbow' in sample 3"."""
    samples = np.flatnonzero(found.reshape(-1))
    index = sample_index(int(samples[0]), motion.status.shape)
    [joint] = joints_of_dofs(motion.model, dofs[index])
    where = f" in sample {index[0] if len(index) == 1 else index}" if index else ""
    return samples.size, f"{joint!r}{where}"


def sample_index(sample: int, batch: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index in the batch of the sample with this number."""
    return tuple(int(k) for k in np.unravel_index(sample, batch)) if batch else ()
