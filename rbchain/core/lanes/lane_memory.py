"""SIMD values in memory: loads, stores, and copies between the samples of a batch and the lanes of a block."""

import math
import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from ...compiling.jit import overload
from ...compiling.levels import LANE_WIDTHS
from .lanes import Lanes, Pack, as_packs

CACHE_LINE = 64  # bytes
LARGE = 1 << 22  # bytes of a result that would displace most other data from the caches


def lane_width(samples):
    """Return the number of lanes that compute `samples` (samples, m): 1 for a single sample (m,)."""
    return 1 if samples.ndim == 1 else LANE_WIDTHS[str(samples.dtype)]


@overload(lane_width)
def _overload_lane_width(samples):
    width = lane_width(samples)
    return lambda samples: width


def all_lanes(samples):
    """Return the index `k` of all lanes that compute `samples`, (samples, m) or (m,)."""
    return 0


@intrinsic
def _all_lanes(typing_context, array):
    lanes = Lanes(lane_width(array))
    return lanes(array), lambda context, builder, sig, values: context.get_dummy_value()


@overload(all_lanes)
def _overload_all_lanes(samples):
    return lambda samples: _all_lanes(samples)


def _ends_in_lanes(index):
    return isinstance(index, types.BaseTuple) and len(index) > 0 and isinstance(index[-1], Lanes)


def _address(context, builder, array_type, array, index_type, index):
    """Return the address of a SIMD value.

    The last axis has exactly one entry per lane, so that offsets of rows are constants in machine code.
    """
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


def _load(context, builder, sig, values):
    array_type, index_type = sig.args
    pointer = _address(context, builder, array_type, values[0], index_type, values[1])
    vector = context.get_value_type(sig.return_type)
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=array_type.dtype.bitwidth // 8)


def _store(context, builder, sig, values):
    array_type, index_type, value_type = sig.args
    pack = _pack_in(array_type, index_type)
    (stored,) = as_packs(context, builder, pack, [value_type], [values[2]])
    pointer = _address(context, builder, array_type, values[0], index_type, values[1])
    vector = context.get_value_type(pack)
    builder.store(stored, builder.bitcast(pointer, vector.as_pointer()), align=pack.dtype.bitwidth // 8)
    return context.get_dummy_value()


def _access(operation, lower, result_of):
    """Define access to an array whose index ends in lanes. `result_of` returns the type of the result."""

    @infer_global(operation)
    class _Typing(AbstractTemplate):
        def generic(self, operands, keywords):
            array, index, *_ = operands
            if isinstance(array, types.Array) and _ends_in_lanes(index):
                return signature(result_of(array, index), *operands)

        def get_impl_key(self, sig):
            return lower  # because Numba's own implementation accepts all tuples

    lower_builtin(lower, types.Array, types.BaseTuple, types.VarArg(types.Any))(lower)


def _pack_in(array, index):
    return Pack(array.dtype, index[-1].width)


_access(operator.getitem, _load, _pack_in)
_access(operator.setitem, _store, lambda array, index: types.none)


def aligned_start(memory):
    """Return the index of the first number of a flat array (m,) that starts a cache line.

    SIMD values that start there do not straddle two cache lines.
    """
    return 0


@intrinsic
def _aligned_start(typing_context, memory):
    itemsize = memory.dtype.bitwidth // 8

    def codegen(context, builder, sig, values):
        address = builder.ptrtoint(make_array(sig.args[0])(context, builder, values[0]).data, ir.IntType(64))
        remainder = builder.and_(builder.neg(address), ir.Constant(ir.IntType(64), CACHE_LINE - 1))
        return builder.udiv(remainder, ir.Constant(ir.IntType(64), itemsize))

    return types.intp(memory), codegen


@overload(aligned_start)
def _overload_aligned_start(memory):
    return lambda memory: _aligned_start(memory)


def window(memory, start, shape):
    """Return part of a flat array (m,) as an array of `shape`, without a copy. It must not outlive `memory`."""
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
    return result._getvalue()  # noqa: SLF001 - Numba has no public name for it


# --- copies between samples of a batch and lanes ----------------------------------------------------------------------


def gather_square(samples, block, first, column):
    """Copy a square from samples[first :, column :] to block[column :].

    `samples` is (samples, m), and `block` (m, lanes). As many numbers as lanes are copied from each sample. This square
    is transposed in registers.
    """
    for lane in range(block.shape[1]):
        for j in range(column, column + block.shape[1]):
            block[j, lane] = samples[first + lane, j]


def scatter_square(samples, block, first, column):
    """Copy a square from block[column :] to samples[first :, column :]: reverse of `gather_square`.

    `samples` is (samples, m).
    """
    for lane in range(block.shape[1]):
        for j in range(column, column + block.shape[1]):
            samples[first + lane, j] = block[j, lane]


def gather_half_squares(samples, block, first, column):
    """Copy half as many numbers of each sample as `gather_square`, in two squares of half as many lanes.

    `samples` is (samples, m), and `block` (m, lanes).
    """
    for lane in range(block.shape[1]):
        for j in range(column, column + block.shape[1] // 2):
            block[j, lane] = samples[first + lane, j]


def scatter_half_squares(samples, block, first, column):
    """Copy two squares of half as many lanes to the samples: reverse of `gather_half_squares`.

    `samples` is (samples, m), and `block` (m, lanes).
    """
    for lane in range(block.shape[1]):
        for j in range(column, column + block.shape[1] // 2):
            samples[first + lane, j] = block[j, lane]


def stream_square(samples, block, first, column):
    """Copy as `scatter_square`, but past the caches: memory is not read before it is written. Requires `can_stream`.

    `samples` is (samples, m), and `block` (m, lanes).
    """
    scatter_square(samples, block, first, column)


def can_stream(samples, block):
    """Return whether results should be written past the caches: if they are LARGE and aligned to SIMD values.

    `samples` is (samples, m), and `block` (m, lanes).
    """
    return False


def _transposed(builder, vectors):
    """Transpose a square of vectors by exchanging off-diagonal blocks of 1, 2, 4, ... rows."""
    width, distance = len(vectors), 1
    while distance < width:
        low = [i + width - distance if i & distance else i for i in range(width)]
        high = [i + width if i & distance else i + distance for i in range(width)]
        masks = [ir.Constant(ir.VectorType(ir.IntType(32), width), m) for m in (low, high)]
        for i in range(width):
            if not i & distance:
                pair = vectors[i], vectors[i + distance]
                vectors[i], vectors[i + distance] = (builder.shuffle_vector(*pair, mask) for mask in masks)
        distance *= 2
    return vectors


def _square(context, builder, sig, values, parts=1, lane=0):
    """Return the addresses of the rows of a square in `samples` and in `block`.

    The first lane of the square is `lane`; it has all lanes divided by `parts`.
    """
    samples, block = (make_array(sig.args[at])(context, builder, values[at]) for at in range(2))
    first, column = (context.cast(builder, values[at], sig.args[at], types.intp) for at in range(2, 4))
    dtype, number = sig.args[1].dtype, ir.IntType(64)
    width = LANE_WIDTHS[str(dtype)]
    vector = context.get_value_type(Pack(dtype, width // parts))
    stride = cgutils.unpack_tuple(builder, samples.shape)[1]
    in_samples, in_block = [], []
    for i in range(vector.count):
        position = builder.add(builder.mul(builder.add(first, number(lane + i)), stride), column)
        in_samples.append(builder.bitcast(builder.gep(samples.data, [position]), vector.as_pointer()))
        position = builder.add(builder.mul(builder.add(column, number(i)), number(width)), number(lane))
        in_block.append(builder.bitcast(builder.gep(block.data, [position]), vector.as_pointer()))
    return in_samples, in_block


def _copy_square(builder, sig, sources, targets, stream):
    """Load a square, transpose it and store it; `stream` stores past the caches."""
    itemsize = sig.args[1].dtype.bitwidth // 8
    rows = _transposed(builder, [builder.load(source, align=itemsize) for source in sources])
    for row, target in zip(rows, targets, strict=True):
        store = builder.store(row, target, align=itemsize * len(rows) if stream else itemsize)
        if stream:
            store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))


def _copy_squares(to_block, parts=1, stream=False):
    """Return the intrinsic that copies a square, or `parts` smaller ones, to the block or to the samples."""

    @intrinsic
    def copy_squares(typing_context, samples, block, first, column):
        def codegen(context, builder, sig, values):
            width = LANE_WIDTHS[str(sig.args[1].dtype)]
            for lane in range(0, width, width // parts):
                in_samples, in_block = _square(context, builder, sig, values, parts, lane)
                sources, targets = (in_samples, in_block) if to_block else (in_block, in_samples)
                _copy_square(builder, sig, sources, targets, stream)
            return context.get_dummy_value()

        return types.none(samples, block, first, column), codegen

    return copy_squares


@intrinsic
def _is_aligned_to_packs(typing_context, samples, width):
    """Return whether the first number of every sample is aligned to the size of a SIMD value."""

    def codegen(context, builder, sig, values):
        samples = make_array(sig.args[0])(context, builder, values[0])
        stride = cgutils.unpack_tuple(builder, samples.strides)[0]
        address = builder.ptrtoint(samples.data, ir.IntType(64))
        size = builder.mul(context.cast(builder, values[1], sig.args[1], types.intp), samples.itemsize)
        remainder = builder.and_(builder.or_(address, stride), builder.sub(size, ir.Constant(ir.IntType(64), 1)))
        return builder.icmp_unsigned("==", remainder, ir.Constant(ir.IntType(64), 0))

    return types.boolean(samples, width), codegen


def _can_copy_squares(samples, block):
    """Return whether squares can be copied by vectors: both arrays are contiguous and of one precision."""
    return samples.ndim == 2 and samples.layout == block.layout == "C" and samples.dtype == block.dtype


def _overload_with(function, copy_squares):
    """Use the intrinsic `copy_squares` for `function` if the arrays allow it, else its Python source."""

    def implementation(samples, block, first, column):
        if _can_copy_squares(samples, block):
            return lambda samples, block, first, column: copy_squares(samples, block, first, column)
        return function

    overload(function)(implementation)


_overload_with(gather_square, _copy_squares(to_block=True))
_overload_with(gather_half_squares, _copy_squares(to_block=True, parts=2))
_overload_with(scatter_square, _copy_squares(to_block=False))
_overload_with(scatter_half_squares, _copy_squares(to_block=False, parts=2))
_overload_with(stream_square, _copy_squares(to_block=False, stream=True))


@overload(can_stream)
def _overload_can_stream(samples, block):
    if not _can_copy_squares(samples, block):
        return lambda samples, block: False
    large = LARGE // (samples.dtype.bitwidth // 8)
    return lambda samples, block: samples.size >= large and _is_aligned_to_packs(samples, block.shape[1])
