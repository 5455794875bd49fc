"""Derivatives of the forces of drives and actuators with respect to positions, velocities and integrals of errors."""

from ...compiling.jit import kernel, only_if
from ..forces.passive import exact_passive_stiffness_and_damping, passive_stiffness_and_damping
from ..lanes.lanes import full_like, select, zeros_like
from ..tree import joint_layout as joint
from ..tree.layout import has_actions
from . import drive_layout as drive
from .actuators import (
    change_of_gear_slope,
    derivative_by_gear_friction,
    has_actuators,
    slopes_of_delivered_force,
)
from .drive_forces import sum_of_forces, unlimited_force


@only_if(has_actions)
@kernel
def store_stiffness_and_damping(block, y, k):
    """Compute - d force / d position and - d force / d velocity of each dof, for its passive and its PID forces.

    Writes joint.STIFFNESS, N m/rad or N/m, and joint.DAMPING, N m s/rad or N s/m. A PID force at its limit is constant
    and adds nothing. An actuator adds the damping of its torque-speed curve, if the force is on it, and of its gear.
    """
    actions, model, nq = block.loads.actions, block.model, block.q.shape[0]
    q, qd = y[:nq], y[nq : nq + block.qd.shape[0]]
    for i in range(block.qd.shape[0]):
        stiffness, damping = passive_stiffness_and_damping(i, model, q, qd, k)
        d = i
        while d >= 0:
            if actions.shared.drives[drive.KIND, d] == drive.KIND_PID:
                gains, varies = actions.shared.drives[drive.GAINS, d], share_of_drive(d, block, y, k)
                stiffness = stiffness + varies * actions.numbers[gains + drive.GAIN_KP, k]
                damping = damping + varies * actions.numbers[gains + drive.GAIN_KD, k]
            d = actions.shared.drives[drive.NEXT, d]
        actions.joints[joint.STIFFNESS, i, k] = stiffness
        actions.joints[joint.DAMPING, i, k] = add_damping_of_actuator(i, damping, block, y, k)


@kernel
def slopes_of_actuator(i, block, y, k):
    """Return the derivatives of an actuator force with respect to the sum of forces of dof i, and to its velocity."""
    total, v = sum_of_forces(i, block, y, k), y[block.q.shape[0] + i, k]
    return slopes_of_delivered_force(i, block.loads.actions, total, v, k)


@only_if(lambda i, block, y, k: has_actuators(block), otherwise=lambda i, block, y, k: full_like(y[0, k], 1.0))
@kernel
def share_of_forces(i, block, y, k):
    """Return the derivative of the actuator force of dof i with respect to the sum of its forces.

    It is 1 without an actuator, and 0 on a torque-speed curve.
    """
    share, _ = slopes_of_actuator(i, block, y, k)
    return share


@only_if(lambda i, damping, block, y, k: has_actuators(block), otherwise=lambda i, damping, block, y, k: damping)
@kernel
def add_damping_of_actuator(i, damping, block, y, k):
    """Add the damping of the torque-speed curve and of the gear of dof i; negative damping is omitted."""
    _, slope = slopes_of_actuator(i, block, y, k)
    return damping + max(-slope, zeros_like(slope))


@only_if(lambda i, by_qd, block, y, k: has_actuators(block), otherwise=lambda i, by_qd, block, y, k: by_qd)
@kernel
def add_slope_of_actuator(i, by_qd, block, y, k):
    """Add the slopes of the torque-speed curve and of the gear of dof i to a derivative with respect to velocity."""
    _, slope = slopes_of_actuator(i, block, y, k)
    return by_qd + slope


@only_if(lambda block, *_: has_actuators(block))
@kernel
def use_mean_slopes_of_gears(block, y, y_stage, is_counted, k):
    """Count the friction of gears in the damping at a stage of a step with its mean slope since the start y.

    See `rate.use_mean_slopes_of_friction`. `is_counted` is 1 if the damping counts the slope at the stage already, else
    0. y and `y_stage` are states (rows, lanes).
    """
    joints, actions, nq = block.loads.actions.joints, block.loads.actions, block.q.shape[0]
    for i in range(block.qd.shape[0]):
        total, v, w = sum_of_forces(i, block, y_stage, k), y[nq + i, k], y_stage[nq + i, k]
        change = change_of_gear_slope(i, actions, total, v, w, is_counted, k)
        joints[joint.DAMPING, i, k] = joints[joint.DAMPING, i, k] + change


@only_if(lambda i, block, y, k: has_actuators(block), otherwise=lambda i, block, y, k: zeros_like(y[0, k]))
@kernel
def slope_of_gear_friction(i, block, y, k):
    """Return the derivative of the actuator force of dof i with respect to its gear friction, N m or N."""
    total, v = sum_of_forces(i, block, y, k), y[block.q.shape[0] + i, k]
    return derivative_by_gear_friction(i, block.loads.actions, total, v, k)


@kernel
def share_of_drive(d, block, y, k):
    """Return the derivative of an actuator force with respect to the force of drive d before its limit.

    It is 0 if the force is at its limit, and otherwise the result of `share_of_forces`.
    """
    actions, drives = block.loads.actions, block.loads.actions.shared.drives
    limit, one = actions.numbers[drives[drive.GAINS, d] + drive.GAIN_LIMIT, k], full_like(y[0, k], 1.0)
    is_below = select(abs(unlimited_force(d, block, y, k)) < limit, one, zeros_like(one))
    return is_below * share_of_forces(drives[drive.DOF, d], block, y, k)


@kernel
def derivatives_of_actuator_force(i, block, y, k):
    """Return the derivatives of the actuator force of dof i with respect to its q, N m/rad, and qd, N m s/rad.

    The units are N/m and N s/m for a translation. A force at its limit has none. The derivatives do not include the
    forces that controllers compute with their model, or the forces of user functions.
    """
    actions, zero = block.loads.actions, zeros_like(y[0, k])
    drives, by_q, by_qd, d = actions.shared.drives, zero, zero, i
    while d >= 0:
        if drives[drive.KIND, d] == drive.KIND_PID:
            gains, factor = drives[drive.GAINS, d], share_of_drive(d, block, y, k)
            by_q = by_q - factor * actions.numbers[gains + drive.GAIN_KP, k]
            by_qd = by_qd - factor * actions.numbers[gains + drive.GAIN_KD, k]
        d = drives[drive.NEXT, d]
    return by_q, add_slope_of_actuator(i, by_qd, block, y, k)


@kernel
def derivative_by_integral(d, block, y, k):
    """Return the derivative of the actuator force with respect to the integral of drive d; zero unless it is a PID."""
    actions, drives = block.loads.actions, block.loads.actions.shared.drives
    if drives[drive.KIND, d] != drive.KIND_PID:
        return zeros_like(y[0, k])
    return share_of_drive(d, block, y, k) * actions.numbers[drives[drive.GAINS, d] + drive.GAIN_KI, k]


@kernel
def derivatives_of_joint_force(i, block, y, k):
    """Return the derivatives of the passive and the actuator force of dof i, as `derivatives_of_actuator_force`."""
    nq, n = block.q.shape[0], block.qd.shape[0]
    stiffness, damping = exact_passive_stiffness_and_damping(i, block.model, y[:nq], y[nq : nq + n], k)
    by_q, by_qd = derivatives_of_actuator_force(i, block, y, k)
    return by_q - stiffness, by_qd - damping
