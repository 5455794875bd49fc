"""Lanes in memory: the index of all lanes, loads and stores of packs, and windows on a driver's memory."""

import math
import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array, populate_array

from .lanes import LANE_WIDTHS, Lanes, Pack, as_packs

CACHE_LINE = 64  # bytes


def lane_width(chains):
    """How many lanes to compute `chains` in: a register full for a batch (chains, m), one for a single chain (m,)."""
    return 1 if chains.ndim == 1 else LANE_WIDTHS[str(chains.dtype)]


@overload(lane_width)
def _overload_lane_width(chains):
    width = lane_width(chains)
    return lambda chains: width


def all_lanes(chains):
    """The index of all the lanes that `chains` are computed in."""
    return 0


@intrinsic
def _all_lanes(typing_context, array):
    lanes = Lanes(lane_width(array))
    return lanes(array), lambda context, builder, sig, values: context.get_dummy_value()


@overload(all_lanes)
def _overload_all_lanes(chains):
    return lambda chains: _all_lanes(chains)


def _ends_in_lanes(index):
    return isinstance(index, types.BaseTuple) and len(index) > 0 and isinstance(index[-1], Lanes)


def _address(context, builder, array_type, array, index_type, index):
    """Where a pack lies: the last axis has exactly one entry per lane, so that field offsets are constants."""
    if array_type.layout != "C":
        raise TypeError(f"an array indexed by lanes must be C-contiguous, not {array_type}")
    structure = make_array(array_type)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, structure.shape)
    position = ir.Constant(ir.IntType(64), 0)
    entries = cgutils.unpack_tuple(builder, index)[:-1]
    for extent, kind, entry in zip(shape, index_type, entries, strict=False):
        number = context.cast(builder, entry, kind, types.intp)
        position = builder.add(builder.mul(position, extent), number)
    position = builder.mul(position, ir.Constant(ir.IntType(64), index_type[-1].width))
    return builder.gep(structure.data, [position])


@intrinsic
def _load(typing_context, array, index):
    pack = Pack(array.dtype, index[-1].width)

    def codegen(context, builder, sig, values):
        pointer = _address(context, builder, sig.args[0], values[0], sig.args[1], values[1])
        vector = context.get_value_type(pack)
        return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=pack.dtype.bitwidth // 8)

    return pack(array, index), codegen


@intrinsic
def _store(typing_context, array, index, value):
    pack = Pack(array.dtype, index[-1].width)

    def codegen(context, builder, sig, values):
        array_type, index_type, value_type = sig.args
        (stored,) = as_packs(context, builder, pack, [value_type], [values[2]])
        pointer = _address(context, builder, array_type, values[0], index_type, values[1])
        vector = context.get_value_type(pack)
        builder.store(stored, builder.bitcast(pointer, vector.as_pointer()), align=pack.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, index, value), codegen


@overload(operator.getitem)
def _overload_getitem(array, index):
    if isinstance(array, types.Array) and _ends_in_lanes(index):
        return lambda array, index: _load(array, index)


@overload(operator.setitem)
def _overload_setitem(array, index, value):
    if isinstance(array, types.Array) and _ends_in_lanes(index):
        return lambda array, index, value: _store(array, index, value)


def aligned_start(memory):
    """Index of the first number of a flat array that begins a cache line, so that no pack need straddle two."""
    return 0


@intrinsic
def _aligned_start(typing_context, memory):
    itemsize = memory.dtype.bitwidth // 8

    def codegen(context, builder, sig, values):
        address = builder.ptrtoint(make_array(sig.args[0])(context, builder, values[0]).data, ir.IntType(64))
        beyond = builder.and_(builder.neg(address), ir.Constant(ir.IntType(64), CACHE_LINE - 1))
        return builder.udiv(beyond, ir.Constant(ir.IntType(64), itemsize))

    return types.intp(memory), codegen


@overload(aligned_start)
def _overload_aligned_start(memory):
    return lambda memory: _aligned_start(memory)


def window(memory, start, shape):
    """Part of a flat array as an array of `shape`, which lives as long as `memory` does."""
    return memory[start : start + math.prod(shape)].reshape(shape)


@infer_global(window)
class _WindowTyping(AbstractTemplate):
    def generic(self, operands, keywords):
        memory, _, shape = operands
        return signature(types.Array(memory.dtype, len(shape), "C"), *operands)


@lower_builtin(window, types.Array, types.Integer, types.BaseTuple)
def _lower_window(context, builder, sig, values):
    memory_type, start_type, shape_type = sig.args
    data = make_array(memory_type)(context, builder, values[0]).data
    offset = context.cast(builder, values[1], start_type, types.intp)
    extents = [
        context.cast(builder, extent, kind, types.intp)
        for kind, extent in zip(shape_type, cgutils.unpack_tuple(builder, values[2]), strict=True)
    ]
    itemsize = context.get_constant(types.intp, memory_type.dtype.bitwidth // 8)
    strides = [itemsize]
    for extent in extents[:0:-1]:
        strides.insert(0, builder.mul(strides[0], extent))
    result = make_array(sig.return_type)(context, builder)
    populate_array(result, builder.gep(data, [offset]), extents, strides, itemsize, None)
    return result._getvalue()
