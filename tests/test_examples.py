"""Every example runs, with warnings as errors."""

import os
import subprocess
import sys

import pytest

from .mechanisms import EXAMPLES

# These are about compiled code; the others run as plain Python here, which needs no time to compile.
COMPILED = ("own_controller.py", "six_link_chain.py")


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(script):
    environment = os.environ if script.name in COMPILED else os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", script]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout
