"""Writer for rbchain's own format; `native` describes the format and reads it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from ..acting.tables import table_of_drive
from ..facade.model import Model
from ..model.collision_shape import CollisionShape
from ..model.constraint_fields import constraints_of
from ..model.constraints import Constraint
from ..model.description import Description
from ..model.joint import Composite, Planar, Prismatic, Revolute, Screw, Universal
from ..model.keyframe import Keyframe
from ..model.limits import LIMITS, JointLimits
from ..model.passive import PASSIVE_FIELDS, PassiveForces
from ..model.pose import Pose
from ..model.sensor_of_file import SensorOfFile
from ..model.visual import Visual
from .native import FORMAT
from .native_bodies import ADDED


def toml_of(model: Model) -> str:
    """Return the text of the file of a model without batch axes."""
    description = model.description
    given = {"format": FORMAT} | _table_of(model)
    if description.drives:
        given["drive"] = [table_of_drive(drive) for drive in description.drives]
    if description.keyframes:
        given["keyframe"] = [_keyframe_of(name, key) for name, key in description.keyframes.items()]
    if description.sensors:
        given["sensor"] = [_sensor_of(name, sensor) for name, sensor in description.sensors.items()]
    if description.nominal is not None:
        # the reader takes these from the model if the table of the nominal model does not have them
        defaults = {"fluid_density": 0.0, "nonphysical_inertia": "refuse"}
        given["nominal"] = {key: value for key, value in defaults.items() if key in given} | _table_of(model.nominal)
    return tomli_w.dumps(given)


def _keyframe_of(name: str, keyframe: Keyframe) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "q": keyframe.q.tolist(), "qd": keyframe.qd.tolist()}
    return found | {"inputs": dict(keyframe.inputs)} if keyframe.inputs else found


def _sensor_of(name: str, sensor: SensorOfFile) -> dict[str, Any]:
    """Return the table of a sensor, without fields that have their defaults."""
    own = {field.name: getattr(sensor, field.name) for field in dataclasses.fields(sensor) if field.name != "pose"}
    defaults = {field.name: field.default for field in dataclasses.fields(sensor)}
    table = {"name": name} | {key: value for key, value in own.items() if value != defaults[key]}
    return table | _placement_of(sensor.pose.translation, sensor.pose.rotation, "pose")


def _table_of(model: Model) -> dict[str, Any]:
    """Return the table of a model, without its drives and its nominal model."""
    description = model.description
    given: dict[str, Any] = {"name": description.name, "gravity": description.gravity.tolist()}
    if description.fluid_density:
        given["fluid_density"] = float(description.fluid_density)
    if description.nonphysical_inertia != "refuse":
        given["nonphysical_inertia"] = description.nonphysical_inertia
    given["body"] = [_body_of(description, i, first) for i, first in enumerate(model.velocity_index)]
    if description.constraints:
        given["constraint"] = [_constraint_of(constraint) for constraint in constraints_of(description)]
    frames = description.frames.items()
    if frames:
        given["frame"] = [
            {"name": name}
            | ({"body": description.body_names[frame.body]} if frame.body >= 0 else {})
            | _placement_of(frame.pose.translation, frame.pose.rotation)
            | _shapes_of(description, name)
            for name, frame in frames
        ]
    return given


def _constraint_of(constraint: Constraint) -> dict[str, Any]:
    """Return the table of one constraint. The world and an offset of 0 are the defaults."""
    table: dict[str, Any] = {"type": constraint.kind}
    for name in (field.name for field in dataclasses.fields(constraint)):
        value = getattr(constraint, name)
        if isinstance(value, Pose):
            table |= _placement_of(value.translation, value.rotation, name)
        elif value is not None and not (name == "offset" and value == 0.0):
            table[name] = value.tolist() if isinstance(value, np.ndarray) else value
    return table


def _placement_of(translation: np.ndarray, rotation: np.ndarray, key: str = "placement") -> dict[str, Any]:
    found = {}
    if translation.any():
        found["translation"] = translation.tolist()
    if (rotation != np.eye(3)).any():
        found["rotation"] = rotation.tolist()
    return {key: found} if found else {}


def _body_of(description: Description, i: int, first: int) -> dict[str, Any]:
    """Return the table of one body."""
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
    for key, default in (("rotor_inertia", 0.0), ("gear_ratio", 1.0)):
        body |= _of_dofs(key, getattr(description, key)[dofs], default)
    passive: dict[str, Any] = {}
    for key in PASSIVE_FIELDS:
        passive |= _of_dofs(key, getattr(description, key)[dofs], getattr(PassiveForces, key))
    tables: dict[str, dict[str, Any]] = {"passive": passive, "immersion": _immersion_of(description, i), "limits": {}}
    for column, key in enumerate(LIMITS):
        tables["limits"] |= _of_dofs(key, description.limits[dofs, column], getattr(JointLimits, key))
    return body | {key: table for key, table in tables.items() if table} | _shapes_of(description, body["name"])


def _shapes_of(description: Description, name: str) -> dict[str, Any]:
    """Return the tables of the visuals and the collision shapes of a body or a frame."""
    visuals = [
        _shape_of(visual) | ({"color": list(visual.color)} if visual.color is not None else {})
        for visual in description.visuals.get(name, ())
    ]
    collisions = [
        _shape_of(shape)
        | ({"points": shape.points.tolist()} if len(shape.points) else {})
        | ({} if shape.touches_ground else {"touches_ground": False})
        for shape in description.collisions.get(name, ())
    ]
    return {key: tables for key, tables in (("visual", visuals), ("collision", collisions)) if tables}


def _shape_of(shape: Visual | CollisionShape) -> dict[str, Any]:
    """Return the common entries of the tables of visuals and of collision shapes."""
    table: dict[str, Any] = {"shape": shape.shape, "size": list(shape.size)}
    table |= {"file": str(Path(shape.file).resolve())} if shape.file else {}
    return table | _placement_of(shape.pose.translation, shape.pose.rotation)


def _of_dofs(key: str, values: np.ndarray, default: float) -> dict[str, Any]:
    """A number per degree of freedom; a single number if all are equal; nothing if all have the default."""
    if (values == default).all():
        return {}
    return {key: float(values[0]) if (values == values[0]).all() else values.tolist()}


def _joint_of(description: Description, kind: str, dofs: slice) -> dict[str, Any]:
    axes, pitches = description.axis[dofs], description.pitch[dofs]
    if kind in (Revolute.kind, Prismatic.kind):
        return {"type": kind, "axis": axes[0].tolist()}
    if kind == Screw.kind:
        return {"type": kind, "axis": axes[0].tolist(), "pitch": float(pitches[0])}
    if kind == Planar.kind:
        return {"type": kind, "axis": axes[2].tolist()}
    if kind == Universal.kind:
        return {"type": kind, "first": axes[0].tolist(), "second": axes[1].tolist()}
    if kind == Composite.kind:
        parts = enumerate(description.dof_types[dofs])
        return {
            "type": kind,
            "joints": [
                {"type": part, "axis": axes[j].tolist()} | ({"pitch": float(pitches[j])} if part == Screw.kind else {})
                for j, part in parts
            ],
        }
    return {"type": kind}


def _immersion_of(description: Description, i: int) -> dict[str, Any]:
    found = {}
    for key in ("volume", "buoyancy_center", "strip_diameter", "strip_length"):
        value = getattr(description, key)[i]
        if np.any(value):
            found[key] = value.tolist()
    for key in ("strip_drag", *ADDED, "linear_damping", "quadratic_damping"):
        value = getattr(description, key)[i]
        if np.any(value):
            diagonal = value.ndim == 2 and (value == np.diag(np.diag(value))).all()
            found[key] = np.diag(value).tolist() if diagonal else value.tolist()
    return found | _placement_of(description.drag_translation[i], description.drag_rotation[i], "pose")
