"""Drivers: compiled functions that Python calls."""

import contextlib
import os

import numba
from numba.core import sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from .. import direct_calls
from ..captured import WRITES_ARE_LOST, captured_memory
from .driver_cache import MachineCodeCache
from .level_codegen import compiling_for_level
from .operator_types import remembering_operators

NUMBA_NAMES = {
    "numba.core.codegen.JITCodeLibrary": ("add_ir_module(self, ir_module)", "codegen", "create_ir_module(self, name)"),
    "numba.core.codegen.JITCPUCodegen": ("create_library(self, name, **kwargs)", "set_env(self, env_name, env)"),
    "numba.core.compiler.CompileResult": ("library", "_find_referenced_environments(self)"),
    "numba.core.compiler_lock": ("global_compiler_lock",),
    "numba.core.compiler_lock._CompilerLock": ("acquire(self)", "release(self)"),
    "numba.core.cpu.CPUContext": ("codegen(self)", "declare_env_global(self, module, envname)"),
    "numba.core.lowering.Environment": ("env_name",),
    "numba.core.registry.CPUDispatcher": (
        *("compile(self, sig)", "get_call_template(self, args, kws)", "overloads", "py_func", "targetctx"),
        *("typingctx", "_cache"),
    ),
    "numba.core.sigutils": ("normalize_signature(sig)",),
}

if hasattr(os, "register_at_fork"):
    # a child that is forked while another thread compiles would wait for Numba's lock forever
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


class DriverDispatcher(CPUDispatcher):
    """A function that Python calls: compiled for a level, unless there is a file of its machine code."""

    def keep_machine_code(self):
        """Keep the machine code in files. Raise RuntimeError for the user's function that is in no file."""
        self._cache = MachineCodeCache(self.py_func)

    def compile(self, sig):
        """Load or compile the machine code for a signature."""
        captured = captured_memory(self)
        if captured is not None:
            raise TypeError(f"{self.__name__} {WRITES_ARE_LOST.format(captured)}")
        cache = self._cache
        is_stored = isinstance(cache, MachineCodeCache)
        with global_compiler_lock:
            with compiling_for_level(self.targetctx), contextlib.ExitStack() as stack:
                stack.enter_context(remembering_operators(self.typingctx))
                if is_stored:
                    stack.enter_context(cache.compiling)
                if is_stored and cache.is_installed:
                    stack.enter_context(direct_calls.writing_direct_calls(self.targetctx))
                    return super().compile(sig)
                entry_point = super().compile(sig)
            _set_environments(self.overloads[tuple(sigutils.normalize_signature(sig)[0])], self.targetctx)
            return entry_point

    def get_call_template(self, args, kws):
        """As in Numba, for a compiled caller; a TypeError for rbchain's functions, which are stored without bitcode."""
        if isinstance(self._cache, MachineCodeCache) and self._cache.is_installed:
            raise TypeError(
                f"{self.__name__} can only be called from Python; compiled code can call kernels of rbchain.compiled"
            )
        return super().get_call_template(args, kws)

    def direct_call(self, arguments, shape):
        """Return the function for direct calls with the model among these arguments, or None if there is none."""
        types_of_all = tuple(map(numba.typeof, arguments))
        self.compile(types_of_all)
        return direct_calls.direct_call(self.overloads[types_of_all], arguments, shape)


def _set_environments(compiled, target_context):
    """Set the environments of the functions that a driver contains, which they need to print and to raise.

    Numba sets them when it compiles the functions: either for the level, or for the host if other code called them
    before the driver was compiled. Code for the host that calls them later shares the variables that are made here.
    """
    host, level = target_context.codegen(), compiled.library.codegen
    for environment in compiled._find_referenced_environments():  # noqa: SLF001 - as Numba's own cache does
        level.set_env(environment.env_name, environment)
        if host is not level:
            library = host.create_library(environment.env_name)
            module = library.create_ir_module(environment.env_name)
            target_context.declare_env_global(module, environment.env_name)
            library.add_ir_module(module)
            library.finalize()
            host.set_env(environment.env_name, environment)


class UncallableDriver(DriverDispatcher):
    """A driver in a process that only compiles: the code may be for another processor."""

    def __call__(self, *args, **kwargs):
        raise RuntimeError(f"{self.__name__}: RBCHAIN_COMPILE_ONLY is set, so this process calls no driver; unset it")
