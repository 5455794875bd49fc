"""The exact derivatives of the equations of motion in the states of a batch, from the driver `linearized_states`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.contacts import NAMES_OF_CONTACTS, is_contact
from ..acting.controllers import model_arrays
from ..acting.flatten import flatten_actions
from ..acting.flatten_drives import refuse_lags
from ..acting.numeric_fields import Drive, Force
from ..acting.random_actions import random_signals_of
from ..acting.sampled import Sampled
from ..acting.user_code import UserCalls
from ..acting.user_forces import UserForces
from ..common.real_arrays import common_batch, real_array
from ..compiling.levels import LANE_WIDTHS
from ..core.control import drive_layout
from ..drivers import threads
from ..drivers.equilibria import equilibria, equilibria_memory
from ..drivers.linearized import Linearized, linearized_memory, linearized_states
from ..drivers.trajectories import Actions
from ..errors import ArgumentError
from ..model.arguments import with_batch
from ..simulate.loops import closed_initial_states, held_dofs, refuse_controllers_of_closed_chains
from ..simulate.methods import method_named
from ..simulate.preparation import kernel_model_for_simulation, refuse_forces_of_drives
from ..simulate.request import checked_states
from ..simulate.results import raise_exceptions, set_prescribed_states

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..model.kernel_model import KernelModel

DTYPE = np.dtype(np.float64)


@dataclass(frozen=True)
class Conditions:
    """The model, the drives and the forces of a call in the form of the driver.

    `function` is the name of the public function, for messages. `model` has the batch of the states. `kinds` (nv,) are
    the kinds of the first drives of the degrees of freedom. `integrated` (m,) are the degrees of freedom whose control
    errors are integrated, in the order of the state.
    """

    function: str
    model: Model
    batch: tuple[int, ...]
    drives: Sequence[Drive]
    forces: Sequence[Force]
    kernel_model: KernelModel
    actions: Actions
    calls: UserCalls
    kinds: np.ndarray
    integrated: np.ndarray

    @property
    def samples(self) -> int:
        """Number of samples."""
        return math.prod(self.batch)

    @property
    def has_loops(self) -> bool:
        """Whether the model has constraints."""
        return self.kernel_model.constraint_tables is not None


@dataclass(frozen=True)
class OperatingPoints:
    """The derivatives of the equations of motion in states, whose axis is the first one.

    With changes dq on the tangent space, dqd, dz of the integrals of control errors, and df of constant joint forces,

        M dqdd = - K dq - D dqd + C dz + F df.

    `by_drive` (samples, nv, columns of the table of drives) are the same as F for a change of the force of one drive.
    `q`, `qd` and `qdd` are the states with the prescribed motions, and `error` (samples, m) are the control errors that
    are integrated. `closed` holds the changes of positions and velocities that keep loops closed, and accelerations.
    `multipliers` holds the multipliers of constraints with their derivatives. Both are empty for open trees
    (`drivers.linearized.Linearized`).
    `t` (samples,) are the times, s.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    error: np.ndarray
    K: np.ndarray
    D: np.ndarray
    M: np.ndarray
    C: np.ndarray
    F: np.ndarray
    by_drive: np.ndarray
    closed: np.ndarray
    multipliers: np.ndarray

    def rows(self, chosen: np.ndarray) -> OperatingPoints:
        """Return some of the states."""
        return OperatingPoints(**{name: x[chosen] for name, x in vars(self).items()})

    @property
    def forces(self) -> np.ndarray:
        """The sums of all joint forces, M qdd (samples, nv), N m or N."""
        return (self.M @ self.qdd[:, :, None])[:, :, 0]

    @property
    def is_finite(self) -> np.ndarray:
        """Whether all values of each sample are finite."""
        states, by_states = (self.q, self.qd, self.qdd, self.error), (self.K, self.D, self.M, self.C)
        arrays = (*states, *by_states, self.F, self.by_drive, self.closed)
        return np.all([np.isfinite(x).reshape(len(x), x[0].size if len(x) else 0).all(-1) for x in arrays], 0)


def conditions_of(
    function: str,
    model: Model,
    states: tuple[npt.ArrayLike | None, npt.ArrayLike, npt.ArrayLike],
    actions: tuple[Sequence[Drive] | None, Sequence[Force]],
    t: np.ndarray,
    names: tuple[str, str, str] = ("q", "qd", "tau"),
) -> tuple[Conditions, list[np.ndarray], np.ndarray]:
    """Check the arguments of a function of the linear analysis.

    Parameters
    ----------
    function : str
        Its name.
    model : Model
    states : tuple
        q, qd and tau. They are converted to float64.
    actions : tuple
        drives (None for the drives of the model) and forces.
    t : (...) array, s
    names : tuple of str
        Names of the states, for messages.

    Returns
    -------
    conditions : Conditions
    states : list of arrays
        q, qd and tau of all samples: (samples, n).
    t : (samples,) array
    """
    model.kernel_model.refuse_compliance(function)
    # derivatives in float32 would be too inexact for a linear analysis
    given = (model.neutral() if states[0] is None else states[0], *states[1:])
    q, qd, tau = (real_array(name, x, ArgumentError) for name, x in zip(names, given, strict=True))
    q = np.broadcast_to(q, common_batch({"t": t.shape, names[0]: q.shape[:-1]}, ArgumentError) + q.shape[-1:])
    arrays, _, batch = checked_states(model, names, q, qd, tau)
    drives, forces = model.drives if actions[0] is None else actions[0], actions[1]
    model, samples = with_batch(model, batch), math.prod(batch)
    flat, calls = flatten_actions(model, batch, float(t.max(initial=0.0)), DTYPE, (drives, forces, ()), always=True)
    assert flat is not None  # because it is asked for
    _refuse(function, drives, forces)
    refuse_lags(function, flat.shared.drives, "Use the feedforward without a lag")
    refuse_forces_of_drives(model, flat, arrays[2])
    kernel_model = kernel_model_for_simulation(model, flat, method_named("rk45"), has_energy_error=False)
    refuse_controllers_of_closed_chains(kernel_model, flat)
    table = flat.shared.drives
    rows = table[drive_layout.INTEGRAL]
    integrated = table[drive_layout.DOF][np.argsort(np.where(rows < 0, np.iinfo(np.int64).max, rows))]
    conditions = Conditions(
        function=function,
        model=model,
        batch=batch,
        drives=drives,
        forces=forces,
        kernel_model=kernel_model,
        actions=flat._replace(modes=None, sensitivities=None),
        calls=calls,
        kinds=table[drive_layout.KIND, : model.nv],
        integrated=integrated[: flat.integrals],
    )
    times = np.ascontiguousarray(np.broadcast_to(t, batch).reshape(samples))
    flat_states = [np.array(x, DTYPE, order="C").reshape(samples, x.shape[-1]) for x in arrays]
    return conditions, flat_states, times


def checked_integrals(conditions: Conditions, integrals: np.ndarray) -> np.ndarray:
    """Return the integrals of the control errors of all samples, (samples, m)."""
    m, batch = conditions.actions.integrals, conditions.batch
    if integrals.ndim and integrals.shape[-1] != m:
        raise ArgumentError(
            f"integrals has shape {integrals.shape}; expected (..., {m}), because the drives have {m} integrals of "
            "control errors"
        )
    if integrals.ndim:
        common_batch({"integrals": integrals.shape[:-1], "the states and the model": batch}, ArgumentError)
    try:
        return np.ascontiguousarray(np.broadcast_to(integrals, (*batch, m))).reshape(conditions.samples, m)
    except ValueError:
        raise ArgumentError(
            f"integrals has shape {integrals.shape}; expected a shape that fits into {(*batch, m)}, the batch of the "
            "states and the model"
        ) from None


def _refuse(function: str, drives: Sequence[Drive], forces: Sequence[Force]) -> None:
    """Raise an error for actions whose forces are not differentiable functions of the state and the time."""
    for drive in drives:
        if isinstance(drive, Sampled):
            raise ArgumentError(
                f"{function} does not support Sampled, whose output changes at instants only; expected continuous "
                "drives. Pass its controller itself, such as the PID, or a UserForces with derivatives"
            )
        if isinstance(drive, UserForces) and drive.derivatives is None:
            raise ArgumentError(
                f"{function}: {drive.label()} has no derivatives; expected derivatives=function. Write the derivatives "
                "of the forces, and compare them with check_derivatives"
            )
    if random_signals_of(drives) or random_signals_of(forces):
        raise ArgumentError(
            f"{function} does not support random signals, which depend on the past; expected drives and forces without "
            "them. Remove them, or replace them by their mean"
        )
    if any(is_contact(force) for force in forces):
        raise ArgumentError(
            f"{function} does not support {NAMES_OF_CONTACTS}, because their forces are not differentiable; expected "
            "forces without them. Model them with PassiveForces, a SpringDamper or a Bushing"
        )


def _closed_states(conditions: Conditions, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return states (samples, n) with constraints satisfied up to round-off; NaN where they are not satisfied.

    Raises an ArgumentError for a single state that does not satisfy the constraints.
    """
    if not conditions.has_loops or not conditions.samples:
        return q, qd
    model, batch = conditions.model, conditions.batch
    held = held_dofs(conditions.actions, model.nv)
    states = [x.reshape(*batch, x.shape[-1]) for x in (q, qd)]
    (q, qd), _ = closed_initial_states(model, held, states)
    return q.reshape(-1, model.nq), qd.reshape(-1, model.nv)


def prescribed_states(
    conditions: Conditions, q: np.ndarray, qd: np.ndarray, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the states (samples, n) with the motions that drives prescribe at the times t (samples,), s."""
    q, qd = q.copy(), qd.copy()
    times, batch = t.reshape(*conditions.batch, 1), conditions.batch
    set_prescribed_states(conditions.model, conditions.drives, times, (q[:, None], qd[:, None]), batch)
    return q, qd


def given_states(conditions: Conditions, states: Sequence[np.ndarray], t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return q and qd of the given states (q, qd, tau), with closed loops and prescribed motions."""
    return prescribed_states(conditions, *_closed_states(conditions, states[0], states[1]), t)


def operating_points(
    conditions: Conditions,
    states: tuple[np.ndarray, np.ndarray, np.ndarray],
    tau: np.ndarray,
    t: np.ndarray,
    samples: np.ndarray | None = None,
) -> OperatingPoints:
    """Compute the derivatives of the equations of motion.

    Parameters
    ----------
    conditions : Conditions
    states : tuple of arrays
        q (rows, nq), qd (rows, nv), with the prescribed motions, and the integrals of control errors (rows, m).
    tau : (samples, nv) array, N m or N
    t : (samples,) array, s
    samples : (rows,) array of int, optional
        The sample of each row. By default, each sample has one row.

    Raises
    ------
    ArgumentError
        If a user function fails.
    """
    model, n, rows = conditions.model, conditions.model.nv, len(states[0])
    m, loops = conditions.actions.integrals, n if conditions.has_loops else 0
    drives = conditions.actions.shared.drives.shape[1]
    samples = np.arange(rows) if samples is None else samples
    kernel_model = conditions.kernel_model
    found = Linearized(
        by_state=np.zeros((rows, 3, n, n)),
        by_integral=np.zeros((rows, n, m)),
        by_force=np.zeros((rows, n, n + drives)),
        rate=np.zeros((rows, n + m)),
        velocity=np.zeros((rows, n)),
        closed=np.zeros((rows, 3, loops, loops)),
        multipliers=np.zeros((rows, kernel_model.constraint_rows, 1 + 3 * n + m)),
    )
    width, tables = LANE_WIDTHS[DTYPE.name], kernel_model.constraint_tables
    memory = partial(
        linearized_memory, kernel_model.topology, tables, model.nq + n + m, conditions.actions, (width, DTYPE)
    )
    q, qd, integrals = (np.ascontiguousarray(x) for x in states)
    arrays = model_arrays(kernel_model, conditions.actions, DTYPE)
    of_states = (q, qd, integrals), samples, np.ascontiguousarray(tau)
    arguments = (*arrays, tables, *of_states, conditions.actions, t, found)
    if rows:
        threads.run(linearized_states, [], memory, arguments, rows, width)
    raise_exceptions(conditions.function, model, conditions.actions, conditions.calls, conditions.batch)
    K, D, M = (found.by_state[:, by] for by in range(3))
    return OperatingPoints(
        t=t,
        q=q,
        qd=found.velocity,
        qdd=found.rate[:, :n],
        error=found.rate[:, n:],
        K=K,
        D=D,
        M=M,
        C=found.by_integral,
        F=found.by_force[:, :, :n],
        by_drive=found.by_force[:, :, n:],
        closed=found.closed,
        multipliers=found.multipliers,
    )


def positions_at_rest(conditions: Conditions, q: np.ndarray, tau: np.ndarray, t: np.ndarray, most: int) -> np.ndarray:
    """Search for positions (samples, nq) at rest near q, in open trees without integrals and user functions.

    tau is (samples, nv), N m or N, and t (samples,), s. All joints move. The search need not end at rest
    after `most` evaluations.
    """
    model, samples = conditions.model, len(q)
    kernel_model, width = conditions.kernel_model, LANE_WIDTHS[DTYPE.name]
    result = q.copy()
    memory = partial(
        equilibria_memory, kernel_model.topology, None, model.nq + model.nv, conditions.actions, (width, DTYPE)
    )
    states = np.ascontiguousarray(q), np.zeros((samples, model.nv)), np.zeros((samples, 0))
    arrays = model_arrays(kernel_model, conditions.actions, DTYPE)
    arguments = (*arrays, None, states, np.ascontiguousarray(tau), conditions.actions, t, float(most), result)
    if samples:
        threads.run(equilibria, [], memory, arguments, samples, width)
    return result
