"""The states of the samples of a stepper, as the caller sees them and as they are saved."""

from __future__ import annotations

import copy
import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from ..common.misspelled import SuggestsAttributes, no_attribute
from ..core.motion.sample_memory import TIME_OF_RATE
from ..errors import Status
from .inputs import Inputs, initial_inputs, write_inputs, write_numbers
from .stiff_springs import are_too_stiff

if TYPE_CHECKING:
    from ..acting.inputs import InputPlace
    from ..facade.model import Model
    from .episodes import Draws
    from .preparation import Prepared
    from .request import Request

NONE = np.empty(0, np.int64)  # numbers of no samples


@dataclass(frozen=True)
class Snapshot:
    """The complete state of a stepper, which `Stepper.save` returns and `Stepper.restore` accepts.

    Attributes
    ----------
    stepper : str
        Identity of the stepper.
    model : Model
        The model with the parameters of each sample.
    draws : Draws, optional
        The values that a study has drawn.
    episodes, steps : (samples,) arrays of int
        Number of resets of each sample, and of its steps since then.
    t : (samples,) array, s
    q, qd, tau : (samples, n) arrays
    memory : (samples, m) array
        Everything else on which the motion depends: clocks, queues and integrals of controllers.
    status : (samples,) array of int
    inputs : (samples, inputs) array
    """

    stepper: str
    model: Model
    draws: Draws | None
    episodes: np.ndarray
    steps: np.ndarray
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    memory: np.ndarray
    status: np.ndarray
    inputs: np.ndarray


#: The arrays of a Snapshot, which a Stepper has too.
ARRAYS = [field.name for field in fields(Snapshot)][3:]


class SampleStates(SuggestsAttributes):
    """The states of samples: arrays (samples, ...), which the caller sees with the axes of the batch.

    `shape` is the shape of the batch. It is () for a single sample, which moves in lanes as a batch of one. `states`
    are q, qd and tau.
    """

    def __init__(self, model: Model, shape: tuple[int, ...], states: Sequence[np.ndarray]) -> None:
        samples = len(states[0])
        self._model, self._shape, self._identity = model, shape, uuid.uuid4().hex
        self._draws: Draws | None = None  # of a study
        self._numbers = np.arange(samples)  # on which random numbers depend; `replay` changes them
        self._steps, self._episodes = np.zeros(samples, np.int64), np.zeros(samples, np.int64)
        self._t, self._status = np.zeros(samples), np.zeros(samples, np.int64)
        self._q, self._qd, self._tau = states
        self._memory, self._is_in_step, self._is_shared = np.empty((samples, 1)), False, False
        self._is_current = np.ones(1, np.int64)
        self._set_initial_inputs(())

    @property
    def model(self) -> Model:
        """The model with the current parameters of each sample."""
        return self._model

    @property
    def q(self) -> np.ndarray:
        """Positions (..., nq), rad or m."""
        return self._shown(self._q)

    @property
    def qd(self) -> np.ndarray:
        """Velocities (..., nv), rad/s or m/s."""
        return self._shown(self._qd)

    @property
    def t(self) -> np.ndarray:
        """Time of each sample (...), s."""
        return self._shown(self._t)

    @property
    def status(self) -> np.ndarray:
        """Status of each sample (...), as the integer of a `Status`."""
        return self._shown(self._status)

    @property
    def episodes(self) -> np.ndarray:
        """How often each sample was reset (...)."""
        return self._shown(self._episodes)

    @property
    def inputs(self) -> Inputs:
        """Values of each `Input` by its name: (...) arrays, which you may change."""
        return Inputs(self._input_names, self._inputs, self._shape)

    @property
    def tau(self) -> np.ndarray:
        """Joint forces (..., nv), N m or N, which you may change."""
        return self._tau.reshape((*self._shape, self._tau.shape[1]))

    @tau.setter
    def tau(self, tau: npt.ArrayLike) -> None:
        write_numbers("tau", self.tau, tau)

    def save(self) -> Snapshot:
        """Return the complete state of all samples, for `restore`.

        Returns
        -------
        Snapshot

        Examples
        --------
        >>> import rbchain as rb
        >>> stepper = rb.Model.serial_chain(2).stepper([[0.1, 0.2]], step=1e-3)
        >>> snapshot = stepper.save()
        >>> stepper.step(10)
        >>> stepper.restore(snapshot)
        >>> stepper.q.tolist(), stepper.t.tolist()
        ([[0.1, 0.2]], [0.0])
        """
        return Snapshot(
            self._identity, self._model, self._draws, *(getattr(self, f"_{name}").copy() for name in ARRAYS)
        )

    def __copy__(self) -> Self:
        """Return independent states: two steppers must not share arrays."""
        return copy.deepcopy(self)

    def _copy_arrays(self, snapshot: Snapshot) -> None:
        """Copy the arrays of a snapshot, and its draws."""
        self._draws = snapshot.draws
        for name in ARRAYS:
            getattr(self, f"_{name}")[...] = getattr(snapshot, name)

    if not TYPE_CHECKING:  # with __setattr__, a type checker would accept every name

        def __setattr__(self, name: str, value: Any) -> None:
            if not (name.startswith("_") or hasattr(type(self), name)):  # a new attribute would have no effect
                raise no_attribute(f"{type(self).__name__!r} object", name, dir(self))
            if name in ("q", "qd"):
                raise AttributeError(f"cannot set {name} of a {type(self).__name__}; use stepper.reset({name}=...)")
            object.__setattr__(self, name, value)

    def _set_initial_inputs(self, places: Sequence[InputPlace]) -> None:
        """Set the names of the inputs, and their values at the start of an episode."""
        self._input_names, self._inputs = initial_inputs(places, self._status.size)
        self._initial_inputs = self._inputs.copy()

    def _use_inputs(self, prepared: Prepared) -> np.ndarray:
        """Use the inputs of all samples. Samples with inputs that are not finite fail: return those that continued."""
        if not prepared.calls.inputs:
            return NONE
        is_wrong = write_inputs(prepared, self.inputs, self._q.dtype)
        refused = np.flatnonzero(is_wrong & (self._status == Status.DONE))
        self._status[refused] = Status.NOT_FINITE
        self._is_in_step = self._is_in_step and not refused.size
        return refused

    def _end_too_stiff(self, request: Request, rows: np.ndarray) -> np.ndarray:
        """End the samples among `rows` for whose start the steps of the request are too long, and return them."""
        rows = rows[self._status[rows] == Status.DONE]
        found: np.ndarray = rows[are_too_stiff(request, self._q[rows], self._qd[rows], rows)]
        self._status[found] = Status.TOO_STIFF
        return found

    def _begin_episodes(self, rows: np.ndarray, states: Sequence[np.ndarray], time: float) -> None:
        """Begin an episode of some samples with these q, qd and tau, at a time, s."""
        for kept, new in zip((self._q, self._qd, self._tau), states, strict=True):
            kept[rows] = new
        self._episodes[rows] += 1
        self._inputs[rows] = self._initial_inputs[rows]
        self._steps[rows], self._t[rows], self._status[rows] = 0, time, Status.DONE
        self._memory[rows, TIME_OF_RATE] = math.nan

    def _shown(self, x: np.ndarray) -> np.ndarray:
        """Return a view of an array (samples, ...) with the batch axes that the caller knows, which is read-only."""
        shown = x.reshape((*self._shape, *x.shape[1:]))
        shown.flags.writeable = False
        return shown
