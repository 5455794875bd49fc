"""Convert states of a model to states of an edited model."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import FloatArray
from ..errors import ModelError
from ..model.assembly import mechanism_of
from ..model.editing import check_joints, joints_coupled_to, path_to_root, rerooted_description, reversed_state
from .attributes import Attributes


class EditedStates(Attributes):
    """Methods of Model that convert a state to the state of an edited model."""

    def lock_state(self, joints: Iterable[str], q: npt.ArrayLike, qd: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Convert a state of this model to one of the model that `lock` returns, by omitting the locked joints.

        Parameters
        ----------
        joints : sequence of str, or dict
            The joints to lock, as for `lock`. Positions in a dict are not used. Joints that are coupled to these joints
            are also omitted.
        q, qd : (..., nq) and (..., nv) arrays

        Returns
        -------
        q, qd : (..., nq) and (..., nv) arrays
            State of the locked model, without the positions and velocities of the locked joints.

        Raises
        ------
        ModelError
            If a joint does not exist.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(3).lock_state(["link2"], [1, 2, 3], [4, 5, 6])[0].tolist()
        [1.0, 3.0]
        """
        joints = tuple(joints)
        check_joints("lock_state", joints, self.joint_names)
        parts = _parts("lock_state", self, q, qd)
        constraints = mechanism_of(self.description).constraints
        locked = joints_coupled_to(constraints, joints)
        kept = [parts[name] for name in self.joint_names if name not in locked]
        return np.concatenate([q for q, _ in kept], -1), np.concatenate([qd for _, qd in kept], -1)

    def reroot_state(self, body: str, q: npt.ArrayLike, qd: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Convert a state of this model to one of the model that `reroot` returns.

        Parameters
        ----------
        body : str
            As for `reroot`.
        q, qd : (..., nq) and (..., nv) arrays

        Returns
        -------
        q, qd : (..., nq) and (..., nv) arrays
            The state of the rerooted model in which all frames have the same poses and velocities.

        Raises
        ------
        ModelError
            As for `reroot`.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> rod = rb.Inertia.rod(1.0, mass=1.0, cg=(0.5, 0, 0))
        >>> builder.add_body("body", joint=rb.Free(), inertia=rod)
        >>> builder.add_body("arm", parent="body", joint=rb.Revolute(), placement=rb.Pose((1, 0, 0)), inertia=rod)
        >>> q, qd = builder.build().reroot_state("arm", [0, 0, 0, 0, 0, 0, 1, 0.0], [0, 0, 0, 0, 0, 0, 2.0])
        >>> q.tolist(), qd.tolist()
        ([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0])
        """
        from scipy.spatial.transform import Rotation

        path = path_to_root(mechanism_of(self.description), body)
        rerooted = rerooted_description(self.description, body)
        parts = _parts("reroot_state", self, q, qd)
        if len(path) > 1:
            joint_of = dict(zip(self.body_names, self.joint_names, strict=True))
            for name in path[:-1]:
                kind = self.joint_types[self.body_names.index(name)]
                parts[joint_of[name]] = reversed_state(kind, *parts[joint_of[name]])
            root, i = self.body_names.index(path[-1]), self.body_names.index(body)
            poses, velocities = self.body_poses(q), self.body_velocities(q, qd)[..., i, :]
            R0, p0 = self.placement_rotation[root], self.placement_translation[root]
            R = poses.rotation[..., i, :, :]
            p = (poses.translation[..., i, :] - p0) @ R0
            quaternion = Rotation.from_matrix((R0.T @ R).reshape(-1, 3, 3)).as_quat().reshape(*R.shape[:-2], 4)
            velocity = [np.einsum("...ji,...j->...i", R, velocities[..., k : k + 3]) for k in (0, 3)]
            parts[joint_of[path[-1]]] = np.concatenate([p, quaternion], -1), np.concatenate(velocity, -1)
        found = [parts[name] for name in rerooted.joint_names]
        dtype = found[-1][0].dtype
        whole = (np.concatenate([pair[k] for pair in found], -1) for k in (0, 1))
        q, qd = (x.astype(dtype, copy=False) for x in whole)
        return q, qd


def state_of_edited(
    model: Attributes, edited: Attributes, q: FloatArray, qd: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Convert a state of a model to an edited one with other joints; new joints are at rest at zero."""
    at_rest = _parts("keyframes", edited, edited.neutral(), np.zeros(edited.nv))
    parts = at_rest | {name: part for name, part in _parts("keyframes", model, q, qd).items() if name in at_rest}
    return np.concatenate([q for q, _ in parts.values()], -1), np.concatenate([qd for _, qd in parts.values()], -1)


def _parts(
    what: str, model: Attributes, q: npt.ArrayLike, qd: npt.ArrayLike
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the parts of q and qd that belong to each joint, by its name."""
    if model.batch_shape:
        raise ModelError(
            f"{what}: the samples of the model differ; expected a model without batch axes. Call it for one sample, "
            "model[i], or before vary"
        )
    (q, qd), _, _ = model.kernel_model.state_arguments.check(("q", "qd"), (q, qd))
    dofs = model.kernel_model.dofs
    return {
        name: (q[..., a : a + m], qd[..., b : b + n])
        for name, a, m, b, n in zip(
            model.joint_names,
            dofs.position_index,
            dofs.position_counts,
            dofs.velocity_index,
            dofs.counts,
            strict=True,
        )
    }
