"""Names of the elements of SDF files, and values of settings that change the motion."""

from __future__ import annotations

from typing import Any

from .notes import LEFT_OUT, Notes
from .urdf_vocabulary import Names, check_names, owner_of

AXIS = Names(
    (),
    ("xyz", "dynamics", "limit", "mimic", "use_parent_model_frame"),
    without_effect=("initial_position",),
)
#: By the name of the element. Children without an entry are not searched.
VOCABULARY = {
    "sdf": Names(("version",), several=("model", "world", "include"), without_effect=("light", "actor")),
    "world": Names(
        ("name",),
        ("gravity",),
        ("model", "include", "frame", "joint"),
        without_effect=(
            *("physics", "scene", "light", "gui", "state", "population", "road", "audio", "magnetic_field", "actor"),
            *("atmosphere", "spherical_coordinates", "wind"),
        ),
        left_out=("plugin",),
    ),
    "model": Names(
        ("name", "canonical_link", "placement_frame"),
        ("static", "pose"),
        ("link", "joint", "frame", "model", "include", "enable_wind"),
        without_effect=("self_collide", "allow_auto_disable", "gripper", "drake:collision_filter_group"),
        left_out=(
            *("plugin", "drake:joint", "drake:linear_bushing_rpy", "drake:linear_spring_damper"),
            *("drake:ball_constraint", "drake:tendon_constraint"),
        ),
    ),
    "include": Names(
        ("merge",), ("uri", "name", "pose", "static", "placement_frame"), ("enable_wind",), left_out=("plugin",)
    ),
    "frame": Names(("name", "attached_to"), ("pose",)),
    "pose": Names(("relative_to", "frame", "rotation_format", "degrees")),
    "link": Names(
        ("name",),
        ("inertial", "pose"),
        ("gravity", "kinematic", "enable_wind", "velocity_decay"),
        without_effect=(
            *("visual", "collision", "sensor", "projector", "audio_sink", "audio_source", "battery", "light"),
            *("particle_emitter", "self_collide", "must_be_base_link"),
        ),
        left_out=("plugin",),
    ),
    "inertial": Names(
        ("auto",),
        ("mass", "pose", "inertia", "density"),
        without_effect=("auto_inertia_params",),
        left_out=("fluid_added_mass",),
    ),
    "inertia": Names((), ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")),
    "joint": Names(
        ("name", "type"),
        (
            *("parent", "child", "pose", "axis", "axis2", "thread_pitch", "screw_thread_pitch", "physics"),
            *("drake:rotor_inertia", "drake:gear_ratio"),
        ),
        without_effect=("sensor", "gearbox_ratio", "gearbox_reference_body"),  # a gearbox is an error
        left_out=("plugin", "drake:controller_gains"),
    ),
    "axis": AXIS,
    "axis2": AXIS,
    "xyz": Names(("expressed_in",)),
    "dynamics": Names((), ("damping", "friction", "spring_reference", "spring_stiffness")),
    "limit": Names(
        (),
        ("lower", "upper", "effort", "velocity"),
        without_effect=("stiffness", "dissipation", "drake:acceleration", "drake:jerk"),  # limits are not enforced
    ),
    "mimic": Names(("joint", "axis"), ("multiplier", "offset", "reference")),
    "physics": Names((), several=("ode",), without_effect=("simbody", "provide_feedback")),
    "ode": Names(
        (),
        several=("max_force", "velocity"),
        without_effect=(
            *("provide_feedback", "cfm_damping", "implicit_spring_damper", "fudge_factor", "cfm", "erp", "bounce"),
            *("limit", "suspension"),
        ),
    ),
}
NO = ("", "0", "false")
#: Values that do not change the motion, of settings in an element.
NEUTRAL = {
    ("model", "enable_wind"): NO,
    ("include", "enable_wind"): NO,
    ("link", "enable_wind"): NO,
    ("link", "kinematic"): NO,
    ("link", "gravity"): ("", "1", "true"),
    ("link", "velocity_decay"): NO,
    ("ode", "max_force"): NO,
}


def check_vocabulary(root: Any, notes: Notes) -> str:
    """Note elements of a file that are unknown, repeated, or omitted in the model.

    Returns a text about misspelled names, for errors that they may cause.
    """
    for (tag, name), neutral in NEUTRAL.items():
        for element in (child for owner in root.iter(tag) for child in owner.findall(name)):
            words = " ".join(element.itertext()).lower().split() or [""]
            if not all(word in neutral or (neutral is NO and not word.strip("0.")) for word in words):
                owner = next((text for x in element.iterancestors() if (text := owner_of(x))), "")
                notes.put(LEFT_OUT, f"<{name}> {' '.join(words)}", owner)
    return check_names(root, notes, VOCABULARY)
