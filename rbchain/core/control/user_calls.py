"""Calls of user functions, for the states of one sample.

`y` (rows, lanes) is a state of the integrator, whose first nq + n rows are q and qd. `BlockActions.call_arguments` (m,)
holds q, qd, the parameters and the results, one after the other.
"""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like
from ..tree import joint_layout as joint
from ..tree.layout import CALLS_ALLOWED
from .callbacks import call, store_failed_call

# Rows of `SharedActions.functions`, one column for each UserForces.
FUNCTION_NUMBERS = 0  # index of its first parameter in `BlockActions.numbers`
FUNCTION_COUNT = 1  # number of its parameters
FUNCTION_ADDRESS = 2
FUNCTION_CODE = 3  # its code in `BlockActions.failures`, which follows each address
FUNCTION_DERIVATIVES = 4  # address of the function for the derivatives of its forces with respect to q and qd, or 0
FUNCTION_DERIVATIVES_CODE = 5
FUNCTION_BY_PARAMETERS = 6  # address of the function for the derivatives with respect to its parameters, or 0
FUNCTION_BY_PARAMETERS_CODE = 7
FUNCTION_ROWS = 8


@kernel
def call_user_forces(actions, nq, n, y, lane):
    """Call the user functions for joint forces with the state of one lane, and store the sum of their forces, N m or N.

    The forces are zero if a function fails.
    """
    functions, forces = actions.shared.functions, actions.joints[joint.USER_FORCE]
    for j in range(n):
        forces[j, lane] = constant_like(forces, 0.0)
    for f in range(functions.shape[1]):
        if actions.failures[lane] != CALLS_ALLOWED:
            return
        if call_user_function(actions, f, functions[FUNCTION_ADDRESS, f], nq, n, n, y, lane) != 0:
            store_failed_call(actions, functions[FUNCTION_CODE, f], float(actions.time[0, lane]), y, lane)
            for j in range(n):
                forces[j, lane] = constant_like(forces, 0.0)
            return
        out = nq + n + functions[FUNCTION_COUNT, f]
        for j in range(n):
            forces[j, lane] = forces[j, lane] + constant_like(forces, actions.call_arguments[out + j])


@kernel
def call_user_function(actions, f, address, nq, n, results, y, lane):
    """Call the function at an address with the state of one lane and the parameters of UserForces number f.

    It writes `results` numbers after its arguments. Returns 0, or 1 if the function raised an exception.
    """
    memory, functions = actions.call_arguments, actions.shared.functions
    first, count = functions[FUNCTION_NUMBERS, f], functions[FUNCTION_COUNT, f]
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
    """Call the user functions for the derivatives of joint forces, and add them to derivatives (2, n, n, lanes).

    These are the derivatives with respect to q, N m/rad or N/m, and to qd, N m s/rad or N s/m. For free and spherical
    joints, derivatives with respect to q are taken along the velocities qd.
    """
    functions = actions.shared.functions
    for f in range(functions.shape[1]):
        if actions.failures[lane] != CALLS_ALLOWED:
            return
        if call_user_function(actions, f, functions[FUNCTION_DERIVATIVES, f], nq, n, 2 * n * n, y, lane) != 0:
            store_failed_call(actions, functions[FUNCTION_DERIVATIVES_CODE, f], float(actions.time[0, lane]), y, lane)
            return
        out = nq + n + functions[FUNCTION_COUNT, f]
        for by in range(2):
            for i in range(n):
                for j in range(n):
                    entry = constant_like(derivatives, actions.call_arguments[out + (by * n + i) * n + j])
                    derivatives[by, i, j, lane] = derivatives[by, i, j, lane] + entry


@kernel
def call_derivatives_by_parameters(actions, f, nq, n, y, lane):
    """Call the function for the derivatives of the forces of UserForces number f with respect to its parameters.

    It writes n rows with a number for each parameter to `call_arguments`. Returns the index of the first one, or -1 if
    the function raised an exception or is not called any more.
    """
    functions = actions.shared.functions
    count = functions[FUNCTION_COUNT, f]
    if actions.failures[lane] != CALLS_ALLOWED:
        return -1
    if call_user_function(actions, f, functions[FUNCTION_BY_PARAMETERS, f], nq, n, n * count, y, lane) != 0:
        store_failed_call(actions, functions[FUNCTION_BY_PARAMETERS_CODE, f], float(actions.time[0, lane]), y, lane)
        return -1
    return nq + n + count
