"""Samples of a stepper that can be restored, whose episodes a study may draw, and which can be repeated."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.random_actions import MOST_EPISODES, numbers_of_episodes
from ..common.real_arrays import excerpt, whole_number
from ..core.tree.sampler_layout import MOST_SAMPLES
from ..errors import ArgumentError
from .episodes import Episodes, NewEpisodes, draws_of, episodes_of, new_episodes
from .request import Request
from .sample_states import SampleStates, Snapshot
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..study import Study


class Replays(SampleStates):
    """The states of samples that can be restored, whose episodes a study may draw, and which can be repeated."""

    def __init__(self, request: Request, shape: tuple[int, ...], seed: int) -> None:
        super().__init__(request.model, shape, [x.reshape(-1, x.shape[-1]) for x in request.states])
        self._original, self._seed = request, seed

    @abstractmethod
    def _prepare(self) -> None:
        """Convert the model and the actions of the current episodes to numbers."""

    def _change_model(self, model: Model, before: Snapshot) -> None:
        """Use another model or other episodes. If that is not possible, the stepper remains as it was before."""
        self._model = model
        try:
            self._prepare()
        except BaseException:
            self._model = before.model
            self._copy_arrays(before)
            raise

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a saved state. The same calls then have identical results.

        Parameters
        ----------
        snapshot : Snapshot
            A snapshot from `save` of this stepper.

        Raises
        ------
        ArgumentError
            If it belongs to another stepper.
        """
        if not isinstance(snapshot, Snapshot):
            raise ArgumentError(f"snapshot is {excerpt(snapshot)}; expected a Snapshot from Stepper.save")
        if snapshot.stepper != self._identity:
            raise ArgumentError("snapshot was saved by another stepper; expected one that this stepper has saved")
        is_same = snapshot.model is self._model and snapshot.draws is self._draws
        is_new = not is_same or (snapshot.episodes != self._episodes).any()
        before = self.save() if is_new else None
        self._is_in_step = False
        self._copy_arrays(snapshot)
        if before is not None:
            self._change_model(snapshot.model, before)

    def replay(
        self,
        sample: int,
        episode: int,
        inputs: Mapping[str, npt.ArrayLike] | None = None,
        *,
        count: int | None = None,
        hold: float = 1,
        study: Study | None = None,
    ) -> Trajectory:
        """Simulate one episode of one sample. The results are identical to the results in the batch.

        The state of the stepper does not change. A stepper with the same arguments can also repeat the episodes of its
        samples, and a stepper of one sample the episodes of all samples.

        Parameters
        ----------
        sample : int
            Index of the sample, from 0. If the batch has several axes, the index in the flattened batch.
        episode : int
            Number of the episode, an entry of `episodes`. Episode 0 is the one before the first reset. The others are
            known if `reset` has drawn them from a study.
        inputs : dict of arrays, optional
            The values that your program set: {"tau": (count, nv) array} in N m or N, and a (count,) array for each name
            in `inputs` of the stepper. Row i applies in call i. All other values remain as at the start of the episode.
        count : int, optional
            Number of calls of `step` or `advance`. By default, the number of rows of the inputs.
        hold : int, or float in s
            Argument of each call: the steps of `step`, or with the adaptive methods the duration of `advance`.
        study : Study, optional
            The study that has drawn the episode. By default the last one with which a sample was reset.

        Returns
        -------
        Trajectory
            The trajectory of this one sample. Its times are the start and the end of each call, up to the call in which
            the sample ends. It does not contain drive forces, accelerations, or records of events and contacts.

        Raises
        ------
        ArgumentError
            If the episode was not drawn from a study, or the inputs do not fit.

        Examples
        --------
        Ten pendulums fall in episodes of a study. A controller in Python drives them:

        >>> import numpy as np, rbchain as rb
        >>> model = rb.Model.serial_chain(1)
        >>> study = rb.Study(model, samples=1, simulate=rb.Simulation(1.0), vary={"link1.q": rb.Uniform(-1.0, 1.0)})
        >>> stepper = model.stepper(np.zeros((10, 1)), step=1e-3)
        >>> stepper.reset(study=study)
        >>> forces = []
        >>> for _ in range(5):
        ...     stepper.tau[:] = -2.0 * stepper.q
        ...     forces.append(stepper.tau[7].copy())
        ...     stepper.step(2)
        >>> motion = stepper.replay(7, 1, {"tau": forces}, hold=2)
        >>> motion.t.tolist(), bool(motion.end_q[0] == stepper.q[7, 0])
        ([0.0, 0.002, 0.004, 0.006, 0.008, 0.01], True)
        """
        from .repetition import Repetition  # a stepper itself

        sample = whole_number("sample", sample, ArgumentError, least=0, most=MOST_SAMPLES - 1)
        episode = whole_number("episode", episode, ArgumentError, least=0, most=MOST_EPISODES - 1)
        size = self._status.size
        if sample >= size and (size != 1 or episode == 0):
            raise ArgumentError(
                f"sample is {sample}, but the stepper has {size} samples; expected a number below {size}. A stepper of "
                "one sample repeats the episodes of all samples that a study has drawn"
            )
        given = None if episode == 0 else self._study_of(sample, episode, study)
        alone = Repetition(self._original, self._shape, self._seed, min(sample, size - 1))
        arrays, calls = alone.checked_inputs(inputs, count)
        if given is not None:
            alone.start(sample, episode, given)
        return alone.motion(arrays, calls, hold)

    def _checked_study(self, study: Study) -> Episodes:
        """Return the episodes of a study. Raises ArgumentError if it does not fit the stepper."""
        return episodes_of(study, self._model, self._original, self._shape, self._seed)

    def _draw(self, study: Episodes, rows: np.ndarray) -> NewEpisodes:
        """Draw the next episodes of some samples."""
        draws = draws_of(study, self._draws, rows, self._episodes)
        numbers = numbers_of_episodes(self._numbers[rows], draws.episodes[rows])
        states = (self._q, self._qd, self._tau)
        return new_episodes(study, numbers, self._model, self._shape, rows, states, draws)

    def _study_of(self, sample: int, episode: int, study: Study | None) -> Episodes:
        """Return the episodes of the study that has drawn an episode."""
        if study is not None:
            return self._checked_study(study)
        draws = self._draws
        if sample < self._status.size and episode > self._episodes[sample]:
            raise ArgumentError(
                f"episode is {episode}, but sample {sample} is in episode {self._episodes[sample]}; expected this "
                "episode or an earlier one"
            )
        is_current = sample < self._status.size and self._episodes[sample] == episode
        if draws is None or (is_current and draws.episodes[sample] != episode):
            raise ArgumentError(
                f"episode {episode} of sample {sample} was not drawn from a study, so its parameters and its state are "
                "not known; expected an episode of reset(..., study=study). Use save() and restore() to repeat others"
            )
        return draws.study
