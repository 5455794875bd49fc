"""Kernels and routines: functions that only compiled code can call, and their files."""

import copy
import functools
import importlib

import numba
from numba.core import compiler, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.typing import signature

from .. import kernel_cache
from . import announcements
from .level_codegen import generates_for_level
from .lowering import placeholder
from .pointers import type_as_received

NUMBA_NAMES = {
    "numba.core.compiler": ("compile_result(**entries)",),
    "numba.core.compiler.Flags": ("summary(self)",),
    "numba.core.cpu.CPUContext": ("codegen(self)",),
    "numba.core.dispatcher._FunctionCompiler": ("compile(self, args, return_type)", "pipeline_class"),
    "numba.core.funcdesc.PythonFunctionDescriptor": (
        *("argtypes", "calltypes", "modname", "qualname", "restype", "typemap"),
    ),
    "numba.core.options.TargetOptions": ("parse_as_flags(flags, options)",),
    "numba.core.registry.CPUDispatcher": (
        *("__init__(self, py_func, locals, targetoptions, pipeline_class)", "add_overload(self, cres)"),
        *("compile(self, sig)", "get_call_template(self, args, kws)", "locals", "overloads", "py_func", "targetctx"),
        *("targetdescr", "targetoptions", "typingctx", "_compiler", "_compiling_counter"),
    ),
    "numba.core.sigutils": ("normalize_signature(sig)",),
    "numba.core.typing": ("signature(return_type, *args, **kws)",),
}


#: The last kernel or routine of each module and qualified name. A module may have another object under the name, such
#: as a choice that contains the routine (`only_if`).
dispatchers = {}


class KernelDispatcher(CPUDispatcher):
    """A function that only compiled code can call.

    Numba's dispatcher takes 0.2 ms to make. It is made when Numba first reads one of its attributes, because a process
    that loads machine code needs none of the 1300 kernels.
    """

    @classmethod
    def made_later(cls, function, options):
        """Return the dispatcher of a function for these options of `numba.njit`."""
        dispatcher = dispatchers[function.__module__, function.__qualname__] = cls.__new__(cls)
        functools.update_wrapper(dispatcher, function)
        dispatcher.py_func, dispatcher.options_of_unmade = function, options
        return dispatcher

    def __getattr__(self, name):
        """Make the dispatcher, if it is not made yet, and return one of its attributes."""
        with global_compiler_lock:  # other threads wait until it is complete
            options = vars(self).pop("options_of_unmade", None)
            if options is not None:
                made = numba.njit(**options)(self.py_func)
                self.__init__(self.py_func, made.locals, made.targetoptions, options["pipeline_class"])
        return object.__getattribute__(self, name)

    def __call__(self, *args, **kwargs):
        raise TypeError(
            f"{self.__name__} can only be called from compiled code; compile your function with "
            "@rbchain.compiled.driver"
        )

    def get_call_template(self, args, kws):
        """As in Numba, but for the types as which a kernel receives its arguments."""
        return super().get_call_template(tuple(map(type_as_received, args)), kws)

    def compile(self, sig):
        """As in Numba, but without the events of Numba's timers.

        Otherwise, a listener would also receive the events of nested compilations.
        """
        with global_compiler_lock, self._compiling_counter:
            args, return_type = sigutils.normalize_signature(sig)
            args = tuple(args)
            if args not in self.overloads:
                file = self._file(args)
                compiled = None if file is None else self._load(file, args)
                if compiled is None:
                    compiled = self._compiler.compile(args, return_type)
                    announcements.count_function()
                    if file is not None:
                        self._save(file, compiled)
                self.add_overload(compiled)
            return self.overloads[args].entry_point

    def _file(self, args):
        """Return the file for these arguments, or None if the compiled kernel is not kept."""
        is_kept = kernel_cache.can_be_kept(self.py_func) and generates_for_level(self.targetctx)
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
            entry_point=placeholder(self.targetctx, described, library),
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
    importlib.import_module(module)
    dispatcher = dispatchers[module, name]
    dispatcher.compile(args)
    return dispatcher.overloads[args].library
