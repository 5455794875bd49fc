"""Kernels for your own compiled code: call them with a state from a controller, an optimizer or a loop of your own.

All kernels work on a block of samples: arrays whose last axis has one entry per sample. `block_of(model)` returns a
block with all the memory that the kernels need:

    block.model, block.work       parameters and working memory of the kernels
    block.q, qd, qdd              states, (nq, samples) and (nv, samples)
    block.loads.tau               joint forces, (nv, samples)
    block.loads.wrenches          (nv, 6, samples), force, then moment about the body's origin, world axes

The arguments of a kernel are some of these arrays and an index `k`. Pass `k = 0` for a block of one sample. For a block
that fills a register, pass `k = all_lanes(block.q)` from inside compiled code. The kernel then computes all samples at
once, in little more time than one. Arithmetic on `block.q[i, k]` works for both.

    forward_dynamics(model, q, qd, loads, qdd, work, k)         writes qdd; NaN where the mechanism is singular
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
    momentum(model, q, qd, result, work, k)                                 (9, samples)
    energy(model, q, qd, energies, work, k)                                 (2, samples)
    inverse_dynamics_derivatives(model, q, qd, qdd, loads, derivatives, scratch, work, k)   (3, nv, nv, samples)
    inverse_dynamics_regressor(model, q, qd, qdd, Y, work, k)               (nv, bodies, 10, samples)
    position_rates(model, q, qd, rate, k)                                   dq/dt, (nq, samples)
    normalize_positions(model, q, k)                                        normalizes the quaternions in q

Result arrays must have these shapes and start as zeros, because kernels do not write entries that are always zero.
Scratch memory is `composite` (nv, RIGID_ROWS, samples) and `scratch` (nv, CORIOLIS_ROWS, samples); for the derivatives,
`scratch` is (nv, DERIVATIVE_ROWS, samples). A Point names a body by its last degree of freedom, and the world by nv.
Kernels do not check their arguments: they read and write beyond the end of an array that has the wrong shape.

Compiled code can also advance the samples of a stepper. `stepper.in_compiled_code()` returns a StepperArrays:

    samples.q, qd, t, status      the state of each sample, (samples, nq), (samples, nv), (samples,), (samples,)
    samples.tau, inputs           values that act until you change them, (samples, nv) and (samples, inputs)

These are the arrays of the stepper in Python. It continues where compiled code has stopped, and vice versa.
These kernels take no index `k`. They check their arguments, and raise an ArgumentError that Python receives:

    step(samples, count)                                        takes steps, as Stepper.step does
    advance(samples, duration)                                  simulates a duration, as Stepper.advance does
    save(samples, snapshot)                                     snapshot = snapshot_of(samples), which Python calls
    restore(samples, snapshot)                                  continues from the complete state of all samples
    copy_sample(source, i, target, j)                           sample i becomes sample j of a stepper or snapshot
    reset(samples, s)                                           starts a new episode of sample s

Compile your function with `@compiled.driver`. This is Numba's `njit` with the options of rbchain's own drivers, the
functions that Python calls. It does not count references to arrays, which would take longer than the dynamics. The
function therefore cannot create arrays: pass all arrays that it needs. It releases Python's global interpreter lock
while it runs. Its machine code is cached on disk until your file, rbchain or the lane width changes. Do not use Numba's
own `cache=True` here. It does not detect the last two changes, and machine code for another lane width reads and writes
beyond the end of arrays.

Examples
--------
Gravity compensation for 1000 steps, so that a rod keeps its initial velocity of 0.5 rad/s for 1 s:

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

Ten pendulums with controllers of different gains. The best one is nearest to the horizontal after 2 s:

>>> import numpy as np
>>> @compiled.driver
... def control(samples, gains, calls):
...     for _ in range(calls):
...         for s in range(gains.shape[0]):
...             samples.tau[s, 0] = -gains[s] * samples.q[s, 0] - 0.05 * samples.qd[s, 0]
...         compiled.step(samples, 2)
>>> gains = np.linspace(0.0, 1.0, 10)
>>> stepper = rb.Model.serial_chain(1).stepper(np.full((10, 1), -0.5), step=1e-2)
>>> control(stepper.in_compiled_code(), gains, 100)
>>> int(np.abs(stepper.q[:, 0]).argmin()), stepper.t[0].round(9)
(9, np.float64(2.0))
"""

from typing import TYPE_CHECKING, Never

import numpy as np

from .common.misspelled import no_attribute
from .common.real_arrays import excerpt, real_array
from .compiling.jit import driver
from .compiling.levels import LANE_WIDTHS
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
from .core.lanes.lane_memory import all_lanes
from .core.lanes.lanes import any_lane, constant_like, select
from .core.lanes.trig import sincos
from .core.tree import frame_layout as frame, parameter_layout as param
from .core.tree.kinematics import body_poses, body_velocities, normalize_positions, position_rates
from .core.tree.layout import CONTRIBUTION_ROWS, TOPOLOGY_CONTRIBUTION_ROW, Block, FlatModel, Loads, Work
from .drivers.stepper_arrays import Snapshot, StepperArrays, snapshot_of
from .drivers.stepping import advance, copy_sample, reset, restore, save, step
from .errors import ArgumentError

__all__ = [
    "CORIOLIS_ROWS",
    "DERIVATIVE_ROWS",
    "RIGID_ROWS",
    "Block",
    "Point",
    "Snapshot",
    "StepperArrays",
    "advance",
    "all_lanes",
    "any_lane",
    "block_of",
    "body_poses",
    "body_velocities",
    "centroidal_momentum_matrix",
    "constant_like",
    "copy_sample",
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
    "reset",
    "restore",
    "save",
    "select",
    "sincos",
    "snapshot_of",
    "step",
]


def block_of(model, register_full=False, dtype=np.float64, samples=None):
    """Create a block of samples of a model: neutral positions, zero velocities and forces, and working memory.

    Parameters
    ----------
    model : Model
    register_full : bool
        Whether the block has as many samples as fill a register, for `k = all_lanes(block.q)`, or one, for `k = 0`.
    dtype : float64 or float32
    samples : sequence of int, optional
        For a model whose samples differ: the index of each sample in the block, counted along the flattened batch.

    Returns
    -------
    Block

    Raises
    ------
    ArgumentError
        If `dtype` is another type, or `samples` does not fit the model.

    Examples
    --------
    The block of the second of two pendulums, whose mass is 4 kg:

    >>> import rbchain as rb
    >>> from rbchain import compiled
    >>> many = rb.Model.serial_chain(1).vary(mass=[[3.0], [4.0]])
    >>> compiled.block_of(many, samples=[1]).q.shape
    (1, 1)
    """
    dtype = np.dtype(dtype)
    if dtype.name not in LANE_WIDTHS:
        raise ArgumentError(f"dtype is {dtype.name}; expected float64 or float32")
    width = LANE_WIDTHS[dtype.name] if register_full else 1
    model.kernel_model.refuse_constraints("compiled.block_of", "Call the methods of Model")
    topology, parameters, variation = model.kernel_model.arrays(dtype)
    checked = _checked_samples(samples, width, model.batch_shape)
    if checked is not None:
        lanes = variation.values.shape[2]
        parameters = np.repeat(parameters, width, axis=2)
        own = variation.values[checked // lanes, :, checked % lanes]
        parameters[variation.entries[:, 0], variation.entries[:, 1]] = own.T
    n = topology.shape[1]
    dof = np.zeros((n + 1, frame.ROWS, width), dtype)
    dof[n, [frame.R, frame.R + 4, frame.R + 8]] = 1.0
    gravity = parameters[n, param.GRAVITY : param.GRAVITY + 3]
    dof[n, frame.A + 3 : frame.A + 6] = -(gravity if gravity.ndim == 2 else gravity[:, None])
    contributions = np.zeros((topology[TOPOLOGY_CONTRIBUTION_ROW].max() + 1, CONTRIBUTION_ROWS, width), dtype)
    zeros = np.zeros((3, n, width), dtype)
    q = np.repeat(model.neutral()[:, None], width, axis=1).astype(dtype)
    loads = Loads(zeros[2], np.zeros((n, 6, width), dtype), None)
    flat = FlatModel(*topology, parameters, parameters if model.in_water else None)
    return Block(
        model=flat,
        work=Work(dof, contributions),
        q=q,
        qd=zeros[0],
        qdd=zeros[1],
        loads=loads,
        rows=np.zeros((0, width), dtype),
        constraints=None,
    )


def _checked_samples(samples, width, batch_shape):
    """Return the indices (width,) of a block's samples as an array; None if the samples of the model do not differ."""
    if not batch_shape:
        if samples is not None:
            raise ArgumentError(
                f"samples is {excerpt(samples)}, but the samples of this model do not differ. Omit samples, or "
                "use Model.vary to create a model whose samples differ"
            )
        return None
    count = int(np.prod(batch_shape))
    expected = f"{width} whole {'number' if width == 1 else 'numbers'} from 0 to {count - 1}"
    if samples is None:
        raise ArgumentError(
            f"samples is not given, but the {count} samples of this model differ; expected samples=[...] with "
            f"{expected}: the index of the sample for each place in the block"
        )
    numbers = real_array("samples", samples, ArgumentError)
    if numbers.shape != (width,) or not ((numbers >= 0) & (numbers < count) & (numbers == numbers // 1)).all():
        raise ArgumentError(f"samples is {excerpt(samples)}; expected {expected}, one for each place in the block")
    return numbers.astype(np.int64)


if not TYPE_CHECKING:  # otherwise a type checker would accept every name as an attribute

    def __getattr__(name: str) -> Never:
        raise no_attribute(f"module {__name__!r}", name, __all__)
