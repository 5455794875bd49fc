"""Motions as tables of other packages and as plots: complete, with names and units."""

import numpy as np
import pandas
import pytest

import rbchain as rb

TIMES = 6


@pytest.fixture(scope="module")
def floating():
    """A batch of motions of a body that floats and carries a hinge and a ball; masses differ."""
    builder = rb.ModelBuilder(name="buoy")
    builder.add_body("hull", joint=rb.Free(), inertia=rb.Inertia.sphere(0.5, mass=2.0))
    builder.add_body("mast", parent="hull", joint=rb.Prismatic(), inertia=rb.Inertia.rod(1.0, mass=0.5, cg=(0, 0, 0.5)))
    builder.add_body("lamp", parent="mast", joint=rb.Spherical(), inertia=rb.Inertia.sphere(0.1, mass=0.1))
    model = builder.build().vary(mass=np.random.default_rng(0).uniform(1, 2, (25, 3)))
    q, qd = model.random_state(np.random.default_rng(1), 25)
    return model.simulate(q, qd, 0.2, save_at=TIMES)


def test_every_coordinate_has_a_name_and_a_unit(floating):
    model = floating.model
    assert model.position_labels[:2] == ("hull.x", "hull.y")
    assert model.position_labels[7:] == ("mast", "lamp.qx", "lamp.qy", "lamp.qz", "lamp.qw")
    assert model.position_units == (*["m"] * 3, *["1"] * 4, "m", *["1"] * 4)
    assert model.velocity_units == (*["m/s"] * 3, *["rad/s"] * 3, "m/s", *["rad/s"] * 3)
    assert model.coordinate_pairs == ((0, 0), (1, 1), (2, 2), (7, 6))


def test_a_dataset_contains_the_whole_motion(floating):
    found = floating.to_xarray()
    np.testing.assert_array_equal(found.q.sel(position="mast"), floating.q[..., 7])
    np.testing.assert_array_equal(found.qd.transpose("sample", "time", "velocity"), floating.qd)
    np.testing.assert_array_equal(found.time, floating.t)
    np.testing.assert_array_equal(found.steps, floating.steps)
    assert found.attrs["model"] == "buoy"


def test_a_table_has_a_row_for_each_sample_and_time(floating, tmp_path):
    found = floating.to_dataframe()
    assert found.shape == (25 * TIMES, floating.model.nq + 2 * floating.model.nv)
    assert found.attrs["units"]["hull.x"] == "m" and found.attrs["units"]["tau hull.wx"] == "N m"
    np.testing.assert_array_equal(found.loc[3]["mast"], floating.q[3, :, 7])
    np.testing.assert_array_equal(found.loc[(7, floating.t[2])]["lamp.wy"], floating.qd[7, 2, 8])
    floating.to_parquet(tmp_path / "motion.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "motion.parquet"), found)


@pytest.mark.plain_python
def test_tables_contain_torques_contact_forces_and_events(tmp_path):
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=2.0))
    flat = {"point": (0, 0, 0), "radius": 0.0, "plane_normal": (0, 0, 1)}
    motion = builder.build().simulate(
        [[0.0], [1.0]],
        duration=0.5,
        method="moreau",
        step=0.05,
        save_at=6,
        drives=[rb.PrescribedForce("ball", rb.Signal.polynomial([1.0, 2.0]))],
        forces=[rb.SphereContact("ball", plane_point=(0, 0, z), **flat) for z in (0.0, -5.0)],
        events=[rb.Event("ball", value=0.5, max_records=2), rb.Event("ball", value=0.8)],
    )
    rows, found = motion.to_dataframe(), motion.to_xarray()
    contacts = ["SphereContact on 'ball' (0)", "SphereContact on 'ball' (1)"]
    names = [f"{contact} {axis}" for contact in contacts for axis in "xyz"]
    assert list(rows.columns) == ["ball", "d ball", "tau ball", *names, "event 0", "event 1"]
    assert [*rows.attrs["units"].values()] == ["m", "m/s", "N", *["N"] * 6, "1", "1"]
    np.testing.assert_allclose(rows["tau ball"].to_numpy().reshape(2, 6), np.tile(1.0 + 2.0 * motion.t, (2, 1)))
    np.testing.assert_array_equal(rows[f"{contacts[0]} z"].to_numpy().reshape(2, 6), motion.contact_forces[..., 0, 2])
    np.testing.assert_array_equal(
        found.contact_forces.sel(contact=contacts[0], axis="z"), motion.contact_forces[..., 0, 2]
    )
    assert found.contact_forces.max() > 10.0 and found.force_units.values.tolist() == ["N"]
    assert found.event_count.values.tolist() == [[0, 0], [1, 1]]
    times = found.event_time.values
    assert times.shape == (2, 2, 16) and np.isfinite(times).sum() == 2
    for i in range(2):
        expected = motion.t >= times[1, i, 0]
        np.testing.assert_array_equal(rows.loc[1][f"event {i}"], expected)
        assert not rows.loc[0][f"event {i}"].any()
    rows.to_parquet(tmp_path / "motion.parquet")
    assert pandas.read_parquet(tmp_path / "motion.parquet").attrs == rows.attrs
    alone = rb.Trajectory(motion.t, motion.q, motion.qd, *(motion.status,) * 4, model=motion.model)
    assert list(alone.to_dataframe().columns) == ["ball", "d ball"] and "tau" not in alone.to_xarray()


def test_a_single_motion_is_a_table_by_time(floating):
    alone = floating[4]
    np.testing.assert_array_equal(alone.to_dataframe()["mast"], floating.q[4, :, 7])
    np.testing.assert_array_equal(alone.to_dataframe().index, floating.t)
    np.testing.assert_array_equal(alone.model.mass, floating.model.mass[4])
    assert alone.to_xarray().q.dims == ("time", "position")


def test_states_are_plotted_under_their_names(floating):
    figure = floating.plot()
    labels = {axes.get_ylabel() for axes in figure.axes if axes.get_visible()}
    assert {"mast\n(m)", "lamp.qx", "mast rate\n(m/s)", "lamp.wz\n(rad/s)"} <= labels
    # the median of many samples, and the line of a single one
    median = figure.axes[14].get_lines()[0]
    np.testing.assert_array_equal(median.get_ydata(), np.median(floating.q[:, :, 7], axis=0))
    alone = floating[2].plot().axes[14].get_lines()
    assert len(alone) == 1
    np.testing.assert_array_equal(alone[0].get_ydata(), floating.q[2, :, 7])


@pytest.mark.parametrize("what", ["states", "phase", "energy"])
def test_samples_that_are_drawn_one_by_one_differ_and_have_a_legend(floating, what):
    figure = floating[[3, 5, 8]].plot(what)
    lines = [line for line in figure.axes[0].get_lines() if line.get_linestyle() != "None"]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 3
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2"]
    assert not floating[3].plot(what).legends


def test_the_steps_of_one_sample_are_numbers(floating):
    texts = [axes.texts[0].get_text() for axes in floating[3].plot("steps").axes]
    assert texts[0] == f"accepted steps\n{floating.steps[3]}"


def test_the_plotted_energy_is_that_of_the_motion(floating):
    axes = next(axes for axes in floating[0].plot("energy").axes if axes.get_ylabel() == "total energy (J)")
    kinetic, potential = floating.model[..., None].energy(floating.q, floating.qd)
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata(), (kinetic + potential)[0], rtol=1e-13)


@pytest.mark.parametrize("what", ["states", "energy", "phase", "steps"])
@pytest.mark.parametrize("chains", ["many", "one"])
def test_every_picture_can_be_saved(floating, tmp_path, what, chains):
    motion = floating if chains == "many" else floating[0]
    motion.plot(what).savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


def test_an_unknown_plot_is_refused(floating):
    with pytest.raises(ValueError, match="what is 'speed'; expected one of 'states', 'energy', 'phase', 'steps'"):
        floating.plot("speed")


@pytest.fixture(scope="module")
def long_chain():
    """A motion of 200 joints, at rest: only what is drawn matters."""
    model, t = rb.Model.serial_chain(200), np.linspace(0.0, 1.0, 3)
    counts = (np.zeros((), int) for _ in range(4))
    states = np.linspace(0.0, 1.0, 600).reshape(3, 200)
    return rb.Trajectory(t, states, -states, *counts, model=model)


@pytest.mark.parametrize(("what", "most"), [("states", 20), ("phase", 12)])
def test_a_plot_of_many_joints_shows_evenly_spaced_ones_and_says_so(long_chain, what, most):
    figure = long_chain.plot(what)
    names = [axes.get_ylabel() if what == "states" else axes.get_xlabel() for axes in figure.axes]
    joints = [name.split()[0] for name in names if "rate" not in name]
    assert len(joints) == most
    assert (joints[0], joints[-1]) == ("link1", "link200")
    gaps = np.diff([int(joint.removeprefix("link")) for joint in joints])
    assert np.ptp(gaps) <= 1
    assert figure.get_size_inches().max() < 40.0
    note = figure.get_suptitle()
    assert f"{most} of 200 joints" in note
    assert f"motion.plot('{what}', joints=[...])" in note


def test_joints_of_a_plot_are_selected_by_name(long_chain, floating):
    figure = long_chain.plot(joints=["link7", "link3"])
    assert [axes.get_ylabel() for axes in figure.axes[::2]] == ["link7\n(rad)", "link3\n(rad)"]
    np.testing.assert_array_equal(figure.axes[0].get_lines()[0].get_ydata(), long_chain.q[:, 6])
    np.testing.assert_array_equal(figure.axes[3].get_lines()[0].get_ydata(), long_chain.qd[:, 2])
    assert figure.get_suptitle() == ""
    (axes,) = floating.plot("phase", joints=["mast"]).axes
    assert axes.get_xlabel() == "mast (m)"


def test_a_plot_of_all_joints_has_no_note(floating):
    assert floating.plot().get_suptitle() == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"joints": ["link7", "elbow"]},
            r"joints contains 'elbow'; expected names .*: 'link1', 'link2'",
        ),
        ({"joints": ["lnk7"]}, r"joints contains 'lnk7'; .*; did you mean link7\?"),
        ({"joints": "link7"}, "joints is 'link7'; expected a list of names of moving joints"),
        ({"joints": []}, r"joints is \[\]; expected a list of names of moving joints"),
        ({"what": "steps", "joints": ["link7"]}, "'steps' is not plotted by joint. Remove joints"),
    ],
)
def test_a_selection_that_cannot_be_drawn_is_refused(long_chain, settings, message):
    with pytest.raises(rb.ArgumentError, match=message):
        long_chain.plot(**settings)
