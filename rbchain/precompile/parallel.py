"""Compile drivers in parallel processes: each process takes a group of drivers that share kernels."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..drivers.threads import get_num_threads
from ..errors import RbchainError
from .signatures import Signature

#: A process keeps all that it has compiled in memory, some 20 MB for each driver.
MOST_PER_PROCESS = 16


def compile_signatures(
    signatures: Sequence[Signature],
    level: str | None = None,
    processes: int | None = None,
    advance: Callable[[Signature], object] = lambda signature: None,
) -> list[Path]:
    """Compile drivers that are not compiled yet, into the user's cache.

    Parameters
    ----------
    signatures : list of Signature
    level : str, optional
        A processor level, such as "x86-64-v4"; it need not be one that this processor supports. By default that of
        this process.
    processes : int, optional
        How many processes compile at once; by default `rb.get_num_threads()`.
    advance : function(signature)
        Called after each driver.

    Returns
    -------
    list of Path
        The file of machine code of each signature, in order.

    Raises
    ------
    RbchainError
        If a driver cannot be compiled.
    """
    processes = min(processes or get_num_threads(), max(1, len(signatures)))
    environment = os.environ | {"RBCHAIN_COMPILE_ONLY": "1"}
    if level is not None:
        environment["RBCHAIN_MACHINE_CODE"] = level
    with ThreadPoolExecutor(processes) as pool:
        jobs = [pool.submit(_compile_group, group, environment, advance) for group in groups(signatures, processes)]
        try:
            files: dict[Signature, Path] = {}
            for job in jobs:
                files |= job.result()
        except BaseException:
            for job in jobs:
                job.cancel()
            raise
    return [files[signature] for signature in signatures]


def groups(signatures: Sequence[Signature], processes: int) -> list[list[Signature]]:
    """Signatures in groups for one process each: those with the same types of arrays share kernels."""
    by_arrays: dict[tuple[str, ...], list[Signature]] = {}
    for signature in signatures:
        by_arrays.setdefault(tuple(map(str, signature.types[1:4])), []).append(signature)
    found = list(by_arrays.values())
    while len(found) < processes or max(map(len, found)) > MOST_PER_PROCESS:
        longest = max(found, key=len)
        if len(longest) == 1:
            break
        found.remove(longest)
        found += [longest[::2], longest[1::2]]
    return sorted(found, key=len, reverse=True)


def _compile_group(
    group: Sequence[Signature], environment: dict[str, str], advance: Callable[[Signature], object]
) -> dict[Signature, Path]:
    command = [sys.executable, "-m", "rbchain.precompile.worker"]
    files = {}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as worker:
        assert worker.stdin is not None and worker.stdout is not None and worker.stderr is not None
        worker.stdin.write(pickle.dumps(group))
        worker.stdin.close()
        for signature, line in zip(group, worker.stdout, strict=False):
            files[signature] = Path(line.decode().rstrip("\n"))
            advance(signature)
        problem = worker.stderr.read().decode().strip()
    if worker.returncode != 0 or len(files) < len(group):
        raise RbchainError(
            f"{group[len(files)].name if len(files) < len(group) else group[-1].name} cannot be compiled: {problem}"
        )
    return files
