"""An Inertia may replace mass, center of mass and tensor everywhere, and has the same meaning."""

import numpy as np
import pytest

import rbchain as rb
from tests.mechanisms import random_inertia, random_rotation

pytestmark = pytest.mark.plain_python
RNG = np.random.default_rng(0)


def arm():
    """Two links, and a tool that is turned against the second."""
    builder = rb.ModelBuilder()
    builder.add_body("upper", joint=rb.Revolute((0, 1, 0)), inertia=random_inertia(RNG))
    builder.add_body("lower", parent="upper", joint=rb.Revolute((1, 0, 0)), inertia=random_inertia(RNG))
    pose = rb.Pose((0.1, 0.2, 0.3), random_rotation(RNG))
    builder.add_body("tool", parent="lower", joint=rb.Fixed(), placement=pose)
    return builder.build()


def assert_same(one, other):
    for name in ("mass", "cg", "inertia"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("body", ["lower", "tool"])
def test_a_payload_may_be_an_inertia(body):
    model, load = arm(), random_inertia(RNG)
    parts = {"mass": load.mass, "cg": load.cg, "inertia": load.inertia}
    assert_same(model.with_payload(body, body=load), model.with_payload(body, **parts))


def test_payloads_per_sample_may_be_a_list_of_inertias():
    model, loads = arm(), [random_inertia(RNG) for _ in range(5)]
    many = model.with_payload("tool", body=loads)
    assert many.batch_shape == (5,)
    for i, load in enumerate(loads):
        one = model.with_payload("tool", body=load)
        np.testing.assert_allclose(many[i].inertia, one.inertia, rtol=1e-14)
        np.testing.assert_array_equal(many[i].mass, one.mass)


def test_a_payload_equals_a_fixed_body():
    """Compared with the builder, which merges fixed bodies."""
    load, pose = random_inertia(RNG), rb.Pose((0.1, 0.2, 0.3), random_rotation(RNG))
    rod = rb.Inertia.rod(1.0, mass=2.0)
    models = []
    for inertia in (None, load):
        builder = rb.ModelBuilder()
        builder.add_body("link", joint=rb.Revolute(), inertia=rod)
        builder.add_body("tool", parent="link", joint=rb.Fixed(), placement=pose, inertia=inertia)
        models.append(builder.build())
    loaded = models[0].with_payload("tool", body=load)
    for name in ("mass", "cg", "inertia"):
        np.testing.assert_allclose(getattr(loaded, name), getattr(models[1], name), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "the mass is missing; expected mass="),
        ({"cg": (1, 0, 0)}, "the mass is missing; expected mass="),
        ({"mass": rb.Inertia(1.0)}, "mass is an Inertia"),
        ({"mass": rb.Inertia(1.0), "inertia": (1, 1, 1)}, "mass is an Inertia"),
        ({"inertia": rb.Inertia(1.0)}, "inertia is an Inertia; expected numbers. Pass the Inertia as body="),
        ({"mass": 1.0, "body": rb.Inertia(1.0)}, "but mass, cg or inertia is given as well"),
        ({"cg": (1, 0, 0), "body": rb.Inertia(1.0)}, "but mass, cg or inertia is given as well"),
        ({"inertia": (1, 1, 1), "body": rb.Inertia(1.0)}, "but mass, cg or inertia is given as well"),
        ({"mass": 1.0, "body": [rb.Inertia(1.0), rb.Inertia(2.0)]}, "but mass, cg or inertia is given as well"),
        ({"body": 1.0}, "body is 1.0; expected an Inertia, or several in lists"),
    ],
)
def test_a_payload_given_twice_is_refused(given, sentence):
    with pytest.raises(rb.ModelError, match=f"payload on 'tool': .*{sentence}"):
        arm().with_payload("tool", **given)


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        (rb.Inertia(np.nan), "payload on 'tool': mass is nan; expected finite"),
        (rb.Inertia(1.0, cg=(np.inf, 0, 0)), "payload on 'tool': cg is .*finite"),
        ([rb.Inertia(1.0), 2.0], "payload on 'tool'"),
    ],
)
def test_an_invalid_payload_is_refused(load, sentence):
    with pytest.raises(rb.ModelError, match=sentence):
        arm().with_payload("tool", body=load)


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_inertias_may_be_varied_as_inertia_objects(batch):
    model, count = arm(), int(np.prod(batch)) * 2
    inertias = [random_inertia(RNG) for _ in range(count)]
    nested = np.array(inertias, dtype=object).reshape(*batch, 2)
    parts = {name: np.array([getattr(i, name) for i in inertias]) for name in ("mass", "cg", "inertia")}
    expected = model.vary(**{name: x.reshape(*batch, 2, *x.shape[1:]) for name, x in parts.items()})
    for given in (nested, nested.tolist()):
        found = model.vary(body=given)
        assert_same(found, expected)
        assert found.batch_shape == batch


def test_invalid_variations_by_inertia_objects_are_refused():
    model, bodies = arm(), [rb.Inertia(1.0, inertia=(1, 1, 1))] * 2
    with pytest.raises(rb.ModelError, match=r"body consists of Inertias, which also set .* but mass is given too"):
        model.vary(body=bodies, mass=[1.0, 2.0])
    with pytest.raises(rb.ModelError, match=r"mass has shape \(3,\); expected \(2,\), or \(..., 2\)"):
        model.vary(body=bodies + bodies[:1])
    with pytest.raises(rb.ModelError, match="'lower': inertia has the principal moments"):
        model.vary(body=[bodies[0], rb.Inertia(1.0, inertia=(1, 1, 3))])
    with pytest.raises(rb.ModelError, match=r"(?s)body is .*expected one Inertia per body"):
        model.vary(body=[bodies[0], 1.0])
    with pytest.raises(rb.ModelError, match=r"inertia consists of Inertias, .* Use body="):
        model.vary(inertia=bodies)


def test_the_inertia_of_a_serial_chain_must_be_an_inertia_object():
    with pytest.raises(rb.ModelError, match=r"inertia is \(1, 1, 1\); expected an Inertia"):
        rb.Model.serial_chain(2, inertia=(1, 1, 1))
