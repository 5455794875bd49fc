"""Outcomes of samples: whether a sample was computed, and whether it failed."""

import numpy as np

from ..errors import Status

NOT_RUN = -1  # status of a sample that has not been computed yet


def has_failed(status: np.ndarray) -> np.ndarray:
    """Return which samples were computed and failed, as an array of bool."""
    return ~np.isin(status, [NOT_RUN, *(s for s in Status if s.success)])
