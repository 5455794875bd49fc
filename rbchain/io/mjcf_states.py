"""States of MuJoCo as states of rbchain's model of the same file, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from ..common.real_arrays import FloatArray, common_batch, real_array
from ..errors import ArgumentError
from ..model.pose import Pose, computed_pose

if TYPE_CHECKING:
    import mujoco

    from ..facade.model import Model

FREE, BALL = 0, 1  # mjtJoint
W_LAST, W_FIRST = [1, 2, 3, 0], [3, 0, 1, 2]


def state_from_mujoco(
    model: Model, mujoco_model: mujoco.MjModel, qpos: npt.ArrayLike, qvel: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Convert a state of MuJoCo to the state of the model that `load` made from the same file.

    MuJoCo's quaternions begin with w, `ref` is added to the positions of hinges and slides, and the pose of a free body
    and its linear velocity are in world axes. In rbchain, w is last, positions are relative to the pose in the file,
    and the velocity of a free joint is in body axes.

    Parameters
    ----------
    model : Model
        The model that `load` made from the file.
    mujoco_model : mujoco.MjModel
        MuJoCo's model of the file.
    qpos, qvel : (..., nq) and (..., nv) arrays
        `data.qpos` and `data.qvel`, for one state or a batch.

    Returns
    -------
    q, qd : (..., nq) and (..., nv) arrays

    Raises
    ------
    ArgumentError
        If a shape does not fit, or the models have different joints.

    Examples
    --------
    A ball whose x-axis points up rises along z, which is forward in its own axes:

    >>> import mujoco, rbchain as rb
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rbchain.io.mjcf import state_from_mujoco
    >>> ball = "<body><freejoint/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/></body>"
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "ball.xml")
    ...     _ = file.write_text(f"<mujoco><worldbody>{ball}</worldbody></mujoco>")
    ...     model, other = rb.load(file), mujoco.MjModel.from_xml_path(str(file))
    >>> qpos, qvel = [0, 0, 2, 0.5**0.5, 0, -(0.5**0.5), 0], [0, 0, 3, 0, 0, 0]
    >>> q, qd = state_from_mujoco(model, other, qpos, qvel)
    >>> q[:3].tolist(), qd.round(12).tolist()
    ([0.0, 0.0, 2.0], [3.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """
    positions, velocities = _checked(model, mujoco_model, {"qpos": qpos, "qvel": qvel})
    q, qd = positions - _references(mujoco_model), velocities.copy()
    for kind, at, dof in _joints_with_quaternions(mujoco_model):
        quaternion = slice(at + 3, at + 7) if kind == FREE else slice(at, at + 4)
        q[..., quaternion] = positions[..., quaternion][..., W_LAST]
        if kind == FREE:
            pose = computed_pose(positions[..., at : at + 3], _matrices(q[..., quaternion]))
            relative = _placement(model, at).inverse() @ pose
            q[..., at : at + 3], q[..., quaternion] = relative.translation, relative.quaternion
            linear = velocities[..., dof : dof + 3, None]
            qd[..., dof : dof + 3] = (np.swapaxes(pose.rotation, -1, -2) @ linear)[..., 0]
    return q, qd


def state_to_mujoco(
    model: Model, mujoco_model: mujoco.MjModel, q: npt.ArrayLike, qd: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Convert a state to MuJoCo's `qpos` and `qvel`: the inverse of `state_from_mujoco`.

    Parameters
    ----------
    model, mujoco_model
        As for `state_from_mujoco`.
    q, qd : (..., nq) and (..., nv) arrays
        One state or a batch.

    Returns
    -------
    qpos, qvel : (..., nq) and (..., nv) arrays

    Raises
    ------
    ArgumentError
        As for `state_from_mujoco`.
    """
    positions, velocities = _checked(model, mujoco_model, {"q": q, "qd": qd})
    qpos, qvel = positions + _references(mujoco_model), velocities.copy()
    for kind, at, dof in _joints_with_quaternions(mujoco_model):
        quaternion = slice(at + 3, at + 7) if kind == FREE else slice(at, at + 4)
        found = positions[..., quaternion]
        if kind == FREE:
            relative = computed_pose(positions[..., at : at + 3], _matrices(found))
            pose = _placement(model, at) @ relative
            qpos[..., at : at + 3], found = pose.translation, pose.quaternion
            qvel[..., dof : dof + 3] = (pose.rotation @ velocities[..., dof : dof + 3, None])[..., 0]
        qpos[..., quaternion] = found[..., W_FIRST]
    return qpos, qvel


def _checked(model: Model, other: Any, given: dict[str, npt.ArrayLike]) -> list[FloatArray]:
    """Return positions and velocities of one batch shape."""
    if (model.nq, model.nv) != (other.nq, other.nv):
        raise ArgumentError(
            f"model {model.name!r} has nq, nv = {model.nq}, {model.nv}, and mujoco_model has {other.nq}, {other.nv}; "
            "expected two models of one file"
        )
    arrays = [real_array(name, x, ArgumentError) for name, x in given.items()]
    for name, x, size in zip(given, arrays, (model.nq, model.nv), strict=True):
        if x.shape[-1:] != (size,):
            raise ArgumentError(f"{name} has shape {x.shape}; expected (..., {size})")
    batch = common_batch({name: x.shape[:-1] for name, x in zip(given, arrays, strict=True)}, ArgumentError)
    return [np.broadcast_to(x, batch + x.shape[-1:]) for x in arrays]


def _references(other: Any) -> FloatArray:
    """Return the `ref` of hinges and slides, and zero for all other positions."""
    found = np.zeros(other.nq)
    scalars = other.jnt_qposadr[other.jnt_type > BALL]
    found[scalars] = other.qpos0[scalars]
    return found


def _joints_with_quaternions(other: Any) -> list[tuple[int, int, int]]:
    """Return the type and the first entries in qpos and qvel of each free and ball joint."""
    which = np.flatnonzero(other.jnt_type <= BALL)
    return [(int(other.jnt_type[j]), int(other.jnt_qposadr[j]), int(other.jnt_dofadr[j])) for j in which]


def _matrices(quaternions: FloatArray) -> FloatArray:
    """Return the rotation matrices (..., 3, 3) of quaternions (..., 4), w last."""
    writable = quaternions.reshape(-1, 4).copy()  # as SciPy needs it
    return Rotation.from_quat(writable).as_matrix().reshape(*quaternions.shape[:-1], 3, 3)


def _placement(model: Model, at: int) -> Pose:
    """Return the pose in the file of the body whose free joint has its first position in entry `at`."""
    (body,) = np.flatnonzero(model.position_index == at)
    return computed_pose(model.placement_translation[body], model.placement_rotation[body])
