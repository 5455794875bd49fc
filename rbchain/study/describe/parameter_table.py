"""The table of parameters that a study can vary: their owners, components, units, and how a draw changes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...acting.actuators import Actuator
from ...acting.between_bodies import Bushing, SpringDamper
from ...acting.contacts import BODY_CONTACTS
from ...acting.drives import ONE_JOINT, PrescribedAcceleration, PrescribedPosition, PrescribedVelocity
from ...acting.events import Event
from ...acting.friction_and_stops import DryFriction, HardStops
from ...acting.numeric_fields import POSE, SIGNAL, Declared, Drive, Force, NumericField
from ...acting.sampled import Sampled
from ...acting.sensors import Encoder, VelocitySensor
from ...acting.signal_numbers import UNITS
from ...acting.user_forces import UserForces
from ...acting.wrenches import Current, Wrench
from ...model.passive import PASSIVE_UNITS
from ...model.units import SI

XYZ = ("x", "y", "z")
STRAINS = ("xx", "yy", "zz", "xy", "xz", "yz")
BODY, DOF, MODEL, DRIVE, WRENCH = "body", "degree of freedom", "model", "drive", "wrench"
SPRING, BUSHING, CONSTRAINT = "spring", "bushing", "constraint"
ENCODER, VELOCITY_SENSOR, FUNCTION = "encoder", "velocity sensor", "user function"
DRY_FRICTION, HARD_STOPS, CONTACT, EVENT = "dry friction", "hard stops", "contact", "event"
SIGNAL_OWNER = "signal"
OF_SIGNALS = "signal_"  # start of the names of the parameters of signals


@dataclass(frozen=True)
class Parameter:
    """A quantity that can vary.

    Attributes
    ----------
    owner : str
        The objects with separate values: each body, each degree of freedom, the model, or each drive, user function,
        wrench, spring, bushing, constraint, sensor, contact, dry friction, pair of hard stops, event
        or signal.
    components : tuple of str
        Names of its components; () if it is a single number.
    dimension : str or (str, str), optional
        Dimension as in `Units`; for degrees of freedom a pair, for rotations and for translations. None if there is
        no name for it: values are in SI units then.
    ways : tuple of str
        Possible effects of a draw on the model's own value: "set", "add", "multiply". The first one is the default.
    note : str
        Clarification that a study prints with the effects of a dispersion.
    classes : tuple of type
        Classes of drives, sensors, forces and events with this parameter.
    field : NumericField, optional
        The field of these classes; None if the parameter changes several fields.
    si_unit : str
        SI unit of a parameter without a dimension, as in `NumericField`; "1" for a factor, strain or coefficient, empty
        if it depends on the function or the mechanism. OF_SIGNAL for the unit of the signal.
    """

    owner: str
    components: tuple[str, ...] = ()
    dimension: str | tuple[str, str] | None = None
    ways: tuple[str, ...] = ("set", "add", "multiply")
    note: str = ""
    classes: tuple[type[Declared], ...] = ()
    field: NumericField | None = None
    si_unit: str = ""

    def field_in_paths(self, name: str) -> str:
        """Return the field by which paths name this parameter: the argument of the constructor of its owner.

        `name` is the name of the parameter in `PARAMETERS`.
        """
        if self.field is None:
            return name.removeprefix(OF_SIGNALS).removeprefix("constraint_")
        if self.field.kind != POSE:
            return self.field.name
        return f"{self.field.name}_{'rotation' if self.dimension == 'angle' else 'translation'}"

    def dimension_of(self, angular: bool) -> str | None:
        """Return the dimension for a rotational (`angular`) or a translational degree of freedom."""
        return self.dimension[not angular] if isinstance(self.dimension, tuple) else self.dimension

    def unit_of(self, angular: bool) -> str:
        """Return the SI unit for a rotational (`angular`) or a translational degree of freedom; empty if unknown."""
        dimension = self.dimension_of(angular)
        if dimension is not None:
            return SI[dimension]
        of_rotation, has_both, of_translation = self.si_unit.partition(" or ")
        return of_translation if has_both and not angular else of_rotation


ANGLE, TORQUE = ("angle", "length"), ("moment", "force")
PARAMETERS = {
    "mass": Parameter(BODY, dimension="mass", note='inertia tensors do not change; "mass_and_inertia" scales both'),
    "mass_and_inertia": Parameter(BODY, dimension="mass", note="inertia tensors scale with the mass"),
    "cg": Parameter(BODY, XYZ, "length", note="inertia tensors about the center of mass do not change"),
    "inertia": Parameter(BODY, STRAINS, ways=("add",), note="masses do not change", si_unit="1"),
    "placement_translation": Parameter(BODY, XYZ, "length"),
    "placement_rotation": Parameter(BODY, XYZ, "angle", ways=("add",)),
    "volume": Parameter(BODY, dimension="volume"),
    "buoyancy_center": Parameter(BODY, XYZ, "length"),
    "strip_drag": Parameter(BODY, si_unit="1"),
    "linear_damping": Parameter(BODY, ways=("multiply",)),
    "quadratic_damping": Parameter(BODY, ways=("multiply",)),
    "added_volume": Parameter(BODY, ways=("multiply",)),
    "added_mass": Parameter(BODY, ways=("multiply",)),
    "payload": Parameter(BODY, dimension="mass", ways=("set",), note="a point mass added to the body"),
    "axis": Parameter(DOF, XYZ, "angle", ways=("add",)),
    "pitch": Parameter(DOF, si_unit="m/rad"),
    "rotor_inertia": Parameter(DOF, si_unit="kg m^2 or "),
    "gear_ratio": Parameter(DOF, si_unit="1 or "),
    "stiffness": Parameter(DOF, si_unit=PASSIVE_UNITS["stiffness"]),
    "rest_position": Parameter(DOF, dimension=ANGLE),
    "cubic_stiffness": Parameter(DOF, si_unit=PASSIVE_UNITS["cubic_stiffness"]),
    "damping": Parameter(DOF, si_unit=PASSIVE_UNITS["damping"]),
    "friction": Parameter(DOF, dimension=TORQUE),
    "static_friction": Parameter(DOF, dimension=TORQUE),
    "stribeck_velocity": Parameter(DOF, dimension=("angular_velocity", "velocity")),
    "friction_velocity": Parameter(DOF, dimension=("angular_velocity", "velocity")),
    "stop_lower": Parameter(DOF, dimension=ANGLE),
    "stop_upper": Parameter(DOF, dimension=ANGLE),
    "limit_stiffness": Parameter(DOF, si_unit=PASSIVE_UNITS["limit_stiffness"]),
    "limit_damping": Parameter(DOF, si_unit=PASSIVE_UNITS["limit_damping"]),
    "friction_asymmetry": Parameter(DOF, dimension=TORQUE),
    "q": Parameter(DOF, dimension=ANGLE, ways=("set", "add")),
    "qd": Parameter(DOF, dimension=("angular_velocity", "velocity")),
    "tau": Parameter(DOF, dimension=TORQUE),
    "gravity": Parameter(MODEL, XYZ, "gravity"),
    "fluid_density": Parameter(MODEL, dimension="density"),
    "constraint_point_a": Parameter(CONSTRAINT, XYZ, "length"),
    "constraint_point_b": Parameter(CONSTRAINT, XYZ, "length"),
    **{name: Parameter(CONSTRAINT, XYZ, "angle", ways=("add",)) for name in ("constraint_axes_a", "constraint_axes_b")},
    "constraint_length": Parameter(CONSTRAINT, dimension="length"),
    "constraint_ratio": Parameter(CONSTRAINT),
    "constraint_offset": Parameter(CONSTRAINT, dimension=ANGLE),
    "constraint_compliance": Parameter(CONSTRAINT, si_unit="m/N"),
    "constraint_angular_compliance": Parameter(CONSTRAINT, si_unit="rad/(N m)"),
    "constraint_relaxation_time": Parameter(CONSTRAINT, si_unit="s"),
}
#: The start of the names of the parameters of drives that prescribe a motion; all of them have a field `signal`.
STARTS: dict[type[Declared], str] = {
    PrescribedAcceleration: "acceleration_",
    PrescribedVelocity: "velocity_",
    PrescribedPosition: "position_",
}
#: Owners of the fields of drives, sensors and forces, the start of the names of their parameters in `PARAMETERS`, and
#: the classes.
OWNERS: tuple[tuple[str, str, tuple[type[Declared], ...]], ...] = (
    (MODEL, "current_", (Current,)),
    *((DRIVE, STARTS.get(kind, ""), (kind,)) for kind in ONE_JOINT),
    (DRIVE, "", (Sampled,)),
    (DRIVE, "", (Actuator,)),
    (FUNCTION, "function_", (UserForces,)),
    (FUNCTION, "function_", (Sampled,)),
    (ENCODER, "encoder_", (Encoder,)),
    (VELOCITY_SENSOR, "velocity_sensor_", (VelocitySensor,)),
    (WRENCH, "wrench_", (Wrench,)),
    (SPRING, "spring_", (SpringDamper,)),
    (BUSHING, "bushing_", (Bushing,)),
    (DRY_FRICTION, "dry_friction_", (DryFriction,)),
    (HARD_STOPS, "stop_", (HardStops,)),
    (CONTACT, "contact_", BODY_CONTACTS),
    (EVENT, "event_", (Event,)),
)
#: Names of parameters that are not the start and the name of the field.
NAMES = {
    "current_velocity": "current",
    "acceleration_signal": "prescribed_acceleration",
    "velocity_signal": "prescribed_velocity",
    "position_signal": "prescribed_position",
    "function_parameters": "function_parameter",
    "function_states": "function_state",
    "wrench_force": "force",
    "wrench_moment": "moment",
    "spring_rest_length": "rest_length",
    "contact_plane_point": "plane_point",
    "contact_plane_normal": "plane_normal",
    "event_value": "event_position",
    "event_parameters": "event_parameter",
}
#: Units of fields of a `Sampled` that holds the force of a joint. With a user function, they depend on its outputs.
UNITS_OF_SAMPLED_FORCES = {"rate_limit": "N m/s or N/s", "resolution": "N m or N"}
#: Ways of the parameters for which not all three are useful.
WAYS: dict[str, tuple[str, ...]] = {
    "reference": ("add",),
    **dict.fromkeys(("signal", "feedforward", "force", "moment"), ("add", "multiply")),
    **{f"prescribed_{kind}": ("add", "multiply") for kind in ("acceleration", "velocity", "position")},
    **dict.fromkeys(("bushing_stiffness", "bushing_damping", "torque_speed", "contact_semi_axes"), ("multiply",)),
    "plane_normal": ("add",),
}
#: Fields that cannot vary, and the reason.
REFUSED = {
    **dict.fromkeys(
        ("period", "phase"),
        "the samples of a study share the instants of a Sampled. Use a study for each value. For a sine, vary its "
        'angular_frequency and its phase, as in "link1.signal.phase"',
    ),
    "frequency": 'a sine has an angular frequency. Vary "angular_frequency" in rad/s',
    "dof": "it chooses a degree of freedom of a joint",
    "max_records": "it is the size of an array of all samples",
    **dict.fromkeys(("seed", "samples", "sample_ids"), "the study numbers its samples. Set the seed of the study"),
    **dict.fromkeys(
        ("coefficients", "breaks", "end"),
        "the pieces of a piecewise polynomial depend on each other. Vary the `times` and `values` of a Signal.table, "
        "or the signal itself, by an offset or a factor",
    ),
    "waves": "each sine has its own parameters. Vary `amplitude`, `angular_frequency` or `phase`",
    "density": "the samples of a study share the spectrum of noise. Vary its `factor`",
    "gamma": "the samples of a study share the shape of the spectrum. Use a study for each value",
    **dict.fromkeys(
        ("frequencies", "interval", "sines"),
        "the random signals of all samples have one grid of frequencies or times. Use a study for each value",
    ),
    "channel": "it identifies the random numbers of a signal. The study numbers its samples",
    **dict.fromkeys(
        ("position_limits", "lower", "upper"),
        "the samples of a study share the positions of hard stops. Vary `stop_lower` and `stop_upper` of elastic stops",
    ),
    **dict.fromkeys(
        ("duration", "step", "rtol", "atol", "save_at"),
        "the samples of a study are simulated together with one setting. Use a study for each value",
    ),
    "controller_model": "it has the values of the model without dispersions. Vary the simulated model instead",
    **dict.fromkeys(
        ("direction", "stop", "quantity", "axes", "tension_only", "outputs", "interpolation", "amplitudes"),
        "it is a choice and not a number. Use a study for each choice",
    ),
}


def _parameters_of_actions() -> dict[str, Parameter]:
    """Return a parameter for each field that a class of drives, sensors or forces declares."""
    found: dict[str, Parameter] = {}
    for owner, start, classes in OWNERS:
        for kind in classes:
            for field in kind.numeric_fields:
                if kind is Sampled and owner == DRIVE and field.name in ("limit", "states"):
                    continue  # only of user functions; the controller of a joint has a limit of its own
                name = NAMES.get(start + field.name, start + field.name)
                if name in found:
                    found[name] = replace(found[name], classes=(*found[name].classes, kind))
                elif field.kind == POSE:
                    side = field.name.removeprefix("pose_")
                    point = Parameter(owner, XYZ, "length", classes=(kind,), field=field)
                    found[f"{start}point_{side}"] = point
                    found[f"{start}rotation_{side}"] = replace(point, dimension="angle", ways=("add",))
                else:
                    components = XYZ if field.shape == (3,) else ()
                    ways = WAYS.get(name, ("set", "add", "multiply"))
                    unit = UNITS_OF_SAMPLED_FORCES.get(name, field.unit)
                    found[name] = Parameter(owner, components, _dimension(unit), ways, "", (kind,), field, unit)
    found["plane_normal"] = replace(found["plane_normal"], dimension="angle")
    found["event_velocity"] = replace(found["event_position"], dimension=("angular_velocity", "velocity"))
    note = "the torques of the curve scale, its velocities do not change"
    found["torque_speed"] = replace(found["torque_speed"], note=note)
    return found


def _dimension(unit: str) -> str | tuple[str, str] | None:
    """Return the dimension of an SI unit as in `Units`; None if there is no name for it."""
    names, units = {unit: dimension for dimension, unit in SI.items()}, unit.split(" or ")
    if not names.keys() >= set(units):
        return None
    return names[units[0]] if len(units) == 1 else (names[units[0]], names[units[1]])


PARAMETERS |= _parameters_of_actions()
PARAMETERS["dry_friction"] = Parameter(DRY_FRICTION, ways=("multiply",), classes=(DryFriction,))
#: The parameters of drives and forces that are signals. Each signal in them owns the numbers of `signal_numbers`.
SIGNALS = tuple(name for name, parameter in PARAMETERS.items() if parameter.field and parameter.field.kind == SIGNAL)
PARAMETERS |= {
    f"{OF_SIGNALS}{name}": Parameter(SIGNAL_OWNER, (), _dimension(unit), classes=(Drive, Force), si_unit=unit)
    for name, unit in UNITS.items()
}
