"""The two kinds of compiled function, and the only place where Numba's options stand."""

import contextlib
import hashlib
import os
from pathlib import Path

import numba
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher

# "contract" lets a * b + c become one fused instruction; every other IEEE rule holds, so results are reproducible.
# Without "_nrt" a function borrows the arrays it is given and counts no references: counting, which is atomic, would
# cost three times the dynamics. In return nothing compiled here can allocate an array.
OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False}


def _fingerprint():
    """Everything that decides what a driver compiles to and that Numba's own cache key leaves out."""
    digest = hashlib.sha256(os.environ.get("RBCHAIN_LANE_WIDTH", "").encode())
    package = Path(__file__).parents[1]
    for source in sorted([*package.glob("core/*.py"), *package.glob("drivers/*.py")]):
        digest.update(source.read_bytes())
    return digest.hexdigest()


class _FingerprintedCache(FunctionCache):
    """Numba's disk cache, also keyed by the package's source: it alone misses an edit in a called kernel's file."""

    _package = _fingerprint()

    def _index_key(self, sig, codegen):
        return (*super()._index_key(sig, codegen), self._package)


class _OnlyFromCompiledCode(CPUDispatcher):
    """What only compiled code can call."""

    def __call__(self, *args, **kwargs):
        raise TypeError(f"{self.__name__} can only be called from compiled code, a function under @numba.njit")


def _without_entries(function, **options):
    """Compile what only compiled code calls: to compile entries for Python and C would take as long as the rest."""
    compiled = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options, **OPTIONS)(function)
    if not numba.config.DISABLE_JIT:
        compiled.__class__ = _OnlyFromCompiledCode
    return compiled


def kernel(function):
    """Compile a step or a sweep: inlined into its caller, so that its tuples live in registers."""
    return _without_entries(function, forceinline=True)


def routine(function):
    """Compile a sweep that its caller calls: what is inlined is optimised again at every level above it."""
    return _without_entries(function)


def driver(function):
    """Compile what Python calls: cached on disk, and free of the global interpreter lock while it runs."""
    dispatcher = numba.njit(nogil=True, **OPTIONS)(function)
    if not numba.config.DISABLE_JIT:
        with contextlib.suppress(RuntimeError):  # of a function that is in no file, which cannot be cached
            dispatcher._cache = _FingerprintedCache(function)
    return dispatcher
