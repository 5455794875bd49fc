"""The compiled sweeps, for calling from your own compiled code: a controller, an optimiser, a loop of your own.

Everything works on a block of samples, side by side: arrays whose last axis has one entry per sample. `block_of(model)`
makes one with memory for everything:

    block.model, block.work       what the sweeps compute with
    block.q, qd, qdd              states, (nq, samples) and (nv, samples)
    block.loads.tau               joint forces, (nv, samples)
    block.loads.wrenches          (nv, 6, samples), force, then moment about the body's origin, world axes

and each sweep takes what it needs of these and an index `k`: 0 for the only sample of a block of one; or
`all_lanes(block.q)`, from inside compiled code, for all samples of a block that fills a register, which then cost
little more than one. Arithmetic on `block.q[i, k]` works for both.

    forward_dynamics(model, q, qd, loads, qdd, work, k)         writes qdd; NaN from a singular joint on
    inverse_dynamics(model, q, qd, qdd, loads, work, k)         writes loads.tau
    hybrid_dynamics(model, q, qd, loads, qdd, prescribed, work, k)  qdd, loads.tau; prescribed (nv, samples) is 0 or 1
    joint_reactions(model, q, qd, qdd, loads, reactions, work, k)           (bodies, 6, samples), and loads.tau
    body_poses(model, q, poses, work, k)                                    (bodies, 12, samples)
    body_velocities(model, q, qd, velocities, work, k)                      (bodies, 6, samples)
    jacobian(model, q, point, J, work, k)                                   (6, nv, samples); point is a Point
    jacobian_derivative(model, q, qd, point, J, work, k)                    (6, nv, samples)
    mass_matrix(model, q, H, composite, work, k)                            (nv, nv, samples)
    coriolis_matrix(model, q, qd, C, scratch, work, k)                      (nv, nv, samples)
    centroidal_momentum_matrix(model, q, matrix, composite, work, k)        (6, nv, samples)
    momentum(model, q, qd, found, work, k)                                  (9, samples)
    energy(model, q, qd, energies, work, k)                                 (2, samples)
    inverse_dynamics_derivatives(model, q, qd, qdd, loads, found, scratch, work, k)     (3, nv, nv, samples)
    inverse_dynamics_regressor(model, q, qd, qdd, Y, work, k)               (nv, bodies, 10, samples)
    position_rates(model, q, qd, rate, k)                                   dq/dt, (nq, samples)
    normalize_positions(model, q, k)                                        gives the quaternions in q unit length

Results have the shapes named, and start as zeros, of which some stay. Scratch is `composite` (nv, RIGID_ROWS, samples)
and `scratch` (nv, CORIOLIS_ROWS, samples) or, for the derivatives, (nv, DERIVATIVE_ROWS, samples). A body's number in a
Point is that of its last degree of freedom, and nv that of the world. Nothing is checked: arrays of a wrong shape are
read and written beyond their end.

Compile your function with `@compiled.driver`: a driver is what Python calls. It is Numba's `njit` with the options of
rbchain's own drivers. It counts no references, which would cost more than the dynamics; in return it cannot make
arrays, and works with those it is given. It lets go of Python's lock while it runs, and is cached on disk until your
file, rbchain or the width of the lanes changes. Do not use Numba's own `cache=True` here: it does not notice the last
two, and code of another width reads and writes beyond the end of arrays.

Examples
--------
Gravity compensation, 1000 steps of a rod that so falls no more than its first velocity lets it:

>>> import rbchain as rb
>>> from rbchain import compiled
>>> @compiled.driver
... def swing(block, steps, h):
...     for _ in range(steps):
...         for i in range(block.qdd.shape[0]):
...             block.qdd[i, 0] = 0.0
...         compiled.inverse_dynamics(block.model, block.q, block.qd, block.qdd, block.loads, block.work, 0)
...         compiled.forward_dynamics(block.model, block.q, block.qd, block.loads, block.qdd, block.work, 0)
...         for i in range(block.qd.shape[0]):
...             block.qd[i, 0] += h * block.qdd[i, 0]
...             block.q[i, 0] += h * block.qd[i, 0]
>>> block = compiled.block_of(rb.Model.serial_chain(1))
>>> block.qd[0, 0] = 0.5
>>> swing(block, 1000, 1e-3)
>>> float(block.q[0, 0].round(9))
0.5
"""

from typing import TYPE_CHECKING, Never

import numpy as np

from .core.algorithms.aba import forward_dynamics
from .core.algorithms.coriolis import CORIOLIS_ROWS, coriolis_matrix
from .core.algorithms.crba import RIGID_ROWS, mass_matrix
from .core.algorithms.derivatives import DERIVATIVE_ROWS, inverse_dynamics_derivatives
from .core.algorithms.energy import energy
from .core.algorithms.hybrid import hybrid_dynamics
from .core.algorithms.jacobians import Point, jacobian, jacobian_derivative
from .core.algorithms.momentum import centroidal_momentum_matrix, momentum
from .core.algorithms.regressors import inverse_dynamics_regressor
from .core.algorithms.rnea import inverse_dynamics, joint_reactions
from .core.simd.jit import driver
from .core.simd.lane_memory import all_lanes
from .core.simd.lanes import any_lane, constant_like, select
from .core.simd.levels import LANE_WIDTHS
from .core.simd.trig import sincos
from .core.tree.kinematics import body_poses, body_velocities, normalize_positions, position_rates
from .core.tree.layout import (
    CONTRIBUTION_ROWS,
    DOF_ROWS,
    PARAM_GRAVITY,
    ROW_A,
    ROW_R,
    TOPOLOGY_CONTRIBUTION_ROW,
    Block,
    FlatModel,
    Loads,
    Work,
)
from .errors import StateError
from .misspelt import no_attribute

__all__ = [
    "CORIOLIS_ROWS",
    "DERIVATIVE_ROWS",
    "RIGID_ROWS",
    "Block",
    "Point",
    "all_lanes",
    "any_lane",
    "block_of",
    "body_poses",
    "body_velocities",
    "centroidal_momentum_matrix",
    "constant_like",
    "coriolis_matrix",
    "driver",
    "energy",
    "forward_dynamics",
    "hybrid_dynamics",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_regressor",
    "jacobian",
    "jacobian_derivative",
    "joint_reactions",
    "mass_matrix",
    "momentum",
    "normalize_positions",
    "position_rates",
    "select",
    "sincos",
]


def block_of(model, register_full=False, dtype=np.float64, samples=None):
    """Memory for a block of samples of a model, its states neutral and at rest, its forces zero.

    Parameters
    ----------
    model : Model
    register_full : bool
        A block of as many samples as fill a register, for `k = all_lanes(block.q)`; or of one, for `k = 0`.
    dtype : float64 or float32
    samples : sequence of int, optional
        Of a model whose samples differ: which ones, counted along its flattened batch; one for each place.

    Returns
    -------
    Block

    Raises
    ------
    StateError
        If `samples` does not fit the model.
    """
    dtype = np.dtype(dtype)
    width = LANE_WIDTHS[dtype.name] if register_full else 1
    topology, parameters, variation = model.kernel_model.arrays(dtype)
    if (variation is None) != (samples is None):
        wanted = "none, for its samples do not differ" if variation is None else f"{width} of its samples"
        raise StateError(f"samples is {samples!r} for a model of batch_shape {model.batch_shape}; expected {wanted}")
    if samples is not None:
        samples = np.asarray(samples)
        of_model = int(np.prod(model.batch_shape))
        if (
            samples.shape != (width,)
            or samples.dtype.kind not in "iu"
            or not ((samples >= 0) & (samples < of_model)).all()
        ):
            raise StateError(f"samples is {samples.tolist()}; expected {width} whole numbers from 0 to {of_model - 1}")
        lanes = variation.values.shape[2]
        parameters = np.repeat(parameters, width, axis=2)
        own = variation.values[samples // lanes, :, samples % lanes]
        parameters[variation.entries[:, 0], variation.entries[:, 1]] = own.T
    n = topology.shape[1]
    dof = np.zeros((n + 1, DOF_ROWS, width), dtype)
    dof[n, [ROW_R, ROW_R + 4, ROW_R + 8]] = 1.0
    gravity = parameters[n, PARAM_GRAVITY : PARAM_GRAVITY + 3]
    dof[n, ROW_A + 3 : ROW_A + 6] = -(gravity if gravity.ndim == 2 else gravity[:, None])
    contributions = np.zeros((topology[TOPOLOGY_CONTRIBUTION_ROW].max() + 1, CONTRIBUTION_ROWS, width), dtype)
    zeros = np.zeros((3, n, width), dtype)
    q = np.repeat(model.neutral()[:, None], width, axis=1).astype(dtype)
    loads = Loads(zeros[2], np.zeros((n, 6, width), dtype), None)
    flat = FlatModel(*topology, parameters, parameters if model.in_water else None)
    return Block(flat, Work(dof, contributions), q, zeros[0], zeros[1], loads, np.zeros((0, width), dtype))


if not TYPE_CHECKING:  # a type checker would take every name for an attribute

    def __getattr__(name: str) -> Never:
        raise no_attribute(f"module {__name__!r}", name, __all__)
