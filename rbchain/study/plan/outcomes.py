"""Outcomes of samples: whether a sample was computed, whether it failed, and what to do then."""

import numpy as np

from ...errors import Status

NOT_RUN = -1  # status of a sample that has not been computed yet
#: What to do about failures whose description does not say it.
REMEDIES = {
    Status.STEP_UNDERFLOW: "Use the method 'rosenbrock' or 'radau', or relax rtol and atol.",
    Status.NOT_FINITE: "Look at one of these samples with Study.sample, and narrow the distributions.",
    Status.INVALID_PARAMETERS: "Narrow the distributions, or use one without impossible values, such as a lognormal.",
    Status.USER_FUNCTION_FAILED: "Simulate one of these samples with Study.sample; its message contains the exception.",
}


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
