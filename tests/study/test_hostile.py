"""Invalid descriptions and folders are refused with a message that names the key."""

import errno
import json
import sys

import numpy as np
import pytest
from scipy import stats

import rbchain as rb
from rbchain import cli
from rbchain.cli import output

GOOD = """
model = { serial_chain = { n = 2 } }
samples = 10

[vary."*.mass"]
distribution = { type = "normal", mean = "100 g", std = 0.01 }

[simulate]
duration = 0.1
method = "rk4"
step = 0.01

[[measures]]
name = "height"
quantity = "coordinate"
frame = "link2"
axis = "y"
"""

WRONG = {
    "no TOML": ("samples = 10", "samples = = 10", r"the file is not valid TOML: Invalid value \(at line 3"),
    "an unknown key": (
        "samples = 10",
        "samples = 10\nsample = 3",
        r"unknown key 'sample'; expected one of name, model, samples, .*; did you mean samples\?",
    ),
    "an unknown key within": (
        'axis = "y"',
        'axes = "y"',
        r"measures\[0\]: unknown key 'axes'; .*; did you mean axis\?",
    ),
    "a missing key": ("samples = 10", "", "samples is missing; expected a value for this key"),
    "no samples": ("samples = 10", "samples = 0", "samples is 0; expected a number greater than or equal to 1"),
    "a wrong unit": ('"100 g"', '"100 mm"', r"vary\.\S+.distribution: mass is '100 mm'; expected .* such as '1 kg'"),
    "a unit where there is none": (
        'distribution = { type = "normal", mean = "100 g", std = 0.01 }',
        'how = "multiply"\ndistribution = { type = "normal", mean = "100 %", std = 0.01 }',
        r"vary\.\S+.distribution: '100 %' has a unit; expected a plain number, a factor",
    ),
    "a negative deviation": (
        "std = 0.01",
        "std = -0.01",
        r"vary\.\S+.distribution.std is -0.01; expected a number above 0",
    ),
    "an infinite deviation": (
        "std = 0.01",
        "std = inf",
        r"vary\.\S+.distribution.std is inf; expected a finite number",
    ),
    "an unknown distribution": (
        'type = "normal"',
        'type = "gaussian"',
        r"vary\.\S+.distribution.type is 'gaussian'; expected one of 'normal', .*, 'scipy'$",
    ),
    "an unknown parameter": (
        "*.mass",
        "link1.weight",
        r"'link1' has no 'weight'; expected one of mass",
    ),
    "an unknown body": (
        "*.mass",
        "link7.mass",
        r"nothing named 'link7' has 'mass'; expected one of \['link1', 'link2'\]",
    ),
    "dispersions of the former form": (
        '[vary."*.mass"]',
        '[[vary]]\nparameter = "dry_friction_kinetic"\ntargets = ["link1", "link2"]',
        r'vary: found a list, whose first entry is now \[vary."{link1,link2}.kinetic"\]; vary is now a table',
    ),
    "a tag of the former name": (
        "{ type =",
        "{ kind =",
        r"the key 'kind' is now called 'type'; found kind = 'normal'",
    ),
    "an unknown frame": ('frame = "link2"', 'frame = "hand"', r"measures\[0\]: frame is 'hand'; expected a body"),
    "a way that is none": (
        '*.mass"]',
        '*.inertia"]\nhow = "multiply"',
        r"how is 'multiply'; expected 'add' for '\*\.inertia'",
    ),
    "a missing file": (
        "{ serial_chain = { n = 2 } }",
        '"robot.urdf"',
        "model: file is 'robot.urdf', but .*robot.urdf does not exist; expected a path relative to the folder of",
    ),
    "a missing table": (
        "samples = 10",
        'samples = 10\ndesign = { type = "table", file = "x.csv" }',
        "design.file is 'x.csv', but .*x.csv does not exist; expected a path relative to the folder of",
    ),
    "a step that is missing": ("step = 0.01", "", "simulate.step is missing; method 'rk4' needs a step in s"),
    "a taken name": ('name = "height"', 'name = "status"', "measures: 'status' is already the name of another output"),
    "a factorial of another size": (
        "samples = 10",
        'samples = 10\ndesign = "factorial"',
        r"design: samples is 10; expected 3\^2 = 9",
    ),
    "an unknown design": (
        "samples = 10",
        'samples = 10\ndesign = "magic"',
        "design.type is 'magic'; expected one of 'random'",
    ),
    "a stop without measure": (
        "samples = 10",
        'samples = 10\nstop_when = { measure = "x", half_width = 1 }',
        r"stop_when: measure is 'x'; expected one of \['failure rate', 'height'\]",
    ),
    "a state of the wrong size": (
        "duration = 0.1",
        "duration = 0.1\nq = [1, 2, 3]",
        r"simulate.q is \[1, 2, 3\]; expected one number, or 2 numbers",
    ),
    "a negative duration": (
        "duration = 0.1",
        "duration = -1",
        r"simulate.duration is -1; expected a number greater than 0",
    ),
    "a drive of no kind": (
        "samples = 10",
        'samples = 10\ndrives = [{ type = "Motor" }]',
        r"drives\[0\].type is 'Motor'; expected one of",
    ),
    "a drive of no joint": (
        "samples = 10",
        'samples = 10\ndrives = [{ type = "PID", joint = "knee", reference = 0, kp = 1 }]',
        r"drives\[0\]: .*'knee'",
    ),
    "an unknown word of a drive": (
        "samples = 10",
        'samples = 10\ndrives = [{ type = "PID", joint = "link1", reference = 0, kq = 1 }]',
        r"drives\[0\]: PID has no kq; it has",
    ),
    "a wrench on a body": (
        "samples = 10",
        'samples = 10\nforces = [{ type = "Wrench", body = "link1" }]',
        r"forces\[0\]: Wrench has no body; body is now called frame; it has",
    ),
    "an event of a quantity": (
        "samples = 10",
        'samples = 10\nevents = [{ joint = "link1", of = "velocity", most = 3 }]',
        r"events\[0\]: Event has no most, of; most is now called max_records; of is now called quantity; it has",
    ),
    "a number with a unit where there is none": (
        "duration = 0.1",
        'duration = "2 s"',
        "simulate.duration is '2 s'; expected a number, without quotes or a unit",
    ),
    "a distribution without kind": (
        'type = "normal", ',
        "",
        r"vary\.\S+.distribution.type is missing; expected a value",
    ),
    "a distribution that is a string": (
        'distribution = { type = "normal", mean = "100 g", std = 0.01 }',
        'distribution = "normal"',
        r"vary\.\S+.distribution is 'normal'; expected a table of keys and values",
    ),
    "a point of two coordinates": (
        '*.mass"]',
        '*.payload"]\npoint = [0, 1]',
        r"vary\.\S+.point is \[0, 1\]; expected more than 2 values",
    ),
    "a point of four coordinates": (
        '*.mass"]',
        '*.payload"]\npoint = [0, 1, 2, 3]',
        r"vary\.\S+.point is \[0, 1, 2, 3\]; expected at most 3 values",
    ),
    "a point of a mass": ('*.mass"]', '*.mass"]\npoint = [0, 0, 1]', r"only a payload has a point; remove point"),
    "components of a scalar": ("*.mass", "*.mass.x", r"'\*\.mass' has no 'x'; expected no component"),
    "two dispersions of one number": (
        "[simulate]",
        '[vary."link1.mass"]\ndistribution = { type = "normal", std = 0.1 }\n[simulate]',
        r"'link1\.mass' is varied by two dispersions; expected each parameter once",
    ),
    "a misspelled body": (
        'frame = "link2"',
        'frame = "Link2"',
        r"measures\[0\]: frame is 'Link2'; .*; did you mean link2\?",
    ),
    "a measure without frame": (
        'frame = "link2"',
        "",
        r"measures\[0\]: frame is missing; the quantity 'coordinate' needs it",
    ),
    "a measure with an unused key": (
        'axis = "y"',
        'axis = "y"\njoint = "link1"',
        r"measures\[0\].joint is 'link1', but the quantity 'coordinate' does not use it; remove it",
    ),
    "a number of too many digits": ("samples = 10", "samples = 1" + 5000 * "0", "the file is not valid TOML: .*4300"),
    "a huge number": (
        "duration = 0.1",
        "duration = 1" + 400 * "0",
        r"simulate.duration is 10{199}\.\.\.; expected numbers within float64's range",
    ),
    "too many samples": (
        "samples = 10",
        "samples = 1" + 18 * "0",
        r"samples is 10{18}; expected a number less than or equal to 10{15}",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_invalid_description_is_refused_with_its_key(what, tmp_path, capsys):
    old, new, words = WRONG[what]
    assert old in GOOD
    path = tmp_path / "study.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(rb.StudyError, match=f"(?s){path}: .*{words}"):
        rb.Study.read(path)
    assert cli.main(["study", "run", str(path), "--out", str(tmp_path / "out")]) == output.EXIT_REFUSED
    assert "Traceback" not in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_valid_description_is_accepted(tmp_path):
    (tmp_path / "study.toml").write_text(GOOD)
    results = rb.Study.read(tmp_path / "study.toml").run(tmp_path / "out")
    assert np.isfinite(results.height).all()
    assert 0.05 < results.parameters.values.mean() < 0.15


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (
            [[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]],
            "the correlation matrix is not positive definite: its smallest eigenvalue is -0.2",
        ),
        (
            [[1.0, 0.5, 0.0], [0.4, 1.0, 0.0], [0.0, 0.0, 1.0]],
            r"the matrix is not symmetric: entry \[0, 1\] is 0.5, but entry \[1, 0\] is 0.4",
        ),
        ([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "the diagonal of the correlation matrix is"),
        ([[1.0, 0.0], [0.0, 1.0]], r"shape \(2, 2\); expected \(3, 3\)"),
    ],
)
def test_an_invalid_correlation_matrix_is_refused(matrix, words, arm):
    keys = {"model": arm, "samples": 5, "simulate": {"duration": 1.0}}
    vary = {"link1.cg": rb.Dispersion(stats.norm(0, 0.01), how="add")}
    with pytest.raises(rb.StudyError, match=words):
        rb.Study(
            **keys,
            vary=vary,
            correlate=[{"parameters": ["link1.cg.x", "link1.cg.y", "link1.cg.z"], "matrix": matrix}],
        )


def test_negative_variances_are_refused(arm):
    covariance = np.diag([1.0, -1.0, 1.0])
    with pytest.raises(rb.StudyError, match=r"the diagonal of covariance is .*expected variances above 0"):
        rb.Study(
            model=arm,
            samples=5,
            simulate={"duration": 1.0},
            vary={"*.cg": rb.MultivariateNormal([0, 0, 0], covariance)},
        )


def study(arm, **keys):
    simulate = {"duration": 0.1, "method": "rk4", "step": 0.01}
    vary = {"*.mass": rb.Dispersion(rb.Uniform(0.9, 1.1), how="multiply")}
    return rb.Study(**{"model": arm, "samples": 60, "vary": vary, "simulate": simulate} | keys)


def measure(**keys):
    return {"measures": [{"name": "x"} | keys]}


def vary(path, distribution=None, **keys):
    distribution = {"type": "uniform", "low": 0.0, "high": 1.0} if distribution is None else distribution
    return {"vary": {path: {"distribution": distribution} | keys}}


def motion(**keys):
    return {"simulate": {"duration": 0.1, "method": "rk4", "step": 0.01} | keys}


PID = rb.PID("link1", 0.0, kp=1.0)
WRONG_FOR_THE_MODEL = [
    ({"simulate": {"duration": 0.1, "rtol": -1.0}}, "simulate: rtol is -1.0"),
    ({"simulate": {"duration": 0.1, "atol": 0.0}}, "simulate: atol is 0.0"),
    (
        {"simulate": {"duration": 0.1, "step": 0.1}},
        "simulate.step is 0.1, but method 'rk45' chooses its own steps; remove step",
    ),
    (motion(rtol=1e-6), "simulate.rtol is 1e-06, but method 'rk4' has steps of fixed length .*; remove rtol, or set"),
    (motion(step=1e-30), r"simulate: step is 1e-30 s, which makes more than 1e\+12 steps .*; expected a longer step"),
    (motion(q=[1.0, 2.0, 3.0]), "simulate.q is .*; expected one number, or 2 numbers"),
    (motion(qd=np.inf), "simulate.qd is .*; expected finite numbers"),
    (
        motion(tau=0.1) | {"drives": [rb.PrescribedVelocity("link1", 0.1)]},
        r"simulate.tau: drives\[0\] prescribes the motion of joint 'link1', so a constant joint force has no effect",
    ),
    (vary("*.tau") | {"drives": [rb.PrescribedVelocity("link1", 0.1)]}, r"vary\.\S+: drives\[0\] prescribes"),
    ({"drives": [PID, rb.PID("knee", 0.0, kp=1.0)]}, r"drives\[1\]: PID of joint 'knee'"),
    ({"drives": [PID, rb.PrescribedVelocity("link1", 0.0)]}, "drives: .*has no effect"),
    ({"drives": [rb.PID("link1", 0.0, kp=[1.0, 2.0])]}, r"drives\[0\]: .*kp has shape"),
    ({"forces": [rb.Wrench("arm", force=(1, 0, 0))]}, r"forces\[0\]: .*'arm'"),
    ({"forces": [rb.Current((1, 0, 0))]}, r"forces\[0\]: .*no body is in water"),
    ({"events": [rb.Event("link1", stop=True), rb.Event("knee", stop=True)]}, r"events\[1\]: .*'knee'"),
    ({"events": [rb.Event("link1", dof=1, stop=True)]}, r"events\[0\]: Event of joint 'link1': dof is 1, but"),
    (measure(quantity="coordinate", frame="hand"), r"measures\[0\]: frame is 'hand'; expected a body"),
    (measure(quantity="coordinate", frame="link1", axis="w"), r"measures\[0\].axis is 'w'; expected 'x', 'y' or 'z'"),
    (
        measure(quantity="torque", joint="knee"),
        r"measures\[0\]: joint is 'knee'; expected a joint of model 'chain': \['link1', 'link2'\]",
    ),
    (
        measure(quantity="torque", joint="link1", dof=1),
        r"measures\[0\]: Measure 'x': dof is 1, but joint 'link1' has 1 degree of freedom; expected 0",
    ),
    (measure(quantity="function", function="math:pi"), r"measures\[0\].function is 'math:pi'.*expected a function"),
    (
        measure(quantity="function", function="math"),
        r"measures\[0\].function is 'math'; expected a function, or its place as \"module:name\"",
    ),
    (
        {"vary": [{"parameter": "spring_stiffness", "targets": "world-link1"}]},
        r'vary: found a list, whose first entry is now \[vary."world-link1.stiffness"\]; vary is now a table of',
    ),
    ({"measures": [{"name": "x", "of": "energy"}]}, r"measures\[0\]: the key 'of' is now called 'quantity'"),
    ({"correlate": [{"of": ["a"], "matrix": [[1.0]]}]}, r"correlate\[0\]: the key 'of' is now called 'parameters'"),
    (measure(quantity="energy", name="a/b"), r"measures\[0\].name is 'a/b'; expected a name that a folder can have"),
    (measure(quantity="energy", name=200 * "é"), r"measures\[0\].name is 'é.*up to 200 bytes"),
    (
        measure(quantity="reaction_force", joint="link1")
        | {"forces": [rb.DryFriction("link1", 1.0)], **motion(method="moreau")},
        r"measures\[0\]: quantity is 'reaction_force', but the study has DryFriction; "
        r"rbchain computes",
    ),
    (vary("*.mass", {"type": "normal", "mean": "5 deg", "std": "1 g"}), r"vary\.\S+.distribution: mass is '5 deg'"),
    (vary("*.kp"), r"'kp' is not|is not the path of a parameter"),
    (
        vary("*.pitch"),
        r"vary\.\S+: no valid draw changes the model. .*: pitch cannot vary: no joint is a screw",
    ),
    (
        vary("*.mass", {"type": "uniform", "low": -2.0, "high": -1.0}),
        r"vary\.\S+: no valid draw changes the model. .*: body 'link1'.*mass is -1",
    ),
    (vary("*.friction", how="multiply"), r"vary\.\S+ has no effect on the model"),
    (
        {"model": {"serial_chain": {"n": 2}, "values": {"damping": [1, 2, 3]}}},
        r"model: values.damping has shape \(3,\)",
    ),
    ({"model": rb.Model.serial_chain(2).vary(mass=np.ones((3, 2)))}, r"model is a batch of shape \(3,\)"),
    ({"design": {"type": "factorial", "levels": 10**5}}, r"design: samples is 60; expected 100000\^2 = 10000000000"),
]


@pytest.mark.parametrize(("keys", "words"), WRONG_FOR_THE_MODEL)
def test_an_error_that_needs_no_sample_is_raised_when_the_study_is_built(keys, words, arm):
    with pytest.raises(rb.StudyError, match=words):
        study(arm, **keys)


class Given:
    """A user-defined distribution."""

    def __init__(self, ppf):
        self.ppf = ppf


def masked(values):
    return np.ma.array(values, mask=np.arange(np.size(values)) > 0)


NO_REAL_NUMBERS = [
    (vary("*.damping", Given(masked)), r"vary\.\S+.distribution: the result of ppf is a masked array"),
    (vary("*.damping", Given(np.ma.array)), r"vary\.\S+.distribution: the result of ppf is a masked array"),
    (vary("*.damping", Given(lambda u: u + 1j)), r"vary\.\S+.distribution: the result of ppf has type complex128"),
    (
        vary("*.damping", Given(lambda u: np.full(u.shape, None))),
        r"the result of ppf is .*None.*; expected real numbers",
    ),
    (vary("*.damping", Given(lambda u: u.astype(str))), r"the result of ppf is .*'0.5'.*; expected real numbers"),
    (
        vary("*.damping", Given(lambda u: u[:1])),
        r"the method ppf returned shape \(1,\) for an argument of shape \(7,\)",
    ),
    (vary("*.damping", Given(lambda u: u.nothing)), r"vary\.\S+.distribution: the method ppf raised AttributeError"),
    (
        vary("*.damping", {"type": "normal", "mean": np.ma.masked, "std": 1.0}),
        r"vary\.\S+.distribution.mean is a masked array",
    ),
    (
        vary("*.damping", {"type": "normal", "std": np.complex128(1 + 1j)}),
        r"vary\.\S+.distribution.std has type complex128",
    ),
    (
        vary("*.damping", {"type": "normal", "mean": True, "std": 1.0}),
        r"vary\.\S+.distribution.mean is True; expected a value other than true or false",
    ),
    (vary("*.damping", stats.norm(loc=np.complex128(1j))), r"vary\.\S+.distribution: kwds.loc has type complex128"),
    (
        vary("*.damping", {"type": "scipy", "name": "beta", "args": (np.ma.masked, 1.0)}),
        r"vary\.\S+.distribution.args is a masked array",
    ),
    (
        vary("*.damping", {"type": "discrete", "values": masked([1.0, 2.0])}),
        r"vary\.\S+.distribution.values is a masked array",
    ),
    (
        vary("*.damping", {"type": "discrete", "values": [1.0, 2.0j]}),
        r"vary\.\S+.distribution.values has type complex128",
    ),
    (
        vary("*.damping", {"type": "discrete", "values": ["1", "2"]}),
        r"vary\.\S+.distribution.values is \['1', '2'\]; expected real numbers",
    ),
    (
        vary("*.damping", {"type": "discrete", "values": [10**400]}),
        r"vary\.\S+.distribution.values is .*; expected numbers within float64",
    ),
    (vary("*.payload", point=masked([0.0, 0.0, 1.0])), r"vary\.\S+.point is a masked array"),
    (
        vary("*.cg", {"type": "multivariate_normal", "mean": [0, 0, 0], "covariance": np.eye(3) + 0j}),
        r"vary\.\S+.distribution.covariance has type complex128",
    ),
    (
        {"correlate": [{"parameters": ["a", "b"], "matrix": np.ma.array(np.eye(2))}]},
        r"correlate\[0\].matrix is a masked array",
    ),
    (motion(q=masked([1.0, 2.0])), "simulate.q is a masked array"),
    (motion(qd=[0.0, 1.0j]), "simulate.qd has type complex128"),
    (motion(tau=["1", "2"]), r"simulate.tau is \['1', '2'\]; expected real numbers"),
    (motion(duration=np.complex64(1.0)), "simulate.duration has type complex64"),
    (
        measure(quantity="distance", frame="link1", point=masked([0.0, 0.0, 0.0])),
        r"measures\[0\].point is a masked array",
    ),
    (
        {"model": {"serial_chain": {"n": 2}, "values": {"damping": masked([0.1, 0.2])}}},
        "model: values.damping is a masked array",
    ),
    ({"model": {"serial_chain": {"n": 2, "mass": np.complex128(1)}}}, "model.serial_chain.mass has type complex128"),
    (
        {"stop_when": {"measure": "failure rate", "half_width": np.complex128(1)}},
        "stop_when.half_width has type complex128",
    ),
]


@pytest.mark.parametrize(("keys", "words"), NO_REAL_NUMBERS)
def test_masked_complex_and_nonnumeric_values_are_refused(keys, words, arm):
    with pytest.raises(rb.StudyError, match=words):
        study(arm, **keys)


@pytest.mark.parametrize(
    ("function", "words"), [(masked, "is a masked array"), (lambda q: q + 0j, "has type complex128")]
)
def test_a_measure_function_without_real_results_is_named(function, words, arm):
    measures = [{"name": "odd", "quantity": "function", "function": lambda model, motion: function(motion.q[:, -1, 0])}]
    with pytest.raises(rb.StudyError, match=rf"measures\[0\], 'odd': the result of the function {words}"):
        study(arm, measures=measures).run()


@pytest.mark.parametrize("ending", ["npz", "npy", "csv", "parquet"])
@pytest.mark.parametrize("kind", ["complex", "masked", "text"])
def test_a_table_without_real_numbers_is_refused(kind, ending, tmp_path, arm):
    import pandas

    columns = ["link1.mass", "link2.mass"]
    values = {
        "complex": np.full((60, 2), 0.1 + 1j),
        "masked": np.where(np.arange(120).reshape(60, 2) == 7, np.nan, 0.1),  # the value of missing numbers in files
        "text": np.full((60, 2), "0.1 kg"),
    }[kind]
    path, frame = tmp_path / f"design.{ending}", pandas.DataFrame(values, columns=columns)
    if ending == "npz":
        np.savez(path, **{name: frame[name].to_numpy(values.dtype) for name in columns})
    elif ending == "npy":
        np.save(path, values)
    elif ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.astype(str if kind == "complex" else values.dtype).to_parquet(path)  # which has no complex numbers
    words = "row 3 of column 'link2.mass', counted from 0, is nan" if kind == "masked" else "expected real numbers"
    with pytest.raises(rb.StudyError, match=f"design.file: design.{ending}: .*{words}"):
        study(arm, folder=tmp_path, design={"type": "table", "file": path.name})


@pytest.mark.parametrize(
    "distribution",
    [
        Given(lambda u: np.full_like(u, np.inf)),
        Given(lambda u: np.full_like(u, np.nan)),
        {"type": "uniform", "low": -1e308, "high": 1e308},
        {"type": "log_normal", "sigma": 1000.0},
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of SciPy
def test_a_distribution_with_infinite_values_is_refused(distribution, arm):
    words = r"vary\.\S+.distribution: the quantile .* of 'link1.damping' is .*; expected finite numbers"
    with pytest.raises(rb.StudyError, match=words):
        study(arm, **vary("link1.damping", distribution))


@pytest.mark.parametrize("odd", [np.inf, np.nan])
def test_an_infinite_draw_fails_only_its_own_sample(odd, arm):
    """The infinite values lie between the quantiles checked in advance; other samples keep their bits."""
    finite = Given(lambda u: np.where(u > 0.5, 0.2, 0.1))
    infinite = Given(lambda u: np.where((u > 0.75) & (u < 0.95), odd, finite.ppf(u)))
    expected, found = (study(arm, **vary("link1.damping", d)).run(on_failure="ignore") for d in (finite, infinite))
    failed = ~np.isfinite(found.parameters.values[:, 0])
    assert 0 < failed.sum() < 30
    assert np.array_equal(found.status == 6, failed)
    assert np.array_equal(found.q_final[~failed], expected.q_final[~failed])
    assert np.isnan(found.q_final[failed]).all()
    assert json.loads(found.attrs["statistics"])["failures"] == failed.sum()


def test_draws_too_large_to_square_have_no_variance(arm):
    statistics = (
        study(arm, **vary("link1.damping", Given(lambda u: 1e300 * u))).run(on_failure="ignore").attrs["statistics"]
    )
    of_draws = json.loads(statistics)["of"]["parameters"]
    assert of_draws["variance"] == [None]
    assert of_draws["max"][0] > 1e299


def test_a_measure_without_variance_has_no_sobol_indices(arm):
    constant = study(arm, **measure(quantity="function", function=lambda model, motion: np.full(len(motion.q), 2.5)))
    with pytest.raises(rb.StudyError, match=r"'x' is 2.5 in all .* samples, but Sobol indices are shares of its"):
        constant.sobol_indices("x", base_samples=16)


def test_results_beyond_memory_or_disk_are_refused_with_the_size(arm, tmp_path, monkeypatch):
    many = {"samples": 10**14}
    with pytest.raises(
        rb.StudyError, match=r"samples is 100,000,000,000,000: the results need 5.7 PB of memory, but this"
    ):
        study(arm, **many).run()
    with pytest.raises(rb.StudyError, match=r"the results need up to 5.7 PB, but the disk of .* has .* free"):
        study(arm, **many).run(tmp_path)
    with pytest.raises(rb.StudyError, match=r"the design needs .* of memory"):
        study(arm, **measure(quantity="energy")).sobol_indices("x", base_samples=10**14)
    # a study that stops early needs no room for the samples that it could have had
    results = study(arm, stop_when={"measure": "failure rate", "half_width": 0.1}, **many).run(tmp_path, chunk=512)
    assert results.sizes["sample"] == 1024


def test_a_full_disk_is_reported_and_the_study_can_be_resumed(arm, tmp_path, monkeypatch):
    import zarr

    write, calls = zarr.Array.__setitem__, []

    def full_after_some(array, *arguments):
        calls.append(array)
        if len(calls) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(array, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(zarr.Array, "__setitem__", full_after_some)
        with pytest.raises(
            rb.StudyError, match=r"No space left on device.*Once the cause is removed, run the same command again"
        ):
            study(arm).run(tmp_path, chunk=20)
    results, expected = study(arm).run(tmp_path, chunk=20), study(arm).run()
    assert all(np.array_equal(results[name], expected[name]) for name in expected)


def of_position(model, motion):
    return motion.q[..., 0]


def of_velocity(model, motion):
    return motion.qd[..., 0]


def scaled(factor):
    return lambda model, motion: factor * motion.q[..., 0]


def test_a_function_that_has_changed_is_refused(arm, tmp_path, monkeypatch):
    """The code, closure and globals of a function are part of the study."""
    for place, before, after in (
        ("names", lambda m, t: t.q[..., 0], lambda m, t: t.qd[..., 0]),
        ("closure", scaled(1.0), scaled(2.0)),
    ):
        of = [[{"name": "odd", "quantity": "function", "function": function}] for function in (before, after)]
        study(arm, measures=of[0]).run(tmp_path / place)
        study(arm, measures=of[0]).run(tmp_path / place)
        with pytest.raises(rb.StudyError, match=r"measures\[0\].function.sha256 was"):
            study(arm, measures=of[1]).run(tmp_path / place)
    by_name = [{"name": "odd", "quantity": "function", "function": f"{__name__}:of_position"}]
    study(arm, measures=by_name).run(tmp_path / "name")
    monkeypatch.setattr(sys.modules[__name__], "of_position", of_velocity)
    with pytest.raises(rb.StudyError, match=r"measures\[0\].function"):
        study(arm, measures=by_name).run(tmp_path / "name")


def test_a_function_that_cannot_be_pickled_is_refused_by_process_executors(arm):
    measures = [{"name": "odd", "quantity": "function", "function": lambda model, motion: motion.q[..., 0]}]
    with pytest.raises(rb.StudyError, match=r"cannot be sent to another process.*at the top level of a module"):
        study(arm, measures=measures).run(executor="processes", workers=1)


def test_two_runs_of_one_study_at_a_time_are_refused(arm, tmp_path):
    def begin_another(count, statistics):
        with pytest.raises(rb.StudyError, match="another run is writing into this folder"):
            study(arm).run(tmp_path)

    study(arm).run(tmp_path, progress=begin_another)


def test_measures_of_a_screw_joint_are_angles():
    builder = rb.ModelBuilder()
    builder.add_body("nut", joint=rb.Screw((0, 0, 1), 0.01), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    keys = {"model": builder.build(), "samples": 2, "simulate": {"duration": 0.1}}
    for unit, good in (("deg", True), ("mm", False)):
        vary = {"*.q": rb.Normal(std=f"1 {unit}")}
        if good:
            assert rb.Study(**keys, vary=vary).plan.units == ("rad",)
        else:
            with pytest.raises(rb.StudyError, match=r"vary\.\S+.distribution: .*expected an angle"):
                rb.Study(**keys, vary=vary)


def test_an_invalid_folder_is_refused(arm, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(rb.StudyError, match="the results cannot be written into this folder"):
        study(arm).run(tmp_path / "file" / "out")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"executor": "cloud"}, "executor is 'cloud'; expected one of 'local', 'processes', 'dask'"),
        ({"executor": "dask"}, "scheduler is missing; executor 'dask' needs the address of a scheduler"),
        ({"executor": "processes", "workers": 0}, "workers is 0"),
        ({"chunk": 0}, "chunk is 0"),
        ({"chunk": True}, "chunk is True"),
        ({"memory": np.nan}, "memory is nan"),
        (
            {"workers": 3},
            "workers is 3, but executor 'local' does not use it; remove workers, or choose executor='proc",
        ),
        ({"scheduler": "tcp://x"}, "scheduler is 'tcp://x', but executor 'local' does not use it; remove scheduler"),
        ({"executor": "processes", "scheduler": "tcp://x"}, "executor 'processes' does not use it"),
        ({"executor": "dask", "workers": 2}, "workers is 2, but executor 'dask' does not use it"),
        ({"chunk": 10, "memory": 1e9}, "chunk is 10 and memory is 1000000000.0, .*; use one of the two"),
    ],
)
def test_an_invalid_setting_of_a_run_is_refused(settings, words, arm):
    with pytest.raises(rb.StudyError, match=words):
        study(arm).run(**settings)


def test_an_unknown_setting_of_a_run_is_refused_by_the_function_that_got_it(arm):
    with pytest.raises(rb.StudyError, match=r"Study.sobol_indices has no argument 'worker'; .*did you mean workers\?"):
        study(arm).sobol_indices("x", base_samples=8, worker=3)


def test_only_a_payload_has_a_point(arm):
    uniform = {"type": "uniform", "low": 1, "high": 2}
    vary = {"*.mass": rb.Dispersion(uniform, point=[1, 2, 3])}
    with pytest.raises(rb.StudyError, match=r"point is \[1.0, 2.0, 3.0\], but only a payload"):
        study(arm, vary=vary)


def test_a_measure_function_with_the_wrong_shape_is_named(arm):
    measures = [{"name": "odd", "quantity": "function", "function": lambda model, motion: np.zeros(3)}]
    with pytest.raises(rb.StudyError, match=r"measures\[0\], 'odd': the function returned an array of shape \(3,\)"):
        study(arm, measures=measures).run()
    with pytest.raises(
        rb.StudyError, match=r"measures\[0\].function is 'nowhere:f', which cannot be imported: No module"
    ):
        study(arm, measures=[{"name": "odd", "quantity": "function", "function": "nowhere:f"}])
