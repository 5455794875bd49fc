"""Compute the rate of a state, and what a step does besides, with or without drives, wrenches and events.

Each function here is one of two, which `choose` selects when the stepper is compiled: for samples under constant joint
forces, whose stepper carries nothing more, and for those on which something acts over time. The type of `loads.acting`
says which.
"""

from ..algorithms.aba import forward_dynamics
from ..forces.signals import take_signals
from ..simd.jit import choose, is_given, kernel, routine
from ..simd.lanes import like
from ..tree.kinematics import position_rates
from ..tree.layout import (
    CALLABLE,
    COMPENSATES,
    COMPUTES,
    CONSTANT_FORCE,
    DINV,
    HARDNESS,
    RETIRED,
    SLOPE,
    STEP_LENGTH,
    YIELDING,
    number_of,
    replace_parameters,
)
from .drives import move_under_drives, note_slopes
from .events import NEVER, meet_events, start_events

# |h lambda| beyond which an explicit Runge-Kutta method of fourth order grows what should decay (real lambda), and
# what should swing (imaginary): Hairer and Wanner (1996), Solving ODEs II, section IV.2.
DECAY_LIMIT, SWING_LIMIT = 2.7853, 2.8284


def _acts(block, *_):
    return is_given(block, "loads", "acting")


# --- rates ------------------------------------------------------------------------------------------------------------


@routine
def coast(block, y, t, rate, k):
    """Rates of the positions, and accelerations under constant forces."""
    nq = block.q.shape[0]
    q, qd = y[:nq], y[nq:]
    position_rates(block.model, q, qd, rate[:nq], k)
    forward_dynamics(block.model, q, qd, block.loads, rate[nq:], block.work, k)


# Rate of the state y at time t.
evaluate = choose(_acts, move_under_drives, coast)


# --- a chain taken into a lane ----------------------------------------------------------------------------------------


@kernel
def take_forces(block, tau, t, chain, lane):
    for i in range(block.qd.shape[0]):
        block.loads.tau[i, lane] = number_of(tau, chain, i)


@kernel
def take_acting(block, tau, t, chain, lane):
    acting = block.loads.acting
    for i in range(block.qd.shape[0]):
        acting.joints[CONSTANT_FORCE, i, lane] = number_of(tau, chain, i)
    row = min(chain, acting.shared.given.shape[0] - 1)
    for j in range(acting.numbers.shape[0]):
        acting.numbers[j, lane] = like(acting.numbers, acting.shared.given[row, j])
    acting.chain[lane] = chain
    acting.failures[lane] = CALLABLE
    if acting.shared.settings[COMPENSATES] == 1 or acting.shared.settings[COMPUTES] == 1:
        replace_parameters(acting.model.parameters, acting.shared.variation, chain, chain % block.qd.shape[1], lane)
    for i in range(block.qd.shape[0]):
        acting.joints[YIELDING, i, lane] = like(acting.joints, 0.0)
    acting.time[0, lane] = like(acting.time, t)
    take_signals(acting, lane)


# Put what acts on a chain into its lane: the joint forces tau, and what acts over time from t on.
take_loads = choose(_acts, take_acting, take_forces)


# --- user functions ---------------------------------------------------------------------------------------------------


# Whether a user function raised an exception for the sample in a lane.
has_failed_call = choose(
    _acts, lambda block, lane: block.loads.acting.failures[lane] > CALLABLE, lambda block, lane: False
)


@kernel
def copy_failed_call(block, records, chain, lane):
    acting = block.loads.acting
    records.failures[chain] = acting.failures[lane]
    for j in range(acting.failed_calls.shape[0]):
        records.failed_calls[chain, j] = acting.failed_calls[j, lane]


# Keep which user function failed for a sample, and the arguments of that call.
record_failed_call = choose(_acts, copy_failed_call, lambda block, records, chain, lane: None)


@kernel
def set_calls(block, allowed, lane):
    block.loads.acting.failures[lane] = CALLABLE if allowed else RETIRED


# Set whether user functions are called for a lane: not for a sample that has ended, or that only waits for others.
allow_calls = choose(_acts, set_calls, lambda block, allowed, lane: None)


# --- what a step may meet ---------------------------------------------------------------------------------------------


# Note on which side of its events a chain starts.
begin_events = choose(_acts, start_events, lambda block, y, t, lane: None)

# The share of a step after which an event ends the motion, or NEVER; all that happens in it is recorded.
pass_events = choose(_acts, meet_events, lambda block, stepper, tableau, records, t, h, chain, lane: NEVER)

# Note how stiff all joints are in a state whose rate has just been found.
watch_stiffness = choose(_acts, note_slopes, lambda block, y, k: None)


@kernel
def outruns_step(block, h, lane):
    """Of each joint alone, with its articulated inertia: what moves with it can only make it worse."""
    joints = block.loads.acting.joints
    for i in range(block.qd.shape[0]):
        yields = h * block.work.body[i, DINV, lane]
        if yields * joints[SLOPE, i, lane] > DECAY_LIMIT or h * yields * joints[HARDNESS, i, lane] > SWING_LIMIT**2:
            return True
    return False


# Whether springs and damping are beyond what an explicit step of length h can follow: the answer would grow.
is_too_stiff = choose(_acts, outruns_step, lambda block, h, lane: False)


@kernel
def store_step_length(block, h, k):
    block.loads.acting.joints[STEP_LENGTH, 0, k] = h


# Let the dynamics know the length of an implicit step.
set_step_length = choose(_acts, store_step_length, lambda block, h, k: None)
