"""Batches: shapes, precisions, parameters per sample, and bits that depend only on the sample."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import rbchain as rb
from rbchain import Model
from rbchain.core.lanes.lane_memory import LARGE
from rbchain.model.kernel_model import KernelModel
from rbchain.simulate.trajectory import Trajectory

from .closed_chains import four_bar
from .conftest import mechanism
from .mechanisms import random_inertia, random_rotation, random_tree
from .quantities import ARGUMENTS, computed, random_state, single

EPS = np.finfo(float).eps


def states(model, batch, seed=0):
    return np.random.default_rng(seed).normal(size=(3, *batch, model.nv))


@pytest.fixture
def threads():
    """Set the number of threads, and set it back."""
    before = rb.get_num_threads()
    yield rb.set_num_threads
    rb.set_num_threads(before)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_bit_depends_on_batch_size_index_or_threads(dtype, threads):
    model = mechanism("mixed_tree")
    q, qd, tau = states(model, (3000,)).astype(dtype)
    wrenches = np.random.default_rng(2).normal(size=(3000, model.n_bodies, 6)).astype(dtype)
    threads(1)
    whole = model.forward_dynamics(q, qd, tau, wrenches)
    for count in (2, 3, 8):
        threads(count)
        assert np.array_equal(whole, model.forward_dynamics(q, qd, tau, wrenches))
    order = np.random.default_rng(3).permutation(3000)
    assert np.array_equal(whole[order], model.forward_dynamics(q[order], qd[order], tau[order], wrenches[order]))
    for size in (1, 2, 7, 8, 9, 33):
        part = slice(100, 100 + size)
        assert np.array_equal(whole[part], model.forward_dynamics(q[part], qd[part], tau[part], wrenches[part]))


@pytest.mark.parametrize("spoiled", [0, 5, 16])
def test_a_failed_sample_does_not_change_a_bit_of_others(spoiled):
    model = mechanism("arm7")
    q, qd, tau = states(model, (17,))
    whole = model.forward_dynamics(q, qd, tau)
    for bad in (np.nan, np.inf, 1e200):
        spoilt = q.copy()
        spoilt[spoiled, 2] = bad
        found = model.forward_dynamics(spoilt, qd, tau)
        assert np.array_equal(np.delete(found, spoiled, 0), np.delete(whole, spoiled, 0))
        if not np.isfinite(bad):
            assert np.isnan(found[spoiled]).all()


@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (2, 1, 4), (0,), (3, 0)])
def test_results_have_the_shape_of_the_batch(batch):
    model = mechanism("breadth_first_tree")
    q, qd, tau = states(model, batch)
    n = model.nv
    assert model.forward_dynamics(q, qd, tau).shape == (*batch, n)
    assert model.inverse_dynamics(q, qd, tau).shape == (*batch, n)
    assert model.force_balance_residual(q, qd, tau).shape == (*batch, n, 6)
    assert [energy.shape for energy in model.energy(q, qd)] == [batch, batch]
    poses = model.body_poses(q)
    assert poses.translation.shape == (*batch, n, 3)
    assert poses.rotation.shape == (*batch, n, 3, 3)


def test_arguments_of_any_layout_and_number_type_broadcast():
    model = mechanism("arm7")
    q, qd, tau = states(model, (4, 5))
    expected = model.forward_dynamics(q, np.broadcast_to(qd[0, 0], q.shape).copy(), np.zeros_like(tau))
    assert np.array_equal(expected, model.forward_dynamics(q, qd[0, 0], np.zeros(7)))
    assert np.array_equal(expected, model.forward_dynamics(np.asfortranarray(q), qd[0, 0].tolist(), [0] * 7))
    frozen = q.copy()
    frozen.flags.writeable = False
    assert np.array_equal(expected, model.forward_dynamics(frozen[::-1][::-1], qd[0, 0], np.zeros(7, int)))
    mixed = model.forward_dynamics(q.astype(np.float32), qd[0, 0], np.zeros(7))
    assert mixed.dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0.0] * 6, [0.0] * 7, [0.0] * 7), ["q ", "(6,)", "7"]),
        (([0.0] * 7, np.zeros((3, 8)), [0.0] * 7), ["qd ", "(3, 8)", "7"]),
        ((np.zeros((3, 7)), np.zeros((4, 7)), np.zeros(7)), ["(3,)", "(4,)"]),
        ((["a"] * 7, [0.0] * 7, [0.0] * 7), ["q ", "real numbers"]),
        (([1j] * 7, [0.0] * 7, [0.0] * 7), ["q ", "real numbers"]),
        ((None, [0.0] * 7, [0.0] * 7), ["q ", "real numbers"]),
        (([0.0] * 7, [0.0] * 7, [0.0] * 7, np.zeros((7, 3))), ["wrenches ", "(7, 3)", "7, 6"]),
    ],
)
def test_a_wrong_shape_is_refused_with_the_shapes_found_and_expected(arguments, words):
    with pytest.raises(rb.ArgumentError) as refusal:
        mechanism("arm7").forward_dynamics(*arguments)
    assert all(word in str(refusal.value) for word in words)


def varied_fields(model, chains, seed=0):
    """New values of every field, different in every sample."""
    rng = np.random.default_rng(seed)
    n = model.n_bodies
    bodies = [[random_inertia(rng) for _ in range(n)] for _ in range(chains)]
    return {
        "mass": np.array([[b.mass for b in chain] for chain in bodies]),
        "cg": np.array([[b.cg for b in chain] for chain in bodies]),
        "inertia": np.array([[b.inertia for b in chain] for chain in bodies]),
        "placement_rotation": np.array([[random_rotation(rng) for _ in range(n)] for _ in range(chains)]),
        "placement_translation": rng.normal(size=(chains, n, 3)),
        "axis": rng.normal(size=(chains, n, 3)),
        "pitch": rng.normal(size=(chains, n)),
        "gravity": rng.normal(size=(chains, 3)),
    }


SUBSETS = [
    ["mass"],
    ["cg"],
    ["inertia"],
    ["placement_rotation"],
    ["placement_translation"],
    ["axis"],
    ["pitch"],
    ["gravity"],
    ["mass", "cg", "inertia"],
    ["axis", "gravity"],
    None,
]


@pytest.mark.parametrize("fields", SUBSETS)
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_each_sample_of_a_varied_model_equals_the_model_with_its_parameters(fields, dtype):
    """The results are bit-identical, because shared and own parameters go through the same operations."""
    model = mechanism("mixed_tree")
    values = varied_fields(model, 11)
    values = {name: values[name] for name in fields or values}
    many = model.vary(**values)
    assert many.batch_shape == (11,)
    q, qd, tau = states(model, (11,)).astype(dtype)
    qdd = many.forward_dynamics(q, qd, tau)
    torques = many.inverse_dynamics(q, qd, tau)
    poses, (kinetic, potential) = many.body_poses(q), many.energy(q, qd)
    for c in range(11):
        one = model.vary(**{name: value[c] for name, value in values.items()})
        pair = np.array([c, c])  # two samples, to use the code for batches
        assert np.array_equal(qdd[c], one.forward_dynamics(q[pair], qd[pair], tau[pair])[0])
        assert np.array_equal(torques[c], one.inverse_dynamics(q[pair], qd[pair], tau[pair])[0])
        # except for the rotation to body axes, which uses one scalar for all lanes if they share it
        rotation = one.body_poses(q[pair]).rotation[0]
        np.testing.assert_allclose(poses.rotation[c], rotation, rtol=0, atol=8 * np.finfo(dtype).eps)
        assert np.array_equal([kinetic[c], potential[c]], np.array(one.energy(q[pair], qd[pair]))[:, 0])


def test_varied_models_accept_batches_of_any_shape_and_shared_states():
    model = mechanism("arm7")
    mass = np.random.default_rng(0).uniform(1, 2, (2, 3, 7))
    many = model.vary(mass=mass)
    q, qd, tau = states(model, ())
    found = many.forward_dynamics(q, qd, tau)
    assert found.shape == (2, 3, 7)
    again = model.vary(mass=mass.reshape(6, 7)).forward_dynamics(q, qd, tau)
    assert np.array_equal(found.reshape(6, 7), again)
    with pytest.raises(rb.ArgumentError, match=r"\(2, 3\)"):
        many.forward_dynamics(np.zeros((5, 7)), qd, tau)


def test_varying_by_the_same_values_changes_no_bit():
    model = mechanism("mixed_tree")
    q, qd, tau = states(model, (9,))
    same = model.vary(mass=np.tile(model.mass, (9, 1)), axis=np.tile(model.axis, (9, 1, 1)), gravity=model.gravity)
    assert np.array_equal(same.forward_dynamics(q, qd, tau), model.forward_dynamics(q, qd, tau))


def test_varying_again_replaces_the_earlier_values():
    model = mechanism("arm7")
    heavy = model.vary(mass=np.full((4, 7), 2.0)).vary(mass=np.full((4, 7), 5.0))
    q, qd, tau = states(model, (4,))
    expected = model.vary(mass=np.full(7, 5.0)).forward_dynamics(q, qd, tau)
    assert np.array_equal(heavy.forward_dynamics(q, qd, tau), expected)


def test_a_pickled_model_computes_the_same_bits():
    model = mechanism("mixed_tree").vary(mass=np.random.default_rng(0).uniform(1, 2, (5, 11)))
    copy = pickle.loads(pickle.dumps(model))
    q, qd, tau = states(model, (5,))
    assert np.array_equal(copy.forward_dynamics(q, qd, tau), model.forward_dynamics(q, qd, tau))


def test_renumbering_the_bodies_does_not_change_the_motion():
    """A star of arms is numbered arm by arm, and level by level."""
    by_arm = random_tree(20, [-1, 0, 1, 0, 3, 0, 5])
    order = [0, 1, 3, 5, 2, 4, 6]
    parents = [-1, 0, 0, 0, 1, 2, 3]
    builder = rb.ModelBuilder(gravity=by_arm.gravity)
    for new, (old, p) in enumerate(zip(order, parents, strict=True)):
        builder.add_body(
            f"b{new}",
            parent=None if p < 0 else f"b{p}",
            joint=rb.Revolute(by_arm.axis[old]),
            placement=rb.Pose(by_arm.placement_translation[old], by_arm.placement_rotation[old]),
            inertia=rb.Inertia(by_arm.mass[old], cg=by_arm.cg[old], inertia=by_arm.inertia[old]),
        )
    by_level = builder.build()
    q, qd, tau = states(by_arm, (20,))
    found = by_level.forward_dynamics(q[:, order], qd[:, order], tau[:, order])
    expected = by_arm.forward_dynamics(q, qd, tau)[:, order]
    # only the order of the sums over siblings differs: a few rounding errors of well-conditioned numbers
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_memory_of_a_batch_is_within_twice_its_inputs_and_outputs(threads):
    import tracemalloc

    threads(1)
    model = mechanism("arm7")
    q, qd, tau = states(model, (200_000,))
    model.forward_dynamics(q[:100], qd[:100], tau[:100])
    tracemalloc.start()
    qdd = model.forward_dynamics(q, qd, tau)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # the inputs exist already, so only the result and the working memory are allocated
    assert peak <= qdd.nbytes + 4e6


@pytest.mark.plain_python
@pytest.mark.parametrize("quantity", ARGUMENTS)
# All pairs of the three choices.
@pytest.mark.parametrize(
    ("dtype", "batch", "varies"), [(np.float64, (), False), (np.float32, (9,), False), (np.float64, (9,), True)]
)
def test_no_quantity_writes_past_its_memory(quantity, dtype, batch, varies, monkeypatch):
    """The memory around the working arrays is unchanged."""
    model = mechanism("small_floating_tree")
    if varies:
        model = model.vary(mass=np.random.default_rng(0).uniform(1, 2, (9, model.n_bodies)))
    guarded, new_memory = [], KernelModel.new_memory

    def between_guards(model, *arguments):
        asked_for = new_memory(model, *arguments)
        memory = np.full(asked_for.size + 2000, 12345.0, asked_for.dtype)
        guarded.append(memory)
        return memory[1000:-1000]

    monkeypatch.setattr(KernelModel, "new_memory", between_guards)
    state = random_state(model, batch)
    # a copy has no working memory yet
    computed(pickle.loads(pickle.dumps(model)), quantity, state if dtype is np.float64 else single(state))
    assert guarded or quantity in ("integrate", "difference")
    for memory in guarded:
        assert (memory[:1000] == 12345.0).all()
        assert (memory[-1000:] == 12345.0).all()


@pytest.mark.parametrize("chains", [8192, 8195])
@pytest.mark.parametrize("offset", [0, 1])
def test_results_written_with_streaming_stores_equal_those_of_small_batches(chains, offset):
    """The memory of the result is aligned for these stores, or not."""
    model = Model.serial_chain(8)
    q, _ = model.random_state(np.random.default_rng(0), chains)
    memory = np.empty(chains * 64 + 16)
    start = -memory.ctypes.data % 64 // 8 + offset
    H = memory[start : start + chains * 64].reshape(chains, 8, 8)
    assert H.nbytes >= LARGE
    model.mass_matrix(q, out=H)
    assert np.array_equal(H, np.concatenate([model.mass_matrix(part) for part in np.array_split(q, 40)]))


@pytest.mark.plain_python
@pytest.mark.parametrize("frame", ["tool0", "link4", "base"])
def test_frame_poses_keep_the_precision_and_pass_nan(frame):
    model = mechanism("puma560")
    q = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    batch = model.frame_poses(q, frame)
    assert batch.translation.dtype == batch.rotation.dtype == np.float32
    assert batch.rotation.flags.writeable
    single = model.frame_poses(q[3], frame)
    assert single.translation.dtype == np.float32
    np.testing.assert_allclose(single.rotation, batch.rotation[3], atol=1e-5)
    exact = model.frame_poses(q.astype(float), frame)
    np.testing.assert_allclose(batch.translation, exact.translation, atol=1e-5)
    q[3] = np.nan
    assert np.isnan(model.frame_poses(q[3], frame).translation).all() == (frame != "base")


def test_a_varied_model_accepts_several_states_per_sample():
    """An example are the saved states of a trajectory."""
    many = mechanism("arm7").vary(mass=np.random.default_rng(0).uniform(1, 2, (5, 7)))
    q, qd, tau = states(many, (5, 4, 2))
    several = many[..., None, None]
    kinetic, potential = several.energy(q, qd)
    qdd = several.forward_dynamics(q, qd, tau[0, 0, 0])
    poses = several.frame_poses(q, "body3")
    assert kinetic.shape == potential.shape == (5, 4, 2)
    for i, j in np.ndindex(4, 2):
        assert np.array_equal(kinetic[:, i, j], many.energy(q[:, i, j], qd[:, i, j])[0])
        assert np.array_equal(qdd[:, i, j], many.forward_dynamics(q[:, i, j], qd[:, i, j], tau[0, 0, 0]))
        assert np.array_equal(poses.rotation[:, i, j], many.frame_poses(q[:, i, j], "body3").rotation)


@pytest.mark.fast_cases("tree")
@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("of_model", "of_states"), [((3,), (2, 3)), ((3,), (3, 3)), ((3,), (2, 1)), ((3, 1), (2,)), ((2, 1, 2), (3, 1))]
)
@pytest.mark.parametrize("kind", ["tree", "closed chain"])
def test_a_motion_has_the_common_batch_of_the_model_and_the_states(kind, of_model, of_states):
    rng = np.random.default_rng(0)
    if kind == "tree":
        spring = rb.SpringDamper(None, "link2", point_a=(1, 1, 0), point_b=(0, 0, 0), stiffness=3.0)
        model, q, forces = Model.serial_chain(2), rng.normal(size=(*of_states, 2)), [spring]
    else:
        chain = four_bar()
        model, forces = chain.model, ()
        q = model.assemble(chain.guess + 0.05 * rng.normal(size=(*of_states, model.nq)))
    mass = rng.uniform(1, 2, (*of_model, model.n_bodies))
    settings = {"duration": 0.02, "method": "rk4", "step": 0.01, "forces": forces, "energy_error": True}
    motion = model.vary(mass=mass).simulate(q, **settings)
    batch = np.broadcast_shapes(of_model, of_states)
    assert motion.batch_shape == motion.model.batch_shape == batch
    masses, starts = np.broadcast_to(mass, (*batch, model.n_bodies)), np.broadcast_to(q, (*batch, model.nq))
    for index in np.ndindex(batch):
        one = model.replace(mass=masses[index]).simulate(starts[index], **settings)
        for name in ("q", "qd", "qdd", "tau", "reactions", "elastic_energy", "energy_error"):
            expected = getattr(one, name)
            for found in (getattr(motion, name)[index], getattr(motion[index], name)):
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=name)
    accelerations = model.vary(mass=mass).accelerations(q, forces=forces)
    np.testing.assert_allclose(accelerations, motion.qdd[..., 0, :], rtol=1e-9, atol=1e-9)


@pytest.mark.plain_python
def test_numbers_of_forces_have_the_common_batch_of_the_model_and_the_states():
    rng = np.random.default_rng(0)
    model, mass, q = Model.serial_chain(2), rng.uniform(1, 2, (3, 2)), rng.normal(size=(4, 3, 2))
    stiffness = rng.uniform(1, 5, (4, 3))

    def spring(k):
        return rb.SpringDamper(None, "link2", point_a=(1, 1, 0), point_b=(0, 0, 0), stiffness=k)

    found = model.vary(mass=mass).elastic_energy(q, [spring(stiffness)])
    assert found.shape == (4, 3)
    for index in np.ndindex(4, 3):
        assert found[index] == pytest.approx(model.elastic_energy(q[index], [spring(stiffness[index])]), rel=1e-13)


def test_a_model_cannot_be_changed():
    model = mechanism("arm7")
    for name in ("nq", "nv", "n_bodies", "mass", "parent", "name"):
        with pytest.raises(AttributeError):
            setattr(model, name, 1)
    with pytest.raises(ValueError, match="read-only"):
        model.mass[0] = 1.0


def test_all_results_of_a_failed_sample_are_nan():
    model = mechanism("forest")
    q, qd, tau = states(model, (3,))
    tau[1, 19] = np.inf
    qdd = model.forward_dynamics(q, qd, tau)
    assert np.isnan(qdd[1]).all()
    assert np.isfinite(qdd[[0, 2]]).all()


def test_a_nonphysical_inertia_that_was_accepted_can_be_varied():
    puma = mechanism("puma560")
    assert puma.vary(inertia=np.tile(puma.inertia, (3, 1, 1, 1))).batch_shape == (3,)


@pytest.mark.parametrize("number", [0, -1, 1.5, "all", None, np.nan])
def test_an_invalid_number_of_threads_is_refused(number, threads):
    with pytest.raises(ValueError, match=r"threads is .*; expected a whole number of at least 1"):
        threads(number)


@pytest.mark.parametrize("threads", ["0", "-1", "many"])
def test_an_invalid_number_of_threads_in_the_environment_is_refused(threads):
    environment = os.environ | {"RBCHAIN_NUM_THREADS": threads}
    run = subprocess.run(
        [sys.executable, "-c", "import rbchain; rbchain.Model"], env=environment, capture_output=True, check=False
    )
    assert b"RBCHAIN_NUM_THREADS" in run.stderr


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (
            6,
            r"index is 6; expected a tuple of integers from \(0, 0\) to \(1, 2\), for a batch of shape \(2, 3\)",
        ),
        ((0, 3), r"the sample index is \(0, 3\); expected a tuple of integers from \(0, 0\) to \(1, 2\)"),
        ((0, 0, 0), r"the sample index is \(0, 0, 0\); expected a tuple of integers"),
        (-3, "the sample index is -3; expected a tuple of integers"),
        (1.0, "the sample index is 1.0; expected a tuple of integers"),
        (True, "the sample index is True; expected a tuple of integers"),
        (None, "the sample index is None; expected a tuple of integers"),
    ],
)
def test_a_sample_that_is_not_in_the_batch_is_refused(index, message):
    many = Model.serial_chain(1).vary(mass=np.ones((2, 3, 1)))
    q, counts = np.zeros((2, 3, 4, 1)), np.zeros((2, 3), int)
    motion = Trajectory(np.arange(4.0), q, q, counts, counts, counts, counts, model=many)
    for batch in (motion,) if index is None else (many, motion):  # a model may have new axes
        with pytest.raises(rb.ArgumentError, match=message):
            batch[index]
    assert many[1, -1].batch_shape == motion[1, -1].status.shape == ()
    assert many[1].batch_shape == motion[1].status.shape == (3,)


def test_a_single_motion_has_no_samples_to_choose_from():
    q, count = np.zeros((4, 1)), np.array(0)
    motion = Trajectory(np.arange(4.0), q, q, count, count, count, count, model=Model.serial_chain(1))
    with pytest.raises(
        rb.ArgumentError, match="the sample index is 0, but this is not a batch; use it without an index"
    ):
        motion[0]


def test_the_message_for_a_batch_with_one_axis_names_its_last_sample():
    with pytest.raises(rb.ArgumentError, match="the sample index is 5; expected an integer from 0 to 4"):
        Model.serial_chain(1).vary(mass=np.ones((5, 1)))[5]


@pytest.mark.plain_python
@pytest.mark.parametrize("states", [(), (5,)])
def test_joint_forces_over_time_are_refused_instead_of_becoming_a_batch(states):
    model, history = rb.Model.serial_chain(2), np.zeros((7, 2))
    with pytest.raises(rb.ArgumentError, match=r"rb.PrescribedForce\(joint, rb.Signal.table\(times, values\)\)"):
        model.simulate(np.zeros((*states, 2)), duration=0.1, tau=history)
    with pytest.raises(rb.ArgumentError, match="tau has shape"):
        model.accelerations(np.zeros((*states, 2)), tau=history)
    assert model.accelerations(t=np.zeros(7), tau=history).shape == (7, 2)
    assert model.accelerations(np.zeros((7, 2)), tau=history).shape == (7, 2)


@pytest.mark.plain_python
def test_varied_fields_broadcast_as_in_numpy():
    model = rb.Model.serial_chain(3)
    np.testing.assert_array_equal(model.vary(mass=2.0).mass, [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(model.vary(cg=[0.1, 0, 0]).cg, [[0.1, 0, 0]] * 3)
    factor = np.arange(1.0, 6.0)[:, None]
    np.testing.assert_array_equal(model.vary(mass=factor).mass, np.broadcast_to(factor, (5, 3)))
    damping = 0.1 * np.arange(1.0, 5.0)[:, None]
    many = model.vary(mass=factor[:, None] * np.ones(3), damping=damping * np.ones(3))
    assert many.batch_shape == (5, 4)
    found = many.forward_dynamics(np.full(3, 0.2), np.ones(3), passive=True)
    for i, k in np.ndindex(5, 4):
        one = model.vary(mass=factor[i], damping=damping[k])
        np.testing.assert_array_equal(found[i, k], one.forward_dynamics(np.full(3, 0.2), np.ones(3), passive=True))
    later = model.vary(mass=factor[:, None] * np.ones(3)).vary(damping=damping * np.ones(3))
    np.testing.assert_array_equal(later.damping, many.damping)


@pytest.mark.plain_python
def test_a_number_does_not_stand_for_a_vector_in_varied_fields():
    model = rb.Model.serial_chain(3)
    for fields in ({"gravity": 9.81}, {"cg": 0.1}, {"inertia": 1.0}, {"mass": [1.0, 2.0]}):
        with pytest.raises(rb.ModelError, match="has shape"):
            model.vary(**fields)
