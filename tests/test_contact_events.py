"""Dry friction, stops and contacts in methods with adaptive steps, which locate impacts and changes of the modes."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import rbchain as rb
from rbchain.core.motion import contact_events

pytestmark = pytest.mark.plain_python
G = 10.0


def block(angle=0.0, mass=2.0, stiffness=0.0, **limits):
    """A block on an incline that falls along x, and the normal force."""
    builder = rb.ModelBuilder(gravity=(G * math.sin(angle), 0, -G * math.cos(angle)))
    builder.add_body(
        "block",
        joint=rb.Prismatic((1, 0, 0)),
        inertia=rb.Inertia(mass=mass),
        passive=rb.PassiveForces(stiffness=stiffness),
        limits=rb.JointLimits(**limits) if limits else None,
    )
    return builder.build(), mass * G * math.cos(angle)


def ball(restitution, **given):
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    floor = rb.SphereContact(
        "ball",
        point=(0, 0, 0),
        radius=0.1,
        plane_point=(0, 0, 0),
        plane_normal=(0, 0, 1),
        restitution=restitution,
        **given,
    )
    return builder.build(), floor


def rod_in_the_plane(restitution=0.0, friction=0.0, inertia=0.1):
    """A rod that moves in the plane y = 0, with a sphere at each end, above a floor."""
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("x", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=0.1))
    builder.add_body("z", parent="x", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=0.1))
    rod = rb.Inertia(mass=1.0, inertia=(0.01, inertia, inertia))
    builder.add_body("rod", parent="z", joint=rb.Revolute((0, 1, 0)), inertia=rod)
    ends = [
        rb.SphereContact(
            "rod",
            point=(x, 0, 0),
            radius=0.05,
            plane_point=(0, 0, 0),
            plane_normal=(0, 0, 1),
            friction=friction,
            restitution=restitution,
            max_records=100,
        )
        for x in (-0.5, 0.5)
    ]
    return builder.build(), ends


def energy_of(model, motion):
    return sum(model.energy(motion.q, motion.qd))


# --- dry friction -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_block_sticks_on_an_incline_without_drift_for_1000_s():
    model, normal = block(angle=0.3)
    friction = rb.DryFriction("block", (math.tan(0.3) + 1e-6) * normal)
    motion = model.simulate([0.25], [0.0], 1000.0, forces=[friction], save_at=11)
    assert motion.success
    assert (motion.q == 0.25).all() and (motion.qd == 0.0).all()
    assert motion.sticking[0].count == 1
    assert motion.sticking[0].start[0] == 0.0 and motion.sticking[0].end[0] == np.inf


def test_block_slides_with_the_exact_acceleration():
    model, normal = block(angle=0.3)
    friction = rb.DryFriction("block", (math.tan(0.3) - 1e-6) * normal)
    motion = model.simulate([0.0], [0.0], 2.0, forces=[friction], save_at=5)
    a = 1e-6 * G * math.cos(0.3)
    np.testing.assert_allclose(motion.q[:, 0], 0.5 * a * motion.t**2, rtol=1e-7)
    assert motion.sticking[0].count == 0


def test_sliding_block_stops_at_the_exact_position():
    model, normal = block()
    motion = model.simulate([0.0], [3.0], 2.0, forces=[rb.DryFriction("block", 0.4 * normal)], save_at=5)
    np.testing.assert_allclose(motion.q[-1], 9.0 / (2 * 0.4 * G), rtol=1e-12)
    np.testing.assert_allclose(motion.sticking[0].start[0], 3.0 / (0.4 * G), rtol=1e-11)
    assert (motion.qd[motion.t > 0.75] == 0.0).all()


@pytest.mark.parametrize("method", ["rk45", "rosenbrock"])
def test_oscillator_with_coulomb_friction_stops_at_the_exact_position(method):
    """The center of each half oscillation is at +- F / k, until a turning point is within F / k of zero."""
    model, _ = block(mass=1.0, stiffness=4.0)
    motion = model.simulate([1.0], [0.0], 8.0, method=method, forces=[rb.DryFriction("block", 0.5)], save_at=9)
    offset, x, halves = 0.5 / 4.0, 1.0, 0
    while abs(x) > offset:
        x, halves = -(x - 2 * offset * np.sign(x)), halves + 1
    np.testing.assert_allclose(motion.q[-1], x, rtol=0, atol=2e-8)
    np.testing.assert_allclose(motion.sticking[0].start[0], halves * np.pi / 2.0, atol=2e-8)
    assert motion.qd[-1, 0] == 0.0 and motion.sticking[0].count == 1


def test_static_friction_that_differs_between_the_directions():
    """A rising force moves the block when it reaches the static friction of its direction."""
    model, _ = block(mass=1.0)
    friction = rb.DryFriction("block", 1.0, static=2.0, kinetic_backward=2.0, static_backward=3.0)
    force = [rb.PrescribedForce("block", rb.Signal.polynomial([[0.0, 1.0], [0.0, -1.0]]))]
    start = np.zeros((2, 1))
    motion = model.simulate(start, start, 4.0, forces=[friction], drives=force, save_at=5)
    np.testing.assert_allclose(motion.sticking[0].end[:, 0], [2.0, 3.0], rtol=1e-8)
    t = motion.t[-1] - motion.sticking[0].end[:, 0]  # the resultant force is 1 N at first, and rises
    np.testing.assert_allclose(motion.qd[:, -1, 0], [1, -1] * (t + t**2 / 2), rtol=1e-8)


@pytest.mark.slow_cases("0.01")
@pytest.mark.parametrize(("method", "error"), [("rk45", 1e-8), ("rosenbrock", 1e-8), ("moreau", 0.01)])
def test_friction_at_its_limit_sticks_while_a_stop_holds_the_joint(method, error):
    """A force 4 N - 2 N/s t presses the block against a stop until friction of 2 N holds it alone, from 1 s to 3 s."""
    model, _ = block(mass=1.0, lower=-10.0, upper=0.0)
    forces = [rb.DryFriction("block", 2.0), rb.HardStops("block", restitution=0.0)]
    force = [rb.PrescribedForce("block", rb.Signal.polynomial([4.0, -2.0]))]
    step = {"step": 0.01} if method == "moreau" else {}
    motion = model.simulate([0.0], [0.0], 4.0, method=method, forces=forces, drives=force, save_at=5, **step)
    assert motion.sticking[0].count == 1 and motion.sticking[0].start[0] == 0.0
    np.testing.assert_allclose(motion.sticking[0].end[0], 3.0, rtol=0, atol=error)
    assert (motion.qd[:4] == 0.0).all() and motion.qd[4, 0] < -0.5


@pytest.mark.fast_cases("rk45")
@pytest.mark.parametrize("method", ["rk45", "rosenbrock", "moreau"])
def test_friction_at_its_limit_sticks_while_a_contact_holds_the_joint(method):
    """A lift of 1 kg with friction of 1 N falls onto the floor, and a drive moves it up again after 2 s."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10.0))
    builder.add_body("lift", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=1.0))
    floor = rb.SphereContact(
        "lift", point=(0, 0, 0), radius=0.0, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), restitution=0.0
    )
    forces = [rb.DryFriction("lift", 1.0), floor]
    force = [rb.PrescribedForce("lift", rb.Signal.table([0.0, 2.0, 3.0], [0.0, 0.0, 12.0], interpolation="linear"))]
    step = {"step": 0.01} if method == "moreau" else {}
    motion = builder.build().simulate(
        [0.45], [0.0], 3.0, method=method, forces=forces, drives=force, save_at=[1.0, 3.0], **step
    )
    record = motion.sticking[0]
    assert record.count == 1
    np.testing.assert_allclose(record.start[0], np.sqrt(0.9 / 9.0), rtol=0, atol=0.03 if step else 1e-8)
    np.testing.assert_allclose(record.end[0], 2.0 + 11.0 / 12.0, rtol=0, atol=0.03 if step else 1e-8)
    assert motion.qd[-1, 0] > 0.0


# --- impacts ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("0.5")
@pytest.mark.parametrize("restitution", [0.0, 0.5, pytest.param(0.8, marks=pytest.mark.slow)])
def test_bouncing_ball_and_its_rest(restitution):
    """Zeno: infinitely many bounces end at the time t_1 (1 + e) / (1 - e)."""
    model, floor = ball(restitution, max_records=100)
    drop, first = 0.8, math.sqrt(2 * 0.8 / G)
    motion = model.simulate([0.1 + drop], [0.0], 5.0, forces=[floor], save_at=51)
    count = int(motion.impacts[0].count)
    speeds = math.sqrt(2 * drop * G) * restitution ** np.arange(count)
    times = first + np.concatenate([[0.0], np.cumsum(2 * speeds[1:] / G)])
    assert motion.success and count < 70
    np.testing.assert_allclose(motion.impacts[0].t[:count], times, rtol=0, atol=1e-8)
    expected = np.zeros((count, 3))
    expected[:, 2] = speeds + np.append(speeds[1:], 0.0)
    np.testing.assert_allclose(motion.impacts[0].impulse[:count], expected, rtol=1e-6, atol=1e-8)
    assert motion.q.min() > 0.1 - 1e-9 and abs(motion.q[-1, 0] - 0.1) < 1e-9 and abs(motion.qd[-1, 0]) < 1e-12
    np.testing.assert_allclose(motion.contact_forces[-1, 0], [0, 0, G], atol=1e-9)
    assert (np.diff(energy_of(model, motion)) < 1e-9).all()
    assert motion.contact_residual < 1e-12


def test_elastic_ball_keeps_its_energy():
    model, floor = ball(1.0, max_records=100)
    motion = model.simulate([0.9], [0.0], 4.0, forces=[floor], save_at=21)
    assert motion.impacts[0].count == 5
    np.testing.assert_allclose(energy_of(model, motion), energy_of(model, motion)[0], rtol=1e-11)


def test_hard_stops_on_both_sides():
    """Without friction, the speed is e^k v after k impacts."""
    model, _ = block(lower=-0.5, upper=1.0)
    stops = rb.HardStops("block", restitution=0.5)
    motion = model.simulate([0.0], [2.0], 4.0, forces=[stops], save_at=41)
    np.testing.assert_allclose(motion.impacts[0].t[:2], [0.5, 2.0], rtol=1e-11)
    np.testing.assert_allclose(motion.impacts[0].impulse[:2], [-2 * 3.0, 2 * 1.5], rtol=1e-11)
    assert motion.impacts[0].count == 2 and motion.q.max() <= 1.0 + 1e-10 and motion.q.min() >= -0.5 - 1e-10


def test_cradle():
    """Newton's cradle with gaps: the last block takes over the velocity of the first one.

    The joint of a block measures its distance from the block before it.
    """
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("first", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    distance = rb.JointLimits(lower=1.0, upper=5.0)
    builder.add_body(
        "second", parent="first", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0), limits=distance
    )
    builder.add_body(
        "third", parent="second", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0), limits=distance
    )
    model = builder.build()
    stops = [rb.HardStops(name, restitution=1.0) for name in ("second", "third")]
    motion = model.simulate([0.0, 2.0, 2.0], [1.0, -1.0, 0.0], 3.0, forces=stops, save_at=4)
    velocities = np.cumsum(motion.qd[-1])
    np.testing.assert_allclose(velocities, [0.0, 0.0, 1.0], atol=1e-10)
    np.testing.assert_allclose([record.t[0] for record in motion.impacts], [1.0, 2.0], rtol=1e-11)


@pytest.mark.slow
def test_rocking_rod_comes_to_rest():
    model, ends = rod_in_the_plane(restitution=0.0, friction=0.5)
    motion = model.simulate([0.0, 0.5, 0.3], [0.0, 0.0, 0.0], 2.0, forces=ends, save_at=41)
    energy = energy_of(model, motion)
    assert motion.success and (np.diff(energy) < 1e-8).all()
    np.testing.assert_allclose(motion.q[-1, 1:], [0.05, 0.0], atol=1e-9)
    np.testing.assert_allclose(motion.qd[-1], 0.0, atol=1e-10)
    np.testing.assert_allclose(motion.contact_forces[-1, :, 2], 1.1 * G / 2, rtol=1e-7)
    for x, end in ((-0.5, 0), (0.5, 1)):
        height = motion.q[:, 1] - x * np.sin(motion.q[:, 2]) - 0.05
        assert height.min() > -1e-8, end


@pytest.mark.slow
def test_box_slides_on_four_points_and_stops():
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("box", joint=rb.Free(), inertia=rb.Inertia(mass=2.0, inertia=(0.1, 0.1, 0.1)))
    model = builder.build()
    corners = [
        rb.SphereContact(
            "box", point=(x, y, -0.1), radius=0.0, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), friction=0.3
        )
        for x in (0.2, -0.2)
        for y in (0.2, -0.2)
    ]
    velocity = np.array([1.0, 0.5, 0.0])
    speed = np.linalg.norm(velocity)
    motion = model.simulate([0, 0, 0.1, 0, 0, 0, 1], [*velocity, 0, 0, 0], 1.0, forces=corners, save_at=6)
    np.testing.assert_allclose(motion.q[-1, :2], speed / (2 * 0.3 * G) * velocity[:2], rtol=1e-9)
    np.testing.assert_allclose([record.start[0] for record in motion.sticking], speed / (0.3 * G), rtol=1e-10)
    np.testing.assert_allclose(
        motion.contact_forces[1].sum(0), [*(-0.3 * 2 * G * velocity[:2] / speed), 2 * G], rtol=1e-8
    )
    np.testing.assert_allclose(motion.contact_forces[-1].sum(0), [0, 0, 2 * G], atol=1e-7)


@pytest.mark.slow
def test_chain_falls_on_the_floor():
    model = rb.Model.serial_chain(3, length=0.3, gravity=(0, -G, 0))
    floor = [
        rb.SphereContact(
            name,
            point=(0.3, 0, 0),
            radius=0.02,
            plane_point=(0, -0.2, 0),
            plane_normal=(0, 1, 0),
            friction=0.4,
            restitution=0.2,
            max_records=99,
        )
        for name in model.body_names
    ]
    motion = model.simulate(np.zeros(3), np.zeros(3), 1.0, forces=floor, save_at=21, rtol=1e-6, atol=1e-8)
    assert motion.success, motion.message
    assert (np.diff(energy_of(model, motion)) < 1e-6).all()
    points = [model.frame_poses(motion.q, name) for name in model.body_names]
    heights = [pose.translation[:, 1] + 0.3 * pose.rotation[:, 1, 0] - 0.02 + 0.2 for pose in points]
    assert np.min(heights) > -1e-8
    assert sum(int(record.count) for record in motion.impacts) > 3


# --- together with other features -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_samples_of_a_batch_agree_with_single_samples():
    model, _ = block(mass=1.0, stiffness=4.0, lower=-0.6, upper=2.0)
    kinetic, restitution, start = np.array([0.3, 0.5, 0.0]), np.array([0.5, 0.0, 1.0]), np.array([1.0, 1.5, 0.2])

    def forces(i):
        return [
            rb.DryFriction("block", kinetic[i], static=1.5 * kinetic[i]),
            rb.HardStops("block", restitution=restitution[i]),
        ]

    together = model.simulate(start[:, None], np.zeros((3, 1)), 3.0, forces=forces(slice(None)), save_at=7)
    for i in range(3):
        alone = model.simulate(start[i : i + 1], [0.0], 3.0, forces=forces(i), save_at=7)
        np.testing.assert_array_equal(together.q[i], alone.q)
        np.testing.assert_array_equal(together.impacts[0].t[i], alone.impacts[0].t)
        np.testing.assert_array_equal(together.sticking[0].start[i], alone.sticking[0].start)
        assert together.steps[i] == alone.steps


def test_events_and_saved_times_do_not_change_the_motion():
    model, floor = ball(0.8)
    top = rb.Event("ball", value=0.0, quantity="velocity", direction=-1, stop=False)
    bottom = rb.Event("ball", value=0.0, quantity="velocity", direction=1, stop=False)
    low = rb.Event("ball", value=0.3, direction=-1, stop=False)
    motion = model.simulate([0.9], [0.0], 1.5, forces=[floor], events=[top, bottom, low], save_at=[0.7, 1.5])
    other = model.simulate([0.9], [0.0], 1.5, forces=[floor], save_at=2)
    np.testing.assert_allclose(motion.q[-1], other.q[-1], rtol=1e-9)
    impacts = motion.impacts[0].t[:2]
    np.testing.assert_allclose(motion.events[1].t[:2], impacts, atol=1e-9)
    np.testing.assert_allclose(motion.events[0].t[:1], impacts.mean(), atol=1e-9)
    np.testing.assert_allclose(motion.events[2].t[0], math.sqrt(2 * 0.6 / G), rtol=1e-10)


def test_a_terminal_event_ends_a_motion_with_contacts():
    model, floor = ball(0.5)
    stop = rb.Event("ball", value=0.2, direction=1, stop=True)
    motion = model.simulate([0.9], [0.0], 1.5, forces=[floor], events=[stop], save_at=16)
    assert motion.status == rb.Status.STOPPED
    np.testing.assert_allclose(motion.end_time, 0.4 + (2 - math.sqrt(4 - 2 * G * 0.1)) / G, rtol=1e-10)


def test_a_pid_drive_presses_on_a_stop():
    model, _ = block(mass=1.0, lower=-1.0, upper=0.5)
    drive = rb.PID("block", 1.0, kp=20.0, kd=4.0)
    motion = model.simulate([0.0], [0.0], 5.0, drives=[drive], forces=[rb.HardStops("block")], save_at=6)
    np.testing.assert_allclose(motion.q[-1], 0.5, atol=1e-10)
    assert motion.qd[-1, 0] == 0.0
    np.testing.assert_allclose(motion.tau[-1], 10.0, rtol=1e-9)


@pytest.mark.slow
def test_moreau_converges_to_the_same_motion():
    model, ends = rod_in_the_plane(restitution=0.4, friction=0.3)
    start = [0.0, 0.4, 0.4], [0.5, 0.0, 0.0]
    exact = model.simulate(*start, 0.5, forces=ends, save_at=2)
    errors = []
    for step in (8e-3, 2e-3):
        motion = model.simulate(*start, 0.5, method="moreau", step=step, forces=ends, save_at=2)
        errors.append(np.abs(motion.q[-1] - exact.q[-1]).max())
    assert errors[1] < 0.5 * errors[0] and errors[1] < 8e-3, errors


# --- what is refused --------------------------------------------------------------------------------------------------


def test_unsupported_settings_are_refused():
    model, _ = block()
    friction = rb.DryFriction("block", 1.0)
    single = np.zeros(1, np.float32)
    with pytest.raises(rb.ArgumentError, match="needs float64"):
        model.simulate(single, single, 1.0, forces=[friction], save_at=2)
    builder = rb.ModelBuilder()
    builder.add_body("a", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    builder.add_body("b", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    with pytest.raises(rb.ArgumentError, match="drives that prescribe a motion"):
        drive = rb.PrescribedPosition("a", 0.0)
        builder.build().simulate([0, 0], [0, 0], 1.0, forces=[rb.DryFriction("b", 1.0)], drives=[drive], save_at=2)
    builder.add_constraint(rb.CouplerConstraint("gear", "a", "b", ratio=2.0))
    with pytest.raises(rb.ArgumentError, match="closed loops"):
        builder.build().simulate([0, 0], [0, 0], 1.0, forces=[rb.DryFriction("a", 1.0)], save_at=2)


def test_a_rod_that_slides_near_jamming_follows_newton_and_euler():
    """A rod in space whose tip slides on a floor with mu = 1.2; friction almost stops it by itself (Painleve)."""
    mu, inertia, duration = 1.2, 1.0 / 12, 5.5e-3

    def rates(_, y):
        """For x, z, angle, and their rates, with the tip at (rx, rz) from the center and the normal force N."""
        angle, w = y[2], y[5]
        rx, rz = 0.5 * math.cos(angle), -0.5 * math.sin(angle)
        along = mu * np.sign(y[3] + w * rz)
        N = (G + w * w * rz) / (1 + rx * (rx + along * rz) / inertia)
        return [*y[3:], -along * N, N - G, -(along * rz + rx) * N / inertia]

    settings = {"rtol": 1e-10, "atol": 1e-12, "t_eval": np.linspace(0, duration, 4)}
    exact = solve_ivp(rates, (0, duration), [0, 0.5 * math.sin(1), 1, 1, 0, 0], **settings).y
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("rod", joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=(inertia, inertia, inertia)))
    tip = rb.SphereContact(
        "rod", point=(0.5, 0, 0), radius=0.0, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), friction=mu
    )
    q0 = [0, 0, 0.5 * math.sin(1), 0, math.sin(0.5), 0, math.cos(0.5)]
    qd0 = [math.cos(1), 0, math.sin(1), 0, 0, 0]  # 1 m/s along x, in the axes of the rod
    motion = builder.build().simulate(q0, qd0, duration, save_at=4, forces=[tip])
    assert motion.success
    np.testing.assert_allclose(motion.q[:, [0, 2]], exact[:2].T, rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.qd[:, 4], exact[5], rtol=0, atol=1e-6)


def test_initial_penetration_is_refused():
    model, floor = ball(0.5)
    with pytest.raises(rb.ArgumentError, match=r"has a gap of -0\.01"):
        model.simulate([0.09], [0.0], 1.0, forces=[floor], save_at=2)
    motion = model.simulate([[0.09], [0.2]], np.zeros((2, 1)), 0.1, forces=[floor], on_failure="ignore", save_at=2)
    assert motion.status.tolist() == [rb.Status.INITIAL_PENETRATION, rb.Status.DONE]


def test_accelerations_are_not_known():
    model, floor = ball(0.5)
    motion = model.simulate([0.2], [0.0], 0.1, forces=[floor], save_at=2)
    with pytest.raises(rb.ArgumentError, match="accelerations"):
        _ = motion.qdd
    assert motion.tau.shape == (2, 1)


def test_a_rod_that_jams_is_stopped_by_an_impulse():
    """Painleve: with mu = 2, the friction of a sliding tip presses it into the floor, and no finite force stops it."""
    mu, inertia, rx, rz = 2.0, 1.0 / 12, 0.5 * math.cos(1), -0.5 * math.sin(1)
    assert 1 + rx * (rx + mu * rz) / inertia < 0  # the acceleration of the tip by a normal force, with its friction
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("rod", joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=(inertia, inertia, inertia)))
    tip = rb.SphereContact(
        "rod", point=(0.5, 0, 0), radius=0.0, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), friction=mu
    )
    q0 = [0, 0, 0.5 * math.sin(1), 0, math.sin(0.5), 0, math.cos(0.5)]
    model = builder.build()
    motion = model.simulate(q0, [math.cos(1), 0, math.sin(1), 0, 0, 0], 0.1, save_at=11, forces=[tip])
    assert motion.success
    W = np.array([[1 + rz * rz / inertia, -rx * rz / inertia], [-rx * rz / inertia, 1 + rx * rx / inertia]])
    impulse = np.linalg.solve(W, [-1.0, 0.0])  # stops the tip
    assert motion.impacts[0].count == 1 and motion.impacts[0].t[0] == 0.0
    np.testing.assert_allclose(motion.impacts[0].impulse[0], [impulse[0], 0.0, impulse[1]], atol=1e-8)
    energy = energy_of(model, motion)
    np.testing.assert_allclose(energy[1] - energy[0], 0.5 * impulse[0], rtol=1e-7)
    assert (np.diff(energy) < 1e-9).all() and motion.sticking[0].start[0] == 0.0


@pytest.mark.slow
def test_a_rod_that_rocks_without_restitution_comes_to_rest_after_few_impacts():
    """The impacts of both ends follow each other in a geometric series, which ends with flights below `atol`."""
    model, ends = rod_in_the_plane(inertia=1.0)
    counts = []
    for atol in (1e-6, 1e-8):
        motion = model.simulate([0.0, 0.1, 0.1], [0.0, 0.0, 0.0], 2.0, forces=ends, atol=atol, save_at=21)
        assert motion.success and (np.abs(motion.qd[-1]) < 10 * atol).all()
        assert (np.diff(energy_of(model, motion)) < max(atol, 1e-8)).all()
        counts.append(sum(int(record.count) for record in motion.impacts))
    assert 2 < counts[0] < counts[1] < 40, counts


def assert_ends_at_its_first_impact(motion, sample):
    """The ball falls from 0.5 m, without its radius, and rebounds with 0.8 times its velocity."""
    t = math.sqrt(2 * 0.5 / G)
    assert motion.impacts[0].count[sample] == 1
    np.testing.assert_allclose(motion.end_time[sample], t, rtol=1e-10)
    np.testing.assert_allclose(motion.end_q[sample], [0.1], rtol=1e-10)
    np.testing.assert_allclose(motion.end_qd[sample], [0.8 * G * t], rtol=1e-10)


def test_a_sample_without_modes_after_an_impact_ends_in_the_state_of_the_impact(monkeypatch):
    choices, choose_modes = [], contact_events.choose_modes

    def choose_modes_at_the_start_only(*arguments):
        choices.append(choose_modes(*arguments))
        return choices[-1] and len(choices) == 1

    monkeypatch.setattr(contact_events, "choose_modes", choose_modes_at_the_start_only)
    model, floor = ball(0.8)
    motion = model.simulate([[0.6]], [[0.0]], 1.0, forces=[floor], on_failure="ignore", save_at=2)
    assert motion.status.tolist() == [rb.Status.NO_CONTACT_MODES] and len(choices) > 1
    assert_ends_at_its_first_impact(motion, 0)


def test_a_ball_at_rest_without_friction_has_no_impacts_when_the_choice_of_its_modes_fails(monkeypatch):
    choices, choose_modes = [], contact_events.choose_modes

    def choose_modes_from_the_fourth_time_on(*arguments):
        choices.append(choose_modes(*arguments))
        return choices[-1] and len(choices) > 3

    monkeypatch.setattr(contact_events, "choose_modes", choose_modes_from_the_fourth_time_on)
    model, floor = ball(0.8)
    motion = model.simulate([0.1], [0.0], 1.0, forces=[floor], save_at=2)
    assert motion.success and len(choices) > 3
    assert motion.impacts[0].count == 0
    np.testing.assert_allclose(motion.q[-1], [0.1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("status", [rb.Status.USER_FUNCTION_FAILED, rb.Status.NOT_FINITE])
def test_a_user_function_that_fails_after_an_impact_ends_its_sample_in_the_state_of_the_impact(status):
    def force(t, q, qd, parameters, out):
        out[0] = 0.0
        if qd[0] > parameters[0]:  # the ball moves upwards
            if status == rb.Status.USER_FUNCTION_FAILED:
                raise ValueError("too fast")
            out[0] = np.nan

    model, floor = ball(0.8)
    drives = [rb.UserForces(force, parameters=[[0.1], [9.0]])]
    motion = model.simulate(
        [[0.6], [0.6]], np.zeros((2, 1)), 0.5, forces=[floor], drives=drives, on_failure="ignore", save_at=2
    )
    assert motion.status.tolist() == [status, rb.Status.DONE]
    assert_ends_at_its_first_impact(motion, 0)


@pytest.mark.plain_python
@pytest.mark.parametrize("save_at", [[0.0, 0.4, 0.6], 61, None])
def test_rosenbrock_passes_an_impact_at_a_saved_time(save_at):
    """A ball that falls 0.8 m hits the floor after 0.4 s. The step from there to the saved time is almost zero."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10.0))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    floor = rb.SphereContact(
        "ball", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), restitution=0.5
    )
    motion = builder.build().simulate([0.9], [0.0], 0.6, method="rosenbrock", forces=[floor], save_at=save_at)
    assert motion.success
    np.testing.assert_allclose([motion.q[-1, 0], motion.qd[-1, 0]], [0.3, 0.0], rtol=0, atol=1e-9)


# --- contacts that depend on each other -------------------------------------------------------------------------------


def grooved_ball(angle, radius=0.1, mass=3.0, friction=0.1):
    """A ball in a groove of two planes at right angles, which falls along y by an angle."""
    builder = rb.ModelBuilder(gravity=(0, G * math.sin(angle), -G * math.cos(angle)))
    builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia.sphere(radius, mass=mass))
    planes = [
        rb.SphereContact(
            "ball", point=(0, 0, 0), radius=radius, plane_point=(0, 0, 0), plane_normal=(side, 0, 1), friction=friction
        )
        for side in (1, -1)
    ]
    return builder.build(), planes, [0, 0, radius * math.sqrt(2), 0, 0, 0, 1]


@pytest.mark.slow
def test_a_ball_slides_along_a_groove_until_it_rolls():
    """Both contacts have six rows for five motions. Each point is r / sqrt 2 below the axis of rolling."""
    radius, mass, friction, speed, end = 0.1, 3.0, 0.1, 0.5, 0.3
    model, planes, start = grooved_ball(0.0, radius, mass, friction)
    force, inertia = friction * mass * G * math.sqrt(2), 0.4 * mass * radius**2
    rolls = speed / (force / mass + force * radius**2 / (2 * inertia))
    last = speed - force / mass * rolls
    exact = speed * rolls - force / mass * rolls**2 / 2 + last * (end - rolls)
    motion = model.simulate(start, [0, speed, 0, 0, 0, 0], end, forces=planes, save_at=4, max_steps=300)
    assert motion.success
    velocity = np.linalg.norm(motion.qd[-1, :3])  # in the axes of the ball, which turn
    np.testing.assert_allclose([motion.q[-1, 1], velocity], [exact, last], rtol=0, atol=1e-9)
    # the forces of both planes on the ball balance its weight, within the limits of friction
    forces, weight = motion.contact_forces[-1], mass * G
    np.testing.assert_allclose(forces.sum(0), [0, 0, weight], rtol=0, atol=1e-9 * weight)
    for side, given in zip((1, -1), forces, strict=True):
        normal = given @ np.array([side, 0, 1]) / math.sqrt(2)
        assert normal > 0 and given @ given - normal**2 <= (friction * normal) ** 2


@pytest.mark.slow_cases("0.3")
@pytest.mark.parametrize(
    ("angle", "friction"), [pytest.param(0.2, 0.3, marks=pytest.mark.slow), (0.05, 0.1), (0.3, 0.05)]
)
def test_a_ball_rolls_or_slips_down_a_groove(angle, friction):
    """The acceleration of rolling is g sin a / (1 + I / (m r^2 / 2)), if friction is strong enough for it."""
    model, planes, start = grooved_ball(angle, friction=friction)
    pull, strongest = G * math.sin(angle), math.sqrt(2) * friction * G * math.cos(angle)
    acceleration = pull - min(pull * (1.0 - 1.0 / 1.8), strongest)
    motion = model.simulate(start, np.zeros(6), 1.0, forces=planes, max_steps=300, save_at=2)
    assert motion.success
    np.testing.assert_allclose(motion.q[-1, 1], acceleration / 2, rtol=0, atol=1e-8)


@pytest.mark.slow_cases("0.1")
@pytest.mark.parametrize("friction", [0.0, 0.1, pytest.param(0.5, marks=pytest.mark.slow)])
def test_a_ball_in_the_corner_of_three_planes_comes_to_rest(friction):
    """Nine rows hold six motions. Without friction, the ball keeps its rotation."""
    builder = rb.ModelBuilder(gravity=(-5.0, -6.0, -4.5))
    builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=3.0))
    planes = [
        rb.SphereContact(
            "ball", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=axis, friction=friction
        )
        for axis in np.eye(3)
    ]
    spin = np.array([1.0, 2.0, 3.0])
    motion = builder.build().simulate(
        [0.1, 0.1, 0.1, 0, 0, 0, 1], [0, 0, 0, *spin], 1.0, forces=planes, save_at=3, max_steps=500
    )
    assert motion.success
    np.testing.assert_allclose(motion.q[-1, :3], 0.1, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.qd[-1], [0, 0, 0, *(spin if friction == 0 else 0 * spin)], rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.contact_forces[-1].sum(0), [15.0, 18.0, 13.5], rtol=1e-9)


@pytest.mark.slow
def test_a_box_on_six_points_slides_and_stops_on_an_incline():
    """All points have the same velocity, so that the friction of the box is mu times its weight."""
    gravity, friction, speed = np.array([2.0, 0.0, -G]), 0.3, 0.3
    builder = rb.ModelBuilder(gravity=gravity)
    builder.add_body("box", joint=rb.Free(), inertia=rb.Inertia(2.0, cg=(0.05, 0.0, 0.0), inertia=(0.1, 0.12, 0.15)))
    points = [
        rb.SphereContact(
            "box", point=(x, y, -0.1), radius=0.0, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), friction=friction
        )
        for x in (0.2, 0.0, -0.2)
        for y in (0.2, -0.2)
    ]
    start, velocity = [0, 0, 0.1, 0, 0, 0, 1], [speed, 0, 0, 0, 0, 0]
    motion = builder.build().simulate(start, velocity, 1.0, forces=points, save_at=3, max_steps=300)
    assert motion.success
    np.testing.assert_allclose(motion.q[-1, 0], speed**2 / (2 * (friction * G - 2.0)), rtol=1e-8)
    np.testing.assert_allclose(motion.contact_forces[-1].sum(0), -2.0 * gravity, rtol=0, atol=1e-7)
    assert (motion.qd[-1] == 0.0).all() or np.abs(motion.qd[-1]).max() < 1e-9


def slider_with_stops():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    limits = rb.JointLimits(lower=-1.0, upper=1.0)
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0), limits=limits)
    return builder.build()


@pytest.mark.plain_python
@pytest.mark.parametrize("settings", [{"method": "rk45"}, {"method": "rosenbrock"}, {"method": "moreau", "step": 0.03}])
def test_a_level_that_an_impact_passes_ends_the_motion_after_the_impact(settings):
    """A body with 1 m/s meets a stop at 1 s and leaves it with -0.5 m/s, past 0.2 m/s."""
    model, stops = slider_with_stops(), [rb.HardStops("slide", restitution=0.5)]
    falls = rb.Event("slide", value=0.2, quantity="velocity", direction=-1, stop=True)
    motion = model.simulate([[0.0]], [[1.0]], 3.0, forces=stops, events=[falls], **settings)
    np.testing.assert_allclose(motion.end_time, 1.0, rtol=1e-9)
    np.testing.assert_allclose(motion.end_qd, -0.5, rtol=1e-9)
    np.testing.assert_allclose(motion.events[0].qd[0, 0], -0.5, rtol=1e-9)
    assert motion.impacts[0].count == 1
    after = model.simulate(motion.end_q, motion.end_qd, 1.0, forces=stops, **settings)
    assert after.impacts[0].count == 0
    np.testing.assert_allclose(after.end_q, 0.5, rtol=1e-9)


@pytest.mark.plain_python
@pytest.mark.parametrize("settings", [{"method": "rk45"}, {"method": "rosenbrock"}, {"method": "moreau", "step": 0.3}])
def test_an_event_before_an_impact_in_the_same_step_ends_the_motion_without_the_impact(settings):
    model, stops = slider_with_stops(), [rb.HardStops("slide", restitution=0.5)]
    near = rb.Event("slide", value=0.95, stop=True)
    motion = model.simulate([[0.0]], [[1.0]], 3.0, forces=stops, events=[near], **settings)
    np.testing.assert_allclose(motion.end_time, 0.95, rtol=1e-9)
    assert motion.impacts[0].count == 0
    assert model.simulate(motion.end_q, motion.end_qd, 1.0, forces=stops, **settings).impacts[0].count == 1
