"""Calls of a user's compiled function by its address: what calls it need not be compiled anew, and caches."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from .jit import overload

#: Under NUMBA_DISABLE_JIT, what an address stands for.
plain_functions = {}


def call(address, t, q, qd, parameters, out):
    """Call the function at `address` with a time and flat float64 arrays; it writes `out`."""
    plain_functions[address](t, q, qd, parameters, out)


@intrinsic
def _call(typing_context, address, t, q, qd, parameters, out):
    def codegen(context, builder, sig, values):
        number = ir.DoubleType()
        arrays = [make_array(kind)(context, builder, x).data for kind, x in zip(sig.args[2:], values[2:], strict=True)]
        signature = ir.FunctionType(ir.VoidType(), [number] + [number.as_pointer()] * 4)
        function = builder.inttoptr(values[0], signature.as_pointer())
        builder.call(function, [values[1], *arrays])
        return context.get_dummy_value()

    return types.none(types.int64, types.float64, q, qd, parameters, out), codegen


@overload(call)
def _overload_call(address, t, q, qd, parameters, out):
    return lambda address, t, q, qd, parameters, out: _call(address, t, q, qd, parameters, out)
