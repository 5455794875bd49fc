"""Arguments of user functions: their names, and functions of flat arrays that call functions with further arguments."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

#: Arguments of every compiled function.
ARGUMENTS = ("t", "q", "qd", "parameters", "out")
#: Names and shapes of the arrays in the argument `computed`.
Layout: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]


def arguments_in_python(has_states: bool, has_needs: bool) -> list[str]:
    """Return the names of the arguments of a function in plain Python."""
    return [*ARGUMENTS[:-1], *(["states"] if has_states else []), *(["computed"] if has_needs else [])]


def record_of_computed(names: Sequence[str]) -> Callable[..., Any]:
    """Return the named tuple that functions get as the argument `computed`."""
    return namedtuple("Computed", names)


def with_flat_arguments(
    function: Callable[..., Any], parameters: int, results: int, states: int, computed: Layout
) -> Callable[..., Any]:
    """Return a function(t, q, qd, parameters, out) that calls a function with states or computed quantities.

    Its argument `parameters` contains the parameters, then the values of the computed quantities. Its argument `out`
    contains the results, then the states.
    """
    arrays, at = [], parameters
    for _, shape in computed:
        end = at + int(np.prod(shape))
        arrays.append(f"parameters[{at}:{end}].reshape({shape})")
        at = end
    arguments = ["t", "q", "qd", f"parameters[:{parameters}]" if computed else "parameters"]
    arguments += [f"out[{results}:]"] if states else []
    arguments += [f"record({', '.join(arrays)})"] if computed else []
    arguments += [f"out[:{results}]"] if states else ["out"]
    # compiled code cannot pass a varying number of arrays to a named tuple
    names = {"function": function, "record": record_of_computed([name for name, _ in computed])}
    exec(f"def call(t, q, qd, parameters, out):\n    return function({', '.join(arguments)})", names)
    call: Any = names["call"]
    call.__name__ = str(getattr(function, "__name__", function))  # for messages
    return call
