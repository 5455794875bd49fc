"""The three kinds of compiled function, and the only place where Numba's options stand."""

import contextlib
import functools

import numba
from numba import _dynfunc, types
from numba.core import compiler, sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering
from numba.extending import overload as numba_overload

from .machine_code import MachineCodeCache, compiling_for_level

# "contract" lets a * b + c become one fused instruction; every other IEEE rule holds, so results are reproducible.
# Without "_nrt" a function borrows the arrays it is given and counts no references: counting, which is atomic, would
# cost three times the dynamics. In return nothing compiled here can allocate an array.
OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False}


class _OnlyLinked(JITCodeLibrary):
    """Code that ends up inside that of its callers, and is never made machine code by itself."""

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerForCallers(NativeLowering):
    """Numba's last step, without what only a call from Python or C would need.

    Nor is the function's environment set, which printing and exceptions with computed words would ask for.
    """

    _name = "lower_for_callers"

    def run_pass(self, state):
        state.library = _OnlyLinked(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        name, described = state.func_id.func_name, state.cr.fndesc
        # what callers know it by: an entry without an address, which nothing calls
        entry = _dynfunc.make_function(described.lookup_module(), name, "", 0, state.cr.env, (state.library,))
        state["cr"] = state.cr._replace(cfunc=entry)
        state.targetctx.insert_user_function(entry, described, [state.library])
        return True


# Numba's steps for closures, `with`, `literally`, inlined overloads and unrolled literals, of which kernels have none:
# without them the machine code is the same to the bit, and a tenth of the time is saved.
NOT_NEEDED = (
    *("WithLifting", "InlineClosureLikes", "RewriteDynamicRaises", "MakeFunctionToJitFunction", "InlineInlinables"),
    *("FindLiterallyCalls", "LiteralUnroll", "LiteralPropagationSubPipelinePass", "InlineOverloads"),
    "DumpParforDiagnostics",
)


class _CompilerForCallers(compiler.Compiler):
    """Numba's compiler with that last step."""

    def define_pipelines(self):
        (passes,) = super().define_pipelines()
        at = next(i for i, (kind, _) in enumerate(passes.passes) if kind is NativeLowering)
        passes.passes[at] = (_LowerForCallers, passes.passes[at][1])
        passes.passes = [step for step in passes.passes if step[0].__name__ not in NOT_NEEDED]
        passes._finalized = False  # noqa: SLF001 - Numba has no public way to change its list of passes
        passes.finalize()
        return [passes]


FOR_CALLERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _CompilerForCallers}


class _OnlyFromCompiledCode(CPUDispatcher):
    """What only compiled code can call."""

    def __call__(self, *args, **kwargs):
        raise TypeError(
            f"{self.__name__} can only be called from compiled code; compile your function with "
            "@rbchain.compiled.driver"
        )

    def compile(self, sig):
        """As Numba does it, but without its timers: of nested functions each would hear each event of those within."""
        with global_compiler_lock, self._compiling_counter:
            args, return_type = sigutils.normalize_signature(sig)
            if tuple(args) not in self.overloads:
                self.add_overload(self._compiler.compile(args, return_type))
            return self.overloads[tuple(args)].entry_point


def overload(function, **options):
    """Declare what a function is in compiled code, as `numba.extending.overload` does.

    For functions of which compiled code is not one of two other functions (`choose`), but an instruction for packs, a
    constant of the type, or a call by address.
    """
    return numba_overload(function, jit_options=FOR_CALLERS | options)


def choose(condition, if_true, if_false):
    """Return a function that does what `if_true` or `if_false` does, as `condition` says of its arguments.

    Compiled code makes the choice by the arguments' types, when it is compiled, so that it contains only the one that
    is chosen. Hence `condition` is called with values or with their Numba types.
    """

    def chosen(*arguments):
        return (if_true if condition(*arguments) else if_false)(*arguments)

    implementations = _implementation(if_false), _implementation(if_true)

    @numba_overload(chosen, jit_options=FOR_CALLERS | {"forceinline": True, "_nrt": False}, strict=False)
    def _overload_chosen(*arguments):
        return implementations[bool(condition(*arguments))]

    return chosen


def _implementation(function):
    """The Python function that Numba compiles into the caller: that of a kernel or routine calls it."""
    if not numba.extending.is_jitted(function):
        return function

    def call(*arguments):
        return function(*arguments)

    return call


def is_given(value, *fields):
    """Whether a field, `value.a.b` for the fields "a" and "b", is not None: of NamedTuples, or of their Numba types."""
    for field in fields:
        is_type = isinstance(value, types.Type)
        value = value.types[value.fields.index(field)] if is_type else getattr(value, field)
    return not (value is None or isinstance(value, types.NoneType))


def _without_entries(function, **options):
    """Compile what only compiled code calls."""
    compiled = numba.njit(**FOR_CALLERS, **options, **OPTIONS)(function)
    if not numba.config.DISABLE_JIT:
        compiled.__class__ = _OnlyFromCompiledCode
    return compiled


def kernel(function):
    """Compile a step or a sweep: inlined into its caller, so that its tuples live in registers."""
    return _without_entries(function, forceinline=True)


def routine(function):
    """Compile a sweep that its caller calls: what is inlined is optimised again at every level above it."""
    return _without_entries(function)


class _Driver(CPUDispatcher):
    """What Python calls: compiled for the level of this process."""

    def compile(self, sig):
        """Load the machine code for a signature, or compile it."""
        with global_compiler_lock, compiling_for_level(self.targetctx):
            try:
                return super().compile(sig)
            finally:
                if isinstance(self._cache, MachineCodeCache):
                    self._cache.release_lock()


#: Called with a driver and its arguments before plain Python calls it, if it is not None: `precompile` records types.
before_plain_call = None


def driver(function):
    """Compile what Python calls: cached on disk, and free of the global interpreter lock while it runs."""
    if numba.config.DISABLE_JIT:
        return _plain_driver(function)
    dispatcher = numba.njit(nogil=True, **OPTIONS)(function)
    dispatcher.__class__ = _Driver
    with contextlib.suppress(RuntimeError):  # of a function that is in no file, which cannot be cached
        dispatcher._cache = MachineCodeCache(function)  # noqa: SLF001 - nor to choose a dispatcher's cache
    return dispatcher


def _plain_driver(function):
    @functools.wraps(function)
    def call(*arguments):
        if before_plain_call is not None:
            before_plain_call(function, arguments)
        return function(*arguments)

    return call
