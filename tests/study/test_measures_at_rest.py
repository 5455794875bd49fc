"""Measures of equilibria: positions at rest, frequencies, damping ratios and gain margins, against closed forms."""

from itertools import pairwise

import numpy as np
import pytest

import rbchain as rb
from rbchain.cli import main
from rbchain.errors import StudyError

from ..closed_chains import four_bar
from ..mechanisms import slide

pytestmark = pytest.mark.plain_python

FREQUENCY = {"name": "frequency", "quantity": "frequency"}
DAMPING = {"name": "damping", "quantity": "damping_ratio"}
REST = {"name": "rest", "quantity": "equilibrium", "joint": "slide"}
MARGIN = {"name": "margin", "quantity": "gain_margin", "joint": "slide"}


def results_of(model, measures, **keys):
    """Return the results of a study with a table of draws, whose columns are in `vary`."""
    given = {"simulate": {"duration": 0.1, "method": "rk4", "step": 0.05}, "samples": len(keys["design"])}
    return rb.Study(model, measures=measures, **(given | keys)).run(on_failure="ignore")


def test_a_controlled_slide_is_an_oscillator_about_its_position_at_rest():
    """m x'' + kd x' + kp (x - r) = f. Samples differ in m, kp, r and f."""
    m, kp, r, f = (np.array([2.0, 1.0, 3.0]), np.array([8.0, 5.0, 1.0]), np.array([0.1, 0.3, -0.2]), [1.0, -2.0, 0.5])
    free = rb.Normal(1.0, 0.1)  # replaced by the table
    found = results_of(
        slide(),
        [FREQUENCY, DAMPING | {"unit": "%"}, REST | {"unit": "mm"}],
        drives=[rb.PID("slide", 0.0, kp=1.0, kd=0.6)],
        vary={
            "slide.mass": rb.Dispersion(free, how="set"),
            "slide.kp": rb.Dispersion(free, how="set"),
            "slide.reference": rb.Dispersion(free, how="add"),
            "slide.tau": rb.Dispersion(free, how="set"),
        },
        design=np.stack([m, kp, r, f], -1),
    )
    np.testing.assert_allclose(found.frequency, np.sqrt(kp / m) / (2 * np.pi), rtol=1e-12)
    np.testing.assert_allclose(found.damping, 100 * 0.6 / (2 * np.sqrt(kp * m)), rtol=1e-12)
    np.testing.assert_allclose(found.rest, 1000 * (r + f / kp), rtol=1e-11)
    assert (found.frequency.units, found.damping.units, found.rest.units) == ("Hz", "%", "mm")


def test_the_gain_margin_of_pi_control_depends_on_the_mass():
    """L = (kp s + ki) / (s (m s^2 + d s + c)) is real at w^2 = ki c / (ki m - kp d), with the gain kp / (m w^2 - c)."""
    kp, ki, d, c, m = 0.5, 0.2, 0.3, 2.0, np.array([1.5, 2.0, 0.7, 1.0])
    found = results_of(
        slide(stiffness=c, damping=d),
        [MARGIN, REST],
        drives=[rb.PID("slide", 0.4, kp=kp, ki=ki)],
        vary={"slide.mass": rb.Dispersion(rb.Normal(1.0, 0.1), how="set")},
        design=m[:, None],
    )
    with np.errstate(divide="ignore"):
        w2 = ki * c / (ki * m - kp * d)
    expected = np.where(w2 > 0.0, (m * w2 - c) / kp, np.inf)
    np.testing.assert_allclose(found.margin, expected, rtol=1e-10)
    assert np.isinf(found.margin[2])
    np.testing.assert_allclose(found.rest, 0.4, rtol=1e-11)
    assert found.margin.units == ""


def test_the_gain_margin_of_a_sampled_controller_depends_on_the_mass():
    """With a = kp T^2 / (2 m) and b = kd T / m, z^2 - 2 z + 1 + a (z + 1) + b (z - 1): stable if a < b < 2."""
    m, kp, kd, period = np.array([1.5, 2.0, 0.09]), 1.0, 4.0, 0.05
    found = results_of(
        slide(),
        [MARGIN],
        drives=[rb.Sampled(rb.PID("slide", 0.4, kp=kp, kd=kd), period=period)],
        vary={"slide.mass": rb.Dispersion(rb.Normal(1.0, 0.1), how="set")},
        design=m[:, None],
    )
    np.testing.assert_allclose(found.margin, np.where(kd * period < 2 * m, 2 * m / (kd * period), np.nan), rtol=1e-10)
    assert np.isnan(found.margin[2])


@pytest.mark.slow
def test_samples_without_an_equilibrium_a_mode_or_a_stable_loop_are_nan():
    """A constant force moves a slide without a spring for ever. An overdamped slide has two modes."""
    stiffness, damping = np.array([4.0, 0.0, 4.0]), np.array([0.0, 0.0, 10.0])
    second = {"name": "second", "quantity": "frequency", "mode": 1}
    found = results_of(
        slide(stiffness=1.0, damping=1.0),
        [FREQUENCY, second, DAMPING, REST],
        simulate={"duration": 0.1, "method": "rk4", "step": 0.05, "tau": 1.0},
        vary={f"slide.{name}": rb.Dispersion(rb.Normal(1.0, 0.1), how="set") for name in ("stiffness", "damping")},
        design=np.stack([stiffness, damping], -1),
    )
    slow, fast = (5.0 + np.array([-1, 1]) * np.sqrt(17.0)) / 2  # of 2 s^2 + 10 s + 4
    np.testing.assert_allclose(found.frequency * 2 * np.pi, [np.sqrt(2.0), np.nan, slow], rtol=1e-10)
    np.testing.assert_allclose(found.second * 2 * np.pi, [np.nan, np.nan, fast], rtol=1e-10)
    np.testing.assert_allclose(found.damping, [0.0, np.nan, 1.0], atol=1e-12)
    np.testing.assert_allclose(found.rest, [0.25, np.nan, 0.25], rtol=1e-11)
    assert (found.status == rb.Status.DONE).all()
    unstable = results_of(
        slide(stiffness=2.0, damping=0.3),
        [MARGIN],
        drives=[rb.PID("slide", 0.0, kp=0.5, ki=0.2)],
        vary={"slide.ki": rb.Dispersion(rb.Normal(1.0, 0.1), how="set")},
        design=np.array([[0.2], [20.0]]),
    )
    np.testing.assert_array_equal(np.isnan(unstable.margin), [False, True])


def test_a_failed_sample_is_nan_and_does_not_change_the_others(rod):
    """A fast rod needs more steps than allowed. The other one hangs: w^2 = 3 g / (2 l)."""
    found = results_of(
        rod,
        [FREQUENCY, {"name": "rest", "quantity": "equilibrium", "joint": "link1"}],
        simulate={"duration": 0.1, "q": -np.pi / 2, "max_steps": 20},
        vary={"*.qd": rb.Dispersion(rb.Normal(0.0, 1.0), how="set")},
        design=np.array([[0.0], [1e4]]),
    )
    np.testing.assert_allclose(found.frequency, [np.sqrt(30.0) / (2 * np.pi), np.nan], rtol=1e-12)
    np.testing.assert_allclose(found.rest, [-np.pi / 2, np.nan], rtol=1e-12)


@pytest.mark.slow
def test_the_equilibrium_belongs_to_the_end_of_the_motion():
    """A rod between two stable positions ends in that of its side. A sample that an event stops has earlier signals."""
    snap = rb.Model.serial_chain(1, length=0.5, mass=1.0, gravity=(0, 10, 0)).replace(stiffness=[1.0], damping=[0.5])
    side = results_of(
        snap,
        [{"name": "rest", "quantity": "equilibrium", "joint": "link1"}],
        simulate={"duration": 20.0, "q": 0.0},
        vary={"*.qd": rb.Dispersion(rb.Normal(0.0, 1.0), how="set")},
        design=np.array([[0.0], [5.0], [40.0]]),
    )
    residual = 2.5 * np.cos(side.rest) - side.rest  # (m g l / 2) cos q - k q
    np.testing.assert_allclose(residual, 0.0, atol=1e-10)
    stopped = results_of(
        slide(),
        [REST],
        simulate={"duration": 2.0, "qd": 1.0},
        drives=[rb.PID("slide", rb.Signal.polynomial([0.0, 2.0]), kp=1e-9)],
        events=[rb.Event("slide", value=0.5, stop=True)],
        vary={"*.qd": rb.Dispersion(rb.Normal(0.0, 1.0), how="set")},
        design=np.array([[1.0], [0.1]]),
    )
    np.testing.assert_allclose(stopped.rest, 2.0 * stopped.end_time, rtol=1e-8)
    np.testing.assert_allclose(stopped.end_time, [0.5, 2.0], rtol=1e-8)


@pytest.mark.slow
def test_results_do_not_depend_on_the_chunks():
    """Bit for bit, with damped and controlled modes, and samples that need different numbers of steps."""
    drives = [rb.PID("link1", -1.0, kp=2.0, kd=0.1, ki=0.5), rb.PID("link2", 0.3, kp=1.0, kd=0.02)]
    measures = [{"name": f"f{k}", "quantity": "frequency", "mode": k} for k in range(3)]
    measures += [{"name": f"d{k}", "quantity": "damping_ratio", "mode": k} for k in range(3)]
    measures += [{"name": f"x{k}", "quantity": "equilibrium", "joint": f"link{k}"} for k in (1, 2)]
    measures += [{"name": "margin", "quantity": "gain_margin", "joint": "link2"}]
    study = rb.Study(
        rb.Model.serial_chain(2, gravity=(0, -10, 0)),
        samples=9,
        simulate={"duration": 0.02, "method": "rk4", "step": 0.01, "q": [-1.2, 0.1]},
        drives=drives,
        measures=measures,
        vary={"*.mass": rb.Normal(0.1, 0.02), "*.q": rb.Dispersion(rb.Normal(0.0, 0.8), how="add")},
    )
    whole = study.plan.compute(0, 9)
    for ends in ([0, 1, 4, 9], [0, 3, 8, 9]):
        parts = [study.plan.compute(first, last) for first, last in pairwise(ends)]
        for name, values in whole.items():
            np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), values, err_msg=name)
    assert np.isfinite([whole[m["name"]] for m in measures if m["name"] != "margin"]).all()


FILE = """
samples = 4
[model.serial_chain]
n = 1
length = 0.5
mass = 1.0
gravity = [0.0, -10.0, 0.0]
[simulate]
duration = 0.1
method = "rk4"
step = 0.05
[vary."link1.mass"]
type = "normal"
mean = 1.0
std = 0.1
[[measures]]
name = "swing"
quantity = "frequency"
mode = 0
[[measures]]
name = "rest"
quantity = "equilibrium"
joint = "link1"
unit = "deg"
"""


@pytest.mark.slow
def test_study_files_and_reports_have_the_measures(tmp_path, capsys):
    file, out = tmp_path / "swing.toml", tmp_path / "swing"
    file.write_text(FILE)
    assert main(["study", "run", str(file), "--out", str(out)]) == 0
    found = rb.load_results(out)
    np.testing.assert_allclose(found.rest, -90.0, rtol=1e-9)
    m = found.parameters.values[:, 0]  # I = m l^2 / 4 + l^2 / 12: the inertia about the cg belongs to 1 kg
    expected = np.sqrt(m * 2.5 / (m / 16 + 1 / 48)) / (2 * np.pi)
    np.testing.assert_allclose(found.swing, expected, rtol=1e-12)
    assert "Hz" in capsys.readouterr().out
    assert main(["study", "report", str(out)]) == 0
    page = (out / "report.html").read_text()
    assert "swing<small>frequency of mode 0</small>" in page
    assert "rest<small>equilibrium of link1</small>" in page


@pytest.mark.slow
def test_samples_of_closed_chains_have_the_results_that_each_of_them_has_alone():
    """Two coupled rods are one oscillator, (I + I) x'' + d x' + c x = kp (r - x)."""
    builder, stiffness = rb.ModelBuilder(gravity=(0, 0, 0)), np.array([3.0, 8.0])
    for name in ("left", "right"):
        builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia.rod(1.5, mass=2.0))
    builder.add_constraint(rb.CouplerConstraint("gear", "left", "right", ratio=1.0))
    model = builder.build().replace(stiffness=[1.0, 0.0], damping=[0.3, 0.0])
    given = {
        "measures": [FREQUENCY, DAMPING, REST | {"joint": "right"}, MARGIN | {"joint": "left"}],
        "drives": [rb.PID("left", 0.2, kp=1.0)],
        "vary": {
            "left.stiffness": rb.Dispersion(rb.Normal(1.0, 0.1), how="set"),
            "left.kp": rb.Dispersion(rb.Normal(1.0, 0.1), how="set"),
        },
    }
    design = np.stack([stiffness, [1.0, 2.0]], -1)
    found = results_of(model, design=design, **given)
    total, inertia = design.sum(-1), 2 * 2.0 * 1.5**2 / 12
    np.testing.assert_allclose(found.frequency, np.sqrt(total / inertia) / (2 * np.pi), rtol=1e-10)
    np.testing.assert_allclose(found.damping, 0.3 / (2 * np.sqrt(total * inertia)), rtol=1e-10)
    np.testing.assert_allclose(found.rest, 0.2 * design[:, 1] / total, rtol=1e-10)
    assert np.isinf(found.margin).all()
    alone = results_of(model, design=design[1:2], **given)
    for name in ("frequency", "damping", "rest", "margin"):
        assert found[name][1] == alone[name][0]


@pytest.mark.slow
def test_results_of_closed_loops_do_not_depend_on_the_chunks():
    """Bit for bit, although samples choose other independent coordinates."""
    chain = four_bar()
    measures = [{"name": f"f{k}", "quantity": "frequency", "mode": k} for k in range(2)]
    measures += [{"name": "d", "quantity": "damping_ratio", "mode": 1}, REST | {"joint": "rocker"}]
    study = rb.Study(
        chain.model.replace(damping=[0.2, 0.1, 0.3], stiffness=[1.0, 2.0, 0.5]),
        samples=9,
        simulate={"duration": 0.02, "method": "rk4", "step": 0.01, "q": chain.model.assemble(chain.guess).tolist()},
        drives=[rb.PID("crank", -1.0, kp=2.0, ki=0.5)],
        measures=[*measures, MARGIN | {"joint": "crank"}],
        vary={
            "*.mass": rb.Dispersion(rb.Normal(1.0, 0.2), how="multiply"),
            "crank.reference": rb.Dispersion(rb.Normal(0.0, 1.0), how="add"),
        },
    )
    whole = study.plan.compute(0, 9)
    for ends in ([0, 1, 4, 9], [0, 3, 8, 9]):
        parts = [study.plan.compute(first, last) for first, last in pairwise(ends)]
        for name, values in whole.items():
            np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), values, err_msg=name)
    assert np.isfinite([whole[m["name"]] for m in measures]).all()


def test_a_measure_of_a_motion_needs_its_drives():
    drives = [rb.PID("slide", 0.2, kp=[8.0, 2.0], kd=0.1)]
    motion = slide().simulate(np.zeros((2, 1)), duration=0.1, drives=drives, tau=0.5)
    rest = rb.Measure(**REST)
    np.testing.assert_allclose(rest.values(slide(), motion), 0.2 + 0.5 / np.array([8.0, 2.0]), rtol=1e-11)
    with pytest.raises(StudyError, match="does not record its drives and joint forces"):
        rest.values(slide(), motion[0])


MOVES = rb.PrescribedPosition("slide", rb.Signal.sines(0.1, 2.0))


@pytest.mark.parametrize(
    ("given", "keys", "message"),
    [
        (FREQUENCY | {"over": "max"}, {}, "over is 'max', but the quantity 'frequency' has one number"),
        (FREQUENCY | {"joint": "slide"}, {}, "joint is 'slide', but the quantity 'frequency' does not use it"),
        (FREQUENCY | {"mode": 2}, {}, "mode is 2, but the linear model has 2 states"),
        (FREQUENCY | {"mode": -1}, {}, "mode"),
        (FREQUENCY | {"unit": "rad/s"}, {}, "the measure is in 'Hz'"),
        (REST | {"mode": 1}, {}, "mode is 1, but the quantity 'equilibrium' does not use it"),
        (REST | {"joint": None}, {}, "joint is missing; the quantity 'equilibrium' needs it"),
        (REST | {"joint": "slid"}, {}, "expected a joint of model"),
        (MARGIN, {}, "no drive commands the joint force of 'slide'"),
        (REST, {"drives": [MOVES]}, r"drives\[0\] moves joint 'slide'"),
        (REST, {"drives": [rb.PrescribedVelocity("slide", 0.1)]}, "does not support PrescribedVelocity"),
        (REST, {"drives": [rb.Sampled(rb.PID("slide", 0.1, kp=1.0), period=0.1)]}, "does not support Sampled"),
        (REST, {"drives": [rb.PrescribedForce("slide", rb.Signal.noise(0.1, [0.5, 2.0]))]}, "has random signals"),
        (REST, {"forces": [rb.DryFriction("slide", kinetic=0.1)], "method": "moreau"}, "does not support"),
    ],
)
def test_errors(given, keys, message):
    keys = {"model": slide()} | keys
    simulate = {"duration": 1.0}
    if "method" in keys:
        simulate |= {"method": keys.pop("method"), "step": 0.01}
    with pytest.raises(StudyError, match=r"measures\[0\].*" + message):
        rb.Study(samples=2, simulate=simulate, measures=[given], **keys)
