"""The report and the command line of studies."""

import html
import math
import re
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
import xarray
from lxml import etree

import rbchain as rb
from rbchain import cli
from rbchain.cli import output
from rbchain.study.analyze.explained_variance import explained_shares
from rbchain.study.describe.description import Description
from rbchain.study.run.order_statistics import ranks_around_quantile
from rbchain.study.show.linear_report import LinearAnalysis
from rbchain.study.show.pictures import draw_convergence, draw_influences
from rbchain.study.show.report import write_report

STUDY = """
name = "two <links>"
model = { serial_chain = { n = 2 } }
samples = 300

[vary."*.mass"]
how = "multiply"
distribution = { type = "discrete", values = [0.9, 1.0, 1.1] }

[vary."link1.stiffness"]
distribution = { type = "discrete", values = [1, 1e9], probabilities = [0.95, 0.05] }

[simulate]
duration = 0.5
method = "rk4"
step = 0.01

[outputs]
motion = true

[[measures]]
name = "height"
quantity = "coordinate"
frame = "link2"
axis = "y"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def test_a_study_whose_file_is_missing_is_not_resumed(folder, capsys):
    """Results and model file may move together. If the file is missing, the message says what to do."""
    (folder / "begun").mkdir()
    (folder / "study.toml").rename(folder / "begun" / "study.toml")
    assert cli.main(["study", "run", str(folder / "begun" / "study.toml")]) == output.EXIT_SOME_FAILED
    (folder / "begun").rename(folder / "moved")
    assert cli.main(["study", "resume", str(folder / "moved" / "study")]) == output.EXIT_SOME_FAILED
    (folder / "moved" / "study.toml").unlink()
    capsys.readouterr()
    assert cli.main(["study", "resume", str(folder / "moved" / "study")]) == output.EXIT_REFUSED
    assert re.search(
        r"the file of the study, .*study.toml, does not exist. Run .rbchain study run FILE --out",
        capsys.readouterr().err,
    )
    (folder / "moved" / "study" / "log.jsonl").unlink()
    assert cli.main(["study", "resume", str(folder / "moved" / "study")]) == output.EXIT_REFUSED
    assert "its log does not name the file of the study" in capsys.readouterr().err


def test_the_command_line_runs_a_study(folder, capsys):
    file, out = str(folder / "study.toml"), str(folder / "out")
    assert cli.main(["study", "resume", out]) == output.EXIT_REFUSED
    assert "out contains no results to resume" in capsys.readouterr().err
    assert cli.main(["study", "run", file, "--out", out, "--chunk", "100"]) == output.EXIT_SOME_FAILED
    said = capsys.readouterr().out
    listed = " ".join(re.sub("[^ -~]", " ", said).split())
    assert 'mass mass of link1, link2 (inertia tensors do not change; "mass_and_inertia" scales both)' in listed
    assert "stiffness stiffness of link1" in listed
    assert re.search(r"300 samples, (\d+) failed", said)
    assert "height" in said
    failed = int(re.search(r"300 samples, (\d+) failed", said)[1])
    assert 3 <= failed <= 30
    assert cli.main(["study", "status", out]) == output.EXIT_OK
    assert f"300 of 300 samples, {failed} failed, finished" in capsys.readouterr().out
    assert cli.main(["study", "resume", out]) == output.EXIT_SOME_FAILED
    assert cli.main(["study", "sample", file, "5", "--out", str(folder / "five")]) in (0, 1)
    five = rb.load_motion(folder / "five.npz")
    assert five.q.shape == (51, 2)
    assert "link1.mass" in capsys.readouterr().out
    assert round(five.model.mass[0] / 0.1, 12) in (0.9, 1.0, 1.1)
    assert cli.main(["study", "report", out]) == output.EXIT_OK
    page = (folder / "out" / "report.html").read_text()
    assert "mass changes: mass of link1, link2 (inertia tensors do not change;" in page
    assert "two &lt;links&gt;" in page
    assert f"{failed} of 300 samples failed" in page
    assert "The step is too long" in page or "not finite" in page
    # the page is self-contained: it loads no other file
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    pictures = sorted(path.name for path in (folder / "out" / "report").iterdir())
    assert pictures == [
        "1_distribution_of_height.png",
        "2_convergence_of_height.png",
        "3_influences_on_height.png",
        "4_q_over_time.png",
        "5_qd_over_time.png",
    ]
    assert cli.main(["study", "report", str(folder / "nowhere")]) == output.EXIT_REFUSED


def test_the_command_line_prints_sensitivities(folder, capsys):
    text = STUDY.replace("[1, 1e9]", "[1, 2]")
    (folder / "study.toml").write_text(text)
    arguments = ["study", "indices", str(folder / "study.toml"), "--out", str(folder / "out"), "--base-samples", "16"]
    assert cli.main(arguments) == output.EXIT_OK
    said = capsys.readouterr().out
    assert "height: sobol, 80 simulations" in said
    assert cli.main([*arguments, "--method", "morris", "--measure", "none"]) == output.EXIT_REFUSED


def test_explained_shares_of_variance_agree_with_the_closed_form():
    """For y = x^2 + e it is var(x^2) / (var(x^2) + var(e)), while the correlation of x and y is zero."""
    rng = np.random.default_rng(0)
    x, e = rng.uniform(-1, 1, (40_000, 2)), rng.normal(0, 0.2, 40_000)
    expected = (4 / 45) / (4 / 45 + 0.04)
    np.testing.assert_allclose(explained_shares(x, x[:, 0] ** 2 + e), [expected, 0.0], atol=0.01)
    x = rng.uniform(-1, 1, (2000, 3))  # the variances are 1/3, 1/12 and 1/300
    np.testing.assert_allclose(explained_shares(x, x @ [1.0, 0.5, 0.1]), np.array([100, 25, 1]) / 126, atol=0.02)
    assert explained_shares(x, np.sin(8 * x[:, 0]))[0] > 0.9
    for scale in (1e-200, 1e200):
        np.testing.assert_allclose(explained_shares(x, scale * x[:, 0]), [1.0, 0.0, 0.0], atol=0.02)
    two_values = np.sign(x)
    assert explained_shares(two_values, two_values[:, 0] + e[:2000])[0] > 0.9


@pytest.mark.slow
def test_noise_seldom_counts_as_an_influence():
    """The level of the test is 1 % for all parameters together: 30 of 500 studies would have a probability of 1e-14."""
    rng = np.random.default_rng(0)
    noise = ((rng.normal(size=(300, 10)), rng.normal(size=300)) for _ in range(500))
    assert sum((explained_shares(x, y) > 0.0).any() for x, y in noise) < 30


def test_influences_of_constant_and_of_dependent_parameters_and_of_few_samples_are_known():
    x = np.linspace(-1.0, 1.0, 50)[:, None]
    assert explained_shares(np.hstack([x, 0 * x]), x[:, 0]).tolist()[1] == 0.0
    np.testing.assert_allclose(explained_shares(np.hstack([x, x]), x[:, 0]), 1.0, rtol=0.05)  # by their groups
    assert explained_shares(x[:2], x[:2, 0]).tolist() == [0.0]
    assert explained_shares(x[:0], x[:0, 0]).tolist() == [0.0]
    assert explained_shares(np.zeros((50, 0)), x[:, 0]).size == 0


def small_study(**more):
    """Pendulums that start at several angles."""
    return rb.Study(
        model=rb.Model.serial_chain(1),
        samples=60,
        simulate={"duration": 0.2, "method": "rk4", "step": 0.01, "save_at": 5},
        vary={"*.q": rb.Uniform(-0.3, 0.3)},
        **more,
    )


def test_results_are_plotted():
    results = small_study(outputs={"motion": True}).run()
    assert [a.get_ylabel() for a in results.rbchain.plot().axes] == ["q link1 (rad)"]
    with pytest.raises(rb.StudyError, match=r"name is 'speed'; expected one of \['q', 'qd'\]"):
        results.rbchain.plot("speed")
    results = small_study(measures=[{"name": "push", "quantity": "kinetic_energy", "over": "max"}]).run()
    assert results.rbchain.plot("push").axes[0].get_ylabel() == "samples"
    (axes,) = results.rbchain.plot("push", influences=True).axes
    assert axes.get_xlabel() == "link1.q (rad)"


def test_the_report_begins_with_the_measures_and_shows_units(tmp_path):
    study = small_study(
        outputs={"motion": True},
        measures=[
            {"name": "second", "quantity": "velocity", "joint": "link1", "over": "peak"},
            {"name": "first", "quantity": "distance", "frame": "link1", "point": [0.1, 0.0, 0.0]},
        ],
    )
    results = study.run(tmp_path)
    page = write_report(tmp_path).read_text()
    order = (
        "<h1>",
        "initial state of sample 0",
        ">second<",
        ">first<",
        "distribution of second",
        "influences on second",
        "distribution of first",
    )
    order += ("q over time", "Failures", "Dispersions", "<details>", ">link1.q<", "Description of the study")
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    assert "velocity of link1, peak" in page
    # each number of the first row with its unit
    row = re.search(r"<tr><th>second.*?</tr>", page)[0]
    values = np.sort(results.second.values)
    low, high = (values[rank - 1] for rank in ranks_around_quantile(len(values), 0.5))
    median, ends = re.findall(r'<td class="number">([^<]+)<small>([^<]+)</small>', row)[1]
    shown = [float(x) for x in (median, *ends.split(" to "))]
    exact = [values[math.ceil(len(values) / 2) - 1], low, high]
    np.testing.assert_allclose(shown, exact, rtol=0, atol=0.05 * (high - low))
    assert "<td>rad/s</td><td>link1.q" in row
    for name, unit in (("link1.q", "rad"), ("q_final link1", "rad"), ("qd_final link1", "rad/s")):
        assert re.search(rf"<tr><th>{re.escape(name)}</th>.*?<td>{unit}</td></tr>", page)
    assert "<details open>" not in page
    (tmp_path / "sketch.svg").unlink()  # earlier versions wrote none
    assert "initial state of sample 0" not in write_report(tmp_path).read_text()


@pytest.mark.plain_python
def test_the_sketch_of_a_closed_chain_shows_the_assembled_state(tmp_path):
    """A lever with a strut: the ball joint at the end of the strut is closed, and the ends of its line coincide."""
    builder = rb.ModelBuilder(gravity=(0, -9.8, 0))
    rod = rb.Inertia.rod(1.0, mass=1.0)
    builder.add_body("lever", joint=rb.Revolute(), inertia=rod)
    builder.add_body("strut", parent="lever", joint=rb.Revolute(), placement=rb.Pose((1, 0, 0)), inertia=rod)
    builder.add_constraint(rb.BallConstraint("end", "strut", None, (1, 0, 0), (1.0, 1.0, 0.0)))
    study = rb.Study(
        builder.build(),
        samples=2,
        simulate={"duration": 0.01, "q": [0.3, 1.2], "assemble": True, "method": "rk4", "step": 0.01},
        vary={"gravity.y": rb.Normal(std=0.1)},
    )
    study.run(tmp_path)
    sketch = etree.fromstring((tmp_path / "sketch.svg").read_bytes())
    a, b, _ = [line for line in sketch if line.get("stroke-dasharray")]
    assert (b.get("x1"), b.get("y1")) == (b.get("x2"), b.get("y2"))
    assert (a.get("x1"), a.get("y1")) != (a.get("x2"), a.get("y2"))


def test_the_report_of_a_study_without_measures_shows_the_states(tmp_path):
    small_study().run(tmp_path)
    page = write_report(tmp_path).read_text()
    assert "<details open><summary>Statistics" in page


def test_the_description_in_the_report_is_toml(tmp_path):
    study = small_study(measures=[{"name": "angle", "quantity": "position", "joint": "link1"}])
    study.run(tmp_path)
    page = write_report(tmp_path).read_text()
    text = re.search(r"Description of the study \(TOML\).*?<pre>(.*?)</pre>", page, re.DOTALL)[1]
    shown = tomllib.loads(html.unescape(text))
    keys = ("samples", "simulate", "vary", "measures", "design")
    again = Description(model=study.description.model, **{key: shown[key] for key in keys})
    assert again == study.description


@pytest.mark.parametrize(("design", "is_noted"), [("random", False), ("sobol", True)])
def test_the_report_says_when_intervals_are_approximate(tmp_path, design, is_noted):
    measure = {"name": "angle", "quantity": "position", "joint": "link1"}
    small_study(measures=[measure], design={"type": design}).run(tmp_path)
    page = write_report(tmp_path).read_text()
    assert ("design sobol are not independent, so the intervals are approximate" in page) == is_noted


def test_the_report_removes_pictures_of_an_earlier_report(tmp_path):
    small_study(measures=[{"name": "angle", "quantity": "position", "joint": "link1"}]).run(tmp_path)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "9_distribution_of_speed.png").write_bytes(b"")
    (tmp_path / "report" / "notes.txt").write_text("mine")
    write_report(tmp_path)
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == [
        "1_distribution_of_angle.png",
        "2_convergence_of_angle.png",
        "3_influences_on_angle.png",
        "notes.txt",
    ]


def made_up_results(samples):
    """A measure y = x + e of a parameter x."""
    rng = np.random.default_rng(0)
    x, e = rng.normal(size=(2, samples))
    variables = {"y": ("sample", x + e, {"units": "m"}), "parameters": (("sample", "parameter"), x[:, None])}
    return xarray.Dataset(variables, {"parameter": ["x"], "parameter_units": ("parameter", ["kg"])})


def test_a_density_counts_every_sample():
    results = made_up_results(5000)
    (axes,) = draw_influences(results, "y").axes
    (image,) = axes.images
    assert np.ma.sum(image.get_array()) == 5000
    assert not [line for line in axes.lines if line.get_marker() == "."]
    assert axes.get_xlabel() == "x (kg)"
    (axes,) = draw_influences(made_up_results(500), "y").axes
    assert not axes.images
    assert axes.lines[0].get_xdata().size == 500


def test_the_convergence_ends_at_the_quantiles_of_all_samples():
    results = made_up_results(4000)
    (axes,) = draw_convergence(results, "y").axes
    ordered = np.sort(results.y.values)
    for line, level in zip(axes.lines, (0.05, 0.5, 0.95), strict=True):
        assert line.get_xdata()[-1] == 4000
        assert line.get_ydata()[-1] == ordered[int(np.ceil(level * 4000)) - 1]
    assert draw_convergence(made_up_results(30), "y") is None


def test_plotted_motions_are_those_of_the_samples():
    study = small_study(outputs={"motion": True})
    results, motion = study.run(), study.motions(7, first=20, save_at=5)
    np.testing.assert_array_equal(motion.q, results.q[20:27])
    with pytest.raises(rb.StudyError, match="first is 60"):
        study.motions(5, first=60)


def test_a_progress_bar_is_shown(caplog):
    caplog.set_level("INFO", "rbchain")
    results = small_study().run(progress=True)
    assert results.sizes["sample"] == 60
    assert "60/60" in caplog.text


SPEED = {"*.qd": rb.Normal(std=0.1)}
ANGLE = {"name": "angle", "quantity": "position", "joint": "link1"}
ENERGY = {"name": "energy", "quantity": "kinetic_energy", "over": "final"}
PULL = rb.PID("link1", reference=0.0, kp=1e-3)
NOISY_DRIVE = rb.Sampled(PULL, period=0.5, sensors=[rb.Encoder("link1", noise=1e-3)])


def free_rod(**more):
    """A rod that turns at a constant random speed for 2 s: the angle is linear in the speed, the energy quadratic."""
    settings = {"duration": 2.0, "method": "rk4", "step": 0.5, "save_at": 2}
    model = rb.Model.serial_chain(1, gravity=(0, 0, 0))
    return rb.Study(**{"model": model, "samples": 200, "simulate": settings, "vary": SPEED} | more)


@pytest.mark.parametrize(
    ("gradient", "error", "count", "reason"),
    [
        (0.0, 1e-9, 100, "the measure is not linear"),
        (0.0, 0.5, 100, "the derivatives are uncertain"),
        (0.0, 1e-9, 90, "omits samples without a value"),
    ],
)
def test_the_report_says_why_first_order_differs_from_the_samples(gradient, error, count, reason):
    of_one = {"first_order_std": abs(gradient), "error": [error], "parameter_std": [1.0]}
    results = {"height": SimpleNamespace(attrs={"units": "m"})}
    statistics = {"samples": 100, "of": {"height": {"variance": 1.0, "count": count}}}
    note = LinearAnalysis({"gradients": {"height": of_one}}).note(results, statistics)
    assert "differs from the standard deviation of the samples for height (0 instead of 1 m)" in note
    assert reason in note


@pytest.mark.slow
@pytest.mark.plain_python
def test_the_report_shows_uncertainty_of_first_order_and_control_variates(tmp_path):
    """The angle is t qd: its derivative is 2 s, and its standard deviation 0.2 rad. The energy has the derivative 0."""
    free_rod(measures=[ANGLE, ENERGY]).run(tmp_path)
    page = write_report(tmp_path).read_text()
    row = re.search(r"<tr><th>angle.*?</tr>", page)[0]
    assert ">std by gradient<" in page and '<td class="number">0.2</td><td>rad</td>' in row
    note = re.search(r"By gradient: .*?</p>", page)[0]
    # its derivative at the means is zero, with an error that is small compared with the changes
    wrong = re.search(r"differs from .* for energy \((\S+) instead of (\S+) J\): the measure is not linear ", note)
    assert float(wrong[1]) < 1e-9
    assert float(wrong[2]) > 1e-6
    assert "angle" not in note
    assert "reduce the number of samples for the mean (factor" in page  # of the energy
    mean = re.search(r"Mean with control variates: (\S+) rad, 95 % confidence interval (\S+) to (\S+) rad", page)
    assert max(abs(float(number)) for number in mean.groups()) < 1e-12
    local = page[page.index("<summary>Local sensitivities") :]
    cells = re.findall(r"<t[hd][^>]*>([^<]*)", re.search(r"<tr><th>link1.qd.*?</tr>", local)[0])
    assert cells == ["link1.qd", "2", "rad/(rad/s)", "0.1", "rad/s", "0.2", "rad"]


@pytest.mark.slow_cases("True")
@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("changed", "has_gradient", "has_control_variates"),
    [
        ({"design": "sobol"}, True, False),
        ({"samples": 40}, False, True),
        ({"samples": 15}, False, False),
        ({"drives": [NOISY_DRIVE]}, False, True),
    ],
)
def test_the_report_shows_only_what_the_study_allows(tmp_path, changed, has_gradient, has_control_variates):
    free_rod(measures=[ANGLE], **changed).run(tmp_path)
    page = write_report(tmp_path).read_text()
    assert ("by gradient" in page, "<summary>Local sensitivities" in page) == (has_gradient, has_gradient)
    # the reason is an error of the gradients; a small study computes none
    assert ("Local sensitivities are not available: " in page) == ("drives" in changed)
    assert page.count("Local sensitivities") == (has_gradient or "drives" in changed)
    assert ("ontrol variates" in page) == has_control_variates


def inverse_of_speed(model, motion):
    """Raise an error if the rod does not turn, as at the mean of its speed."""
    return np.array([1.0 / speed for speed in motion.qd[:, 0, 0].tolist()])


@pytest.mark.slow
@pytest.mark.plain_python
def test_a_function_that_fails_at_the_means_does_not_stop_the_study(tmp_path):
    inverse = {"name": "inverse", "quantity": "function", "function": inverse_of_speed}
    study = free_rod(measures=[inverse])
    study.run(tmp_path)
    with pytest.raises(ZeroDivisionError):
        study.gradient()
    page = write_report(tmp_path).read_text()
    assert "200 samples failed" in page
    assert "by gradient" not in page


@pytest.mark.plain_python
def test_the_command_line_checks_a_study_without_a_simulation(tmp_path, capsys, monkeypatch):
    file = tmp_path / "swing.toml"
    file.write_text(
        'name = "swing"\nmodel = { serial_chain = { n = 1 } }\nsamples = 3\nsimulate = { duration = 1.0 }\n'
        'vary = { "*.q" = { type = "normal", std = "5 deg" } }\n'
        'measures = [{ name = "angle", quantity = "position", joint = "link1" }]\n'
    )
    monkeypatch.setattr(rb.Study, "run", None)
    assert cli.main(["study", "check", str(file)]) == output.EXIT_OK
    shown = capsys.readouterr().out
    assert "swing: the study fits its model. It has 3 samples of 1 s with method 'rk45'" in shown
    assert "initial positions" in shown
    assert "rad" in shown
    file.write_text(file.read_text().replace('"link1"', '"link2"'))
    assert cli.main(["study", "check", str(file)]) == output.EXIT_REFUSED
    assert "link2" in capsys.readouterr().err
