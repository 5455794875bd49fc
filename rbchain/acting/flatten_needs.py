"""Turn what compiled functions of sampled controllers need into arrays for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.control import needed_quantities as need
from ..model.kernel_arrays import ORIGIN
from .needs import OF_FRAMES, OF_MODEL
from .user_code import BatchFunction, UserCall

if TYPE_CHECKING:
    from ..facade.model import Model

#: Rows of `need.Needs.groups` by the names of the quantities.
ROWS = dict(
    zip(
        (*OF_FRAMES, *OF_MODEL),
        (
            *(need.NEED_POSES, need.NEED_JACOBIANS, need.NEED_DERIVATIVES),
            *(need.NEED_MASS_MATRIX, need.NEED_BIAS_FORCES, need.NEED_GRAVITY_FORCES),
        ),
        strict=True,
    )
)


def flatten_needs(
    model: Model, calls: Sequence[UserCall | BatchFunction | None]
) -> tuple[need.Needs | None, tuple[int, int]]:
    """Return the needs of the functions of the groups, and two sizes; None without compiled functions with needs.

    The sizes are `SIZE_NEEDED` and `SIZE_NEEDS_MEMORY`.
    """
    groups, frames = np.zeros((need.NEED_ROWS, len(calls)), np.int64), np.zeros((0, need.FRAME_COLUMNS))
    for g, call in enumerate(calls):
        if not isinstance(call, UserCall) or call.needed is None:
            continue
        needed = call.needed
        groups[need.NEED_COUNT, g] = sum(int(np.prod(shape)) for _, shape in needed.layout)
        groups[need.NEED_OWN, g] = needed.model is model
        groups[need.NEED_FIRST_FRAME, g] = len(frames)
        for name, row in ROWS.items():
            groups[row, g] = len(needed.frames(name)) if name in OF_FRAMES else getattr(needed.needs, name)
        names = [frame for name in OF_FRAMES for frame in needed.frames(name)]
        frames = np.concatenate([frames, *(_row_of_frame(needed.model, frame) for frame in names)])
    most = int(groups[need.NEED_COUNT].max(initial=0))
    if most == 0:
        return None, (0, 0)
    return need.Needs(groups, frames), (most, need.needs_size(most, model.nv))


def _row_of_frame(model: Model, frame: str) -> np.ndarray:
    """Return the row (1, FRAME_COLUMNS) of a frame."""
    point, rotation = model.kernel_model.observed_point(frame, ORIGIN, None), model.kernel_model.frame(frame).pose
    return np.concatenate([point, rotation.rotation.ravel()])[None]
