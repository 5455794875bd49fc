"""Closed chains in one state: an independent solver in maximal coordinates, other programs, identities, and errors."""

import pickle

import numpy as np
import pytest
import scipy.optimize
from scipy.spatial.transform import Rotation

import rbchain as rb

from .closed_chains import CHAINS, benchmark, closed_chain, closed_state, four_bar, held_cable, polygon, random_turn
from .mechanisms import random_inertia, random_rotation
from .oracles.maximal_coordinates import as_doubles, closed_chain_dynamics
from .quantities import derivative

plain = pytest.mark.plain_python
# Accuracy of accelerations and forces relative to the largest one; the state itself is closed to 1e-15.
EXACT = 1e-11
every_chain = pytest.mark.parametrize("name", CHAINS)


def assert_close(found, expected, relative=EXACT, scale=None):
    scale = np.abs(expected).max() if scale is None else scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * scale)


# --- an independent solver --------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("Andrews' squeezer", "Bricard", "hinged arm", "welded and geared")
@plain
@every_chain
def test_accelerations_and_forces_agree_with_maximal_coordinates_at_50_digits(name):
    chain = closed_chain(name)
    model, state = chain.model, closed_state(chain)
    qdd, multipliers = closed_chain_dynamics(model, chain.constraints, *state)
    assert_close(model.forward_dynamics(*state), as_doubles(qdd))
    if multipliers is None:  # the rows depend on each other: J^T lambda is unique, and lambda has the minimum norm
        joint_forces = model.mass_matrix(state[0]) @ as_doubles(qdd)
        joint_forces = joint_forces + model.bias_forces(*state[:2]) - state[2]
        multipliers = np.linalg.pinv(model.constraint_jacobian(state[0]).T, rcond=1e-10) @ joint_forces
        assert_close(model.constraint_forces(*state), multipliers, 1e-10)
    else:
        assert_close(model.constraint_forces(*state), as_doubles(multipliers))


@plain
@pytest.mark.parametrize("name", ["A02_N2", "A03_andrews", "A03_beta0062"])
def test_benchmark_mechanisms_have_the_published_accelerations(name):
    chain, reference = benchmark(name)
    first = reference["first_state"]
    tau = [body["tau"] for body in reference["bodies"]]
    springs = [] if "springs" not in reference else [andrews_spring(reference)]
    wrenches = chain.model.wrenches_between_bodies(first["q"], first["v"], springs)
    qdd = chain.model.forward_dynamics(first["q"], first["v"], tau, wrenches)
    assert_close(qdd, np.array(first["qdd"]))
    multipliers = chain.model.constraint_forces(first["q"], first["v"], tau, wrenches).reshape(-1, 3)
    assert_close(multipliers[:, :2].reshape(-1), np.array(first["loop_multipliers"]))
    assert_close(multipliers[:, 2], 0.0, scale=np.abs(multipliers).max())


def andrews_spring(reference):
    (spring,) = reference["springs"]
    body = reference["bodies"][spring["b"]]["name"]
    return rb.SpringDamper(
        None,
        body,
        point_a=spring["pa"],
        point_b=spring["pb"],
        stiffness=spring["stiffness"],
        damping=spring["damping"],
        rest_length=spring["rest_length"],
    )


@pytest.mark.fast_cases("<lambda>1")
@plain
@pytest.mark.parametrize("build", [lambda: held_cable(8), polygon, lambda: polygon(rotation=random_turn())])
def test_long_loops_agree_with_the_dense_equations(build):
    """The dense equations, solved by the pseudo-inverse of M^-1/2-weighted rows, which allows dependent rows."""
    chain = build()
    model, state = chain.model, closed_state(chain)
    assert_close(model.forward_dynamics(*state), dense_dynamics(model, *state)[0], 1e-9)


def dense_dynamics(model, q, qd, tau):
    """Accelerations and multipliers of minimum norm from the mass matrix, the Jacobian and its rate."""
    J, h = model.constraint_jacobian(q), model.bias_forces(q, qd)
    rate = derivative(lambda s: model.constraint_jacobian(model.integrate(q, s * qd)) @ qd)
    L = np.linalg.cholesky(model.mass_matrix(q))
    weighted = np.linalg.solve(L, J.T)  # L^-1 J^T
    free = np.linalg.solve(L, tau - h)
    correction = np.linalg.pinv(weighted.T, rcond=1e-10) @ (-rate - weighted.T @ free)
    return np.linalg.solve(L.T, free + correction), np.linalg.pinv(weighted, rcond=1e-10) @ correction


# --- identities -------------------------------------------------------------------------------------------------------


@plain
@every_chain
def test_the_jacobian_is_the_derivative_of_the_residual(name):
    chain = closed_chain(name)
    model, rng = chain.model, np.random.default_rng(1)
    q = model.integrate(chain.guess, 0.1 * rng.normal(size=model.nv))  # an open configuration, too
    J = model.constraint_jacobian(q)
    for dq in rng.normal(size=(3, model.nv)):
        rate = derivative(lambda s, dq=dq: model.constraint_residual(model.integrate(q, s * dq)))
        assert_close(J @ dq, rate, 1e-9, scale=1.0)


@pytest.mark.slow_cases("hung plate")
@plain
@every_chain
def test_constraints_have_no_acceleration_and_no_power(name):
    chain = closed_chain(name)
    model, (q, qd, tau) = chain.model, closed_state(chain, seed=2)
    qdd, J = model.forward_dynamics(q, qd, tau), model.constraint_jacobian(q)
    rate = derivative(lambda s: model.constraint_jacobian(model.integrate(q, s * qd)) @ qd)
    assert_close(J @ qdd + rate, 0.0, 1e-8, scale=np.abs(J).max() * np.abs(qdd).max())
    forces = J.T @ model.constraint_forces(q, qd, tau)
    assert_close(forces @ qd, 0.0, 1e-13, scale=np.abs(forces).max() * np.abs(qd).max())
    balance = model.mass_matrix(q) @ qdd + model.bias_forces(q, qd) - tau - forces
    assert_close(balance, 0.0, 1e-11, scale=np.abs(forces).max() + np.abs(tau).max())


@plain
@every_chain
def test_the_forces_on_each_body_balance(name):
    chain = closed_chain(name)
    model, state = chain.model, closed_state(chain, seed=3)
    wrenches = np.random.default_rng(3).normal(size=(model.n_bodies, 6))
    residual = model.force_balance_residual(*state, wrenches)
    scale = np.abs(model.constraint_forces(*state, wrenches)).max() + np.abs(wrenches).max()
    assert_close(residual, 0.0, 1e-11, scale=scale)


@plain
@every_chain
def test_the_rate_of_energy_is_the_power_of_the_motors(name):
    """It follows from the accelerations and the gradient of the energy."""
    chain = closed_chain(name)
    model, (q, qd, tau) = chain.model, closed_state(chain, seed=4)
    qdd = model.forward_dynamics(q, qd, tau)
    rate = derivative(lambda s: sum(model.energy(model.integrate(q, s * qd), qd + s * qdd)))
    np.testing.assert_allclose(rate, tau @ qd, rtol=0, atol=1e-8 * np.abs(qdd).max() * np.abs(qd).max())


@plain
@pytest.mark.parametrize(
    ("name", "actuated"),
    [("four-bar", ["crank"]), ("Bricard", ["bar2"]), ("hinged arm", ["link0", "load"])],
)
def test_inverse_dynamics_returns_the_forces_of_the_motors(name, actuated):
    chain = closed_chain(name)
    model, (q, qd, tau) = chain.model, closed_state(chain, seed=5, batch=(2,))
    dofs = np.concatenate([dofs_of(model, joint) for joint in actuated])
    motors = np.zeros_like(tau)
    motors[..., dofs] = tau[..., dofs]
    found = model.inverse_dynamics(q, qd, model.forward_dynamics(q, qd, motors), actuated=actuated)
    assert_close(found, motors[..., dofs], 1e-9)


def dofs_of(model, joint):
    i = model.joint_names.index(joint)
    ends = [*model.velocity_index, model.nv]
    return np.arange(ends[i], ends[i + 1])


@plain
def test_redundant_motors_share_the_forces_with_the_minimum_norm():
    model, (q, qd, _) = closed_chain("four-bar").model, closed_state(closed_chain("four-bar"), seed=6)
    qdd = model.forward_dynamics(q, qd, [1.0, 0.0, 0.0])
    tau = model.inverse_dynamics(q, qd, qdd, actuated=["crank", "coupler", "rocker"])
    # the mechanism has one degree of freedom, with the directions null(J): tau = n (n . tau) for a unit vector n
    _, _, Vt = np.linalg.svd(model.constraint_jacobian(q))
    direction = Vt[-1]
    assert_close(tau, direction * direction[0], 1e-12)
    assert_close(model.forward_dynamics(q, qd, tau), qdd)


@plain
def test_two_equal_constraints_share_the_force_in_halves():
    chain = closed_chain("hinged arm")
    builder = rb.ModelBuilder(gravity=chain.model.gravity)
    builder.add_model(chain.model)
    pin = chain.constraints[0]
    again = rb.HingeConstraint(
        "again", "link3", "load", point_a=pin.point_a, point_b=pin.point_b, axis_a=pin.axis_a, axis_b=pin.axis_b
    )
    if not builder.build().constraint_names:
        builder.add_constraint(pin)
    builder.add_constraint(again)
    twice, state = builder.build(), closed_state(chain)
    single = chain.model.constraint_forces(*state)
    assert_close(twice.forward_dynamics(*state), chain.model.forward_dynamics(*state))
    assert_close(twice.constraint_forces(*state), np.concatenate([single, single]) / 2)


@plain
@pytest.mark.parametrize("name", ["four-bar", "turned four-bar", "four-bar with a hinge", "Bricard"])
def test_dependent_rows_get_multipliers_of_minimum_norm(name):
    chain = closed_chain(name)
    state = closed_state(chain, seed=7)
    qdd, multipliers = dense_dynamics(chain.model, *state)
    # pinv of L^-1 J^T gives minimum norm of lambda for the forces J^T lambda
    assert_close(chain.model.forward_dynamics(*state), qdd, 1e-9)
    assert_close(chain.model.constraint_forces(*state), multipliers, 1e-8)


@plain
def test_a_weld_replaces_a_fixed_joint():
    rng, halves = np.random.default_rng(11), {}
    pose_a, pose_b = (rb.Pose(rng.normal(size=3) * 0.2, random_rotation(rng)) for _ in range(2))
    inertias = [random_inertia(rng) for _ in range(3)]
    axes = rng.normal(size=(2, 3))
    for way in ("fixed", "welded"):
        builder = rb.ModelBuilder(gravity=(1, 2, -9))
        builder.add_body("one", joint=rb.Revolute(axes[0]), inertia=inertias[0])
        builder.add_body(
            "two", parent="one", joint=rb.Revolute(axes[1]), placement=rb.Pose((0.3, 0, 0)), inertia=inertias[1]
        )
        if way == "fixed":
            builder.add_body(
                "end", parent="two", joint=rb.Fixed(), placement=pose_a @ pose_b.inverse(), inertia=inertias[2]
            )
        else:
            builder.add_body("end", joint=rb.Free(), inertia=inertias[2])
            builder.add_constraint(rb.WeldConstraint("weld", "two", "end", pose_a=pose_a, pose_b=pose_b))
        halves[way] = builder.build()
    fixed, welded = halves["fixed"], halves["welded"]
    q, qd, tau = rng.normal(size=(3, 2))
    pose = fixed.frame_poses(q, "end")
    guess = [*q, *pose.translation, 0, 0, 0, 1.0]
    guess[5:9] = Rotation.from_matrix(pose.rotation).as_quat()
    closed = welded.assemble(guess, fixed=["one", "two"])
    velocities = welded.assemble_velocities(closed, [*qd, *np.zeros(6)], fixed=["one", "two"])
    found = welded.forward_dynamics(closed, velocities, [*tau, *np.zeros(6)])
    assert_close(found[:2], fixed.forward_dynamics(q, qd, tau))


@plain
def test_a_gear_agrees_with_the_eliminated_coordinate():
    """With q = G x + g for the independent coordinates x, the equations are G^T M G x'' = G^T (tau - h)."""
    rng, builder = np.random.default_rng(12), rb.ModelBuilder(gravity=(1, 2, -9))
    for i in range(4):
        joint = rb.Prismatic(rng.normal(size=3)) if i == 2 else rb.Revolute(rng.normal(size=3))
        parent = f"link{i - 1}" if i else None
        builder.add_body(
            f"link{i}", parent=parent, joint=joint, placement=rb.Pose((0.2, 0, 0)), inertia=random_inertia(rng)
        )
    builder.add_constraint(rb.CouplerConstraint("rack", "link2", "link0", ratio=0.3, offset=0.1))
    builder.add_constraint(rb.CouplerConstraint("gear", "link3", "link2", ratio=-4.0))
    model = builder.build()
    G = np.array([[1, 0], [0, 1], [0.3, 0], [-1.2, 0]])
    x, xd = rng.normal(size=(2, 2))
    q, qd, tau = G @ x + [0, 0, 0.1, -0.4], G @ xd, rng.normal(size=4)
    assert_close(model.constraint_residual(q), 0.0, 1e-15, scale=1.0)
    M, h = model.mass_matrix(q), model.bias_forces(q, qd)
    expected = G @ np.linalg.solve(G.T @ M @ G, G.T @ (tau - h))
    assert_close(model.forward_dynamics(q, qd, tau), expected)


@plain
def test_a_locked_crank_keeps_the_loop_closed():
    """A plane polygon of five links with one joint locked moves as with a prescribed acceleration of zero."""
    chain = polygon(5)
    model, rng = chain.model, np.random.default_rng(13)
    q = model.assemble(chain.guess)
    locked = model.lock({"link1": q[1]})
    assert locked.constraint_names == model.constraint_names
    rest = np.delete(np.arange(5), 1)
    qd = model.assemble_velocities(q, rng.normal(size=5) * (np.arange(5) != 1), fixed=["link1"])
    tau = rng.normal(size=5)
    qdd = locked.forward_dynamics(q[rest], qd[rest], tau[rest])
    # the torque that holds the joint: its acceleration is affine in it
    without, with_unit = (model.forward_dynamics(q, qd, tau + s * np.eye(5)[1]) for s in (0.0, 1.0))
    hold = -without[1] / (with_unit[1] - without[1])
    assert_close(qdd, model.forward_dynamics(q, qd, tau + hold * np.eye(5)[1])[rest], 1e-10)


@plain
@pytest.mark.parametrize("count", [1, 20])
def test_constraints_act_in_water_and_in_any_number(count):
    """A floating body on redundant rods. In water, the memory of a driver has no room to spare."""
    rng, builder = np.random.default_rng(20), rb.ModelBuilder(gravity=(0, 1, -9), fluid_density=1000.0 * (count == 1))
    root = rng.normal(size=(6, 6))
    water = rb.Immersion(5e-4, buoyancy_center=(0.1, 0, 0), added_mass=0.1 * root @ root.T)
    builder.add_body("buoy", joint=rb.Free(), inertia=random_inertia(rng), immersion=water if count == 1 else None)
    builder.add_body("arm", joint=rb.Revolute((0, 1, 0)), inertia=random_inertia(rng))
    for i in range(count):
        builder.add_constraint(
            rb.DistanceConstraint(f"rod{i}", "arm", "buoy", point_a=(0.5, 0, 0.1), point_b=(0.1, 0.2, 0), length=0.8)
        )
    model = builder.build()
    q = model.assemble([0.5, 0.3, 0.8, 0, 0, 0, 1, 0.2])
    qd, tau = model.assemble_velocities(q, rng.normal(size=7)), rng.normal(size=7)
    qdd, multipliers = dense_dynamics(model, q, qd, tau)
    assert_close(model.forward_dynamics(q, qd, tau), qdd, 1e-9)
    assert_close(model.constraint_forces(q, qd, tau), multipliers, 1e-9)
    assert_close(model.force_balance_residual(q, qd, tau), 0.0, 1e-11, scale=np.abs(tau).max() + 10)
    motion = model.simulate(q, qd, 0.05, rtol=1e-6, save_at=2)
    assert motion.success
    assert_close(model.constraint_residual(motion.q), 0.0, 1e-12, scale=1.0)


# --- other programs ---------------------------------------------------------------------------------------------------


@plain
@pytest.mark.parametrize("kind", ["3D", "6D"])
def test_pinocchio_computes_the_same_constrained_accelerations(kind):
    """Seven revolute joints in series with the tip held; Pinocchio solves it with a damping of 1e-14."""
    pin = pytest.importorskip("pinocchio")
    rng, builder, other = np.random.default_rng(14), rb.ModelBuilder(gravity=(0, 0, -9.81)), pin.Model()
    count = 7
    for i in range(count):
        inertia, pose = random_inertia(rng), rb.Pose(rng.normal(size=3) * 0.3, random_rotation(rng))
        builder.add_body(
            f"link{i}", parent=f"link{i - 1}" if i else None, joint=rb.Revolute(), placement=pose, inertia=inertia
        )
        place = pin.SE3(pose.rotation, pose.translation)
        joint = other.addJoint(i, pin.JointModelRZ(), place, f"link{i}")
        own = pin.Inertia(inertia.mass, np.array(inertia.cg), np.array(inertia.inertia))
        other.appendBodyToJoint(joint, own, pin.SE3.Identity())
    q, qd_guess, tau = rng.normal(size=(3, count))
    data = other.createData()
    pin.forwardKinematics(other, data, q)
    tip = pin.SE3(random_rotation(rng), rng.normal(size=3) * 0.2)
    at_world = data.oMi[count] * tip
    world = rb.Pose(at_world.translation, at_world.rotation)
    own = rb.Pose(tip.translation, tip.rotation)
    if kind == "3D":
        builder.add_constraint(
            rb.BallConstraint("tip", None, f"link{count - 1}", point_a=world.translation, point_b=own.translation)
        )
    else:
        builder.add_constraint(rb.WeldConstraint("tip", None, f"link{count - 1}", pose_a=world, pose_b=own))
    model = builder.build()
    qd = model.assemble_velocities(q, qd_guess)
    contact = pin.ContactType.CONTACT_3D if kind == "3D" else pin.ContactType.CONTACT_6D
    held = pin.RigidConstraintModel(contact, other, 0, at_world, count, tip, pin.LOCAL)
    constraints, datas = [held], [held.createData()]
    settings = pin.ProximalSettings(1e-14, 1e-14, 50)
    pin.initConstraintDynamics(other, data, constraints, datas)
    expected = pin.constraintDynamics(other, data, q, qd, tau, constraints, datas, settings)
    assert_close(model.forward_dynamics(q, qd, tau), expected, 1e-9)


@plain
@pytest.mark.parametrize("kind", ["3D", "6D"])
def test_pinocchio_computes_the_same_accelerations_and_forces_of_a_loop_of_two_branches(kind):
    """The ends of two branches, which both move, are joined; Pinocchio's forces are in the frame of the first one."""
    pin = pytest.importorskip("pinocchio")
    rng, builder, other = np.random.default_rng(19), rb.ModelBuilder(gravity=(0, 0, -9.81)), pin.Model()
    for i, parent in enumerate([-1, 0, 1, 2, -1, 4, 5, 6]):
        inertia, pose = random_inertia(rng), rb.Pose(rng.normal(size=3) * 0.3, random_rotation(rng))
        above = None if parent < 0 else f"link{parent}"
        builder.add_body(f"link{i}", parent=above, joint=rb.Revolute(), placement=pose, inertia=inertia)
        joint = other.addJoint(parent + 1, pin.JointModelRZ(), pin.SE3(pose.rotation, pose.translation), f"link{i}")
        own = pin.Inertia(inertia.mass, np.array(inertia.cg), np.array(inertia.inertia))
        other.appendBodyToJoint(joint, own, pin.SE3.Identity())
    q, qd_guess, tau = rng.normal(size=(3, 8))
    data = other.createData()
    pin.forwardKinematics(other, data, q)
    place_a = pin.SE3(random_rotation(rng), rng.normal(size=3) * 0.2)
    place_b = data.oMi[8].inverse() * data.oMi[4] * place_a
    pose_a, pose_b = (rb.Pose(place.translation, place.rotation) for place in (place_a, place_b))
    if kind == "3D":
        loop = rb.BallConstraint("loop", "link3", "link7", point_a=pose_a.translation, point_b=pose_b.translation)
    else:
        loop = rb.WeldConstraint("loop", "link3", "link7", pose_a=pose_a, pose_b=pose_b)
    builder.add_constraint(loop)
    model = builder.build()
    qd = model.assemble_velocities(q, qd_guess)
    contact = pin.ContactType.CONTACT_3D if kind == "3D" else pin.ContactType.CONTACT_6D
    joined = pin.RigidConstraintModel(contact, other, 4, place_a, 8, place_b, pin.LOCAL)
    constraints, datas = [joined], [joined.createData()]
    pin.initConstraintDynamics(other, data, constraints, datas)
    settings = pin.ProximalSettings(1e-14, 1e-14, 50)
    expected = pin.constraintDynamics(other, data, q, qd, tau, constraints, datas, settings)
    assert_close(model.forward_dynamics(q, qd, tau), expected)
    force = (data.oMi[4] * place_a).rotation @ datas[0].contact_force.linear  # on link3
    assert_close(-model.constraint_forces(q, qd, tau)[:3], force)


@plain
def test_mujoco_has_the_same_rows():
    """Rows of `connect` are those of a ball with the bodies exchanged, and of `joint` those of a coupler."""
    mujoco = pytest.importorskip("mujoco")
    text = """
    <mujoco><option gravity="0 0 -9.81" jacobian="dense"/><worldbody>
      <body name="crank"><joint name="crank" axis="0 1 0"/><geom size=".1" mass="1"/>
        <body name="coupler" pos=".3 0 0"><joint name="coupler" axis=".1 1 0"/><geom size=".1" mass="1"/></body></body>
      <body name="rocker" pos="1 0 0"><joint name="rocker" axis="0 1 .2"/><geom size=".1" mass="1"/></body>
    </worldbody><equality>
      <connect body1="coupler" body2="rocker" anchor=".7 0 .1"/>
      <joint joint1="rocker" joint2="crank" polycoef=".1 .5 0 0 0"/>
    </equality></mujoco>"""
    other = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(other)
    data.qpos[:] = q = [0.3, -0.2, 0.4]
    mujoco.mj_forward(other, data)
    builder = rb.ModelBuilder()
    ball = rb.Inertia(1.0, inertia=(1, 1, 1))
    builder.add_body("crank", joint=rb.Revolute((0, 1, 0)), inertia=ball)
    builder.add_body(
        "coupler", parent="crank", joint=rb.Revolute((0.1, 1, 0)), placement=rb.Pose((0.3, 0, 0)), inertia=ball
    )
    builder.add_body("rocker", joint=rb.Revolute((0, 1, 0.2)), placement=rb.Pose((1, 0, 0)), inertia=ball)
    builder.add_constraint(rb.BallConstraint("loop", "rocker", "coupler", point_a=(0, 0, 0.1), point_b=(0.7, 0, 0.1)))
    builder.add_constraint(rb.CouplerConstraint("gear", "rocker", "crank", ratio=0.5, offset=0.1))
    model = builder.build()
    assert_close(model.constraint_residual(q), data.efc_pos, 1e-12, scale=1.0)
    assert_close(model.constraint_jacobian(q), data.efc_J.reshape(4, 3), 1e-12, scale=1.0)


# --- assembly ---------------------------------------------------------------------------------------------------------


@plain
@pytest.mark.parametrize("name", ["four-bar", "hung plate", "Andrews' squeezer"])
def test_the_assembled_configuration_is_the_nearest_one(name):
    chain = closed_chain(name)
    model, rng = chain.model, np.random.default_rng(15)
    guess = model.integrate(chain.guess, 0.1 * rng.normal(size=model.nv))
    q = model.assemble(guess)
    assert np.abs(model.constraint_residual(q)).max() < 1e-11
    best = scipy.optimize.minimize(
        lambda dq: squared_distance(model, guess, model.integrate(guess, dq)),
        model.difference(guess, q) + 1e-3 * rng.normal(size=model.nv),
        method="SLSQP",
        constraints={"type": "eq", "fun": lambda dq: independent_rows(model, model.integrate(guess, dq))},
        options={"ftol": 1e-14, "maxiter": 300},
    )
    assert best.success, best.message
    np.testing.assert_allclose(squared_distance(model, guess, q), best.fun, rtol=1e-7)


def squared_distance(model, q0, q1):
    """The sum of the squares of all displacements; that of a free joint is by position and angle."""
    total = 0.0
    for i, joint in enumerate(model.joint_types):
        at = model.position_index[i]
        if joint == "free":
            total += ((q1 - q0)[at : at + 3] ** 2).sum()
            turns = Rotation.from_quat([q0[at + 3 : at + 7], q1[at + 3 : at + 7]])
            total += (turns[0].inv() * turns[1]).magnitude() ** 2
        else:
            total += (q1 - q0)[at] ** 2
    return total


def independent_rows(model, q):
    """The residuals of the rows that are not zero for all q: SLSQP requires independent ones."""
    moving = np.abs(model.constraint_jacobian(q)).max(-1) > 1e-12
    return model.constraint_residual(q)[moving]


@pytest.mark.slow_cases("1e-11")
@plain
@pytest.mark.parametrize("size", [1e-11, 1e6])
def test_assembly_is_accurate_relative_to_the_size_of_the_mechanism(size):
    """A coupler of 5 % of its length cannot reach the rocker, in a mechanism of any size."""
    builder, inertia = rb.ModelBuilder(gravity=(0, 0, 0)), rb.Inertia(1.0, inertia=np.ones(3) * size**2)
    for name, parent, x in (("crank", None, 0.0), ("coupler", "crank", 0.3), ("rocker", None, 1.0)):
        place = rb.Pose((x * size, 0, 0))
        builder.add_body(name, parent=parent, joint=rb.Revolute(), placement=place, inertia=inertia)
    builder.add_constraint(
        rb.BallConstraint("tip", "coupler", "rocker", point_a=(0.9 * size, 0, 0), point_b=(0.6 * size, 0, 0))
    )
    model, guess = builder.build(), [1.2, -0.5, 1.8]
    expected = four_bar().model.assemble(guess, fixed=["crank"])
    np.testing.assert_allclose(model.assemble(guess, fixed=["crank"]), expected, rtol=0, atol=1e-12)
    short = model.vary(constraint_point_a=[[[0.045 * size, 0, 0]]])
    with pytest.raises(rb.AssemblyError, match="of constraint 'tip'"):
        short.assemble([guess], on_failure="raise")


@plain
def test_fixed_joints_keep_their_positions_and_velocities():
    chain = closed_chain("four-bar")
    q = chain.model.assemble(chain.guess + 0.1, fixed=["crank"])
    assert q[0] == chain.guess[0] + 0.1
    assert np.abs(chain.model.constraint_residual(q)).max() < 1e-11
    qd = chain.model.assemble_velocities(q, [2.0, 0, 0], fixed=["crank"])
    assert qd[0] == 2.0
    assert_close(chain.model.constraint_jacobian(q) @ qd, 0.0, 1e-15, scale=10.0)


@plain
def test_the_assembled_velocities_are_the_nearest_ones():
    chain, rng = closed_chain("hinged arm"), np.random.default_rng(16)
    q = chain.model.assemble(chain.guess)
    guess = rng.normal(size=chain.model.nv)
    J = chain.model.constraint_jacobian(q)
    expected = guess - np.linalg.pinv(J) @ J @ guess
    assert_close(chain.model.assemble_velocities(q, guess), expected, 1e-13)


@plain
def test_an_assembly_reads_the_fixed_joints_of_any_iterable():
    chain = closed_chain("four-bar")
    guess = chain.guess + 0.1
    q = chain.model.assemble(guess, fixed=iter(["crank"]))
    np.testing.assert_array_equal(q, chain.model.assemble(guess, fixed=["crank"]))
    assert q[0] == guess[0]


@pytest.mark.slow
@plain
def test_samples_that_cannot_be_assembled_are_named_and_do_not_change_the_others():
    chain = closed_chain("four-bar")
    point = np.tile(chain.model.constraint_point_a, (3, 1, 1))
    point[1, 0, 0] = 5.0  # a coupler of 5 m
    many, guess = chain.model.vary(constraint_point_a=point), np.tile(chain.guess, (3, 1))
    with pytest.raises(
        rb.AssemblyError, match=r"in 1 of 3 samples, the first being 1, the constraints cannot"
    ) as caught:
        many.assemble(guess, on_failure="raise")
    assert caught.value.failed.tolist() == [False, True, False]
    q = many.assemble(guess, on_failure="ignore")
    np.testing.assert_array_equal(caught.value.q, q)
    assert np.isnan(q[1]).all()
    np.testing.assert_array_equal(q[[0, 2]], chain.model.assemble(guess[[0, 2]]))


# --- samples and precisions -------------------------------------------------------------------------------------------


def varied(chain, count, seed=0):
    """Samples that differ in masses and in all numbers of their constraints."""
    model, rng = chain.model, np.random.default_rng(seed)

    def near(value):
        return value * (1 + 0.01 * rng.uniform(-1, 1, (count, *np.shape(value))))

    fields = ("mass", "constraint_point_a", "constraint_point_b", "constraint_length", "constraint_ratio")
    return model.vary(**{name: near(getattr(model, name)) for name in fields})


@pytest.mark.fast_cases("four-bar")
@plain
@pytest.mark.parametrize("name", ["four-bar", "hung plate", "welded and geared"])
def test_a_varied_sample_is_the_model_with_its_numbers(name):
    chain = closed_chain(name)
    many = varied(chain, 3)
    near = chain._replace(model=many, guess=chain.model.assemble(chain.guess))
    q, qd, tau = closed_state(near, batch=(3,), spread=0.01)
    qdd, forces = many.forward_dynamics(q, qd, tau), many.constraint_forces(q, qd, tau)
    for k in range(3):
        one = many[k]
        assert_close(one.constraint_residual(q[k]), 0.0, 1e-11, scale=1.0)
        assert_close(qdd[k], one.forward_dynamics(q[k], qd[k], tau[k]), 1e-12)
        assert_close(forces[k], one.constraint_forces(q[k], qd[k], tau[k]), 1e-11)


@pytest.mark.parametrize("name", ["hinged arm"])
def test_bits_of_a_sample_do_not_depend_on_its_neighbors(name):
    chain = closed_chain(name)
    model, (q, qd, tau) = chain.model, closed_state(chain, batch=(19,))
    qdd, forces = model.forward_dynamics(q, qd, tau), model.constraint_forces(q, qd, tau)
    for k in (0, 7, 18):
        np.testing.assert_array_equal(model.forward_dynamics(q[k:], qd[k:], tau[k:])[0], qdd[k])
        np.testing.assert_array_equal(model.constraint_forces(q[k:], qd[k:], tau[k:])[0], forces[k])
    broken = qd.copy()
    broken[3] = np.nan
    broken[4] = 1e200
    others = np.delete(np.arange(19), [3, 4])
    found = model.forward_dynamics(q, broken, tau)
    assert np.isnan(found[3]).all()
    assert not np.isfinite(found[4]).all()
    np.testing.assert_array_equal(found[others], qdd[others])
    single = [model.forward_dynamics(*x) for x in zip(q, qd, tau, strict=True)]
    assert_close(np.array(single), qdd, 1e-13)


@pytest.mark.slow
def test_float32_agrees_to_its_round_off():
    chain = closed_chain("hinged arm")
    state = closed_state(chain, batch=(5,))
    found = chain.model.forward_dynamics(*(x.astype(np.float32) for x in state))
    assert found.dtype == np.float32
    assert_close(found, chain.model.forward_dynamics(*state), 1e-4)


@plain
def test_a_broken_sample_does_not_stop_inverse_dynamics():
    chain = closed_chain("four-bar")
    model, (q, qd, tau) = chain.model, closed_state(chain, batch=(3,))
    qdd = model.forward_dynamics(q, qd, tau * [1, 0, 0])
    expected = model.inverse_dynamics(q, qd, qdd, actuated=["crank"])
    q[1] = np.nan
    found = model.inverse_dynamics(q, qd, qdd, actuated=["crank"])
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])


@plain
@every_chain
def test_files_and_pickles_keep_constraints_bit_for_bit(name, tmp_path):
    chain = closed_chain(name)
    state = closed_state(chain)
    rb.save(chain.model, tmp_path / "model.toml")
    for copy in (rb.load(tmp_path / "model.toml"), pickle.loads(pickle.dumps(chain.model))):
        assert copy.constraint_names == chain.model.constraint_names
        np.testing.assert_array_equal(copy.constraint_residual(state[0]), chain.model.constraint_residual(state[0]))
        np.testing.assert_array_equal(copy.forward_dynamics(*state), chain.model.forward_dynamics(*state))


# --- mistakes ---------------------------------------------------------------------------------------------------------

NO = dict.fromkeys(("point_a", "point_b"), (0, 0, 0))
MISTAKES = {
    "no constraint": (lambda: "rod", "constraint is 'rod'; expected one of BallConstraint, HingeConstraint"),
    "no name": (lambda: rb.BallConstraint("", None, "crank"), "its name is ''; expected a non-empty string"),
    "a body by number": (lambda: rb.BallConstraint("c", 0, "crank"), "frame_a is 0; expected the name of a body"),
    "one body": (lambda: rb.BallConstraint("c", "crank", "crank"), "connects 'crank' to itself"),
    "only the world": (lambda: rb.WeldConstraint("c", None, None), "connects the world to itself"),
    "no direction": (lambda: rb.HingeConstraint("c", None, "crank", axis_a=(0, 0, 0)), "axis_a is .*non-zero vector"),
    "no pose": (lambda: rb.WeldConstraint("c", None, "crank", pose_a=(0, 0, 1)), "pose_a is .*expected one Pose"),
    "length 0": (lambda: rb.DistanceConstraint("c", None, "crank", **NO, length=0), "length is 0.*positive"),
    "a joint with itself": (
        lambda: rb.CouplerConstraint("c", "crank", "crank", ratio=1.0),
        "couples joint 'crank' to itself",
    ),
    "joint without a name": (
        lambda: rb.CouplerConstraint("c", {}, "crank", ratio=1.0),
        "joint is {}; expected the name of a joint",
    ),
    "ratio 0": (lambda: rb.CouplerConstraint("c", "crank", "rocker", ratio=0.0), "ratio is 0; expected another number"),
    "an unknown body": (lambda: rb.BallConstraint("c", None, "cranc"), "no body 'cranc'.*crank"),
    "an unknown joint": (
        lambda: rb.CouplerConstraint("c", "crank", "roker", ratio=1.0),
        "no moving joint 'roker'.*rocker",
    ),
    "a known name": (lambda: rb.BallConstraint("tip", None, "crank"), "already has a constraint of this name"),
}


@plain
@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_constraints_are_refused_by_name(mistake):
    make, message = MISTAKES[mistake]
    chain = closed_chain("four-bar")
    with pytest.raises(rb.ModelError, match=message):
        builder = rb.ModelBuilder()
        builder.add_constraint(chain.constraints[0])
        for name, parent in (("crank", None), ("coupler", "crank"), ("rocker", None)):
            builder.add_body(name, parent=parent, joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
        builder.add_constraint(make())
        builder.build()


@plain
def test_constraints_of_impossible_bodies_are_refused():
    builder = rb.ModelBuilder()
    builder.add_body("ball", joint=rb.Spherical(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    builder.add_body("tip", parent="ball", joint=rb.Fixed())
    builder.add_body("wheel", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    builder.add_constraint(rb.BallConstraint("c", "ball", "tip"))
    with pytest.raises(rb.ModelError, match="frames 'ball' and 'tip' are fixed to each other"):
        builder.build()
    builder = rb.ModelBuilder()
    builder.add_body("ball", joint=rb.Spherical(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    builder.add_body("wheel", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    builder.add_constraint(rb.CouplerConstraint("c", "wheel", "ball", ratio=1.0))
    with pytest.raises(rb.ModelError, match="joint 'ball' has 3 degrees of freedom; expected a joint with one"):
        builder.build()


Q = (1.0, -0.5, 1.5)
REFUSALS = {
    "open inverse dynamics": (rb.ModelError, lambda m, q: m.inverse_dynamics(q, q, q), 'actuated=\\["crank"\\]'),
    "an unknown motor": (
        rb.ModelError,
        lambda m, q: m.inverse_dynamics(q, q, q, actuated=["cranc"]),
        "no joint 'cranc'",
    ),
    "one name": (rb.ModelError, lambda m, q: m.inverse_dynamics(q, q, q, actuated="crank"), "expected a list of names"),
    "impossible qdd": (
        rb.ArgumentError,
        lambda m, q: m.inverse_dynamics(q, 0 * q, [1.0, 1.0, 1.0], actuated=["crank"]),
        r"the joints \['crank'\] cannot cause the accelerations qdd",
    ),
    "reactions without tau": (rb.ModelError, lambda m, q: m.joint_reactions(q, q, q), "expected tau="),
    "reactions of other accelerations": (
        rb.ArgumentError,
        lambda m, q: m.joint_reactions(q, 0 * q, [9.0, 9.0, 9.0], tau=0 * q),
        "expected the accelerations that tau causes",
    ),
    "contradictory prescribed accelerations": (
        rb.ArgumentError,
        lambda m, q: m.hybrid_dynamics(m.assemble(q), 0 * q, q, [1.0, 1.0, 1.0], [True, True, False]),
        "hybrid_dynamics: the constraints do not allow the prescribed accelerations.*Prescribe",
    ),
    "derivatives without motors": (
        rb.ModelError,
        lambda m, q: m.inverse_dynamics_derivatives(q, q, q),
        'actuated=\\["crank"\\]',
    ),
    "derivatives with too few motors": (
        rb.ArgumentError,
        lambda m, q: m.vary(gravity=[0.0, 0.0, 0.0]).inverse_dynamics_derivatives(
            m.assemble(q), 0 * q, 0 * q, actuated=[]
        ),
        r"the joints \[\] do not determine all forces.*Name more joints",
    ),
    "generate": (rb.ModelError, lambda m, q: m.generate("forward_dynamics"), "forward_dynamics"),
    "on_failure": (rb.ArgumentError, lambda m, q: m.assemble(q, on_failure="stop"), "on_failure is 'stop'"),
    "an unknown fixed joint": (
        rb.ModelError,
        lambda m, q: m.assemble(q, fixed=["tip"]),
        "fixed: the model has no joint 'tip'",
    ),
    "no closed configuration": (
        rb.AssemblyError,
        lambda m, q: m.vary(constraint_point_b=[[9.0, 0, 0]]).assemble(q),
        "^assemble: the constraints cannot be satisfied near the guess; the largest remaining residual is .* of "
        "constraint 'tip'",
    ),
    "contradictory velocities": (
        rb.AssemblyError,
        lambda m, q: m.assemble_velocities(m.assemble(q), [1.0, 1.0, 1.0], fixed=["crank", "rocker"]),
        r"^assemble_velocities: the velocities of the fixed joints \['crank', 'rocker'\] contradict",
    ),
    "a guess of NaN": (
        rb.AssemblyError,
        lambda m, q: m.assemble(np.nan * q),
        "^assemble: q_guess has numbers that are not",
    ),
    "velocities of NaN": (
        rb.AssemblyError,
        lambda m, q: m.assemble_velocities(q, np.nan * q),
        "^assemble_velocities: q or qd_guess has numbers that are not finite",
    ),
    "open positions": (
        rb.ArgumentError,
        lambda m, q: m.simulate(q, 0 * q, 0.1, save_at=2),
        r"q0 .* 'tip' is .* Use model.assemble",
    ),
    "open velocities": (
        rb.ArgumentError,
        lambda m, q: m.simulate(m.assemble(q), [1.0, 1.0, 1.0], 0.1, save_at=2),
        r"qd0 .* 'tip' changes .* Use model.assemble_velocities",
    ),
}


@pytest.mark.slow_cases("no closed configuration")
@plain
@pytest.mark.parametrize("refusal", REFUSALS)
def test_calls_that_closed_chains_do_not_support_are_refused(refusal):
    error, call, message = REFUSALS[refusal]
    with pytest.raises(error, match=message):
        call(closed_chain("four-bar").model, np.array(Q))


@plain
@pytest.mark.parametrize("name", ["constraint_residual", "constraint_jacobian", "assemble"])
def test_open_chains_have_no_constraints(name):
    model = rb.Model.serial_chain(2)
    with pytest.raises(rb.ModelError, match=rf"{name}: model .* has no constraints; expected closed loops"):
        getattr(model, name)([0.1, 0.2])
    with pytest.raises(rb.ModelError, match="has no constraints, so accelerations determine all joint forces"):
        model.inverse_dynamics([0.1, 0.2], [0, 0], [0, 0], actuated=["link1"])


@plain
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("constraint_length", [[0.9, -1.0, 1.0]], "constraint 'rod1' of sample .*constraint_length is -1.0"),
        ("constraint_point_a", [[[np.nan, 0, 0]] * 3], "constraint 'rod0' .*expected finite numbers"),
        ("constraint_axes_a", [np.zeros((3, 3, 3))], "constraint 'rod0' .*expected a rotation matrix"),
    ],
)
def test_impossible_variations_are_refused(field, value, message):
    with pytest.raises(rb.ModelError, match=message):
        closed_chain("hung plate").model.vary(**{field: value})


@plain
def test_four_bar_with_a_hinge_moves_as_with_a_ball():
    ball, hinge = four_bar(random_turn()), four_bar(random_turn(), "hinge")
    state = closed_state(ball)
    assert_close(hinge.model.forward_dynamics(*state), ball.model.forward_dynamics(*state))


@pytest.mark.plain_python
def test_a_projection_that_moves_positions_also_corrects_the_rates_that_it_changes():
    """One Newton step removes the residual and leaves a rate as large as before: the projection must not stop there."""
    builder, rod = rb.ModelBuilder(), rb.Inertia.rod(1.0, mass=1.0)
    for name, x in (("crank", 0.0), ("rocker", 1.0)):
        builder.add_body(name, joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((x, 0, 0)), inertia=rod)
    builder.add_constraint(
        rb.DistanceConstraint("strut", "crank", "rocker", point_a=(0, 0, 1), point_b=(0, 0, 1), length=1.414)
    )
    model = builder.build()
    q = model.assemble([0.5, 0.4], fixed=["crank"])
    qd = model.assemble_velocities(q, [1.0, 0.0], fixed=["crank"])
    motion = model.simulate(q, qd, 0.05, method="rk4", step=0.01, save_at=2)
    assert motion.success
    np.testing.assert_allclose(model.constraint_residual(motion.q), 0.0, atol=1e-13)
    rates = (model.constraint_jacobian(motion.q) @ motion.qd[..., None])[..., 0]
    np.testing.assert_allclose(rates, 0.0, atol=1e-13)


@pytest.mark.plain_python
def test_a_number_for_tau_stands_for_all_joints():
    model, guess = four_bar().model, four_bar().guess
    q, qd = model.assemble(guess), np.zeros(model.nv)
    for tau in (0.0, 2.0):
        expected = model.constraint_forces(q, qd, np.full(model.nv, tau))
        np.testing.assert_array_equal(model.constraint_forces(q, qd, tau), expected)
    assert model.constraint_forces(q, qd).tolist() == model.constraint_forces(q, qd, 0.0).tolist()
