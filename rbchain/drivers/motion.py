"""Drivers of what moves and how: poses, velocities, Jacobians, momentum and energy. Arguments as in `dynamics`."""

from ..core.algorithms import energy as energies
from ..core.algorithms import jacobians, rnea
from ..core.algorithms import momentum as momenta
from ..core.simd.jit import driver
from ..core.simd.lane_memory import all_lanes, lane_width
from ..core.tree import kinematics
from ..core.tree.layout import remove_gravity, set_sample_parameters
from .blocks import block_for, body_count, pack, unpack

POSE_NUMBERS = 12


@driver
def body_poses(memory, topology, parameters, variation, q, poses, first, last):
    """Positions and rotations of the bodies: `poses`, per sample (bodies, 12)."""
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, POSE_NUMBERS * bodies, q)
    of_bodies = block.rows.reshape(bodies, POSE_NUMBERS, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        kinematics.body_poses(block.model, block.q, of_bodies, block.work, k)
        unpack(block.rows, poses, start, last)


@driver
def body_velocities(memory, topology, parameters, variation, q, qd, velocities, first, last):
    """Velocities of the bodies: per sample (bodies, 6), linear before angular."""
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 6 * bodies, q)
    of_bodies = block.rows.reshape(bodies, 6, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        kinematics.body_velocities(block.model, block.q, block.qd, of_bodies, block.work, k)
        unpack(block.rows, velocities, start, last)


@driver
def body_accelerations(memory, topology, parameters, variation, q, qd, qdd, accelerations, first, last):
    """Rates of the bodies' velocities: per sample (bodies, 6), linear before angular."""
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 6 * bodies, q)
    of_bodies = block.rows.reshape(bodies, 6, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        remove_gravity(block.model, block.work, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(qdd, start, last, block.qdd, k)
        rnea.body_accelerations(block.model, block.q, block.qd, block.qdd, of_bodies, block.work, k)
        unpack(block.rows, accelerations, start, last)


@driver
def jacobian(memory, topology, parameters, variation, point, q, J, first, last):
    """Jacobian of a point: per sample (6, n); `point` is (dof, observer, x, y, z)."""
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 6 * n, q)
    of_joints, watched = block.rows.reshape(6, n, width), jacobians.point_in(block.q, point)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        jacobians.jacobian(block.model, block.q, watched, of_joints, block.work, k)
        unpack(block.rows, J, start, last)


@driver
def jacobian_derivative(memory, topology, parameters, variation, point, q, qd, J, first, last):
    """Rate of the Jacobian of a point: per sample (6, n); `point` is (dof, observer, x, y, z)."""
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 6 * n, q)
    of_joints, watched = block.rows.reshape(6, n, width), jacobians.point_in(block.q, point)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        jacobians.jacobian_derivative(block.model, block.q, block.qd, watched, of_joints, block.work, k)
        unpack(block.rows, J, start, last)


@driver
def energy(memory, topology, parameters, variation, q, qd, kinetic_potential, first, last):
    """Kinetic and potential energy of each sample."""
    block, k = block_for(memory, topology, parameters, None, 2, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        energies.energy(block.model, block.q, block.qd, block.rows, block.work, k)
        unpack(block.rows, kinetic_potential, start, last)


@driver
def momentum(memory, topology, parameters, variation, q, qd, found, first, last):
    """Of each sample momentum (3), angular momentum about the centre of mass (3), and that centre (3)."""
    block, k = block_for(memory, topology, parameters, None, momenta.MOMENTUM_ROWS, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        momenta.momentum(block.model, block.q, block.qd, block.rows, block.work, k)
        unpack(block.rows, found, start, last)
