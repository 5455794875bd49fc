"""Dry friction and hard stops of a joint. `flatten_friction` and `flatten_stops` turn them into arrays."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt, real_array
from ..core.contacts import element_layout as element
from ..core.control import drive_layout as drive
from ..errors import ArgumentError
from .coordinates import dof_index, refuse_quaternion
from .numeric_fields import LARGEST_FLOAT32, Force, NumericField
from .packing import SampleNumbers

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True, eq=False)
class DryFriction(Force):
    """Coulomb friction of a joint that can stick: up to the static friction, the velocity is exactly zero.

    While the joint slides, the friction force is `kinetic` and opposes the motion. While it sticks, the friction force
    balances the other forces. The joint starts to slide if the balancing force would exceed `static`. With
    `gear_friction`, both limits grow with the force of the drives, as in a gearbox.

    Parameters
    ----------
    joint : str
        Name of the joint.
    kinetic : float or (...) array, N m or N
        Friction of the sliding joint, at least 0. An array has one value for each sample, here and in the other
        parameters.
    static : float or (...) array, N m or N
        Largest friction of the sticking joint, at least `kinetic`, which is the default.
    kinetic_backward, static_backward : float or (...) array, N m or N
        Friction that resists motion in the negative direction. The defaults are `kinetic` and `static`.
    gear_friction : float or (...) array
        Increase of all limits per force of the drives, from 0 to 1. With the force f of all drives of the joint and of
        its `tau`, after the limits of an `Actuator`, the limits increase by `gear_friction` times abs(f).
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    max_records : int
        rbchain records the first `max_records` intervals in which the joint sticks, and counts the rest.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Notes
    -----
    A joint cannot also have the regularized friction of `PassiveForces`. `Model.simulate` describes which methods
    support dry friction.

    Drives that lift a weight through a gearbox with a `gear_friction` of c have an efficiency of 1 - c. To move the
    joint against its drives, a force of 1 + c times their force is necessary. At rest, drives with the force f
    withstand all forces between (1 - c) f and (1 + c) f, if there is no other friction. With c = 1, no force of the
    drives moves the joint. Friction that grows with the torque is part of the servo models of Duclusaud et al. (2024),
    "Extended Friction Models for the Physics Simulation of Servo Actuators".

    Examples
    --------
    A block of 1 kg slides with 2 m/s against a friction of 4 N. It stops after 0.5 s and 0.5 m:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("block", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    >>> friction = rb.DryFriction("block", kinetic=4.0)
    >>> motion = builder.build().simulate([[0.0]], [[2.0]], 1.0, method="moreau", step=0.01, forces=[friction])
    >>> motion.q[0, -1].round(6).tolist(), motion.qd[0, -1].tolist()
    ([0.5], [0.0])
    """

    internal_names: ClassVar[tuple[str, ...]] = ("with_defaults", "has_gear")
    numeric_fields: ClassVar = (
        NumericField("kinetic", "N m or N", 0.0, LARGEST_FLOAT32),
        NumericField("static", "N m or N", 0.0, LARGEST_FLOAT32),
        NumericField("kinetic_backward", "N m or N", 0.0, LARGEST_FLOAT32),
        NumericField("static_backward", "N m or N", 0.0, LARGEST_FLOAT32),
        NumericField("gear_friction", "1", 0.0, 1.0),
    )
    joint: str
    kinetic: npt.ArrayLike
    _: KW_ONLY
    static: npt.ArrayLike | None = None
    kinetic_backward: npt.ArrayLike | None = None
    static_backward: npt.ArrayLike | None = None
    gear_friction: npt.ArrayLike = 0.0
    dof: int | None = None
    max_records: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.static_backward is None and self.kinetic_backward is not None and self.static is not None:
            raise ArgumentError(f"{self.label()}: kinetic_backward and static are given; expected static_backward, too")

    @property
    def has_gear(self) -> bool:
        """Whether the friction of any sample grows with the force of the drives."""
        return bool(np.any(np.asarray(self.gear_friction) > 0.0))

    def with_defaults(self) -> DryFriction:
        """Return the friction with values for all parameters that are not given."""
        static = self.kinetic if self.static is None else self.static
        backward = self.kinetic if self.kinetic_backward is None else self.kinetic_backward
        static_backward = self.static_backward
        if static_backward is None:
            static_backward = static if self.kinetic_backward is None else self.kinetic_backward
        return replace(self, static=static, kinetic_backward=backward, static_backward=static_backward)


@dataclass(frozen=True, eq=False)
class HardStops(Force):
    """Rigid stops of a joint at its `Model.position_limits`.

    Parameters
    ----------
    joint : str
        Name of the joint. It needs a finite limit.
    restitution : float or (...) array
        Ratio of the speeds after and before an impact, from 0 to 1. An array has one value for each sample.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    max_records : int
        rbchain records the first `max_records` impacts and counts the rest.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Notes
    -----
    A joint cannot also have the elastic stops of `PassiveForces`. `Model.simulate` describes which methods support hard
    stops.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> limits = rb.JointLimits(lower=-1.0, upper=1.0)
    >>> builder.add_body("door", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)), limits=limits)
    >>> stops = rb.HardStops("door", restitution=0.5)
    >>> motion = builder.build().simulate([[0.0]], [[1.0]], 2.0, method="moreau", step=0.01, forces=[stops])
    >>> motion.q[0, -1].round(6).tolist(), motion.qd[0, -1].round(6).tolist()
    ([0.5], [-0.5])
    """

    numeric_fields: ClassVar = (NumericField("restitution", "1", 0.0, 1.0),)
    joint: str
    _: KW_ONLY
    restitution: npt.ArrayLike = 0.0
    dof: int | None = None
    max_records: int = 16


def dof_of_force(model: Model, what: str, force: DryFriction | HardStops, drive_kinds: np.ndarray) -> int:
    i = dof_index(model, what, force.joint, force.dof)
    if drive_kinds[i] in drive.PRESCRIBED_KINDS:
        raise ArgumentError(f"{what}: a drive prescribes the motion of this joint; expected a joint that moves freely")
    return i


def flatten_friction(
    model: Model, what: str, force: DryFriction, i: int, numbers: SampleNumbers
) -> list[tuple[int, int, int, int]]:
    if np.any(model.friction[..., i] != 0.0) or np.any(model.static_friction[..., i] != 0.0):
        raise ArgumentError(
            f"{what}: the joint also has the regularized friction of PassiveForces. Use one of the two: "
            "to use DryFriction, set the friction of PassiveForces to 0"
        )
    full, first = force.with_defaults(), len(numbers.columns)
    limits = ("kinetic", "static", "kinetic_backward", "static_backward")
    for name in (*limits, "gear_friction", *limits) if force.has_gear else limits:
        numbers.add_field(what, full, name)
    for direction in ("", "_backward"):
        names = f"kinetic{direction}", f"static{direction}"
        kinetic, static = (real_array(name, getattr(full, name), ArgumentError) for name in names)
        if np.any(static < kinetic):
            raise ArgumentError(
                f"{what}: static{direction} is {excerpt(static.tolist())} and kinetic{direction} is "
                f"{excerpt(kinetic.tolist())}; expected static{direction} >= kinetic{direction}"
            )
    return [(element.FRICTION, i, first, 1)]


def flatten_stops(
    model: Model, what: str, force: HardStops, i: int, numbers: SampleNumbers
) -> list[tuple[int, int, int, int]]:
    refuse_quaternion(model, what, i, "use another joint")
    lower, upper = model.position_limits[i].tolist()
    if not (np.isfinite(lower) or np.isfinite(upper)):
        raise ArgumentError(
            f"{what}: the joint has no position limits; expected at least one finite limit. Give its body "
            "limits=rb.JointLimits(lower, upper)"
        )
    if np.any(model.limit_stiffness[..., i] != 0.0):
        raise ArgumentError(
            f"{what}: the joint also has the elastic stops of PassiveForces. Use one of the two: to use "
            "HardStops, remove the limits of PassiveForces"
        )
    if lower == upper:
        raise ArgumentError(
            f"{what}: both position limits are {lower:g}; expected lower < upper. To fix the joint, use "
            f'model.lock({{"{force.joint}": {lower:g}}})'
        )
    columns = []
    for position, sign in ((lower, 1), (upper, -1)):
        if np.isfinite(position):
            first = numbers.add_field(what, force, "restitution")
            numbers.add(f"{what}: position", position)
            columns.append((element.STOP, i, first, sign))
    return columns
