"""Motions that are saved and loaded: the same bits, and errors for damaged and foreign files."""

import dataclasses
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import rbchain as rb
from rbchain.io import motions
from rbchain.io.motions import CONTENTS, DIGEST

from .mechanisms import EXAMPLES, random_tree

pytestmark = pytest.mark.plain_python
FIXED = {"method": "rk4", "step": 0.01}


def assert_same(found, expected, place="motion"):
    """Compare two values, attribute by attribute and bit by bit. Zeros of models may have another sign."""
    if isinstance(expected, np.ndarray | np.generic):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), place
        if ".description." in place:
            np.testing.assert_array_equal(found, expected, place)
        else:
            assert found.tobytes() == expected.tobytes(), place
    elif isinstance(expected, rb.Model):
        assert_same(found.description, expected.description, f"{place}.description")
    elif dataclasses.is_dataclass(expected):
        assert type(found) is type(expected), place
        for field in dataclasses.fields(expected):
            if field.name not in ("_compute_tau_and_qdd", "_continuation"):
                attributes = (getattr(x, field.name) for x in (found, expected))
                assert_same(*attributes, f"{place}.{field.name}")
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected), place
        for i, pair in enumerate(zip(found, expected, strict=True)):
            assert_same(*pair, f"{place}[{i}]")
    elif isinstance(expected, dict):
        assert list(found) == list(expected), place
        for key, value in expected.items():
            assert_same(found[key], value, f"{place}[{key!r}]")
    else:
        assert found == expected, place


def saved_and_loaded(motion, folder):
    motion.save(folder / "motion.npz")
    loaded = rb.load_motion(folder / "motion.npz")
    assert_same(loaded, motion)
    assert [path.name for path in folder.iterdir()] == ["motion.npz"]
    return loaded


def start(model, batch=()):
    return np.zeros((*batch, model.nq)), np.zeros((*batch, model.nv))


@pytest.fixture(scope="module")
def driven():
    """Two arms with their own masses, gains, wrenches and springs, and an event."""
    model = rb.Model.serial_chain(3).vary(mass=[[0.1, 0.2, 0.3], [0.2, 0.1, 0.1]], gravity=[[0, -9.0, 0], [0, -8, 1]])
    rotated = rb.Pose((0.1, 0, 0), (0, 0, 0.1, 1))
    forces = [
        rb.Wrench("link2", force=(rb.Signal.sines([0.1, 0.2], [3.0, 4.0]), np.array([0.1, 0.2]), 0), point=[0.1, 0, 0]),
        rb.Wrench("link3", moment=(0, 0, rb.Signal.table([0, 0.1, 0.3], [0, 1, 0])), axes="body"),
        rb.SpringDamper(
            None,
            "link3",
            point_a=(0, 1, 0),
            point_b=(0.1, 0, 0),
            stiffness=np.array([1.0, 2.0]),
            rest_length=0.5,
            tension_only=True,
        ),
        rb.Bushing("link1", "link3", stiffness=np.eye(6), damping=0.1 * np.eye(6), pose_b=rotated),
    ]
    drives = [
        rb.PID("link1", rb.Signal.polynomial([0.0, 1.0]), kp=np.array([1.0, 2.0]), kd=0.1),
        rb.PrescribedPosition("link2", rb.Signal.sines(0.1, 5.0)),
    ]
    events = [rb.Event("link1", value=-0.01, stop=False), rb.Event("link3", value=10.0, stop=True)]
    settings = {"drives": drives, "forces": forces, "events": events, "save_at": 5}
    return model.simulate(*start(model, (2,)), 0.2, **FIXED, **settings)


def test_a_batch_with_drives_and_forces_has_the_same_bits_after_loading(driven, tmp_path):
    loaded = saved_and_loaded(driven, tmp_path)
    for name in ("tau", "qdd", "reactions", "elastic_energy"):
        assert_same(getattr(loaded, name), getattr(driven, name), name)
    assert loaded.model.batch_shape == (2,)
    assert_same(loaded.model.nominal, driven.model.nominal)
    assert_same(loaded[1], driven[1])
    assert repr(loaded) == repr(driven)
    loaded = pickle.loads(pickle.dumps(loaded))  # what is loaded can be pickled, and saved again
    saved_and_loaded(loaded, tmp_path)


def test_a_motion_of_one_sample_of_a_batch_is_saved(driven, tmp_path):
    loaded = saved_and_loaded(driven[1], tmp_path)
    assert loaded.model.mass.tolist() == [0.2, 0.1, 0.1]
    assert loaded.model.nominal.mass.tolist() == [0.1, 0.1, 0.1]
    assert_same(loaded.tau, driven.tau[1])


def test_contacts_and_their_records_are_saved(tmp_path):
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("block", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0), limits=rb.JointLimits(-1, 0.01))
    builder.add_body("ball", parent="block", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(1.0))
    forces = [
        rb.DryFriction("block", np.array([1.0, 5.0])),
        rb.HardStops("block", restitution=0.5),
        rb.SphereContact(
            "ball",
            point=(0, 0, 0),
            radius=0.1,
            plane_point=(0, 0, 0),
            plane_normal=(0, 0, 1),
            friction=0.2,
            restitution=0.3,
            max_records=3,
        ),
    ]
    q, qd = np.array([[0.0, 0.11]] * 2), np.array([[0.5, 0.0]] * 2)
    motion = builder.build().simulate(q, qd, 0.1, method="moreau", step=0.005, forces=forces, save_at=3)
    assert motion.impacts[1].count.all()
    loaded = saved_and_loaded(motion, tmp_path)
    assert loaded.impacts[0].force is loaded.forces[1]
    assert loaded.sticking[1].force is loaded.forces[2]
    with pytest.raises(rb.ArgumentError, match="qdd is not available with DryFriction"):
        loaded.qdd  # noqa: B018


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_floating_tree_in_either_precision_is_saved(tmp_path, dtype):
    model = random_tree(3, (-1, 0, 0, 2), ("free", "spherical", "revolute", "screw"))
    q, qd = (x.astype(dtype) for x in (model.neutral(), np.full(model.nv, 0.1)))
    loaded = saved_and_loaded(model.simulate(q, qd, 0.02, save_at=2, **FIXED), tmp_path)
    assert loaded.q.dtype == dtype
    assert loaded.status.shape == ()


def test_a_mechanism_with_every_part_is_saved(tmp_path):
    """Constraints, frames, water, visuals, limits and drives."""
    builder = rb.ModelBuilder(name="ä", fluid_density=1000.0)
    visual = rb.Visual("box", (0.1, 0.2, 1 / 3), color=(0.1, 0.2, 0.3))
    for name in ("left", "right"):
        body = {"inertia": rb.Inertia.rod(1.0, mass=1.0), "immersion": rb.Immersion.cylinder(1.0, 0.1)}
        builder.add_body(name, joint=rb.Revolute(), visuals=[visual], limits=rb.JointLimits(-1 / 3, 1), **body)
    builder.add_body("tool", parent="left", joint=rb.Fixed(), placement=rb.Pose((1 / 3, 0, 0)))
    builder.add_constraint(rb.CouplerConstraint("gear", "left", "right", ratio=-1 / 3))
    builder.add_drive(rb.PID("left", 0.1, kp=2.0))
    motion = builder.build().vary(strip_drag=[[1.0, 2.0]]).simulate(*np.zeros((2, 1, 2)), 0.02, save_at=2, **FIXED)
    loaded = saved_and_loaded(motion, tmp_path)
    assert loaded.model.drives[0].kp == 2.0


def test_a_model_with_an_impossible_inertia_is_loaded_without_another_warning(tmp_path):
    with pytest.warns(UserWarning, match="link3"):
        arm = rb.load(EXAMPLES / "puma560.urdf")
    motion = arm.simulate(*start(arm), 0.01, save_at=2, **FIXED)
    motion.save(tmp_path / "puma.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(rb.load_motion(tmp_path / "puma.npz"), motion)


def test_failed_samples_and_their_exceptions_are_saved(tmp_path):
    def breaks(t, q, qd, numbers, out):
        if t > numbers[0]:
            raise ValueError("the spring is broken")

    model = rb.Model.serial_chain(1)
    drives = [rb.UserForces(breaks, parameters=np.array([[0.03], [9.0]]))]
    motion = model.simulate(*start(model, (2,)), 0.05, drives=drives, save_at=2, **FIXED, on_failure="ignore")
    assert motion.status[0] == rb.Status.USER_FUNCTION_FAILED
    loaded = saved_and_loaded(motion, tmp_path)
    assert "the spring is broken" in loaded.message
    assert loaded.message == motion.message
    assert_same(loaded.tau, motion.tau)


def test_a_motion_with_dense_output_is_saved_without_it(tmp_path):
    model = rb.Model.serial_chain(2)
    motion = model.simulate(np.zeros((2, 2)), np.ones((2, 2)), 0.1, save_at=3, dense_output=100)
    motion.save(tmp_path / "dense.npz")
    again = rb.load_motion(tmp_path / "dense.npz")
    assert motion.dense_output is not None and again.dense_output is None
    np.testing.assert_array_equal(again.q, motion.q)


def test_sensitivities_are_saved(tmp_path):
    model = rb.Model.serial_chain(2)
    motion = model.simulate(*start(model, (2,)), 0.02, save_at=2, **FIXED, derivatives=("q", "mass"))
    loaded = saved_and_loaded(motion, tmp_path)
    assert loaded.derivatives["mass"].shape == (2, 2, 4, 2)


def test_a_motion_without_its_drives_stays_without_them(driven, tmp_path):
    unknown = dataclasses.replace(driven, _compute_tau_and_qdd=None)
    loaded = saved_and_loaded(unknown, tmp_path)
    with pytest.raises(rb.ArgumentError, match="does not record its drives"):
        loaded.tau  # noqa: B018


def test_numpy_reads_the_arrays(driven, tmp_path):
    driven.save(tmp_path / "motion.npz")
    with np.load(tmp_path / "motion.npz") as arrays:
        np.testing.assert_array_equal(arrays["q"], driven.q)
        assert json.loads(arrays[CONTENTS].tobytes())["format"] == "rbchain motion 1"


# --- what is refused --------------------------------------------------------------------------------------------------


def test_what_a_file_cannot_hold_is_refused_before_writing(driven, tmp_path):
    class Push(rb.Wrench):
        pass

    file = tmp_path / "motion.npz"
    with pytest.raises(rb.ArgumentError, match=r"forces.0 is .*Push.*; expected numbers, text, or an object"):
        dataclasses.replace(driven, forces=(Push("link1"),)).save(file)
    with pytest.raises(rb.ArgumentError, match="has no model; only trajectories returned by simulate"):
        rb.Trajectory(*[np.zeros(1)] * 7).save(file)
    with pytest.raises(rb.FileFormatError, match=r"motion.txt: the name ends in '.txt'; expected '.npz'"):
        driven.save(tmp_path / "motion.txt")
    model_of_drive = rb.PID("link1", 0.0, kp=1.0, controller_model=rb.Model.serial_chain(3))
    description = dataclasses.replace(driven.model.nominal.description, drives=(model_of_drive,))
    with pytest.raises(rb.ArgumentError, match="its controller_model is a Model, which a table cannot contain"):
        dataclasses.replace(driven, model=rb.Model(description)).save(file)
    assert not list(tmp_path.iterdir())


def test_former_names_of_the_fields_of_forces_are_read(driven, tmp_path):
    def rename(arrays, contents):
        spring = next(force["fields"] for force in contents["fields"]["forces"] if force["kind"] == "SpringDamper")
        for side in "ab":
            spring[f"body_{side}"] = spring.pop(f"frame_{side}")

    file = tmp_path / "motion.npz"
    driven.save(file)
    with np.load(file) as arrays:
        edited(file, dict(arrays), rename)
    assert_same(rb.load_motion(file), driven)


@pytest.mark.slow
def test_damaged_files_are_refused(driven, tmp_path):
    """A flipped byte is found, or it is in a part of the archive that no reader uses."""
    file = tmp_path / "motion.npz"
    driven.save(file)
    whole = file.read_bytes()
    rng, refused = np.random.default_rng(0), 0
    for place in rng.integers(len(whole), size=150):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        try:
            loaded = rb.load_motion(file)
        except rb.FileFormatError as error:
            assert str(file) in str(error)
            refused += 1
        else:
            assert_same(loaded, driven)
    assert refused > 100
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(rb.FileFormatError, match="the file is damaged or is not a NumPy archive"):
            rb.load_motion(file)


def edited(file, entries, change):
    """Write a file whose arrays and document `change` has edited, with a checksum that is right."""
    arrays = {name: x for name, x in entries.items() if name != DIGEST}
    contents = json.loads(arrays[CONTENTS].tobytes())
    change(arrays, contents)
    arrays[CONTENTS] = np.frombuffer(json.dumps(contents).encode(), np.uint8)
    np.savez(file, **arrays, **{DIGEST: np.frombuffer(motions.digest_of(arrays), np.uint8)})


def with_array(name, value):
    return lambda arrays, contents: arrays.update({name: value(arrays[name])})


def with_field(name, value):
    return lambda arrays, contents: contents["fields"].update({name: value(contents["fields"][name])})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_array("q", lambda q: q[:, :2]), r"q has shape \(2, 2, 3\); expected \(2, 5, 3\)"),
        (with_array("qd", lambda qd: qd.astype(int)), "qd has type int64; expected an array of real numbers"),
        (with_array("t", lambda t: t + np.nan), "t is .*nan.*; expected finite numbers"),
        (with_array("t", lambda t: t + 1.0), "signals|defined from"),
        (with_array("status", lambda x: x + 77), "status contains 77; expected values of rbchain.Status"),
        (with_array("status", lambda x: x[0]), r"batch shape \(2,\); expected \(\) or the shape of status, \(\)"),
        (with_array("steps", lambda x: x[:1]), r"steps has shape \(1,\); expected \(2,\)"),
        (with_array("is_stiff", lambda x: x + 0.5), "is_stiff has type float64; expected an array of truth values"),
        (with_array("end_q", lambda x: x[:, :1]), r"end_q has shape \(2, 1\); expected \(2, 3\)"),
        (with_array("contact_forces", lambda x: np.zeros((2, 5, 1, 3))), r"contact_forces has shape .*5, 0, 3\)"),
        (with_array("tau_and_qdd", lambda x: x[..., :3]), r"tau_and_qdd has shape .*; expected \(2, 5, 6\)"),
        (with_array("events.0.t", lambda x: x[0]), r"events\[0\].t has shape \(16,\); expected \(2, 1\)"),
        (with_array("events.1.q", lambda x: x[..., :2]), r"events\[1\].q has shape .*; expected \(2, 16, 3\)"),
        (with_array("forces.2.stiffness", lambda x: -x), "SpringDamper world-link3: stiffness is .*at least 0"),
        (with_field("contact_tolerance", lambda x: "much"), "contact_tolerance is 'much'; expected a number"),
        (with_field("sticking", lambda x: [{"force": 0}]), r"sticking\[0\] is Wrench.*expected StickingRecord"),
        (with_field("forces", lambda x: [*x, 3]), "forces contains 3; expected forces"),
        (with_field("derivatives", lambda x: {"table": {"q": {"array": "q"}}}), r"derivatives\['q'\] has shape"),
        (
            lambda arrays, contents: contents.update(exceptions=[[[5], "it broke"]]),
            r"\(5,\): 'it broke'; expected text",
        ),
    ],
)
def test_files_that_were_edited_are_refused_although_their_checksum_is_right(driven, tmp_path, change, message):
    file = tmp_path / "motion.npz"
    driven.save(file)
    with np.load(file) as arrays:
        entries = dict(arrays)
    edited(file, entries, lambda arrays, contents: None)
    assert_same(rb.load_motion(file), driven)
    edited(file, entries, change)
    with pytest.raises(rb.FileFormatError, match=f"(?s)the contents do not describe a trajectory: .*(?:{message})"):
        rb.load_motion(file)


def test_foreign_files_are_refused(driven, tmp_path):
    file = tmp_path / "motion.npz"
    driven.save(file)
    with np.load(file) as arrays:
        entries = dict(arrays)

    def refused(match, **changes):
        np.savez(file, **{name: x for name, x in (entries | changes).items() if x is not None})
        with pytest.raises(rb.FileFormatError, match=match):
            rb.load_motion(file)

    refused("no entry 'sha256'.*expected a file that Trajectory.save has written", sha256=None)
    refused("the checksum does not match the contents", q=entries["q"] + 1e-16)
    refused("the checksum does not match the contents", extra=np.zeros(1))
    refused("the checksum does not match the contents", qd=None)
    refused("does not state its format", contents=np.zeros(3, np.uint8))
    other = entries[CONTENTS].tobytes().replace(b"rbchain motion 1", b"rbchain motion 9")
    refused("the format is 'rbchain motion 9'; expected 'rbchain motion 1'", contents=np.frombuffer(other, np.uint8))
    np.savez(file, t=np.zeros(2), q=np.zeros((2, 1)))
    with pytest.raises(rb.FileFormatError, match=r"no entry 'contents', but \['t', 'q'\]"):
        rb.load_motion(file)
    np.savez(file, contents=np.array([{}], object), **{DIGEST: np.zeros(1)})
    with pytest.raises(rb.FileFormatError, match="allow_pickle=False"):
        rb.load_motion(file)
    np.save(file.with_suffix(".npy"), np.zeros(3))
    Path(file.with_suffix(".npy")).rename(file)
    with pytest.raises(rb.FileFormatError, match="no entry 'contents'"):
        rb.load_motion(file)
    with pytest.raises(FileNotFoundError):
        rb.load_motion(tmp_path / "nowhere.npz")
    with pytest.raises(rb.FileFormatError, match=r"the name ends in '\.toml'"):
        rb.load_motion(tmp_path / "arm.toml")
