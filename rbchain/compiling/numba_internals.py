"""Everything that depends on Numba's internals: less work per function, code for a level, files of machine code.

RBCHAIN_PLAIN_NUMBA=1 does without this module: results are the same, but every process compiles everything for its
host, and takes longer.
"""

import collections
import contextlib
import copy
import importlib
import operator
import os
import warnings
from pathlib import Path

import llvmlite.binding as llvm
import numba
from llvmlite.ir import instructions, values
from numba import _dynfunc, types
from numba.core import cgutils, compiler, ir, lowering, sigutils
from numba.core.analysis import must_use_alloca
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel import models
from numba.core.imputils import lower_cast
from numba.core.registry import CPUDispatcher
from numba.core.typeconv import Conversion
from numba.core.typed_passes import NativeLowering
from numba.core.typing import signature
from numba.extending import register_model

from ..common.progress import progress
from . import direct_calls, kernel_cache, machine_code
from .captured import WRITES_ARE_LOST, captured_memory
from .dependencies import dependencies_of
from .last_calls_first import last_calls_first
from .levels import LEVEL, LEVELS, NATIVE

# --- kernels: only compiled code calls them ---------------------------------------------------------------------------


class _Library(JITCodeLibrary):
    """LLVM code of a function, with the kernels that are inlined into it.

    Routines, which are not inlined, are optimised once and only linked into drivers. Numba would optimise them again
    with each of their callers.
    """

    def __init__(self, codegen, name):
        super().__init__(codegen, name)
        self.routines = {}  # those that the function calls, directly or not; each one before its callers

    def add_linking_library(self, library):
        """As in Numba: note that the function calls another one."""
        library._ensure_finalized()  # noqa: SLF001 - as in Numba, like the other private names in these classes
        if isinstance(library, _Library):
            self.routines |= library.routines
        if isinstance(library, _RoutineLibrary):
            self.routines[library] = None
        else:
            self._linking_libraries.append(library)

    def add_llvm_module(self, ll_module):
        """As in Numba, but without optimisation: once, in `finalize`, suffices, and LLVM takes 0.7 of the time."""
        ll_module.data_layout = self._codegen._data_layout  # noqa: SLF001
        self._final_module.link_in(ll_module)

    def finalize(self):
        """As in Numba: link the functions that this one calls, and optimise."""
        for library in dict.fromkeys(self._linking_libraries):
            is_kernel = isinstance(library, _KernelLibrary)
            module = library.kernel_module() if is_kernel else library._get_module_for_linking()  # noqa: SLF001
            self._final_module.link_in(module, preserve=True)
            if hasattr(self, "_reload_init"):  # not in Numba 0.61
                self._reload_init |= library._reload_init  # noqa: SLF001
        made = self._codegen._module_pass_manager()  # noqa: SLF001
        passes, *builder = made if isinstance(made, tuple) else (made,)  # Numba 0.61 returns the passes alone
        passes.run(self._final_module, *builder)
        self._finalize_final_module()

    def _link_routines(self, module):
        for routine in reversed(self.routines):  # callers first, because LLVM only links functions that are called
            module.link_in(routine.kernel_module(), preserve=True)


class _KernelLibrary(_Library):
    """Code that is linked with that of its callers, and is never made machine code by itself.

    Attributes
    ----------
    function : tuple or None
        The module, the name and the types of the arguments of a kernel that is kept in a file.
    """

    function = None

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        for function in self.get_defined_functions():
            if function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"  # several callers of one driver may contain it
        self._finalized = True

    def kernel_module(self):
        """Return the code without the routines that it calls."""
        self._ensure_finalized()
        return self._final_module

    def load(self, bitcode, routines):
        """Set the code, which another process has compiled, and the routines that it calls."""
        self._final_module = llvm.parse_bitcode(bitcode)
        self.routines = dict.fromkeys(routines)
        self._finalized = True

    def bitcode(self):
        """Return the code for `load` in other processes, or None if it refers to what only this process has."""
        functions = list(self.get_defined_functions())
        # the names of functions of Numba, which are usually inlined, mean something else in other processes
        is_kept = len(functions) == 1 and not self.has_dynamic_globals and not getattr(self, "_reload_init", None)
        return self.kernel_module().as_bitcode() if is_kept else None

    def _get_module_for_linking(self):
        """As in Numba, for callers that are not kernels: the code with the routines that it calls."""
        if self._shared_module is None:
            self._shared_module = self.kernel_module().clone()
            self._link_routines(self._shared_module)
        return self._shared_module


class _RoutineLibrary(_KernelLibrary):
    """Code that its callers call."""


class _DriverLibrary(_Library):
    """Code of a driver, with the routines that it calls."""

    def _finalize_final_module(self):
        self._link_routines(self._final_module)
        for function in self.get_defined_functions():
            if function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"  # no other driver may call it
        self._final_module.verify()
        super()._finalize_final_module()


class _Lower(lowering.Lower):
    """Numba's writer of LLVM instructions, without those that release a variable: references are not counted."""

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


def _entry(target_context, described, library):
    """Return what callers know a kernel by: an entry without an address, which nothing calls."""
    environment = lowering.Environment.from_fndesc(described)
    name = described.qualname.rpartition(".")[2]
    entry = _dynfunc.make_function(described.lookup_module(), name, "", 0, environment, (library,))
    target_context.insert_user_function(entry, described, [library])
    return entry


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerForCallers(NativeLowering):
    """Numba's last step, without what only a call from Python or C would need.

    Nor is the function's environment set, which printing and exceptions with computed words would ask for.
    """

    _name = "lower_for_callers"
    library_class = _KernelLibrary
    lowering_class = _Lower

    def run_pass(self, state):
        state.library = self.library_class(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        state["cr"] = state.cr._replace(cfunc=_entry(state.targetctx, state.cr.fndesc, state.library))
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerRoutine(_LowerForCallers):
    _name = "lower_routine"
    library_class = _RoutineLibrary


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerDriver(NativeLowering):
    """Numba's last step for a driver."""

    _name = "lower_driver"

    def run_pass(self, state):
        state.library = _DriverLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)


class _Reference:
    """Type of a NamedTuple with arrays that a kernel receives as a pointer to a copy.

    Numba would pass each number of each array as an argument of its own. With pointers, Numba writes 15 % fewer LLVM
    instructions for forward dynamics, and still fewer for trajectories. Inlined code is the same.
    """

    def can_convert_from(self, typing_context, other):
        """As in Numba: tell whether values of another type can be passed."""
        return Conversion.safe if other == self.passed else None


class _NamedTuple(_Reference, types.NamedTuple):
    def __init__(self, passed):
        super().__init__(passed.types, passed.instance_class)
        self.passed, self.name = passed, f"reference to {self.name}"


class _NamedUniTuple(_Reference, types.NamedUniTuple):
    def __init__(self, passed):
        super().__init__(passed.dtype, passed.count, passed.instance_class)
        self.passed, self.name = passed, f"reference to {self.name}"


def _address(builder, value):
    """Return the address of an argument of the calling function, or of its part, that was passed as a pointer.

    Nothing changes the memory at this address. Return None for other values.
    """
    if isinstance(value, instructions.LoadInstr) and isinstance(value.operands[0], values.Argument):
        return value.operands[0]
    if isinstance(value, instructions.ExtractValue):
        whole = _address(builder, value.operands[0])
        return whole and cgutils.gep_inbounds(builder, whole, 0, *value.indices)
    return None


class _ReferenceModel:
    def get_argument_type(self):
        return self.get_value_type().as_pointer()

    def as_argument(self, builder, value):
        address = _address(builder, value)
        return cgutils.alloca_once_value(builder, value) if address is None else address

    def from_argument(self, builder, value):
        return builder.load(value)


@register_model(_NamedTuple)
class _NamedTupleModel(_ReferenceModel, models.TupleModel):
    pass


@register_model(_NamedUniTuple)
class _NamedUniTupleModel(_ReferenceModel, models.UniTupleModel):
    pass


@lower_cast(types.NamedTuple, _NamedTuple)
@lower_cast(types.NamedUniTuple, _NamedUniTuple)
def _refer(context, builder, from_type, to_type, value):
    return value


def _has_array(kind):
    return isinstance(kind, types.Array) or (isinstance(kind, types.BaseTuple) and any(map(_has_array, kind.types)))


def _as_received(kind):
    """Return the type as which a kernel receives an argument of another type."""
    kind = types.unliteral(kind)  # forward dynamics compiles 115 functions instead of one for each constant, 148
    if type(kind) is types.NamedTuple and _has_array(kind):
        return _NamedTuple(kind)
    if type(kind) is types.NamedUniTuple and _has_array(kind):
        return _NamedUniTuple(kind)
    return kind


# Numba's steps for closures, `with`, `literally`, inlined overloads, unrolled literals and expressions of arrays.
# Kernels have none of these. Without the steps, the machine code is the same to the bit, and an eighth of the time is
# saved.
NOT_NEEDED = (
    *("WithLifting", "InlineClosureLikes", "RewriteDynamicRaises", "MakeFunctionToJitFunction", "InlineInlinables"),
    *("FindLiterallyCalls", "LiteralUnroll", "LiteralPropagationSubPipelinePass", "InlineOverloads"),
    *("NopythonRewrites", "DumpParforDiagnostics"),
)


class _Compiler(compiler.Compiler):
    """Numba's compiler without the steps that are not needed, and with another last step."""

    lowering = None

    def define_pipelines(self):
        (passes,) = super().define_pipelines()
        at = next(i for i, (kind, _) in enumerate(passes.passes) if kind is NativeLowering)
        passes.passes[at] = (self.lowering, passes.passes[at][1])
        passes.passes = [step for step in passes.passes if step[0].__name__ not in NOT_NEEDED]
        passes._finalized = False  # noqa: SLF001 - Numba has no public way to change its list of passes
        passes.finalize()
        return [passes]


class KernelCompiler(_Compiler):
    """The compiler of kernels."""

    lowering = _LowerForCallers

    def _compile_bytecode(self):
        """As in Numba, but with a name for the linker that is the same in every process."""
        identity = self.state.func_id
        if kernel_cache.can_be_kept(identity.func):
            identity.unique_id = kernel_cache.unique_name(identity.func)
            identity.unique_name = f"{identity.func_qualname}${identity.unique_id}"
        return super()._compile_bytecode()


class RoutineCompiler(KernelCompiler):
    """The compiler of routines."""

    lowering = _LowerRoutine


class DriverCompiler(_Compiler):
    """The compiler of drivers."""

    lowering = _LowerDriver


class _KernelsAreCompiled(BaseException):
    """Numba has inferred the types of a driver, and has therefore compiled its kernels."""


@register_pass(mutates_CFG=True, analysis_only=False)
class _StopBeforeLowering(NativeLowering):
    _name = "stop_before_lowering"

    def run_pass(self, state):
        raise _KernelsAreCompiled


class _CompilerOfKernels(_Compiler):
    """The compiler of a driver whose kernels are needed, but not the driver."""

    lowering = _StopBeforeLowering


class KernelDispatcher(CPUDispatcher):
    """A function that only compiled code can call."""

    def __call__(self, *args, **kwargs):
        raise TypeError(
            f"{self.__name__} can only be called from compiled code; compile your function with "
            "@rbchain.compiled.driver"
        )

    def get_call_template(self, args, kws):
        """As in Numba, but for the types as which a kernel receives its arguments."""
        return super().get_call_template(tuple(map(_as_received, args)), kws)

    def compile(self, sig):
        """As Numba does it, but without its timers: of nested functions each would hear each event of those within."""
        with global_compiler_lock, self._compiling_counter:
            args, return_type = sigutils.normalize_signature(sig)
            args = tuple(args)
            if args not in self.overloads:
                file = self._file(args)
                compiled = None if file is None else self._load(file, args)
                if compiled is None:
                    compiled = self._compiler.compile(args, return_type)
                    if file is not None:
                        self._save(file, compiled)
                self.add_overload(compiled)
            return self.overloads[args].entry_point

    def _file(self, args):
        """Return the file for these arguments, or None if the compiled kernel is not kept."""
        is_kept = kernel_cache.can_be_kept(self.py_func) and _generates_for_level(self.targetctx)
        if not is_kept or " at 0x" in str(args):  # an address means something else in the next process
            return None
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        return kernel_cache.KernelFile(self.py_func, args, flags.summary())

    def _load(self, file, args):
        """Return the kernel that another process has compiled, or None."""
        content = file.content()
        if content is None:
            return None
        described, bitcode, routines = content
        described.argtypes = args
        library = self._compiler.pipeline_class.lowering.library_class(self.targetctx.codegen(), described.qualname)
        library.function = (described.modname, described.qualname, args)
        library.load(bitcode, [_routine(*routine) for routine in routines])
        return compiler.compile_result(
            typing_context=self.typingctx,
            target_context=self.targetctx,
            library=library,
            fndesc=described,
            entry_point=_entry(self.targetctx, described, library),
            signature=signature(described.restype, *args),
            objectmode=False,
        )

    def _save(self, file, compiled):
        """Keep a compiled kernel for other processes, if they can use it."""
        library, described = compiled.library, copy.copy(compiled.fndesc)
        library.function = (described.modname, described.qualname, tuple(compiled.signature.args))
        bitcode, routines = library.bitcode(), [routine.function for routine in library.routines]
        if bitcode is not None and None not in routines:
            described.typemap = described.calltypes = described.argtypes = None
            file.write((described, bitcode, routines))


def _routine(module, name, args):
    """Return the library of a routine, which is loaded or compiled."""
    dispatcher = getattr(importlib.import_module(module), name)
    dispatcher.compile(args)
    return dispatcher.overloads[args].library


# --- drivers: Python calls them ---------------------------------------------------------------------------------------


#: How many seconds the smallest drivers of a module take to compile: alone on a core, and beside other processes.
TYPICAL_SECONDS = {"trajectories": (5, 50), "dynamics": (3, 15), "derivatives": (3, 20)}
#: Types of the parts of a driver, each of which takes as long again.
LARGE_PARTS = (
    "SharedActions",
    "Samplers",
    "SensitivitySettings",
    "RosenbrockTableau",
    "RadauTableau",
    "ContactRecords",
)


class _LevelCodegen(JITCPUCodegen):
    """Numba's code generator for a level instead of the host."""

    def _get_host_cpu_name(self):
        return LEVELS[LEVEL].cpu

    def _get_host_cpu_features(self):
        return ""  # those of the level, which LLVM knows by its name


_level_codegens = {}
if hasattr(os, "register_at_fork"):
    # a child that is forked while another thread compiles would wait for Numba's lock forever
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


def _generates_for_level(target_context):
    """Return whether Numba generates code for the level now."""
    return LEVEL == NATIVE or isinstance(target_context.codegen(), _LevelCodegen)


@contextlib.contextmanager
def _compiling_for_level(target_context):
    """Within this, Numba generates code for the level of this process; the caller holds Numba's compiler lock.

    The user's other functions, which Numba compiles outside of it, are compiled for the host as always.
    """
    if _generates_for_level(target_context):
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


# Functions whose result type depends on nothing but the types of their operands.
_OPERATORS = {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.invert, abs}
_OPERATORS |= {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.getitem}


@contextlib.contextmanager
def _remembering_operators(typing_context):
    """Within this, Numba finds the result of an operator once for the same types. It asks all implementations in turn.

    This saves about a tenth of the time of a driver.
    """
    resolve, known = typing_context.resolve_function_type, {}

    def resolve_once(function, operands, keywords):
        if keywords or getattr(function, "typing_key", None) not in _OPERATORS:
            return resolve(function, operands, keywords)
        if (function, operands) not in known:
            found = resolve(function, operands, keywords)
            if found is None:
                return None
            known[function, operands] = found
        return known[function, operands]

    if "resolve_function_type" in vars(typing_context):
        yield
        return
    typing_context.resolve_function_type = resolve_once
    try:
        yield
    finally:
        del typing_context.resolve_function_type


class DriverDispatcher(CPUDispatcher):
    """A function that Python calls: compiled for a level, unless there is a file of its machine code."""

    def compile(self, sig):
        """Load or compile the machine code for a signature."""
        captured = captured_memory(self)
        if captured is not None:
            raise TypeError(f"{self.__name__} {WRITES_ARE_LOST.format(captured)}")
        cache = self._cache
        is_stored = isinstance(cache, MachineCodeCache)
        with global_compiler_lock:
            with _compiling_for_level(self.targetctx), contextlib.ExitStack() as stack:
                stack.enter_context(_remembering_operators(self.typingctx))
                if is_stored:
                    stack.enter_context(cache.compiling)
                if is_stored and cache.is_installed:
                    stack.enter_context(direct_calls.writing_direct_calls(self.targetctx))
                    return super().compile(sig)
                entry_point = super().compile(sig)
            _set_environments(self.overloads[tuple(sigutils.normalize_signature(sig)[0])], self.targetctx)
            return entry_point

    def compile_kernels(self, args):
        """Compile the kernels that a driver with these arguments calls and keep them in files, the last ones first."""
        self._compiler.pipeline_class = _CompilerOfKernels
        with (
            global_compiler_lock,
            _compiling_for_level(self.targetctx),
            _remembering_operators(self.typingctx),
            last_calls_first(),
            contextlib.suppress(_KernelsAreCompiled),
        ):
            self.targetctx.refresh()
            self._compiler.compile(args, None)

    def get_call_template(self, args, kws):
        """As in Numba, for a compiled caller; refused for rbchain's own functions, which are stored without bitcode."""
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
        raise RuntimeError(
            f"{self.__name__}: RBCHAIN_COMPILE_ONLY is set, so that this process calls no driver; unset it"
        )


class MachineCodeCache(FunctionCache):
    """Looks for the machine code of a driver in the installed package, then in the user's cache, where it keeps it too.

    Problems with files cost time and are reported, but never make a calculation fail.

    Attributes
    ----------
    compiling : ExitStack
        What ends with the compilation: its report, and the lock that other processes wait for.
    is_installed : bool
        Whether the driver is one of rbchain, and not the user's own.
    """

    def __init__(self, function):
        self.is_installed = Path(function.__code__.co_filename).parent == machine_code.PACKAGE / "drivers"
        try:
            super().__init__(function)
        except RuntimeError:  # no folder can be written, or the function is in no file
            if not self.is_installed:
                raise
            self._impl, self._cache_path = CompileResultCacheImpl.__new__(CompileResultCacheImpl), None
        self.compiling = contextlib.ExitStack()
        self._driver = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    def _key(self, sig, codegen):
        determining = [machine_code.BUILD, machine_code.TARGET, self._driver, str(sig), direct_calls.ARE_POSSIBLE]
        if not self.is_installed:  # the user's own file and what its closure holds determine the code too
            determining += [self._impl.locator.get_source_stamp(), self._index_key(sig, codegen)[2], _fields(sig)]
            determining.append(dependencies_of(self._py_func))
        return machine_code.digest_of(*determining)

    def flush(self):
        """As in Numba, for `recompile`: delete the files of this driver in the user's cache."""
        if self.cache_path is not None:
            for file in Path(self.cache_path).glob(f"{self._driver}.*{machine_code.SUFFIX}"):
                file.unlink(missing_ok=True)

    def _files(self, key):
        """Where the code with a key may be: in the package, and in the user's cache if there is one."""
        name = machine_code.file_name(self._driver, key)
        installed = [machine_code.INSTALLED / name] if self.is_installed else []
        return installed, [] if self.cache_path is None else [Path(self.cache_path, name)]

    def load_overload(self, sig, target_context):
        """As in Numba: the compiled function for this signature, or None if it must be compiled."""
        sig = sigutils.normalize_signature(sig)[0]
        key = self._key(sig, target_context.codegen())
        installed, cached = self._files(key)
        before = [_version(file) for file in cached]
        found = self._load(sig, key, target_context, [*installed, *cached])
        for file in cached if found is None else ():
            lock = machine_code.Lock()
            self.compiling.callback(lock.release)
            lock.take(file.with_suffix(".lock"), self._driver)
            if [_version(file)] != before:  # another process has compiled it since
                found = self._load(sig, key, target_context, cached)
        if found is None:
            if self.is_installed and cached:  # other processes keep what they compile there
                self.compiling.enter_context(machine_code.while_compiling(self._py_func, sig))
            # not before: it takes a third of a second, and loading does not need it
            target_context.refresh()
            self.compiling.enter_context(progress(self._announcement(sig)))
        return found

    def _load(self, sig, key, target_context, files):
        for file in files:
            try:
                content = machine_code.unpacked(key, file.read_bytes())
                found = self._impl.rebuild(target_context, content)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except Exception as error:  # also what unpickling makes of a file that another program has written
                is_known = isinstance(error, machine_code.UnusableFile)
                self._warn(file, error if is_known else f"cannot be loaded ({error!r})")
                continue
            if file.parent != machine_code.INSTALLED:
                machine_code.mark_used(file)
            machine_code.files[self._py_func, sig] = file
            return found
        return None

    def save_overload(self, sig, data):
        """As in Numba: keep a compiled function in the user's cache."""
        if self.cache_path is None or " at 0x" in str(sig) or not self._impl.check_cachable(data):
            return  # the name of a type that contains an address means something else in the next process
        sig = sigutils.normalize_signature(sig)[0]
        key = self._key(sig, data.codegen)
        _, (path,) = self._files(key)
        content = self._impl.reduce(data)
        if self.is_installed:
            content = _without_bitcode(content, data.library)
        try:
            machine_code.write(path, machine_code.packed(key, content))
            machine_code.files[self._py_func, sig] = path
            machine_code.remove_unused(path.parent)
        except OSError as error:
            warnings.warn(
                f"the machine code of {self._driver} cannot be stored in {self.cache_path} ({error.strerror}); every "
                "process will compile it again. Set NUMBA_CACHE_DIR to a folder that can be written",
                stacklevel=2,
            )

    def _announcement(self, sig):
        seconds, described = TYPICAL_SECONDS.get(self._driver.partition(".")[0]), str(sig)
        times = 1 + sum(f"{part}(" in described for part in LARGE_PARTS)
        time = "" if seconds is None else f" ({times * seconds[0]} to {times * seconds[1]} s)"
        if self.cache_path is None:
            return f"Compiling {self._driver}{time}; set NUMBA_CACHE_DIR to a folder that can be written, to keep it"
        return f"Compiling {self._driver}{time}; later processes load it from the cache"

    def _warn(self, file, problem):
        if file.parent == machine_code.INSTALLED:
            consequence = "does not execute it. Reinstall rbchain: pip install --force-reinstall --no-deps rbchain"
        else:
            consequence = f"does not execute it and compiles {self._driver} again"
        warnings.warn(f"the machine code {file} {problem}; rbchain {consequence}", stacklevel=2)


def _version(file):
    """What changes when a file is replaced; None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _fields(sig):
    """Names of the fields of NamedTuples among some types, at any depth: the names of their types leave them out."""
    return [
        (str(getattr(kind, "instance_class", "")), getattr(kind, "fields", ()), _fields(kind.types))
        for kind in sig
        if isinstance(kind, types.BaseTuple)
    ]


def _without_bitcode(content, library):
    """The content of a file without LLVM's bitcode: nothing is linked with drivers, and it is half of the file.

    A stub remains that defines the same functions, because Numba looks up their names in it.
    """
    (name, kind, (instructions, _)), *rest = content
    stubs = [f'define void @"{function.name}"() {{ ret void }}' for function in library.get_defined_functions()]
    return ((name, kind, (instructions, llvm.parse_assembly("\n".join(stubs)).as_bitcode())), *rest)
