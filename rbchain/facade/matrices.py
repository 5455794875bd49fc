"""Matrices in joint space: mass, Coriolis, centroidal momentum. Each method passes its states to one driver."""

from __future__ import annotations

import numpy.typing as npt

from ..common.real_arrays import FloatArray
from ..core.algorithms.coriolis import CORIOLIS_ROWS
from ..core.algorithms.crba import RIGID_ROWS
from ..core.algorithms.minverse import COLUMN_ROWS, COLUMNS_TOGETHER
from ..drivers import dynamics, matrices
from .attributes import Attributes


class Matrices(Attributes):
    """Methods of Model that compute matrices in joint space."""

    def mass_matrix(self, q: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the mass matrix H, by the composite-rigid-body algorithm: the kinetic energy is qd . H qd / 2.

        Parameters
        ----------
        q : (..., nq) array
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nv, nv) array, kg m^2, kg m or kg
            Exactly symmetric. The diagonal includes the armature.

        Raises
        ------
        ArgumentError
            As for `forward_dynamics`.

        References
        ----------
        Walker and Orin (1982); Featherstone (2008), section 6.2.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=1.0, mass=6.0).mass_matrix([0.0, 0.0]).round(6).tolist()
        [[16.0, 5.0], [5.0, 2.0]]
        """
        model = self.kernel_model
        if out is None and (result := model.single_calls[matrices.mass_matrix](q)) is not None:
            return result
        n = model.nv
        return model.compute(matrices.mass_matrix, (n, n), ("q",), (q,), scratch=RIGID_ROWS * n, out=out)

    def mass_matrix_inverse(self, q: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the inverse of the mass matrix, by the articulated-body algorithm.

        For H^-1 times a vector, `solve_mass_matrix` is faster. With closed loops, this is the matrix of the tree
        without constraints.

        Parameters
        ----------
        q : (..., nq) array
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nv, nv) array
            Exactly symmetric; NaN if the mechanism is singular.

        Raises
        ------
        ArgumentError, ModelError
            As for `forward_dynamics`.

        References
        ----------
        Featherstone (2008), section 7.3; Carpentier (2018), "Analytical inverse of the joint space inertia matrix".

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=1.0, mass=6.0).mass_matrix_inverse([0.0, 0.0]).round(6).tolist()
        [[0.285714, -0.714286], [-0.714286, 2.285714]]
        """
        model = self.kernel_model.with_inertia("mass_matrix_inverse")
        n, driver = self.nv, matrices.mass_matrix_inverse
        return model.compute(driver, (n, n), ("q",), (q,), scratch=COLUMNS_TOGETHER * COLUMN_ROWS * (n + 1), out=out)

    def solve_mass_matrix(self, q: npt.ArrayLike, tau: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute H^-1 tau: the accelerations of the mechanism at rest under joint forces, without gravity.

        This is `forward_dynamics` without gravity, in O(nv) operations and without a matrix. Constraints are ignored:
        with closed loops, these are the accelerations of `open_tree()`.

        Parameters
        ----------
        q, tau : (..., nq) and (..., nv) arrays
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nv) array, rad/s^2 or m/s^2

        Raises
        ------
        ArgumentError, ModelError
            As for `forward_dynamics`.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=1.0, mass=6.0).solve_mass_matrix([0.0, 0.0], [16.0, 5.0]).round(6).tolist()
        [1.0, 0.0]
        """
        model = self.kernel_model.with_inertia("solve_mass_matrix").weightless
        states = q, self._none_like("q", q), tau
        return model.compute(dynamics.forward_dynamics, (self.nv,), ("q", "qd", "tau"), states, None, out=out)

    def coriolis_matrix(self, q: npt.ArrayLike, qd: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the Coriolis matrix C: C qd is the bias force without gravity, and dH/dt - 2 C is skew-symmetric.

        Many matrices have these two properties. This matrix has the `christoffel_symbols` as coefficients. It takes
        O(nv d) operations, where d is the depth of the tree.

        Parameters
        ----------
        q, qd : (..., nq) and (..., nv) arrays
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nv, nv) array

        References
        ----------
        Echeandia and Wensing (2021), "Numerical methods to compute the Coriolis matrix and Christoffel symbols for
        rigid-body systems", algorithm 1.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> C = rb.Model.serial_chain(2, length=1.0, mass=6.0).coriolis_matrix([0.0, np.pi / 2], [1.0, 2.0])
        >>> C.round(6).tolist()
        [[-6.0, -9.0], [3.0, 0.0]]
        """
        n, scratch = self.nv, CORIOLIS_ROWS * self.nv
        return self.kernel_model.compute(
            matrices.coriolis_matrix, (n, n), ("q", "qd"), (q, qd), scratch=scratch, out=out
        )

    def christoffel_symbols(self, q: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the Christoffel symbols of the first kind: C[i, j] = sum over l of symbols[i, j, l] qd[l].

        If the velocities are derivatives of the positions (no free or spherical joint), symbols[i, j, l] =
        (dH[i, j]/dq[l] + dH[i, l]/dq[j] - dH[j, l]/dq[i]) / 2.

        Parameters
        ----------
        q : (..., nq) array
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., nv, nv, nv) array

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> rb.Model.serial_chain(2, length=1.0, mass=6.0).christoffel_symbols([0.0, np.pi / 2])[0].round(6).tolist()
        [[0.0, -3.0], [-3.0, -3.0]]
        """
        n = self.nv
        scratch = n * n + CORIOLIS_ROWS * n
        return self.kernel_model.compute(
            matrices.christoffel_symbols, (n, n, n), ("q",), (q,), scratch=scratch, out=out
        )

    def centroidal_momentum_matrix(self, q: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the centroidal momentum matrix A: A qd is the `momentum`, in world axes.

        Parameters
        ----------
        q : (..., nq) array
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., 6, nv) array
            Rows of the momentum, then of the angular momentum about the center of mass.

        References
        ----------
        Orin, Goswami and Lee (2013), "Centroidal dynamics of a humanoid robot".

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(1, length=2.0, mass=3.0).centroidal_momentum_matrix([0.0])[:, 0].tolist()
        [0.0, 3.0, 0.0, 0.0, 0.0, 1.0]
        """
        driver, scratch = matrices.centroidal_momentum_matrix, RIGID_ROWS * self.nv
        return self.kernel_model.compute(driver, (6, self.nv), ("q",), (q,), scratch=scratch, out=out)
