"""Type inference that compiles the last calls of a function first, for a process that compiles beside another one.

Numba compiles the functions that a function calls when it infers the types of the calls, in their order. Two processes
that infer the types in opposite orders compile different functions until they meet, and share them (`kernel_cache`).
"""

import contextlib

from numba.core import ir
from numba.core.typeinfer import CallConstraint, ConstraintNetwork

_propagate = ConstraintNetwork.propagate


@contextlib.contextmanager
def last_calls_first():
    """Within this, calls whose results nothing reads come after everything else, the last one first.

    Such calls determine no other type, so that the inferred types are the same.
    """
    ConstraintNetwork.propagate = _propagate_last_calls_first
    try:
        yield
    finally:
        ConstraintNetwork.propagate = _propagate


def _propagate_last_calls_first(network, inference):
    """As in Numba: execute all constraints once. The first execution sorts them."""
    if not getattr(network, "is_sorted", False):
        read = _names_that_are_read(inference.blocks.values())
        calls = [found for found in network.constraints if type(found) is CallConstraint and found.target not in read]
        others = [found for found in network.constraints if found not in calls]
        network.constraints = others + calls[::-1]
        network.is_sorted = True
    return _propagate(network, inference)


def _names_that_are_read(blocks):
    """Return the names of the variables that the statements of these blocks read."""
    found = set()
    for block in blocks:
        for statement in block.body:
            if isinstance(statement, ir.Assign):
                value = statement.value
                variables = value.list_vars() if isinstance(value, ir.Expr) else [value]
            else:
                variables = [] if isinstance(statement, ir.Del) else statement.list_vars()
            found |= {variable.name for variable in variables if isinstance(variable, ir.Var)}
    return found
