"""The table of parameters that a study can vary: their owners, components, units, and how a draw changes them."""

from __future__ import annotations

from dataclasses import dataclass

XYZ = ("x", "y", "z")
STRAINS = ("xx", "yy", "zz", "xy", "xz", "yz")
BODY, DOF, MODEL, DRIVE, WRENCH = "body", "degree of freedom", "model", "drive", "wrench"
SPRING, BUSHING, CONSTRAINT, ENCODER = "spring", "bushing", "constraint", "encoder"
DRY_FRICTION, HARD_STOPS, CONTACT = "dry friction", "hard stops", "contact"
#: Owners whose parameters are fields of a force with this prefix, such as "stop_restitution".
PREFIXES = {DRY_FRICTION: "dry_friction_", HARD_STOPS: "stop_", CONTACT: "contact_"}


@dataclass(frozen=True)
class Parameter:
    """A quantity that can vary.

    Attributes
    ----------
    owner : str
        What has a value of its own: each body, each degree of freedom, the model, or each drive, wrench, spring,
        bushing, constraint, encoder, contact, dry friction or pair of hard stops.
    components : tuple of str
        Names of its numbers; () if it is one number.
    dimension : str or (str, str), optional
        Dimension as in `Units`; for degrees of freedom that of a rotation and that of a translation. None if there is
        no name for it: values are in SI units then.
    ways : tuple of str
        Possible effects of a draw on the model's own value: "set", "add", "multiply". The first one is the default.
    note : str
        Clarification that a study prints with the effects of a dispersion.
    """

    owner: str
    components: tuple[str, ...] = ()
    dimension: str | tuple[str, str] | None = None
    ways: tuple[str, ...] = ("set", "add", "multiply")
    note: str = ""


ANGLE, TORQUE = ("angle", "length"), ("moment", "force")
PARAMETERS = {
    "mass": Parameter(BODY, dimension="mass", note='inertia tensors do not change; "mass_and_inertia" scales both'),
    "mass_and_inertia": Parameter(BODY, dimension="mass", note="inertia tensors scale with the mass"),
    "cg": Parameter(BODY, XYZ, "length", note="inertia tensors about the centre of mass do not change"),
    "inertia": Parameter(BODY, STRAINS, ways=("add",), note="masses do not change"),
    "placement_translation": Parameter(BODY, XYZ, "length"),
    "placement_rotation": Parameter(BODY, XYZ, "angle", ways=("add",)),
    "volume": Parameter(BODY, dimension="volume"),
    "buoyancy_center": Parameter(BODY, XYZ, "length"),
    "strip_drag": Parameter(BODY),
    "linear_damping": Parameter(BODY, ways=("multiply",)),
    "quadratic_damping": Parameter(BODY, ways=("multiply",)),
    "added_volume": Parameter(BODY, ways=("multiply",)),
    "added_mass": Parameter(BODY, ways=("multiply",)),
    "payload": Parameter(BODY, dimension="mass", ways=("set",), note="a point mass added to the body"),
    "axis": Parameter(DOF, XYZ, "angle", ways=("add",)),
    "pitch": Parameter(DOF),
    "rotor_inertia": Parameter(DOF),
    "gear_ratio": Parameter(DOF),
    "stiffness": Parameter(DOF),
    "rest_position": Parameter(DOF, dimension=ANGLE),
    "cubic_stiffness": Parameter(DOF),
    "damping": Parameter(DOF),
    "friction": Parameter(DOF, dimension=TORQUE),
    "static_friction": Parameter(DOF, dimension=TORQUE),
    "stribeck_velocity": Parameter(DOF, dimension=("angular_velocity", "velocity")),
    "friction_velocity": Parameter(DOF, dimension=("angular_velocity", "velocity")),
    "lower_limit": Parameter(DOF, dimension=ANGLE),
    "upper_limit": Parameter(DOF, dimension=ANGLE),
    "limit_stiffness": Parameter(DOF),
    "limit_damping": Parameter(DOF),
    "friction_asymmetry": Parameter(DOF, dimension=TORQUE),
    "q": Parameter(DOF, dimension=ANGLE, ways=("set", "add")),
    "qd": Parameter(DOF, dimension=("angular_velocity", "velocity")),
    "tau": Parameter(DOF, dimension=TORQUE),
    "gravity": Parameter(MODEL, XYZ, "gravity"),
    "fluid_density": Parameter(MODEL, dimension="density"),
    "current": Parameter(MODEL, XYZ, "velocity"),
    "kp": Parameter(DRIVE),
    "kd": Parameter(DRIVE),
    "ki": Parameter(DRIVE),
    "limit": Parameter(DRIVE),
    "delay": Parameter(DRIVE, dimension="time"),
    "latency": Parameter(DRIVE, dimension="time"),
    "rate_limit": Parameter(DRIVE),
    "time_constant": Parameter(DRIVE, dimension="time"),
    "stall_torque": Parameter(DRIVE, dimension=("moment", "force")),
    "no_load_speed": Parameter(DRIVE, dimension=("angular_velocity", "velocity")),
    "encoder_resolution": Parameter(ENCODER, dimension=ANGLE),
    "encoder_bias": Parameter(ENCODER, dimension=ANGLE),
    "encoder_noise": Parameter(ENCODER, dimension=ANGLE),
    "reference": Parameter(DRIVE, dimension=ANGLE, ways=("add",)),
    "signal": Parameter(DRIVE, dimension=TORQUE, ways=("add", "multiply")),
    "force": Parameter(WRENCH, XYZ, "force", ways=("add", "multiply")),
    "moment": Parameter(WRENCH, XYZ, "moment", ways=("add", "multiply")),
    "spring_stiffness": Parameter(SPRING),
    "spring_damping": Parameter(SPRING),
    "rest_length": Parameter(SPRING, dimension="length"),
    "bushing_stiffness": Parameter(BUSHING, ways=("multiply",)),
    "bushing_damping": Parameter(BUSHING, ways=("multiply",)),
    "dry_friction": Parameter(DRY_FRICTION, ways=("multiply",)),
    "dry_friction_kinetic": Parameter(DRY_FRICTION, dimension=TORQUE),
    "dry_friction_static": Parameter(DRY_FRICTION, dimension=TORQUE),
    "dry_friction_kinetic_backward": Parameter(DRY_FRICTION, dimension=TORQUE),
    "dry_friction_static_backward": Parameter(DRY_FRICTION, dimension=TORQUE),
    "stop_restitution": Parameter(HARD_STOPS),
    "contact_friction": Parameter(CONTACT),
    "contact_restitution": Parameter(CONTACT),
    "contact_point": Parameter(CONTACT, XYZ, "length"),
    "contact_point_a": Parameter(CONTACT, XYZ, "length"),
    "contact_point_b": Parameter(CONTACT, XYZ, "length"),
    "contact_radius": Parameter(CONTACT, dimension="length"),
    "contact_radius_a": Parameter(CONTACT, dimension="length"),
    "contact_radius_b": Parameter(CONTACT, dimension="length"),
    "plane_point": Parameter(CONTACT, XYZ, "length"),
    "plane_normal": Parameter(CONTACT, XYZ, "angle", ways=("add",)),
    "constraint_point_a": Parameter(CONSTRAINT, XYZ, "length"),
    "constraint_point_b": Parameter(CONSTRAINT, XYZ, "length"),
    "constraint_length": Parameter(CONSTRAINT, dimension="length"),
    "constraint_ratio": Parameter(CONSTRAINT),
    "constraint_offset": Parameter(CONSTRAINT, dimension=ANGLE),
}
#: Parameters whose unit is 1. The units of other parameters without a dimension have no name in `Units`.
DIMENSIONLESS = ("inertia", "stop_restitution", "contact_friction", "contact_restitution")
