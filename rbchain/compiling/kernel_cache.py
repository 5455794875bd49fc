"""Files of compiled kernels: a process that compiles a driver loads the kernels that an earlier process has compiled.

A driver calls about a hundred kernels, directly or not, and other drivers and signatures need most of them too. A file
holds one kernel for one signature as LLVM bitcode, into which the kernels that it calls are inlined. The files are in
the user's cache, next to the files of the drivers.
"""

import contextlib
import functools
import pickle
from pathlib import Path

from numba.core.caching import CompileResultCacheImpl

from . import machine_code
from .function_code import describe_code

#: Names of Numba that this module uses, as in `numba_internals`.
NUMBA_NAMES = {
    "numba.core.caching.CompileResultCacheImpl": ("__init__(self, py_func)", "locator"),
    "numba.core.caching._CacheLocator": ("get_cache_path(self)",),
}
#: The key does not cover the sources of kernels in other packages, so these are not kept.
PACKAGES = ("rbchain.core.", "rbchain.drivers.")


def can_be_kept(function):
    """Return whether the key of a kernel covers everything that its code depends on."""
    captured = function.__closure__ or function.__defaults__
    return str(function.__module__).startswith(PACKAGES) and not captured and _folder() is not None


@functools.cache
def unique_name(function):
    """Return a name that no other kernel has, and that is the same in every process.

    Numba numbers functions in the order in which a process compiles them.
    """
    described = describe_code(function.__code__)
    return machine_code.digest_of(function.__module__, function.__qualname__, described)[:16]


@functools.cache
def _folder():
    """Return the folder of the files in the user's cache, or None if no folder can be written."""
    try:
        folder = Path(CompileResultCacheImpl(can_be_kept).locator.get_cache_path())
    except RuntimeError:
        return None
    machine_code.remove_unused(folder)
    return folder


class KernelFile:
    """The file of a kernel for one signature and these compiler flags.

    Problems with files cost time and are reported, but never make a calculation fail.
    """

    def __init__(self, function, args, flags):
        self._kernel = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._key = machine_code.digest_of(
            machine_code.BUILD, machine_code.TARGET, unique_name(function), str(args), flags
        )
        name = machine_code.file_name(self._kernel, self._key, machine_code.KERNEL_SUFFIX)
        self.path = _folder() / name.replace("<lambda>", "lambda")

    def content(self):
        """Return the content of the file, or None if there is none that can be used."""
        try:
            content = machine_code.unpacked(self._key, self.path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Exception as error:  # unpickling a file that another program has written can raise any error
            is_known = isinstance(error, machine_code.UnusableFile)
            problem = error if is_known else f"cannot be loaded ({error!r})"
            machine_code.report_unusable(self.path, problem, self._kernel)
            return None
        machine_code.mark_used(self.path)
        return content

    def write(self, content):
        """Write the file. A folder that cannot be written is reported when the driver is stored."""
        with contextlib.suppress(OSError, pickle.PicklingError):
            machine_code.write(self.path, machine_code.packed(self._key, content))
