"""Numbers that write down what is done with them.

Constants are folded, zeros and ones dropped, and what is computed twice is written once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

Number: TypeAlias = "Recorded | float"


class Recorded:
    """A node of an expression: an operation and its operands, which are nodes or floats. Nodes are numbered."""

    __slots__ = ("number", "operands", "operation")
    __array_ufunc__ = None  # numpy leaves the arithmetic to us

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
        # the kernels compare to find what is singular or not a number; what is generated takes the regular way
        return True

    __le__ = __gt__ = __ge__ = __lt__


_nodes: dict[tuple[Any, ...], Recorded] = {}


def _node(operation: str, *operands: Number) -> Recorded:
    """The node of an operation; the same one for the same operands."""
    key = (operation, *(("node", x.number) if isinstance(x, Recorded) else float(x) for x in operands))
    if key not in _nodes:
        _nodes[key] = Recorded(len(_nodes), operation, operands)
    return _nodes[key]


def variable(name: str) -> Recorded:
    """A number that the generated function is given."""
    return _node(name)


def _is(x: Number, value: float) -> bool:
    return not isinstance(x, Recorded) and x == value


def _in_order(a: Number, b: Number) -> tuple[Number, Number]:
    """Operands of what commutes, in an order that is always the same: a constant first."""
    constant_first = not isinstance(a, Recorded) or (isinstance(b, Recorded) and a.number <= b.number)
    return (a, b) if constant_first else (b, a)


def add(a: Number, b: Number) -> Number:
    if _is(a, 0.0):
        return b
    if _is(b, 0.0):
        return a
    if isinstance(b, Recorded) and b.operation == "-x":
        return subtract(a, b.operands[0])
    if isinstance(a, Recorded) and a.operation == "-x":
        return subtract(b, a.operands[0])
    return _node("+", *_in_order(a, b))


def subtract(a: Number, b: Number) -> Number:
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
    if _is(a, 0.0) or _is(b, 0.0):
        return 0.0
    for one, other in ((a, b), (b, a)):
        if _is(one, 1.0):
            return other
        if _is(one, -1.0):
            return negate(other)
        if isinstance(one, Recorded) and one.operation == "-x":
            return negate(multiply(one.operands[0], other))
    return _node("*", *_in_order(a, b))


def divide(a: Number, b: Number) -> Number:
    if _is(a, 0.0):
        return 0.0
    if not isinstance(b, Recorded):
        return multiply(a, 1.0 / b)
    return _node("/", a, b)


def negate(a: Number) -> Number:
    if not isinstance(a, Recorded):
        return -a
    return a.operands[0] if a.operation == "-x" else _node("-x", a)


class Mathematics:
    """What the kernels call of `math`, for recorded numbers too."""

    inf, nan, pi = math.inf, math.nan, math.pi

    @staticmethod
    def isfinite(x: Any) -> bool:
        """Whether a number is finite; recorded ones stand for finite numbers."""
        return isinstance(x, Recorded) or math.isfinite(x)

    def sin(self, x: Number) -> Number:
        return _node("sin", x) if isinstance(x, Recorded) else math.sin(x)

    def cos(self, x: Number) -> Number:
        return _node("cos", x) if isinstance(x, Recorded) else math.cos(x)

    def sqrt(self, x: Number) -> Number:
        return _node("sqrt", x) if isinstance(x, Recorded) else math.sqrt(x)


def in_order(results: Sequence[Number]) -> list[Recorded]:
    """All nodes that results need, operands first."""
    found, done = [], set()
    waiting = [(x, False) for x in reversed(results) if isinstance(x, Recorded)]
    while waiting:
        node, ready = waiting.pop()
        if id(node) in done:
            continue
        if ready:
            done.add(id(node))
            found.append(node)
        else:
            waiting.append((node, True))
            waiting.extend((x, False) for x in reversed(node.operands) if isinstance(x, Recorded))
    return found
