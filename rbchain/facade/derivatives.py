"""Derivatives of the dynamics. Each method passes its states to one driver, whose result is three matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import FloatArray, true_or_false
from ..core.algorithms.derivatives import DERIVATIVE_ROWS
from ..core.algorithms.minverse import COLUMN_ROWS, COLUMNS_TOGETHER
from ..drivers import closed_chains, derivatives
from ..errors import ArgumentError
from ..model.kernel_model import KernelModel
from .attributes import Attributes


class Derivatives(Attributes):
    """Methods of Model that compute derivatives of the dynamics."""

    def inverse_dynamics_derivatives(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike,
        *,
        actuated: Sequence[str] | None = None,
        passive: bool = False,
        out: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute the derivatives of `inverse_dynamics` with respect to q, qd and qdd, without wrenches.

        Parameters
        ----------
        q, qd, qdd : (..., nq), (..., nv) and (..., nv) arrays
        actuated : sequence of str
            Names of the joints with motors, as for `inverse_dynamics`: required with closed loops; omit it for an open
            tree.
        passive : bool
            Whether passive joint forces are included, as for `inverse_dynamics`. At a kink of a force, such as the
            limit of an elastic stop, the result is the derivative on one side.
        out : (..., 3, nv, nv) array, optional
            The array for the three results, as for `forward_dynamics`.

        Returns
        -------
        dtau_dq, dtau_dqd, dtau_dqdd : (..., nv, nv) arrays
            Row i belongs to tau[i]. Derivatives with respect to q are on the tangent space, in the directions of the
            velocities: column j is d tau / ds at `integrate(q, s e_j)`, as in Pinocchio. dtau_dqdd is the mass matrix.
            With closed loops, the shape is (..., a, nv) with the number a of actuated dofs, in the order of `actuated`.
            The three derivatives are valid only together, for changes of q, qd and qdd that satisfy the constraints
            and their time derivatives. If there are more motors than degrees of freedom, they belong to the forces of
            minimum norm.

        Raises
        ------
        ArgumentError, ModelError
            As for `inverse_dynamics`; ArgumentError if the model is in water, or if the actuated joints of a closed
            loop do not move all its degrees of freedom.

        References
        ----------
        Carpentier and Mansard (2018), "Analytical derivatives of rigid body dynamics algorithms"; Singh, Russell and
        Wensing (2022), "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra".

        Examples
        --------
        The moment of a pendulum is m g l cos(q) / 2, so its derivative is zero in the horizontal position:

        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> dtau_dq, dtau_dqd, dtau_dqdd = rod.inverse_dynamics_derivatives([0.0], [0.0], [0.0])
        >>> float(abs(dtau_dq[0, 0]).round(9)), float(dtau_dqdd[0, 0].round(9))
        (0.0, 0.166666667)
        """
        self.kernel_model.refuse_water("inverse_dynamics_derivatives")
        if self.kernel_model.constraint_rows:
            self.kernel_model.refuse_compliance("inverse_dynamics_derivatives")
            of_motors = self._derivatives_of_actuated_joints((q, qd, qdd), actuated, passive, out)
            return of_motors[..., 0, :, :], of_motors[..., 1, :, :], of_motors[..., 2, :, :]
        self.kernel_model.refuse_actuated(actuated)
        scratch = DERIVATIVE_ROWS * self.nv
        driver = derivatives.inverse_dynamics_derivatives
        found = _three_matrices(self.kernel_model, driver, ("q", "qd", "qdd"), (q, qd, qdd), scratch, out)
        if true_or_false("passive", passive, ArgumentError):
            of_passive_forces, diagonal = self._passive_derivatives(q, qd), np.arange(self.nv)
            for order in range(2):
                found[order][..., diagonal, diagonal] -= of_passive_forces[..., order, :]
        return found

    def forward_dynamics_derivatives(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        tau: npt.ArrayLike = 0.0,
        *,
        passive: bool = False,
        out: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute the derivatives of `forward_dynamics` with respect to q, qd and tau, without wrenches.

        Parameters
        ----------
        q, qd, tau : (..., nq), (..., nv) and (..., nv) arrays
            `tau` may also be a number.
        passive : bool
            Whether passive joint forces are included, as for `forward_dynamics`. At a kink of a force, such as the
            limit of an elastic stop, the result is the derivative on one side.
        out : (..., 3, nv, nv) array, optional
            The array for the three results, as for `forward_dynamics`.

        Returns
        -------
        dqdd_dq, dqdd_dqd, dqdd_dtau : (..., nv, nv) arrays
            As for `inverse_dynamics_derivatives`. dqdd_dtau is the inverse of the mass matrix. NaN if the mechanism is
            singular. For closed loops, the derivatives contain the forces of the constraints. They hold for all
            changes of the state, including changes that open the loops. The independent rows are chosen at q.

        Raises
        ------
        ArgumentError, ModelError
            As for `forward_dynamics`, or ArgumentError if the model is in water.

        References
        ----------
        Carpentier, Budhiraja and Mansard (2021), "Proximal and sparse resolution of constrained dynamic equations".

        Examples
        --------
        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> dqdd_dq, dqdd_dqd, dqdd_dtau = rod.forward_dynamics_derivatives([0.0], [0.0])
        >>> float(dqdd_dtau[0, 0].round(9))
        6.0
        """
        self.kernel_model.refuse_water("forward_dynamics_derivatives")
        found = self._forward_dynamics_derivatives(q, qd, self._joint_forces(q, qd, tau, passive), out)
        if passive:  # d qdd / d tau times the diagonal matrix of the derivatives of the passive forces
            of_passive_forces = self._passive_derivatives(q, qd)
            for order in range(2):
                found[order][...] += found[2] * of_passive_forces[..., order, None, :]
        return found

    def _passive_derivatives(self, q: npt.ArrayLike, qd: npt.ArrayLike) -> FloatArray:
        """Return the derivatives (..., 2, nv) of the passive joint forces with respect to q and qd."""
        return self.kernel_model.compute(derivatives.passive_derivatives, (2, self.nv), ("q", "qd"), (q, qd))

    def _forward_dynamics_derivatives(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike, out: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute the derivatives of `forward_dynamics` for the joint forces `tau`."""
        model = self.kernel_model.for_dynamics("forward_dynamics_derivatives")
        if model.constraint_tables is not None:
            tables = model.constraint_tables
            scratch = closed_chains.scratch_of_derivatives(tables.envelope.shape[1], self.nv)
            driver, given = closed_chains.forward_dynamics_derivatives, (tables,)
            return _three_matrices(model, driver, ("q", "qd", "tau"), (q, qd, tau), scratch, out, given)
        columns = COLUMNS_TOGETHER * COLUMN_ROWS * (self.nv + 1)
        scratch = 3 * self.nv * self.nv + DERIVATIVE_ROWS * self.nv + columns
        driver = derivatives.forward_dynamics_derivatives
        return _three_matrices(model, driver, ("q", "qd", "tau"), (q, qd, tau), scratch, out)


def _three_matrices(
    model: KernelModel,
    driver: Callable[..., Any],
    names: Sequence[str],
    states: Sequence[npt.ArrayLike],
    scratch: int,
    out: FloatArray | None,
    given: tuple[Any, ...] = (),
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the result of a driver as three matrices (..., nv, nv)."""
    found = model.compute(driver, (3, model.nv, model.nv), names, states, scratch=scratch, given=given, out=out)
    return found[..., 0, :, :], found[..., 1, :, :], found[..., 2, :, :]
