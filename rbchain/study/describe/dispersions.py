"""Dispersions: the quantities of a study that vary, and how."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ...common.misspelt import did_you_mean
from .distributions import MultivariateNormal
from .numbers import Described, Names
from .parameter_table import PARAMETERS, REFUSED
from .scipy_distributions import AnyDistribution


class Dispersion(Described):
    """A quantity that varies among the samples, and its distribution.

    Parameters
    ----------
    parameter : str
        The quantity; see the list in the notes.
    targets : str or sequence of str
        Names of the bodies, joints, drives or forces whose quantity varies; all of them by default. "*", "?" and
        "[1-3]" match parts of names. A drive, `DryFriction` or `HardStops` has the name of its joint. A
        wrench has the name of its frame, and a `SphereContact` the name of its body. A spring, bushing or
        `SphereSphereContact` has the names of its bodies, such as "slider-rod" or "world-rod". Degree of freedom i of a
        joint that has several is named "joint.i".
    how : "set", "add" or "multiply"
        How a draw changes the model's own value. The default is the first way that the parameter allows: "set" for
        most parameters.
    distribution : Distribution, frozen SciPy distribution or dict
        Distribution of the draws. Every number is drawn independently, except for a `MultivariateNormal`, which draws
        all components together.
    components : str or sequence of str, optional
        The components that vary; all by default.
    shared : bool
        Whether all targets have the same draw. By default each has its own.
    point : (3,) array, m
        Position of a "payload" on its body, in the axes of the body or frame, from its origin.
    name : str
        Name in the results; the name of the parameter by default.

    Notes
    -----
    A study prints the effects of each dispersion on the model before it runs. The following parameters can vary. `how`
    can be "set", "add" or "multiply", unless the parameter names other ways.

    Of each body:

    * "mass": mass in kg. The inertia tensor does not change, as in `Model.vary`. To change the density of a body, use
      "mass_and_inertia".
    * "mass_and_inertia": mass in kg. The inertia tensor changes by the same factor.
    * "cg": components x, y, z of the center of mass in m, in body axes. The inertia tensor about the center of mass
      does not change.
    * "inertia" ("add"): components xx, yy, zz, xy, xz, yz of a strain E. It deforms the mass distribution about the
      center of mass by x -> exp(E/2) x, so every draw gives a physically valid tensor. The mass does not change.
    * "placement_translation": components x, y, z of the joint's position in m, in the parent's frame.
    * "placement_rotation" ("add"): components x, y, z of a rotation vector in rad, in the joint's axes.
    * "payload" ("set"): mass in kg of a point mass that is added at `point`.
    * "volume", "buoyancy_center" (components x, y, z), "strip_drag": fields of `Immersion`.
    * "linear_damping", "quadratic_damping", "added_volume", "added_mass" ("multiply"): factors of these fields of
      `Immersion`.

    Of each degree of freedom:

    * "axis" ("add"): components x, y, z of a rotation vector in rad that misaligns the joint axis, in body axes.
    * "pitch", "rotor_inertia", "gear_ratio": fields of the joint.
    * "stiffness", "damping", "friction" and the other fields of `PassiveForces`.
    * "q" ("set", "add"): initial position in rad or m. Those of free and spherical joints can only be changed by "add".
    * "qd", "tau": initial velocity and constant joint force.

    Of the model:

    * "gravity": components x, y, z in m/s^2, in world axes.
    * "fluid_density": in kg/m^3.
    * "current": components x, y, z of the `Current` in m/s.

    Of drives and forces:

    * "kp", "kd", "ki", "limit": gains and force limit of a drive.
    * "delay", "latency", "rate_limit", "resolution": of a `Sampled` drive of a joint, in s, N m/s or N/s, and N m or N.
    * "time_constant", "stall_torque", "no_load_speed": of an `Actuator`, in s, N m or N, and rad/s or m/s.
    * "torque_speed" ("multiply"): factor of the torques of the curve of an `Actuator`.
    * "encoder_resolution", "encoder_bias", "encoder_noise": of the `Encoder` of a joint, in all drives.
    * "velocity_sensor_resolution", "velocity_sensor_bias", "velocity_sensor_noise": of the `VelocitySensor` of a joint,
      in all drives.
    * "function_parameter": a parameter of `UserForces`, with targets such as "spring.0" for the first parameter of the
      function spring.
    * "function_delay", "function_latency", "function_rate_limit", "function_resolution", "function_limit",
      "function_state": fields of `Sampled` for a user function, which targets name. States have targets such as
      "pulse.0".
    * "reference" ("add"): constant offset of the reference of a `PID` or `ComputedTorque`.
    * "signal", "feedforward" ("add", "multiply"): constant offset of the signal of a `PrescribedForce` or of the
      feedforward of a `PID`, or a factor of the signal.
    * "prescribed_acceleration", "prescribed_velocity", "prescribed_position" ("add", "multiply"): the same for the
      signals of `PrescribedAcceleration`, `PrescribedVelocity` and `PrescribedPosition`.
    * "force", "moment" ("add", "multiply"): components x, y, z of a constant offset of a `Wrench`, in N or N m, or of
      a factor of its signals, such as the level of noise.
    * "wrench_point": components x, y, z of the point of a `Wrench` in m.
    * "spring_stiffness", "spring_damping", "rest_length": of a `SpringDamper`, in N/m, N s/m and m.
    * "spring_point_a", "spring_point_b": components x, y, z of the points of a `SpringDamper` in m.
    * "bushing_stiffness", "bushing_damping" ("multiply"): factors of the matrices of a `Bushing`.
    * "bushing_point_a", "bushing_point_b": components x, y, z of the origins of its frames in m, in axes of the bodies.
    * "bushing_rotation_a", "bushing_rotation_b" ("add"): components x, y, z of a rotation vector in rad that turns a
      frame, in its own axes.

    Of friction, stops and contacts:

    * "dry_friction" ("multiply"): factor of all numbers of a `DryFriction`.
    * "dry_friction_kinetic", "dry_friction_static", "dry_friction_kinetic_backward", "dry_friction_static_backward": in
      N m or N. Numbers that the `DryFriction` does not give follow the others, as in Python.
    * "stop_restitution": of `HardStops`.
    * "contact_friction", "contact_restitution": coefficients of a `SphereContact` or `SphereSphereContact`.
    * "contact_point" (components x, y, z), "contact_radius": of a `SphereContact`, in m.
    * "contact_point_a", "contact_point_b", "contact_radius_a", "contact_radius_b": of a `SphereSphereContact`, in m.
    * "plane_point": components x, y, z of a point of the plane of a `SphereContact` in m, in world axes.
    * "plane_normal" ("add"): components x, y, z of a rotation vector in rad that tilts the normal, in world axes.

    Of constraints, which targets name:

    * "constraint_point_a", "constraint_point_b": components x, y, z of a point in m, in the axes of its moving body.
    * "constraint_axes_a", "constraint_axes_b" ("add"): components x, y, z of a rotation vector in rad that turns the
      frame of a `HingeConstraint` or `WeldConstraint`, in its own axes. The z axis is the axis of a hinge.
    * "constraint_length": length of a `DistanceConstraint` in m.
    * "constraint_ratio", "constraint_offset": of a `CouplerConstraint`; the offset in rad or m.

    With `simulate.assemble`, each sample starts from a closed configuration of its own.

    Examples
    --------
    >>> from rbchain.study import Dispersion, Normal
    >>> masses = Dispersion(parameter="mass", how="multiply", distribution=Normal(mean=1.0, std=0.05))
    >>> masses.name, masses.targets
    ('mass', ('*',))
    """

    renamed: ClassVar[Mapping[str, str]] = {"of": "targets"}

    parameter: str
    targets: Annotated[Names, Field(min_length=1)] = ("*",)
    how: Literal["set", "add", "multiply"] | None = None
    distribution: AnyDistribution
    components: Names | None = None
    shared: bool = False
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    name: str = ""

    @model_validator(mode="after")
    def _check_parameter(self) -> Self:
        if self.parameter in REFUSED:
            raise ValueError(f"parameter {self.parameter!r} cannot vary: {REFUSED[self.parameter]}")
        if self.parameter not in PARAMETERS:
            raise ValueError(
                f"parameter is {self.parameter!r}; expected one of {', '.join(PARAMETERS)}"
                f"{did_you_mean(self.parameter, PARAMETERS)}"
            )
        parameter = PARAMETERS[self.parameter]
        if self.how is None:
            object.__setattr__(self, "how", parameter.ways[0])
        if self.how not in parameter.ways:
            raise ValueError(
                f"how is {self.how!r}; expected {' or '.join(map(repr, parameter.ways))} for parameter "
                f"{self.parameter!r}"
            )
        if any(self.point) and self.parameter != "payload":
            raise ValueError(
                f"point is {list(self.point)}, but only the parameter 'payload' has a point; remove point from "
                f"{self.parameter!r}"
            )
        chosen = parameter.components if self.components is None else self.components
        if not set(chosen) <= set(parameter.components) or len(set(chosen)) < len(chosen):
            known = f"some of {list(parameter.components)}, each once," if parameter.components else "no components"
            raise ValueError(f"components is {list(chosen)}; expected {known} for parameter {self.parameter!r}")
        object.__setattr__(self, "components", tuple(chosen))
        if isinstance(self.distribution, MultivariateNormal) and self.distribution.mean.size != max(1, len(chosen)):
            raise ValueError(
                f"distribution has {self.distribution.mean.size} means; expected {max(1, len(chosen))}, one for each "
                f"component of {self.parameter!r}"
            )
        if not self.name:
            object.__setattr__(self, "name", self.parameter)
        return self

    @property
    def component_indices(self) -> list[int]:
        """Indices of the components that vary."""
        return [PARAMETERS[self.parameter].components.index(c) for c in self.components or ()]
