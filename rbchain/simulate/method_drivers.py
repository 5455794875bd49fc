"""The compiled driver of each integration method, with its memory and coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core.methods import tableaus
from ..core.methods.dop853 import DOP853
from ..core.methods.radau_tableau import radau_tableau
from ..core.methods.settings import AnyTableau
from ..core.sample.records import Tolerances
from ..drivers.paused_trajectories import paused_adaptive_steps, paused_fixed_steps, paused_rosenbrock_steps
from ..drivers.radau_trajectories import radau_memory, radau_steps
from ..drivers.trajectories import (
    adaptive_steps,
    fixed_steps,
    moreau_steps,
    rosenbrock_memory,
    rosenbrock_steps,
    trajectory_memory,
)


class MethodDriver(NamedTuple):
    """The compiled driver of a method.

    `run` integrates a batch. `run_to_calls` integrates it to the next call of a function for the whole batch; it is
    None if the method does not support these. `new_memory` allocates the memory of both.
    """

    run: Callable[..., None]
    run_to_calls: Callable[..., None] | None = None
    new_memory: Callable[..., Any] = trajectory_memory


DRIVERS = {
    "rk45": MethodDriver(adaptive_steps, paused_adaptive_steps),
    "dop853": MethodDriver(adaptive_steps, paused_adaptive_steps),
    "rosenbrock": MethodDriver(rosenbrock_steps, paused_rosenbrock_steps, rosenbrock_memory),
    "radau": MethodDriver(radau_steps, new_memory=radau_memory),
    "rk4": MethodDriver(fixed_steps, paused_fixed_steps),
    "implicit": MethodDriver(fixed_steps, paused_fixed_steps),
    "moreau": MethodDriver(moreau_steps),
}

TABLEAUS: dict[str, AnyTableau] = {
    "rk45": tableaus.DORMAND_PRINCE,
    "dop853": DOP853,
    "rosenbrock": tableaus.RODAS5P,
    "rk4": tableaus.RK4,
    "implicit": tableaus.EULER,
    "moreau": tableaus.EULER,
}


def adaptive_tableau(name: str, tolerances: Tolerances, dtype: np.dtype) -> AnyTableau:
    """Return the coefficients of a method with adaptive steps for these tolerances."""
    if name == "radau":
        # with an absolute tolerance alone, it counts as the relative one of states of size 1
        return radau_tableau(max(tolerances.rtol, min(tolerances.atol, 1.0)), float(np.finfo(dtype).eps))
    return TABLEAUS[name]
