"""The velocity in the middle of a step of "moreau": repeat the evaluation until forces of inertia add no energy.

The step uses the rate at v_m = v + d / 2, with the change d of the velocity in the step. The first d is evaluated at
the velocity v of the start. With the implicit midpoint rule, d = h qdd(q_m, v_m), the forces of inertia do no work in
a step. Let e be the change of d between the last two evaluations, and H the mass matrix. Then the forces of inertia add
the energy d . H e / 2. For a body that turns by the angle z in a step, this is at most about z^4 / 4 of its kinetic
energy after two evaluations. The evaluation is repeated as a fixed-point iteration while this part is larger than
GROWTH. The iteration converges for z < 2.

Damping and other forces that reduce d from one evaluation to the next have d . H e < 0, and need no iteration.
"""

import math

from ...compiling.jit import kernel, routine
from ..algorithms.inertia_norm import inertia_norm_squared
from ..lanes.lanes import any_lane, constant_like, nan_unless_finite, select, zeros_like
from ..sample import control_layout as controls, tally_layout as tallies
from ..sample.rate import evaluate, moves_freely
from ..sample.status import RUNNING

# Energy that the forces of inertia may add in a step, relative to the kinetic energy. A body that turns by less than
# 0.25 rad in a step stays below it, so shorter steps are all computed in the same way.
GROWTH = 1e-3
# Changes of d below this fraction of the velocities and of d need no check.
SMALL = 1e-3
MAX_REPETITIONS = 30


@kernel
def keep_first_change(block, stepper, k):
    """Keep the rates of the velocities at the first evaluation of a step, in rates[1]."""
    nq = block.q.shape[0]
    for i in range(block.qd.shape[0]):
        stepper.rates[1, nq + i, k] = stepper.rates[0, nq + i, k]


@routine
def settle_middle(block, stepper, k):
    """Repeat the evaluation in the middle of a step in the lanes in which the forces of inertia add energy.

    Sets controls.ERROR to infinity in the lanes in which they still add energy after all repetitions.
    """
    y_new, rates, control, nq = stepper.y_new, stepper.rates, stepper.control, block.q.shape[0]
    zero, half = constant_like(y_new, 0.0), constant_like(y_new, 0.5) * control[controls.H, k]
    for repetition in range(MAX_REPETITIONS + 1):
        checked = may_add_energy(block, stepper, k)
        if not any_lane(checked > zero):
            return
        added = select(checked > zero, energy_of_inertia(block, stepper, repetition > 0, k), zero)
        stepper.change[0, k] = added
        if not any_lane(added > zero):
            return
        if repetition == MAX_REPETITIONS:
            error, infinite = control[controls.ERROR, k], constant_like(y_new, math.inf)
            control[controls.ERROR, k] = select(added > zero, infinite, error)
            return
        for i in range(block.qd.shape[0]):
            new, old = rates[0, nq + i, k], rates[1, nq + i, k]
            nothing = nan_unless_finite(new)  # a lane whose evaluation has failed remains NaN
            change = half * (new - old) if moves_freely(block, i) else nothing
            y_new[nq + i, k] = y_new[nq + i, k] + select(added > zero, change, nothing)
            rates[1, nq + i, k] = select(added > zero, new, old)
        for lane in range(y_new.shape[1]):
            if stepper.tally[tallies.STATUS, lane] == RUNNING:
                stepper.tally[tallies.EVALUATIONS, lane] += int(stepper.change[0, lane] > zero)
        evaluate(block, y_new, control[controls.TIME, k], rates[0], k)


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
