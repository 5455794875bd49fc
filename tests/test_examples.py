"""Every example runs without warnings and writes its picture."""

import os
import pickle
import runpy
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.image import imread

from rbchain import Study
from rbchain.study.plan.effects import effects_of

from .mechanisms import EXAMPLES, ROBOTS

SCRIPTS = sorted(EXAMPLES.glob("*.py"))
# These show compiled code. The others run in plain Python here, which saves the time to compile.
COMPILED = ("own_controller.py", "six_link_chain.py", "swinging_arms.py", "when_pendulums_flip.py")
FEW = {  # samples, duration or calls
    "digital_arm.py": ("2", "0.02"),
    "four_bars.py": ("2",),
    "predictive_control.py": ("2", "2"),
    "quadruped.py": ("2", "0.05"),
    "resting_arms.py": ("2",),
    "satellite.py": ("2", "5"),  # samples, and a limit that all of them exceed
    "slider_crank.py": ("2", "0.1"),
    "swinging_arms.py": ("12",),
    "swinging_up.py": ("4", "2", "0.2"),  # policies, generations, duration
    "underwater_arm.py": ("2",),
}


def test_scripts_with_settings_of_their_own_exist():
    assert {*COMPILED, *FEW} <= {script.name for script in SCRIPTS}
    assert len(SCRIPTS) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_an_example_runs_and_makes_its_picture(script, tmp_path):
    if script.name == "quadruped.py" and not ROBOTS.is_dir():
        pytest.skip("example-robot-data is not installed")
    environment = os.environ if script.name in COMPILED else os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", script, *FEW.get(script.name, ())]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout
    picture = imread(tmp_path / f"{script.stem}.png")[..., :3]
    assert (np.ptp(picture, axis=-1) > 0.1).sum() > 100  # the picture contains colored pixels


@pytest.mark.slow
def test_the_cable_example_runs():
    """The first steps of two samples run in plain Python. The README's first command runs the landing example."""
    study = Study.read(EXAMPLES / "cable.toml")
    shorter = study.description.simulate.model_copy(update={"duration": 0.01, "save_at": 3})
    description = study.description.model_copy(update={"samples": 2, "simulate": shorter})
    code = "import pickle, sys; from rbchain.study.plan.plan import plan_of\n"
    code += "plan = plan_of(*pickle.load(sys.stdin.buffer))\n"
    code += "sys.stdout.buffer.write(pickle.dumps(plan.compute(0, 2)))"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    given = pickle.dumps((description, EXAMPLES))
    run = subprocess.run([sys.executable, "-c", code], input=given, env=environment, capture_output=True, check=True)
    outputs = pickle.loads(run.stdout)
    assert (outputs["status"] == 0).all()
    assert all(np.isfinite(values).all() for values in outputs.values())


def test_every_dispersion_of_the_underwater_arm_reaches_the_kernels():
    reached = effects_of(runpy.run_path(EXAMPLES / "underwater_arm.py")["study"]().plan)
    assert reached["current.velocity.[xy]"] == "drives and forces"
    assert {"fluid_density", "*.mass_and_inertia"} < set(reached)
