"""Single lanes and bits of SIMD values, for the elementary functions of `trig`."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...compiling.jit import overload
from .lanes import Pack, as_packs, pack_of, vector_intrinsic


def lanes_in(pack):
    """Return the number of lanes of a SIMD value; 1 for a number."""
    return 1


@overload(lanes_in)
def _overload_lanes_in(pack):
    width = pack.width if isinstance(pack, Pack) else 1
    return lambda pack: width


@intrinsic
def fused(typing_context, a, b, c):
    """Return a * b + c of SIMD values, rounded once. LLVM does not always fuse a multiplication and an addition."""
    pack = pack_of(a, b, c)

    def codegen(context, builder, sig, values):
        return vector_intrinsic("fma")(builder, *as_packs(context, builder, pack, sig.args, values))

    return pack(a, b, c), codegen


@intrinsic
def rotate_quadrants(typing_context, biased, s, c):
    """Rotate (c, s) by the number of right angles in the low bits of `biased`, a SIMD value plus 1.5 * 2^p."""

    def codegen(context, builder, sig, values):
        pack = sig.args[0]
        bits = pack.dtype.bitwidth
        vector, integers = context.get_value_type(pack), ir.VectorType(ir.IntType(bits), pack.width)
        biased, s, c = values
        turns = builder.bitcast(biased, integers)
        one, two = ir.Constant(integers, [1] * pack.width), ir.Constant(integers, [2] * pack.width)
        to_sign = ir.Constant(integers, [bits - 2] * pack.width)
        odd = builder.icmp_unsigned("!=", builder.and_(turns, one), ir.Constant(integers, [0] * pack.width))

        def flip(x, quadrant):
            sign = builder.shl(builder.and_(quadrant, two), to_sign)
            return builder.bitcast(builder.xor(builder.bitcast(x, integers), sign), vector)

        sine = flip(builder.select(odd, c, s), turns)
        cosine = flip(builder.select(odd, s, c), builder.add(turns, one))
        return context.make_tuple(builder, sig.return_type, (sine, cosine))

    return types.UniTuple(biased, 2)(biased, s, c), codegen


@intrinsic
def get_lane(typing_context, pack, lane):
    """Return the number in one lane."""

    def codegen(context, builder, sig, values):
        return builder.extract_element(values[0], context.cast(builder, values[1], sig.args[1], types.int32))

    return pack.dtype(pack, lane), codegen


@intrinsic
def set_lane(typing_context, pack, lane, number):
    """Return the SIMD value with another number in one lane."""

    def codegen(context, builder, sig, values):
        value = context.cast(builder, values[2], sig.args[2], pack.dtype)
        return builder.insert_element(values[0], value, context.cast(builder, values[1], sig.args[1], types.int32))

    return pack(pack, lane, number), codegen
