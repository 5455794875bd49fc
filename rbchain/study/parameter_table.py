"""The table of what may vary in a study: what has it, its components and units, and what a draw may do to it."""

from __future__ import annotations

from dataclasses import dataclass

XYZ = ("x", "y", "z")
STRAINS = ("xx", "yy", "zz", "xy", "xz", "yz")
BODY, DOF, MODEL, DRIVE, WRENCH = "body", "degree of freedom", "model", "drive", "wrench"


@dataclass(frozen=True)
class Parameter:
    """A quantity that may vary.

    Attributes
    ----------
    owner : str
        What has one: each body, each degree of freedom, the model, a drive, or a wrench.
    components : tuple of str
        Names of its numbers; () where it is one number.
    dimension : str, or two of them
        As in `Units`: of all, or of a degree of freedom that turns and of one that slides. None: numbers in SI.
    ways : tuple of str
        In what ways a draw may change it: "set", "add", "multiply".
    """

    owner: str
    components: tuple[str, ...] = ()
    dimension: str | tuple[str, str] | None = None
    ways: tuple[str, ...] = ("set", "add", "multiply")


ANGLE = ("angle", "length")
PARAMETERS = {
    "mass": Parameter(BODY, dimension="mass"),
    "mass_and_inertia": Parameter(BODY, dimension="mass"),
    "cg": Parameter(BODY, XYZ, "length"),
    "inertia": Parameter(BODY, STRAINS, ways=("add",)),
    "placement_translation": Parameter(BODY, XYZ, "length"),
    "placement_rotation": Parameter(BODY, XYZ, "angle", ways=("add",)),
    "volume": Parameter(BODY, dimension="volume"),
    "buoyancy_center": Parameter(BODY, XYZ, "length"),
    "strip_drag": Parameter(BODY),
    "linear_damping": Parameter(BODY, ways=("multiply",)),
    "quadratic_damping": Parameter(BODY, ways=("multiply",)),
    "added_volume": Parameter(BODY, ways=("multiply",)),
    "added_mass": Parameter(BODY, ways=("multiply",)),
    "payload": Parameter(BODY, dimension="mass", ways=("set",)),
    "axis": Parameter(DOF, XYZ, "angle", ways=("add",)),
    "pitch": Parameter(DOF),
    "rotor_inertia": Parameter(DOF),
    "gear_ratio": Parameter(DOF),
    "stiffness": Parameter(DOF),
    "rest_position": Parameter(DOF, dimension=ANGLE),
    "cubic_stiffness": Parameter(DOF),
    "damping": Parameter(DOF),
    "friction": Parameter(DOF, dimension=("moment", "force")),
    "static_friction": Parameter(DOF, dimension=("moment", "force")),
    "stribeck_velocity": Parameter(DOF, dimension=("angular_velocity", "velocity")),
    "friction_velocity": Parameter(DOF, dimension=("angular_velocity", "velocity")),
    "lower_limit": Parameter(DOF, dimension=ANGLE),
    "upper_limit": Parameter(DOF, dimension=ANGLE),
    "limit_stiffness": Parameter(DOF),
    "limit_damping": Parameter(DOF),
    "friction_asymmetry": Parameter(DOF, dimension=("moment", "force")),
    "q": Parameter(DOF, dimension=ANGLE, ways=("set", "add")),
    "qd": Parameter(DOF, dimension=("angular_velocity", "velocity")),
    "tau": Parameter(DOF, dimension=("moment", "force")),
    "gravity": Parameter(MODEL, XYZ, "gravity"),
    "fluid_density": Parameter(MODEL, dimension="density"),
    "current": Parameter(MODEL, XYZ, "velocity"),
    "kp": Parameter(DRIVE),
    "kd": Parameter(DRIVE),
    "ki": Parameter(DRIVE),
    "limit": Parameter(DRIVE),
    "reference": Parameter(DRIVE, dimension=ANGLE, ways=("add",)),
    "signal": Parameter(DRIVE, dimension=("moment", "force"), ways=("add",)),
    "force": Parameter(WRENCH, XYZ, "force", ways=("add",)),
    "moment": Parameter(WRENCH, XYZ, "moment", ways=("add",)),
}
