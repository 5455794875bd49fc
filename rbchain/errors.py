"""Exceptions, and the status of a simulated sample."""

import warnings
from enum import IntEnum
from typing import Any

from .core.sample import status


class RbchainError(Exception):
    """Base class of all exceptions that rbchain defines."""


class ModelError(RbchainError, ValueError):
    """An invalid mechanism, or one that a function does not support; the message contains the body or joint."""


class ArgumentError(RbchainError, ValueError):
    """An argument with the wrong shape, type or value."""


class UnknownNameError(ModelError, ArgumentError):
    """A name that a model or a result does not have, such as a body; the message lists the names that exist."""


class StudyError(RbchainError, ValueError):
    """An invalid study; the message contains the key, the value that was found, and the expected values."""


class FileFormatError(RbchainError, ValueError):
    """A file that does not follow its format, or that uses a feature that rbchain does not support."""


class SimulationError(RbchainError, RuntimeError):
    """The simulation of a single state, or with `on_failure="raise"` of at least one sample, failed.

    Attributes
    ----------
    trajectory : Trajectory
        Results of all samples, with their statuses. None if a `Stepper` raised the error.
    """

    def __init__(self, message: str, trajectory: Any = None) -> None:
        super().__init__(message, trajectory)
        self.trajectory = trajectory

    def __str__(self) -> str:
        return str(self.args[0])


class SimulationWarning(UserWarning):
    """Samples of a batch have failed, or they have succeeded with a warning, such as exceeded position limits."""


class AssemblyError(RbchainError, RuntimeError):
    """No positions or velocities that satisfy the constraints were found for at least one sample.

    Attributes
    ----------
    q : array
        Positions or velocities of all samples; NaN for the samples that failed.
    failed : array of bool
        Which samples failed.
    """

    def __init__(self, message: str, q: Any, failed: Any) -> None:
        super().__init__(message, q, failed)
        self.q, self.failed = q, failed

    def __str__(self) -> str:
        return str(self.args[0])


def raise_or_warn(error: SimulationError | AssemblyError, raises: bool, stacklevel: int) -> None:
    """Raise an error, or warn with its message. `stacklevel` counts from the caller."""
    if raises:
        raise error
    warnings.warn(str(error), SimulationWarning, stacklevel=stacklevel + 1)


def missing_package(need: str, extra: str) -> str:
    """Return the message for a package that is not installed, with the command that installs its extra."""
    return f"{need}, which is missing. In a checkout of rbchain, run: pip install --editable '.[{extra}]'"


class Status(IntEnum):
    """Outcome of the simulation of a sample.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Status(4).sentence
    'An event ended the simulation.'
    """

    DONE = status.DONE
    STEP_UNDERFLOW = status.STEP_UNDERFLOW
    NOT_FINITE = status.NOT_FINITE
    TOO_MANY_STEPS = status.TOO_MANY_STEPS
    STOPPED = status.STOPPED
    TOO_STIFF = status.TOO_STIFF
    INVALID_PARAMETERS = status.INVALID_PARAMETERS
    USER_FUNCTION_FAILED = status.USER_FUNCTION_FAILED
    NOT_ASSEMBLED = status.NOT_ASSEMBLED
    INITIAL_PENETRATION = status.INITIAL_PENETRATION
    NO_CONTACT_MODES = status.NO_CONTACT_MODES
    TIME_NOT_RESOLVED = status.TIME_NOT_RESOLVED
    STEP_TOO_LONG = status.STEP_TOO_LONG

    @property
    def sentence(self) -> str:
        """Description of the status."""
        return _SENTENCES[self]

    @property
    def success(self) -> bool:
        """True if the sample reached the end of the simulated time, or a terminal event."""
        return self in (Status.DONE, Status.STOPPED)


_SENTENCES = {
    Status.DONE: "The simulation reached its end time.",
    Status.STEP_UNDERFLOW: (
        "The step size became too small to advance the time. The solution is singular, or too stiff for the tolerances."
    ),
    Status.NOT_FINITE: (
        "The state or its derivative is not finite. The mechanism is in a singular configuration, it has bodies "
        "without inertia, or the solution diverged."
    ),
    Status.TOO_MANY_STEPS: (
        "The limit of max_steps was reached before the end time. Increase max_steps, or relax rtol and atol."
    ),
    Status.STOPPED: "An event ended the simulation.",
    Status.TOO_STIFF: (
        "The step is too long for springs, damping, friction or controller gains. Reduce the step, or use the method "
        "'rosenbrock'. For joint forces, 'implicit' is stable too."
    ),
    Status.INVALID_PARAMETERS: "The drawn parameters are invalid, so this sample was not simulated.",
    Status.USER_FUNCTION_FAILED: "A user function raised an exception.",
    Status.NOT_ASSEMBLED: (
        "The constraints are not satisfied. The initial state is not closed (use Model.assemble and "
        "Model.assemble_velocities), the drives contradict the constraints, or a step cannot pass a singular "
        "configuration."
    ),
    Status.INITIAL_PENETRATION: (
        "The initial position is beyond a hard stop, or a contact shape penetrates a plane or another body. Change q0. "
        "To see the contact and its gap, simulate only this sample, as a single state."
    ),
    Status.NO_CONTACT_MODES: (
        "No combination of open, sticking and sliding contacts is consistent with the forces, or the combination "
        "changes repeatedly at one time. Use the method 'moreau'."
    ),
    Status.TIME_NOT_RESOLVED: (
        "The duration is so long that float64 cannot resolve the steps near its end. Reduce the duration."
    ),
    Status.STEP_TOO_LONG: (
        "The midpoint of a step cannot be computed. Bodies turn by about 1 rad or more in the step, or a force depends "
        "too strongly on the velocity, such as the force of a stiff damper between bodies. Reduce the step."
    ),
}
