"""SIMD values: Numba types for one value of each sample of a block, in a SIMD register.

The last axis of an array has one entry per lane. Indexed `a[i, k]` with `k` of type `Lanes`, the array yields a `Pack`.
With an integer `k`, the same source computes a single number. Arithmetic is IEEE in each lane, and no lane affects
another. All code that writes LLVM instructions is in this module, in `lane_numbers` and in `lane_memory`.

The overloads here are not declared `inline="always"`. That option starts Numba's dead-code elimination, which removes
stores to arrays that are fields of a tuple (`work.dof[i, row, k] = x`). LLVM inlines the overloads in any case.
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

from ...compiling.jit import overload

CONTRACT = ("contract",)  # allows LLVM to fuse a * b + c, as `jit.OPTIONS` does for single numbers


class Pack(types.Type):
    """Numba type of a SIMD value: one value of `dtype` for each lane, in a vector register."""

    def __init__(self, dtype, width):
        self.dtype, self.width = dtype, width
        super().__init__(name=f"Pack({dtype}, {width})")


class Mask(types.Type):
    """Numba type of one truth value for each lane, the result of a comparison of SIMD values of `dtype`."""

    def __init__(self, dtype, width):
        self.dtype, self.width = dtype, width
        super().__init__(name=f"Mask({dtype}, {width})")


class Lanes(types.Type):
    """Numba type of the index of all lanes. It has no value at run time, because the width is part of the type."""

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
    """Broadcast a number to all lanes."""
    number = context.cast(builder, value, from_type, pack.dtype)
    vector = context.get_value_type(pack)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), pack.width), None))


def pack_of(*operands):
    """Return the type of an operation on SIMD values and numbers of these types, or None for other operands."""
    packs = [t for t in operands if isinstance(t, Pack)]
    if packs and all(t == packs[0] or isinstance(t, types.Number) for t in operands):
        return packs[0]
    return None


def as_packs(context, builder, pack, operand_types, values):
    """Return the operands as vectors of the type `pack`: numbers are broadcast to all lanes."""
    return [
        value if isinstance(t, Pack) else _splat(context, builder, value, t, pack)
        for t, value in zip(operand_types, values, strict=True)
    ]


def _operator(function, emit, masks=False):
    """Define a function of two SIMD values, or of one and a number; `emit(builder, x, y)` writes its instruction."""

    @infer_global(function)
    class _Typing(AbstractTemplate):
        def generic(self, operands, keywords):
            if len(operands) == 2 and (pack := pack_of(*operands)):
                return signature(Mask(pack.dtype, pack.width) if masks else pack, *operands)

    def lower(context, builder, sig, values):
        return emit(builder, *as_packs(context, builder, pack_of(*sig.args), sig.args, values))

    for left, right in ((Pack, Pack), (Pack, types.Number), (types.Number, Pack)):
        lower_builtin(function, left, right)(lower)


_operator(operator.add, lambda b, x, y: b.fadd(x, y, flags=CONTRACT))
_operator(operator.sub, lambda b, x, y: b.fsub(x, y, flags=CONTRACT))
_operator(operator.mul, lambda b, x, y: b.fmul(x, y, flags=CONTRACT))
_operator(operator.truediv, lambda b, x, y: b.fdiv(x, y, flags=CONTRACT))
# As in Python, the result is the second operand only if it is strictly smaller (larger) than the first.
_operator(min, lambda b, x, y: b.select(b.fcmp_ordered("<", y, x), y, x))
_operator(max, lambda b, x, y: b.select(b.fcmp_ordered(">", y, x), y, x))
_operator(operator.eq, lambda b, x, y: b.fcmp_ordered("==", x, y), masks=True)
_operator(operator.ne, lambda b, x, y: b.fcmp_unordered("!=", x, y), masks=True)
for _comparison, _sign in ((operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">=")):
    _operator(_comparison, lambda b, x, y, sign=_sign: b.fcmp_ordered(sign, x, y), masks=True)


def _function(function, accepts, emit):
    """Define a function of one value whose result has the same type. `accepts` is a class of types, or several."""

    @infer_global(function)
    class _Typing(AbstractTemplate):
        def generic(self, operands, keywords):
            if len(operands) == 1 and isinstance(operands[0], accepts):
                return signature(operands[0], operands[0])

    def lower(context, builder, sig, values):
        return emit(builder, values[0])

    for accepted in accepts if isinstance(accepts, tuple) else (accepts,):
        lower_builtin(function, accepted)(lower)


def vector_intrinsic(name):
    """Return a function that calls the LLVM intrinsic of this name on vectors."""

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
_function(abs, Pack, vector_intrinsic("fabs"))
_function(math.sqrt, Pack, vector_intrinsic("sqrt"))
_operator(math.copysign, vector_intrinsic("copysign"))
_function(operator.invert, Mask, lambda b, x: b.not_(x))


def _mask_operator(function, name):
    """Define a function of two masks; `name` is the method of the builder that writes its instruction."""

    @infer_global(function)
    class _Typing(AbstractTemplate):
        def generic(self, operands, keywords):
            if all(isinstance(t, Mask) and t.width == operands[0].width for t in operands):
                return signature(operands[0], *operands)

    @lower_builtin(function, Mask, Mask)
    def lower(context, builder, sig, values):
        return getattr(builder, name)(*values)


_mask_operator(operator.and_, "and_")
_mask_operator(operator.or_, "or_")


# --- selection by lane ------------------------------------------------------------------------------------------------


def select(condition, a, b):
    """Return `a` in lanes in which the condition is true, else `b`."""
    return a if condition else b


@intrinsic
def _select_packs(typing_context, condition, a, b):
    pack = pack_of(a, b) or Pack(condition.dtype, condition.width)

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
    """Return whether the condition is true in at least one lane."""
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


# --- precision --------------------------------------------------------------------------------------------------------


@intrinsic
def _in_precision_of(typing_context, x, pack):
    """Return a SIMD value in the precision of `x`, a SIMD value or an array."""

    def codegen(context, builder, sig, values):
        vector = context.get_value_type(sig.return_type)
        if sig.return_type == sig.args[1]:
            return values[1]
        return (builder.fpext if x.dtype == types.float64 else builder.fptrunc)(values[1], vector)

    return Pack(x.dtype, pack.width)(x, pack), codegen


@infer_global(float)
class _FloatTyping(AbstractTemplate):
    """As for numbers, `float` converts SIMD values to float64."""

    def generic(self, operands, keywords):
        if len(operands) == 1 and isinstance(operands[0], Pack):
            return signature(Pack(types.float64, operands[0].width), *operands)


@lower_builtin(float, Pack)
def _lower_float(context, builder, sig, values):
    same = sig.return_type == sig.args[0]
    return values[0] if same else builder.fpext(values[0], context.get_value_type(sig.return_type))


def constant_like(x, constant):
    """Return the constant in the precision of `x`, because a float64 constant would promote float32 numbers."""
    return constant


@overload(constant_like)
def _overload_constant_like(x, constant):
    if isinstance(constant, Pack):
        return lambda x, constant: _in_precision_of(x, constant)
    if isinstance(x, types.Float):
        return lambda x, constant: type(x)(constant)
    if isinstance(x, types.Array):
        return lambda x, constant: x.dtype.type(constant)
    return lambda x, constant: constant


def full_like(x, value):
    """Return a number with this value of the type of `x`: in all lanes if `x` is a SIMD value.

    A variable that is a SIMD value later needs a SIMD value at its start, where `constant_like` returns a number.
    """
    return x.dtype.type(value) if isinstance(x, np.generic) else value


@intrinsic
def _full_pack(typing_context, x, value):
    def codegen(context, builder, sig, values):
        return _splat(context, builder, values[1], sig.args[1], sig.return_type)

    return x(x, value), codegen


@overload(full_like)
def _overload_full_like(x, value):
    if isinstance(x, Pack):
        return lambda x, value: _full_pack(x, value)
    return lambda x, value: type(x)(value)


def zeros_like(x):
    """Return zero of the type of `x`, even where `x` is not finite: in all lanes if `x` is a SIMD value."""
    return full_like(x, 0.0)


def nan_unless_finite(x):
    """Return x - x: zero where `x` is finite, else NaN. Added to a result, it lets a failed lane remain NaN."""
    return x - x


_function(zeros_like, (Pack, types.Float), lambda b, x: ir.Constant(x.type, None))
# The difference must not be fused with a product x: fma(a, b, -(a * b)) is the round-off of a * b, not zero. Numba adds
# "contract" to instructions without flags. "arcp" prevents that, and has no effect, because it concerns divisions.
_function(nan_unless_finite, (Pack, types.Float), lambda b, x: b.fsub(x, x, flags=("arcp",)))


def floor(x):
    """Return the largest whole number that is not above `x`, as a float. NaN stays NaN."""
    return np.floor(x)


@intrinsic
def _floor_of_pack(typing_context, x):
    return x(x), lambda context, builder, sig, values: vector_intrinsic("floor")(builder, *values)


@overload(floor)
def _overload_floor(x):
    if isinstance(x, Pack):
        return lambda x: _floor_of_pack(x)
    return lambda x: np.floor(x)


def epsilon(x):
    """Return the distance from 1 to the next larger number, in the precision of `x`."""
    return np.finfo(np.asarray(x).dtype).eps


@overload(epsilon)
def _overload_epsilon(x):
    value = float(np.finfo(np.dtype(str(x.dtype if isinstance(x, (Pack, types.Array)) else x))).eps)
    return lambda x: value
