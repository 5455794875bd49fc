"""Where functions and classes come from: Python and installed packages, whose versions identify them, or the user."""

import functools
import hashlib
import sys
import sysconfig
import types
from importlib import metadata
from pathlib import Path

#: Packages whose code is part of the build, or changes only with its version.
KNOWN_PACKAGES = ("rbchain", "numba", "llvmlite", "numpy", "math", "cmath", "operator", "builtins")
FOLDERS_OF_PACKAGES = {"site-packages", "dist-packages"}
FOLDERS_OF_PYTHON = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}


def module_of(value):
    return str(getattr(value, "__module__", None) or type(value).__module__)


def name_of(value):
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", "")
    return name if isinstance(value, types.ModuleType) else f"{module_of(value)}.{name}"


def package_of(module):
    return str(module).partition(".")[0]


@functools.cache
def is_known(module):
    """Whether a module belongs to Python or to an installed package, whose version identifies its code."""
    package, file = package_of(module), getattr(sys.modules.get(str(module)), "__file__", None)
    if package in KNOWN_PACKAGES or file is None:
        return package in KNOWN_PACKAGES or package in sys.stdlib_module_names
    folders = Path(file).resolve().parents
    is_installed = any(folder.name in FOLDERS_OF_PACKAGES for folder in folders)
    return is_installed or (package in sys.stdlib_module_names and not FOLDERS_OF_PYTHON.isdisjoint(folders))


@functools.cache
def version_of(module):
    """The version of the package of a known module, and the digest of its file; of known packages only the name."""
    package = package_of(module)
    if package in KNOWN_PACKAGES or package in sys.stdlib_module_names:
        return package
    versions = [metadata.version(name) for name in metadata.packages_distributions().get(package, ())]
    file = getattr(sys.modules.get(module), "__file__", None)
    return repr((package, sorted(versions), file and hashlib.sha256(Path(file).read_bytes()).hexdigest()))
