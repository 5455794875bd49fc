"""A second process that compiles kernels of a driver while this process compiles the others.

It compiles the kernels in another order and keeps them in files, which this process loads. It has the lowest priority,
and this process never waits for it.
"""

import contextlib
import pickle
import subprocess
import sys
import tempfile

from ..processes import environment_of_process
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
    process = _started(driver, types) if get_num_threads() > 1 else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def _started(driver, types):
    """Start the process; returns None if it cannot be started, or if other processes cannot know the types."""
    command = [sys.executable, "-m", "rbchain.drivers.kernel_worker"]
    environment = environment_of_process(RBCHAIN_COMPILE_ONLY="1")
    with (
        contextlib.suppress(OSError, TypeError, AttributeError, pickle.PicklingError),
        tempfile.TemporaryFile() as task,
    ):
        pickle.dump((driver.__module__, driver.__name__, types), task)
        task.seek(0)
        return subprocess.Popen(
            command, env=environment, stdin=task, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    return None
