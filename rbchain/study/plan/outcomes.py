"""Outcomes of samples: whether a sample was computed, failed, or has a warning, and what to do then."""

from __future__ import annotations

from enum import IntFlag
from typing import TYPE_CHECKING

import numpy as np

from ...errors import Status

if TYPE_CHECKING:
    from ...simulate.trajectory import Trajectory

#: The variable of the results with the warnings about each sample.
WARNINGS = "warnings"

NOT_RUN = -1  # status of a sample that has not been computed yet
#: What to do about failures whose description does not say it.
REMEDIES = {
    Status.STEP_UNDERFLOW: "Use the method 'rosenbrock' or 'radau', or relax rtol and atol.",
    Status.NOT_FINITE: "Look at one of these samples with Study.sample, and narrow the distributions.",
    Status.INVALID_PARAMETERS: "Narrow the distributions, or use one without impossible values, such as a lognormal.",
    Status.USER_FUNCTION_FAILED: "Simulate one of these samples with Study.sample; its message contains the exception.",
}


class Warnings(IntFlag):
    """Warnings about a sample, which `Model.simulate` gives too. They are a sum, 0 without a warning."""

    BEYOND_LIMITS = 1
    OSCILLATES = 2
    INEXACT_CONTACTS = 4


#: What samples with a warning do, and what to do then.
OF_WARNINGS = {
    Warnings.BEYOND_LIMITS: (
        "exceed the position limits of joints without stops. Limits are not enforced unless you add stops. Use "
        "HardStops, or the elastic stops of PassiveForces."
    ),
    Warnings.OSCILLATES: (
        "have a digital control loop that oscillates near its sampling rate and is unstable. Use a shorter period, a "
        "shorter delay, or smaller gains."
    ),
    Warnings.INEXACT_CONTACTS: (
        "have impulses of friction and contacts that missed their tolerance. Use a shorter step, or a larger atol if "
        "`Study.sample` shows an acceptable contact_residual."
    ),
}


def warnings_of(motion: Trajectory) -> np.ndarray:
    """Return the warnings about each sample of a trajectory (samples,)."""
    found = {
        Warnings.BEYOND_LIMITS: motion.beyond_limits,
        Warnings.OSCILLATES: motion.oscillates,
        Warnings.INEXACT_CONTACTS: motion.has_inexact_contacts,
    }
    total = np.zeros(motion.status.shape, np.int8)
    for flag, is_so in found.items():
        total[is_so] |= np.int8(flag)
    return total


def sentences_of_warnings(found: np.ndarray, run: int) -> list[str]:
    """Return a sentence for each warning in `found` (samples,), with the number of samples among the `run` samples."""
    counts = {what: int(np.count_nonzero(found & int(flag))) for flag, what in OF_WARNINGS.items()}
    return [f"{count:,} of {run:,} samples {what}" for what, count in counts.items() if count]


def has_failed(status: np.ndarray) -> np.ndarray:
    """Return which samples were computed and failed, as an array of bool."""
    return ~np.isin(status, [NOT_RUN, *(s for s in Status if s.success)])


def sentence(status: int) -> str:
    """Return the description of a status."""
    if status == NOT_RUN:
        return "The sample has not been computed."
    return Status(status).sentence if status in set(Status) else f"The status {status} is unknown."


def status_in_words(status: int) -> str:
    """Return the name of a status as words, its description and what to do."""
    if status not in set(Status):
        return f"status {status}: {sentence(status)}"
    words = Status(status).name.replace("_", " ").lower()
    return " ".join([f'"{words}":', sentence(status), *filter(None, [REMEDIES.get(Status(status))])])
