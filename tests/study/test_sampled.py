"""Studies with digital controllers in TOML: dispersions of their numbers, and noise of each sample in any chunk."""

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
[[drives]]
type = "PID"
joint = "slide"
reference = 0.3
kp = 20.0
kd = 8.0
[drives.sampled]
period = 0.05
delay = 0.01
sensors = [{ type = "Encoder", resolution = 1e-4, noise = 1e-3, measures_velocity = true }]
[vary."*.delay"]
distribution = { type = "uniform", low = 0.0, high = 0.07 }
[vary."*.bias"]
distribution = { type = "normal", mean = 0.0, std = 1e-2 }
[vary."*.kp"]
how = "multiply"
distribution = { type = "uniform", low = 0.9, high = 1.1 }
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
    study = study_file(tmp_path)
    results = study.run()
    delay, bias, factor = results.parameters.values.T
    encoder = rb.Encoder("slide", resolution=1e-4, noise=1e-3, bias=bias, measures_velocity=True, seed=3)
    pid = rb.PID("slide", 0.3, kp=20.0 * factor, kd=8.0)
    drive = rb.Sampled(pid, period=0.05, delay=delay, sensors=[encoder])
    motion = slide().simulate(np.zeros((7, 1)), np.zeros((7, 1)), 0.3, drives=[drive], save_at=2)
    np.testing.assert_array_equal(results.end.values, motion.q[:, -1, 0])
    assert np.unique(results.end.values).size == 7
    np.testing.assert_array_equal(study.run(chunk=3).end.values, results.end.values)
    np.testing.assert_array_equal(study.sample(5, save_at=2)[2].q[-1], motion.q[5, -1])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[drives.sampled]\nperiod = 0.05", "[drives.sampled]\nperiods = 0.05", "Sampled has no periods"),
        ("period = 0.05", "period = -1.0", "Sampled PID of joint 'slide': period is -1.0"),
        (
            '{ type = "Encoder", ',
            '{ type = "Gyroscope", ',
            "type is 'Gyroscope'; expected one of Encoder, VelocitySensor",
        ),
        ("*.bias", "arm.bias", "nothing named 'arm' has 'bias'"),
    ],
)
def test_mistakes_in_a_study_file_are_named(tmp_path, old, new, message):
    with pytest.raises(StudyError, match=message):
        study_file(tmp_path, FILE.replace(old, new, 1))


def test_a_sensitivity_analysis_refuses_noise_of_sensors(tmp_path):
    with pytest.raises(StudyError, match="sensor noise"):
        study_file(tmp_path).sobol_indices("end", base_samples=4)


def test_noise_that_only_a_dispersion_adds_depends_on_the_sample_and_the_seed():
    """The nominal encoder has no noise."""
    encoder = rb.Encoder("slide")
    drive = rb.Sampled(rb.PID("slide", 0.3, kp=20.0, kd=8.0), period=0.05, sensors=[encoder])

    def study(seed):
        return rb.Study(
            model=slide(),
            samples=5,
            seed=seed,
            simulate={"duration": 0.1, "save_at": 2, "method": "rk4", "step": 0.05},
            drives=[drive],
            vary={"*.noise": rb.Discrete([1e-3])},
            measures=[{"name": "end", "quantity": "position", "joint": "slide"}],
        )

    found = study(3).run().end.values
    assert np.unique(found).size == 5
    np.testing.assert_array_equal(study(3).run(chunk=2).end.values, found)
    assert (study(4).run().end.values != found).all()
    with pytest.raises(StudyError, match="sensor noise"):
        study(3).sobol_indices("end", base_samples=4)
