"""`Model.linearize`: exact linear models, compared with closed forms and with differences of high order."""

import re
import sys
import types

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import four_bar, hung_plate
from .mechanisms import random_tree

PLAIN = pytest.mark.plain_python
G = 10.0
#: Central differences of eighth order, whose error is about 1e-12 for steps of 1e-2.
WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))


def rod(**fields):
    """A thin rod of 1.5 m that turns about z, with x'' = - 3 g / (2 l) cos x = -10 cos x."""
    return rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, -G, 0)).replace(**fields)


def difference(function, step=1e-2):
    """The derivative of a function of one number at 0."""
    return sum(w * (function(k * step) - function(-k * step)) for k, w in WEIGHTS) / step


def columns(function, n):
    """The derivative of a function of n numbers at 0."""
    return np.stack([difference(lambda s, e=e: function(s * e)) for e in np.eye(n)], -1)


def tree_with_all_joints():
    """A floating tree with a spherical, a universal and a revolute joint, springs and a controller with an integral."""
    model = random_tree(7, [-1, 0, 1, 1], ["free", "revolute", "spherical", "universal"])
    first, tip = model.joint_names[1], model.body_names[-1]
    drives = [rb.PID(first, rb.Signal.sines(0.3, 2.0), kp=4.0, kd=0.5, ki=2.0)]
    forces = [
        rb.Wrench(tip, force=(rb.Signal.sines(1.0, 3.0, phase=1.0), 0.0, 2.0)),
        rb.SpringDamper(None, tip, point_a=(0, 0, 1), point_b=(0.1, 0, 0), stiffness=5.0, damping=0.3, rest_length=0.4),
    ]
    return model, {"drives": drives, "forces": forces, "t": 0.4}


def partial_computed_torque():
    """Computed torque of one joint, whose force depends on the forces of the others; all of them act on a spring."""
    model = random_tree(7, [-1, 0, 1]).replace(stiffness=[2.0, 0.0, 1.0], damping=[0.1, 0.2, 0.0])
    first, second, _ = model.joint_names
    drives = [
        rb.ComputedTorque(first, rb.Signal.sines(0.3, 2.0), kp=4.0, kd=0.5),
        rb.PID(second, 0.3, kp=3.0, kd=0.2, gravity_compensation=False),
    ]
    return model, {"drives": drives, "t": 0.4}


@pytest.mark.slow_cases("tree_with_all_joints")
@PLAIN
@pytest.mark.parametrize("case", [tree_with_all_joints, partial_computed_torque])
def test_the_matrices_are_the_derivatives_of_the_accelerations(case):
    model, settings = case()
    q, qd = (x[0] for x in model.random_state(1, 5))
    tau = np.random.default_rng(2).normal(size=model.nv)
    n, linear = model.nv, model.linearize(q, qd, tau=tau, **settings)

    def qdd(x, u=0.0):
        return model.accelerations(model.integrate(q, x[:n]), qd + x[n:], tau=tau + u, **settings)

    scale = abs(linear.A).max()
    expected = columns(lambda x: qdd(x), 2 * n)
    np.testing.assert_allclose(linear.A[n : 2 * n, : 2 * n], expected, rtol=1e-9, atol=1e-10 * scale)
    by_tau = columns(lambda u: qdd(np.zeros(2 * n), u), n)
    np.testing.assert_allclose(linear.B[n : 2 * n], by_tau, rtol=1e-9, atol=1e-10 * abs(by_tau).max())
    assert (linear.B[:n] == 0).all()
    np.testing.assert_allclose(linear.acceleration, qdd(np.zeros(2 * n)), rtol=1e-12)
    assert bool(linear.success)


@PLAIN
def test_the_integral_of_a_controller_is_a_state():
    """x'' = -10 cos x + (kp (r - x) - kd x' + ki z) / I with I = m l^2 / 3, and z' = r - x."""
    linear = rod().linearize([0.3], [0.7], drives=[rb.PID("link1", 0.5, kp=6.0, kd=1.5, ki=3.0)], integrals=0.2)
    expected = [[0, 1, 0], [G * np.sin(0.3) - 4.0, -1.0, 2.0], [-1, 0, 0]]
    np.testing.assert_allclose(linear.A, expected, rtol=1e-13, atol=1e-14)
    assert linear.states == ("q link1", "qd link1", "integral link1")
    np.testing.assert_allclose(linear.acceleration, -G * np.cos(0.3) + (6 * 0.2 - 1.5 * 0.7 + 3 * 0.2) / 1.5)


@PLAIN
def test_changes_on_the_tangent_space_turn_with_their_bodies():
    """The rate of the difference of two motions, from differences of the motions with constant velocities."""
    model, settings = tree_with_all_joints()
    q, qd = (x[0] for x in model.random_state(1, 5))
    n, linear = model.nv, model.linearize(q, qd, **settings)

    t, weights = 1e-2 * np.arange(-4, 5)[:, None], np.zeros(9)
    for k, w in WEIGHTS:
        weights[4 + k], weights[4 - k] = w / 1e-2, -w / 1e-2
    x = t[:, :, None] * np.eye(2 * n)[:, None, None]  # (columns, changes, times, entries)
    moved = model.integrate(model.integrate(q, x[..., :n]), t * (qd + x[..., n:]))
    distance = model.difference(model.integrate(q, t * qd), moved)
    expected = np.einsum("s,t,jsti->ij", weights, weights, distance)
    np.testing.assert_allclose(linear.A[:n, : 2 * n], expected, rtol=1e-8, atol=1e-9)


@PLAIN
def test_outputs_are_motions_of_joints_and_frames():
    model, settings = tree_with_all_joints()
    q, qd = (x[0] for x in model.random_state(1, 5))
    n, tip, joint = model.nv, model.body_names[-1], model.joint_names[-1]
    outputs = [("pose", tip), ("frame_velocity", tip), ("position", joint, 1), ("acceleration", joint)]
    linear = model.linearize(q, qd, outputs=outputs, inputs=[model.joint_names[1], (joint, 0)], **settings)

    def velocity(x):
        return model.jacobian(model.integrate(q, x[:n]), tip) @ (qd + x[n:])

    places = columns(lambda x: model.frame_poses(model.integrate(q, x[:n]), tip).translation, 2 * n)
    np.testing.assert_allclose(linear.C[:3, : 2 * n], places, rtol=1e-9, atol=1e-9)
    R = model.frame_poses(q, tip).rotation
    for i in range(n):  # the rotation vector of a change
        change = difference(lambda s, i=i: model.frame_poses(model.integrate(q, s * np.eye(n)[i]), tip).rotation) @ R.T
        np.testing.assert_allclose(linear.C[3:6, i], [change[2, 1], change[0, 2], change[1, 0]], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(linear.C[6:12, : 2 * n], columns(velocity, 2 * n), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(linear.C[12], np.eye(2 * n + 1)[n - 1])
    np.testing.assert_array_equal(linear.C[13:], linear.A[2 * n - 2 : 2 * n])
    np.testing.assert_array_equal(linear.D[13:], linear.B[2 * n - 2 : 2 * n])
    assert (linear.D[:13] == 0).all()
    labels = model.velocity_labels
    assert linear.inputs == (f"tau {labels[6]}", f"tau {labels[-2]}")
    assert linear.outputs[0] == f"{tip} x"
    assert linear.outputs[12:] == (f"q {labels[-1]}", f"qdd {labels[-2]}", f"qdd {labels[-1]}")


@PLAIN
def test_a_pendulum_on_a_vibrating_base_is_the_equation_of_mathieu():
    """y = a cos(w t) of the base, and l x'' + (g + y'') sin x = 0 of a point mass; x is the only free position."""
    a, w, length = 0.1, 7.0, 0.8
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("base", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(1.0))
    point = rb.Inertia(2.0, cg=(0, 0, -length))
    builder.add_body("mass", parent="base", joint=rb.Revolute((0, 1, 0)), inertia=point)
    t, x = np.linspace(0.0, 1.0, 7), 0.3
    base = rb.PrescribedPosition("base", rb.Signal.sines(a, w, phase=np.pi / 2))
    linear = builder.build().linearize([0.0, x], drives=[base], t=t)
    stiffness = (G - a * w**2 * np.cos(w * t)) / length * np.cos(x)
    np.testing.assert_allclose(linear.A[:, 1, 0], -stiffness, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(linear.A[:, 0], [[0.0, 1.0]] * 7)
    assert linear.states == ("q mass", "qd mass")
    assert (linear.positions[:, 0] == 0).all()
    with pytest.raises(rb.ArgumentError, match="prescribes the motion of joint 'base'"):
        builder.build().linearize([0.0, x], drives=[base], inputs=["base"])


@PLAIN
def test_a_parallelogram_is_a_pendulum():
    """Two parallel links of length l, whose coupler does not turn: (I1 + I2 + m l^2) x'' = M g cos x."""
    builder = rb.ModelBuilder(gravity=(0, -G, 0))
    link = rb.Inertia(1.2, cg=(0.4, 0, 0), inertia=(0.05, 0.05, 0.05))
    coupler = rb.Inertia(0.7, cg=(0.2, 0.1, 0), inertia=(0.02, 0.02, 0.02))
    builder.add_body("left", joint=rb.Revolute((0, 0, 1)), inertia=link)
    builder.add_body("right", joint=rb.Revolute((0, 0, 1)), placement=rb.Pose((1, 0, 0)), inertia=link)
    builder.add_body(
        "bar", parent="left", joint=rb.Revolute((0, 0, 1)), placement=rb.Pose((0.6, 0, 0)), inertia=coupler
    )
    builder.add_constraint(rb.BallConstraint("tip", "bar", "right", point_a=(1, 0, 0), point_b=(0.6, 0, 0)))
    model, x, v = builder.build(), np.array([-1.0, 0.4]), 0.8
    linear = model.linearize(x[:, None] * [1, 1, -1], v * np.array([1, 1, -1.0]))
    inertia, torque = 2 * (0.05 + 1.2 * 0.4**2) + 0.7 * 0.6**2, (2 * 1.2 * 0.4 + 0.7 * 0.6) * G
    sign = linear.positions[:, 0, 0]  # the independent position may be that of the bar
    np.testing.assert_allclose(abs(sign), 1.0, rtol=1e-12)
    np.testing.assert_allclose(linear.A[:, 1, 0], torque / inertia * np.sin(x), rtol=1e-10)
    np.testing.assert_allclose(linear.A[:, 1, 1], 0.0, atol=1e-10)
    np.testing.assert_allclose(linear.positions[:, :, 0] * sign[:, None], [[1, 1, -1]] * 2, rtol=1e-12)
    np.testing.assert_allclose(linear.velocities[:, :, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(linear.acceleration, (-torque / inertia * np.cos(x))[:, None] * [1, 1, -1], rtol=1e-10)
    assert len(linear.states) == 2


@pytest.mark.slow_cases("hung_plate")
@PLAIN
@pytest.mark.parametrize("chain", [four_bar, hung_plate])
def test_loops_are_reduced_to_independent_coordinates(chain):
    """Differences of the accelerations of assembled states, whose independent coordinates have the given changes."""
    model, _, guess = chain()
    q = model.assemble(guess)
    qd = model.assemble_velocities(q, np.random.default_rng(1).normal(size=model.nv))
    linear, n = model.linearize(q, qd), model.nv
    m = linear.A.shape[0] // 2

    dofs = [model.velocity_labels.index(name[2:]) for name in linear.states[:m]]

    def closed(x):
        """The change of the position, the velocity and the accelerations of the state with the given changes."""
        position = q
        for _ in range(6):  # Newton steps, which converge quadratically
            rows = np.vstack([model.constraint_jacobian(position), np.eye(n)[dofs]])
            target = x[:m] - model.difference(q, position)[dofs]
            residual = np.concatenate([-model.constraint_residual(position), target])
            position = model.integrate(position, np.linalg.lstsq(rows, residual, rcond=1e-10)[0])
        rows = np.vstack([model.constraint_jacobian(position), np.eye(n)[dofs]])
        rates = np.concatenate([np.zeros(len(rows) - m), qd[dofs] + x[m:]])
        velocity = np.linalg.lstsq(rows, rates, rcond=1e-10)[0]
        return np.array([model.difference(q, position), velocity, model.accelerations(position, velocity)])

    change, velocity, acceleration = columns(lambda x: closed(0.3 * x), 2 * m) / 0.3
    scale = abs(acceleration).max()
    np.testing.assert_allclose(linear.A[m:], acceleration[dofs], rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(linear.positions, change, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(linear.velocities, velocity, rtol=1e-9, atol=1e-9 * abs(velocity).max())
    # a joint force acts on the independent coordinates through the map: M dqdd = B tau
    M = np.swapaxes(linear.positions[:, :m], 0, 1) @ model.mass_matrix(q) @ linear.positions[:, :m]
    np.testing.assert_allclose(M @ linear.B[m:], linear.positions[:, :m].T, rtol=1e-9, atol=1e-9)


@PLAIN
def test_samples_that_cannot_be_linearized_do_not_change_the_others():
    model, _, guess = four_bar()
    q = model.assemble(guess)
    states = np.stack([q, q + [0.3, 0, 0], np.full(3, np.nan)])
    linear = model.linearize(states)
    assert linear.success.tolist() == [True, False, False]
    np.testing.assert_allclose(linear.A[0], model.linearize(q).A, rtol=1e-12)
    assert np.isnan(linear.A[1:]).all()
    with pytest.raises(rb.ArgumentError, match="does not satisfy the constraints"):
        model.linearize(states[1])
    alone = rod().linearize([[np.nan], [0.2]], [0.0])
    assert alone.success.tolist() == [False, True]


@PLAIN
def test_batches_may_have_any_shape():
    mass = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 6.0]])
    linear = rod().vary({"link1.mass": mass}).linearize([0.2], tau=[0.5])
    assert linear.A.shape == (2, 3, 2, 2)
    np.testing.assert_allclose(linear.B[..., 1, 0], 1.0 / (2.0 * 1.5**2 / 12 + mass * 0.75**2), rtol=1e-12)
    assert (len(linear), linear[1].A.shape, linear[1, 2].B.shape) == (2, (3, 2, 2), (2, 1))
    np.testing.assert_array_equal([x.A for x in linear], linear.A)
    empty = rod().linearize(np.zeros((0, 1)))
    assert (empty.A.shape, empty.success.shape, empty.D.shape) == ((0, 2, 2), (0,), (0, 2, 1))
    empty = four_bar().model.linearize(np.zeros((0, 3)))
    assert empty.B.shape == (0, 0, 3)
    in_float32 = rod().linearize(np.array([[0.5]], np.float32))
    assert in_float32.A.dtype == np.float64
    np.testing.assert_array_equal(in_float32.A, rod().linearize([[0.5]]).A)


@PLAIN
def test_a_linear_model_becomes_one_of_scipy_and_of_python_control(monkeypatch):
    linear = rod().linearize([[0.2], [0.3]])
    system = linear[1].to_scipy()
    np.testing.assert_array_equal(system.A, linear.A[1])
    with pytest.raises(rb.ArgumentError, match=r"batch of shape \(2,\); .* linear\[i\].to_scipy"):
        linear.to_scipy()
    with pytest.raises(rb.ArgumentError, match="no linear model"):
        rod().linearize([np.nan]).to_scipy()
    made = types.SimpleNamespace(StateSpace=lambda *matrices, **names: (matrices, names))
    monkeypatch.setitem(sys.modules, "control", made)
    matrices, names = linear[0].to_control()
    assert names == {"states": ["q_link1", "qd_link1"], "inputs": ["tau_link1"], "outputs": ["q_link1", "qd_link1"]}
    assert [x.shape for x in matrices] == [(2, 2), (2, 1), (2, 2), (2, 1)]
    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(ImportError, match=r"\[control\]"):
        linear[0].to_control()


def no_forces(t, q, qd, parameters, out):
    out[0] += 0.0


REFUSED = [
    ({"drives": [rb.UserForces(no_forces)]}, "'no_forces' has no derivatives; expected derivatives=function"),
    ({"forces": [rb.DryFriction("link1", kinetic=0.1)]}, "DryFriction.* not differentiable"),
    ({"inputs": "link1"}, "inputs is 'link1'; expected a list"),
    ({"inputs": ["elbow"]}, "no joint 'elbow'"),
    ({"inputs": [("link1", 1)]}, "dof is 1, but joint 'link1' has 1 degree"),
    ({"inputs": ["link1", "link1"]}, "'link1' twice"),
    ({"inputs": [3]}, "inputs contains 3; expected the name of a joint"),
    ({"outputs": ["link1"]}, "outputs contains 'link1'; expected pairs"),
    ({"outputs": [("postion", "link1")]}, "'postion'; .* did you mean position"),
    ({"outputs": [("pose", "tool")]}, "'tool'"),
    ({"outputs": [("pose", "link1", 0)]}, "without a dof"),
    ({"t": -1.0}, "t is -1.0; expected finite times from 0"),
    ({"t": np.zeros(3)}, "batch"),
    ({"q": [[0.0, 0.0]]}, re.escape("q has shape (1, 2); expected (..., 1)")),
    ({"tau": np.zeros((3, 1))}, "tau has shape"),
    ({"integrals": [1.0]}, r"integrals has shape \(1,\); expected \(..., 0\)"),
]


@PLAIN
@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=range(len(REFUSED)))
def test_wrong_arguments_are_refused_by_name(arguments, message):
    with pytest.raises(rb.ArgumentError, match=message):
        rod().linearize(**{"q": [[0.1], [0.2]], **arguments})


def test_compiled_code_finds_the_closed_form():
    x = np.linspace(-1.0, 1.0, 11)
    drives, inputs = [rb.PID("link1", 0.0, kp=3.0, kd=1.5)], ["link1", ("reference", "link1")]
    linear = rod().linearize(x[:, None], drives=drives, inputs=inputs)
    np.testing.assert_allclose(linear.A[:, 1, 0], G * np.sin(x) - 2.0, rtol=1e-12)
    np.testing.assert_allclose(linear.A[:, 1, 1], -1.0, rtol=1e-12)
    np.testing.assert_allclose(linear.B[:, 1], [[2 / 3, 2.0]] * 11, rtol=1e-12)
