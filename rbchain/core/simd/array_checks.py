"""Calls of machine code that check their arrays themselves: type, precision, number of axes and layout in memory.

Numba's own code for a call from Python trusts its dispatcher to have looked at the types of the arguments, which takes
longer than the dynamics of a few bodies. The checks here take a few instructions, so that the dispatcher can be
bypassed. They read the fields of NumPy's arrays (`PyArrayObject_fields` and `PyArray_Descr` in ndarraytypes.h), which
are part of NumPy's binary interface.
"""

import contextlib
import ctypes

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.pythonapi import NativeValue, PythonAPI
from numba.np.arrayobj import make_array, populate_array

# Bytes from the start of an object to its fields.
OBJECT_TYPE = 8
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_DESCR, ARRAY_FLAGS = 16, 24, 32, 56, 64
DESCR_BYTE_ORDER, DESCR_NUMBER = 26, 28
#: NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED and NPY_ARRAY_WRITEABLE.
CARRAY = 0x0001 | 0x0100 | 0x0400
#: NPY_OPPBYTE on the processors of `levels.LEVELS`, which are little-endian.
OPPOSITE_BYTE_ORDER = ord(">")
#: The name by which machine code refers to the type of arrays.
ARRAY_TYPE = "rbchain_numpy_ndarray"
llvm.add_symbol(ARRAY_TYPE, id(np.ndarray))


def _has_known_fields():
    """Return whether the fields of an array are where this module reads them."""
    array = np.zeros((2, 3))
    address = id(array)

    def field(kind, offset, start=address):
        return kind.from_address(start + offset).value

    pointer, integer = ctypes.c_void_p, ctypes.c_int
    if array.__sizeof__() < ARRAY_FLAGS + 4 or field(pointer, OBJECT_TYPE) != id(np.ndarray):
        return False
    dtype = array.dtype
    return (
        field(pointer, ARRAY_DATA) == array.ctypes.data
        and field(integer, ARRAY_NDIM) == 2
        and (ctypes.c_ssize_t * 2).from_address(field(pointer, ARRAY_SHAPE))[:] == [2, 3]
        and field(pointer, ARRAY_DESCR) == id(dtype)
        and field(integer, ARRAY_FLAGS) == array.flags.num
        and field(ctypes.c_char, DESCR_BYTE_ORDER, id(dtype)) == dtype.byteorder.encode()
        and field(integer, DESCR_NUMBER, id(dtype)) == dtype.num
    )


#: Whether calls check their arrays themselves; not for a Python or NumPy with other fields.
CAN_CHECK = _has_known_fields()


def _is_checked(numba_type):
    return (
        type(numba_type) is types.Array
        and numba_type.dtype in (types.float64, types.float32)
        and (numba_type.layout, numba_type.mutable, numba_type.aligned) == ("C", True, True)
    )


class _CheckingAPI(PythonAPI):
    """Numba's conversions between Python and machine code, in which arrays of real numbers are checked."""

    def to_native_value(self, typ, obj):
        """As in Numba: write the code that converts an argument."""
        return self._checked_array(typ, obj) if _is_checked(typ) else super().to_native_value(typ, obj)

    def _checked_array(self, typ, obj):
        """Write code that raises a TypeError for everything but a NumPy array of this type, and not for a subclass."""
        builder = self.builder
        array_type = self.get_c_object(ARRAY_TYPE)
        is_valid = cgutils.alloca_once_value(builder, cgutils.false_bit)
        array = make_array(typ)(self.context, builder)
        is_array = builder.icmp_unsigned("==", self._field(obj, OBJECT_TYPE, array_type.type), array_type)
        with builder.if_then(is_array, likely=True):
            descr = self._field(obj, ARRAY_DESCR, self.voidptr)
            order, number = self._field(descr, DESCR_BYTE_ORDER, ir.IntType(8)), self._field(descr, DESCR_NUMBER)
            flags = builder.and_(self._field(obj, ARRAY_FLAGS), ir.Constant(ir.IntType(32), CARRAY))
            fits = cgutils.true_bit
            for found, sign, expected in (
                (self._field(obj, ARRAY_NDIM), "==", typ.ndim),
                (number, "==", np.dtype(str(typ.dtype)).num),
                (order, "!=", OPPOSITE_BYTE_ORDER),
                (flags, "==", CARRAY),
            ):
                fits = builder.and_(fits, builder.icmp_unsigned(sign, found, ir.Constant(found.type, expected)))
            with builder.if_then(fits, likely=True):
                self._fill(array, typ, obj)
                builder.store(cgutils.true_bit, is_valid)
        failed = builder.not_(builder.load(is_valid))
        with builder.if_then(failed, likely=False):
            self.err_set_string("PyExc_TypeError", f"expected a C-contiguous array of {typ.dtype}, {typ.ndim} axes")
        return NativeValue(array._getvalue(), is_error=failed)  # noqa: SLF001 - Numba has no public name for it

    def _fill(self, array, typ, obj):
        """Write code that copies the fields of a valid array."""
        builder, number = self.builder, ir.IntType(64)
        first = self._field(obj, ARRAY_SHAPE, number.as_pointer())
        shape = [builder.load(builder.gep(first, [number(axis)])) for axis in range(typ.ndim)]
        itemsize = typ.dtype.bitwidth // 8
        strides = [number(itemsize)]
        for extent in shape[:0:-1]:  # those of NumPy are undefined for axes with one entry
            strides.insert(0, builder.mul(strides[0], extent))
        data = self._field(obj, ARRAY_DATA, array.data.type)
        populate_array(array, data, shape, strides, itemsize, None, obj)

    def _field(self, obj, offset, kind=ir.IntType(32)):  # noqa: B008 - a type, which nothing changes
        """Write code that reads a field of an object."""
        address = self.builder.gep(self.builder.bitcast(obj, self.voidptr), [ir.Constant(ir.IntType(64), offset)])
        return self.builder.load(self.builder.bitcast(address, kind.as_pointer()))


@contextlib.contextmanager
def checking_arrays(target_context):
    """Within this, Numba generates calls from Python that check their arrays, if it can be done."""
    if not CAN_CHECK:
        yield
        return
    target_context.get_python_api = lambda builder: _CheckingAPI(target_context, builder)
    try:
        yield
    finally:
        del target_context.get_python_api
