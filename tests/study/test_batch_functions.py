"""Study files with user functions: compiled ones and those that Python calls for the whole batch."""

import sys

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import StudyError

from ..mechanisms import slide

pytestmark = pytest.mark.plain_python

FILE = """
samples = 7
seed = 3
[model]
file = "slide.toml"
[simulate]
duration = 0.3
method = "rk4"
step = 0.05
[[drives]]
type = "UserForces"
function = "controllers_of_this_study:batch"
parameters = [20.0]
[drives.sampled]
period = 0.05
states = [0.0]
joints = ["slide"]
sensors = [{ type = "Encoder", joint = "slide", noise = 1e-3 }]
[vary."*.mass"]
how = "multiply"
distribution = { type = "uniform", low = 0.9, high = 1.1 }
[[measures]]
name = "end"
quantity = "position"
joint = "slide"
"""
CODE = """
def batch(t, q, qd, parameters, states):
    states += 1.0
    return parameters * (0.3 - q) - 8.0 * qd + 1e-3 * states


def compiled(t, q, qd, parameters, states, out):
    states[0] += 1.0
    out[0] = parameters[0] * (0.3 - q[0]) - 8.0 * qd[0] + 1e-3 * states[0]


def target(t, q, qd, parameters):
    return 0.5 * (q + 0.3)


def continuous(t, q, qd, parameters, out):
    out[0] = parameters[0] * (0.3 - q[0])
"""


@pytest.fixture
def study_of(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    rb.save(slide(), tmp_path / "slide.toml")
    (tmp_path / "controllers_of_this_study.py").write_text(CODE)

    def read(text=FILE, **options):
        (tmp_path / "study.toml").write_text(text)
        return rb.Study.read(tmp_path / "study.toml", **options)

    yield read
    sys.modules.pop("controllers_of_this_study", None)


def test_a_study_file_names_functions(study_of, tmp_path):
    """Both kinds of function give the same results, in any chunk."""
    study = study_of()
    assert study.modules == {"controllers_of_this_study": str(tmp_path / "controllers_of_this_study.py")}
    found = study.run()
    for other in (study_of(FILE.replace(":batch", ":compiled")), study_of()):
        np.testing.assert_array_equal(other.run(chunk=3)["end"], found["end"])
    assert np.ptp(found["end"].values) > 0.0


def test_a_continuous_function_in_a_study_file(study_of):
    head, _, tail = FILE.partition("[drives.sampled]")
    text = head.replace(":batch", ":continuous") + tail[tail.index("[vary.") :]
    study = study_of(text)
    results = study.run()
    factor = results.parameters.values
    assert factor.shape == (7, 1)
    mass = np.float64(slide().mass[0]) * factor[:, 0]
    exact = 0.3 - 0.3 * np.cos(np.sqrt(20.0 / mass) * 0.3)
    np.testing.assert_allclose(results["end"].values, exact, rtol=0, atol=2e-6)


def test_a_cascade_in_a_study_file(study_of):
    """The gains of the inner controller vary; the study is the simulation of its draws."""
    inner = '[[drives]]\ntype = "PID"\njoint = "slide"\nreference = "outer"\nkp = 30.0\nkd = 8.0\n[vary.'
    text = FILE.replace(":batch", ":target").replace("states = [0.0]", 'outputs = "position"')
    text = text.replace("[vary.", inner).replace("*.mass", "*.kp").replace(", noise = 1e-3", "")
    study = study_of(text)
    results, times = study.run(), study.description.simulate.saved_times.size
    factor = results.parameters.values[:, 0]
    drives = [
        rb.Sampled(lambda t, q, qd, parameters: 0.5 * (q + 0.3), period=0.05, outputs="position"),
        rb.PID("slide", "outer", kp=30.0 * factor, kd=8.0),
    ]
    zero = np.zeros((7, 1))
    motion = slide().simulate(zero, zero, 0.3, method="rk4", step=0.05, drives=drives, save_at=times)
    np.testing.assert_allclose(results["end"].values, motion.q[:, -1, 0], rtol=1e-13)


def test_functions_of_a_study_file_are_checked(study_of):
    with pytest.raises(StudyError, match=r"drives\[0\].function is 'controllers.*, but importing code is not allowed"):
        study_of(code=False)
    with pytest.raises(StudyError, match=r"drives\[0\].function is .*which cannot be imported"):
        study_of(FILE.replace(":batch", ":none"))
    with pytest.raises(StudyError, match="Encoder: required keys are missing: joint"):
        study_of(FILE.replace('joint = "slide", noise', "noise"))
    with pytest.raises(StudyError, match=r"drives\[0\].*'batch' is called states, but there are no states"):
        head, _, tail = FILE.partition("[drives.sampled]")
        study_of(head + tail[tail.index("[vary.") :])
