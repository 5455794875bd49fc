"""Studies with actuators in TOML: the same motion as in Python, and dispersions of their numbers."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import StudyError

from ..mechanisms import slide

pytestmark = pytest.mark.plain_python

FILE = """
samples = 5
seed = 3
[model]
file = "slide.toml"
[simulate]
duration = 0.3
[[drives]]
kind = "PID"
joint = "slide"
reference = 0.3
kp = 20.0
kd = 8.0
[drives.sampled]
period = 0.05
[[drives]]
kind = "Actuator"
joint = "slide"
time_constant = 0.01
stall_torque = 5.0
no_load_speed = 0.4
[[vary]]
parameter = "time_constant"
distribution = { kind = "uniform", low = 0.0, high = 0.05 }
[[vary]]
parameter = "stall_torque"
how = "multiply"
distribution = { kind = "uniform", low = 0.5, high = 1.0 }
[[measures]]
name = "end"
quantity = "position"
joint = "slide"
"""


def study_file(tmp_path, text=FILE):
    rb.save(slide(), tmp_path / "slide.toml")
    (tmp_path / "study.toml").write_text(text)
    return rb.Study.read(tmp_path / "study.toml")


def test_a_study_file_is_the_simulation_of_its_draws(tmp_path):
    results = study_file(tmp_path).run()
    T, factor = results.parameters.values.T
    drives = [
        rb.Sampled(rb.PID("slide", 0.3, kp=20.0, kd=8.0), period=0.05),
        rb.Actuator("slide", time_constant=T, stall_torque=5.0 * factor, no_load_speed=0.4),
    ]
    motion = slide().simulate(np.zeros((5, 1)), np.zeros((5, 1)), 0.3, drives=drives)
    np.testing.assert_array_equal(results.end.values, motion.q[:, -1, 0])
    assert np.unique(results.end.values).size == 5
    alone = slide().simulate(
        [[0.0]],
        [[0.0]],
        0.3,
        drives=[drives[0], rb.Actuator("slide", T[2], 5.0 * factor[2], 0.4)],
    )
    np.testing.assert_array_equal(alone.q[0, -1, 0], motion.q[2, -1, 0])


def test_a_table_of_torques_and_speeds(tmp_path):
    old = "time_constant = 0.01\nstall_torque = 5.0\nno_load_speed = 0.4"
    text = FILE.replace(old, "torque_speed = [[-1.0, 6.0], [0.0, 5.0], [0.4, 0.0]]").split("[[vary]]")[0]
    text += '[[measures]]\nname = "end"\nquantity = "position"\njoint = "slide"\n'
    end = study_file(tmp_path, text.replace("samples = 5", "samples = 1")).run().end.values
    pid = rb.Sampled(rb.PID("slide", 0.3, kp=20.0, kd=8.0), period=0.05)
    curve = rb.Actuator("slide", torque_speed=[[-1.0, 6.0], [0.0, 5.0], [0.4, 0.0]])
    np.testing.assert_array_equal(end, slide().simulate([[0.0]], [[0.0]], 0.3, drives=[pid, curve]).q[:, -1, 0])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[drives.sampled]\nperiod = 0.05\n", "", "no drive of this joint is a digital controller"),
        ("time_constant = 0.01", "time_constants = 0.01", "Actuator has no time_constants"),
        ("stall_torque = 5.0", "stall_torque = -5.0", "expected a torque of at least 0"),
        (
            "stall_torque = 5.0\nno_load_speed = 0.4\n",
            "",
            "'stall_torque' has no effect .* check that the model's own values are not 0 or infinite",
        ),
        ('"stall_torque"\n', '"stall_torque"\ntargets = "arm"\n', "'arm' does not match any drive"),
    ],
)
def test_mistakes_in_a_study_file_are_named(tmp_path, old, new, message):
    with pytest.raises(StudyError, match=message):
        study_file(tmp_path, FILE.replace(old, new, 1))
