"""Symbolic numbers that record the operations on them as an expression graph.

Operations on constants are evaluated, neutral operations (x + 0, 1 x) are removed, and equal operations share one node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

Number: TypeAlias = "Recorded | float"


class Recorded:
    """A node of the graph: its number, an operation, and the operands, which are nodes or floats."""

    __slots__ = ("number", "operands", "operation")
    __array_ufunc__ = None  # so that NumPy calls the operators below

    def __init__(self, number: int, operation: str, operands: tuple[Number, ...]) -> None:
        self.number, self.operation, self.operands = number, operation, operands

    def __add__(self, other: Number) -> Number:
        return add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        return subtract(self, other)

    def __rsub__(self, other: Number) -> Number:
        return subtract(other, self)

    def __mul__(self, other: Number) -> Number:
        return multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Number:
        return divide(self, other)

    def __rtruediv__(self, other: Number) -> Number:
        return divide(other, self)

    def __neg__(self) -> Number:
        return negate(self)

    def __lt__(self, other: object) -> bool:
        # kernels compare only to detect singular mechanisms and NaN; generated code follows the regular branch
        return True

    __le__ = __gt__ = __ge__ = __lt__


_nodes: dict[tuple[Any, ...], Recorded] = {}


def _node(operation: str, *operands: Number) -> Recorded:
    """Return the node of an operation: always the same one for the same operands."""
    key = (operation, *(("node", x.number) if isinstance(x, Recorded) else float(x) for x in operands))
    if key not in _nodes:
        _nodes[key] = Recorded(len(_nodes), operation, operands)
    return _nodes[key]


def variable(name: str) -> Recorded:
    """Return the symbolic number of an argument's entry, such as "q[0]"."""
    return _node(name)


def _is(x: Number, value: float) -> bool:
    return not isinstance(x, Recorded) and x == value


def _commuted(a: Number, b: Number) -> tuple[Number, Number]:
    """Return the operands of a commutative operation in a fixed order, so that a + b and b + a are one node."""
    constant_first = not isinstance(a, Recorded) or (isinstance(b, Recorded) and a.number <= b.number)
    return (a, b) if constant_first else (b, a)


def add(a: Number, b: Number) -> Number:
    """Return the node or the value of a + b."""
    if _is(a, 0.0):
        return b
    if _is(b, 0.0):
        return a
    if isinstance(b, Recorded) and b.operation == "-x":
        return subtract(a, b.operands[0])
    if isinstance(a, Recorded) and a.operation == "-x":
        return subtract(b, a.operands[0])
    return _node("+", *_commuted(a, b))


def subtract(a: Number, b: Number) -> Number:
    """Return the node or the value of a - b."""
    if a is b:
        return 0.0
    if _is(b, 0.0):
        return a
    if _is(a, 0.0):
        return negate(b)
    if isinstance(b, Recorded) and b.operation == "-x":
        return add(a, b.operands[0])
    return _node("-", a, b)


def multiply(a: Number, b: Number) -> Number:
    """Return the node or the value of a b."""
    if _is(a, 0.0) or _is(b, 0.0):
        return 0.0
    for one, other in ((a, b), (b, a)):
        if _is(one, 1.0):
            return other
        if _is(one, -1.0):
            return negate(other)
        if isinstance(one, Recorded) and one.operation == "-x":
            return negate(multiply(one.operands[0], other))
    return _node("*", *_commuted(a, b))


def divide(a: Number, b: Number) -> Number:
    """Return the node or the value of a / b."""
    if _is(a, 0.0):
        return 0.0
    if not isinstance(b, Recorded):
        return multiply(a, 1.0 / b)
    return _node("/", a, b)


def negate(a: Number) -> Number:
    """Return the node or the value of -a."""
    if not isinstance(a, Recorded):
        return -a
    return a.operands[0] if a.operation == "-x" else _node("-x", a)


class Mathematics:
    """The functions of `math` that kernels call, for symbolic numbers and floats."""

    inf, nan, pi = math.inf, math.nan, math.pi

    @staticmethod
    def isfinite(x: Any) -> bool:
        """Whether a number is finite. Symbolic numbers are assumed to be."""
        return isinstance(x, Recorded) or math.isfinite(x)

    def sin(self, x: Number) -> Number:
        return _node("sin", x) if isinstance(x, Recorded) else math.sin(x)

    def cos(self, x: Number) -> Number:
        return _node("cos", x) if isinstance(x, Recorded) else math.cos(x)

    def sqrt(self, x: Number) -> Number:
        return _node("sqrt", x) if isinstance(x, Recorded) else math.sqrt(x)


def sorted_nodes(results: Sequence[Number]) -> list[Recorded]:
    """Return all nodes that the results depend on, operands before the nodes that use them."""
    nodes, done = [], set()
    stack = [(x, False) for x in reversed(results) if isinstance(x, Recorded)]
    while stack:
        node, is_ready = stack.pop()
        if id(node) in done:
            continue
        if is_ready:
            done.add(id(node))
            nodes.append(node)
        else:
            stack.append((node, True))
            stack.extend((x, False) for x in reversed(node.operands) if isinstance(x, Recorded))
    return nodes
