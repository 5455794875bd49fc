"""Dispersions: how the parameters of a study vary."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy.typing as npt
from pydantic import model_validator

from .distribution import Distribution
from .distributions import Normal, TruncatedNormal
from .numbers import Described
from .parameter_table import MODEL, PARAMETERS
from .scipy_distributions import AnyDistribution, from_object

NEW_FORM = (
    'vary is now a table of paths and distributions: write [vary."link1.mass"] in a TOML file, with the keys '
    'distribution, how, shared and point, or vary={"link1.mass": rb.Normal(1.0, 0.05)} in Python'
)


class Dispersion(Described):
    """How a parameter varies among the samples. `Study(vary=...)` contains dispersions or distributions by paths.

    Parameters
    ----------
    distribution : Distribution, frozen SciPy distribution or dict
        Distribution of the draws. Every value is drawn independently, except for a `MultivariateNormal`, which draws
        all components together.
    how : "set", "add" or "multiply"
        How a draw changes the value in the model: whether it replaces the value, is added to it, or multiplies it. The
        default is the first option of the parameter: "set" for most parameters.
    shared : bool
        Whether all parameters that the path selects have the same draw. By default, each has its own.
    point : (3,) array, m
        Position of a "payload" on its body, in the axes of the body or frame, from its origin.

    Notes
    -----
    A path is `owner.field` or `owner.field.component`, such as "link2.mass" or "link2.cg.x". "*", "?" and "[1-3]" match
    parts of names, and "{waist,elbow}.friction" lists several names. If a joint has several degrees of freedom, the
    path for degree of freedom i is "joint.field.i". The owner of a parameter of a body, joint or constraint is its
    name. The owner of a parameter of a drive, sensor, wrench, spring, contact or event is its `name`. If it has none,
    the owner is:

    * the joint of a drive, an `Actuator`, a sensor, `DryFriction`, `HardStops` or the `Event` of a joint
    * the frame of a `Wrench`, `SphereContact` or `EllipsoidContact`
    * both frames of a spring, bushing or contact, as in "slider-rod" or "world-rod"
    * the function of `UserForces` or of an `Event`
    * "current" for a `Current`

    If a path is ambiguous, the study raises an error that asks for a `name`.

    The field is the argument of the constructor, or the field of the model. A study prints the effects of each
    dispersion on the model before it runs. The following fields can vary. `how` can be "set", "add" or "multiply",
    unless the list below gives other options for the field.

    For each body:

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

    For each degree of freedom:

    * "axis" ("add"): components x, y, z of a rotation vector in rad that misaligns the joint axis, in body axes.
    * "pitch", "rotor_inertia", "gear_ratio": fields of the joint.
    * "stiffness", "damping", "friction" and the other fields of `PassiveForces`.
    * "q" ("set", "add"): initial position in rad or m. A free joint is moved along the axes of its placement frame,
      as by x, y and z of q. Free and spherical joints are turned by a rotation vector in body axes ("add" only), whose
      components are the degrees of freedom 3 to 5 of a free joint.
    * "qd", "tau": initial velocity and constant joint force.

    For the whole model, without an owner:

    * "gravity": components x, y, z in m/s^2, in world axes.
    * "fluid_density": in kg/m^3.

    For drives and sensors:

    * "kp", "kd", "ki", "limit", "feedforward_time_constant": gains, force limit and time constant in s of a drive.
    * "delay", "latency", "rate_limit", "resolution": of a `Sampled`, in s, N m/s or N/s, and N m or N.
    * "time_constant", "stall_torque", "no_load_speed": of an `Actuator`, in s, N m or N, and rad/s or m/s.
    * "torque_speed" ("multiply"): factor of the torques of the curve of an `Actuator`.
    * "gear_friction", "gear_friction_velocity": of an `Actuator`, without a unit, and in rad/s or m/s.
    * "resolution", "bias", "noise": of the `Encoder` or the `VelocitySensor` of a joint, in all drives.
    * "parameters": of `UserForces`; "spring.parameters.0" is the first parameter of the function spring.
    * "limit", "states": of a `Sampled` with a user function; "pulse.states.0" is the first state.
    * "reference" ("add"): constant offset of the reference of a `PID` or `ComputedTorque`.
    * "signal", "feedforward" ("add", "multiply"): constant offset of the signal of a `PrescribedForce`,
      `PrescribedAcceleration`, `PrescribedVelocity` or `PrescribedPosition`, or of the feedforward of a `PID`, or a
      factor of the signal.

    For forces:

    * "force", "moment" ("add", "multiply"): components x, y, z of a constant offset of a `Wrench`, in N or N m, or of
      a factor of its signals, such as the level of noise.
    * "point": components x, y, z of the point of a `Wrench` in m.
    * "velocity": components x, y, z of the velocity of a `Current` in m/s.
    * "stiffness", "damping", "rest_length": of a `SpringDamper`, in N/m, N s/m and m.
    * "point_a", "point_b": components x, y, z of the points of a `SpringDamper` in m.
    * "stiffness", "damping" ("multiply"): factors of the matrices of a `Bushing`.
    * "pose_a_translation", "pose_b_translation": components x, y, z of the origins of the frames of a `Bushing` in m,
      in axes of the bodies.
    * "pose_a_rotation", "pose_b_rotation" ("add"): components x, y, z of a rotation vector in rad that turns a
      frame, in its own axes.

    For the signals of drives and forces, whose paths are their owners, such as "link1.signal.amplitude" and
    "wrench.force.y.values.2". The field is the argument of the constructor of the signal:

    * "value": a constant. "coefficients": of a polynomial; "link1.reference.coefficients.1" is the factor of t.
    * "amplitude", "angular_frequency", "phase": of sines; of several sines, "amplitude.0" is the first one. "offset":
      of sines.
    * "times", "values": of a table, such as "times.0" and "values.3". The times must increase. "delay": a time in s
      that is added to all of them.
    * "factor", "offset": of noise and sea states. "std", "correlation_time", "offset": of an Ornstein-Uhlenbeck
      process. "intensity", "offset": of a random walk. "significant_wave_height", "peak_period", "depth": of a sea
      state.

    These values are applied first. The offset or the factor of the whole signal is applied afterwards.

    For friction, stops and contacts:

    * "dry_friction" ("multiply"): common factor of all friction levels of a `DryFriction`.
    * "kinetic", "static", "kinetic_backward", "static_backward": of a `DryFriction`, in N m or N. Levels that the
      `DryFriction` does not give follow the others, as in Python.
    * "gear_friction": of a `DryFriction`, without a unit.
    * "restitution": of `HardStops`.
    * "friction", "restitution": coefficients of a contact.
    * "point" (components x, y, z) of a `SphereContact` or an `EllipsoidContact`, "radius" of a `SphereContact`, in m.
    * "semi_axes" ("multiply"): factor of all semi-axes of an `EllipsoidContact`.
    * "point_a", "point_b", "radius_a", "radius_b": of a `SphereSphereContact` or a `CapsuleCapsuleContact`, in m.
    * "half_axis_a", "half_axis_b" (components x, y, z): of a `CapsuleCapsuleContact`, in m.
    * "plane_point": components x, y, z of a point of the plane of such a contact in m, in world axes.
    * "plane_normal" ("add"): components x, y, z of a rotation vector in rad that tilts the normal, in world axes.

    For events:

    * "value": of the `Event` of a joint, in rad or m, or in rad/s or m/s.
    * "parameters": of the function of an `Event`; "far.parameters.0" is the first parameter of the function far.

    For constraints:

    * "point_a", "point_b": components x, y, z of a point in m, in the axes of its moving body.
    * "axes_a", "axes_b" ("add"): components x, y, z of a rotation vector in rad that turns the frame of a
      `HingeConstraint` or `WeldConstraint`, in its own axes. The z axis is the axis of a hinge.
    * "length": length of a `DistanceConstraint` in m.
    * "ratio", "offset": of a `CouplerConstraint`; the offset in rad or m.
    * "compliance" in m/N, "angular_compliance" in rad/(N m), "relaxation_time" in s: of compliant constraints.

    All samples share the other parameters: the `period` and `phase` of a `Sampled`, `max_records`, the spectrum of
    noise, the positions of hard stops, and the settings of `simulate`. Their paths raise an error with the reason and
    the remedy. To vary the value of an `Input`, add an offset to its signal.

    Values are in SI units. Strings such as "5 deg" or "2 N/mm" contain their own units.

    With `simulate.assemble`, each sample starts from its own closed configuration.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Dispersion(rb.Normal(1.0, 0.05), how="multiply").shared
    False
    """

    positional: ClassVar[tuple[str, ...]] = ("distribution",)

    distribution: AnyDistribution
    how: Literal["set", "add", "multiply"] | None = None
    shared: bool = False
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @model_validator(mode="after")
    def _refuse_factors_about_zero(self) -> Self:
        """Raise an error for factors without a mean, which would be zero."""
        of, is_factor = self.distribution, self.how == "multiply"
        if is_factor and isinstance(of, Normal | TruncatedNormal) and "mean" not in of.model_fields_set:
            raise ValueError(
                'how is "multiply", but the distribution has no mean; expected the mean factor, such as mean = 1.0'
            )
        return self

    if TYPE_CHECKING:

        def __init__(
            self,
            distribution: Any,
            *,
            how: Literal["set", "add", "multiply"] | None = None,
            shared: bool = False,
            point: npt.ArrayLike = (0.0, 0.0, 0.0),
        ) -> None: ...


def dispersions_of(given: Any) -> Any:
    """Return the values of `vary` as dispersions or tables of dispersions: a distribution alone is one."""
    if isinstance(given, list | tuple):
        raise ValueError(f"{_of_old_form(given)}{NEW_FORM}")
    if not isinstance(given, Mapping):
        return given
    return {path: _dispersion_of(value) for path, value in given.items()}


def _dispersion_of(value: Any) -> Any:
    """Return a dispersion for a distribution alone, including one of SciPy or in a table; other values as they are."""
    if isinstance(value, Mapping):
        is_distribution = "distribution" not in value and not {"type", "kind"}.isdisjoint(value)
        return {"distribution": value} if is_distribution else value
    if isinstance(value, Dispersion):
        return value
    found = from_object(value)
    return Dispersion(found) if isinstance(found, Distribution) else value


def _of_old_form(given: list[Any] | tuple[Any, ...]) -> str:
    """Return the first entry of a list of dispersions in the new form, for a message."""
    first = given[0] if given and isinstance(given[0], Mapping) else {}
    if "parameter" not in first:
        return f"found a list of {len(given)} values; "
    name, targets = str(first["parameter"]), first.get("targets", "*")
    targets = targets if isinstance(targets, str) else "{" + ",".join(map(str, targets)) + "}"
    parameter = PARAMETERS.get(name)
    owner = "" if parameter is not None and parameter.owner == MODEL else f"{targets}."
    field = name if parameter is None else parameter.field_in_paths(name)
    return f'found a list, whose first entry is now [vary."{owner}{field}"]; '
