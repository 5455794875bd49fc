"""Episodes of the samples of a stepper whose parameters and states a study draws.

A study is in a layer above. It implements `Episodes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.real_arrays import excerpt
from ..common.values import is_same
from ..errors import ArgumentError, Status
from ..model.description import VARIABLE_FIELDS
from .request import Request
from .resets import with_samples

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..model.description import Description

#: Fields of a description that do not change the motion. Controllers use the nominal model.
OTHER_FIELDS = ("name", "drives", "visuals", "collisions", "nominal")


@dataclass(frozen=True)
class DrawnSamples:
    """The parameters and initial states that a study draws for some episodes.

    Attributes
    ----------
    values : (m, columns) array
        The random inputs.
    status : (m,) array of int
        DONE if a sample is valid, else the reason, as the integer of a `Status`.
    model : Model
        With the parameters of the valid samples.
    states : (q, qd, tau) arrays (valid samples, n)
    """

    values: np.ndarray
    status: np.ndarray
    model: Model
    states: tuple[np.ndarray, np.ndarray, np.ndarray]


class Episodes(ABC):
    """Draws of a study for episodes, by their numbers (`numbers_of_episodes`).

    Attributes
    ----------
    seed : int
    model : Model
        The model without batch axes that the study varies.
    drives, forces : sequences
        The actions that the study varies.
    columns : int
        Number of random inputs.
    varies_actions : bool
        Whether the study varies drives, sensors, forces or contacts.
    """

    seed: int
    model: Model
    drives: Sequence[Any]
    forces: Sequence[Any]
    columns: int
    varies_actions: bool

    @abstractmethod
    def drawn(self, numbers: np.ndarray) -> DrawnSamples:
        """Return the draws of episodes (m,), at least one, with their models and states."""

    @abstractmethod
    def actions(self, values: np.ndarray, numbers: np.ndarray, end: float) -> tuple[list[Any], list[Any]]:
        """Return drives and forces with these draws (m, columns), up to a time `end` in s."""


@dataclass(frozen=True)
class Draws:
    """The draws of all samples.

    Attributes
    ----------
    study : Episodes
    values : (samples, columns) array
    episodes : (samples,) array of int
        The episode of each draw: the current one, or an earlier one whose parameters remain; -1 without a draw.
    """

    study: Episodes
    values: np.ndarray
    episodes: np.ndarray


@dataclass(frozen=True)
class NewEpisodes:
    """The start of new episodes of some samples: their states and statuses (m, ...), the model and draws of all."""

    model: Model
    states: list[np.ndarray]
    status: np.ndarray
    draws: Draws | None


def episodes_of(study: Any, model: Model, request: Request, shape: tuple[int, ...], seed: int) -> Episodes:
    """Return the episodes of a study. Raises ArgumentError if it does not fit a stepper.

    Parameters
    ----------
    model : Model
        The current model of the stepper.
    request : Request
        The arguments with which the stepper was made.
    shape : tuple
        Shape of the batch as the caller knows it.
    seed : int
        Seed of the stepper.
    """
    episodes = getattr(study, "episodes", None)
    if not isinstance(episodes, Episodes):
        raise ArgumentError(f"study is {excerpt(study)}; expected a Study")
    different = _difference(model.description, episodes.model.description)
    if different:
        raise ArgumentError(
            f"study has another model than the stepper: {different} differs; expected the same mechanism. Make the "
            "stepper from the model of the study, or from one that its `vary` returns"
        )
    if episodes.seed != seed:
        raise ArgumentError(
            f"study has the seed {episodes.seed}, but the stepper has the seed {seed}; expected one seed for draws and "
            f"noise. Make the stepper with seed={episodes.seed}"
        )
    if episodes.varies_actions:
        for name in ("drives", "forces"):
            if not is_same([*getattr(request, name)], [*getattr(episodes, name)]):
                raise ArgumentError(
                    f"study varies drives or forces, but has other {name} than the stepper; expected the same. "
                    f"Pass the {name} of the study to model.stepper"
                )
        if len(shape) > 1:
            raise ArgumentError(
                f"study varies drives or forces, but the batch of the stepper has the shape {shape}; expected a batch "
                "with one axis"
            )
    return episodes


def _difference(one: Description, other: Description) -> str:
    """Name what differs between the mechanisms of two models, or between the models that controllers know."""
    names = [name for name in vars(one) if name not in (*OTHER_FIELDS, *VARIABLE_FIELDS)]
    found = next((name for name in names if not is_same(getattr(one, name), getattr(other, name))), "")
    known, other_known = one.nominal or one, other.nominal or other
    if found or known is other_known:
        return found
    same = (is_same(getattr(known, name), getattr(other_known, name)) for name in VARIABLE_FIELDS)
    return next((f"nominal {name}" for name, equal in zip(VARIABLE_FIELDS, same, strict=True) if not equal), "")


def new_episodes(
    study: Episodes,
    numbers: np.ndarray,
    model: Model,
    batch: tuple[int, ...],
    rows: np.ndarray,
    states: Sequence[np.ndarray],
    draws: Draws,
) -> NewEpisodes:
    """Draw new episodes of some samples.

    Parameters
    ----------
    numbers : (m,) array of int
        Numbers of the episodes (`numbers_of_episodes`).
    model, batch : Model, tuple
        The current model of all samples, and the shape of the batch.
    rows : (m,) array of int
        The samples.
    states : (q, qd, tau) arrays (samples, n)
        Current states of all samples, which invalid samples keep, as they keep their parameters.
    draws : Draws
        The draws of this study so far, with the numbers of the new episodes.

    Raises
    ------
    ArgumentError
        If the study varies drives or forces, but has not drawn all samples, or no sample is valid.
    """
    drawn = study.drawn(numbers)
    is_valid = drawn.status == int(Status.DONE)
    valid = rows[is_valid]
    chosen = [x[rows] for x in states]
    for x, new in zip(chosen, drawn.states, strict=True):
        x[is_valid] = new
    if valid.size:
        model = with_samples(model, batch, valid, drawn.model)
    values = draws.values.copy()
    values[valid] = drawn.values[is_valid]
    is_missing = np.isnan(values).any(1)
    if study.varies_actions and is_missing.any():
        sample = int(np.argmax(is_missing))
        if sample not in rows:
            raise ArgumentError(
                f"study varies drives or forces, but has not drawn sample {sample} yet; expected a first reset of all "
                "samples with it, stepper.reset(study=study)"
            )
        if not valid.size:
            raise ArgumentError(
                f"study has drawn no valid sample: sample {sample} has the status {Status(drawn.status[0]).name}; "
                "expected valid samples. Choose narrower distributions"
            )
        values[is_missing] = drawn.values[is_valid][0]  # of samples that do not move
    return NewEpisodes(model, chosen, drawn.status, replace(draws, values=values))


def draws_of(study: Episodes, before: Draws | None, rows: np.ndarray, episodes: np.ndarray) -> Draws:
    """Return the draws of a study so far, in which some samples have the next of their `episodes` (samples,)."""
    if before is None or before.study is not study:
        before = Draws(study, np.full((episodes.size, study.columns), np.nan), np.full(episodes.size, -1))
    new = before.episodes.copy()
    new[rows] = episodes[rows] + 1
    return replace(before, episodes=new)
