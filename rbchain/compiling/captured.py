"""Memory that compiled code must not take from outside: arrays in tuples, such as a block of `rbchain.compiled`.

Numba compiles them as constants without a warning. Values that the code writes to them are lost.
"""

import types

import numpy as np

from .function_code import globals_read
from .origins import is_known

WRITES_ARE_LOST = (
    "reads {!r} from outside, a tuple with writeable arrays, such as a block. Compiled code contains a copy as a "
    "constant, so its writes are lost; expected such a tuple as an argument of a driver. If the function "
    "only reads it, set array.flags.writeable = False for its arrays"
)


def captured_memory(function, seen=None):
    """Return the name of a tuple with writeable arrays that a function or its helpers read from outside, or None."""
    seen = set() if seen is None else seen
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, types.FunctionType) or plain in seen or is_known(plain.__module__):
        return None
    seen.add(plain)
    for name, value in _captured(plain):
        if isinstance(value, tuple) and _has_writeable_array(value):
            return name
        inner = captured_memory(value, seen)
        if inner is not None:
            return inner
    return None


def _captured(function):
    """Yield the names and values of the globals and of the closure of a function."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if cell != types.CellType():  # a variable with a value
            yield name, cell.cell_contents
    for name in sorted(globals_read(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _has_writeable_array(value):
    if isinstance(value, tuple):
        return any(map(_has_writeable_array, value))
    return isinstance(value, np.ndarray) and value.flags.writeable
