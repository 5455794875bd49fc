"""Values that a caller gives for the random inputs of a study."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...common.real_arrays import real_array
from ...errors import StudyError
from ..describe.named_columns import in_order, names_of
from .plan import Plan


def given_inputs(inputs: Any, plan: Plan) -> np.ndarray:
    """Return values (m, columns) in the order of the columns of a plan. Raises StudyError if they do not fit."""
    return in_order("inputs", real_array("inputs", inputs, StudyError), names_of(inputs), plan.columns)
