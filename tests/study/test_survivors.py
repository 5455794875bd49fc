"""If samples fail, every table begins with the samples for which its numbers hold, and the reasons of the failures."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.cli import main
from rbchain.errors import Status
from rbchain.study.analyze.survivors import LEVEL, survivors
from rbchain.study.plan.outcomes import NOT_RUN, REMEDIES, status_in_words
from rbchain.study.show.report import write_report

NAMES = np.array(["link1.mass", "link2.mass", "friction"])


def drawn(samples=2000, seed=0):
    return np.random.default_rng(seed).normal(size=(samples, 3))


def test_the_parameter_that_causes_the_failures_is_named():
    values = drawn()
    for column, status in ((0, values[:, 0] > 1.5), (2, np.abs(values[:, 2]) > 2.0)):
        text = survivors(np.where(status, Status.TOO_MANY_STEPS, Status.DONE), values, NAMES)
        assert f"describe the {(~status).sum():,} of 2,000 samples that succeeded. {status.sum()} failed" in text
        assert '"too many steps": The limit of max_steps was reached before the end time. Increase max_steps' in text
        failed, others = np.median(values[status, column]), np.median(values[~status, column])
        found = f"{NAMES[column]} (median {failed:.4g} in failed samples, {others:.4g} in others)"
        assert text.endswith(f"The failures depend on {found}.")


def test_of_failures_at_random_no_parameter_stands_out_more_often_than_the_level():
    """The probability of more than 6 of 200 false alarms at the level of 1 % is below 0.5 %."""
    rng, alarms = np.random.default_rng(1), 0
    for seed in range(200):
        status = np.where(rng.random(300) < 0.1, Status.NOT_FINITE, Status.DONE)
        alarms += "none stands out" not in survivors(status, drawn(300, seed), NAMES)
    assert alarms <= 6
    assert LEVEL == 0.01


def test_draws_that_are_not_finite_are_a_cause():
    values = drawn()
    values[:20, 1] = np.nan
    status = np.where(np.isnan(values[:, 1]), Status.INVALID_PARAMETERS, Status.DONE)
    assert "The failures depend on link2.mass (median nan in failed samples" in survivors(status, values, NAMES)


def test_several_statuses_are_counted_and_samples_that_were_not_run_are_left_out():
    status = np.array([Status.DONE, Status.STOPPED, Status.NOT_FINITE, Status.TOO_STIFF, Status.NOT_FINITE, NOT_RUN])
    text = survivors(status, drawn(6), NAMES)
    assert text.startswith("The statistics describe the 2 of 5 samples that succeeded. 2 failed with")
    assert ' 1 failed with "too stiff": The step is too long' in text
    assert survivors(np.array([Status.DONE, Status.STOPPED]), drawn(2), NAMES) == ""
    every = survivors(np.full(3, Status.NOT_FINITE), drawn(3), NAMES)
    assert every.startswith("The statistics describe the 0 of 3 samples that succeeded. 3 failed with")
    assert "status 99" in survivors(np.array([99, 0]), np.zeros((2, 0)), NAMES[:0])


@pytest.mark.parametrize("status", [status for status in Status if not status.success])
def test_every_failure_has_words_and_a_remedy(status):
    text = status_in_words(status)
    assert text.startswith(f'"{status.name.replace("_", " ").lower()}": {status.sentence}')
    verbs = ("Use", "use", "Increase", "Reduce", "Change", "Narrow", "Look", "Simulate")
    assert any(f"{verb} " in text for verb in verbs), text
    assert status in REMEDIES or any(f"{verb} " in status.sentence for verb in verbs)


STUDY = """
name = "failures"
samples = 60
model = { serial_chain = { n = 1, gravity = [0, 0, 0] } }
simulate = { duration = 1.0, method = "rk4", step = 0.1, save_at = 3 }
measures = [{ name = "angle", quantity = "position", joint = "link1" }]
vary = { "*.mass_and_inertia" = { type = "normal", mean = 0.1, std = 0.08 }, "*.qd" = { type = "normal", std = 0.1 } }
"""


@pytest.mark.slow
@pytest.mark.plain_python
def test_tables_on_the_screen_in_reports_and_results_begin_with_the_failures(tmp_path, capsys):
    (tmp_path / "study.toml").write_text(STUDY)
    out = tmp_path / "out"
    main(["study", "run", str(tmp_path / "study.toml"), "--out", str(out)])
    printed = capsys.readouterr().out
    results = rb.load_results(out)
    failed = int((results.status == Status.INVALID_PARAMETERS).sum())
    text = results.attrs["survivors"]
    assert 0 < failed < 30
    assert text.startswith(
        f"The statistics describe the {60 - failed} of 60 samples that succeeded. {failed} failed with"
    )
    assert "The failures depend on link1.mass_and_inertia (median" in text
    flat = " ".join(printed.split())
    assert flat.index(text) < flat.index("measure")
    main(["study", "status", str(out)])
    assert text in " ".join(capsys.readouterr().out.split())
    page = write_report(out).read_text(encoding="utf-8")
    assert page.count(f"<table><caption>{text}".replace('"', "&quot;")) == page.count("<table><caption>") >= 2
    study = rb.Study.read(tmp_path / "study.toml")
    in_memory = study.run(on_failure="ignore")
    assert in_memory.attrs["survivors"] == text
    assert in_memory.rbchain.gradient("angle").attrs["survivors"] == text
