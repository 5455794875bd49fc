"""What can go wrong, in words."""


class RbchainError(Exception):
    """Any error that rbchain raises on purpose."""


class ModelError(RbchainError, ValueError):
    """A mechanism that cannot be: the message names the body and says what was found and what was expected."""


class StateError(RbchainError, ValueError):
    """An argument of a calculation with the wrong shape or type."""


class StudyError(RbchainError, ValueError):
    """A study that cannot be run: the message names the key and says what was found and what was expected."""


class FileFormatError(RbchainError, ValueError):
    """A file that cannot be read as what it claims to be."""


#: How a chain's motion ended, by the codes in `Trajectory.status`.
STATUS_SENTENCES = {
    0: "The motion was computed to its end.",
    1: "The step became too small to advance the time: the motion is singular or too stiff for the tolerances.",
    2: "The state or its rate was not finite: the mechanism is singular there, or the motion diverged.",
    3: "The limit of max_steps was reached before the end of the motion.",
    4: "An event ended the motion.",
    5: 'The step is too long for springs, damping or friction: take a shorter one, or method "implicit" or "rk45".',
}
