"""Assembly: find positions and velocities that satisfy the constraints of a closed loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.failures import OnFailure, checked_on_failure
from ..common.real_arrays import FloatArray
from ..errors import ArgumentError, AssemblyError, raise_or_warn
from ..model.arguments import named_samples
from ..model.kernel_model import KernelModel
from ..model.loop_geometry import is_turned_over
from .attributes import Attributes
from .pseudo_inverses import damped_solution, product

#: Positions are closed if their residuals are below this value, in rad or relative to the size of the mechanism.
CLOSED = 1e-11
#: Rates below this value are round-off, relative to the sum of the absolute values of their terms.
RATE_ROUND_OFF = 1e-10
ASSEMBLY_ITERATIONS, APPROACH_ITERATIONS, RETURN_ITERATIONS = 200, 60, 12
LONGEST_STEP, SHORTEST = 0.5, 1e-6  # of a step, rad or m; of the factor that shortens it
APPROACH_TOLERANCE = 1e-7


class Assembly(Attributes):
    """Methods of Model that find states that satisfy the constraints."""

    @explains_calls(is_method=True)
    def assemble(
        self, q_guess: npt.ArrayLike, *, fixed: Sequence[str] = (), on_failure: OnFailure = "warn"
    ) -> FloatArray:
        """Find the closed configuration nearest to a guess.

        Parameters
        ----------
        q_guess : (..., nq) array, rad or m
        fixed : sequence of str
            Names of joints that keep their positions.
        on_failure : "warn", "raise" or "ignore"
            The positions of samples that cannot be assembled are NaN. With "warn", a batch causes a SimulationWarning
            that contains the first of them, and a single guess raises an AssemblyError. With "raise", a batch also
            raises the error. With "ignore", there is neither a warning nor an error.

        Returns
        -------
        (..., nq) array
            Closed positions at a local minimum of the distance from the guess. Their residuals are below 1e-11 (1e-4 in
            float32), in rad or relative to the distances of bodies and points from the origin of the world.

        Raises
        ------
        AssemblyError
            If a single guess cannot be assembled, unless `on_failure` is "ignore", or a sample cannot be assembled and
            `on_failure` is "raise". Its attributes are `q`, with NaN for these samples, and `failed`.
        ModelError
            If the model has no constraints, or a name in `fixed` is not the name of a joint.
        ArgumentError
            As for `forward_dynamics`.

        Notes
        -----
        The distance is the square root of the sum of the squared joint displacements, in rad and m. The displacement of
        a free joint consists of the displacement of its body's origin and the angle of the rotation.

        The Levenberg-Marquardt method solves the equations, with the damping of Yamashita and Fukushima (2001), "On the
        rate of convergence of the Levenberg-Marquardt method". It also converges for dependent rows. Steps along the
        constraints then reduce the distance.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> rod = rb.Inertia.rod(1.0, mass=1.0)
        >>> builder.add_body("left", joint=rb.Revolute(axis=(0, 1, 0)), inertia=rod)
        >>> builder.add_body("right", joint=rb.Revolute(axis=(0, 1, 0)), placement=rb.Pose((1, 0, 0)), inertia=rod)
        >>> tips = {"point_a": (0, 0, 1), "point_b": (0, 0, 1)}
        >>> builder.add_constraint(rb.DistanceConstraint("rod", "left", "right", **tips, length=1.0))
        >>> builder.build().assemble([0.5, 0.4], fixed=["left"]).round(6).tolist()
        [0.5, 0.5]
        """
        model = self._chain_to_assemble("assemble")
        checked_on_failure(on_failure, ArgumentError)
        free = self._free_dofs(fixed)
        (given,), dtype, batch = model.state_arguments.check(("q_guess",), (q_guess,))
        guess = np.array(np.broadcast_to(given, (*batch, self.nq)), np.float64)
        q = self._closed_positions(guess, free, ASSEMBLY_ITERATIONS)
        sizes = self._sizes_of_rows(q)
        q = self._nearer(q, guess, free, sizes)
        with np.errstate(invalid="ignore"):
            failed = ~self._is_closed(q, sizes) | is_turned_over(self.description, self.body_poses(q).rotation)
        q = np.where(failed[..., None], np.nan, q).astype(dtype)
        if failed.any() and on_failure != "ignore":
            error = AssemblyError(self._failure(guess, free, failed), q, failed)
            raise_or_warn(error, on_failure == "raise" or not failed.ndim, stacklevel=3)
        return q

    @explains_calls(is_method=True)
    def assemble_velocities(
        self,
        q: npt.ArrayLike,
        qd_guess: npt.ArrayLike,
        *,
        fixed: Sequence[str] = (),
        on_failure: OnFailure = "warn",
    ) -> FloatArray:
        """Find the velocities nearest to a guess that satisfy J qd = 0.

        Parameters
        ----------
        q : (..., nq) array
            Closed positions.
        qd_guess : (..., nv) array, rad/s or m/s
        fixed : sequence of str
            Names of joints that keep their velocities.
        on_failure : "warn", "raise" or "ignore"
            As for `assemble`.

        Returns
        -------
        (..., nv) array
            The velocities that satisfy J qd = 0 with the smallest norm of the difference from the guess.

        Raises
        ------
        AssemblyError
            If the velocities of the fixed joints contradict the constraints, or a value is not finite: of a single
            state, unless `on_failure` is "ignore", or of a sample if `on_failure` is "raise". Its attributes are `q`,
            the velocities with NaN for these samples, and `failed`.
        ModelError, ArgumentError
            As for `assemble`.

        Examples
        --------
        The crank of a parallelogram turns with 2 rad/s:

        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> rod = rb.Inertia.rod(1.0, mass=1.0)
        >>> builder.add_body("left", joint=rb.Revolute(axis=(0, 1, 0)), inertia=rod)
        >>> builder.add_body("right", joint=rb.Revolute(axis=(0, 1, 0)), placement=rb.Pose((1, 0, 0)), inertia=rod)
        >>> tips = {"point_a": (0, 0, 1), "point_b": (0, 0, 1)}
        >>> builder.add_constraint(rb.DistanceConstraint("rod", "left", "right", **tips, length=1.0))
        >>> builder.build().assemble_velocities([0.5, 0.5], [2.0, 0.0], fixed=["left"]).round(6).tolist()
        [2.0, 2.0]
        """
        model = self._chain_to_assemble("assemble_velocities")
        checked_on_failure(on_failure, ArgumentError)
        free = self._free_dofs(fixed)
        states = (q, qd_guess)
        (q_given, qd), dtype, _ = model.state_arguments.check(("q", "qd_guess"), states)
        q_given, qd = q_given.astype(np.float64), np.array(qd, np.float64)
        J = self._rigid_jacobian(q_given)
        for _ in range(2):  # the second pass removes the round-off of the first
            qd = qd - damped_solution(J * free, product(J, qd), 0.0)
        rest = np.abs(product(J, qd)).max(-1)
        failed = ~(rest <= RATE_ROUND_OFF * (1.0 + product(np.abs(J), np.abs(qd)).max(-1)))
        found = np.where(failed[..., None], np.nan, qd).astype(dtype)
        if failed.any() and on_failure != "ignore":
            problem = (
                f"the velocities of the fixed joints {list(fixed)} contradict the constraints: their rates reach "
                f"{np.nanmax(rest, initial=0.0):.1e}. Fix fewer joints, or correct qd_guess"
                if np.isfinite(rest[failed]).any()
                else "q or qd_guess has numbers that are not finite; expected finite numbers"
            )
            error = AssemblyError(f"assemble_velocities: {named_samples(failed)}{problem}", found, failed)
            raise_or_warn(error, on_failure == "raise" or not failed.ndim, stacklevel=3)
        return found

    def _chain_to_assemble(self, function: str) -> KernelModel:
        """Return the kernel model. Raises a ModelError if no constraint is rigid."""
        model = self.kernel_model.closed_chain(function)
        if not model.is_rigid_row.any():
            model.refuse_compliance(
                function, "No positions satisfy compliant constraints exactly: assemble a model with rigid constraints"
            )
        return model

    def _rigid_residual(self, q: FloatArray) -> FloatArray:
        """Return the residuals of the rigid constraints (..., rows)."""
        return self.constraint_residual(q)[..., self.kernel_model.is_rigid_row]

    def _rigid_jacobian(self, q: FloatArray) -> FloatArray:
        """Return the Jacobian of the rigid constraints (..., rows, nv)."""
        return self.constraint_jacobian(q)[..., self.kernel_model.is_rigid_row, :]

    def _free_dofs(self, fixed: Sequence[str]) -> np.ndarray:
        """Return 0 for the dofs of fixed joints and 1 for the others, (nv,)."""
        free = np.ones(self.nv)
        free[self.kernel_model.dofs_of_joints("fixed", fixed)] = 0.0
        return free

    def _closed_positions(self, q: np.ndarray, free: np.ndarray, iterations: int) -> np.ndarray:
        """Reduce the residuals by damped Newton steps of the joints that are not fixed, as far as possible."""
        residual = self._rigid_residual(q)
        error = np.linalg.norm(residual, axis=-1)
        shorten = np.ones(error.shape)
        for _ in range(iterations):
            is_moving = (error > 0.0) & (shorten > SHORTEST)
            if not is_moving.any():
                break
            step = -damped_solution(self._rigid_jacobian(q) * free, residual, error)
            length = np.linalg.norm(step, axis=-1)
            scale = shorten * np.minimum(1.0, LONGEST_STEP / np.maximum(length, 1e-300))
            trial = self.integrate(q, scale[..., None] * step)
            trial_residual = self._rigid_residual(trial)
            trial_error = np.linalg.norm(trial_residual, axis=-1)
            better = is_moving & (trial_error < error)  # so that a sample does not depend on the others
            q = np.where(better[..., None], trial, q)
            residual = np.where(better[..., None], trial_residual, residual)
            error = np.where(better, trial_error, error)
            shorten = np.where(better, np.minimum(1.0, 4.0 * shorten), 0.25 * shorten)
        return q

    def _sizes_of_rows(self, q: np.ndarray) -> np.ndarray:
        """Return sizes of the rows of rigid constraints (..., rows): of the mechanism for rows in m, 1 for others."""
        d = self.description
        lengths = [np.linalg.norm(self.body_poses(q).translation, axis=-1).max(-1)]
        lengths += [np.linalg.norm(points, axis=-1).max(-1) for points in (d.constraint_point_a, d.constraint_point_b)]
        is_length = np.concatenate([np.arange(place.rows.total) < place.rows.of_points for place in d.constraints])
        sizes = np.where(is_length, np.maximum.reduce(np.broadcast_arrays(*lengths))[..., None], 1.0)
        return sizes[..., self.kernel_model.is_rigid_row]

    def _is_closed(self, q: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Whether the residuals of positions q are round-off (...)."""
        residual: np.ndarray = self._rigid_residual(q)
        return (np.abs(residual) <= CLOSED * sizes).all(-1)

    def _nearer(self, q: np.ndarray, guess: np.ndarray, free: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Move closed positions along the constraints until their distance from the guess is a minimum."""
        distance, scale = np.linalg.norm(self._displacements(guess, q), axis=-1), np.ones(q.shape[:-1])
        for _ in range(APPROACH_ITERATIONS):
            back = self._displacements(q, guess) * free
            J = self._rigid_jacobian(q) * free
            step = back - damped_solution(J, product(J, back), 0.0)
            is_moving = (np.linalg.norm(step, axis=-1) > APPROACH_TOLERANCE * (1.0 + distance)) & (scale > SHORTEST)
            if not is_moving.any():
                break
            trial = self._closed_positions(self.integrate(q, scale[..., None] * step), free, RETURN_ITERATIONS)
            trial_distance = np.linalg.norm(self._displacements(guess, trial), axis=-1)
            better = is_moving & self._is_closed(trial, sizes) & (trial_distance < distance)
            q = np.where(better[..., None], trial, q)
            distance = np.where(better, trial_distance, distance)
            scale = np.where(better | ~is_moving, scale, 0.25 * scale)
        return q

    def _displacements(self, q0: FloatArray, q1: FloatArray) -> FloatArray:
        """Return the displacements (..., nv) of all joints from q0 to q1; free joints have them in the axes of q0.

        They are minus the gradient of half the square of their norm with respect to q0.
        """
        found = self.difference(q0, q1)
        for joint, at, dof in zip(self.joint_types, self.position_index, self.velocity_index, strict=True):
            if joint == "free":
                moved = q1[..., at : at + 3] - q0[..., at : at + 3]
                found[..., dof : dof + 3] = _in_body_axes(moved, q0[..., at + 3 : at + 7])
        return found

    def _failure(self, guess: np.ndarray, free: np.ndarray, failed: np.ndarray) -> str:
        """Return the message for samples that could not be assembled. It describes the first one."""
        first = tuple(np.argwhere(failed)[0])
        q = self._closed_positions(guess, free, ASSEMBLY_ITERATIONS)
        residual, sizes = np.abs(self._rigid_residual(q)[first]), self._sizes_of_rows(q)[first]
        if not np.isfinite(residual).all():
            return f"assemble: {named_samples(failed)}q_guess has numbers that are not finite; expected finite numbers"
        names = np.array(self.constraint_names_of_rows)[self.kernel_model.is_rigid_row].tolist()
        relative = np.divide(residual, sizes, out=np.zeros_like(residual), where=sizes > 0.0)  # 0 / 0 in a closed row
        worst = int(relative.argmax())
        held = "" if free.all() else " with these fixed joints"
        if (residual <= CLOSED * sizes).all():
            return (
                f"assemble: {named_samples(failed)}the axes of a hinge are opposite, or the frames of a weld are "
                "rotated by 180 degrees. Use a guess nearer to the closed configuration"
            )
        return (
            f"assemble: {named_samples(failed)}the constraints cannot be satisfied near the guess{held}; the largest "
            f"remaining residual is {residual[worst]:.2e}, of constraint {names[worst]!r}. Use another guess, or "
            "check the lengths. If a loop closes only with perfect dimensions, give a constraint a compliance: "
            "`add_constraint(..., compliance=...)`, or the force `Bushing.in_place_of`"
        )


def _in_body_axes(vectors: FloatArray, quaternions: FloatArray) -> FloatArray:
    """Convert vectors (..., 3) to the axes of bodies with quaternions [x, y, z, w]."""
    u, w = quaternions[..., :3], quaternions[..., 3:]
    across = np.cross(u, vectors)
    return vectors + 2.0 * (np.cross(u, across) - w * across)
