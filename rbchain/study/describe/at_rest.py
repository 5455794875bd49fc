"""Quantities of samples at rest: the equilibrium near the end of a motion, and small oscillations about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...acting.coordinates import dof_index
from ...acting.drives import PrescribedPosition
from ...acting.numeric_fields import Drive, Force
from ...acting.random_actions import random_signals_of
from ...acting.signals import as_signal
from ...analysis.equilibria import Equilibrium
from ...analysis.modes import Modes
from ...common.lock_free import cached_property
from ...errors import StudyError
from ...model.arguments import with_batch
from ...simulate.trajectory import Trajectory

if TYPE_CHECKING:
    from ...facade.model import Model
    from .measures import Measure


class AtRest:
    """The samples of a motion at rest, under the drives, forces and joint forces of the simulation.

    Several measures share the equilibria and the modes, which are computed when they are first read. Each sample of a
    model with closed loops is computed on its own, because the independent coordinates of a batch depend on all of its
    samples, and so would the round-off of the results.

    Parameters
    ----------
    motion : Trajectory
        A result of `simulate`. The search for an equilibrium starts in the last state of each sample, and signals have
        their values at this time.
    """

    def __init__(self, motion: Trajectory) -> None:
        self._motion = motion

    @cached_property
    def _parts(self) -> list[_Samples]:
        """The samples that are computed together."""
        motion = self._motion
        if motion.continuation is None:
            raise StudyError(
                "the motion does not record its drives and joint forces, which an equilibrium needs; expected a motion "
                "as simulate returned it, not a part of it or one from a file"
            )
        request, model, batch = motion.continuation.request, motion.model, motion.failed.shape
        _, drives, forces = request.given  # with the random signals, which are refused
        refuse_unsteady(drives, forces)
        times = np.where(motion.failed, 0.0, motion.end_time)
        q = np.where(motion.failed[..., None], model.neutral(), motion.end_q)
        tau = np.broadcast_to(request.states[2], (*batch, model.nv))
        if not (model.constraint_names and batch):
            return [_Samples(model, q, {"drives": drives, "forces": forces, "tau": tau, "t": times})]
        model = with_batch(model, batch)
        return [
            _Samples(
                model[i] if model.batch_shape else model,
                q[i],
                {
                    "drives": [drive.of_sample(i, batch) for drive in drives],
                    "forces": [force.of_sample(i, batch) for force in forces],
                    "tau": tau[i],
                    "t": times[i],
                },
            )
            for i in np.ndindex(batch)
        ]

    def values(self, measure: Measure) -> np.ndarray:
        """Return the measure of each sample (...), in SI units; NaN without an equilibrium."""
        if len(self._parts) == 1:
            return self._parts[0].values(measure).reshape(self._motion.failed.shape)
        return np.reshape([part.values(measure) for part in self._parts], self._motion.failed.shape)


@dataclass
class _Samples:
    """Samples at rest near positions q, with the arguments `given` of the functions of the linear analysis."""

    model: Model
    q: np.ndarray
    given: dict[str, Any]

    @cached_property
    def _equilibrium(self) -> Equilibrium:
        return self.model.equilibrium(self.q, **self.given)

    @cached_property
    def _positions(self) -> dict[str, Any]:
        """The arguments of an equilibrium for the functions of the linear analysis; any state where there is none."""
        found = self._equilibrium
        q = np.where(found.success[..., None], found.q, self.model.neutral())
        return {"q": q, "integrals": np.where(found.success[..., None], found.integrals, 0.0)}

    @cached_property
    def _modes(self) -> Modes:
        return self.model.modes(**self._positions, **self.given)

    def values(self, measure: Measure) -> np.ndarray:
        """Return the measure of each sample (...), in SI units; NaN without an equilibrium."""
        model, success = self.model, self._equilibrium.success
        if self.q.ndim == 1 and not success:  # a single position must close the loops
            return np.array(np.nan)
        if measure.quantity == "equilibrium":
            changes = model.difference(model.neutral(), self._equilibrium.q)
            values = changes[..., dof_index(model, f"Measure {measure.name!r}", measure.joint, measure.dof)]
        elif measure.quantity == "gain_margin":
            values = model.margins(**self._positions, **self.given, cut=cut_of(measure)).gain_margin
        else:
            of_modes = getattr(self._modes, measure.quantity)
            is_known = measure.mode < of_modes.shape[-1]  # samples may have different numbers of modes
            values = of_modes[..., measure.mode] if is_known else np.full(success.shape, np.nan)
        return np.where(success, values, np.nan)


def cut_of(measure: Measure) -> Any:
    """Return the joint force of a measure, as an argument of `Model.margins`."""
    return measure.joint if measure.dof is None else (measure.joint, measure.dof)


def refuse_unsteady(drives: Sequence[Drive], forces: Sequence[Force]) -> None:
    """Raise a StudyError for random signals and motions that drives prescribe."""
    if random_signals_of(drives) or random_signals_of(forces):
        raise StudyError(
            "the study has random signals, under which a sample has no equilibrium; expected drives and forces without "
            "them. Replace them by their mean"
        )
    for i, drive in enumerate(drives):
        if isinstance(drive, PrescribedPosition) and not as_signal("signal", drive.signal).is_constant:
            raise StudyError(
                f"drives[{i}] moves joint {drive.joint!r}, so that the sample has no equilibrium; expected a constant "
                "PrescribedPosition. Use a measure with a function that calls Model.modes"
            )
