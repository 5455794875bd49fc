"""Work of all forces that are neither gravity nor elastic, integrated with the motion.

The mechanical energy E is the sum of the kinetic energy, the potential of gravity and the elastic energy. Its rate is
the power P of all other forces: drives, passive damping and friction, wrenches, dampers, water, contacts, constraints.
In a state with the accelerations qdd of the dynamics, it is

    P = qd . (H qdd + h) + dU/dt,

where H is the mass matrix, h has the bias forces and gravity, and U is the elastic energy. P therefore contains the
power of every force in the dynamics.
The work of a step is the quadrature of P along the dense output of the method, by Gauss' formula with 5 nodes. Its
nodes are the stages for a Radau method.

* The state is linear in a step of Euler's method, and of time stepping without contacts. With contacts, it follows
  `step_parts`, and the step is divided where velocities may jump. With closed loops, it is projected at each node.
* In implicit steps, the powers are computed from the actual forces, not from the linearized forces.
* A step is divided into parts until the polynomial through the powers resolves them. Steps of prescribed motions may be
  long, because they have no error. The integral of the polynomial is the work at the saved times in the step.

Impulses add their own work (`work_memory`).
"""

import math

import numpy as np

from ...compiling.jit import choose, kernel, only_if, routine
from ..algorithms.energy import ENERGY_KINETIC, energy
from ..forces.elastic import elastic_power, engaged_elements, has_kinks
from ..lanes.lanes import any_lane, constant_like, select, zeros_like
from ..loops.constraint_hooks import has_constraints, project_end_of_step
from ..methods.radau_tableau import is_radau, radau_nodes
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..sample.rate import allow_calls, allows_calls, evaluate, has_failed_call, set_step_length
from ..sample.work_memory import NODES, SUM_SLOT, SUM_STEP, SUM_TIME, SUM_WORK, has_work, inverse_dynamics_of_mechanism
from ..tree.kinematics import normalize_positions
from .step_parts import has_parts, meeting_of_parts, state_within_step


def _tables(nodes):
    """Return the coefficients to integrate and judge the polynomial through the powers at `nodes` on [0, 1].

    The integral from 0 to x is the sum over i and p of powers[i] integrals[p][i] x^(p + 1). The last Legendre
    coefficient is the sum of last[i] powers[i].
    """
    p = np.arange(nodes.size)
    integrals = np.linalg.inv(nodes[:, None] ** p) / (p[:, None] + 1)
    last = np.linalg.inv(np.polynomial.legendre.legvander(2.0 * nodes - 1.0, nodes.size - 1))[-1]
    return tuple(nodes.tolist()), tuple(tuple(row) for row in integrals.tolist()), tuple(last.tolist())


GAUSS_NODES, GAUSS_INTEGRALS, GAUSS_LAST = _tables(0.5 * (1.0 + np.polynomial.legendre.leggauss(NODES)[0]))
RADAU_NODES, RADAU_INTEGRALS, RADAU_LAST = _tables(radau_nodes())
# The last coefficient times the length of a part may be this fraction of the scale of the energy.
RESOLUTION = 1e-6
# The scale is at least the work of the joint forces over this displacement, rad or m.
LEAST_DISPLACEMENT = 1e-6
SHORTEST_PART = 1.0 / 64.0  # of a step
SHORTEST_PART_WITH_KINK = 2.0**-16  # of the elastic energy, whose place in the part is not known
SMALLEST_SCALE = 1e-30  # J
ROUND_OFF = 1e-6  # of a saved time at the end of a step, as a fraction of the step
WAITS, HAS_STEP = 1.0, 2.0  # values of `WorkMemory.role`


# --- the power in a state ---------------------------------------------------------------------------------------------


@kernel
def power_of_forces(block, work, k):
    """Compute the power of all forces except gravity and elastic ones, in the state of a node, W.

    Reads the rate of the state; writes R, LEVER, V, A, F and POSITION.
    """
    nq, n = block.q.shape[0], block.qd.shape[0]
    q, qd, qdd = work.state[:nq], work.state[nq : nq + n], work.rate[nq : nq + n]
    inverse_dynamics_of_mechanism(block, q, qd, qdd, work.torques, k)
    total = elastic_power(block, q, qd, k)
    for i in range(n):
        total = total + qd[i, k] * work.torques[i, k]
    return total


@only_if(
    has_constraints, otherwise=lambda block, stepper, t, k: evaluate(block, stepper.work.state, t, stepper.work.rate, k)
)
@kernel
def evaluate_node(block, stepper, t, k):
    """Project the state at a node onto the constraints, and compute its rate. Constraint forces then do no work.

    Reads and writes `WorkMemory.state`; writes `WorkMemory.rate`. The time t is one value for each lane.
    """
    work = stepper.work
    evaluate(block, work.state, t, work.rate, k)
    project_end_of_step(block, work.state, work.length[0, k], k)
    normalize_positions(block.model, work.state, k)
    evaluate(block, work.state, t, work.rate, k)


@only_if(
    lambda block, *_: not has_parts(block),
    otherwise=lambda block, stepper, tableau, h, theta, j, k: state_within_step(
        block, stepper, tableau, h, theta, j, k
    ),
)
@kernel
def state_at_node(block, stepper, tableau, h, theta, j, k):
    """Compute row j of the state at a node, after the fraction theta of a step of length h.

    The dense output of methods of first order is linear, except in the parts of a step with contacts. h, theta and the
    result are one value for each lane.
    """
    y, y_new = stepper.y, stepper.y_new
    if tableau.order == 1:
        return y[j, k] + theta * (y_new[j, k] - y[j, k])
    return state_within_step(block, stepper, tableau, h, theta, j, k)


@only_if(is_radau, otherwise=lambda tableau, i: GAUSS_NODES[i])
@kernel
def node_of(tableau, i):
    """Return node i of the quadrature, as a fraction of the part."""
    return RADAU_NODES[i]


# The numbers of `_tables` at node i.
integral_of = choose(is_radau, lambda tableau, p, i: RADAU_INTEGRALS[p][i], lambda tableau, p, i: GAUSS_INTEGRALS[p][i])
last_of = choose(is_radau, lambda tableau, i: RADAU_LAST[i], lambda tableau, i: GAUSS_LAST[i])


# --- the work of a step -----------------------------------------------------------------------------------------------


@kernel
def store_state(block, stepper, tableau, theta, k):
    """Store the state after the fraction theta of a step in `WorkMemory.state` (rows, lanes)."""
    work = stepper.work
    for j in range(work.state.shape[0]):
        work.state[j, k] = state_at_node(block, stepper, tableau, work.step[0, k], theta, j, k)
    normalize_positions(block.model, work.state, k)


@routine
def find_kinks(block, stepper, tableau, k):
    """Return 1 if the elastic energy has a kink between the start, the nodes and the end of the current part, else 0.

    The powers at the nodes would not show a kink at which the force does not change, such as the end of a stop that a
    joint leaves without force.
    """
    work, nq = stepper.work, block.q.shape[0]
    zero, one = zeros_like(work.length[0, k]), constant_like(work.length, 1.0)
    first, found = zero, zero
    if has_kinks(block):
        for place in range(NODES + 2):
            x = 0.0 if place == 0 else 1.0 if place == NODES + 1 else node_of(tableau, place - 1)
            store_state(block, stepper, tableau, work.start[0, k] + constant_like(zero, x) * work.length[0, k], k)
            engaged = engaged_elements(block, work.state[:nq], work.state[nq : nq + block.qd.shape[0]], k)
            first = engaged if place == 0 else first
            found = select(engaged == first, found, one)
    return found


@routine
def compute_powers_of_part(block, stepper, tableau, k):
    """Compute the powers at the nodes of the current part of a step, and the resolution that they need.

    This is the last Legendre coefficient of the work of the part, divided by the scale of the energy. Writes
    `WorkMemory.powers`, W, and `needed`.
    """
    work, t, h, nq = stepper.work, stepper.control[controls.TIME, k], stepper.work.step[0, k], block.q.shape[0]
    last, forces = zeros_like(h), zeros_like(h)
    work.kinks[0, k] = find_kinks(block, stepper, tableau, k)
    for node in range(NODES):
        theta = work.start[0, k] + constant_like(h, node_of(tableau, node)) * work.length[0, k]
        store_state(block, stepper, tableau, theta, k)
        evaluate_node(block, stepper, t + theta * h, k)
        work.powers[node, k] = power_of_forces(block, work, k)
        last = last + constant_like(h, last_of(tableau, node)) * work.powers[node, k]
    for i in range(work.torques.shape[0]):
        forces = forces + abs(work.torques[i, k])
    energy(block.model, work.state[:nq], work.state[nq:], work.energies, block.work, k)
    largest = max(work.scale[0, k], work.energies[ENERGY_KINETIC, k])
    work.scale[0, k] = select(work.length[0, k] > zeros_like(h), largest, work.scale[0, k])
    scale = work.scale[0, k] + constant_like(h, LEAST_DISPLACEMENT) * forces + constant_like(h, SMALLEST_SCALE)
    work.needed[0, k] = abs(last) * work.length[0, k] * h / scale


@kernel
def work_within_part(work, tableau, x, lane):
    """Compute the work of the fraction x of the current part of a step, J."""
    total = 0.0
    for i in range(NODES):
        share = 0.0
        for p in range(NODES - 1, -1, -1):
            share = x * (share + integral_of(tableau, p, i))
        total += share * float(work.powers[i, lane])
    return work.sums[SUM_STEP, lane] * float(work.length[0, lane]) * total


@kernel
def end_of_saved_times(work, batch, lane):
    """Return the number of the first saved time after the accepted step. Round-off counts as part of the step."""
    slot, times = int(work.sums[SUM_SLOT, lane]), batch.times
    last = (1.0 + ROUND_OFF) * work.sums[SUM_STEP, lane]
    while slot < times.shape[0] and times[slot] - work.sums[SUM_TIME, lane] <= last:
        slot += 1
    return slot


@kernel
def end_part(block, stepper, tableau, batch, lane):
    """Add the work of the current part of a lane's step and save it at the times in it, or halve the part."""
    work, sample = stepper.work, stepper.tally[tallies.SAMPLE, lane]
    start, length = float(work.start[0, lane]), float(work.length[0, lane])
    is_long = length > SHORTEST_PART or (work.kinks[0, lane] > 0.0 and length > SHORTEST_PART_WITH_KINK)
    if (work.needed[0, lane] > RESOLUTION or work.kinks[0, lane] > 0.0) and is_long:
        work.length[0, lane] = constant_like(work.length, 0.5 * length)
        return
    for slot in range(int(work.sums[SUM_SLOT, lane]), end_of_saved_times(work, batch, lane)):
        x = ((batch.times[slot] - work.sums[SUM_TIME, lane]) / work.sums[SUM_STEP, lane] - start) / length
        if x > 0.0:  # a later part writes the times after this one again
            within = work_within_part(work, tableau, min(x, 1.0), lane)
            batch.saved.work[sample, slot] = work.sums[SUM_WORK, lane] + within
    work.sums[SUM_WORK, lane] += work_within_part(work, tableau, 1.0, lane)
    end, meeting = start + length, float(meeting_of_parts(block, stepper, lane))
    end = meeting if start < meeting <= end else end  # in spite of round-off
    last = meeting if end < meeting else 1.0
    work.start[0, lane] = constant_like(work.start, end)
    work.length[0, lane] = constant_like(work.length, min(2.0 * length, last - end))


@kernel
def end_work_of_step(block, stepper, batch, lane):
    """Add the work of the impulses of a step, and save NaN if a user function has failed at a node."""
    work, sample = stepper.work, stepper.tally[tallies.SAMPLE, lane]
    impulses = math.nan if has_failed_call(block, lane) else float(work.impulses[0, lane])
    work.sums[SUM_WORK, lane] += impulses
    for slot in range(int(work.sums[SUM_SLOT, lane]), end_of_saved_times(work, batch, lane)):
        batch.saved.work[sample, slot] += impulses


@only_if(lambda block, stepper, *_: has_work(stepper))
@routine
def integrate_work(block, stepper, tableau, batch, k):
    """Integrate the work of the accepted steps, and save it at the saved times in them.

    Finally evaluates the ends of the steps again.
    """
    work, t, h = stepper.work, stepper.control[controls.TIME, k], stepper.work.step[0, k]
    zero = zeros_like(h)
    if not any_lane(work.length[0, k] > zero):
        return
    for lane in range(stepper.y.shape[1]):
        has_step = work.length[0, lane] > 0.0
        waits = not has_step and allows_calls(block, lane)
        work.role[0, lane] = constant_like(work.role, HAS_STEP if has_step else WAITS if waits else 0.0)
        if waits:  # its state belongs to no step
            allow_calls(block, False, lane)
    set_step_length(block, zero, k)  # an implicit step would change the accelerations
    while any_lane(work.length[0, k] > zero):
        compute_powers_of_part(block, stepper, tableau, k)
        for lane in range(stepper.y.shape[1]):
            if work.length[0, lane] > 0.0:
                end_part(block, stepper, tableau, batch, lane)
    set_step_length(block, h, k)
    evaluate(block, stepper.y_new, t + h, work.rate, k)
    for lane in range(stepper.y.shape[1]):
        if work.role[0, lane] == HAS_STEP:
            end_work_of_step(block, stepper, batch, lane)
        elif work.role[0, lane] == WAITS:
            allow_calls(block, True, lane)


@only_if(lambda block, stepper, *_: has_work(stepper))
@kernel
def keep_step_for_work(block, stepper, slot, lane):
    """Keep the time and the length of the accepted step of a lane; `slot` is the number of saved times before it."""
    work, meeting = stepper.work, float(meeting_of_parts(block, stepper, lane))
    work.sums[SUM_TIME, lane] = stepper.clock[clocks.T, lane]
    work.sums[SUM_STEP, lane] = stepper.clock[clocks.STEP, lane]
    work.sums[SUM_SLOT, lane] = slot
    work.step[0, lane] = stepper.control[controls.H, lane]
    work.start[0, lane] = constant_like(work.start, 0.0)
    work.length[0, lane] = constant_like(work.length, meeting if meeting > 0.0 else 1.0)
