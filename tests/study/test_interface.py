"""The arguments of `Study`, the paths of drives, forces and contacts, and the results in a folder."""

import numpy as np
import pytest
from scipy import stats

import rbchain as rb
from rbchain.study import Correlation, Factorial, Table

SETTINGS = {"samples": 40, "simulate": rb.Simulation(0.05, method="rk4", step=0.01)}


@pytest.mark.plain_python
def test_first_arguments_may_be_given_by_position():
    assert rb.Normal(1, 0.05) == rb.Normal(mean=1, std=0.05)
    assert rb.TruncatedNormal(1, 0.1, 0.8, 1.2) == rb.TruncatedNormal(mean=1, std=0.1, low=0.8, high=1.2)
    assert rb.Triangular(0, 1, 3) == rb.Triangular(low=0, mode=1, high=3)
    assert rb.Weibull("2 mm", 1.5) == rb.Weibull(scale="2 mm", shape=1.5, low=0.0)
    assert rb.Gumbel(1, 0.5) == rb.Gumbel(mode=1.0, scale=0.5)
    assert rb.LogNormal(4, 0.3) == rb.LogNormal(median=4, sigma=0.3)
    assert rb.Discrete([1, 2]).values.tolist() == [1, 2]
    assert rb.Measure("v", "speed", frame="tool") == rb.Measure(name="v", quantity="speed", frame="tool")
    assert rb.Simulation(2.0).duration == 2.0
    assert Table("x.csv").file == "x.csv" and Factorial(2).levels == 2
    assert Correlation(["a", "b"], np.eye(2)).parameters == ("a", "b")
    assert rb.Dispersion(rb.Uniform(0, 1), how="add").distribution == rb.Uniform(0, 1)


@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rb.Normal(1, 2, 3),
            r"Normal was called with 3 values by position; expected mean, std\. Give the others by keyword: type",
        ),
        (lambda: rb.Normal(1, mean=2), r"Normal: mean is given twice"),
        (lambda: rb.Normal(1), r"std is missing"),
        (lambda: rb.Uniform(2, 1), r"low is 2.0 and high is 1.0"),
        (lambda: rb.Measure("x", "sped"), r"quantity is 'sped'; expected 'distance', .*; did you mean speed\?"),
        (lambda: rb.Simulation(1.0, method="radaw"), r"method is 'radaw'; .*; did you mean radau\?"),
        (lambda: rb.Measure("x", "speed", frame="a", point=(0, 0, 1)), r"does not use it; .* add a fixed frame there"),
        (lambda: rb.Measure("x", "distance", frame="a", target=(0, 0, 1)), r"'target' is now called 'point'"),
        (lambda: rb.Measure("x", "energy", over="time_above", limit=1.0), r"'limit' is now called 'threshold'"),
        (lambda: rb.Measure("x", "energy", reference=1.0), r"'reference' is now called 'step_to'"),
        (lambda: rb.Simulation(-1.0), r"duration is -1.0"),
        (lambda: rb.Normal(kind="normal", std=1), r"'kind' is now called 'type'"),
    ],
)
def test_wrong_arguments_raise_an_error_of_the_study(call, message):
    with pytest.raises(rb.StudyError, match=message):
        call()


@pytest.mark.plain_python
def test_a_misspelled_argument_of_a_study_is_refused():
    with pytest.raises(TypeError, match="simulat"):
        rb.Study(rb.Model.serial_chain(1), samples=1, simulat={"duration": 1.0})


@pytest.mark.plain_python
@pytest.mark.parametrize(
    "distribution", [rb.Uniform(0, 1), stats.uniform(0, 1), {"type": "uniform", "low": 0, "high": 1}]
)
def test_a_distribution_alone_is_a_dispersion(distribution):
    study = rb.Study(rb.Model.serial_chain(2), vary={"link[12].damping": distribution}, **SETTINGS)
    assert study.inputs.units == {"link1.damping": "N m s/rad", "link2.damping": "N m s/rad"}
    assert study.plan.drawn.values(np.array([[0.25, 0.5]])).tolist() == [[0.25, 0.5]]


@pytest.mark.plain_python
def test_paths_name_drives_and_forces_by_their_names_or_joints():
    model = rb.Model.serial_chain(2)
    study = rb.Study(
        model,
        drives=[rb.PID("link1", 0.1, kp=1.0), rb.PID("link2", 0.1, kp=2.0, name="wrist")],
        forces=[
            rb.SpringDamper(None, "link1", point_a=(0, 0, 1), point_b=(0, 0, 0), stiffness=1.0),
            rb.SpringDamper(None, "link1", point_a=(0, 0, 2), point_b=(0, 0, 0), stiffness=2.0, name="upper"),
        ],
        vary={
            "link1.kp": rb.Uniform(3, 4),
            "wrist.kp": rb.Uniform(5, 6),
            "world-link1.stiffness": rb.Uniform(7, 8),
            "upper.stiffness": rb.Uniform(9, 10),
        },
        **SETTINGS,
    )
    values = study.plan.draw(0, 3)
    samples = study.plan.samples(values, np.arange(3))
    found = [samples.drives[0].kp, samples.drives[1].kp, samples.forces[0].stiffness, samples.forces[1].stiffness]
    assert np.array_equal(found, values.T)
    with pytest.raises(rb.StudyError, match="'link2' has no 'kp'"):
        rb.Study(
            model, drives=[rb.PID("link2", 0.1, kp=2.0, name="wrist")], vary={"link2.kp": rb.Normal(1, 1)}, **SETTINGS
        )


@pytest.mark.plain_python
def test_a_path_with_two_meanings_needs_a_name():
    model = rb.Model.serial_chain(1).replace(friction=[0.1])
    floor = {"radius": 0.01, "plane_point": (0, -3, 0), "plane_normal": (0, 1, 0), "friction": 0.5}
    settings = {"samples": 4, "simulate": {"duration": 0.05, "method": "moreau", "step": 0.01}}
    vary = {"link1.friction": rb.Uniform(0.2, 0.4)}
    with pytest.raises(rb.StudyError, match=r"the path of 2 parameters, of .*SphereContact.*`name`"):
        rb.Study(model, forces=[rb.SphereContact("link1", point=(0, 0, 0), **floor)], vary=vary, **settings)
    forces = [rb.SphereContact("link1", point=(0, 0, 0), **floor, name="floor")]
    study = rb.Study(model, forces=forces, vary=vary | {"floor.friction": rb.Uniform(0.5, 0.6)}, **settings)
    assert study.effects == {"link1.friction": "friction of link1", "floor.friction": "drives and forces"}
    two = [rb.Wrench("link1", force=(1, 0, 0)), rb.Wrench("link1", force=(0, 1, 0))]
    with pytest.raises(rb.StudyError, match=r"'link1.force' is the path of 2 parameters, of Wrench;"):
        rb.Study(model, forces=two, vary={"link1.force": rb.Normal(0, 1)}, **settings)


@pytest.mark.plain_python
def test_results_in_a_folder_have_all_analyses_and_their_study(tmp_path):
    lines = [
        "model = { serial_chain = { n = 1 } }",
        "samples = 40",
        'simulate = { duration = 0.05, method = "rk4", step = 0.01 }',
        'vary = { "*.q" = { type = "normal", std = 0.1 } }',
        'measures = [{ name = "lowest", quantity = "position", joint = "link1", over = "min" }]',
    ]
    (tmp_path / "study.toml").write_text("\n".join(lines))
    run = rb.Study.read(tmp_path / "study.toml").run(tmp_path / "out")
    results = rb.load_results(tmp_path / "out")
    assert results.identical(run)
    assert results.rbchain.study.inputs.units == {"link1.q": "rad"}
    summary = results.rbchain.summary().sel(measure="lowest")
    assert summary["mean"].item() == pytest.approx(results.lowest.mean().item(), rel=1e-12)
    assert summary["std"].item() == pytest.approx(results.lowest.std(ddof=1).item(), rel=1e-12)
    assert summary["quantile"].sel(level=0.5).item() == pytest.approx(results.lowest.median().item(), abs=1e-3)
    gradient = results.rbchain.gradient("lowest")
    assert gradient.gradient.sel(parameter="link1.q").item() == pytest.approx(
        rb.Study.read(tmp_path / "study.toml").gradient("lowest").gradient.item(), rel=1e-12
    )
    assert results.rbchain.control_variates("lowest").factor > 1
    assert results.rbchain.morris("lowest", base_samples=4).parameter.values.tolist() == ["link1.q"]


@pytest.mark.plain_python
def test_former_names_name_the_new_ones():
    with pytest.raises(AttributeError, match=r"it is now rb\.Study\.read\(file\)\.run\(out\)"):
        _ = rb.run_study
    with pytest.raises(AttributeError, match=r"it is now rb\.load_results\(folder\)"):
        _ = rb.study.open_dataset
    with pytest.raises(AttributeError, match=r"it is now rb\.load_results\(folder\)"):
        _ = rb.open_dataset
    with pytest.raises(AttributeError, match=r"it is now rb\.load_results\(folder\)\.rbchain\.study"):
        _ = rb.Study.of_results
    with pytest.raises(AttributeError, match=r"no attribute 'of_nothing'$"):
        _ = rb.Study.of_nothing
    with pytest.raises(rb.ModelError, match=r"no field 'lower_limit'; .*; it is now stop_lower"):
        rb.Model.serial_chain(1).vary(lower_limit=0.0)
    study = rb.Study(rb.Model.serial_chain(1), **SETTINGS)
    with pytest.raises(AttributeError, match=r"it is now study\.sobol_indices\(\) or study\.morris\(\)"):
        _ = study.sensitivity
