"""The random cases of `plain_python`, run so: shared out by their files, and as many as `--fuzz` says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "plain_python"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("test_*.py")), ids=lambda path: path.name)
def test_random_cases_in_plain_python(file, request):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        str(file),
        "--fuzz",
        str(request.config.getoption("--fuzz")),
    ]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=FOLDER.parents[2])
    assert run.returncode == 0, run.stdout[-5000:]
