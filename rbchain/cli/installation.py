"""The installation as `rbchain doctor` shows it: processor, lanes, threads, compile cache and versions."""

import os
import platform
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import llvmlite.binding
import numba

from .. import __version__
from ..compiling import machine_code
from ..compiling.levels import LANE_WIDTHS, NATIVE, PLAIN_NUMBA, supported_levels
from ..drivers import dynamics
from ..drivers.threads import get_num_threads

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
        "threads": f"{get_num_threads()} of {os.cpu_count()} cores (set by RBCHAIN_NUM_THREADS or rb.options)",
        "compiling": jit,
        "machine code": _machine_code(),
        "cache": _cache_state(),
        "packages": ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
        "extras": ", ".join(f"{name} {_version(name)}" for name in EXTRAS),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _machine_code() -> str:
    """Describe the processors that this process compiles for, and the build."""
    if PLAIN_NUMBA:
        return "RBCHAIN_PLAIN_NUMBA is set: every process compiles for its host and stores no machine code"
    wanted = os.environ.get("RBCHAIN_MACHINE_CODE")
    chosen = "RBCHAIN_MACHINE_CODE" if wanted else f"the best of {', '.join(supported_levels()) or NATIVE}"
    return f"for {machine_code.TARGET} ({chosen}), build {machine_code.BUILD[:8]}"


def _cache() -> Path | None:
    """Return the folder of the user's cache; None if machine code is not stored."""
    cache = getattr(dynamics.forward_dynamics, "_cache", None)
    path = getattr(cache, "cache_path", None)
    return None if path is None else Path(path)


def _cache_state() -> str:
    """Describe the folder with the machine code: its size, and whether it can be written."""
    folder = _cache()
    if folder is None:
        return "none: machine code is not stored, and every process compiles again"
    files = list(folder.glob(f"*{machine_code.SUFFIX}"))
    current = _current(folder)
    size = sum(file.stat().st_size for file in files)
    state = "" if os.access(_existing(folder), os.W_OK) else "; not writable, so new machine code is not stored"
    count = f"{len(files)} files, {size / 1e6:.1f} MB, {len(current)} for this process"
    return f"{folder}: {count}{state} (set by NUMBA_CACHE_DIR)"


def _existing(folder: Path) -> Path:
    """Return the folder, or the closest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _current(folder: Path) -> list[str]:
    """Return the name of the driver of each file that this process can load from a folder."""
    ending = f".{machine_code.TARGET}.{machine_code.BUILD[:8]}."
    return [file.name.partition(ending)[0] for file in folder.glob(f"*{ending}*{machine_code.SUFFIX}")]


def driver_origins() -> dict[str, tuple[int, int]]:
    """Count the signatures of each driver whose machine code is in the package, and in the cache."""
    folder = _cache()
    installed = Counter(_current(machine_code.INSTALLED))
    cached = Counter(_current(folder) if folder is not None else [])
    return {driver: (installed[driver], cached[driver]) for driver in sorted(installed | cached)}
