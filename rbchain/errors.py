"""Exceptions, and how a sample's simulation ends."""

from enum import IntEnum
from typing import Any

from .core.integration import status


class RbchainError(Exception):
    """Any error that rbchain raises on purpose."""


class ModelError(RbchainError, ValueError):
    """A mechanism that cannot exist, or that a function cannot handle: the message names the body or joint."""


class StateError(RbchainError, ValueError):
    """An argument of a calculation with the wrong shape, type or value."""


class StudyError(RbchainError, ValueError):
    """A study that cannot be run: the message names the key and says what was found and what was expected."""


class FileFormatError(RbchainError, ValueError):
    """A file that cannot be read as what it claims to be."""


class SimulationError(RbchainError, RuntimeError):
    """Samples that did not reach the end of their simulation, if `simulate` was called with `on_failure="raise"`.

    Attributes
    ----------
    trajectory : Trajectory
        Of all samples, with the statuses.
    """

    def __init__(self, message: str, trajectory: Any) -> None:
        super().__init__(message, trajectory)
        self.trajectory = trajectory

    def __str__(self) -> str:
        return str(self.args[0])


class Status(IntEnum):
    """How a sample's simulation ended.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Status(4).sentence
    'An event ended the motion.'
    """

    DONE = status.DONE
    STEP_UNDERFLOW = status.STEP_UNDERFLOW
    NOT_FINITE = status.NOT_FINITE
    TOO_MANY_STEPS = status.TOO_MANY_STEPS
    STOPPED = status.STOPPED
    TOO_STIFF = status.TOO_STIFF
    INVALID_PARAMETERS = status.INVALID_PARAMETERS
    USER_FUNCTION_FAILED = status.USER_FUNCTION_FAILED

    @property
    def sentence(self) -> str:
        """The status in words."""
        return _SENTENCES[self]

    @property
    def success(self) -> bool:
        """Whether the sample reached the end, or an event that was to end it."""
        return self in (Status.DONE, Status.STOPPED)


_SENTENCES = {
    Status.DONE: "The motion was computed to its end.",
    Status.STEP_UNDERFLOW: (
        "The step became too small to advance the time: the motion is singular or too stiff for the tolerances."
    ),
    Status.NOT_FINITE: (
        "The state or its rate was not finite: the mechanism is singular there, it has bodies without inertia, or the "
        "motion diverged."
    ),
    Status.TOO_MANY_STEPS: "The limit of max_steps was reached before the end of the motion.",
    Status.STOPPED: "An event ended the motion.",
    Status.TOO_STIFF: (
        'The step is too long for springs, damping or friction: take a shorter one, or method "implicit" or "rk45".'
    ),
    Status.INVALID_PARAMETERS: "The parameters that were drawn are invalid: there is no simulation.",
    Status.USER_FUNCTION_FAILED: "A user function raised an exception.",
}
