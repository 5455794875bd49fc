"""Results of studies for other programs: complete, in the order of the description, with units and exact numbers."""

import numpy as np
import pandas
import pytest
from scipy.io import loadmat

import rbchain as rb

pytestmark = pytest.mark.plain_python

STUDY = rb.Study(
    rb.Model.serial_chain(2),
    samples=5,
    vary={
        "*.mass": rb.Normal("1 kg", "0.05 kg"),
        "link1.q": rb.Uniform(-0.3, 0.3),
        "link2.friction": rb.Normal(0.0, 1e-4),
    },
    simulate=rb.Simulation(0.05, method="rk4", step=0.01, save_at=3),
    measures=[
        rb.Measure("zeta of tip", "coordinate", frame="link2", axis="y", unit="mm"),
        rb.Measure("alpha", "kinetic_energy", over="max"),
    ],
    events=[rb.Event("link1", value=0.0), rb.Event("link2", value=-1e-3)],
    outputs={"motion": True},
)
COLUMNS = [
    *("status", "link1.mass (kg)", "link2.mass (kg)", "link1.q (rad)", "link2.friction (N m)"),
    *("q_final link1 (rad)", "q_final link2 (rad)", "qd_final link1 (rad/s)", "qd_final link2 (rad/s)"),
    *("event_count 0: link1", "event_count 1: link2", "event_time 0: link1 (s)", "event_time 1: link2 (s)"),
    *("zeta of tip (mm)", "alpha (J)", "end_time (s)"),
]


@pytest.fixture(scope="module", params=["memory", "folder"])
def results(request, tmp_path_factory):
    return STUDY.run(tmp_path_factory.mktemp("out") if request.param == "folder" else None, on_failure="ignore")


def test_a_table_contains_every_number_of_each_sample(results, tmp_path):
    """Negative friction makes some samples fail before they are simulated."""
    results.rbchain.to_csv(tmp_path / "results.csv")
    found = pandas.read_csv(tmp_path / "results.csv", index_col="sample")
    assert list(found.columns) == COLUMNS
    assert found["status"].tolist() == [rb.Status(status).name for status in results.status.values.tolist()]
    assert set(found["status"]) == {"DONE", "INVALID_PARAMETERS"}
    np.testing.assert_array_equal(found[COLUMNS[1:5]], results.parameters)
    np.testing.assert_array_equal(found["qd_final link2 (rad/s)"], results.qd_final.sel(velocity="link2"))
    np.testing.assert_array_equal(found["zeta of tip (mm)"], results["zeta of tip"])
    assert found["alpha (J)"].isna().tolist() == (found["status"] != "DONE").tolist()


def test_matlab_finds_every_number_with_names_and_units(results, tmp_path):
    results.rbchain.to_mat(tmp_path / "results.mat")
    found = loadmat(tmp_path / "results.mat", simplify_cells=True)
    assert found["measure_names"].tolist() == ["zeta of tip", "alpha"]
    assert found["measure_units"].tolist() == ["mm", "J"]
    np.testing.assert_array_equal(found["measures"], np.stack([results["zeta of tip"], results.alpha], -1))
    np.testing.assert_array_equal(found["parameters"], results.parameters)
    assert found["parameter_names"].tolist() == ["link1.mass", "link2.mass", "link1.q", "link2.friction"]
    assert found["parameter_units"].tolist() == ["kg", "kg", "rad", "N m"]
    np.testing.assert_array_equal(found["q"], results.q)
    np.testing.assert_array_equal(found["time"], results.time)
    np.testing.assert_array_equal(found["event_time"], results.event_time)
    assert found["status_names"].tolist() == [rb.Status(status).name for status in results.status.values.tolist()]


def test_results_without_measures_and_parameters_can_be_written(tmp_path):
    study = rb.Study(rb.Model.serial_chain(1), samples=2, simulate=rb.Simulation(0.02, method="rk4", step=0.01))
    results = study.run()
    results.rbchain.to_csv(tmp_path / "results.csv")
    results.rbchain.to_mat(tmp_path / "results.mat")
    assert len(pandas.read_csv(tmp_path / "results.csv")) == 2
    assert loadmat(tmp_path / "results.mat")["status"].shape == (2, 1)
