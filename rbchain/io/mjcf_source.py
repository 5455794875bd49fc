"""MuJoCo's model of an MJCF, read with MuJoCo's own parser (the extra `mjcf`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileFormatError
from ..model.pose import rotation_matrix

try:
    import mujoco
except ImportError:
    mujoco = None


class Source:
    """The compiled model of a file, with names for messages. Its numbers are attributes of `model`, MuJoCo's MjModel.

    Raises FileNotFoundError, and FileFormatError if MuJoCo is not installed or does not compile the file.
    """

    def __init__(self, path: Path) -> None:
        if mujoco is None:
            raise FileFormatError(f"{path}: MJCF needs MuJoCo's parser; install rbchain[mjcf]")
        if not path.exists():
            raise FileNotFoundError(path)
        try:
            self.model: Any = mujoco.MjModel.from_xml_path(str(path))
            self.model.names.decode()
        except UnicodeDecodeError:
            raise FileFormatError(f"{path}: a name is not UTF-8; expected names in UTF-8") from None
        except (ValueError, mujoco.FatalError) as error:
            raise FileFormatError(f"{path}: {' '.join(str(error).split())}") from None

    def kind(self, enum: str, name: str) -> int:
        """The number of a name in one of MuJoCo's enumerations; -1 if the installed version does not have it."""
        return int(getattr(getattr(mujoco, f"mjt{enum}", None), name, -1))

    def field(self, name: str, *shape: int) -> np.ndarray:
        """A field of the model; zeros of this shape if the installed version does not have it."""
        found = getattr(self.model, name, None)
        return np.zeros(shape) if found is None else np.array(found, dtype=float)

    def disabled(self, *features: str) -> bool:
        """Whether the file's `<flag>` disables one of these features."""
        bits = [getattr(mujoco.mjtDisableBit, f"mjDSBL_{feature.upper()}", 0) for feature in features]
        return any(self.model.opt.disableflags & int(bit) for bit in bits)

    def enabled(self, feature: str) -> bool:
        """Whether the file's `<flag>` enables a feature."""
        return bool(self.model.opt.enableflags & int(getattr(mujoco.mjtEnableBit, f"mjENBL_{feature.upper()}", 0)))

    def name(self, kind: str, i: int) -> str:
        """The name of an element of a kind such as "body"; an empty string if the file gives none."""
        return mujoco.mj_id2name(self.model, self.kind("Obj", f"mjOBJ_{kind.upper()}"), i) or ""

    def label(self, kind: str, i: int) -> str:
        """How messages call an element: by its name, or else its number, and the body of a joint."""
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
        """The entries of a joint in arrays of degrees of freedom."""
        first = self.model.jnt_dofadr[joint]
        return slice(first, first + {"free": 6, "ball": 3}.get(self.joint_type(joint), 1))


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Matrix of MuJoCo's quaternion [w, x, y, z]."""
    w, x, y, z = quaternion
    return rotation_matrix([x, y, z, w])
