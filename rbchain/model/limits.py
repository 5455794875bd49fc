"""How far, how fast and how hard a joint may go: what is said of it, and does not act."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from .joint import AnyJoint
from .pose import numbers


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of a joint, as a robot's file states them: one number for all its degrees of freedom, or one for each.

    They are kept, for planners, viewers and files, but nothing stops at them: stops that act are `PassiveForces`.

    Parameters
    ----------
    lower, upper : rad (m along a slide)
        Of the position.
    velocity : rad/s (m/s)
    effort : N m (N)
        Of the motor.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> door = rb.Inertia.box((1, 0.05, 2), mass=20)
    >>> builder.add_body("door", joint=rb.Revolute(), inertia=door, limits=rb.JointLimits(lower=0.0, upper=2.0))
    >>> builder.build().position_limits
    array([[0., 2.]])
    """

    lower: npt.ArrayLike = -np.inf
    upper: npt.ArrayLike = np.inf
    velocity: npt.ArrayLike = np.inf
    effort: npt.ArrayLike = np.inf

    def of_dofs(self, name: str, joint: AnyJoint) -> np.ndarray:
        """An array (dofs, 4) in the order of the fields. Raises ModelError, for the body `name`, where it cannot be."""
        count = len(joint.dofs)
        found = np.empty((count, len(LIMITS)))
        for column, field in enumerate(LIMITS):
            value = numbers(getattr(self, field), f"body {name!r}: {field} limit", finite=False)
            if value.shape not in ((), (count,)) or np.isnan(value).any():
                raise ModelError(f"body {name!r}: {field} limit is {value.tolist()}; expected a number, or {count}")
            found[:, column] = value
        lower, upper, velocity, effort = found.T
        if (lower > upper).any() or (velocity < 0.0).any() or (effort < 0.0).any():
            raise ModelError(
                f"body {name!r}: limits are {found.tolist()}; expected lower below upper, and velocity and effort not "
                "negative"
            )
        return found


LIMITS = ("lower", "upper", "velocity", "effort")
