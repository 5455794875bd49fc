"""Contact of two spheres on two bodies, with both approaches."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

import rbchain as rb

from .other_process import computed

plain = pytest.mark.plain_python
G = 10.0
METHODS = [{"method": "rk45"}, {"method": "moreau", "step": 1e-3}]


def cradle(masses, gap, restitution=1.0):
    """Return balls with a diameter of 0.2 m in a row along x, their contacts and their positions."""
    builder, count = rb.ModelBuilder(gravity=(0, 0, 0)), len(masses)
    for i, mass in enumerate(masses):
        builder.add_body(f"ball{i}", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia.sphere(0.1, mass=mass))
    contacts = [
        rb.SphereSphereContact(
            f"ball{i}",
            f"ball{i + 1}",
            point_a=(0, 0, 0),
            point_b=(0, 0, 0),
            radius_a=0.1,
            radius_b=0.1,
            restitution=restitution,
        )
        for i in range(count - 1)
    ]
    return builder.build(), contacts, (0.2 + gap) * np.arange(count)


def disc(builder, name, mass, gyration=0.1, parent=None):
    """Add a body that moves in the plane y = 0."""
    nothing = rb.Inertia(0.0)
    builder.add_body(f"{name}_x", parent=parent, joint=rb.Prismatic((1, 0, 0)), inertia=nothing)
    builder.add_body(f"{name}_z", parent=f"{name}_x", joint=rb.Prismatic((0, 0, 1)), inertia=nothing)
    inertia = rb.Inertia(mass, inertia=np.full(3, mass * gyration**2))
    builder.add_body(name, parent=f"{name}_z", joint=rb.Revolute((0, 1, 0)), inertia=inertia)


def energy_of(model, motion):
    return np.sum(model.energy(motion.q, motion.qd), 0)


# --- Newton's cradle --------------------------------------------------------------------------------------------------


@plain
@pytest.mark.parametrize("settings", METHODS)
@pytest.mark.parametrize("restitution", [1.0, 0.5, 0.0])
def test_two_balls_have_the_velocities_of_the_closed_form(settings, restitution):
    """v_a' = (m_a v_a + m_b v_b - e m_b (v_a - v_b)) / (m_a + m_b), and the same for b."""
    masses, v = np.array([1.0, 3.0]), np.array([2.0, -0.5])
    model, contacts, q = cradle(masses, 0.1, restitution)
    motion = model.simulate(q, v, 0.1, forces=contacts, **settings)
    total, relative = masses @ v / masses.sum(), restitution * (v[0] - v[1]) / masses.sum()
    expected = np.array([total - relative * masses[1], total + relative * masses[0]])
    np.testing.assert_allclose(motion.qd[-1], expected, rtol=0, atol=1e-9)
    record = motion.impacts[0]
    assert record.count == 1 and record.force is contacts[0]
    np.testing.assert_allclose(record.t[0], 0.1 / 2.5, rtol=1e-9)
    impulse = masses[1] * (expected[1] - v[1])
    np.testing.assert_allclose(record.impulse[0], [impulse, 0, 0], rtol=0, atol=1e-9)
    assert len(motion.sticking) == 0


@plain
@pytest.mark.parametrize("settings", METHODS)
def test_the_last_of_five_balls_leaves_with_the_speed_of_the_first(settings):
    model, contacts, q = cradle(np.ones(5), 0.01)
    motion = model.simulate(q, [1.0, 0, 0, 0, 0], 0.1, forces=contacts, **settings)
    np.testing.assert_allclose(motion.qd[-1], [0, 0, 0, 0, 1], rtol=0, atol=1e-9)
    np.testing.assert_allclose([record.t[0] for record in motion.impacts], 0.01 * np.arange(1, 5), rtol=1e-8)


@plain
@pytest.mark.parametrize("settings", METHODS)
def test_touching_balls_follow_newtons_law_for_each_contact(settings):
    """u' = - e u at the first contact, and u' >= 0 at the others: all but the first move with 2 / N of its speed."""
    model, contacts, q = cradle(np.ones(5), 0.0)
    q[0] -= 0.05
    motion = model.simulate(q, [1.0, 0, 0, 0, 0], 0.1, forces=contacts, **settings)
    np.testing.assert_allclose(motion.qd[-1], [-0.6, 0.4, 0.4, 0.4, 0.4], rtol=0, atol=1e-9)
    assert motion.impacts[0].count == 1 and motion.impacts[1].count <= 1
    np.testing.assert_allclose(motion.qd[-1].sum(), 1.0, rtol=1e-10)
    np.testing.assert_allclose(np.sum(motion.qd[-1] ** 2), 1.0, rtol=1e-9)


# --- the line of the centers turns ------------------------------------------------------------------------------------


@plain
@pytest.mark.parametrize("settings", METHODS)
def test_an_oblique_impact_changes_the_velocities_along_the_line_of_centers(settings):
    """Also with centers beside those of mass: the bodies turn, and momentum and energy are conserved."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name, mass in (("a", 1.0), ("b", 2.0)):
        builder.add_body(
            name, joint=rb.Free(), inertia=rb.Inertia(mass, cg=(0.02, 0.01, 0), inertia=(0.02, 0.03, 0.03))
        )
    model = builder.build()
    contact = rb.SphereSphereContact(
        "a", "b", point_a=(0.2, 0.1, 0), point_b=(0, 0.1, 0.05), radius_a=0.1, radius_b=0.15, restitution=1.0
    )
    q = np.array([0, 0, 0, 0, 0, 0, 1.0, 0.6, 0, 0.1, 0, 0, 0, 1.0])
    qd = np.array([2.0, 0, 0, 0.3, 0.2, 0.5, 0.0, 0.3, 0, 0.1, 0.4, 0.2])
    settings = (
        settings | ({"rtol": 1e-11, "atol": 1e-12} if settings["method"] == "rk45" else {"step": 1e-3}) | {"save_at": 2}
    )
    motion = model.simulate(q, qd, 0.16, forces=[contact], **settings)
    assert motion.impacts[0].count == 1
    impulse = motion.impacts[0].impulse[0]
    assert np.linalg.norm(impulse) > 0.5
    exact = settings["method"] == "rk45"
    momentum, energy = model.momentum(motion.q, motion.qd), energy_of(model, motion)
    # in a step of time stepping, the axes of the bodies turn, and the impulse is that of the middle
    turn = 0.0 if exact else settings["step"] * np.abs(motion.qd.reshape(2, 2, 6)[..., 3:]).sum(-1).max()
    np.testing.assert_allclose(momentum[1], momentum[0], rtol=0, atol=1e-9 + turn * np.linalg.norm(impulse))
    np.testing.assert_allclose(energy[1], energy[0], rtol=1e-9 if exact else 1e-3)


@pytest.mark.slow_cases("settings1")
@plain
@pytest.mark.parametrize("settings", METHODS)
def test_a_ball_leaves_a_fixed_ball_at_the_angle_whose_cosine_is_two_thirds(settings):
    """The speed is sqrt(2 g R (1 - cos a)) and the force m g (3 cos a - 2), until the force is zero."""
    R, start, m = 1.0, 0.1, 2.0
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    disc(builder, "ball", m)
    model = builder.build()
    contact = rb.SphereSphereContact(None, "ball", point_a=(0, 0, -1.0), point_b=(0, 0, 0), radius_a=0.7, radius_b=0.3)
    q = np.array([R * np.sin(start), -1.0 + R * np.cos(start), 0.0])
    times = np.linspace(0, 1.2, 13)
    motion = model.simulate(q, np.zeros(3), 1.2, forces=[contact], save_at=times, **settings)
    exact = settings["method"] == "rk45"
    from_center = motion.q[:, :2] - [0, -1.0]
    distance = np.linalg.norm(from_center, axis=1)
    cosine, drop = from_center[:, 1] / distance, np.cos(start) - from_center[:, 1]
    np.testing.assert_allclose(np.sum(motion.qd[:, :2] ** 2, 1), 2 * G * drop, rtol=0, atol=1e-7 if exact else 2e-3)
    found = motion.contact_forces[:, 0]
    touches, leaves = found[:, 2] > 0.0, 2 / 3 * np.cos(start)
    slack = 1e-6 if exact else 1e-2
    assert (cosine[touches] > leaves - slack).all() and (cosine[~touches] < leaves + slack).all()
    assert 5 < np.count_nonzero(touches) < 13
    np.testing.assert_allclose(distance[touches], R, rtol=0, atol=1e-8 if exact else 1e-6)
    force = m * G * (3 * cosine - 2 * np.cos(start))[:, None] * from_center / distance[:, None]
    inside = touches & (cosine > leaves + 0.01)
    tolerance = 1e-6 if exact else 0.02 * m * G  # the mean force of a step, which ends at the time
    np.testing.assert_allclose(found[inside][1:, [0, 2]], force[inside][1:], rtol=0, atol=tolerance)


@pytest.mark.slow
@plain
def test_a_ball_slides_on_a_ball_that_moves_and_energy_and_momentum_are_conserved():
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(2.0))
    disc(builder, "ball", 1.0)
    model = builder.build()
    contact = rb.SphereSphereContact("cart", "ball", point_a=(0, 0, 0), point_b=(0, 0, 0), radius_a=0.5, radius_b=0.5)
    q = np.array([0.0, np.sin(0.2), np.cos(0.2), 0.0])
    motion = model.simulate(q, np.zeros(4), 0.7, forces=[contact], save_at=15, rtol=1e-9, atol=1e-11)
    assert motion.impacts[0].count == 0
    assert (motion.contact_forces[1:10, 0, 2] > 0).all()
    np.testing.assert_allclose(2 * motion.qd[:, 0] + motion.qd[:, 1], 0.0, atol=1e-9)
    np.testing.assert_allclose(energy_of(model, motion), energy_of(model, motion)[0], rtol=0, atol=1e-7)
    assert motion.qd[-1, 0] < -0.1


@pytest.mark.slow
@plain
@pytest.mark.parametrize("settings", METHODS)
def test_spheres_on_two_links_of_a_chain_act_like_a_stop_of_their_joint(settings):
    """A spring folds a pendulum, until spheres at the same distance from the elbow touch at the chord 2 r."""
    reach, radius = 0.3, 0.06
    folded = np.pi - 2 * np.arcsin(radius / reach)
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    inertia = rb.Inertia(1.0, cg=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02))
    builder.add_body("upper", joint=rb.Revolute((0, 1, 0)), inertia=inertia)
    spring = rb.PassiveForces(stiffness=5.0, rest_position=folded + 0.3)
    place, limits = rb.Pose((0.4, 0, 0)), rb.JointLimits(upper=folded)
    builder.add_body(
        "lower",
        parent="upper",
        joint=rb.Revolute((0, 1, 0)),
        placement=place,
        inertia=inertia,
        passive=spring,
        limits=limits,
    )
    model = builder.build()
    spheres = rb.SphereSphereContact(
        "upper", "lower", point_a=(0.1, 0, 0), point_b=(0.3, 0, 0), radius_a=0.02, radius_b=0.1, restitution=0.3
    )
    found, expected = (
        model.simulate([0.3, 2.2], [0.0, 0.0], 0.8, forces=[force], save_at=9, **settings)
        for force in (spheres, rb.HardStops("lower", restitution=0.3))
    )
    exact = settings["method"] == "rk45"
    np.testing.assert_allclose(found.q, expected.q, rtol=0, atol=1e-7 if exact else 1e-3)
    assert found.impacts[0].count > 2
    np.testing.assert_allclose(found.impacts[0].t[:2], expected.impacts[0].t[:2], rtol=0, atol=1e-8 if exact else 1e-4)
    lever = reach * np.cos(np.arcsin(radius / reach))
    impulse = np.linalg.norm(found.impacts[0].impulse[:2], axis=-1)
    np.testing.assert_allclose(impulse * lever, -expected.impacts[0].impulse[:2], rtol=1e-6 if exact else 1e-2)
    assert abs(found.q[-1, 1] - folded) < 1e-7 and found.contact_forces[-1, 0].any()


# --- friction ---------------------------------------------------------------------------------------------------------


def rough_balls(masses, radii, **settings):
    """Return two free solid spheres in space, and their contact."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name, mass, radius in zip("ab", masses, radii, strict=True):
        builder.add_body(name, joint=rb.Free(), inertia=rb.Inertia.sphere(radius, mass=mass))
    return builder.build(), rb.SphereSphereContact(
        "a", "b", point_a=(0, 0, 0), point_b=(0, 0, 0), radius_a=radii[0], radius_b=radii[1], **settings
    )


@pytest.mark.slow_cases("settings0")
@plain
@pytest.mark.parametrize("settings", METHODS)
def test_an_oblique_impact_of_rough_spheres_slides_or_sticks(settings):
    """The tangential impulse is mu times the normal one, or 2/7 of the impulse that stops the sliding without spin.

    A tangential impulse at the surface of a solid sphere changes the velocity there by 1/m + r^2 / I = 7 / (2 m). The
    normal velocity is 2 m/s, and the tangential one, with spin, is u. Momentum and angular momentum are conserved.
    """
    masses, radii, mu = np.array([1.0, 3.0]), np.array([0.1, 0.2]), np.array([0.0, 0.05, 0.1, 2.0])
    model, contact = rough_balls(masses, radii, restitution=0.5, friction=mu)
    n, t = np.array([1.0, 2.0, 2.0]) / 3, np.array([2.0, 1.0, -2.0]) / 3
    spin, gap = 4.0, 1e-6  # of the first sphere; the surfaces move with spin r along t
    q, qd = np.zeros((4, 14)), np.zeros((4, 12))
    q[:, 6] = q[:, 13] = 1.0
    q[:, 7:10] = (radii.sum() + gap) * n
    qd[:, :3], qd[:, 3:6], qd[:, 6:9] = 2.0 * n, spin * np.cross(n, t), -t
    settings = settings | ({"step": 1e-6} if settings["method"] == "moreau" else {})
    motion = model.simulate(q, qd, 4e-6, forces=[contact], **settings)
    reduced = 1 / np.sum(1 / masses)
    normal, slip = 1.5 * 2.0 * reduced, -1.0 - spin * radii[0]  # of the second sphere against the first
    tangential = np.minimum(mu * normal, 2 / 7 * reduced * abs(slip))
    assert (mu * normal > tangential).tolist() == [False, False, False, True]
    assert motion.impacts[0].count.tolist() == [1] * 4
    impulse = motion.impacts[0].impulse[:, 0]
    np.testing.assert_allclose(impulse, normal * n + tangential[:, None] * t, rtol=0, atol=1e-4)
    change = motion.qd[:, -1] - qd
    np.testing.assert_allclose(change[:, :3], -impulse / masses[0], rtol=0, atol=1e-4)
    np.testing.assert_allclose(change[:, 6:9], impulse / masses[1], rtol=0, atol=1e-4)
    for body, velocity in enumerate((change[:, 3:6], change[:, 9:])):  # both feel r n x (-p): they turn the same way
        expected = -2.5 / (masses[body] * radii[body]) * tangential[:, None] * np.cross(n, t)
        np.testing.assert_allclose(velocity, expected, rtol=0, atol=2e-3)
    v = motion.qd[:, -1]
    at_contact = v[:, 6:9] - np.cross(v[:, 9:], radii[1] * n) - v[:, :3] - np.cross(v[:, 3:6], radii[0] * n)
    np.testing.assert_allclose(at_contact[3] @ t, 0.0, atol=1e-4)
    np.testing.assert_allclose(at_contact @ n, 1.0, rtol=0, atol=1e-4)


@pytest.mark.fast_cases("mu2")
@plain
@pytest.mark.parametrize(
    ("settings", "in_space", "mu"),
    [
        ({"method": "rk45"}, False, [0.5, 1e4]),
        ({"method": "rk45"}, True, [1e4]),
        (METHODS[1] | {"step": 5e-3}, True, [0.5]),
    ],
)
def test_a_rolling_ball_slips_and_leaves_a_fixed_ball_at_the_angle_of_the_closed_form(settings, in_space, mu):
    """It leaves at cos a = 10/17 for large mu.

    Rolling, the ball has the speed^2 10/7 g L (1 - cos a), the normal force m g (17 cos a - 10) / 7, and the friction
    2/7 m g sin a. It slips if this exceeds mu times the normal force. In space, the plane of its motion is not one of
    the axes.
    """
    R, r, m, start, mu = 1.0, 0.25, 2.0, 0.5, np.array(mu)
    length, exact, samples = R + r, settings["method"] == "rk45", len(mu)
    across, up = np.array([0.6, 0.8, 0.0] if in_space else [1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    n, t = (np.sin(start) * across + np.cos(start) * up), (np.cos(start) * across - np.sin(start) * up)
    speed = np.sqrt(10 / 7 * G * length * (1 - np.cos(start)))
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    if in_space:
        builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia.sphere(r, mass=m))
        q, qd, place = np.r_[length * n, 0, 0, 0, 1], np.r_[speed * t, speed / r * np.cross(n, t)], [0, 1, 2]
    else:
        disc(builder, "ball", m, np.sqrt(0.4) * r)
        q, qd, place = np.r_[length * n[[0, 2]], 0], np.r_[speed * t[[0, 2]], speed / r], [0, 1]
    contact = rb.SphereSphereContact(
        None, "ball", point_a=(0, 0, 0), point_b=(0, 0, 0), radius_a=R, radius_b=r, friction=mu
    )
    model, states = builder.build(), (np.tile(q, (samples, 1)), np.tile(qd, (samples, 1)))
    motion = model.simulate(*states, 0.4, forces=[contact], save_at=21, **settings)
    assert motion.success

    def excess(a, mu):
        return 2 * np.sin(a) - mu * (17 * np.cos(a) - 10)

    slips = np.array([brentq(excess, start, 1.0, args=(x,)) for x in mu])
    np.testing.assert_allclose(np.cos(slips[mu > 1e3]), 10 / 17, atol=1e-4)
    times = [quad(lambda a: 1 / np.sqrt(10 / 7 * G / length * (1 - np.cos(a))), start, end)[0] for end in slips]
    sticking = motion.sticking[0]
    np.testing.assert_array_equal(sticking.start[:, 0], 0.0)
    np.testing.assert_allclose(sticking.end[:, 0], times, rtol=0, atol=1e-7 if exact else 5e-3)
    for sample in range(samples):
        rolls = motion.t < times[sample] - 0.01
        assert np.count_nonzero(rolls) > 4
        directions = motion.q[sample, rolls][:, place] / length
        a = np.arccos(directions[:, -1])
        v2 = np.sum(motion.qd[sample, rolls][:, place] ** 2, 1)
        np.testing.assert_allclose(v2, 10 / 7 * G * length * (1 - np.cos(a)), rtol=0, atol=1e-7 if exact else 2e-2)
        normal, along = m * G * (17 * np.cos(a) - 10) / 7, 2 / 7 * m * G * np.sin(a)
        sine, cosine = np.sin(a)[:, None], np.cos(a)[:, None]
        force = normal[:, None] * (sine * across + cosine * up) - along[:, None] * (cosine * across - sine * up)
        tolerance = 1e-6 if exact else 0.2  # the mean force of a step, which ends at the time
        np.testing.assert_allclose(motion.contact_forces[sample, rolls, 0][1:], force[1:], rtol=0, atol=tolerance)
    assert not motion.contact_forces[:, -1].any()
    if exact:
        assert (np.diff(energy_of(model, motion), axis=-1) < 1e-6).all()


@pytest.mark.slow
@plain
@pytest.mark.parametrize("settings", METHODS)
def test_rough_bodies_that_collide_keep_their_momentum_and_lose_energy(settings):
    """Their centers of mass are beside those of the spheres. With mu = 0, the results are those of a smooth pair."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name, mass in (("a", 1.0), ("b", 2.0)):
        builder.add_body(
            name, joint=rb.Free(), inertia=rb.Inertia(mass, cg=(0.02, 0.01, 0), inertia=(0.02, 0.03, 0.03))
        )
    model, mu = builder.build(), np.array([0.0, 0.3])
    numbers = {"point_a": (0.2, 0.1, 0), "point_b": (0, 0.1, 0.05), "radius_a": 0.1, "radius_b": 0.15}
    q = np.tile([0, 0, 0, 0, 0, 0, 1.0, 0.6, 0, 0.1, 0, 0, 0, 1.0], (2, 1))
    qd = np.tile([2.0, 0, 0, 0.3, 0.2, 0.5, 0.0, 0.3, 0, 0.1, 0.4, 0.2], (2, 1))
    settings = (
        settings | ({"rtol": 1e-11, "atol": 1e-12} if settings["method"] == "rk45" else {"step": 4e-3}) | {"save_at": 2}
    )
    motion, smooth = (
        model.simulate(
            q, qd, 0.16, forces=[rb.SphereSphereContact("a", "b", **numbers, restitution=0.5, friction=x)], **settings
        )
        for x in (mu, 0.0)
    )
    assert (motion.impacts[0].count == 1).all() and len(smooth.sticking) == 0
    np.testing.assert_allclose(motion.qd[0], smooth.qd[0], rtol=0, atol=1e-9)
    momentum, energy = model.momentum(motion.q, motion.qd), energy_of(model, motion)
    turn = 0.0 if settings["method"] == "rk45" else 4e-2  # as in the test without friction
    np.testing.assert_allclose(momentum[:, 1], momentum[:, 0], rtol=0, atol=1e-9 + turn)
    assert (energy[:, 1] < energy[:, 0]).all() and energy[1, 1] < energy[0, 1]


# --- samples, precision and errors ------------------------------------------------------------------------------------


@pytest.mark.slow
@plain
def test_samples_have_their_own_numbers(tmp_path):
    model, _, q = cradle(np.ones(2), 0.1)
    radius, restitution = np.array([0.1, 0.12]), np.array([1.0, 0.25])
    contact = rb.SphereSphereContact(
        "ball0",
        "ball1",
        point_a=np.zeros((2, 3)),
        point_b=(0, 0, 0),
        radius_a=radius,
        radius_b=0.1,
        restitution=restitution,
    )
    for settings in METHODS:
        motion = model.simulate(np.tile(q, (2, 1)), [1.0, 0.0], 0.2, forces=[contact], **settings)
        np.testing.assert_allclose(motion.impacts[0].t[:, 0], [0.1, 0.08], rtol=1e-9)
        np.testing.assert_allclose(motion.qd[:, -1], [[0, 1], [0.375, 0.625]], rtol=0, atol=1e-9)
        one = model.simulate(q, [1.0, 0.0], 0.2, forces=[contact.of_sample(1, (2,))], **settings)
        np.testing.assert_allclose(one.q, motion.q[1], rtol=0, atol=1e-13)
        assert motion[1].impacts[0].count == 1
        motion.save(tmp_path / "motion.npz")
        loaded = rb.load_motion(tmp_path / "motion.npz")
        np.testing.assert_array_equal(loaded.forces[0].radius_a, radius)
        np.testing.assert_array_equal(loaded.impacts[0].impulse, motion.impacts[0].impulse)


@plain
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frame_b": "ball0"}, "both ends are fixed to body 'ball0'; expected two different bodies"),
        ({"frame_a": None, "frame_b": None}, "both ends are fixed to the world; expected two different bodies"),
        ({"frame_a": 3}, "frame_a is 3; expected the name of a body or frame, or None for the world"),
        ({"radius_a": 0.0, "radius_b": 0.0}, "radius_a and radius_b are both 0; expected at least one radius above 0"),
        ({"radius_b": -0.1}, "radius_b is -0.1; expected finite numbers of at least 0"),
        ({"radius_a": np.ones(3)}, r"radius_a has shape \(3,\); expected one number"),
        ({"point_a": (0, 0)}, r"point_a has shape \(2,\); expected \(3,\)"),
        ({"friction": -0.1}, "friction is -0.1; expected finite numbers of at least 0"),
        ({"friction": [0.1, 0.2]}, r"friction has shape \(2,\); expected one number"),
        ({"friction": np.nan}, "friction is nan; expected finite numbers of at least 0"),
        ({"restitution": 1.5}, "restitution is 1.5; expected numbers from 0 to 1"),
        ({"max_records": 0}, "max_records is 0; expected a whole number from 1"),
        ({"radius_a": 0.3}, r"SphereSphereContact of 'ball0' and 'ball1' has a gap of -0\.2 m; "),
        ({"point_b": (-0.2, 0, 0)}, r"SphereSphereContact of 'ball0' and 'ball1' has a gap of -0\.2 m; "),
    ],
)
def test_invalid_numbers_are_refused(change, message):
    model, _, q = cradle(np.ones(2), 0.0)
    numbers = {"frame_a": "ball0", "frame_b": "ball1", "point_a": (0, 0, 0), "point_b": (0, 0, 0)}
    with pytest.raises(rb.ArgumentError, match=message):
        contact = rb.SphereSphereContact(**numbers | {"radius_a": 0.1, "radius_b": 0.1} | change)
        model.simulate(q, np.zeros(2), 0.1, forces=[contact], save_at=2)


STEP = 0.01  # s, of "moreau"


def motions_of_methods():
    """Motions of an arm with spheres that touch, of two methods and in both precisions."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    for i, axis in enumerate([(0, 1, 0), (1, 0, 0), (0, 1, 0)]):
        inertia = rb.Inertia(1.0, cg=(0.2, 0.05, 0), inertia=(0.02, 0.03, 0.04))
        parent, place = (None, (0, 0, 0.3)) if i == 0 else (f"link{i - 1}", (0.4, 0, 0))
        builder.add_body(f"link{i}", parent=parent, joint=rb.Revolute(axis), placement=rb.Pose(place), inertia=inertia)
    model = builder.build()
    rng = np.random.default_rng(0)
    q, qd = rng.uniform(-0.2, 0.2, (3, 3)), rng.normal(size=(3, 3))
    forces = [
        rb.DryFriction("link1", 0.2),
        rb.SphereSphereContact(
            None,
            "link2",
            point_a=(1.0, 0, -0.4),
            point_b=(0.4, 0, 0),
            radius_a=0.3,
            radius_b=[0.05, 0.1, 0.15],
            restitution=[0.5, 0.2, 0.0],
            friction=[0.3, 0.1, 0.0],
        ),
        rb.SphereSphereContact(
            "link0", "link2", point_a=(0.6, 0, 0.4), point_b=(0.3, 0, 0), radius_a=0.1, radius_b=0.1
        ),
    ]
    out = {}
    for method, dtype in (("moreau", np.float64), ("moreau", np.float32), ("rk45", np.float64)):
        settings = {"step": STEP} if method == "moreau" else {"rtol": 1e-9, "atol": 1e-11}
        motion = model.simulate(
            q.astype(dtype), qd.astype(dtype), 0.5, method=method, save_at=6, forces=forces, **settings
        )
        name = f"{method} {np.dtype(dtype).name}"
        out |= {f"q {name}": motion.q, f"qd {name}": motion.qd, f"force {name}": motion.contact_forces}
        out[f"impacts {name}"] = np.array([record.count for record in motion.impacts])
        assert motion.q.dtype == dtype and motion.success
    return out


@pytest.mark.slow
def test_compiled_lanes_agree_with_plain_python_and_float32():
    """Forces of "moreau" are impulses divided by the step, with the errors of the velocities of 1 kg per step."""
    found, expected = computed(motions_of_methods, NUMBA_DISABLE_JIT="1"), motions_of_methods()
    for name, values in expected.items():
        tolerance = 1e-3 if "float32" in name else 1e-8 if "rk45" in name else 1e-9
        of_forces = 1e-5 if "rk45" in name else tolerance / STEP
        allowed = of_forces if "force" in name else tolerance
        np.testing.assert_allclose(found[name], values, rtol=tolerance, atol=allowed, err_msg=name)
    assert (np.sum(expected["impacts rk45 float64"], axis=1) > 0).all()
    np.testing.assert_allclose(expected["q moreau float32"], expected["q moreau float64"], rtol=0, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("friction", "rtol"), [(0.5, 1e-6), (0.5, 1e-8), (2.0, 1e-8), (0.5, 1e-11)])
def test_a_ball_that_rolls_off_a_sphere_slides_before_it_leaves(friction, rtol):
    """Its friction grows to the limit, so that the sliding velocity starts with zero and without an acceleration.

    The plane motion of the angle s and the spin w, with the normal force N per kg = g cos s - (R + r) s'^2:

        rolling   (R + r) s'' = g sin s / (1 + c)          r w' = (R + r) s''          c = I / (m r^2)
        sliding   (R + r) s'' = g sin s - mu N             r w' = mu N / c
    """
    R, r, c, start, duration, g = 0.3, 0.1, 0.5, 0.3, 0.7, 9.81

    def normal(y):
        return g * np.cos(y[0]) - (R + r) * y[1] ** 2

    def rolls(t, y):
        rate = g * np.sin(y[0]) / (1 + c) / (R + r)
        return [y[1], rate, (R + r) * rate / r]

    def slides(t, y):
        limit = friction * normal(y)
        return [y[1], (g * np.sin(y[0]) - limit) / (R + r), limit / (c * r)]

    def slips(t, y):
        return friction * normal(y) - c * (R + r) * rolls(t, y)[1]

    def leaves(t, y):
        return normal(y)

    slips.terminal = leaves.terminal = True
    settings = {"rtol": 1e-12, "atol": 1e-13}
    rolling = solve_ivp(rolls, (0, duration), [start, 0.0, 0.0], events=slips, **settings)
    sliding = solve_ivp(slides, (rolling.t[-1], duration), rolling.y[:, -1], events=leaves, **settings)
    (s, rate, spin), flight = sliding.y[:, -1], duration - sliding.t[-1]
    place = (R + r) * np.array([np.sin(s), np.cos(s)])
    velocity = (R + r) * rate * np.array([np.cos(s), -np.sin(s)])
    expected = place + flight * velocity - [0, g * flight**2 / 2]

    builder = rb.ModelBuilder()
    inertia = np.full(3, c * r**2)
    builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=inertia))
    ball = rb.SphereSphereContact(
        None, "ball", point_a=(0, 0, 0), point_b=(0, 0, 0), radius_a=R, radius_b=r, friction=friction
    )
    q = [(R + r) * np.sin(start), 0, (R + r) * np.cos(start), 0, 0, 0, 1]
    motion = builder.build().simulate(q, duration=duration, forces=[ball], rtol=rtol, atol=rtol / 10)
    np.testing.assert_allclose(motion.q[-1, [0, 2]], expected, rtol=0, atol=100 * rtol)
    np.testing.assert_allclose(motion.qd[-1, 4], spin, rtol=0, atol=1000 * rtol)
    assert abs(motion.q[-1, 1]) < rtol
    assert motion.steps < 20_000  # a friction whose direction chatters takes a million
