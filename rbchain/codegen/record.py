"""Run the drivers in plain Python on symbolic numbers, and write source code of the recorded operations.

This is a program, `python -m rbchain.codegen.record`, because it needs a process with NUMBA_DISABLE_JIT=1. It reads a
pickled tuple (model, names, language, header, frame, point) from standard input, and writes source code to standard
output.
"""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import numpy.typing as npt

from ..core.algorithms import aba
from ..core.algorithms.coriolis import CORIOLIS_ROWS
from ..core.algorithms.crba import RIGID_ROWS
from ..core.lanes import trig
from ..core.tree import joints
from ..drivers import dynamics, matrices, motion
from ..drivers.blocks import memory_size
from .recording import Mathematics, variable
from .writing import Function, write

if TYPE_CHECKING:
    from ..facade.model import Model


def record(model: Model, name: str, frame: str, point: npt.ArrayLike) -> Function:
    """Run the driver of one function with symbolic arguments, and return the recorded function."""
    nq, n = model.nq, model.nv
    zeros, sizes = np.zeros(n), {"q": nq, "qd": n, "tau": n}
    drivers_of: dict[str, tuple[Any, ...]] = {
        "mass_matrix": (matrices.mass_matrix, ["q"], (n, n), (), RIGID_ROWS * n),
        "coriolis_matrix": (matrices.coriolis_matrix, ["q", "qd"], (n, n), (), CORIOLIS_ROWS * n),
        "gravity_forces": (dynamics.inverse_dynamics, ["q", zeros, zeros], (n,), (), 0),
        "forward_dynamics": (dynamics.forward_dynamics, ["q", "qd", "tau"], (n,), (), 0),
        "jacobian": (motion.jacobian, ["q"], (6, n), (model.kernel_model.observed_point(frame, point, None),), 0),
    }
    driver, arguments, shape, given, scratch = drivers_of[name]
    states = [
        np.array([variable(f"{x}[{i}]") for i in range(sizes[x])], object) if isinstance(x, str) else x
        for x in arguments
    ]
    wrenches = (np.empty(0),) if name in ("gravity_forces", "forward_dynamics") else ()
    count = int(np.prod(shape))
    memory = np.empty(memory_size(model.kernel_model.topology, count + scratch, 1, 8), object)
    found = np.empty(count, object)
    driver(memory, *model.kernel_model.arrays(np.dtype(float)), *given, *states, *wrenches, found, 0, 1)
    return name, {x: sizes[x] for x in arguments if isinstance(x, str)}, shape, list(found)


def main() -> None:
    if not numba.config.DISABLE_JIT:
        raise SystemExit(
            "NUMBA_DISABLE_JIT is not set; expected NUMBA_DISABLE_JIT=1, because compiled code cannot record"
        )
    model, names, language, header, frame, point = pickle.load(sys.stdin.buffer)
    mathematics = Mathematics()
    trig.math = joints.math = mathematics  # type: ignore[assignment]
    aba.epsilon = lambda x: 0.0  # without a threshold for singular mechanisms, which depends on the state
    functions = [record(model, name, frame, point) for name in names]
    sys.stdout.write(write(functions, language, header))


if __name__ == "__main__":
    main()
