"""Hybrid dynamics, derivatives of inverse dynamics, and controllers of mechanisms with couplers and loops."""

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import closed_chain, closed_state
from .mechanisms import ROBOTS

plain = pytest.mark.plain_python
#: Weights of central differences of eighth order.
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
STEP = 1e-3
GRAVITY = (0.4, -9.0, 1.5)
PANDA = ROBOTS / "panda_description/urdf/panda.urdf"


def slopes(function):
    """Derivatives at 0 of the arrays that function(s) returns, by differences of eighth order."""
    found = [(w, function(j * STEP), function(-j * STEP)) for j, w in enumerate(WEIGHTS, 1)]
    return [sum(w * (later[i] - earlier[i]) / STEP for w, later, earlier in found) for i in range(len(found[0][1]))]


def gripper(ratio=-1.0):
    """A turning arm with two sliding fingers that a coupler connects, like the hand of a Panda."""
    builder = rb.ModelBuilder(name="gripper", gravity=GRAVITY)
    inertia = rb.Inertia(2.0, cg=(0.3, 0.05, 0.02), inertia=(0.02, 0.1, 0.11))
    builder.add_body("arm", joint=rb.Revolute((0.1, 0.2, 1.0)), inertia=inertia)
    for name, mass, x in (("left", 0.1, 0.5), ("right", 0.3, 0.6)):
        finger = rb.Inertia(mass, cg=(0.02, 0.03, 0.01), inertia=(1e-3, 2e-3, 2e-3))
        builder.add_body(
            name, parent="arm", joint=rb.Prismatic((0, 1, 0)), placement=rb.Pose((x, 0, 0.1)), inertia=finger
        )
    builder.add_constraint(rb.CouplerConstraint("mimic", joint="right", other="left", ratio=ratio, offset=0.01))
    return builder.build()


def geared(ratio=3.0, inertia=0.02):
    """A pendulum on another one, with a rotor that a gear couples to the second joint, and the same as one armature."""
    models = []
    for has_rotor in (True, False):
        builder = rb.ModelBuilder(gravity=GRAVITY)
        for name, parent in (("upper", None), ("lower", "upper")):
            place, rod = rb.Pose((1.0, 0, 0)) if parent else None, rb.Inertia(1.5, cg=(0.5, 0, 0), inertia=(0.1,) * 3)
            builder.add_body(name, parent=parent, joint=rb.Revolute(), placement=place, inertia=rod)
        if has_rotor:
            builder.add_body("rotor", joint=rb.Revolute(), inertia=rb.Inertia(0.1, inertia=(inertia,) * 3))
            builder.add_constraint(rb.CouplerConstraint("gear", joint="rotor", other="lower", ratio=ratio))
        models.append(builder.build())
    return models[0], models[1].replace(rotor_inertia=[0.0, inertia], gear_ratio=[1.0, ratio])


# --- derivatives of inverse dynamics ----------------------------------------------------------------------------------


@pytest.mark.slow_cases("motors2")
@plain
@pytest.mark.parametrize(
    "name, motors",
    [
        ("four-bar", ["crank"]),
        ("four-bar with a hinge", ["rocker", "coupler", "crank"]),
        ("hung plate", ["arm", "plate"]),
        ("gripper", ["left", "arm"]),
        ("gripper", ["arm", "left", "right"]),
    ],
)
def test_derivatives_of_motor_forces_agree_with_differences_along_closed_motions(name, motors):
    chain = closed_chain(name) if name != "gripper" else None
    model = gripper(0.7) if chain is None else chain.model
    rng = np.random.default_rng(3)
    if chain is None:
        q0 = model.assemble(rng.normal(size=3))
        qd0, tau0 = model.assemble_velocities(q0, rng.normal(size=3)), rng.normal(size=3)
    else:
        q0, qd0, tau0 = closed_state(chain)
    dq, dqd, dtau = rng.normal(size=(3, model.nv))

    def state(s):
        q = model.assemble(model.integrate(q0, s * dq))
        qd = model.assemble_velocities(q, qd0 + s * dqd)
        return q, qd, model.forward_dynamics(q, qd, tau0 + s * dtau, passive=True)

    def values(s):
        q, qd, qdd = state(s)
        return model.difference(q0, q), qd, qdd, model.inverse_dynamics(q, qd, qdd, actuated=motors, passive=True)

    by_states = model.inverse_dynamics_derivatives(*state(0.0), actuated=motors, passive=True)
    *changes, expected = slopes(values)
    found = sum(by @ change for by, change in zip(by_states, changes, strict=True))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(by_states[0]).max())


@plain
def test_derivatives_of_a_geared_motor_are_those_of_the_tree_with_an_armature():
    """Motions of the independent joints are S x with a constant S, so the derivatives of S^T tau are S^T D S."""
    model, tree = geared()
    S = np.array([[1.0, 0], [0, 1], [0, 3]])
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.normal(size=(3, 4, 2))
    found = model.inverse_dynamics_derivatives(q @ S.T, qd @ S.T, qdd @ S.T, actuated=["upper", "lower"])
    expected = tree.inverse_dynamics_derivatives(q, qd, qdd)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own @ S, other, rtol=0, atol=1e-11)


@plain
def test_derivatives_of_batches_varied_models_and_float32():
    model = gripper()
    rng = np.random.default_rng(2)
    varied = model.vary(mass=model.mass * rng.uniform(0.8, 1.2, (3, 3)), constraint_ratio=[[-1.0], [0.5], [2.0]])
    q = varied.assemble(rng.normal(size=(3, 3)))
    qd = varied.assemble_velocities(q, rng.normal(size=(3, 3)))
    qdd = varied.forward_dynamics(q, qd)
    motors = ["arm", "right"]
    out = np.empty((3, 3, 2, 3))
    found = varied.inverse_dynamics_derivatives(q, qd, qdd, actuated=motors, out=out)
    for i in range(3):
        alone = varied[i].inverse_dynamics_derivatives(q[i], qd[i], qdd[i], actuated=motors)
        for part in range(3):
            assert np.shares_memory(found[part], out)
            np.testing.assert_allclose(found[part][i], alone[part], rtol=1e-10, atol=1e-10)
    single = varied.inverse_dynamics_derivatives(*(x.astype(np.float32) for x in (q, qd, qdd)), actuated=motors)
    assert single[0].dtype == np.float32
    np.testing.assert_allclose(single[0], found[0], rtol=0, atol=1e-4)
    empty = model.inverse_dynamics_derivatives(*np.empty((3, 0, 3)), actuated=motors)
    assert [x.shape for x in empty] == [(0, 2, 3)] * 3
    with pytest.raises(rb.ModelError, match="has no constraints"):
        model.open_tree().inverse_dynamics_derivatives(q[0], q[0], q[0], actuated=motors)


# --- hybrid dynamics --------------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("hinged arm", "welded and geared")
@plain
@pytest.mark.parametrize("name", ["four-bar", "four-bar with a hinge", "hinged arm", "welded and geared"])
def test_forces_of_hybrid_dynamics_cause_its_accelerations(name):
    chain = closed_chain(name)
    model = chain.model
    q, qd, tau = closed_state(chain, batch=(4,))
    rng = np.random.default_rng(5)
    wrenches = rng.normal(size=(4, model.n_bodies, 6))
    wanted = model.forward_dynamics(q, qd, rng.normal(size=(4, model.nv)), wrenches, passive=True)
    prescribed = rng.random((4, model.nv)) < [[0.0], [0.3], [0.6], [1.0]]
    unused = np.where(prescribed, np.nan, tau), np.where(prescribed, wanted, np.nan)
    qdd, found = model.hybrid_dynamics(q, qd, *unused, prescribed, wrenches, passive=True)
    forward = model.forward_dynamics(q, qd, found, wrenches, passive=True)
    np.testing.assert_allclose(qdd, forward, rtol=0, atol=1e-11 * (1 + np.abs(forward).max()))
    np.testing.assert_allclose(qdd[prescribed], wanted[prescribed], rtol=0, atol=1e-11 * (1 + np.abs(wanted).max()))
    np.testing.assert_array_equal(found[~prescribed], tau[~prescribed])
    joints = [list(model.joint_names)]
    smallest = model.inverse_dynamics(q[3], qd[3], wanted[3], wrenches[3], actuated=joints[0], passive=True)
    np.testing.assert_allclose(found[3], smallest, rtol=0, atol=1e-10 * (1 + np.abs(smallest).max()))


@plain
def test_hybrid_dynamics_of_a_geared_rotor_is_the_one_of_the_tree_with_an_armature():
    model, tree = geared()
    S = np.array([[1.0, 0], [0, 1], [0, 3]])
    rng = np.random.default_rng(1)
    q, qd, tau, qdd = rng.normal(size=(4, 6, 2))
    for prescribed in ([True, False], [False, True]):
        expected = tree.hybrid_dynamics(q, qd, tau, qdd, prescribed)
        forces = np.column_stack([tau, np.zeros(6)])
        found = model.hybrid_dynamics(q @ S.T, qd @ S.T, forces, qdd @ S.T, [*prescribed, False])
        np.testing.assert_allclose(found[0], expected[0] @ S.T, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found[1][:, :2], expected[1], rtol=0, atol=1e-10)


@plain
def test_hybrid_dynamics_of_samples_that_fail_single_precision_and_out():
    model = gripper()
    q = model.assemble(np.ones(3)) * np.ones((3, 1))
    q[1] = np.nan
    qd, prescribed = np.zeros((3, 3)), np.array([True, False, False])
    out = np.empty((3, 2, 3))
    qdd, tau = model.hybrid_dynamics(q, qd, 0 * qd, qd, prescribed, out=out)
    assert np.shares_memory(qdd, out)
    assert np.isnan(out[1]).all()
    alone = model.hybrid_dynamics(q[2], qd[2], 0.0, qd[2], prescribed)
    np.testing.assert_allclose(out[[0, 2]], np.stack([alone, alone]), rtol=0, atol=1e-12)
    single = model.hybrid_dynamics(*(x.astype(np.float32) for x in (q[0], qd[0], qd[0], qd[0])), prescribed)
    assert single[1].dtype == np.float32
    np.testing.assert_allclose(single[1], tau[0], rtol=0, atol=1e-4)
    empty = model.hybrid_dynamics(*np.empty((4, 0, 3)), prescribed)
    assert [x.shape for x in empty] == [(0, 3)] * 2


# --- controllers ------------------------------------------------------------------------------------------------------


def holding(*joints, **options):
    """Drives that add only gravity compensation."""
    return [rb.PID(joint, 0.0, kp=0.0, gravity_compensation=True, **options) for joint in joints]


@plain
@pytest.mark.parametrize("method", ["rk45", "dop853", "rk4", "implicit", "moreau"])
@pytest.mark.parametrize("joints", [("arm", "left"), ("arm", "right"), ("arm", "left", "right")])
def test_gravity_compensation_holds_coupled_fingers(joints, method):
    model = gripper(0.7)
    q = model.assemble([0.3, 0.1, 0.2])
    step = {} if method in ("rk45", "dop853") else {"step": 0.01}
    motion = model.simulate(q, duration=0.1, drives=holding(*joints), method=method, save_at=3, **step)
    np.testing.assert_allclose(motion.q, np.broadcast_to(q, (3, 3)), rtol=0, atol=1e-10)
    forces = model.gravity_forces(q)
    if len(joints) == 2:  # the undriven finger's gravity force, through the ratio 0.7 of the coupler
        mapped = forces[1] + 0.7 * forces[2]
        forces = [forces[0], *((mapped, 0.0) if "left" in joints else (0.0, mapped / 0.7))]
    np.testing.assert_allclose(motion.tau[-1], forces, rtol=0, atol=1e-10)


@plain
@pytest.mark.parametrize(
    "name, joints",
    [
        ("four-bar", ["crank"]),
        ("four-bar with a hinge", ["rocker"]),
        ("four-bar with a hinge", ["crank", "coupler", "rocker"]),
    ],
)
def test_gravity_compensation_holds_loops(name, joints):
    chain = closed_chain(name)
    q, _, _ = closed_state(chain, batch=(2,))
    found = chain.model.accelerations(q, 0 * q, drives=holding(*joints))
    np.testing.assert_allclose(found, 0.0, rtol=0, atol=1e-11)


@plain
def test_joints_without_compensation_move_as_in_a_tree():
    """An arm with compensation gets its own gravity force, and the fingers without it slide."""
    model = gripper()
    q = model.assemble([0.3, 0.1, 0.2])
    tau = model.gravity_forces(q) * [1, 0, 0]
    found = model.accelerations(q, np.zeros(3), drives=holding("arm"))
    np.testing.assert_allclose(found, model.forward_dynamics(q, np.zeros(3), tau), rtol=0, atol=1e-11)


@plain
def test_compensation_uses_the_controllers_model():
    model = gripper()
    varied = model.vary(mass=model.mass * [[1.0, 1.5, 1.2], [0.9, 1.0, 2.0]], constraint_ratio=[[-1.0], [-0.5]])
    q = varied.assemble(np.full((2, 3), 0.2))
    forces = model.gravity_forces(q)
    tau = np.stack([forces[:, 0], forces[:, 1] - forces[:, 2], 0 * forces[:, 0]], -1)  # with the nominal ratio
    found = varied.accelerations(q, 0 * q, drives=holding("arm", "left"))
    np.testing.assert_allclose(found, varied.forward_dynamics(q, 0 * q, tau), rtol=0, atol=1e-10)
    own = varied.accelerations(q, 0 * q, drives=holding("arm", "left", controller_model="own"))
    np.testing.assert_allclose(own, 0.0, rtol=0, atol=1e-11)


@pytest.mark.slow
@plain
@pytest.mark.parametrize("joints", [("upper", "lower"), ("lower",), ("upper",)])
def test_computed_torque_of_a_geared_arm_is_the_one_of_the_tree_with_an_armature(joints):
    model, tree = geared()
    S = np.array([[1.0, 0], [0, 1], [0, 3]])
    drives = [rb.ComputedTorque(joint, rb.Signal.sines(0.4, 2.0), kp=30.0, kd=7.0) for joint in joints]
    q, qd = np.array([0.2, -0.4]), np.array([0.3, 0.1])
    found = model.simulate(S @ q, S @ qd, 0.5, drives=drives, rtol=1e-11, atol=1e-12, save_at=4)
    expected = tree.simulate(q, qd, 0.5, drives=drives, rtol=1e-11, atol=1e-12, save_at=4)
    np.testing.assert_allclose(found.q, expected.q @ S.T, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.tau[:, :2], expected.tau, rtol=0, atol=1e-7)


@plain
def test_computed_torque_accelerates_a_joint_of_a_loop_as_wanted():
    chain = closed_chain("four-bar")
    q, qd, _ = closed_state(chain, batch=(3,))
    reference = rb.Signal.polynomial([0.1, 0.2, 0.3])
    drives = [rb.ComputedTorque("rocker", reference, kp=3.0, kd=2.0), rb.PID("crank", 0.2, kp=4.0)]
    found = chain.model.accelerations(q, qd, t=0.5, drives=drives)
    wanted = 0.6 + 3.0 * (reference(0.5) - q[:, 2]) + 2.0 * (0.5 - qd[:, 2])
    np.testing.assert_allclose(found[:, 2], wanted, rtol=0, atol=1e-11)


REFUSED = {
    "two of three joints": (
        holding("crank", "rocker"),
        {},
        r"gravity_compensation acts on \['crank', 'rocker'\].*\(1\).*model.lock",
    ),
    "dependent torques": (
        [rb.ComputedTorque(joint, 0.1, kp=1.0, kd=1.0) for joint in ("crank", "rocker")],
        {},
        r'ComputedTorque: the constraints \[\'tip\'\] couple .*model.lock\({"rocker": position}\)',
    ),
    "a method with Jacobians": (holding("crank"), {"method": "rosenbrock"}, "no derivatives in closed loops"),
    "derivatives of motions": (holding("crank"), {"derivatives": ["mass"]}, "no derivatives in closed loops"),
}


@plain
@pytest.mark.parametrize("case", REFUSED)
def test_controllers_that_are_not_supported_are_refused(case):
    drives, options, message = REFUSED[case]
    chain = closed_chain("four-bar")
    q, qd, _ = closed_state(chain)
    with pytest.raises(rb.ArgumentError, match=message):
        chain.model.simulate(q, qd, 0.1, drives=drives, save_at=2, **options)


@plain
def test_loops_of_the_controllers_model_need_the_same_geometry():
    model = closed_chain("four-bar").model
    points = model.constraint_point_a * [[[1.0, 1, 1]], [[1.01, 1, 1]]]
    many = model.vary(constraint_point_a=points)
    q = many.assemble(np.tile(closed_chain("four-bar").guess, (2, 1)))
    with pytest.raises(rb.ArgumentError, match=r'constraint_point_a differs.*controller_model="own"'):
        many.accelerations(q, 0 * q, drives=holding("crank"))
    own = many.accelerations(q, 0 * q, drives=holding("crank", controller_model="own"))
    np.testing.assert_allclose(own, 0.0, rtol=0, atol=1e-11)


@plain
@pytest.mark.filterwarnings("ignore:.*unknown names")
def test_a_panda_as_shipped_stays_at_rest():
    model = rb.load(PANDA)
    q = model.assemble([0.1, -0.4, 0.3, -2.0, 0.2, 1.7, 0.5, 0.02, 0.02])
    arm = model.joint_names[:7]
    for joints in ((*arm, "panda_finger_joint1"), model.joint_names):
        found = model.accelerations(q, np.zeros(9), drives=holding(*joints))
        np.testing.assert_allclose(found, 0.0, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_lanes_compensate_gravity():
    """All samples of a batch rest, in lanes and with compiled code."""
    model = gripper(0.7)
    q = np.random.default_rng(1).normal(size=(9, 3))
    q[:, 2] = 0.7 * q[:, 1] + 0.01
    drives = [*holding("right"), rb.ComputedTorque("arm", q[:, 0], kp=0.0, kd=0.0)]
    found = model.accelerations(q, 0 * q, drives=drives)
    np.testing.assert_allclose(found, 0.0, rtol=0, atol=1e-11)
