"""The trajectory of one joint: `motion.of_joint("elbow").tau`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .trajectory import Trajectory


class JointMotion:
    """The values of one joint at the saved times of a trajectory.

    Attributes
    ----------
    t : (times,) array, s
        Saved times.
    q, qd, qdd, tau : (..., times, m) and (..., times, dofs) arrays
        Positions, velocities, accelerations and actuator forces of this joint, as in `Trajectory`.
    """

    def __init__(self, motion: Trajectory, name: str) -> None:
        self._motion = motion
        self._joint = motion.model.joint[name]

    @property
    def t(self) -> np.ndarray:
        return self._motion.t

    @property
    def q(self) -> np.ndarray:
        return self._joint.q(self._motion.q)

    @property
    def qd(self) -> np.ndarray:
        return self._joint.qd(self._motion.qd)

    @property
    def qdd(self) -> np.ndarray:
        return self._joint.qd(self._motion.qdd)

    @property
    def tau(self) -> np.ndarray:
        return self._joint.qd(self._motion.tau)

    def __repr__(self) -> str:
        return f"JointMotion({self._joint.name!r} of {self._motion!r})"


def of_joint(motion: Trajectory, name: str) -> JointMotion:
    """Return the trajectory of one joint by its name.

    Raises
    ------
    UnknownNameError
        If the model has no such joint.

    Examples
    --------
    >>> import numpy as np, rbchain as rb
    >>> motion = rb.Model.serial_chain(3).simulate(np.zeros((5, 3)), duration=0.1, save_at=11)
    >>> motion.of_joint("link2").tau.shape
    (5, 11, 1)
    """
    return JointMotion(motion, name)
