"""Poses, velocities, Jacobians, momentum and energy. Each method hands its states to one driver."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..arguments import copied_to
from ..drivers import motion
from ..model.pose import Pose
from .attributes import Attributes


class Motion(Attributes):
    """The part of Model that computes poses, velocities, Jacobians, momentum and energy."""

    def body_poses(self, q: npt.ArrayLike, out: np.ndarray | None = None) -> Pose:
        """Poses of all moving bodies in the world.

        Parameters
        ----------
        q : (..., nq) array
        out : (..., n, 12) array, optional
            The array for the result, which the Pose then shows: translation, then the rotation matrix row by row.

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
        poses = self.kernel_model.compute(
            motion.body_poses, (self.n_bodies, motion.POSE_NUMBERS), ("q",), (q,), out=out
        )
        return Pose.computed(poses[..., :3], poses[..., 3:].reshape(*poses.shape[:-1], 3, 3))

    def frame_poses(self, q: npt.ArrayLike, frame: str, out: np.ndarray | None = None) -> Pose:
        """Pose in the world of one frame: a moving body's, or a body's on a fixed joint.

        Parameters
        ----------
        q : (..., nq) array
        frame : str
            Name of a body, or of a frame on a fixed joint.
        out : (..., 12) array, optional
            The array for the result, as for `body_poses`.

        Returns
        -------
        Pose
            `translation` (..., 3) in m, `rotation` (..., 3, 3).
        """
        pose = self._frame_poses(q, frame)
        if out is None:
            return pose
        rotation = pose.rotation.reshape(*pose.rotation.shape[:-2], 9)
        rows = copied_to(out, np.concatenate([pose.translation, rotation], -1), (q,))
        return Pose.computed(rows[..., :3], rows[..., 3:].reshape(*rows.shape[:-1], 3, 3))

    def _frame_poses(self, q: npt.ArrayLike, frame: str) -> Pose:
        if frame in self.body_names:
            bodies, i = self.body_poses(q), self.body_names.index(frame)
            return Pose.computed(bodies.translation[..., i, :], bodies.rotation[..., i, :, :])
        fixed = self.kernel_model.frame(frame)
        if fixed.body >= 0:
            carrier = self._frame_poses(q, self.body_names[fixed.body])
            dtype = carrier.translation.dtype
            pose = Pose.computed(fixed.pose.translation.astype(dtype), fixed.pose.rotation.astype(dtype))
            return carrier @ pose
        _, dtype, batch = self.kernel_model.state_arguments.check(("q",), (q,))
        translation = np.broadcast_to(fixed.pose.translation, (*batch, 3)).astype(dtype)
        return Pose.computed(translation, np.broadcast_to(fixed.pose.rotation, (*batch, 3, 3)).astype(dtype))

    def body_velocities(self, q: npt.ArrayLike, qd: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Velocity of the origin of each body's frame, and angular velocity: (..., n, 6), in world axes, m/s and rad/s.

        As Pinocchio has it for LOCAL_WORLD_ALIGNED, and the Jacobian of each body's origin times qd.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=0.25).body_velocities([0, 0], [2, 1])[1].tolist()
        [0.0, 0.5, 0.0, 0.0, 0.0, 3.0]
        """
        return self.kernel_model.compute(motion.body_velocities, (self.n_bodies, 6), ("q", "qd"), (q, qd), out=out)

    def body_accelerations(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Time derivatives of the `body_velocities`, (..., n, 6): what a point there feels, but for gravity.

        Pinocchio calls them classical accelerations, LOCAL_WORLD_ALIGNED.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=0.25).body_accelerations([0, 0], [2, 0], [1, 0])[1].tolist()
        [-1.0, 0.25, 0.0, 0.0, 0.0, 1.0]
        """
        shape = (self.n_bodies, 6)
        return self.kernel_model.compute(motion.body_accelerations, shape, ("q", "qd", "qdd"), (q, qd, qdd), out=out)

    def jacobian(
        self,
        q: npt.ArrayLike,
        frame: str,
        point: npt.ArrayLike = (0.0, 0.0, 0.0),
        relative_to: str | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Geometric Jacobian of a point of a body.

        Parameters
        ----------
        q : (..., nq) array
        frame : str
            Name of a body, or of a frame on a fixed joint.
        point : (3,) array, m
            In the axes of that body or frame, from its origin.
        relative_to : str, optional
            Another body or frame, from which the motion is watched; the world if not given. Then the velocity is that
            against the point of the other body that is just there, still in world axes, and the joints that carry both
            do not count.
        out : array, optional
            The array for the result, as for `forward_dynamics`.

        Returns
        -------
        (..., 6, nv) array
            Times qd it is the velocity of the point, then the angular velocity, in world axes (Pinocchio's
            LOCAL_WORLD_ALIGNED; MuJoCo's `mj_jac` has the same rows, but not the same velocities of a free joint).

        Raises
        ------
        ModelError
            If there is no such body or point.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(2, length=0.5)
        >>> arm.jacobian([0, 0], "link2", point=(0.5, 0, 0))[[1, 5]].tolist()
        [[1.0, 0.5], [1.0, 1.0]]
        >>> arm.jacobian([0, 0], "link2", point=(0.5, 0, 0), relative_to="link1")[1].tolist()
        [0.0, 0.5]
        """
        given = self.kernel_model.observed_point(frame, point, relative_to)
        return self.kernel_model.compute(motion.jacobian, (6, self.nv), ("q",), (q,), given=given, out=out)

    def jacobian_derivative(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        frame: str,
        point: npt.ArrayLike = (0.0, 0.0, 0.0),
        relative_to: str | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Time derivative of the `jacobian` as the mechanism moves, (..., 6, nv): with J, a = J qdd + dJ/dt qd.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(1, length=0.5)
        >>> arm.jacobian_derivative([0], [2], "link1", point=(0.5, 0, 0))[:, 0].tolist()
        [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        given = self.kernel_model.observed_point(frame, point, relative_to)
        return self.kernel_model.compute(
            motion.jacobian_derivative, (6, self.nv), ("q", "qd"), (q, qd), given=given, out=out
        )

    def energy(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Kinetic and potential energy.

        Parameters
        ----------
        q, qd : (..., nq), (..., nv) arrays
        out : (..., 2) array, optional
            The array for both results.

        Returns
        -------
        kinetic, potential : (...) arrays, J
            The kinetic energy counts the rotors' (armature qd^2 / 2), which Pinocchio's `computeKineticEnergy` does for
            some joints only. The potential energy is - sum of m g . c, zero with all centres of mass at the world's
            origin.

        Examples
        --------
        >>> import rbchain as rb
        >>> kinetic, potential = rb.Model.serial_chain(1, length=1.0, mass=3.0).energy([0.0], [2.0])
        >>> float(kinetic), float(potential)
        (2.0, 0.0)
        """
        kinetic_potential = self.kernel_model.compute(motion.energy, (2,), ("q", "qd"), (q, qd), out=out)
        return kinetic_potential[..., 0], kinetic_potential[..., 1]

    def momentum(self, q: npt.ArrayLike, qd: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Momentum, and angular momentum about the centre of mass: (..., 6), in world axes, N s and N m s.

        The rotors' own spin is not in it. As Pinocchio's `computeCentroidalMomentum`.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(1, length=2.0, mass=3.0).momentum([0.0], [1.0]).tolist()
        [0.0, 3.0, 0.0, 0.0, 0.0, 1.0]
        """
        return copied_to(out, self.kernel_model.compute(motion.momentum, (9,), ("q", "qd"), (q, qd))[..., :6], (q, qd))

    def center_of_mass(self, q: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Centre of mass of the whole mechanism in the world: (..., 3), m. That of one body, in body axes, is its `cg`.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=2.0).center_of_mass([0.0, 0.0]).tolist()
        [2.0, 0.0, 0.0]
        """
        found = self.kernel_model.compute(motion.momentum, (9,), ("q", "qd"), (q, self._none_like("q", q)))
        return copied_to(out, found[..., 6:], (q,))
