"""Passive joint forces: springs, damping, friction and joint stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from .joint import AnyJoint
from .pose import numbers


@dataclass(frozen=True, eq=False)
class PassiveForces:
    """Passive forces of a joint: one number for all its degrees of freedom, or one for each.

    The joint force, added to what its motor gives, is, at position q and velocity v,

        - stiffness (q - rest_position) - cubic_stiffness (q - rest_position)^3 - damping v
        - [friction + (static_friction - friction) s + friction_asymmetry sgn(v)] v / sqrt(v^2 + friction_velocity^2)
        - limit_stiffness x max(0, 1 + limit_damping dx/dt)    where q is x above its limit; the reverse below

    with s = 1 / (1 + (v / stribeck_velocity)^2).

    Parameters
    ----------
    stiffness, rest_position, cubic_stiffness : N m/rad, rad, N m/rad^3 (along a slide N/m, m, N/m^3)
    damping : N m s/rad (N s/m)
    friction, static_friction : N m (N)
        Dry friction when sliding, and at its largest, just before; without a Stribeck effect if the latter is not
        given. Regularised: below `friction_velocity` it gives way, so that a joint creeps where it would stick.
    stribeck_velocity, friction_velocity : rad/s (m/s)
    lower_limit, upper_limit : rad (m)
        Where soft stops begin.
    limit_stiffness : N m/rad (N/m)
    limit_damping : s/rad (s/m)
    friction_asymmetry : N m (N)
        Difference of dry friction between the two directions: friction is `friction + friction_asymmetry` at positive
        and `friction - friction_asymmetry` at negative velocities, and static friction differs by as much. So with
        friction p in the positive and n in the negative direction, `friction` is (p + n) / 2, `friction_asymmetry`
        (p - n) / 2. At most `friction` in size; zero where friction is the same in both directions.

    References
    ----------
    Hess and Soom (1990) for the Stribeck curve; Hunt and Crossley (1975) for the stops, whose damping vanishes with
    the depth x, so that the force has no jump; Armstrong-Helouvry, Dupont and Canudas de Wit (1994) for friction that
    depends on the direction.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("door", joint=rb.Revolute(), inertia=rb.Inertia.box((1, 0.05, 2), mass=20),
    ...                  passive=rb.PassiveForces(stiffness=3.0, damping=2.0))
    >>> builder.build().passive_forces([0.5], [1.0])
    array([-3.5])

    A slide that resists with 3 N forwards and with 2 N backwards:

    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("slide", joint=rb.Prismatic(), inertia=rb.Inertia(mass=1.0),
    ...                  passive=rb.PassiveForces(friction=2.5, friction_asymmetry=0.5))
    >>> builder.build().passive_forces([[0.0], [0.0]], [[1.0], [-1.0]]).round(3).ravel().tolist()
    [-3.0, 2.0]
    """

    stiffness: npt.ArrayLike = 0.0
    rest_position: npt.ArrayLike = 0.0
    cubic_stiffness: npt.ArrayLike = 0.0
    damping: npt.ArrayLike = 0.0
    friction: npt.ArrayLike = 0.0
    static_friction: npt.ArrayLike = 0.0
    stribeck_velocity: npt.ArrayLike = 0.1
    friction_velocity: npt.ArrayLike = 0.01
    lower_limit: npt.ArrayLike = -np.inf
    upper_limit: npt.ArrayLike = np.inf
    limit_stiffness: npt.ArrayLike = 0.0
    limit_damping: npt.ArrayLike = 0.0
    friction_asymmetry: npt.ArrayLike = 0.0

    def of_dofs(self, name: str, joint: AnyJoint) -> dict[str, np.ndarray]:
        """Each number as an array (dofs,). Raises ModelError, for the body `name`, where no joint can be so."""
        count, found = len(joint.dofs), {}
        for field in fields(self):
            value = numbers(getattr(self, field.name), f"body {name!r}: {field.name}", finite=False)
            if value.shape not in ((), (count,)):
                raise ModelError(f"body {name!r}: {field.name} has shape {value.shape}; expected () or ({count},)")
            found[field.name] = np.broadcast_to(value, count).copy()
        given = {field for field in PASSIVE_FIELDS if np.any(getattr(self, field) != getattr(PassiveForces, field))}
        if given and not count:
            raise ModelError(f"body {name!r}: a fixed joint has no forces of its own; found {sorted(given)}")
        if joint.kind in ("free", "spherical") and not given.isdisjoint(OF_POSITION):
            raise ModelError(
                f"body {name!r}: a {joint.kind} joint has no angle for springs or stops; expected damping or friction"
            )
        check_passive((name,) * count, found)
        return found


PASSIVE_FIELDS = tuple(field.name for field in fields(PassiveForces))
#: Those that look at the joint's position, which a quaternion is not.
OF_POSITION = ("stiffness", "rest_position", "cubic_stiffness", "lower_limit", "upper_limit", "limit_stiffness")
NOT_NEGATIVE = ("damping", "friction", "static_friction", "limit_stiffness", "limit_damping")
ABOVE_ZERO = ("stribeck_velocity", "friction_velocity")


def check_passive(names: Sequence[str], found: Mapping[str, np.ndarray]) -> None:
    """Refuse passive forces (..., nv) of the degrees of freedom of bodies `names` that no joint can have."""
    for field, value in found.items():
        limit = field.endswith("_limit")
        refuse(names, np.isnan(value) if limit else ~np.isfinite(value), field, value, "expected a finite number")
        if field in NOT_NEGATIVE:
            refuse(names, value < 0.0, field, value, "expected zero or more")
        if field in ABOVE_ZERO:
            refuse(names, value <= 0.0, field, value, "expected more than zero")
    lower, upper = found["lower_limit"], found["upper_limit"]
    refuse(names, lower >= upper, "lower_limit", lower, "expected less than the upper_limit")
    stopped = (lower > -np.inf) | (upper < np.inf)
    loose = stopped & (found["limit_stiffness"] == 0.0)
    refuse(names, loose, "limit_stiffness", found["limit_stiffness"], "expected more, for there are limits")
    weaker = (found["static_friction"] > 0.0) & (found["static_friction"] < found["friction"])
    refuse(names, weaker, "static_friction", found["static_friction"], "expected no less than the friction")
    pushing = np.abs(found["friction_asymmetry"]) > found["friction"]
    expected = "expected at most the friction in size, or friction would drive the joint in one direction"
    refuse(names, pushing, "friction_asymmetry", found["friction_asymmetry"], expected)


def refuse(names: Sequence[str], bad: np.ndarray, field: str, values: np.ndarray, expected: str) -> None:
    """Raise for the first degree of freedom (and sample) where `bad` (..., nv) holds."""
    if np.any(bad):
        *sample, dof = (int(i) for i in np.argwhere(bad)[0])
        where = f" of sample {sample[0] if len(sample) == 1 else tuple(sample)}" if sample else ""
        value = np.broadcast_to(values, np.shape(bad))[(*sample, dof)]
        raise ModelError(f"body {names[dof]!r}{where}: {field} is {value}; {expected}")
