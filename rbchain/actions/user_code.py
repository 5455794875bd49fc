"""A user's functions as addresses that compiled code can call."""

from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

import numba
from numba import types

from ..core import callbacks
from ..errors import StateError

SIGNATURE = "function(t, q, qd, parameters, out)"


def address_of(function: Callable[..., Any], nq: int, nv: int, parameters: int, results: int) -> int:
    """Address of a user's function for flat arrays of these lengths; compiles it, once."""
    if not (isinstance(function, FunctionType) or hasattr(function, "py_func")):
        raise StateError(f"function is {function!r}; expected a {SIGNATURE}")
    return _compiled(function, nq, nv, parameters, results)


@lru_cache(maxsize=256)
def _compiled(function: Callable[..., Any], nq: int, nv: int, parameters: int, results: int) -> int:
    if numba.config.DISABLE_JIT:
        callbacks.plain_functions[id(function)] = function
        return id(function)
    compiled = function if hasattr(function, "py_func") else numba.njit(function)
    number = types.CPointer(types.float64)

    def enter(t: float, q: Any, qd: Any, given: Any, out: Any) -> None:
        compiled(
            t,
            numba.carray(q, (nq,)),
            numba.carray(qd, (nv,)),
            numba.carray(given, (parameters,)),
            numba.carray(out, (results,)),
        )

    try:
        entry = numba.cfunc(types.void(types.float64, number, number, number, number))(enter)
    except numba.core.errors.NumbaError as error:
        reason = str(error).strip().splitlines()[0]
        raise StateError(f"function {function!r} cannot be compiled as a {SIGNATURE}: {reason}") from error
    _kept.append(entry)
    return entry.address


# compiled code knows functions by their addresses only
_kept: list[Any] = []
