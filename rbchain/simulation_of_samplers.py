"""Refuse sampled controllers where they are not supported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .core.tree.sampler_layout import GROUP_DELAY
from .errors import StateError
from .simulation_settings import ADAPTIVE_STEP_METHODS

if TYPE_CHECKING:
    from .chain import Model
    from .drivers.trajectories import Actions

#: The methods with fixed steps that end at the instants of sampled controllers.
FIXED_STEP_METHODS = ("rk4", "implicit")


def refuse_samplers(model: Model, actions: Actions | None, method: str) -> None:
    """Raise a StateError for sampled controllers that the method or the model does not support."""
    if actions is None or actions.shared.samplers is None:
        return
    if method not in (*ADAPTIVE_STEP_METHODS, *FIXED_STEP_METHODS):
        raise StateError(
            f'drives contains Sampled, which method "{method}" does not support; expected method "rk45", "rosenbrock", '
            '"rk4" or "implicit"'
        )
    if model.kernel_model.constraint_tables is not None:
        raise StateError("drives contains Sampled, which does not support closed chains. Use PID or UserForces alone")
    if method in FIXED_STEP_METHODS:
        first = actions.shared.samplers.groups[GROUP_DELAY]
        times = actions.shared.numbers[:, [*first, *(first + 1)]]
        if (times != times[:1]).any():
            raise StateError(
                f'Sampled: delay or latency differs between samples, but the steps of method "{method}" are the same '
                'for all samples; expected one number. Use method "rk45" or "rosenbrock"'
            )
