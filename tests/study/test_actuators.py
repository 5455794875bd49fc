"""Studies with actuators in TOML: the same motion as in Python, and dispersions of their numbers."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import StudyError

from ..mechanisms import slide

pytestmark = pytest.mark.plain_python

CONTROLLER = """[[drives]]
type = "PID"
joint = "slide"
reference = 0.3
kp = 20.0
kd = 8.0"""
FILE = f"""
samples = 5
seed = 3
[model]
file = "slide.toml"
[simulate]
duration = 0.3
{CONTROLLER}
[drives.sampled]
period = 0.05
[[drives]]
type = "Actuator"
joint = "slide"
time_constant = 0.01
stall_torque = 5.0
no_load_speed = 0.4
[vary."*.time_constant"]
distribution = {{ type = "uniform", low = 0.0, high = 0.05 }}
[vary."*.stall_torque"]
how = "multiply"
distribution = {{ type = "uniform", low = 0.5, high = 1.0 }}
[[measures]]
name = "end"
quantity = "position"
joint = "slide"
"""


def study_file(tmp_path, text=FILE):
    rb.save(slide(), tmp_path / "slide.toml")
    (tmp_path / "study.toml").write_text(text)
    return rb.Study.read(tmp_path / "study.toml")


@pytest.mark.slow
def test_a_study_file_is_the_simulation_of_its_draws(tmp_path):
    results = study_file(tmp_path).run()
    T, factor = results.parameters.values.T
    drives = [
        rb.Sampled(rb.PID("slide", 0.3, kp=20.0, kd=8.0), period=0.05),
        rb.Actuator("slide", time_constant=T, stall_torque=5.0 * factor, no_load_speed=0.4),
    ]
    motion = slide().simulate(np.zeros((5, 1)), np.zeros((5, 1)), 0.3, drives=drives, save_at=2)
    np.testing.assert_array_equal(results.end.values, motion.q[:, -1, 0])
    assert np.unique(results.end.values).size == 5
    alone = slide().simulate(
        [[0.0]],
        [[0.0]],
        0.3,
        drives=[drives[0], rb.Actuator("slide", time_constant=T[2], stall_torque=5.0 * factor[2], no_load_speed=0.4)],
        save_at=2,
    )
    np.testing.assert_array_equal(alone.q[0, -1, 0], motion.q[2, -1, 0])


def test_a_table_of_torques_and_speeds(tmp_path):
    old = "time_constant = 0.01\nstall_torque = 5.0\nno_load_speed = 0.4"
    text = FILE.replace(old, "torque_speed = [[-1.0, 6.0], [0.0, 5.0], [0.4, 0.0]]").split("[vary.")[0]
    text += '[[measures]]\nname = "end"\nquantity = "position"\njoint = "slide"\n'
    end = study_file(tmp_path, text.replace("samples = 5", "samples = 1")).run().end.values
    pid = rb.Sampled(rb.PID("slide", 0.3, kp=20.0, kd=8.0), period=0.05)
    curve = rb.Actuator("slide", torque_speed=[[-1.0, 6.0], [0.0, 5.0], [0.4, 0.0]])
    np.testing.assert_array_equal(
        end, slide().simulate([[0.0]], [[0.0]], 0.3, drives=[pid, curve], save_at=2).q[:, -1, 0]
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[drives.sampled]\nperiod = 0.05\n", "", "no drive of this joint is a digital controller"),
        ("time_constant = 0.01", "time_constants = 0.01", "Actuator has no time_constants"),
        ("stall_torque = 5.0", "stall_torque = -5.0", "expected a torque of at least 0"),
        (
            "stall_torque = 5.0\nno_load_speed = 0.4\n",
            "",
            "stall_torque\" has no effect .* check that the model's own values are not 0 or infinite",
        ),
        ("*.stall_torque", "arm.stall_torque", "nothing named 'arm' has 'stall_torque'"),
    ],
)
def test_mistakes_in_a_study_file_are_named(tmp_path, old, new, message):
    with pytest.raises(StudyError, match=message):
        study_file(tmp_path, FILE.replace(old, new, 1))


MOTOR = f"""
samples = 4
[model]
file = "slide.toml"
values = {{ damping = 0.5 }}
[[model.motors]]
joint = "slide"
stiffness = 40.0
damping = 0.2
backlash = 0.01
rotor_inertia = 0.002
gear_ratio = 10.0
motor_damping = 0.001
[simulate]
duration = 0.3
{CONTROLLER}
[vary."slide_deflection.limit_stiffness"]
how = "multiply"
distribution = {{ type = "uniform", low = 0.5, high = 1.0 }}
[[measures]]
name = "deflection"
quantity = "position"
joint = "slide_deflection"
"""


@pytest.mark.slow
def test_a_study_file_adds_motors_with_elasticity_and_backlash(tmp_path):
    results = study_file(tmp_path, MOTOR).run()
    model = slide(damping=0.5).with_motor(
        *("slide", 40.0),
        damping=0.2,
        backlash=0.01,
        rotor_inertia=0.002,
        gear_ratio=10.0,
        motor_damping=0.001,
    )
    factor = results.parameters.values
    model = model.vary(limit_stiffness=model.limit_stiffness * np.column_stack([np.ones(4), factor]))
    motion = model.simulate(
        np.zeros((4, 2)), np.zeros((4, 2)), 0.3, drives=[rb.PID("slide", 0.3, kp=20.0, kd=8.0)], save_at=2
    )
    np.testing.assert_array_equal(results["deflection"], motion.q[:, -1, 1])
    assert np.ptp(motion.q[:, -1, 1]) > 1e-4


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('joint = "slid"', "model: with_motor: .*'slid'.*did you mean slide"),
        ("stiffness = -1.0", "model.*stiffness is -1.0; expected one number of at least 0"),
        ("stifness = 40.0", r"model.motors\[0\]: unknown key 'stifness'.*did you mean stiffness"),
    ],
)
def test_motors_that_are_impossible_are_refused_by_name(tmp_path, line, message):
    name = "joint" if line.startswith("joint") else "stiffness"
    before, found, after = MOTOR.partition("[[model.motors]]\n")
    lines = [line if given.startswith(f"{name} =") else given for given in after.splitlines()]
    with pytest.raises(StudyError, match=message):
        study_file(tmp_path, before + found + "\n".join(lines))
