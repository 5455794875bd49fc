"""Numbers of signals as parameters of studies: each sample moves as in a simulation with this number."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import ArgumentError, StudyError
from rbchain.study.describe.parameter_table import PARAMETERS, SIGNAL_OWNER

pytestmark = pytest.mark.plain_python

SIMULATE = {"duration": 0.2, "method": "rk4", "step": 0.05, "save_at": 2}
TIMES, VALUES = [0.0, 0.06, 0.1, 0.15, 0.3], [0.1, 0.5, -0.2, 0.3, 0.7]
SEA = {"significant_wave_height": 2.0, "peak_period": 8.0, "quantity": "vertical_velocity", "depth": 2.0, "sines": 5}


def sines(**changed):
    given = {"amplitude": [0.2, 0.5], "angular_frequency": [3.0, 7.0], "phase": [0.4, 0.9], "offset": 0.3}
    return rb.Signal.sines(**given | {name: np.where([True, False], given[name], x) for name, x in changed.items()})


def table(interpolation, i=None, **changed):
    given = {"times": np.array(TIMES), "values": np.array(VALUES)}
    for name, x in changed.items():
        given[name][i] = x
    return rb.Signal.table(**given, interpolation=interpolation)


def held(times=(0.0, 0.08), values=(1.0, 3.0)):
    return rb.Signal(np.array(values)[:, None], breaks=np.array(times))


#: The field behind the path of the signal, and the signal for a number.
CASES = {
    "constant": ("value", rb.Signal.constant),
    "polynomial": ("coefficients.1", lambda x: rb.Signal.polynomial([0.2, x, -0.4])),
    "amplitude": ("amplitude.1", lambda x: sines(amplitude=x)),
    "angular frequency": ("angular_frequency.1", lambda x: sines(angular_frequency=x)),
    "phase": ("phase.1", lambda x: sines(phase=x)),
    "one sine": ("amplitude", lambda x: rb.Signal.sines(x, 5.0)),
    "offset": ("offset", lambda x: rb.Signal.sines(0.1, 5.0, offset=x)),
    "linear value": ("values.2", lambda x: table("linear", 2, values=x)),
    "last value": ("values.4", lambda x: table("linear", 4, values=x)),
    "linear time": ("times.3", lambda x: table("linear", 3, times=0.1 + 0.05 * x)),
    "cubic value": ("values.1", lambda x: table("cubic", 1, values=x)),
    "cubic time": ("times.1", lambda x: table("cubic", 1, times=0.1 * x)),
    "sum": ("times.1", lambda x: table("linear", 1, times=0.1 * x) + 0.3 * rb.Signal.sines(0.5, 9.0)),
    "held value": ("values.0", lambda x: held(values=(x, 3.0))),
    "held time": ("times.1", lambda x: held(times=(0.0, 0.2 * x))),
    "delay": ("delay", lambda x: held(times=np.array([-1.0, 0.05]) + 0.2 * x)),
    "noise": ("factor", lambda x: rb.Signal.noise(2.0, (0.1, 5.0), factor=x, sines=5)),
    "noise offset": ("offset", lambda x: rb.Signal.noise(2.0, (0.1, 5.0), offset=x, sines=5)),
    "std": ("std", lambda x: rb.Signal.ornstein_uhlenbeck(x, 0.1)),
    "correlation time": ("correlation_time", lambda x: rb.Signal.ornstein_uhlenbeck(1.0, x, interval=0.01)),
    "intensity": ("intensity", lambda x: rb.Signal.random_walk(x, 0.02)),
    "height": ("significant_wave_height", lambda x: rb.Signal.sea_state(**SEA | {"significant_wave_height": x})),
    "period": ("peak_period", lambda x: rb.Signal.sea_state(**SEA | {"peak_period": x})),
    "depth": ("depth", lambda x: rb.Signal.sea_state(**SEA | {"depth": x})),
    "random sum": ("std", lambda x: rb.Signal.ornstein_uhlenbeck(x, 0.1) - 2.0 * rb.Signal.sines(0.5, 9.0)),
    "sine of a sum": ("amplitude", lambda x: 2.0 * rb.Signal.random_walk(1.0, 0.02) + rb.Signal.sines(x, 9.0)),
}
#: Numbers that are not x itself: the number of the signal for x.
NUMBERS = {
    "linear time": lambda x: 0.1 + 0.05 * x,
    "cubic time": lambda x: 0.1 * x,
    "sum": lambda x: 0.1 * x,
    "held time": lambda x: 0.2 * x,
    "delay": lambda x: 0.2 * x,
}


def test_all_numbers_are_tested():
    names = {x.field_in_paths(name) for name, x in PARAMETERS.items() if x.owner == SIGNAL_OWNER}
    assert names == {path.split(".")[0] for path, _ in CASES.values()}


@pytest.mark.parametrize("case", CASES)
def test_a_sample_moves_as_in_a_simulation_with_this_number(case):
    """Bit for bit, in a drive, in a digital controller, and in one component of a wrench."""
    field, signal_for = CASES[case]
    number = NUMBERS.get(case, lambda x: x)
    x = np.array([0.2, 0.7, 0.45])
    model, nominal = rb.Model.serial_chain(2, mass=40.0), signal_for(0.0 if case == "delay" else 0.5)

    def acting(of_drive, of_force):
        feedforward = rb.PID("link1", 0.1, kp=1.0, feedforward=of_drive)
        return {
            "drives": [rb.Sampled(feedforward, period=0.05), rb.PrescribedForce("link2", of_drive)],
            "forces": [rb.Wrench("link2", force=(0.0, of_force, 0.2), name="wind")],
        }

    owner = ("link1.feedforward", "link2.signal", "wind.force.y")[[*CASES].index(case) % 3]
    values = np.array([number(one) for one in x])
    study = rb.Study(
        model,
        samples=3,
        vary={f"{owner}.{field}": rb.Uniform(values.min() - 1e-3, values.max() + 1e-3)},
        design=values[:, None],
        simulate=SIMULATE,
        **acting(nominal, nominal),
    )
    assert study.inputs.names == (f"{owner}.{field}",)
    found = study.run().q_final.values
    for k in range(3):
        given, of_changed = acting(nominal, nominal), acting(*[signal_for(x[k])] * 2)
        if owner == "wind.force.y":
            given["forces"] = of_changed["forces"]
        else:
            i = owner == "link2.signal"
            given["drives"][i] = of_changed["drives"][i]
        states = np.zeros((3, 2))  # of all samples, whose random signals differ
        expected = model.simulate(states, states, **SIMULATE, **given).q[k, -1]
        np.testing.assert_array_equal(found[k], expected)
    assert np.isfinite(found).all()
    assert len({*found[:, 1]}) == 3


def test_a_sliding_mass_follows_the_closed_form_for_each_sine():
    """x'' = a sin(w t + p) gives x = (sin p - sin(w t + p)) a / w^2 + t cos(p) a / w."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("mass", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    study = rb.Study(
        builder.build(),
        samples=5,
        drives=[rb.PrescribedForce("mass", rb.Signal.sines(1.0, 2.0))],
        vary={
            "mass.signal.amplitude": rb.Uniform("1 N", "2 N"),
            "mass.signal.angular_frequency": rb.Dispersion(rb.Normal(1.0, 0.1), how="multiply"),
            "mass.signal.phase": rb.Dispersion(rb.Normal(0.0, "10 deg"), how="add"),
        },
        simulate=rb.Simulation(1.5, rtol=1e-10, atol=1e-12, save_at=2),
    )
    assert study.inputs.units == {
        "mass.signal.amplitude": "N",
        "mass.signal.angular_frequency": "1",
        "mass.signal.phase": "rad",
    }
    results = study.run()
    a, factor, p = results.parameters.values.T
    w, t = 2.0 * factor, 1.5
    expected = (np.sin(p) - np.sin(w * t + p)) * a / w**2 + t * np.cos(p) * a / w
    np.testing.assert_allclose(results.q_final.values[:, 0], expected, rtol=1e-9)


def test_numbers_change_before_the_whole_signal_and_together():
    """A table whose time, value, delay and factor vary, in any order of the description."""
    vary = {
        "link1.signal": rb.Dispersion(rb.Normal(1.0, 0.2), how="multiply"),
        "link1.signal.values.1": rb.Normal(0.5, 0.2),
        "link1.signal.delay": rb.Uniform("-10 ms", "10 ms"),
        "link1.signal.times.2": rb.Uniform(0.08, 0.12),
    }
    long = rb.Signal.table([-1.0, *TIMES[1:]], VALUES, interpolation="linear")
    model, design = rb.Model.serial_chain(1), np.array([[1.1, 0.4, 0.01, 0.09], [0.9, 0.6, -0.01, 0.1]])
    settings = {"samples": 2, "simulate": SIMULATE, "drives": [rb.PrescribedForce("link1", long)]}
    found = rb.Study(model, vary=vary, design=design, **settings).run().q_final.values
    reverse = rb.Study(model, vary=dict(reversed(vary.items())), design=design[:, ::-1], **settings)
    np.testing.assert_array_equal(reverse.run().q_final.values, found)
    times, values = np.array([-1.0, *TIMES[1:]]), np.array(VALUES)
    times[2], values[1] = 0.09, 0.4
    alone = 1.1 * rb.Signal.table(times + 0.01, values, interpolation="linear")
    expected = model.simulate([0.0], drives=[rb.PrescribedForce("link1", alone)], **SIMULATE)
    np.testing.assert_array_equal(found[0], expected.q[-1])


def test_a_draw_that_gives_no_signal_fails_alone():
    """Times that do not increase, and a negative standard deviation."""
    for signal, field, values in (
        (table("linear"), "times.1", [0.05, 0.12, 0.09]),
        (rb.Signal.ornstein_uhlenbeck(1.0, 0.1), "std", [0.05, -1.0, 0.1]),
    ):
        study = rb.Study(
            rb.Model.serial_chain(1),
            samples=3,
            vary={f"link1.signal.{field}": rb.Uniform(0.04, 0.2)},
            design=np.array(values)[:, None],
            simulate=SIMULATE,
            drives=[rb.PrescribedForce("link1", signal)],
        )
        found = study.plan.compute(0, 3)
        assert found["status"].tolist() == [rb.Status.DONE, rb.Status.INVALID_PARAMETERS, rb.Status.DONE]


STUDY = """
samples = 3
model = {file = "arm.toml"}
simulate = {duration = 0.2, method = "rk4", step = 0.05, save_at = 2}

[[drives]]
type = "PrescribedForce"
joint = "link1"
signal = {type = "table", times = [0.0, 0.06, 0.1, 0.15, 0.3], values = [0.1, 0.5, -0.2, 0.3, 0.7]}

[[forces]]
type = "Wrench"
name = "wind"
frame = "link1"
force = [0.0, {type = "ornstein_uhlenbeck", std = 1.0, correlation_time = 0.1}, {type = "sines", amplitude = 1.0, \
angular_frequency = 3.0}]

[vary]
"link1.signal.values.3" = {type = "normal", mean = 0.3, std = 0.1}
"wind.force.y.std" = {type = "uniform", low = "0.5 N", high = "2 N"}
"wind.force.z.phase" = {type = "uniform", low = "0 deg", high = "360 deg"}
"""


def test_a_study_file_has_the_results_of_python(tmp_path):
    """The file of the user, and the file that the study writes into the folder of its results."""
    rb.save(rb.Model.serial_chain(1), tmp_path / "arm.toml")
    (tmp_path / "study.toml").write_text(STUDY)
    from_file = rb.Study.read(tmp_path / "study.toml").run()
    study = rb.Study(
        rb.Model.serial_chain(1),
        samples=3,
        drives=[rb.PrescribedForce("link1", rb.Signal.table(TIMES, VALUES))],
        forces=[
            rb.Wrench(
                "link1",
                force=(0.0, rb.Signal.ornstein_uhlenbeck(1.0, 0.1), rb.Signal.sines(1.0, 3.0)),
                name="wind",
            )
        ],
        vary={
            "link1.signal.values.3": rb.Normal(0.3, 0.1),
            "wind.force.y.std": rb.Uniform(0.5, 2.0),
            "wind.force.z.phase": rb.Uniform(0.0, 2 * np.pi),
        },
        simulate=SIMULATE,
    )
    found = study.run(tmp_path / "results")
    np.testing.assert_array_equal(found.q_final.values, from_file.q_final.values)
    written = rb.Study.read(tmp_path / "results" / "description" / "study.toml").run()
    np.testing.assert_array_equal(written.q_final.values, from_file.q_final.values)


def test_names_that_are_not_numbers_of_a_signal_are_refused_with_the_reason():
    general = rb.Signal([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]], breaks=[0.0, 0.1])  # no table of its values
    noise, gust = rb.Signal.noise(1.0, (0.1, 5.0), sines=5), rb.Input("gust", 1.0)
    drives = [rb.PrescribedForce("link1", general), rb.PID("link2", gust, kp=1.0, feedforward=noise)]
    for path, message in {
        "link1.signal.coefficients": r"pieces of a piecewise polynomial depend on each other.*Signal\.table",
        "link1.signal.breaks": "pieces of a piecewise polynomial",
        "link1.signal.frequency": 'Vary "angular_frequency"',
        "link1.signal.period": "For a sine, vary its angular_frequency",
        "link2.feedforward.density": "share the spectrum of noise. Vary its `factor`",
        "link2.feedforward.sines": "one grid of frequencies or times",
        "link2.feedforward.seed": "the study numbers its samples",
        "link2.feedforward.std": r"'link2.feedforward.std' is not the path of a parameter",
        "link2.reference.amplitude": "'link2.reference' has no 'amplitude'; expected one of offset",
    }.items():
        with pytest.raises(StudyError, match=message):
            rb.Study(
                rb.Model.serial_chain(2), samples=2, drives=drives, simulate=SIMULATE, vary={path: rb.Uniform(0, 1)}
            )


def test_tables_with_times_of_each_sample():
    """Each sample of a batch is the signal of its own table, also in sums, derivatives and simulations."""
    times = np.array([[0.0, 0.1, 0.3], [0.0, 0.2, 0.4], [0.0, 0.05, 0.35]])
    values, t = np.array([1.0, -1.0, 2.0]), np.linspace(0.0, 0.3, 31)
    for kind in ("linear", "cubic"):
        many = rb.Signal.table(times, values, interpolation=kind)
        assert (many.batch_shape, many.end) == ((3,), 0.3)
        alone = [rb.Signal.table(one, values, interpolation=kind) for one in times]
        changed = [2.0 * one + rb.Signal.sines(1.0, 5.0) - 1.0 for one in (many, *alone)]
        for k in range(3):
            np.testing.assert_array_equal(many(t)[k], alone[k](t))
            np.testing.assert_array_equal(many.of_sample(k, (3,))(t), alone[k](t))
            np.testing.assert_array_equal(changed[0](t)[k], changed[k + 1](t))
            np.testing.assert_array_equal((many + many)(t)[k], (alone[k] + alone[k])(t))
        if kind == "cubic":
            np.testing.assert_array_equal(many.derivative()(t)[1], alone[1].derivative()(t))
            square = (many + rb.Signal.polynomial([1.0, 2.0, 3.0]))(t)[2]
            np.testing.assert_allclose(square, alone[2](t) + 1.0 + 2.0 * t + 3.0 * t**2, rtol=1e-13)
    with pytest.raises(ArgumentError, match="whose times differ between samples, is not available"):
        many + rb.Signal.table([0.0, 0.2, 1.0], values)
    jumping = rb.Signal([[1.0], [2.0]], breaks=[[0.0, 0.1], [0.0, 0.2]])
    with pytest.raises(ArgumentError, match=r"jumps at t = 0\.1 s"):
        jumping.derivative()
    with pytest.raises(ArgumentError, match="expected increasing times"):
        rb.Signal.table([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0])


def test_steps_end_at_the_breaks_of_each_sample():
    """A force that jumps at a time of each sample: rk45 with few steps is exact, x = F (T - t)^2 / 2."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("mass", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    starts = np.array([0.1, 0.37, 0.8])
    force = rb.Signal([[0.0], [3.0]], breaks=np.stack([np.zeros(3), starts], -1))
    for dtype, tolerance in ((np.float64, 1e-13), (np.float32, 2e-6)):
        states = np.zeros((3, 1), dtype)
        motion = builder.build().simulate(
            states, states, duration=1.0, drives=[rb.PrescribedForce("mass", force)], save_at=2
        )
        np.testing.assert_allclose(motion.q[:, -1, 0], 1.5 * (1.0 - starts) ** 2, rtol=tolerance)
