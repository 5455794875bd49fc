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

    [[constraint]]                  # its type is ball, hinge, weld, distance or coupler; the world is no body
    type = "ball"
    name = "tip"
    frame_a = "upper"
    point_a = [0.2, 0, 0]
    point_b = [1.0, 0, 0]
    compliance = 1e-8               # of a constraint that gives way; a hinge also has an angular_compliance

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
from typing import Any, TypeVar

import numpy as np

from ..common.calls import ExplainsCalls, with_present_names
from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ArgumentError, FileFormatError, ModelError
from ..facade.builder import ModelBuilder
from ..facade.model import Model
from ..model.collision_shape import CollisionShape
from ..model.constraints import KINDS as CONSTRAINT_KINDS, Constraint
from ..model.declared_constraint import BodyConstraint
from ..model.editing import unused_name
from ..model.immersion import Immersion
from ..model.inertia import Inertia
from ..model.joint import JOINTS, AnyJoint, Composite, Fixed
from ..model.keyframe import Keyframe
from ..model.limits import LIMIT_UNITS, JointLimits
from ..model.passive import PASSIVE_UNITS, PassiveForces
from ..model.pose import Pose, numbers
from ..model.sensor_of_file import UNITS as UNITS_OF_SENSORS, SensorOfFile
from ..model.validation import naming
from ..model.visual import Visual
from .file_units import FileUnits, drive_in_si
from .notes import Notes

Part = TypeVar("Part")

FORMAT = "rbchain 1"
KINDS: dict[str, type[AnyJoint]] = {joint.kind: joint for joint in JOINTS}
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
#: SI units of the numbers of compliant constraints.
COMPLIANCE_UNITS = {"compliance": "m/N", "angular_compliance": "rad/(N m)", "relaxation_time": "s"}
#: The fields that a model and its nominal model have in common.
SAME_IN_NOMINAL = ("body_names", "parent", "joint_names", "joint_types", "dof_types", "constraints")
BODY_KEYS = (
    *("name", "parent", "joint", "joint_name", "placement", "mass", "cg", "inertia"),
    *("rotor_inertia", "gear_ratio", "passive", "immersion", "limits", "visual", "collision"),
)
#: Fields of an Immersion that are converted to SI, and their dimensions. The matrices are always in SI.
IMMERSION_MEASURES = {"volume": "volume"} | dict.fromkeys(
    ("buoyancy_center", "strip_diameter", "strip_length"), "length"
)
ADDED = ("added_mass", "added_volume")


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
    _expect_keys("the model", given, MODEL_KEYS)
    units = FileUnits(given)
    builder = ModelBuilder(
        name=given.get("name", "model"),
        gravity=units("gravity", given.get("gravity", (0.0, 0.0, -9.81))),
        nonphysical_inertia=given.get("nonphysical_inertia", "refuse"),
        fluid_density=units("density", given.get("fluid_density", 0.0)),
    )
    added: dict[str, list[np.ndarray]] = {key: [] for key in ADDED}
    kinds: dict[str, list[str]] = {}  # of the degrees of freedom of each joint
    for body in _tables(given, "body"):
        where = f"body {body.get('name')!r}"
        _expect_keys(where, body, BODY_KEYS)
        with naming(where):
            arguments = _arguments_of(where, body, units, folder)
            of_body = _added_of(where, body)
        builder.add_body(**arguments)
        kinds[str(body.get("joint_name", body.get("name")))] = [dof.kind for dof in arguments["joint"].dofs]
        for key in ADDED if arguments["joint"].kind != Fixed.kind else ():
            added[key].append(of_body[key])
    joints = set(kinds)
    for frame in _tables(given, "frame"):
        where = f"frame {frame.get('name')!r}"
        _expect_keys(where, frame, ("name", "body", "placement", "visual", "collision"))
        with naming(where):
            pose = _pose(where, _table(where, frame, "placement"), units)
            visuals, collisions = _visuals(where, frame, units, folder), _collisions(where, frame, units, folder)
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
    for drive in _tables(given, "drive"):
        from .controller_models import with_controller_model  # imports this module

        try:
            builder.add_drive(drive_in_si(with_controller_model(drive, folder), units, kinds))
        except ArgumentError as error:
            raise FileFormatError(f"drive of joint {drive.get('joint')!r}: {error}") from None
    for constraint in _tables(given, "constraint"):
        builder.add_constraint(_constraint(constraint, units, kinds))
    model = builder.build()
    changed = {key: np.array(of_bodies) for key, of_bodies in added.items() if np.any(of_bodies)}
    model = model.replace(**changed) if changed else model
    model = _with_keyframes(model, _tables(given, "keyframe"))
    model = _with_sensors(model, _tables(given, "sensor"))
    return _with_nominal(model, given, folder) if "nominal" in given else model


def _with_keyframes(model: Model, tables: Sequence[Mapping[str, Any]]) -> Model:
    """Return a model with the keyframes in tables, which are always in SI."""
    found: dict[str, Keyframe] = {}
    for table in tables:
        where = f"keyframe {table.get('name')!r}"
        _expect_keys(where, table, ("name", "q", "qd", "inputs"))
        if not isinstance(table.get("name"), str):
            raise FileFormatError(f"{where}: expected a name, a string")
        q, qd = (
            numbers(table.get(key, ()), f"{where}: {key}", (size,)) for key, size in (("q", model.nq), ("qd", model.nv))
        )
        inputs = {name: float(numbers(x, f"{where}: {name}", ())) for name, x in _table(where, table, "inputs").items()}
        found[table["name"]] = Keyframe(q, qd, inputs)
    return Model(model.description.replaced({"keyframes": found})) if found else model


def _with_sensors(model: Model, tables: Sequence[Mapping[str, Any]]) -> Model:
    """Return a model with the sensors in tables, which are always in SI."""
    found: dict[str, SensorOfFile] = {}
    for table in tables:
        where, fields = f"sensor {table.get('name')!r}", dict(table)
        if not isinstance(name := fields.pop("name", None), str):
            raise FileFormatError(f"{where}: expected a name, a string")
        if table.get("kind") not in UNITS_OF_SENSORS:
            raise FileFormatError(f"{where}: its kind is {table.get('kind')!r}; expected one of {[*UNITS_OF_SENSORS]}")
        for key, known in (("joint", model.joint_names), ("body", model.body_names)):
            if key in table and table[key] not in known:
                raise FileFormatError(f"{where}: the model has no {key} {table[key]!r}; expected one of {[*known]}")
        if "pose" in fields:
            fields["pose"] = _pose(where, _table(where, fields, "pose"), FileUnits({}))
        found[name] = _made(where, SensorOfFile, fields)
    return Model(model.description.replaced({"sensors": found})) if found else model


def _with_nominal(model: Model, given: Mapping[str, Any], folder: Path) -> Model:
    """Return a model with the nominal model in its table, which has the same bodies, joints and drives."""
    table = _table("the model", given, "nominal")
    _expect_keys("nominal", table, [key for key in MODEL_KEYS if key not in NOT_OF_NOMINAL])
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


def _arguments_of(where: str, body: Mapping[str, Any], units: FileUnits, folder: Path) -> dict[str, Any]:
    """Convert the table of a body to the arguments of `add_body`."""
    joint = _joint(where, _table(where, body, "joint"), units)
    immersion = _fields(where, _table(where, body, "immersion"), Immersion)
    kinds = [dof.kind for dof in joint.dofs]

    def table(key: str, kind: type[ExplainsCalls], units_of_fields: Mapping[str, str]) -> dict[str, Any]:
        """Return a table with one value for all dofs, or one for each, in SI."""
        return {
            name: units.of_dofs(f"{key}: {name}", units_of_fields[name], value, kinds)
            if name in units_of_fields
            else value
            for name, value in _fields(where, _table(where, body, key), kind).items()
        }

    return {
        "name": body.get("name"),
        "parent": body.get("parent"),
        "joint": joint,
        "placement": _pose(where, _table(where, body, "placement"), units),
        "inertia": Inertia(
            units("mass", body.get("mass", 0.0)),
            cg=units("length", body.get("cg", (0.0, 0.0, 0.0))),
            inertia=units("inertia", body.get("inertia", (0.0, 0.0, 0.0))),
        ),
        "joint_name": body.get("joint_name"),
        "rotor_inertia": units("inertia", body.get("rotor_inertia", 0.0)),
        "gear_ratio": units.of_dofs("gear_ratio", "1 or rad/m", body["gear_ratio"], kinds)
        if "gear_ratio" in body
        else 1.0,
        "passive": _made(where, PassiveForces, table("passive", PassiveForces, PASSIVE_UNITS)),
        "immersion": _immersion(where, immersion, units) if immersion else None,
        "limits": _made(where, JointLimits, table("limits", JointLimits, LIMIT_UNITS)),
        "visuals": _visuals(where, body, units, folder),
        "collisions": _collisions(where, body, units, folder),
    }


def _added_of(where: str, body: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Added masses (6, 6) of a body. In a file they refer to the body's frame, and not to the immersion's frame."""
    given = {key: value for key, value in _table(where, body, "immersion").items() if key in ADDED}
    if given and _table(where, body, "joint").get("type") == Fixed.kind:
        raise FileFormatError(
            f"{where}: immersion has {list(given)}, but the joint is fixed; expected added masses on moving bodies only"
        )
    immersion = _made(where, Immersion, given)
    return {key: getattr(immersion, key) for key in ADDED}


def _expect_keys(where: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        meant = did_you_mean(unknown[0], known)
        raise FileFormatError(f"{where} has the unknown key {unknown[0]!r}; expected {', '.join(known)}{meant}")


def _tables(given: Mapping[str, Any], key: str) -> list[Any]:
    tables = given.get(key, [])
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise FileFormatError(f"{key} is {excerpt(tables)}; expected a list of tables, each written as [[{key}]]")
    return tables


def _table(where: str, given: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = given.get(key, {})
    if not isinstance(table, dict):
        raise FileFormatError(f"{where}: {key} is {excerpt(table)}; expected a table such as {key} = {{ ... }}")
    return table


def _fields(where: str, given: Mapping[str, Any], kind: type[ExplainsCalls]) -> dict[str, Any]:
    """Return the table of an object with the present names of its fields."""
    try:
        return with_present_names(kind, given)
    except ValueError as error:
        raise FileFormatError(f"{where}: {error}") from None


def _made(where: str, kind: type[Part], given: Mapping[str, Any]) -> Part:
    """Construct a dataclass from a table of its fields."""
    known = dataclasses.fields(kind)  # type: ignore[arg-type]
    _expect_keys(f"{where}: {kind.__name__}", given, [field.name for field in known])
    missing = [field.name for field in known if _is_required(field) and field.name not in given]
    if missing:
        raise FileFormatError(f"{where}: required keys of {kind.__name__} are missing: {', '.join(missing)}")
    try:
        return kind(**given)
    except TypeError as error:  # a value of a wrong type, such as a list as the shape of a visual
        raise FileFormatError(f"{where}: {kind.__name__}: {error}") from None


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _refuse_kind(where: str, given: Mapping[str, Any]) -> None:
    """Raise a FileFormatError for the former name of the key `type`."""
    if "kind" in given:
        raise FileFormatError(f"{where}: the key 'kind' is now called 'type'; found kind = {excerpt(given['kind'])}")


def _joint(where: str, given: Mapping[str, Any], units: FileUnits) -> AnyJoint:
    given = dict(given)
    if "pitch" in given:
        given["pitch"] = units.of_dofs("pitch", "m/rad", given["pitch"], ["screw"])
    _refuse_kind(where, given)
    kind = given.pop("type", None)
    if kind not in KINDS:
        found = "the type of the joint is missing" if kind is None else f"the type of the joint is {kind!r}"
        raise FileFormatError(f"{where}: {found}; expected joint = {{ type = ... }} with one of {', '.join(KINDS)}")
    if kind == Composite.kind:
        return _made(where, Composite, {"joints": [_joint(where, part, units) for part in given.get("joints", [])]})
    return _made(where, KINDS[kind], given)


def _constraint(given: Mapping[str, Any], units: FileUnits, kinds: Mapping[str, Sequence[str]]) -> Constraint:
    """Convert the table of a constraint. `kinds` are the kinds of the degrees of freedom of each joint."""
    fields = dict(given)
    where = f"constraint {fields.get('name')!r}"
    _refuse_kind(where, fields)
    kind = fields.pop("type", None)
    if kind not in CONSTRAINT_KINDS:
        found = "the type is missing" if kind is None else f"the type is {kind!r}"
        raise FileFormatError(f"{where}: {found}; expected one of {', '.join(CONSTRAINT_KINDS)}")
    fields = _fields(where, fields, CONSTRAINT_KINDS[kind])
    if issubclass(CONSTRAINT_KINDS[kind], BodyConstraint):
        fields = {"frame_a": None, "frame_b": None, **fields}
    for key in ("point_a", "point_b", "length"):
        if key in fields:
            fields[key] = units("length", fields[key])
    own, other = (kinds.get(str(fields.get(key)), ["revolute"]) for key in ("joint", "other"))
    if "offset" in fields:
        fields["offset"] = units.of_dofs("offset", "rad or m", fields["offset"], own[:1])
    if "ratio" in fields:
        of_other = "m" if other[:1] == ["prismatic"] else "rad"
        fields["ratio"] = units.of_dofs("ratio", f"rad/{of_other} or m/{of_other}", fields["ratio"], own[:1])
    for key, unit in COMPLIANCE_UNITS.items():
        if key in fields:
            fields[key] = units.of_dofs(key, unit, fields[key], ["revolute"])
    for key in ("pose_a", "pose_b"):
        if key in fields:
            fields[key] = _pose(f"{where}: {key}", _table(where, fields, key), units)
    return _made(where, CONSTRAINT_KINDS[kind], fields)


def _pose(where: str, given: Mapping[str, Any], units: FileUnits) -> Pose:
    _expect_keys(f"{where}: placement", given, ("translation", "rotation"))
    return Pose(units("length", given.get("translation", (0.0, 0.0, 0.0))), given.get("rotation"))


def _immersion(where: str, given: Mapping[str, Any], units: FileUnits) -> Immersion:
    matrices = [key for key in (*ADDED, "linear_damping", "quadratic_damping") if key in given]
    if units.units is not None and matrices:
        raise FileFormatError(
            f"{where}: immersion has {', '.join(matrices)}, but the file has other units than SI, and rbchain does not "
            "convert these matrices; expected none of them. Write the file in SI"
        )
    fields = {key: value for key, value in given.items() if key not in ADDED}
    for key, dimension in IMMERSION_MEASURES.items():
        if key in fields:
            fields[key] = units(dimension, fields[key])
    if "pose" in fields:
        fields["pose"] = _pose(where, _table(where, fields, "pose"), units)
    return _made(where, Immersion, fields)


def _visuals(where: str, given: Mapping[str, Any], units: FileUnits, folder: Path) -> list[Visual]:
    keys = ("shape", "size", "placement", "color", "file")
    return [_made(where, Visual, fields) for fields in _shapes(where, given, "visual", keys, units, folder)]


def _collisions(where: str, given: Mapping[str, Any], units: FileUnits, folder: Path) -> list[CollisionShape]:
    keys = ("shape", "size", "placement", "points", "touches_ground", "file")
    return [_made(where, CollisionShape, fields) for fields in _shapes(where, given, "collision", keys, units, folder)]


def _shapes(
    where: str, given: Mapping[str, Any], key: str, keys: tuple[str, ...], units: FileUnits, folder: Path
) -> list[dict[str, Any]]:
    """Return the arguments for the shapes in the tables of a body with this key, in SI units."""
    found = []
    for table in _tables(given, key):
        _expect_keys(f"{where}: {key}", table, keys)
        fields = dict(table)
        pose = _pose(where, _table(where, fields, "placement"), units)
        fields.pop("placement", None)
        if fields.get("shape") != "mesh" and "size" in fields:  # the size of a mesh consists of factors
            fields["size"] = units("length", fields["size"])
        if "points" in fields:
            fields["points"] = units("length", fields["points"])
        if isinstance(fields.get("file"), str) and fields["file"]:
            fields["file"] = str(folder / fields["file"])
        found.append({**fields, "pose": pose})
    return found
