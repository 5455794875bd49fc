"""Spatial values to and from the working memory: array `a`, row `i`, first field `row`, lanes `k`."""

from ..simd.jit import kernel
from .inertias import Inertia, Rigid
from .vectors import Force, Motion


@kernel
def load3(a, i, row, k):
    return (a[i, row, k], a[i, row + 1, k], a[i, row + 2, k])


@kernel
def load6(a, i, row, k):
    return (*load3(a, i, row, k), *load3(a, i, row + 3, k))


@kernel
def load9(a, i, row, k):
    return (*load6(a, i, row, k), *load3(a, i, row + 6, k))


@kernel
def load_motion(a, i, row, k):
    return Motion(load3(a, i, row, k), load3(a, i, row + 3, k))


@kernel
def load_force(a, i, row, k):
    return Force(load3(a, i, row, k), load3(a, i, row + 3, k))


@kernel
def load_inertia(a, i, row, k):
    return Inertia(load6(a, i, row, k), load9(a, i, row + 6, k), load6(a, i, row + 15, k))


@kernel
def store3(a, i, row, k, x):
    a[i, row, k] = x[0]
    a[i, row + 1, k] = x[1]
    a[i, row + 2, k] = x[2]


@kernel
def store6(a, i, row, k, x):
    store3(a, i, row, k, (x[0], x[1], x[2]))
    store3(a, i, row + 3, k, (x[3], x[4], x[5]))


@kernel
def store9(a, i, row, k, x):
    store6(a, i, row, k, (x[0], x[1], x[2], x[3], x[4], x[5]))
    store3(a, i, row + 6, k, (x[6], x[7], x[8]))


@kernel
def store_spatial(a, i, row, k, x):
    store3(a, i, row, k, x.ang)
    store3(a, i, row + 3, k, x.lin)


@kernel
def store_inertia(a, i, row, k, x):
    store6(a, i, row, k, x.J)
    store9(a, i, row + 6, k, x.H)
    store6(a, i, row + 15, k, x.M)


@kernel
def load_rigid(a, i, row, k):
    return Rigid(a[i, row, k], load3(a, i, row + 1, k), load6(a, i, row + 4, k))


@kernel
def store_rigid(a, i, row, k, x):
    a[i, row, k] = x.m
    store3(a, i, row + 1, k, x.h)
    store6(a, i, row + 4, k, x.J)
