"""State utilities: difference, integration on the tangent space, random states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..arguments import FLOAT32, copied_to
from ..model.joint_order import index_arrays
from ..model.topology import POSING_CODES
from .attributes import Attributes

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation


class States(Attributes):
    """The part of Model that knows what positions are."""

    @property
    def position_labels(self) -> tuple[str, ...]:
        """A name for each entry of q: that of its joint, with the entry's number where the joint has several."""
        return _labels(self.joint_names, np.diff([*self.position_index, self.nq]))

    @property
    def velocity_labels(self) -> tuple[str, ...]:
        """A name for each entry of qd, qdd and tau."""
        return _labels(self.joint_names, self.kernel_model.dofs.counts)

    @property
    def position_units(self) -> tuple[str, ...]:
        """The unit of each entry of q: "rad", "m", or "1" of quaternions."""
        units = ["1"] * self.nq
        for i, j in self.coordinate_pairs:
            units[i] = _unit(self.dof_types[j])
        return tuple(units)

    @property
    def velocity_units(self) -> tuple[str, ...]:
        """The unit of each entry of qd: "rad/s" or "m/s"."""
        return tuple(f"{_unit(kind)}/s" for kind in self.dof_types)

    @property
    def coordinate_pairs(self) -> tuple[tuple[int, int], ...]:
        """Entries of q that are no part of a quaternion, each with the entry of qd that says how fast it changes.

        Of a free joint these are its three coordinates, whose rate is in the body's axes.
        """
        pairs = []
        for kind, q, v, dofs in zip(
            self.joint_types, self.position_index, self.velocity_index, self.kernel_model.dofs.counts, strict=True
        ):
            own = {"free": 3, "spherical": 0}.get(kind, dofs)
            pairs += [(int(q + i), int(v + i)) for i in range(own)]
        return tuple(pairs)

    def joint_order(self, names: Iterable[str], counts: Iterable[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Index arrays that bring states of another library into this model's order of the joints.

        Parameters
        ----------
        names : sequence of str
            The other library's joints in its order. "universe" and frames on fixed joints, which have no coordinates,
            may be among them.
        counts : sequence of int, optional
            How many positions each of these joints has there, such as `nqs` of a Pinocchio model: then joints without
            any may have any name, and the numbers are checked against this model's.

        Returns
        -------
        index_q : (nq,) array of int
            ``q = other_q[..., index_q]``
        index_v : (nv,) array of int
            ``qd = other_qd[..., index_v]``, and so for accelerations and joint forces. The other way, it is
            ``other_qd = qd[..., np.argsort(index_v)]``.

        Raises
        ------
        StateError
            If a joint is missing, unknown or there twice, or has another number of positions.

        Notes
        -----
        The coordinates of a joint keep their order: quaternions have to be [x, y, z, w] there too.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> for arm in ("right", "left"):
        ...     builder.add_body(arm, joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
        >>> index_q, index_v = builder.build().joint_order(["universe", "left", "right"])
        >>> np.array([0.1, 0.2])[index_q].tolist()
        [0.2, 0.1]
        """
        counts_of_joints = zip(self.kernel_model.dofs.position_counts, self.kernel_model.dofs.counts, strict=True)
        own = dict(zip(self.joint_names, counts_of_joints, strict=True))
        return index_arrays(own, list(self.fixed_frames), list(names), None if counts is None else list(counts))

    def neutral(self) -> np.ndarray:
        """Positions (nq,) in which every joint is where its placement puts it: zeros, and quaternions [0, 0, 0, 1].

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> builder.add_body("ball", joint=rb.Spherical(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
        >>> builder.build().neutral()
        array([0., 0., 0., 1.])
        """
        q = np.zeros(self.nq)
        q[[at + 3 for at in self.kernel_model.dofs.quaternions]] = 1.0
        return q

    def random_state(
        self, rng: np.random.Generator | int | None, batch: int | tuple[int, ...] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Random positions and velocities: angles of the whole turn, orientations evenly from all, slides within 1 m.

        Parameters
        ----------
        rng : numpy Generator, or a seed
        batch : int or tuple
            Shape of the batch of states.

        Returns
        -------
        q, qd : (batch..., nq), (batch..., nv) arrays
            Velocities are normally distributed with variance 1.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> q, qd = rb.Model.serial_chain(3).random_state(np.random.default_rng(0), batch=5)
        >>> q.shape, qd.shape
        ((5, 3), (5, 3))
        """
        rng = np.random.default_rng(rng)
        shape: tuple[int, ...] = (batch,) if np.ndim(batch) == 0 else tuple(batch)  # type: ignore[arg-type, assignment]
        q = rng.uniform(-1.0, 1.0, (*shape, self.nq))
        own = ~self.kernel_model.dofs.in_quaternion_joint
        turns = own & (np.array(self.dof_types) != "prismatic")
        q[..., self._own_coordinates[turns[own]]] *= np.pi
        for at in self.kernel_model.dofs.quaternions:
            direction = rng.normal(size=(*shape, 4))
            q[..., at : at + 4] = direction / np.linalg.norm(direction, axis=-1, keepdims=True)
        return q, rng.normal(size=(*shape, self.nv))

    def integrate(self, q: npt.ArrayLike, v: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Positions after moving from q for unit time with constant velocities v, which are those of the bodies' axes.

        A coordinate with a rate of its own gains v; a spherical joint turns by exp(v); a free one moves along the screw
        with that twist, exp on SE(3). So it is in Pinocchio, which after more than half a turn gives the quaternion's
        negative; MuJoCo moves and turns a free joint separately.

        Parameters
        ----------
        q : (..., nq) array
        v : (..., nv) array

        Returns
        -------
        (..., nq) array

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
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite stays in its sample
            moved = self._moved(q, v).astype(dtype)
        return copied_to(out, moved, given)

    def _moved(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        moved = np.empty_like(q)
        own = ~self.kernel_model.dofs.in_quaternion_joint
        moved[..., self._own_coordinates] = q[..., self._own_coordinates] + v[..., own]
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

    def difference(self, q0: npt.ArrayLike, q1: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The velocities (..., nv) that take positions q0 to q1 in unit time, turning by no more than half a turn.

        The reverse of `integrate`: integrate(q0, difference(q0, q1)) is q1, but for the sign of quaternions.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2).difference([0.0, 1.0], [0.5, 3.0])
        array([0.5, 2. ])
        """
        given = (q0, q1)
        (q0, q1), dtype, _ = self._checked_states(("q0", "q1"), given)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite stays in its sample
            v = self._difference(q0, q1).astype(dtype)
        return copied_to(out, v, given)

    def _difference(self, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
        v = np.empty((*q0.shape[:-1], self.nv))
        own = ~self.kernel_model.dofs.in_quaternion_joint
        v[..., own] = (q1 - q0)[..., self._own_coordinates]
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
    ) -> tuple[list[np.ndarray], npt.DTypeLike, tuple[int, ...]]:
        """Arguments in float64 for computing with, and the precision of the result."""
        arrays, dtype, batch = self.kernel_model.state_arguments.check(names, states, of_samples=())
        return [x.astype(np.float64) for x in arrays], FLOAT32 if dtype == FLOAT32 else np.float64, batch

    @property
    def _own_coordinates(self) -> np.ndarray:
        """Entries of q that have a rate of their own, in the order of their velocities."""
        pairs = zip(self.joint_types, self.position_index, self.kernel_model.dofs.position_counts, strict=True)
        entries = [np.arange(at, at + count) for kind, at, count in pairs if kind not in POSING_CODES]
        return np.concatenate(entries) if entries else np.array([], int)

    def _quaternion_joints(self) -> Iterator[tuple[int, int, bool]]:
        """First entry in q of each quaternion, and in qd of its angular velocity; and whether the joint is free."""
        for kind, at, dof in zip(self.joint_types, self.position_index, self.velocity_index, strict=True):
            if kind == "free":
                yield at + 3, dof + 3, True
            elif kind == "spherical":
                yield at, dof, False


def _unit(kind: str) -> str:
    return "m" if kind == "prismatic" else "rad"


def _labels(joints: Sequence[str], counts: np.ndarray) -> tuple[str, ...]:
    return tuple(n if c == 1 else f"{n}.{i}" for n, c in zip(joints, counts, strict=True) for i in range(c))


def _rotation(quaternions: np.ndarray) -> Rotation:
    """Rotations of unit quaternions; none where one is not finite."""
    flat = quaternions.reshape(-1, 4)
    from scipy.spatial.transform import Rotation  # slow to import, and seldom needed

    return Rotation.from_quat(np.where(np.isfinite(flat).all(-1, keepdims=True), flat, [0.0, 0.0, 0.0, 1.0]))


def _nan_where_not_finite(x: np.ndarray) -> np.ndarray:
    """Zero, or NaN for rows that are not finite, (..., 1)."""
    return np.where(np.isfinite(x).all(-1, keepdims=True), 0.0, np.nan)


def _rotation_by(turn: np.ndarray) -> Rotation:
    from scipy.spatial.transform import Rotation

    return Rotation.from_rotvec(turn.reshape(-1, 3))


def _mean_rotation(turn: np.ndarray) -> np.ndarray:
    """The integral of exp(s [turn]x) over s from 0 to 1, (..., 3, 3): what a slide in turning axes adds up to.

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
