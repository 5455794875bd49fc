"""Residuals, Jacobians and forces of the constraints of a closed chain, and consistent states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..arguments import copied_to
from ..drivers import closed_chains
from ..errors import AssemblyError, ModelError, StateError
from ..kernel_model import KernelModel
from ..misspelt import did_you_mean
from ..real_arrays import excerpt
from .attributes import Attributes

#: Positions whose residuals are below this value are closed, m or rad.
CLOSED = 1e-11
#: Rates below this value are round-off, relative to the sum of the absolute values of their terms.
RATE_ROUND_OFF = 1e-10
#: Singular values of the Jacobian below this fraction of the largest one are round-off.
RANK_TOLERANCE = 1e-10
#: Largest relative error of the accelerations that the forces of inverse dynamics cause.
MOTION_TOLERANCE = {"float64": 1e-7, "float32": 1e-2}
ASSEMBLY_ITERATIONS, APPROACH_ITERATIONS, RETURN_ITERATIONS = 200, 60, 12
LONGEST_STEP, SHORTEST = 0.5, 1e-6  # of a step, rad or m; of the factor that shortens it
APPROACH_TOLERANCE = 1e-7


class ConstrainedStates(Attributes):
    """Methods of Model that concern constraints."""

    def constraint_residual(self, q: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Compute the residuals of all constraints, which are zero for a closed chain.

        Parameters
        ----------
        q : (..., nq) array
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., m) array, m or rad
            The rows of each constraint in the order of `constraint_names`: 3 of a ball, 5 of a hinge, 6 of a weld, 1 of
            a distance or a coupler.

        Raises
        ------
        ModelError
            If the model has no constraints.
        StateError
            As for `forward_dynamics`.
        """
        model = self._closed("constraint_residual")
        shape = (2, model.constraint_rows)
        zeros = self._none_like("q", q)
        found = model.compute(
            closed_chains.constraint_residual, shape, ("q", "qd"), (q, zeros), given=(model.constraint_tables,)
        )
        return copied_to(out, found[..., 0, :], (q,))

    def constraint_jacobian(self, q: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Compute the Jacobian J of the residuals: J qd is their rate.

        Parameters
        ----------
        q, out
            As for `constraint_residual`.

        Returns
        -------
        (..., m, nv) array

        Raises
        ------
        ModelError, StateError
            As for `constraint_residual`.
        """
        model = self._closed("constraint_jacobian")
        shape = (model.constraint_rows, model.nv)
        return model.compute(
            closed_chains.constraint_jacobian, shape, ("q",), (q,), given=(model.constraint_tables,), out=out
        )

    def constraint_forces(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        tau: npt.ArrayLike,
        wrenches: npt.ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Compute the multipliers lambda of all constraints: M qdd + h = tau + J^T lambda.

        Parameters
        ----------
        q, qd, tau, wrenches, out
            As for `forward_dynamics`.

        Returns
        -------
        (..., m) array, N and N m
            The multipliers act on body b. If rows depend on each other, as in an overconstrained mechanism, only
            J^T lambda is determined; the result is then the solution of minimum norm.

        Raises
        ------
        ModelError
            If the model has no constraints, or as for `forward_dynamics`.
        StateError
            As for `forward_dynamics`.
        """
        self._closed("constraint_forces")
        model = self.kernel_model.with_inertia("constraint_forces")
        return model.compute(
            closed_chains.constraint_forces,
            (model.constraint_rows,),
            ("q", "qd", "tau"),
            (q, qd, tau),
            wrenches,
            given=(model.constraint_tables,),
            out=out,
        )

    def assemble(self, q_guess: npt.ArrayLike, fixed: Sequence[str] = (), on_failure: str = "raise") -> np.ndarray:
        """Find the closed configuration nearest to a guess.

        Parameters
        ----------
        q_guess : (..., nq) array
        fixed : sequence of str
            Names of joints that keep their positions.
        on_failure : "raise" or "nan"
            "raise": raise an AssemblyError if a sample cannot be assembled. "nan": set its positions to NaN.

        Returns
        -------
        (..., nq) array
            Positions whose residuals are below 1e-11 (1e-4 in float32). The distance from the guess, the norm of
            `difference(q_guess, q)`, is a local minimum.

        Raises
        ------
        AssemblyError
            If a sample cannot be assembled. Its attributes are `q`, with NaN for these samples, and `failed`.
        ModelError
            If the model has no constraints, or no joint of a name in `fixed`.
        StateError
            As for `forward_dynamics`.

        Notes
        -----
        The distance mixes rad and m. The iteration is Levenberg and Marquardt's, with the damping of Yamashita and
        Fukushima (2001), "On the rate of convergence of the Levenberg-Marquardt method". It also converges for
        dependent rows. Steps along the constraints then reduce the distance.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> rod = rb.Inertia.rod(1.0, mass=1.0)
        >>> builder.add_body("left", joint=rb.Revolute(axis=(0, 1, 0)), inertia=rod)
        >>> builder.add_body("right", joint=rb.Revolute(axis=(0, 1, 0)), placement=rb.Pose((1, 0, 0)), inertia=rod)
        >>> tips = (0, 0, 1), (0, 0, 1)
        >>> builder.add_constraint(rb.DistanceConstraint("rod", "left", "right", *tips, length=1.0))
        >>> builder.build().assemble([0.5, 0.4], fixed=["left"]).round(6).tolist()
        [0.5, 0.5]
        """
        model = self._closed("assemble")
        if on_failure not in ("raise", "nan"):
            raise StateError(f'on_failure is {on_failure!r}; expected "raise" or "nan"')
        free = self._free_dofs(fixed)
        (given,), dtype, batch = model.state_arguments.check(("q_guess",), (q_guess,), of_samples=self.batch_shape)
        guess = np.array(np.broadcast_to(given, (*batch, self.nq)), np.float64)
        q = self._closed_positions(guess, free, ASSEMBLY_ITERATIONS)
        q = self._nearer(q, guess, free)
        with np.errstate(invalid="ignore"):
            failed = ~(np.abs(self.constraint_residual(q)).max(-1) < CLOSED) | self.is_turned_over(q)
        q = np.where(failed[..., None], np.nan, q).astype(dtype)
        if failed.any() and on_failure == "raise":
            raise AssemblyError(self._failure(guess, free, failed), q, failed)
        return q

    def assemble_velocities(self, q: npt.ArrayLike, qd_guess: npt.ArrayLike, fixed: Sequence[str] = ()) -> np.ndarray:
        """Find the velocities nearest to a guess that satisfy J qd = 0.

        Parameters
        ----------
        q : (..., nq) array
            Closed positions.
        qd_guess : (..., nv) array
        fixed : sequence of str
            Names of joints that keep their velocities.

        Returns
        -------
        (..., nv) array
            The norm of its difference from the guess is the smallest possible.

        Raises
        ------
        AssemblyError
            If the velocities of the fixed joints contradict the constraints.
        ModelError, StateError
            As for `assemble`.

        Examples
        --------
        The crank of a parallelogram turns with 2 rad/s:

        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> rod = rb.Inertia.rod(1.0, mass=1.0)
        >>> builder.add_body("left", joint=rb.Revolute(axis=(0, 1, 0)), inertia=rod)
        >>> builder.add_body("right", joint=rb.Revolute(axis=(0, 1, 0)), placement=rb.Pose((1, 0, 0)), inertia=rod)
        >>> tips = (0, 0, 1), (0, 0, 1)
        >>> builder.add_constraint(rb.DistanceConstraint("rod", "left", "right", *tips, length=1.0))
        >>> builder.build().assemble_velocities([0.5, 0.5], [2.0, 0.0], fixed=["left"]).round(6).tolist()
        [2.0, 2.0]
        """
        model = self._closed("assemble_velocities")
        free = self._free_dofs(fixed)
        states = (q, qd_guess)
        (q_given, qd), dtype, _ = model.state_arguments.check(("q", "qd_guess"), states, of_samples=self.batch_shape)
        q_given, qd = q_given.astype(np.float64), np.array(qd, np.float64)
        J = self.constraint_jacobian(q_given)
        for _ in range(2):  # the second pass removes the round-off of the first
            qd = qd - _damped_step(J * free, _times(J, qd), 0.0)
        rest = np.abs(_times(J, qd)).max(-1)
        failed = ~(rest <= RATE_ROUND_OFF * (1.0 + _times(np.abs(J), np.abs(qd)).max(-1)))
        if failed.any():
            found = np.where(failed[..., None], np.nan, qd).astype(dtype)
            raise AssemblyError(
                f"assemble_velocities: {_samples(failed)} the velocities of the fixed joints {list(fixed)} contradict "
                f"the constraints: their rates reach {np.nanmax(rest):.1e}. Fix fewer joints, or correct qd_guess",
                found,
                failed,
            )
        return qd.astype(dtype)

    def _forces_of_actuated_joints(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike,
        wrenches: npt.ArrayLike | None,
        out: np.ndarray | None,
        actuated: Sequence[str] | None,
    ) -> np.ndarray:
        """Compute the forces of motors: `inverse_dynamics` of a closed chain.

        Motions along the constraints, P dq, do no work against them: P^T (M qdd + h - S^T tau) = 0.
        """
        if actuated is None:
            raise ModelError(
                f"inverse_dynamics: model {self.name!r} has constraints, so that only the forces of some joints are "
                'determined; expected the names of the joints with motors, such as actuated=["crank"]'
            )
        dofs = self._dofs_of_joints("actuated", actuated)
        total = self._inverse_dynamics_of_tree(q, qd, qdd, wrenches)
        J = np.broadcast_to(
            self.constraint_jacobian(q), (*total.shape[:-1], self.kernel_model.constraint_rows, self.nv)
        )
        pseudo_inverse = np.linalg.pinv(np.where(np.isfinite(J), J, 0.0).astype(np.float64), rcond=RANK_TOLERANCE)
        along = np.eye(self.nv) - pseudo_inverse @ J
        forces = _times(np.linalg.pinv(along[..., dofs], rcond=RANK_TOLERANCE), _times(along, total))
        tau = np.zeros(total.shape)
        tau[..., dofs] = forces
        expected = self.forward_dynamics(q, qd, tau.astype(total.dtype), wrenches)
        given = np.broadcast_to(np.asarray(qdd, np.float64), expected.shape)
        tolerance = MOTION_TOLERANCE[total.dtype.name] * (1.0 + np.abs(given).max(-1) + np.abs(expected).max(-1))
        failed = np.abs(expected - given).max(-1) > tolerance
        if failed.any():
            raise StateError(
                f"inverse_dynamics: {_samples(failed)} the joints {list(actuated)} cannot cause the accelerations qdd: "
                f"with the best forces they differ by {np.abs(expected - given).max():.1e}. qdd has to satisfy "
                "J qdd + dJ/dt qd = 0, and a closed chain needs a motor for each of its degrees of freedom. Correct "
                "qdd, or name more joints"
            )
        return copied_to(out, forces.astype(total.dtype), (q, qd, qdd, wrenches))

    def _dofs_of_joints(self, what: str, joints: Sequence[str]) -> np.ndarray:
        """Return the degrees of freedom of joints, in the order of their names."""
        if isinstance(joints, str):
            raise ModelError(f"{what} is {joints!r}; expected a list of names, such as {what}=[{joints!r}]")
        found: list[int] = []
        for joint in joints:
            if joint not in self.joint_names:
                raise ModelError(
                    f"{what}: the model has no joint {joint!r}; expected one of {excerpt([*self.joint_names])}"
                    f"{did_you_mean(str(joint), self.joint_names)}"
                )
            found += np.flatnonzero(self.kernel_model.dofs.body == self.joint_names.index(joint)).tolist()
        return np.array(found, int)

    def _constraint_wrenches(
        self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike, wrenches: npt.ArrayLike | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the forces of the constraints: wrenches (..., n, 6) on bodies, and joint forces (..., nv)."""
        model, n = self.kernel_model.with_inertia("the forces of constraints"), self.n_bodies
        found = model.compute(
            closed_chains.constraint_wrenches,
            (6 * n + self.nv,),
            ("q", "qd", "tau"),
            (q, qd, tau),
            wrenches,
            given=(model.constraint_tables,),
        )
        return found[..., : 6 * n].reshape(*found.shape[:-1], n, 6), found[..., 6 * n :]

    def _closed(self, what: str) -> KernelModel:
        """Return the kernel model; raise a ModelError if it has no constraints."""
        if not self.kernel_model.constraint_rows:
            raise ModelError(
                f"{what}: model {self.name!r} has no constraints; expected a closed chain. Add constraints with "
                "ModelBuilder.add_constraint"
            )
        return self.kernel_model

    def _free_dofs(self, fixed: Sequence[str]) -> np.ndarray:
        """Return 0 for the dofs of fixed joints and 1 for the others, (nv,)."""
        free = np.ones(self.nv)
        free[self._dofs_of_joints("fixed", fixed)] = 0.0
        return free

    def _closed_positions(self, q: np.ndarray, free: np.ndarray, iterations: int) -> np.ndarray:
        """Close the chains by damped Newton steps of the free joints, as far as possible."""
        residual = self.constraint_residual(q)
        error = np.linalg.norm(residual, axis=-1)
        shorten = np.ones(error.shape)
        for _ in range(iterations):
            is_open = error > 0.0
            if not (is_open & (shorten > SHORTEST)).any():
                break
            step = -_damped_step(self.constraint_jacobian(q) * free, residual, error)
            length = np.linalg.norm(step, axis=-1)
            scale = shorten * np.minimum(1.0, LONGEST_STEP / np.maximum(length, 1e-300))
            trial = self.integrate(q, scale[..., None] * step)
            trial_residual = self.constraint_residual(trial)
            trial_error = np.linalg.norm(trial_residual, axis=-1)
            better = trial_error < error
            q = np.where(better[..., None], trial, q)
            residual = np.where(better[..., None], trial_residual, residual)
            error = np.where(better, trial_error, error)
            shorten = np.where(better, np.minimum(1.0, 4.0 * shorten), 0.25 * shorten)
        return q

    def _nearer(self, q: np.ndarray, guess: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Move closed positions along the constraints until their distance from the guess is a minimum."""
        distance, scale = np.linalg.norm(self.difference(guess, q), axis=-1), np.ones(q.shape[:-1])
        for _ in range(APPROACH_ITERATIONS):
            back = self.difference(q, guess) * free
            J = self.constraint_jacobian(q) * free
            step = back - _damped_step(J, _times(J, back), 0.0)
            is_moving = (np.linalg.norm(step, axis=-1) > APPROACH_TOLERANCE * (1.0 + distance)) & (scale > SHORTEST)
            if not is_moving.any():
                break
            trial = self._closed_positions(self.integrate(q, scale[..., None] * step), free, RETURN_ITERATIONS)
            trial_distance = np.linalg.norm(self.difference(guess, trial), axis=-1)
            is_closed = np.abs(self.constraint_residual(trial)).max(-1) < CLOSED
            better = is_moving & is_closed & (trial_distance < distance)
            q = np.where(better[..., None], trial, q)
            distance = np.where(better, trial_distance, distance)
            scale = np.where(better | ~is_moving, scale, 0.25 * scale)
        return q

    def is_turned_over(self, q: np.ndarray) -> np.ndarray:
        """Whether the axes of a hinge are opposite, or the frames of a weld are turned by more than a right angle."""
        d = self.description
        rotations = np.asarray(self.body_poses(q).rotation)
        world = np.broadcast_to(np.eye(3), (*rotations.shape[:-3], 1, 3, 3))
        of_bodies = np.concatenate([rotations, world], -3)
        found = np.zeros(q.shape[:-1], bool)
        for c, place in enumerate(d.constraints):
            if place.kind not in ("hinge", "weld"):
                continue
            A = of_bodies[..., place.body_a, :, :] @ d.constraint_axes_a[..., c, :, :]
            B = of_bodies[..., place.body_b, :, :] @ d.constraint_axes_b[..., c, :, :]
            cosines = (A * B).sum(-2)
            found |= cosines[..., 2] < 0.0 if place.kind == "hinge" else cosines.sum(-1) < 1.0
        return found

    def _failure(self, guess: np.ndarray, free: np.ndarray, failed: np.ndarray) -> str:
        """Describe why samples could not be assembled, by the first one."""
        first = tuple(np.argwhere(failed)[0])
        q = self._closed_positions(guess, free, ASSEMBLY_ITERATIONS)
        residual = np.abs(self.constraint_residual(q)[first])
        names = self.constraint_names_of_rows
        worst = names[int(np.nanargmax(residual))] if np.isfinite(residual).any() else names[0]
        held = "" if free.all() else " with these fixed joints"
        if residual.max() < CLOSED:
            return (
                f"assemble: {_samples(failed)} the axes of a hinge are opposite, or the frames of a weld are turned by "
                "half a turn. Use a guess nearer to the closed configuration"
            )
        return (
            f"assemble: {_samples(failed)} the constraints cannot be satisfied near the guess{held}; the largest "
            f"residual that is left is {residual.max():.2e}, of constraint {worst!r}. Use another guess, or check the "
            "lengths"
        )


def _samples(failed: np.ndarray) -> str:
    """Name the samples that failed, as the start of a sentence."""
    if not failed.ndim:
        return ""
    first = tuple(int(i) for i in np.argwhere(failed)[0])
    return f"in {int(failed.sum())} of {failed.size} samples, the first being {first[0] if len(first) == 1 else first},"


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return (matrix @ vector[..., None])[..., 0]


def _damped_step(J: np.ndarray, residual: np.ndarray, damping: npt.ArrayLike) -> np.ndarray:
    """Solve J x = residual for x of minimum norm, with damped singular values."""
    J, residual = np.where(np.isfinite(J), J, 0.0), np.where(np.isfinite(residual), residual, 0.0)
    U, sigma, Vt = np.linalg.svd(J, full_matrices=False)
    square = sigma * sigma + np.minimum(np.asarray(damping), 1.0)[..., None] ** 2
    is_used = sigma > RANK_TOLERANCE * sigma.max(-1, keepdims=True)
    inverse = np.where(is_used, sigma / np.where(is_used, square, 1.0), 0.0)
    return _times(np.swapaxes(Vt, -1, -2), inverse * _times(np.swapaxes(U, -1, -2), residual))
