"""Random initial states, the same ones for all commands."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..facade.model import Model


def random_states(options: argparse.Namespace, model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return normally distributed initial positions and velocities, centered on the neutral positions and on zero.

    For a closed chain, return the nearest states that satisfy the constraints.
    """
    from ..simulate.loops import assembled_states  # imports Numba

    try:
        states = options.spread * np.random.default_rng(options.seed).standard_normal((2, options.batch, model.nv))
    except (MemoryError, ValueError):
        raise ValueError(
            f"--batch is {options.batch}; this machine does not have enough memory for so many samples. Reduce --batch"
        ) from None
    q, qd = model.integrate(model.neutral(), states[0]), states[1]
    return assembled_states(model, q, qd) if model.constraint_names else (q, qd)
