"""`Model.equilibrium`: positions at rest of a batch of mechanisms, under all forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..acting.coordinates import joints_of_dofs
from ..acting.drive_table import PRESCRIBES_MOTION
from ..acting.drives import PrescribedAcceleration, PrescribedVelocity
from ..acting.numeric_fields import Drive, Force
from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray, excerpt, whole_number
from ..errors import ArgumentError
from ..model.arguments import SampleArrays
from ..simulate.request import checked_times
from .equilibrium_search import Search
from .operating_points import Conditions, conditions_of
from .ports import dofs_of_joint

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True, eq=False)
class Equilibrium(SampleArrays):
    """The result of `Model.equilibrium`. `found[i]` is the equilibrium of one sample of a batch.

    Attributes
    ----------
    q : (..., nq) array, rad or m
        Positions at rest. For samples that failed, the last positions of the search.
    tau : (..., nv) array, N m or N
        The given joint forces, and the forces that hold the joints that are not free.
    integrals : (..., m) array, rad s or m s
        Integrals of the control errors of `PID` and `ComputedTorque`, which hold their joints at the references. Pass
        them to `linearize` and `modes`.
    residual : (...) array, N m or N
        The largest joint force that is not balanced.
    stable : (...) array of bool
        Whether the equilibrium is stable: no small motion of the free joints grows exponentially. False for samples
        that failed.
    success : (...) array of bool
        Whether the residual is at most 1e-12 of the largest force. This is the largest of `tau` and of the
        changes of joint forces by 1 rad or 1 m.
    """

    q: FloatArray
    tau: FloatArray
    integrals: FloatArray
    residual: FloatArray
    stable: npt.NDArray[np.bool_]
    success: npt.NDArray[np.bool_]


@explains_calls(is_method=True, contacts="forces", q="q_guess")
def equilibrium(
    model: Model,
    q_guess: npt.ArrayLike | None = None,
    *,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
    tau: npt.ArrayLike = 0.0,
    free: Sequence[str] | None = None,
    actuated: Sequence[str] | None = None,
    t: npt.ArrayLike = 0.0,
    max_iterations: int = 200,
) -> Equilibrium:
    """Find positions at which the mechanism stays at rest, near a guess.

    The forces are the same as in `accelerations`: gravity, passive forces of the joints, joint forces, drives,
    wrenches, springs and bushings between bodies, and water.

    Parameters
    ----------
    model : Model
    q_guess : (..., nq) array, rad or m
        Where the search starts, in each sample. The default is the neutral positions. Closed loops are assembled
        first.
    drives, forces : lists
        As for `linearize`. By default, the drives of the model are used. `PrescribedPosition` holds a joint at its
        position at time t.
    tau : float or (..., nv) array, N m or N
        Constant joint forces.
    free : list of str, optional
        Names of the joints that may move. The others stay at the guess, and the result contains the joint forces that
        hold them; with closed loops, the forces of minimum norm. By default, all joints are free.
    actuated : list of str, optional
        Names of joints whose forces hold the posture `q_guess`; the result contains the forces of minimum norm. All
        joints stay at the guess, and `stable` states whether they would stay there under constant forces. `success` is
        False for samples in which these joints cannot hold the posture.
    t : float or (...) array, s
        Time at which the signals are evaluated, from 0.
    max_iterations : int
        Largest number of steps of the search.

    Returns
    -------
    Equilibrium
        `success` is False for each sample, or a single state, without an equilibrium near the guess.

    Raises
    ------
    ArgumentError
        If a shape does not fit, or a drive, a force or a joint is not supported.
    ModelError
        As for `linearize`.

    Notes
    -----
    The search takes Newton steps on the tangent space. Along directions in which the stiffness is negative, a step
    follows the force instead. The search therefore follows decreasing potential energy, and leaves unstable equilibria
    unless it starts in one. It ignores `position_limits`.

    Examples
    --------
    Two rods hang down, from any guess:

    >>> import numpy as np, rbchain as rb
    >>> chain = rb.Model.serial_chain(2, length=0.5, mass=1.0, gravity=(0, -10, 0))
    >>> found = chain.equilibrium([[-1.0, 0.3], [-2.0, 1.0]])
    >>> np.allclose(found.q, [-np.pi / 2, 0.0]), found.stable.tolist(), found.success.tolist()
    (True, [True, True], [True, True])

    The joint force that holds the first rod in a horizontal position, while the second one hangs from it:

    >>> held = chain.equilibrium([0.0, -1.0], free=["link2"])
    >>> held.q.round(6).tolist(), held.tau.round(6).tolist()
    ([0.0, -1.570796], [7.5, 0.0])

    The forces of two of three joints that hold a posture, which would not be stable:

    >>> arm = rb.Model.serial_chain(3, length=0.5, mass=1.0, gravity=(0, -10, 0))
    >>> posture = arm.equilibrium([0.5, np.pi / 2 - 0.5, 0.0], actuated=["link1", "link2"])
    >>> posture.tau.round(6).tolist(), bool(posture.success), bool(posture.stable)
    ([10.969782, 0.0, 0.0], True, False)
    """
    times = checked_times("equilibrium", t)
    most = whole_number("max_iterations", max_iterations, ArgumentError, least=1)
    names = ("q_guess", "qd", "tau")
    conditions, states, t_of_samples = conditions_of(
        "equilibrium", model, (q_guess, 0.0, tau), (drives, forces), times, names
    )
    _refuse_motions(conditions)
    if free is not None and actuated is not None:
        raise ArgumentError(
            "free and actuated are given; use one of the two. With free=[...], the forces of all other joints hold "
            "them; with actuated=[...], all joints stay at the guess"
        )
    not_free = _others(conditions, free)
    held = supports = not_free
    if actuated is not None:
        held, supports = np.arange(model.nv), _dofs_of(conditions, "actuated", actuated)
        _refuse_prescribed(conditions, supports)
    search = Search(conditions, states, t_of_samples, held, supports)
    search.run(most)
    batch = conditions.batch
    return Equilibrium(
        q=search.q.reshape(*batch, model.nq),
        tau=search.tau.reshape(*batch, model.nv),
        integrals=search.integrals.reshape(*batch, search.integrals.shape[-1]),
        residual=search.residual.reshape(batch),
        stable=search.is_stable(not_free).reshape(batch),
        success=search.success.reshape(batch),
    )


def _refuse_motions(conditions: Conditions) -> None:
    """Raise an error for drives that prescribe velocities or accelerations."""
    for drive in conditions.drives:
        if isinstance(drive, (PrescribedVelocity, PrescribedAcceleration)):
            raise ArgumentError(
                f"equilibrium does not support {type(drive).__name__}, which does not prescribe a position. "
                "Use PrescribedPosition, or hold the joint by free=[...] without it"
            )


def _refuse_prescribed(conditions: Conditions, supports: np.ndarray) -> None:
    """Raise an error for forces of joints whose motion a drive prescribes."""
    prescribed = supports[PRESCRIBES_MOTION[conditions.kinds[supports]]]
    if len(prescribed):
        joint = joints_of_dofs(conditions.model, prescribed)[0]
        raise ArgumentError(
            f"actuated: a drive prescribes the motion of joint {joint!r}, so a joint force has no effect. "
            "Remove the drive, or the joint from actuated"
        )


def _others(conditions: Conditions, free: Sequence[str] | None) -> np.ndarray:
    """Return the degrees of freedom of the joints that are not free."""
    if free is None:
        return np.zeros(0, int)
    return np.setdiff1d(np.arange(conditions.model.nv), _dofs_of(conditions, "free", free))


def _dofs_of(conditions: Conditions, argument: str, joints: Any) -> np.ndarray:
    """Return the degrees of freedom of joints."""
    if not isinstance(joints, (list, tuple)) or not all(isinstance(name, str) for name in joints):
        raise ArgumentError(
            f"{argument} is {excerpt(joints)}; expected a list of names of joints, such as {argument}=['elbow']"
        )
    found = [dof for name in joints for dof in dofs_of_joint(conditions.model, argument, name)]
    return np.unique(np.array(found, int))
