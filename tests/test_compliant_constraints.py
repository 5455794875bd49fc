"""`add_constraint(compliance=)`: compared with equations in NumPy, statics, bushings and rigid constraints."""

import pickle

import numpy as np
import pytest

import rbchain as rb

from .mechanisms import random_rotation
from .quantities import derivative
from .test_bearings import CLOSED, bennett_linkage

PLAIN = pytest.mark.plain_python
COMPLIANT = {"compliance": 1e-8, "angular_compliance": 1e-6}


def random_mechanism(seed=0, **times):
    """Three bodies with rigid and compliant constraints, which is far from closed."""
    rng = np.random.default_rng(seed)
    builder = rb.ModelBuilder(gravity=rng.normal(size=3))
    joints = rb.Free(), rb.Revolute(rng.normal(size=3)), rb.Spherical()
    for i, joint in enumerate(joints):
        parent = f"body{i - 1}" if i else None
        place = rb.Pose(rng.normal(size=3), random_rotation(rng))
        inertia = rb.Inertia(1.0 + i, cg=rng.normal(size=3), inertia=(0.5, 0.6, 0.7))
        builder.add_body(f"body{i}", parent=parent, joint=joint, placement=place, inertia=inertia)
    pose, points = rb.Pose(rng.normal(size=3), random_rotation(rng)), rng.normal(size=(4, 3))
    ends = {"point_a": points[0], "point_b": points[1]}
    axes = {"axis_a": points[2], "axis_b": points[3]}
    builder.add_constraint(rb.WeldConstraint("weld", None, "body2", pose_a=pose), **soft(1e-3, 1e-2), **times)
    builder.add_constraint(rb.BallConstraint("rigid", None, "body1", **ends))
    builder.add_constraint(rb.HingeConstraint("hinge", "body0", "body2", **ends, **axes), **soft(2e-3, 1e-2), **times)
    builder.add_constraint(rb.DistanceConstraint("rod", None, "body0", **ends, length=1.5), compliance=3e-3, **times)
    builder.add_constraint(rb.BallConstraint("twin", None, "body1", **ends))  # all of its rows depend on others
    return builder.build(), rng


def soft(compliance, angular):
    return {"compliance": compliance, "angular_compliance": angular}


def compliances_of_rows(model):
    """The compliance and the relaxation time of each row; 0 and infinity of rigid rows."""
    compliances, times = [], []
    for c, place in enumerate(model.description.constraints):
        of_points, rows = place.rows.of_points, place.rows.total
        compliances += [model.constraint_compliance[c]] * of_points
        compliances += [model.constraint_angular_compliance[c]] * (rows - of_points)
        times += [model.constraint_relaxation_time[c] if place.is_compliant else np.inf] * rows
    return np.array(compliances), np.array(times)


@PLAIN
@pytest.mark.parametrize("seed", range(3))
def test_accelerations_and_forces_solve_the_equations_of_all_rows(seed):
    model, rng = random_mechanism(seed, relaxation_time=0.05)
    q, qd = model.random_state(rng)
    tau = rng.normal(size=model.nv)
    qdd, forces = model.forward_dynamics(q, qd, tau), model.constraint_forces(q, qd, tau)
    J, phi = model.constraint_jacobian(q), model.constraint_residual(q)
    second = derivative(lambda s: model.constraint_jacobian(model.integrate(q, s * qd)) @ qd) + J @ qdd
    c, t = compliances_of_rows(model)
    balance = model.mass_matrix(q) @ qdd + model.bias_forces(q, qd) - tau
    size = np.abs(balance).max() + np.abs(forces).max()
    np.testing.assert_allclose(balance, J.T @ forces, atol=1e-10 * size)
    rigid = np.isinf(t)
    np.testing.assert_allclose(second[rigid], 0.0, atol=1e-7 * np.abs(second).max())
    t[rigid] = 0.0
    law = (phi + 2.0 * t * (J @ qd) + t**2 * second)[~rigid]
    np.testing.assert_allclose(-(c * forces)[~rigid], law, atol=1e-9 * np.abs(law).max())
    assert np.abs(model.force_balance_residual(q, qd, tau)).max() < 1e-10 * size


@PLAIN
def test_derivatives_of_accelerations_equal_differences():
    model, rng = random_mechanism(3, relaxation_time=0.05)
    q, qd = model.random_state(rng)
    tau = rng.normal(size=model.nv)
    found = model.forward_dynamics_derivatives(q, qd, tau)
    functions = (
        lambda s: model.forward_dynamics(model.integrate(q, s), qd, tau),
        lambda s: model.forward_dynamics(q, qd + s, tau),
        lambda s: model.forward_dynamics(q, qd, tau + s),
    )
    for matrix, function in zip(found, functions, strict=True):
        columns = [derivative(lambda s, e=e, f=function: f(s * e)) for e in np.eye(model.nv)]
        np.testing.assert_allclose(matrix, np.stack(columns, -1), atol=1e-7 * np.abs(found[0]).max())


HEIGHTS = np.array([-0.8, 0.0, 0.8])


def door(compliances=(1e-8, 1e-8, 1e-8), misfit=0.0, **times):
    """A door of 30 kg on three hinges, the first of which is mounted too high. Its center of mass is beside them."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("door", joint=rb.Free(), inertia=rb.Inertia(30.0, cg=(0.4, 0, 0), inertia=(9.0, 10.0, 3.0)))
    for i, (z, compliance) in enumerate(zip(HEIGHTS, compliances, strict=True)):
        hinge = rb.HingeConstraint(f"hinge{i}", None, "door", point_a=(0, 0, z + misfit * (i == 0)), point_b=(0, 0, z))
        builder.add_constraint(hinge, **soft(compliance, 100 * compliance), **times)
    return builder.build()


CLOSED_DOOR = np.array([0.0, 0, 0, 0, 0, 0, 1])
FLOOR = rb.SphereContact("door", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, -2), plane_normal=(0, 0, 1))


@PLAIN
@pytest.mark.parametrize("method", ["rk45", "radau"])
def test_three_hinges_share_the_load_of_a_door_by_their_compliances(method):
    compliances, misfit = np.array([1e-8, 2e-8, 4e-8]), 1e-6
    model = door(compliances, misfit)
    motion = model.simulate(CLOSED_DOOR, duration=0.02, method=method, save_at=2, energy_error=method == "rk45")
    forces = motion.constraint_forces[-1].reshape(3, 5)
    # springs in parallel: the door sinks by x; the weight is 300 N
    sinks = (300.0 - misfit / compliances[0]) / (1.0 / compliances).sum()
    np.testing.assert_allclose(forces[:, 2], (sinks + misfit * np.array([1, 0, 0])) / compliances, rtol=1e-5)
    # it also tilts about y by the moment of the weight: horizontal forces k (x + a z), and moments of the hinges
    k, tilts = 1.0 / compliances, 1.0 / (100 * compliances)
    stiffness = np.array([[k.sum(), (k * HEIGHTS).sum()], [(k * HEIGHTS).sum(), (k * HEIGHTS**2).sum() + tilts.sum()]])
    x, a = np.linalg.solve(stiffness, [0.0, 300.0 * 0.4])
    np.testing.assert_allclose(forces[:, 0], -k * (x + a * HEIGHTS), rtol=1e-5)
    # their work is work of forces, so that the energy still shows the error of the integration: 9e-4 J are stored
    if method == "rk45":
        assert np.abs(motion.energy_error).max() < 1e-8


def four_bar(misfit=0.0):
    """A planar linkage in space, of hinges only: three of its constraint rows are redundant."""
    builder, hinge = rb.ModelBuilder(gravity=(0, -9.81, 0)), rb.Revolute((0, 0, 1))

    def link(length, mass):
        across = mass * length**2 / 12
        return rb.Inertia(mass, cg=(length / 2, 0, 0), inertia=(1e-3, across, across))

    builder.add_body("crank", joint=hinge, inertia=link(0.3, 1.0))
    place = rb.Pose((0.3, 0, misfit))
    builder.add_body("coupler", parent="crank", joint=hinge, placement=place, inertia=link(0.9, 2.0))
    builder.add_body("rocker", joint=hinge, placement=rb.Pose((1, 0, 0)), inertia=link(0.6, 1.5))
    return builder, rb.HingeConstraint("tip", "coupler", "rocker", point_a=(0.9, 0, 0), point_b=(0.6, 0, 0))


def closed_state(made, guess, first):
    builder, closing = made
    builder.add_constraint(closing)
    model = builder.build()
    q = model.assemble(guess, fixed=[first])
    return model, q, model.assemble_velocities(q, [2.0, 0, 0], fixed=[first])


LINKAGES = {
    "Bennett": (bennett_linkage, CLOSED, ["first", "second", "third"]),
    "planar": (four_bar, [1.2, -0.8, 1.6], ["crank", "coupler", "rocker"]),
}


@PLAIN
@pytest.mark.parametrize("name", LINKAGES)
def test_a_linkage_that_cannot_close_moves_as_on_a_bushing(name):
    made, guess, joints = LINKAGES[name]
    _, q, qd = closed_state(made(), guess, joints[0])
    tree, closing = made(1e-5)[0].build(), made()[1]
    accurate = {"method": "radau", "rtol": 1e-9, "atol": 1e-12, "save_at": 2}
    differences = []
    for time in (4e-3, 2e-3):
        law = soft(1e-7, 1e-5)
        bushing = rb.Bushing.in_place_of(closing, **law, damping_time=2 * time)
        start = tree.equilibrium(q, free=joints[1:], forces=[bushing]).q
        builder, _ = made(1e-5)
        builder.add_constraint(closing, **law, relaxation_time=time)
        expected = tree.simulate(start, qd, 0.1, forces=[bushing], **accurate)
        motion = builder.build().simulate(start, qd, 0.1, **accurate)
        assert motion.success
        assert motion.steps <= expected.steps
        wrench = tree.wrenches_between_bodies(expected.q[-1], expected.qd[-1], [bushing])
        on_bushing = wrench[tree.body_names.index(joints[2]), :3]
        differences.append(np.abs(motion.constraint_forces[-1, :3] - on_bushing).max() / np.abs(on_bushing).max())
        assert np.abs(motion.q[-1] - expected.q[-1]).max() < 1e-6
    # both laws have phi + 2 t dphi/dt; the difference t^2 d^2 phi/dt^2 is at least of second order in t
    assert differences[1] < 1e-3
    assert differences[0] / differences[1] > 3.0


@PLAIN
def test_a_linkage_approaches_the_rigid_linkage_linearly():
    rigid, q, qd = closed_state(four_bar(), [1.2, -0.8, 1.6], "crank")
    accurate = {"method": "radau", "rtol": 1e-10, "atol": 1e-13, "save_at": 2}
    expected, errors = rigid.simulate(q, qd, 0.1, **accurate), []
    for compliance in (4e-7, 2e-7):
        builder, closing = four_bar()
        builder.add_constraint(closing, **soft(compliance, 100 * compliance))
        motion = builder.build().simulate(q, qd, 0.1, **accurate)
        errors.append(
            [
                np.abs(motion.q[-1] - expected.q[-1]).max(),
                np.abs(motion.constraint_forces[-1, :2] - expected.constraint_forces[-1, :2]).max(),
            ]
        )
        # the perfect linkage has no axial force and no moments
        np.testing.assert_allclose(motion.constraint_forces[-1, 2:], 0.0, atol=1e-6)
    np.testing.assert_allclose(np.divide(*errors), 2.0, rtol=0.05)
    assert max(errors[1]) < 1e-3


@PLAIN
def test_rigid_constraints_stay_closed_beside_compliant_constraints():
    builder, closing = four_bar(1e-5)
    builder.add_constraint(closing, **COMPLIANT)
    ends = {"point_a": (1.0, 0.3, 0), "point_b": (0.3, 0.1, 0)}
    builder.add_constraint(rb.DistanceConstraint("rod", "crank", "rocker", **ends, length=1.0))
    model = builder.build()
    # the guess is nearly closed, and only the rod moves it
    q = model.assemble([1.2, -0.8385, 1.6533])
    assert np.abs(model.constraint_residual(q)[5:]).max() < 1e-12 < np.abs(model.constraint_residual(q)[:5]).max()
    qd = model.assemble_velocities(q, [1.0, 0, 0])
    motion = model.simulate(q, qd, 0.01, rtol=1e-8, save_at=5)
    assert motion.success
    assert np.abs(model.constraint_residual(motion.q)[:, 5]).max() < 1e-12


def states_of_doors():
    rng = np.random.default_rng(5)
    many = door(misfit=1e-5).vary({"hinge1.compliance": np.linspace(1e-8, 2e-8, 9)})
    q, qd = np.tile(CLOSED_DOOR, (9, 1)), 1e-3 * rng.normal(size=(9, 6))
    q[:, :3] += 1e-6 * rng.normal(size=(9, 3))
    return many, q, qd


def test_single_states_lanes_and_float32_agree():
    many, q, qd = states_of_doors()
    qdd = many.forward_dynamics(q, qd)
    np.testing.assert_allclose(many[3].forward_dynamics(q[3], qd[3]), qdd[3], atol=1e-9 * np.abs(qdd).max())
    # residuals have an error of about 1e-7 m in float32, or 0.1 m/s^2 for a relaxation time of 1e-3 s
    single = many.forward_dynamics(q.astype(np.float32), qd.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, qdd, atol=0.3)


@PLAIN
def test_samples_have_their_own_compliances():
    many, q, qd = states_of_doors()
    # the law without multipliers: (H + J^T (t^2 / c) J) qdd = - h - J^T (2 t dphi/dt + phi) / c
    J, phi = many.constraint_jacobian(q), many.constraint_residual(q)
    stiffness = np.stack([1.0 / compliances_of_rows(many[i])[0] for i in range(9)])
    H = many.mass_matrix(q) + 1e-6 * np.einsum("nri,nr,nrj->nij", J, stiffness, J)
    law = stiffness * (2e-3 * np.einsum("nri,ni->nr", J, qd) + phi)
    right = -many.bias_forces(q, qd) - np.einsum("nri,nr->ni", J, law)
    # dJ/dt qd, about 1e-6 m/s^2, is missing here
    np.testing.assert_allclose(many.forward_dynamics(q, qd), np.linalg.solve(H, right[..., None])[..., 0], atol=1e-5)


@PLAIN
def test_simulations_in_float32_follow_those_in_float64():
    q = CLOSED_DOOR.astype(np.float32)[None]
    model, settings = door((1e-5, 1e-5, 1e-5), relaxation_time=5e-3), {"method": "rk4", "step": 5e-3, "save_at": 2}
    single, double = (
        model.simulate(q, duration=0.2, **settings),
        model.simulate(q.astype(float), duration=0.2, **settings),
    )
    assert single.q.dtype == np.float32
    # an error of 1e-7 m of a residual divided by the compliance
    np.testing.assert_allclose(single.constraint_forces, double.constraint_forces, atol=0.1)


@PLAIN
def test_copies_keep_the_compliances(tmp_path):
    model = door((1e-8, 2e-8, 3e-8), relaxation_time=2e-3)
    rb.save(model, tmp_path / "door.toml")
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_model(model)
    builder.add_body("handle", parent="door", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    copies = (
        rb.load(tmp_path / "door.toml"),
        pickle.loads(pickle.dumps(model)),
        builder.build().lock({"handle": 0.0}).replace(mass=[30.0], cg=model.cg, inertia=model.inertia),
        model.vary({"hinge1.compliance": [2e-8, 1.0]})[0],
    )
    expected = model.constraint_forces(CLOSED_DOOR, np.ones(6))
    for copy in copies:
        np.testing.assert_array_equal(copy.constraint_relaxation_time, [2e-3] * 3)
        np.testing.assert_allclose(copy.constraint_forces(CLOSED_DOOR, np.ones(6)), expected, rtol=1e-9, atol=1e-9)
    text = (tmp_path / "door.toml").read_text().replace("compliance = 1e-08", 'compliance = "1e-5 mm/N"', 1)
    (tmp_path / "door.toml").write_text(text)
    assert rb.load(tmp_path / "door.toml").constraint_compliance[0] == pytest.approx(1e-8)


HINGE = rb.HingeConstraint("hinge", None, "a")


@PLAIN
@pytest.mark.parametrize(
    ("constraint", "given", "problem"),
    [
        (HINGE, {"compliance": 1e-8}, "compliance is given without angular_compliance; expected compliance and"),
        (HINGE, {"relaxation_time": 1.0}, "relaxation_time is given without compliance, angular_compliance"),
        (HINGE, soft(0.0, 1.0), r"compliance is 0\.0; expected a positive number"),
        (HINGE, soft(1.0, np.nan), "angular_compliance is nan; expected finite numbers"),
        (rb.BallConstraint("b", None, "a"), soft(1.0, 1.0), "angular_compliance is given; expected only compliance, r"),
        (rb.CouplerConstraint("c", "a", "b", 2.0), {"compliance": 1.0}, "because couplers are rigid"),
    ],
)
def test_invalid_compliances_are_refused(constraint, given, problem):
    with pytest.raises(rb.ModelError, match=problem):
        rb.ModelBuilder().add_constraint(constraint, **given)


REST, ACTUATED = np.zeros(6), {"actuated": ["door"]}


@PLAIN
@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("equilibrium", lambda m: m.equilibrium(CLOSED_DOOR)),
        ("linearize", lambda m: m.linearize(CLOSED_DOOR)),
        ("modes", lambda m: m.modes(CLOSED_DOOR)),
        ("assemble", lambda m: m.assemble(CLOSED_DOOR)),
        ("assemble_velocities", lambda m: m.assemble_velocities(CLOSED_DOOR, REST)),
        ("inverse_dynamics", lambda m: m.inverse_dynamics(CLOSED_DOOR, REST, REST, **ACTUATED)),
        ("inverse_dynamics_derivatives", lambda m: m.inverse_dynamics_derivatives(CLOSED_DOOR, REST, REST, **ACTUATED)),
        ("hybrid_dynamics", lambda m: m.hybrid_dynamics(CLOSED_DOOR, REST, REST, REST, prescribed=[True] * 6)),
        (r"simulate\(derivatives", lambda m: m.simulate(CLOSED_DOOR, duration=0.1, derivatives=["mass"])),
        ('method "moreau"', lambda m: m.simulate(CLOSED_DOOR, duration=0.1, method="moreau", step=1e-3)),
        ('method "rk45" with DryFriction', lambda m: m.simulate(CLOSED_DOOR, duration=0.1, forces=[FLOOR])),
        ("inverse_kinematics", lambda m: m.inverse_kinematics({"door": rb.Pose()}, CLOSED_DOOR)),
        ("fit", lambda m: rb.fit(m, m.simulate(CLOSED_DOOR, duration=0.01, save_at=3), ["mass"])),
    ],
)
def test_functions_that_do_not_support_compliant_constraints_refuse_them(function, call):
    with pytest.raises(rb.ModelError, match=f"^{function}.* does not support compliant constraints, and model"):
        call(door())


@PLAIN
@pytest.mark.parametrize(("method", "factor"), [("rk4", 2.0), ("implicit", 0.5)])
def test_fixed_steps_are_stable_or_refused(method, factor):
    model, settings = door(relaxation_time=1e-2), {"method": method, "duration": 0.2, "save_at": 2}
    forces = model.simulate(CLOSED_DOOR, step=factor * 1e-2, **settings).constraint_forces[-1]
    np.testing.assert_allclose(forces.reshape(3, 5)[:, 2], 100.0, rtol=1e-3)
    with pytest.raises(rb.ArgumentError, match=f"stable only up to {factor * 1e-2:g} s"):
        model.simulate(CLOSED_DOOR, step=factor * 1.25e-2, **settings)


@PLAIN
def test_compliances_vary_only_in_compliant_constraints():
    builder, _ = four_bar()
    builder.add_constraint(rb.BallConstraint("rigid", "coupler", "rocker", point_a=(0.9, 0, 0), point_b=(0.6, 0, 0)))
    with pytest.raises(rb.ModelError, match=r"'rigid': constraint_compliance is 1\.0; expected 0"):
        builder.build().vary(constraint_compliance=[1.0])
    with pytest.raises(rb.UnknownNameError, match=r"rigid\.compliance"):
        builder.build().vary({"rigid.compliance": 1.0})
    with pytest.raises(
        rb.ModelError, match=r"'hinge0' of sample \(1,\): constraint_compliance is 0\.0; expected a pos"
    ):
        door().vary({"hinge0.compliance": [1.0, 0.0]})
