"""Controllers in a study use the model without dispersions by default."""

import numpy as np
import pytest

import rbchain as rb

GRAVITY, MASS, KP = 10.0, 2.0, 500.0
STUDY = """
name = "payload"
model = "lift.toml"
samples = 40
vary = {{ "lift.payload" = {{ type = "uniform", low = 0.0, high = 3.0 }} }}
simulate = {{ duration = 10.0, method = "rk4", step = 0.01 }}
drives = [
  {{ type = "PID", joint = "lift", reference = 0.3, kp = {KP}, kd = 120.0, gravity_compensation = true{model} }}
]
"""


def save_lift(path, mass):
    builder = rb.ModelBuilder(gravity=(0, 0, -GRAVITY))
    builder.add_body("lift", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass))
    rb.save(builder.build(), path)


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("", MASS),
        (', controller_model = "nominal"', MASS),
        (', controller_model = "heavy.toml"', 5.0),
        (', controller_model = "own"', None),
    ],
)
def test_a_payload_unknown_to_the_controller_causes_the_static_error(words, known, tmp_path):
    """The error is (mass + payload - mass of the controller model) g / kp, and zero if the model has the payload."""
    save_lift(tmp_path / "lift.toml", MASS)
    save_lift(tmp_path / "heavy.toml", 5.0)
    (tmp_path / "study.toml").write_text(STUDY.format(KP=KP, model=words))
    study = rb.Study.read(tmp_path / "study.toml")
    results = study.run(tmp_path / "results")
    payload = results.parameters.values[:, 0]
    assert np.ptp(payload) > 1.0
    unknown = 0.0 if known is None else MASS + payload - known
    np.testing.assert_allclose(results.q_final.values[:, 0], 0.3 - unknown * GRAVITY / KP, rtol=0, atol=1e-9)
    _, _, motion = study.sample(7)
    np.testing.assert_allclose(motion.q[..., -1, 0], results.q_final.values[7, 0], rtol=0, atol=1e-12)


def test_a_missing_controller_model_is_named(tmp_path):
    save_lift(tmp_path / "lift.toml", MASS)
    (tmp_path / "study.toml").write_text(STUDY.format(KP=KP, model=', controller_model = "lost.toml"'))
    with pytest.raises(rb.StudyError, match=r"drives: PID of joint 'lift': controller_model is 'lost.toml'"):
        rb.Study.read(tmp_path / "study.toml")


def test_a_study_with_another_controller_model_is_not_resumed(tmp_path):
    """A store is not continued if the controller model has changed."""
    save_lift(tmp_path / "lift.toml", MASS)
    save_lift(tmp_path / "known.toml", MASS)
    (tmp_path / "study.toml").write_text(STUDY.format(KP=KP, model=', controller_model = "known.toml"'))
    rb.Study.read(tmp_path / "study.toml").run(tmp_path / "results")
    save_lift(tmp_path / "known.toml", 2.5)
    with pytest.raises(rb.StudyError, match=r"drives\[0\].controller_model"):
        rb.Study.read(tmp_path / "study.toml").run(tmp_path / "results")


@pytest.mark.plain_python
def test_sensors_with_numbers_of_samples_take_the_seed_of_the_study():
    encoder = rb.Encoder("link1", noise=1e-2, sample_ids=0)
    drives = [rb.Sampled(rb.PID("link1", 0.3, kp=1.0), period=0.01, sensors=[encoder])]
    settings = {"duration": 0.1, "method": "rk4", "step": 0.01}
    motions = [
        rb.Study(model=rb.Model.serial_chain(1), samples=2, seed=seed, simulate=settings, drives=drives).run()
        for seed in (1, 2)
    ]
    np.testing.assert_array_equal(motions[0].q_final[0], motions[0].q_final[1])
    assert (motions[0].q_final != motions[1].q_final).all()
