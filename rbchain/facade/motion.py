"""Poses, velocities, momentum and energy. Each method passes its states and one driver to the kernel model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray
from ..drivers import motion
from ..model.arguments import copied_to, names_of_frames
from ..model.pose import Pose, PoseOfRows, computed_pose
from .attributes import Attributes


class Motion(Attributes):
    """Methods of Model that compute poses, velocities, momentum and energy."""

    def body_poses(self, q: npt.ArrayLike, *, out: FloatArray | None = None) -> Pose:
        """Compute the poses of all moving bodies in the world.

        Parameters
        ----------
        q : (..., nq) array
        out : (..., n, 12) array, optional
            The array for the result: translation, then the rotation matrix row by row. The returned Pose is a view
            of it.

        Returns
        -------
        Pose
            `translation` (..., n, 3) in m, `rotation` (..., n, 3, 3).

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=0.25).body_poses([0.0, 1.0]).translation.tolist()
        [[0.0, 0.0, 0.0], [0.25, 0.0, 0.0]]
        """
        model = self.kernel_model
        if out is None:
            rows = model.single_calls[motion.body_poses](q)
            if rows is None:
                rows = model.compute(motion.body_poses, (model.n_bodies, 4, 3), ("q",), (q,))
            return PoseOfRows(rows)
        model.compute(motion.body_poses, (model.n_bodies, motion.POSE_NUMBERS), ("q",), (q,), out=out)
        return PoseOfRows(out.reshape(*out.shape[:-1], 4, 3))

    @explains_calls(is_method=True)
    def frame_poses(self, q: npt.ArrayLike, frame: str | Sequence[str], *, out: FloatArray | None = None) -> Pose:
        """Compute the pose of one frame in the world, or of several.

        Parameters
        ----------
        q : (..., nq) array
        frame : str or sequence of str
            Name of a body, or of a frame on a fixed joint; or m of these names.
        out : (..., 12) or (..., m, 12) array, optional
            The array for the result, as for `body_poses`.

        Returns
        -------
        Pose
            `translation` (..., 3) in m, `rotation` (..., 3, 3). For several frames: (..., m, 3) and (..., m, 3, 3).

        Raises
        ------
        UnknownNameError
            If the model has no such body or frame.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=0.25).frame_poses([0.0, 1.0], "link2").translation.tolist()
        [0.25, 0.0, 0.0]
        >>> rb.Model.serial_chain(2, length=0.25).frame_poses([0.0, 1.0], ["link1", "link2"]).translation.shape
        (2, 3)
        """
        if isinstance(frame, str):
            pose = self._frame_poses(q, frame)
        else:
            poses = [self._frame_poses(q, name) for name in names_of_frames(frame)]
            pose = computed_pose(
                np.stack([pose.translation for pose in poses], -2), np.stack([pose.rotation for pose in poses], -3)
            )
        if out is None:
            return pose
        rotation = pose.rotation.reshape(*pose.rotation.shape[:-2], 9)
        rows = copied_to(out, np.concatenate([pose.translation, rotation], -1), (q,))
        return computed_pose(rows[..., :3], rows[..., 3:].reshape(*rows.shape[:-1], 3, 3))

    def _frame_poses(self, q: npt.ArrayLike, frame: str) -> Pose:
        if frame in self.body_names:
            bodies, i = self.body_poses(q), self.body_names.index(frame)
            return computed_pose(bodies.translation[..., i, :], bodies.rotation[..., i, :, :])
        fixed = self.kernel_model.frame(frame)
        if fixed.body >= 0:
            carrier = self._frame_poses(q, self.body_names[fixed.body])
            dtype = carrier.translation.dtype
            pose = computed_pose(fixed.pose.translation.astype(dtype), fixed.pose.rotation.astype(dtype))
            return carrier @ pose
        _, dtype, batch = self.kernel_model.state_arguments.check(("q",), (q,))
        translation = np.broadcast_to(fixed.pose.translation, (*batch, 3)).astype(dtype)
        return computed_pose(translation, np.broadcast_to(fixed.pose.rotation, (*batch, 3, 3)).astype(dtype))

    def body_velocities(self, q: npt.ArrayLike, qd: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the velocity of the origin of each body's frame, and its angular velocity, in world axes.

        This is the Jacobian of each body's origin times qd, and Pinocchio's velocity for LOCAL_WORLD_ALIGNED.

        Parameters
        ----------
        q, qd : (..., nq) and (..., nv) arrays
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., n, 6) array, m/s and rad/s

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=0.25).body_velocities([0, 0], [2, 1])[1].tolist()
        [0.0, 0.5, 0.0, 0.0, 0.0, 3.0]
        """
        return self.kernel_model.compute(motion.body_velocities, (self.n_bodies, 6), ("q", "qd"), (q, qd), out=out)

    def body_accelerations(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike, *, out: FloatArray | None = None
    ) -> FloatArray:
        """Compute the time derivatives of `body_velocities`, in world axes.

        Pinocchio calls them classical accelerations, for LOCAL_WORLD_ALIGNED. An accelerometer measures
        the linear part minus gravity.

        Parameters
        ----------
        q, qd, qdd : (..., nq), (..., nv) and (..., nv) arrays
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., n, 6) array, m/s^2 and rad/s^2

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=0.25).body_accelerations([0, 0], [2, 0], [1, 0])[1].tolist()
        [-1.0, 0.25, 0.0, 0.0, 0.0, 1.0]
        """
        shape = (self.n_bodies, 6)
        return self.kernel_model.compute(motion.body_accelerations, shape, ("q", "qd", "qdd"), (q, qd, qdd), out=out)

    def energy(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, *, out: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the kinetic energy, and the potential energy of gravity.

        Parameters
        ----------
        q, qd : (..., nq), (..., nv) arrays
        out : (..., 2) array, optional
            The array for both results.

        Returns
        -------
        kinetic, potential : (...) arrays, J
            The kinetic energy includes the energy of the rotors, armature qd^2 / 2. Pinocchio's `computeKineticEnergy`
            includes it for some joints only. The potential energy is - sum of m g . c. It is zero if all centers of
            mass are at the origin of the world.

        Examples
        --------
        >>> import rbchain as rb
        >>> kinetic, potential = rb.Model.serial_chain(1, length=1.0, mass=3.0).energy([0.0], [2.0])
        >>> float(kinetic), float(potential)
        (2.0, 0.0)
        """
        model = self.kernel_model
        kinetic_potential = model.single_calls[motion.energy](q, qd) if out is None else None
        if kinetic_potential is None:
            kinetic_potential = model.compute(motion.energy, (2,), ("q", "qd"), (q, qd), out=out)
        return kinetic_potential[..., 0], kinetic_potential[..., 1]

    def momentum(self, q: npt.ArrayLike, qd: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the momentum, and the angular momentum about the center of mass, in world axes.

        The spin of the rotors is not included. Pinocchio's `computeCentroidalMomentum` gives the same result.

        Parameters
        ----------
        q, qd : (..., nq) and (..., nv) arrays
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., 6) array, N s and N m s

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(1, length=2.0, mass=3.0).momentum([0.0], [1.0]).tolist()
        [0.0, 3.0, 0.0, 0.0, 0.0, 1.0]
        """
        return copied_to(out, self.kernel_model.compute(motion.momentum, (9,), ("q", "qd"), (q, qd))[..., :6], (q, qd))

    def center_of_mass(self, q: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the center of mass of the whole mechanism, in world axes.

        The center of mass of one body, in body axes, is its `cg`.

        Parameters
        ----------
        q : (..., nq) array
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., 3) array, m

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=2.0).center_of_mass([0.0, 0.0]).tolist()
        [2.0, 0.0, 0.0]
        """
        found = self.kernel_model.compute(motion.momentum, (9,), ("q", "qd"), (q, self._none_like("q", q)))
        return copied_to(out, found[..., 6:], (q,))
