"""Contact of ellipsoids, discs and cylinders with a plane: free fall, rolling and rocking, by closed forms."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import rbchain as rb

G, TIGHT = 9.81, {"rtol": 1e-11, "atol": 1e-12}
FLOOR = {"plane_point": (0, 0, 0), "plane_normal": (0, 0, 1)}
GROUND = rb.Plane((0, 0, 0), (0, 0, 1))


def free_body(inertia, *shapes):
    builder = rb.ModelBuilder()
    builder.add_body("body", joint=rb.Free(), inertia=inertia, collisions=list(shapes))
    return builder.build()


def disc(radius):
    return rb.Inertia(1.0, inertia=np.array([0.25, 0.25, 0.5]) * radius**2)


def rim(radius, **settings):
    return rb.EllipsoidContact("body", point=(0, 0, 0), semi_axes=np.diag((radius, radius, 0.0)), **FLOOR, **settings)


def reach(shape, size, m):
    """How far a shape reaches from its center in a direction (3,) in its axes."""
    if shape == "ellipsoid":
        return np.linalg.norm(np.multiply(size, m))
    if shape == "box":
        return np.abs(m) @ size / 2
    if shape == "capsule":
        return size[0] + size[1] / 2 * abs(m[2])
    return size[0] * np.hypot(m[0], m[1]) + size[1] / 2 * abs(m[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("ellipsoid", (0.1, 0.2, 0.05)),
        ("cylinder", (0.1, 0.3)),
        ("cylinder", (0.2, 0.02)),
        ("capsule", (0.1, 0.3)),
        ("box", (0.1, 0.3, 0.2)),
    ],
)
def test_a_body_that_falls_and_turns_touches_the_ground_at_the_time_of_the_closed_form(shape, size):
    """The inertia is that of a ball, so that the angular velocity is constant."""
    model = free_body(rb.Inertia(1.0, inertia=(0.01, 0.01, 0.01)), rb.CollisionShape(shape, size))
    rng, samples = np.random.default_rng(3), 3
    start, spin = Rotation.random(samples, random_state=4), rng.normal(scale=4.0, size=(samples, 3))
    q, qd = np.zeros((samples, 7)), np.zeros((samples, 6))
    q[:, 2], q[:, 3:], qd[:, 3:] = 0.8, start.as_quat(), spin

    def gap(t, i):
        turned = start[i] * Rotation.from_rotvec(spin[i] * t)
        return 0.8 - G * t**2 / 2 - reach(shape, size, turned.as_matrix()[2])

    times = np.linspace(0, 0.5, 2001)
    firsts = [next(t for t in times if gap(t, i) < 0) for i in range(samples)]
    expected = [brentq(gap, t - times[1], t, (i,), xtol=1e-15) for i, t in enumerate(firsts)]
    contacts = model.contacts(ground=GROUND, friction=0.0)
    motion = model.simulate(q, qd, max(firsts), forces=contacts, save_at=2, **TIGHT)
    found = np.nanmin([record.t[:, 0] for record in motion.impacts], axis=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_the_time_of_an_impact_without_rotation_is_exact_to_a_picosecond():
    model = free_body(disc(0.1), rb.CollisionShape("cylinder", (0.1, 0.2)))
    turn = Rotation.from_euler("x", 0.6)
    motion = model.simulate(
        [0, 0, 1.0, *turn.as_quat()], duration=0.5, forces=model.contacts(ground=GROUND, friction=0.0)
    )
    height = 1.0 - 0.1 * np.sin(0.6) - 0.1 * np.cos(0.6)
    times = [record.t[0] for record in motion.impacts]
    np.testing.assert_allclose(np.nanmin(times), np.sqrt(2 * height / G), rtol=0, atol=1e-12)


# --- rolling ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("tilt", "precession", "duration"), [(1.2, 2.0, 0.4), (0.9, -3.0, 0.4), (0.1, None, 0.2)])
def test_a_disc_rolls_on_a_circle_or_spins_like_eulers_disc(tilt, precession, duration):
    """Steady rolling: 3/2 w sin a W - 1/4 W^2 sin a cos a + g/r cos a = 0, with the tilt a of the axis.

    W is the precession, w the angular velocity about the axis, and the center moves with -r w on a circle. If the
    center rests, w = 0 and W^2 = 4 g / (r sin a), the frequency of Euler's disc.
    """
    r, s, c = 0.2, np.sin(tilt), np.cos(tilt)
    if precession is None:
        precession, about_axis = np.sqrt(4 * G / (r * s)), 0.0
    else:
        about_axis = (0.25 * precession**2 * s * c - G / r * c) / (1.5 * precession * s)
    model = free_body(disc(r))
    turn = Rotation.from_euler("x", tilt)  # e1 = x, e2 = (0, cos a, sin a), e3 = (0, -sin a, cos a)
    q = [0, 0, r * s, *turn.as_quat()]
    in_body = [0.0, precession * s, about_axis]
    qd = [*turn.inv().apply([-r * about_axis, 0, 0]), *in_body]
    motion = model.simulate(q, qd, duration, forces=[rim(r, friction=5.0)], save_at=5, **TIGHT)
    angle = precession * motion.t
    center = -r * about_axis / precession * np.column_stack([np.sin(angle), 1 - np.cos(angle)])
    np.testing.assert_allclose(motion.q[:, :2], center, rtol=0, atol=2e-8)
    axes = Rotation.from_quat(motion.q[:, 3:]).as_matrix()[:, :, 2]
    expected = np.column_stack([s * np.sin(angle), -s * np.cos(angle), np.full(5, c)])
    np.testing.assert_allclose(axes, expected, rtol=0, atol=2e-7)
    np.testing.assert_allclose(motion.q[:, 2], r * s, rtol=0, atol=2e-8)


def rolling_ellipsoid(semi_axes, inertia, center, m, spin, duration):
    """Return m and the angular velocity, in body axes, of an ellipsoid of 1 kg that rolls; m is the normal.

    The moment of the force at the lowest point p about the center of mass changes the angular momentum:
    I w' + w x I w = p x (a + g m). The center of mass has the velocity -w x p. It is at `center` from the center of the
    ellipsoid.
    """
    square = np.square(semi_axes)

    def rate(t, y):
        m, w = y[:3], y[3:]
        h = np.sqrt(square @ m**2)
        dm = np.cross(m, w)
        p = -square * m / h - center
        dp = -square * dm / h + square * m * (square * m @ dm) / h**3
        known = -np.cross(w, dp) - np.cross(w, np.cross(w, p)) + G * m
        cross = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])  # -w' x p = p x w'
        right = np.cross(p, known) - np.cross(w, inertia @ w)
        return np.r_[dm, np.linalg.solve(inertia - cross @ cross, right)]

    found = solve_ivp(rate, (0, duration), np.r_[m, spin], method="DOP853", rtol=1e-13, atol=1e-14)
    return found.y[:3, -1], found.y[3:, -1]


RATTLEBACK = {  # the numbers of Kane and Levinson (1982), "Realistic mathematical modeling of the rattleback"
    "semi_axes": np.array([0.2, 0.03, 0.02]),
    "inertia": np.array([[0.0002, -0.00002, 0.0], [-0.00002, 0.0016, 0.0], [0.0, 0.0, 0.0017]]),
    "center": np.array([0.0, 0.0, -0.01]),
}


@pytest.mark.slow
@pytest.mark.parametrize("duration", [0.1, 4.0])
def test_a_rattleback_moves_as_its_equations_say(duration):
    axes, inertia, center = RATTLEBACK.values()
    start, spin = Rotation.from_euler("xyz", [0.5, 0.5, 0.0], degrees=True), np.array([0.0, 0.0, -5.0])
    model = free_body(rb.Inertia(1.0, cg=center, inertia=inertia))
    contact = rb.EllipsoidContact("body", point=(0, 0, 0), semi_axes=np.diag(axes), **FLOOR, friction=1e3)
    m = start.as_matrix()[2]
    lowest = -np.square(axes) * m / np.linalg.norm(axes * m)
    q = [0, 0, np.linalg.norm(axes * m), *start.as_quat()]
    motion = model.simulate(q, [*-np.cross(spin, lowest), *spin], duration, forces=[contact], save_at=2, **TIGHT)
    expected_m, expected_spin = rolling_ellipsoid(axes, inertia, center, m, spin, duration)
    np.testing.assert_allclose(Rotation.from_quat(motion.q[-1, 3:]).as_matrix()[2], expected_m, rtol=0, atol=1e-7)
    np.testing.assert_allclose(motion.qd[-1, 3:], expected_spin, rtol=0, atol=1e-6)
    assert motion.sticking[0].count == 1


@pytest.mark.slow
@pytest.mark.parametrize("semi_axes", [(0.2, 0.1, 0.15), (0.2, 0.2, 0.0)])
def test_a_smooth_ellipsoid_slides_without_loss_of_energy(semi_axes):
    model = free_body(rb.Inertia(1.0, cg=(0.01, 0.02, 0.0), inertia=(0.008, 0.012, 0.01)))
    turn = Rotation.from_euler("xy", [0.4, 0.3])
    m = turn.as_matrix()[2]
    q = [0, 0, np.linalg.norm(semi_axes * m), *turn.as_quat()]
    contact = rb.EllipsoidContact("body", point=(0, 0, 0), semi_axes=np.diag(semi_axes), **FLOOR)
    motion = model.simulate(q, duration=0.3, forces=[contact], save_at=5, **TIGHT)
    energy = np.sum(model.energy(motion.q, motion.qd), 0)
    np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-8)
    assert (motion.contact_forces[:, 0, 2] > 0).all() and abs(motion.qd[-1, 3:]).max() > 0.5
    for state in motion.q:
        assert abs(contact.gap(model, state)) < 1e-8


@pytest.mark.slow
def test_a_block_rocks_with_the_restitution_of_housner():
    """The angular velocity after an impact is 1 - 3/2 sin^2 a times the one before, with tan a = width / height.

    Source: Housner (1963), "The behavior of inverted pendulum structures during earthquakes".
    """
    width, height, tilt = 0.2, 0.6, 0.05
    builder = rb.ModelBuilder()
    inertia = rb.Inertia.box((width, 0.1, height), mass=1.0)
    for axis, name in (((1, 0, 0), "x"), ((0, 0, 1), "z")):
        parent = None if name == "x" else "x"
        builder.add_body(name, parent=parent, joint=rb.Prismatic(axis), inertia=rb.Inertia(0.0))
    shape = rb.CollisionShape("box", (width, 0.1, height))
    builder.add_body("block", parent="z", joint=rb.Revolute((0, 1, 0)), inertia=inertia, collisions=[shape])
    model = builder.build()
    contacts = [c for c in model.contacts(ground=GROUND, friction=10.0) if c.point[1] > 0 and c.point[2] < 0]
    z = height / 2 * np.cos(tilt) + width / 2 * np.sin(tilt)
    motion = model.simulate([0.0, z, tilt], duration=0.5, forces=contacts, save_every=1e-3, rtol=1e-9, atol=1e-11)
    time = next(record.t[0] for record in motion.impacts if record.count)
    before, after = (motion.qd[np.searchsorted(motion.t, time) + shift, 2] for shift in (-1, 0))
    # gravity changes the velocity by less than 1.5 g sin a / (2 R) times 1 ms on both sides
    diagonal, angle = np.hypot(width, height), np.arctan2(width, height)
    slack = 2 * 1e-3 * 1.5 * G * np.sin(angle) / diagonal
    assert abs(after - (1 - 1.5 * np.sin(angle) ** 2) * before) < slack


@pytest.mark.parametrize(
    "settings", [pytest.param({"method": "rk45"}, marks=pytest.mark.slow), {"method": "moreau", "step": 2e-3}]
)
@pytest.mark.parametrize(("shape", "size"), [("capsule", (0.1, 0.4)), ("cylinder", (0.1, 0.4))])
def test_a_rod_rolls_down_an_incline(settings, shape, size):
    """The acceleration is g sin b / (1 + I / (m r^2))."""
    slope, moment = 0.3, 0.004
    turn = Rotation.from_euler("x", np.pi / 2)
    model = free_body(rb.Inertia(1.0, inertia=(0.02, 0.02, moment)), rb.CollisionShape(shape, size))
    down, normal = np.array([np.cos(slope), 0, -np.sin(slope)]), np.array([np.sin(slope), 0, np.cos(slope)])
    contacts = model.contacts(ground=rb.Plane((0, 0, 0), normal), friction=0.5)
    start = [[*(0.1 * normal), *turn.as_quat()]]  # a batch, which has the machine code of other tests
    motion = model.simulate(start, duration=0.2, forces=contacts, save_at=2, **settings)
    distance = 0.5 * G * np.sin(slope) / (1 + moment / 0.01) * 0.2**2
    tolerance = 1e-8 if settings["method"] == "rk45" else 1e-5
    np.testing.assert_allclose(motion.q[0, -1, :3], 0.1 * normal + distance * down, rtol=0, atol=tolerance)


# --- numbers and refusals ---------------------------------------------------------------------------------------------


@pytest.mark.plain_python
def test_samples_differ_in_all_numbers():
    model = free_body(disc(0.1))
    axes = np.array([np.diag((0.1, 0.1, 0.0)), np.diag((0.1, 0.2, 0.3))])
    contact = rb.EllipsoidContact(
        "body",
        point=[[0, 0, 0], [0, 0.1, 0]],
        semi_axes=axes,
        plane_point=[[0, 0, 0], [0, 0, -0.1]],
        plane_normal=[[0, 0, 1], [0, 1, 1]],
        friction=[0.1, 0.2],
    )
    q = np.tile([0, 0, 0.5, 0.6, 0, 0, 0.8], (2, 1))
    settings = {"duration": 0.4, "method": "moreau", "step": 0.02}
    motion = model.simulate(q, forces=[contact], **settings)
    for i in range(2):
        own = contact.of_sample(i, (2,))
        alone = model.simulate(q[i], forces=[own], **settings)
        np.testing.assert_array_equal(alone.q, motion.q[i])
    single = model.simulate(q.astype(np.float32), forces=[contact], **settings)
    assert single.q.dtype == np.float32
    np.testing.assert_allclose(single.q[:, -1], motion.q[:, -1], rtol=0, atol=1e-3)
    assert model.simulate(q[:0], forces=[rim(0.1)], **settings).q.shape == (0, 21, 7)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (np.eye(2), r"semi_axes has shape \(2, 2\); expected \(3, 3\)"),
        (np.ones((3, 3)), "expected at least two vectors in different directions. Use SphereContact"),
        (np.diag((0.1, 0, 0)), "expected at least two vectors in different directions"),
    ],
)
def test_ellipsoids_that_are_not_possible_are_refused(axes, message):
    with pytest.raises(rb.ArgumentError, match=message):
        rb.EllipsoidContact("body", point=(0, 0, 0), semi_axes=axes, **FLOOR)
