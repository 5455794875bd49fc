"""Models are read-only, own their arrays, and can be pickled and copied."""

import copy
import pickle

import numpy as np
import pytest

import rbchain as rb

from .models import KINDS, NUMBERINGS, TwoBodies, built, pendulum, random_body


@pytest.mark.parametrize("duplicate", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy], ids=["pickle", "copy"])
def test_a_duplicate_computes_the_same_bits(duplicate):
    rng = np.random.default_rng(12)
    bodies = [random_body(rng, kind) for kind in KINDS]
    builder_made = built(bodies, NUMBERINGS["mixed"])
    state = rng.uniform(-1, 1, (3, 10, 7))
    for model in (builder_made, builder_made.vary(mass=rng.uniform(1, 2, (10, 7)))):
        expected = model.forward_dynamics(*state)
        twin = duplicate(model)
        np.testing.assert_array_equal(twin.forward_dynamics(*state), expected)
        assert (twin.name, twin.body_names, twin.fixed_frames) == (model.name, model.body_names, model.fixed_frames)
        assert twin.batch_shape == model.batch_shape
        assert not twin.mass.flags.writeable


def test_a_pickle_keeps_the_fixed_frames():
    builder = pendulum()
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), placement=TwoBodies.pose())
    model = builder.build()
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        twin.frame_poses([0.3], "ball").translation, model.frame_poses([0.3], "ball").translation
    )


FIELDS = ("parent", "placement_rotation", "placement_translation", "axis", "pitch", "mass", "cg", "inertia", "gravity")


@pytest.mark.parametrize("field", FIELDS)
def test_the_arrays_of_a_model_are_read_only(field):
    chain = rb.Model.serial_chain(2)
    for model in (pendulum().build(), chain, chain.vary(mass=np.ones((3, 2)))):
        with pytest.raises(ValueError, match="read-only"):
            getattr(model, field)[...] = 0
        with pytest.raises(AttributeError):
            setattr(model, field, 0)


def test_a_model_keeps_its_own_copy_of_its_input():
    gravity, cg, place, axis = np.array([0.0, 0, -9]), np.array([0.1, 0, -0.5]), np.ones(3), np.array([0.0, 1, 0])
    builder = rb.ModelBuilder(gravity=gravity)
    builder.add_body(
        "arm", joint=rb.Revolute(axis), placement=rb.Pose(place), inertia=rb.Inertia(1.0, cg=cg, inertia=(1, 1, 1))
    )
    model = builder.build()
    before = {field: getattr(model, field).copy() for field in FIELDS}
    for array in (gravity, cg, place, axis):
        array[:] = 77.0
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), inertia=rb.Inertia(100.0))
    model.fixed_frames["ghost"] = 0
    for field, value in before.items():
        np.testing.assert_array_equal(getattr(model, field), value)
    assert model.fixed_frames == {}


def test_the_builder_copies_a_body_when_it_is_added():
    """Writing into the caller's array between add_body and build changes nothing."""
    gravity, cg, place, axis = np.array([0.0, 0, -9]), np.array([0.1, 0, -0.5]), np.ones(3), np.array([0.0, 1, 0])
    builder = rb.ModelBuilder(gravity=gravity)
    builder.add_body(
        "arm", joint=rb.Revolute(axis), placement=rb.Pose(place), inertia=rb.Inertia(1.0, cg=cg, inertia=(1, 1, 1))
    )
    for array in (gravity, cg, place, axis):
        array[:] = np.nan
    model = builder.build()
    np.testing.assert_array_equal(model.gravity, [0, 0, -9])
    np.testing.assert_array_equal(model.cg, [[0.1, 0, -0.5]])
    np.testing.assert_array_equal(model.placement_translation, [[1, 1, 1]])
    np.testing.assert_array_equal(model.axis, [[0, 1, 0]])


def test_a_builder_can_add_bodies_after_build():
    builder = pendulum()
    first = builder.build()
    builder.add_body("hand", parent="arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)))
    second = builder.build()
    assert (first.n_bodies, second.n_bodies) == (1, 2)
    assert builder.build().mass.tolist() == second.mass.tolist()
