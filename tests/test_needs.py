"""Functions in plain Python receive the quantities that they need: those of the methods of Model in measured states."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import ArgumentError, UnknownNameError

from .mechanisms import slide

pytestmark = pytest.mark.plain_python

ARM = rb.Model.serial_chain(3)
ARMS = ARM.vary(mass=[[1.0, 1.0, 1.0], [1.1, 0.9, 1.2]])
Q, QD = np.array([[0.3, -0.5, 0.9], [0.1, 0.4, -0.6]]), np.array([[0.2, 0.1, -0.3], [0.0, -0.4, 0.5]])
STEP = 1e-3
ALL = {
    "pose": "link3", "jacobian": ["link2", "link3"], "jacobian_derivative": "link3",
    "mass_matrix": True, "bias_forces": True, "gravity_forces": True,
}  # fmt: skip


def expected_quantities(model, q, qd):
    """Of one sample, by the methods of Model for one state."""
    pose = model.frame_poses(q, "link3")
    return {
        "translation": pose.translation,
        "rotation": pose.rotation,
        "jacobian": np.stack([model.jacobian(q, name) for name in ("link2", "link3")]),
        "jacobian_derivative": model.jacobian_derivative(q, qd, "link3"),
        "mass_matrix": model.mass_matrix(q),
        "bias_forces": model.bias_forces(q, qd),
        "gravity_forces": model.gravity_forces(q),
    }


@pytest.mark.parametrize("method", ["rk4", "moreau", "rk45"])
@pytest.mark.parametrize("model", ["nominal", "own", "another"])
def test_the_quantities_are_those_of_the_model_in_the_measured_states(method, model):
    calls, other = [], ARM.vary(mass=[2.0, 2.0, 2.0])

    def damp(t, q, qd, parameters, states, computed):
        calls.append((q.copy(), qd.copy(), computed))
        states += 1.0
        return -0.1 * qd

    sensor = rb.Encoder("link2", resolution=1e-2, bias=0.1)
    needs = rb.Needs(model=other if model == "another" else model, **ALL)
    drive = rb.Sampled(damp, period=2e-3, sensors=[sensor], states=[0.0], needs=needs)
    step = {} if method == "rk45" else {"step": STEP}
    ARMS.simulate(Q, QD, 5e-3, method=method, drives=[drive], **step)
    assert len(calls) == 3
    for q, qd, computed in calls:
        assert (np.abs(q[:, 1] / 1e-2 - np.round(q[:, 1] / 1e-2)) < 1e-9).all()  # measured
        for k in range(2):
            of_sample = {"nominal": ARM, "own": ARMS[k], "another": other}[model]
            for name, expected in expected_quantities(of_sample, q[k], qd[k]).items():
                np.testing.assert_allclose(getattr(computed, name)[k], expected, rtol=1e-12, atol=1e-13)


def impedance(t, q, qd, parameters, computed):
    """Pull the tool to a point as a spring with damping does; `parameters` are the point, stiffness and damping."""
    J = computed.jacobian[..., :3, :]
    velocity = (J @ qd[..., None])[..., 0]
    error = computed.translation - parameters[..., :3]
    force = -parameters[..., 3:4] * error - parameters[..., 4:5] * velocity
    return (J.mT @ force[..., None])[..., 0] + computed.gravity_forces


def test_a_cartesian_spring_acts_as_a_spring_between_bodies():
    """The force of a spring at the origin of a body, with gravity compensation, at the start of a motion."""
    point, k = np.array([1.0, 0.8, 0.0]), 30.0
    needs = rb.Needs(pose="link3", jacobian="link3", gravity_forces=True)
    drive = rb.Sampled(rb.UserForces(impedance, parameters=[*point, k, 0.0]), period=STEP, needs=needs)
    held = ARM.simulate(Q, 0.0, STEP, method="rk4", step=STEP, drives=[drive]).tau[:, 0]
    spring = rb.SpringDamper(None, "link3", point_a=point, point_b=(0, 0, 0), stiffness=k, rest_length=0.0)
    of_spring = ARM.accelerations(Q, 0.0 * Q, forces=[spring])
    without_gravity = ARM.inverse_dynamics(Q, 0.0 * Q, of_spring)
    np.testing.assert_allclose(held - ARM.gravity_forces(Q), without_gravity, rtol=1e-10, atol=1e-10)


def test_a_stepper_computes_with_the_parameters_and_the_samples_of_now():
    """Samples that do not need the function have no valid measurement, here quaternions of zeros."""
    builder, found = rb.ModelBuilder(), []
    builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    model = builder.build().vary(mass=[[1.0], [2.0]])

    def hold(t, q, qd, parameters, computed):
        found.append(computed.gravity_forces.copy())
        return computed.gravity_forces

    drive = rb.Sampled(hold, period=STEP, needs=rb.Needs(gravity_forces=True, mass_matrix=True, model="own"))
    q = np.tile(model.neutral(), (2, 1))
    stepper = model.stepper(q, step=STEP, drives=[drive])
    stepper.step(2)
    stepper.reset([1], mass=[[3.0]])
    stepper.step(2)
    np.testing.assert_allclose(stepper.q[:, :3], 0.0, atol=1e-12)
    assert np.abs(found[-1][1]).max() == pytest.approx(3.0 / 2.0 * np.abs(found[0][1]).max())


def test_a_single_state_gets_arrays_without_a_batch():
    shapes = []

    def look(t, q, qd, parameters, computed):
        shapes.append([x.shape for x in computed])
        return 0.0 * qd

    ARM.simulate(Q[0], duration=STEP, method="rk4", step=STEP, drives=[rb.Sampled(look, needs=rb.Needs(**ALL))])
    assert shapes[0] == [(3,), (3, 3), (2, 6, 3), (6, 3), (3, 3), (3,), (3,)]


def test_needs_that_do_not_fit_are_refused():
    def python(t, q, qd, parameters, computed):
        return 0.0 * qd

    for match, make in (
        ("nothing is needed", lambda: rb.Needs()),
        ("mass_matrix is 1; expected True or False", lambda: rb.Needs(mass_matrix=1)),
        ("model is 'real'", lambda: rb.Needs(mass_matrix=True, model="real")),
        ("frame is \\[\\]; expected the name", lambda: rb.Needs(jacobian=[])),
        ("needs is 'jacobian'; expected Needs", lambda: rb.Sampled(python, needs="jacobian")),
    ):
        with pytest.raises(ArgumentError, match=match):
            make()
    for match, drive in (
        ("only user functions have needs", rb.Sampled(rb.PID("link1", 0.1, kp=1.0), needs=rb.Needs(jacobian="link3"))),
        (
            "expected the joints of the simulated model",
            rb.Sampled(python, needs=rb.Needs(mass_matrix=True, model=slide())),
        ),
    ):
        with pytest.raises(ArgumentError, match=match):
            ARM.simulate(Q, duration=STEP, drives=[drive])
    with pytest.raises(UnknownNameError, match="'hand'"):
        ARM.simulate(Q, duration=STEP, drives=[rb.Sampled(python, needs=rb.Needs(pose="hand"))])
