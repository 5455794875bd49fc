"""Processor levels: for which instruction set drivers are compiled, and hence how many lanes a register has.

A level, such as x86-64-v3, is a set of instructions that a family of processors shares (x86-64 psABI, section 3.1.1).
Code for a level runs on every processor that supports the level, so one cache or one wheel serves many machines.
"""

import os
from typing import NamedTuple

import llvmlite.binding as llvm
import numba


class Level(NamedTuple):
    """A set of instructions: architecture, LLVM's name, the processor features it needs, bytes of a vector register."""

    architecture: str
    cpu: str
    features: tuple[str, ...]
    register_bytes: int


_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
#: By name, best first.
LEVELS = {
    "x86-64-v4": Level("x86_64", "x86-64-v4", _V4, 64),
    "x86-64-v3": Level("x86_64", "x86-64-v3", _V3, 32),
    "x86-64-v2": Level("x86_64", "x86-64-v2", _V2, 16),
    "aarch64": Level("aarch64", "generic", ("neon",), 16),
}
#: Instead of a level: the host with all its features. No other kind of processor can use that code.
NATIVE = "native"
#: Set in processes that compile drivers and never call them, so that the level may be one of another processor.
COMPILE_ONLY = bool(os.environ.get("RBCHAIN_COMPILE_ONLY"))
#: Use only Numba's public interface: compile for the host, in every process.
PLAIN_NUMBA = os.environ.get("RBCHAIN_PLAIN_NUMBA", "") not in ("", "0")


def supported_levels():
    """The levels that this processor supports, best first."""
    features = llvm.get_host_cpu_features()
    return [name for name, level in LEVELS.items() if all(features.get(feature) for feature in level.features)]


def levels_of_architecture():
    """The levels that this process can compile for, best first: it cannot compile for another architecture."""
    architecture = llvm.get_process_triple().partition("-")[0].replace("arm64", "aarch64")
    return [name for name, level in LEVELS.items() if level.architecture == architecture]


def level_to_compile_for():
    """The level of this process: RBCHAIN_MACHINE_CODE, or else the best that the processor supports."""
    wanted, supported = os.environ.get("RBCHAIN_MACHINE_CODE"), supported_levels()
    choices = [*(levels_of_architecture() if COMPILE_ONLY else supported), NATIVE]
    if wanted and wanted not in choices:
        known = "a level that this processor does not support" if wanted in LEVELS else "not a level"
        raise ValueError(f"RBCHAIN_MACHINE_CODE is {wanted!r}, {known}; expected one of {', '.join(choices)}")
    if PLAIN_NUMBA or not supported:
        return NATIVE
    return wanted or supported[0]


def _register_bytes():
    """The widest vector register of the level, in bytes."""
    if LEVEL in LEVELS:
        return LEVELS[LEVEL].register_bytes
    features = llvm.get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx") else 16


def _lane_widths():
    """Lanes per register for each precision; RBCHAIN_LANE_WIDTH gives the number for float64 instead."""
    if numba.config.DISABLE_JIT:
        return {"float64": 1, "float32": 1}
    override = os.environ.get("RBCHAIN_LANE_WIDTH")
    width = _register_bytes() // 8 if not override else int(override) if override.isdecimal() else None
    if width not in (2, 4, 8, 16):
        raise ValueError(f"RBCHAIN_LANE_WIDTH is {override!r}; expected 2, 4, 8 or 16")
    return {"float64": width, "float32": 2 * width}


LEVEL = level_to_compile_for()
LANE_WIDTHS = _lane_widths()
