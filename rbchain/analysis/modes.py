"""`Model.modes`: natural frequencies, damping ratios and shapes of small oscillations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from ..acting.numeric_fields import Drive, Force
from ..common.calls import explains_calls
from ..common.misspelled import one_of
from ..common.real_arrays import FloatArray, real_array
from ..errors import ArgumentError
from ..model.arguments import SampleArrays
from ..plots import campbell
from ..simulate.request import checked_times
from . import mode_motions
from .coordinates import Coordinates, coordinates_of_groups
from .eigenvalues import Eigenpairs, eigenpairs_of, eigenpairs_of_conservative, tolerance
from .equations_of_states import state_equations
from .mode_order import order_by_shape
from .operating_points import (
    Conditions,
    OperatingPoints,
    checked_integrals,
    conditions_of,
    given_states,
    operating_points,
)

if TYPE_CHECKING:
    from ..facade.model import Model

ComplexArray = npt.NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Modes(SampleArrays):
    """The result of `Model.modes`: the modes of each sample, sorted by frequency or by shape.

    A pair of complex conjugate eigenvalues is one mode, and a real eigenvalue is one mode. `modes[i]` are the modes of
    one sample of a batch.

    Attributes
    ----------
    frequency : (..., modes) array, Hz
        The absolute value of the eigenvalue, divided by 2 pi: the natural frequency without damping. Exactly zero for a
        rigid-body motion.
    damping_ratio : (..., modes) array
        Minus the real part of the eigenvalue, divided by its absolute value: 0 without damping, 1 for a real eigenvalue
        that decays, and negative for a mode that grows. Zero for a rigid-body motion.
    eigenvalue : (..., modes) complex array, 1/s
        With positive or zero imaginary part.
    shape : (..., modes, nv) complex array
        Amplitudes of the changes of all positions, on the tangent space. The mass matrix M scales each shape:
        conj(shape) M shape = 1. The largest share of it is real and positive. Real for modes without damping.
    count : (...) array of int
        Number of modes of each sample. The entries after them are NaN. With `order="shape"`, the entries of modes that
        a sample does not have are NaN.
    acceleration : (..., nv) array, rad/s^2 or m/s^2
        In the given state. Modes describe oscillations about an equilibrium, where it is zero.
    success : (...) array of bool
        False if the equations of a sample cannot be linearized, as for `LinearModel`.
    q : (..., nq) array, rad or m
        The given positions, with closed loops and prescribed motions.
    model : Model
    """

    frequency: FloatArray
    damping_ratio: FloatArray
    eigenvalue: ComplexArray
    shape: ComplexArray
    count: npt.NDArray[np.int64]
    acceleration: FloatArray
    success: npt.NDArray[np.bool_]
    q: FloatArray
    model: Model

    plot = campbell.plot
    motion = mode_motions.motion

    def __getitem__(self, samples: Any) -> Self:
        """Return the modes of one sample of the batch, or of several."""
        chosen = super().__getitem__(samples)
        return replace(chosen, model=self.model[samples]) if self.model.batch_shape else chosen


@explains_calls(is_method=True, contacts="forces")
def modes(
    model: Model,
    q: npt.ArrayLike | None = None,
    qd: npt.ArrayLike = 0.0,
    *,
    tau: npt.ArrayLike = 0.0,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
    t: npt.ArrayLike = 0.0,
    integrals: npt.ArrayLike = 0.0,
    order: Literal["frequency", "shape"] = "frequency",
) -> Modes:
    """Compute natural frequencies, damping ratios and shapes of small oscillations about an equilibrium.

    These are the eigenvalues and eigenvectors of the matrix A of `linearize`, with drives, springs, water and loops.

    Parameters
    ----------
    model : Model
    q, qd : (..., nq) and (..., nv) arrays, rad or m, and rad/s or m/s
        Equilibrium of each sample, or a state of a steady motion, such as a constant rotation. q defaults to the
        neutral positions.
    tau, drives, forces, t, integrals
        As for `linearize`.
    order : str
        "frequency" sorts the modes of each sample. With "shape", the modes of all samples correspond to the modes of
        the first sample, which are sorted by frequency. Then entry k of each sample has a similar shape, even where
        frequencies cross. The samples of a sweep must be in the order of its parameter.

    Returns
    -------
    Modes

    Raises
    ------
    ArgumentError, ModelError
        As for `linearize`.

    Notes
    -----
    Eigenvalues at the level of round-off are exact zeros. The limit is a singular value of A of 2e-14 times the number
    of states, relative to the square of the fastest rate, in coordinates scaled by the mass matrix. Modes that are more
    than 1e6 times slower than the fastest one are therefore treated as rigid-body motions.

    Modes with equal frequencies do not have unique shapes, so their order by shape has no meaning.

    Examples
    --------
    A double pendulum of two equal rods:

    >>> import numpy as np, rbchain as rb
    >>> pendulum = rb.Model.serial_chain(2, length=1.5, gravity=(0, -10, 0))
    >>> found = pendulum.modes([-np.pi / 2, 0.0])
    >>> found.frequency.round(6).tolist()
    [0.351636, 0.943167]
    >>> found.damping_ratio.tolist()
    [0.0, 0.0]

    Two carts with a spring and a damper between them move freely:

    >>> builder = rb.ModelBuilder()
    >>> for name, parent in (("first", None), ("second", "first")):
    ...     elastic = rb.PassiveForces(stiffness=8.0, damping=0.4) if parent else None
    ...     joint = rb.Prismatic((1, 0, 0))
    ...     builder.add_body(name, parent=parent, joint=joint, inertia=rb.Inertia(1.0), passive=elastic)
    >>> found = builder.build().modes([0.0, 0.0])
    >>> found.eigenvalue.round(6).tolist()
    [0j, (-0.4+3.97995j)]
    """
    one_of("order", order, ("frequency", "shape"), ArgumentError)
    times, sums = checked_times("modes", t), real_array("integrals", integrals, ArgumentError)
    conditions, states, t_of_samples = conditions_of("modes", model, (q, qd, tau), (drives, forces), times)
    of_samples = checked_integrals(conditions, sums)
    state = given_states(conditions, states, t_of_samples)
    points = operating_points(conditions, (*state, of_samples), states[2], t_of_samples)
    found: dict[int, Eigenpairs] = {}
    least = 0
    for group, coordinates in coordinates_of_groups(conditions, points):
        found |= _modes_of_group(conditions, points.rows(group), coordinates, group)
        least = max(least, len(coordinates.positions))
    most = max([len(pairs.values) for pairs in found.values()], default=least)
    is_usable = np.isin(np.arange(conditions.samples), list(found))
    count = np.zeros(conditions.samples, np.int64)
    values = np.full((conditions.samples, most), np.nan, complex)
    shapes = np.full((conditions.samples, most, model.nv), np.nan, complex)
    for sample, pairs in found.items():
        count[sample] = size = len(pairs.values)
        values[sample, :size], shapes[sample, :size] = pairs.values, pairs.positions.T
    if order == "shape":
        columns = order_by_shape(shapes, points.M)
        values = np.take_along_axis(values, columns, 1)
        shapes = np.take_along_axis(shapes, columns[:, :, None], 1)
    rates = abs(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(rates == 0.0, 0.0, 0.0 - values.real / rates)
    batch = conditions.batch
    return Modes(
        frequency=(rates / (2.0 * np.pi)).reshape(*batch, most),
        damping_ratio=ratio.reshape(*batch, most),
        eigenvalue=values.reshape(*batch, most),
        shape=shapes.reshape(*batch, most, model.nv),
        count=count.reshape(batch),
        acceleration=points.qdd.reshape(*batch, model.nv),
        success=is_usable.reshape(batch),
        q=points.q.reshape(*batch, model.nq),
        model=conditions.model,
    )


def _modes_of_group(
    conditions: Conditions, points: OperatingPoints, coordinates: Coordinates, samples: np.ndarray
) -> dict[int, Eigenpairs]:
    """Return the modes of a group of samples (rows,), without the samples that have no linear model."""
    A, _, _ = state_equations(conditions, points, coordinates, np.zeros((*points.qdd.shape, 0)))
    P = coordinates.of_positions
    used = points.is_finite & np.isfinite(A).all((1, 2)) & np.isfinite(P).all((1, 2))
    found = _modes_of_samples(A[used], P[used], points.M[used], coordinates)
    return dict(zip(samples[used].tolist(), found, strict=True))


def _modes_of_samples(A: FloatArray, P: FloatArray, M: FloatArray, coordinates: Coordinates) -> list[Eigenpairs]:
    """Return the eigenvalues of each sample, sorted by frequency, and the shapes (nv, modes)."""
    scaled, rate, factor = _scaled_equations(A, P, M, coordinates)
    p, v, least = len(coordinates.positions), len(coordinates.velocities), tolerance(A.shape[1])
    K, D = -scaled[:, p : p + v, :p], -scaled[:, p : p + v, p : p + v]
    is_conservative: Any = np.zeros(len(A), bool)
    if np.array_equal(coordinates.positions, coordinates.velocities) and not coordinates.integrals:
        is_conservative = (abs(D) <= least).all((1, 2)) & (abs(K - np.swapaxes(K, 1, 2)) <= least).all((1, 2))
        is_conservative &= (A[:, :p] == np.eye(2 * p)[p:]).all((1, 2))
    symmetric = (K + np.swapaxes(K, 1, 2))[is_conservative] / 2 if is_conservative.any() else np.zeros((0, 1, 1))
    of_conservative = iter(eigenpairs_of_conservative(symmetric))
    pairs = [next(of_conservative) if is_conservative[k] else eigenpairs_of(scaled[k], p) for k in range(len(A))]
    found = [*pairs]
    sizes = np.array([len(of_sample.values) for of_sample in pairs], int)
    for size in np.unique(sizes):  # all samples with so many modes together
        chosen = np.flatnonzero(sizes == size)
        values = np.array([pairs[k].values for k in chosen]) * rate[chosen, None]
        changes = np.array([pairs[k].positions for k in chosen])
        shapes: Any = P[chosen][:, :, :p] @ np.linalg.solve(np.swapaxes(factor[chosen], 1, 2), changes)
        order = np.lexsort((values.real, abs(values)), axis=-1)
        values = np.take_along_axis(values, order, -1)
        shapes = _normalized(np.take_along_axis(shapes, order[:, None], -1), M[chosen])
        for k, of_sample in zip(chosen, zip(values, shapes, strict=True), strict=True):
            found[k] = Eigenpairs(*of_sample)
    return found


def _scaled_equations(
    A: FloatArray, P: FloatArray, M: FloatArray, coordinates: Coordinates
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scale the state equations by the mass matrix and the fastest rate, so that all entries are of order one.

    Returns
    -------
    scaled : (samples, states, states) array
        A of the scaled states, per scaled time.
    rate : (samples,) array, 1/s
    factor : (samples, p, p) array
        The Cholesky factor of the mass matrix of the p positions.
    """
    (samples, states, _), p, v = A.shape, len(coordinates.positions), len(coordinates.velocities)
    of_positions = P[:, :, :p]
    factor = np.linalg.cholesky(np.swapaxes(of_positions, 1, 2) @ M @ of_positions)
    scale = np.zeros((samples, states, states))
    scale[:, range(states), range(states)] = np.sqrt(abs(M).max((1, 2), initial=0.0))[:, None]
    scale[:, :p, :p] = np.swapaxes(factor, 1, 2)
    if np.array_equal(coordinates.positions, coordinates.velocities):
        scale[:, p : 2 * p, p : 2 * p] = scale[:, :p, :p]
    scaled = scale @ A @ np.linalg.inv(scale)
    K, D, C = scaled[:, p : p + v, :p], scaled[:, p : p + v, p : p + v], scaled[:, p : p + v, p + v :]
    sizes = [np.sqrt((x * x).sum((1, 2))) ** power for x, power in ((K, 1 / 2), (D, 1.0), (C, 1 / 3))]
    rate = np.max(sizes, axis=0)
    rate = np.where(rate > 0.0, rate, 1.0)
    of_time = np.ones((samples, states))
    of_time[:, :p], of_time[:, p + v :] = rate[:, None], (rate**2)[:, None]
    return scaled * of_time[:, :, None] / of_time[:, None, :] / rate[:, None, None], rate, factor


def _normalized(shapes: ComplexArray, M: FloatArray) -> ComplexArray:
    """Scale shapes (samples, nv, modes) so that conj(shape) M shape is 1, and its largest share real and positive."""
    if not shapes.size:
        return shapes
    size = np.sqrt((shapes.conj() * (M @ shapes)).sum(1, keepdims=True).real)
    shares = abs(shapes) * np.sqrt(np.diagonal(M, axis1=1, axis2=2))[:, :, None]
    largest = np.take_along_axis(shapes, shares.argmax(1, keepdims=True), 1)
    turn = np.where(largest == 0.0, 1.0, abs(largest) / np.where(largest == 0.0, 1.0, largest))
    found: ComplexArray = shapes * turn / np.where(size > 0.0, size, 1.0)
    return found
