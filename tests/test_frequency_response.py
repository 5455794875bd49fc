"""`Model.frequency_response`, compared with closed forms."""

import re

import numpy as np
import pytest

import rbchain as rb

PLAIN = pytest.mark.plain_python
G = 10.0
HANGING = -np.pi / 2


def rod(**fields):
    """A thin rod of 1.5 m with I = 1.5 kg m^2 that turns about z: I x'' = tau - 15 N m cos x."""
    return rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, -G, 0)).replace(**fields)


@PLAIN
def test_a_rod_with_damping_and_a_controller_has_the_response_of_its_closed_form():
    """H = 1 / (m g l / 2 - I w^2 + i w d + kp + i w kd + ki / (i w)) from a joint force to the position."""
    drives = [rb.PID("link1", HANGING, kp=4.0, kd=0.5, ki=3.0)]
    outputs = [("position", "link1"), ("velocity", "link1"), ("acceleration", "link1")]
    f = np.geomspace(1e-3, 1e3, 61)
    found = rod(damping=[0.3]).frequency_response(f, [HANGING], drives=drives, outputs=outputs)
    s = 2j * np.pi * f
    expected = 1.0 / (15.0 + 1.5 * s**2 + 0.8 * s + 4.0 + 3.0 / s)
    np.testing.assert_allclose(found.response[:, 0, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(found.response[:, 1, 0], s * expected, rtol=1e-12)
    np.testing.assert_allclose(found.response[:, 2, 0], s**2 * expected, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(found.gain[:, 0, 0], abs(expected), rtol=1e-12)
    assert (found.inputs, found.outputs) == (("tau link1",), ("q link1", "qd link1", "qdd link1"))
    # from the integral, which leads by 90 degrees, through the spring to the inertia
    assert np.all(np.diff(found.phase[:, 0, 0]) < 0.0)
    np.testing.assert_allclose(found.phase[[0, -1], 0, 0], [np.pi / 2, -np.pi], atol=1e-1)


@PLAIN
def test_an_arm_has_the_inverse_of_its_dynamic_stiffness():
    """(K + i w D - w^2 M)^-1 of three links with springs and dampers; `modes` finds its resonances."""
    model = rb.Model.serial_chain(3, length=0.4, mass=1.0, gravity=(0, 0, 0))
    stiffness, damping = np.array([30.0, 20.0, 10.0]), np.array([0.02, 0.01, 0.03])
    model, q = model.replace(stiffness=stiffness, rest_position=[0.3, -0.5, 0.8], damping=damping), [0.3, -0.5, 0.8]
    f = np.concatenate([[0.0], np.geomspace(0.01, 100.0, 40), model.modes(q).frequency])
    outputs = [("position", f"link{i}") for i in (1, 2, 3)]
    found = model.frequency_response(f, q, outputs=outputs)
    w = (2 * np.pi * f)[:, None, None]
    expected = np.linalg.inv(np.diag(stiffness) + 1j * w * np.diag(damping) - w**2 * model.mass_matrix(q))
    np.testing.assert_allclose(found.response, expected, rtol=1e-9, atol=1e-12 * abs(expected).max())
    linear = model.linearize(q, outputs=outputs)
    np.testing.assert_array_equal(linear.frequency_response(f).response, found.response)


@PLAIN
def test_poles_without_damping_are_nan_and_the_phase_goes_on_behind_them():
    w = np.array([0.0, 1.0, np.sqrt(G), np.sqrt(G) * (1 + 1e-9), 100.0])
    found = rod().frequency_response(w / (2 * np.pi), [HANGING], outputs=[("position", "link1")])
    expected = 1.0 / (15.0 - 1.5 * w**2)
    np.testing.assert_allclose(found.response[[0, 1, 4], 0, 0], expected[[0, 1, 4]], rtol=1e-12)
    assert np.isnan(found.response[2]).all()
    np.testing.assert_allclose(found.gain[3], abs(expected[3]), rtol=1e-6)
    np.testing.assert_allclose(abs(found.phase[:, 0, 0]), [0, 0, np.nan, np.pi, np.pi], atol=1e-12)
    # a cart moves freely: -1 / (m w^2), with no bounds at zero
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(4.0))
    f = np.array([0.0, 1e-9, 1e-3, 1.0, 1e6])
    found = builder.build().frequency_response(f, outputs=[("position", "cart")])
    assert np.isnan(found.response[0]).all()
    np.testing.assert_allclose(found.response[1:, 0, 0], -0.25 / (2 * np.pi * f[1:]) ** 2, rtol=1e-13)


@PLAIN
def test_batches_may_have_any_shape_and_samples_may_fail():
    f, mass = np.array([0.1, 0.2]), np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 6.0]])
    many = rod().vary({"link1.mass": mass}).frequency_response(f, [HANGING])
    assert many.response.shape == many.gain.shape == many.phase.shape == (2, 3, 2, 2, 1)
    inertia = 2.0 * 1.5**2 / 12 + mass * 0.75**2
    expected = 1.0 / (0.75 * G * mass[..., None] - inertia[..., None] * (2 * np.pi * f) ** 2)
    np.testing.assert_allclose(many.response[..., 0, 0], expected, rtol=1e-12)
    np.testing.assert_array_equal(many[1, 2].phase, many.phase[1, 2])
    assert (len(many), many[1].batch_shape, many[1, 2].success.shape) == (2, (3,), ())
    failed = rod().frequency_response(f, np.array([[np.nan], [HANGING]], np.float32))
    assert failed.success.tolist() == [False, True]
    assert np.isnan(failed.response[0]).all()
    assert np.isfinite(failed.phase[1]).all()
    assert rod().frequency_response(f, np.zeros((0, 1))).phase.shape == (0, 2, 2, 1)
    assert rod().frequency_response([], [HANGING]).phase.shape == (0, 2, 1)
    assert rod().frequency_response(f, [HANGING], inputs=[]).gain.shape == (2, 2, 0)


REFUSED = [
    ({"frequency": 1.0}, re.escape("frequency has shape (); expected an array (f,)")),
    ({"frequency": [-1.0]}, re.escape("frequency is [-1.0]; expected an array (f,) of frequencies from 0, Hz")),
    ({"frequency": [np.inf]}, "frequency is .*inf.* expected finite numbers"),
    ({"inputs": ["elbow"]}, "no joint 'elbow'"),
]


@PLAIN
@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=range(len(REFUSED)))
def test_wrong_arguments_are_refused_by_name(arguments, message):
    with pytest.raises(rb.ArgumentError, match=message):
        rod().frequency_response(**{"frequency": [1.0], "q": [0.1], **arguments})
