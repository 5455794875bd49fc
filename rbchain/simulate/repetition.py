"""Repetition: one sample of a stepper, which repeats an episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..acting.random_actions import numbers_of_episodes
from ..common.real_arrays import excerpt, finite_number, real_array, whole_number
from ..core.sample import tally_layout as tallies
from ..errors import ArgumentError, Status
from .episodes import Episodes, draws_of
from .request import Request
from .settings import MAX_FIXED_STEPS
from .stepper import Stepper
from .trajectory import Trajectory


class Repetition(Stepper):
    """A new stepper with the arguments of another one, in which only the sample of one row moves."""

    def __init__(self, request: Request, shape: tuple[int, ...], seed: int, row: int) -> None:
        super().__init__(request, shape, seed, "ignore")
        self._row = row
        ends = self._status == int(Status.DONE)
        ends[row] = False
        self._status[ends], self._is_in_step = int(Status.STOPPED), False

    def start(self, sample: int, episode: int, study: Episodes) -> None:
        """Start an episode of a sample that a study draws."""
        numbers = numbers_of_episodes(np.array([sample]), np.array([episode]))
        drawn = study.drawn(numbers)
        if drawn.status[0] != int(Status.DONE):
            raise ArgumentError(
                f"episode {episode} of sample {sample} has the status {Status(drawn.status[0]).name}, because its "
                "draws are invalid; choose an episode with valid draws"
            )
        self._numbers[self._row], self._episodes[self._row] = sample, episode - 1
        draws = draws_of(study, None, np.empty(0, np.int64), self._episodes)
        draws.values[:] = drawn.values  # including the samples that do not move
        self._draws = draws
        rows = np.array([self._row])
        self._begin(rows, self._draw(study, rows))

    def checked_inputs(
        self, inputs: Mapping[str, npt.ArrayLike] | None, count: int | None
    ) -> tuple[dict[str, np.ndarray], int]:
        """Return the inputs as arrays, and the number of calls."""
        if not isinstance(inputs, Mapping | None):
            raise ArgumentError(f'inputs is {excerpt(inputs)}; expected a dict of arrays, such as {{"tau": array}}')
        arrays, known = {}, self._inputs_of_all()
        for name, value in ({} if inputs is None else inputs).items():
            if name not in known:
                raise ArgumentError(f"inputs contains {name!r}; expected names of {[*known]}")
            own = known[name].shape[1:]
            arrays[name] = real_array(f"inputs[{name!r}]", value, ArgumentError)
            if arrays[name].shape[1:] != own or not arrays[name].ndim:
                expected = ", ".join(map(str, ("count", *own)))
                raise ArgumentError(
                    f"inputs[{name!r}] has shape {arrays[name].shape}; expected ({expected}{'' if own else ','}), a "
                    "row for each call of one sample"
                )
        counts = {name: len(array) for name, array in arrays.items()}
        if count is not None:
            counts["count"] = whole_number("count", count, ArgumentError, least=1, most=int(MAX_FIXED_STEPS))
        if len(set(counts.values())) != 1:
            raise ArgumentError(
                f"inputs and count give the number of calls, but found {counts or 'neither'}; expected one number"
            )
        return arrays, next(iter(counts.values()))

    def _inputs_of_all(self) -> dict[str, np.ndarray]:
        """Return the inputs of all samples by name, as arrays (samples, ...) that may be changed."""
        columns = {name: self._inputs[:, j] for j, name in enumerate(self._input_names)}
        if "tau" in columns:
            raise ArgumentError("an Input is called 'tau', as the joint forces are; expected another name")
        return {"tau": self._tau, **columns}

    def motion(self, arrays: Mapping[str, np.ndarray], count: int, hold: float) -> Trajectory:
        """Move the sample with these inputs in each call, and return its trajectory."""
        row, known = self._row, self._inputs_of_all()
        is_adaptive = self._original.method.is_adaptive
        if is_adaptive:
            hold = finite_number("hold", hold, ArgumentError, above=0.0)
        else:
            hold = whole_number("hold", hold, ArgumentError, least=1, most=int(MAX_FIXED_STEPS))
        states: list[Sequence[np.ndarray]] = [[x[row].copy() for x in (self._t, self._q, self._qd)]]
        counts = np.zeros(3, np.int64)
        for i in range(count):
            if self._status[row] != int(Status.DONE):
                break
            for name, array in arrays.items():
                known[name][row] = array[i]
            self.advance(hold) if is_adaptive else self.step(int(hold))
            counts += self._prepared.outcome.tally[row, tallies.STEPS : tallies.EVALUATIONS + 1]
            if self._t[row] > states[-1][0]:
                states.append([x[row].copy() for x in (self._t, self._q, self._qd)])
        t, q, qd = (np.array(x) for x in zip(*states, strict=True))
        index = np.unravel_index(row, self._shape) if self._shape else ()
        return Trajectory(
            t=t,
            q=q,
            qd=qd,
            status=np.array(self._status[row]),
            steps=np.array(counts[0]),
            rejections=np.array(counts[1]),
            evaluations=np.array(counts[2]),
            model=self._model[index] if self._model.batch_shape else self._model,
            end_time=np.array(t[-1]),
            end_q=q[-1],
            end_qd=qd[-1],
            start_time=float(t[0]),
        )
