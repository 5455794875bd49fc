"""Inputs and outputs of `Model.linearize`, compared with differences of high order, and with closed forms."""

import re

import numpy as np
import pytest

import rbchain as rb
from rbchain.acting.wrenches import wrenches_on_bodies

from .closed_chains import four_bar
from .mechanisms import EVERY_KIND, random_tree
from .test_linearize import columns, partial_computed_torque, rod, tree_with_all_joints

PLAIN = pytest.mark.plain_python


def with_every_joint():
    return random_tree(3, [-1, 0, 1, 2, 3, 4, 5, 6], EVERY_KIND), {}


@pytest.mark.slow
@PLAIN
@pytest.mark.parametrize("case", [tree_with_all_joints, with_every_joint])
def test_accelerations_of_frames_are_outputs(case):
    model, settings = case()
    q, qd = (x[0] for x in model.random_state(1, 5))
    n, tip = model.nv, model.body_names[-1]
    linear = model.linearize(q, qd, outputs=[("frame_acceleration", tip)], **settings)

    def acceleration(x, u=0.0):
        q_x, qd_x = model.integrate(q, x[:n]), qd + x[n:]
        return model.body_accelerations(q_x, qd_x, model.accelerations(q_x, qd_x, tau=u, **settings))[-1]

    expected = columns(acceleration, 2 * n)
    np.testing.assert_allclose(linear.C[:, : 2 * n], expected, rtol=1e-9, atol=1e-10 * abs(expected).max())
    by_tau = columns(lambda u: acceleration(np.zeros(2 * n), u), n)
    np.testing.assert_allclose(linear.D, by_tau, rtol=1e-9, atol=1e-10 * abs(by_tau).max())
    assert linear.outputs == tuple(f"{tip} {row}" for row in ("ax", "ay", "az", "dwx", "dwy", "dwz"))


@PLAIN
def test_an_accelerometer_on_a_pendulum_measures_the_centripetal_acceleration():
    """The tip of a rod of length l has the acceleration -l x'^2 along the rod, and l x'' across."""
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    builder.add_body("rod", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(2.0, cg=(0.8, 0, 0)))
    builder.add_body("tip", parent="rod", joint=rb.Fixed(), placement=rb.Pose((0.8, 0, 0)))
    linear = builder.build().linearize([0.0], [3.0], outputs=[("frame_acceleration", "tip")])
    np.testing.assert_allclose(linear.C[0], [10.0, -2 * 0.8 * 3.0], rtol=1e-12)  # -l x'^2 - l x'' sin x, x'' = -g / l
    np.testing.assert_allclose(linear.C[1], [-0.8 * 9.0, 0.0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(linear.D[1], 0.8 / (2.0 * 0.8**2), rtol=1e-12)


def drives_and_wrenches():
    """Controllers, a prescribed force, and wrenches in both axes, all with inputs."""
    model, settings = tree_with_all_joints()
    joints, tip = model.joint_names, model.body_names[-1]

    def settings_at(u):
        a, b, c = (rb.Input(name, value) for name, value in zip("abc", u, strict=True))
        drives = [
            rb.PID(joints[1], 2.0 * a + rb.Signal.sines(0.3, 2.0), kp=4.0, kd=0.5, ki=2.0, feedforward=0.3 * b),
            rb.PrescribedForce(joints[3], c, dof=1, limit=50.0),
            rb.PrescribedForce(joints[2], 100.0 + c, dof=0, limit=50.0),  # at its limit
        ]
        forces = [
            rb.Wrench(tip, force=(a, 1.0, -1.0 * b), moment=(0.0, c, 0.5), point=(0.1, 0.2, -0.3), axes="body"),
            rb.Wrench(model.body_names[2], force=(c, a, 0.0), moment=(b, 0.0, 0.0), point=(0.3, 0.2, 0.1)),
            *settings["forces"],
        ]
        return {"drives": drives, "forces": forces, "t": 0.4}

    return model, settings_at


def computed_torque(prescribed):
    """Computed torque of all joints, or of some; one motion is prescribed, and a wrench acts."""

    def case():
        model, settings = partial_computed_torque()
        first, second, third = model.joint_names

        def settings_at(u):
            a, b, c = (rb.Input(name, value) for name, value in zip("abc", u, strict=True))
            drives = [
                rb.ComputedTorque(first, a + settings["drives"][0].reference, kp=4.0, kd=0.5, ki=1.0),
                rb.PrescribedForce(first, 2.0 * c),
                rb.PID(second, b, kp=3.0, kd=0.2, feedforward=c),
            ]
            if prescribed:
                drives.append(rb.PrescribedAcceleration(third, c + 1.0))
            return {"drives": drives, "forces": [rb.Wrench("body1", force=(a, b, c))], "t": 0.4}

        return model, settings_at

    return case


def all_computed_torques():
    model, _ = partial_computed_torque()
    own = model.replace(mass=[1.0, 2.0, 3.0])

    def settings_at(u):
        references = (rb.Input(name, value) for name, value in zip("abc", u, strict=True))
        drives = [
            rb.ComputedTorque(joint, r, kp=4.0, kd=0.5, controller_model=own)
            for joint, r in zip(model.joint_names, references, strict=True)
        ]
        return {"drives": drives}

    return model, settings_at


def on_a_torque_speed_curve():
    model, _ = partial_computed_torque()
    first, second, _ = model.joint_names

    def settings_at(u):
        a, b, c = (rb.Input(name, value) for name, value in zip("abc", u, strict=True))
        drives = [
            rb.PID(first, a, kp=300.0),  # beyond the curve
            rb.Actuator(first, stall_torque=20.0, no_load_speed=50.0),
            rb.PID(second, b, kp=1.0),
            rb.Actuator(second, stall_torque=20.0, no_load_speed=50.0),
        ]
        return {"drives": drives, "forces": [rb.Wrench("body0", force=(c, c, c))]}

    return model, settings_at


INPUTS = [
    drives_and_wrenches,
    computed_torque(False),
    computed_torque(True),
    all_computed_torques,
    on_a_torque_speed_curve,
]


@PLAIN
@pytest.mark.parametrize("case", INPUTS)
def test_numbers_of_inputs_are_inputs(case):
    model, settings_at = case()
    q, qd = (x[0] for x in model.random_state(1, 5))
    names, at = "abc", np.array([0.3, -0.2, 0.5])
    linear = model.linearize(q, qd, inputs=[rb.Input(name) for name in names], **settings_at(at))
    expected = columns(lambda u: model.accelerations(q, qd, **settings_at(at + u)), 3)
    rows = [linear.states.index(f"qd {label}") for label in model.velocity_labels if f"qd {label}" in linear.states]
    dofs = [model.velocity_labels.index(linear.states[row][3:]) for row in rows]
    np.testing.assert_allclose(linear.B[rows], expected[dofs], rtol=1e-9, atol=1e-10 * abs(expected).max())
    assert abs(expected).max() > 1e-3
    assert linear.inputs == ("input a", "input b", "input c")


@PLAIN
def test_references_and_wrenches_are_inputs():
    """The references of controllers act as inputs in their place, and wrenches as `Wrench` in world axes."""
    model, settings_at = computed_torque(False)()
    q, qd = (x[0] for x in model.random_state(1, 5))
    settings, (first, second, _) = settings_at([0.3, -0.2, 0.5]), model.joint_names
    n, numbers = model.nv, [rb.Input("a"), rb.Input("b")]
    others = model.linearize(q, qd, inputs=numbers, **{**settings, "forces": []})
    linear = model.linearize(
        q, qd, inputs=[("reference", first), ("reference", second), ("reference_velocity", first)], **settings
    )
    np.testing.assert_allclose(linear.B[:, :2], others.B, rtol=1e-13)
    assert linear.states[-1] == "integral body0"
    assert linear.B[-1].tolist() == [1.0, 0.0, 0.0]  # z' = r - q
    np.testing.assert_allclose(linear.B[:-1, 2], linear.B[:-1, 0] * 0.5 / 4.0, rtol=1e-13)  # kd / kp
    assert linear.inputs == ("reference body0", "reference body1", "reference_velocity body0")

    tip = model.body_names[-1]
    linear = model.linearize(q, qd, inputs=[("force", tip), ("moment", tip)], **settings)
    both = model.linearize(q, qd, inputs=[("wrench", tip)], **settings)
    np.testing.assert_array_equal(linear.B, both.B)
    expected = columns(
        lambda w: model.accelerations(
            q, qd, **{**settings, "forces": [*settings["forces"], rb.Wrench(tip, force=w[:3], moment=w[3:])]}
        ),
        6,
    )
    np.testing.assert_allclose(linear.B[n : 2 * n], expected, rtol=1e-9, atol=1e-10 * abs(expected).max())
    assert both.inputs == tuple(f"{tip} {c}" for c in ("fx", "fy", "fz", "mx", "my", "mz"))


@PLAIN
def test_computed_torque_makes_joints_follow_their_references():
    """(s^2 + kd s + kp) x = (s^2 + kd s + kp) r, so the three columns sum up to a perfect transmission."""
    model, _ = partial_computed_torque()
    drives = [rb.ComputedTorque(joint, 0.0, kp=4.0, kd=0.5) for joint in model.joint_names]
    free = model.replace(stiffness=0.0, damping=0.0)
    words = ("reference", "reference_velocity", "reference_acceleration")
    linear = free.linearize([0.3, 0.2, -0.4], drives=drives, inputs=[(word, "body1") for word in words])
    np.testing.assert_allclose(linear.B[3:], np.outer([0, 1, 0], [4.0, 0.5, 1.0]), rtol=1e-10, atol=1e-10)
    s = 2.0j
    response = np.linalg.solve(s * np.eye(6) - linear.A, linear.B @ [1.0, s, s * s])
    np.testing.assert_allclose(response[:3], [0, 1, 0], rtol=1e-10, atol=1e-10)


@PLAIN
def test_inputs_act_through_the_forces_of_closed_loops():
    model, _, guess = four_bar()
    q = model.assemble(guess)
    qd = model.assemble_velocities(q, np.random.default_rng(1).normal(size=model.nv))
    first, second, _ = model.joint_names

    def settings_at(u):
        a, b, c = (rb.Input(name, value) for name, value in zip("abc", u, strict=True))
        drives = [rb.PID(first, a, kp=2.0), rb.PrescribedForce(second, b)]
        return {"drives": drives, "forces": [rb.Wrench(model.body_names[-1], force=(c, c, 0), point=(0.1, 0.2, 0))]}

    linear = model.linearize(q, qd, inputs=[rb.Input(name) for name in "abc"], **settings_at([0.1, 0.2, 0.3]))
    expected = columns(lambda u: model.accelerations(q, qd, **settings_at(u)), 3)
    dof = model.velocity_labels.index(linear.states[1][3:])
    np.testing.assert_allclose(linear.B, [np.zeros(3), expected[dof]], rtol=1e-9, atol=1e-9)

    def prescribed(u):
        return {"drives": [rb.PrescribedAcceleration(first, rb.Input("a", u[0]))]}

    linear = model.linearize(
        q, qd, inputs=[rb.Input("a")], outputs=[("acceleration", x) for x in model.joint_names], **prescribed([0.3])
    )
    expected = columns(lambda u: model.accelerations(q, qd, **prescribed(u)), 1)
    np.testing.assert_allclose(linear.D, expected, rtol=1e-9, atol=1e-9)


@PLAIN
def test_inputs_may_differ_between_samples():
    factor, kp = np.array([1.0, 2.0]), np.array([3.0, 6.0])
    drives = [rb.PID("link1", factor * rb.Input("r"), kp=kp, ki=1.0)]
    force = rb.Wrench("link1", force=(0, rb.Input("f"), 0), point=[[1.5, 0, 0], [0.5, 0, 0]])
    inputs = [rb.Input("r"), rb.Input("f"), ("reference", "link1")]
    linear = rod().linearize(np.zeros((2, 1)), drives=drives, forces=[force], inputs=inputs)
    np.testing.assert_allclose(linear.B[:, 1, 0], factor * kp / 1.5, rtol=1e-12)
    np.testing.assert_allclose(linear.B[:, 1, 1], [1.0, 1.0 / 3.0], rtol=1e-12)
    np.testing.assert_allclose(linear.B[:, 2, 0], factor, rtol=1e-12)
    np.testing.assert_allclose(linear.B[:, 1:, 2], [[2.0, 1.0], [4.0, 1.0]], rtol=1e-12)
    empty = rod().linearize(np.zeros((0, 1)), inputs=[("wrench", "link1")])
    assert empty.B.shape == (0, 2, 6)


def drives_and_wrenches_with_cables():
    """Springs to the world, across the joint and behind it, and a slack cable."""
    model, settings_at = drives_and_wrenches()
    ends = {"point_a": (0.1, 0, 0), "point_b": (0, 0.2, 0), "stiffness": 20.0}

    def with_cables(u):
        settings = settings_at(u)
        cables = [
            rb.SpringDamper("body0", "body3", damping=2.0, rest_length=0.05, tension_only=True, **ends),
            rb.SpringDamper("body3", "body1", damping=0.5, rest_length=0.1, **ends),
            rb.SpringDamper("body1", "body2", rest_length=9.0, tension_only=True, **ends),
        ]
        return {**settings, "forces": [*settings["forces"], *cables]}

    return model, with_cables


@pytest.mark.slow
@PLAIN
@pytest.mark.parametrize("case", [drives_and_wrenches_with_cables])
def test_reactions_are_outputs(case):
    model, settings_at = case()
    q, qd = (x[0] for x in model.random_state(1, 5))
    n, body, at = model.nv, 1, np.array([0.3, -0.2, 0.5])
    inputs, outputs = [rb.Input(name) for name in "abc"], [("reaction", model.joint_names[body])]
    linear = model.linearize(q, qd, outputs=outputs, inputs=inputs, **settings_at(at))

    def reaction(x, u=0.0):
        settings = settings_at(at + u)
        q_x, qd_x = model.integrate(q, x[:n]), qd + x[n:]
        wrenches = wrenches_on_bodies(
            model, settings["forces"], q_x[None], qd_x[None], np.array([settings.get("t", 0.0)])
        )
        return model.joint_reactions(q_x, qd_x, model.accelerations(q_x, qd_x, **settings), wrenches[0])[body]

    expected = columns(reaction, 2 * n)
    np.testing.assert_allclose(linear.C[:, : 2 * n], expected, rtol=1e-9, atol=1e-10 * abs(expected).max())
    expected = columns(lambda u: reaction(np.zeros(2 * n), u), 3)
    np.testing.assert_allclose(linear.D, expected, rtol=1e-9, atol=1e-10 * max(1.0, abs(expected).max()))
    names = tuple(f"reaction {model.joint_names[body]} {row}" for row in ("fx", "fy", "fz", "mx", "my", "mz"))
    assert linear.outputs == names


@PLAIN
def test_the_bearing_of_a_pendulum_carries_its_tension():
    """A point mass m at the length l: f = (- m l x'^2 + m g sin x, tau / l), and the moment tau."""
    m, l, g, x, v = np.array([2.0, 3.0]), 0.8, 10.0, 0.4, 3.0  # noqa: E741
    builder = rb.ModelBuilder(gravity=(0, -g, 0))
    builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(2.0, cg=(l, 0, 0)))
    model = builder.build().vary({"bob.mass": m})
    linear = model.linearize([x], [v], tau=[0.7], outputs=[("reaction", "bob")])
    np.testing.assert_allclose(linear.C[:, 0], np.stack([m * g * np.cos(x), -2 * m * l * v], -1), rtol=1e-12)
    np.testing.assert_allclose(linear.C[:, 1:], 0.0, atol=1e-12)
    np.testing.assert_allclose(linear.D[..., 0], [[0, 1 / l, 0, 0, 0, 1]] * 2, rtol=1e-12, atol=1e-12)


INPUT = rb.Input("r")
PID = rb.PID("link1", INPUT, kp=1.0)
REFUSED = [
    ({"inputs": [rb.Input("gust")], "drives": [PID]}, "'gust', which is not in the drives and forces; .*'r'"),
    ({"inputs": [("reference", "link1")]}, "'link1' has 0 drives with a reference"),
    ({"inputs": [("reference", "link1")], "drives": [PID, PID]}, "'link1' has 2 drives with a reference"),
    ({"inputs": [("reference_acceleration", "link1")], "drives": [PID]}, "whose drive is a PID"),
    ({"inputs": [("refrence", "link1")]}, "'refrence'; .* did you mean reference"),
    ({"inputs": [("force", "tool")]}, "'tool'"),
    ({"inputs": [("force", "link1", 0)]}, "without a dof"),
    ({"inputs": [INPUT, INPUT], "drives": [PID]}, "twice"),
    ({"inputs": [("wrench", "link1"), ("force", "link1")]}, re.escape("('force', 'link1') twice")),
    ({"inputs": [(1, "link1")]}, "expected the name of a joint, a pair"),
    ({"inputs": [INPUT], "drives": [rb.PrescribedPosition("link1", INPUT)]}, "does not support inputs that prescribe"),
    ({"outputs": [("reaction", "link1", 0)]}, "without a dof"),
    ({"outputs": [("reaction", "elbow")]}, "no joint 'elbow'"),
    ({"outputs": [("constraint_force", "pin")]}, "the constraint of an output is 'pin'"),
    ({"outputs": [("constraint_force", "pin", 0)]}, "without a dof"),
]


@PLAIN
@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=range(len(REFUSED)))
def test_wrong_inputs_and_outputs_are_refused_by_name(arguments, message):
    with pytest.raises(rb.ArgumentError, match=message):
        rod().linearize([[0.1], [0.2]], **arguments)
