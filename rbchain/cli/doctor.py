"""`rbchain doctor`: the installation, the processor and the compile cache."""

import argparse
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from rich.console import Console
from rich.table import Table

from .. import __version__
from ..core.simd.lanes import LANE_WIDTHS
from ..drivers import dynamics
from ..drivers.threads import get_num_threads
from .output import EXIT_OK, help_texts

FEATURES = ("sse2", "avx", "avx2", "fma", "avx512f", "neon", "sve")
PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "rich", "lxml", "tomli-w", "lazy-loader")
EXTRAS = (
    "pint",
    "trimesh",
    "mujoco",
    "pydantic",
    "xarray",
    "zarr",
    "matplotlib",
    "SALib",
    "pandas",
    "distributed",
    "viser",
)


def add_doctor(commands: Any) -> None:
    """Add the command `doctor` to the parser."""
    summary = "show the installation: processor, lanes, threads, compile cache and package versions"
    texts = help_texts(f"{summary.capitalize()}.", "rbchain doctor")
    doctor = commands.add_parser("doctor", help=summary, **texts)
    doctor.set_defaults(command=_doctor, subject=lambda options: None, when_interrupted="nothing was changed")


def _doctor(options: argparse.Namespace, subject: None, console: Console) -> int:
    table = Table(show_header=False, box=None)
    for name, value in findings().items():
        table.add_row(name, value)
    console.print(table)
    return EXIT_OK


def findings() -> dict[str, str]:
    """Return the properties of the installation by name."""
    host = llvmlite.binding.get_host_cpu_features()
    present = [feature for feature in FEATURES if host.get(feature)]
    jit = "off: NUMBA_DISABLE_JIT is set, and functions run in plain Python" if numba.config.DISABLE_JIT else "on"
    return {
        "rbchain": f"{__version__} in {Path(__file__).parents[1]}",
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "processor": f"{llvmlite.binding.get_host_cpu_name()} with {', '.join(present) or 'no vector instructions'}",
        "lanes": f"{LANE_WIDTHS['float64']} of float64, {LANE_WIDTHS['float32']} of float32",
        "threads": f"{get_num_threads()} of {os.cpu_count()} cores (set by RBCHAIN_NUM_THREADS or rb.set_num_threads)",
        "compiling": jit,
        "cache": _cache(),
        "packages": ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
        "extras": ", ".join(f"{name} {_version(name)}" for name in EXTRAS),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cache() -> str:
    """Describe the folder with the machine code: its size, and whether it can be written."""
    cache = getattr(dynamics.forward_dynamics, "_cache", None)
    if cache is None or not hasattr(cache, "cache_path"):
        return "none: machine code is not kept, and every process compiles again"
    folder = Path(cache.cache_path).parent
    files = [file for file in folder.rglob("*") if file.suffix in (".nbi", ".nbc")] if folder.exists() else []
    size = sum(file.stat().st_size for file in files)
    state = (
        ""
        if os.access(folder if folder.exists() else folder.parent, os.W_OK)
        else "; not writable, so machine code is not kept"
    )
    return f"{folder}: {len(files)} files, {size / 1e6:.0f} MB{state} (set by NUMBA_CACHE_DIR)"
