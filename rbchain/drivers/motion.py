"""Drivers of kinematics, momentum and energy, which copy states into lanes and results out, as in `dynamics`."""

from ..compiling.jit import driver
from ..core.algorithms import energy as energy_kernels, jacobians, momentum as momentum_kernels, rnea
from ..core.lanes.lane_memory import all_lanes, lane_width
from ..core.tree import kinematics
from ..core.tree.layout import remove_gravity, set_sample_parameters
from .blocks import block_for, body_count, pack, unpack
from .single_states import can_compute

POSE_NUMBERS = 12  # of a position (3) and a rotation (9)


@driver
def body_poses(memory, topology, parameters, variation, q, poses, first, last):
    """Compute the poses of the bodies, `poses` (bodies, 12).

    A row is the position of the body's origin in world axes (3), m, then the matrix of the rotation from body axes to
    world axes (9), row by row.
    """
    if not can_compute(topology, first, (q,)):
        return False
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, POSE_NUMBERS * bodies, q)
    pose_rows = block.rows.reshape(bodies, POSE_NUMBERS, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        kinematics.body_poses(block.model, block.q, pose_rows, block.work, k)
        unpack(block.rows, poses, start, last)
    return True


@driver
def body_velocities(memory, topology, parameters, variation, q, qd, velocities, first, last):
    """Compute the velocities of the bodies, `velocities` (bodies, 6), in world axes.

    A row is the velocity of the body's origin (3), m/s, then the angular velocity (3), rad/s.
    """
    if not can_compute(topology, first, (q, qd)):
        return False
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 6 * bodies, q)
    velocity_rows = block.rows.reshape(bodies, 6, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        kinematics.body_velocities(block.model, block.q, block.qd, velocity_rows, block.work, k)
        unpack(block.rows, velocities, start, last)
    return True


@driver
def body_accelerations(memory, topology, parameters, variation, q, qd, qdd, accelerations, first, last):
    """Compute the time derivatives of the velocities of the bodies, `accelerations` (bodies, 6), m/s^2 and rad/s^2.

    They are in world axes. The rows are as in `body_velocities`.
    """
    if not can_compute(topology, first, (q, qd, qdd)):
        return False
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 6 * bodies, q)
    acceleration_rows = block.rows.reshape(bodies, 6, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        remove_gravity(block.model, block.work, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(qdd, start, last, block.qdd, k)
        rnea.body_accelerations(block.model, block.q, block.qd, block.qdd, acceleration_rows, block.work, k)
        unpack(block.rows, accelerations, start, last)
    return True


@driver
def jacobian(memory, topology, parameters, variation, point, q, J, first, last):
    """Compute the Jacobian `J` (6, n) of a point: rows of velocity, then of angular velocity, in world axes.

    Its product with qd is in m/s and rad/s. `point` is an array (5,), (dof, observer, x, y, z), with x, y and z in body
    axes, m: see `core.algorithms.jacobians`.
    """
    if not can_compute(topology, first, (q,)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 6 * n, q)
    J_rows, observed = block.rows.reshape(6, n, width), jacobians.point_in(block.q, point)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        jacobians.jacobian(block.model, block.q, observed, J_rows, block.work, k)
        unpack(block.rows, J, start, last)
    return True


@driver
def jacobian_derivative(memory, topology, parameters, variation, point, q, qd, J, first, last):
    """Compute the time derivative `J` (6, n) of the Jacobian of a point; `point` and axes are as for `jacobian`.

    Its product with qd is in m/s^2 and rad/s^2.
    """
    if not can_compute(topology, first, (q, qd)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 6 * n, q)
    J_rows, observed = block.rows.reshape(6, n, width), jacobians.point_in(block.q, point)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        jacobians.jacobian_derivative(block.model, block.q, block.qd, observed, J_rows, block.work, k)
        unpack(block.rows, J, start, last)
    return True


@driver
def energy(memory, topology, parameters, variation, q, qd, kinetic_potential, first, last):
    """Compute kinetic and potential energy, `kinetic_potential` (2), J."""
    if not can_compute(topology, first, (q, qd)):
        return False
    block, k = block_for(memory, topology, parameters, None, 2, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        energy_kernels.energy(block.model, block.q, block.qd, block.rows, block.work, k)
        unpack(block.rows, kinetic_potential, start, last)
    return True


@driver
def momentum(memory, topology, parameters, variation, q, qd, result, first, last):
    """Compute momentum (3), angular momentum about the center of mass (3) and the center of mass (3): `result` (9).

    World axes; kg m/s, kg m^2/s and m.
    """
    if not can_compute(topology, first, (q, qd)):
        return False
    block, k = block_for(memory, topology, parameters, None, momentum_kernels.MOMENTUM_ROWS, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        momentum_kernels.momentum(block.model, block.q, block.qd, block.rows, block.work, k)
        unpack(block.rows, result, start, last)
    return True
