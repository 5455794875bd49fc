"""Compilation with Numba: kernels, routines, drivers, their cache on disk, and code that is compiled ahead of time."""
