"""Inverse kinematics: joint positions in which frames reach their targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray, finite_number, true_or_false, whole_number
from ..core.algorithms.inverse_kinematics import search_size
from ..drivers.inverse_kinematics import inverse_kinematics
from ..errors import ArgumentError
from ..model.arguments import SampleArrays, with_batch
from ..model.pose import Pose
from .attributes import Attributes
from .targets import Goals, Target, goals_of

if TYPE_CHECKING:
    from .model import Model

#: The search ends below this fraction of the tolerance, so that the round-off of another evaluation does not exceed it.
SHARE_OF_TOLERANCE = 0.5
#: Largest residual of the constraints of a solution, m and rad; relative to the size of mechanisms smaller than 1 m.
CLOSED = 1e-10
#: Instead of infinite limits, for joints of couplers: whole turns of their angles would violate the constraints.
ANY_ANGLE = np.finfo(np.float64).max
#: Random starts are within this fraction of the range between two limits, about its middle, and as evenly distributed
#: as Latin hypercubes of this number of starts. About 0.4 % of the poses of a Panda remain unsolved after 8 starts.
#: Independent starts in the complete range leave 0.3 to 1.7 % unsolved, depending on the seed.
SHARE_OF_RANGE, STARTS_OF_CUBE = 0.7, 7
LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, eq=False)
class InverseKinematicsSolution(SampleArrays):
    """The result of `Model.inverse_kinematics`. `found[i]` is the solution of one sample of a batch.

    Attributes
    ----------
    q : (..., nq) array, rad or m
        Positions that reach the targets. If `success` is False: a local minimum of the weighted errors, or NaN if the
        target, the guess or the model of the sample is not finite. Loops are closed in either case; q is NaN if the
        search could not close them.
    success : (...) array of bool
        Whether all errors of the sample are within the tolerance, and its loops are closed.
    error : (...) array, m or rad
        The largest error of the sample in q.
    position_errors : (..., targets) array, m
        Distances from the targets, in the order in which they were given; 0 for targets without a position.
    rotation_errors : (..., targets) array, rad
        Angles from the targets; 0 for targets without an orientation.
    iterations : (...) array of int
        Iterations over all starts.
    """

    q: FloatArray
    success: np.ndarray
    error: FloatArray
    position_errors: FloatArray
    rotation_errors: FloatArray
    iterations: np.ndarray


class InverseKinematics(Attributes):
    """Methods of Model that find positions for given poses."""

    @explains_calls(is_method=True, poses="targets", q0="q_guess", n_starts="starts", seeds="starts", tol="tolerance")
    def inverse_kinematics(
        self,
        targets: Mapping[str, Pose | Target],
        q_guess: npt.ArrayLike | None = None,
        *,
        starts: int = 8,
        limits: bool = True,
        tolerance: float = 1e-10,
        seed: int = 0,
    ) -> InverseKinematicsSolution:
        """Find joint positions at which frames reach their targets.

        Parameters
        ----------
        targets : dict
            The target of each frame or body, by its name. A `Pose`, or a batch of poses as `frame_poses` returns it,
            sets the position and the rotation. A `Target` sets a position, a rotation, the direction of an axis, a
            point to look at, and weights. Batches of several targets, of q_guess and of the model broadcast.
        q_guess : (..., nq) array, rad or m, optional
            The first start, projected onto the limits. The default is the middle of the position limits, and zero for
            joints without limits.
        starts : int
            Maximum number of starts, at least 1. All starts after the first are random, within the position limits.
        limits : bool
            Whether q must be within the `position_limits` of joints. Limits of free and spherical joints are not
            used.
        tolerance : float
            Largest error of a solution, m and rad. The residuals of constraints are below 1e-10 m and 1e-10 rad, or
            1e-10 of the size of mechanisms smaller than 1 m.
        seed : int
            Seed of the random starts, which all samples share.

        Returns
        -------
        InverseKinematicsSolution
            With `q` (..., nq), `error`, `success` and more. Always float64.

        Raises
        ------
        UnknownNameError
            If the model has no such body or frame.
        ArgumentError
            If a target is of another type, a frame is fixed to the world, or shapes or values do not fit.
        ModelError
            If a constraint is compliant.

        Notes
        -----
        The method is damped least squares with exact Jacobians (Sugihara 2011). Positions are projected onto their
        limits. Angles without limits are within half a turn of the guess. If a start makes no progress, the search
        continues with the next one. The result is the first solution found. It is often near the guess, but not always
        the nearest one, and a redundant mechanism has other solutions. The result of a sample does not depend on the
        other samples.

        The residuals of constraints are treated as additional errors, so a solution satisfies the targets and the
        constraints. If the targets are out of reach, the search continues with constraints that weigh 100 times as much
        as the targets, and then without targets, so the constraints are satisfied nevertheless.

        Samples without a solution cause neither an error nor a warning. Check `success`.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(2, length=1.0)
        >>> found = arm.inverse_kinematics({"link2": rb.Target((1.0, 1.0, 0.0), point=(1, 0, 0))}, [1.0, -0.5])
        >>> found.q.round(6).tolist(), bool(found.success)
        ([1.570796, -1.570796], True)

        Poses of 100 random positions. The solutions need not be these positions:

        >>> q, _ = arm.random_state(0, batch=100)
        >>> found = arm.inverse_kinematics({"link2": arm.frame_poses(q, "link2")})
        >>> bool(found.success.all()), found.q.shape
        (True, (100, 2))
        """
        model = self.kernel_model
        model.refuse_compliance(
            "inverse_kinematics", "Use a model with rigid constraints, which positions can satisfy exactly"
        )
        goals = goals_of(targets, model)
        count = whole_number("starts", starts, ArgumentError, least=1)
        number = whole_number("seed", seed, ArgumentError, least=0, most=LARGEST_SEED)
        largest = finite_number("tolerance", tolerance, ArgumentError, above=0.0)
        is_limited = true_or_false("limits", limits, ArgumentError)
        given_guess = self._middle() if q_guess is None else q_guess
        (guess,), _, _ = model.state_arguments.check(("q_guess",), (given_guess,), has_samples=False)
        batch = model.state_arguments.common_batch({"q_guess": guess.shape[:-1], **goals.batches})
        samples = batch or (1,)  # the driver has no scalar version
        q = np.broadcast_to(guess, (*samples, self.nq)).astype(np.float64)
        given = (
            *(goals.targets, model.constraint_tables, self._starts(count, number)),
            *(self._limits_of_search(is_limited), self._goals(goals, q, samples)),
            SHARE_OF_TOLERANCE * np.array([largest, CLOSED]),
        )
        m = len(goals.arrays)
        whole = with_batch(cast("Model", self), samples).kernel_model
        scratch = search_size(self.nv, self.nq, model.constraint_rows, m)
        shape = (self.nq + 2 * m + 2,)
        rows = whole.compute(inverse_kinematics, shape, ("q_guess",), (q,), given=given, scratch=scratch)
        return _solution(rows.reshape(*batch, *shape), self.nq, m, largest)

    def _goals(self, goals: Goals, q: FloatArray, batch: tuple[int, ...]) -> np.ndarray:
        """Return the goals of all samples (samples, rows); NaN for samples whose goals or guess are not finite."""
        size = np.linalg.norm(self.placement_translation, axis=-1).sum(-1) + self._strokes().sum()
        if self.kernel_model.constraint_rows:
            d = self.description
            points = (np.linalg.norm(x, axis=-1) for x in (d.constraint_point_a, d.constraint_point_b))
            size = size + sum(x.sum(-1) for x in (*points, np.abs(d.constraint_length)))
        inverse = 1.0 / np.where(size > 0.0, size, 1.0)[..., None]
        parts = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in (*goals.arrays, inverse)]
        found = np.concatenate(parts, -1)
        is_finite = np.isfinite(found).all(-1, keepdims=True) & np.isfinite(q).all(-1, keepdims=True)
        return np.where(is_finite, found, np.nan).reshape(-1, found.shape[-1])

    def _limits_of_search(self, is_limited: bool) -> np.ndarray:
        """Return the limits (nv, 2) of the dofs. Angles without limits move by whole turns, except for couplers."""
        dofs = np.array(self.position_limits if is_limited else np.full((self.nv, 2), (-np.inf, np.inf)))
        places = [place for place in self.description.constraints if place.kind == "coupler"]
        coupled = self.kernel_model.dofs.last[[body for place in places for body in (place.body_a, place.body_b)]]
        dofs[coupled] = np.clip(dofs[coupled], -ANY_ANGLE, ANY_ANGLE)
        return dofs

    def _strokes(self) -> np.ndarray:
        """Return the largest displacements of prismatic dofs with limits, m; 0 for other dofs (nv,)."""
        largest = np.abs(self.position_limits).max(-1)
        return np.where((np.array(self.dof_types) == "prismatic") & np.isfinite(largest), largest, 0.0)

    def _plain(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices in q and in qd of the dofs that are not of free and spherical joints."""
        dofs = self.kernel_model.dofs
        return dofs.plain_positions, np.flatnonzero(~dofs.in_quaternion_joint)

    def _middle(self) -> FloatArray:
        """Return the middle of the position limits (nq,); the nearest position to zero if one of them is infinite."""
        q, (positions, dofs) = self.neutral(), self._plain()
        lower, upper = self.position_limits[dofs].T
        is_bounded = np.isfinite(lower) & np.isfinite(upper)
        middle = (np.where(is_bounded, lower, 0.0) + np.where(is_bounded, upper, 0.0)) / 2.0
        q[positions] = np.where(is_bounded, middle, np.clip(0.0, lower, upper))
        return q

    def _starts(self, count: int, seed: int) -> np.ndarray:
        """Return the starts (count, 2, nq): factors of the guess, then what is added to it.

        The first start is the guess. The others are random, except for displacements without limits.
        """
        rng, (positions, dofs) = np.random.default_rng(seed), self._plain()
        lower, upper = self.position_limits[dofs].T
        is_slide = np.array(self.dof_types)[dofs] == "prismatic"
        reach = np.where(is_slide, 0.0, np.pi)
        is_kept = is_slide & ~(np.isfinite(lower) & np.isfinite(upper))
        low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2.0 * reach, -reach))
        high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2.0 * reach, reach))
        inset = np.where(np.isfinite(lower) & np.isfinite(upper), (1.0 - SHARE_OF_RANGE) / 2.0, 0.0) * (high - low)
        low, high = low + inset, high - inset
        starts = np.zeros((count, 2, self.nq))
        starts[:, 0] = 1.0
        for first in range(1, count, STARTS_OF_CUBE):  # so that more starts do not change the first ones
            strata = rng.permuted(np.tile(np.arange(STARTS_OF_CUBE), (dofs.size, 1)), axis=1).T
            cube = low + (high - low) * (strata + rng.random(strata.shape)) / STARTS_OF_CUBE
            some = starts[first : first + STARTS_OF_CUBE]
            some[:, 0, positions], some[:, 1, positions] = is_kept, np.where(is_kept, 0.0, cube[: len(some)])
            for at in self.kernel_model.dofs.quaternions:
                directions = rng.normal(size=(STARTS_OF_CUBE, 4))[: len(some)]
                some[:, 0, at : at + 4] = 0.0
                some[:, 1, at : at + 4] = directions / np.linalg.norm(directions, axis=-1, keepdims=True)
        return starts


def _solution(rows: np.ndarray, nq: int, targets: int, tolerance: float) -> InverseKinematicsSolution:
    """Return the solution from the rows of the driver (..., nq + 2 targets + 2)."""
    is_closed = rows[..., -2] <= CLOSED
    found = np.where(is_closed[..., None], rows[..., :-2], np.nan)
    errors = found[..., nq:].reshape(*rows.shape[:-1], targets, 2)
    positions, rotations = errors[..., 0].copy(), 2.0 * np.arcsin(np.minimum(errors[..., 1] / 2.0, 1.0))
    largest = np.maximum(positions, rotations).max(-1)
    iterations = rows[..., -1].astype(np.int64)
    return InverseKinematicsSolution(
        found[..., :nq].copy(), largest <= tolerance, largest, positions, rotations, iterations
    )
