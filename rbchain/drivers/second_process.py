"""A second process that compiles kernels of a driver while this process compiles the others.

It compiles the kernels in another order and keeps them in files, which this process loads. It has the lowest priority,
and this process never waits for it.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

from ..common.processes import environment_of_process
from .threads import get_num_threads


@contextlib.contextmanager
def second_process(driver, types):
    """Within this, a second process compiles kernels of a driver, if rbchain may use more than one thread.

    Parameters
    ----------
    driver : function
        The driver as a Python function.
    types : tuple
        Numba types of its arguments.
    """
    process = _started(driver, types) if get_num_threads() > 1 and _is_python(sys.executable) else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()
            with contextlib.suppress(OSError):  # it may have ended before it read its task
                process.stdin.close()


def _is_python(executable):
    """Return whether a program is Python: not if another program contains the interpreter."""
    return Path(executable or "").name.lower().startswith(("python", "pypy")) and not hasattr(sys, "frozen")


def _started(driver, types):
    """Start the process; returns None if that is impossible, or if other processes cannot know the types."""
    try:
        task = pickle.dumps((driver.__module__, driver.__name__, types))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    low_priority = {}
    if sys.platform == "win32":
        low_priority["creationflags"] = subprocess.IDLE_PRIORITY_CLASS | subprocess.CREATE_NO_WINDOW
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "rbchain.drivers.kernel_worker"],
            env=environment_of_process(RBCHAIN_COMPILE_ONLY="1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **low_priority,
        )
    except (OSError, ValueError):
        return None
    with contextlib.suppress(OSError):
        if hasattr(os, "setpriority"):
            os.setpriority(os.PRIO_PROCESS, process.pid, 19)
        process.stdin.write(task)  # the end of the input, after the task, is the end of this process
        process.stdin.flush()
    return process
