"""The coefficients of each integration method. The table in `methods` is another file, which does not import Numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.methods import tableaus
from ..core.methods.dop853 import DOP853
from ..core.methods.radau_tableau import radau_tableau
from ..core.sample.records import Tolerances

TABLEAUS: dict[str, Any] = {
    "rk45": tableaus.DORMAND_PRINCE,
    "dop853": DOP853,
    "rosenbrock": tableaus.RODAS5P,
    "rk4": tableaus.RK4,
    "implicit": tableaus.EULER,
    "moreau": tableaus.EULER,
}


def adaptive_tableau(name: str, tolerances: Tolerances, dtype: np.dtype) -> Any:
    """Return the coefficients of a method with adaptive steps for these tolerances."""
    if name == "radau":
        # with an absolute tolerance alone, it counts as the relative one of states of size 1
        return radau_tableau(max(tolerances.rtol, min(tolerances.atol, 1.0)), float(np.finfo(dtype).eps))
    return TABLEAUS[name]
