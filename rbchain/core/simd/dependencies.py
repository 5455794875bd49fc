"""What determines the machine code of a user's function besides its own file: everything that its names refer to.

Numba compiles the values of globals into the code. A cache that ignores them would execute old code after a global in
another file has changed.
"""

import types

import numpy as np

#: Packages whose code is part of the build, or changes only with its version.
KNOWN_PACKAGES = ("rbchain", "numba", "llvmlite", "numpy", "math", "cmath", "operator", "builtins")


def dependencies_of(function):
    """Describe a function: line, names, constants, and the values, functions and modules that its names refer to.

    The description consists of tuples, strings and numbers, so that its `repr` identifies it.
    """
    return _function(function, set())


def _function(function, seen):
    code = function.__code__
    if code in seen:
        return code.co_name
    seen.add(code)
    names = sorted(_names(code))
    found = [(name, _value(function.__globals__[name], names, seen)) for name in names if name in function.__globals__]
    return describe_code(code), found


def _names(code):
    """The names that some code and the functions inside it refer to."""
    inner = [_names(value) for value in code.co_consts if isinstance(value, types.CodeType)]
    return set(code.co_names).union(*inner)


def describe_code(code):
    """Where a function is defined, its instructions, names and constants.

    A file may define two functions of the same name, such as in the branches of an `if`.
    """
    constants = [describe_code(value) if isinstance(value, types.CodeType) else repr(value) for value in code.co_consts]
    return code.co_firstlineno, code.co_code.hex(), code.co_names, constants


def _value(value, names, seen):
    """Describe the value of a global; of a module, the attributes with these names."""
    function = getattr(value, "py_func", value)
    if isinstance(function, types.FunctionType):
        return function.__qualname__ if _is_known(function.__module__) else _function(function, seen)
    if isinstance(value, types.ModuleType):
        if _is_known(value.__name__) or value in seen:
            return value.__name__
        seen.add(value)
        return value.__name__, [
            (name, _value(getattr(value, name), names, seen)) for name in names if hasattr(value, name)
        ]
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes().hex()
    if isinstance(value, (tuple, list)):
        return [_value(item, names, seen) for item in value]
    if isinstance(value, (int, float, complex, str, bytes, np.generic)) or value is None:
        return repr(value)
    return type(value).__qualname__


def _is_known(module):
    return str(module).partition(".")[0] in KNOWN_PACKAGES
