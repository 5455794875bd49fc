"""Timing of several functions in turns, and the description of the processor."""

import platform
import time
from pathlib import Path

import numpy as np

from rbchain.compiling.levels import LANE_WIDTHS

ROUNDS = 9


def medians(contestants, rounds=ROUNDS, clock=time.perf_counter):
    """Measure the median seconds of each function, called in turns.

    Each measured call follows an unmeasured call of the same function, so that all start with their own data in the
    caches. On a machine that runs other programs, time.process_time omits the time in which these have the core.
    """
    seconds = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, call in contestants.items():
            call()
            started = clock()
            call()
            seconds[name].append(clock() - started)
    return {name: float(np.median(of)) for name, of in seconds.items()}


def relative(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


def processor():
    """Return the name of the processor and the width of its registers."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {LANE_WIDTHS['float64']} lanes of float64"
