"""Compiled code reads and sets elements of arrays and loops over ranges as Python does."""

import numpy as np
import pytest

from rbchain.compiling.jit import driver, kernel


@kernel
def read_everywhere(matrix, cube, small, unsigned, out):
    rows, columns = matrix.shape
    n = 0
    for i in range(-rows, rows):
        for k in range(columns):
            out[n] = 10.0 * matrix[i, -k - 1] + cube[-1, i, k] + matrix[small[k], unsigned[k]]
            n += 1
    out[-1] = matrix[0, 0] + matrix[-1, -1] + cube[0, 1, 2] + out[0] + out[n - 1]
    return n


@driver
def elements(matrix, cube, small, unsigned, out):
    return read_everywhere(matrix, cube, small, unsigned, out)


@kernel
def add_numbers(start, stop, step, out):
    for i in range(stop):
        out[0] += i
    for i in range(start, stop):
        if i == start + 1:
            continue
        if i > stop - 2:
            break
        out[1] += i
    for i in range(start, stop, step):
        out[2] += i
    for i in range(stop, start, -1):
        for k in range(i):
            out[3] += i * k
    for i, number in enumerate(out):
        out[4] += i * number


@driver
def ranges(start, stop, step, out):
    add_numbers(start, stop, step, out)


def test_elements_of_arrays_are_those_of_python():
    matrix, cube = np.arange(12.0).reshape(3, 4) ** 2, np.arange(24.0).reshape(2, 3, 4)
    small, unsigned = np.array([0, -1, 1, -3], dtype=np.int32), np.array([3, 0, 2, 1], dtype=np.uint64)
    found, expected = np.zeros(25), np.zeros(25)
    assert elements(matrix, cube, small, unsigned, found) == 24
    plain = getattr(read_everywhere, "py_func", read_everywhere)
    plain(matrix, cube, small, unsigned, expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("layout", ["strided", "Fortran", "float32", "integer"])
def test_elements_are_correct_for_each_layout_and_type(layout):
    matrix = np.arange(12.0).reshape(3, 4) + 0.5
    matrix = {
        "strided": np.repeat(matrix, 2, axis=1)[:, ::2],
        "Fortran": np.asfortranarray(matrix),
        "float32": matrix.astype(np.float32),
        "integer": matrix.astype(np.int64),
    }[layout]
    cube = np.stack([matrix, -matrix])
    small, unsigned = np.array([0, -1, 1, -3], dtype=np.int32), np.array([3, 0, 2, 1], dtype=np.uint64)
    found, expected = np.zeros(25), np.zeros(25)
    elements(matrix, cube, small, unsigned, found)
    getattr(read_everywhere, "py_func", read_everywhere)(matrix, cube, small, unsigned, expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (2, 7, 2), (3, 3, 1), (4, -3, -2), (-3, 4, 3), (9, 2, 1)]
)
def test_loops_over_ranges_visit_the_numbers_of_python(start, stop, step):
    found, expected = np.zeros(5), np.zeros(5)
    ranges(start, stop, step, found)
    getattr(add_numbers, "py_func", add_numbers)(start, stop, step, expected)
    np.testing.assert_array_equal(found, expected)
