"""Compile drivers in parallel processes: each process takes a group of drivers that share kernels."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba

from ..common.processes import environment_of_process
from ..compiling.levels import PLAIN_NUMBA
from ..drivers.threads import get_num_threads
from ..errors import RbchainError
from .signatures import Signature

#: A process keeps everything that it compiles in memory, about 20 MB for each driver.
MOST_PER_PROCESS = 16


class Workers:
    """The processes that record and compile; another thread may stop them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def start(self, *arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        """Start a process as `subprocess.Popen` does; RbchainError once all are stopped."""
        with self._lock:
            if self._stopped:
                raise RbchainError("the compilation was stopped")
            process = subprocess.Popen(*arguments, **options)
            self._running = {process, *(other for other in self._running if other.poll() is None)}
        return process

    def stop(self) -> None:
        """End all processes, and let no new one start."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()


def compile_signatures(
    signatures: Sequence[Signature],
    level: str | None = None,
    processes: int | None = None,
    advance: Callable[[Signature], object] = lambda signature: None,
    workers: Workers | None = None,
) -> list[Path]:
    """Compile those drivers of which there is no machine code yet, into the user's cache.

    Parameters
    ----------
    signatures : list of Signature
    level : str, optional
        A processor level, such as "x86-64-v4"; it need not be one that this processor supports. By default the
        level of this process.
    processes : int, optional
        How many processes compile at once; by default `rb.get_num_threads()`.
    advance : function(signature)
        Called after each driver.
    workers : Workers, optional
        The processes, for a caller that may have to stop them.

    Returns
    -------
    list of Path
        The file of machine code of each signature, in order.

    Raises
    ------
    RbchainError
        If a driver cannot be compiled.
    """
    if PLAIN_NUMBA or numba.config.DISABLE_JIT:
        name = "RBCHAIN_PLAIN_NUMBA" if PLAIN_NUMBA else "NUMBA_DISABLE_JIT"
        raise RbchainError(f"nothing can be compiled in advance, because {name} is set; unset it")
    processes = min(processes or get_num_threads(), max(1, len(signatures)))
    # all cores are busy, so that second processes would only take memory
    environment = environment_of_process(RBCHAIN_COMPILE_ONLY="1", RBCHAIN_NUM_THREADS="1")
    if level is not None:
        environment["RBCHAIN_MACHINE_CODE"] = level
    own, files = workers or Workers(), dict[Signature, Path]()

    def compile_group(group: Sequence[Signature]) -> None:
        files.update(_compile_group(group, environment, advance, own))

    with ThreadPoolExecutor(processes) as pool:
        jobs = [pool.submit(compile_group, group) for group in groups(signatures, processes)]
        try:
            for job in jobs:
                job.result()
        except BaseException:
            for job in jobs:
                job.cancel()
            own.stop()
            raise
    return [files[signature] for signature in signatures]


def groups(signatures: Sequence[Signature], processes: int) -> list[list[Signature]]:
    """Signatures in groups for one process each: those with the same types of arrays share kernels."""
    by_arrays: dict[tuple[str, ...], list[Signature]] = {}
    for signature in signatures:
        by_arrays.setdefault(tuple(map(str, signature.types[1:4])), []).append(signature)
    found = list(by_arrays.values())
    while found and (len(found) < processes or max(map(len, found)) > MOST_PER_PROCESS):
        longest = max(found, key=len)
        if len(longest) == 1:
            break
        found.remove(longest)
        found += [longest[::2], longest[1::2]]
    return sorted(found, key=len, reverse=True)


def _compile_group(
    group: Sequence[Signature], environment: dict[str, str], advance: Callable[[Signature], object], workers: Workers
) -> dict[Signature, Path]:
    """Compile drivers in one process; returns their files."""
    files, command, pipe = {}, [sys.executable, "-m", "rbchain.precompile.worker"], subprocess.PIPE
    # a file for the errors, because nobody empties a second pipe while the process compiles
    with tempfile.TemporaryFile() as errors:
        with workers.start(command, env=environment, stdin=pipe, stdout=pipe, stderr=errors) as process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(pickle.dumps(group))
            process.stdin.close()
            for signature, line in zip(group, process.stdout, strict=False):
                files[signature] = Path(line.decode().rstrip("\n"))
                advance(signature)
        errors.seek(0)
        problem = errors.read().decode(errors="replace").strip()
    if len(files) < len(group):
        raise RbchainError(f"the driver {group[len(files)].name} cannot be compiled: {problem}")
    return files
