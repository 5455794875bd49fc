"""simulate() and the Trajectory it returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from .actions.drives import Drive, PrescribedPosition, PrescribedVelocity
from .actions.events import Event, EventRecord
from .actions.gather import dof_index, gather
from .actions.loads import loads_on_bodies
from .actions.signals import as_signal
from .actions.wrenches import Current, Force
from .core import drives as drive_codes
from .core import rollout, tableaus
from .core.lanes import LANE_WIDTHS
from .core.layout import COORDINATE, DAMPER, PASSIVE, SLIDING, SPRING
from .drivers import threads
from .drivers.trajectories import Actions, adaptive_steps, fixed_steps, motor_forces, trajectory_memory
from .errors import STATUS_SENTENCES, StateError

if TYPE_CHECKING:
    from pathlib import Path

    import pandas
    import xarray
    from matplotlib.figure import Figure

    from .chain import Model
    from .view.viewer import Viewer

# Squares of errors over a smaller atol would overflow.
SMALLEST_ATOL, SMALLEST_ATOL_FLOAT32 = 1e-100, 1e-12
FIXED = {"rk4": tableaus.RK4, "implicit": tableaus.EULER}
# More steps than anyone would wait for, and few enough to count.
MOST_STEPS = 1e12


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Motions of a batch of chains.

    Attributes
    ----------
    t : (times,) array, s
    q, qd : (..., times, nq), (..., times, nv) arrays
        Positions and velocities at those times; NaN from where a chain's motion could not be computed.
    status : (...) array of int
        How each chain ended: 0 done, 1 step underflow, 2 not finite, 3 too many steps, 4 stopped by an event, 5 too
        stiff for the step.
    steps, rejections, evaluations : (...) arrays of int
        Accepted steps, rejected ones, and evaluations of the dynamics.
    events : tuple of EventRecord
        When each of the events happened.
    model : Model
        Whose motions these are.
    forces : tuple
        The wrenches, and the current, that acted.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    status: np.ndarray
    steps: np.ndarray
    rejections: np.ndarray
    evaluations: np.ndarray
    events: tuple[EventRecord, ...] = ()
    model: Model = None  # type: ignore[assignment]
    forces: tuple[Force, ...] = ()
    _motors: Callable[[], np.ndarray] | None = None

    @cached_property
    def tau(self) -> np.ndarray:
        """What the motors gave at those times, (..., times, nv): of a prescribed motion, the force it took."""
        return self._driven[..., : self.qd.shape[-1]]

    @cached_property
    def qdd(self) -> np.ndarray:
        """Accelerations at those times, (..., times, nv)."""
        return self._driven[..., self.qd.shape[-1] :]

    @cached_property
    def reactions(self) -> np.ndarray:
        """What the joints transmit at those times, (..., times, n, 6), under the motion's wrenches too.

        As `Model.joint_reactions` has it. Raises StateError in water that drags or flows: what that does to each body
        is known to the stepper only.

        Examples
        --------
        A bob of 1 kg that starts to swing from the side pulls on its bearing with nothing, and below with three times
        its weight:

        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder(gravity=(0, -10, 0))
        >>> builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(1.0, cg=(1, 0, 0)))
        >>> bottom = rb.Event("bob", value=-3.14159265 / 2, stop=True)
        >>> motion = builder.build().simulate([[0.0]], [[0.0]], 2.0, events=[bottom], save_at=201)
        >>> force = motion.reactions[0, :, 0, 0]  # along the rod
        >>> bool(abs(force[0]) < 1e-12), round(float(force[~(force != force)].min()), 1)
        (True, -30.0)
        """
        model = self.model
        if any(isinstance(force, Current) for force in self.forces) or model._drags:
            raise StateError("reactions in water that drags or flows are not known; expected none, or water at rest")
        loads = loads_on_bodies(model, self.forces, self.q, self.t) if self.forces else None
        loads = None if loads is None else loads.astype(self.q.dtype)
        return model.joint_reactions(self.q, self.qd, self.qdd, loads)

    def __getstate__(self) -> dict[str, Any]:
        """What another process can have: forces and accelerations themselves, not the addresses that compute them."""
        known = {} if self._motors is None else {"tau": self.tau, "qdd": self.qdd}
        return {**self.__dict__, **known, "_motors": None}

    @cached_property
    def _driven(self) -> np.ndarray:
        """Forces and accelerations, computed from what drove the motion, once for all chains of it."""
        if self._motors is None:
            raise StateError("what drove this trajectory is not known; expected one that simulate returned")
        return self._motors()

    def of_chain(self, i: SupportsIndex | tuple[SupportsIndex, ...]) -> Trajectory:
        """The motion of one chain, by its index in the batch."""
        events = tuple(EventRecord(e.count[i], e.t[i], e.q[i], e.qd[i]) for e in self.events)
        status, steps, rejections, evaluations = (
            x[i] for x in (self.status, self.steps, self.rejections, self.evaluations)
        )
        motors = None if self._motors is None else lambda: self._driven[i]
        forces = tuple(force.of_chain(i, self.status.shape) for force in self.forces)
        q, qd, model = self.q[i], self.qd[i], self.model.of_chain(i)
        return Trajectory(self.t, q, qd, status, steps, rejections, evaluations, events, model, forces, motors)

    def plot(self, what: str = "states") -> Figure:
        """A matplotlib Figure of the motion (extra `plots`).

        Parameters
        ----------
        what : str
            "states", every position and velocity over time; "energy", kinetic, potential and total, and how the total
            changes; "phase", velocities against positions; "steps", how many steps the chains took, how long they were,
            and how many were rejected. More than 20 chains are drawn as their median and bands of quantiles (in
            "phase", 20 of them).

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> motion = rb.Model.serial_chain(2).simulate(np.zeros((50, 2)), np.zeros((50, 2)), 0.5, save_at=11)
        >>> figure = motion.plot("energy")  # .savefig("energy.png"), or seen in a notebook
        >>> len(figure.axes)
        4
        """
        from .plots import draw_motion

        return draw_motion(self, what)

    def view(
        self,
        chain: int | tuple[int, ...] = 0,
        *,
        show: Sequence[str] = ("bodies", "ghosts", "trails"),
        port: int = 8080,
        host: str = "127.0.0.1",
    ) -> Viewer:
        """Play the motion in the browser (extra `view`): a page at the viewer's `url`.

        Sliders pose the chain by hand, the mouse turns the picture.

        Parameters
        ----------
        chain : int or tuple
            The chain to show in full; up to 30 others of the batch are ghosts.
        show : sequence of str
            What is seen at first, of "bodies", "ghosts", "trails" (of the outermost points), "frames", "centers" (of
            mass), "ellipsoids" (of inertia) and "reactions" (forces in the joints): each has a box to tick.
        port : int
            The first to try.
        host : str
            "0.0.0.0" to be seen from other machines.

        Returns
        -------
        Viewer
            Its page lives until `close()`; in a script, `wait()` for Ctrl-C.
        """
        from .view.viewer import Viewer

        return Viewer(self.model, self, None, chain, show, host, port)

    def film(
        self,
        path: str | Path,
        chain: int | tuple[int, ...] = 0,
        *,
        show: Sequence[str] = ("bodies", "ghosts", "trails"),
        fps: float = 30,
        speed: float = 1.0,
        size: tuple[int, int] = (800, 600),
    ) -> list[Path]:
        """Write the motion as a film (extra `view`).

        Parameters
        ----------
        path : str or Path
            By its ending: `.html`, a page that plays by itself, without server or network; `.gif` or `.mp4`; or `.png`,
            a picture of each frame, "swing.png" as swing_0000.png and so on.
        chain, show
            As for `view`.
        fps, speed : float
            Pictures per second of the film, and seconds of the motion in one of them.
        size : (int, int)
            Width and height in pixels, but of a page.

        Returns
        -------
        list of Path
            What was written.
        """
        from .view.film import film

        return film(self, path, chain, show, fps, speed, size)

    def to_xarray(self) -> xarray.Dataset:
        """The motion as an xarray.Dataset, with names of the coordinates and their units (extra `study`)."""
        from .tables import dataset_of

        return dataset_of(self)

    def to_dataframe(self) -> pandas.DataFrame:
        """The motion as a pandas.DataFrame: a row for each chain and time, a column for each coordinate and its rate.

        Rates have the names of their coordinates after "d " (extra `study`).
        """
        from .tables import frame_of

        return frame_of(self)

    def to_parquet(self, path: str | Path) -> None:
        """Write `to_dataframe` to a Parquet file (extra `study`)."""
        self.to_dataframe().to_parquet(path)

    def __repr__(self) -> str:
        return f"Trajectory({self.status.size} chains, {self.t.size} times to {self.t[-1]:g} s; {self.message})"

    @property
    def success(self) -> bool:
        """Whether every chain reached the end of its motion, or an event that was to end it."""
        return bool(np.isin(self.status, (rollout.DONE, rollout.STOPPED)).all())

    @property
    def message(self) -> str:
        """How the chains ended, in a sentence for each way that occurred."""
        codes, counts = np.unique(self.status, return_counts=True)
        return "\n".join(
            f"{count} of {self.status.size}: {STATUS_SENTENCES[int(code)]}"
            for code, count in zip(codes, counts, strict=True)
        )


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
    rtol: float = 1e-8,
    atol: float = 1e-10,
    save_at: npt.ArrayLike | None = None,
    max_steps: int = 100_000,
) -> Trajectory:
    """Motion of a model from a state, computed entirely in compiled code.

    What acts is the joints' passive forces (`JointForces`), constant joint forces, drives, wrenches, and gravity.

    Parameters
    ----------
    model : Model
    q0, qd0 : (..., nq), (..., nv) arrays, rad or m, and per second
        Initial state of each chain; all float32 makes the calculation float32. The quaternions of free and spherical
        joints are integrated as four numbers, and given back unit length after each step.
    duration : float, s
    method : "rk45", "rk4" or "implicit"
        "rk45", Dormand and Prince's fifth-order method, in which every chain has its own steps; "rk4", the classical
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
        Of "rk45": the error of a step is kept to atol + rtol abs(y) in the root mean square over the state.
    save_at : int or (times,) array, s, optional
        Times to save: that many, evenly spaced from 0 to the end; or these, rising from 0 or later up to `duration`.
        If not given, the beginning and the end.
    max_steps : int
        Of "rk45": most steps, accepted and rejected, of one chain.

    Returns
    -------
    Trajectory

    Raises
    ------
    StateError
        If a shape or a setting does not fit. A chain that fails says so in the trajectory's `status`.
    ModelError
        If the model has `bodies_without_inertia` whose motion is not prescribed. Where only some samples of a model
        have them, those samples get a status.

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
    duration = _number("duration", duration, above=0.0)
    times, asked = _times(duration, save_at)
    driver, settings = _driver(method, step, rtol, atol, max_steps, times)
    single = all(np.asarray(x).dtype == np.float32 for x in (q0, qd0))
    tau = np.broadcast_to(np.asarray(tau, np.float32 if single else None), np.shape(tau) or (model.nv,))
    states, dtype, batch = model._checked(("q0", "qd0", "tau"), (q0, qd0, tau))
    chains = math.prod(batch)
    actions = gather(model, batch, duration, dtype, drives, forces, events, method == "implicit")
    _check_tau(model, actions, states[2])
    _check_inertia(model, actions, method)
    integrals = 0 if actions is None else actions.integrals
    q, qd, more = (np.empty((chains, times.size, m), dtype) for m in (model.nq, model.nv, integrals))
    tally = np.zeros((chains, 4), np.int64)
    if dtype == np.float32 and method == "rk45" and atol < SMALLEST_ATOL_FLOAT32:
        raise StateError(f"atol is {atol!r}; expected at least {SMALLEST_ATOL_FLOAT32} in float32")
    rows = model.nq + model.nv + integrals
    start: tuple[Any, ...] = (*(x.reshape(chains, x.shape[-1]) if batch else x for x in states), rows)
    saved = (q.reshape(-1), qd.reshape(-1), more.reshape(-1))
    if chains:
        width = LANE_WIDTHS[dtype.name] if batch else 1
        arguments = (*model._arrays_in(dtype), *settings, start, actions, times, saved, tally)
        sizes = model._topology, start[-1], settings[0].c.size, actions
        threads.run(driver, [], partial(trajectory_memory, *sizes, width, dtype), arguments, chains, width)
    _put_where_prescribed(model, drives, times, (q, qd), batch)
    asked_states = [x[:, asked] for x in (q, qd, more)]
    motors = partial(_motors, model, actions, start[2], times[asked], asked_states, batch)
    q, qd, _ = (x.reshape(*batch, times[asked].size, x.shape[-1]) for x in asked_states)
    status, steps, rejections, evaluations = (tally[:, column].reshape(batch) for column in range(4))
    records = _event_records(model, actions, events, batch)
    return Trajectory(
        times[asked], q, qd, status, steps, rejections, evaluations, records, model, tuple(forces), motors
    )


def _check_tau(model: Model, actions: Actions | None, tau: np.ndarray) -> None:
    """Refuse constant forces at joints that have a drive."""
    if actions is None:
        return
    both = (actions.drives[drive_codes.KIND] != drive_codes.NONE) & (tau != 0.0).any(tuple(range(tau.ndim - 1)))
    if both.any():
        names = [model.joint_names[body] for body in np.unique(model._dofs.body[both])]
        raise StateError(f"joints {names} have both a drive and a tau other than zero; expected one of them")


def _check_inertia(model: Model, actions: Actions | None, method: str) -> None:
    """Refuse bodies without inertia, unless their motion is prescribed or an implicit step has damping there."""
    if not model.bodies_without_inertia or actions is None:
        model.require_inertia("simulate")
        return
    kinds = actions.drives[drive_codes.KIND]
    yields = (model._topology[PASSIVE] & (SPRING | DAMPER | SLIDING) != 0) | (kinds == drive_codes.PID)
    model.require_inertia("simulate", np.isin(kinds, drive_codes.FORCED_KINDS), yields & (method == "implicit"))


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
        rows = (int(model._topology[COORDINATE, i]), i)
        for derivative in range(order, 2):
            found = states[derivative][:, :, rows[derivative]]
            exact = np.broadcast_to(signal(times, derivative - order), (*batch, times.size)).reshape(found.shape)
            found[:] = np.where(np.isnan(found), found, exact)


def _motors(
    model: Model,
    actions: Actions | None,
    tau: np.ndarray,
    times: np.ndarray,
    states: Sequence[np.ndarray],
    batch: tuple[int, ...],
) -> np.ndarray:
    """What the motors give, and the accelerations, at saved states: (..., times, 2 nv)."""
    q, qd, integrals = states
    dtype, width, (chains, m, n) = q.dtype, LANE_WIDTHS[q.dtype.name], qd.shape
    if actions is None:
        tau = np.broadcast_to(tau.reshape(chains, 1, n), qd.shape)
        qdd = model.forward_dynamics(*(x.reshape(*batch, m, x.shape[-1]) for x in (q, qd, tau)))
        return np.concatenate([tau.reshape(*batch, m, n), qdd], -1)
    found = np.empty((chains * m, 2 * n), dtype)
    states = tuple(np.ascontiguousarray(x.reshape(chains * m, x.shape[-1])) for x in states)
    tau = np.ascontiguousarray(tau.reshape(chains, n))
    size = q.shape[-1] + n + integrals.shape[-1]
    arguments = (*model._arrays_in(dtype), states, tau, actions, times, found)
    memory = partial(trajectory_memory, model._topology, size, 1, actions, width, dtype)
    threads.run(motor_forces, [], memory, arguments, chains * m, width)
    found[np.isnan(states[0]).any(-1)] = np.nan
    return found.reshape(*batch, m, 2 * n)


def _event_records(
    model: Model, actions: Actions | None, events: Sequence[Event], batch: tuple[int, ...]
) -> tuple[EventRecord, ...]:
    """When each event happened."""
    if actions is None:
        return ()
    counts, times, states = actions.records
    return tuple(
        EventRecord(
            counts[:, e].reshape(batch),
            times[:, e, :most].reshape(*batch, most),
            states[:, e, :most, : model.nq].reshape(*batch, most, model.nq),
            states[:, e, :most, model.nq : model.nq + model.nv].reshape(*batch, most, model.nv),
        )
        for e, most in enumerate(event.most for event in events)
    )


def _times(duration: float, save_at: npt.ArrayLike | None) -> tuple[np.ndarray, slice]:
    """All times the driver saves, from 0 to the end, and which of them were asked for."""
    if save_at is None:
        return np.array([0.0, duration]), slice(None)
    if np.ndim(save_at) == 0:
        try:
            return np.linspace(0.0, duration, _whole("save_at", save_at, least=2)), slice(None)
        except StateError:
            wanted = "a number of times, at least 2, or the times themselves"
            raise StateError(f"save_at is {save_at!r}; expected {wanted}") from None
    times = np.array(save_at, dtype=np.float64)
    if times.ndim != 1 or times.size == 0 or not (times[0] >= 0.0 and times[-1] <= duration):
        raise StateError(f"save_at {times.tolist()} is no list of times from 0 to {duration} s")
    if not (np.diff(times) > 0.0).all():
        raise StateError("save_at does not rise from each time to the next")
    first, count = int(times[0] > 0.0), times.size
    times = np.concatenate([[0.0] * first, times, [duration] * int(times[-1] < duration)])
    return times, slice(first, first + count)


def _driver(
    method: str, step: float | None, rtol: float, atol: float, max_steps: int, times: np.ndarray
) -> tuple[Callable[..., None], tuple[Any, ...]]:
    """The driver of a method, and the arguments that set it up."""
    if method in FIXED:
        step = _number("step", step, above=0.0)
        if np.diff(times).max() / step > MOST_STEPS:
            raise StateError(f"step is {step!r}; expected no more than {MOST_STEPS:.0e} steps between two saved times")
        return fixed_steps, (FIXED[method], step)
    if method != "rk45":
        raise StateError(f'method is {method!r}; expected "rk45", "rk4" or "implicit"')
    if step is not None:
        raise StateError(f'step is {step!r}; expected None for method "rk45", which chooses its own')
    rtol, atol = _number("rtol", rtol, least=0.0), _number("atol", atol, above=0.0)
    if rtol >= 1.0 or atol < SMALLEST_ATOL:
        # where a number passes zero, no error is small enough for a relative tolerance alone
        raise StateError(f"rtol is {rtol!r} and atol {atol!r}; expected rtol below 1, and atol from {SMALLEST_ATOL} on")
    return adaptive_steps, (tableaus.DORMAND_PRINCE, (rtol, atol, _whole("max_steps", max_steps, least=1)))


def _number(name: str, value: Any, least: float = -np.inf, above: float = -np.inf) -> float:
    """A finite number within bounds, or a StateError that names it."""
    if type(value) is float or (np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiu"):
        number = float(value)
        if math.isfinite(number) and number >= least and number > above:
            return number
    bound = f" of at least {least:g}" if least > -np.inf else f" above {above:g}"
    raise StateError(f"{name} is {value!r}; expected a finite number{bound}")


def _whole(name: str, value: Any, least: float) -> int:
    """A whole number, or a StateError that names it."""
    number = _number(name, value, least=least)
    if number != int(number):
        raise StateError(f"{name} is {value!r}; expected a whole number of at least {least}")
    return int(number)
