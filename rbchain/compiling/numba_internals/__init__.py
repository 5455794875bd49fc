"""Use of Numba's internals: less work per function, code for a processor level, files of machine code.

RBCHAIN_PLAIN_NUMBA=1 disables this package. Results are the same, but every process compiles all functions for its own
processor, which takes longer.

The constant NUMBA_NAMES of a module lists the names of Numba that the module relies on. The next release of Numba may
change them. The keys are classes and modules of Numba. The values are their attributes, and their functions with
parameters.
"""
