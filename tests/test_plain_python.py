"""The tests of `plain_python`, run so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "plain_python"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("test_*.py")), ids=lambda path: path.name)
def test_what_holds_in_plain_python(file):
    """Warnings are no errors there: NumPy's numbers warn of what is not finite, and compiled ones do not."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-W", "default::RuntimeWarning", str(file)]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=FOLDER.parents[1])
    assert run.returncode == 0, run.stdout[-5000:]
