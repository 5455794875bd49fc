"""Turn wrenches and the current into arrays for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import excerpt, real_array
from ..core.forces import wrenches
from ..errors import StateError
from .between_bodies import BETWEEN_BODIES
from .contacts import CONTACTS, NAMES_OF_CONTACTS
from .packing import SampleNumbers, SignalTables
from .signals import three_signals
from .wrenches import Current, Force, Wrench

if TYPE_CHECKING:
    from ..facade.model import Model


def flatten_wrenches(
    model: Model, forces: Sequence[Force], signals: SignalTables, numbers: SampleNumbers
) -> np.ndarray:
    """Add the signals and points of the wrenches to the arrays, and return their codes (WRENCH_ROWS, wrenches)."""
    others = (Current, *BETWEEN_BODIES, *CONTACTS)
    codes = [_flat_wrench(model, force, signals, numbers) for force in forces if not isinstance(force, others)]
    return np.array(codes, np.int64).reshape(-1, wrenches.WRENCH_ROWS).T.copy()


def flatten_current(model: Model, forces: Sequence[Force], signals: SignalTables) -> int:
    """Add the three signals of the current, and return the number of the first; -1 if there is no current."""
    currents = [force for force in forces if isinstance(force, Current)]
    if not currents:
        return -1
    if len(currents) > 1:
        raise StateError(f"forces contains {len(currents)} Currents; expected at most one. Add their velocities")
    if not model.in_water:
        raise StateError(
            "forces contains a Current, but no body is in water; expected a model with a fluid_density above 0, and "
            "bodies with an Immersion"
        )
    components = three_signals("Current: velocity", currents[0].velocity)
    first, *_ = [signals.add("Current: velocity", component, derivatives=1) for component in components]
    return first


def _flat_wrench(
    model: Model, wrench: Force, signals: SignalTables, numbers: SampleNumbers
) -> tuple[int, int, int, int]:
    if not isinstance(wrench, Wrench):
        raise StateError(
            f"forces contains {excerpt(wrench)}; expected objects of Wrench, SpringDamper, Bushing, Current, "
            f"{NAMES_OF_CONTACTS}"
        )
    what = f"Wrench on {wrench.frame!r}"
    frame = model.kernel_model.frame(wrench.frame)
    if frame.body < 0:
        raise StateError(f"{what}: this frame is fixed to the world; expected a moving body, or a frame fixed to one")
    if wrench.axes not in ("world", "body"):
        raise StateError(f'{what}: axes is {wrench.axes!r}; expected "world" or "body"')
    pose = frame.pose
    if wrench.axes == "body" and np.abs(pose.rotation - np.eye(3)).max() > 0.0:
        body = model.body_names[frame.body]
        raise StateError(
            f'{what}: axes is "body", but this frame is rotated relative to its body {body!r}; use axes="world", or '
            f"frame={body!r}"
        )
    components = [
        (f"{what}: {name}", signal)
        for name, given in (("force", wrench.force), ("moment", wrench.moment))
        for signal in three_signals(f"{what}: {name}", given)
    ]
    first, *_ = [signals.add(name, signal, derivatives=0) for name, signal in components]
    point = real_array(f"{what}: point", wrench.point, StateError)
    if point.shape[-1:] != (3,):
        raise StateError(f"{what}: point has shape {point.shape}; expected (3,) or (..., 3)")
    if not np.isfinite(point).all():
        raise StateError(f"{what}: point is {excerpt(point.tolist())}; expected finite numbers")
    at, _ = numbers.add_row(f"{what}: point", point @ pose.rotation.T + pose.translation)
    axes = wrenches.WRENCH_BODY_AXES if wrench.axes == "body" else wrenches.WRENCH_WORLD_AXES
    return int(model.kernel_model.dofs.last[frame.body]), axes, first, at
