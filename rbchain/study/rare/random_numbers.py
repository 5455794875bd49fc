"""Random numbers of the methods. They depend on the seed, the stage and the number of the sample only."""

from __future__ import annotations

import numpy as np
from scipy import special

from ..describe.designs import uniforms

OF_RARE_EVENTS = 1 << 60  # second half of the key of Philox: no design uses these random numbers


def uniform_numbers(seed: int, stage: tuple[int, int], count: int, columns: int) -> np.ndarray:
    """Return uniform numbers (count, columns) in (0, 1) of a stage and of a step in it."""
    return uniforms(seed, OF_RARE_EVENTS + (stage[0] << 32) + stage[1], 0, count, columns)


def normal_numbers(seed: int, stage: tuple[int, int], count: int, columns: int) -> np.ndarray:
    """Return standard normal numbers (count, columns) of a stage and of a step in it."""
    return special.ndtri(uniform_numbers(seed, stage, count, columns))
