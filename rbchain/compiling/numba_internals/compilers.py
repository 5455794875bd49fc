"""Numba's compiler without the steps that are not needed, for kernels, routines and drivers."""

from numba.core import compiler
from numba.core.typed_passes import NativeLowering

from .. import kernel_cache
from .lowering import LowerDriver, LowerKernel, LowerRoutine

# Numba's steps for closures, `with`, `literally`, inlined overloads, unrolled literals and expressions of arrays.
# Kernels have none of these. Without the steps, the machine code is the same to the bit, and an eighth of the time is
# saved.
UNTYPED_STEPS = (
    *("WithLifting", "InlineClosureLikes", "RewriteDynamicRaises", "MakeFunctionToJitFunction", "InlineInlinables"),
    *("FindLiterallyCalls", "LiteralUnroll", "LiteralPropagationSubPipelinePass"),
)
TYPED_STEPS = ("InlineOverloads", "NopythonRewrites", "DumpParforDiagnostics")
NOT_NEEDED = UNTYPED_STEPS + TYPED_STEPS

NUMBA_NAMES = {
    "numba.core.bytecode.FunctionIdentity": ("func", "func_qualname", "unique_id", "unique_name"),
    "numba.core.compiler.Compiler": (
        *("define_pipelines(self)", "_compile_bytecode(self)", "_compile_core(self)", "state"),
    ),
    "numba.core.compiler.Flags": ("__hash__(self)", "__eq__(self, other)", "_values"),
    "numba.core.compiler_machinery.PassManager": ("finalize(self)", "passes", "_finalized"),
    "numba.core.typed_passes": TYPED_STEPS,
    "numba.core.untyped_passes": UNTYPED_STEPS,
}


HASH_OF_FLAGS = hash(compiler.Flags())  # depends on the names of all options only


class Flags(compiler.Flags):
    """Numba's options of a compilation, compared by those that are set.

    Numba looks up each call of an overloaded function with them, and reads all options for each comparison.
    """

    __slots__ = ()

    def __hash__(self):
        return HASH_OF_FLAGS

    def __eq__(self, other):
        return self._values == other._values if isinstance(other, Flags) else super().__eq__(other)


class Compiler(compiler.Compiler):
    """Numba's compiler without the steps that are not needed, and with another last step."""

    lowering = None

    def _compile_core(self):
        self.state.flags = Flags(self.state.flags)
        return super()._compile_core()

    def define_pipelines(self):
        """As in Numba: return the steps of the compiler."""
        (passes,) = super().define_pipelines()
        at = next(i for i, (kind, _) in enumerate(passes.passes) if kind is NativeLowering)
        passes.passes[at] = (self.lowering, passes.passes[at][1])
        passes.passes = [step for step in passes.passes if step[0].__name__ not in NOT_NEEDED]
        passes._finalized = False  # noqa: SLF001 - Numba has no public way to change its list of passes
        passes.finalize()
        return [passes]


class KernelCompiler(Compiler):
    """The compiler of kernels."""

    lowering = LowerKernel

    def _compile_bytecode(self):
        """As in Numba, but with a name for the linker that is the same in every process."""
        identity = self.state.func_id
        if kernel_cache.can_be_kept(identity.func):
            identity.unique_id = kernel_cache.unique_name(identity.func)
            identity.unique_name = f"{identity.func_qualname}${identity.unique_id}"
        return super()._compile_bytecode()


class RoutineCompiler(KernelCompiler):
    """The compiler of routines."""

    lowering = LowerRoutine


class DriverCompiler(Compiler):
    """The compiler of drivers."""

    lowering = LowerDriver
