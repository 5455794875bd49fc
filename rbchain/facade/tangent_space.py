"""Move along the tangent space of the positions, and compute differences of positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import FloatArray
from ..model.arguments import FLOAT32, copied_to
from .attributes import Attributes

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation


class TangentSpace(Attributes):
    """Methods of Model that integrate velocities and compute differences of positions."""

    def integrate(self, q: npt.ArrayLike, v: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the positions after moving from q for unit time with constant velocities v.

        The velocities of free and spherical joints are constant in body axes. Angles and displacements increase by v. A
        spherical joint rotates by exp(v). A free joint moves by the exponential of its twist on SE(3).

        Parameters
        ----------
        q : (..., nq) array
        v : (..., nv) array, rad or m
            A vector of the tangent space at q.
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nq) array

        Raises
        ------
        ArgumentError
            As for `forward_dynamics`.

        Notes
        -----
        Pinocchio's `integrate` returns the same positions, but the quaternion has the opposite sign after more than
        half a turn. MuJoCo integrates the translation and the rotation of a free joint separately.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> builder.add_body("boat", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
        >>> builder.build().integrate([0, 0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, np.pi]).round(3).tolist()
        [0.0, 0.637, 0.0, 0.0, 0.0, 1.0, 0.0]
        """
        given = (q, v)
        (q, v), dtype, _ = self._checked_states(("q", "v"), given)
        with np.errstate(over="ignore", invalid="ignore"):  # not finite in one sample only
            moved = self._moved(q, v).astype(dtype)
        return copied_to(out, moved, given)

    def _moved(self, q: FloatArray, v: FloatArray) -> FloatArray:
        moved = np.empty_like(q)
        plain = self.kernel_model.dofs.plain_positions
        moved[..., plain] = q[..., plain] + v[..., ~self.kernel_model.dofs.in_quaternion_joint]
        for at, dof, free in self._quaternion_joints():
            turn = v[..., dof : dof + 3]
            angle = np.linalg.norm(turn, axis=-1, keepdims=True)  # overflows where no rotation can be computed
            lost = _nan_where_not_finite(angle) + _nan_where_not_finite(q[..., at : at + 4])
            turn = np.where(np.isnan(lost), 0.0, turn)
            before = _rotation(q[..., at : at + 4])
            after = (before * _rotation_by(turn)).as_quat().reshape(*q.shape[:-1], 4)
            moved[..., at : at + 4] = after + lost
            if free:
                slide = (_mean_rotation(turn) @ v[..., dof - 3 : dof, None])[..., 0]
                turned = before.apply(slide.reshape(-1, 3)).reshape(slide.shape)
                moved[..., at - 3 : at] = q[..., at - 3 : at] + turned + lost
        return moved

    def difference(self, q0: npt.ArrayLike, q1: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the velocities that move positions q0 to q1 in unit time, by rotations of at most half a turn.

        It is the inverse of `integrate`: integrate(q0, difference(q0, q1)) is q1, except for the sign of quaternions.

        Parameters
        ----------
        q0, q1 : (..., nq) arrays
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nv) array, rad or m

        Raises
        ------
        ArgumentError
            As for `forward_dynamics`.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2).difference([0.0, 1.0], [0.5, 3.0])
        array([0.5, 2. ])
        """
        given = (q0, q1)
        (q0, q1), dtype, _ = self._checked_states(("q0", "q1"), given)
        with np.errstate(over="ignore", invalid="ignore"):  # not finite in one sample only
            v = self._difference(q0, q1).astype(dtype)
        return copied_to(out, v, given)

    def _difference(self, q0: FloatArray, q1: FloatArray) -> FloatArray:
        v = np.empty((*q0.shape[:-1], self.nv))
        dofs = self.kernel_model.dofs
        v[..., ~dofs.in_quaternion_joint] = (q1 - q0)[..., dofs.plain_positions]
        for at, dof, free in self._quaternion_joints():
            before = _rotation(q0[..., at : at + 4])
            turn = (before.inv() * _rotation(q1[..., at : at + 4])).as_rotvec().reshape(*q0.shape[:-1], 3)
            turn = turn + _nan_where_not_finite(q0[..., at : at + 4] + q1[..., at : at + 4])
            v[..., dof : dof + 3] = turn
            if free:
                moved = (q1 - q0)[..., at - 3 : at]
                slide = before.inv().apply(moved.reshape(-1, 3)).reshape(moved.shape)
                v[..., dof - 3 : dof] = np.linalg.solve(_mean_rotation(turn), slide[..., None])[..., 0]
        return v

    def _checked_states(
        self, names: Sequence[str], states: Sequence[npt.ArrayLike]
    ) -> tuple[list[FloatArray], npt.DTypeLike, tuple[int, ...]]:
        """Return arguments in float64, the precision of the result, and the shape of the batch."""
        arrays, dtype, batch = self.kernel_model.state_arguments.check(names, states, has_samples=False)
        return [x.astype(np.float64) for x in arrays], FLOAT32 if dtype == FLOAT32 else np.float64, batch

    def _quaternion_joints(self) -> Iterator[tuple[int, int, bool]]:
        """Yield the first index of each quaternion in q and of its angular velocity in qd, and if the joint is free."""
        for kind, at, dof in zip(self.joint_types, self.position_index, self.velocity_index, strict=True):
            if kind == "free":
                yield at + 3, dof + 3, True
            elif kind == "spherical":
                yield at, dof, False


def _rotation(quaternions: FloatArray) -> Rotation:
    """Return the rotations of unit quaternions; the identity if one is not finite."""
    from scipy.spatial.transform import Rotation  # slow to import, and only models with quaternions need it

    flat = quaternions.reshape(-1, 4)

    return Rotation.from_quat(np.where(np.isfinite(flat).all(-1, keepdims=True), flat, [0.0, 0.0, 0.0, 1.0]))


def _nan_where_not_finite(x: FloatArray) -> FloatArray:
    """Return 0, or NaN for rows that are not finite: (..., 1)."""
    return np.where(np.isfinite(x).all(-1, keepdims=True), 0.0, np.nan)


def _rotation_by(turn: FloatArray) -> Rotation:
    from scipy.spatial.transform import Rotation

    return Rotation.from_rotvec(turn.reshape(-1, 3))


def _mean_rotation(turn: FloatArray) -> FloatArray:
    """Compute the integral of exp(s [turn]x) over s from 0 to 1: (..., 3, 3).

    It turns a constant linear velocity in rotating body axes into the displacement.

    1 + (1 - cos a) / a^2 [turn]x + (a - sin a) / a^3 [turn]x^2 with a = |turn| (Murray, Li and Sastry 1994, *A
    Mathematical Introduction to Robotic Manipulation*, eq. 2.36).
    """
    x, y, z = np.moveaxis(turn, -1, 0)
    o = np.zeros_like(x)
    K = np.moveaxis(np.array([[o, -z, y], [z, o, -x], [-y, x, o]]), (0, 1), (-2, -1))
    a = np.linalg.norm(turn, axis=-1)
    first = 0.5 * np.sinc(a / (2.0 * np.pi)) ** 2
    square = a * a
    tail = 1 / 362880 - square * (1 / 39916800 - square / 6227020800)
    series = 1 / 6 - square * (1 / 120 - square * (1 / 5040 - square * tail))
    large = np.where(a > 0.5, a, 1.0)
    second = np.where(a > 0.5, (large - np.sin(large)) / large**3, series)
    return np.eye(3) + first[..., None, None] * K + second[..., None, None] * (K @ K)
