"""Random cases that run with NUMBA_DISABLE_JIT=1: what they are about is decided in Python."""
