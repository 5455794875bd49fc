"""Actuators: the lag and the torque-speed curve between the command of a joint's drives and its actuator force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..common.misspelt import SuggestsAttributes


@dataclass(frozen=True, eq=False)
class Actuator(SuggestsAttributes):
    """The motor of a joint: a first-order lag, and a torque-speed curve that limits the delivered torque.

    The command u is the force of the drives of this joint, clipped to their `limit`. The lag follows it by T df/dt =
    u - f from f = 0 on, with T = `time_constant`. The curve F(v) is the largest torque in positive direction at the
    velocity v of the joint. The delivered torque is f, clipped to -F(-v) <= f <= F(v) at every instant.
    `Trajectory.tau` contains the delivered torque.

    Parameters
    ----------
    joint : str
        Name of the joint.
    time_constant : float or one for each sample, s
        Time constant T of the lag; 0 for no lag. A lag needs a command that is constant between instants: the drives of
        this joint must be `Sampled`.
    stall_torque : float or one for each sample, N m or N
        Largest torque at zero speed and when braking.
    no_load_speed : float or one for each sample, rad/s or m/s
        Speed at which the largest torque is zero. It decreases linearly from `stall_torque` at zero speed. At higher
        speeds, the motor can only brake. By default the torque does not depend on the speed.
    torque_speed : (m, 2) or (..., m, 2) array, optional
        Points (v, F) of the curve in the order of increasing velocities, in place of `stall_torque` and
        `no_load_speed`. The curve is linear between the points and constant beyond them. Points at negative velocities
        describe braking.
    dof : int
        Degree of freedom of the joint, counted from 0.

    Notes
    -----
    Torques and speeds are those of the joint. For a motor with the gear ratio n, multiply the torques of the data sheet
    by n, and divide its speeds by n.

    Between two instants of a sampled controller, the command is constant and the lag is an exponential function. So it
    is computed exactly with every method of integration.

    Examples
    --------
    A motor without load accelerates by w = w0 (1 - exp(-t stall_torque / (w0 J))), with w0 = `no_load_speed`:

    >>> import numpy as np, rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("rotor", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(0.1, 0.1, 0.1)))
    >>> drives = [rb.PrescribedForce("rotor", 5.0), rb.Actuator("rotor", stall_torque=2.0, no_load_speed=20.0)]
    >>> motion = builder.build().simulate([[0.0]], [[0.0]], 2.0, drives=drives)
    >>> bool(np.isclose(motion.qd[0, -1, 0], 20.0 * (1.0 - np.exp(-2.0))))
    True

    A digital controller whose torque follows the command with a time constant of 5 ms:

    >>> digital = rb.Sampled(rb.PID("link1", 0.5, kp=0.4, kd=0.04), period=1e-2)
    >>> drives = [digital, rb.Actuator("link1", time_constant=5e-3)]
    >>> motion = rb.Model.serial_chain(1, gravity=(0, 0, 0)).simulate([[0.0]], [[0.0]], 5.0, drives=drives)
    >>> motion.q[0, -1].round(3).tolist()
    [0.5]
    """

    joint: str
    time_constant: npt.ArrayLike = 0.0
    stall_torque: npt.ArrayLike = np.inf
    no_load_speed: npt.ArrayLike = np.inf
    torque_speed: npt.ArrayLike | None = None
    dof: int = 0


#: Fields of `Actuator` that can vary in a study.
OF_ACTUATOR = ("time_constant", "stall_torque", "no_load_speed")
