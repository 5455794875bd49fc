"""Calls of drivers for a single state: compiled code checks the arrays of the state and allocates the result.

Numba's dispatcher looks at the types of all arguments of a call, and Python at the shapes and values of the state. Both
take longer than the dynamics of a few bodies. The code here does all of it in a few instructions. It reads the fields
of NumPy's arrays (`array_fields`).
"""

import contextlib
import ctypes

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array, populate_array

from .array_fields import (
    ARE_KNOWN,
    ARRAY_DATA,
    ARRAY_DESCR,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    ARRAY_SHAPE,
    ARRAY_TYPE,
    C_ORDER,
    DESCR_BYTE_ORDER,
    DESCR_NUMBER,
    NEW_ARRAY,
    OBJECT_TYPE,
    OPPOSITE_BYTE_ORDER,
    READABLE,
)

#: Names of Numba that this module uses, as in `numba_internals`.
NUMBA_NAMES = {
    "numba.core.callconv.CPUCallConv": (
        "call_function(self, builder, callee, resty, argtys, args, attrs)",
        "get_function_type(self, restype, argtypes)",
    ),
    "numba.core.cgutils": (
        *("get_null_value(ltype)", "get_or_insert_function(module, fnty, name)", "is_null(builder, val)", "true_bit"),
    ),
    "numba.core.cgutils._StructProxy": ("_getvalue(self)",),
    "numba.core.codegen.JITCodeLibrary": ("add_ir_module(self, ir_module)", "get_pointer_to_function(self, name)"),
    "numba.core.cpu.CPUContext": (
        *("call_conv", "create_cpython_wrapper(self, library, fndesc, env, call_helper, release_gil)"),
        *("create_module(self, name)", "get_argument_type(self, ty)", "get_constant(self, ty, val)"),
        *("get_dummy_value(self)", "get_python_api(self, builder)"),
    ),
    "numba.core.funcdesc.PythonFunctionDescriptor": ("args", "argtypes", "llvm_func_name", "restype"),
    "numba.core.pythonapi.PythonAPI": (
        *("decref(self, obj)", "get_c_object(self, name)", "get_null_object(self)", "pyobj", "return_none(self)"),
        *("tuple_getitem(self, tup, idx)", "voidptr"),
    ),
    "numba.np.arrayobj": (
        "make_array(array_type)",
        "populate_array(array, data, shape, strides, itemsize, meminfo, parent)",
    ),
}

#: `first` of a driver's call whose single state has not been checked. A single state has no index, so the driver
#: computes it for the samples [UNCHECKED, UNCHECKED + 1) as for [0, 1).
UNCHECKED = -1
#: Arguments of drivers that are the same in each call for a model; after the states, they are the result and samples.
OF_THE_MODEL = ("memory", "topology", "parameters", "variation", "wrenches")
RESULT, FIRST, LAST = -3, -2, -1

#: Prefix of the name of the function that Python calls.
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

    `self` is a tuple. It starts with the driver's arguments, and the function reads only the arguments of the model.
    Then follow two arrays with the size of the result: one with a single axis, and one with the axes of the result.
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

        It returns None for everything but a NumPy array of this type, even for an array of a subclass.
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
        """Write code that allocates the result. Return the object, and its data as the driver takes them."""
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
        for extent in shape[:0:-1]:  # NumPy's strides are undefined for axes with one entry
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
        if ARE_KNOWN and _is_direct(described):
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

    The function keeps the arguments of the model among the driver's `arguments`. `shape` is the shape of the result.
    """
    address = ARE_KNOWN and compiled.library.get_pointer_to_function(PREFIX + compiled.fndesc.llvm_func_name)
    if not address:
        return None
    template = np.empty(shape)
    of_model = [x if name in OF_THE_MODEL else None for x, name in zip(arguments, compiled.fndesc.args, strict=True)]
    definition = _MethodDefinition(b"direct_call", address, METH_FASTCALL, None)
    # the function refers to its definition and to the machine code, but does not keep them
    kept = (*of_model, template.reshape(-1), template, definition, compiled.library)
    return _new_function(ctypes.addressof(definition), kept, None)
