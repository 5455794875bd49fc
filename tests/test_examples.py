"""Every example runs, with warnings as errors."""

import os
import subprocess
import sys

import numpy as np
import pytest

from rbchain import Study
from rbchain.study.plan import Plan

from .mechanisms import EXAMPLES

# These are about compiled code; the others run as plain Python here, which needs no time to compile.
COMPILED = ("own_controller.py", "six_link_chain.py", "underwater_arm.py")


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(script):
    environment = os.environ if script.name in COMPILED else os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", script]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore:.*model 'puma560'")
def test_an_example_study_runs(file):
    """The first samples of it, of which none fails."""
    study = Study.read(file)
    description = study.description.model_copy(update={"samples": 40})
    outputs = Plan(description, study.folder).compute(0, 40)
    assert (outputs["status"] == 0).all()
    assert all(np.isfinite(values).all() for values in outputs.values())
