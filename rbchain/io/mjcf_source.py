"""Source: an MJCF file compiled by MuJoCo (the `mjcf` extra)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..common.lock_free import cached_property
from ..errors import FileFormatError, missing_package
from ..model.pose import rotation_matrix

try:
    import mujoco
except ImportError:
    mujoco = None

UNLIMITED = 1e10  # mjMAXVAL: MuJoCo ends a simulation at positions beyond it
MIN_VALUE = 1e-15  # mjMINVAL: MuJoCo's limit for masses and moments of inertia


class Source:
    """The compiled model of an MJCF file, with names for messages; `model` is MuJoCo's MjModel.

    Raises FileNotFoundError if the file does not exist, and FileFormatError if MuJoCo is not installed or cannot
    compile the file.
    """

    def __init__(self, path: Path) -> None:
        if mujoco is None:
            raise FileFormatError(missing_package(f"{path}: MJCF files need the package mujoco", "mjcf"))
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file")
        self.path = path
        #: Warnings of MuJoCo, which otherwise go to a file MUJOCO_LOG.TXT in the current folder.
        self.warnings: list[str] = []
        others = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(self.warnings.append)
        try:
            self.model: Any = mujoco.MjModel.from_xml_path(str(path))
            self.model.names.decode()
        except UnicodeDecodeError:
            raise FileFormatError(f"{path}: a name is not encoded in UTF-8; save the file in UTF-8") from None
        except (ValueError, mujoco.FatalError) as error:
            raise FileFormatError(f"{path}: MuJoCo cannot compile the file: {' '.join(str(error).split())}") from None
        finally:
            mujoco.set_mju_user_warning(others)

    @cached_property
    def moved_meshes(self) -> frozenset[str]:
        """Names of the meshes whose vertices are displaced from the file, by `refpos` and `refquat`."""
        meshes = mujoco.MjSpec.from_file(str(self.path)).meshes
        moved = (any(mesh.refpos) or any(mesh.refquat[1:]) for mesh in meshes)
        return frozenset(mesh.name for mesh, is_moved in zip(meshes, moved, strict=True) if is_moved)

    def kind(self, enum: str, name: str) -> int:
        """Value of a name in a MuJoCo enumeration; -1 if the installed version of MuJoCo does not have it."""
        return int(getattr(getattr(mujoco, f"mjt{enum}", None), name, -1))

    def field(self, name: str, *shape: int) -> np.ndarray:
        """A field of the model; zeros of this shape if the installed version of MuJoCo does not have it."""
        found = getattr(self.model, name, None)
        return np.zeros(shape) if found is None else np.array(found, dtype=float)

    def disabled(self, *features: str) -> bool:
        """Whether the `<flag>` element of the file disables one of these features."""
        bits = [getattr(mujoco.mjtDisableBit, f"mjDSBL_{feature.upper()}", 0) for feature in features]
        return any(self.model.opt.disableflags & int(bit) for bit in bits)

    def enabled(self, feature: str) -> bool:
        """Whether the `<flag>` element of the file enables a feature."""
        return bool(self.model.opt.enableflags & int(getattr(mujoco.mjtEnableBit, f"mjENBL_{feature.upper()}", 0)))

    def name(self, kind: str, i: int) -> str:
        """Name of an element of a kind such as "body"; an empty string if the element has no name."""
        return mujoco.mj_id2name(self.model, self.kind("Obj", f"mjOBJ_{kind.upper()}"), i) or ""

    def label(self, kind: str, i: int) -> str:
        """Label of an element for messages: its name in quotes, or its number, and for a joint its body."""
        name = self.name(kind, i)
        if name or kind != "joint":
            return repr(name) if name else f"number {i}"
        body = self.model.jnt_bodyid[i]
        return f"number {i - self.model.body_jntadr[body]} of body {self.label('body', body)}"

    def joints(self, body: int) -> range:
        """The joints of a body."""
        first = self.model.body_jntadr[body]
        return range(first, first + self.model.body_jntnum[body])

    def joint_type(self, joint: int) -> str:
        """One of "free", "ball", "slide" and "hinge"."""
        return mujoco.mjtJoint(self.model.jnt_type[joint]).name.removeprefix("mjJNT_").lower()

    def geom_type(self, geom: int) -> str:
        """The shape of a geom, such as "box" or "mesh"."""
        return mujoco.mjtGeom(self.model.geom_type[geom]).name.removeprefix("mjGEOM_").lower()

    def equality_type(self, i: int) -> str:
        """The kind of an equality constraint, such as "weld"."""
        return mujoco.mjtEq(self.model.eq_type[i]).name.removeprefix("mjEQ_").lower()

    def dofs(self, joint: int) -> slice:
        """Entries of a joint in arrays of degrees of freedom."""
        first = self.model.jnt_dofadr[joint]
        return slice(first, first + {"free": 6, "ball": 3}.get(self.joint_type(joint), 1))


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrix of a MuJoCo quaternion [w, x, y, z]."""
    w, x, y, z = quaternion
    return rotation_matrix([x, y, z, w])
