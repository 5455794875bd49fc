"""Names and units of the coordinates of states, their order in other libraries, neutral and random states."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..common.real_arrays import FloatArray, excerpt, whole_number
from ..errors import ArgumentError
from ..model.joint_order import index_arrays
from .attributes import Attributes

#: Entries of the joints whose position is a quaternion.
POSITION_ENTRIES = {"free": ("x", "y", "z", "qx", "qy", "qz", "qw"), "spherical": ("qx", "qy", "qz", "qw")}
VELOCITY_ENTRIES = {"free": ("vx", "vy", "vz", "wx", "wy", "wz"), "spherical": ("wx", "wy", "wz")}


class States(Attributes):
    """Methods of Model that describe and create states."""

    @property
    def position_labels(self) -> tuple[str, ...]:
        """Label of each entry of q: the name of its joint, followed by the name of the entry if the joint has several.

        A free joint has the entries x, y, z, qx, qy, qz and qw, a spherical joint qx, qy, qz and qw, others 0, 1, ...
        """
        return self._labels(POSITION_ENTRIES, self.kernel_model.dofs.position_counts)

    @property
    def velocity_labels(self) -> tuple[str, ...]:
        """Label of each entry of qd, qdd and tau.

        A free joint has the entries vx, vy, vz, wx, wy and wz, a spherical joint wx, wy and wz, others 0, 1, ...
        """
        return self._labels(VELOCITY_ENTRIES, self.kernel_model.dofs.counts)

    def _labels(self, entries: dict[str, tuple[str, ...]], counts: np.ndarray) -> tuple[str, ...]:
        """Return the labels of all joints, which have these numbers of entries."""
        labels: list[str] = []
        for name, kind, count in zip(self.joint_names, self.joint_types, counts, strict=True):
            own = entries.get(kind, range(count))
            labels += [name] if count == 1 else [f"{name}.{entry}" for entry in own]
        return tuple(labels)

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
        """Pairs of indices (i, j): qd[j] is the velocity of q[i]. Entries of quaternions are not included.

        For a free joint, they pair the three coordinates of its position with its linear velocity in body axes.
        """
        pairs = []
        for kind, q, v, dofs in zip(
            self.joint_types, self.position_index, self.velocity_index, self.kernel_model.dofs.counts, strict=True
        ):
            own = {"free": 3, "spherical": 0}.get(kind, dofs)
            pairs += [(int(q + i), int(v + i)) for i in range(own)]
        return tuple(pairs)

    def joint_order(self, names: Iterable[str], counts: Iterable[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return index arrays that reorder states of another library into the order of this model.

        Parameters
        ----------
        names : sequence of str
            Joint names of the other library, in its order. They may include "universe" and frames on fixed joints,
            which have no coordinates.
        counts : sequence of int, optional
            Number of positions of each of these joints in the other library, such as `nqs` of a Pinocchio model. They
            are compared with this model; joints with 0 positions may then have any name.

        Returns
        -------
        index_q : (nq,) array of int
            ``q = other_q[..., index_q]``
        index_v : (nv,) array of int
            ``qd = other_qd[..., index_v]``; the same for accelerations and joint forces. The inverse is
            ``other_qd = qd[..., np.argsort(index_v)]``.

        Raises
        ------
        ArgumentError
            If a joint is missing, unknown or repeated, or has a different number of positions.

        Notes
        -----
        The order of coordinates within a joint does not change. Quaternions must be [x, y, z, w] in both libraries.

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

    def neutral(self) -> FloatArray:
        """Return the neutral positions: zeros, and quaternions [0, 0, 0, 1].

        Returns
        -------
        (nq,) array

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
    ) -> tuple[FloatArray, FloatArray]:
        """Return random positions and velocities.

        Parameters
        ----------
        rng : numpy Generator, or a seed
        batch : int or tuple
            Shape of the batch of states.

        Returns
        -------
        q : (..., nq) array
            Uniformly distributed: angles from -pi to pi rad, displacements from -1 to 1 m, and orientations over all
            rotations.
        qd : (..., nv) array
            Normally distributed with variance 1.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> q, qd = rb.Model.serial_chain(3).random_state(np.random.default_rng(0), batch=5)
        >>> q.shape, qd.shape
        ((5, 3), (5, 3))
        """
        rng = generator_of(rng)
        sizes = (batch,) if np.ndim(batch) == 0 else tuple(batch)  # type: ignore[arg-type]
        shape = tuple(whole_number("batch", size, ArgumentError, least=0) for size in sizes)
        q = rng.uniform(-1.0, 1.0, (*shape, self.nq))
        dofs = self.kernel_model.dofs
        is_angle = np.array(self.dof_types) != "prismatic"
        q[..., dofs.plain_positions[is_angle[~dofs.in_quaternion_joint]]] *= np.pi
        for at in dofs.quaternions:
            direction = rng.normal(size=(*shape, 4))
            q[..., at : at + 4] = direction / np.linalg.norm(direction, axis=-1, keepdims=True)
        return q, rng.normal(size=(*shape, self.nv))


def generator_of(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return a generator of random numbers, made from a seed if necessary. Raises ArgumentError for other values."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"rng is {excerpt(rng)}; expected a numpy Generator, or a seed: a whole number of at least 0"
        ) from None


def _unit(kind: str) -> str:
    return "m" if kind == "prismatic" else "rad"
