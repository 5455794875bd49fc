"""Parts of a trajectory: the results of some of its samples, and the results at some of its saved times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.contacts import ImpactRecord, StickingRecord
from ..model.arguments import numbers_of_samples
from . import messages

if TYPE_CHECKING:
    from .trajectory import Trajectory

#: Attributes with an entry for each sample.
OF_SAMPLES = (
    *("q", "qd", "status", "steps", "rejections", "evaluations", "end_time", "end_q", "end_qd", "is_stiff"),
    *("dof_beyond_limits", "oscillating_dof", "contact_forces", "contact_residual"),
)


def results_of_samples(motion: Trajectory, samples: Any) -> dict[str, Any]:
    """Return the public fields of a Trajectory that contain results of samples, for the samples of an index."""
    shape, model = motion.batch_shape, motion.model
    forces = tuple(force.of_sample(samples, shape) for force in motion.forces)
    of: dict[Any, Any] = dict(zip(motion.forces, forces, strict=True))
    return {
        **{name: getattr(motion, name)[samples] for name in OF_SAMPLES},
        "t": motion.t if motion.t.ndim == 1 else motion.t[samples],
        "events": tuple(record.of_samples(samples) for record in motion.events),
        "model": model[samples] if model.batch_shape else model,
        "forces": forces,
        "exceptions": _exceptions_of(motion, samples),
        "impacts": tuple(
            ImpactRecord(of[e.force], e.count[samples], e.t[samples], e.impulse[samples]) for e in motion.impacts
        ),
        "sticking": tuple(
            StickingRecord(of[e.force], e.count[samples], e.start[samples], e.end[samples]) for e in motion.sticking
        ),
        "derivatives": {name: x[samples] for name, x in motion.derivatives.items()},
        "dense_output": None if motion.dense_output is None else motion.dense_output.of_samples(samples, shape),
    }


def _exceptions_of(motion: Trajectory, samples: Any) -> dict[tuple[int, ...], str]:
    """Return the exceptions of the samples that an index chooses, by their places in the result."""
    if not motion.exceptions:
        return {}
    shape = motion.batch_shape
    numbers = np.ndenumerate(numbers_of_samples(samples, shape))
    found = {place: messages.sample_index(int(number), shape) for place, number in numbers}
    return {place: motion.exceptions[index] for place, index in found.items() if index in motion.exceptions}


def results_at_times(motion: Trajectory, chosen: np.ndarray) -> dict[str, Any]:
    """Return the public fields of a Trajectory that contain results at times, for the saved times `chosen` (m,)."""
    return {
        "t": motion.t[chosen],
        "q": motion.q[..., chosen, :],
        "qd": motion.qd[..., chosen, :],
        "contact_forces": motion.contact_forces[..., chosen, :, :],
        "derivatives": {name: np.take(x, chosen, motion.status.ndim) for name, x in motion.derivatives.items()},
    }
