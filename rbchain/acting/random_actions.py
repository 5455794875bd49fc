"""The random signals and the noise of sensors among drives and forces, for the samples of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from ..core.tree.sampler_layout import MOST_SAMPLES
from .random_signals import RandomSignal
from .sampled import with_samples
from .signal_arithmetic import SignalSum
from .signals import Signal

#: Largest number of episodes whose random numbers differ.
MOST_EPISODES = 1 << 27
NAMES_AND_NUMBERS = (float, int, str, bool, type(None))


def actions_of_samples(
    drives: Any, forces: Any, duration: float, samples: np.ndarray, seed: int = 0
) -> tuple[Any, Any]:
    """Return drives and forces with the signals and the noise of sensors of some samples.

    A random signal without a channel uses its position among all random signals of the drives, then of the forces,
    as the channel. Channels that other signals have been given are not counted.

    Parameters
    ----------
    drives, forces : lists
        They are returned as they are if they contain no random signals and no noise.
    duration : float, s
    samples : (...) array of int
        Numbers of the samples of the batch.
    seed : int
        Seed of random signals and sensors without a seed.
    """
    found = random_signals_of(drives) + random_signals_of(forces)
    if not found:
        return with_samples(drives, samples, seed), [*forces] if isinstance(forces, (list, tuple)) else forces
    given = {signal.channel for signal in found}
    channels = (channel for channel in count() if channel not in given)

    def of_samples(signal: RandomSignal) -> Signal:
        return signal.realized(duration, samples, seed, next(channels))

    return with_samples(_replaced(drives, of_samples), samples, seed), _replaced(forces, of_samples)


def numbers_of_episodes(samples: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    """Return the numbers of samples on which the random numbers of their episodes depend.

    They do not depend on the size of the batch, and differ between all episodes of all samples. In episode 0, they are
    the numbers of the samples.
    """
    return samples + MOST_SAMPLES * episodes


def random_signals_of(actions: Sequence[Any]) -> list[RandomSignal]:
    """Return the random signals of drives or forces."""
    found: list[RandomSignal] = []

    def collect(signal: RandomSignal) -> RandomSignal:
        found.append(signal)
        return signal

    _replaced(actions, collect)
    return found


def _replaced(actions: Any, function: Callable[[RandomSignal], Any]) -> Any:
    """Return actions in which the function has replaced each random signal, including in the components of forces."""
    if isinstance(actions, (list, tuple)):
        return [_replaced_in(action, function) for action in actions]
    return actions


def _replaced_in(value: Any, function: Callable[[RandomSignal], Any]) -> Any:
    if type(value) in NAMES_AND_NUMBERS:  # most values; the tests below take much longer
        return value
    if isinstance(value, RandomSignal):
        return function(value)
    if isinstance(value, SignalSum):
        return value.replaced(function)
    if _has_three_components(value):
        parts = tuple(_replaced_in(part, function) for part in value)
        return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
    if not is_dataclass(value) or isinstance(value, (type, Signal)):
        return value
    old = {name: getattr(value, name) for name in _arguments_of(type(value))}
    new = {name: _replaced_in(part, function) for name, part in old.items() if type(part) not in NAMES_AND_NUMBERS}
    changed = {name: part for name, part in new.items() if part is not old[name]}
    return replace(value, **changed) if changed else value


@cache
def _arguments_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass that are arguments of its constructor."""
    return tuple(field.name for field in fields(kind) if field.init)


def _has_three_components(value: Any) -> bool:
    is_sequence = isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.dtype.kind == "O")
    return is_sequence and len(value) == 3
