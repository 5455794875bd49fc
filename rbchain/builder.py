"""ModelBuilder: a mechanism put together body by body."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .actions.drives import ONE_JOINT, OneJointDrive
from .chain import Model
from .errors import ModelError
from .misspelt import SuggestsAttributes
from .model import validation
from .model.description import Description, Frame, water_of
from .model.immersion import Immersion
from .model.inertia import Inertia
from .model.joint import JOINTS, AnyJoint, Fixed
from .model.limits import JointLimits
from .model.massless import remedies
from .model.passive import PASSIVE_FIELDS, PassiveForces
from .model.pose import Pose, numbers, vector3
from .model.visual import Visual

MASSLESS = Inertia(0.0)


class _Body(NamedTuple):
    """What was said of a body, checked; of its joint's degrees of freedom an array each."""

    parent: str | None
    joint: AnyJoint
    placement: Pose
    inertia: Inertia
    rotor_inertia: np.ndarray
    gear_ratio: np.ndarray
    passive: dict[str, np.ndarray]
    limits: np.ndarray
    immersion: Immersion | None
    visuals: tuple[Visual, ...]
    joint_name: str


class ModelBuilder(SuggestsAttributes):
    """Put a mechanism together, parents before children, and build an immutable `Model`.

    Parameters
    ----------
    name : str
    gravity : (3,) array, m/s^2
        In world axes; (0, 0, -9.81) if not given.
    nonphysical_inertia : "refuse" or "warn"
        What to do about an inertia tensor that no body can have.
    fluid_density : float, kg/m^3
        Of the water around bodies that have an `Immersion`; 0 in air.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(name="crane")
    >>> builder.add_body("boom", joint=rb.Revolute(axis=(0, 1, 0)), inertia=rb.Inertia.rod(4.0, mass=80, cg=(2, 0, 0)))
    >>> builder.add_body("rope", parent="boom", joint=rb.Prismatic(axis=(0, 0, -1)), placement=rb.Pose((4, 0, 0)),
    ...                  inertia=rb.Inertia(mass=200))
    >>> crane = builder.build()
    >>> crane.n_bodies, crane.inverse_dynamics([0, 1], [0, 0], [0, 0]).round(3).tolist()
    (2, [-9417.6, -1962.0])
    """

    def __init__(
        self,
        name: str = "model",
        gravity: npt.ArrayLike = (0.0, 0.0, -9.81),
        nonphysical_inertia: str = "refuse",
        fluid_density: float = 0.0,
    ) -> None:
        if nonphysical_inertia not in ("refuse", "warn"):
            raise ModelError(f'nonphysical_inertia is {nonphysical_inertia!r}; expected "refuse" or "warn"')
        self.name = str(name)
        self.gravity = vector3(gravity, "gravity")
        self.nonphysical_inertia = nonphysical_inertia
        self.fluid_density = float(numbers(fluid_density, "fluid_density", ()))
        if self.fluid_density < 0.0:
            raise ModelError(f"fluid_density is {self.fluid_density}; expected zero or more")
        self._bodies: dict[str, _Body] = {}
        self._nonphysical: list[str] = []
        self._negative: list[str] = []  # bodies with a negative principal moment
        self._drives: list[OneJointDrive] = []

    def add_body(
        self,
        name: str,
        *,
        parent: str | None = None,
        joint: AnyJoint | None = None,
        placement: Pose | None = None,
        inertia: Inertia | None = None,
        joint_name: str | None = None,
        rotor_inertia: npt.ArrayLike = 0.0,
        gear_ratio: npt.ArrayLike = 1.0,
        passive: PassiveForces | None = None,
        immersion: Immersion | None = None,
        limits: JointLimits | None = None,
        visuals: Sequence[Visual] = (),
    ) -> None:
        """Add a body and the joint it hangs on.

        Parameters
        ----------
        name : str
        parent : str, optional
            Name of the body it hangs on; the world if not given.
        joint : Revolute, Prismatic, Screw, Fixed, Free, Spherical, Planar, Universal or Composite
        placement : Pose, optional
            Of the joint in the parent's frame, and so of the body at q = 0. The parent's frame if not given.
        inertia : Inertia, optional
            In the body's frame. A body without one is massless.
        joint_name : str, optional
            The body's name if not given.
        rotor_inertia : float or (dofs,) array, kg m^2 (kg of a prismatic joint's motor)
            Of the motor's rotor about its own axis.
        gear_ratio : float or (dofs,) array
            Turns of the rotor per turn of the joint. The joint feels the rotor as `armature`, its inertia times the
            square of this; that the rotor's spin also turns with the body that carries it is neglected.
        passive : PassiveForces, optional
            Springs, friction and stops of the joint.
        immersion : Immersion, optional
            What water does to the body, if the model has a `fluid_density`.
        limits : JointLimits, optional
            What is said of the joint's range; nothing stops there.
        visuals : sequence of Visual
            What the body looks like.

        Raises
        ------
        ModelError
            If the name is taken, or the inertia is that of no body.
        """
        if not (isinstance(name, str) and name):
            raise ModelError(f"body {name!r}: the name is {name!r}; expected a string with something in it")
        if name in self._bodies:
            raise ModelError(f"body {name!r} is there already; expected a new name")
        if not (parent is None or isinstance(parent, str)):
            raise ModelError(f"body {name!r}: parent is {parent!r}; expected the name of a body, or None for the world")
        if not isinstance(joint, JOINTS):
            expected = ", ".join(kind.__name__ for kind in JOINTS)
            raise ModelError(f"body {name!r}: joint is {joint!r}; expected one of {expected}")
        placement = Pose() if placement is None else placement
        inertia = MASSLESS if inertia is None else inertia
        if not isinstance(placement, Pose) or placement.translation.shape != (3,):
            raise ModelError(f"body {name!r}: placement is {placement!r}; expected one Pose")
        self._expect(name, "inertia", inertia, Inertia)
        joint_name = name if joint_name is None else joint_name
        if not (isinstance(joint_name, str) and joint_name):
            raise ModelError(f"body {name!r}: joint_name is {joint_name!r}; expected a string that is not empty")
        if any(joint_name == body.joint_name for body in self._bodies.values()):
            raise ModelError(f"body {name!r}: joint {joint_name!r} is there already; expected a new name")
        validation.check_axes((joint_name,) * len(joint.dofs), np.reshape([dof.axis for dof in joint.dofs], (-1, 3)))
        self._check_inertia(name, inertia)
        rotor = self._of_dofs(name, joint, "rotor_inertia", rotor_inertia)
        if (rotor < 0.0).any():
            raise ModelError(f"body {name!r}: rotor_inertia is {rotor.tolist()}; expected zero or more")
        gears = self._of_dofs(name, joint, "gear_ratio", gear_ratio)
        if isinstance(joint, Fixed) and np.any(rotor_inertia):
            raise ModelError(f"body {name!r}: rotor_inertia is {rotor_inertia!r}; a fixed joint has no motor")
        passive = PassiveForces() if passive is None else passive
        self._expect(name, "passive", passive, PassiveForces)
        forces = passive.of_dofs(name, joint)
        if immersion is not None:
            self._expect(name, "immersion", immersion, Immersion)
        limits = JointLimits() if limits is None else limits
        self._expect(name, "limits", limits, JointLimits)
        ranges = limits.of_dofs(name, joint)
        if not isinstance(visuals, (list, tuple)):
            raise ModelError(f"body {name!r}: visuals is {visuals!r}; expected a list of Visual")
        for visual in visuals:
            self._expect(name, "one of visuals", visual, Visual)
        self._bodies[name] = _Body(
            parent, joint, placement, inertia, rotor, gears, forces, ranges, immersion, tuple(visuals), joint_name
        )

    def _check_inertia(self, name: str, inertia: Inertia) -> None:
        """Refuse mass properties that no body can have, or note that they are such."""
        validation.check_mass((name,), np.array([inertia.mass]))
        validation.check_finite((name,), "cg", inertia.cg[None], 1)
        try:
            validation.check_inertia((name,), inertia.inertia[None])
        except ModelError:
            if self.nonphysical_inertia == "refuse" or not np.isfinite(inertia.inertia).all():
                raise
            self._nonphysical.append(name)
        if self.nonphysical_inertia == "warn" and validation.has_negative_moment(inertia.inertia):
            self._negative.append(name)

    @staticmethod
    def _expect(name: str, what: str, value: object, kind: type) -> None:
        if not isinstance(value, kind):
            article = "an" if kind.__name__[0] in "AEIOU" else "a"
            raise ModelError(f"body {name!r}: {what} is {value!r}; expected {article} {kind.__name__}")

    @staticmethod
    def _of_dofs(name: str, joint: AnyJoint, what: str, value: npt.ArrayLike) -> np.ndarray:
        """One number for each degree of freedom of a joint, from that many or one for all."""
        found = numbers(value, f"body {name!r}: {what}")
        if found.shape not in ((), (len(joint.dofs),)):
            raise ModelError(f"body {name!r}: {what} has shape {found.shape}; expected () or ({len(joint.dofs)},)")
        return np.broadcast_to(found, len(joint.dofs))

    def add_drive(self, drive: OneJointDrive) -> None:
        """Add what a joint's motor does, for the model to keep as one of its `drives`.

        Parameters
        ----------
        drive : PrescribedForce, PrescribedAcceleration, PrescribedVelocity, PrescribedPosition, PID or ComputedTorque

        Raises
        ------
        ModelError
            If it is none of these, or its joint or degree of freedom is not there.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
        >>> builder.add_drive(rb.PID("arm", reference=0.5, kp=20.0, kd=4.0))
        >>> arm = builder.build()
        >>> motion = arm.simulate([[0.0]], [[0.0]], 3.0, method="rk4", step=0.01, drives=arm.drives)
        >>> float(motion.q[0, -1, 0].round(2))
        0.5
        """
        if not isinstance(drive, ONE_JOINT):
            expected = ", ".join(kind.__name__ for kind in ONE_JOINT)
            raise ModelError(f"drive is {drive!r}; expected one of {expected}")
        joints = [body.joint_name for body in self._bodies.values() if not isinstance(body.joint, Fixed)]
        if drive.joint not in joints:
            raise ModelError(f"drive of joint {drive.joint!r}, which is not there; the joints are {joints}")
        body = next(body for body in self._bodies.values() if body.joint_name == drive.joint)
        if not (isinstance(drive.dof, (int, np.integer)) and 0 <= drive.dof < len(body.joint.dofs)):
            expected = f"expected one of {len(body.joint.dofs)}, from 0 on"
            raise ModelError(f"drive of joint {drive.joint!r}: dof is {drive.dof!r}; {expected}")
        self._drives.append(drive)

    def build(self) -> Model:
        """The finished `Model`. Raises ModelError if the mechanism is empty or its parents do not make a tree.

        Warns of bodies whose motion no inertia resists (`Model.bodies_without_inertia`).
        """
        self._check_tree()
        carriers: dict[str, Frame] = {}
        inertias: list[Inertia] = []
        immersions: list[Immersion | None] = []
        moving: list[tuple[str, Frame]] = []
        for name, body in self._bodies.items():
            carrier = Frame(-1, Pose()) if body.parent is None else carriers[body.parent]
            place = carrier.pose @ body.placement
            placed = Frame(carrier.body, Pose(place.translation, place.rotation))
            if isinstance(body.joint, Fixed):
                carriers[name] = placed
                if placed.body >= 0:
                    inertias[placed.body] = inertias[placed.body] + body.inertia.moved(placed.pose)
                    immersions[placed.body] = self._immersed(name, immersions[placed.body], placed.pose)
            else:
                carriers[name] = Frame(len(moving), Pose())
                moving.append((name, placed))
                inertias.append(body.inertia)
                immersions.append(body.immersion)
        self._warn_of_nonphysical_inertia()
        if not moving:
            raise ModelError(
                f"model {self.name!r} has no body that moves; expected at least one joint that is not fixed"
            )
        names = [name for name, _ in moving]
        bodies = [self._bodies[name] for name in names]
        joints = [body.joint for body in bodies]
        dofs = [dof for joint in joints for dof in joint.dofs]
        inertial = {name: np.array([getattr(x, name) for x in inertias]) for name in ("mass", "cg", "inertia")}
        for field, values in inertial.items():  # the sums of bodies on fixed joints may overflow
            validation.check_finite(names, field, values, values.ndim - 1)
        model = Model(
            Description(
                name=self.name,
                body_names=tuple(names),
                joint_names=tuple(body.joint_name for body in bodies),
                joint_types=tuple(joint.kind for joint in joints),
                dof_counts=np.array([len(joint.dofs) for joint in joints]),
                dof_types=tuple(dof.kind for dof in dofs),
                parent=np.array([placed.body for _, placed in moving]),
                placement_rotation=np.array([placed.pose.rotation for _, placed in moving]),
                placement_translation=np.array([placed.pose.translation for _, placed in moving]),
                axis=np.array([dof.axis for dof in dofs]),
                pitch=np.array([dof.pitch for dof in dofs]),
                rotor_inertia=np.concatenate([body.rotor_inertia for body in bodies]),
                gear_ratio=np.concatenate([body.gear_ratio for body in bodies]),
                **{field: np.concatenate([body.passive[field] for body in bodies]) for field in PASSIVE_FIELDS},
                **inertial,
                gravity=self.gravity.copy(),
                **water_of(immersions, self.fluid_density),
                frames={name: frame for name, frame in carriers.items() if name not in names},
                nonphysical_inertia=self.nonphysical_inertia,
                limits=np.concatenate([body.limits for body in bodies]),
                drives=tuple(self._drives),
                visuals={name: body.visuals for name, body in self._bodies.items() if body.visuals},
            )
        )
        if model.bodies_without_inertia:
            warnings.warn(remedies(self.name, model.bodies_without_inertia), stacklevel=2)
        return model

    def _warn_of_nonphysical_inertia(self) -> None:
        if self._negative:
            warnings.warn(
                f"model {self.name!r}: the inertia of {self._negative} has a negative principal moment. It is used as "
                "it is: kinetic energy can be negative, and accelerations wrong in sign or NaN. Correct the inertia",
                stacklevel=3,
            )
        others = [name for name in self._nonphysical if name not in self._negative]
        if others:
            warnings.warn(
                f"model {self.name!r}: no body can have the inertia of {others}, whose largest principal moment is "
                "more than the sum of the others (triangle inequality). It is used as it is",
                stacklevel=3,
            )

    def _immersed(self, name: str, carrier: Immersion | None, pose: Pose) -> Immersion | None:
        """The immersion of a body together with that of one fixed to it."""
        own = self._bodies[name].immersion
        if own is None:
            return carrier
        try:
            return own.moved(pose) if carrier is None else carrier.joined(own.moved(pose))
        except ModelError as error:
            raise ModelError(f"body {name!r}: {error}") from None

    def _check_tree(self) -> None:
        if not self._bodies:
            raise ModelError(f"model {self.name!r} is empty; expected at least one body")
        seen = set()
        for name, body in self._bodies.items():
            parent = body.parent
            if parent is not None and parent not in self._bodies:
                others = [other for other in self._bodies if other != name]
                raise ModelError(f"body {name!r}: parent {parent!r} is unknown; the other bodies are {others}")
            if parent is not None and parent not in seen:
                if self._leads_back(name):
                    raise ModelError(
                        f"body {name!r}: its parents form a cycle; expected a tree that starts at the world"
                    )
                raise ModelError(f"body {name!r}: parent {parent!r} is added after it; expected parents first")
            seen.add(name)

    def _leads_back(self, name: str | None) -> bool:
        """Whether following parents from a body never reaches the world."""
        visited = set()
        while name is not None and name not in visited:
            visited.add(name)
            name = self._bodies[name].parent
        return name is not None
