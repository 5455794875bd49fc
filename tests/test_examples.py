"""Every example runs, with warnings as errors."""

import os
import runpy
import subprocess
import sys

import numpy as np
import pytest

from rbchain import Study
from rbchain.study.plan import Plan
from rbchain.study.reach import reach_of

from .mechanisms import EXAMPLES

# These are about compiled code; the others run as plain Python here, which needs no time to compile.
COMPILED = ("own_controller.py", "six_link_chain.py")
STUDIES = ("underwater_arm.py",)  # whose motions under drives in water would take longest of all to compile


@pytest.mark.parametrize(
    "script", sorted(path for path in EXAMPLES.glob("*.py") if path.name not in STUDIES), ids=lambda path: path.name
)
def test_an_example_runs(script):
    environment = os.environ if script.name in COMPILED else os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", script]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout


def test_the_example_of_a_cable_runs():
    """The first samples of it, of which none fails; that of landing is the README's first command."""
    study = Study.read(EXAMPLES / "cable.toml")
    description = study.description.model_copy(update={"samples": 40})
    outputs = Plan(description, study.folder).compute(0, 40)
    assert (outputs["status"] == 0).all()
    assert all(np.isfinite(values).all() for values in outputs.values())


def test_all_that_varies_in_the_underwater_arm_reaches_the_kernels():
    reached = reach_of(runpy.run_path(EXAMPLES / "underwater_arm.py")["study"]().plan)
    assert reached["current"] == "drives and wrenches"
    assert {"fluid_density", "mass"} < set(reached)
