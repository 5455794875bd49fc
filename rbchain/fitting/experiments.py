"""Optimal design of experiments: which of several planned motions determine the parameters of a model best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.numeric_fields import Drive, Force
from ..common.calls import explains_calls
from ..common.misspelled import SuggestsAttributes
from ..common.pickles import PickledByName
from ..common.real_arrays import FloatArray
from ..errors import ArgumentError, SimulationError
from ..model.named_items import NamedDict
from .fitted_entries import checked_names, fitted_entries
from .measurements import Measured, Measurement, motions_of
from .problem import STATE, Problem
from .result import NULL_SHARE, as_text

if TYPE_CHECKING:
    from ..facade.model import Model

#: The weights are optimal if they satisfy the condition of Kiefer and Wolfowitz up to this share.
OPTIMAL, MOST_ITERATIONS = 1e-6, 100_000
#: Weights below this value are zero in the optimal design.
SMALLEST_WEIGHT = 1e-4
#: Eigenvalues of the information of a motion, relative to the information of all motions, that are zero.
ROUND_OFF = 1e-12


@dataclass(frozen=True, eq=False)
class ExperimentDesign(PickledByName, SuggestsAttributes):
    """The result of `rb.experiment_design`.

    Attributes
    ----------
    names : tuple of str
        Names of the p parameters, without initial states.
    weights : (motions,) array
        Shares of the measurements for each motion in the D-optimal design. Their sum is 1.
    efficiencies : (motions,) array
        D-efficiency of each motion without the others, between 0 and 1: the number of measurements that the optimal
        design needs, divided by the number that this motion needs. 0 if the motion does not determine all parameters.
    information : (motions, p, p) array
        Fisher information of each motion in the order of `names`, in SI units.
    standard_deviations : dict of str to float
        Standard deviations of the estimates for the optimal design with one motion, in SI units. With n motions in
        total, they are smaller by a factor of sqrt(n).
    """

    names: tuple[str, ...]
    weights: FloatArray
    efficiencies: FloatArray
    information: FloatArray
    standard_deviations: dict[str, float]

    def __repr__(self) -> str:
        rows = [
            f"motion{k + 1:<4} {weight:6.3f}  {efficiency:10.3f}"
            for k, (weight, efficiency) in enumerate(zip(self.weights, self.efficiencies, strict=True))
        ]
        return "\n".join(["motion     weight  efficiency", *rows])


@explains_calls()
def experiment_design(
    model: Model,
    motions: list[Measured],
    parameters: Sequence[str],
    *,
    noise: npt.ArrayLike | None = None,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
    tau: npt.ArrayLike = 0.0,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_step: float | None = None,
) -> ExperimentDesign:
    """Compute which of several planned motions determine the parameters of a model best.

    The D-optimal design maximizes the determinant of the Fisher information of the measurements. This minimizes the
    volume of the confidence ellipsoid of the parameters. It is exact to first order near the parameters of the model.

    Parameters
    ----------
    model : Model
        The model with initial guesses of the parameters.
    motions : list of Measurement, Trajectory or tuple (t, q, qd)
        The motions, which need not have been measured. `rb.Measurement(t, q0, qd0, drives=...)` with an initial state
        q0 (nq,) and qd0 (nv,) stands for a motion whose positions and velocities are measured at all times. With qd =
        None, the motion starts at rest, and only the positions are measured. If a motion has been measured, only the
        first row of its positions and velocities is used, and which values are NaN.
    parameters : sequence of str
        Names of fields or paths, as for `fit`. With "q" and "qd", the initial state of each motion is unknown, too.
    noise : float or (2 nv,) array
        Standard deviation of the measured positions and velocities, for motions without their own noise.
    drives, forces, tau
        The actions on the mechanism, for motions without their own actions.
    rtol, atol, max_step
        As for `fit`.

    Returns
    -------
    ExperimentDesign

    Raises
    ------
    ArgumentError, ModelError
        As for `fit`, or if all motions together do not determine the parameters.
    SimulationError
        If a motion cannot be simulated to the end.

    References
    ----------
    Silvey, Titterington and Torsney (1978), "An algorithm for optimal designs on a finite design space". Kiefer and
    Wolfowitz (1960), "The equivalence of two extremum problems".

    Examples
    --------
    A force of 2 N determines a mass four times as well as 1 N:

    >>> import numpy as np, rbchain as rb
    >>> rod = rb.Model.serial_chain(1, length=1.0, mass=3.0, gravity=(0, 0, 0))
    >>> t = np.linspace(0, 1, 5)
    >>> plans = [rb.Measurement(t, [0.0], [0.0], tau=[torque]) for torque in (1.0, 2.0)]
    >>> print(rb.experiment_design(rod, plans, ["mass"], noise=1e-3))
    motion     weight  efficiency
    motion1     0.000       0.250
    motion2     1.000       1.000
    """
    chosen = checked_names(model, parameters)
    if not isinstance(motions, list):
        raise ArgumentError("motions is not a list; expected a list of Measurements, Trajectories or tuples (t, q, qd)")
    common = Measurement((), (), tau=tau, drives=drives, forces=forces, noise=noise)
    checked = motions_of(model, [_at_all_times(motion) for motion in motions], common)
    if not checked[0].has_noise:
        raise ArgumentError("noise is None; expected the standard deviations of the measurements")
    entries = fitted_entries(model, chosen, checked[0].actions.forces)
    if entries.keys() <= set(STATE):
        raise ArgumentError(
            f"parameters is {list(parameters)}, which are initial states; expected at least one parameter of the model"
        )
    problem = Problem(model, checked, entries, {"rtol": rtol, "atol": atol, "max_step": max_step})
    slopes_of_motions = _slopes_of_motions(problem)
    columns = _columns_of_model(problem)
    labels = [problem.labels[i] for i in columns]
    _, to_numbers, scales = problem.numbers(np.zeros(problem.size))
    to_numbers = to_numbers[np.ix_(columns, columns)]
    R = np.asarray(np.linalg.qr(np.concatenate(slopes_of_motions), mode="r"))
    _refuse_undetermined(R, to_numbers / scales[columns, None], labels)
    # in the coordinates R x, the information of all motions together is the identity matrix
    relative = np.array([J.T @ J for J in (J @ np.linalg.inv(R) for J in slopes_of_motions)])
    weights = d_optimal_weights(relative)
    optimal = np.tensordot(weights, relative, 1)
    sizes = np.linalg.eigvalsh(relative)
    of_numbers = [J @ np.linalg.inv(to_numbers) for J in slopes_of_motions]
    information = np.array([J.T @ J for J in of_numbers])
    back = to_numbers @ np.linalg.inv(R)
    covariance = back @ np.linalg.inv(optimal) @ back.T
    deviations = dict(zip(labels, np.sqrt(np.diag(covariance)).tolist(), strict=True))
    return ExperimentDesign(
        names=tuple(labels),
        weights=weights,
        efficiencies=(np.where(sizes > ROUND_OFF, sizes, 0.0).prod(-1) / np.linalg.det(optimal)) ** (1 / len(labels)),
        information=information,
        standard_deviations=NamedDict("the design", "parameter", "parameters", deviations),
    )


def d_optimal_weights(information: FloatArray) -> FloatArray:
    """Return the weights (motions,) that maximize the determinant of the sum of weights times information.

    `information` (motions, p, p) are positive semidefinite, and their sum is regular. The multiplicative algorithm of
    Silvey, Titterington and Torsney (1978) increases the determinant in each iteration. Let M be the sum. The weights
    are optimal if trace(inv(M) M_k) <= p for all motions k.
    """
    count, p = information.shape[:2]
    weights = np.full(count, 1.0 / count)
    for _ in range(MOST_ITERATIONS):
        variances = _variances(weights, information)
        if variances.max() <= p * (1.0 + OPTIMAL):
            break
        weights = weights * variances / p
    weights[weights < SMALLEST_WEIGHT] = 0.0
    return weights / weights.sum()


def _variances(weights: FloatArray, information: FloatArray) -> FloatArray:
    """Return trace(inv(M) M_k) of all motions."""
    inverse = np.linalg.inv(np.tensordot(weights, information, 1))
    return np.tensordot(information, inverse, 2)


def _at_all_times(motion: Measured) -> Measured:
    """Return a motion with an initial state as a motion with positions and velocities at all times."""
    if not isinstance(motion, Measurement) or np.ndim(motion.q) != 1:
        return motion
    shape = (np.size(motion.t), 1)
    return replace(motion, q=np.tile(motion.q, shape), qd=None if motion.qd is None else np.tile(motion.qd, shape))


def _columns_of_model(problem: Problem) -> np.ndarray:
    """Return the columns of the parameters that are not initial states."""
    return np.concatenate([part for name, part in problem.parts.items() if name not in STATE])


def _slopes_of_motions(problem: Problem) -> list[FloatArray]:
    """Return the derivatives of the residuals of each motion with respect to the parameters.

    Changes of residuals that a change of the initial state can cause are removed, if the initial state is unknown.
    """
    _, slopes = problem.evaluate(np.zeros((1, problem.size)))
    if not np.isfinite(slopes).all():
        failed = next((one for one in problem.simulated if not one.success), problem.simulated[0])
        raise SimulationError(failed.message, failed)
    counts = [np.count_nonzero(motion.weights) for motion in problem.motions]
    columns = _columns_of_model(problem)
    of_states = np.setdiff1d(np.arange(problem.size), columns)
    found = []
    for J in np.split(slopes[0], np.cumsum(counts)[:-1]):
        removed = J[:, of_states] @ np.linalg.lstsq(J[:, of_states], J[:, columns], rcond=NULL_SHARE)[0]
        found.append(J[:, columns] - removed)
    return found


def _refuse_undetermined(R: FloatArray, relative: FloatArray, labels: Sequence[str]) -> None:
    """Raise an ArgumentError that names combinations of parameters that all motions together do not determine.

    `R` is the triangular factor of the derivatives, and `relative` are the relative changes of the numbers.
    """
    _, sizes, V = np.linalg.svd(R)
    sizes = np.pad(sizes, (0, len(labels) - sizes.size))
    unknown = V[~((sizes > NULL_SHARE * sizes.max()) & (sizes > 1.0))]
    if len(unknown):
        names = "; ".join(as_text(row, labels) for row in unknown @ relative.T)
        raise ArgumentError(
            f"all motions together do not determine {names}, whose standard deviation is above 100 %; expected motions "
            "that determine all parameters. Add motions, or fit fewer parameters"
        )
