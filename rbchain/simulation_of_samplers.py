"""Refuse sampled controllers where they are not supported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .core.tree.sampler_layout import GROUP_DELAY
from .errors import StateError
from .simulation_settings import FIXED_STEP_METHODS

if TYPE_CHECKING:
    from .chain import Model
    from .drivers.trajectories import Actions


def refuse_samplers(model: Model, actions: Actions | None, method: str) -> None:
    """Raise a StateError for sampled controllers that the method or the model does not support."""
    if actions is None or actions.shared.samplers is None:
        return
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
