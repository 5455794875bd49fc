"""Every example runs, with warnings as errors."""

import subprocess
import sys

import pytest

from .mechanisms import EXAMPLES


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(script):
    run = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout
