"""Fields of NumPy's arrays in memory, and a function of NumPy's C API, for machine code that reads and makes arrays.

`PyArrayObject_fields` and `PyArray_Descr` in ndarraytypes.h declare the fields. They and the functions of the C API are
part of NumPy's binary interface.
"""

import ctypes

import llvmlite.binding as llvm
import numpy as np

# Bytes from the start of an object to its fields.
OBJECT_TYPE = 8
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_DESCR, ARRAY_FLAGS = 16, 24, 32, 56, 64
DESCR_BYTE_ORDER, DESCR_NUMBER = 26, 28
#: NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED.
READABLE = 0x0001 | 0x0100
#: NPY_OPPBYTE on the processors of `levels.LEVELS`, which are little-endian.
OPPOSITE_BYTE_ORDER = ord(">")
#: The index of PyArray_NewLikeArray in NumPy's table of functions, and its argument NPY_CORDER.
NEW_LIKE_ARRAY, C_ORDER = 277, 0
#: The names by which machine code refers to the type of arrays and to that function.
ARRAY_TYPE, NEW_ARRAY = "rbchain_numpy_ndarray", "rbchain_numpy_new_like_array"

_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _address_of_new_like_array():
    """Return the address of PyArray_NewLikeArray, as C programs find it."""
    core = np._core if hasattr(np, "_core") else np.core  # noqa: SLF001 - the place that NumPy's header files name
    table = _capsule_pointer(core._multiarray_umath._ARRAY_API, None)  # noqa: SLF001
    return ctypes.c_void_p.from_address(table + NEW_LIKE_ARRAY * ctypes.sizeof(ctypes.c_void_p)).value


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


#: Whether the fields are where this module expects them. If not, Python checks the arrays of all calls.
ARE_KNOWN = _has_known_fields()
if ARE_KNOWN:
    llvm.add_symbol(ARRAY_TYPE, id(np.ndarray))
    llvm.add_symbol(NEW_ARRAY, _address_of_new_like_array())
