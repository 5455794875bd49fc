"""Samples of models and motions by an index, as for a NumPy array of the batch."""

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python
MASK = np.array([True, False, True])
INDICES = [0, -1, (1, 2), slice(1, 3), (slice(None), 1), [2, 0], MASK, (1, slice(0, 2)), slice(0, 0)]


def moving():
    """A batch (3, 4) of a sliding body with a spring of its own, an event, stops and a failed sample."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    limits = rb.JointLimits(-1.0, 1.0)
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0), limits=limits)
    mass = 1.0 + 0.1 * np.arange(12.0).reshape(3, 4, 1)
    many = builder.build().vary(mass=mass)
    stiffness = 1.0 + np.arange(12.0).reshape(3, 4)
    spring = rb.SpringDamper(None, "slide", point_a=(2, 0, 0), point_b=(0, 0, 0), stiffness=stiffness, rest_length=1.0)
    motion = many.simulate(
        np.zeros((3, 4, 1)),
        np.linspace(-3.0, 3.0, 12).reshape(3, 4, 1),
        0.5,
        save_at=5,
        forces=[spring, rb.HardStops("slide", restitution=0.5)],
        events=[rb.Event("slide", value=0.1, stop=False)],
        max_steps=90,
        dense_output=100,
        energy_error=True,
        on_failure="ignore",
    )
    return many, motion


@pytest.fixture(scope="module")
def batch():
    return moving()


@pytest.mark.slow_cases("0")
@pytest.mark.parametrize("index", INDICES)
def test_an_index_chooses_samples_of_all_results(batch, index):
    many, motion = batch
    found = motion[index]
    for name in ("q", "qd", "status", "steps", "end_time", "end_q", "tau", "energy_error", "dof_beyond_limits"):
        np.testing.assert_array_equal(getattr(found, name), getattr(motion, name)[index])
    np.testing.assert_array_equal(found.model.mass, many.mass[index])
    np.testing.assert_array_equal(many[index].mass, many.mass[index])
    np.testing.assert_array_equal(found.forces[0].stiffness, motion.forces[0].stiffness[index])
    np.testing.assert_array_equal(found.impacts[0].count, motion.impacts[0].count[index])
    np.testing.assert_array_equal(found.events[0].t, motion.events[0].t[index])
    assert found.impacts[0].force is found.forces[1]


@pytest.mark.parametrize("index", [0, (1, 2), slice(1, 3), (slice(None), 1), [2, 0]])
def test_measures_of_chosen_samples_see_their_steps(batch, index):
    many, motion = batch
    peak = rb.study.Measure(name="peak", quantity="position", joint="slide", over="peak_to_peak")
    np.testing.assert_array_equal(peak.values(many[index], motion[index]), peak.values(many, motion)[index])


def test_a_chosen_model_moves_as_in_the_batch(batch):
    many, motion = batch
    one = many[1, 2].simulate(
        [0.0], [motion.qd[1, 2, 0, 0]], 0.5, save_at=5, forces=motion[1, 2].forces, on_failure="ignore"
    )
    assert motion[1, 2].status == rb.Status.DONE
    np.testing.assert_allclose(one.q, motion[1, 2].q, rtol=0, atol=1e-12)


def test_samples_can_be_counted_and_iterated(batch):
    many, motion = batch
    assert len(many) == len(motion) == 3
    assert [len(row) for row in motion] == [4, 4, 4]
    np.testing.assert_array_equal([[one.end_time for one in row] for row in motion], motion.end_time)
    assert bool(many)
    assert bool(motion[:0])


@pytest.mark.parametrize("index", [3, -4, (0, 4), (0, 0, 0), 0.5, None, slice("a", None), [0, 3]])
def test_other_indices_are_refused(batch, index):
    for owner in batch[1:] if index is None else batch:  # a model may have new axes
        with pytest.raises(
            rb.ArgumentError, match=r"the sample index is .*; expected a tuple of integers from \(0, 0\)"
        ):
            owner[index]


def test_what_is_no_batch_has_no_samples():
    model = rb.Model.serial_chain(1)
    motion = model.simulate([0.0], [0.0], 0.1, save_at=2)
    for owner in (model, motion):
        with pytest.raises(rb.ArgumentError, match="the sample index is 0, but this is not a batch"):
            owner[0]
        with pytest.raises(TypeError, match="is not a batch, so it has no length"):
            len(owner)
        assert bool(owner)
    shared = model.simulate(np.zeros((2, 1)), np.zeros((2, 1)), 0.1, save_at=2)
    assert shared[1].model is model


def test_exceptions_follow_their_samples():
    def fails(t, q, qd, parameters, out):
        if parameters[0] > 0.0:
            raise ValueError("too much")

    force = rb.UserForces(fails, parameters=np.array([[0.0], [1.0], [0.0], [2.0]]))
    model, zero = rb.Model.serial_chain(1), np.zeros((4, 1))
    motion = model.simulate(zero, zero, 0.1, drives=[force], method="rk4", step=0.1, on_failure="ignore", save_at=2)
    assert sorted(motion.exceptions) == [(1,), (3,)]
    assert sorted(motion[1:].exceptions) == [(0,), (2,)]
    assert list(motion[3].exceptions) == [()]
    assert not motion[[0, 2]].exceptions


@pytest.mark.parametrize("owner", [rb.Model, rb.Trajectory])
def test_the_old_name_tells_the_new_one(owner, batch):
    found = batch[owner is rb.Trajectory]
    with pytest.raises(AttributeError, match=r"has no attribute 'of_sample'; it is now (model|motion)\[i\]"):
        found.of_sample(0)
