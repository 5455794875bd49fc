"""Compare the derivatives that a user provides for joint forces with differences of these forces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import finite_number, real_array
from ..errors import StateError
from .user_code import user_function

if TYPE_CHECKING:
    from ..facade.model import Model
    from .drives import UserForces

#: Allowed deviation, relative to the largest derivative, and the increments of positions and velocities.
TOLERANCE, INCREMENT = 1e-5, 1e-5


def compare_derivatives(
    forces: UserForces, model: Model, q_given: npt.ArrayLike, qd_given: npt.ArrayLike, t_given: float
) -> None:
    """Implement `UserForces.check_derivatives`."""
    if forces.derivatives is None:
        raise StateError("UserForces has no derivatives; expected a function. Pass derivatives=...")
    t = finite_number("t", t_given, StateError)
    q, qd = real_array("q", q_given, StateError), real_array("qd", qd_given, StateError)
    own, n = real_array("parameters of UserForces", forces.parameters, StateError), model.nv
    for name, shape, expected in (("q", q.shape, (model.nq,)), ("qd", qd.shape, (n,))):
        if shape != expected:
            raise StateError(f"{name} has shape {shape}; expected {expected}, for one state")
    if own.ndim > 1:
        raise StateError(
            f"parameters of UserForces have shape {own.shape}; expected (m,). Check the parameters of one sample"
        )
    function = user_function("UserForces", forces.function, model.nq, n, own.size, (n,), False)
    derivatives = user_function(
        "derivatives of UserForces", forces.derivatives, model.nq, n, own.size, (2, n, n), False
    )
    found = np.zeros((2, n, n))
    derivatives.call(t, q.copy(), qd.copy(), own.copy(), found)

    def joint_forces(by: int, change: np.ndarray) -> np.ndarray:
        out = np.zeros(n)
        state = (model.integrate(q, change), qd.copy()) if by == 0 else (q.copy(), qd + change)
        function.call(t, *state, own.copy(), out)
        return out

    for by, name in enumerate(("q", "qd")):
        differences = np.zeros((n, n))
        for j, unit in enumerate(np.eye(n)):
            h = INCREMENT * (1.0 + abs(qd[j]) if by else 1.0)
            differences[:, j] = (joint_forces(by, h * unit) - joint_forces(by, -h * unit)) / (2 * h)
        wrong = ~(np.abs(found[by] - differences) <= TOLERANCE * max(np.abs(differences).max(), 1e-3))
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise StateError(
                f"derivatives of UserForces: d tau[{i}] / d {name}[{j}] is {found[by, i, j]:.6g}; the difference "
                f"of the function is {differences[i, j]:.6g}. Correct one of the two functions"
            )
