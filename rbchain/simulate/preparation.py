"""The second of the four calls of `simulate`: the arrays that the driver reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.controllers import model_arrays
from ..acting.coordinates import joints_of_dofs
from ..acting.flatten import flatten_actions
from ..acting.flatten_drives import refuse_lags, refuse_short_lags
from ..acting.user_code import UserCalls
from ..compiling.levels import LANE_WIDTHS
from ..core.control import drive_layout as drive
from ..core.forces.signal_layout import are_constant
from ..core.linear.sampled_sensitivities import sampled_sensitivities_size
from ..core.methods.settings import AdaptiveStepSettings
from ..core.motion.sample_memory import memory_size
from ..core.sample import tally_layout as tallies
from ..core.sample.rate import REAL_STABILITY_LIMIT
from ..core.sample.records import Outcome, Saved, Start
from ..core.tree import setting_layout as setting
from ..core.tree.layout import PASSIVE_DAMPER, PASSIVE_FRICTION, PASSIVE_SPRING
from ..drivers.trajectories import Actions
from ..drivers.trajectory_memory import TrajectoryMemory, trajectory_memory
from ..errors import ArgumentError
from ..model.topology import PASSIVE_CODES
from .closed_chain_controllers import prepare_closed_controllers
from .contacts import with_modes
from .dense_output import new_record
from .energy import new_work, refuse_without_inertia
from .feedback_steps import refuse_unstable_feedback
from .loops import (
    closed_initial_states,
    held_dofs,
    refuse_controllers_of_closed_chains,
    refuse_steps_of_compliances,
)
from .methods import Method, names_of
from .position_limits import limits_to_check
from .request import Request
from .results import new_contact_forces, new_outputs, outputs_of_samples
from .rounded_times import warn_of_rounded_times
from .samplers import refuse_samplers
from .sensitivities import columns_of_sensitivities, sensitivity_rows, with_sensitivities
from .settings import LESS_MEMORY, ExplainsMemory, refuse_contacts, refuse_events
from .signal_columns import SIGNALS, weights_of

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..model.kernel_model import KernelModel

#: Fields of the passive forces that resist motion in an implicit step as inertia does.
RESISTING_FIELDS = [
    field for code in (PASSIVE_SPRING, PASSIVE_DAMPER, PASSIVE_FRICTION) for field in PASSIVE_CODES[code]
]
#: Longest stable step in time constants of a lag: of "rk4", and of the methods whose steps of lags are Euler's.
LONGEST_STEP_OF_LAGS = (REAL_STABILITY_LIMIT, 2.0)


@dataclass(frozen=True)
class Prepared:
    """The arrays of a simulation.

    Attributes
    ----------
    kernel_model : KernelModel
    actions : Actions or None
        Drives, forces and events as numbers.
    calls : UserCalls
        The user functions.
    q, qd, more : (samples, times, n) arrays
        States at all saved times: positions, velocities, and integrals of control errors with sensitivities.
    start : Start
    saved : Saved
        The same arrays as `q`, `qd` and `more`, flat, and all other values at the saved times.
    outcome : Outcome
    not_assembled : (samples,) array of bool
        Samples whose initial state violates the constraints.
    count : int
        Number of samples to integrate: without those that have ended before.
    """

    kernel_model: KernelModel
    actions: Actions | None
    calls: UserCalls
    q: np.ndarray
    qd: np.ndarray
    more: np.ndarray
    start: Start
    saved: Saved
    outcome: Outcome
    not_assembled: np.ndarray
    count: int

    @property
    def integrals(self) -> int:
        """Number of integrals of control errors in the state."""
        return 0 if self.actions is None else self.actions.integrals

    def driver_arguments(self, request: Request) -> tuple[Any, ...]:
        """Return the arguments of the driver between `memory` and `first`."""
        return (
            *model_arrays(self.kernel_model, self.actions, request.dtype),
            self.kernel_model.constraint_tables,
            request.settings,
            self.start,
            self.actions,
            request.times,
            self.saved,
            self.outcome,
        )

    def spare_memory(self, request: Request) -> list[Any] | None:
        """Return the memory of earlier calls with this model and method; None with actions, which need other sizes."""
        if self.actions is not None:
            return None
        key = request.method.name, width_of(request), request.dtype.itemsize, request.energy_error
        return self.kernel_model.spare_memory.setdefault(key, [])

    def new_memory(self, request: Request, blocks: int) -> TrajectoryMemory:
        """Allocate the memory of one call of the driver for a number of blocks."""
        return trajectory_memory(
            self.kernel_model.topology,
            self.kernel_model.constraint_tables,
            self.outcome.end_states.shape[1],
            request.settings.tableau,
            self.actions,
            (width_of(request), request.dtype),
            request.energy_error,
            blocks,
        )


def width_of(request: Request) -> int:
    """Return the number of lanes: 1 for a single state."""
    return LANE_WIDTHS[request.dtype.name] if request.batch else 1


def prepare(request: Request) -> Prepared:
    """Convert the actions to numbers, close the initial states, and allocate the results.

    Raises
    ------
    ArgumentError
        If the actions do not fit the model or the method, or a single initial state violates the constraints.
    ModelError
        If the model has bodies without inertia whose motion is not prescribed.
    """
    model, method, dtype, samples, times = (
        request.model,
        request.method,
        request.dtype,
        request.samples,
        request.times.size,
    )
    refuse_steps_of_compliances(model, method, request.settings)
    actions, calls = _flattened(request)
    kernel_model = kernel_model_for_simulation(model, actions, method, request.energy_error)
    if method.uses_jacobians or request.names:
        refuse_controllers_of_closed_chains(kernel_model, actions)
    integrals = 0 if actions is None else actions.integrals
    more_rows = integrals + sensitivity_rows(model, actions)
    q, qd, more = _new_states(samples, times, (model.nq, model.nv, more_rows), dtype)
    rows = model.nq + model.nv + more_rows
    outcome = Outcome(
        tally=np.zeros((samples, tallies.RECORDED), np.int64),
        end_times=np.zeros(samples),
        end_states=np.empty((samples, rows), dtype),
        interrupt=np.zeros(1, np.int64),
        record=new_record(request.dense_output, method, actions, samples, rows, dtype),
        limits=limits_to_check(model, request.forces, request.batch, dtype),
        memory=np.empty((samples, _memory_size(model, actions, more_rows))),
    )
    states, not_assembled, continuation = list(request.states), np.zeros(samples, bool), request.continuation
    if kernel_model.constraint_tables is not None and continuation is None:
        states[:2], not_assembled = closed_initial_states(model, held_dofs(actions, model.nv), states[:2])
    prepare_closed_controllers(model, kernel_model, actions, request.drives, states[0])
    saved = Saved(
        q=q.reshape(-1),
        qd=qd.reshape(-1),
        integrals=more.reshape(-1),
        forces=new_contact_forces(actions, samples, times, dtype),
        outputs=new_outputs(actions, samples, times, dtype),
        work=new_work(request.energy_error, samples, times),
    )
    q0, qd0, tau = (x.reshape(samples, x.shape[-1]) if request.batch else x for x in states)
    all_samples, none = np.empty(0, np.int64), np.empty(0, bool)
    start, count = Start(q0, qd0, tau, memory=np.empty((0, 1)), order=all_samples, is_too_stiff=none), samples
    if continuation is not None:
        results = [q, qd, more, saved.forces, outputs_of_samples(saved.outputs, q)]
        start, count = continuation.start(start, [x for x in results if x is not None], outcome)
    return Prepared(kernel_model, actions, calls, q, qd, more, start, saved, outcome, not_assembled, count)


def _new_states(samples: int, times: int, rows: tuple[int, ...], dtype: np.dtype) -> list[np.ndarray]:
    """Allocate arrays (samples, times, rows) for states at the saved times."""
    with ExplainsMemory(
        f"there are {samples} samples and {times} saved times", f"{LESS_MEMORY}, or simulate fewer samples"
    ):
        return [np.empty((samples, times, m), dtype) for m in rows]


def _memory_size(model: Model, actions: Actions | None, more_rows: int) -> int:
    """Return the length of the memory of a sample whose state has `more_rows` rows after q and qd."""
    samplers = None if actions is None else actions.shared.samplers
    more_rows += sampled_sensitivities_size(samplers, columns_of_sensitivities(actions), model.nv)
    return int(memory_size(more_rows, samplers, model.nv))


def _flattened(request: Request) -> tuple[Actions | None, UserCalls]:
    """Return the actions as numbers, with modes of contacts and sensitivities, and the user functions."""
    model, method, dtype = request.model, request.method, request.dtype
    weights = weights_of(model, request.drives, request.given[1]) if SIGNALS in request.names else None
    actions, calls = flatten_actions(
        model,
        request.batch,
        request.end,
        dtype,
        (request.drives, request.forces, request.events),
        method.is_implicit_in_joints,
        always=bool(request.names),
        weights=() if weights is None else weights.signals,
    )
    warn_of_rounded_times(actions, request.samples, request.end, dtype)
    refuse_events(request.events, method)
    refuse_contacts(request.forces, method)
    refuse_samplers(model, actions, request.settings, request.times)
    refuse_forces_of_drives(model, actions, request.states[2])
    if actions is not None and method.uses_jacobians:
        expected = names_of(lambda method: not method.uses_jacobians)
        refuse_lags(f'method "{method.name}"', actions.shared.drives, f"Use method {expected}")
    if not isinstance(request.settings, AdaptiveStepSettings):
        longest = LONGEST_STEP_OF_LAGS[method.is_implicit_in_joints]
        refuse_short_lags(request.drives, method.name, request.settings.step, longest)
        refuse_unstable_feedback(request.drives, method.name, request.settings.step)
    return with_sensitivities(request, with_modes(model, actions, method, dtype), weights), calls


def depends_on_time(actions: Actions | None) -> bool:
    """Whether actions contain clocks, user functions, or signals that are not constant."""
    if actions is None:
        return False
    shared = actions.shared
    has_functions = actions.settings[setting.FUNCTIONS] > 0
    return bool(shared.samplers is not None or not are_constant(shared.signals) or has_functions)


def refuse_forces_of_drives(model: Model, actions: Actions | None, tau: np.ndarray) -> None:
    """Raise an error for a tau other than zero of joints whose motion a drive prescribes."""
    if actions is None:
        return
    held = held_dofs(actions, model.nv)
    if not held.any():
        return
    both = held & (tau != 0.0).any(tuple(range(tau.ndim - 1)))
    if both.any():
        names = joints_of_dofs(model, both)
        raise ArgumentError(
            f"joints {names} have a tau other than zero, but a drive prescribes their motion, so tau has no effect. "
            "Set their tau to 0, or remove the drives"
        )


def kernel_model_for_simulation(
    model: Model, actions: Actions | None, method: Method, has_energy_error: bool
) -> KernelModel:
    """Return the kernel model in which samples without inertia fail, unless a drive prescribes the motion.

    In an implicit step, springs and dampers resist motion as inertia does.
    """
    if model.kernel_model.has_inertia:
        return model.kernel_model.with_added_inertias
    held = held_dofs(actions, model.nv)
    if not method.is_implicit_in_joints:
        return model.kernel_model.for_dynamics("simulate", held)
    if has_energy_error:
        refuse_without_inertia(model, method.name)
    springs = [getattr(model, name) != 0.0 for name in RESISTING_FIELDS]
    has_pid = np.zeros(model.nv, bool)
    if actions is not None:
        drives = actions.shared.drives
        has_pid[drives[drive.DOF, drives[drive.KIND] == drive.KIND_PID]] = True
    resisted = np.any(np.broadcast_arrays(*springs), axis=0) | has_pid
    return model.kernel_model.for_dynamics("simulate", held, resisted.reshape(-1, model.nv))
