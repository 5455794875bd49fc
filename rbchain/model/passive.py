"""Passive joint forces: springs, damping, friction and joint stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..common.values import Value
from ..errors import ModelError
from .joint import AnyJoint
from .numbers_of_dofs import keep_numbers_of_dofs, of_dofs


@dataclass(frozen=True, eq=False)
class PassiveForces(Value):
    """Passive forces of a joint: springs, damping, friction and stops.

    At the position q and the velocity v, the passive force is the sum of

        - stiffness (q - rest_position) - cubic_stiffness (q - rest_position)^3 - damping v
        - [friction + (static_friction - friction) s + friction_asymmetry sgn(v)] v / sqrt(v^2 + friction_velocity^2)
        - limit_stiffness x max(0, 1 + limit_damping dx/dt)

    with s = 1 / (1 + (v / stribeck_velocity)^2) and the depth x = q - stop_upper > 0 beyond the upper limit; the force
    of the lower stop is the mirror image. The passive force is added to the actuator force.

    Parameters
    ----------
    stiffness, rest_position, cubic_stiffness : float or (dofs,) array, N m/rad, rad, N m/rad^3
        Linear and cubic spring. Prismatic joints: N/m, m, N/m^3. For all parameters, one value applies to all degrees
        of freedom of the joint.
    damping : float or (dofs,) array, N m s/rad (prismatic: N s/m)
        Viscous damping.
    friction, static_friction : float or (dofs,) array, N m (N)
        Kinetic friction, and static friction (Stribeck effect). By default there is no Stribeck effect.
        Dry friction is regularized: a loaded joint creeps instead of sticking.
    stribeck_velocity : float or (dofs,) array, rad/s (m/s)
        Velocity at which the Stribeck effect has decreased to one half.
    friction_velocity : float or (dofs,) array, rad/s (m/s)
        Velocity of the regularization: at lower velocities, dry friction is roughly proportional to the velocity.
    stop_lower, stop_upper : float or (dofs,) array, rad (m)
        Positions at which the elastic stops begin; none by default.
    limit_stiffness : float or (dofs,) array, N m/rad (N/m)
        Stiffness of the stops; required if there is a stop.
    limit_damping : float or (dofs,) array, s/rad (s/m)
        Damping of the stops, relative to their elastic force.
    friction_asymmetry : float or (dofs,) array, N m (N)
        Difference between the directions: the friction is `friction + friction_asymmetry` at positive and `friction -
        friction_asymmetry` at negative velocities, and likewise the static friction. For the values p and n in the
        positive and negative direction, `friction` is (p + n) / 2 and `friction_asymmetry` is (p - n) / 2. Its absolute
        value is at most `friction`.

    References
    ----------
    Hess and Soom (1990) for the Stribeck curve. Hunt and Crossley (1975) for the stops; their damping is proportional
    to the depth x, so that the force is continuous. Armstrong-Helouvry, Dupont and Canudas de Wit (1994) for friction
    that depends on the direction.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("door", joint=rb.Revolute(), inertia=rb.Inertia.box((1, 0.05, 2), mass=20),
    ...                  passive=rb.PassiveForces(stiffness=3.0, damping=2.0))
    >>> builder.build().passive_forces([0.5], [1.0])
    array([-3.5])

    A prismatic joint with a friction of 3 N in the positive and of 2 N in the negative direction:

    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("slide", joint=rb.Prismatic(), inertia=rb.Inertia(mass=1.0),
    ...                  passive=rb.PassiveForces(friction=2.5, friction_asymmetry=0.5))
    >>> builder.build().passive_forces([[0.0], [0.0]], [[1.0], [-1.0]]).round(3).ravel().tolist()
    [-3.0, 2.0]
    """

    internal_names: ClassVar[tuple[str, ...]] = ("of_dofs",)
    _: KW_ONLY
    renamed_arguments: ClassVar[dict[str, str]] = {"lower_limit": "stop_lower", "upper_limit": "stop_upper"}
    renamed_attributes: ClassVar[dict[str, str]] = renamed_arguments
    foreign_arguments: ClassVar[dict[str, str]] = {
        "frictionloss": "friction",
        "springref": "rest_position",
        "armature": "rotor_inertia of ModelBuilder.add_body",
        "effort": "limits=rb.JointLimits(effort=...) of ModelBuilder.add_body",
    }
    stiffness: npt.ArrayLike = 0.0
    rest_position: npt.ArrayLike = 0.0
    cubic_stiffness: npt.ArrayLike = 0.0
    damping: npt.ArrayLike = 0.0
    friction: npt.ArrayLike = 0.0
    static_friction: npt.ArrayLike = 0.0
    stribeck_velocity: npt.ArrayLike = 0.1
    friction_velocity: npt.ArrayLike = 0.01
    stop_lower: npt.ArrayLike = -np.inf
    stop_upper: npt.ArrayLike = np.inf
    limit_stiffness: npt.ArrayLike = 0.0
    limit_damping: npt.ArrayLike = 0.0
    friction_asymmetry: npt.ArrayLike = 0.0

    def __post_init__(self) -> None:
        count, found = keep_numbers_of_dofs(self)
        check_passive(("",) * count, found)

    def of_dofs(self, name: str, joint: AnyJoint) -> dict[str, np.ndarray]:
        """Return each parameter as an array (dofs,). Raises a ModelError that names the body if one does not fit."""
        count = len(joint.dofs)
        found = {field: of_dofs(name, joint, field, getattr(self, field), finite=False) for field in PASSIVE_FIELDS}
        given = {field for field in PASSIVE_FIELDS if np.any(getattr(self, field) != getattr(PassiveForces, field))}
        if given and not count:
            raise ModelError(
                f"body {name!r}: passive has {sorted(given)}, but the joint is fixed and does not move; expected no "
                "passive forces"
            )
        if joint.kind in ("free", "spherical") and not given.isdisjoint(OF_POSITION):
            raise ModelError(
                f"body {name!r}: passive has {sorted(given.intersection(OF_POSITION))}, but the position of a "
                f"{joint.kind} joint is a quaternion, which has no angle for springs and stops; expected damping and "
                "friction only"
            )
        return found


#: SI units of the parameters of a rotation or of a translation.
PASSIVE_UNITS = {
    "stiffness": "N m/rad or N/m",
    "rest_position": "rad or m",
    "cubic_stiffness": "N m/rad^3 or N/m^3",
    "damping": "N m s/rad or N s/m",
    "friction": "N m or N",
    "static_friction": "N m or N",
    "stribeck_velocity": "rad/s or m/s",
    "friction_velocity": "rad/s or m/s",
    "stop_lower": "rad or m",
    "stop_upper": "rad or m",
    "limit_stiffness": "N m/rad or N/m",
    "limit_damping": "s/rad or s/m",
    "friction_asymmetry": "N m or N",
}
PASSIVE_FIELDS = tuple(field.name for field in fields(PassiveForces))
#: Fields that depend on the position of the joint, and so do not apply to a quaternion.
OF_POSITION = ("stiffness", "rest_position", "cubic_stiffness", "stop_lower", "stop_upper", "limit_stiffness")
NOT_NEGATIVE = ("damping", "friction", "static_friction", "limit_stiffness", "limit_damping")
ABOVE_ZERO = ("stribeck_velocity", "friction_velocity")


def check_passive(names: Sequence[str], found: Mapping[str, np.ndarray]) -> None:
    """Raise a ModelError for invalid passive forces (..., nv).

    `names` are the bodies of the degrees of freedom, or "" for a joint of no body yet.
    """
    for field, value in found.items():
        limit = field in ("stop_lower", "stop_upper")
        expected = "expected a number, or infinity for no stop" if limit else "expected a finite number"
        refuse(names, np.isnan(value) if limit else ~np.isfinite(value), field, value, expected)
        if field in NOT_NEGATIVE:
            refuse(names, value < 0.0, field, value, "expected zero or more")
        if field in ABOVE_ZERO:
            refuse(names, value <= 0.0, field, value, "expected more than zero")
    lower, upper = found["stop_lower"], found["stop_upper"]
    refuse(names, lower >= upper, "stop_lower", lower, "expected less than stop_upper, which is {}", upper)
    limited = (lower > -np.inf) | (upper < np.inf)
    without_stiffness = limited & (found["limit_stiffness"] == 0.0)
    expected = "expected more than zero, because the joint has a stop_lower or stop_upper"
    refuse(names, without_stiffness, "limit_stiffness", found["limit_stiffness"], expected)
    lower_than_sliding = (found["static_friction"] > 0.0) & (found["static_friction"] < found["friction"])
    expected = "expected at least friction, which is {}, or zero for no Stribeck effect"
    refuse(names, lower_than_sliding, "static_friction", found["static_friction"], expected, found["friction"])
    driving = np.abs(found["friction_asymmetry"]) > found["friction"]
    expected = "expected an absolute value of at most friction, which is {}. Otherwise friction would drive the joint"
    refuse(names, driving, "friction_asymmetry", found["friction_asymmetry"], expected, found["friction"])


def refuse(
    names: Sequence[str], bad: np.ndarray, field: str, values: np.ndarray, expected: str, bound: npt.ArrayLike = 0.0
) -> None:
    """Raise a ModelError for the first degree of freedom (and sample) for which `bad` (..., nv) is true.

    The value of `bound` (..., nv) there is inserted into the text `expected`.
    """
    if np.any(bad):
        *sample, dof = (int(i) for i in np.argwhere(bad)[0])
        where = f" of sample {sample[0] if len(sample) == 1 else tuple(sample)}" if sample else ""
        value, limit = (np.broadcast_to(x, np.shape(bad))[(*sample, dof)] for x in (values, bound))
        body = f"body {names[dof]!r}{where}: " if names[dof] else ""
        raise ModelError(f"{body}{field} is {value}; {expected.format(limit)}")
