"""Repeat tests as other processors run them, so that a green run means green there too.

The quick tests in plain Python run without AVX-512 in NumPy, whose sums then round differently. All of them would take
half an hour. A compiled part runs for each other level that this machine supports.
"""

import os
import subprocess
import sys

import numpy as np

from rbchain.compiling.levels import LEVEL, supported_levels

LEVELS = ("x86-64-v4", "x86-64-v3")
COMPILED = ("dynamics", "derivatives", "simulation", "rosenbrock", "closed_motions", "contact")


def features_beyond_avx2():
    """Return the AVX-512 features that NumPy uses here. Their names depend on its version."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return [name for name in found if "AVX512" in name or name == "X86_V4"]


def run_tests(arguments, **variables):
    """Run pytest with these environment variables, and end with its status if it fails."""
    print("+", *(f"{name}={value!r}" for name, value in variables.items()), "pytest", *arguments, flush=True)
    command = [sys.executable, "-m", "pytest", "--quiet", *arguments]
    status = subprocess.run(command, env=os.environ | variables, check=False).returncode
    if status:
        sys.exit(status)


if __name__ == "__main__":
    features = features_beyond_avx2()
    if features:
        run_tests(["-m", "plain_python and quick and not slow"], NPY_DISABLE_CPU_FEATURES=" ".join(features))
    files = [f"tests/test_{name}.py" for name in COMPILED]
    for level in LEVELS:
        if level != LEVEL and level in supported_levels():
            run_tests([*files, "-m", "not plain_python and not slow"], RBCHAIN_MACHINE_CODE=level)
