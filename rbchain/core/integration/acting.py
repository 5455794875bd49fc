"""Trajectories with and without what acts over time: the same stepper, compiled for the one or the other.

Each function here comes in two: for chains under constant joint forces, whose stepper so carries nothing more, and for
those with drives, friction, wrenches or events. Which, the type of `loads.acting` says.
"""

from ..algorithms.aba import forward_dynamics
from ..forces.signals import take_signals
from ..forces.wrenches import acts
from ..simd.jit import kernel, overload, routine
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


def _block_acts(block):
    return acts(block.types[block.fields.index("loads")])


# --- rates ------------------------------------------------------------------------------------------------------------


def evaluate(block, y, t, rate, k):
    """Rate of the state y at time t."""
    (coast if block.loads.acting is None else move_under_drives)(block, y, t, rate, k)


@overload(evaluate, forceinline=True)
def _overload_evaluate(block, y, t, rate, k):
    if _block_acts(block):
        return lambda block, y, t, rate, k: move_under_drives(block, y, t, rate, k)
    return lambda block, y, t, rate, k: coast(block, y, t, rate, k)


@routine
def coast(block, y, t, rate, k):
    """Rates of the positions, and accelerations under constant forces."""
    nq = block.q.shape[0]
    q, qd = y[:nq], y[nq:]
    position_rates(block.model, q, qd, rate[:nq], k)
    forward_dynamics(block.model, q, qd, block.loads, rate[nq:], block.work, k)


# --- a chain taken into a lane ----------------------------------------------------------------------------------------


def take_loads(block, tau, t, chain, lane):
    """Put what acts on a chain into its lane: the joint forces tau, and what acts over time from t on."""
    (take_forces if block.loads.acting is None else take_acting)(block, tau, t, chain, lane)


@overload(take_loads, forceinline=True)
def _overload_take_loads(block, tau, t, chain, lane):
    if _block_acts(block):
        return lambda block, tau, t, chain, lane: take_acting(block, tau, t, chain, lane)
    return lambda block, tau, t, chain, lane: take_forces(block, tau, t, chain, lane)


@kernel
def take_forces(block, tau, t, chain, lane):
    for i in range(block.qd.shape[0]):
        block.loads.tau[i, lane] = number_of(tau, chain, i)


@kernel
def take_acting(block, tau, t, chain, lane):
    acting = block.loads.acting
    for i in range(block.qd.shape[0]):
        acting.joints[CONSTANT_FORCE, i, lane] = number_of(tau, chain, i)
    row = min(chain, acting.given.shape[0] - 1)
    for j in range(acting.numbers.shape[0]):
        acting.numbers[j, lane] = like(acting.numbers, acting.given[row, j])
    acting.chain[lane] = chain
    acting.failures[lane] = CALLABLE
    if acting.settings[COMPENSATES] == 1 or acting.settings[COMPUTES] == 1:
        replace_parameters(acting.model.parameters, acting.variation, chain, chain % block.qd.shape[1], lane)
    for i in range(block.qd.shape[0]):
        acting.joints[YIELDING, i, lane] = like(acting.joints, 0.0)
    acting.time[0, lane] = like(acting.time, t)
    take_signals(acting, lane)


# --- user functions ---------------------------------------------------------------------------------------------------


def has_failed_call(block, lane):
    """Whether a user function raised an exception for the sample in a lane."""
    return block.loads.acting is not None and block.loads.acting.failures[lane] > CALLABLE


@overload(has_failed_call, forceinline=True)
def _overload_has_failed_call(block, lane):
    if _block_acts(block):
        return lambda block, lane: block.loads.acting.failures[lane] > CALLABLE
    return lambda block, lane: False


def record_failed_call(block, records, chain, lane):
    """Keep which user function failed for a sample, and the arguments of that call."""
    if block.loads.acting is not None:
        copy_failed_call(block.loads.acting, records, chain, lane)


@overload(record_failed_call, forceinline=True)
def _overload_record_failed_call(block, records, chain, lane):
    if _block_acts(block):
        return lambda block, records, chain, lane: copy_failed_call(block.loads.acting, records, chain, lane)
    return lambda block, records, chain, lane: None


@kernel
def copy_failed_call(acting, records, chain, lane):
    records.failures[chain] = acting.failures[lane]
    for j in range(acting.failed_calls.shape[0]):
        records.failed_calls[chain, j] = acting.failed_calls[j, lane]


def allow_calls(block, allowed, lane):
    """Whether user functions are called for a lane: not for a sample that has ended, or that only waits for others."""
    if block.loads.acting is not None:
        block.loads.acting.failures[lane] = CALLABLE if allowed else RETIRED


@overload(allow_calls, forceinline=True)
def _overload_allow_calls(block, allowed, lane):
    if _block_acts(block):
        return lambda block, allowed, lane: set_calls(block.loads.acting, allowed, lane)
    return lambda block, allowed, lane: None


@kernel
def set_calls(acting, allowed, lane):
    acting.failures[lane] = CALLABLE if allowed else RETIRED


# --- what a step may meet ---------------------------------------------------------------------------------------------


def begin_events(block, y, t, lane):
    """Note on which side of its events a chain starts."""
    if block.loads.acting is not None:
        start_events(block, y, t, lane)


@overload(begin_events, forceinline=True)
def _overload_begin_events(block, y, t, lane):
    if _block_acts(block):
        return lambda block, y, t, lane: start_events(block, y, t, lane)
    return lambda block, y, t, lane: None


def pass_events(block, stepper, tableau, records, t, h, chain, lane):
    """The share of a step after which an event ends the motion, or NEVER; all that happens in it is recorded."""
    if block.loads.acting is None:
        return NEVER
    return meet_events(block, stepper, tableau, records, t, h, chain, lane)


@overload(pass_events, forceinline=True)
def _overload_pass_events(block, stepper, tableau, records, t, h, chain, lane):
    if _block_acts(block):
        return lambda block, stepper, tableau, records, t, h, chain, lane: meet_events(
            block, stepper, tableau, records, t, h, chain, lane
        )
    return lambda block, stepper, tableau, records, t, h, chain, lane: NEVER


def watch_stiffness(block, y, k):
    """Note how stiff all joints are in a state whose rate has just been found."""
    if block.loads.acting is not None:
        note_slopes(block, y, k)


@overload(watch_stiffness, forceinline=True)
def _overload_watch_stiffness(block, y, k):
    if _block_acts(block):
        return lambda block, y, k: note_slopes(block, y, k)
    return lambda block, y, k: None


def is_too_stiff(block, h, lane):
    """Whether springs and damping are beyond what an explicit step of length h can follow: the answer would grow.

    Of each joint alone, with its articulated inertia: what moves with it can only make it worse.
    """
    return False if block.loads.acting is None else outruns_step(block, h, lane)


@overload(is_too_stiff, forceinline=True)
def _overload_is_too_stiff(block, h, lane):
    if _block_acts(block):
        return lambda block, h, lane: outruns_step(block, h, lane)
    return lambda block, h, lane: False


@kernel
def outruns_step(block, h, lane):
    joints = block.loads.acting.joints
    for i in range(block.qd.shape[0]):
        yields = h * block.work.body[i, DINV, lane]
        if yields * joints[SLOPE, i, lane] > DECAY_LIMIT or h * yields * joints[HARDNESS, i, lane] > SWING_LIMIT**2:
            return True
    return False


def set_step_length(block, h, k):
    """Let the dynamics know the length of an implicit step."""
    if block.loads.acting is not None:
        block.loads.acting.joints[STEP_LENGTH, 0, k] = h


@overload(set_step_length, forceinline=True)
def _overload_set_step_length(block, h, k):
    if _block_acts(block):
        return lambda block, h, k: store_step_length(block.loads.acting.joints, h, k)
    return lambda block, h, k: None


@kernel
def store_step_length(joints, h, k):
    joints[STEP_LENGTH, 0, k] = h
