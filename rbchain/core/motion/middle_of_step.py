"""The velocity in the middle of a step of "moreau": repeat the evaluation until forces of inertia add no energy.

The step uses the rate at v_m = v + d / 2, with the change d of the velocity in the step. The first d is evaluated at
the velocity v of the start. With the implicit midpoint rule, d = h qdd(q_m, v_m), the forces of inertia do no work in
a step. Let e be the change of d between the last two evaluations, and H the mass matrix. Then the forces of inertia add
the energy d . H e / 2. For a body that turns by the angle z in a step, this is at most about z^4 / 4 of its kinetic
energy after two evaluations. The evaluation is repeated as a fixed-point iteration while this part is larger than
GROWTH. The iteration converges for z < 2.

Damping and other forces that reduce d from one evaluation to the next have d . H e < 0, and need no iteration.

The iteration does not converge at a velocity at which the force of a drive comes out of saturation: the linearly
implicit d jumps there, because a saturated force has no damping. The two evaluations of the resulting cycle differ by
joint forces, not by forces of inertia. The velocity of the jump is between the two velocities of the cycle, and
bisection finds it. The step uses the side of the jump with the smaller d. The damping of the drive acts on this side,
as it does in the exact motion before the end of the step.
"""

import math

from ...compiling.jit import kernel, routine
from ..algorithms.inertia_norm import inertia_norm_squared
from ..lanes.lanes import any_lane, constant_like, nan_unless_finite, select, zeros_like
from ..sample import control_layout as controls, tally_layout as tallies
from ..sample.rate import evaluate, moves_freely
from ..sample.status import RUNNING
from ..tree import joint_layout as joint

# Energy that the forces of inertia may add in a step, relative to the kinetic energy. A body that turns by less than
# 0.25 rad in a step stays below it, so shorter steps are all computed in the same way.
GROWTH = 1e-3
# Changes of d below this fraction of the velocities and of d need no check.
SMALL = 1e-3
MAX_REPETITIONS = 30
# Number of bisections between the two velocities of a cycle.
BISECTIONS = 30


@kernel
def keep_first_change(block, stepper, k):
    """Keep the rates of the velocities at the first evaluation of a step, in rates[1]."""
    nq = block.q.shape[0]
    for i in range(block.qd.shape[0]):
        stepper.rates[1, nq + i, k] = stepper.rates[0, nq + i, k]


@routine
def settle_middle(block, stepper, k):
    """Repeat the evaluation in the middle of a step in the lanes in which the forces of inertia add energy.

    Sets controls.ERROR to infinity in the lanes in which they still add energy after all repetitions. In other lanes
    in which the evaluations do not converge, forces of joints jump: see `settle_at_jump`. Overwrites rates[1].
    """
    y_new, rates, control, nq = stepper.y_new, stepper.rates, stepper.control, block.q.shape[0]
    zero, half = constant_like(y_new, 0.0), constant_like(y_new, 0.5) * control[controls.H, k]
    one, growth = constant_like(y_new, 1.0), constant_like(y_new, GROWTH)
    for repetition in range(MAX_REPETITIONS + 1):
        checked = may_add_energy(block, stepper, k)
        if not any_lane(checked > zero):
            return
        added = select(checked > zero, energy_of_inertia(block, stepper, repetition > 0, k), zero)
        stepper.change[0, k] = added
        if not any_lane(added > zero):
            return
        if repetition == MAX_REPETITIONS:
            # not finite in lanes that diverge; a small part of the energy is round-off
            by_inertia = (one - growth) * added - energy_of_joint_forces(block, stepper, k)
            jumps = select(by_inertia <= threshold(block, stepper, k), added, zero)
            error, infinite = control[controls.ERROR, k], constant_like(y_new, math.inf)
            control[controls.ERROR, k] = select(added > jumps, infinite, error)
            stepper.change[0, k] = jumps
            settle_at_jump(block, stepper, k)
            return
        for i in range(block.qd.shape[0]):
            rates[1, i, k] = joint_force(block, i, rates[0, nq + i, k], k)
            new, old = rates[0, nq + i, k], rates[1, nq + i, k]
            nothing = nan_unless_finite(new)  # a lane whose evaluation has failed remains NaN
            change = half * (new - old) if moves_freely(block, i) else nothing
            y_new[nq + i, k] = y_new[nq + i, k] + select(added > zero, change, nothing)
            rates[1, nq + i, k] = select(added > zero, new, old)
        evaluate_again(block, stepper, k)


@kernel
def evaluate_again(block, stepper, k):
    """Evaluate the rates of y_new, and count this in the lanes in which change[0] is above zero."""
    for lane in range(stepper.y_new.shape[1]):
        if stepper.tally[tallies.STATUS, lane] == RUNNING:
            stepper.tally[tallies.EVALUATIONS, lane] += int(stepper.change[0, lane] > 0.0)
    evaluate(block, stepper.y_new, stepper.control[controls.TIME, k], stepper.rates[0], k)


@routine
def settle_at_jump(block, stepper, k):
    """Find the velocity of a cycle at which the rates jump, in the lanes in which change[0] is above zero.

    rates[1] and rates[0] contain the rates a and b of the cycle. The middle of the step has the velocity
    v + h a / 2 + w / 2 for rates a, so the rates f(a) of an evaluation there point from a to b. They point from b to a
    at the velocity for b. Bisection keeps a pair a, b with this property. The last evaluation uses the one with the
    smaller v . H v of f. Writes `y_new`, rates and `change`.
    """
    y_new, rates, change, nq, n = stepper.y_new, stepper.rates, stepper.change, block.q.shape[0], block.qd.shape[0]
    zero, half = constant_like(y_new, 0.0), constant_like(y_new, 0.5)
    jumps = change[0, k]
    if not any_lane(jumps > zero):
        return
    for i in range(n):
        change[nq + i, k] = rates[0, nq + i, k]
    for _ in range(BISECTIONS):
        for i in range(n):
            move_middle(block, stepper, i, half * (change[nq + i, k] - rates[1, nq + i, k]), jumps, k)
        evaluate_again(block, stepper, k)
        ahead = zeros_like(y_new[0, k])
        for i in range(n):
            a, b = rates[1, nq + i, k], change[nq + i, k]
            ahead = ahead + (rates[0, nq + i, k] - half * (a + b)) * (b - a)
        for i in range(n):
            a, b = rates[1, nq + i, k], change[nq + i, k]
            middle, is_ahead = half * (a + b), ahead > zero
            # the velocity remains at the one for a
            move_middle(block, stepper, i, select(is_ahead, zero, a - middle), jumps, k)
            rates[1, nq + i, k] = select(is_ahead, middle, a)
            change[nq + i, k] = select(is_ahead, b, middle)
    choose_smaller_rates(block, stepper, jumps, k)


@kernel
def choose_smaller_rates(block, stepper, jumps, k):
    """Evaluate the rates for the rates a and b of `settle_at_jump`, and keep the ones with the smaller norm."""
    rates, change, nq, n = stepper.rates, stepper.change, block.q.shape[0], block.qd.shape[0]
    evaluate_again(block, stepper, k)
    first = inertia_norm_squared(block.model, rates[0, nq : nq + n], block.work, k)
    for i in range(n):
        move_middle(block, stepper, i, change[nq + i, k] - rates[1, nq + i, k], jumps, k)
    evaluate_again(block, stepper, k)
    is_larger = inertia_norm_squared(block.model, rates[0, nq : nq + n], block.work, k) > first
    nothing = constant_like(rates, 0.0)
    for i in range(n):
        back = select(is_larger, rates[1, nq + i, k] - change[nq + i, k], nothing)
        move_middle(block, stepper, i, back, jumps, k)
    evaluate_again(block, stepper, k)


@kernel
def move_middle(block, stepper, i, change, jumps, k):
    """Move the velocity of dof i in the middle by h/2 times a change of its rate, in the lanes with `jumps` above 0."""
    if moves_freely(block, i):
        y_new, row, zero = stepper.y_new, block.q.shape[0] + i, constant_like(stepper.y_new, 0.0)
        half = constant_like(y_new, 0.5) * stepper.control[controls.H, k]
        y_new[row, k] = y_new[row, k] + select(jumps > zero, half * change, zero)


@kernel
def joint_force(block, i, rate, k):
    """Return the sum of the actuator force, the passive force and the implicit terms of dof i, N m or N."""
    return block.loads.tau[i, k] - block.loads.actions.joints[joint.IMPLICIT_INERTIA, i, k] * rate


@kernel
def energy_of_joint_forces(block, stepper, k):
    """Return the part of d . H e, J, that follows from the change of the joint forces between two evaluations.

    H includes the implicit terms of the last evaluation. The first rows of rates[1] contain the forces of the
    evaluation before, as `joint_force` returns them.
    """
    rates, nq, total = stepper.rates, block.q.shape[0], zeros_like(stepper.y[0, k])
    for i in range(block.qd.shape[0]):
        new, old = rates[0, nq + i, k], rates[1, nq + i, k]
        if moves_freely(block, i):
            total = total + new * (joint_force(block, i, old, k) - rates[1, i, k])
    h = stepper.control[controls.H, k]
    return h * h * total


@kernel
def threshold(block, stepper, k):
    """Return the energy, J, that forces of inertia may add: GROWTH v . H v for the velocity v at the start."""
    nq, n = block.q.shape[0], block.qd.shape[0]
    energy = inertia_norm_squared(block.model, stepper.y[nq : nq + n], block.work, k)
    return constant_like(stepper.y, GROWTH) * energy


@kernel
def may_add_energy(block, stepper, k):
    """Return 1 in the lanes in which the last evaluation has changed d by more than a small fraction in any dof.

    Returns 0 in the other lanes.
    """
    y, rates, h, nq = stepper.y, stepper.rates, stepper.control[controls.H, k], block.q.shape[0]
    one, found = constant_like(y, 1.0), zeros_like(y[0, k])
    for i in range(block.qd.shape[0]):
        new, old = rates[0, nq + i, k], rates[1, nq + i, k]
        size = abs(y[nq + i, k]) + h * abs(new)
        is_small = h * abs(new - old) <= constant_like(y, SMALL) * size  # false if one is not finite
        found = select(is_small, found, one)
    return found


@kernel
def energy_of_inertia(block, stepper, is_repeated, k):
    """Return d . H e, J, where it is above GROWTH v . H v, else 0. Overwrites `change`.

    4 d . H e is the difference of the squares of d + e and d - e. If repetitions have diverged, the result is infinite.
    A first evaluation that is not finite is not repeated.
    """
    y, change, rates, h = stepper.y, stepper.change, stepper.rates, stepper.control[controls.H, k]
    nq, n, zero = block.q.shape[0], block.qd.shape[0], constant_like(stepper.y, 0.0)
    for i in range(n):
        new, old = h * rates[0, nq + i, k], h * rates[1, nq + i, k]
        change[nq + i, k] = new + (new - old)
    difference = inertia_norm_squared(block.model, change[nq : nq + n], block.work, k)
    for i in range(n):
        change[nq + i, k] = h * rates[1, nq + i, k]
    difference = difference - inertia_norm_squared(block.model, change[nq : nq + n], block.work, k)
    energy = inertia_norm_squared(block.model, y[nq : nq + n], block.work, k)
    added, limit = constant_like(y, 0.25) * difference, constant_like(y, GROWTH) * energy
    diverged = constant_like(y, math.inf if is_repeated else 0.0)
    return select(added <= limit, zero, select(added > limit, added, diverged))
