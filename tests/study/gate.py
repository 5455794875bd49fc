"""A measure that keeps a study from finishing before a test has interrupted it, however slow the machine is."""

import os
import time
from pathlib import Path

import numpy as np

file = os.environ.get("RBCHAIN_TEST_GATE")
calls = 0


def use(path):
    """Use this file in a process that was started without the variable RBCHAIN_TEST_GATE."""
    global file, calls
    file, calls = path, 0


def wait_at_gate(model, motion):
    """Return ones. While the file exists, a process computes only as many chunks as the file says, and then waits."""
    global calls  # noqa: PLW0603
    calls += 1
    while file and Path(file).exists() and calls > int(Path(file).read_text(encoding="utf-8")):
        time.sleep(0.01)
    return np.ones(len(motion.q))
