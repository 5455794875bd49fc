"""Signatures of drivers: recorded while a function runs in plain Python, so that nothing needs to be compiled first."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numba

from ..common.processes import environment_of_process
from ..compiling import jit
from ..errors import RbchainError


class Signature(NamedTuple):
    """A driver, by module and name, and the Numba types of its arguments."""

    module: str
    name: str
    types: tuple[Any, ...]


def signatures_of(
    function: Callable[[], object], start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
) -> list[Signature]:
    """Call a function in a process that runs rbchain in plain Python; returns the signatures of the drivers it calls.

    Parameters
    ----------
    function : callable
        Without arguments; it must be picklable. What it prints is lost.
    start : function
        Starts the process: `subprocess.Popen`, or a function with the same arguments.

    Returns
    -------
    list of Signature
        Each once, in the order of their first calls.

    Raises
    ------
    RbchainError
        If the function raises, or cannot be pickled.
    """
    try:
        pickled = pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise RbchainError(f"the drivers cannot be recorded in another process: {error}") from error
    # a process of its own, because Numba reads NUMBA_DISABLE_JIT only once
    environment = environment_of_process(NUMBA_DISABLE_JIT="1", RBCHAIN_NUM_THREADS="1")
    command, pipe = [sys.executable, "-m", "rbchain.precompile.recorder"], subprocess.PIPE
    with start(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        output, errors = process.communicate(pickled)
    if process.returncode != 0:
        raise RbchainError(f"the drivers cannot be recorded: {errors.decode(errors='replace').strip()}")
    signatures: list[Signature] = pickle.loads(output)
    return signatures


def recorded(function: Callable[[], object]) -> list[Signature]:
    """The signatures of the drivers that a function calls in this process, which runs plain Python."""
    found: dict[Signature, None] = {}

    def record(driver: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        found[Signature(driver.__module__, driver.__name__, tuple(map(numba.typeof, arguments)))] = None

    jit.before_plain_call = record
    try:
        function()
    finally:
        jit.before_plain_call = None
    return list(found)
