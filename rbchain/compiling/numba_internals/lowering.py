"""Numba's last step, which writes the LLVM code of a function: for kernels, routines and drivers."""

import collections

from numba import _dynfunc, types
from numba.core import cgutils, ir, ir_utils, lowering
from numba.core.analysis import must_use_alloca
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from . import array_elements
from .code_libraries import DriverLibrary, KernelLibrary, RoutineLibrary
from .operator_types import OPERATORS

NUMBA_NAMES = {
    "numba._dynfunc": ("make_function",),
    "numba.core.analysis": ("must_use_alloca(blocks)",),
    "numba.core.base.BaseContext": (
        "cast(self, builder, val, fromty, toty)",
        "get_function(self, fn, sig, _firstcall)",
    ),
    "numba.core.cgutils": ("alloca_once(builder, ty, size, name, zfill)",),
    "numba.core.codegen.JITCodeLibrary": ("enable_object_caching(self)",),
    "numba.core.compiler_machinery": ("register_pass(mutates_CFG, analysis_only)",),
    "numba.core.cpu.CPUContext": ("codegen(self)", "insert_user_function(self, func, fndesc, libs)"),
    "numba.core.funcdesc.PythonFunctionDescriptor": ("lookup_module(self)", "qualname"),
    "numba.core.ir_utils": ("get_definition(func_ir, name, **kwargs)", "guard(func, *args, **kwargs)"),
    "numba.core.ir.Block": ("find_insts(self, cls)", "terminator"),
    "numba.core.lowering.Environment": ("from_fndesc(fndesc)",),
    "numba.core.lowering.Lower": (
        *("blocks", "firstblk", "delvar(self, name)", "storevar(self, value, name, argidx)", "_blk_local_varmap"),
        *("_singly_assigned_vars", "_find_singly_assigned_variable(self)", "_alloca_var(self, name, fetype)"),
        *(
            "alloca_lltype(self, name, lltype, datamodel)",
            "getvar(self, name)",
            "loadvar(self, name)",
            "typeof(self, varname)",
        ),
        *("lower_binop(self, resty, expr, op)", "lower_expr(self, resty, expr)", "func_ir", "fndesc"),
        "lower_getitem(self, resty, expr, value, index, signature)",
        "lower_setitem(self, target_var, index_var, value_var, signature)",
    ),
    "numba.core.typed_passes.NativeLowering": ("_name", "lowering_class", "run_pass(self, state)"),
}


_implementations = {}  # of operators, by the types of their operands


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

    def lower_getitem(self, resty, expr, value, index, signature):
        """As in Numba, with fewer instructions for elements of arrays."""
        kinds, context = signature.args, self.context
        if not array_elements.is_element(context, *kinds) or self.typeof(index.name) != kinds[1]:
            return super().lower_getitem(resty, expr, value, index, signature)
        array, at = self.loadvar(value.name), self.loadvar(index.name)
        element = array_elements.load_element(context, self.builder, kinds[0], array, kinds[1], at)
        return context.cast(self.builder, element, signature.return_type, resty)

    def lower_setitem(self, target_var, index_var, value_var, signature):
        """As in Numba, with fewer instructions for elements of arrays."""
        context, builder = self.context, self.builder
        kind, index_kind, value_kind = signature.args
        if not array_elements.is_element(context, kind, index_kind) or self.typeof(index_var.name) != index_kind:
            super().lower_setitem(target_var, index_var, value_var, signature)
            return
        array, at, value = (self.loadvar(var.name) for var in (target_var, index_var, value_var))
        value = context.cast(builder, value, self.typeof(value_var.name), value_kind)
        value = context.cast(builder, value, value_kind, kind.dtype)
        array_elements.store_element(context, builder, kind, array, index_kind, at, value)

    def lower_binop(self, resty, expr, op):
        """As in Numba, but find the implementation of an operator once for the same operands."""
        if op not in OPERATORS:
            return super().lower_binop(resty, expr, op)
        context, builder, signature = self.context, self.builder, self.fndesc.calltypes[expr]
        values = [
            context.cast(builder, self.loadvar(var.name), self.typeof(var.name), kind)
            for var, kind in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        key = op, signature.args
        if key not in _implementations:
            function = context.typing_context.resolve_value_type(op)
            found = function.get_call_type(context.typing_context, signature.args, {})
            _implementations[key] = context.get_function(function, found)
        return context.cast(builder, _implementations[key](builder, values), signature.return_type, resty)

    def lower_expr(self, resty, expr):
        """As in Numba, with fewer instructions for loops over ranges with step 1."""
        if expr.op in ("getiter", "iternext", "pair_first", "pair_second"):
            kind, value = self.typeof(expr.value.name), self.loadvar(expr.value.name)
            if expr.op == "getiter" and isinstance(kind, types.RangeType) and self._has_step_one(expr.value):
                return array_elements.start_range(self.context, self.builder, resty, value)
            if expr.op == "iternext" and isinstance(kind, types.RangeIteratorType):
                return array_elements.next_of_range(self.context, self.builder, resty, value)
            if expr.op in ("pair_first", "pair_second"):
                return self.builder.extract_value(value, int(expr.op == "pair_second"))
        return super().lower_expr(resty, expr)

    def _has_step_one(self, values):
        definition = ir_utils.guard(ir_utils.get_definition, self.func_ir, values)
        return isinstance(definition, ir.Expr) and definition.op == "call" and len(definition.args) < 3

    def storevar(self, value, name, argidx=None):
        """As in Numba, without the release of the old value, which arguments of the function do not have."""
        if name in self._singly_assigned_vars:
            super().storevar(value, name, argidx)
        else:
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))

    def alloca_lltype(self, name, lltype, datamodel=None):
        """As in Numba, without the size of the variable, which only debuggers need."""
        return cgutils.alloca_once(self.builder, lltype, name=name)


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
