"""Contact of capsules with each other: times of impacts, rolling and sliding, by closed forms and by conservation."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.spatial.transform import Rotation

import rbchain as rb

plain = pytest.mark.plain_python

G, TIGHT = 9.81, {"rtol": 1e-11, "atol": 1e-12}


def distance(first, second):
    """Distance of two segments, each with a center and a half axis: the least distance of a point s of the first one.

    The distance of a point to the second segment has a closed form, and is a convex function of s.
    """
    (p, a), (r, b) = first, second

    def of_point(s):
        between = p + s * a - r
        return np.linalg.norm(between - np.clip(between @ b / max(b @ b, 1e-300), -1, 1) * b)

    found = minimize_scalar(of_point, bounds=(-1, 1), method="bounded", options={"xatol": 1e-12})
    return min(found.fun, of_point(-1.0), of_point(1.0))


def free_body(inertia=(0.01, 0.01, 0.01), gravity=(0, 0, -G)):
    builder = rb.ModelBuilder(gravity=gravity)
    builder.add_body("body", joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=inertia))
    return builder.build()


@plain
def test_the_gap_is_the_distance_of_the_segments_less_the_radii():
    rng = np.random.default_rng(0)
    for case in range(40):
        builder = rb.ModelBuilder()
        for name in "ab":
            builder.add_body(name, joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
        model = builder.build()
        q, _ = model.random_state(case)
        p, r, a, b = rng.normal(size=(4, 3))
        a, b = (a, b) if case % 4 else (a * (case % 8 > 0), 0 * b)
        contact = rb.CapsuleCapsuleContact(
            "a", "b", point_a=p, point_b=r, half_axis_a=a, half_axis_b=b, radius_a=0.02, radius_b=0.03
        )
        poses = model.body_poses(q)
        segments = [
            (R @ center + x, R @ axis)
            for R, x, center, axis in zip(poses.rotation, poses.translation, (p, r), (a, b), strict=True)
        ]
        assert contact.gap(model, q) == pytest.approx(distance(*segments) - 0.05, abs=1e-11)


@pytest.mark.parametrize(
    "case", [pytest.param(1, marks=plain), *(pytest.param(case, marks=pytest.mark.slow) for case in (0, 2, 3, 4, 5))]
)
def test_a_capsule_that_falls_and_turns_hits_another_one_at_the_time_of_the_distance(case):
    """The inertia is that of a ball, so that the angular velocity is constant. Case 0 is a sphere."""
    rng = np.random.default_rng(case)
    start, spin = Rotation.random(random_state=case), rng.normal(scale=4.0, size=3)
    rail = (np.array([0.05, 0.02, 0.0]), np.array([0.4, 0.3 * (case % 3), 0.1 * (case % 2)]))
    half = np.array([0.0, 0.1 * (case > 0), 0.2 * (case > 0)])
    contact = rb.CapsuleCapsuleContact(
        None,
        "body",
        point_a=rail[0],
        half_axis_a=rail[1],
        radius_a=0.05,
        point_b=(0, 0, 0),
        half_axis_b=half,
        radius_b=0.03,
    )

    def gap(t):
        turned = start * Rotation.from_rotvec(spin * t)
        return distance(rail, (np.array([0, 0, 0.5 - G * t**2 / 2]), turned.apply(half))) - 0.08

    times = np.linspace(0, 0.4, 401)
    first = next(t for t in times if gap(t) < 0)
    expected = brentq(gap, first - times[1], first, xtol=1e-13)
    model, q = free_body(), [0, 0, 0.5, *start.as_quat()]
    motion = model.simulate(q, [0, 0, 0, *spin], first, forces=[contact], save_at=2, **TIGHT)
    # the minimization finds distances to about 1e-8 m, at a speed of about 3 m/s
    assert motion.impacts[0].t[0] == pytest.approx(expected, abs=2e-8)


@pytest.mark.slow
def test_a_sphere_rolls_over_a_capsule_as_over_a_cylinder():
    """It rolls with (7/5) (R + r) s'' = g sin s from the top, if it does not slip."""
    R, r, start = 0.3, 0.1, 0.3
    model = free_body(inertia=(0.004, 0.004, 0.004))  # 2/5 m r^2
    contact = rb.CapsuleCapsuleContact(
        None,
        "body",
        point_a=(0, 0, 0),
        half_axis_a=(0, 1, 0),
        radius_a=R,
        point_b=(0, 0, 0),
        radius_b=r,
        friction=10.0,
    )
    q = [(R + r) * np.sin(start), 0, (R + r) * np.cos(start), 0, 0, 0, 1]
    motion = model.simulate(q, np.zeros(6), 0.4, forces=[contact], save_at=21, **TIGHT)
    x, z = motion.q[:, 0], motion.q[:, 2]
    # energy: (7/10) (R + r)^2 s'^2 = g (R + r) (cos start - cos s)
    rate = np.sqrt(np.maximum(10 / 7 * G / (R + r) * (np.cos(start) - np.cos(np.arctan2(x, z))), 0.0))
    np.testing.assert_allclose(np.hypot(x, z), R + r, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.hypot(motion.qd[:, 0], motion.qd[:, 2]), (R + r) * rate, rtol=0, atol=1e-7)
    np.testing.assert_allclose(motion.qd[:, 4] * r, (R + r) * rate, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("half_axis", [(0.3, 0.1, 0.02), (0.0, 0.0, 0.0)])
def test_a_capsule_that_slides_on_another_one_keeps_its_energy_and_stays_in_contact(half_axis):
    """A free capsule without friction on a fixed one, while both closest points move."""
    model = free_body(inertia=(0.02, 0.03, 0.01))
    rail = np.array([0.05, 0.4, 0.02])
    contact = rb.CapsuleCapsuleContact(
        None,
        "body",
        point_a=(0, 0.02, 0),
        point_b=(0.01, 0, -0.02),
        half_axis_a=rail,
        half_axis_b=half_axis,
        radius_a=0.2,
        radius_b=0.05,
    )
    q = np.array([0, 0, 0, 0, 0, 0, 1.0])
    q[2] = brentq(lambda z: contact.gap(model, np.r_[q[:2], z, q[3:]]), 0.05, 0.5, xtol=1e-15)
    up = 1e-6  # the direction in which the gap grows, by differences
    grad = np.array([contact.gap(model, q + up * step) - contact.gap(model, q - up * step) for step in np.eye(7)[:3]])
    qd = np.r_[np.cross(grad / np.linalg.norm(grad), (0.3, 0.2, 0.1)), 0, 0, 0.5]
    motion = model.simulate(q, qd, 0.1, forces=[contact], save_at=6, **TIGHT)
    gaps = [contact.gap(model, state) for state in motion.q]
    assert np.abs(gaps).max() < 1e-12 and motion.contact_forces[1:, 0, 2].min() > 1.0
    total = sum(model.energy(motion.q, motion.qd))[1:]  # a small impact at the start makes the velocity tangential
    np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-10)


@plain
def test_pairs_of_capsules_and_spheres_have_their_contacts():
    builder = rb.ModelBuilder()
    shapes = {"a": [rb.CollisionShape("capsule", (0.1, 0.4)), rb.CollisionShape("sphere", (0.2,))]}
    shapes["b"] = [rb.CollisionShape("sphere", (0.3,), pose=rb.Pose((0, 0, 0.1)))]
    for name, own in shapes.items():
        builder.add_body(name, joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)), collisions=own)
    model = builder.build()
    first, second = model.contacts(pairs=[("a", "b")], friction=0.3)
    assert isinstance(first, rb.CapsuleCapsuleContact) and type(second) is rb.SphereSphereContact
    q = model.neutral()
    q[7:10] = 1.0, 0.0, 0.5
    assert first.gap(model, q) == pytest.approx(np.hypot(1.0, 0.6 - 0.2) - 0.4, abs=1e-12)
    assert second.gap(model, q) == pytest.approx(np.hypot(1.0, 0.6) - 0.5, abs=1e-12)
    with pytest.raises(rb.ArgumentError, match="radius_a and radius_b are both 0"):
        none = {"point_a": (0, 0, 0), "point_b": (0, 0, 1), "radius_a": 0.0, "radius_b": 0.0}
        model.simulate(q, duration=0.1, forces=[rb.CapsuleCapsuleContact("a", "b", half_axis_a=(0, 0, 1), **none)])
