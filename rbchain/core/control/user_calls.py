"""Calls of the functions of users, for the states of one sample."""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like
from ..tree import joint_layout as joint, setting_layout as setting
from ..tree.layout import CALLS_ALLOWED, FAILED_USER_DERIVATIVES, FAILED_USER_FORCES
from .callbacks import call, store_failed_call


@kernel
def call_user_forces(actions, nq, n, y, lane):
    """Call the user function for joint forces with the state of one lane, and store its results, N m or N."""
    for j in range(n):
        actions.joints[joint.USER_FORCE, j, lane] = constant_like(actions.joints, 0.0)
    if actions.failures[lane] != CALLS_ALLOWED:
        return
    out = nq + n + actions.settings[setting.FUNCTION_COUNT]
    if call_user_function(actions, actions.settings[setting.FUNCTION], nq, n, n, y, lane) != 0:
        store_failed_call(actions, FAILED_USER_FORCES, float(actions.time[0, lane]), y, lane)
        return
    for j in range(n):
        actions.joints[joint.USER_FORCE, j, lane] = constant_like(actions.joints, actions.call_arguments[out + j])


@kernel
def call_user_function(actions, address, nq, n, results, y, lane):
    """Call a function of UserForces with the state of one lane. It writes `results` numbers after its arguments.

    Returns 0, or 1 if the function raised an exception.
    """
    memory, first, count = (
        actions.call_arguments,
        actions.settings[setting.FUNCTION_NUMBERS],
        actions.settings[setting.FUNCTION_COUNT],
    )
    parameters = nq + n
    out = parameters + count
    for j in range(nq + n):
        memory[j] = y[j, lane]
    for j in range(count):
        memory[parameters + j] = actions.numbers[first + j, lane]
    for j in range(results):
        memory[out + j] = 0.0
    t, end = float(actions.time[0, lane]), out + results
    return call(address, t, memory[:nq], memory[nq:parameters], memory[parameters:out], memory[out:end])


@kernel
def call_user_derivatives(actions, nq, n, y, derivatives, lane):
    """Call the user function for the derivatives of its joint forces, and add them to derivatives (2, n, n, lanes)."""
    if actions.failures[lane] != CALLS_ALLOWED:
        return
    out = nq + n + actions.settings[setting.FUNCTION_COUNT]
    if call_user_function(actions, actions.settings[setting.DERIVATIVES], nq, n, 2 * n * n, y, lane) != 0:
        store_failed_call(actions, FAILED_USER_DERIVATIVES, float(actions.time[0, lane]), y, lane)
        return
    for by in range(2):
        for i in range(n):
            for j in range(n):
                entry = constant_like(derivatives, actions.call_arguments[out + (by * n + i) * n + j])
                derivatives[by, i, j, lane] = derivatives[by, i, j, lane] + entry
