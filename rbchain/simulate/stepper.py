"""Stepper: a batch of samples that advances in calls from Python, which may change joint forces and reset samples."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from ..acting.random_actions import actions_of_samples, numbers_of_episodes, random_signals_of
from ..common.failures import OnFailure
from ..common.real_arrays import finite_number, whole_number
from ..compiling.jit import compiled_for
from ..core.motion.sample_memory import TIME_OF_RATE
from ..drivers.stepping import time_of_steps
from ..drivers.trajectories import integrate_batch
from ..errors import ArgumentError, SimulationError, SimulationWarning, Status
from ..model.arguments import with_batch
from ..model.varied_fields import VariedFields
from .batch_functions import run_driver
from .compiled_steps import CompiledSteps
from .episodes import NewEpisodes
from .loops import held_dofs
from .messages import message_of_stepper
from .preparation import Prepared, depends_on_time, prepare, refuse_forces_of_drives, width_of
from .request import Request
from .resets import closed_rows, groups_of_equal, refuse_arguments, rows_of, states_of_rows, with_parameters
from .results import exceptions_of
from .rounded_times import checked_until
from .sample_states import NONE
from .settings import MAX_FIXED_STEPS, ROUND_OFF_OF_STEPS

if TYPE_CHECKING:
    from ..drivers.trajectory_memory import TrajectoryMemory
    from ..study import Study

DONE = int(Status.DONE)  # reading the member of an enumeration takes longer than a comparison
#: Samples: all of them, or their numbers.
Rows = slice | np.ndarray
ALL = slice(None)


class Stepper(CompiledSteps):
    """A batch of samples that advances step by step. `Model.stepper` returns it.

    Attributes
    ----------
    q, qd : (..., nq), (..., nv) arrays, rad or m, and rad/s or m/s
        Current positions and velocities of the samples. These arrays change with each step; copy what you keep. They
        are read-only: use `reset` to set a state.
    t : (...) array, s
        Time of each sample since the start of its episode, plus `t0`.
    tau : (..., nv) array, N m or N
        Joint forces, which are added to the forces of the drives. Write to this array; the values stay in effect until
        you change them.
    inputs : mapping of (...) arrays
        Values of each `Input` by its name. Write to these arrays; the values stay in effect until you change them
        or reset the sample.
    status : (...) array of int
        Status of each sample, as the integer of a `Status`: `rb.Status.DONE` if it can continue. A sample that fails,
        or that an event stops, keeps its status and its last valid state until it is reset.
    episodes : (...) array of int
        Number of resets of each sample. Random signals and the noise of sensors differ between episodes.
    model : Model
        The model with the current parameters of each sample.
    """

    def __init__(self, request: Request, shape: tuple[int, ...], seed: int, on_failure: OnFailure) -> None:
        super().__init__(request, shape, seed)
        self._on_failure = on_failure
        self._step_length, self._width = getattr(request.settings, "step", math.nan), width_of(request)
        self._spare: list[TrajectoryMemory] = []  # memory of calls that have ended
        self._driver: Callable[..., None] | None = None  # of the types of the arguments, which the first call finds
        self._first_time, end = float(request.times[0]), request.end
        self._latest_end = end + 4.0 * float(np.spacing(end)) if end < math.inf else math.inf
        self._checked_until = 0.0 if request.dtype == np.float32 and end == math.inf else math.inf
        self._t[:] = self._first_time
        self._times = np.empty(2)  # start and end of a call
        self._prepare(is_first=True)
        self._end_too_stiff(self._request, np.arange(self._status.size))
        self._is_in_step = self._are_in_step()
        if not shape and self._status[0] == Status.NOT_ASSEMBLED:
            raise ArgumentError(
                "q0 and qd0 do not satisfy the constraints; expected a closed configuration. Use model.assemble and "
                "model.assemble_velocities"
            )
        self._report(np.flatnonzero(self._status != DONE))

    # --- motion ---------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        """Take `count` steps of the length `step` with all samples that can continue.

        Parameters
        ----------
        count : int

        Raises
        ------
        ArgumentError
            If the method chooses the length of its steps: use `advance`.
        SimulationError
            If a sample fails and `on_failure` is "raise", or the only sample fails, unless `on_failure` is "ignore".

        Warns
        -----
        SimulationWarning
            If samples fail and `on_failure` is "warn", or times in float32 become too inexact for a signal.

        Examples
        --------
        >>> import rbchain as rb
        >>> stepper = rb.Model.serial_chain(2).stepper([[0.1, 0.2]], step=1e-3)
        >>> stepper.step(10)
        >>> stepper.t.tolist()
        [0.01]
        """
        if self._request.method.is_adaptive:
            raise ArgumentError(
                f'method "{self._request.method.name}" chooses the length of its steps, so they cannot be counted; '
                "use stepper.advance(duration)"
            )
        try:
            count = whole_number("count", count, ArgumentError, least=1, most=int(MAX_FIXED_STEPS))
        except ArgumentError as error:
            hint = "Write joint forces to stepper.tau, and use stepper.advance(duration) for a time"
            raise ArgumentError(f"{error}. {hint}") from None
        self._take(count=count)

    def advance(self, duration: float) -> None:
        """Advance all samples that can continue by a duration.

        Parameters
        ----------
        duration : float, s
            With the fixed-step methods, a multiple of `step`.

        Raises
        ------
        ArgumentError
            If the duration is not a multiple of `step`.
        SimulationError
            As for `step`.

        Warns
        -----
        SimulationWarning
            As for `step`.

        Examples
        --------
        >>> import rbchain as rb
        >>> stepper = rb.Model.serial_chain(2).stepper([[0.1, 0.2]], method="rk45")
        >>> stepper.advance(0.1)
        >>> stepper.t.tolist(), stepper.q.shape
        ([0.1], (1, 2))
        """
        duration = finite_number("duration", duration, ArgumentError, above=0.0)
        if self._request.method.is_adaptive:
            self._take(duration=duration)
            return
        step = self._step_length
        count = round(duration / step)
        if not 1 <= count <= MAX_FIXED_STEPS or abs(duration / step - count) > max(ROUND_OFF_OF_STEPS, 1e-15 * count):
            raise ArgumentError(
                f"duration is {duration!r} s; expected a multiple of step, which is {step!r} s, because the steps of "
                f'method "{self._request.method.name}" have this length'
            )
        self._take(count=count)

    def _take(self, count: int = 0, duration: float = 0.0) -> None:
        """Take steps, or integrate for a duration, with all samples that can continue, and report those that failed."""
        if self._is_shared:
            self._is_in_step = self._are_in_step()
        refused = self._use_inputs(self._prepared)
        ended = self._move(count, duration)
        if self._checked_until < math.inf:
            self._checked_until = checked_until(self._prepared.actions, self._t, self._checked_until)
        if refused.size or ended.size:
            self._report(np.union1d(refused, ended))

    def _move(self, count: int, duration: float) -> np.ndarray:
        """Integrate the samples that can continue, and return those that have ended."""
        if self._holds_dofs:
            refuse_forces_of_drives(self._model, self._prepared.actions, self._tau)
        if self._is_in_step:
            return self._move_together(count, duration)
        active = np.flatnonzero(self._status == DONE)
        starts, steps = self._t[active], self._steps[active] + count
        if not starts.size:
            return NONE
        ends = time_of_steps(self._first_time, steps, self._step_length) if count else starts + duration
        self._refuse_late_end(ends.max())
        is_at_same_time = (starts == starts[0]).all()
        end_times = self._prepared.outcome.end_times
        # only samples at the same time are integrated together
        for group in [ALL] if self._is_autonomous or is_at_same_time else groups_of_equal(starts):
            samples, start = active[group], starts[group][0]
            self._integrate(samples, start, ends[group][0])
            end_times[samples] -= start
        self._keep_results(active)
        has_ended = self._status[active] != DONE
        ended, done = active[has_ended], active[~has_ended]
        self._steps[done], self._t[done] = steps[~has_ended], ends[~has_ended]
        self._t[ended] += end_times[ended]
        self._is_in_step = done.size == self._t.size and bool(is_at_same_time and (steps == steps[0]).all())
        return ended

    def _move_together(self, count: int, duration: float) -> np.ndarray:
        """Do as `_move`, in less time, if all samples can continue and are at the same time."""
        start, steps = float(self._t[0]), int(self._steps[0]) + count
        end = time_of_steps(self._first_time, steps, self._step_length) if count else start + duration
        self._refuse_late_end(end)
        self._integrate(ALL, start, end)
        self._keep_results(ALL)
        if np.count_nonzero(self._status) == 0:  # DONE is 0; `any` takes longer
            self._steps[:], self._t[:] = steps, end
            return NONE
        self._is_in_step = False
        has_ended = self._status != DONE
        self._steps[~has_ended], self._t[~has_ended] = steps, end
        self._t[has_ended] += self._prepared.outcome.end_times[has_ended] - start
        return np.flatnonzero(has_ended)

    def _refuse_late_end(self, end: float) -> None:
        if end > self._latest_end:
            raise ArgumentError(
                f"the step ends at {end:.6g} s, after the duration of the stepper, {self._request.end:g} s; "
                "expected an earlier time. Reset the samples, or give model.stepper a longer duration"
            )

    def _integrate(self, samples: Rows, start: float, end: float) -> None:
        """Integrate samples from a start to an end."""
        self._prepared.outcome.interrupt[0] = 0  # Ctrl-C may have ended the last call
        if isinstance(samples, slice):
            arguments, size = self._arguments, self._status.size
        else:
            before, after = self._arguments[:5], self._arguments[6:]
            arguments, size = (*before, self._prepared.start._replace(order=samples), *after), samples.size
        self._times[:] = start, end
        effort = (end - start) / self._step_length * size * self._qd.shape[1]  # NaN, which is not few, if steps adapt
        if self._driver is None:
            self._driver = compiled_for(integrate_batch, (self._new_memory(1), *arguments, 0, size))
        functions = self._prepared.calls.batch_functions
        run_driver(self._driver, self._new_memory, arguments, size, self._width, effort, functions, self._spare)

    def _keep_results(self, samples: Rows) -> None:
        """Keep the results of samples when all of them are integrated: a call that is interrupted changes nothing."""
        for kept, new in self._results:
            kept[samples] = new[samples]

    def _report(self, ended: np.ndarray) -> None:
        """Raise an error or warn if some of the samples that have ended in this call have failed."""
        failed = [int(k) for k in ended if not Status(self._status[k]).success]
        if not failed or self._on_failure == "ignore":
            return
        exceptions = exceptions_of(self._model, self._prepared.actions, self._prepared.calls, self._request.batch)
        text = message_of_stepper(self._status[failed[0]], self._t[failed[0]], failed, self._shape, exceptions)
        if self._on_failure == "raise" or not self._shape:
            raise SimulationError(text)
        warnings.warn(text, SimulationWarning, stacklevel=4)

    # --- reset ----------------------------------------------------------------------------------------------------

    def reset(
        self,
        samples: Any = ...,
        paths: Mapping[str, npt.ArrayLike] | None = None,
        /,
        *,
        q: npt.ArrayLike | None = None,
        qd: npt.ArrayLike | None = None,
        tau: npt.ArrayLike | None = None,
        study: Study | None = None,
        **fields: Unpack[VariedFields],
    ) -> None:
        """Start a new episode of samples: their time is `t0` again, and controllers and random signals restart.

        Parameters
        ----------
        samples : index, optional
            An index of the batch as in NumPy: an integer, a list of integers, a slice or an array of bool. By default
            all samples.
        paths, **fields
            New parameters of these samples, as for `Model.vary`, such as `{"link2.mass": m}` or `mass=...`. They remain
            until they are changed again. By default the parameters do not change.
        q, qd, tau : (nq,), (nv,) arrays, or (samples, ...), optional
            New states and joint forces of these samples. By default, the initial values of the stepper.
        study : Study, optional
            Draws all parameters, states and joint forces of these samples from the distributions of the study, with no
            other arguments. Its seed must be the seed of the stepper. A sample with invalid draws keeps its
            parameters and gets the status INVALID_PARAMETERS, or NOT_ASSEMBLED, until it is reset again.

        Raises
        ------
        ArgumentError
            If a shape is wrong, a norm of a quaternion is not 1, a state is not closed, or the study does not fit.
        ModelError
            If a parameter does not exist or is impossible.
        SimulationError
            As for `step`, if `step` is too long for springs or bushings between bodies.
        StudyError
            If the design of the study does not draw from its distributions.

        Notes
        -----
        Draws, random signals and the noise of sensors depend only on the seed, the index of the sample and the number
        of its episode, not on the batch or the order of the resets. `replay` repeats an episode of a study.

        Examples
        --------
        >>> import rbchain as rb
        >>> stepper = rb.Model.serial_chain(2).vary(mass=[[1.0, 1.0], [1.0, 2.0]]).stepper([0.1, 0.2], step=1e-3)
        >>> stepper.step(10)
        >>> stepper.reset([1], q=[0.3, 0.0], mass=[1.0, 3.0])
        >>> stepper.t.tolist(), stepper.q[1].tolist(), stepper.model.mass.tolist()
        ([0.01, 0.0], [0.3, 0.0], [[1.0, 1.0], [1.0, 3.0]])
        """
        refuse_arguments(fields, {"paths": paths, "q": q, "qd": qd, "tau": tau}, study)
        rows = rows_of(samples, self._shape)
        if study is not None:
            self._begin(rows, self._draw(self._checked_study(study), rows))
            return
        given = zip(("q", "qd", "tau"), (q, qd, tau), self._initial, strict=True)
        states = [states_of_rows(name, x, original[rows]) for name, x, original in given]
        model = with_parameters(self._model, self._shape, rows, paths, fields)
        self._begin(rows, NewEpisodes(model, states, np.full(rows.size, DONE), self._draws))

    def _begin(self, rows: np.ndarray, new: NewEpisodes) -> None:
        """Start new episodes of samples."""
        model, states = new.model, new.states
        model.kernel_model.state_arguments.check_quaternions("q", states[0])
        if model.kernel_model.constraint_tables is not None:
            q_and_qd = self._q.copy(), self._qd.copy()
            held = held_dofs(self._prepared.actions, model.nv)
            states[:2] = closed_rows(with_batch(model, self._request.batch), held, rows, q_and_qd, states[:2])
        varies_actions = new.draws is not None and new.draws.study.varies_actions
        is_prepared = model is self._model and not (varies_actions or self._has_random_numbers)
        before = None if is_prepared else self.save()
        self._is_in_step = False
        self._begin_episodes(rows, states, self._first_time)
        self._status[rows], self._draws = new.status, new.draws
        if before is not None:
            self._change_model(model, before)
        self._report(self._end_too_stiff(self._request, rows))

    # --- preparation ----------------------------------------------------------------------------------------------

    def _prepare(self, is_first: bool = False) -> None:
        """Convert the model and the actions of the current episodes to numbers."""
        original, draws = self._original, self._draws
        ids = numbers_of_episodes(self._numbers, self._episodes)
        if draws is not None and draws.study.varies_actions:
            drives, forces = draws.study.actions(draws.values, ids, original.end)
        else:
            ids = ids.reshape(original.batch)
            drives, forces = actions_of_samples(original.drives, original.forces, original.end, ids, self._seed)
        states = [x.reshape(*original.batch, x.shape[1]) for x in (self._q, self._qd, self._tau)]
        request = replace(
            original, model=with_batch(self._model, original.batch), drives=drives, forces=forces, states=states
        )
        prepared = prepare(request)
        self._request = request
        self._is_current[0] = 0  # the arrays in compiled code are other ones
        self._is_current = np.ones(1, np.int64)
        self._spare.clear()  # the memory of other actions may have another size
        if is_first:
            self._q, self._qd, self._tau = (np.array(x) for x in prepared.start[:3])
            self._initial = [x.copy() for x in prepared.start[:3]]
            self._set_initial_inputs(prepared.calls.inputs)
            self._memory = np.array(prepared.outcome.memory)
            self._memory[:, TIME_OF_RATE] = math.nan
            self._status = np.where(prepared.not_assembled, int(Status.NOT_ASSEMBLED), int(Status.DONE))
        start = prepared.start._replace(q=self._q, qd=self._qd, tau=self._tau, memory=self._memory)
        self._prepared: Prepared = replace(prepared, start=start)
        self._arguments = self._prepared.driver_arguments(replace(request, times=self._times))
        outcome, nq, nv = prepared.outcome, self._q.shape[1], self._qd.shape[1]
        of_q, of_qd = outcome.end_states[:, :nq], outcome.end_states[:, nq : nq + nv]
        self._results = (
            *((self._q, of_q), (self._qd, of_qd)),
            *((self._memory, outcome.memory), (self._status, outcome.tally[:, 0])),
        )
        self._new_memory = partial(self._prepared.new_memory, self._request)
        self._driver = None
        actions = prepared.actions
        has_samplers = actions is not None and actions.shared.samplers is not None
        self._has_random_numbers = has_samplers or bool(
            random_signals_of(original.drives) + random_signals_of(original.forces)
        )
        self._holds_dofs = bool(held_dofs(actions, self._model.nv).any())
        self._is_autonomous = not (original.events or depends_on_time(actions))
