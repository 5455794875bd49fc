"""ModelBuilder: describe a mechanism body by body, and build a Model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..acting.drives import OneJointDrive
from ..common.calls import ExplainsCalls, explains_calls
from ..common.misspelled import ClosedAttributes
from ..common.real_arrays import FloatArray
from ..errors import ModelError
from ..model import validation
from ..model.assembly import Body, Mechanism, assemble
from ..model.collision_shape import CollisionShape
from ..model.constraints import Constraint
from ..model.immersion import Immersion
from ..model.inertia import Inertia
from ..model.joint import AnyJoint
from ..model.limits import JointLimits
from ..model.massless import remedies
from ..model.passive import PassiveForces
from ..model.pose import Pose, numbers, vector3
from ..model.sensor_of_file import SensorOfFile
from ..model.visual import Visual
from .added_bodies import MASSLESS, BodyArguments, check_names, check_tree, checked_body
from .attached_models import attached_model, check_attachment, check_new_names
from .builder_checks import check_drive, warn_of_nonphysical_inertia, with_compliance
from .file_records import carried_by_body
from .model import Model


class ModelBuilder(ExplainsCalls, ClosedAttributes):
    """Describe a mechanism body by body, parents before children, and build an immutable `Model`.

    Parameters
    ----------
    name : str
        Name of the model.
    gravity : (3,) array, m/s^2
        Gravitational acceleration in world axes; (0, 0, -9.81) by default.
    nonphysical_inertia : "refuse" or "warn"
        Whether an inertia tensor that violates the triangle inequality, or has a negative principal moment, raises a
        ModelError or only causes a warning. The default is "refuse", because such a tensor in a program is usually a
        mistake. `rb.load` only warns by default, because many published robots have such tensors.
    fluid_density : float, kg/m^3
        Density of the fluid around all bodies that have an `Immersion`; 0 in air.

    Raises
    ------
    ModelError
        If an argument is invalid.

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

    name: str
    gravity: FloatArray
    nonphysical_inertia: Literal["refuse", "warn"]
    fluid_density: float

    def __init__(
        self,
        *,
        name: str = "model",
        gravity: npt.ArrayLike = (0.0, 0.0, -9.81),
        nonphysical_inertia: Literal["refuse", "warn"] = "refuse",
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
        self._bodies: dict[str, Body] = {}
        self._nonphysical: list[str] = []
        self._negative_moments: list[str] = []
        self._drives: list[OneJointDrive] = []
        self._constraints: list[Constraint] = []
        self._sensors: dict[str, SensorOfFile] = {}
        #: Bodies and constraints of the nominal models of varied models, by their names in this builder.
        self._nominal_bodies: dict[str, Body] = {}
        self._nominal_constraints: dict[str, Constraint] = {}

    @explains_calls(
        is_method=True,
        mass="inertia=rb.Inertia(mass, ...)",
        damping="passive=rb.PassiveForces(damping=...)",
        stiffness="passive=rb.PassiveForces(stiffness=...)",
        friction="passive=rb.PassiveForces(friction=...)",
        armature="rotor_inertia",
        range="limits=rb.JointLimits(...)",
        pos="placement",
        pose="placement",
        axis="joint=rb.Revolute(axis)",
    )
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
        collisions: Sequence[CollisionShape] = (),
    ) -> None:
        """Add a body and the joint that connects it to its parent.

        Parameters
        ----------
        name : str
            Name of the body, different from the names of all other bodies.
        parent : str, optional
            Name of the parent body. By default the body is connected to the world.
        joint : Revolute, Prismatic, Screw, Fixed, Free, Spherical, Planar, Universal or Composite
            Joint between the parent and the body.
        placement : Pose, optional
            Pose of the joint in the parent's frame, and so of the body at q = 0. By default the two frames coincide.
        inertia : Inertia, optional
            Mass, center of mass and inertia tensor in the body's frame. By default the body is massless.
        joint_name : str, optional
            Name of the joint; by default the name of the body.
        rotor_inertia : float or (dofs,) array, kg m^2
            Moment of inertia of the motor's rotor about its own axis.
        gear_ratio : float or (dofs,) array
            Rotations of the rotor per rotation of the joint; in rad/m for a prismatic joint. The rotor is modeled as
            reflected inertia (armature), rotor_inertia * gear_ratio^2. Gyroscopic effects of the rotor are neglected.
        passive : PassiveForces, optional
            Springs, damping, friction and stops of the joint.
        immersion : Immersion, optional
            Buoyancy, added mass and drag of the body. It has an effect only if the model has a `fluid_density`.
        limits : JointLimits, optional
            Limits of position, velocity, effort, acceleration and jerk. They are stored but not enforced; see
            `PassiveForces` for stops.
        visuals : sequence of Visual
            Shapes for images.
        collisions : sequence of CollisionShape
            Shapes for `Model.contacts`.

        Raises
        ------
        ModelError
            If an argument is invalid, the name is already used, or the inertia is not physically possible.
        """
        joint_name = name if joint_name is None else joint_name
        check_names(name, parent, joint_name, self._bodies)
        given = BodyArguments(
            parent=parent,
            joint=joint,
            placement=Pose() if placement is None else placement,
            inertia=MASSLESS if inertia is None else inertia,
            rotor_inertia=rotor_inertia,
            gear_ratio=gear_ratio,
            passive=PassiveForces() if passive is None else passive,
            immersion=immersion,
            limits=JointLimits() if limits is None else limits,
            visuals=visuals,
            collisions=collisions,
            joint_name=joint_name,
        )
        body = checked_body(name, given)
        self._check_inertia(name, body.inertia)
        self._bodies[name] = body

    def _check_inertia(self, name: str, inertia: Inertia) -> None:
        """Raise a ModelError for invalid mass properties; note non-physical tensors if they are accepted."""
        validation.check_mass((name,), np.array([inertia.mass]))
        validation.check_finite((name,), "cg", inertia.cg[None], 1)
        try:
            validation.check_inertia((name,), inertia.inertia[None])
        except ModelError:
            if self.nonphysical_inertia == "refuse" or not np.isfinite(inertia.inertia).all():
                raise
            self._nonphysical.append(name)
        if self.nonphysical_inertia == "warn" and validation.has_negative_moment(inertia.mass, inertia.inertia):
            self._negative_moments.append(name)

    def add_drive(self, drive: OneJointDrive) -> None:
        """Add a drive to the `drives` of the model, which `simulate` applies by default.

        Parameters
        ----------
        drive : PrescribedForce, PrescribedAcceleration, PrescribedVelocity, PrescribedPosition, PID or ComputedTorque

        Raises
        ------
        ModelError
            If `drive` is not one of these, or the model does not have its joint or degree of freedom.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
        >>> builder.add_drive(rb.PID("arm", reference=0.5, kp=20.0, kd=4.0))
        >>> arm = builder.build()
        >>> motion = arm.simulate([[0.0]], duration=3.0, method="rk4", step=0.01)
        >>> float(motion.q[0, -1, 0].round(2))
        0.5
        """
        check_drive(drive, self._bodies)
        self._drives.append(drive)

    @explains_calls(is_method=True)
    def add_model(
        self, other: Model, *, parent: str | None = None, placement: Pose | None = None, prefix: str = ""
    ) -> None:
        """Add all bodies, frames, drives, constraints and sensors of another model, such as a hand for an arm.

        Keyframes are not added, because they are states of the other model only. If the other model was varied, the
        nominal model of the result has the values before it was varied.

        Parameters
        ----------
        other : Model
            It does not change. Its gravity is not used: the gravity of this builder applies to all bodies.
        parent : str, optional
            Name of the body or frame to which the world of the other model is fixed. The default is the world.
        placement : Pose, optional
            Pose of the other model's world in the frame of `parent`. By default the two frames coincide.
        prefix : str
            Prefix of all names of bodies, joints, frames, constraints, sensors and inputs of the other
            model, such as "left/".

        Raises
        ------
        ModelError
            If a name is already used, the parent does not exist, an inertia is not physically possible, or a drive has
            its own model. Also if the samples of the other model differ, or if it is in another fluid.

        Examples
        --------
        >>> import rbchain as rb
        >>> finger = rb.Model.serial_chain(2, name="finger")
        >>> builder = rb.ModelBuilder(name="hand")
        >>> builder.add_body("palm", joint=rb.Free(), inertia=rb.Inertia.box((0.1, 0.1, 0.02), mass=0.5))
        >>> for name, y in (("left", -0.04), ("right", 0.04)):
        ...     builder.add_model(finger, parent="palm", placement=rb.Pose((0.05, y, 0)), prefix=f"{name}/")
        >>> builder.build().joint_names
        ('palm', 'left/link1', 'left/link2', 'right/link1', 'right/link2')
        """
        placement = Pose() if placement is None else placement
        check_attachment(other, parent, placement, prefix, self._bodies)
        attached = attached_model(other, prefix, parent, placement)
        density = float(other.description.fluid_density)
        if other.in_water and density != self.fluid_density:
            raise ModelError(
                f"add_model: model {other.name!r} has the fluid_density {density:g} and this builder has "
                f"{self.fluid_density:g} kg/m^3; expected equal densities. Use other.replace(fluid_density=...)"
            )
        check_new_names(attached, self._bodies, self._constraints, self._sensors)
        self._sensors |= attached.sensors
        for name, body in attached.bodies.items():
            self._check_inertia(name, body.inertia)
        self._bodies |= attached.bodies
        self._drives += attached.drives
        for constraint in attached.constraints:
            self.add_constraint(constraint)
        self._nominal_bodies |= attached.nominal_bodies
        self._nominal_constraints |= attached.nominal_constraints

    def add_constraint(
        self,
        constraint: Constraint,
        *,
        compliance: float | None = None,
        angular_compliance: float | None = None,
        relaxation_time: float | None = None,
    ) -> None:
        """Add a constraint, which closes a loop of the mechanism or couples two joints.

        Parameters
        ----------
        constraint : BallConstraint, HingeConstraint, WeldConstraint, DistanceConstraint or CouplerConstraint
            You can add its bodies and joints later; `build` checks that they exist.
        compliance : float, m/N, optional
            Displacement per force, the same in all directions; more than 0. The constraint then yields under load. By
            default it is rigid. Couplers are always rigid.
        angular_compliance : float, rad/(N m), optional
            Tilt or rotation per moment, of a compliant hinge or weld; more than 0.
        relaxation_time : float, s, optional
            Time constant t of a compliant constraint, 1e-3 s by default. With "rk45", "dop853" and "rosenbrock", a
            shorter t requires shorter steps; fixed steps must be below 2 t ("rk4") or t / 2 ("implicit"). Steps of
            "radau" do not depend on t. In motions that are not slow compared with t, the constraint does not act like a
            spring.

        Raises
        ------
        ModelError
            If `constraint` is not one of these, the model already has a constraint of this name, or a number is
            invalid.

        Notes
        -----
        The residual phi of a compliant constraint and its multiplier lambda satisfy

            phi + 2 t dphi/dt + t^2 d^2phi/dt^2 = -c lambda.

        At rest it is a spring with the stiffness 1 / c. The constraint solver treats it implicitly, so steps do
        not depend on c. Redundant bearings then have unique forces, and loops that close only with perfect dimensions
        can move. For c = 0, the equation is Baumgarte's stabilization (1972, "Stabilization of constraints and
        integrals of motion in dynamical systems").

        Examples
        --------
        A door of 20 kg hangs on two hinges. Each of them carries half of its weight, which lowers it by 1e-6 m:

        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder(gravity=(0, 0, -10))
        >>> builder.add_body("door", joint=rb.Free(), inertia=rb.Inertia.box((0.9, 0.05, 2), mass=20))
        >>> for name, z in (("lower", -0.5), ("upper", 0.5)):
        ...     points = {"point_a": (0, 0, z), "point_b": (0, 0, z)}
        ...     hinge = rb.HingeConstraint(name, None, "door", **points)
        ...     builder.add_constraint(hinge, compliance=1e-8, angular_compliance=1e-6)
        >>> model = builder.build()
        >>> forces = model.constraint_forces([0, 0, -1e-6, 0, 0, 0, 1], [0] * 6).reshape(2, 5)
        >>> forces[:, 2].round(6).tolist()
        [100.0, 100.0]
        """
        values = {
            "compliance": compliance,
            "angular_compliance": angular_compliance,
            "relaxation_time": relaxation_time,
        }
        self._constraints.append(with_compliance(constraint, values, self._constraints))

    def build(self) -> Model:
        """Build the `Model`.

        Returns
        -------
        Model

        Raises
        ------
        ModelError
            If no body can move, or the bodies do not form a tree with parents before children.

        Warns
        -----
        UserWarning
            If the acceleration of a body is undetermined because no inertia resists its motion
            (`Model.bodies_without_inertia`), or if an inertia is not physically possible.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder(name="pendulum")
        >>> builder.add_body("rod", joint=rb.Revolute(axis=(0, 1, 0)), inertia=rb.Inertia.rod(1.0, mass=2.0))
        >>> builder.build().body_names
        ('rod',)
        """
        check_tree(self.name, self._bodies)
        mechanism = Mechanism(
            self.name,
            self._bodies,
            self.gravity,
            self.fluid_density,
            self.nonphysical_inertia,
            self._drives,
            self._constraints,
        )
        description = assemble(mechanism)
        if self._nominal_bodies:
            constraints = [self._nominal_constraints.get(each.name, each) for each in self._constraints]
            of_nominal = replace(mechanism, bodies=self._bodies | self._nominal_bodies, constraints=constraints)
            description = replace(description, nominal=assemble(of_nominal))
        warn_of_nonphysical_inertia(self.name, self._nonphysical, self._negative_moments)
        model = Model(description)
        if self._sensors:
            sensors = {name: carried_by_body(sensor, model) for name, sensor in self._sensors.items()}
            model = Model(description.replaced({"sensors": sensors}))
        if model.bodies_without_inertia:
            warnings.warn(remedies(self.name, model.bodies_without_inertia), stacklevel=2)
        return model
