"""Descriptions that are wrong, and places that cannot be written: refused in words that name the key."""

import errno
import sys

import numpy as np
import pytest
from scipy import stats

import rbchain as rb
from rbchain.study.study import run_study

GOOD = """
model = { serial_chain = { n = 2 } }
samples = 10

[[vary]]
parameter = "mass"
distribution = { kind = "normal", mean = "100 g", std = 0.01 }

[simulate]
duration = 0.1
method = "rk4"
step = 0.01

[[measures]]
name = "height"
of = "coordinate"
frame = "link2"
axis = "y"
"""

WRONG = {
    "no TOML": ("samples = 10", "samples = = 10", r"study.toml: the file is not valid TOML: Invalid value \(at line 3"),
    "an unknown key": ("samples = 10", "samples = 10\nsample = 3", r"sample: Extra inputs are not permitted"),
    "an unknown key within": ('axis = "y"', 'axes = "y"', r"measures\[0\].axes: Extra inputs are not permitted"),
    "a missing key": ("samples = 10", "", "samples: Field required"),
    "no samples": ("samples = 10", "samples = 0", r"samples: .*greater than or equal to 1 \(found 0\)"),
    "a wrong unit": ('"100 g"', '"100 mm"', r"vary\[0\].distribution: mass is '100 mm'; expected a mass such as kg"),
    "a unit where there is none": (
        'distribution = { kind = "normal", mean = "100 g", std = 0.01 }',
        'how = "multiply"\ndistribution = { kind = "normal", mean = "100 %", std = 0.01 }',
        r"vary\[0\].distribution: '100 %' has a unit; expected a plain number",
    ),
    "a negative deviation": (
        "std = 0.01",
        "std = -0.01",
        r"vary\[0\].distribution.std: expected a number above 0, found -0.01",
    ),
    "an infinite deviation": ("std = 0.01", "std = inf", r"vary\[0\].distribution.std"),
    "an unknown distribution": ('kind = "normal"', 'kind = "gaussian"', r"vary\[0\].distribution: .*'gaussian'"),
    "an unknown parameter": (
        'parameter = "mass"',
        'parameter = "weight"',
        r"vary\[0\]: parameter is 'weight'; expected one of mass",
    ),
    "an unknown body": (
        'parameter = "mass"',
        'parameter = "mass"\nof = "link7"',
        r"vary\[0\].of: 'link7' names no body .*\['link1', 'link2'\]",
    ),
    "an unknown frame": ('frame = "link2"', 'frame = "hand"', r"measures\[0\]: frame 'hand': there is none"),
    "a way that is none": (
        'parameter = "mass"',
        'parameter = "inertia"\nhow = "multiply"',
        r"vary\[0\]: how is 'multiply'; inertia knows add",
    ),
    "a missing file": (
        "{ serial_chain = { n = 2 } }",
        '"robot.urdf"',
        "there is no file 'robot.urdf' beside the study",
    ),
    "a missing table": (
        "samples = 10",
        'samples = 10\ndesign = { kind = "table", file = "x.csv" }',
        "there is no file 'x.csv'",
    ),
    "a step that is missing": ("step = 0.01", "", "simulate.step: method 'rk4' needs one"),
    "a taken name": ('name = "height"', 'name = "status"', "measures: 'status' is the name of another output"),
    "a factorial of another size": (
        "samples = 10",
        'samples = 10\ndesign = "factorial"',
        r"design: samples is 10; expected 3\^2 = 9",
    ),
    "an unknown design": ("samples = 10", 'samples = 10\ndesign = "magic"', "design: .*'magic'"),
    "a stop without measure": (
        "samples = 10",
        'samples = 10\nstop_when = { measure = "x", half_width = 1 }',
        "stop_when: there is no measure 'x'",
    ),
    "a state of the wrong size": (
        "duration = 0.1",
        "duration = 0.1\nq = [1, 2, 3]",
        r"simulate.q is \[1, 2, 3\]; expected 2 numbers",
    ),
    "a negative duration": ("duration = 0.1", "duration = -1", r"simulate.duration: .*greater than 0 \(found -1\)"),
    "a drive of no kind": (
        "samples = 10",
        'samples = 10\ndrives = [{ kind = "Motor" }]',
        r"drives\[0\]: kind is 'Motor'; expected one of",
    ),
    "a drive of no joint": (
        "samples = 10",
        'samples = 10\ndrives = [{ kind = "PID", joint = "knee", reference = 0, kp = 1 }]',
        r"drives\[0\]: .*'knee'",
    ),
    "an unknown word of a drive": (
        "samples = 10",
        'samples = 10\ndrives = [{ kind = "PID", joint = "link1", reference = 0, kq = 1 }]',
        r"drives\[0\]: PID has no kq; it has",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_description_is_refused_by_its_key(what, tmp_path):
    old, new, words = WRONG[what]
    assert old in GOOD
    path = tmp_path / "study.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(rb.StudyError, match=words):
        run_study(path, tmp_path / "out")
    assert not (tmp_path / "out" / "results.zarr").exists()


def test_the_good_description_is_good(tmp_path):
    (tmp_path / "study.toml").write_text(GOOD)
    results = run_study(tmp_path / "study.toml", tmp_path / "out")
    assert np.isfinite(results.height).all()
    assert 0.05 < results.parameters.values.mean() < 0.15


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (
            [[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]],
            "not positive definite: its smallest eigenvalue is -0.2",
        ),
        ([[1.0, 0.5, 0.0], [0.4, 1.0, 0.0], [0.0, 0.0, 1.0]], "not symmetric"),
        ([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "diagonal is"),
        ([[1.0, 0.0], [0.0, 1.0]], r"shape \(2, 2\); expected \(3, 3\)"),
    ],
)
def test_a_matrix_that_is_no_correlation_is_refused(matrix, words, arm):
    keys = {"model": arm, "samples": 5, "simulate": {"duration": 1.0}}
    vary = [{"parameter": "cg", "of": "link1", "how": "add", "distribution": stats.norm(0, 0.01)}]
    with pytest.raises(rb.StudyError, match=words):
        rb.Study(**keys, vary=vary, correlate=[{"of": ["cg[link1].x", "cg[link1].y", "cg[link1].z"], "matrix": matrix}])


def test_negative_variances_are_refused(arm):
    covariance = np.diag([1.0, -1.0, 1.0])
    with pytest.raises(rb.StudyError, match=r"vary\[0\].distribution: .*expected variances above 0"):
        rb.Study(
            model=arm,
            samples=5,
            simulate={"duration": 1.0},
            vary=[
                {
                    "parameter": "cg",
                    "distribution": {"kind": "multivariate_normal", "mean": [0, 0, 0], "covariance": covariance},
                }
            ],
        )


def study(arm, **keys):
    simulate = {"duration": 0.1, "method": "rk4", "step": 0.01}
    vary = [{"parameter": "mass", "how": "multiply", "distribution": {"kind": "uniform", "low": 0.9, "high": 1.1}}]
    return rb.Study(**{"model": arm, "samples": 60, "vary": vary, "simulate": simulate} | keys)


def test_a_full_disk_is_said_and_the_study_goes_on_once_there_is_room(arm, tmp_path, monkeypatch):
    import zarr

    write, calls = zarr.Array.__setitem__, []

    def full_after_some(array, *arguments):
        calls.append(array)
        if len(calls) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(array, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(zarr.Array, "__setitem__", full_after_some)
        with pytest.raises(rb.StudyError, match=r"No space left on device.*once they can, run the same command again"):
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
    """What a function does is part of the study: its code, what it closes over, what stands behind its name."""
    for place, before, after in (
        ("names", lambda m, t: t.q[..., 0], lambda m, t: t.qd[..., 0]),
        ("closure", scaled(1.0), scaled(2.0)),
    ):
        of = [[{"name": "odd", "of": "function", "function": function}] for function in (before, after)]
        study(arm, measures=of[0]).run(tmp_path / place)
        study(arm, measures=of[0]).run(tmp_path / place)
        with pytest.raises(rb.StudyError, match=r"measures\[0\].function.sha256 was"):
            study(arm, measures=of[1]).run(tmp_path / place)
    by_name = [{"name": "odd", "of": "function", "function": f"{__name__}:of_position"}]
    study(arm, measures=by_name).run(tmp_path / "name")
    monkeypatch.setattr(sys.modules[__name__], "of_position", of_velocity)
    with pytest.raises(rb.StudyError, match=r"measures\[0\].function"):
        study(arm, measures=by_name).run(tmp_path / "name")


def test_a_function_that_cannot_travel_is_refused_where_it_must(arm):
    measures = [{"name": "odd", "of": "function", "function": lambda model, motion: motion.q[..., 0]}]
    with pytest.raises(rb.StudyError, match="cannot go to another process"):
        study(arm, measures=measures).run(executor="processes", workers=1)


def test_two_runs_do_not_work_on_one_study(arm, tmp_path):
    def begin_another(count, statistics):
        with pytest.raises(rb.StudyError, match="another run is at work"):
            study(arm).run(tmp_path)

    study(arm).run(tmp_path, progress=begin_another)


def test_measurements_of_a_screw_are_angles():
    builder = rb.ModelBuilder()
    builder.add_body("nut", joint=rb.Screw((0, 0, 1), 0.01), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    keys = {"model": builder.build(), "samples": 2, "simulate": {"duration": 0.1}}
    for unit, good in (("deg", True), ("mm", False)):
        vary = [{"parameter": "q", "distribution": {"kind": "normal", "std": f"1 {unit}"}}]
        if good:
            assert rb.Study(**keys, vary=vary).plan.units == ("rad",)
        else:
            with pytest.raises(rb.StudyError, match=r"vary\[0\].distribution: .*expected an angle"):
                rb.Study(**keys, vary=vary)


def test_a_folder_that_cannot_be_is_refused(arm, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(rb.StudyError, match="results cannot be written there"):
        study(arm).run(tmp_path / "file" / "out")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"executor": "cloud"}, "executor is 'cloud'; expected one of local, processes, dask"),
        ({"executor": "dask"}, "needs the address of a scheduler"),
        ({"executor": "processes", "workers": 0}, "workers is 0"),
        ({"chunk": 0}, "chunk is 0"),
        ({"chunk": True}, "chunk is True"),
        ({"memory": np.nan}, "memory is nan"),
    ],
)
def test_a_wrong_setting_of_a_run_is_refused(settings, words, arm):
    with pytest.raises(rb.StudyError, match=words):
        study(arm).run(**settings)


def test_a_function_that_gives_the_wrong_shape_is_named(arm):
    measures = [{"name": "odd", "of": "function", "function": lambda model, motion: np.zeros(3)}]
    with pytest.raises(rb.StudyError, match=r"measures\[0\], 'odd': its function gives shape \(3,\)"):
        study(arm, measures=measures).run()
    with pytest.raises(rb.StudyError, match=r"measures\[0\].function is 'nowhere:f'; expected 'module:name'"):
        study(arm, measures=[{"name": "odd", "of": "function", "function": "nowhere:f"}])
