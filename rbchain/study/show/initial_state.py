"""An image of the first sample in its initial state, for the report, which loads no compiled code."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...common.whole_files import whole_file
from ...plots.sketch import sketch_of
from ..plan.plan import Plan
from ..store.layout import SKETCH


def write_sketch(plan: Plan, folder: Path) -> None:
    """Write an SVG of sample 0 in its initial state into a folder of results; nothing if this state is not valid."""
    values = plan.draw(0, 1)
    if not plan.valid(values).all():
        return
    samples = plan.samples(*plan.accompanied(values, np.arange(1)))
    many = samples.build()
    q = samples.initial_states(many)[0][0]
    if not np.isfinite(q).all():
        return
    with whole_file(folder / SKETCH) as partial:
        partial.write_text(sketch_of(many[0] if many.batch_shape else many, q), encoding="utf-8")
