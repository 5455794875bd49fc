"""Processor levels: for which instruction set drivers are compiled, and hence how many lanes a register has.

A level, such as x86-64-v3, is a set of instructions that a family of processors shares (x86-64 psABI, section 3.1.1).
Code for a level runs on every processor that supports the level, so one cache or one wheel serves many machines.
"""

import os

import llvmlite.binding as llvm
import numba

V3_FEATURES = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
V4_FEATURES = (*V3_FEATURES, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
# LLVM's name of each level, best first: the features that it needs, and the bytes of its vector registers
LEVELS = {
    "x86-64-v4": (V4_FEATURES, 64),
    "x86-64-v3": (V3_FEATURES, 32),
    "x86-64-v2": (("ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"), 16),
}
NATIVE = "native"
#: Set in processes that compile drivers and never call them, so that the level may be one of another processor.
COMPILE_ONLY = bool(os.environ.get("RBCHAIN_COMPILE_ONLY"))
#: Use only Numba's public interface: compile for the host, in every process.
PLAIN_NUMBA = os.environ.get("RBCHAIN_PLAIN_NUMBA", "") not in ("", "0")


def supported_levels():
    """The levels that this processor supports, best first; empty on processors other than x86-64."""
    features = llvm.get_host_cpu_features()
    return [level for level, (needed, _) in LEVELS.items() if all(features.get(name) for name in needed)]


def level_to_compile_for():
    """The level of this process: RBCHAIN_MACHINE_CODE, or else the best that the processor supports.

    "native" stands for the host with all its features; no other kind of processor can use that code.
    """
    wanted = os.environ.get("RBCHAIN_MACHINE_CODE")
    if wanted and wanted != NATIVE and wanted not in LEVELS:
        raise ValueError(
            f"RBCHAIN_MACHINE_CODE is {wanted!r}; expected {NATIVE!r} or one of {', '.join(map(repr, LEVELS))}"
        )
    if PLAIN_NUMBA or wanted == NATIVE:
        return NATIVE
    supported = supported_levels()
    if wanted and wanted not in supported and not COMPILE_ONLY:
        raise ValueError(f"RBCHAIN_MACHINE_CODE is {wanted!r}; this processor supports {', '.join(supported)}")
    return wanted or next(iter(supported), NATIVE)


def _register_bytes():
    """The widest vector register of the level, in bytes."""
    if LEVEL in LEVELS:
        return LEVELS[LEVEL][1]
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 64
    if features.get("avx"):
        return 32
    return 16


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
