"""Pages for users of other programs: each row of their tables names functions that give the same result.

`ROWS_OF_...` map the first cell of each row to a function that returns pairs of arrays that have to agree. Rows without
numbers only call the functions that they name.
"""

import re
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import rbchain as rb
from rbchain.io.dh import DHLink, from_dh

from .oracles import newton_euler

plain = pytest.mark.plain_python

REPOSITORY = Path(__file__).parents[1]
PUMA = str(REPOSITORY / "examples/puma560.urdf")
MJCF = """
<mujoco model="arm">
  <compiler angle="radian"/>
  <option gravity="0.3 0 -9.81" timestep="1e-3" integrator="{integrator}">
    <flag contact="disable" eulerdamp="disable"/>
  </option>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping="0.5" stiffness="2" springref="0.2" armature="0.03"/>
      <geom type="box" size="0.02 0.03 0.2" pos="0 0 -0.2" mass="1.5" contype="0" conaffinity="0"/>
      <body name="lower" pos="0 0.1 -0.4">
        <joint name="elbow" axis="1 0 0" damping="0.1"/>
        <geom type="box" size="0.02 0.02 0.3" pos="0.05 0 -0.3" mass="0.8" contype="0" conaffinity="0"/>
        <site name="tip" pos="0 0.02 -0.6"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="drive" joint="elbow" gear="3"/></actuator>
  <keyframe><key name="home" qpos="0.3 -0.2" qvel="0.5 0.7" ctrl="0.6"/></keyframe>
</mujoco>
"""


def rows_of(page):
    """The first cells of the first table of a page."""
    text = (REPOSITORY / f"docs/migration/{page}.md").read_text(encoding="utf-8")
    table = re.search(r"^\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [re.match(r"\| (.*?) \| ", line)[1] for line in table[1].splitlines()]


def check_row(rows, row):
    """Compare the pairs of a row to a few hundred round-offs of the largest entry."""
    for found, expected in rows[row]():
        assert np.shape(found) == np.shape(expected)
        scale = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e3 * np.finfo(float).eps * scale)


# --- MuJoCo -----------------------------------------------------------------------------------------------------------

Q, QD, QDD, TAU = np.array([0.3, -0.7]), np.array([1.0, -0.4]), np.array([0.5, 2.0]), np.array([0.2, -0.1])


class Both:
    """The same file in MuJoCo and in rbchain, and MuJoCo's data in one state."""

    def __init__(self, folder, integrator="RK4"):
        self.file = folder / "arm.xml"
        self.file.write_text(MJCF.format(integrator=integrator))
        self.engine = mujoco.MjModel.from_xml_path(str(self.file))
        self.data = mujoco.MjData(self.engine)
        self.model = rb.load(self.file)
        self.data.qpos, self.data.qvel, self.data.qfrc_applied = Q, QD, TAU
        mujoco.mj_forward(self.engine, self.data)


@pytest.fixture
def both(tmp_path):
    return Both(tmp_path)


def forward(both):
    found = both.model.forward_dynamics(Q, QD, TAU, passive=True)
    return [(found, both.data.qacc), (both.model.accelerations(Q, QD, tau=TAU), both.data.qacc)]


def inverse(both):
    both.data.qacc = QDD
    mujoco.mj_inverse(both.engine, both.data)
    return [(both.model.inverse_dynamics(Q, QD, QDD, passive=True), both.data.qfrc_inverse)]


def full_mass_matrix(both):
    H = np.zeros((2, 2))
    mujoco.mj_fullM(both.engine, both.data, H)
    return [(both.model.mass_matrix(Q), H)]


def keyframe(both):
    home = both.model.keyframes["home"]
    both.data.qfrc_applied = 0.0
    mujoco.mj_resetDataKeyframe(both.engine, both.data, 0)
    mujoco.mj_forward(both.engine, both.data)
    qdd = both.model.with_inputs(home.inputs).accelerations(home.q, home.qd)
    return [(home.q, both.data.qpos), (home.qd, both.data.qvel), (qdd, both.data.qacc)]


def poses(both):
    pose = both.model.body_poses(Q)
    return [(pose.translation, both.data.xpos[1:]), (pose.rotation, both.data.xmat[1:].reshape(-1, 3, 3))]


def jacobian(both):
    point, linear, angular = np.array([0.1, -0.2, 0.3]), np.zeros((3, 2)), np.zeros((3, 2))
    in_world = both.data.body("lower").xpos + both.data.body("lower").xmat.reshape(3, 3) @ point
    mujoco.mj_jac(both.engine, both.data, linear, angular, in_world, both.data.body("lower").id)
    return [(both.model.jacobian(Q, "lower", point=point), np.vstack([linear, angular]))]


def sums_of_positions(both):
    q, difference = Q.copy(), np.zeros(2)
    mujoco.mj_integratePos(both.engine, q, QD, 0.1)
    mujoco.mj_differentiatePos(both.engine, difference, 1.0, Q, q)
    return [(both.model.integrate(Q, 0.1 * QD), q), (both.model.difference(Q, q), difference)]


def steps(both):
    for _ in range(5):
        mujoco.mj_step(both.engine, both.data)
    motion = both.model.simulate(Q, QD, 5e-3, method="rk4", step=1e-3, tau=TAU, save_at=2)
    return [(motion.q[-1], both.data.qpos), (motion.qd[-1], both.data.qvel)]


def saved_file(both):
    path = both.file.with_name("model.xml")
    with pytest.warns(UserWarning, match="omits: keyframes"):
        rb.save(both.model, path)
    engine = mujoco.MjModel.from_xml_path(str(path))
    return [(engine.body_mass[1:], both.model.mass), (engine.body_mass, both.engine.body_mass)]


def fields(both):
    """Without dry friction in the file, because it acts differently."""
    return [
        (both.model.armature, both.engine.dof_armature),
        (both.model.damping, both.engine.dof_damping),
        (both.model.friction, both.engine.dof_frictionloss),
    ]


def by_name(both):
    return [
        (both.model.body["lower"].mass, both.engine.body("lower").mass[0]),
        (both.model.joint["elbow"].damping, both.engine.joint("elbow").damping),
    ]


def actuator(both):
    """The motor of the elbow has the gear 3."""
    both.data.ctrl, both.data.qfrc_applied = 0.4, 0.0
    mujoco.mj_forward(both.engine, both.data)
    motor = rb.PrescribedForce("elbow", 3 * 0.4)
    return [
        (both.model.simulate(Q, QD, 1e-3, method="rk4", step=1e-3, drives=[motor], save_at=2).qdd[0], both.data.qacc),
        (both.model.with_inputs({"drive": 0.4}).accelerations(Q, QD), both.data.qacc),
    ]


def viewer(both):
    assert callable(both.model.view)
    assert callable(rb.Trajectory.view)
    return []


ROWS_OF_MUJOCO = {
    "`mujoco.MjModel.from_xml_path(f)`": lambda both: [(both.model.mass, both.engine.body_mass[1:])],
    "`mujoco.mj_saveLastXML`, `MjSpec.to_xml`": saved_file,
    "`mujoco.mj_forward`, `data.qacc`": forward,
    "`mujoco.mj_inverse`, `data.qfrc_inverse`": inverse,
    "`data.qfrc_passive`": lambda both: [(both.model.passive_forces(Q, QD), both.data.qfrc_passive)],
    "`data.qfrc_bias`": lambda both: [(both.model.bias_forces(Q, QD), both.data.qfrc_bias)],
    "`mujoco.mj_fullM`": full_mass_matrix,
    "`mujoco.mj_resetDataKeyframe`": keyframe,
    "`data.xpos`, `data.xmat`": poses,
    "`data.site_xpos`": lambda both: [(both.model.frame_poses(Q, "tip").translation, both.data.site_xpos[0])],
    "`mujoco.mj_jac`": jacobian,
    "`mujoco.mj_integratePos`, `mj_differentiatePos`": sums_of_positions,
    "`mujoco.mj_step` in a loop; `mujoco.rollout`": steps,
    "`mjd_transitionFD`": None,  # see test_the_transition_matrices_converge_to_those_of_mujoco
    "`mujoco.viewer.launch(model)`": viewer,
    '`model.body("b").mass`, `model.joint("j").damping`': by_name,
    "`dof_armature`, `dof_damping`, `dof_frictionloss`": fields,
    "actuators, whose forces add up": actuator,
}


@plain
def test_every_row_of_the_page_on_mujoco_is_tested():
    assert rows_of("mujoco") == list(ROWS_OF_MUJOCO)


@plain
@pytest.mark.parametrize("row", [row for row, check in ROWS_OF_MUJOCO.items() if check])
def test_a_function_gives_the_result_of_mujoco(row, both):
    check_row({row: lambda: ROWS_OF_MUJOCO[row](both)}, row)


@plain
def test_the_transition_matrices_converge_to_those_of_mujoco(tmp_path):
    """MuJoCo's step is of first order, so one step differs by h^2 from rbchain's: four times less at half the step."""
    both = Both(tmp_path, integrator="Euler")
    differences = []
    for step in (1e-3, 5e-4):
        both.engine.opt.timestep = step
        A = np.zeros((4, 4))
        mujoco.mjd_transitionFD(both.engine, both.data, 1e-6, True, A, None, None, None)
        settings = {"method": "rk4", "step": step, "tau": TAU, "derivatives": ("q", "qd", "tau")}
        motion = both.model.simulate(Q, QD, step, save_at=2, **settings)
        found = np.hstack([motion.derivatives["q"][-1], motion.derivatives["qd"][-1]])
        assert motion.derivatives["tau"][-1].shape == (4, 2)
        differences.append(np.abs(found - A).max())
    assert differences[0] < 0.1 * np.abs(A - np.eye(4)).max()
    assert 3.5 < differences[0] / differences[1] < 4.5


# --- Pinocchio --------------------------------------------------------------------------------------------------------


class Puma:
    """The Puma 560 in Pinocchio and in rbchain, and a state."""

    def __init__(self):
        self.pin = pin.buildModelFromUrdf(PUMA)
        self.data = self.pin.createData()
        with pytest.warns(UserWarning, match="triangle inequality"):
            self.model = rb.load(PUMA)
        rng = np.random.default_rng(5)
        self.q, self.v, self.a, self.tau = rng.normal(size=(4, 6))
        self.wrenches = rng.normal(size=(6, 6))
        pin.forwardKinematics(self.pin, self.data, self.q, self.v, self.a)
        self.forces = pin.StdVec_Force()
        self.forces.append(pin.Force.Zero())
        for i, wrench in enumerate(self.wrenches):
            R = self.data.oMi[i + 1].rotation
            self.forces.append(pin.Force(R.T @ wrench[:3], R.T @ wrench[3:]))
        self.frame = self.pin.getFrameId("tool0")


WORLD_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
# Pinocchio's parameters end in xx, xy, yy, xz, yz, zz, those of rbchain in xx, xy, xz, yy, yz, zz.
PARAMETERS = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


def loading(p):
    floating = pin.buildModelFromUrdf(PUMA, pin.JointModelFreeFlyer())
    with pytest.warns(UserWarning, match="triangle inequality"):
        free = rb.load(PUMA, base=rb.Free())
    return [([p.model.nq, p.model.nv], [p.pin.nq, p.pin.nv]), ([free.nq, free.nv], [floating.nq, floating.nv])]


def working_memory(p):
    assert not hasattr(p.model, "createData")
    return []


def configurations(p):
    q, qd = p.model.random_state(0, (3,))
    assert q.shape == qd.shape == (3, 6)
    return [(p.model.neutral(), pin.neutral(p.pin))]


def sums(p):
    moved = pin.integrate(p.pin, p.q, p.v)
    return [(p.model.integrate(p.q, p.v), moved), (p.model.difference(p.q, moved), pin.difference(p.pin, p.q, moved))]


def forces_at_rest(p):
    gravity = pin.computeGeneralizedGravity(p.pin, p.data, p.q)
    bias = pin.nonLinearEffects(p.pin, p.data, p.q, p.v)
    return [(p.model.bias_forces(p.q, p.v), bias), (p.model.gravity_forces(p.q), gravity)]


def mass_matrices(p):
    upper = np.triu(pin.crba(p.pin, p.data, p.q))
    inverse = np.triu(pin.computeMinverse(p.pin, p.data, p.q))
    pairs = [(p.model.mass_matrix(p.q), upper), (p.model.mass_matrix_inverse(p.q), inverse)]
    return [(found, upper + np.triu(upper, 1).T) for found, upper in pairs]


def positions(p):
    pose = p.model.body_poses(p.q)
    placements = [p.data.oMi[i + 1] for i in range(6)]
    return [
        (pose.translation, [placement.translation for placement in placements]),
        (pose.rotation, [placement.rotation for placement in placements]),
    ]


def frame_placement(p):
    pin.updateFramePlacements(p.pin, p.data)
    pose = p.model.frame_poses(p.q, "tool0")
    return [(pose.translation, p.data.oMf[p.frame].translation), (pose.rotation, p.data.oMf[p.frame].rotation)]


def velocities(p):
    found = [pin.getVelocity(p.pin, p.data, i + 1, WORLD_ALIGNED).vector for i in range(6)]
    return [(p.model.body_velocities(p.q, p.v), found)]


def accelerations(p):
    found = [pin.getClassicalAcceleration(p.pin, p.data, i + 1, WORLD_ALIGNED).vector for i in range(6)]
    return [(p.model.body_accelerations(p.q, p.v, p.a), found)]


def frame_jacobian(p):
    return [(p.model.jacobian(p.q, "tool0"), pin.computeFrameJacobian(p.pin, p.data, p.q, p.frame, WORLD_ALIGNED))]


def frame_jacobian_rate(p):
    pin.computeJointJacobiansTimeVariation(p.pin, p.data, p.q, p.v)
    pin.updateFramePlacements(p.pin, p.data)
    found = pin.getFrameJacobianTimeVariation(p.pin, p.data, p.frame, WORLD_ALIGNED)
    return [(p.model.jacobian_derivative(p.q, p.v, "tool0"), found)]


def derivatives(p):
    """Pinocchio fills the upper triangle of symmetric matrices, and uses the arrays of its data again."""

    def by_pinocchio(function, third):
        by_q, by_v, symmetric = (found.copy() for found in function(p.pin, p.data, p.q, p.v, third))
        return by_q, by_v, np.triu(symmetric) + np.triu(symmetric, 1).T

    forward = p.model.forward_dynamics_derivatives(p.q, p.v, p.tau)
    inverse = p.model.inverse_dynamics_derivatives(p.q, p.v, p.a)
    aba = by_pinocchio(pin.computeABADerivatives, p.tau)
    rnea = by_pinocchio(pin.computeRNEADerivatives, p.a)
    return [*zip(forward, aba, strict=True), *zip(inverse, rnea, strict=True)]


def regressor(p):
    found = pin.computeJointTorqueRegressor(p.pin, p.data, p.q, p.v, p.a).reshape(6, 6, 10)
    return [(p.model.inverse_dynamics_regressor(p.q, p.v, p.a).reshape(6, 6, 10), found[..., PARAMETERS])]


def energies(p):
    kinetic = pin.computeKineticEnergy(p.pin, p.data, p.q, p.v)
    potential = pin.computePotentialEnergy(p.pin, p.data, p.q)
    return [(np.array(p.model.energy(p.q, p.v)), [kinetic, potential])]


def centroidal(p):
    pin.ccrba(p.pin, p.data, p.q, p.v)
    momentum = p.model.momentum(p.q, p.v)
    return [(p.model.centroidal_momentum_matrix(p.q), p.data.Ag), (momentum, p.data.hg.vector)]


def reactions(p):
    pin.rnea(p.pin, p.data, p.q, p.v, p.a)
    return [(p.model.joint_reactions(p.q, p.v, p.a), [p.data.f[i + 1].vector for i in range(6)])]


def loop(p):
    """Two couplers hold the last joints to the first: the accelerations satisfy the equation of motion and the rows."""
    coupled = rb.ModelBuilder(gravity=(0, 0, -9.81))
    for name in ("a", "b"):
        coupled.add_body(name, joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia.rod(1.0, mass=1.0, cg=(0.5, 0, 0)))
    coupled.add_constraint(rb.CouplerConstraint("gear", joint="b", other="a", ratio=-2.0))
    model = coupled.build()
    q, qd, tau = np.array([0.2, -0.4]), np.zeros(2), np.array([1.0, 0.5])
    qdd, multipliers = model.forward_dynamics(q, qd, tau), model.constraint_forces(q, qd, tau)
    J, H = model.constraint_jacobian(q), model.open_tree().mass_matrix(q)
    held = tau + J.T @ multipliers - model.open_tree().bias_forces(q, qd)
    return [(H @ qdd, held), (J @ qdd, np.zeros(1))]


def reduced(p):
    q = p.q.copy()
    locked = pin.buildReducedModel(p.pin, [6], q)
    model = p.model.lock({p.model.joint_names[5]: q[5]})
    found = model.forward_dynamics(q[:5], p.v[:5], p.tau[:5])
    return [(found, pin.aba(locked, locked.createData(), q[:5], p.v[:5], p.tau[:5]))]


def batch(p):
    q = np.stack([p.q, -p.q])
    found = p.model.forward_dynamics(q, p.v, p.tau)
    return [(found, [pin.aba(p.pin, p.data, row, p.v, p.tau) for row in q])]


def integrated(p):
    motion = p.model.simulate(p.q, p.v, 1e-3, method="rk4", step=1e-3, tau=p.tau, save_at=2)
    assert motion.success
    passive = p.model.passive_forces(p.q, p.v)
    return [(motion.qdd[0], pin.aba(p.pin, p.data, p.q, p.v, p.tau + passive))]


ROWS_OF_PINOCCHIO = {
    "`pin.buildModelFromUrdf(f)`, `pin.buildModelFromUrdf(f, pin.JointModelFreeFlyer())`": loading,
    "`data = model.createData()`": working_memory,
    "`pin.neutral(model)`, `pin.randomConfiguration(model)`": configurations,
    "`pin.integrate(model, q, v)`, `pin.difference(model, q0, q1)`": sums,
    "`pin.aba(model, data, q, v, tau, fext)`": lambda p: [
        (p.model.forward_dynamics(p.q, p.v, p.tau, p.wrenches), pin.aba(p.pin, p.data, p.q, p.v, p.tau, p.forces))
    ],
    "`pin.rnea(model, data, q, v, a, fext)`": lambda p: [
        (p.model.inverse_dynamics(p.q, p.v, p.a, p.wrenches), pin.rnea(p.pin, p.data, p.q, p.v, p.a, p.forces))
    ],
    "`pin.nonLinearEffects`, `pin.computeGeneralizedGravity`": forces_at_rest,
    "`pin.crba`, `pin.computeMinverse`": mass_matrices,
    "`pin.computeCoriolisMatrix`": lambda p: [
        (p.model.coriolis_matrix(p.q, p.v), pin.computeCoriolisMatrix(p.pin, p.data, p.q, p.v))
    ],
    "`pin.forwardKinematics`, `data.oMi`": positions,
    "`pin.updateFramePlacements`, `data.oMf[i]`": frame_placement,
    "`pin.getVelocity(..., LOCAL_WORLD_ALIGNED)`": velocities,
    "`pin.getClassicalAcceleration(..., LOCAL_WORLD_ALIGNED)`": accelerations,
    "`pin.computeFrameJacobian(..., LOCAL_WORLD_ALIGNED)`": frame_jacobian,
    "`pin.frameJacobianTimeVariation`": frame_jacobian_rate,
    "`pin.computeABADerivatives`, `pin.computeRNEADerivatives`": derivatives,
    "`pin.computeJointTorqueRegressor`": regressor,
    "`pin.computeKineticEnergy`, `pin.computePotentialEnergy`": energies,
    "`pin.ccrba`, `data.Ag`, `data.hg`": centroidal,
    "`data.f` after `rnea`": reactions,
    "`pin.constraintDynamics`, `pin.lcaba`": loop,
    "`pin.buildReducedModel`, `pin.appendModel`": reduced,
    "`pin.abaInParallel`": batch,
    "your own integrator": integrated,
}


@plain
def test_every_row_of_the_page_on_pinocchio_is_tested():
    assert rows_of("pinocchio") == list(ROWS_OF_PINOCCHIO)


@plain
@pytest.mark.parametrize("row", ROWS_OF_PINOCCHIO)
def test_a_function_gives_the_result_of_pinocchio(row):
    check_row({row: lambda: ROWS_OF_PINOCCHIO[row](Puma())}, row)


# --- the programs in Fortran, C# and MATLAB ---------------------------------------------------------------------------


def exact(values):
    return np.array([[float(x) for x in np.atleast_1d(row)] for row in values]).squeeze()


def chain():
    model = rb.Model.serial_chain(3, length=0.25, mass=0.1, gravity=(0, -10, 0))
    return model, *np.random.default_rng(2).normal(size=(3, 3))


def calc_acc():
    model, q, qd, tau = chain()
    return [(model.forward_dynamics(q, qd, tau), exact(newton_euler.forward_dynamics(model, q, qd, tau)))]


def force_balance():
    model, q, qd, tau = chain()
    return [(model.force_balance_residual(q, qd, tau), np.zeros((3, 6)))]


def first_reaction():
    """The world carries the whole mechanism at rest."""
    model, q, _, _ = chain()
    rest = np.zeros(3)
    reaction = model.joint_reactions(q, rest, rest)[0]
    R = model.body_poses(q).rotation[0]
    return [(R @ reaction[:3], [0.0, 0.3 * 10.0, 0.0])]


def chain_poses():
    model, q, _, _ = chain()
    angles = np.cumsum(q)
    steps = 0.25 * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    return [(model.body_poses(q).translation, np.vstack([np.zeros(3), np.cumsum(steps, axis=0)[:-1]]))]


def time_loop():
    model, q, qd, _ = chain()
    motion = model.simulate(q, qd, 0.02, method="rk4", step=0.01, save_at=2)
    y = np.concatenate([q, qd])

    def rate(y):
        return np.concatenate([y[3:], model.forward_dynamics(y[:3], y[3:], np.zeros(3))])

    for _ in range(2):
        k1 = rate(y)
        k2 = rate(y + 0.005 * k1)
        k3 = rate(y + 0.005 * k2)
        y = y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + 0.01 * k3))
    return [(np.concatenate([motion.q[-1], motion.qd[-1]]), y)]


ROWS_OF_FORTRAN = {
    "serial chain of n links of length `l`, mass `m`": lambda: [(chain()[0].mass, [0.1, 0.1, 0.1])],
    "`calc_acc(q, qp, Q)`": calc_acc,
    '"Check Force Balance"': force_balance,
    "`f(i)`": first_reaction,
    "`pos`, `R`": chain_poses,
    "time loop": time_loop,
}


def tree():
    """A trunk that turns, and two bodies on it: one turns and one slides."""
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    builder.add_body(
        "trunk", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(2.0, cg=(0.1, 0.2, 0.3), inertia=(0.2, 0.3, 0.4))
    )
    builder.add_body("arm", parent="trunk", joint=rb.Revolute((0, 0, 1)), placement=rb.Pose((0.5, 0, 0)),
                     inertia=rb.Inertia.rod(0.5, mass=1.0, cg=(0.25, 0, 0)))  # fmt: skip
    builder.add_body("slide", parent="trunk", joint=rb.Prismatic((0, 0, 1)), placement=rb.Pose((0, 0.3, 0)),
                     inertia=rb.Inertia(0.7, cg=(0.1, 0, 0)))  # fmt: skip
    model = builder.build()
    return model, *np.random.default_rng(4).normal(size=(3, 3))


def mass_properties():
    model, *_ = tree()
    return [(model.mass, [2.0, 1.0, 0.7]), (model.cg[0], [0.1, 0.2, 0.3])]


def joints_of_tree():
    model, q, _, _ = tree()
    pose = model.body_poses(q)
    turned = np.array([[np.cos(q[0]), -np.sin(q[0]), 0], [np.sin(q[0]), np.cos(q[0]), 0], [0, 0, 1]])
    return [(pose.rotation[0], turned), (pose.translation[2], turned @ [0, 0.3, 0] + [0, 0, q[2]])]


def accelerations_of_tree():
    model, q, qd, tau = tree()
    return [(model.forward_dynamics(q, qd, tau), exact(newton_euler.forward_dynamics(model, q, qd, tau)))]


def reaction_of_tree():
    """The trunk carries the weight of all bodies at rest."""
    model, q, _, _ = tree()
    rest = np.zeros(3)
    R = model.body_poses(q).rotation[0]
    return [(R @ model.joint_reactions(q, rest, rest)[0, :3], [0.0, 37.0, 0.0])]


def external_forces():
    model, q, qd, tau = tree()
    w = np.random.default_rng(6).normal(size=(3, 6))
    exact_result = exact(newton_euler.forward_dynamics(model, q, qd, tau, w))
    constant = rb.Wrench("arm", force=(1.0, 2.0, 0.5))
    motion = model.simulate(q, qd, 1e-3, method="rk4", step=1e-3, forces=[constant], tau=tau, save_at=2)
    only_arm = np.zeros((3, 6))
    only_arm[1, :3] = 1.0, 2.0, 0.5
    return [
        (model.forward_dynamics(q, qd, tau, wrenches=w), exact_result),
        (motion.qdd[0], model.forward_dynamics(q, qd, tau, wrenches=only_arm)),
    ]


ROWS_OF_CSHARP = {
    "a body with mass, cg and inertia": mass_properties,
    "a revolute or prismatic joint on the z axis, with its position": joints_of_tree,
    "adding a child": lambda: [(tree()[0].parent, [-1, 0, 0])],
    "$\\ddot q$ after the last loop over the bodies": accelerations_of_tree,
    "wrench $f_i$ of joint $i$": reaction_of_tree,
    "external wrenches $w_i$, excluding the weight": external_forces,
}


def manipulator(fluid_density=0.0):
    """Two cylinders: the first turns about the vertical, the second about a horizontal axis."""
    links = [
        DHLink(0.0, np.pi / 2, 0.75, mass=0.75, cg=(0, -0.375, 0), radius=0.1, length=0.75),
        DHLink(1.0, 0.0, 0.0, mass=1.0, cg=(-0.5, 0, 0), radius=0.1, length=1.0),
    ]
    return (
        from_dh(links, gravity=(0, 0, -9.81), fluid_density=fluid_density),
        np.array([0.3, 0.5]),
        np.array([0.2, -1.0]),
    )


def dh_frame():
    model, (a, b), _ = manipulator()
    tool = model.frame_poses([a, b], "end_effector").translation
    reach = np.cos(b)
    return [(tool, [reach * np.cos(a), reach * np.sin(a), 0.75 + np.sin(b)])]


def prismatic():
    model = from_dh([DHLink(0.0, 0.0, 0.0, mass=1.0, joint="prismatic")], gravity=(0, 0, -9.81))
    return [(model.frame_poses([0.4], "end_effector").translation, [0, 0, 0.4])]


def added_mass():
    """Across the second cylinder: pi rho r^2 l; about its end, as a rod of this mass."""
    model, q, _ = manipulator(fluid_density=1000.0)
    across = np.pi * 1000.0 * 0.1**2 * 1.0
    dry = manipulator()[0].mass_matrix(q)[1, 1]
    return [(model.mass_matrix(q)[1, 1] - dry, across / 3)]


def matrices_of_manipulator():
    model, q, qd = manipulator()
    H, C, g = model.mass_matrix(q), model.coriolis_matrix(q, qd), model.gravity_forces(q)
    return [
        (H, exact(newton_euler.mass_matrix(model, q))),
        (C, exact(newton_euler.coriolis_christoffel(model, q, qd))),
        (g, [0.0, 9.81 * 0.5 * np.cos(q[1])]),
    ]


def christoffel():
    model, q, qd = manipulator()
    return [(model.christoffel_symbols(q) @ qd, model.coriolis_matrix(q, qd))]


def potential_energy():
    model, q, qd = manipulator()
    return [(model.energy(q, qd)[1], 9.81 * (0.75 * 0.375 + 0.75 + 0.5 * np.sin(q[1])))]


def jacobian_of_end():
    model, (a, b), _ = manipulator()
    linear = [[-np.cos(b) * np.sin(a), -np.sin(b) * np.cos(a)], [np.cos(b) * np.cos(a), -np.sin(b) * np.sin(a)]]
    J = model.jacobian([a, b], "end_effector")
    return [(J[:3], [*linear, [0.0, np.cos(b)]]), (J[3:], [[0, np.sin(a)], [0, -np.cos(a)], [1, 0]])]


def generated():
    model, q, _ = manipulator()
    functions = {}
    exec(model.generate(["mass_matrix"], language="numpy"), functions)
    return [(functions["mass_matrix"](q), model.mass_matrix(q))]


def floating_base():
    base = rb.ModelBuilder()
    base.add_body("base", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    return [(base.build().neutral(), [0, 0, 0, 0, 0, 0, 1])]


ROWS_OF_MATLAB = {
    "table rows `[a alpha d q]`": dh_frame,
    "`m`, `r`, `l`, offset of the COM": lambda: [(manipulator()[0].mass, [0.75, 1.0])],
    "`sigma` (prismatic or not)": prismatic,
    "`rho`, `Add(m, r, l)`": added_mass,
    "`M_sym`, `C_sym`, `g_sym`": matrices_of_manipulator,
    "`c(i,j,k)`": christoffel,
    "`PE`": potential_energy,
    "`Jv`, `Jw`": jacobian_of_end,
    "`matlabFunction(M_sym, 'File', 'get_M')`": generated,
    "base with six coordinates and Euler angles": floating_base,
}
PROGRAMS = {"fortran": ROWS_OF_FORTRAN, "csharp": ROWS_OF_CSHARP, "matlab": ROWS_OF_MATLAB}


@plain
@pytest.mark.parametrize("page", PROGRAMS)
def test_every_row_of_the_page_on_a_program_is_tested(page):
    assert rows_of(page) == list(PROGRAMS[page])


@pytest.mark.slow_cases("`matlabFunction(M_sym, 'File', 'get_M')`")
@plain
@pytest.mark.parametrize(("page", "row"), [(page, row) for page, rows in PROGRAMS.items() for row in rows])
def test_a_function_gives_the_result_of_a_program(page, row):
    check_row(PROGRAMS[page], row)
