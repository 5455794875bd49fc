"""LLVM code of kernels, routines and drivers: how functions are linked with the functions that they call."""

from typing import ClassVar

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary

NUMBA_NAMES = {
    "numba.core.codegen.JITCodeLibrary": (
        *("__init__(self, codegen, name)", "add_linking_library(self, library)", "add_llvm_module(self, ll_module)"),
        *("finalize(self)", "get_defined_functions(self)", "has_dynamic_globals", "_codegen", "_final_module"),
        *("_finalized", "_linking_libraries", "_shared_module", "_ensure_finalized(self)"),
        *("_finalize_dynamic_globals(self)", "_finalize_final_module(self)", "_get_module_for_linking(self)"),
        *("_verify_declare_only_symbols(self)",),
    ),
    "numba.core.codegen.JITCPUCodegen": ("_data_layout", "_module_pass_manager(self, **kwargs)"),
}


class Library(JITCodeLibrary):
    """LLVM code of a function, with the kernels that are inlined into it.

    Routines are not inlined. They are optimized once and only linked into drivers. Numba would optimize them again
    with each of their callers.

    Attributes
    ----------
    pass_options : dict
        Arguments of LLVM's optimization; empty for the level of Numba's configuration.
    """

    pass_options: ClassVar = {}

    def __init__(self, codegen, name):
        super().__init__(codegen, name)
        self.routines = {}  # the routines that the function calls, directly or not; each one before its callers

    def add_linking_library(self, library):
        """As in Numba: note that the function calls another one."""
        library._ensure_finalized()  # noqa: SLF001 - as in Numba, like the other private names in these classes
        if isinstance(library, Library):
            self.routines |= library.routines
        if isinstance(library, RoutineLibrary):
            self.routines[library] = None
        else:
            self._linking_libraries.append(library)

    def add_llvm_module(self, ll_module):
        """As in Numba, but without optimization: once, in `finalize`, suffices, and LLVM takes 30 % less time."""
        ll_module.data_layout = self._codegen._data_layout  # noqa: SLF001
        self._final_module.link_in(ll_module)

    def finalize(self):
        """As in Numba: link the functions that this one calls, and optimize."""
        for library in dict.fromkeys(self._linking_libraries):
            is_kernel = isinstance(library, KernelLibrary)
            module = library.kernel_module() if is_kernel else library._get_module_for_linking()  # noqa: SLF001
            self._final_module.link_in(module, preserve=True)
            if hasattr(self, "_reload_init"):  # not in Numba 0.61
                self._reload_init |= library._reload_init  # noqa: SLF001
        made = self._codegen._module_pass_manager(**self.pass_options)  # noqa: SLF001
        passes, *builder = made if isinstance(made, tuple) else (made,)  # Numba 0.61 returns the passes alone
        passes.run(self._final_module, *builder)
        self._finalize_final_module()

    def _link_routines(self, module):
        for routine in reversed(self.routines):  # callers first, because LLVM only links functions that are called
            module.link_in(routine.kernel_module(), preserve=True)


class KernelLibrary(Library):
    """Code that is linked with the code of its callers, and never becomes machine code by itself.

    Attributes
    ----------
    function : tuple or None
        The module, the name and the types of the arguments of a kernel that is kept in a file.
    """

    function = None
    # All kernels are optimized again with the routine or driver that contains them. Level 1 makes them small before,
    # which shortens the compilation and changes no bit of the results.
    pass_options: ClassVar = {"opt": 1}

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
        """Return the code for `load` in other processes, or None if it refers to objects of this process."""
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


class RoutineLibrary(KernelLibrary):
    """Code that its callers call."""

    pass_options: ClassVar = {}  # it is not optimized again


class DriverLibrary(Library):
    """Code of a driver, with the routines that it calls."""

    def _finalize_final_module(self):
        self._link_routines(self._final_module)
        for function in self.get_defined_functions():
            if function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"  # no other driver may call it
        self._final_module.verify()
        super()._finalize_final_module()
