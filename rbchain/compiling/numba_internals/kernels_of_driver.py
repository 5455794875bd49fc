"""The kernels of a driver without the driver, for a process that compiles alongside another one.

Numba compiles the functions that a function calls when it infers the types of the calls, in their order. Two processes
that infer the types in opposite orders compile different functions until they meet, and share them (`kernel_cache`).
"""

import contextlib

from numba.core import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.typeinfer import CallConstraint, ConstraintNetwork

from .compilers import Compiler
from .level_codegen import compiling_for_level
from .operator_types import remembering_operators

NUMBA_NAMES = {
    "numba.core.compiler_machinery": ("register_pass(mutates_CFG, analysis_only)",),
    "numba.core.cpu.CPUContext": ("refresh(self)",),
    "numba.core.dispatcher._FunctionCompiler": ("compile(self, args, return_type)", "pipeline_class"),
    "numba.core.ir": ("Assign(value, target, loc)", "Del(value, loc)", "Var(scope, name, loc)"),
    "numba.core.ir.Block": ("body",),
    "numba.core.ir.Expr": ("list_vars(self)",),
    "numba.core.ir.Stmt": ("list_vars(self)",),
    "numba.core.registry.CPUDispatcher": ("_compiler", "targetctx", "typingctx"),
    "numba.core.typed_passes.NativeLowering": ("_name", "run_pass(self, state)"),
    "numba.core.typeinfer.CallConstraint": ("target",),
    "numba.core.typeinfer.ConstraintNetwork": ("constraints", "propagate(self, typeinfer)"),
    "numba.core.typeinfer.TypeInferer": ("blocks",),
}

_propagate = ConstraintNetwork.propagate


class _KernelsAreCompiled(BaseException):
    """Numba has inferred the types of a driver, and has therefore compiled its kernels."""


@register_pass(mutates_CFG=True, analysis_only=False)
class _StopBeforeLowering(NativeLowering):
    _name = "stop_before_lowering"

    def run_pass(self, state):
        raise _KernelsAreCompiled


class _CompilerOfKernels(Compiler):
    """The compiler of a driver whose kernels are needed, but not the driver."""

    lowering = _StopBeforeLowering


def compile_kernels(driver, args):
    """Compile the kernels that a driver with these arguments calls and keep them in files, the last ones first."""
    compiler = driver._compiler  # noqa: SLF001 - Numba has no public way to choose a compiler for one signature
    compiler.pipeline_class = _CompilerOfKernels
    with (
        global_compiler_lock,
        compiling_for_level(driver.targetctx),
        remembering_operators(driver.typingctx),
        _last_calls_first(),
        contextlib.suppress(_KernelsAreCompiled),
    ):
        driver.targetctx.refresh()
        compiler.compile(args, None)


@contextlib.contextmanager
def _last_calls_first():
    """Within this, calls whose results nothing reads come after everything else, the last one first.

    Such calls determine no other type, so the inferred types are the same.
    """
    ConstraintNetwork.propagate = _propagate_last_calls_first
    try:
        yield
    finally:
        ConstraintNetwork.propagate = _propagate


def _propagate_last_calls_first(network, inference):
    """As in Numba: execute all constraints once. The first execution sorts them."""
    if not getattr(network, "is_sorted", False):
        read = _names_that_are_read(inference.blocks.values())
        calls = [found for found in network.constraints if type(found) is CallConstraint and found.target not in read]
        others = [found for found in network.constraints if found not in calls]
        network.constraints = others + calls[::-1]
        network.is_sorted = True
    return _propagate(network, inference)


def _names_that_are_read(blocks):
    """Return the names of the variables that the statements of these blocks read."""
    found = set()
    for block in blocks:
        for statement in block.body:
            if isinstance(statement, ir.Assign):
                value = statement.value
                variables = value.list_vars() if isinstance(value, ir.Expr) else [value]
            else:
                variables = [] if isinstance(statement, ir.Del) else statement.list_vars()
            found |= {variable.name for variable in variables if isinstance(variable, ir.Var)}
    return found
