"""Calls of kernels that would copy the records of a block, with hundreds of numbers, to the stack."""

import ast
from pathlib import Path

import rbchain as rb

PACKAGE = Path(rb.__file__).parent
FILES = sorted(path for room in ("core", "drivers") for path in (PACKAGE / room).rglob("*.py"))


def has_branch(node):
    """Whether an expression contains a branch: `and`, `or`, `a if b else c`, or comparisons in a row."""
    found = [x for x in ast.walk(node) if isinstance(x, ast.BoolOp | ast.IfExp | ast.Compare)]
    return any(not isinstance(x, ast.Compare) or len(x.ops) > 1 for x in found)


def copying_calls(source):
    """Return the calls in which an argument behind a name or an attribute contains a branch.

    Python puts arguments on its stack from left to right. Numba makes variables of those that a branch meets there.
    """
    calls = [x for x in ast.walk(ast.parse(source)) if isinstance(x, ast.Call)]
    for call in calls:
        name = ast.unparse(call.func).rpartition(".")[2]
        for place, argument in enumerate(call.args):
            before = [x for x in call.args[:place] if isinstance(x, ast.Name | ast.Attribute)]
            # the first argument of `constant_like` is an array, and those of `max`, `min` and `range` are numbers
            if has_branch(argument) and before and name not in ("constant_like", "full_like", "max", "min", "range"):
                yield ast.unparse(call)


def test_calls_of_kernels_have_no_branches_behind_records():
    """Assign the result of the branch to a variable before the call. Such calls took half the time of a simulation."""
    files = [path for path in FILES if path.name != "threads.py"]  # which is not compiled
    assert {path.name: calls for path in files if (calls := list(copying_calls(path.read_text())))} == {}


def test_a_branch_behind_a_record_is_found():
    assert list(copying_calls("take_step(block, h if last else 0.0, k)")) != []
    assert list(copying_calls("take_step(block, h, 0 < k < 3)")) != []
    assert list(copying_calls("end = h if last else 0.0\ntake_step(block, end, k)")) == []
