"""User functions: call a compiled function with a state by its address, so that its callers are not recompiled."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from ...compiling.jit import kernel, overload

#: The functions by their "addresses" under NUMBA_DISABLE_JIT.
plain_functions = {}


def call(address, t, q, qd, parameters, out):
    """Call the function at `address` with a time in s and flat float64 arrays; it writes `out`.

    The arrays are q (nq,), qd (n,), the parameters and the results of the function. In sampled controllers, the results
    end with the discrete states, which the function also reads. Returns 0, or 1 if the function raised an exception.
    `out` is then invalid.
    """
    try:
        plain_functions[address](t, q, qd, parameters, out)
    except Exception:  # any exception ends the sample with a status, as in compiled code
        return 1
    return 0


@intrinsic
def _call(typing_context, address, t, q, qd, parameters, out):
    def codegen(context, builder, sig, values):
        number = ir.DoubleType()
        arrays = [make_array(kind)(context, builder, x).data for kind, x in zip(sig.args[2:], values[2:], strict=True)]
        signature = ir.FunctionType(ir.IntType(64), [number] + [number.as_pointer()] * 4)
        function = builder.inttoptr(values[0], signature.as_pointer())
        return builder.call(function, [values[1], *arrays])

    return types.int64(types.int64, types.float64, q, qd, parameters, out), codegen


@overload(call)
def _overload_call(address, t, q, qd, parameters, out):
    return lambda address, t, q, qd, parameters, out: _call(address, t, q, qd, parameters, out)


@intrinsic
def call_reports_failure(typing_context, function, t, q, qd, parameters, out):
    """Call a function compiled by `numba.njit`; return 1 if it raised an exception, else 0.

    This reads the status of the call, because `try` in compiled code misses exceptions that are raised in object mode.
    """
    arguments = (t, q, qd, parameters, out)
    compiled = function.dispatcher.get_compile_result(function.get_call_type(typing_context, arguments, {}))

    def codegen(context, builder, sig, values):
        described = compiled.fndesc
        context.active_code_library.add_linking_library(compiled.library)
        entry = context.declare_function(builder.module, described)
        status, found = context.call_conv.call_function(
            builder, entry, described.restype, described.argtypes, values[1:]
        )
        with builder.if_then(status.is_ok):
            context.nrt.decref(builder, described.restype, found)
        with builder.if_then(status.is_python_exc):
            api = context.get_python_api(builder)
            lock = api.gil_ensure()
            api.err_clear()
            api.gil_release(lock)
        return builder.zext(status.is_error, ir.IntType(64))

    return types.int64(function, *arguments), codegen


@kernel
def store_failed_call(actions, code, t, y, lane):
    """Store the code of the user function that failed in a lane, and the time and state of the call.

    The time t is in s, and the state y is (rows, lanes).
    """
    actions.failures[lane] = code
    actions.failed_calls[0, lane] = t
    for j in range(actions.failed_calls.shape[0] - 1):
        actions.failed_calls[1 + j, lane] = y[j, lane]
