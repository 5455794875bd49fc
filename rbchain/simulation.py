"""simulate(): check the initial states and settings, run the driver, and return the states as a Trajectory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .actions.controllers import model_arrays
from .actions.drives import Drive, PrescribedPosition, PrescribedVelocity
from .actions.events import Event, EventRecord
from .actions.flatten import UserCalls, dof_index, flatten_actions
from .actions.signals import as_signal
from .actions.wrenches import Force
from .core.integration import drives as drive_codes
from .core.integration import tableaus
from .core.integration.rollout import AdaptiveStepSettings, FixedStepSettings, Outcome, Saved, Start, Tolerances
from .core.simd.levels import LANE_WIDTHS
from .core.tree.layout import PASSIVE_DAMPER, PASSIVE_FRICTION, PASSIVE_SPRING, TOPOLOGY_COORDINATE
from .drivers import threads
from .drivers.dynamics import forward_dynamics
from .drivers.trajectories import Actions, actuator_forces, adaptive_steps, fixed_steps, trajectory_memory
from .errors import SimulationError, StateError
from .model.flatten import PASSIVE_CODES
from .real_arrays import finite_number, float32_array, real_array, whole_number
from .trajectory import Trajectory, sample_index

if TYPE_CHECKING:
    from .chain import Model
    from .kernel_model import KernelModel

# Squares of errors over a smaller atol would overflow.
SMALLEST_ATOL, SMALLEST_ATOL_FLOAT32 = 1e-100, 1e-12
#: Forces that resist motion in an implicit step as inertia does.
RESISTING_FIELDS = [
    field for code in (PASSIVE_SPRING, PASSIVE_DAMPER, PASSIVE_FRICTION) for field in PASSIVE_CODES[code]
]
FIXED = {"rk4": tableaus.RK4, "implicit": tableaus.EULER}
# More steps than anyone would wait for, and few enough to count.
MOST_STEPS = 1e12
MOST_ADAPTIVE_STEPS, MOST_TIMES = 10**18, 10**9
#: Only a sample that would run almost forever takes so many adaptive steps: ten million of them take some 30 s.
DEFAULT_MAX_STEPS = 10_000_000
DEFAULT_RTOL = {"float64": 1e-8, "float32": 1e-5}
DEFAULT_ATOL = {"float64": 1e-10, "float32": 1e-7}
#: Failed calls of user functions whose exceptions are kept.
MOST_EXCEPTIONS = 1000


def simulate(
    model: Model,
    q0: npt.ArrayLike,
    qd0: npt.ArrayLike,
    duration: float,
    *,
    method: str = "rk45",
    tau: npt.ArrayLike = 0.0,
    drives: Sequence[Drive] = (),
    forces: Sequence[Force] = (),
    events: Sequence[Event] = (),
    step: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    save_at: npt.ArrayLike | None = None,
    max_steps: int = DEFAULT_MAX_STEPS,
    on_failure: str = "status",
    boundscheck: bool = False,
) -> Trajectory:
    """Motion of a model from a state, computed entirely in compiled code.

    What acts is the joints' passive forces (`PassiveForces`), constant joint forces, drives, wrenches, and gravity.

    Parameters
    ----------
    model : Model
    q0, qd0 : (..., nq), (..., nv) arrays, rad or m, and per second
        Initial state of each sample; all float32 makes the calculation float32. The quaternions of free and spherical
        joints are integrated as four numbers, and given back unit length after each step.
    duration : float, s
    method : "rk45", "rk4" or "implicit"
        "rk45", Dormand and Prince's fifth-order method, in which every sample has its own steps; "rk4", the classical
        fourth-order method in steps of `step`; or "implicit", Euler's method, of first order, but linearly implicit in
        what joints do by themselves (springs, damping, friction, stops) and in PID's kp and kd, which may be as stiff
        as they like (as MuJoCo's "implicitfast" is in damping); all else, drag among it, is explicit.
    tau : float or (..., nv) array, N m or N
        Joint forces, constant over the motion; of joints with a drive, zero.
    drives : list
        What the joints' motors do, at most one for each degree of freedom: `PrescribedForce`, `PrescribedAcceleration`,
        `PrescribedVelocity`, `PrescribedPosition`, `PID`, `ComputedTorque`; and `UserForces`.
    forces : list of Wrench, and a Current
        What acts on bodies.
    events : list of Event
        What to record, or to stop at.
    step : float, s
        Of "rk4" and "implicit": between two saved times, equal steps no longer than this.
    rtol, atol : float
        Of "rk45": the error of a step is kept to atol + rtol abs(y) in the root mean square over the state. The
        defaults are 1e-8 and 1e-10, in float32 1e-5 and 1e-7.
    save_at : int or (times,) array, s, optional
        Times to save: that many, evenly spaced from 0 to the end; or these, rising from 0 or later up to `duration`.
        If not given, the beginning and the end.
    max_steps : int
        Of "rk45": most steps, accepted and rejected, of one sample.
    on_failure : "status" or "raise"
        What happens if a sample fails: "status" sets its status in the trajectory and leaves the other samples as they
        are, bit for bit; "raise" raises a SimulationError with the trajectory's message and the `trajectory`.
    boundscheck : bool
        Whether user functions are compiled with checks of array bounds, for debugging: a function that reads or writes
        beyond the end of its arrays raises an IndexError. Functions that it calls are not checked.

    Returns
    -------
    Trajectory

    Raises
    ------
    StateError
        If a shape or a setting does not fit, or if a user function cannot be compiled.
    ModelError
        If the model has `bodies_without_inertia` whose motion is not prescribed. If only some samples of a model have
        them, those samples get a status.
    SimulationError
        If a sample fails and `on_failure` is "raise".
    KeyboardInterrupt
        If Ctrl-C is pressed; the simulation stops within a step.

    References
    ----------
    Hairer, Norsett and Wanner (1993), *Solving Ordinary Differential Equations I*, sections II.4 to II.6.

    Examples
    --------
    >>> import numpy as np, rbchain as rb
    >>> chain = rb.Model.serial_chain(3)
    >>> motion = chain.simulate(np.zeros((100, 3)), np.zeros((100, 3)), duration=0.5, save_at=11)
    >>> motion.q.shape, motion.success
    ((100, 11, 3), True)
    """
    duration = finite_number("duration", duration, StateError, above=0.0)
    times, asked = _times(duration, save_at)
    if on_failure not in ("status", "raise"):
        raise StateError(f'on_failure is {on_failure!r}; expected "status" or "raise"')
    if not isinstance(boundscheck, bool | np.bool):
        raise StateError(f"boundscheck is {boundscheck!r}; expected True or False")
    q0, qd0, tau = (
        real_array(name, x, StateError, keep_float32=True) for name, x in (("q0", q0), ("qd0", qd0), ("tau", tau))
    )
    if q0.dtype == qd0.dtype == np.float32:
        tau = float32_array("tau", tau, StateError)
    tau = np.broadcast_to(tau, tau.shape or (model.nv,))
    states, dtype, batch = model.kernel_model.state_arguments.check(("q0", "qd0", "tau"), (q0, qd0, tau))
    driver, settings = _driver(method, step, rtol, atol, max_steps, times, dtype)
    samples = math.prod(batch)
    actions, calls = flatten_actions(
        model, batch, duration, dtype, drives, forces, events, method == "implicit", bool(boundscheck)
    )
    _check_tau(model, actions, states[2])
    moving = _with_inertia(model, actions, method)
    integrals = 0 if actions is None else actions.integrals
    q, qd, more = (np.empty((samples, times.size, m), dtype) for m in (model.nq, model.nv, integrals))
    rows = model.nq + model.nv + integrals
    outcome = Outcome(
        np.zeros((samples, 4), np.int64), np.zeros(samples), np.empty((samples, rows), dtype), np.zeros(1, np.int64)
    )
    start = Start(*(x.reshape(samples, x.shape[-1]) if batch else x for x in states))
    saved = Saved(q.reshape(-1), qd.reshape(-1), more.reshape(-1))
    if samples:
        width = LANE_WIDTHS[dtype.name] if batch else 1
        arguments = (*model_arrays(moving, actions, dtype), settings, start, actions, times, saved, outcome)
        sizes = model.kernel_model.topology, rows, settings.tableau.c.size, actions
        new_memory = partial(trajectory_memory, *sizes, width, dtype)
        effort = math.inf
        if isinstance(settings, FixedStepSettings) and not calls.functions:  # those of the user may take any time
            effort = samples * model.nv * (duration / settings.step + times.size)
        threads.run_interruptibly(driver, new_memory, arguments, samples, width, outcome.interrupt, effort)
    _put_where_prescribed(model, drives, times, (q, qd), batch)
    asked_states = [x[:, asked] for x in (q, qd, more)]
    motors = partial(_motors, moving, actions, start.tau, times[asked], asked_states, batch)
    q, qd, _ = (x.reshape(*batch, times[asked].size, x.shape[-1]) for x in asked_states)
    status, steps, rejections, evaluations = (outcome.tally[:, column].reshape(batch) for column in range(4))
    end_states = outcome.end_states.reshape(*batch, rows)
    motion = Trajectory(
        times[asked],
        q,
        qd,
        status,
        steps,
        rejections,
        evaluations,
        _event_records(model, actions, events, batch),
        model,
        tuple(forces),
        outcome.end_times.reshape(batch),
        end_states[..., : model.nq],
        end_states[..., model.nq : model.nq + model.nv],
        _exceptions(model, actions, calls, batch),
        motors,
    )
    if on_failure == "raise" and not motion.success:
        raise SimulationError(motion.message, motion)
    return motion


def _exceptions(
    model: Model, actions: Actions | None, calls: UserCalls, batch: tuple[int, ...]
) -> dict[tuple[int, ...], str]:
    """Which user function failed for which sample, why and when."""
    if actions is None:
        return {}
    samples = np.flatnonzero(actions.records.failures)[:MOST_EXCEPTIONS]
    return {
        sample_index(int(sample), batch): calls.failure(actions.records, int(sample), model.nq) for sample in samples
    }


def _check_tau(model: Model, actions: Actions | None, tau: np.ndarray) -> None:
    """Refuse constant forces at joints that have a drive."""
    if actions is None:
        return
    both = (actions.shared.drives[drive_codes.DRIVE_KIND] != drive_codes.KIND_NONE) & (tau != 0.0).any(
        tuple(range(tau.ndim - 1))
    )
    if both.any():
        names = [model.joint_names[body] for body in np.unique(model.kernel_model.dofs.body[both])]
        raise StateError(f"joints {names} have both a drive and a tau other than zero; expected one of them")


def _with_inertia(model: Model, actions: Actions | None, method: str) -> KernelModel:
    """The kernel model whose samples without inertia fail, but where their motion is prescribed.

    In an implicit step, springs and dampers resist as inertia does.
    """
    kinds = np.zeros(model.nv, int) if actions is None else actions.shared.drives[drive_codes.DRIVE_KIND]
    held = np.isin(kinds, drive_codes.PRESCRIBED_KINDS)
    if method != "implicit":
        return model.kernel_model.with_inertia("simulate", held)
    springs = [getattr(model, name) != 0.0 for name in RESISTING_FIELDS]
    resisted = np.any(np.broadcast_arrays(*springs), axis=0) | (kinds == drive_codes.KIND_PID)
    return model.kernel_model.with_inertia("simulate", held, resisted.reshape(-1, model.nv))


def _put_where_prescribed(
    model: Model,
    drives: Sequence[Drive],
    times: np.ndarray,
    states: tuple[np.ndarray, np.ndarray],
    batch: tuple[int, ...],
) -> None:
    """Give prescribed positions and velocities at saved times to the last bit, where the motion got so far."""
    for drive in drives:
        order = {PrescribedPosition: 0, PrescribedVelocity: 1}.get(type(drive))
        if order is None or not isinstance(drive, (PrescribedPosition, PrescribedVelocity)):
            continue
        signal, i = as_signal("signal", drive.signal), dof_index(model, "drive", drive.joint, drive.dof)
        rows = (int(model.kernel_model.topology[TOPOLOGY_COORDINATE, i]), i)
        for derivative in range(order, 2):
            found = states[derivative][:, :, rows[derivative]]
            exact = np.broadcast_to(signal(times, derivative - order), (*batch, times.size)).reshape(found.shape)
            found[:] = np.where(np.isnan(found), found, exact)


def _motors(
    model: KernelModel,
    actions: Actions | None,
    tau: np.ndarray,
    times: np.ndarray,
    states: Sequence[np.ndarray],
    batch: tuple[int, ...],
) -> np.ndarray:
    """What the motors give, and the accelerations, at saved states: (..., times, 2 nv)."""
    q, qd, integrals = states
    dtype, width, (samples, m, n) = q.dtype, LANE_WIDTHS[q.dtype.name], qd.shape
    if actions is None:
        tau = np.broadcast_to(tau.reshape(samples, 1, n), qd.shape)
        states = tuple(x.reshape(*batch, m, x.shape[-1]) for x in (q, qd, tau))
        qdd = model.compute(forward_dynamics, (n,), ("q", "qd", "tau"), states, None)
        return np.concatenate([tau.reshape(*batch, m, n), qdd], -1)
    found = np.empty((samples * m, 2 * n), dtype)
    flat = Saved(*(np.ascontiguousarray(x.reshape(samples * m, x.shape[-1])) for x in states))
    tau = np.ascontiguousarray(tau.reshape(samples, n))
    size = q.shape[-1] + n + integrals.shape[-1]
    arguments = (*model_arrays(model, actions, dtype), flat, tau, actions, times, found)
    memory = partial(trajectory_memory, model.topology, size, 1, actions, width, dtype)
    threads.run(actuator_forces, [], memory, arguments, samples * m, width)
    found[np.isnan(flat.q).any(-1)] = np.nan
    return found.reshape(*batch, m, 2 * n)


def _event_records(
    model: Model, actions: Actions | None, events: Sequence[Event], batch: tuple[int, ...]
) -> tuple[EventRecord, ...]:
    """When each event happened."""
    if actions is None:
        return ()
    counts, times, states, *_ = actions.records
    return tuple(
        EventRecord(
            counts[:, e].reshape(batch),
            times[:, e, :most].reshape(*batch, most),
            states[:, e, :most, : model.nq].reshape(*batch, most, model.nq),
            states[:, e, :most, model.nq : model.nq + model.nv].reshape(*batch, most, model.nv),
        )
        for e, most in enumerate(event.max_records for event in events)
    )


def _times(duration: float, save_at: npt.ArrayLike | None) -> tuple[np.ndarray, slice]:
    """All times the driver saves, from 0 to the end, and which of them were asked for."""
    if save_at is None:
        return np.array([0.0, duration]), slice(None)
    if np.ndim(save_at) == 0:
        try:
            count = whole_number("save_at", save_at, StateError, least=2, most=MOST_TIMES)
            return np.linspace(0.0, duration, count), slice(None)
        except StateError:
            wanted = "a number of times, at least 2, or the times themselves"
            raise StateError(f"save_at is {save_at!r}; expected {wanted}") from None
    times = real_array("save_at", save_at, StateError)
    if times.ndim != 1 or times.size == 0 or not (times[0] >= 0.0 and times[-1] <= duration):
        raise StateError(f"save_at {times.tolist()} is no list of times from 0 to {duration} s")
    if not (np.diff(times) > 0.0).all():
        raise StateError("save_at does not rise from each time to the next")
    first, count = int(times[0] > 0.0), times.size
    times = np.concatenate([[0.0] * first, times, [duration] * int(times[-1] < duration)])
    return times, slice(first, first + count)


def _driver(
    method: str,
    step: float | None,
    rtol: float | None,
    atol: float | None,
    max_steps: int,
    times: np.ndarray,
    dtype: np.dtype,
) -> tuple[Callable[..., None], FixedStepSettings | AdaptiveStepSettings]:
    """The driver of a method, and its settings."""
    if not isinstance(method, str) or method not in ("rk45", *FIXED):
        raise StateError(f'method is {method!r}; expected "rk45", "rk4" or "implicit"')
    if method in FIXED:
        step = finite_number("step", step, StateError, above=0.0)
        if np.diff(times).max() > MOST_STEPS * step:
            raise StateError(
                f"step is {step!r} s and duration {times[-1]:g} s; expected no more than {MOST_STEPS:.0e} steps "
                "between two saved times"
            )
        return fixed_steps, FixedStepSettings(FIXED[method], step)
    if step is not None:
        raise StateError(f'step is {step!r}; expected None for method "rk45", which chooses its own')
    max_steps = whole_number("max_steps", max_steps, StateError, least=1, most=MOST_ADAPTIVE_STEPS)
    tolerances = Tolerances(*_tolerances(rtol, atol, dtype), max_steps)
    return adaptive_steps, AdaptiveStepSettings(tableaus.DORMAND_PRINCE, tolerances)


def _tolerances(rtol: float | None, atol: float | None, dtype: np.dtype) -> tuple[float, float]:
    """Tolerances that the step control can keep in this precision."""
    rtol = DEFAULT_RTOL[dtype.name] if rtol is None else finite_number("rtol", rtol, StateError, least=0.0)
    atol = DEFAULT_ATOL[dtype.name] if atol is None else finite_number("atol", atol, StateError, above=0.0)
    # where a number passes zero, no error is small enough for a relative tolerance alone
    smallest = SMALLEST_ATOL if dtype == np.float64 else SMALLEST_ATOL_FLOAT32
    if rtol >= 1.0 or atol < smallest:
        raise StateError(
            f"rtol is {rtol!r} and atol {atol!r}; expected rtol below 1 and atol of at least {smallest} in {dtype.name}"
        )
    round_off = float(np.finfo(dtype).eps)
    if 0.0 < rtol < round_off:
        raise StateError(
            f"rtol is {rtol!r}, below the round-off of {dtype.name}, which no step can reach; expected at least "
            f"{round_off:.2g}, or 0 for an absolute tolerance"
        )
    return rtol, atol
