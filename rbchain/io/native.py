"""rbchain's own format, TOML: everything that a model is, in words and numbers that people can read and change.

    format = "rbchain 1"
    name = "arm"
    gravity = [0, 0, -9.81]
    fluid_density = 1000.0          # left out in air
    units = "mm-kg-s"               # left out in SI; of lengths, masses, inertias, gravity, volumes, densities

    [[body]]
    name = "upper"
    parent = "base"                 # left out on the world
    joint = { kind = "revolute", axis = [0, 0, 1] }
    placement = { translation = [0.1, 0, 0], rotation = [0, 0, 0, 1] }
    mass = 2.0
    cg = [0.1, 0, 0]
    inertia = [0.01, 0.02, 0.02]    # or six: xx xy xz yy yz zz
    passive = { damping = 0.1 }     # the fields of PassiveForces
    immersion = { volume = 0.002 }  # the fields of Immersion; added masses about the body's origin
    limits = { lower = -1, upper = 1, velocity = 2, effort = 50 }
    visual = [{ shape = "box", size = [0.2, 0.1, 0.1], placement = { translation = [0.1, 0, 0] } }]

    [[drive]]                       # what motors do: PID, PrescribedPosition and so on, and its fields
    kind = "PID"
    joint = "upper"
    reference = { signal = "sines", amplitude = 0.3, angular_frequency = 2.0 }
    kp = 20.0

    [[frame]]                       # fixed to a body, or to the world
    name = "tool"
    body = "upper"

A measurement may also have a unit of its own, "5 mm". Whatever is written is read again to the last bit.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..actions.tables import DRIVES, action_of, table_of_drive
from ..builder import ModelBuilder
from ..chain import Model
from ..errors import FileFormatError, ModelError, StateError
from ..model.description import Description
from ..model.immersion import Immersion
from ..model.inertia import Inertia
from ..model.joint import JOINTS, AnyJoint, Composite, Fixed, Planar, Prismatic, Revolute, Screw, Universal
from ..model.limits import LIMITS, JointLimits
from ..model.passive import PASSIVE_FIELDS, PassiveForces
from ..model.pose import Pose
from ..model.units import Units
from ..model.visual import Visual

Part = TypeVar("Part")

FORMAT = "rbchain 1"
KINDS: dict[str, Callable[..., AnyJoint]] = {joint.kind: joint for joint in JOINTS}
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
    "frame",
)
BODY_KEYS = (
    *("name", "parent", "joint", "joint_name", "placement", "mass", "cg", "inertia"),
    *("rotor_inertia", "gear_ratio", "passive", "immersion", "limits", "visual"),
)
#: Fields of an Immersion that say where something is, or how much: the others stay in SI whatever the units.
IMMERSION_MEASURES = {"volume": "volume", "center": "length", "strip_diameter": "length", "strip_length": "length"}
ADDED = ("added_mass", "added_volume")


def load_toml(path: Path, with_drives: bool = True) -> Model:
    """The model in a file of rbchain's own. Raises FileFormatError, or ModelError if the mechanism cannot exist."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # also of a number of too many digits, or of very deep nesting
        raise FileFormatError(f"{path}: not TOML: {error}") from None
    if given.get("format") != FORMAT:
        raise FileFormatError(f"{path}: format is {given.get('format')!r}; expected {FORMAT!r}")
    try:
        return _model(given if with_drives else {**given, "drive": []}, path.parent)
    except (FileFormatError, ModelError) as error:
        raise type(error)(f"{path}: {error}") from None


def _model(given: Mapping[str, Any], folder: Path) -> Model:
    _expect_keys("the model", given, MODEL_KEYS)
    units = _Measures(given)
    builder = ModelBuilder(
        name=given.get("name", "model"),
        gravity=units("gravity", given.get("gravity", (0.0, 0.0, -9.81))),
        nonphysical_inertia=given.get("nonphysical_inertia", "refuse"),
        fluid_density=units("density", given.get("fluid_density", 0.0)),
    )
    added: dict[str, list[np.ndarray]] = {key: [] for key in ADDED}
    for body in _tables(given, "body"):
        where = f"body {body.get('name')!r}"
        _expect_keys(where, body, BODY_KEYS)
        with _naming(where):
            arguments = _arguments_of(where, body, units, folder)
            of_body = _added_of(where, body)
        builder.add_body(**arguments)
        for key in ADDED if arguments["joint"].kind != Fixed.kind else ():
            added[key].append(of_body[key])
    for frame in _tables(given, "frame"):
        where = f"frame {frame.get('name')!r}"
        _expect_keys(where, frame, ("name", "body", "placement", "visual"))
        with _naming(where):
            pose = _pose(where, _table(where, frame, "placement"), units)
            looks = _visuals(where, frame, units, folder)
        builder.add_body(frame.get("name"), parent=frame.get("body"), joint=Fixed(), placement=pose, visuals=looks)
    for drive in _tables(given, "drive"):
        from .controller_models import with_controller_model  # which reads files of this kind itself

        try:
            builder.add_drive(action_of(with_controller_model(drive, folder), DRIVES))
        except StateError as error:
            raise FileFormatError(f"drive of joint {drive.get('joint')!r}: {error}") from None
    model = builder.build()
    changed = {key: np.array(of_bodies) for key, of_bodies in added.items() if np.any(of_bodies)}
    return model.vary(**changed) if changed else model


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Begin the message of a ModelError with what it is about."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None


def _arguments_of(where: str, body: Mapping[str, Any], units: _Measures, folder: Path) -> dict[str, Any]:
    """The arguments of `add_body` from the table of a body."""
    immersion = _table(where, body, "immersion")
    return {
        "name": body.get("name"),
        "parent": body.get("parent"),
        "joint": _joint(where, _table(where, body, "joint")),
        "placement": _pose(where, _table(where, body, "placement"), units),
        "inertia": Inertia(
            units("mass", body.get("mass", 0.0)),
            units("length", body.get("cg", (0.0, 0.0, 0.0))),
            units("inertia", body.get("inertia", (0.0, 0.0, 0.0))),
        ),
        "joint_name": body.get("joint_name"),
        "rotor_inertia": body.get("rotor_inertia", 0.0),
        "gear_ratio": body.get("gear_ratio", 1.0),
        "passive": _made(where, PassiveForces, _table(where, body, "passive")),
        "immersion": _immersion(where, immersion, units) if immersion else None,
        "limits": _made(where, JointLimits, _table(where, body, "limits")),
        "visuals": _visuals(where, body, units, folder),
    }


def _added_of(where: str, body: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Added masses (6, 6) of a body: about its origin already, unlike those of an Immersion, which are in its frame."""
    given = {key: value for key, value in _table(where, body, "immersion").items() if key in ADDED}
    if given and _table(where, body, "joint").get("kind") == Fixed.kind:
        raise FileFormatError(f"{where}: a fixed joint, and {list(given)}; expected added masses of bodies that move")
    immersion = _made(where, Immersion, given)
    return {key: getattr(immersion, key) for key in ADDED}


class _Measures:
    """Measurements in the file's units, in SI; without units and strings numbers stay as they are, to the bit."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        name, degrees = given.get("units", "SI"), given.get("degrees", False)
        self.units = None if name == "SI" and not degrees else Units(name, degrees)

    def __call__(self, dimension: str, value: Any) -> Any:
        if self.units is None and not _has_text(value):
            return value
        return (self.units or Units()).quantity(value, dimension)


def _has_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and any(_has_text(part) for part in value))


def _expect_keys(where: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise FileFormatError(f"{where} has {unknown}; expected some of {list(known)}")


def _tables(given: Mapping[str, Any], key: str) -> list[Any]:
    tables = given.get(key, [])
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise FileFormatError(f"{key} is {tables!r}; expected tables, [[{key}]]")
    return tables


def _table(where: str, given: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = given.get(key, {})
    if not isinstance(table, dict):
        raise FileFormatError(f"{where}: {key} is {table!r}; expected a table")
    return table


def _made(where: str, kind: Callable[..., Part], given: Mapping[str, Any]) -> Part:
    """A value of a class from a table of its fields."""
    try:
        return kind(**given)
    except TypeError as error:
        raise FileFormatError(f"{where}: {error}") from None


def _joint(where: str, given: Mapping[str, Any]) -> AnyJoint:
    given = dict(given)
    kind = given.pop("kind", None)
    if kind not in KINDS:
        raise FileFormatError(f"{where}: the joint's kind is {kind!r}; expected one of {', '.join(KINDS)}")
    if kind == Composite.kind:
        return _made(where, Composite, {"joints": [_joint(where, part) for part in given.get("joints", [])]})
    return _made(where, KINDS[kind], given)


def _pose(where: str, given: Mapping[str, Any], units: _Measures) -> Pose:
    _expect_keys(f"{where}: placement", given, ("translation", "rotation"))
    return Pose(units("length", given.get("translation", (0.0, 0.0, 0.0))), given.get("rotation"))


def _immersion(where: str, given: Mapping[str, Any], units: _Measures) -> Immersion:
    fields = {key: value for key, value in given.items() if key not in ADDED}
    for key, dimension in IMMERSION_MEASURES.items():
        if key in fields:
            fields[key] = units(dimension, fields[key])
    if "frame" in fields:
        fields["frame"] = _pose(where, _table(where, fields, "frame"), units)
    return _made(where, Immersion, fields)


def _visuals(where: str, given: Mapping[str, Any], units: _Measures, folder: Path) -> list[Visual]:
    found = []
    for visual in _tables(given, "visual"):
        _expect_keys(f"{where}: visual", visual, ("shape", "size", "placement", "colour", "file"))
        fields = dict(visual)
        pose = _pose(where, _table(where, fields, "placement"), units)
        fields.pop("placement", None)
        if fields.get("shape") != "mesh" and "size" in fields:  # of a mesh these are factors
            fields["size"] = units("length", fields["size"])
        if isinstance(fields.get("file"), str) and fields["file"]:
            fields["file"] = str(folder / fields["file"])
        found.append(_made(where, Visual, {**fields, "pose": pose}))
    return found


def toml_of(model: Model) -> str:
    """The text of the file of a model of one sample."""
    import tomli_w

    description = model.description
    given = {"format": FORMAT, "name": description.name, "gravity": description.gravity.tolist()}
    if description.fluid_density:
        given["fluid_density"] = float(description.fluid_density)
    if description.nonphysical_inertia != "refuse":
        given["nonphysical_inertia"] = description.nonphysical_inertia
    given["body"] = [_body_of(description, i, first) for i, first in enumerate(model.velocity_index)]
    if description.drives:
        given["drive"] = [table_of_drive(drive) for drive in description.drives]
    frames = description.frames.items()
    if frames:
        given["frame"] = [
            {"name": name}
            | ({"body": description.body_names[frame.body]} if frame.body >= 0 else {})
            | _placement_of(frame.pose.translation, frame.pose.rotation)
            | _visuals_of(model.visuals.get(name, ()))
            for name, frame in frames
        ]
    return tomli_w.dumps(given)


def _placement_of(translation: np.ndarray, rotation: np.ndarray, key: str = "placement") -> dict[str, Any]:
    found = {}
    if translation.any():
        found["translation"] = translation.tolist()
    if (rotation != np.eye(3)).any():
        found["rotation"] = rotation.tolist()
    return {key: found} if found else {}


def _body_of(description: Description, i: int, first: int) -> dict[str, Any]:
    """The table of one body."""
    dofs = slice(first, first + description.dof_counts[i])
    body: dict[str, Any] = {"name": description.body_names[i]}
    if description.parent[i] >= 0:
        body["parent"] = description.body_names[description.parent[i]]
    if description.joint_names[i] != body["name"]:
        body["joint_name"] = description.joint_names[i]
    body["joint"] = _joint_of(description, description.joint_types[i], dofs)
    body |= _placement_of(description.placement_translation[i], description.placement_rotation[i])
    xx, xy, xz, yy, yz, zz = description.inertia[i][np.triu_indices(3)].tolist()
    measures: dict[str, Any] = {"mass": float(description.mass[i]), "cg": description.cg[i].tolist()}
    measures["inertia"] = [xx, xy, xz, yy, yz, zz] if any((xy, xz, yz)) else [xx, yy, zz]
    body |= {key: value for key, value in measures.items() if np.any(value)}
    for key, usual in (("rotor_inertia", 0.0), ("gear_ratio", 1.0)):
        body |= _of_dofs(key, getattr(description, key)[dofs], usual)
    passive: dict[str, Any] = {}
    for key in PASSIVE_FIELDS:
        passive |= _of_dofs(key, getattr(description, key)[dofs], getattr(PassiveForces, key))
    tables: dict[str, dict[str, Any]] = {"passive": passive, "immersion": _immersion_of(description, i), "limits": {}}
    for column, key in enumerate(LIMITS):
        tables["limits"] |= _of_dofs(key, description.limits[dofs, column], getattr(JointLimits, key))
    return (
        body
        | {key: table for key, table in tables.items() if table}
        | _visuals_of(description.visuals.get(body["name"], ()))
    )


def _visuals_of(visuals: Sequence[Visual]) -> dict[str, Any]:
    """The tables of what a body looks like."""
    tables = []
    for visual in visuals:
        table = {"shape": visual.shape, "size": list(visual.size)}
        table |= {"colour": list(visual.colour)} if visual.colour is not None else {}
        table |= {"file": str(Path(visual.file).resolve())} if visual.file else {}
        tables.append(table | _placement_of(visual.pose.translation, visual.pose.rotation))
    return {"visual": tables} if tables else {}


def _of_dofs(key: str, values: np.ndarray, usual: float) -> dict[str, Any]:
    """A number for each degree of freedom, or one for all, or nothing where it is the usual one."""
    if (values == usual).all():
        return {}
    return {key: float(values[0]) if (values == values[0]).all() else values.tolist()}


def _joint_of(description: Description, kind: str, dofs: slice) -> dict[str, Any]:
    axes, pitches = description.axis[dofs], description.pitch[dofs]
    if kind in (Revolute.kind, Prismatic.kind):
        return {"kind": kind, "axis": axes[0].tolist()}
    if kind == Screw.kind:
        return {"kind": kind, "axis": axes[0].tolist(), "pitch": float(pitches[0])}
    if kind == Planar.kind:
        return {"kind": kind, "axis": axes[2].tolist()}
    if kind == Universal.kind:
        return {"kind": kind, "first": axes[0].tolist(), "second": axes[1].tolist()}
    if kind == Composite.kind:
        parts = enumerate(description.dof_types[dofs])
        return {
            "kind": kind,
            "joints": [
                {"kind": part, "axis": axes[j].tolist()} | ({"pitch": float(pitches[j])} if part == Screw.kind else {})
                for j, part in parts
            ],
        }
    return {"kind": kind}


def _immersion_of(description: Description, i: int) -> dict[str, Any]:
    found = {}
    for key, field in (("center", "buoyancy_center"), *((k, k) for k in ("volume", "strip_diameter", "strip_length"))):
        value = getattr(description, field)[i]
        if np.any(value):
            found[key] = value.tolist()
    for key in ("strip_drag", *ADDED, "linear_damping", "quadratic_damping"):
        value = getattr(description, key)[i]
        if np.any(value):
            diagonal = value.ndim == 2 and (value == np.diag(np.diag(value))).all()
            found[key] = np.diag(value).tolist() if diagonal else value.tolist()
    return found | _placement_of(description.drag_translation[i], description.drag_rotation[i], "frame")
