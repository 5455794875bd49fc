"""The arrays of a stepper, as compiled code receives them."""

from typing import NamedTuple

import numpy as np

from ..compiling.jit import address_of
from .trajectories import integrate_batch


class Motion(NamedTuple):
    """The arguments of `integrate_batch` before `first`.

    `start.order` (samples,) is memory for the samples that move together.
    """

    memory: object
    topology: np.ndarray
    parameters: np.ndarray
    variation: object
    tables: object
    settings: object
    start: object
    actions: object
    times: np.ndarray
    saved: object
    outcome: object


class InputTerms(NamedTuple):
    """The coefficients of signals with inputs: constants, plus factors times inputs.

    `constants` (samples, m) are the coefficients without inputs, and `places` (samples, m) their places in the tables
    of signals. `columns` (m,) are their columns in the numbers of the samples, or -1 for coefficients in the tables.
    Coefficient c has the terms from `ends[c]` to `ends[c + 1]`; `ends` is (m + 1,). `inputs` (terms,) are the inputs,
    `factors` (samples, terms) their factors, and `ranges` (terms, 2) the smallest and the largest values that act.
    """

    constants: np.ndarray
    places: np.ndarray
    columns: np.ndarray
    ends: np.ndarray
    inputs: np.ndarray
    factors: np.ndarray
    ranges: np.ndarray


class Beginning(NamedTuple):
    """The start of an episode: states and inputs (samples, m).

    The noise of sensors depends on the numbers of the samples, `numbers` (samples,) in episode 0. They are in these
    `columns` of `SharedActions.numbers`. `can_reset` is false if compiled code cannot begin an episode, because random
    signals differ between episodes.
    """

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    inputs: np.ndarray
    numbers: np.ndarray
    columns: np.ndarray
    can_reset: bool


class Timing(NamedTuple):
    """The time at the start of an episode, the length of a step (NaN if steps adapt), and the last time, s.

    `is_autonomous` is True if nothing depends on the time, so samples at different times move together.
    """

    origin: float
    step: float
    latest: float
    is_autonomous: bool


class StepperArrays(NamedTuple):
    """The samples of a stepper, for compiled code. They share memory with the stepper in Python.

    * `q` (samples, nq), rad or m, and `qd` (samples, nv), rad/s or m/s: read them. Write to them only after `reset`.
    * `t` (samples,), s, `status`, `steps` and `episodes` (samples,): read them.
    * `tau` (samples, nv), N m or N, and `inputs` (samples, inputs) in the order of `Stepper.inputs`: write to them.

    The kernels use the other fields. `memory` (samples, m) contains everything else on which the motion depends.
    `entry` is the address of the compiled `integrate_batch`, and `motion` its arguments. `terms` is an InputTerms, or
    None without inputs. `held` (nv,) is 1 for dofs whose motion a drive prescribes. `pending` (samples,) is working
    memory. `is_current` (1,) is 0 if the stepper has other arrays now.
    """

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    inputs: np.ndarray
    t: np.ndarray
    status: np.ndarray
    steps: np.ndarray
    episodes: np.ndarray
    memory: np.ndarray
    entry: int
    motion: Motion
    terms: InputTerms | None
    beginning: Beginning
    timing: Timing
    held: np.ndarray
    pending: np.ndarray
    is_current: np.ndarray


class Snapshot(NamedTuple):
    """A copy of the state of all samples. Its arrays have the same names as the arrays of StepperArrays."""

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    inputs: np.ndarray
    t: np.ndarray
    status: np.ndarray
    steps: np.ndarray
    episodes: np.ndarray
    memory: np.ndarray


def snapshot_of(samples):
    """Return a copy of the current state of all samples, which `save` overwrites. Python calls this function.

    Parameters
    ----------
    samples : StepperArrays

    Returns
    -------
    Snapshot
    """
    return Snapshot(*(getattr(samples, name).copy() for name in Snapshot._fields))


def entry_of(motion):
    """Return the address of `integrate_batch`, compiled for these arguments; 0 in plain Python."""
    return address_of(integrate_batch, (*motion, 0, 1))
