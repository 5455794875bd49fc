"""Compute the rate of a state, and what a step does besides, with or without drives, wrenches and events.

Each function here is one of two, which `choose` selects when the stepper is compiled: for samples under constant joint
forces, whose stepper carries nothing more, and for those on which something acts over time. The type of `loads.actions`
says which.
"""

from ..algorithms.aba import forward_dynamics
from ..forces.signals import set_sample_signals
from ..simd.jit import choose, is_given, kernel, routine
from ..simd.lanes import constant_like
from ..tree.kinematics import position_rates
from ..tree.layout import (
    CALLS_ALLOWED,
    CALLS_STOPPED,
    JOINT_CONSTANT_FORCE,
    JOINT_DAMPING,
    JOINT_IMPLICIT_INERTIA,
    JOINT_STEP_LENGTH,
    JOINT_STIFFNESS,
    ROW_DINV,
    SETTING_COMPENSATES,
    SETTING_COMPUTES,
    replace_parameters,
    sample_entry,
)
from .drives import rate_under_actions, store_stiffness_and_damping
from .events import NEVER, find_events, start_events

# |h lambda| beyond which an explicit Runge-Kutta method of fourth order grows what should decay (real lambda), and
# what should swing (imaginary): Hairer and Wanner (1996), Solving ODEs II, section IV.2.
REAL_STABILITY_LIMIT, IMAGINARY_STABILITY_LIMIT = 2.7853, 2.8284


def _has_actions(block, *_):
    return is_given(block, "loads", "actions")


# --- rates ------------------------------------------------------------------------------------------------------------


@routine
def rate_under_constant_forces(block, y, t, rate, k):
    """Rates of the positions, and accelerations under constant forces."""
    nq = block.q.shape[0]
    q, qd = y[:nq], y[nq:]
    position_rates(block.model, q, qd, rate[:nq], k)
    forward_dynamics(block.model, q, qd, block.loads, rate[nq:], block.work, k)


# Rate of the state y at time t.
evaluate = choose(_has_actions, rate_under_actions, rate_under_constant_forces)


# --- a sample taken into a lane ---------------------------------------------------------------------------------------


@kernel
def set_constant_forces(block, tau, t, sample, lane):
    for i in range(block.qd.shape[0]):
        block.loads.tau[i, lane] = sample_entry(tau, sample, i)


@kernel
def set_sample_actions(block, tau, t, sample, lane):
    actions = block.loads.actions
    for i in range(block.qd.shape[0]):
        actions.joints[JOINT_CONSTANT_FORCE, i, lane] = sample_entry(tau, sample, i)
    row = min(sample, actions.shared.given.shape[0] - 1)
    for j in range(actions.numbers.shape[0]):
        actions.numbers[j, lane] = constant_like(actions.numbers, actions.shared.given[row, j])
    actions.sample[lane] = sample
    actions.failures[lane] = CALLS_ALLOWED
    if actions.settings[SETTING_COMPENSATES] == 1 or actions.settings[SETTING_COMPUTES] == 1:
        replace_parameters(actions.model.parameters, actions.shared.variation, sample, sample % block.qd.shape[1], lane)
    for i in range(block.qd.shape[0]):
        actions.joints[JOINT_IMPLICIT_INERTIA, i, lane] = constant_like(actions.joints, 0.0)
    actions.time[0, lane] = constant_like(actions.time, t)
    set_sample_signals(actions, lane)


# Put what acts on a sample into its lane: the joint forces tau, and what acts over time from t on.
set_sample_forces = choose(_has_actions, set_sample_actions, set_constant_forces)


# --- user functions ---------------------------------------------------------------------------------------------------


# Whether a user function raised an exception for the sample in a lane.
has_failed_call = choose(
    _has_actions, lambda block, lane: block.loads.actions.failures[lane] > CALLS_ALLOWED, lambda block, lane: False
)


@kernel
def copy_failed_call(block, records, sample, lane):
    actions = block.loads.actions
    records.failures[sample] = actions.failures[lane]
    for j in range(actions.failed_calls.shape[0]):
        records.failed_calls[sample, j] = actions.failed_calls[j, lane]


# Keep which user function failed for a sample, and the arguments of that call.
record_failed_call = choose(_has_actions, copy_failed_call, lambda block, records, sample, lane: None)


@kernel
def set_calls(block, allowed, lane):
    block.loads.actions.failures[lane] = CALLS_ALLOWED if allowed else CALLS_STOPPED


# Set whether user functions are called for a lane: not for a sample that has ended, or that only waits for others.
allow_calls = choose(_has_actions, set_calls, lambda block, allowed, lane: None)


# --- what a step may meet ---------------------------------------------------------------------------------------------


# Note on which side of its events a sample starts.
begin_events = choose(_has_actions, start_events, lambda block, y, t, lane: None)

# The share of a step after which an event ends the motion, or NEVER; all that happens in it is recorded.
check_events = choose(_has_actions, find_events, lambda block, stepper, tableau, records, t, h, sample, lane: NEVER)

# Note how stiff all joints are in a state whose rate has just been found.
update_stiffness_and_damping = choose(_has_actions, store_stiffness_and_damping, lambda block, y, k: None)


@kernel
def exceeds_stability_limit(block, h, lane):
    """Of each joint alone, with its articulated inertia: what moves with it can only make it worse."""
    joints = block.loads.actions.joints
    for i in range(block.qd.shape[0]):
        yields = h * block.work.dof[i, ROW_DINV, lane]
        if (
            yields * joints[JOINT_DAMPING, i, lane] > REAL_STABILITY_LIMIT
            or h * yields * joints[JOINT_STIFFNESS, i, lane] > IMAGINARY_STABILITY_LIMIT**2
        ):
            return True
    return False


# Whether springs and damping are beyond what an explicit step of length h can follow: the answer would grow.
is_too_stiff = choose(_has_actions, exceeds_stability_limit, lambda block, h, lane: False)


@kernel
def store_step_length(block, h, k):
    block.loads.actions.joints[JOINT_STEP_LENGTH, 0, k] = h


# Let the dynamics know the length of an implicit step.
set_step_length = choose(_has_actions, store_step_length, lambda block, h, k: None)
