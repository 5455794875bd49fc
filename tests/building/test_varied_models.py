"""`Model.vary`: samples equal models built one by one, and invalid samples are refused with their index."""

import numpy as np
import pytest

import rbchain as rb

from ..oracles import newton_euler
from .models import built, described, random_body


def varied_values():
    """Valid values of every field, for five samples of three links."""
    rng = np.random.default_rng(13)
    tensors = np.array([[random_body(rng, "revolute").inertia for _ in range(3)] for _ in range(5)])
    return {
        "mass": rng.uniform(1, 2, (5, 3)),
        "cg": rng.uniform(-1, 1, (5, 3, 3)),
        "inertia": tensors,
        "placement_rotation": np.array([[random_body(rng, "revolute").rotation for _ in range(3)] for _ in range(5)]),
        "placement_translation": rng.uniform(-1, 1, (5, 3, 3)),
        "axis": rng.normal(size=(5, 3, 3)),
        "pitch": rng.uniform(-1, 1, (5, 3)),
        "gravity": rng.uniform(-10, 10, (5, 3)),
    }


@pytest.mark.parametrize("field", varied_values())
def test_varied_samples_equal_models_built_one_by_one(field):
    rng = np.random.default_rng(14)
    bodies = [random_body(rng, "screw") for _ in range(3)]
    q, qd, tau = rng.uniform(-1, 1, (3, 5, 3))
    values = varied_values()[field]
    found = built(bodies, [-1, 0, 0]).vary(**{field: values}).forward_dynamics(q, qd, tau)
    for chain in range(5):
        reference = described(bodies, [-1, 0, 0])
        setattr(reference, field, values[chain])
        if field == "axis":
            reference.axis = reference.axis / np.linalg.norm(reference.axis, axis=1)[:, None]
        expected = newton_euler.forward_dynamics(reference, q[chain], qd[chain], tau[chain]).astype(float)
        np.testing.assert_allclose(found[chain], expected, atol=1e-10 * np.abs(expected).max())


def test_vary_copies_its_input_and_does_not_change_the_model():
    chain, mass = rb.Model.serial_chain(3), np.ones((5, 3))
    many = chain.vary(mass=mass)
    mass[:] = 9.0
    np.testing.assert_array_equal(many.mass, 1.0)
    np.testing.assert_array_equal(chain.mass, 0.1)
    assert (chain.batch_shape, many.batch_shape) == ((), (5,))


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("mass", np.nan),
        ("mass", np.inf),
        ("mass", -0.5),
        ("cg", np.nan),
        ("inertia", np.nan),
        ("inertia", -5.0),
        ("placement_translation", np.inf),
        ("placement_rotation", np.nan),
        ("placement_rotation", 0.5),
        ("axis", np.nan),
        ("axis", 0.0),
        ("pitch", np.nan),
    ],
)
def test_an_invalid_sample_is_refused_with_body_and_index(field, bad):
    values = varied_values()[field]
    values[3, 1] = bad
    with pytest.raises(rb.ModelError, match=r"(?s)link2.*sample 3"):
        rb.Model.serial_chain(3).vary(**{field: values})


@pytest.mark.parametrize(("moments", "what"), [((1, 1, 3), "triangle"), ((1, 1, -1), "positive semi-definite")])
def test_an_unphysical_tensor_of_one_sample_is_refused_with_body_and_index(moments, what):
    tensors = varied_values()["inertia"]
    tensors[4, 2] = np.diag(moments)
    with pytest.raises(rb.ModelError, match=rf"(?s)link3.*sample 4.*{what}"):
        rb.Model.serial_chain(3).vary(inertia=tensors)


def test_an_asymmetric_tensor_of_one_sample_is_refused_with_body_and_index():
    tensors = varied_values()["inertia"]
    tensors[2, 0, 0, 1] += 0.5 * tensors[2, 0, 0, 0]
    with pytest.raises(rb.ModelError, match=r"(?s)link1.*sample 2"):
        rb.Model.serial_chain(3).vary(inertia=tensors)


def test_an_invalid_gravity_of_one_sample_is_refused_with_its_index():
    gravity = varied_values()["gravity"]
    gravity[3, 1] = np.nan
    with pytest.raises(rb.ModelError, match=r"(?s)gravity.*sample 3"):
        rb.Model.serial_chain(3).vary(gravity=gravity)


def test_an_invalid_sample_of_a_nested_batch_is_refused_with_all_indices():
    mass = np.ones((2, 4, 3))
    mass[1, 2, 0] = -1
    with pytest.raises(rb.ModelError, match=r"(?s)link1.*sample \(1, 2\)"):
        rb.Model.serial_chain(3).vary(mass=mass)


@pytest.mark.parametrize(
    ("field", "shape"),
    [
        ("mass", (2,)),
        ("mass", (5, 2)),
        ("mass", (3, 5)),
        ("cg", (5, 3)),
        ("inertia", (5, 3, 3)),
        ("inertia", (5, 3, 5)),
        ("axis", (5, 3, 2)),
        ("gravity", (5,)),
        ("pitch", (5, 4)),
        ("placement_rotation", (5, 3, 4)),
    ],
)
def test_a_wrong_shape_is_refused_with_the_shape_found_and_expected(field, shape):
    with pytest.raises(rb.ModelError) as refusal:
        rb.Model.serial_chain(3).vary(**{field: np.ones(shape)})
    assert field in str(refusal.value)
    assert str(shape) in str(refusal.value)


def test_fields_of_different_batches_are_refused():
    with pytest.raises(rb.ModelError, match="batch"):
        rb.Model.serial_chain(3).vary(mass=np.ones((5, 3)), cg=np.zeros((4, 3, 3)))
    with pytest.raises(rb.ModelError, match="batch"):
        rb.Model.serial_chain(3).vary(mass=np.ones((5, 3))).vary(cg=np.zeros((4, 3, 3)))


@pytest.mark.parametrize("field", ["length", "masses", "parent", "name", "joint_types", "frames"])
def test_an_unknown_field_is_refused_by_name(field):
    with pytest.raises(rb.ModelError, match=field):
        rb.Model.serial_chain(3).vary(**{field: np.ones(3)})


@pytest.mark.parametrize("value", ["heavy", None, {"a": 1}, [[1, 1, 1], [1, 1]]], ids=str)
def test_a_value_that_is_not_a_number_is_refused_with_the_name_of_the_field(value):
    with pytest.raises(rb.ModelError, match="mass"):
        rb.Model.serial_chain(3).vary(mass=value)
