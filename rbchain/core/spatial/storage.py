"""Loads and stores of vectors and inertias in the working memory, which passes them from kernel to kernel.

`a` is an array (dofs, rows, lanes), and `row` is the row of the first number. The numbers are in `a[i, row, k]`,
`a[i, row + 1, k]`, ...; in most arrays, i is a degree of freedom. The array of `number3` has no first axis. Each array
has its own frames and units.
"""

from ...compiling.jit import kernel
from .inertias import Inertia, Rigid
from .vectors import Force, Motion


@kernel
def number3(numbers, at, k):
    """Return a vector (3) from an array of numbers (m, lanes), starting at index `at`."""
    return (numbers[at, k], numbers[at + 1, k], numbers[at + 2, k])


@kernel
def load3(a, i, row, k):
    """Load a vector (3)."""
    return (a[i, row, k], a[i, row + 1, k], a[i, row + 2, k])


@kernel
def load6(a, i, row, k):
    """Load 6 numbers, such as a symmetric matrix."""
    return (*load3(a, i, row, k), *load3(a, i, row + 3, k))


@kernel
def load9(a, i, row, k):
    """Load 9 numbers, such as a matrix, row by row."""
    return (*load6(a, i, row, k), *load3(a, i, row + 6, k))


@kernel
def load_motion(a, i, row, k):
    """Load a Motion (6): angular, linear."""
    return Motion(load3(a, i, row, k), load3(a, i, row + 3, k))


@kernel
def load_force(a, i, row, k):
    """Load a Force (6): moment, force."""
    return Force(load3(a, i, row, k), load3(a, i, row + 3, k))


@kernel
def load_inertia(a, i, row, k):
    """Load an Inertia (21): J (6), H (9), M (6)."""
    return Inertia(load6(a, i, row, k), load9(a, i, row + 6, k), load6(a, i, row + 15, k))


@kernel
def store3(a, i, row, k, x):
    """Store a vector x (3)."""
    a[i, row, k] = x[0]
    a[i, row + 1, k] = x[1]
    a[i, row + 2, k] = x[2]


@kernel
def store6(a, i, row, k, x):
    """Store 6 numbers x, such as a symmetric matrix."""
    store3(a, i, row, k, (x[0], x[1], x[2]))
    store3(a, i, row + 3, k, (x[3], x[4], x[5]))


@kernel
def store9(a, i, row, k, x):
    """Store 9 numbers x, such as a matrix, row by row."""
    store6(a, i, row, k, (x[0], x[1], x[2], x[3], x[4], x[5]))
    store3(a, i, row + 6, k, (x[6], x[7], x[8]))


@kernel
def store_spatial(a, i, row, k, x):
    """Store a Motion or a Force (6), angular before linear."""
    store3(a, i, row, k, x.ang)
    store3(a, i, row + 3, k, x.lin)


@kernel
def store_inertia(a, i, row, k, x):
    """Store an Inertia (21): J (6), H (9), M (6)."""
    store6(a, i, row, k, x.J)
    store9(a, i, row + 6, k, x.H)
    store6(a, i, row + 15, k, x.M)


@kernel
def load_rigid(a, i, row, k):
    """Load a Rigid (10): m (1), h (3), J (6)."""
    return Rigid(a[i, row, k], load3(a, i, row + 1, k), load6(a, i, row + 4, k))


@kernel
def store_rigid(a, i, row, k, x):
    """Store a Rigid (10): m (1), h (3), J (6)."""
    a[i, row, k] = x.m
    store3(a, i, row + 1, k, x.h)
    store6(a, i, row + 4, k, x.J)
