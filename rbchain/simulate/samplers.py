"""Raise an error for sampled controllers where they are not supported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.tree import sampler_layout as sampler
from ..errors import ArgumentError
from .methods import Method

if TYPE_CHECKING:
    from ..drivers.trajectories import Actions
    from ..facade.model import Model


def refuse_samplers(model: Model, actions: Actions | None, method: Method) -> None:
    """Raise an ArgumentError for sampled controllers that the model does not support, or whose stops are not common."""
    if actions is None or actions.shared.samplers is None:
        return
    groups = actions.shared.samplers.groups
    if (
        model.kernel_model.constraint_tables is not None
        and groups[[sampler.GROUP_COMPENSATES, sampler.GROUP_COMPUTES]].any()
    ):
        raise ArgumentError(
            "Sampled: ComputedTorque and gravity_compensation do not support closed chains. Use them "
            "without Sampled, or use PID or UserForces"
        )
    if not method.is_adaptive:
        first = groups[sampler.GROUP_DELAY]
        times = actions.shared.numbers[:, [*first, *(first + 1)]]
        if (times != times[:1]).any():
            raise ArgumentError(
                f'Sampled: delay or latency differs between samples, but the steps of method "{method.name}" are the '
                'same for all samples; expected one number. Use method "rk45" or "rosenbrock"'
            )
