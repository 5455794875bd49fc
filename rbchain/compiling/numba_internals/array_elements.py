"""Elements of arrays and loops over ranges, with fewer LLVM instructions than Numba writes.

Numba copies an array's fields to the stack to read or write an element, and divides by the step of each range. LLVM
removes these instructions again, but writing and removing them takes a tenth of the time of a compilation.
"""

from llvmlite.ir import Constant, Undefined, instructions
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import load_item, store_item

NUMBA_NAMES = {
    "llvmlite.ir.instructions.InsertValue": ("indices", "operands"),
    "numba.core.base.BaseContext": (
        *("cast(self, builder, val, fromty, toty)", "data_model_manager", "enable_boundscheck"),
        "get_value_type(self, ty)",
    ),
    "numba.core.cgutils": ("alloca_once_value(builder, value, name, zfill)",),
    "numba.core.datamodel.models.StructModel": ("get_field_position(self, field)",),
    "numba.core.types.RangeIteratorType": ("yield_type",),
    "numba.np.arrayobj": (
        "load_item(context, builder, arrayty, ptr)",
        "store_item(context, builder, arrayty, val, ptr)",
    ),
}


def is_element(context, kind, index):
    """Return whether an index of this type selects an element of a contiguous array of type `kind`."""
    is_contiguous = type(kind) is types.Array and kind.layout == "C" and not context.enable_boundscheck
    return (
        is_contiguous and len(axes := _axes(index)) == kind.ndim and all(type(axis) is types.Integer for axis in axes)
    )


def load_element(context, builder, kind, array, index_type, index):
    """Write code that reads an element of an array."""
    return load_item(context, builder, kind, _address(context, builder, kind, array, index_type, index))


def store_element(context, builder, kind, array, index_type, index, value):
    """Write code that sets an element of an array."""
    store_item(context, builder, kind, value, _address(context, builder, kind, array, index_type, index))


def _axes(index):
    """Return the types of an index, one for each axis."""
    return index.types if isinstance(index, types.BaseTuple) else (index,)


def _entry(builder, values, i):
    """Return an entry of a tuple, without an instruction if the tuple has just been made."""
    while isinstance(values, instructions.InsertValue):
        if tuple(values.indices) == (i,):
            return values.operands[1]
        values = values.operands[0]
    return builder.extract_value(values, i)


def _address(context, builder, kind, array, index_type, index):
    """Write code that computes the address of an element, by Numba's formula."""
    model = context.data_model_manager[kind]
    data = builder.extract_value(array, model.get_field_position("data"))
    shape = model.get_field_position("shape")
    extents = [builder.extract_value(array, (shape, axis)) for axis in range(kind.ndim)]
    is_tuple = isinstance(index_type, types.BaseTuple)
    offset = None
    for axis, index_of_axis in enumerate(_axes(index_type)):
        entry = _entry(builder, index, axis) if is_tuple else index
        term = _from_start(context, builder, index_of_axis, entry, extents[axis])
        stride = None
        for extent in extents[axis + 1 :]:
            stride = extent if stride is None else builder.mul(stride, extent)
        term = term if stride is None else builder.mul(term, stride)
        offset = term if offset is None else builder.add(offset, term)
    return builder.gep(data, [offset])


def _from_start(context, builder, kind, index, extent):
    """Write code that counts an index from the start of an axis, also if it is negative."""
    if not kind.signed:
        return context.cast(builder, index, kind, types.uintp)
    index = context.cast(builder, index, kind, types.intp)
    if isinstance(index, Constant) and isinstance(index.constant, int) and index.constant >= 0:
        return index
    is_negative = builder.icmp_signed("<", index, index.type(0))
    return builder.select(is_negative, builder.add(extent, index), index)


def start_range(context, builder, kind, values):
    """Write code that begins a loop over a range with step 1. Return the iterator."""
    start, stop, step = (builder.extract_value(values, i) for i in range(3))
    difference = builder.sub(stop, start)
    zero = difference.type(0)
    count = builder.select(builder.icmp_signed(">", difference, zero), difference, zero)
    fields = cgutils.alloca_once_value(builder, start), stop, step, cgutils.alloca_once_value(builder, count)
    return _struct(context, builder, kind, fields)


def next_of_range(context, builder, kind, iterator):
    """Write code that returns the next number of a range, and whether there is one."""
    number_address, step, count_address = (builder.extract_value(iterator, i) for i in (0, 2, 3))
    count, number = builder.load(count_address), builder.load(number_address)
    builder.store(builder.sub(count, count.type(1), flags=["nsw"]), count_address)
    builder.store(builder.add(number, step), number_address)
    return _struct(context, builder, kind, (number, builder.icmp_signed(">", count, count.type(0))))


def _struct(context, builder, kind, fields):
    struct = Constant(context.get_value_type(kind), Undefined)
    for i, field in enumerate(fields):
        struct = builder.insert_value(struct, field, i)
    return struct
