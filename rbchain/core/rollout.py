"""What compiled trajectories are made of: a chain taken into a lane, its loads and dynamics, its states saved.

`fixed_steps` and `adaptive_steps` put these and the Runge-Kutta kernels together.
"""

from typing import NamedTuple

import numpy as np

from .aba import forward_dynamics
from .jit import kernel
from .kinematics import normalize_positions, position_rates
from .lanes import like
from .layout import apply_gravity, number_of
from .runge_kutta import SMALLEST_ERROR

# How a chain ends; and the two states of a lane before that.
DONE, STEP_UNDERFLOW, NOT_FINITE, TOO_MANY_STEPS = 0, 1, 2, 3
RUNNING, IDLE = -1, -2

# Rows of `Stepper.control`, in the precision of the states.
H, ERROR, ACCEPTED, FRESH, SIZE, RATE, TRIAL = 0, 1, 2, 3, 4, 5, 6
CONTROL_ROWS = 7
# Rows of `Stepper.clock`, always float64: a float32 time would drift.
T, STEP, PREVIOUS_ERROR = 0, 1, 2
CLOCK_ROWS = 3
# Rows of `Stepper.tally`; the first four are also the columns of `Batch.tally`.
STATUS, STEPS, REJECTIONS, EVALUATIONS, CHAIN, SAVED, AFTER_REJECTION = 0, 1, 2, 3, 4, 5, 6
TALLY_ROWS = 7


class Batch(NamedTuple):
    """The chains of a call: states and joint forces (chains, ...), their own parameters, and where results go.

    `times` (m,) are saved, in `q` and `qd` flat, per chain (m, nq) and (m, nv); `tally` (chains, 4): status and counts.
    """

    q0: np.ndarray
    qd0: np.ndarray
    tau: np.ndarray
    variation: object
    times: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tally: np.ndarray


class Tolerances(NamedTuple):
    """What the step control keeps to."""

    rtol: float
    atol: float
    max_steps: int


class Stepper(NamedTuple):
    """The integrator's memory for one block of lanes: states (nq + nv, lanes), positions above velocities."""

    y: np.ndarray
    y_new: np.ndarray
    change: np.ndarray
    rates: np.ndarray
    control: np.ndarray
    clock: np.ndarray
    tally: np.ndarray


@kernel
def evaluate(block, y, rate, k):
    """Rate of the state: that of the positions, and accelerations under the loads.

    This is where whatever acts over time (drives, springs, water) will write `block.loads` before the dynamics.
    """
    nq = block.q.shape[0]
    q, qd = y[:nq], y[nq:]
    position_rates(block.model, q, qd, rate[:nq], k)
    forward_dynamics(block.model, q, qd, block.loads, rate[nq:], block.work, k)


@kernel
def save_lane(block, y, batch, chain, slot, lane):
    """Save the state of a lane as it is in y."""
    nq, nv, m = block.q.shape[0], block.qd.shape[0], batch.times.shape[0]
    for i in range(nq):
        batch.q[(chain * m + slot) * nq + i] = y[i, lane]
    for i in range(nv):
        batch.qd[(chain * m + slot) * nv + i] = y[nq + i, lane]


@kernel
def take_chain(block, stepper, batch, chain, lane):
    """Put a chain's state, joint forces and parameters into a lane."""
    nq = block.q.shape[0]
    for i in range(nq):
        stepper.y[i, lane] = number_of(batch.q0, chain, i)
    for i in range(block.qd.shape[0]):
        stepper.y[nq + i, lane] = number_of(batch.qd0, chain, i)
        block.loads.tau[i, lane] = number_of(batch.tau, chain, i)
    normalize_positions(block.model, stepper.y, lane)
    take_parameters(block, block.model.parameters, batch.variation, chain, lane)
    stepper.tally[STEPS, lane] = 0
    stepper.tally[REJECTIONS, lane] = 0
    stepper.tally[EVALUATIONS, lane] = 0
    stepper.tally[CHAIN, lane] = chain
    stepper.tally[SAVED, lane] = 1
    stepper.tally[AFTER_REJECTION, lane] = 0
    stepper.clock[T, lane] = batch.times[0]
    stepper.clock[PREVIOUS_ERROR, lane] = SMALLEST_ERROR
    stepper.control[FRESH, lane] = like(stepper.y, 1.0)
    stepper.control[ACCEPTED, lane] = like(stepper.y, 0.0)


@kernel
def take_parameters(block, parameters, variation, chain, lane):
    """Put a chain's own parameters into its lane of the block's, if chains differ."""
    if parameters.ndim == 2:
        return
    entries, values = variation.entries, variation.values
    width = values.shape[2]
    for entry in range(entries.shape[0]):
        parameters[entries[entry, 0], entries[entry, 1], lane] = values[chain // width, entry, chain % width]
    apply_gravity(block.model, block.work, lane)
