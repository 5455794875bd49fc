"""Many samples in one SIMD register: the index `Lanes` loads a `Pack`. With `lane_memory`, all that speaks LLVM.

An array whose last axis has one entry per lane, indexed `a[i, k]` with `k` of type `Lanes`, yields a `Pack`: one number
of each sample, side by side in one register. With an integer `k` the same source works on a single number.
The arithmetic is IEEE, lane by lane: no lane can see its neighbours.

No overload here is declared `inline="always"`: that starts Numba's dead-code elimination, which takes a store into an
array reached through a tuple (`work.body[i, row, k] = x`) for dead and drops it. LLVM inlines them all the same.
"""

import math
import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from .jit import overload

CONTRACT = ("contract",)


class Pack(types.Type):
    """Numba type: one number of each lane, in a vector register."""

    def __init__(self, dtype, width):
        self.dtype, self.width = dtype, width
        super().__init__(name=f"Pack({dtype}, {width})")


class Mask(types.Type):
    """Numba type: one truth value of each lane, from a comparison of packs of `dtype`."""

    def __init__(self, dtype, width):
        self.dtype, self.width = dtype, width
        super().__init__(name=f"Mask({dtype}, {width})")


class Lanes(types.Type):
    """Numba type: the index of all lanes at once. It carries no number: the width is in the type."""

    def __init__(self, width):
        self.width = width
        super().__init__(name=f"Lanes({width})")


@register_model(Pack)
class _PackModel(models.PrimitiveModel):
    def __init__(self, manager, pack):
        element = ir.DoubleType() if pack.dtype == types.float64 else ir.FloatType()
        super().__init__(manager, pack, ir.VectorType(element, pack.width))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager, mask):
        super().__init__(manager, mask, ir.VectorType(ir.IntType(1), mask.width))


register_model(Lanes)(models.OpaqueModel)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _splat(context, builder, value, from_type, pack):
    """One number in every lane."""
    number = context.cast(builder, value, from_type, pack.dtype)
    vector = context.get_value_type(pack)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), pack.width), None))


def _pack_of(*operands):
    """The pack type that an operation on these operands works in, or None where it is not ours."""
    packs = [t for t in operands if isinstance(t, Pack)]
    if packs and all(t == packs[0] or isinstance(t, types.Number) for t in operands):
        return packs[0]
    return None


def as_packs(context, builder, pack, operand_types, values):
    return [
        value if isinstance(t, Pack) else _splat(context, builder, value, t, pack)
        for t, value in zip(operand_types, values, strict=True)
    ]


def _operator(function, emit, masks=False):
    """Teach Numba `function` on packs, or on a pack and a number: `emit(builder, x, y)` writes the instruction."""

    @infer_global(function)
    class _Typing(AbstractTemplate):
        def generic(self, operands, keywords):
            if len(operands) == 2 and (pack := _pack_of(*operands)):
                return signature(Mask(pack.dtype, pack.width) if masks else pack, *operands)

    def lower(context, builder, sig, values):
        return emit(builder, *as_packs(context, builder, _pack_of(*sig.args), sig.args, values))

    for left, right in ((Pack, Pack), (Pack, types.Number), (types.Number, Pack)):
        lower_builtin(function, left, right)(lower)


_operator(operator.add, lambda b, x, y: b.fadd(x, y, flags=CONTRACT))
_operator(operator.sub, lambda b, x, y: b.fsub(x, y, flags=CONTRACT))
_operator(operator.mul, lambda b, x, y: b.fmul(x, y, flags=CONTRACT))
_operator(operator.truediv, lambda b, x, y: b.fdiv(x, y, flags=CONTRACT))
# as Python's own: the second operand only where it is strictly beyond the first
_operator(min, lambda b, x, y: b.select(b.fcmp_ordered("<", y, x), y, x))
_operator(max, lambda b, x, y: b.select(b.fcmp_ordered(">", y, x), y, x))
_operator(operator.eq, lambda b, x, y: b.fcmp_ordered("==", x, y), masks=True)
_operator(operator.ne, lambda b, x, y: b.fcmp_unordered("!=", x, y), masks=True)
for _comparison, _sign in ((operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">=")):
    _operator(_comparison, lambda b, x, y, sign=_sign: b.fcmp_ordered(sign, x, y), masks=True)


def _function(function, accepts, emit):
    """Teach Numba a function of one pack (or mask) that returns its like."""

    @infer_global(function)
    class _Typing(AbstractTemplate):
        def generic(self, operands, keywords):
            if len(operands) == 1 and isinstance(operands[0], accepts):
                return signature(operands[0], operands[0])

    @lower_builtin(function, accepts)
    def lower(context, builder, sig, values):
        return emit(builder, values[0])


def _vector_intrinsic(name, *values):
    """Call LLVM's own vector function on these vectors."""

    def call(builder, *operands):
        vector = operands[0].type
        bits = 64 if vector.element == ir.DoubleType() else 32
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector] * len(operands)),
            f"llvm.{name}.v{vector.count}f{bits}",
        )
        return builder.call(function, operands)

    return call


_function(operator.neg, Pack, lambda b, x: b.fneg(x))
_function(abs, Pack, _vector_intrinsic("fabs"))
_function(math.sqrt, Pack, _vector_intrinsic("sqrt"))
_function(operator.invert, Mask, lambda b, x: b.not_(x))


def _mask_operator(function, name):
    @infer_global(function)
    class _Typing(AbstractTemplate):
        def generic(self, operands, keywords):
            if len(operands) == 2 and isinstance(operands[0], Mask) and operands[0] == operands[1]:
                return signature(operands[0], *operands)

    @lower_builtin(function, Mask, Mask)
    def lower(context, builder, sig, values):
        return getattr(builder, name)(*values)


_mask_operator(operator.and_, "and_")
_mask_operator(operator.or_, "or_")


# --- choosing, by lane ------------------------------------------------------------------------------------------------


def select(condition, a, b):
    """`a` where the condition holds, else `b`."""
    return a if condition else b


@intrinsic
def _select_packs(typing_context, condition, a, b):
    pack = Pack(condition.dtype, condition.width)

    def codegen(context, builder, sig, values):
        x, y = as_packs(context, builder, pack, sig.args[1:], values[1:])
        return builder.select(values[0], x, y)

    return pack(condition, a, b), codegen


@overload(select)
def _overload_select(condition, a, b):
    if isinstance(condition, Mask):
        return lambda condition, a, b: _select_packs(condition, a, b)
    return lambda condition, a, b: a if condition else b


def any_lane(condition):
    """Whether the condition holds in at least one lane."""
    return bool(condition)


@intrinsic
def _any_bit(typing_context, mask):
    def codegen(context, builder, sig, values):
        bits = ir.IntType(sig.args[0].width)
        return builder.icmp_unsigned("!=", builder.bitcast(values[0], bits), ir.Constant(bits, 0))

    return types.boolean(mask), codegen


@overload(any_lane)
def _overload_any_lane(condition):
    if isinstance(condition, Mask):
        return lambda condition: _any_bit(condition)
    return lambda condition: bool(condition)


# --- numbers in the precision of others -------------------------------------------------------------------------------


def constant_like(x, constant):
    """The constant in the precision of `x`, so that float32 stays float32."""
    return constant


@overload(constant_like)
def _overload_constant_like(x, constant):
    if isinstance(x, types.Float):
        return lambda x, constant: type(x)(constant)
    if isinstance(x, types.Array):
        return lambda x, constant: x.dtype.type(constant)
    return lambda x, constant: constant


def epsilon(x):
    """The distance from 1 to the next number, in the precision of `x`."""
    return np.finfo(np.asarray(x).dtype).eps


@overload(epsilon)
def _overload_epsilon(x):
    value = float(np.finfo(np.dtype(str(x.dtype if isinstance(x, (Pack, types.Array)) else x))).eps)
    return lambda x: value


# --- what sincos is made of -------------------------------------------------------------------------------------------


def lanes_in(pack):
    """How many numbers a pack holds."""
    return 1


@overload(lanes_in)
def _overload_lanes_in(pack):
    width = pack.width if isinstance(pack, Pack) else 1
    return lambda pack: width


@intrinsic
def fused(typing_context, a, b, c):
    """a * b + c rounded once, on packs: fused whether or not the optimiser would have done so."""
    pack = _pack_of(a, b, c)

    def codegen(context, builder, sig, values):
        return _vector_intrinsic("fma")(builder, *as_packs(context, builder, pack, sig.args, values))

    return pack(a, b, c), codegen


@intrinsic
def turn_quadrants(typing_context, biased, s, c):
    """Rotate (c, s) by as many right angles as the low bits of `biased` say (a pack to which 1.5 * 2^p was added)."""

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
    """The number of one lane."""

    def codegen(context, builder, sig, values):
        return builder.extract_element(values[0], context.cast(builder, values[1], sig.args[1], types.int32))

    return pack.dtype(pack, lane), codegen


@intrinsic
def set_lane(typing_context, pack, lane, number):
    """The pack with the number of one lane replaced."""

    def codegen(context, builder, sig, values):
        value = context.cast(builder, values[2], sig.args[2], pack.dtype)
        return builder.insert_element(values[0], value, context.cast(builder, values[1], sig.args[1], types.int32))

    return pack(pack, lane, number), codegen
