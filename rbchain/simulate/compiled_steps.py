"""Samples of a stepper that compiled code can move too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.inputs import InputPlace
from ..acting.random_actions import random_signals_of
from ..acting.sampled import sensors_of
from ..core.tree import sampler_layout as sampler
from ..drivers.stepper_arrays import Beginning, InputTerms, Motion, StepperArrays, Timing, entry_of
from ..errors import ArgumentError
from .loops import held_dofs
from .replays import Replays

if TYPE_CHECKING:
    from ..drivers.trajectory_memory import TrajectoryMemory
    from .preparation import Prepared


class CompiledSteps(Replays):
    """Samples that compiled code can move too.

    `_is_current` (1,) is shared with compiled code; it is 0 as soon as the stepper has other arrays. `_is_shared` is
    True if compiled code may have moved the samples.
    """

    _prepared: Prepared
    _arguments: tuple[Any, ...]
    _new_memory: Callable[[int], TrajectoryMemory]
    _initial: list[np.ndarray]
    _step_length: float
    _first_time: float
    _latest_end: float
    _is_autonomous: bool

    def in_compiled_code(self) -> StepperArrays:
        """Return the arrays of the samples, with which functions of `rbchain.compiled` step them in compiled code.

        The results are identical to the results of `step` and `advance`. Compiled code continues where Python has
        stopped, and vice versa. Call this method again if `reset` or `restore` has changed parameters, draws or random
        numbers. Each reset of a stepper with `Sampled` controllers or random signals changes random numbers.

        Returns
        -------
        StepperArrays

        Raises
        ------
        ArgumentError
            If a controller is a function in plain Python.

        Notes
        -----
        Compiled code computes all samples in the thread that calls it. Two threads must not step the same stepper at
        the same time.

        Examples
        --------
        Ten pendulums with a controller in compiled code:

        >>> import numpy as np, rbchain as rb
        >>> from rbchain import compiled
        >>> @compiled.driver
        ... def control(samples, calls):
        ...     for _ in range(calls):
        ...         for s in range(samples.q.shape[0]):
        ...             samples.tau[s, 0] = -5.0 * samples.q[s, 0] - 0.5 * samples.qd[s, 0]
        ...         compiled.step(samples, 5)
        >>> stepper = rb.Model.serial_chain(1).stepper(np.zeros((10, 1)), step=1e-3)
        >>> control(stepper.in_compiled_code(), 20)
        >>> stepper.t[:2].round(9).tolist()
        [0.1, 0.1]
        """
        prepared, samples = self._prepared, self._status.size
        if prepared.calls.batch_functions:
            names = sorted({function.what for function in prepared.calls.batch_functions.values()})
            raise ArgumentError(
                f"{', '.join(names)} is a function in plain Python, which compiled code cannot call; expected a "
                "function that is compiled. Give it the argument out"
            )
        self._is_shared = True
        start = prepared.start._replace(order=np.arange(samples))
        memory, arguments = self._new_memory(1), list(self._arguments)
        arguments[5] = start
        motion = Motion(memory, *arguments)
        return StepperArrays(
            q=self._q,
            qd=self._qd,
            tau=self._tau,
            inputs=self._inputs,
            t=self._t,
            status=self._status,
            steps=self._steps,
            episodes=self._episodes,
            memory=self._memory,
            entry=entry_of(motion),
            motion=motion,
            terms=terms_of(prepared.calls.inputs, self._input_names, samples),
            beginning=self._beginning(),
            timing=Timing(self._first_time, self._step_length, self._latest_end, self._is_autonomous),
            held=held_dofs(prepared.actions, self._model.nv).astype(np.int64),
            pending=np.zeros(samples, np.int64),
            is_current=self._is_current,
        )

    def _beginning(self) -> Beginning:
        """Return the start of an episode, and where the numbers are that differ between episodes."""
        original, draws, actions = self._original, self._draws, self._prepared.actions
        has_own_numbers = any(sensor.sample_ids is not None for sensor in sensors_of(original.drives))
        is_random = random_signals_of(original.drives) + random_signals_of(original.forces)
        columns = np.empty(0, np.int64)
        if actions is not None and actions.shared.samplers is not None:
            columns = actions.shared.samplers.sensors[sampler.SENSOR_NUMBERS] + sampler.SENSOR_SAMPLE
        q, qd, tau = self._initial
        return Beginning(
            q=q,
            qd=qd,
            tau=tau,
            inputs=self._initial_inputs,
            numbers=self._numbers,
            columns=columns.astype(np.int64),
            can_reset=not (has_own_numbers or is_random or (draws is not None and draws.study.varies_actions)),
        )

    def _are_in_step(self) -> bool:
        """Whether all samples can continue from the same instant, after the same number of steps."""
        if not self._t.size or self._status.any():  # DONE is 0
            return False
        return bool((self._t == self._t[0]).all() and (self._steps == self._steps[0]).all())


def terms_of(places: Sequence[InputPlace], names: Sequence[str], samples: int) -> InputTerms | None:
    """Return the coefficients with inputs in the order of their places, or None without inputs."""
    if not places:
        return None
    counts = [place.constants.shape[1] for place in places]
    terms = [place.terms for place, count in zip(places, counts, strict=True) for _ in range(count)]
    at = [np.broadcast_to(place.at, place.constants.shape) for place in places]
    flat = [term for of_one in terms for term in of_one]
    return InputTerms(
        constants=np.concatenate([place.constants for place in places], 1),
        places=np.concatenate(at, 1),
        columns=np.repeat([-1 if place.in_table else int(place.at[0]) for place in places], counts),
        ends=np.cumsum([0, *map(len, terms)]),
        inputs=np.array([names.index(term.name) for term in flat], np.int64),
        factors=np.array([np.broadcast_to(term.factor, samples) for term in flat]).T.copy(),
        ranges=np.array([(term.lower, term.upper) for term in flat]),
    )
