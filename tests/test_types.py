"""Type checkers and the package itself find misspelled names in programs of users."""

import json
import subprocess
import sys

import numpy as np
import pytest

import rbchain as rb
from rbchain.model.description import VARIABLE_FIELDS
from rbchain.model.varied_fields import VariedFields

BEGINNING = """\
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rbchain as rb

arm = rb.Model.serial_chain(2)
builder = rb.ModelBuilder()
motion = arm.simulate(np.zeros((1, 2)), np.zeros((1, 2)), 0.01)
"""
#: What a user writes with the right names.
RIGHT = """\
builder.add_body("upper", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia.rod(1.0, mass=1.0))
builder.add_body("lower", parent="upper", joint=rb.Composite([rb.Revolute(), rb.Prismatic()]), inertia=rb.Inertia(1.0))
pose = rb.Pose((1, 0, 0)) @ rb.Pose(rotation=np.eye(3)).inverse()
many = arm.vary({"link2.mass": np.linspace(1.0, 2.0, 3)}).replace(damping=[0.1, 0.2])
masses: np.ndarray = many[1:].mass
damping: np.ndarray = arm.joint["link2"].damping
drives = [rb.PID("link1", 0.5, kp=20.0, kd=[1.0, 2.0, 3.0]), rb.PrescribedForce("link2", rb.Signal.sines(1.0, 6.0))]
friction = rb.DryFriction("link2", kinetic=0.1)
events = [rb.Event("link1", value=0.2)]
swing = many.simulate([0, 0], np.zeros(2), 0.01, drives=drives, method="rk4", step=1e-3, save_at=3, on_failure="raise")
last: np.ndarray = swing[0].q[-1]
torque: np.ndarray = swing.of_joint("link1").tau
ok: bool = swing.success and not swing.failed.any()
kinetic, potential = arm.energy(np.zeros(2), np.zeros(2))
study = rb.Study(arm, samples=2, simulate=rb.Simulation(0.01), design=np.zeros((2, 2)), vary={"*.q": rb.Uniform(0, 1)})
sobol = rb.Study(arm, samples=2, simulate=rb.Simulation(0.01), design="sobol", vary={"*.q": rb.Uniform(0, 1)})
rows = rb.Study(arm, samples=1, simulate=rb.Simulation(0.01), design=[[0.1, 0.2]], vary={"*.q": rb.Uniform(0, 1)})
unit: str = study.inputs["link1.q"].unit
drawn: np.ndarray = study.inputs.sample(3)
whole: NDArray[np.floating[Any]] = motion.tau
mean: np.floating[Any] = arm.mass_matrix(np.zeros(2)).mean()
signal = 2 * rb.Signal.constant(1.0) + rb.Signal.polynomial([0.0, 1.0]).derivative()
"""
#: Misspellings that both type checkers find.
FOUND_BY_CHECKERS = """\
arm.masses = [1.0, 1.0]
builder.gravty = (0.0, 0.0, 0.0)
arm.vary(masss=[1.0, 1.0])
arm.replace(dampng=[0.1, 0.1])
arm.simulate(np.zeros(2), np.zeros(2), 0.01, method="RK45")
arm.simulate(np.zeros(2), np.zeros(2), 0.01, on_failure="rais")
rb.Study(arm, samples=3, simulat={"duration": 1.0})
rb.Study(arm, samples=3, simulate={"duration": 1.0}, design="rndom")
rb.Study(arm, samples=3, simulate={"duration": 1.0}).run(executor="proceses")
rb.Signal.table([0.0, 1.0], [0.0, 1.0], interpolation="qubic")
arm.simulate(np.zeros(2), np.zeros(2), 0.01, drives=[rb.Wrench("link1")])
arm.simulate(np.zeros(2), np.zeros(2), 0.01, forces=[rb.PID("link1", 0.0, kp=1.0)])
rb.Wrench("link1", axes="local")
rb.Event("link1", quantity="speed")
rb.ModelBuilder(nonphysical_inertia="accept")
rb.PID("link1", 0.0, kp=1.0, gain=2.0)
rb.Screw((0, 0, 1))
rb.PID("link1", 0.0, kp=1.0, controller_model="true")
rb.Sampled(rb.UserForces(print), outputs="positon")
rb.Signal.noise(1.0, (0.0, 1.0), amplitudes="randm")
rb.Signal.sea_state(1.0, 8.0, quantity="elevtion")
rb.Visual("spher", (1.0,))
rb.Units("mm-kg")
arm.generate(language="fortran")
arm.generate(["mass_matrx"])
motion.plot("stats")
motion.sucess
arm.body["link1"].mas
rb.StateError
"""
#: Real numbers that are used as other numbers. Only the checkers find them.
WRONG_ARRAYS = """\
frequencies: NDArray[np.integer[Any]] = motion.qd
names: NDArray[np.str_] = arm.forward_dynamics(np.zeros(2), np.zeros(2))
"""
#: Mistakes that the types allow. They raise an error when the object is made or the function is called.
FOUND_WHEN_MADE = {
    'rb.PID("link1", 0.0, kp="big")': (rb.ArgumentError, "kp"),
    'rb.PID("link1", "target", kp=1.0)': (rb.ArgumentError, "now called"),
    "rb.Sampled(print, outputs=3)": (rb.ArgumentError, "outputs is 3; expected 'force', "),
    'rb.fit(arm, motion, ["mas"])': (rb.ArgumentError, "expected names among"),
    'rb.SphereContact("link1", point=(0, 0, 0), radius=-1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1))': (
        rb.ArgumentError,
        "radius",
    ),
    'rb.Sampled(rb.PID("link1", 0.0, kp=1.0), period=-1.0)': (rb.ArgumentError, "period"),
    'arm.vary({"link2.mas": 1.0})': (rb.ArgumentError, "did you mean mass"),
    'arm.vary({"link5.mass": 1.0})': (rb.UnknownNameError, "link5"),
}


def program(path, lines):
    """A file with the beginning and these lines, and the number of its first line that differs from the beginning."""
    path.write_text(BEGINNING + lines)
    return BEGINNING.count("\n") + 1


def lines_with_errors_of_mypy(path):
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        "",
        "--no-error-summary",
        "--cache-dir",
        path.parent,
        path,
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not found.stderr
    errors = [line.split(":", 3) for line in found.stdout.splitlines() if ": error:" in line]
    assert all(name.endswith(path.name) for name, *_ in errors), found.stdout
    return {int(line): text for _, line, _, text in errors}


def lines_with_errors_of_pyright(path):
    path.with_name("pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard"}))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, path.name]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=path.parent)
    errors = [x for x in json.loads(found.stdout)["generalDiagnostics"] if x["severity"] == "error"]
    return {x["range"]["start"]["line"] + 1: x["message"] for x in errors}


CHECKERS = pytest.mark.parametrize("errors_of", [lines_with_errors_of_mypy, lines_with_errors_of_pyright])


@pytest.mark.slow
@CHECKERS
def test_type_checkers_accept_a_program_of_a_user(tmp_path, errors_of):
    program(tmp_path / "right.py", RIGHT)
    assert errors_of(tmp_path / "right.py") == {}


@pytest.mark.slow_cases("lines_with_errors_of_mypy")
@CHECKERS
def test_type_checkers_find_each_misspelling(tmp_path, errors_of):
    lines = FOUND_BY_CHECKERS + WRONG_ARRAYS
    first = program(tmp_path / "wrong.py", lines)
    found = errors_of(tmp_path / "wrong.py")
    missed = [line for i, line in enumerate(lines.splitlines(), first) if i not in found]
    assert not missed
    assert min(found) >= first


def run(lines):
    names = {}
    exec(BEGINNING, names)
    exec(lines, names)


def test_the_program_of_a_user_runs():
    run(RIGHT)


@pytest.mark.parametrize("line", FOUND_BY_CHECKERS.splitlines())
def test_each_misspelling_is_an_error_when_it_runs(line):
    with pytest.raises((rb.RbchainError, AttributeError, TypeError)):
        run(line)


@pytest.mark.parametrize(("line", "expected"), FOUND_WHEN_MADE.items())
def test_other_mistakes_are_errors_when_the_object_is_made(line, expected):
    with pytest.raises(expected[0], match=expected[1]):
        run(line)


def test_type_checkers_know_all_fields_that_vary():
    assert VariedFields.__annotations__.keys() == VARIABLE_FIELDS.keys() | {"body"}


def test_arrays_have_types():
    assert isinstance(rb.Model.serial_chain(2).mass, np.ndarray)
