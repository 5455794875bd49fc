"""Calls of drivers for a single state: compiled code checks the arrays of the state and allocates the result.

Numba's dispatcher looks at the types of all arguments of a call, and Python at the shapes and values of the state. Both
take longer than the dynamics of a few bodies. The code here does all of it in a few instructions. It reads the fields
of NumPy's arrays (`PyArrayObject_fields` and `PyArray_Descr` in ndarraytypes.h) and calls a function of NumPy's C API.
Both are part of NumPy's binary interface.
"""

import contextlib
import ctypes

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array, populate_array

#: `first` of a driver's call whose single state has not been checked. A single state has no index, so that the driver
#: computes it for the samples [UNCHECKED, UNCHECKED + 1) as for [0, 1).
UNCHECKED = -1
#: Arguments of drivers that are the same in each call for a model; those behind the states are the result and samples.
OF_THE_MODEL = ("memory", "topology", "parameters", "variation", "wrenches")
RESULT, FIRST, LAST = -3, -2, -1

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
#: What the name of the function that Python calls starts with.
PREFIX = "direct."
METH_FASTCALL = 0x0080


class _MethodDefinition(ctypes.Structure):
    """PyMethodDef of Python's C API."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
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


#: Whether direct calls work with this Python and NumPy. If the fields differ, all calls are checked in Python.
ARE_POSSIBLE = _has_known_fields()
if ARE_POSSIBLE:
    llvm.add_symbol(ARRAY_TYPE, id(np.ndarray))
    llvm.add_symbol(NEW_ARRAY, _address_of_new_like_array())


def _is_direct(described):
    """Return whether a compiled function computes a single state of float64 with the parameters of all samples."""
    names, kinds = described.args, described.argtypes
    if names[:4] != OF_THE_MODEL[:4] or not isinstance(kinds[3], types.NoneType):
        return False
    numbers = [kind for kind, name in zip(kinds, names, strict=True) if name not in OF_THE_MODEL][:FIRST]
    return all(type(kind) is types.Array and kind.ndim == 1 and kind.dtype == types.float64 for kind in numbers)


class _DirectCall:
    """Writes the function that Python calls: `function(self, arguments, count)`, of type METH_FASTCALL.

    The caller passes the arguments of the driver that are not `OF_THE_MODEL`, without the result and the samples. The
    function returns the result. It returns None if an argument is not an array of the right type, or if the driver has
    not computed the state. It keeps the global interpreter lock, so that no two calls use the same memory at a time.

    `self` is a tuple: the driver's arguments, where those of the model are needed, then an array like the result with
    one axis, and one with the axes of the result.
    """

    def __init__(self, context, module, described):
        self.context, self.described = context, described
        pointer, number = context.get_argument_type(types.pyobject), ir.IntType(64)
        kind = ir.FunctionType(pointer, [pointer, pointer, number])
        function = ir.Function(module, kind, name=PREFIX + described.llvm_func_name)
        self.builder = ir.IRBuilder(function.append_basic_block())
        self.api = context.get_python_api(self.builder)
        self.module, (self.itself, self.arguments, self.count) = module, function.args

    def write(self):
        """Write the function."""
        builder, described = self.builder, self.described
        names, kinds = described.args, described.argtypes
        passed = [i for i, name in enumerate(names[:RESULT]) if name not in OF_THE_MODEL]
        self._return_none_unless(builder.icmp_unsigned("==", self.count, ir.Constant(self.count.type, len(passed))))
        natives = [self._of_model(i) if name in OF_THE_MODEL else None for i, name in enumerate(names)]
        for place, i in enumerate(passed):
            natives[i] = self._of_state(place, kinds[i])
        result, natives[RESULT] = self._new_result(kinds[RESULT])
        for which, first in ((FIRST, UNCHECKED), (LAST, UNCHECKED + 1)):
            natives[which] = self.context.get_constant(kinds[which], first)
        driver = ir.Function(
            self.module,
            self.context.call_conv.get_function_type(described.restype, kinds),
            described.llvm_func_name,
        )
        status, is_computed = self.context.call_conv.call_function(builder, driver, described.restype, kinds, natives)
        with builder.if_then(builder.not_(builder.and_(status.is_ok, is_computed)), likely=False):
            self.api.decref(result)
            self.api.return_none()
        builder.ret(result)

    def _of_model(self, i):
        """Write code that reads an argument of the model."""
        kind = self.described.argtypes[i]
        if isinstance(kind, types.NoneType):
            return self.context.get_dummy_value()
        return self._array(kind, self.api.tuple_getitem(self.itself, i))

    def _of_state(self, place, kind):
        """Write code that reads an array of the state.

        It returns None for everything but a NumPy array of this type, also for an array of a subclass.
        """
        builder = self.builder
        obj = builder.load(builder.gep(self._as(self.arguments, self.api.pyobj.as_pointer()), [ir.IntType(64)(place)]))
        array_type = self.api.get_c_object(ARRAY_TYPE)
        self._return_none_unless(
            builder.icmp_unsigned("==", self._field(obj, OBJECT_TYPE, array_type.type), array_type)
        )
        descr = self._field(obj, ARRAY_DESCR, self.api.voidptr)
        order, number = self._field(descr, DESCR_BYTE_ORDER, ir.IntType(8)), self._field(descr, DESCR_NUMBER)
        flags = builder.and_(self._field(obj, ARRAY_FLAGS), ir.Constant(ir.IntType(32), READABLE))
        fits = cgutils.true_bit
        for found, sign, expected in (
            (self._field(obj, ARRAY_NDIM), "==", kind.ndim),
            (number, "==", np.dtype(str(kind.dtype)).num),
            (order, "!=", OPPOSITE_BYTE_ORDER),
            (flags, "==", READABLE),
        ):
            fits = builder.and_(fits, builder.icmp_unsigned(sign, found, ir.Constant(found.type, expected)))
        self._return_none_unless(fits)
        return self._array(kind, obj)

    def _new_result(self, kind):
        """Write code that allocates the result. Return the object, and its numbers as the driver takes them."""
        api, builder, integer = self.api, self.builder, ir.IntType(32)
        numbers, template = (api.tuple_getitem(self.itself, len(self.described.args) + i) for i in range(2))
        function = ir.FunctionType(api.pyobj, [api.pyobj, integer, api.voidptr, integer])
        new_array = cgutils.get_or_insert_function(self.module, function, NEW_ARRAY)
        no_type = cgutils.get_null_value(api.voidptr)
        result = builder.call(new_array, [template, integer(C_ORDER), no_type, integer(0)])
        with builder.if_then(cgutils.is_null(builder, result), likely=False):
            builder.ret(api.get_null_object())
        return result, self._array(kind, numbers, result)

    def _array(self, kind, obj, owner=None):
        """Write code that copies the fields of an array of this type, with the numbers of `owner` if given."""
        builder, number = self.builder, ir.IntType(64)
        array = make_array(kind)(self.context, builder)
        first = self._field(obj, ARRAY_SHAPE, number.as_pointer())
        shape = [builder.load(builder.gep(first, [number(axis)])) for axis in range(kind.ndim)]
        itemsize = kind.dtype.bitwidth // 8
        strides = [number(itemsize)]
        for extent in shape[:0:-1]:  # those of NumPy are undefined for axes with one entry
            strides.insert(0, builder.mul(strides[0], extent))
        data = self._field(obj if owner is None else owner, ARRAY_DATA, array.data.type)
        populate_array(array, data, shape, strides, itemsize, None, obj)
        return array._getvalue()  # noqa: SLF001 - Numba has no public name for it

    def _field(self, obj, offset, kind=ir.IntType(32)):  # noqa: B008 - a type, which nothing changes
        """Write code that reads a field of an object."""
        address = self.builder.gep(self._as(obj, self.api.voidptr), [ir.Constant(ir.IntType(64), offset)])
        return self.builder.load(self._as(address, kind.as_pointer()))

    def _as(self, pointer, kind):
        return self.builder.bitcast(pointer, kind)

    def _return_none_unless(self, condition):
        with self.builder.if_then(self.builder.not_(condition), likely=False):
            self.api.return_none()


@contextlib.contextmanager
def writing_direct_calls(target_context):
    """Within this, Numba also writes the function for direct calls of a driver that computes a single state."""
    write_wrapper = target_context.create_cpython_wrapper

    def write_both(library, described, *arguments, **settings):
        write_wrapper(library, described, *arguments, **settings)
        if ARE_POSSIBLE and _is_direct(described):
            module = target_context.create_module("direct_call")
            _DirectCall(target_context, module, described).write()
            library.add_ir_module(module)

    target_context.create_cpython_wrapper = write_both
    try:
        yield
    finally:
        del target_context.create_cpython_wrapper


def direct_call(compiled, arguments, shape):
    """Return the function of Python for direct calls of a compiled driver, or None if it has none.

    `arguments` are the driver's, of which those of the model are kept. `shape` is that of the result.
    """
    address = ARE_POSSIBLE and compiled.library.get_pointer_to_function(PREFIX + compiled.fndesc.llvm_func_name)
    if not address:
        return None
    template = np.empty(shape)
    of_model = [x if name in OF_THE_MODEL else None for x, name in zip(arguments, compiled.fndesc.args, strict=True)]
    definition = _MethodDefinition(b"direct_call", address, METH_FASTCALL, None)
    # the function refers to its definition and to the machine code, but does not keep them
    kept = (*of_model, template.reshape(-1), template, definition, compiled.library)
    return _new_function(ctypes.addressof(definition), kept, None)
