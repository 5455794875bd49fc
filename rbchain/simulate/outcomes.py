"""Outcomes of the samples of a trajectory."""

from __future__ import annotations

import numpy as np

from ..errors import Status
from ..model.arguments import SampleSequence

#: The statuses of samples that have not failed, as integers: comparisons with a `Status` take longer.
SUCCESSFUL = tuple(int(status) for status in Status if status.success)


class Outcomes(SampleSequence):
    """Properties of a Trajectory that state which samples have failed, or have a warning."""

    status: np.ndarray
    dof_beyond_limits: np.ndarray
    oscillating_dof: np.ndarray
    contact_residual: np.ndarray
    contact_tolerance: float

    @property
    def beyond_limits(self) -> np.ndarray:
        """Samples that have exceeded `Model.position_limits`, (...) array of bool.

        Only joints without `HardStops` and without elastic stops count. Their positions are checked at the start and at
        the end of each step. Limits are not enforced unless you add stops. A position within 1e-6 rad or m of its limit
        (1e-3 in float32), or within this fraction of its limit, does not exceed it.
        """
        return self.dof_beyond_limits >= 0

    @property
    def oscillates(self) -> np.ndarray:
        """Samples whose digital control loop oscillates near its sampling rate, (...) array of bool."""
        return self.oscillating_dof >= 0

    @property
    def has_inexact_contacts(self) -> np.ndarray:
        """Samples whose impulses of friction and contacts missed their tolerance, (...) array of bool."""
        return np.asarray(self.contact_residual > self.contact_tolerance)

    @property
    def failed(self) -> np.ndarray:
        """Samples that ended neither at the end of the simulated time nor at a terminal event, (...) array of bool."""
        return np.logical_and.reduce([self.status != status for status in SUCCESSFUL])

    @property
    def status_names(self) -> np.ndarray:
        """The name of the `Status` of each sample, (...) array of text, such as "DONE"."""
        return np.array([Status(status).name for status in np.ravel(self.status)], object).reshape(self.status.shape)

    @property
    def success(self) -> bool:
        """Whether every sample reached the end of the simulation, or an event that stops it."""
        return not np.count_nonzero(self.status) or not self.failed.any()  # DONE is 0; `any` takes longer
