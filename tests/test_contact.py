"""Dry friction, hard stops and contact with planes, in Moreau's time stepping."""

import dataclasses
import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbchain as rb
from rbchain import cli
from rbchain.study.plan.effects import effects_of

from .closed_chains import four_bar
from .other_process import computed
from .test_one_source import check_alike

plain = pytest.mark.plain_python


def slider(gravity=(0, 0, 0), axis=(1, 0, 0), mass=1.0, **settings):
    """A block on a prismatic joint."""
    builder = rb.ModelBuilder(gravity=gravity)
    inertia = rb.Inertia(mass, inertia=(0.1, 0.1, 0.1))
    builder.add_body("block", joint=rb.Prismatic(axis), inertia=inertia, **settings)
    return builder.build()


def ball(restitution, friction=0.0, **settings):
    return rb.SphereContact(
        "block",
        point=(0, 0, 0),
        radius=0.1,
        plane_point=(0, 0, 0),
        plane_normal=(0, 0, 2),
        friction=friction,
        restitution=restitution,
        **settings,
    )


def free_box(gravity=(0, 0, -10), size=(0.4, 0.3, 0.2), mass=2.0):
    builder = rb.ModelBuilder(gravity=gravity)
    builder.add_body("box", joint=rb.Free(), inertia=rb.Inertia.box(size, mass=mass))
    return builder.build()


def corners(size, friction, restitution=0.0):
    x, y, z = (length / 2 for length in size)
    points = [(i * x, j * y, -z) for i in (-1, 1) for j in (-1, 1)]
    return [
        rb.SphereContact(
            "box",
            point=p,
            radius=0.0,
            plane_point=(0, 0, 0),
            plane_normal=(0, 0, 1),
            friction=friction,
            restitution=restitution,
        )
        for p in points
    ]


def incline(angle, g=10.0):
    """Gravity in axes along and normal to an incline."""
    return g * np.sin(angle), 0.0, -g * np.cos(angle)


def linkage(links=3, seed=0, **joint_settings):
    """A chain of links with random inertias, which moves in space."""
    rng = np.random.default_rng(seed)
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for i in range(links):
        inertia = rb.Inertia(rng.uniform(0.5, 2), cg=rng.uniform(-0.2, 0.2, 3), inertia=rng.uniform(0.1, 0.15, 3))
        axis = rng.normal(size=3)
        placement = rb.Pose((0.5, 0, 0) if i else (0, 0, 0))
        parent = f"link{i - 1}" if i else None
        builder.add_body(f"link{i}", parent=parent, joint=rb.Revolute(axis), placement=placement, inertia=inertia)
    return builder.build()


# --- dry friction -----------------------------------------------------------------------------------------------------


@plain
def test_a_block_on_an_incline_sticks_below_the_friction_angle_and_slides_above():
    """The friction is mu times the normal force. 1000 s without any motion; above, the exact acceleration."""
    mu, g = 0.5, 10.0
    for angle in (0.99 * np.arctan(mu), 1.2 * np.arctan(mu)):
        friction = rb.DryFriction("block", kinetic=mu * g * np.cos(angle))
        model = slider(gravity=incline(angle, g))
        sticks = angle < np.arctan(mu)
        duration = 1000.0 if sticks else 1.0
        motion = model.simulate(
            [[0.3]], [[0.0]], duration, method="moreau", step=duration / 20, forces=[friction], save_at=2
        )
        acceleration = 0.0 if sticks else g * (np.sin(angle) - mu * np.cos(angle))
        assert abs(motion.qd[0, -1, 0] - acceleration * duration) <= 1e-12 * (not sticks)
        assert abs(motion.q[0, -1, 0] - 0.3 - acceleration * duration**2 / 2) <= 1e-12 * (not sticks)
        record = motion.sticking[0]
        assert record.force is friction
        assert record.count[0] == int(sticks)
        if sticks:
            assert record.start[0, 0] == 0.0
            assert record.end[0, 0] == np.inf


@plain
def test_a_free_box_on_an_incline_sticks_below_the_friction_angle_and_slides_above():
    mu, size = 0.5, (0.4, 0.3, 0.2)
    for angle, duration, step in ((0.9 * np.arctan(mu), 1000.0, 100.0), (1.2 * np.arctan(mu), 0.5, 0.1)):
        model = free_box(incline(angle), size)
        start = [0, 0, 0.1, 0, 0, 0, 1]
        motion = model.simulate(
            [start], np.zeros((1, 6)), duration, method="moreau", step=step, forces=corners(size, mu), save_at=2
        )
        acceleration = max(0.0, 10 * (np.sin(angle) - mu * np.cos(angle)))
        expected = np.array(start, float)
        expected[0] = acceleration * duration**2 / 2
        np.testing.assert_allclose(motion.qd[0, -1], [acceleration * duration, 0, 0, 0, 0, 0], rtol=0, atol=1e-8)
        np.testing.assert_allclose(motion.q[0, -1], expected, rtol=0, atol=1e-8)
        total = motion.contact_forces[0, -1].sum(0)
        weight = 20.0
        along = min(np.sin(angle), mu * np.cos(angle))
        np.testing.assert_allclose(total, [-weight * along, 0, weight * np.cos(angle)], rtol=0, atol=1e-6)
        assert motion.contact_residual[0] < 1e-9


@pytest.mark.slow
@plain
def test_static_friction_holds_until_break_away_and_kinetic_friction_depends_on_the_direction():
    """A force t N: the joint breaks away at 3 N, where 2 N or 1 N of kinetic friction remain."""
    friction = rb.DryFriction("block", kinetic=2.0, static=3.0, kinetic_backward=1.0, static_backward=4.0)
    step = 0.01
    for sign, static, kinetic in ((1, 3.0, 2.0), (-1, 4.0, 1.0)):
        drive = rb.PrescribedForce("block", rb.Signal.polynomial([0.0, sign * 1.0]))
        settings = {"method": "moreau", "step": step, "drives": [drive], "forces": [friction], "save_at": [2.9, 5.0]}
        motion = slider().simulate([[0.1]], [[0.0]], 5.0, **settings)
        assert motion.q[0, 0, 0] == 0.1
        assert motion.qd[0, 0, 0] == 0.0
        assert abs(motion.sticking[0].end[0, 0] - static) <= step
        speed = (25 - static**2) / 2 - kinetic * (5 - static)
        assert abs(sign * motion.qd[0, 1, 0] - speed) < 2 * step


@pytest.mark.slow
@plain
def test_an_oscillator_with_dry_friction_stops_at_the_exact_position():
    """Each half period ends at x' = -(x - 2 F / k) on the other side; it stops where the spring is weaker than F."""
    k, F, x = 4.0, 0.3, 1.0
    while abs(x) > F / k:
        x = -np.sign(x) * (abs(x) - 2 * F / k)
    spring = rb.SpringDamper(None, "block", point_a=(-1, 0, 0), point_b=(0, 0, 0), stiffness=k, rest_length=1.0)
    errors = []
    for step in (0.04, 0.02):
        settings = {
            "method": "moreau",
            "step": step,
            "forces": [spring, rb.DryFriction("block", F)],
            "save_at": [16, 18],
        }
        motion = slider().simulate([[1.0]], [[0.0]], 18.0, **settings)
        assert (motion.qd[0, :, 0] == 0.0).all()
        assert motion.q[0, 0, 0] == motion.q[0, 1, 0]
        errors.append(abs(motion.q[0, -1, 0] - x))
    assert errors[1] < 2e-3
    assert errors[1] < 0.5 * errors[0]


@plain
def test_a_velocity_that_changes_its_sign_is_not_an_interval_of_sticking():
    """An oscillator whose spring is stronger than the friction at each reversal, until it stops for good."""
    spring = rb.SpringDamper(None, "block", point_a=(-1, 0, 0), point_b=(0, 0, 0), stiffness=4.0, rest_length=1.0)
    forces = [spring, rb.DryFriction("block", 0.3)]
    motion = slider().simulate([[1.0]], [[0.0]], 18.0, method="moreau", step=0.1, forces=forces, save_at=181)
    reversals = np.count_nonzero(np.diff(np.sign(motion.qd[0, :, 0])))
    record = motion.sticking[0]
    assert reversals > 3
    assert record.count[0] == 1
    assert record.end[0, 0] == np.inf and motion.qd[0, -1, 0] == 0.0


# --- impacts ----------------------------------------------------------------------------------------------------------


@plain
def test_a_bouncing_ball_has_the_exact_times_and_heights_and_comes_to_rest():
    e, g, height = 0.5, 10.0, 0.8
    model, first = slider((0, 0, -g), (0, 0, 1)), np.sqrt(2 * height / g)
    times = first + np.concatenate([[0], np.cumsum(2 * first * e ** np.arange(1, 5))])
    tops = times[:-1] + first * e ** np.arange(1, 5)
    settings = {"method": "moreau", "step": 0.005, "forces": [ball(e, max_records=5)], "save_at": [*tops, 1.6]}
    motion = model.simulate([[height + 0.1]], [[0.0]], 1.6, **settings)
    np.testing.assert_allclose(motion.impacts[0].t[0], times, rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.q[0, :-1, 0] - 0.1, height * e ** (2 * np.arange(1, 5)), rtol=0, atol=1e-12)
    speeds = np.sqrt(2 * g * height) * e ** np.arange(5)
    assert motion.impacts[0].count[0] > 5
    assert abs(motion.q[0, -1, 0] - 0.1) < 1e-9
    assert abs(motion.qd[0, -1, 0]) < 1e-9
    np.testing.assert_allclose(motion.contact_forces[0, -1, 0], [0, 0, g], rtol=0, atol=1e-6)
    np.testing.assert_allclose(motion.impacts[0].impulse[0, :, 2], (1 + e) * speeds, rtol=1e-12)


@plain
def test_restitution_of_one_conserves_the_energy():
    model = slider((0, 0, -10), (0, 0, 1))
    motion = model.simulate([[0.9]], [[0.0]], 3.2, method="moreau", step=0.02, forces=[ball(1.0)], save_at=[1.6, 3.2])
    np.testing.assert_allclose(motion.q[0, :, 0], 0.9, rtol=0, atol=1e-11)
    np.testing.assert_allclose(motion.qd[0, :, 0], 0.0, rtol=0, atol=1e-11)
    assert motion.impacts[0].count[0] == 4


@plain
def test_impulses_do_not_increase_the_kinetic_energy():
    """One very short step with an impact of a linkage that moves without forces."""
    rng, steps = np.random.default_rng(1), []
    for case in range(6):
        model = linkage(4, case)
        q, qd = rng.uniform(-1, 1, (1, 4)), rng.normal(size=(1, 4))
        center = model.frame_poses(q, "link3").translation[0]
        velocity = model.body_velocities(q, qd)[0, 3, :3]
        normal = -velocity / np.linalg.norm(velocity)
        e, mu = (1.0, 0.0) if case < 3 else (rng.uniform(), rng.uniform(0, 1))
        plane = center - (0.1 + 1e-7) * normal
        forces = [
            rb.SphereContact(
                "link3", point=(0, 0, 0), radius=0.1, plane_point=plane, plane_normal=normal, friction=mu, restitution=e
            )
        ]
        motion = model.simulate(q, qd, 1e-6, method="moreau", step=1e-6, forces=forces, save_at=2)
        before, after = model.energy(motion.q[0], motion.qd[0])[0]
        assert motion.impacts[0].count[0] == 1
        assert after <= before * (1 + 1e-5)
        steps.append(after / before)
    np.testing.assert_allclose(steps[:3], 1.0, rtol=0, atol=1e-5)
    assert max(steps[3:]) < 1.0 - 1e-3


@plain
def test_the_impulse_on_a_falling_rod_is_that_of_the_closed_form():
    """p = (1 + e) v / (1 / m + l^2 cos^2 a / I) at the end of a rod whose center falls with v."""
    m, inertia, half, angle, v, e = 2.0, 0.3, 0.5, 0.4, 1.5, 0.25
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("rod", joint=rb.Free(), inertia=rb.Inertia(m, inertia=(0.01, inertia, inertia)))
    rotation = [0, -np.sin(angle / 2), 0, np.cos(angle / 2)]
    low = half * np.sin(angle)
    start = np.array([[0, 0, low + 0.01, *rotation]])
    body_velocity = np.array([[-v * np.sin(angle), 0, -v * np.cos(angle), 0, 0, 0]])
    ends = [
        rb.SphereContact(
            "rod",
            point=(x, 0, 0),
            radius=0.0,
            plane_point=(0, 0, 0),
            plane_normal=(0, 0, 1),
            friction=0.0,
            restitution=e,
        )
        for x in (-half, half)
    ]
    motion = builder.build().simulate(start, body_velocity, 0.01, method="moreau", step=0.001, forces=ends, save_at=2)
    counts = [int(record.count[0]) for record in motion.impacts]
    assert sorted(counts) == [0, 1]
    hit = motion.impacts[counts.index(1)]
    expected = (1 + e) * v / (1 / m + (half * np.cos(angle)) ** 2 / inertia)
    np.testing.assert_allclose(hit.impulse[0, 0], [0, 0, expected], rtol=0, atol=1e-6)
    np.testing.assert_allclose(hit.t[0, 0], 0.01 / v, rtol=1e-6)


@pytest.mark.slow
@plain
def test_a_rocking_block_loses_the_angular_velocity_of_housner():
    """Housner (1963): the angular velocities before and after an impact have the ratio 1 - 3/2 sin(a)^2."""
    width, height, tilt = 0.2, 0.6, 0.1
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("box", joint=rb.Free(), inertia=rb.Inertia.box((width, width, height), mass=1.0))
    model = builder.build()
    feet = [
        rb.SphereContact(
            "box", point=(x, 0, -height / 2), radius=0.0, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), friction=1.0
        )
        for x in (-width / 2, width / 2)
    ]
    x, z = width / 2, height / 2
    corner = np.array([x * np.cos(tilt) - z * np.sin(tilt), 0, -x * np.sin(tilt) - z * np.cos(tilt)])
    start = np.array([[-corner[0], 0, -corner[2], 0, np.sin(tilt / 2), 0, np.cos(tilt / 2)]])
    settings = {"method": "moreau", "step": 5e-4, "save_at": 441}
    motion = model.simulate(start, np.zeros((1, 6)), 0.22, forces=feet, **settings)
    rate, hit = motion.qd[0, :, 4], motion.impacts[0].t[0, 0]
    index = int(np.searchsorted(motion.t, hit))
    before, after = (
        np.polyval(np.polyfit(motion.t[part], rate[part], 2), hit)
        for part in (slice(index - 20, index - 1), slice(index + 2, index + 22))
    )
    # the error of the step with the impact is of first order
    assert abs(after / before - (1 - 1.5 * np.sin(np.arctan2(width, height)) ** 2)) < 0.01


@plain
def test_stops_hold_and_their_impacts_are_recorded():
    limits = rb.JointLimits(lower=-1.0, upper=1.0)
    model, stops = slider(limits=limits), rb.HardStops("block", restitution=0.5, max_records=2)
    motion = model.simulate([[0.0]], [[4.0]], 2.25, method="moreau", step=0.05, forces=[stops], save_at=10)
    np.testing.assert_allclose(motion.impacts[0].t[0], [0.25, 1.25], rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.impacts[0].impulse[0], [-6.0, 3.0], rtol=0, atol=1e-12)
    assert (np.abs(motion.q) <= 1.0 + 1e-12).all()
    np.testing.assert_allclose(motion.q[0, -1, 0], 0.0, atol=1e-12)
    assert motion.impacts[0].force is stops


# --- together with everything else ------------------------------------------------------------------------------------


@plain
def test_a_closed_chain_with_a_stop_and_friction_stays_closed():
    """The crank falls and hits the floor."""
    model = four_bar().model
    q = model.assemble(four_bar().guess)
    friction = rb.DryFriction(model.joint_names[2], kinetic=0.05)
    height = model.frame_poses(q, "coupler").translation[1] - 0.1
    floor = rb.SphereContact("coupler", point=(0, 0, 0), radius=0.0, plane_point=(0, height, 0), plane_normal=(0, 1, 0))
    settings = {"method": "moreau", "step": 0.01, "forces": [friction, floor], "save_at": 11}
    motion = model.simulate(q[None], np.zeros((1, 3)), 0.5, **settings)
    assert motion.success
    assert motion.impacts[0].count[0] > 0
    assert (model.frame_poses(motion.q, "coupler").translation[..., 1] > height - 1e-6).all()
    assert np.abs(model.constraint_residual(motion.q)).max() < 1e-9
    rates = np.einsum("...ij,...j->...i", model.constraint_jacobian(motion.q), motion.qd)
    assert np.abs(rates).max() < 1e-9


@plain
def test_drives_and_events_work_together_with_stops():
    model = slider(limits=rb.JointLimits(upper=0.5))
    drive = rb.PID("block", reference=1.0, kp=400.0, kd=40.0)
    event = rb.Event("block", value=0.25, stop=False)
    settings = {"method": "moreau", "step": 0.01, "drives": [drive], "events": [event], "save_at": 5}
    motion = model.simulate([[0.0]], [[0.0]], 1.0, forces=[rb.HardStops("block")], **settings)
    assert motion.events[0].count[0] == 1
    np.testing.assert_allclose(motion.q[0, -1, 0], 0.5, atol=1e-9)
    np.testing.assert_allclose(motion.tau[0, -1, 0], 200.0, rtol=1e-6)
    with pytest.raises(
        rb.ArgumentError,
        match=r"qdd is not available with DryFriction, HardStops, .* or \w+Contact, because",
    ):
        _ = motion.qdd


@plain
def test_a_contact_holds_while_a_drive_prescribes_the_position_of_another_joint():
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    inertia = rb.Inertia(1.0, cg=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02))
    for name, parent, place in (("upper", None, (0, 0, 0.5)), ("lower", "upper", (0.4, 0, 0))):
        builder.add_body(name, parent=parent, joint=rb.Revolute((0, 1, 0)), placement=rb.Pose(place), inertia=inertia)
    model, wave = builder.build(), rb.Signal.sines(0.3, 2.0)
    floor = rb.SphereContact(
        "lower", point=(0.4, 0, 0), radius=0.02, plane_point=(0, 0, 0.2), plane_normal=(0, 0, 1), friction=0.5
    )
    settings = {"method": "moreau", "step": 0.01, "drives": [rb.PrescribedPosition("upper", wave)], "save_at": 7}
    motion = model.simulate([[0.0, 0.0]], [[0.6, 0.0]], 0.6, forces=[floor], **settings)
    np.testing.assert_allclose(motion.q[0, :, 0], wave(motion.t), rtol=0, atol=1e-14)
    pose = model.frame_poses(motion.q[0], "lower")
    gaps = (pose.translation + pose.rotation @ [0.4, 0, 0])[:, 2] - 0.22
    assert gaps.min() > -1e-6
    assert np.abs(gaps[-3:]).max() < 1e-3
    assert motion.contact_forces[0, -1, 0, 2] > 1.0
    assert np.isnan(motion.tau[0, -1, 0])


@plain
def test_samples_have_their_own_numbers():
    mu, e = np.array([0.0, 2.0, 4.0]), np.array([1.0, 0.5, 0.0])
    model = slider(limits=rb.JointLimits(upper=1.0))
    forces = [rb.DryFriction("block", mu), rb.HardStops("block", restitution=e)]
    settings = {"method": "moreau", "step": 0.02, "save_at": 3}
    motion = model.simulate(np.zeros((3, 1)), np.full((3, 1), 2.2), 1.0, forces=forces, **settings)
    for i in range(3):
        each = [force.of_sample(i, (3,)) for force in forces]
        one = model.simulate([0.0], [2.2], 1.0, forces=each, **settings)
        np.testing.assert_allclose(motion.q[i], one.q, rtol=0, atol=1e-13)
        of_sample = motion[i]
        np.testing.assert_array_equal(of_sample.impacts[0].t, one.impacts[0].t)
        np.testing.assert_array_equal(of_sample.sticking[0].start, one.sticking[0].start)
    assert pickle.loads(pickle.dumps(motion)).impacts[0].count.tolist() == motion.impacts[0].count.tolist()


@plain
def test_without_contacts_the_midpoint_scheme_is_of_second_order():
    """A pendulum in air."""
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(1.0, cg=(1, 0, 0)))
    model = builder.build()
    exact = model.simulate([[0.3]], [[2.0]], 0.7, rtol=1e-11, atol=1e-12, save_at=2).q[0, -1, 0]
    found = [
        model.simulate([[0.3]], [[2.0]], 0.7, method="moreau", step=h, save_at=2).q[0, -1, 0] for h in (0.02, 0.01)
    ]
    ratio = (found[0] - exact) / (found[1] - exact)
    assert 3.5 < ratio < 4.5


@pytest.mark.slow
@plain
def test_coriolis_forces_are_of_second_order():
    """Two links, and a spinning free body, whose velocity in its own axes turns with 100 rad/s."""
    arm = rb.Model.serial_chain(2)
    exact = arm.simulate([0.0, 0.0], [3.0, -2.0], 0.5, rtol=1e-12, atol=1e-12, save_at=2).q[-1]
    coarse, fine = (
        arm.simulate([0.0, 0.0], [3.0, -2.0], 0.5, method="moreau", step=h, save_at=2).q[-1] for h in (0.005, 0.0025)
    )
    assert 3.5 < np.abs(coarse - exact).max() / np.abs(fine - exact).max() < 4.5
    body = free_box(gravity=(0, 0, 0), size=(0.1, 0.1, 0.1))
    motion = body.simulate(body.neutral(), [1.0, 0, 0, 0, 0, 100.0], 0.2, method="moreau", step=1e-3, save_at=2)
    # an explicit midpoint step of length h multiplies it by sqrt(1 + (h w)^4 / 4)
    np.testing.assert_allclose(np.linalg.norm(motion.qd[-1, :3]), (1 + 0.1**4 / 4) ** 100, rtol=1e-6)


@pytest.mark.slow
@plain
@pytest.mark.parametrize("angle", [0.0, 0.2])
def test_a_ball_rolls_without_slipping_and_without_impacts(angle):
    """With 1 m/s at the start, v^2 / r is g: the velocity in body axes turns as fast as gravity changes it."""
    g, r, h = 10.0, 0.1, 2e-3
    builder = rb.ModelBuilder(gravity=incline(angle, g))
    builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia.sphere(r, mass=1.0))
    floor = rb.SphereContact(
        "ball", point=(0, 0, 0), radius=r, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), friction=0.5
    )
    start = [0, 0, r, 0, 0, 0, 1.0], [1.0, 0, 0, 0, 1.0 / r, 0]
    settings = {"method": "moreau", "forces": [floor], "save_at": 21}
    motion, finer = (builder.build().simulate(*start, 0.2, step=step, **settings) for step in (h, h / 2))
    expected = motion.t + 5 / 14 * g * np.sin(angle) * motion.t**2
    errors = [np.abs(found.q[:, 0] - expected).max() for found in (motion, finer)]
    assert errors[1] < errors[0] / 3.5 < 2e-4
    np.testing.assert_allclose(motion.q[:, 2], r, rtol=0, atol=1e-8)
    normal, along = g * np.cos(angle), -2 / 7 * g * np.sin(angle)
    # the error of a step is a few (h w)^2 / 4 of the forces, with w up to 17 rad/s
    np.testing.assert_allclose(motion.contact_forces[:, 0, 2], normal, rtol=3e-3)
    np.testing.assert_allclose(motion.contact_forces[:, 0, 0], along, rtol=0, atol=3e-3 * normal)
    assert motion.impacts[0].count == 0


@plain
def test_a_message_says_that_impulses_missed_their_tolerance():
    motion = slider().simulate(
        [[0.0]], [[1.0]], 0.1, method="moreau", step=0.1, forces=[rb.DryFriction("block", 0.1)], save_at=2
    )
    assert motion.message == "1 of 1: The simulation reached its end time."
    missed = dataclasses.replace(motion, contact_residual=np.array([2e-4]))
    assert "missed their tolerance, 1e-10. The maximum residual is 2.0e-04 m/s or rad/s." in missed.message


# --- errors -----------------------------------------------------------------------------------------------------------


@plain
def test_unsupported_methods_refuse_contacts():
    for method, settings in (("rk4", {"step": 0.1}), ("implicit", {"step": 0.1})):
        with pytest.raises(
            rb.ArgumentError, match=f"DryFriction of joint 'block', which method \"{method}\" does not supp"
        ):
            slider().simulate([0.0], [0.0], 1.0, method=method, forces=[rb.DryFriction("block", 1.0)], **settings)


@plain
@pytest.mark.parametrize(
    ("force", "message"),
    [
        (lambda: rb.DryFriction("blok", 1.0), "DryFriction of joint 'blok': the model has no joint 'blok'"),
        (lambda: rb.DryFriction("block", -1.0), "kinetic is -1.0; expected finite numbers of at least 0"),
        (
            lambda: rb.DryFriction("block", 2.0, static=1.0),
            r"static is 1.0 and kinetic is 2.0; expected static >= kinetic",
        ),
        (
            lambda: rb.DryFriction("block", 1.0, static=2.0, kinetic_backward=1.0),
            "kinetic_backward and static are given; expected static_backward",
        ),
        (lambda: rb.DryFriction("block", np.ones(3)), r"kinetic has shape \(3,\); expected one number"),
        (lambda: rb.DryFriction("block", 1.0, max_records=0), "max_records is 0; expected a whole number from 1"),
        (lambda: rb.HardStops("block"), "the joint has no position limits; expected at least one finite limit"),
        (
            lambda: rb.HardStops("block", restitution=1.5),
            "joint 'block': restitution is 1.5; expected numbers from 0 to 1",
        ),
        (lambda: ball(1.5), "restitution is 1.5; expected numbers from 0 to 1"),
        (lambda: ball(0.5, friction=-1.0), "friction is -1.0; expected finite numbers of at least 0"),
        (
            lambda: rb.SphereContact("block", point=(0, 0), radius=0, plane_point=(0, 0, 0), plane_normal=(0, 0, 1)),
            r"point has shape \(2,\); expected \(3,\)",
        ),
        (
            lambda: rb.SphereContact(
                "block", point=(0, 0, 0), radius=-1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1)
            ),
            "radius is -1.0",
        ),
        (
            lambda: rb.SphereContact("block", point=(0, 0, 0), radius=0, plane_point=(0, 0, 0), plane_normal=(0, 0, 0)),
            "plane_normal is .*; expected vectors that are",
        ),
        (
            lambda: rb.SphereContact(
                "block", point=(0, np.nan, 0), radius=0, plane_point=(0, 0, 0), plane_normal=(0, 0, 1)
            ),
            "point is .*nan.*; expected finite numbers",
        ),
        (
            lambda: rb.SphereContact(None, point=(0, 0, 0), radius=0, plane_point=(0, 0, 0), plane_normal=(0, 0, 1)),
            "frame is None; expected the name of a body or frame",
        ),
    ],
)
def test_invalid_numbers_are_refused(force, message):
    with pytest.raises(rb.ArgumentError, match=message):
        slider().simulate([0.0], [0.0], 1.0, method="moreau", step=0.1, forces=[force()], save_at=2)


@plain
def test_forces_that_contradict_others_are_refused():
    settings = {"method": "moreau", "step": 0.1}
    friction = rb.DryFriction("block", 1.0)
    with pytest.raises(rb.ArgumentError, match="already has a DryFriction"):
        slider().simulate([0.0], [0.0], 1.0, forces=[friction, friction], save_at=2, **settings)
    regularized = slider(passive=rb.PassiveForces(friction=1.0))
    with pytest.raises(rb.ArgumentError, match="also has the regularized friction of PassiveForces"):
        regularized.simulate([0.0], [0.0], 1.0, forces=[friction], save_at=2, **settings)
    elastic = rb.PassiveForces(stop_lower=-1.0, limit_stiffness=10.0)
    model = slider(passive=elastic, limits=rb.JointLimits(lower=-1.0))
    with pytest.raises(rb.ArgumentError, match="also has the elastic stops of PassiveForces"):
        model.simulate([0.0], [0.0], 1.0, forces=[rb.HardStops("block")], save_at=2, **settings)
    drive = rb.PrescribedVelocity("block", 1.0)
    with pytest.raises(rb.ArgumentError, match="a drive prescribes the motion of this joint"):
        slider().simulate([0.0], [0.0], 1.0, forces=[friction], drives=[drive], save_at=2, **settings)
    builder = rb.ModelBuilder()
    builder.add_body("box", joint=rb.Planar(), inertia=rb.Inertia.box((1, 1, 1), mass=1.0))
    with pytest.raises(rb.ArgumentError, match="has 3 degrees of freedom, but dof is not given"):
        builder.build().simulate(
            np.zeros(3), np.zeros(3), 1.0, forces=[rb.DryFriction("box", 1.0)], save_at=2, **settings
        )
    with pytest.raises(rb.ArgumentError, match=r'rtol is 0\.1, but method "moreau"'):
        slider().simulate([0.0], [0.0], 1.0, rtol=0.1, save_at=2, **settings)


@plain
def test_initial_positions_beyond_a_stop_or_a_plane_are_refused():
    model = slider((0, 0, -10), (0, 0, 1), limits=rb.JointLimits(upper=1.0))
    settings = {"method": "moreau", "step": 0.1, "forces": [rb.HardStops("block"), ball(0.0)]}
    with pytest.raises(rb.ArgumentError, match=r"q0: HardStops of joint 'block' has a gap of -0\.5 m; "):
        model.simulate([1.5], [0.0], 0.2, save_at=2, **settings)
    with pytest.raises(rb.ArgumentError, match=r"q0: SphereContact on 'block' has a gap of -0\.1 m; "):
        model.simulate([0.0], [0.0], 0.2, save_at=2, **settings)
    motion = model.simulate([[1.5], [0.5]], [[0.0], [0.0]], 0.2, save_at=2, **settings, on_failure="ignore")
    assert motion.status.tolist() == [rb.Status.INITIAL_PENETRATION, rb.Status.DONE]
    assert "beyond a hard stop" in motion.message


# --- compiled code ----------------------------------------------------------------------------------------------------


def motions_of_precisions():
    """Motions of an arm with friction, stops and two contacts, in both precisions, and of one sample."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    for i, axis in enumerate([(0, 1, 0), (1, 0, 0), (0, 1, 0)]):
        inertia = rb.Inertia(1.0, cg=(0.2, 0.05, 0), inertia=(0.02, 0.03, 0.04))
        parent, place = (None, (0, 0, 0.3)) if i == 0 else (f"link{i - 1}", (0.4, 0, 0))
        limits = rb.JointLimits(lower=-0.3, upper=1.0) if i == 2 else None
        builder.add_body(
            f"link{i}",
            parent=parent,
            joint=rb.Revolute(axis),
            placement=rb.Pose(place),
            inertia=inertia,
            **({} if limits is None else {"limits": limits}),
        )
    model = builder.build()
    rng = np.random.default_rng(0)
    q, qd = rng.uniform(-0.2, 0.2, (3, 3)), rng.normal(size=(3, 3))
    forces = [
        rb.DryFriction("link1", [0.2, 0.4, 0.1], static=0.5),
        rb.HardStops("link2", restitution=[0.5, 0.0, 0.3]),
    ]
    ball = {"point": (0.4, 0, 0), "radius": 0.02, "plane_point": (0, 0, 0), "plane_normal": (0, 0, 1), "friction": 0.3}
    forces += [rb.SphereContact("link1", **ball, restitution=0.4), rb.SphereContact("link2", **ball)]
    out = {}
    for dtype in (np.float64, np.float32):
        settings = {"method": "moreau", "step": 0.01, "save_at": 4, "forces": forces}
        motion = model.simulate(q.astype(dtype), qd.astype(dtype), 0.6, **settings)
        name = np.dtype(dtype).name
        out |= {f"q {name}": motion.q, f"qd {name}": motion.qd, f"force {name}": motion.contact_forces}
        out[f"impacts {name}"] = np.array([record.count for record in motion.impacts])
        assert motion.q.dtype == dtype and motion.success
        out[f"residual {name}"] = motion.contact_residual
        if dtype == np.float64:
            one = model.simulate(q[0], qd[0], 0.6, **settings | {"forces": [f.of_sample(0, (3,)) for f in forces]})
            out |= {"single q": one.q, "single qd": one.qd}
    return out


@pytest.mark.slow
def test_plain_python_single_states_and_float32_agree_with_lanes():
    found, expected = computed(motions_of_precisions, NUMBA_DISABLE_JIT="1"), motions_of_precisions()
    check_alike(found, expected)
    np.testing.assert_allclose(expected["single q"], expected["q float64"][0], rtol=0, atol=1e-11)
    np.testing.assert_array_equal(expected["impacts float32"], expected["impacts float64"])
    # the impulses of 60 steps have errors of 1e-5 m/s each
    np.testing.assert_allclose(expected["q float32"], expected["q float64"], rtol=0, atol=1e-3)
    assert np.sum(expected["impacts float64"]) > 3


@pytest.mark.slow
def test_samples_on_the_floor_do_not_change_the_bits_of_samples_in_flight():
    """All rows of a block are far from closed, or those of some lanes only."""
    model, start = linkage(3), np.array([[0.1, 0.2, 0.3]])
    plane = rb.SphereContact(
        "link2",
        point=(0.1, 0, 0),
        radius=0.02,
        plane_point=[[0, 0, 9], [0, 0, 0.2], [0, 0, 9]],
        plane_normal=(0, 0, -1),
        friction=0.3,
        restitution=0.5,
    )
    far = rb.SphereContact(
        "link2",
        point=(0.1, 0, 0),
        radius=0.02,
        plane_point=np.full((3, 3), [0, 0, 9]),
        plane_normal=(0, 0, -1),
        friction=0.3,
        restitution=0.5,
    )
    settings = {"method": "moreau", "step": 0.01, "save_at": 11}
    some, none = (
        model.simulate(np.tile(start, (3, 1)), np.full((3, 3), 1.5), 1.0, forces=[force], **settings)
        for force in (plane, far)
    )
    assert some.impacts[0].count.tolist()[::2] == [0, 0] and some.impacts[0].count[1] > 0
    for sample in (0, 2):
        np.testing.assert_array_equal(some.q[sample], none.q[sample])
        np.testing.assert_array_equal(some.qd[sample], none.qd[sample])


STUDY = """
samples = 3
[model]
serial_chain = {n = 1, gravity = [0, -10, 0]}
[simulate]
duration = 0.3
method = "moreau"
step = 0.01
save_at = 21
qd = 5.0
[[forces]]
type = "DryFriction"
joint = "link1"
kinetic = 0.01
[[forces]]
type = "SphereContact"
name = "floor"
frame = "link1"
point = [0.25, 0, 0]
radius = 0.01
plane_point = [0, -0.1, 0]
plane_normal = [0, 1, 0]
[vary."*.mass"]
how = "multiply"
distribution = {type = "uniform", low = 0.5, high = 1.5}
"""


@pytest.mark.slow
@plain
def test_a_study_in_a_file_has_friction_and_contact(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    study = rb.Study.read(path)
    results = study.run()
    _, model, motion = study.sample(1)
    assert [type(force) for force in motion.forces] == [rb.DryFriction, rb.SphereContact]
    again = model.simulate([0.0], [5.0], 0.3, method="moreau", step=0.01, forces=list(motion.forces), save_at=2)
    # round-off of the step decides whether a penetration of 1e-9 m is closed, which is 5e-9 rad here
    np.testing.assert_allclose(results.q_final[1], again.q[-1], rtol=0, atol=1e-8)
    path.write_text(STUDY.replace('"moreau"', '"rk4"'), encoding="utf-8")
    with pytest.raises(
        rb.StudyError, match="forces contains DryFriction of joint 'link1', which method \"rk4\" does not"
    ):
        rb.Study.read(path).run()


VARIED = (
    STUDY.replace("mass", "dry_friction").replace(
        "plane_normal = [0, 1, 0]",
        """plane_normal = [0, 2, 0]
friction = 0.4
restitution = 0.5""",
    )
    + """
[vary."floor.friction"]
distribution = {type = "uniform", low = 0.1, high = 0.9}
[vary."*.restitution"]
distribution = {type = "normal", mean = 0.5, std = 0.3}
[vary."*.radius"]
distribution = {type = "uniform", low = "5 mm", high = "20 mm"}
[vary."*.plane_point.y"]
how = "add"
distribution = {type = "uniform", low = -0.01, high = 0.01}
[vary."*.plane_normal.z"]
distribution = {type = "uniform", low = "-5 deg", high = "5 deg"}
"""
).replace("samples = 3", "samples = 12")


@pytest.mark.slow
@plain
def test_numbers_of_contacts_vary_in_a_study_file_as_arrays_do_in_python(tmp_path, capsys, monkeypatch):
    path = tmp_path / "study.toml"
    path.write_text(VARIED, encoding="utf-8")
    study = rb.Study.read(path)
    assert study.plan.units == ("1", "1", "1", "m", "m", "rad")
    results = study.run(on_failure="ignore")
    factor, friction, restitution, radius, height, angle = results.parameters.values.T
    valid = (restitution >= 0.0) & (restitution <= 1.0)
    assert valid.any() and not valid.all()
    np.testing.assert_array_equal(results.status, np.where(valid, rb.Status.DONE, rb.Status.INVALID_PARAMETERS))
    assert np.isnan(results.q_final.values[~valid]).all()

    model = rb.Model.serial_chain(1, gravity=(0, -10, 0))
    normal = Rotation.from_rotvec(angle[valid, None] * [0, 0, 1]).as_matrix() @ [0.0, 2.0, 0.0]
    floor = rb.SphereContact(
        "link1",
        point=(0.25, 0, 0),
        radius=radius[valid],
        plane_point=np.stack([0 * height, -0.1 + height, 0 * height], -1)[valid],
        plane_normal=normal,
        friction=friction[valid],
        restitution=restitution[valid],
    )
    forces = [rb.DryFriction("link1", 0.01 * factor[valid]), floor]
    start = np.zeros((valid.sum(), 1)), np.full((valid.sum(), 1), 5.0)
    motion = model.simulate(*start, 0.3, method="moreau", step=0.01, save_at=21, forces=forces)
    np.testing.assert_array_equal(results.q_final.values[valid], motion.q[:, -1])
    np.testing.assert_array_equal(results.qd_final.values[valid], motion.qd[:, -1])

    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main(["study", "run", str(path), "--out", str(tmp_path / "out")]) == 1  # some samples are invalid
    output = capsys.readouterr().out
    assert "floor.friction" in output and "drives and forces" in output
    np.testing.assert_array_equal(rb.load_results(tmp_path / "out").q_final, results.q_final)


@plain
@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        (("floor.friction", "flor.friction"), r"nothing named 'flor' has 'friction'.*did you mean floor\?"),
        (("floor.friction", "floor.radius_a"), "'floor' has no 'radius_a'; did you mean radius"),
        (('name = "floor"', ""), "nothing named 'floor'"),
        (
            ("floor.friction", "*.friction"),
            "matches different quantities, of the degree of freedom and SphereContact",
        ),
        (("low = 0.1, high = 0.9", 'low = "0.1 N", high = "0.9 N"'), "'0.1 N' has a unit; expected a plain number"),
        (("low = 0.1, high = 0.9", "low = -3, high = -2"), "no valid draw changes the model.*friction is"),
    ],
)
def test_varied_numbers_of_contacts_that_do_not_fit_are_refused(replaced, message, tmp_path):
    path = tmp_path / "study.toml"
    assert replaced[0] in VARIED
    path.write_text(VARIED.replace(*replaced), encoding="utf-8")
    with pytest.raises(rb.StudyError, match=message):
        effects_of(rb.Study.read(path).plan)


def links_over_a_floor(links=20, length=0.1, radius=0.02):
    """Links in a row above a floor. Gravity and the links are in the plane, and each link has a sphere in its middle.

    Returns the model, the initial positions, the contacts, and a function that returns the smallest gap of a motion.
    """
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    for i in range(links):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else None,
            joint=rb.Revolute((0, 1, 0)) if i else rb.Free(),
            placement=rb.Pose((length, 0, 0) if i else (0, 0, 0)),
            inertia=rb.Inertia(0.1, cg=(length / 2, 0, 0), inertia=(1e-5, 1e-4, 1e-4)),
        )
    model, center = builder.build(), np.array([length / 2, 0, 0])
    start = np.zeros((1, model.nq))
    start[0, 2], start[0, 6], start[0, 7:] = 0.5, 1.0, 0.1 * np.sin(np.arange(links - 1))
    floor = [
        rb.SphereContact(
            f"link{i}",
            point=center,
            radius=radius,
            plane_point=(0, 0, 0),
            plane_normal=(0, 0, 1),
            friction=0.3,
            max_records=1,
        )
        for i in range(links)
    ]

    def smallest_gap(motion):
        poses = [model.frame_poses(motion.q, f"link{i}") for i in range(links)]
        return min((pose.translation + pose.rotation @ center)[..., 2].min() for pose in poses) - radius

    return model, start, floor, smallest_gap


@pytest.mark.slow
def test_the_energy_of_20_links_that_fall_on_the_floor_does_not_increase_and_they_do_not_penetrate_it():
    model, start, floor, smallest_gap = links_over_a_floor()
    settings = {"method": "moreau", "step": 2e-4, "forces": floor, "save_at": 101}
    motion = model.simulate(start, np.zeros((1, model.nv)), 0.8, **settings)
    assert motion.success
    energy = sum(model.energy(motion.q, motion.qd))[0]
    assert np.diff(energy).max() < 1e-8 * energy[0]
    assert energy[-1] < 0.2 * energy[0]
    assert smallest_gap(motion) > -1e-6
    assert sum(int(record.count[0]) for record in motion.impacts) >= 20


@pytest.mark.slow
def test_20_links_that_fall_on_the_floor_come_to_rest_with_located_impacts():
    model, start, floor, smallest_gap = links_over_a_floor()
    motion = model.simulate(start, np.zeros((1, model.nv)), 2.0, forces=floor, save_at=101, max_steps=100_000)
    assert motion.success, motion.message
    energy = sum(model.energy(motion.q, motion.qd))[0]
    assert np.diff(energy).max() < 1e-9 * energy[0]
    assert smallest_gap(motion) > -1e-8
    assert np.abs(motion.qd[0, -1]).max() < 1e-9
    assert sum(int(record.count[0]) for record in motion.impacts) >= 100


def links_on_a_floor():
    """Twenty links with alternating axes, which have 60 rows of contact, of which at most 20 are independent."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    for i in range(20):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else None,
            joint=rb.Revolute((0, 0, 1) if i % 3 == 2 else (0, 1, 0)),
            placement=rb.Pose((0.1, 0, 0) if i else (0, 0, 0.3)),
            inertia=rb.Inertia(0.5, cg=(0.05, 0, 0), inertia=(1e-3, 4e-3, 4e-3)),
        )
    floor = [
        rb.SphereContact(
            f"link{i}", point=(0.1, 0, 0), radius=0.03, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), friction=0.5
        )
        for i in range(20)
    ]
    return builder.build(), {"method": "moreau", "step": 1e-3, "forces": floor, "save_at": 2}


@pytest.mark.slow
def test_impulses_of_redundant_contacts_reach_their_tolerance_and_do_not_depend_on_other_samples():
    model, settings = links_on_a_floor()
    q = np.random.default_rng(0).uniform(-0.05, 0.0, (19, 20))
    motion, backwards = (model.simulate(start, np.zeros((19, 20)), 0.4, **settings) for start in (q, q[::-1]))
    assert motion.contact_residual.max() <= 1e-10
    assert max(record.count.max() for record in motion.impacts) >= 1
    np.testing.assert_array_equal(motion.q, backwards.q[::-1])
    np.testing.assert_array_equal(motion.qd, backwards.qd[::-1])


def test_a_body_in_flight_does_not_depend_on_a_body_that_is_moved_out_of_the_floor(plain_or_slow):
    """Positions that a correction does not move keep their bits, also quaternions, which it normalizes."""
    builder = rb.ModelBuilder()
    builder.add_body("box", joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=(0.01, 0.012, 0.02)))
    model, floor = builder.build(), {"plane_point": (0, 0, 0), "plane_normal": (0, 0, 1), "friction": 0.2}
    contact = rb.SphereContact("box", point=(0.02, 0, 0.03), radius=0.1, **floor)
    flying, rolling, far = [0, 0, 0.2, 0.6, 0, 0, 0.8], [0, 0, 0.13, 0, 0.6, 0, 0.8], [0, 0, 3.0, 0, 0, 0, 1]
    qd = np.outer([1.0, 2.0], [1.0, 2.0, 3.0, 0.5, 0.2, 0.0])
    settings = {"method": "moreau", "step": 0.02, "forces": [contact], "save_at": 26}
    first, second = (model.simulate([flying, other], qd, 0.5, **settings) for other in (rolling, far))
    assert first.impacts[0].count.tolist() == [0, 1]
    for name in ("q", "qd"):
        np.testing.assert_array_equal(getattr(first, name)[0], getattr(second, name)[0])


@pytest.mark.parametrize(("samples", "misses"), [(4, 1), pytest.param(32, 3, marks=pytest.mark.slow)])
def test_impulses_of_contacts_that_slide_slowly_reach_their_tolerance(samples, misses):
    """The links slide at less than 1e-6 m/s before they come to rest. Rarely, a step does not reach the tolerance."""
    model, settings = links_on_a_floor()
    q = np.random.default_rng(7).uniform(-0.05, 0.05, (samples, 20))
    q[:, 0] -= 0.1
    residual = model.simulate(q, np.zeros((samples, 20)), 1.0, **settings).contact_residual
    assert np.sum(~(residual <= 1e-10)) <= misses
    assert residual.max() < 1e-4
