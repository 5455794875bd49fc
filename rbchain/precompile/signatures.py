"""Signatures of drivers: recorded while the calls run in plain Python, so that nothing needs to be compiled first.

Run as a program, this module prints the pickled signatures of everything, or of a study.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba

from ..core.simd import jit
from ..errors import RbchainError


class Signature(NamedTuple):
    """A driver and the Numba types of its arguments."""

    module: str
    name: str
    types: tuple[Any, ...]


@contextlib.contextmanager
def _recorded() -> Iterator[list[Signature]]:
    """Within this, each new signature of a driver that plain Python calls is added to the list."""
    found: dict[Signature, None] = {}
    signatures: list[Signature] = []

    def record(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        signature = Signature(function.__module__, function.__name__, tuple(map(numba.typeof, arguments)))
        if signature not in found:
            found[signature] = None
            signatures.append(signature)

    jit.before_plain_call = record
    try:
        yield signatures
    finally:
        jit.before_plain_call = None


def signatures_of_everything() -> list[Signature]:
    """The signatures that the functions of the documentation, the examples and the command line have."""
    return _in_plain_python("everything")


def signatures_of_study(file: str | Path) -> list[Signature]:
    """The signatures that a study needs. The study file is checked first, as `Study.read` does."""
    return _in_plain_python("study", str(file))


def _in_plain_python(*arguments: str) -> list[Signature]:
    """Run this module in a process of its own: Numba reads NUMBA_DISABLE_JIT only once."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "RBCHAIN_NUM_THREADS": "1"}
    command = [sys.executable, "-m", __name__, *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, check=False)
    if run.returncode != 0:
        raise RbchainError(f"the signatures of the drivers cannot be recorded: {run.stderr.decode().strip()}")
    signatures: list[Signature] = pickle.loads(run.stdout)
    return signatures


def _main(what: str, *arguments: str) -> None:
    from . import calls

    with _recorded() as signatures:
        calls.call_study(*arguments) if what == "study" else calls.call_everything()
    # under this module's importable name, because this process knows it as __main__
    from rbchain.precompile.signatures import Signature as Importable

    sys.stdout.buffer.write(pickle.dumps([Importable(*signature) for signature in signatures]))


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except (RbchainError, OSError, ValueError) as error:
        sys.exit(str(error))
