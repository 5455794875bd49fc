"""The cache of drivers on disk: files of their machine code in the installed package and in the user's cache."""

import contextlib
import warnings
from pathlib import Path

import llvmlite.binding as llvm
from numba import types
from numba.core import sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from .. import array_fields, machine_code
from ..dependencies import dependencies_of
from .announcements import announced

NUMBA_NAMES = {
    "numba.core.caching.CompileResultCacheImpl": (
        *("check_cachable(self, cres)", "locator", "rebuild(self, target_context, payload)", "reduce(self, cres)"),
    ),
    "numba.core.caching.FunctionCache": (
        *("__init__(self, py_func)", "cache_path", "flush(self)", "load_overload(self, sig, target_context)"),
        *("save_overload(self, sig, data)", "_cache_path", "_impl", "_index_key(self, sig, codegen)", "_py_func"),
    ),
    "numba.core.caching._CacheLocator": ("get_source_stamp(self)",),
    "numba.core.codegen.JITCodeLibrary": ("get_defined_functions(self)", "serialize_using_object_code(self)"),
    "numba.core.cpu.CPUContext": ("codegen(self)", "refresh(self)"),
    "numba.core.sigutils": ("normalize_signature(sig)",),
}


class MachineCodeCache(FunctionCache):
    """Looks for the machine code of a driver in the installed package, then in the user's cache, where it keeps it too.

    Problems with files cost time and are reported, but never make a calculation fail.

    Attributes
    ----------
    compiling : ExitStack
        State that is valid during one compilation only: its progress message, and the lock that other processes
        wait for.
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
        determining = [machine_code.BUILD, machine_code.TARGET, self._driver, str(sig), array_fields.ARE_KNOWN]
        if not self.is_installed:  # the user's own file and the values in its closure determine the code too
            determining += [self._impl.locator.get_source_stamp(), self._index_key(sig, codegen)[2], _fields(sig)]
            determining.append(dependencies_of(self._py_func))
        return machine_code.digest_of(*determining)

    def flush(self):
        """As in Numba, for `recompile`: delete the files of this driver in the user's cache."""
        if self.cache_path is not None:
            for file in Path(self.cache_path).glob(f"{self._driver}.*{machine_code.SUFFIX}"):
                file.unlink(missing_ok=True)

    def _files(self, key):
        """Return the paths of the code with a key: in the package, and in the user's cache if there is one."""
        name = machine_code.file_name(self._driver, key)
        installed = [machine_code.INSTALLED / name] if self.is_installed else []
        return installed, [] if self.cache_path is None else [Path(self.cache_path, name)]

    def load_overload(self, sig, target_context):
        """As in Numba: return the compiled function for this signature, or None if it must be compiled."""
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
            if self.is_installed and cached:  # other processes keep the kernels that they compile there
                self.compiling.enter_context(machine_code.while_compiling(self._py_func, sig))
            # not before: it takes a third of a second, and loading does not need it
            target_context.refresh()
            self.compiling.enter_context(announced(self._driver, str(sig), is_kept=self.cache_path is not None))
        return found

    def _load(self, sig, key, target_context, files):
        for file in files:
            try:
                content = machine_code.unpacked(key, file.read_bytes())
                found = self._impl.rebuild(target_context, content)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except Exception as error:  # unpickling a file that another program has written can raise any error
                is_known = isinstance(error, machine_code.UnusableFile)
                problem = error if is_known else f"cannot be loaded ({error!r})"
                machine_code.report_unusable(file, problem, self._driver)
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


def _version(file):
    """Return the inode and the time of the last change of a file, which differ after a replacement, or None."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _fields(sig):
    """Return the names of the fields of NamedTuples among some types, at any depth. The names of types omit them."""
    return [
        (str(getattr(kind, "instance_class", "")), getattr(kind, "fields", ()), _fields(kind.types))
        for kind in sig
        if isinstance(kind, types.BaseTuple)
    ]


def _without_bitcode(content, library):
    """Return the content of a file without LLVM's bitcode: nothing is linked with drivers, and it is half of the file.

    A stub remains that defines the same functions, because Numba looks up their names in it.
    """
    (name, kind, (instructions, _)), *rest = content
    stubs = [f'define void @"{function.name}"() {{ ret void }}' for function in library.get_defined_functions()]
    return ((name, kind, (instructions, llvm.parse_assembly("\n".join(stubs)).as_bitcode())), *rest)
