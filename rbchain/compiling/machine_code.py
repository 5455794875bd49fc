"""Files of machine code: their keys, their folders, and their checks before execution."""

import contextlib
import hashlib
import os
import pickle
import sys
import time
import uuid
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numba
from numba import config

from ..common.progress import progress
from .levels import LEVEL, NATIVE

try:
    import fcntl
except ImportError:  # not on this operating system
    fcntl = None

PACKAGE = Path(__file__).parents[1]
#: Machine code that was installed with the package: files of the same names as in the user's cache.
INSTALLED = PACKAGE / "drivers" / "machine_code"
SUFFIX, KERNEL_SUFFIX = ".rbc", ".rbk"
MAGIC = b"rbchain machine code 1\n"
DIGEST_SIZE = hashlib.sha256().digest_size
#: How long files remain in the user's cache after their last use, s.
LONGEST_UNUSED = 90 * 86400.0
#: Files are marked as used at most once in this time, s.
BETWEEN_MARKS = 86400.0
#: How long a process waits for another one that compiles the same driver. A process that is stopped never ends.
LONGEST_WAIT = 300.0  # s


def digest_of(*parts):
    """SHA-256 digest, in hexadecimal, of anything that has a unique `repr`."""
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


def _source_digest():
    """Digest of all sources that drivers are compiled from: Numba's own cache checks only the driver's file."""
    digest = hashlib.sha256()
    for source in sorted(path for room in ("core", "drivers", "compiling") for path in PACKAGE.glob(f"{room}/**/*.py")):
        text = source.read_bytes()
        digest.update(f"{source.relative_to(PACKAGE).as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()


#: Identifies everything that determines the code of all drivers, except the processor and the signature.
BUILD = digest_of(
    _source_digest(),
    # builds of one version of Python, such as the free-threaded one, lay objects out differently
    [sys.implementation.cache_tag, getattr(sys, "abiflags", ""), sys.platform],
    numba.__version__,
    llvmlite.__version__,
    str(config.OPT),
    [config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT, config.USING_SVML],
    os.environ.get("RBCHAIN_LANE_WIDTH", ""),
)


def _host():
    """The processor and features that Numba compiles for: NUMBA_CPU_NAME, _CPU_FEATURES and _ENABLE_AVX set them."""
    features = llvm.get_host_cpu_features().flatten() if config.CPU_FEATURES is None else config.CPU_FEATURES
    return config.CPU_NAME or llvm.get_host_cpu_name(), features, config.ENABLE_AVX


#: Identifies the processors that the code of this process is compiled for.
TARGET = LEVEL if LEVEL != NATIVE else f"native-{digest_of(*_host())[:8]}"

#: The file that holds the code of each driver that this process has loaded or compiled, by the driver's Python function
#: and the types of its arguments.
files = {}

#: Called with a driver's Python function and the types of its arguments before this process compiles it. Returns a
#: context manager, which is open while the process compiles. `rbchain.drivers` sets it.
while_compiling: Callable


class UnusableFile(Exception):
    """A file of machine code that must not be executed; the message states why."""


def file_name(function, key, suffix=SUFFIX):
    """The name of a file. It shows function, processors and build for people, and for `rbchain doctor`."""
    return f"{function}.{TARGET}.{BUILD[:8]}.{key[:20]}{suffix}"


def packed(key, content):
    """The bytes of a file of machine code: a header with the key and a digest, then the pickled content, compressed."""
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


def write(path, file):
    """Write a file so that no other process ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.part")
    try:
        part.write_bytes(file)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def report_unusable(file, problem, compiled):
    """Warn that a file cannot be used, so that rbchain compiles what it contains again, unless it is in the package."""
    if file.parent == INSTALLED:
        consequence = "does not execute it. Reinstall rbchain: pip install --force-reinstall --no-deps rbchain"
    else:
        consequence = f"does not execute it and compiles {compiled} again"
    warnings.warn(f"the machine code {file} {problem}; rbchain {consequence}", stacklevel=3)


def mark_used(file):
    """Set the time of the last access to a file, which many file systems do not record."""
    with contextlib.suppress(OSError):
        found, now = file.stat(), time.time_ns()
        if now - found.st_atime_ns > 1e9 * BETWEEN_MARKS:
            os.utime(file, ns=(now, found.st_mtime_ns))


def remove_unused(folder):
    """Delete the files of machine code that no process has used for a long time, such as files of earlier versions."""
    oldest = time.time() - LONGEST_UNUSED
    for file in [*folder.glob(f"*{SUFFIX}*"), *folder.glob(f"*{KERNEL_SUFFIX}*")]:
        with contextlib.suppress(OSError):  # even if another process deletes it first
            found = file.stat()
            if max(found.st_atime, found.st_mtime) < oldest:
                file.unlink()


class Lock:
    """Lets one process compile a driver while others that need the same code wait for it."""

    def __init__(self):
        self._file, self._taken = None, False

    def take(self, path, driver):
        """Take the lock at a path; another process may have compiled the driver meanwhile.

        Where locks are impossible, such as in a folder that cannot be written, each process compiles. So does a process
        that has waited for LONGEST_WAIT.
        """
        if fcntl is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w")
            if not self._try():
                end = time.monotonic() + LONGEST_WAIT
                with progress(f"Waiting for another process, which compiles {driver}"):
                    while not self._try() and time.monotonic() < end:
                        time.sleep(0.02)
        except OSError:
            self.release()

    def _try(self):
        """Take the lock if no other process has it; returns whether this one has it now."""
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._taken = True
        return self._taken

    def release(self):
        """Let the waiting processes go on."""
        if self._file is None:
            return
        if self._taken:
            with contextlib.suppress(OSError):
                os.unlink(self._file.name)  # a process that opens it later finds the machine code
                fcntl.flock(self._file, fcntl.LOCK_UN)  # closing is not enough if a forked child has the file too
        self._file.close()
        self._file, self._taken = None, False
