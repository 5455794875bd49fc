"""Models with other numbers: they share everything that their numbers do not change with the model that was varied."""

import gc
import weakref

import numpy as np
import pytest

import rbchain as rb
from rbchain.model.description import VARIABLE_FIELDS

from .closed_chains import four_bar
from .mechanisms import EVERY_KIND, massless_middle, random_rotation, random_tree

ROTATIONS = ("placement_rotation", "constraint_axes_a", "constraint_axes_b")
MATRICES = ("inertia", "added_mass", "added_volume", "linear_damping", "quadratic_damping")


def immersed():
    """Two bodies in water, with damping and stops at the joints."""
    builder = rb.ModelBuilder(name="immersed", fluid_density=1000.0)
    water = rb.Immersion(
        volume=1e-3,
        buoyancy_center=(0.1, 0.0, 0.02),
        added_mass=np.diag([1.0, 2.0, 3.0, 0.1, 0.2, 0.3]),
        linear_damping=np.diag([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
    )
    parent = None
    for name in ("upper", "lower"):
        builder.add_body(
            name,
            parent=parent,
            joint=rb.Revolute((0.0, 0.6, 0.8)),
            placement=rb.Pose((0.3, 0.0, 0.0)),
            inertia=rb.Inertia.box((0.3, 0.1, 0.1), mass=2.0),
            immersion=water,
            passive=rb.PassiveForces(damping=0.1, stop_lower=-1.0, stop_upper=1.0, limit_stiffness=10.0),
        )
        parent = name
    return builder.build()


MODELS = {
    "tree of all joints": lambda: random_tree(3, [-1, 0, 1, 1, 3, 2, 5, 6], EVERY_KIND, geared=("revolute", "screw")),
    "body without inertia": massless_middle,
    "closed chain": lambda: four_bar().model,
    "in water": immersed,
}


def other_values(model, name, batch):
    """Return other possible values of a field, with batch axes."""
    rng = np.random.default_rng(5)
    value = getattr(model, name)
    values = np.broadcast_to(value, (*batch, *value.shape))
    if name in ROTATIONS:
        return values @ random_rotation(rng)
    if name == "axis":
        free = model.kernel_model.dofs.in_quaternion_joint[:, None]
        return np.where(free, values, values @ random_rotation(rng))
    scale = rng.uniform(0.9, 1.1, batch)
    if name in MATRICES:
        return values * scale.reshape(*batch, *[1] * value.ndim)
    return values * rng.uniform(0.9, 1.1, values.shape) + 0.01 * (name in ("damping", "friction"))


def assert_same_arrays(model):
    """Compare the arrays of a model with those of the model that is made anew from its description."""
    found, expected = model.kernel_model, rb.Model(model.description).kernel_model
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        topology, parameters, variation = found.arrays(dtype)
        expected_topology, expected_parameters, expected_variation = expected.arrays(dtype)
        assert topology.dtype == expected_topology.dtype
        assert np.array_equal(topology, expected_topology)
        assert np.array_equal(parameters, expected_parameters)
        assert (variation is None) == (expected_variation is None)
        if variation is not None:
            assert np.array_equal(variation.entries, expected_variation.entries)
            assert np.array_equal(variation.values, expected_variation.values)
    assert found.batch_shape == expected.batch_shape
    assert found.in_water == expected.in_water
    np.testing.assert_array_equal(found.unguarded_limits, expected.unguarded_limits)
    assert found.bodies_without_inertia == expected.bodies_without_inertia
    tables, expected_tables = found.constraint_tables, expected.constraint_tables
    assert (tables is None) == (expected_tables is None)
    assert tables is None or all(map(np.array_equal, tables, expected_tables))


@pytest.mark.fast_cases("closed chain", "in water")
@pytest.mark.plain_python
@pytest.mark.parametrize("batch", [(), (1,), (2, 5)])
@pytest.mark.parametrize("name", MODELS)
def test_a_varied_model_has_the_arrays_of_a_model_that_is_made_from_its_description(name, batch):
    model = MODELS[name]()
    for field in VARIABLE_FIELDS:
        if field == "pitch" and "screw" not in model.dof_types:
            continue
        values = other_values(model, field, batch)
        varied = model.vary(**{field: values})
        assert_same_arrays(varied)
        assert_same_arrays(varied.vary(mass=1.5 * varied.mass))
        assert_same_arrays(varied[..., None])
        if not batch:
            assert_same_arrays(model.replace(**{field: values}))


@pytest.mark.plain_python
def test_bodies_can_lose_and_gain_their_inertia():
    model = rb.Model.serial_chain(2)
    none = np.zeros((2, 3, 3))
    empty = model.vary(mass=[1.0, 0.0], inertia=none)
    assert empty.bodies_without_inertia == ("link2",)
    assert empty.vary(mass=[1.0, 1.0]).bodies_without_inertia == ()
    assert model.vary(inertia=none).vary(mass=[1.0, 0.0]).bodies_without_inertia == ("link2",)
    assert model.vary(mass=[0.0, 0.0], inertia=none, rotor_inertia=[1.0, 1.0]).bodies_without_inertia == ()


@pytest.mark.plain_python
def test_a_model_with_numbers_beyond_the_precision_can_be_varied():
    model = rb.Model.serial_chain(1).replace(rotor_inertia=[1e200], gear_ratio=[1e100])
    with pytest.raises(rb.ModelError, match="beyond the range of float64"):
        model.forward_dynamics([0.0], [0.0])
    possible, dtype = model.vary(gear_ratio=[1.0]), np.dtype(np.float64)
    expected = rb.Model(possible.description).kernel_model.arrays(dtype)[1]
    assert np.array_equal(possible.kernel_model.arrays(dtype)[1], expected)


@pytest.mark.plain_python
def test_a_sequence_of_varied_models_keeps_only_the_first_and_the_last():
    first = rb.Model.serial_chain(2)
    model, kept = first, []
    for step in range(5):
        model = model.replace(mass=[1.0 + step, 2.0])
        kept.append(weakref.ref(model))
    gc.collect()
    assert [reference() is not None for reference in kept] == [False] * 4 + [True]
