"""Studies with random signals: each sample has its own, in any chunk, by itself and after the study is resumed."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import StudyError

from ..mechanisms import slide

pytestmark = pytest.mark.plain_python

FILE = """
name = "slide in noise"
samples = 12
seed = 7
[model]
file = "slide.toml"
[simulate]
duration = 0.5
method = "rk4"
step = 0.05
save_at = 3
[[drives]]
type = "PrescribedForce"
joint = "slide"
signal = { type = "ornstein_uhlenbeck", std = 2.0, correlation_time = 0.2 }
[[forces]]
type = "Wrench"
frame = "slide"
force = [{ type = "sea_state", significant_wave_height = 2.0, peak_period = 5.0, sines = 10 }, 0, 0]
[vary."*.signal"]
how = "multiply"
distribution = { type = "uniform", low = 0.5, high = 1.5 }
[[measures]]
name = "end"
quantity = "position"
joint = "slide"
"""


def study_of(**changes):
    given = {
        "model": slide(),
        "samples": 12,
        "seed": 7,
        "simulate": {"duration": 0.5, "method": "rk4", "step": 0.05, "save_at": 3},
        "drives": [rb.PrescribedForce("slide", rb.Signal.ornstein_uhlenbeck(2.0, 0.2))],
        "forces": [rb.Wrench("slide", force=(rb.Signal.sea_state(2.0, 5.0, sines=10), 0, 0))],
        "vary": {"*.signal": rb.Dispersion(rb.Uniform(0.5, 1.5), how="multiply")},
        "measures": [{"name": "end", "quantity": "position", "joint": "slide"}],
    }
    return rb.Study(**given | changes)


@pytest.mark.slow
def test_a_sample_has_the_same_noise_in_any_chunk_and_by_itself(tmp_path):
    study = study_of()
    ends = study.run().end.values
    assert np.unique(ends).size == 12
    np.testing.assert_array_equal(study.run(chunk=5).end.values, ends)
    np.testing.assert_array_equal(study.sample(9, save_at=3)[2].q[-1], ends[9])
    np.testing.assert_array_equal(study.motions(3, first=4, save_at=3).q[:, -1, 0], ends[4:7])
    first = study.run(out=tmp_path / "out", chunk=4)
    np.testing.assert_array_equal(first.end.values, ends)
    assert not (study_of(seed=8).run().end.values == ends).any()


def test_the_noise_is_that_of_the_seed_and_sample_and_a_draw_scales_it():
    study = study_of(forces=[])
    results = study.run()
    factors = results.parameters.values
    force = rb.Signal.ornstein_uhlenbeck(2.0 * factors[:, 0], 0.2, interval=0.01, seed=7, channel=0)
    start = np.zeros((12, 1))
    motion = slide().simulate(
        start, start, 0.5, method="rk4", step=0.05, save_at=3, drives=[rb.PrescribedForce("slide", force)]
    )
    np.testing.assert_allclose(results.end.values, motion.q[:, -1, 0], rtol=0, atol=1e-15)


def test_files_and_python_give_the_same_samples(tmp_path):
    rb.save(slide(), tmp_path / "slide.toml")
    (tmp_path / "study.toml").write_text(FILE)
    np.testing.assert_array_equal(rb.Study.read(tmp_path / "study.toml").run().end, study_of().run().end)


def test_noise_needs_memory_and_has_no_sensitivity_indices():
    without = study_of(drives=[], forces=[], vary={})
    with_noise = study_of(vary={})
    intervals = 0.5 / 0.01 + 1
    assert with_noise.plan.bytes_per_sample() == without.plan.bytes_per_sample() + 3 * 32 * (intervals + 10)
    with pytest.raises(
        StudyError, match="random signals or sensor noise, whose effect on the measure does not belong to a"
    ):
        study_of().sobol_indices("end", base_samples=4)


def test_errors_name_the_force():
    force = {"type": "Wrench", "frame": "slide", "force": [{"type": "random_walk", "intensity": 1.0}, 0, 0]}
    with pytest.raises(StudyError, match=r"forces\[0\].*Wrench: .*interval"):
        study_of(forces=[force])
    with pytest.raises(
        StudyError, match=r"drives and forces: std of a random signal has shape \(2,\); expected one number"
    ):
        study_of(drives=[rb.PrescribedForce("slide", rb.Signal.ornstein_uhlenbeck([1.0, 2.0], 0.2))])
