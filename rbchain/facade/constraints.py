"""Residuals, Jacobians and forces of the constraints of closed loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import FloatArray
from ..drivers import closed_chains
from ..errors import ArgumentError, ModelError
from ..model.arguments import copied_to, named_samples
from .attributes import Attributes
from .pseudo_inverses import product, pseudo_inverse

#: Largest relative error of the accelerations that the forces of inverse dynamics cause.
MOTION_TOLERANCE = {"float64": 1e-7, "float32": 1e-2}
#: Largest entry of the difference between two projectors that counts as round-off.
SAME_PROJECTOR = 1e-6


class Constraints(Attributes):
    """Methods of Model that compute residuals, Jacobians and forces of constraints."""

    def constraint_residual(self, q: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the residuals of all constraints. They are zero for rigid constraints if all loops are closed.

        Parameters
        ----------
        q : (..., nq) array
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., m) array, m or rad
            The rows of each constraint, in the order of `constraint_names`: 3 of a ball, 5 of a hinge, 6 of a weld, and
            1 of a distance or a coupler.

        Raises
        ------
        ModelError
            If the model has no constraints.
        ArgumentError
            As for `forward_dynamics`.

        Examples
        --------
        The tips of two rods are connected by a third rod of 1 m, but are only 0.8 m apart:

        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> for name, x in (("left", 0.0), ("right", 0.8)):
        ...     joint, place = rb.Revolute(axis=(0, 1, 0)), rb.Pose((x, 0, 0))
        ...     builder.add_body(name, joint=joint, placement=place, inertia=rb.Inertia.rod(1.0, mass=1.0))
        >>> rod = rb.DistanceConstraint("rod", "left", "right", point_a=(0, 0, 1), point_b=(0, 0, 1), length=1.0)
        >>> builder.add_constraint(rod)
        >>> model = builder.build()
        >>> model.constraint_residual([0.0, 0.0]).round(12).tolist()
        [-0.2]
        """
        model = self.kernel_model.closed_chain("constraint_residual")
        shape = (2, model.constraint_rows)
        zeros = self._none_like("q", q)
        found = model.compute(
            closed_chains.constraint_residual, shape, ("q", "qd"), (q, zeros), given=(model.constraint_tables,)
        )
        return copied_to(out, found[..., 0, :], (q,))

    def constraint_jacobian(self, q: npt.ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Compute the Jacobian J of the residuals. J qd is the rate of change of the residuals.

        Parameters
        ----------
        q, out
            As for `constraint_residual`.

        Returns
        -------
        (..., m, nv) array, m/rad, rad/m or 1
            One row for each entry of `constraint_residual`. The columns of free and spherical joints refer to their
            velocities, in body axes.

        Raises
        ------
        ModelError, ArgumentError
            As for `constraint_residual`.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> for name in ("motor", "arm"):
        ...     builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
        >>> builder.add_constraint(rb.CouplerConstraint("gear", "arm", "motor", ratio=0.5))
        >>> builder.build().constraint_jacobian([0.0, 0.0]).tolist()
        [[-0.5, 1.0]]
        """
        model = self.kernel_model.closed_chain("constraint_jacobian")
        shape = (model.constraint_rows, model.nv)
        return model.compute(
            closed_chains.constraint_jacobian, shape, ("q",), (q,), given=(model.constraint_tables,), out=out
        )

    def constraint_forces(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        tau: npt.ArrayLike = 0.0,
        wrenches: npt.ArrayLike | None = None,
        *,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Compute the multipliers lambda of all constraints: H qdd + h = tau + J^T lambda.

        Parameters
        ----------
        q, qd, tau, wrenches, out
            As for `forward_dynamics`. The state must satisfy the rigid constraints.

        Returns
        -------
        (..., m) array, N and N m
            The forces and moments on body b, in the order of `constraint_residual`. If rows of rigid constraints depend
            on each other, as in an overconstrained mechanism, only J^T lambda is unique. The result is then the
            solution of minimum norm. Forces of compliant constraints are unique.

        Raises
        ------
        ModelError
            If the model has no constraints; or as for `forward_dynamics`.
        ArgumentError
            As for `forward_dynamics`.
        """
        self.kernel_model.closed_chain("constraint_forces")
        tau = self._joint_forces(q, qd, tau, False)
        model = self.kernel_model.for_dynamics("constraint_forces")
        return model.compute(
            closed_chains.constraint_forces,
            (model.constraint_rows,),
            ("q", "qd", "tau"),
            (q, qd, tau),
            wrenches,
            given=(model.constraint_tables,),
            out=out,
        )

    def _forces_of_actuated_joints(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike,
        wrenches: npt.ArrayLike | None,
        actuated: Sequence[str] | None,
        passive: bool,
        out: FloatArray | None,
    ) -> FloatArray:
        """Compute the forces of actuated joints: `inverse_dynamics` of a closed loop.

        The constraints do no work in motions P dq that satisfy them: P^T (H qdd + h - tau_passive - S^T tau) = 0.
        """
        if actuated is None:
            raise ModelError(
                f"inverse_dynamics: model {self.name!r} has constraints, so accelerations do not determine the forces "
                'of all joints; expected the names of the joints with motors, such as actuated=["crank"]'
            )
        dofs = self.kernel_model.dofs_of_joints("actuated", actuated)
        total = self._inverse_dynamics_of_tree(q, qd, qdd, wrenches)
        if passive:
            total = total - self.passive_forces(q, qd)
        along = self._projector(q, total.shape[:-1])
        forces = product(pseudo_inverse(along[..., dofs]), product(along, total))
        tau = np.zeros(total.shape)
        tau[..., dofs] = forces
        expected = self.forward_dynamics(q, qd, tau.astype(total.dtype), wrenches, passive=passive)
        given = np.broadcast_to(np.asarray(qdd, np.float64), expected.shape)
        tolerance = MOTION_TOLERANCE[total.dtype.name] * (1.0 + np.abs(given).max(-1) + np.abs(expected).max(-1))
        failed = np.abs(expected - given).max(-1) > tolerance
        if failed.any():
            raise ArgumentError(
                f"inverse_dynamics: {named_samples(failed)}the joints {list(actuated)} cannot cause the accelerations "
                f"qdd. The best forces leave an error of {np.nanmax(np.abs(expected - given)):.1e}; expected qdd "
                "with J qdd + dJ/dt qd = 0, and a motor for each degree of freedom of the closed loop. Correct qdd, "
                "or name more joints"
            )
        return copied_to(out, forces.astype(total.dtype), (q, qd, qdd, wrenches))

    def _projector(self, q: npt.ArrayLike, batch: tuple[int, ...]) -> FloatArray:
        """Return the projector P (..., nv, nv) onto the velocities that satisfy the constraints, in float64."""
        J = np.broadcast_to(self.constraint_jacobian(q), (*batch, self.kernel_model.constraint_rows, self.nv))
        return np.eye(self.nv) - pseudo_inverse(J) @ J

    def _derivatives_of_actuated_joints(
        self,
        states: Sequence[npt.ArrayLike],
        actuated: Sequence[str] | None,
        passive: bool,
        out: FloatArray | None,
    ) -> FloatArray:
        """Compute the derivatives (..., 3, a, nv) of actuated joint forces with respect to `states`: q, qd and qdd.

        The forces are A^+ P t with A = P S^T and the forces t of the tree; A^+ is the pseudo-inverse of A. At constant
        qdd, the derivative of t less the forces of the constraints is - H times the derivative of the forward dynamics,
        up to forces of the constraints. If A^+ A is not 1, (1 - A^+ A) S dP y is added, with y = A^+T tau. Because a
        mechanism at rest with the acceleration y satisfies J dqdd + dJ y = 0, dP y is J^+ J dqdd.

        Source: Golub and Pereyra (1973), "The differentiation of pseudo-inverses", for the derivative of A^+.
        """
        (q, qd, qdd), dtype, batch = self.kernel_model.state_arguments.check(("q", "qd", "qdd"), states)
        q, qd, qdd = (x.astype(np.float64) for x in (q, qd, qdd))
        forces = self._forces_of_actuated_joints(q, qd, qdd, None, actuated, passive, None)
        dofs = self.kernel_model.dofs_of_joints("actuated", actuated or ())
        P = self._projector(q, batch)
        A = P[..., dofs]
        inverse = pseudo_inverse(A)
        missing = np.abs(A @ inverse - P).max((-2, -1)) > SAME_PROJECTOR
        if missing.any():
            raise ArgumentError(
                f"inverse_dynamics_derivatives: {named_samples(missing)}the joints {list(actuated or ())} do not "
                "determine all forces; expected a motor for each degree of freedom of the closed loop. Name more "
                "joints"
            )
        tau = np.zeros((*batch, self.nv))
        tau[..., dofs] = forces
        by_q, by_qd, _ = self.forward_dynamics_derivatives(q, qd, tau, passive=passive)
        by_qdd = inverse @ self.mass_matrix(q)
        found = np.stack([-by_qdd @ by_q, -by_qdd @ by_qd, by_qdd], -3)
        spare = np.eye(len(dofs)) - inverse @ A
        if np.abs(spare).max(initial=0.0) > SAME_PROJECTOR:
            rest, y = np.zeros_like(qd), product(np.swapaxes(inverse, -1, -2), forces)
            by_q, *_ = self.forward_dynamics_derivatives(q, rest, self._inverse_dynamics_of_tree(q, rest, y))
            found[..., 0, :, :] += spare @ (by_q - P @ by_q)[..., dofs, :]
        return copied_to(out, found.astype(dtype), states)

    def _constrained_hybrid_dynamics(
        self,
        states: Sequence[npt.ArrayLike],
        prescribed: np.ndarray,
        wrenches: npt.ArrayLike | None,
        passive: bool,
        out: FloatArray | None,
    ) -> FloatArray:
        """Compute accelerations and joint forces (..., 2, nv): `hybrid_dynamics` of a closed loop.

        `states` are q, qd, tau and qdd. The forces x of the prescribed dofs change the accelerations of the forward
        dynamics by delta, with S delta = c and J delta = 0. The rows of S select these dofs. P projects onto the
        changes with J delta = 0, and Q onto those with S delta = 0 too. Then delta = (S P)^+ c + Q z with
        Q H delta = 0, and x = (P S^T)^+ H delta, which has the minimum norm.
        """
        names = ("q", "qd", "tau", "qdd", "prescribed")
        arrays, _, _ = self.kernel_model.state_arguments.check(names, (*states, prescribed.astype(np.float32)))
        dtype = self.kernel_model.state_arguments.check(names[:4], states)[1]
        q, qd, tau, qdd, held = (x.astype(np.float64) for x in arrays)
        free = self.forward_dynamics(q, qd, np.where(held, 0.0, tau), wrenches, passive=passive)
        change = np.where(held, qdd - free, 0.0)
        failed = np.asarray(~np.isfinite(change).all(-1))
        unit = np.eye(self.nv)
        P = self._projector(q, free.shape[:-1])
        of_held = P * held[..., None]
        inverse = pseudo_inverse(of_held)
        Q = P - inverse @ of_held
        H = np.where(failed[..., None, None], unit, self.mass_matrix(q))
        scale = np.trace(H, axis1=-2, axis2=-1)[..., None, None] / self.nv
        delta = product(inverse, change)
        rest = np.linalg.solve(Q @ H @ Q + scale * (unit - Q), product(Q, product(H, delta))[..., None])
        delta = delta - product(Q, rest[..., 0])
        error = np.abs(np.where(held, delta - change, 0.0)).max(-1)
        largest = np.abs(np.where(held, qdd, 0.0)).max(-1) + np.abs(free).max(-1)
        contradicts = error > MOTION_TOLERANCE[dtype.name] * (1.0 + largest)
        if contradicts.any():
            raise ArgumentError(
                f"hybrid_dynamics: {named_samples(contradicts)}the constraints do not allow the prescribed "
                f"accelerations. The nearest accelerations differ by {np.nanmax(error):.1e}; expected "
                "J qdd + dJ/dt qd = 0. Prescribe the accelerations of fewer joints, or correct qdd"
            )
        forces = np.where(held, product(np.swapaxes(inverse, -1, -2), product(H, delta)), tau)
        found = np.stack([free + delta, np.broadcast_to(forces, free.shape)], -2)
        found[failed] = np.nan
        return copied_to(out, found.astype(dtype), (*states, prescribed, wrenches))

    def _constraint_wrenches(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike, wrenches: npt.ArrayLike | None
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the forces of the constraints: wrenches (..., n, 6) on the bodies, and joint forces (..., nv)."""
        model, n = self.kernel_model.for_dynamics("the forces of constraints"), self.n_bodies
        found = model.compute(
            closed_chains.constraint_wrenches,
            (6 * n + self.nv,),
            ("q", "qd", "tau"),
            (q, qd, tau),
            wrenches,
            scratch=6 * self.nv,
            given=(model.constraint_tables,),
        )
        return found[..., : 6 * n].reshape(*found.shape[:-1], n, 6), found[..., 6 * n :]
