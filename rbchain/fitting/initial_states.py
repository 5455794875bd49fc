"""The initial state as a function of displacements from the measured one, with or without closed loops."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from ..analysis.coordinates import independent_changes
from ..common.real_arrays import FloatArray
from ..core.tree.layout import TOPOLOGY_COORDINATE
from ..errors import ArgumentError
from ..simulate.loops import assembled_states

if TYPE_CHECKING:
    from ..facade.model import Model

#: Newton steps that close the loops, and singular values of their Jacobian that count as zero, relative to the largest.
NEWTON_STEPS, SMALLEST_SINGULAR_VALUE = 20, 1e-9
#: Longest Newton step, and the size of a step after which the loops are closed, in rad or m.
LONGEST_STEP, CLOSED = 0.5, 1e-14
#: Step of the differences of fourth order, in rad, m, rad/s or m/s; their weights.
DIFFERENCE_STEP = 1e-3
DIFFERENCES = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))


class InitialState:
    """The initial states of an open tree: displacements of all degrees of freedom from the measured state.

    `name` is the name of the trajectory in labels, empty for a single trajectory.
    """

    def __init__(self, model: Model, name: str, q: FloatArray, qd: FloatArray) -> None:
        self.model, self.name, self.q, self.qd = model, name, q, qd

    def entries(self, name: str, wanted: Collection[int] | None) -> np.ndarray:
        """Return the degrees of freedom whose displacements of "q" or "qd" are variables."""
        return np.arange(self.model.nv) if wanted is None else np.array(sorted(wanted))

    def numbers(self, name: str) -> FloatArray:
        """Return the measured "q" or "qd" of each dof (nv,); 0 for the "q" of free and spherical joints."""
        dofs, topology = self.model.kernel_model.dofs, self.model.kernel_model.topology
        return (
            self.qd if name == "qd" else np.where(dofs.in_quaternion_joint, 0.0, self.q[topology[TOPOLOGY_COORDINATE]])
        )

    def states(self, dq: FloatArray, dqd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the states for displacements (starts, nv)."""
        return self.model.integrate(np.broadcast_to(self.q, (len(dq), self.model.nq)), dq), self.qd + dqd

    def changes(self, name: str, dq: FloatArray, dqd: FloatArray) -> FloatArray | None:
        """Return the changes of q and qd by the displacements of "q" or "qd", (starts, 2 nv, nv).

        None stands for the change of the same entries of the same quantity.
        """
        return None


class ClosedInitialState(InitialState):
    """The initial states of a closed loop: displacements of independent coordinates from the closed state.

    The other positions and velocities follow from the constraints. Source: Wehage and Haug (1982), "Generalized
    coordinate partitioning for dimension reduction in analysis of constrained dynamic systems".
    """

    def __init__(self, model: Model, name: str, q: FloatArray, qd: FloatArray) -> None:
        super().__init__(model, name, *assembled_states(model, q, qd))
        if not np.isfinite(self.qd).all():
            raise ArgumentError(
                "the first measured state of a trajectory cannot be closed; expected a state near a closed one. Use "
                "model.assemble with another guess"
            )
        J = model.constraint_jacobian(self.q)
        self._projection = np.eye(model.nv) - np.linalg.pinv(J, rcond=SMALLEST_SINGULAR_VALUE) @ J
        whole = self._independent(np.arange(model.nv))
        self._chosen = {"q": whole, "qd": whole}

    def _independent(self, dofs: np.ndarray) -> np.ndarray:
        return independent_changes(self._projection[None], dofs)[0]

    def entries(self, name: str, wanted: Collection[int] | None) -> np.ndarray:
        if wanted is not None:
            given, whole = np.array(sorted(wanted)), self._chosen[name]
            if not len(given) == len(self._independent(given)) == len(whole):
                joints = [self.model.joint_names[body] for body in self.model.kernel_model.dofs.body]
                raise ArgumentError(
                    f'parameters contains "{name}" of {[joints[i] for i in given]}; expected {len(whole)} independent '
                    f'coordinates of the closed loop, such as {[joints[i] for i in whole]}. "{name}" chooses them'
                )
            self._chosen[name] = given
        return self._chosen[name]

    def states(self, dq: FloatArray, dqd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the states for displacements (starts, nv) of the independent coordinates.

        The loops of states without a solution remain open, so their simulations fail.
        """
        model, chosen = self.model, self._chosen["q"]
        free = np.setdiff1d(np.arange(model.nv), chosen)
        q = model.integrate(np.broadcast_to(self.q, (len(dq), model.nq)), dq)
        for _ in range(NEWTON_STEPS):
            step = np.zeros_like(dq)
            step[:, free] = _solution(model.constraint_jacobian(q)[..., free], -model.constraint_residual(q))
            q = model.integrate(q, np.clip(step, -LONGEST_STEP, LONGEST_STEP))
            if np.abs(step).max(initial=0.0) < CLOSED:
                break
        J, chosen = model.constraint_jacobian(q), self._chosen["qd"]
        free = np.setdiff1d(np.arange(model.nv), chosen)
        qd = self.qd + dqd
        qd[:, free] = _solution(J[..., free], -(J[..., chosen] @ qd[:, chosen, None])[..., 0])
        return q, qd

    def changes(self, name: str, dq: FloatArray, dqd: FloatArray) -> FloatArray | None:
        """Return the changes of q and qd by the displacements of "q" or "qd", (starts, 2 nv, nv)."""
        n, starts, chosen = self.model.nv, len(dq), self._chosen[name]
        q, _ = self.states(dq, dqd)
        found = np.zeros((starts, 2 * n, n))
        for i in chosen:
            for count, weight in DIFFERENCES:
                shift = count * DIFFERENCE_STEP * np.eye(n)[i]
                moved = self.states(dq + shift, dqd) if name == "q" else self.states(dq, dqd + shift)
                change = np.concatenate([self.model.difference(q, moved[0]), moved[1]], -1)
                found[:, :, i] += weight / DIFFERENCE_STEP * change
        return found


def _solution(J: FloatArray, b: FloatArray) -> FloatArray:
    """Return the smallest solution of J x = b (starts, rows), even for dependent rows."""
    return (np.linalg.pinv(J, rcond=SMALLEST_SINGULAR_VALUE) @ b[..., None])[..., 0]
