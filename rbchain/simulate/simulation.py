"""simulate(): check the arguments, prepare the arrays, run the driver, and collect the results as a Trajectory."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.events import Event
from ..acting.numeric_fields import Drive, Force
from ..common.calls import explains_calls
from ..common.failures import OnFailure
from ..compiling.jit import compiled_for
from ..core.methods.settings import AdaptiveStepSettings
from ..core.sample import tally_layout as tallies
from ..drivers.trajectories import integrate_batch
from ..errors import SimulationError, SimulationWarning, Status, raise_or_warn
from .batch_functions import run_driver
from .continuation import Continuation, continued
from .digital_loops import oscillating_dofs
from .energy import energy_error_of
from .event_derivatives import with_derivatives
from .loops import close_saved_states
from .messages import warnings_about
from .methods import MethodName
from .preparation import Prepared, prepare, width_of
from .request import Request, check
from .results import (
    contact_results,
    event_records,
    exceptions_of,
    held_after_stop,
    outputs_of_samples,
    refuse_penetration,
    set_prescribed_states,
    tau_and_qdd,
    with_dense_output,
)
from .sensitivities import sensitivities_of
from .stiff_springs import are_checked, are_too_stiff
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..facade.model import Model


@explains_calls(
    is_method=True,
    sensitivities="derivatives",
    boundscheck="rb.options(boundscheck=True)",
    control_derivative_errors="rb.options(control_derivative_errors=...)",
    control_sensitivity_errors="rb.options(control_derivative_errors=...)",
    contacts="forces",
    q="q0",
    qd="qd0",
    t="duration",
    t_end="duration",
    t_span="duration",
    t_eval="save_at",
    samples="save_at",
    timestep="step",
    ctrl="tau, or drives for controllers",
    control="tau, or drives for controllers",
    terminal="events with rb.Event(..., stop=True)",
    dt="step, or save_every for saved times",
)
def simulate(
    model: Model,
    q0: npt.ArrayLike | None = None,
    qd0: npt.ArrayLike = 0.0,
    duration: float | None = None,
    *,
    method: MethodName | None = None,
    tau: npt.ArrayLike | None = None,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] | None = None,
    events: Sequence[Event] | None = None,
    step: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    max_step: float | None = None,
    save_at: npt.ArrayLike | None = None,
    save_every: float | None = None,
    max_steps: int | None = None,
    derivatives: Sequence[str] = (),
    dense_output: int = 0,
    energy_error: bool = False,
    t0: float | None = None,
    continue_from: Trajectory | None = None,
    on_failure: OnFailure = "warn",
) -> Trajectory:
    """Simulate the motion of a model from an initial state, in compiled code.

    The forces are gravity, the passive forces of the joints (`PassiveForces`), constant joint forces, drives, wrenches,
    springs and bushings between bodies, and the forces of water on immersed bodies. Constraints are satisfied by
    projection after each step.

    Parameters
    ----------
    model : Model
    q0, qd0 : (..., nq), (..., nv) arrays, rad or m, and rad/s or m/s
        Initial state of each sample. By default, q0 is `Model.neutral()` and qd0 is zero; qd0 may be one value for
        all dofs. If all arrays among q0 and qd0 are float32, the simulation runs in float32. The quaternions of free
        and spherical joints are integrated as four components and normalized after each step. The states of closed
        loops must satisfy the constraints: use `Model.assemble` and `Model.assemble_velocities`.
    duration : float, s
        Duration of the simulated motion. It has no default.
    method : "rk45", "dop853", "rosenbrock", "radau", "rk4", "implicit" or "moreau", optional
        With "rk45", "dop853", "rosenbrock" and "radau", each sample has its own step size. "rk4", "implicit" and
        "moreau" take steps of `step`.

        * "rk45" (default): the fifth-order method of Dormand and Prince.
        * "dop853": the eighth-order method of Dormand and Prince, for motions that are smooth and not stiff, at small
          tolerances. Does not support contacts, dry friction or hard stops.
        * "rosenbrock": the linearly implicit fifth-order method Rodas5P, for stiff systems. The method is implicit in
          all forces. Each step computes a Jacobian and solves linear systems. Like "rk45", it locates impacts and
          changes between sticking and sliding.
        * "radau": the implicit Radau IIA method of order 9, for stiff systems at small tolerances. Does not support
          events, contacts, dry friction or hard stops.
        * "rk4": the classical fourth-order Runge-Kutta method.
        * "implicit": the linearly implicit Euler method, of first order. It is implicit in passive joint forces and in
          the gains kp and kd of `PID`, so these may be stiff. It is explicit in all other forces, including drag.
          MuJoCo's "implicitfast" treats damping the same way.
        * "moreau": Moreau's midpoint scheme for `DryFriction`, `HardStops` and contacts. It is implicit in the same
          forces as "implicit". Impacts and friction are of first order in the step.
    tau : float or (..., nv) array, N m or N
        Constant joint forces, zero by default. They are added to the forces of the drives. The array must fit into the
        batch of the initial states and the model. Joint forces that change with time are signals, as in
        `PrescribedForce(joint, Signal.table(times, values))`.
    drives : list, optional
        Drives of the joints. The forces of all drives of a degree of freedom add up: `PrescribedForce`, `PID`,
        `ComputedTorque` and `UserForces`. `PrescribedAcceleration`, `PrescribedVelocity` or `PrescribedPosition` is the
        only drive of its degree of freedom. `Sampled` runs a controller at sampling instants, with zero-order hold.
        `Actuator` adds a lag and a torque-speed curve to the sum of the forces. By default, the drives of the model
        (`Model.drives`) are used; `()` means none.
    forces : list
        `Wrench`, `SpringDamper`, `Bushing`, `DryFriction`, `HardStops`, `Current`, and contacts, such as
        `SphereContact`.
    events : list of Event
        Events to record, or to stop at.
    step : float, s
        Longest step of "rk4", "implicit" and "moreau". Steps between two saved times are of equal length, so saved
        times that are not multiples of `step` change the steps.
    rtol, atol : float
        Tolerances of "rk45", "dop853", "rosenbrock" and "radau". The root mean square over the state of
        error / (atol + rtol abs(y)) is at most 1 in each step. The defaults are 1e-8 and 1e-10, or 1e-5 and 1e-7 in
        float32. For "moreau", `atol` is the tolerance of the velocities of contacts and joints with friction, 1e-10 m/s
        and rad/s by default, or 1e-5 in float32.
    max_step : float, s, optional
        Longest step of the methods with tolerances. It is needed for user functions with short pulses, because the
        error estimate of a step does not show a pulse between its stages. Choose at most a third of the duration of the
        shortest pulse. It is also needed for torque-speed curves that fall and rise again within the change of the
        speed in a step. Steps end at the breaks of signals, and they do not pass over a pulse of a signal, an elastic
        stop, or a spring that becomes taut.
    save_at : int or (times,) array, s, optional
        Number of evenly spaced times from `t0` to `t0 + duration`, or increasing times in this range. They do not
        change the steps of the methods with tolerances. By default 101 times; or, for the fixed-step methods, the
        start, the end, and the ends of steps between them, or of every k-th step, so that there are at most 101. Large
        batches with many saved times need a lot of memory; `save_at=[t0 + duration]` saves only the end.
    save_every : float, s, optional
        Interval of the saved times, instead of `save_at`: `t0`, `t0 + save_every`, ..., and the end. The last interval
        may be shorter.
    max_steps : int, optional
        Maximum number of steps of the methods with tolerances for one sample, accepted and rejected; 10 million by
        default. The other methods take the steps that `step` determines.
    derivatives : sequence of str
        Derivatives of the trajectory to compute, with the methods "rk45", "dop853" and "rk4". `Trajectory.derivatives`
        contains the results, and `EventRecord` the derivatives of the event times. The names "q" and "qd" stand for the
        initial state, "tau" for the constant joint forces, "kp", "ki" and "kd" for the gains of `PID`, also in
        `Sampled`, and `ComputedTorque`. The name "gear_friction" stands for the gear friction of each `Actuator`. The
        name "signal" stands for the values of the tables of `PrescribedForce` and `PrescribedAcceleration`, of the
        references of `PID` and `ComputedTorque`, and of the feedforward of `PID`. They are in the order of the drives,
        of the fields of a drive, and of the times. The other names are fields of the model. These are "mass", "cg",
        "inertia", "rotor_inertia", "gear_ratio", "stiffness", "rest_position", "cubic_stiffness", "damping",
        "friction", "static_friction", "gravity", "placement_translation", "placement_rotation" and "axis". The last
        two stand for rotation vectors, as in `Dispersion`. All require forces with known derivatives. A path, such as
        "link2.mass", "link2.cg.x" or "elbow.kp", is one parameter, as in `Model.vary`. The paths "NAME.stiffness",
        "NAME.damping" and "NAME.rest_length" are parameters of the `SpringDamper` or `Bushing` with this name. So are
        "NAME.point_a", "NAME.pose_a_translation" and "NAME.pose_a_rotation", and the same names with b. The paths
        "NAME.parameters" are the parameters of the `UserForces`, which require its `parameter_derivatives`. For closed
        loops, "q" and "qd" are the initial state before its projection onto the constraints. The tolerances of "rk45"
        and "dop853" also apply to the derivatives, unless `rb.options(control_derivative_errors=False)` turns this off.
    dense_output : int
        Number of accepted steps of each sample to keep in `Trajectory.dense_output`, so that `Measure.values` computes
        extrema, integrals and crossing times within the steps. Each step takes about 40 bytes for each entry of q and
        qd, or 64 with "dop853". The default is 0. A sample may take more steps, but `Measure.values` then raises an
        error. A step of "moreau" in which velocities jump counts twice.
    energy_error : bool
        Whether to integrate the work of all forces along the trajectory, so that `Trajectory.energy_error` contains the
        energy that the method loses or gains. This does not change the trajectory. Each step takes at least six more
        evaluations of the dynamics, or eleven in closed loops. `Trajectory.evaluations` does not count them.
    t0 : float, s
        Time at the start, 0 by default; not negative. Signals and the clocks of `Sampled` controllers count from
        time 0. Saved times run from `t0` to `t0 + duration`.
    continue_from : Trajectory, optional
        A trajectory of this model to continue from its end, with its method and its tolerances, drives, forces, events
        and derivatives, which cannot be given again. Everything else on which the results depend continues too: clocks,
        queues and integrals of controllers, random signals and the noise of sensors. With the fixed-step methods, the
        results in pieces are identical, bit for bit, to the results in one call. This requires that the durations of
        the pieces, and the periods, phases and delays of controllers, are multiples of `step`. With the other methods,
        both agree within the tolerances. Samples that have ended remain ended. `energy_error` and the records of events
        and contacts count from the start of the new trajectory. A call that only starts from the last state of another
        trajectory, without `continue_from`, loses all of this.
    on_failure : "warn", "raise" or "ignore"
        The trajectory contains the status of a failed sample; the other samples are unaffected. With "warn", `simulate`
        warns with the trajectory's message. If a single state fails, it raises a SimulationError, whose attribute
        `trajectory` is the trajectory. With "raise", it also raises the error for a batch. With "ignore", `simulate`
        neither warns nor raises an error, even if joints exceed their position limits.

    Returns
    -------
    Trajectory

    Raises
    ------
    ArgumentError
        If a shape or a setting is invalid, a user function cannot be compiled, or a single initial state violates the
        constraints. In a batch, samples that violate them get the status NOT_ASSEMBLED.
    ModelError
        If the model has `bodies_without_inertia` whose motion is not prescribed. If only some samples have such bodies,
        these samples get a status instead.
    SimulationError
        If a single state fails, unless `on_failure` is "ignore", or a sample fails and `on_failure` is "raise".
    KeyboardInterrupt
        If Ctrl-C is pressed. The simulation stops within one step.

    Warns
    -----
    SimulationWarning
        If samples of a batch fail, or joints without stops exceed their `position_limits`. Also if a digital control
        loop is unstable and oscillates quickly, or impulses of contacts missed their tolerance.

    References
    ----------
    Hairer, Norsett and Wanner (1993), *Solving Ordinary Differential Equations I*, sections II.4 to II.6. Steinebach
    (2023), "Construction of Rosenbrock-Wanner method Rodas5P". Hairer and Wanner (1999), "Stiff differential equations
    solved by Radau methods".

    Examples
    --------
    >>> import numpy as np, rbchain as rb
    >>> chain = rb.Model.serial_chain(3)
    >>> motion = chain.simulate(np.zeros((100, 3)), duration=0.5, save_every=0.05)
    >>> motion.q.shape, motion.success
    ((100, 11, 3), True)
    """
    of_call = {"dense_output": dense_output, "energy_error": energy_error, "on_failure": on_failure}
    of_motion = {
        **{"step": step, "rtol": rtol, "atol": atol, "max_step": max_step, "max_steps": max_steps},
        "derivatives": derivatives,
    }
    if continue_from is not None:
        given = {"q0": q0, "tau": tau, "method": method, "t0": t0, "drives": drives, "forces": forces, "events": events}
        given |= of_motion | {
            "qd0": None if np.ndim(qd0) == 0 and qd0 == 0.0 else qd0,
            "derivatives": derivatives or None,
        }
        request = continued(model, continue_from, duration, (save_at, save_every), given, of_call)
    else:
        request = check(
            model,
            (q0, qd0, 0.0 if tau is None else tau),
            duration,
            0.0 if t0 is None else t0,
            "rk45" if method is None else method,
            (save_at, save_every),
            (
                model.drives if drives is None else drives,
                () if forces is None else forces,
                () if events is None else events,
            ),
            of_motion | of_call,
        )
    prepared = _with_stiff_samples(request, prepare(request))
    _run(request, prepared)
    motion = _collect(request, prepared)
    if on_failure != "ignore":
        _report(motion, on_failure == "raise" or not request.batch)
    return motion


def _report(motion: Trajectory, raises: bool) -> None:
    """Raise an error or warn if samples have failed, and warn about other reasons to doubt the motion."""
    if not motion.success:
        raise_or_warn(SimulationError(motion.message, motion), raises, stacklevel=4)
        return
    for line in warnings_about(motion):
        warnings.warn(line, SimulationWarning, stacklevel=4)


def _with_stiff_samples(request: Request, prepared: Prepared) -> Prepared:
    """Mark the samples that are too stiff at their start, unless they continue a trajectory."""
    if request.continuation is not None or not are_checked(request):
        return prepared
    q, qd = (x.reshape(request.samples, x.shape[-1]) for x in request.states[:2])
    found = are_too_stiff(request, q, qd, np.arange(request.samples))
    return replace(prepared, start=prepared.start._replace(is_too_stiff=found)) if found.any() else prepared


def _run(request: Request, prepared: Prepared) -> None:
    """Integrate all samples. Raises ArgumentError if contacts of a single state penetrate at the start."""
    if not prepared.count:
        return
    arguments, driver = prepared.driver_arguments(request), integrate_batch
    if prepared.calls.batch_functions:  # the driver is called once in each period
        driver = compiled_for(driver, (prepared.new_memory(request, 1), *arguments, 0, prepared.count))
    run_driver(
        driver,
        partial(prepared.new_memory, request),
        arguments,
        prepared.count,
        width_of(request),
        prepared.count * request.model.nv * _evaluations(request, prepared),
        prepared.calls.batch_functions,
        prepared.spare_memory(request),
    )
    status = prepared.outcome.tally[:, 0].reshape(request.batch)
    refuse_penetration(request.model, request.forces, status, request.states[0])


def _evaluations(request: Request, prepared: Prepared) -> float:
    """Estimate the number of steps and saved times; infinite if the run time is not known in advance."""
    if isinstance(request.settings, AdaptiveStepSettings) or prepared.calls.functions:
        return math.inf
    return (request.times[-1] - request.times[0]) / request.settings.step + request.times.size


def _collect(request: Request, prepared: Prepared) -> Trajectory:
    """Return the results as a Trajectory of the times that the caller asked for."""
    model, batch, times, asked = request.model, request.batch, request.times, request.asked
    kernel_model, actions, outcome, saved = prepared.kernel_model, prepared.actions, prepared.outcome, prepared.saved
    states, more, integrals = (prepared.q, prepared.qd), prepared.more, prepared.integrals
    set_prescribed_states(model, request.drives, times, states, batch)
    continuation = Continuation.of(request, outcome)
    if kernel_model.constraint_tables is not None:
        is_open = close_saved_states(model, actions, states, outcome.end_states)
        outcome.tally[prepared.not_assembled | is_open, 0] = Status.NOT_ASSEMBLED
    errors = energy_error_of(model, request.forces, *states, saved.work, batch)
    outputs = outputs_of_samples(saved.outputs, states[0])
    asked_states = [x[:, asked] for x in (*states, more[:, :, :integrals], outputs)]
    q, qd, found = (
        x.reshape(*batch, times[asked].size, x.shape[-1]) for x in (*asked_states[:2], more[:, asked, integrals:])
    )
    exceptions = exceptions_of(model, actions, prepared.calls, batch)  # before the forces at events are computed again
    events = event_records(model, actions, request.events, batch)
    events = with_derivatives(events, request, prepared, outcome.tally[:, tallies.STEPS], outcome.end_times)
    status, steps, rejections, evaluations, is_stiff, _, beyond_limit = (x.reshape(batch) for x in outcome.tally.T)
    end_states = outcome.end_states.reshape(*batch, outcome.end_states.shape[1])
    end_q, end_qd = end_states[..., : model.nq], end_states[..., model.nq : model.nq + model.nv]
    q, qd = held_after_stop((q, qd), (end_q, end_qd), status)
    tau = prepared.start.tau
    motion = Trajectory(
        t=times[asked],
        q=q,
        qd=qd,
        status=status,
        steps=steps,
        rejections=rejections,
        evaluations=evaluations,
        events=events,
        model=model,
        forces=tuple(request.forces),
        end_time=outcome.end_times.reshape(batch),
        end_q=end_q,
        end_qd=end_qd,
        is_stiff=is_stiff == 1,
        dof_beyond_limits=beyond_limit - 1,
        oscillating_dof=oscillating_dofs(actions, outcome, float(times[0]), model.nv).reshape(batch),
        **contact_results(actions, request.forces, saved.forces, asked, batch),
        contact_tolerance=getattr(request.settings, "tolerance", math.inf),
        exceptions=exceptions,
        derivatives=sensitivities_of(request, actions, found),
        start_time=float(times[0]),
        _continuation=continuation,
        _energy_error=None if errors is None else errors[..., asked],
        _compute_tau_and_qdd=partial(tau_and_qdd, kernel_model, actions, tau, times[asked], asked_states, batch),
    )
    return with_dense_output(motion, kernel_model, actions, request.drives, tau, times, saved, outcome)
