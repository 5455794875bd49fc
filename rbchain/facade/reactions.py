"""Forces on bodies and their power. Each method passes its states and one driver to the kernel model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray
from ..drivers import dynamics
from ..errors import ArgumentError, ModelError
from ..model.arguments import as_array, copied_to
from .attributes import Attributes

#: Largest difference between the given accelerations and the accelerations by the joint forces, relative to 1 + |qdd|.
REACTION_TOLERANCE = {"float64": 1e-6, "float32": 1e-2}


class Reactions(Attributes):
    """Methods of Model that compute forces on bodies, and the power of all forces."""

    def force_balance_residual(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        tau: npt.ArrayLike = 0.0,
        wrenches: npt.ArrayLike | None = None,
        *,
        passive: bool = False,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Compute the unbalanced force on each body after `forward_dynamics`, which is zero to within round-off.

        The residual compares two results. The articulated-body algorithm gives the force f = IA a + pA through each
        joint. The Newton-Euler equations of the single body require f - sum of the children's f = I a + v x* I v -
        wrench. The residual is the difference of the two sides.

        Parameters
        ----------
        q, qd, tau, wrenches, passive, out
            As for `forward_dynamics`.

        Returns
        -------
        (..., n, 6) array, N and N m
            Force, then moment about the origin of the body's frame, in world axes.

        Raises
        ------
        ArgumentError, ModelError
            As for `forward_dynamics`.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> chain = rb.Model.serial_chain(6)
        >>> bool(np.abs(chain.force_balance_residual(np.ones(6), np.ones(6))).max() < 1e-13)
        True
        """
        tau = self._joint_forces(q, qd, tau, passive)
        model = self.kernel_model.for_dynamics("force_balance_residual")
        given = (q, qd, tau, wrenches)
        if model.constraint_rows:
            wrenches, tau = self._loads_with_constraints(q, qd, tau, wrenches)
        found = model.compute(dynamics.force_balance, (self.nv, 6), ("q", "qd", "tau"), (q, qd, tau), wrenches)
        return copied_to(out, found[..., self.kernel_model.dofs.last[:, None], [3, 4, 5, 0, 1, 2]], given)

    def _loads_with_constraints(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike, wrenches: npt.ArrayLike | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the wrenches on bodies and the joint forces, including the forces of the constraints."""
        on_bodies, on_joints = self._constraint_wrenches(q, qd, tau, wrenches)
        if wrenches is not None:
            on_bodies = on_bodies + as_array("wrenches", wrenches)
        return on_bodies, on_joints + as_array("tau", tau)

    @explains_calls(is_method=True)
    def joint_reactions(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike,
        wrenches: npt.ArrayLike | None = None,
        *,
        tau: npt.ArrayLike | None = None,
        passive: bool = False,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Compute the forces and moments that the joints transmit, which their bearings have to carry.

        Parameters
        ----------
        q, qd, qdd, wrenches, out
            As for `inverse_dynamics`.
        tau : float or (..., nv) array, N m or N
            Joint forces. Required with closed loops, because the forces of the constraints depend on them; `qdd` must
            then be `forward_dynamics(q, qd, tau, wrenches, passive=passive)`. Not used for an open tree.
        passive : bool
            Whether passive forces are included in addition to `tau`. For a given `qdd`, the reactions of
            an open tree do not depend on them.

        Returns
        -------
        (..., n, 6) array, N and N m
            Force, then moment about the origin of the body's frame, that the parent exerts on the body through the
            joint, in body axes. The joint axis is fixed in these axes. The component along it is the sum of the
            actuator force and the passive force of the joint (springs, damping, friction, stops), minus the inertial
            force of the rotor.

        Raises
        ------
        ArgumentError
            As for `inverse_dynamics`; or if `tau` does not cause `qdd` in a closed loop.
        ModelError
            If `tau` is missing with closed loops.

        Notes
        -----
        Pinocchio stores the same in `data.f` after `rnea`. MuJoCo's `cfrc_int` refers to the center of mass of the
        tree, in world axes.

        Examples
        --------
        The bearing of a horizontal rod carries its weight, 20 N, and the moment 5 N m of the actuator:

        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> rod.joint_reactions([0.0], [0.0], [0.0]).round(6).tolist()
        [[0.0, 20.0, 0.0, 0.0, 0.0, 5.0]]
        """
        shape = (self.n_bodies, 6)
        if self.kernel_model.constraint_rows:
            wrenches = self._wrenches_in_closed_chain(q, qd, qdd, wrenches, tau, passive)
        return self.kernel_model.compute(
            dynamics.joint_reactions, shape, ("q", "qd", "qdd"), (q, qd, qdd), wrenches, out=out
        )

    def _wrenches_in_closed_chain(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike,
        wrenches: npt.ArrayLike | None,
        tau: npt.ArrayLike | None,
        passive: bool,
    ) -> FloatArray:
        """Return the wrenches on bodies, including the wrenches of the constraints. Checks the accelerations first."""
        if tau is None:
            raise ModelError(
                f"joint_reactions: model {self.name!r} has constraints, whose forces depend on the joint forces; "
                "expected tau=, an array (..., nv)"
            )
        tau = self._joint_forces(q, qd, tau, passive)
        expected, given = self.forward_dynamics(q, qd, tau, wrenches), np.asarray(qdd)
        difference = np.abs(expected - given).max(-1)
        largest = REACTION_TOLERANCE[expected.dtype.name] * (1.0 + np.abs(expected).max(-1))
        if (difference > largest).any():
            raise ArgumentError(
                f"joint_reactions: qdd differs from forward_dynamics(q, qd, tau) by {np.nanmax(difference):.1e}; "
                "expected the accelerations that tau causes. Pass the tau of the trajectory, and passive=True for "
                "passive forces"
            )
        return self._loads_with_constraints(q, qd, tau, wrenches)[0]

    @explains_calls(is_method=True)
    def power(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        tau: npt.ArrayLike = 0.0,
        wrenches: npt.ArrayLike | None = None,
        *,
        passive: bool = False,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Compute the power of the joint forces and wrenches, which is the time derivative of the mechanical energy.

        Parameters
        ----------
        q, qd, tau, wrenches, passive, out
            As for `forward_dynamics`.

        Returns
        -------
        (...) array, W

        Raises
        ------
        ArgumentError
            As for `forward_dynamics`.

        Examples
        --------
        >>> import rbchain as rb
        >>> float(rb.Model.serial_chain(2).power([0, 0], [1, 2], [3, 4]))
        11.0
        """
        given = (q, qd, tau, wrenches)
        tau = self._joint_forces(q, qd, tau, passive)
        (q, qd, tau, *_), dtype, _ = self.kernel_model.state_arguments.check(("q", "qd", "tau"), (q, qd, tau), wrenches)
        with np.errstate(over="ignore", invalid="ignore"):  # not finite in one sample only
            power = np.einsum("...i,...i", tau, qd)
            if wrenches is not None:
                # the order of the sum, and so its round-off, depends on the layout in memory
                on_bodies = np.ascontiguousarray(as_array("wrenches", wrenches), dtype)
                power = power + np.einsum("...ij,...ij", on_bodies, self.body_velocities(q, qd))
        return copied_to(out, power, given)
