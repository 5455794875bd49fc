"""The kinds of compiled functions (kernels, routines and drivers) with all options of Numba."""

import contextlib
import functools
import math
from collections.abc import Callable

import numba
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer, infer_global
from numba.extending import overload as numba_overload, register_jitable

from .levels import COMPILE_ONLY, PLAIN_NUMBA

if not PLAIN_NUMBA:
    from .numba_internals.compilers import DriverCompiler, KernelCompiler, RoutineCompiler
    from .numba_internals.driver_dispatcher import DriverDispatcher, UncallableDriver
    from .numba_internals.kernel_dispatcher import KernelDispatcher

# "contract" lets a * b + c become one fused instruction; every other IEEE rule holds, so results are reproducible.
# Without "_nrt" a function borrows the arrays it is given and counts no references: counting, which is atomic, would
# cost three times the dynamics. In return nothing compiled here can allocate an array.
NO_REFERENCES = {} if PLAIN_NUMBA else {"_nrt": False}
OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}} | NO_REFERENCES
FOR_CALLERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
KERNEL, ROUTINE, DRIVER = {"forceinline": True} | FOR_CALLERS, {"forceinline": False} | FOR_CALLERS, {"nogil": True}
if not PLAIN_NUMBA:
    KERNEL["pipeline_class"] = KernelCompiler
    ROUTINE["pipeline_class"] = RoutineCompiler
    DRIVER["pipeline_class"] = DriverCompiler


def overload(function, **options):
    """Declare the compiled code of a function, as `numba.extending.overload` does.

    For functions that are not a choice between two compiled functions (`choose`), but an instruction for SIMD values, a
    constant of the type, or a call by address.
    """
    return numba_overload(function, jit_options=KERNEL | options)


def plain_or_compiled(function):
    """Declare that compiled code compiles this function, which Python calls as a plain function, even with arrays.

    It is compiled without fused operations, so that compiled and plain results are identical, bit for bit.
    """
    return register_jitable(**KERNEL | {"fastmath": False})(function)


def choose(condition, if_true, if_false):
    """Return a function that calls `if_true` if `condition` is true for its arguments, else `if_false`."""
    return choose_among(lambda *arguments: 0 if condition(*arguments) else 1, (if_true, if_false))


def choose_among(index_of, functions):
    """Return a function that calls the function with the number `index_of(*arguments)`.

    Compiled code makes the choice by the arguments' types, when it is compiled, so that it contains only the chosen
    function. Hence `index_of` is called with values or with their Numba types.
    """

    def chosen(*arguments):
        return functions[index_of(*arguments)](*arguments)

    if numba.config.DISABLE_JIT:
        return chosen
    dispatchers = [f if numba.extending.is_jitted(f) else kernel(f) for f in functions]
    compiled = {}

    @infer
    class _Typing(AbstractTemplate):
        key = chosen

        def generic(self, operands, keywords):
            function = types.Dispatcher(dispatchers[index_of(*operands)])
            found = function.get_call_type(self.context, operands, keywords)
            compiled[found.args] = function.get_impl_key(found)
            return found

        def get_impl_key(self, found):
            return compiled[found.args]

    infer_global(chosen, types.Function(_Typing))
    return chosen


def only_if(condition, otherwise=None):
    """Let compiled code contain a function only where `condition` is true for its arguments, as for `choose`.

    Elsewhere, calls of the function compile `otherwise`: a function with the same arguments, or a constant that they
    return. So models that do not use a feature do not compile it.

    Examples
    --------
    >>> from rbchain.compiling.jit import kernel, only_if
    >>> @only_if(lambda values: len(values) > 0, 0.0)
    ... @kernel
    ... def first(values):
    ...     return values[0]
    >>> first((2.0, 3.0)), first(())
    (2.0, 0.0)
    """

    def restrict(function):
        plain = getattr(function, "py_func", function)
        alternative = otherwise
        if not callable(otherwise):
            # Compiled code needs a function with the same arguments, which belongs to the same module. The constant is
            # in its code, which identifies it.
            code, names = plain.__code__, {"__name__": plain.__module__}
            arguments = ", ".join(code.co_varnames[: code.co_argcount])
            alternative = eval(f"lambda {arguments}: {otherwise!r}", names | {"inf": math.inf})
        chosen = choose(condition, function, alternative)
        return functools.update_wrapper(chosen, plain)

    return restrict


def is_given(value, *fields):
    """Return whether a field of a NamedTuple, or of its Numba type, is not None: `value.a.b` for fields "a", "b".

    If one of the fields is None, those in it are not given.
    """
    for field in fields:
        if value is None or isinstance(value, types.NoneType):
            return False
        is_type = isinstance(value, types.Type)
        value = value.types[value.fields.index(field)] if is_type else getattr(value, field)
    return not (value is None or isinstance(value, types.NoneType))


def _without_entries(function, options):
    """Compile a function that only compiled code calls."""
    if numba.config.DISABLE_JIT or PLAIN_NUMBA:
        return numba.njit(**options, **OPTIONS)(function)
    return KernelDispatcher.made_later(function, options | OPTIONS)


def kernel(function):
    """Compile a step or a sweep: inlined into its caller, so that its tuples live in registers."""
    return _without_entries(function, KERNEL)


def routine(function):
    """Compile a sweep that its caller calls: an inlined sweep would be optimized again at every level above it."""
    return _without_entries(function, ROUTINE)


#: Called with a driver and its arguments before plain Python calls it, if it is not None: `precompile` records types.
before_plain_call: Callable | None = None


def driver(function):
    """Compile a function that Python calls: cached on disk, and free of the global interpreter lock while it runs."""
    if numba.config.DISABLE_JIT:
        return _plain_driver(function)
    dispatcher = numba.njit(**DRIVER, **OPTIONS)(function)
    if PLAIN_NUMBA:
        return dispatcher
    dispatcher.__class__ = UncallableDriver if COMPILE_ONLY else DriverDispatcher
    with contextlib.suppress(RuntimeError):  # of a function that is in no file, which cannot be cached
        dispatcher.keep_machine_code()
    return dispatcher


def direct_call(driver, arguments, shape):
    """Return a function that calls a driver of rbchain for single states of one model, or None.

    It takes the arguments of the driver that are not the same for all states of the model, and returns a new array of
    this shape. It returns None for states that must be checked or converted in Python. There is no such function in
    plain Python and in plain Numba.
    """
    if numba.config.DISABLE_JIT or PLAIN_NUMBA:
        return None
    return driver.direct_call(arguments, shape)


def compiled_for(driver, arguments):
    """Return a driver for arguments of these types only: it does not look at the types of the arguments again.

    Numba's look at all arguments of a simulation takes about as long as a step of one sample.
    """
    if numba.config.DISABLE_JIT:
        return driver
    return driver.compile(tuple(map(numba.typeof, arguments)))


def address_of(driver, arguments):
    """Return the address of a driver's machine code for arguments of these types, or 0 in plain Python.

    The function at this address has Numba's calling convention, and returns nothing if the driver does.
    """
    if numba.config.DISABLE_JIT:
        return 0
    kinds = tuple(map(numba.typeof, arguments))
    driver.compile(kinds)
    compiled = driver.overloads[kinds]
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def _plain_driver(function):
    @functools.wraps(function)
    def call(*arguments):
        if before_plain_call is not None:
            before_plain_call(function, arguments)
        return function(*arguments)

    return call
