"""Timing competitors side by side, and what they ran on."""

import platform
import time
from pathlib import Path

import numpy as np

from rbchain.core.simd.levels import LANE_WIDTHS

ROUNDS = 9


def medians(contestants, rounds=ROUNDS):
    """Median seconds of each of the functions, called in turn.

    Each has an uncounted call before the counted one, so that none starts in caches that another has filled.
    """
    seconds = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, call in contestants.items():
            call()
            started = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - started)
    return {name: float(np.median(of)) for name, of in seconds.items()}


def relative(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


def processor():
    """What the machine calls itself, and how wide its registers are."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {LANE_WIDTHS['float64']} lanes of float64"
