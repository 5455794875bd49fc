"""Studies from Python that are read again from the folder of their results."""

import json
import shutil

import numpy as np
import pytest
from scipy import stats

import rbchain as rb
from rbchain import cli
from rbchain.study import Correlation, Factorial, LatinHypercube, MultivariateNormal, Outputs, StopWhen, Table

pytestmark = pytest.mark.plain_python
DIGITAL = rb.Sampled(rb.PID("link1", 0.1, kp=1), period=0.02, sensors=[rb.Encoder("link1", resolution=0.01)])
GUST = rb.Signal.ornstein_uhlenbeck(std=1.0, correlation_time=0.1)
TABLE = rb.Signal.table([0.0, 0.02], [0.0, 1.0])
CONTROLLED = rb.Model.serial_chain(2).vary(damping=[0.1, 0.2])
DRIVEN = rb.ModelBuilder()
for body in ("link1", "link2"):
    DRIVEN.add_body(body, joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
DRIVEN.add_drive(rb.PID("link1", 0.1, kp=1.0))
CASES = {
    "no arguments": {},
    "PID": {"drives": [rb.PID("link1", rb.Signal.constant(0.3), kp=1), rb.PID("link2", 0.3, kp=2.0, limit=3)]},
    "signals": {
        "drives": [rb.PID("link1", rb.Signal.sines([1.0, 0.1], 6.0), kp=1)],
        "forces": [rb.Wrench("link2", force=(0, TABLE, 0.1), name="wind")],
    },
    "noise": {"forces": [rb.Wrench("link2", force=(GUST, 0, 0))]},
    "digital": {"drives": [DIGITAL, rb.Actuator("link1", time_constant=0.01)]},
    "springs": {
        "forces": [
            rb.SpringDamper(None, "link1", point_a=(0, 0, 1), point_b=(0, 0, 0), stiffness=1.0),
            rb.Bushing(None, "link2", stiffness=np.eye(6), pose_a=rb.Pose((0, 0, 1))),
        ]
    },
    "events": {"events": [rb.Event("link1", value=0.05), rb.Event("link2", value=0.1, stop=True)]},
    "contacts": {
        "simulate": rb.Simulation(0.02, method="moreau", step=0.01),
        "forces": [rb.DryFriction("link1", 0.1, static=0.2)],
    },
    "state": {"simulate": rb.Simulation(0.02, q=[0.1, 0.2], qd=0.5, tau=np.array([0.1, 0]), save_at=[0.01, 0.02])},
    "array": {"design": np.linspace(-0.1, 0.1, 8).reshape(4, 2)},
    "designs": {"design": LatinHypercube()},
    "factorial": {"design": Factorial(2)},
    "correlations": {
        "correlate": [Correlation(["link1.q", "link2.q"], [[1, 0.5], [0.5, 1]])],
        "stop_when": StopWhen(measure="angle", half_width=0.1),
        "outputs": Outputs(motion=True),
    },
    "distributions": {
        "vary": {
            "link1.mass": rb.Dispersion(rb.Normal(1, 0.1), how="multiply"),
            "link[12].q": rb.Uniform("-5 deg", "5 deg"),
            "link2.cg": MultivariateNormal(mean=[0, 0.1, 0], covariance=1e-4 * np.eye(3)),
            "*.damping": rb.Dispersion(stats.beta(2, 3, scale=1e-4), shared=True),
        }
    },
    "controllers with another model": {
        "model": CONTROLLED,
        "drives": [rb.ComputedTorque(joint, 0.1, kp=1.0, kd=0.1) for joint in CONTROLLED.joint_names],
    },
    "drives of the model": {"model": DRIVEN.build()},
    "no drives": {"model": DRIVEN.build(), "drives": ()},
}


def study_of(**changes):
    keys = {
        "model": rb.Model.serial_chain(2),
        "samples": 4,
        "seed": 7,
        "simulate": rb.Simulation(0.02, method="rk4", step=0.01),
        "vary": {"*.q": rb.Uniform(-0.1, 0.1)},
        "measures": [rb.Measure("angle", "position", joint="link1")],
    }
    return rb.Study(**keys | changes)


@pytest.mark.fast_cases("state")
@pytest.mark.parametrize("case", CASES)
def test_a_study_from_python_is_read_again_from_its_results(case, tmp_path):
    study = study_of(**CASES[case])
    run = study.run(tmp_path)
    again = rb.load_results(tmp_path).rbchain.study
    assert again is not study
    assert json.dumps(again.plan.as_json()) == json.dumps(study.plan.as_json())
    (drawn, _, motion), (own_drawn, _, own_motion) = again.sample(3), study.sample(3)
    assert drawn == own_drawn
    assert motion.q.tobytes() == own_motion.q.tobytes()
    np.testing.assert_array_equal(again.run().angle, run.angle)


def test_the_file_contains_the_study_as_a_user_would_write_it(tmp_path):
    study_of(name="swing").run(tmp_path)
    lines = (tmp_path / "description" / "study.toml").read_text().splitlines()
    assert 'model = "model.toml"' in lines
    assert '[vary."*.q".distribution]' in lines
    assert not any(line.startswith("atol") for line in lines)  # the default
    from_file = rb.Study.read(tmp_path / "description" / "study.toml").run()
    np.testing.assert_array_equal(from_file.angle, study_of(name="swing").run().angle)


def test_loaded_results_of_a_study_from_python_have_all_analyses(tmp_path):
    study_of(samples=40, vary={"*.q": rb.Normal(0, 0.1)}).run(tmp_path)
    results = rb.load_results(tmp_path)
    assert results.rbchain.gradient("angle").parameter.values.tolist() == ["link1.q", "link2.q"]
    assert results.rbchain.control_variates("angle").factor > 1
    assert results.rbchain.morris("angle", base_samples=4).sizes["parameter"] == 2


def test_a_study_from_python_is_resumed_from_its_folder(tmp_path, capsys):
    expected = study_of().run(tmp_path).load()
    shutil.rmtree(tmp_path / "checksums")
    with pytest.warns(UserWarning, match="damaged"):
        again = rb.study.loading.study_of_results(tmp_path).run(tmp_path)
    assert again.angle.equals(expected.angle)
    assert cli.main(["study", "resume", str(tmp_path)]) == 0
    assert "4 samples, 0 failed" in capsys.readouterr().out


def test_another_study_in_the_folder_of_deleted_results_is_not_read_as_the_former_one(tmp_path):
    study_of().run(tmp_path)
    shutil.rmtree(tmp_path / "results.zarr")
    study_of(seed=8).run(tmp_path)
    assert rb.load_results(tmp_path).rbchain.study.description.seed == 8
    shutil.rmtree(tmp_path / "results.zarr")
    study_of(measures=[rb.Measure("largest", "function", function=largest)]).run(tmp_path)
    with pytest.raises(rb.StudyError, match="cannot be read from files"):
        _ = rb.load_results(tmp_path).rbchain.study


def test_a_study_from_a_file_is_read_from_this_file(tmp_path):
    study_of().run(tmp_path / "python")
    study = rb.Study.read(tmp_path / "python" / "description" / "study.toml")
    study.run(tmp_path / "out")
    assert not (tmp_path / "out" / "description").exists()
    assert rb.load_results(tmp_path / "out").rbchain.study.file == study.file


def largest(model, motion):
    return motion.q[..., 0].max(-1)


@pytest.mark.slow_cases("changes2")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"measures": [rb.Measure("largest", "function", function=largest)]},
            r"measures\[0\].function is the Python function .*largest, which a file cannot contain",
        ),
        ({"design": Table("design.npy")}, "its numbers come from a table"),
        (
            {"vary": {"*.q": stats.rv_histogram(np.histogram([0.1, 0.2, 0.25, 0.4], bins=4))}},
            r"distribution is <scipy.* object .*, which a file cannot contain",
        ),
        (
            {"drives": [rb.PID("link1", 0.1, kp=1.0, controller_model=CONTROLLED, gravity_compensation=True)]},
            r"drives\[0\].controller_model is .*Model.*, which a file cannot contain",
        ),
        ({"forces": [rb.Wrench("link2", force=(GUST + 1.0, 0, 0))]}, r"forces\[0\].force\[0\] is .*cannot contain"),
    ],
)
def test_a_study_that_files_cannot_describe_says_why_and_what_to_do(changes, reason, tmp_path):
    np.save(tmp_path / "design.npy", np.zeros((4, 2)))
    study = study_of(**changes, folder=tmp_path)
    ran = study.run(tmp_path / "out")
    assert not (tmp_path / "out" / "description").exists()
    results = rb.load_results(tmp_path / "out")
    with pytest.raises(rb.StudyError, match=reason):
        _ = results.rbchain.study
    with pytest.raises(rb.StudyError, match=r"results that study.run\(.* returns, or set results.rbchain.study"):
        results.rbchain.gradient()
    assert ran.rbchain.study is study
    results.rbchain.study = study
    assert results.rbchain.study is study


def test_a_large_array_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("rbchain.study.store.description_files.LARGEST_DESIGN", 7)
    study_of(design=np.zeros((4, 2))).run(tmp_path)
    with pytest.raises(rb.StudyError, match="design has 8 numbers, which are too many for a text file"):
        _ = rb.load_results(tmp_path).rbchain.study
