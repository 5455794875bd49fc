"""Quantities of samples at rest: the equilibrium near the end of a motion, and small oscillations about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...acting.coordinates import dof_index
from ...acting.drives import PrescribedPosition
from ...acting.numeric_fields import Drive, Force
from ...acting.random_actions import random_signals_of
from ...acting.sampled import controller_of
from ...acting.signals import as_signal
from ...analysis.equilibria import Equilibrium
from ...analysis.modes import Modes
from ...common.lock_free import cached_property
from ...errors import StudyError
from ...simulate.trajectory import Trajectory

if TYPE_CHECKING:
    from .measures import Measure


class AtRest:
    """The samples of a trajectory at rest, under the drives, forces and joint forces of the simulation.

    Several measures share the equilibria and the modes, which are computed when they are first read.

    Parameters
    ----------
    motion : Trajectory
        A result of `simulate`. The search for an equilibrium starts in the last state of each sample, and signals have
        their values at this time.
    """

    def __init__(self, motion: Trajectory) -> None:
        self._motion = motion

    @cached_property
    def _given(self) -> dict[str, Any]:
        """The drives, forces, joint forces and times, as arguments of the functions of the linear analysis."""
        motion = self._motion
        if motion.continuation is None:
            raise StudyError(
                "the trajectory does not record its drives and joint forces, which an equilibrium needs; expected a "
                "trajectory as simulate returned it, not a part of it or one from a file"
            )
        request = motion.continuation.request
        _, drives, forces = request.given  # with the random signals, which are refused
        refuse_unsteady(drives, forces)
        times = np.where(motion.failed, 0.0, motion.end_time)
        return {"drives": drives, "forces": forces, "tau": request.states[2], "t": times}

    @cached_property
    def _equilibrium(self) -> Equilibrium:
        motion, given = self._motion, self._given
        q = np.where(motion.failed[..., None], motion.model.neutral(), motion.end_q)
        # at rest, a controller has the same output with and without sampling
        drives = [controller_of(drive) for drive in given["drives"]]
        return motion.model.equilibrium(q, **given | {"drives": drives})

    @cached_property
    def _positions(self) -> dict[str, Any]:
        """The arguments of an equilibrium for the functions of the linear analysis; any state where there is none."""
        found = self._equilibrium
        q = np.where(found.success[..., None], found.q, self._motion.model.neutral())
        return {"q": q, "integrals": np.where(found.success[..., None], found.integrals, 0.0)}

    @cached_property
    def _modes(self) -> Modes:
        return self._motion.model.modes(**self._positions, **self._given)

    def values(self, measure: Measure) -> np.ndarray:
        """Return the measure of each sample (...), in SI units; NaN without an equilibrium."""
        model, success = self._motion.model, self._equilibrium.success
        if not (success.ndim or success):  # a single position must close the loops
            return np.array(np.nan)
        if measure.quantity == "equilibrium":
            changes = model.difference(model.neutral(), self._equilibrium.q)
            values = changes[..., dof_index(model, f"Measure {measure.name!r}", measure.joint, measure.dof)]
        elif measure.quantity == "gain_margin":
            values = self._motion.model.margins(**self._positions, **self._given, cut=cut_of(measure)).gain_margin
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
            "the study has random signals, with which a sample has no equilibrium; expected drives and forces without "
            "them. Replace them by their mean"
        )
    for i, drive in enumerate(drives):
        if isinstance(drive, PrescribedPosition) and not as_signal("signal", drive.signal).is_constant:
            raise StudyError(
                f"drives[{i}] moves joint {drive.joint!r}, so the sample has no equilibrium; expected a constant "
                "PrescribedPosition. Use a measure with a function that calls Model.modes"
            )
