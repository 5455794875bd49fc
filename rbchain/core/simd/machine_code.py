"""Machine code of drivers: it is loaded from the installed package or the user's cache, or compiled and kept there.

A file of machine code is named by what it was compiled for. Its header repeats the key and holds a digest of the
content, so that damaged files and files with another origin are reported and never executed.
"""

import contextlib
import hashlib
import os
import pickle
import sys
import uuid
import warnings
import zlib
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numba
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCPUCodegen, get_host_cpu_features

from .levels import LEVEL, NATIVE

try:
    import fcntl
except ImportError:  # not on this operating system
    fcntl = None

PACKAGE = Path(__file__).parents[2]
#: Machine code that was installed with the package: files of the same names as in the user's cache.
INSTALLED = PACKAGE / "drivers" / "machine_code"
MAGIC = b"rbchain machine code 1\n"
DIGEST_SIZE = hashlib.sha256().digest_size


def _digest(*parts):
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


def _source_digest():
    """Digest of all sources that drivers are compiled from: Numba looks only at the file of the driver itself."""
    digest = hashlib.sha256()
    for source in sorted([*PACKAGE.glob("core/**/*.py"), *PACKAGE.glob("drivers/**/*.py")]):
        digest.update(f"{source.relative_to(PACKAGE).as_posix()} {source.stat().st_size}\n".encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


#: Identifies everything that determines the code of all drivers, except the level and the signature.
BUILD = _digest(
    _source_digest(),
    sys.implementation.cache_tag,
    numba.__version__,
    llvmlite.__version__,
    [config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT],
    config.USING_SVML,
    os.environ.get("RBCHAIN_LANE_WIDTH", ""),
)
TARGET = LEVEL if LEVEL != NATIVE else f"native-{_digest(llvm.get_host_cpu_name(), get_host_cpu_features())[:8]}"


class _LevelCodegen(JITCPUCodegen):
    """Numba's code generator for a level instead of the host."""

    def _get_host_cpu_name(self):
        return LEVEL

    def _get_host_cpu_features(self):
        return ""  # the features of the level, which LLVM knows by its name


_level_codegens = {}


@contextlib.contextmanager
def compiling_for_level(target_context):
    """Generate code for the level of this process within this context; the caller holds Numba's compiler lock.

    Other functions of the user, which Numba compiles outside of it, are compiled for the host as always.
    """
    if LEVEL == NATIVE or isinstance(target_context.codegen(), _LevelCodegen):
        yield
        return
    if target_context not in _level_codegens:
        _level_codegens[target_context] = _LevelCodegen("rbchain.exec")
    host, target_context._internal_codegen = target_context._internal_codegen, _level_codegens[target_context]  # noqa: SLF001 - Numba has no public way to compile for another processor
    try:
        yield
    finally:
        target_context._internal_codegen = host  # noqa: SLF001


# --- files ------------------------------------------------------------------------------------------------------------


class UnusableFile(Exception):
    """A file of machine code that must not be executed; the message says why."""


def packed(key, content):
    """The bytes of a file of machine code."""
    payload = zlib.compress(pickle.dumps(content, protocol=5), 6)
    named = bytes.fromhex(key)
    return MAGIC + named + hashlib.sha256(named + payload).digest() + payload


def unpacked(key, file):
    """The content of a file of machine code. Raise UnusableFile if it is damaged or belongs to another key."""
    end = len(MAGIC) + DIGEST_SIZE
    if not file.startswith(MAGIC) or len(file) < end + DIGEST_SIZE:
        raise UnusableFile("is not a file of rbchain's machine code")
    named, digest, payload = file[len(MAGIC) : end], file[end : end + DIGEST_SIZE], file[end + DIGEST_SIZE :]
    if hashlib.sha256(named + payload).digest() != digest:
        raise UnusableFile("is damaged (its SHA-256 digest does not match)")
    if named.hex() != key:
        raise UnusableFile("was compiled for something else")
    return pickle.loads(zlib.decompress(payload))


def _write(path, file):
    """Write a file so that no other process ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.part")
    try:
        part.write_bytes(file)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


# --- the cache of one driver ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _silent(driver, state):
    yield


#: Called as a context manager around what takes long, with the name of the driver and "compiling" or "waiting".
#: The layers above replace it by one that reports progress.
report = _silent

#: The file that holds the code of each driver that this process has loaded or compiled, by the driver's Python function
#: and the types of its arguments.
files = {}


class MachineCodeCache(FunctionCache):
    """Where a driver's machine code is looked up and kept: in the installed package, then in the user's cache.

    Problems with files cost time and are reported, but never make a calculation fail. While a process compiles, others
    that need the same code wait for it, if the cache's file system has locks.
    """

    def __init__(self, function):
        super().__init__(function)
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self.is_installed = Path(function.__code__.co_filename).parent == PACKAGE / "drivers"
        self._lock = None

    def key_of(self, sig, codegen):
        """The key of the code for a signature."""
        if self.is_installed:
            return _digest(BUILD, TARGET, self.name, str(sig))
        # of a driver of the user, its own file and what its closure holds determine the code too
        own = self._impl.locator.get_source_stamp(), self._index_key(sig, codegen)[2]
        return _digest(BUILD, TARGET, self.name, str(sig), *own)

    def file_name(self, key):
        """The name of the file with this key; it shows driver, target and build for people and for `rbchain doctor`."""
        return f"{self.name}.{TARGET}.{BUILD[:8]}.{key[:20]}.rbc"

    def load_overload(self, sig, target_context):
        """As in Numba: the compiled function for this signature, or None if it must be compiled."""
        target_context.refresh()
        key = self.key_of(sig, target_context.codegen())
        found = self._load(sig, key, target_context)
        if found is None and self._wait_for_lock(key):
            found = self._load(sig, key, target_context)
        return found

    def _load(self, sig, key, target_context):
        name = self.file_name(key)
        for folder in (*([INSTALLED] if self.is_installed else ()), Path(self.cache_path)):
            try:
                content = unpacked(key, (folder / name).read_bytes())
                found = self._impl.rebuild(target_context, content)
            except FileNotFoundError:
                continue
            except Exception as error:  # also what unpickling makes of a file that another program has written
                reason = str(error) if isinstance(error, UnusableFile) else f"cannot be loaded ({error!r})"
                self._warn(f"the machine code {folder / name} {reason}; {self.name} is compiled again")
                continue
            files[self._py_func, tuple(sig.args if hasattr(sig, "args") else sig)] = folder / name
            return found
        return None

    def save_overload(self, sig, data):
        """As in Numba: keep a compiled function in the user's cache."""
        if not self._impl.check_cachable(data):
            return
        content = self._impl.reduce(data)
        if self.is_installed:
            content = _without_bitcode(content, data.library)
        key = self.key_of(sig, data.codegen)
        path = Path(self.cache_path, self.file_name(key))
        try:
            _write(path, packed(key, content))
            files[self._py_func, tuple(data.signature.args)] = path
        except OSError as error:
            self._warn(
                f"the machine code of {self.name} cannot be stored in {self.cache_path} ({error.strerror}); every "
                "process will compile it again. Set NUMBA_CACHE_DIR to a folder that can be written"
            )

    def _warn(self, text):
        warnings.warn(text, stacklevel=2)

    # --- one process compiles, the others wait -----------------------------------------------------------------------

    def _wait_for_lock(self, key):
        """Take the lock of a key; returns whether another process had it, which may have compiled the code since."""
        if fcntl is None:
            return False
        path = Path(self.cache_path, self.file_name(key)).with_suffix(".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = path.open("w")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
            except BlockingIOError:
                with report(self.name, "waiting"):
                    fcntl.flock(self._lock, fcntl.LOCK_EX)
                return True
        except OSError:  # a folder that cannot be written, or a file system without locks
            self.release_lock()
            return False

    def release_lock(self):
        """Let other processes go on that wait for the code that this one compiles."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._lock.name)
            self._lock.close()
            self._lock = None


def _without_bitcode(content, library):
    """The content of a file without LLVM's bitcode: nothing is linked with drivers, and it is half of the file.

    A stub remains that defines the same symbols, because Numba looks them up there.
    """
    (name, kind, (machine_code, _)), *rest = content
    symbols = [f'define void @"{function.name}"() {{ ret void }}' for function in library.get_defined_functions()]
    return ((name, kind, (machine_code, llvm.parse_assembly("\n".join(symbols)).as_bitcode())), *rest)
