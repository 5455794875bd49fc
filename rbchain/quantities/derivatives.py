"""Derivatives of the dynamics. Each method hands its states to one driver, whose result is three matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.algorithms.derivatives import DERIVATIVE_ROWS
from ..core.algorithms.minverse import COLUMN_ROWS, COLUMNS_TOGETHER
from ..drivers import derivatives
from ..kernel_model import KernelModel
from .attributes import Attributes


class Derivatives(Attributes):
    """The part of Model that computes derivatives of the dynamics."""

    def inverse_dynamics_derivatives(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike, out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivatives of `inverse_dynamics` (without wrenches).

        Parameters as for `inverse_dynamics`, and `out`, an array (..., 3, nv, nv) for the three results (new memory for
        a large batch takes time to be touched).

        Returns
        -------
        dtau_dq, dtau_dqd, dtau_dqdd : (..., nv, nv) arrays
            Row i is of tau[i]. Derivatives by q are along its tangent space, the directions of the velocities:
            column j is d tau / ds at `integrate(q, s e_j)`, as in Pinocchio. The last is the mass matrix.

        References
        ----------
        Carpentier and Mansard (2018), "Analytical derivatives of rigid body dynamics algorithms"; Singh, Russell and
        Wensing (2022), "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra".

        Examples
        --------
        A pendulum's moment is m g l cos(q) / 2, its derivative therefore zero where it hangs level:

        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> dtau_dq, dtau_dqd, dtau_dqdd = rod.inverse_dynamics_derivatives([0.0], [0.0], [0.0])
        >>> float(abs(dtau_dq[0, 0]).round(9)), float(dtau_dqdd[0, 0].round(9))
        (0.0, 0.166666667)
        """
        scratch = DERIVATIVE_ROWS * self.nv
        driver = derivatives.inverse_dynamics_derivatives
        self.kernel_model.refuse_water("inverse_dynamics_derivatives")
        return _three_matrices(self.kernel_model, driver, ("q", "qd", "qdd"), (q, qd, qdd), scratch, out)

    def forward_dynamics_derivatives(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike, out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivatives of `forward_dynamics` (without wrenches).

        Returns
        -------
        dqdd_dq, dqdd_dqd, dqdd_dtau : (..., nv, nv) arrays
            As for `inverse_dynamics_derivatives`; the last is the inverse of the mass matrix. NaN where the mechanism
            is singular.

        Examples
        --------
        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> dqdd_dq, dqdd_dqd, dqdd_dtau = rod.forward_dynamics_derivatives([0.0], [0.0], [0.0])
        >>> float(dqdd_dtau[0, 0].round(9))
        6.0
        """
        columns = COLUMNS_TOGETHER * COLUMN_ROWS * (self.nv + 1)
        scratch = 3 * self.nv * self.nv + DERIVATIVE_ROWS * self.nv + columns
        driver = derivatives.forward_dynamics_derivatives
        self.kernel_model.refuse_water("forward_dynamics_derivatives")
        model = self.kernel_model.with_inertia("forward_dynamics_derivatives")
        return _three_matrices(model, driver, ("q", "qd", "tau"), (q, qd, tau), scratch, out)


def _three_matrices(
    model: KernelModel,
    driver: Callable[..., Any],
    names: Sequence[str],
    states: Sequence[npt.ArrayLike],
    scratch: int,
    out: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The results of a driver as three matrices (..., nv, nv)."""
    found = model.compute(driver, (3, model.nv, model.nv), names, states, scratch=scratch, out=out)
    return found[..., 0, :, :], found[..., 1, :, :], found[..., 2, :, :]
