"""simulate() and the Trajectory it returns."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from .core import rollout, tableaus
from .core.lanes import LANE_WIDTHS
from .drivers import threads
from .drivers.trajectories import adaptive_steps, fixed_steps, trajectory_memory
from .errors import STATUS_SENTENCES, StateError

# Squares of errors over a smaller atol would overflow.
SMALLEST_ATOL, SMALLEST_ATOL_FLOAT32 = 1e-100, 1e-12
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
        How each chain ended: 0 done, 1 step underflow, 2 not finite, 3 too many steps.
    steps, rejections, evaluations : (...) arrays of int
        Accepted steps, rejected ones, and evaluations of the dynamics.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    status: np.ndarray
    steps: np.ndarray
    rejections: np.ndarray
    evaluations: np.ndarray

    def __repr__(self):
        return f"Trajectory({self.status.size} chains, {self.t.size} times to {self.t[-1]:g} s; {self.message})"

    @property
    def success(self):
        """Whether every chain reached the end of its motion."""
        return bool((self.status == rollout.DONE).all())

    @property
    def message(self):
        """How the chains ended, in a sentence for each way that occurred."""
        codes, counts = np.unique(self.status, return_counts=True)
        return "\n".join(
            f"{count} of {self.status.size}: {STATUS_SENTENCES[int(code)]}"
            for code, count in zip(codes, counts, strict=True)
        )


def simulate(
    model,
    q0,
    qd0,
    duration,
    *,
    method="rk45",
    tau=0.0,
    step=None,
    rtol=1e-8,
    atol=1e-10,
    save_at=None,
    max_steps=100_000,
):
    """Motion of a model from a state, under constant joint forces; computed entirely in compiled code.

    Parameters
    ----------
    model : Model
    q0, qd0 : (..., nq), (..., nv) arrays, rad or m, and per second
        Initial state of each chain; all float32 makes the calculation float32. The quaternions of free and spherical
        joints are integrated as four numbers, and given back unit length after each step.
    duration : float, s
    method : "rk45" or "rk4"
        "rk45", Dormand and Prince's fifth-order method, in which every chain has its own steps; or "rk4", the classical
        fourth-order method in steps of `step`.
    tau : float or (..., nv) array, N m or N
        Joint forces, constant over the motion.
    step : float, s
        Of "rk4": between two saved times, equal steps no longer than this.
    rtol, atol : float
        Of "rk45": the error of a step is kept to atol + rtol |y| in the root mean square over the state.
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
    start, dtype, batch = model._checked(("q0", "qd0", "tau"), (q0, qd0, tau))
    chains = int(np.prod(batch))
    q, qd = np.empty((chains, times.size, model.nq), dtype), np.empty((chains, times.size, model.nv), dtype)
    tally = np.zeros((chains, 4), np.int64)
    if dtype == np.float32 and method == "rk45" and atol < SMALLEST_ATOL_FLOAT32:
        raise StateError(f"atol is {atol!r}; expected at least {SMALLEST_ATOL_FLOAT32} in float32")
    start = tuple(x.reshape(chains, x.shape[-1]) if batch else x for x in start)
    saved = (q.reshape(-1), qd.reshape(-1))
    if chains:
        width = LANE_WIDTHS[dtype.name] if batch else 1
        arguments = (*model._arrays_in(dtype), *settings, start, times, saved, tally)
        sizes = model._topology, model.nq + model.nv, settings[0].b.size
        threads.run(driver, [], partial(trajectory_memory, *sizes, width, dtype), arguments, chains, width)
    q, qd = (x[:, asked].reshape(*batch, times[asked].size, x.shape[-1]) for x in (q, qd))
    counts = (tally[:, column].reshape(batch) for column in range(4))
    return Trajectory(times[asked], q, qd, *counts)


def _times(duration, save_at):
    """All times the driver saves, from 0 to the end, and which of them were asked for."""
    if save_at is None:
        return np.array([0.0, duration]), slice(None)
    if np.ndim(save_at) == 0:
        return np.linspace(0.0, duration, _whole("save_at", save_at, least=2)), slice(None)
    times = np.array(save_at, dtype=np.float64)
    if times.ndim != 1 or times.size == 0 or not (times[0] >= 0.0 and times[-1] <= duration):
        raise StateError(f"save_at {times.tolist()} is no list of times from 0 to {duration} s")
    if not (np.diff(times) > 0.0).all():
        raise StateError("save_at does not rise from each time to the next")
    first, count = int(times[0] > 0.0), times.size
    times = np.concatenate([[0.0] * first, times, [duration] * int(times[-1] < duration)])
    return times, slice(first, first + count)


def _driver(method, step, rtol, atol, max_steps, times):
    """The driver of a method, and the arguments that set it up."""
    if method == "rk4":
        step = _number("step", step, above=0.0)
        if np.diff(times).max() / step > MOST_STEPS:
            raise StateError(f"step is {step!r}; expected no more than {MOST_STEPS:.0e} steps between two saved times")
        return fixed_steps, (tableaus.RK4, step)
    if method != "rk45":
        raise StateError(f'method is {method!r}; expected "rk45" or "rk4"')
    if step is not None:
        raise StateError(f'step is {step!r}; expected None for method "rk45", which chooses its own')
    rtol, atol = _number("rtol", rtol, least=0.0), _number("atol", atol, above=0.0)
    if rtol >= 1.0 or atol < SMALLEST_ATOL:
        # where a number passes zero, no error is small enough for a relative tolerance alone
        raise StateError(f"rtol is {rtol!r} and atol {atol!r}; expected rtol below 1, and atol from {SMALLEST_ATOL} on")
    return adaptive_steps, (tableaus.DORMAND_PRINCE, (rtol, atol, _whole("max_steps", max_steps, least=1)))


def _number(name, value, least=-np.inf, above=-np.inf):
    """A finite number within bounds, or a StateError that names it."""
    if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiu":
        number = float(value)
        if np.isfinite(number) and number >= least and number > above:
            return number
    bound = f" of at least {least:g}" if least > -np.inf else f" above {above:g}"
    raise StateError(f"{name} is {value!r}; expected a finite number{bound}")


def _whole(name, value, least):
    """A whole number, or a StateError that names it."""
    number = _number(name, value, least=least)
    if number != int(number):
        raise StateError(f"{name} is {value!r}; expected a whole number of at least {least}")
    return int(number)
