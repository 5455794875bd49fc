"""VectorEnv: a stepper as a Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Space
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ..common.misspelled import one_of
from ..common.real_arrays import excerpt, whole_number
from ..errors import ArgumentError, Status
from ..simulate.stepper import Stepper

#: Functions of the whole batch.
Observe = Callable[[Stepper], npt.ArrayLike]
Reward = Callable[[Stepper, np.ndarray], npt.ArrayLike]
Act = Callable[[Stepper, np.ndarray], None]
Begin = Callable[[Stepper, np.ndarray, np.random.Generator], None]
Info = Callable[[Stepper], Mapping[str, np.ndarray]]
DONE, STOPPED = int(Status.DONE), int(Status.STOPPED)  # reading a member of an enumeration takes longer
MODES = {mode.value: mode for mode in AutoresetMode}


def _act_with_joint_forces(stepper: Stepper, actions: np.ndarray) -> None:
    stepper.tau[:] = actions


def _begin_again(stepper: Stepper, samples: np.ndarray, rng: np.random.Generator) -> None:
    stepper.reset(samples)


class VectorEnv(gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """A Gymnasium vector environment whose environments are the samples of a stepper.

    The functions are NumPy functions of the whole batch of n samples. Their first argument is the stepper.

    Parameters
    ----------
    stepper : Stepper
        With a batch of one axis.
    observe : function(stepper)
        Returns the observations (n, ...), such as `np.concatenate([stepper.q, stepper.qd], -1)`.
    reward : function(stepper, actions)
        Returns the rewards (n,) of a step, from the state at its end.
    ends : function(stepper)
        Returns whether the episodes have terminated, (n,) of bool.
    act : function(stepper, actions), optional
        Uses the actions (n, ...). By default they are the joint forces, `stepper.tau`.
    begin : function(stepper, samples, rng), optional
        Begins episodes of some samples: calls `stepper.reset(samples, ...)`. `rng` is the random generator of the
        environment. By default, an episode begins with the state and the parameters of the stepper.
    info : function(stepper), optional
        Returns a dict of arrays (n, ...) for the infos.
    steps : int
        Steps of the stepper for each step of the environment. The method must have fixed steps.
    max_episode_steps : int, optional
        Number of steps of the environment after which episodes are truncated.
    action_space : Space, optional
        Space of the actions of one environment. By default joint forces without bounds.
    observation_space : Space, optional
        Space of the observations of one environment. By default, it has no bounds.
    autoreset_mode : AutoresetMode, or "NextStep", "SameStep" or "Disabled"
        When new episodes begin, as in `gymnasium.vector.SyncVectorEnv`.

    Raises
    ------
    ArgumentError
        If the batch of the stepper does not have one axis, or a function returns an array of the wrong shape or numbers
        that are not finite.

    Notes
    -----
    If a sample fails, its episode is truncated, and infos["status"] contains its status, as the integer of a
    `rbchain.Status`. The observation belongs to the last valid state. An event with `stop=True` terminates the
    episode. Pass `on_failure="ignore"` to `model.stepper`, unless you want warnings.

    With `seed`, `reset` restores the stepper to its first state, and seeds `np_random`. The same seed and actions
    therefore give the same episodes, including the noise of sensors.

    Examples
    --------
    Pendulums that a torque swings up:

    >>> import numpy as np, rbchain as rb
    >>> from rbchain.envs import VectorEnv
    >>> pendulums = rb.Model.serial_chain(1).stepper(np.zeros((4, 1)), step=0.01, on_failure="ignore")
    >>> envs = VectorEnv(
    ...     pendulums,
    ...     observe=lambda s: np.concatenate([s.q, s.qd], -1),
    ...     reward=lambda s, actions: -np.cos(s.q[:, 0]),
    ...     ends=lambda s: np.abs(s.qd[:, 0]) > 20.0,
    ...     max_episode_steps=100,
    ... )
    >>> observations, infos = envs.reset(seed=0)
    >>> observations, rewards, terminations, truncations, infos = envs.step(np.ones((4, 1)))
    >>> observations.shape, terminations.any(), truncations.any()
    ((4, 2), np.False_, np.False_)
    """

    def __init__(
        self,
        stepper: Stepper,
        observe: Observe,
        reward: Reward,
        ends: Callable[[Stepper], npt.ArrayLike],
        *,
        act: Act = _act_with_joint_forces,
        begin: Begin = _begin_again,
        info: Info = lambda stepper: {},
        steps: int = 1,
        max_episode_steps: int | None = None,
        action_space: Space[Any] | None = None,
        observation_space: Space[Any] | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        if not isinstance(stepper, Stepper) or stepper.status.ndim != 1:
            found = f"of batch shape {stepper.status.shape}" if isinstance(stepper, Stepper) else excerpt(stepper)
            raise ArgumentError(
                f"stepper is {found}; expected a stepper of a batch (n,), such as model.stepper(np.zeros((n, nq)))"
            )
        if not isinstance(autoreset_mode, AutoresetMode):
            autoreset_mode = MODES[one_of("autoreset_mode", autoreset_mode, [*MODES], ArgumentError)]
        self.stepper, self.num_envs = stepper, stepper.status.size
        self._observe, self._reward, self._ends, self._act, self._begin = observe, reward, ends, act, begin
        self._info, self._mode = info, autoreset_mode
        self._steps = whole_number("steps", steps, ArgumentError, least=1)
        limit = np.iinfo(np.int64).max if max_episode_steps is None else max_episode_steps
        self._limit = whole_number("max_episode_steps", limit, ArgumentError, least=1)
        self.metadata = {"autoreset_mode": autoreset_mode}
        shape = self._checked("observe", observe(stepper)).shape[1:]
        self.single_observation_space = observation_space or Box(-np.inf, np.inf, shape, np.float64)
        self.single_action_space = action_space or Box(-np.inf, np.inf, stepper.tau.shape[1:], np.float64)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._first = stepper.save()
        self._elapsed = np.full(self.num_envs, -1)  # steps of the episodes; -1 before the first reset
        self._has_ended = np.zeros(self.num_envs, bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode in all environments, or where options["reset_mask"] (n,) is True.

        Parameters
        ----------
        seed : int, optional
        options : dict, optional

        Returns
        -------
        observations : (n, ...) array
        infos : dict
        """
        super().reset(seed=seed)
        mask = np.ones(self.num_envs, bool)
        if options is not None and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"])
            if mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
                raise ArgumentError(
                    f"reset_mask has shape {mask.shape}, dtype {mask.dtype} and {np.count_nonzero(mask)} entries other "
                    f"than False; expected {self.num_envs} entries of bool, at least one of them True"
                )
        if seed is not None and mask.all():
            self.stepper.restore(self._first)
        self._begin_episodes(mask)
        self._has_ended &= ~mask
        return self._observations(), self._infos(mask)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take a step in all environments.

        Parameters
        ----------
        actions : (n, ...) array

        Returns
        -------
        observations : (n, ...) array
        rewards : (n,) array
        terminations, truncations : (n,) arrays of bool
        infos : dict
        """
        actions = self._checked_actions(actions)
        self._act(self.stepper, actions)
        self.stepper.step(self._steps)
        self._elapsed += 1
        restarted = self._has_ended  # only in the mode "NextStep"
        if restarted.any():
            self._begin_episodes(restarted)
        rewards = self._checked("reward", self._reward(self.stepper, actions), ())
        rewards[restarted] = 0.0
        is_stopped, has_failed = self.stepper.status == STOPPED, self._have_failed()
        ends = self._checked("ends", self._ends(self.stepper), ()) != 0.0
        terminations = (ends | is_stopped) & ~has_failed & ~restarted
        truncations = ((self._elapsed >= self._limit) | has_failed) & ~restarted
        has_ended = terminations | truncations
        observations, infos = self._observations(), self._infos(np.ones(self.num_envs, bool))
        self._has_ended = has_ended
        if self._mode is AutoresetMode.SAME_STEP and has_ended.any():
            final = {"final_obs": _rows_of(observations, has_ended), "_final_obs": has_ended.copy()}
            final |= {"final_info": self._infos(has_ended), "_final_info": has_ended.copy()}
            self._begin_episodes(has_ended)
            observations[has_ended] = self._observations()[has_ended]
            infos = final | self._infos(np.ones(self.num_envs, bool))
            self._has_ended = np.zeros(self.num_envs, bool)
        return observations, rewards, terminations, truncations, infos

    def _checked_actions(self, actions: Any) -> np.ndarray:
        """Return the actions as an array. Raises an error if they have the wrong shape, or a step is not possible."""
        if (self._elapsed < 0).any():
            raise gymnasium.error.ResetNeeded("step was called before reset; call reset first")
        if self._mode is AutoresetMode.DISABLED and self._has_ended.any():
            raise ArgumentError(
                f"the episodes of environments {np.flatnonzero(self._has_ended).tolist()} have ended; expected running "
                'episodes. Call reset(options={"reset_mask": terminations | truncations})'
            )
        array, shape = np.asarray(actions), self.action_space.shape
        if shape is not None and array.shape != shape:
            raise ArgumentError(f"actions has shape {array.shape}; expected {shape}")
        return array

    def _begin_episodes(self, mask: np.ndarray) -> None:
        """Begin episodes of some environments."""
        self._begin(self.stepper, np.flatnonzero(mask), self.np_random)
        self._elapsed[mask] = 0

    def _observations(self) -> np.ndarray:
        """Return the current observations, which the caller may keep."""
        observations = self._checked("observe", self._observe(self.stepper), self.single_observation_space.shape)
        return observations.astype(self.single_observation_space.dtype)

    def _have_failed(self) -> np.ndarray:
        """Whether each sample has failed."""
        status: np.ndarray = self.stepper.status
        return (status != DONE) & (status != STOPPED)

    def _infos(self, mask: np.ndarray) -> dict[str, Any]:
        """Return the infos of some environments, with their masks: the user's, and the status of failed samples."""
        found: dict[str, Any] = {}
        has_failed = mask & self._have_failed()
        given = {name: (np.asarray(x), mask) for name, x in self._info(self.stepper).items()}
        if has_failed.any():
            given["status"] = self.stepper.status, has_failed
        for name, (values, own) in given.items():
            found[name] = np.zeros_like(values)
            found[name][own] = values[own]
            found[f"_{name}"] = own.copy()
        return found

    def _checked(self, name: str, values: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Return a copy of the numbers that a function returned. Raises ArgumentError if they do not fit."""
        array = np.array(values, np.float64)
        if array.ndim < 1 or len(array) != self.num_envs or (shape is not None and array.shape[1:] != shape):
            expected = "(n, ...)" if shape is None else (self.num_envs, *shape)
            raise ArgumentError(
                f"{name} returned an array of shape {array.shape}; expected {expected} for n = {self.num_envs}"
            )
        is_wrong = ~np.isfinite(array).all(tuple(range(1, array.ndim)))
        if is_wrong.any():
            first = int(np.argmax(is_wrong))
            raise ArgumentError(
                f"{name} returned {excerpt(array[first].tolist())} for sample {first}, whose state is finite; expected "
                "finite numbers"
            )
        return array


def _rows_of(observations: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the observations of some environments as an array of objects, with None for the others."""
    rows = np.full(len(mask), None, object)
    for i in np.flatnonzero(mask):
        rows[i] = observations[i].copy()
    return rows
