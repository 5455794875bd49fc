"""Samples for which fixed steps are too long for the springs, dampers and bushings between bodies at the start.

All methods with fixed steps treat these forces explicitly. Small motions at the start obey

    M dq'' = - K dq - D dq',

where K and D contain the derivatives of the forces between bodies, and the linear springs and dampers of the joints, K'
and D'. A step of length h that is implicit in the joints has the inertia M + h D' + h^2 K' instead of M, and the
damping D + h K' instead of D.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..acting.actuators import Actuator
from ..acting.between_bodies import is_between_bodies
from ..acting.contacts import is_contact
from ..acting.coordinates import dof_index
from ..acting.drives import PID, PRESCRIBED
from ..acting.sampled import Sampled
from ..common.real_arrays import FloatArray
from ..core.methods.settings import AdaptiveStepSettings
from .stable_steps import grows_in_steps, longest_stable

if TYPE_CHECKING:
    from .request import Request

#: Steps of a length h, s, are stable if the norms of h^2 M^-1 K and h M^-1 D are at most these numbers.
STABLE_STIFFNESS, STABLE_DAMPING = 1.0, 0.5
#: Damping that the equations do not contain can make steps of "rk4" stable up to a length h / 0.95. Its stability
#: region extends to the absolute value 2.96, and on the imaginary axis to 2.83.
FRACTION_WITH_OTHER_DAMPING = 0.95
#: Passive forces of joints that are not linear.
NONLINEAR = ("cubic_stiffness", "friction", "static_friction", "limit_stiffness")
#: Numbers of M^-1 K and M^-1 D above it count as infinite.
LARGEST_RATE = 1e100
#: Relative error of the number of steps between two times.
ROUND_OFF = 1e-6
#: Numbers in a matrix (samples, nv, nv) of samples that are checked together.
NUMBERS_AT_ONCE = 500_000


def are_checked(request: Request) -> bool:
    """Whether `are_too_stiff` checks the samples."""
    return _free_dofs(request) is not None


def are_too_stiff(request: Request, q: np.ndarray, qd: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Return for which samples fixed steps are unstable with the forces between bodies at the start.

    No sample is checked without such forces or with adaptive steps. Contacts and closed loops prevent motions, so that
    these samples are not checked either.

    Parameters
    ----------
    request : Request
    q, qd : (m, nq) and (m, nv) arrays
        States at the start.
    samples : (m,) array of int
        The samples that start, by their numbers in the batch.

    Returns
    -------
    (m,) array of bool
    """
    found = np.zeros(samples.size, bool)
    free = _free_dofs(request)
    if free is None:
        return found
    count = max(1, NUMBERS_AT_ONCE // request.model.nv**2)
    for first in range(0, samples.size, count):
        part = slice(first, first + count)
        found[part] = SmallMotions.of(request, q[part], qd[part], samples[part], free).are_unstable(request)
    return found


def longest_step(request: Request, sample: int) -> float | None:
    """Return the longest stable steps, s, of a sample at its start; None if the steps of the request are stable."""
    free = _free_dofs(request)
    if free is None:
        return None
    q, qd = (x.reshape(request.samples, x.shape[-1])[[sample]] for x in request.states[:2])
    small = SmallMotions.of(request, q, qd, np.array([sample]), free)
    if not small.are_unstable(request)[0]:
        return None
    return longest_stable(partial(small.grow, request), _length_of_steps(request))


def _free_dofs(request: Request) -> np.ndarray | None:
    """Return the degrees of freedom with small motions, or None if the samples are not checked.

    Does not include prescribed motions. In steps that are implicit in the joints, it does not include nonlinear passive
    forces, PID and actuators either.
    """
    model = request.model
    if isinstance(request.settings, AdaptiveStepSettings) or not any(map(is_between_bodies, request.forces)):
        return None
    if model.constraint_names or any(map(is_contact, request.forces)):
        return None
    is_fixed, is_implicit = np.zeros(model.nv, bool), request.method.is_implicit_in_joints
    for drive in request.drives:
        if isinstance(drive, PRESCRIBED) or (is_implicit and isinstance(drive, (PID, Actuator))):
            is_fixed[dof_index(model, drive.label(), drive.joint, drive.dof)] = True
    if is_implicit:
        for name in NONLINEAR:
            is_fixed |= (getattr(model, name) != 0.0).reshape(-1, model.nv).any(0)
    return None if is_fixed.all() else np.flatnonzero(~is_fixed)


def _length_of_steps(request: Request) -> float:
    """Return the length of the longest steps, s: steps between two saved times, or stops of controllers, are equal."""
    step: float = request.settings.step  # type: ignore[union-attr]
    intervals = np.diff(request.times)
    longest = float((intervals / np.maximum(1.0, np.ceil(intervals / step - ROUND_OFF))).max(initial=0.0))
    for drive in request.drives:
        if isinstance(drive, Sampled):
            longest = min(longest, drive.period / np.ceil(drive.period / step - ROUND_OFF))
    return min(step, longest)


class SmallMotions(NamedTuple):
    """Equations of small motions, as matrices (samples, n, n) of n degrees of freedom.

    `damping` and `stiffness` belong to the joints. `by_q` and `by_qd` are the stiffness and damping between bodies.
    """

    inertia: FloatArray
    damping: FloatArray
    stiffness: FloatArray
    by_q: FloatArray
    by_qd: FloatArray

    @classmethod
    def of(cls, request: Request, q: np.ndarray, qd: np.ndarray, samples: np.ndarray, free: np.ndarray) -> SmallMotions:
        """Return the equations of samples (m,) with the states q (m, nq) and qd (m, nv), for free dofs (n,)."""
        batch, model = request.batch or (1,), request.model
        forces: list[Any] = [force for force in request.forces if is_between_bodies(force)]
        if samples.size < request.samples:
            index = np.unravel_index(samples, batch)
            forces = [force.of_sample(index, batch) for force in forces]
            model, batch = model[index] if model.batch_shape else model, samples.shape
        q, qd = (x.reshape(*batch, x.shape[-1]).astype(float) for x in (q, qd))
        by_q, by_qd = model.derivatives_between_bodies(q, qd, forces)
        shape, unit = np.zeros((*batch, model.nv, 1)), np.eye(model.nv)
        damping, stiffness = ((shape + x[..., None]) * unit for x in (model.damping, model.stiffness))
        matrices = model.mass_matrix(q), damping, stiffness, -by_q, -by_qd
        return cls(*(x[..., free[:, None], free].reshape(-1, free.size, free.size) for x in matrices))

    def are_unstable(self, request: Request) -> np.ndarray:
        """Return for which samples (m,) the steps are unstable."""
        h, found = _length_of_steps(request), np.zeros(len(self.inertia), bool)
        rows = np.flatnonzero(~self._are_soft(h, request.method.is_implicit_in_joints))
        if rows.size:
            chosen = SmallMotions(*(x[rows] for x in self))
            found[rows] = chosen.grow(request, h) & ~chosen.without_forces().grow(request, h)
        return found

    def grow(self, request: Request, h: float) -> np.ndarray:
        """Return for which samples (m,) motions grow in steps of a length, s."""
        is_implicit = request.method.is_implicit_in_joints
        if not is_implicit and _has_other_forces(request):
            h *= FRACTION_WITH_OTHER_DAMPING
        return grows_in_steps(request.method.name, h, self.rates(h * is_implicit), self.inertia.shape[-1])

    def without_forces(self) -> SmallMotions:
        """Return the equations without the forces between bodies."""
        return self._replace(by_q=np.zeros_like(self.by_q), by_qd=np.zeros_like(self.by_qd))

    def _are_soft(self, h: float, is_implicit: bool) -> np.ndarray:
        """Return for which samples (m,) steps of a length, s, are stable because the norms are small.

        For symmetric K, the sum of the squares of the eigenvalues of M^-1 K is the trace of its square. In implicit
        steps, the forces of the joints keep longer steps stable.
        """
        stiffness, damping = self.by_q, self.by_qd
        if not is_implicit:
            stiffness, damping = stiffness + self.stiffness, damping + self.damping
        are_soft = np.ones(len(self.inertia), bool)
        for matrix, most in ((stiffness, STABLE_STIFFNESS / h**2), (damping, STABLE_DAMPING / h)):
            with np.errstate(over="ignore", invalid="ignore"):
                try:
                    solved = np.linalg.solve(self.inertia, 0.5 * (matrix + np.swapaxes(matrix, 1, 2)))
                except np.linalg.LinAlgError:  # a sample without inertia
                    return np.zeros(len(self.inertia), bool)
                squares = (solved * np.swapaxes(solved, 1, 2)).sum((1, 2))
            are_soft &= (squares >= 0.0) & (squares <= most**2)
        return are_soft

    def rates(self, h: float) -> FloatArray:
        """Return the matrices A (m, 2 n, 2 n) of positions and velocities.

        Steps of the length h, s, are implicit in the forces of the joints; h is 0 for explicit steps. Only the
        symmetric and positive parts of stiffness and damping count: springs that are compressed at the start also have
        directions in which motions grow. Samples without inertia do not move.
        """
        inertia = self.inertia + h * self.damping + h * h * self.stiffness
        n, parts = inertia.shape[-1], (self.by_q + self.stiffness, self.by_qd + self.damping + h * self.stiffness)
        rates = np.zeros((len(inertia), 2 * n, 2 * n))
        rates[:, :n, n:] = np.eye(n)
        rows = np.flatnonzero(np.isfinite([inertia, *parts]).all((0, 2, 3)))
        values, vectors = np.linalg.eigh(inertia[rows])
        is_positive = values[:, 0] > np.finfo(float).eps * values[:, -1]
        rows, scale = rows[is_positive], vectors[is_positive] / np.sqrt(values[is_positive])[:, None]  # S^T M S = 1
        for part, columns in zip(parts, (slice(0, n), slice(n, 2 * n)), strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                of_modes = np.swapaxes(scale, 1, 2) @ part[rows] @ scale
            fits = (np.abs(of_modes) < LARGEST_RATE).all((1, 2))
            rates[rows[~fits], n:, columns] = -LARGEST_RATE
            values, vectors = np.linalg.eigh(0.5 * (of_modes[fits] + np.swapaxes(of_modes[fits], 1, 2)))
            of_modes = -(vectors * np.maximum(values, 0.0)[:, None]) @ np.swapaxes(vectors, 1, 2)
            rates[rows[fits], n:, columns] = of_modes
        return rates


def _has_other_forces(request: Request) -> bool:
    """Whether drives, wrenches, water or nonlinear forces, which the equations do not contain, may damp the motion."""
    model, forces = request.model, request.forces
    is_nonlinear = any((getattr(model, name) != 0.0).any() for name in NONLINEAR)
    return bool(request.drives) or not all(map(is_between_bodies, forces)) or is_nonlinear or model.in_water
