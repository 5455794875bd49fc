"""Reader for rbchain's own format, a TOML file with the complete model::

    format = "rbchain 1"
    name = "arm"
    gravity = [0, 0, -9.81]
    fluid_density = 1000.0          # 0 (air) by default
    units = "mm-kg-s"               # of all numbers; SI by default
    degrees = true                  # whether angles are in degrees; by default in radians

    [[body]]
    name = "upper"
    parent = "base"                 # the world by default
    joint = { type = "revolute", axis = [0, 0, 1] }
    placement = { translation = [0.1, 0, 0], rotation = [0, 0, 0, 1] }
    mass = 2.0
    cg = [0.1, 0, 0]
    inertia = [0.01, 0.02, 0.02]    # or six numbers: xx xy xz yy yz zz
    passive = { damping = 0.1 }     # the fields of PassiveForces
    immersion = { volume = 0.002 }  # the fields of Immersion; added masses refer to the body's frame
    limits = { lower = -1, upper = 1, velocity = 2, effort = 50, acceleration = 9, jerk = 80 }
    visual = [{ shape = "box", size = [0.2, 0.1, 0.1], placement = { translation = [0.1, 0, 0] } }]

    [[drive]]                       # the class of the drive, such as PID or PrescribedPosition, and its fields
    type = "PID"
    joint = "upper"
    reference = { type = "sines", amplitude = 0.3, angular_frequency = 2.0 }
    kp = 20.0

    [[constraint]]                  # its type is ball, hinge, weld, distance or coupler; the world is not a body
    type = "ball"
    name = "tip"
    frame_a = "upper"
    point_a = [0.2, 0, 0]
    point_b = [1.0, 0, 0]
    compliance = 1e-8               # of a compliant constraint; a hinge also has an angular_compliance

    [[frame]]                       # fixed to a body, or to the world
    name = "tool"
    body = "upper"

    [[keyframe]]                    # a state, and values of inputs of the drives, always in SI
    name = "home"
    q = [0.1]
    qd = [0.0]

    [[sensor]]                      # a sensor of an MJCF file, always in SI
    name = "angle"
    kind = "position"
    joint = "upper"

    [nominal]                       # the model that controllers use, if it differs: the keys above without drives.
                                    # Units, gravity, fluid density and the treatment of nonphysical inertia are the
                                    # same unless they are given
    gravity = [0, 0, -9.8]

    [[nominal.body]]
    name = "upper"

A quantity of a body, frame or constraint may have its own unit, such as "5 mm". Times are in s, and angular frequencies
of signals in rad/s. A file with other units than SI cannot contain the matrices of an immersion. Numbers are written
with all digits, so that a file that is read again gives the same model, bit for bit. Former names of keys are read too:
`renamed_arguments` of the classes.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..common.real_arrays import excerpt
from ..errors import ArgumentError, FileFormatError, ModelError
from ..facade.builder import ModelBuilder
from ..facade.model import Model
from ..model.editing import unused_name
from ..model.joint import Fixed
from ..model.keyframe import Keyframe
from ..model.pose import numbers
from ..model.sensor_of_file import UNITS as UNITS_OF_SENSORS, SensorOfFile
from ..model.validation import naming
from .file_units import FileUnits, drive_in_si
from .native_bodies import ADDED, added_of, arguments_of, collisions_of, constraint_of, pose_of, visuals_of
from .native_tables import expect_keys, made_of, table_of, tables_of
from .notes import Notes

FORMAT = "rbchain 1"
MODEL_KEYS = (
    "format",
    "name",
    "gravity",
    "fluid_density",
    "units",
    "degrees",
    "nonphysical_inertia",
    "body",
    "drive",
    "keyframe",
    "sensor",
    "frame",
    "constraint",
    "nominal",
)
#: The keys that also apply to the nominal model, unless its table has them.
SHARED_WITH_NOMINAL = ("units", "degrees", "gravity", "fluid_density", "nonphysical_inertia")
#: The keys that the table of the nominal model cannot have.
NOT_OF_NOMINAL = ("format", "drive", "keyframe", "sensor", "nominal")
#: The fields that a model and its nominal model have in common.
SAME_IN_NOMINAL = ("body_names", "parent", "joint_names", "joint_types", "dof_types", "constraints")
BODY_KEYS = (
    *("name", "parent", "joint", "joint_name", "placement", "mass", "cg", "inertia"),
    *("rotor_inertia", "gear_ratio", "passive", "immersion", "limits", "visual", "collision"),
)


def load_toml(path: Path, with_drives: bool = True) -> Model:
    """Read a model from a file of rbchain's format.

    Raises FileFormatError if the file does not follow the format, and ModelError if the mechanism is invalid.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except ValueError as error:
        raise FileFormatError(f"{path}: the file is not valid TOML: {error}") from None
    notes = Notes()
    with notes.of_warnings():
        model = model_of_toml(text, str(path), path.parent, with_drives)
    notes.warn(path, stacklevel=4)
    return model


def model_of_toml(text: str, source: str, folder: Path = Path(), with_drives: bool = True) -> Model:
    """Return the model in a text of rbchain's format. Errors begin with `source`; files are relative to `folder`.

    Raises FileFormatError if the text does not follow the format, and ModelError if the mechanism is invalid.
    """
    try:
        given = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # these include numbers with too many digits and deep nesting
        raise FileFormatError(f"{source}: the file is not valid TOML: {error}") from None
    if given.get("format") != FORMAT:
        found = f"format is {given['format']!r}" if "format" in given else "the key format is missing"
        hint = ". This is the file of a study; read it with Study.read" if "simulate" in given else ""
        raise FileFormatError(f'{source}: {found}; expected the line: format = "{FORMAT}"{hint}')
    try:
        return _model(given if with_drives else {**given, "drive": []}, folder)
    except (FileFormatError, ModelError) as error:
        raise type(error)(f"{source}: {error}") from None


def _model(given: Mapping[str, Any], folder: Path) -> Model:
    expect_keys("the model", given, MODEL_KEYS)
    units = FileUnits(given)
    builder = ModelBuilder(
        name=given.get("name", "model"),
        gravity=units("gravity", given.get("gravity", (0.0, 0.0, -9.81))),
        nonphysical_inertia=given.get("nonphysical_inertia", "refuse"),
        fluid_density=units("density", given.get("fluid_density", 0.0)),
    )
    added: dict[str, list[np.ndarray]] = {key: [] for key in ADDED}
    kinds: dict[str, list[str]] = {}  # of the degrees of freedom of each joint
    for body in tables_of(given, "body"):
        where = f"body {body.get('name')!r}"
        expect_keys(where, body, BODY_KEYS)
        with naming(where):
            arguments = arguments_of(where, body, units, folder)
            of_body = added_of(where, body)
        builder.add_body(**arguments)
        kinds[str(body.get("joint_name", body.get("name")))] = [dof.kind for dof in arguments["joint"].dofs]
        for key in ADDED if arguments["joint"].kind != Fixed.kind else ():
            added[key].append(of_body[key])
    joints = set(kinds)
    for frame in tables_of(given, "frame"):
        where = f"frame {frame.get('name')!r}"
        expect_keys(where, frame, ("name", "body", "placement", "visual", "collision"))
        with naming(where):
            pose = pose_of(where, table_of(where, frame, "placement"), units)
            visuals, collisions = visuals_of(where, frame, units, folder), collisions_of(where, frame, units, folder)
        joint = unused_name(f"{frame.get('name')}", joints)  # a joint of the file may have the name of a frame
        joints.add(joint)
        builder.add_body(
            frame.get("name"),
            parent=frame.get("body"),
            joint=Fixed(),
            placement=pose,
            joint_name=joint,
            visuals=visuals,
            collisions=collisions,
        )
    for drive in tables_of(given, "drive"):
        from .controller_models import with_controller_model  # imports this module

        try:
            builder.add_drive(drive_in_si(with_controller_model(drive, folder), units, kinds))
        except ArgumentError as error:
            raise FileFormatError(f"drive of joint {drive.get('joint')!r}: {error}") from None
    for constraint in tables_of(given, "constraint"):
        builder.add_constraint(constraint_of(constraint, units, kinds))
    model = builder.build()
    changed = {key: np.array(of_bodies) for key, of_bodies in added.items() if np.any(of_bodies)}
    model = model.replace(**changed) if changed else model
    model = _with_keyframes(model, tables_of(given, "keyframe"))
    model = _with_sensors(model, tables_of(given, "sensor"))
    return _with_nominal(model, given, folder) if "nominal" in given else model


def _with_keyframes(model: Model, tables: Sequence[Mapping[str, Any]]) -> Model:
    """Return a model with the keyframes in tables, which are always in SI."""
    found: dict[str, Keyframe] = {}
    for table in tables:
        where = f"keyframe {table.get('name')!r}"
        expect_keys(where, table, ("name", "q", "qd", "inputs"))
        if not isinstance(table.get("name"), str):
            raise FileFormatError(f'{where}: its name is not a string; expected name = "..."')
        q, qd = (
            numbers(table.get(key, ()), f"{where}: {key}", (size,)) for key, size in (("q", model.nq), ("qd", model.nv))
        )
        inputs = {
            name: float(numbers(x, f"{where}: {name}", ())) for name, x in table_of(where, table, "inputs").items()
        }
        found[table["name"]] = Keyframe(q, qd, inputs)
    return Model(model.description.replaced({"keyframes": found})) if found else model


def _with_sensors(model: Model, tables: Sequence[Mapping[str, Any]]) -> Model:
    """Return a model with the sensors in tables, which are always in SI."""
    found: dict[str, SensorOfFile] = {}
    for table in tables:
        where, fields = f"sensor {table.get('name')!r}", dict(table)
        if not isinstance(name := fields.pop("name", None), str):
            raise FileFormatError(f'{where}: its name is not a string; expected name = "..."')
        if table.get("kind") not in UNITS_OF_SENSORS:
            raise FileFormatError(f"{where}: its kind is {table.get('kind')!r}; expected one of {[*UNITS_OF_SENSORS]}")
        for key, known in (("joint", model.joint_names), ("body", model.body_names)):
            if key in table and table[key] not in known:
                raise FileFormatError(f"{where}: the model has no {key} {table[key]!r}; expected one of {[*known]}")
        if "pose" in fields:
            fields["pose"] = pose_of(where, table_of(where, fields, "pose"), FileUnits({}))
        found[name] = made_of(where, SensorOfFile, fields)
    return Model(model.description.replaced({"sensors": found})) if found else model


def _with_nominal(model: Model, given: Mapping[str, Any], folder: Path) -> Model:
    """Return a model with the nominal model in its table, which has the same bodies, joints and drives."""
    table = table_of("the model", given, "nominal")
    expect_keys("nominal", table, [key for key in MODEL_KEYS if key not in NOT_OF_NOMINAL])
    shared = {key: given[key] for key in SHARED_WITH_NOMINAL if key in given}
    try:
        nominal = _model({**shared, **table, "drive": given.get("drive", [])}, folder).description
    except (FileFormatError, ModelError) as error:
        raise type(error)(f"nominal: {error}") from None
    for field in SAME_IN_NOMINAL:
        own, other = getattr(model.description, field), getattr(nominal, field)
        if not (len(own) == len(other) and all(a == b for a, b in zip(own, other, strict=True))):
            raise FileFormatError(
                f"nominal: {field} is {excerpt([*other])}; expected the same as in the model, {excerpt([*own])}"
            )
    return Model(dataclasses.replace(model.description, nominal=nominal))
