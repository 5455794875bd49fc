"""Dense output: states at any time of a trajectory, from the continuous extensions of its accepted steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.sample.records import StepRecord
from ..core.tree.layout import POSING_FREE, POSING_SPHERICAL, TOPOLOGY_COORDINATE, TOPOLOGY_POSING
from ..model.arguments import numbers_of_samples
from .settings import ExplainsMemory

if TYPE_CHECKING:
    from ..drivers.trajectories import Actions
    from ..facade.model import Model
    from .methods import Method
    from .trajectory import Trajectory

#: A state at an end of a step is evaluated this fraction of the step inside it, so that forces which jump are
#: one-sided.
INSIDE = 1e-9


def nodes_of_step(method: Method) -> np.ndarray:
    """Return the nodes of Lobatto's quadrature on [0, 1], as many as the extensions of the method require."""
    return lobatto(method.degree)


@functools.cache
def lobatto(degree: int) -> np.ndarray:
    """Return the ends of [0, 1] and the extrema of the Legendre polynomial of this degree between them; read-only.

    Examples
    --------
    >>> lobatto(2).tolist()
    [0.0, 0.5, 1.0]
    """
    between = np.polynomial.legendre.Legendre.basis(degree, [0.0, 1.0]).deriv().roots().real
    symmetric = 0.5 * (np.sort(between) + 1.0 - np.sort(between)[::-1])
    nodes = np.r_[0.0, symmetric, 1.0]
    nodes.flags.writeable = False
    return nodes


def lagrange(nodes: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the values (..., nodes) of the Lagrange polynomials of the nodes at the fractions `at` (...).

    Examples
    --------
    >>> lagrange(np.array([0.0, 1.0]), np.array([0.25])).tolist()
    [[0.75, 0.25]]
    """
    others = ~np.eye(nodes.size, dtype=bool)
    factors = [(at[..., None] - nodes[own]) / (nodes[i] - nodes[own]) for i, own in enumerate(others)]
    return np.stack([factor.prod(-1) for factor in factors], -1)


def new_record(
    most: int, method: Method, actions: Actions | None, samples: int, rows: int, dtype: np.dtype
) -> StepRecord:
    """Allocate the record of up to `most` steps of each sample, and of its initial state; nothing if it is 0."""
    nodes, steps = nodes_of_step(method), most + 1 if most else 0
    has_samplers = actions is not None and actions.shared.samplers is not None
    channels = actions.shared.samplers.channels.shape[1] if has_samplers else 0  # type: ignore[union-attr]
    with ExplainsMemory(
        f"dense_output is {most} and there are {samples} samples", "keep fewer steps, or simulate fewer samples"
    ):
        return StepRecord(
            nodes,
            np.empty((samples, steps, 2)),
            np.empty((samples, steps, nodes.size, rows), dtype),
            np.empty((samples, steps, nodes.size, channels), dtype),
        )


@dataclass(frozen=True, eq=False)
class DenseOutput:
    """The accepted steps of all samples of a batch, which is flat here.

    Step 0 is the initial state, with a length of zero. A sample that ends early keeps its last state: its later steps
    have a length of zero. A step of "moreau" in which velocities jump counts as two steps here, before and after the
    jump.

    Attributes
    ----------
    nodes : (nodes,) array
        Fractions of a step, from 0 to 1.
    times : (samples, steps, 2) array, s
        Start and end of each step.
    counts : (samples,) array of int
        Accepted steps of each sample; a step of "moreau" in which velocities jump counts twice. This is more than the
        number of steps here if `simulate` did not keep all.
    duration : float, s
    states, outputs : (samples, steps, nodes, ...) arrays
        States, and outputs of sampled controllers, at the nodes of each step.
    model : Model
    complete : callable
        Returns the Trajectory for times (samples, m), states and outputs (samples, m, ...).
    """

    nodes: np.ndarray
    times: np.ndarray
    counts: np.ndarray
    duration: float
    states: np.ndarray
    outputs: np.ndarray
    model: Model
    complete: Callable[[np.ndarray, np.ndarray, np.ndarray], Trajectory]

    @property
    def most(self) -> int:
        """The maximum number of steps of a sample."""
        return int(self.counts.max(initial=0))

    @property
    def is_complete(self) -> bool:
        """Whether all accepted steps are here."""
        return bool((self.counts < self.times.shape[1]).all())

    def _times(self, of_steps: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Return the times at fractions of steps, whose starts and ends are `of_steps` (..., 2)."""
        starts, lengths = of_steps[..., 0], of_steps[..., 1] - of_steps[..., 0]
        margins = _margins(of_steps, self.states.dtype)
        return starts + np.clip(at * lengths, margins, lengths - margins)

    def at_nodes(self, first: int, last: int) -> Trajectory:
        """Return the states at the nodes of the steps from `first` to before `last`, as states at (..., m) times."""
        of = slice(first, last)
        t = self._times(self.times[:, of, None], self.nodes)
        count = t.shape[1] * t.shape[2]
        flat = [x.reshape(len(x), count, *x.shape[3:]) for x in (t, self.states[:, of], self.outputs[:, of])]
        return self.complete(*flat)

    def at(self, steps: np.ndarray, fractions: np.ndarray) -> Trajectory:
        """Return the states at these fractions of these steps (samples, m), as states at (..., m) times."""
        weights, rows = lagrange(self.nodes, fractions), np.arange(len(steps))[:, None]
        states, outputs = (
            sum(weights[..., i, None] * x[rows, steps, i] for i in range(self.nodes.size)).astype(x.dtype, copy=False)
            for x in (self.states, self.outputs)
        )
        normalize(self.model, states)
        return self.complete(self._times(self.times[rows, steps], fractions), states, outputs)

    def of_samples(self, index: Any, batch_shape: tuple[int, ...]) -> DenseOutput | None:
        """Return the steps of the samples that an index chooses in the batch.

        Their states are completed together with all other samples. None without samples, or if one occurs twice.
        """
        own = numbers_of_samples(index, batch_shape).reshape(-1)
        if own.size == 0 or np.unique(own).size < own.size:
            return None
        place = np.zeros(len(self.counts), int)
        place[own] = np.arange(own.size)

        def complete(*arrays: np.ndarray) -> Trajectory:
            return self.complete(*(x[place] for x in arrays))[index]

        arrays = {name: getattr(self, name)[own] for name in ("times", "counts", "states", "outputs")}
        return replace(self, **arrays, complete=complete)


def normalize(model: Model, states: np.ndarray) -> None:
    """Normalize the quaternions in states (..., rows), in place."""
    posing, coordinate = (model.kernel_model.topology[row] for row in (TOPOLOGY_POSING, TOPOLOGY_COORDINATE))
    for code, offset in ((POSING_FREE, 3), (POSING_SPHERICAL, 0)):
        for first in coordinate[posing == code] + offset:
            quaternion = states[..., first : first + 4]
            quaternion /= np.linalg.norm(quaternion, axis=-1, keepdims=True)


def kept_steps(
    record: StepRecord,
    counts: np.ndarray,
    duration: float,
    t0: float,
    start: tuple[np.ndarray, np.ndarray],
    model: Model,
    complete: Callable[..., Trajectory],
) -> DenseOutput:
    """Return the steps that a driver has recorded, for samples with these counts of steps.

    `start` has the states (samples, rows) and outputs of sampled controllers (samples, channels) at the start, `t0`.
    """
    steps = min(int(counts.max(initial=0)) + 1, record.times.shape[1])
    times, states, outputs = record.times[:, :steps], record.states[:, :steps], record.outputs[:, :steps]
    times[:, 0], states[:, 0], outputs[:, 0] = t0, start[0][:, None], start[1][:, None]
    last = np.minimum(counts, steps - 1)
    is_unused = np.arange(steps) > last[:, None]
    samples, at_end = np.nonzero(is_unused)[0], np.arange(len(counts))
    of_last = times[at_end, last]
    # just before the end, where the forces of the last step act
    times[is_unused] = (of_last[:, 1] - _margins(of_last, states.dtype))[samples, None]
    states[is_unused] = states[at_end, last, -1][samples, None]
    outputs[is_unused] = outputs[at_end, last, -1][samples, None]
    return DenseOutput(record.nodes, times, counts, duration, states, outputs, model, complete)


def _margins(times: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return how far inside steps (..., 2) their ends are evaluated, s: more than the round-off of the time."""
    lengths, round_off = times[..., 1] - times[..., 0], 4.0 * float(np.finfo(dtype).eps) * times[..., 1]
    return np.minimum(np.maximum(INSIDE * lengths, round_off), 0.25 * lengths)
