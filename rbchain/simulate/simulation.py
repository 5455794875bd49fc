"""simulate(): a state is checked here, integrated by a driver, and returned as a Trajectory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..acting.controllers import model_arrays
from ..acting.events import Event
from ..acting.flatten import flatten_actions
from ..acting.random_signals import actions_of_samples
from ..acting.sampled import Drive
from ..acting.user_code import UserCalls
from ..acting.wrenches import Force
from ..common.real_arrays import finite_number, float32_array, real_array
from ..compiling.levels import LANE_WIDTHS
from ..core.control import actuators as actuator_codes
from ..core.control import drives as drive_codes
from ..core.methods.settings import AdaptiveStepSettings
from ..core.sample.records import RECORDED_TALLIES, Outcome, Saved, Start
from ..core.tree.layout import PASSIVE_DAMPER, PASSIVE_FRICTION, PASSIVE_SPRING
from ..drivers.radau_trajectories import radau_memory, radau_steps
from ..drivers.trajectories import Actions, rosenbrock_memory, rosenbrock_steps, trajectory_memory
from ..errors import SimulationError, StateError, Status
from ..model.topology import PASSIVE_CODES
from .batch_functions import run_driver
from .contacts import with_modes
from .dense_output import new_record
from .energy import energy_error_of, new_work, refuse_without_inertia
from .loops import (
    close_saved_states,
    closed_initial_states,
    held_dofs,
    refuse_controllers_of_closed_chains,
)
from .results import (
    contact_results,
    event_records,
    exceptions_of,
    new_contact_forces,
    new_outputs,
    outputs_of_samples,
    refuse_penetration,
    set_prescribed_states,
    tau_and_qdd,
    with_dense_output,
)
from .samplers import refuse_samplers
from .sensitivities import checked_names, sensitivities_of, sensitivity_rows, with_sensitivities
from .settings import (
    IMPLICIT_METHODS,
    driver_and_settings,
    memory_for,
    refuse_contacts,
    refuse_events,
    times_to_save,
)
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..model.kernel_model import KernelModel

#: Fields of the passive forces that resist motion in an implicit step as inertia does.
RESISTING_FIELDS = [
    field for code in (PASSIVE_SPRING, PASSIVE_DAMPER, PASSIVE_FRICTION) for field in PASSIVE_CODES[code]
]

#: The functions that allocate the memory of drivers which need more than that of the others.
MEMORY = {rosenbrock_steps: rosenbrock_memory, radau_steps: radau_memory}


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
    max_step: float | None = None,
    save_at: npt.ArrayLike | None = None,
    max_steps: int | None = None,
    sensitivities: Sequence[str] = (),
    control_sensitivity_errors: bool = True,
    dense_output: int = 0,
    energy_error: bool = False,
    on_failure: str = "status",
    boundscheck: bool = False,
) -> Trajectory:
    """Simulate the motion of a model from an initial state, in compiled code.

    The forces are gravity, the passive forces of the joints (`PassiveForces`), constant joint forces, drives, wrenches,
    springs and bushings between bodies, and the forces of water on immersed bodies. Constraints are satisfied by
    projection after each step.

    Parameters
    ----------
    model : Model
    q0, qd0 : (..., nq), (..., nv) arrays, rad or m, and rad/s or m/s
        Initial state of each sample. If both are float32, the simulation runs in float32. The quaternions of free and
        spherical joints are integrated as four numbers and normalised after each step. The states of a closed chain
        must satisfy the constraints: use `Model.assemble` and `Model.assemble_velocities`.
    duration : float, s
    method : "rk45", "rosenbrock", "radau", "rk4", "implicit" or "moreau"
        "rk45": the fifth-order method of Dormand and Prince. Each sample has its own step size.
        "rosenbrock": the linearly implicit fifth-order method Rodas5P, for stiff systems. Each sample has its own step
        size. The method is implicit in all forces. Each step computes a Jacobian and solves linear systems.
        It locates impacts and changes between sticking and sliding, as "rk45" does.
        "radau": the implicit Radau IIA method of order 9, for stiff systems at small tolerances. Each sample has its
        own step size. Events, contacts, dry friction and hard stops are refused.
        "rk4": the classical fourth-order method with steps of `step`.
        "implicit": the linearly implicit Euler method, of first order, with steps of `step`. It is implicit in passive
        joint forces and in the gains kp and kd of `PID`, which may therefore be stiff. It is explicit in all other
        forces, including drag. MuJoCo's "implicitfast" treats damping the same way.
        "moreau": Moreau's midpoint scheme for `DryFriction`, `HardStops`, `SphereContact` and `SphereSphereContact`,
        with steps of `step`. It is implicit in the same forces as "implicit". Impacts and friction are of first order
        in the step.
    tau : float or (..., nv) array, N m or N
        Constant joint forces; zero for joints that have a drive.
    drives : list
        Drives of the joints, at most one for each degree of freedom: `PrescribedForce`, `PrescribedAcceleration`,
        `PrescribedVelocity`, `PrescribedPosition`, `PID`, `ComputedTorque`; and at most one `UserForces`.
        `Sampled` runs a controller at instants with zero-order hold. `Actuator` adds a lag and a torque-speed curve.
    forces : list
        `Wrench`, `SpringDamper`, `Bushing`, `DryFriction`, `HardStops`, `SphereContact`, `SphereSphereContact`, and at
        most one `Current`.
    events : list of Event
        Events to record, or to stop at.
    step : float, s
        Longest step of "rk4", "implicit" and "moreau". Steps between two saved times are of equal length, so saved
        times that are not multiples of `step` change the steps.
    rtol, atol : float
        Tolerances of "rk45", "rosenbrock" and "radau". The root mean square over the state of
        error / (atol + rtol abs(y)) is at most 1 in each step. The defaults are 1e-8 and 1e-10, or 1e-5 and 1e-7 in
        float32. For "moreau", `atol` is the tolerance of the velocities of contacts and joints with friction, 1e-10 m/s
        and rad/s by default, or 1e-5 in float32.
    max_step : float, s, optional
        Longest step of "rk45", "rosenbrock" and "radau". It is needed only for functions of the user that act for a
        short time: the error of a step does not show a pulse between its stages. Choose at most a third of the duration
        of the shortest pulse. Steps end at the breaks of signals, and they do not pass a pulse of a signal.
    save_at : int or (times,) array, s, optional
        Number of evenly spaced times from 0 to `duration`, or increasing times in this range. The default is the start
        and the end. They do not change the steps of "rk45", "rosenbrock" and "radau".
    max_steps : int, optional
        Largest number of steps of "rk45", "rosenbrock" and "radau" for one sample, accepted and rejected; 10 million by
        default. The other methods take the steps that `step` determines.
    sensitivities : sequence of str
        Derivatives of the motion to compute, with the methods "rk45" and "rk4". `Trajectory.sensitivities` holds the
        results. "q" and "qd" are the initial state, "tau" the constant joint forces, "kp", "ki" and "kd" the gains of
        `PID`. The other names are fields of the model: "mass", "cg", "inertia", "rotor_inertia", "gear_ratio",
        "stiffness", "rest_position", "cubic_stiffness", "damping", "friction", "static_friction". They need forces with
        known derivatives. For closed chains, "q" and "qd" are the initial state before its projection onto the
        constraints.
    control_sensitivity_errors : bool
        Whether the steps of "rk45" also satisfy the tolerances for the sensitivities. If False, they are those without
        sensitivities.
    dense_output : int
        Number of accepted steps of each sample to keep in `Trajectory.dense_output`, so that `Measure.values` computes
        extremes, integrals and crossing times within the steps. Each step needs about 40 bytes for each entry of q and
        qd. It is 0 by default. A sample may take more steps, but measures are then refused.
    energy_error : bool
        Whether to integrate the work of all forces with the motion, so that `Trajectory.energy_error` shows the energy
        that the method loses or gains. The motion does not change. Each step needs at least six more evaluations of
        the dynamics, in closed chains eleven. `Trajectory.evaluations` does not count them.
    on_failure : "status" or "raise"
        "status": if a sample fails, set its status in the trajectory; other samples are unaffected, bit for bit.
        "raise": raise a SimulationError with the trajectory's message; its attribute `trajectory` is the trajectory.
    boundscheck : bool
        Compile user functions with checks of array bounds, for debugging. A function that reads or writes beyond the
        end of an array then raises an IndexError. Functions that it calls are not checked.

    Returns
    -------
    Trajectory

    Raises
    ------
    StateError
        If a shape or a setting is invalid, a user function cannot be compiled, or a single initial state violates the
        constraints. In a batch, samples that violate them get the status NOT_ASSEMBLED.
    ModelError
        If the model has `bodies_without_inertia` whose motion is not prescribed. If only some samples have such bodies,
        these samples get a status instead.
    SimulationError
        If a sample fails and `on_failure` is "raise".
    KeyboardInterrupt
        If Ctrl-C is pressed. The simulation stops within one step.

    References
    ----------
    Hairer, Norsett and Wanner (1993), *Solving Ordinary Differential Equations I*, sections II.4 to II.6. Steinebach
    (2023), "Construction of Rosenbrock-Wanner method Rodas5P". Hairer and Wanner (1999), "Stiff differential equations
    solved by Radau methods".

    Examples
    --------
    >>> import numpy as np, rbchain as rb
    >>> chain = rb.Model.serial_chain(3)
    >>> motion = chain.simulate(np.zeros((100, 3)), np.zeros((100, 3)), duration=0.5, save_at=11)
    >>> motion.q.shape, motion.success
    ((100, 11, 3), True)
    """
    duration = finite_number("duration", duration, StateError, above=0.0)
    times, asked = times_to_save(duration, save_at)
    _check_options(
        on_failure,
        boundscheck=boundscheck,
        control_sensitivity_errors=control_sensitivity_errors,
        energy_error=energy_error,
    )
    names = checked_names(sensitivities)
    q0, qd0, tau = (
        real_array(name, x, StateError, keep_float32=True) for name, x in (("q0", q0), ("qd0", qd0), ("tau", tau))
    )
    if q0.dtype == qd0.dtype == np.float32:
        tau = float32_array("tau", tau, StateError)
    # a copy, because the trajectory keeps it
    tau = tau.copy() if tau.ndim else np.full(model.nv, tau)
    states, dtype, batch = model.kernel_model.state_arguments.check(("q0", "qd0", "tau"), (q0, qd0, tau))
    driver, settings = driver_and_settings(method, step, rtol, atol, max_step, max_steps, times, dtype)
    samples = math.prod(batch)
    drives, forces = actions_of_samples(drives, forces, duration, np.arange(samples).reshape(batch))
    actions, calls = flatten_actions(
        *(model, batch, duration, dtype, drives, forces, events, method in IMPLICIT_METHODS, bool(boundscheck)),
        always=bool(names),
    )
    _refuse_actions(model, actions, states[2], forces, events, method)
    actions = with_modes(model, actions, method, dtype)
    actions = with_sensitivities(model, actions, drives, names, method, bool(control_sensitivity_errors))
    kernel_model = _with_inertia(model, actions, method, bool(energy_error))
    integrals = 0 if actions is None else actions.integrals
    more_rows = integrals + sensitivity_rows(model, actions)
    q, qd, more = _new_states(samples, times.size, (model.nq, model.nv, more_rows), dtype)
    rows = model.nq + model.nv + more_rows
    outcome = Outcome(
        np.zeros((samples, RECORDED_TALLIES), np.int64),
        np.zeros(samples),
        np.empty((samples, rows), dtype),
        np.zeros(1, np.int64),
        new_record(dense_output, method, actions, samples, rows, dtype),
    )
    not_assembled = np.zeros(samples, bool)
    if kernel_model.constraint_tables is not None:
        refuse_controllers_of_closed_chains(actions)
        states[:2], not_assembled = closed_initial_states(model, held_dofs(actions, model.nv), states[:2])
    start = Start(*(x.reshape(samples, x.shape[-1]) if batch else x for x in states))
    saved = Saved(
        q.reshape(-1),
        qd.reshape(-1),
        more.reshape(-1),
        new_contact_forces(actions, samples, times.size, dtype),
        new_outputs(actions, samples, times.size, dtype),
        new_work(bool(energy_error), samples, times.size),
    )
    if samples:
        width = LANE_WIDTHS[dtype.name] if batch else 1
        tables = kernel_model.constraint_tables
        arguments = (
            *model_arrays(kernel_model, actions, dtype),
            tables,
            settings,
            start,
            actions,
            times,
            saved,
            outcome,
        )
        sizes = kernel_model.topology, tables, rows, settings.tableau.c.size, actions, width
        new_memory = partial(MEMORY.get(driver, trajectory_memory), *sizes, dtype, bool(energy_error))
        run_driver(
            driver,
            new_memory,
            arguments,
            samples,
            width,
            samples * model.nv * _evaluations(settings, calls, duration, times),
            calls.batch_functions,
        )
        refuse_penetration(model, forces, outcome.tally[:, 0].reshape(batch), states[0])
    set_prescribed_states(model, drives, times, (q, qd), batch)
    if kernel_model.constraint_tables is not None:
        is_open = close_saved_states(model, actions, (q, qd), outcome.end_states)
        outcome.tally[not_assembled | is_open, 0] = Status.NOT_ASSEMBLED
    errors = energy_error_of(model, forces, q, qd, saved.work, batch)
    asked_states = [x[:, asked] for x in (q, qd, more[:, :, :integrals], outputs_of_samples(saved.outputs, q))]
    q, qd, _, _, found = (
        x.reshape(*batch, times[asked].size, x.shape[-1]) for x in (*asked_states, more[:, asked, integrals:])
    )
    status, steps, rejections, evaluations, is_stiff = (x.reshape(batch) for x in outcome.tally.T)
    end_states = outcome.end_states.reshape(*batch, rows)
    motion = Trajectory(
        t=times[asked],
        q=q,
        qd=qd,
        status=status,
        steps=steps,
        rejections=rejections,
        evaluations=evaluations,
        events=event_records(model, actions, events, batch),
        model=model,
        forces=tuple(forces),
        end_time=outcome.end_times.reshape(batch),
        end_q=end_states[..., : model.nq],
        end_qd=end_states[..., model.nq : model.nq + model.nv],
        is_stiff=is_stiff == 1,
        **contact_results(actions, forces, saved.forces, asked, batch),
        contact_tolerance=getattr(settings, "tolerance", math.inf),
        exceptions=exceptions_of(model, actions, calls, batch),
        sensitivities=sensitivities_of(model, actions, names, found),
        _energy_error=None if errors is None else errors[..., asked],
        _compute_tau_and_qdd=partial(tau_and_qdd, kernel_model, actions, start.tau, times[asked], asked_states, batch),
    )
    motion = with_dense_output(motion, kernel_model, actions, drives, start.tau, times, saved, outcome)
    if on_failure == "raise" and not motion.success:
        raise SimulationError(motion.message, motion)
    return motion


def _new_states(samples: int, times: int, rows: tuple[int, ...], dtype: np.dtype) -> list[np.ndarray]:
    """Allocate arrays (samples, times, rows) for states at the saved times."""
    with memory_for(
        f"there are {samples} samples and {times} saved times", "save fewer times, or simulate fewer samples"
    ):
        return [np.empty((samples, times, m), dtype) for m in rows]


def _check_options(on_failure: str, **flags: bool) -> None:
    if on_failure not in ("status", "raise"):
        raise StateError(f'on_failure is {on_failure!r}; expected "status" or "raise"')
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool):
            raise StateError(f"{name} is {flag!r}; expected True or False")


def _evaluations(settings: Any, calls: UserCalls, duration: float, times: np.ndarray) -> float:
    """Estimate the number of steps and saved times; infinite if the run time is not known in advance."""
    if isinstance(settings, AdaptiveStepSettings) or calls.functions:
        return math.inf
    return duration / settings.step + times.size


def _refuse_actions(
    model: Model,
    actions: Actions | None,
    tau: np.ndarray,
    forces: Sequence[Force],
    events: Sequence[Event],
    method: str,
) -> None:
    """Refuse events, contacts and controllers that the method does not support, and a tau of joints with a drive."""
    refuse_events(events, method)
    refuse_contacts(forces, method)
    refuse_samplers(model, actions, method)
    if actions is None:
        return
    both = (actions.shared.drives[drive_codes.DRIVE_KIND] != drive_codes.KIND_NONE) & (tau != 0.0).any(
        tuple(range(tau.ndim - 1))
    )
    if both.any():
        names = [model.joint_names[body] for body in np.unique(model.kernel_model.dofs.body[both])]
        raise StateError(
            f"joints {names} have both a drive and a tau other than zero; expected one of them. Set their tau to 0, or "
            "remove their drives"
        )
    actuators: Any = actions.shared.actuators
    if actuators is None:
        return
    has_lag = actuators[actuator_codes.ACTUATOR_TIME_CONSTANT] >= 0
    lagging = has_lag & (tau != 0.0).any(tuple(range(tau.ndim - 1)))
    if lagging.any():
        names = [model.joint_names[body] for body in np.unique(model.kernel_model.dofs.body[lagging])]
        raise StateError(
            f"joints {names} have an Actuator with a time_constant and also a tau other than zero, which would not "
            "pass the lag; expected one of them. Set their tau to 0, and add the torque to the digital controller"
        )


def _with_inertia(model: Model, actions: Actions | None, method: str, energy_error: bool) -> KernelModel:
    """Return the kernel model in which samples without inertia fail, unless a drive prescribes the motion.

    In an implicit step, springs and dampers resist motion as inertia does.
    """
    if model.kernel_model.has_inertia:
        return model.kernel_model.with_added_inertias
    kinds = np.zeros(model.nv, int) if actions is None else actions.shared.drives[drive_codes.DRIVE_KIND]
    held = np.isin(kinds, drive_codes.PRESCRIBED_KINDS)
    if method not in IMPLICIT_METHODS:
        return model.kernel_model.for_dynamics("simulate", held)
    if energy_error:
        refuse_without_inertia(model, method)
    springs = [getattr(model, name) != 0.0 for name in RESISTING_FIELDS]
    resisted = np.any(np.broadcast_arrays(*springs), axis=0) | (kinds == drive_codes.KIND_PID)
    return model.kernel_model.for_dynamics("simulate", held, resisted.reshape(-1, model.nv))
