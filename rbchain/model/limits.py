"""JointLimits: ranges of position, velocity, effort, acceleration and jerk, which `HardStops` may enforce."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..common.values import Value
from ..errors import ModelError
from .joint import AnyJoint
from .numbers_of_dofs import keep_numbers_of_dofs, of_dofs

#: SI units of the limits of a rotation or of a translation.
LIMIT_UNITS = {
    "lower": "rad or m",
    "upper": "rad or m",
    "velocity": "rad/s or m/s",
    "effort": "N m or N",
    "acceleration": "rad/s^2 or m/s^2",
    "deceleration": "rad/s^2 or m/s^2",
    "jerk": "rad/s^3 or m/s^3",
}


@dataclass(frozen=True, eq=False)
class JointLimits(Value):
    """Limits of a joint, as in robot description files.

    rbchain stores them for planners, viewers and files. `HardStops` enforces the range of the position in a simulation.

    Parameters
    ----------
    lower, upper : float or (dofs,) array, rad (prismatic: m)
        Range of the position; unlimited by default. One number applies to all degrees of freedom of the joint.
    velocity : float or (dofs,) array, rad/s (m/s)
        Largest speed; unlimited by default.
    effort : float or (dofs,) array, N m (N)
        Largest torque or force of the motor; unlimited by default.
    acceleration : float or (dofs,) array, rad/s^2 (m/s^2)
        Largest acceleration; unlimited by default.
    deceleration : float or (dofs,) array, rad/s^2 (m/s^2)
        Largest deceleration; unlimited by default.
    jerk : float or (dofs,) array, rad/s^3 (m/s^3)
        Largest jerk; unlimited by default.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> door = rb.Inertia.box((1, 0.05, 2), mass=20)
    >>> builder.add_body("door", joint=rb.Revolute(), inertia=door, limits=rb.JointLimits(lower=0.0, upper=2.0))
    >>> builder.build().position_limits
    array([[0., 2.]])
    """

    internal_names: ClassVar[tuple[str, ...]] = ("of_dofs",)
    foreign_arguments: ClassVar[dict[str, str]] = {
        "min": "lower",
        "max": "upper",
        "range": "lower and upper",
        "max_velocity": "velocity",
        "torque": "effort",
        "max_torque": "effort",
    }
    lower: npt.ArrayLike = -np.inf
    upper: npt.ArrayLike = np.inf
    _: KW_ONLY
    velocity: npt.ArrayLike = np.inf
    effort: npt.ArrayLike = np.inf
    acceleration: npt.ArrayLike = np.inf
    deceleration: npt.ArrayLike = np.inf
    jerk: npt.ArrayLike = np.inf

    def __post_init__(self) -> None:
        keep_numbers_of_dofs(self)
        for field in LIMITS:
            value = np.asarray(getattr(self, field))
            if np.isnan(value).any():
                raise ModelError(f"{field} is {value.tolist()}; expected numbers, or infinity for no limit")
            if field not in ("lower", "upper") and (value < 0.0).any():
                raise ModelError(f"{field} is {value.tolist()}; expected zero or more")
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        if (lower > upper).any():
            raise ModelError(f"lower is {lower.tolist()} and upper is {upper.tolist()}; expected lower <= upper")

    def of_dofs(self, name: str, joint: AnyJoint) -> np.ndarray:
        """Return the limits as an array (dofs, limits), in the order of LIMITS.

        Raises a ModelError that names the body if the joint has another number of degrees of freedom.
        """
        return np.stack([of_dofs(name, joint, field, getattr(self, field), finite=False) for field in LIMITS], -1)


LIMITS = ("lower", "upper", "velocity", "effort", "acceleration", "deceleration", "jerk")
