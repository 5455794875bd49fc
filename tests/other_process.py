"""Results of a function of a test module from a new process, such as one in which Numba compiles nothing."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np


def computed(function, *arguments, **environment):
    """Call a function in a new process with these environment variables, and return its arrays by name.

    The function is at the top of a module of the tests. Its arguments are numbers, strings or None.
    """
    call = [function.__module__, function.__name__, json.dumps(arguments)]
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.other_process", *call],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)} | environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert result.returncode == 0, result.stderr
    return {name: np.array(value) for name, value in json.loads(result.stdout).items()}


if __name__ == "__main__":
    module, name, given = sys.argv[1:]
    results = getattr(importlib.import_module(module), name)(*json.loads(given))
    json.dump({name: np.asarray(value).tolist() for name, value in results.items()}, sys.stdout)
