"""Generation of code for a processor level instead of the host."""

import contextlib

from numba.core.codegen import JITCPUCodegen

from ..levels import LEVEL, LEVELS, NATIVE

NUMBA_NAMES = {
    "numba.core.codegen.JITCPUCodegen": (
        *("__init__(self, module_name)", "_get_host_cpu_name(self)", "_get_host_cpu_features(self)"),
    ),
    "numba.core.cpu.CPUContext": ("codegen(self)", "_internal_codegen"),
}


class _LevelCodegen(JITCPUCodegen):
    """Numba's code generator for a level instead of the host."""

    def _get_host_cpu_name(self):
        return LEVELS[LEVEL].cpu

    def _get_host_cpu_features(self):
        return ""  # LLVM knows the features of the level by its name


_level_codegens = {}


def generates_for_level(target_context):
    """Return whether Numba generates code for the level now."""
    return LEVEL == NATIVE or isinstance(target_context.codegen(), _LevelCodegen)


@contextlib.contextmanager
def compiling_for_level(target_context):
    """Within this, Numba generates code for the level of this process; the caller holds Numba's compiler lock.

    Outside of it, Numba compiles the user's other functions for the host, as always.
    """
    if generates_for_level(target_context):
        yield
        return
    if target_context not in _level_codegens:
        _level_codegens[target_context] = _LevelCodegen("rbchain.exec")
    host = target_context._internal_codegen  # noqa: SLF001 - Numba has no public way to compile for other processors
    target_context._internal_codegen = _level_codegens[target_context]  # noqa: SLF001
    try:
        yield
    finally:
        target_context._internal_codegen = host  # noqa: SLF001
