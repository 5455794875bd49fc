"""Records of lane memory: the shapes in the declaration of a NamedTuple give its size and its arrays in memory."""

from typing import Annotated, get_args, get_origin, get_type_hints

from ...compiling.jit import kernel, plain_or_compiled
from .lane_memory import window


def lane_record(record, *sizes):
    """Return two functions for a NamedTuple whose arrays have shapes in terms of the names `sizes`.

    A field `Annotated[np.ndarray, 2, "n"]` is an array (2, n, lanes). All other fields are given by the caller.

    Returns
    -------
    size : function of the sizes
        Returns how many numbers per lane the arrays need, in Python and in compiled code.
    carve : kernel of (memory, first, width, *given fields, *sizes)
        Returns the record, whose arrays lie one after the other in the flat array `memory`, starting at index `first`.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> class Pair(NamedTuple):
    ...     name: int
    ...     square: Annotated[np.ndarray, "n", "n"]
    ...     row: Annotated[np.ndarray, "n"]
    >>> size, carve = lane_record(Pair, "n")
    >>> size(3)
    12
    """
    shapes = {name: _shape(hint) for name, hint in get_type_hints(record, include_extras=True).items()}
    rows = {name: " * ".join(f"({extent})" for extent in shape) for name, shape in shapes.items() if shape}
    given = [name for name, shape in shapes.items() if not shape]
    arguments, place = ", ".join(sizes), "first"
    lines = [f"def carve_{record.__name__}({', '.join(['memory', 'first', 'width', *given, *sizes])}):"]
    for name, count in rows.items():
        lines.append(f"    at_{name} = {place}")
        lines.append(f"    in_{name} = window(memory, at_{name}, ({', '.join(map(str, shapes[name]))}, width))")
        place = f"at_{name} + {count} * width"
    fields = ", ".join(name if name in given else f"in_{name}" for name in shapes)
    lines.append(f"    return record({fields})")
    lines.append(f"def size_{record.__name__}({arguments}):")
    lines.append(f"    return {' + '.join(rows.values())}")
    # a kernel belongs to the module of its record, as if it were written there
    names = {"window": window, "record": record, "__name__": record.__module__}
    exec("\n".join(lines), names)
    return plain_or_compiled(names[f"size_{record.__name__}"]), kernel(names[f"carve_{record.__name__}"])


def _shape(hint):
    """Return the extents of an array before its lanes; none if the field is not an array of lanes."""
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()
