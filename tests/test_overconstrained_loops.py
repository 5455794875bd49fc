"""Loops with redundant rows: closed forms, all positions of a turn, and states that must not be returned."""

import numpy as np
import pytest
import scipy.integrate

import rbchain as rb

from .closed_chains import as_batch, closed_chain

plain = pytest.mark.plain_python
HINGE = rb.Revolute((0, 0, 1))
G = 9.81
CLOSED = 1e-10  # residual of a saved state, m or rad


def assert_closed(model, motion):
    assert motion.success, motion.message
    assert np.abs(model.constraint_residual(motion.q)).max() < CLOSED


def energy_changes(model, motion):
    total = sum(model.energy(motion.q, motion.qd))
    return np.ptp(total, axis=-1).max() / np.abs(total).max()


# --- a Cardan joint ---------------------------------------------------------------------------------------------------

BEND = np.radians(30.0)


def cardan_joint():
    """Two shafts at 30 degrees, whose bearings and Cardan joint form a loop: 6 rows of rank 3 for 4 coordinates."""
    inertia = rb.Inertia(1.0, inertia=(0.02, 0.01, 0.01))
    turn = np.array([[np.cos(BEND), -np.sin(BEND), 0], [np.sin(BEND), np.cos(BEND), 0], [0, 0, 1]])
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    along = rb.Revolute((1, 0, 0))
    builder.add_body("in", joint=along, inertia=inertia)
    cross = rb.Universal((0, 0, 1), (0, 1, 0))
    builder.add_body("fork", parent="in", joint=cross, placement=rb.Pose((0.5, 0, 0)), inertia=inertia)
    builder.add_body("out", joint=along, placement=rb.Pose((0.5, 0, 0), turn), inertia=inertia)
    flange = rb.Pose((0.3, 0.1, 0.05))
    builder.add_constraint(rb.WeldConstraint("flange", "fork", "out", pose_a=flange, pose_b=flange))
    model = builder.build()
    q = model.assemble([0, BEND, 0, 0], fixed=["in"])
    return model, q, model.assemble_velocities(q, [10.0, 0, 0, 0], fixed=["in"])


def assert_angles_of_a_cardan_joint(q):
    """tan(out) = tan(in) cos(bend), without its poles."""
    first, second = q[..., 0], q[..., 3]
    difference = np.sin(second) * np.cos(first) - np.cos(second) * np.sin(first) * np.cos(BEND)
    np.testing.assert_allclose(difference, 0.0, atol=1e-9)


def test_a_cardan_joint_turns_without_an_end():
    """The samples start with other speeds, so that they select their rows at other angles."""
    model, q, qd = cardan_joint()
    speeds = np.array([1.0, -1.0, 0.3, 2.0, 0.7])
    motion = as_batch(model, 5).simulate(
        np.tile(q, (5, 1)), speeds[:, None] * qd, 1.0, save_at=21, rtol=1e-8, atol=1e-10
    )
    assert_closed(model, motion)
    assert_angles_of_a_cardan_joint(motion.q)
    assert energy_changes(model, motion) < 1e-6
    alone = as_batch(model).simulate(q[None], speeds[3] * qd[None], 1.0, save_at=21, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(alone.q[0], motion.q[3])


@pytest.mark.slow
@pytest.mark.parametrize("is_driven", [False, True])
@pytest.mark.parametrize("method", ["rk45", "rosenbrock", "radau", "rk4", "implicit"])
def test_a_cardan_joint_turns_with_all_methods(method, is_driven):
    model, q, qd = cardan_joint()
    drives = [rb.PrescribedVelocity("in", 10.0)] if is_driven else []
    fixed = {"step": 1e-3} if method in ("rk4", "implicit") else {}
    motion = model.simulate(q, qd, 1.0, save_at=41, method=method, drives=drives, **fixed)
    assert_closed(model, motion)
    assert_angles_of_a_cardan_joint(motion.q)


@pytest.mark.slow
@plain
def test_the_accelerations_of_a_cardan_joint_do_not_depend_on_the_selected_rows():
    """In each position of a turn, the accelerations are those of the smallest set of rows, by a null space of J."""
    model, *_ = cardan_joint()
    for angle in np.linspace(0.0, 2.0 * np.pi, 25):
        out = np.arctan2(np.sin(angle) * np.cos(BEND), np.cos(angle))
        q = model.assemble([angle, BEND * np.cos(angle), BEND * np.sin(angle), out], fixed=["in"])
        tau = np.array([1.0, 0.2, -0.3, 0.5])
        along = np.linalg.svd(model.constraint_jacobian(q))[2][3]
        expected = along * (along @ tau) / (along @ model.mass_matrix(q) @ along)
        found = model.forward_dynamics(q, np.zeros(4), tau)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


# --- a Scott-Russell mechanism ----------------------------------------------------------------------------------------

CRANK = 0.5
MASSES = {"crank": 1.0, "bar": 1.5, "x": 0.4, "y": 0.7}


def scott_russell():
    """A crank with a bar of twice its length on it, whose ends slide along x and y: one of the sliders is redundant."""
    a, m = CRANK, MASSES
    builder = rb.ModelBuilder(gravity=(0, -G, 0))
    rod, bar = m["crank"] * a**2 / 12, m["bar"] * (2 * a) ** 2 / 12
    builder.add_body("crank", joint=HINGE, inertia=rb.Inertia(m["crank"], cg=(a / 2, 0, 0), inertia=(1e-6, rod, rod)))
    bar = rb.Inertia(m["bar"], inertia=(1e-6, bar, bar))
    builder.add_body("bar", parent="crank", joint=HINGE, placement=rb.Pose((a, 0, 0)), inertia=bar)
    for name, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0))):
        builder.add_body(name, joint=rb.Prismatic(axis), inertia=rb.Inertia(m[name]))
    builder.add_constraint(rb.BallConstraint("pin x", "bar", "x", point_a=(a, 0, 0)))
    builder.add_constraint(rb.BallConstraint("pin y", "bar", "y", point_a=(-a, 0, 0)))
    return builder.build()


def scott_russell_state(angle, speed):
    a = CRANK
    q = np.array([angle, -2 * angle, 2 * a * np.cos(angle), 2 * a * np.sin(angle)])
    return q, speed * np.array([1, -2, -2 * a * np.sin(angle), 2 * a * np.cos(angle)])


def scott_russell_acceleration(angle, speed, torque=0.0):
    """Lagrange's equation of T = J(q) qd^2 / 2 and V = g (mc a / 2 + mb a + 2 a my) sin q."""
    a, m = CRANK, MASSES
    fixed = m["crank"] * a**2 / 3 + m["bar"] * a**2 + m["bar"] * (2 * a) ** 2 / 12
    J = fixed + 4 * a**2 * (m["x"] * np.sin(angle) ** 2 + m["y"] * np.cos(angle) ** 2)
    slope = 4 * a**2 * (m["x"] - m["y"]) * np.sin(2 * angle)
    weight = G * (m["crank"] * a / 2 + m["bar"] * a + 2 * a * m["y"]) * np.cos(angle)
    return (torque - slope * speed**2 / 2 - weight) / J


@plain
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-3)])
def test_two_sliders_agree_with_lagranges_equation_in_all_positions(dtype, tolerance):
    model = scott_russell()
    for angle in (0.3, 1.2, np.pi / 2, 2.0, np.pi, -0.4):
        q, qd = (x.astype(dtype) for x in scott_russell_state(angle, 2.0))
        found = model.forward_dynamics(q, qd, np.array([5.0, 0, 0, 0], dtype))
        expected = scott_russell_acceleration(angle, 2.0, 5.0)
        assert found[0] == pytest.approx(expected, rel=tolerance, abs=10 * tolerance)


def test_two_sliders_move_as_lagranges_equation():
    model = scott_russell()
    q, qd = scott_russell_state(0.3, 6.0)
    rate = lambda t, y: [y[1], scott_russell_acceleration(*y)]  # noqa: E731
    end = scipy.integrate.solve_ivp(rate, (0, 3), [0.3, 6.0], method="DOP853", rtol=1e-12, atol=1e-12).y[0, -1]
    start = np.tile(q, (2, 1)), np.tile(qd, (2, 1))
    motion = as_batch(model, 2).simulate(*start, 3.0, save_at=31, rtol=1e-8, atol=1e-10)
    assert_closed(model, motion)
    np.testing.assert_allclose(motion.q[:, -1, 0], end, rtol=0, atol=1e-6)


# --- a gate on ball joints --------------------------------------------------------------------------------------------

AXES = {"z": (0, 0, 1), "oblique": (1, 2, 3), "nearly x": (1, 1e-9, -1e-7)}


def gate(axis, place=(0, 0, 0)):
    """A free body on two ball joints at its origin and at 1 m along an axis: a pendulum about this axis."""
    n = np.array(axis) / np.linalg.norm(axis)
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("gate", joint=rb.Free(), inertia=rb.Inertia(1.5, cg=(0.5, 0.1, 0.0), inertia=(0.1, 0.2, 0.15)))
    builder.add_constraint(rb.BallConstraint("lower", None, "gate", point_a=place))
    builder.add_constraint(rb.BallConstraint("upper", None, "gate", point_a=np.add(place, n), point_b=n))
    return builder.build(), np.array([*place, 0, 0, 0, 1.0]), n


@plain
@pytest.mark.parametrize("axis", AXES.values(), ids=AXES)
def test_a_gate_turns_about_its_axis(axis):
    """I qdd = n . (c x m g) with the moment of inertia I = n . J n + m |c - n (n . c)|^2 about the axis n."""
    model, q, n = gate(axis)
    c, m = np.array([0.5, 0.1, 0.0]), 1.5
    inertia = n @ np.diag([0.1, 0.2, 0.15]) @ n + m * np.sum(np.square(c - n * (n @ c)))
    expected = n @ np.cross(c, [0, 0, -m * G]) / inertia
    for speed in (0.0, 5.0):
        found = model.forward_dynamics(q, np.array([0, 0, 0, *(speed * n)]), np.zeros(6))
        np.testing.assert_allclose(found[3:], expected * n, rtol=0, atol=1e-9)


@pytest.mark.parametrize("place", [(0, 0, 0), (1e3, -300.0, 20.0)])
def test_spinning_gates_are_valid_initial_states(place):
    """Terms of the size of the speed cancel in the velocities of the points on the axis, and leave round-off."""
    speeds = np.array([0.0, 5.0, -0.1, 1e-12, 30.0])
    for axis in AXES.values():
        model, q, n = gate(axis, place)
        states = np.tile(q, (5, 1)), np.concatenate([np.zeros((5, 3)), speeds[:, None] * n], -1)
        motion = as_batch(model, 5).simulate(*states, 0.3, save_at=4, rtol=1e-8, atol=1e-10)
        assert motion.success, motion.message
        turned = motion.q[..., 3:6] - (motion.q[..., 3:6] @ n)[..., None] * n
        np.testing.assert_allclose(turned, 0.0, atol=1e-9)


@plain
def test_an_initial_velocity_that_violates_the_constraints_is_still_refused():
    model, q, n = gate((1, 2, 3))
    qd = np.array([0, 0, 0, *(5.0 * n)])
    qd[3] += 1e-3
    with pytest.raises(rb.ArgumentError, match=r"qd0 does not satisfy the constraints"):
        model.simulate(q, qd, 0.1, rtol=1e-8, atol=1e-10, save_at=2)


# --- three parallel cranks --------------------------------------------------------------------------------------------


def three_cranks():
    """A coupler of 2 m on three cranks of 0.5 m, each of 1 kg: 10 rows of rank 3 for 4 coordinates.

    While the cranks are parallel, with the angle a, the energy is 0.25 a'^2 + 1.25 g sin(a).
    """

    def rod(length):
        return rb.Inertia(1.0, cg=(length / 2, 0, 0), inertia=(0.01, length**2 / 12, length**2 / 12))

    builder = rb.ModelBuilder(gravity=(0, -G, 0))
    builder.add_body("first", joint=HINGE, inertia=rod(0.5))
    builder.add_body("coupler", parent="first", joint=HINGE, placement=rb.Pose((0.5, 0, 0)), inertia=rod(2.0))
    for name, x in (("second", 1.0), ("third", 2.0)):
        builder.add_body(name, joint=HINGE, placement=rb.Pose((x, 0, 0)), inertia=rod(0.5))
        builder.add_constraint(rb.HingeConstraint(name, "coupler", name, point_a=(x, 0, 0), point_b=(0.5, 0, 0)))
    return builder.build()


PARALLEL = np.array([1.0, -1.0, 1.0, 1.0])


def slow(method):
    return pytest.param(method, marks=pytest.mark.slow)


DOP853 = pytest.param("dop853", marks=pytest.mark.plain_python)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rk45", DOP853, "rk4", slow("rosenbrock"), slow("radau"), slow("moreau")])
def test_three_cranks_stay_parallel_through_singular_positions(method):
    """They swing through angles of 0 and -pi, where the rank is 2.

    Steps of 1e-8 may lose 1e-6 of the energy. Each of the 1000 steps of "moreau" loses up to (h w)^3 of it, with
    rates w below 10 rad/s.
    """
    settings = {"step": 1e-3} if method in ("rk4", "moreau") else {}
    start = PARALLEL[None]
    motion = as_batch(three_cranks()).simulate(start, start, 1.0, method=method, save_at=2, **settings)
    assert motion.success, motion.message
    q, qd = motion.q[0, -1], motion.qd[0, -1]
    assert q[0] < -np.pi
    np.testing.assert_allclose(q, q[0] * PARALLEL, rtol=1e-9)
    np.testing.assert_allclose(qd, qd[0] * PARALLEL, rtol=1e-9)
    energy = 0.25 * np.array([1.0, qd[0] ** 2]) + 1.25 * G * np.sin([1.0, q[0]])
    allowed = 1000 * (10 * 1e-3) ** 3 if method == "moreau" else 1e-6
    np.testing.assert_allclose(energy[1], energy[0], rtol=allowed)


@plain
@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau", "rk45"])
@pytest.mark.parametrize("distance", [1e-3, -1e-4, 1e-5, 1e-6, -2e-7, 1e-9, -1e-12, 0.0])
def test_a_step_that_ends_near_a_singular_position_has_the_right_velocity_or_fails(method, distance):
    """The fifth step of 1 ms ends at an angle of `distance`. Without gravity, the cranks turn with a constant rate.

    Up to 3.4e-7 rad from the singular configuration, round-off decides that a row is dependent. Elsewhere, the velocity
    across the motion has an error of round-off divided by the distance.
    """
    model = three_cranks().replace(gravity=(0, 0, 0))
    settings = {} if method == "rk45" else {"step": 1e-3}
    start = (-4.0 * 5e-3 - distance) * PARALLEL, 4.0 * PARALLEL
    motion = model.simulate(*start, 1e-2, method=method, save_at=[0, 5e-3, 1e-2], on_failure="ignore", **settings)
    saved = np.isfinite(motion.qd).all(-1)
    allowed = 64 * np.finfo(float).eps * 4.0 / 3.4e-7
    np.testing.assert_allclose(motion.qd[saved], np.tile(4.0 * PARALLEL, (saved.sum(), 1)), rtol=0, atol=allowed)
    np.testing.assert_allclose(motion.end_qd, 4.0 * PARALLEL, rtol=0, atol=allowed)
    is_singular = abs(distance) < 3.4e-7 and method != "rk45"
    assert motion.status == (rb.Status.NOT_ASSEMBLED if is_singular else rb.Status.DONE)


# --- states that are not closed ---------------------------------------------------------------------------------------


@pytest.mark.slow
@plain
def test_no_state_is_returned_in_which_a_loop_is_open():
    """Two drives contradict the constraints after the start. From the first open state on, all states are NaN."""
    chain = closed_chain("four-bar")
    q = chain.model.assemble(chain.guess)
    qd = chain.model.assemble_velocities(q, [1.0, 0, 0], fixed=["crank"])
    drives = [
        rb.PrescribedPosition(name, rb.Signal.polynomial([q[i], qd[i]])) for i, name in ((0, "crank"), (2, "rocker"))
    ]
    motion = chain.model.simulate(q, qd, 0.1, save_at=6, drives=drives, rtol=1e-4, atol=1e-4, on_failure="ignore")
    assert motion.status == rb.Status.NOT_ASSEMBLED
    finite = np.isfinite(motion.q).all(-1)
    assert finite[0]
    assert not finite[np.argmin(finite) :].any()
    assert np.abs(chain.model.constraint_residual(motion.q[finite])).max() < CLOSED
