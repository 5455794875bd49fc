"""Bodies and constraints in a file of rbchain's own format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..common.calls import ExplainsCalls
from ..errors import FileFormatError
from ..model.collision_shape import CollisionShape
from ..model.constraints import KINDS as CONSTRAINT_KINDS, Constraint
from ..model.declared_constraint import BodyConstraint
from ..model.immersion import Immersion
from ..model.inertia import Inertia
from ..model.joint import JOINTS, AnyJoint, Composite, Fixed
from ..model.limits import LIMIT_UNITS, JointLimits
from ..model.passive import PASSIVE_UNITS, PassiveForces
from ..model.pose import Pose
from ..model.visual import Visual
from .file_units import FileUnits
from .native_tables import expect_keys, fields_of, made_of, refuse_kind, table_of, tables_of

KINDS: dict[str, type[AnyJoint]] = {joint.kind: joint for joint in JOINTS}
#: SI units of the numbers of compliant constraints.
COMPLIANCE_UNITS = {"compliance": "m/N", "angular_compliance": "rad/(N m)", "relaxation_time": "s"}
#: Fields of an Immersion that are converted to SI, and their dimensions. The matrices are always in SI.
IMMERSION_MEASURES = {"volume": "volume"} | dict.fromkeys(
    ("buoyancy_center", "strip_diameter", "strip_length"), "length"
)
ADDED = ("added_mass", "added_volume")


def arguments_of(where: str, body: Mapping[str, Any], units: FileUnits, folder: Path) -> dict[str, Any]:
    """Convert the table of a body to the arguments of `add_body`."""
    joint = joint_of(where, table_of(where, body, "joint"), units)
    immersion = fields_of(where, table_of(where, body, "immersion"), Immersion)
    kinds = [dof.kind for dof in joint.dofs]

    def table(key: str, kind: type[ExplainsCalls], units_of_fields: Mapping[str, str]) -> dict[str, Any]:
        """Return a table with one value for all dofs, or one for each, in SI."""
        return {
            name: units.of_dofs(f"{key}: {name}", units_of_fields[name], value, kinds)
            if name in units_of_fields
            else value
            for name, value in fields_of(where, table_of(where, body, key), kind).items()
        }

    return {
        "name": body.get("name"),
        "parent": body.get("parent"),
        "joint": joint,
        "placement": pose_of(where, table_of(where, body, "placement"), units),
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
        "passive": made_of(where, PassiveForces, table("passive", PassiveForces, PASSIVE_UNITS)),
        "immersion": _immersion(where, immersion, units) if immersion else None,
        "limits": made_of(where, JointLimits, table("limits", JointLimits, LIMIT_UNITS)),
        "visuals": visuals_of(where, body, units, folder),
        "collisions": collisions_of(where, body, units, folder),
    }


def added_of(where: str, body: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Added masses (6, 6) of a body. In a file they refer to the body's frame, and not to the immersion's frame."""
    given = {key: value for key, value in table_of(where, body, "immersion").items() if key in ADDED}
    if given and table_of(where, body, "joint").get("type") == Fixed.kind:
        raise FileFormatError(
            f"{where}: immersion has {list(given)}, but the joint is fixed; expected added masses on moving bodies only"
        )
    immersion = made_of(where, Immersion, given)
    return {key: getattr(immersion, key) for key in ADDED}


def joint_of(where: str, given: Mapping[str, Any], units: FileUnits) -> AnyJoint:
    """Convert the table of a joint."""
    given = dict(given)
    if "pitch" in given:
        given["pitch"] = units.of_dofs("pitch", "m/rad", given["pitch"], ["screw"])
    refuse_kind(where, given)
    kind = given.pop("type", None)
    if kind not in KINDS:
        found = "the type of the joint is missing" if kind is None else f"the type of the joint is {kind!r}"
        raise FileFormatError(f"{where}: {found}; expected joint = {{ type = ... }} with one of {', '.join(KINDS)}")
    if kind == Composite.kind:
        return made_of(where, Composite, {"joints": [joint_of(where, part, units) for part in given.get("joints", [])]})
    return made_of(where, KINDS[kind], given)


def constraint_of(given: Mapping[str, Any], units: FileUnits, kinds: Mapping[str, Sequence[str]]) -> Constraint:
    """Convert the table of a constraint. `kinds` are the kinds of the degrees of freedom of each joint."""
    fields = dict(given)
    where = f"constraint {fields.get('name')!r}"
    refuse_kind(where, fields)
    kind = fields.pop("type", None)
    if kind not in CONSTRAINT_KINDS:
        found = "the type is missing" if kind is None else f"the type is {kind!r}"
        raise FileFormatError(f"{where}: {found}; expected one of {', '.join(CONSTRAINT_KINDS)}")
    fields = fields_of(where, fields, CONSTRAINT_KINDS[kind])
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
            fields[key] = pose_of(f"{where}: {key}", table_of(where, fields, key), units)
    return made_of(where, CONSTRAINT_KINDS[kind], fields)


def pose_of(where: str, given: Mapping[str, Any], units: FileUnits) -> Pose:
    """Convert the table of a placement."""
    expect_keys(f"{where}: placement", given, ("translation", "rotation"))
    return Pose(units("length", given.get("translation", (0.0, 0.0, 0.0))), given.get("rotation"))


def _immersion(where: str, given: Mapping[str, Any], units: FileUnits) -> Immersion:
    matrices = [key for key in (*ADDED, "linear_damping", "quadratic_damping") if key in given]
    if units.units is not None and matrices:
        raise FileFormatError(
            f"{where}: immersion has {', '.join(matrices)}, but the file has other units than SI, and rbchain does not "
            "convert these matrices; write the file in SI units"
        )
    fields = {key: value for key, value in given.items() if key not in ADDED}
    for key, dimension in IMMERSION_MEASURES.items():
        if key in fields:
            fields[key] = units(dimension, fields[key])
    if "pose" in fields:
        fields["pose"] = pose_of(where, table_of(where, fields, "pose"), units)
    return made_of(where, Immersion, fields)


def visuals_of(where: str, given: Mapping[str, Any], units: FileUnits, folder: Path) -> list[Visual]:
    """Convert the tables of the visual shapes of a body."""
    keys = ("shape", "size", "placement", "color", "file")
    return [made_of(where, Visual, fields) for fields in _shapes(where, given, "visual", keys, units, folder)]


def collisions_of(where: str, given: Mapping[str, Any], units: FileUnits, folder: Path) -> list[CollisionShape]:
    """Convert the tables of the collision shapes of a body."""
    keys = ("shape", "size", "placement", "points", "touches_ground", "file")
    return [
        made_of(where, CollisionShape, fields) for fields in _shapes(where, given, "collision", keys, units, folder)
    ]


def _shapes(
    where: str, given: Mapping[str, Any], key: str, keys: tuple[str, ...], units: FileUnits, folder: Path
) -> list[dict[str, Any]]:
    """Return the arguments for the shapes in the tables of a body with this key, in SI units."""
    found = []
    for table in tables_of(given, key):
        expect_keys(f"{where}: {key}", table, keys)
        fields = dict(table)
        pose = pose_of(where, table_of(where, fields, "placement"), units)
        fields.pop("placement", None)
        if fields.get("shape") != "mesh" and "size" in fields:  # the size of a mesh consists of factors
            fields["size"] = units("length", fields["size"])
        if "points" in fields:
            fields["points"] = units("length", fields["points"])
        if isinstance(fields.get("file"), str) and fields["file"]:
            fields["file"] = str(folder / fields["file"])
        found.append({**fields, "pose": pose})
    return found
