"""Numba's last step, which writes the LLVM code of a function: for kernels, routines and drivers."""

import collections

from numba import _dynfunc
from numba.core import ir, lowering
from numba.core.analysis import must_use_alloca
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from .code_libraries import DriverLibrary, KernelLibrary, RoutineLibrary

NUMBA_NAMES = {
    "numba._dynfunc": ("make_function",),
    "numba.core.analysis": ("must_use_alloca(blocks)",),
    "numba.core.codegen.JITCodeLibrary": ("enable_object_caching(self)",),
    "numba.core.compiler_machinery": ("register_pass(mutates_CFG, analysis_only)",),
    "numba.core.cpu.CPUContext": ("codegen(self)", "insert_user_function(self, func, fndesc, libs)"),
    "numba.core.funcdesc.PythonFunctionDescriptor": ("lookup_module(self)", "qualname"),
    "numba.core.ir.Block": ("find_insts(self, cls)", "terminator"),
    "numba.core.lowering.Environment": ("from_fndesc(fndesc)",),
    "numba.core.lowering.Lower": (
        *("blocks", "firstblk", "delvar(self, name)", "storevar(self, value, name, argidx)", "_blk_local_varmap"),
        *("_singly_assigned_vars", "_find_singly_assigned_variable(self)"),
    ),
    "numba.core.typed_passes.NativeLowering": ("_name", "lowering_class", "run_pass(self, state)"),
}


class Lower(lowering.Lower):
    """Numba's writer of LLVM instructions. References are not counted, so that it writes no release of variables."""

    def _find_singly_assigned_variable(self):
        """As in Numba: find the variables that need no memory. Add those that are set once, before all branches."""
        super()._find_singly_assigned_variable()
        blocks, first = self.blocks.values(), self.blocks[self.firstblk]
        if not any(self.firstblk in block.terminator.get_targets() for block in blocks):
            count = collections.Counter(found.target.name for block in blocks for found in block.find_insts(ir.Assign))
            once = {found.target.name for found in first.find_insts(ir.Assign) if count[found.target.name] == 1}
            self._singly_assigned_vars |= once - must_use_alloca(self.blocks)

    def delvar(self, name):
        """As in Numba: do not keep a variable in registers if it is deleted before it is set."""
        if name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)

    def storevar(self, value, name, argidx=None):
        """As in Numba, without the release of the old value, which arguments of the function do not have."""
        super().storevar(value, name, argidx=0)


def placeholder(target_context, described, library):
    """Return a placeholder that represents a kernel in Numba's tables.

    It has no address, because kernels are only linked into other compiled code.
    """
    environment = lowering.Environment.from_fndesc(described)
    name = described.qualname.rpartition(".")[2]
    entry = _dynfunc.make_function(described.lookup_module(), name, "", 0, environment, (library,))
    target_context.insert_user_function(entry, described, [library])
    return entry


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerKernel(NativeLowering):
    """Numba's last step without the parts that only calls from Python or C need.

    It does not set the function's environment either, which printing and exceptions with computed words need.
    """

    _name = "lower_kernel"
    library_class = KernelLibrary
    lowering_class = Lower

    def run_pass(self, state):
        """As in Numba: write the code."""
        state.library = self.library_class(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        state["cr"] = state.cr._replace(cfunc=placeholder(state.targetctx, state.cr.fndesc, state.library))
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerRoutine(LowerKernel):
    """Numba's last step for a routine."""

    _name = "lower_routine"
    library_class = RoutineLibrary


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerDriver(NativeLowering):
    """Numba's last step for a driver."""

    _name = "lower_driver"

    def run_pass(self, state):
        """As in Numba: write the code."""
        state.library = DriverLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)
