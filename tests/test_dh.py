"""Denavit-Hartenberg tables: frames, and two arms compared with independent formulas."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.io.dh import DHLink, base_pose, from_dh, rotation_about
from tests.mechanisms import random_inertia

pytestmark = pytest.mark.plain_python


RNG, ZERO = np.random.default_rng(0), np.zeros(4)


def screw(axis, angle, along):
    T = np.eye(4)
    T[:3, :3] = rotation_about(axis, angle)
    T[axis, 3] = along
    return T


@pytest.mark.parametrize("convention", ["classic", "modified"])
def test_frames_are_products_of_the_matrices_of_the_table(convention):
    rows = RNG.normal(size=(4, 4))
    kinds = ["revolute", "prismatic", "revolute", "prismatic"]
    links = [DHLink(*row, joint=kind, mass=1.0) for row, kind in zip(rows, kinds, strict=True)]
    eta, q = RNG.normal(size=6), RNG.normal(size=4)
    base_rotation = rotation_about(0, 0.7)
    chain = from_dh(links, convention=convention, base_rotation=base_rotation, base_coordinates=eta)
    T = np.eye(4)
    T[:3, :3] = rotation_about(2, eta[5]) @ rotation_about(1, eta[4]) @ rotation_about(0, eta[3]) @ base_rotation
    T[:3, 3] = eta[:3]
    for i, ((a, alpha, d, theta), kind) in enumerate(zip(rows, kinds, strict=True)):
        turned, moved = (q[i], 0.0) if kind == "revolute" else (0.0, q[i])
        z, x = screw(2, theta + turned, d + moved), screw(0, alpha, a)
        T = T @ z @ x if convention == "classic" else T @ x @ z
        pose = chain.frame_poses(q, f"frame{i + 1}")
        np.testing.assert_allclose(pose.translation, T[:3, 3], atol=1e-14)
        np.testing.assert_allclose(pose.rotation, T[:3, :3], atol=1e-14)
    np.testing.assert_allclose(chain.frame_poses(q, "end_effector").translation, T[:3, 3], atol=1e-14)


def two_link(density=0.0, **settings):
    link = DHLink(a=1.0, alpha=0.0, d=0.0, mass=1.0, cg=(-0.5, 0, 0), radius=0.1, length=1.0, friction=0.5)
    return from_dh([link, link], base_rotation=rotation_about(0, np.pi / 2), fluid_density=density, **settings)


@pytest.mark.parametrize("density", [0.0, 1000.0])
def test_two_link_arm_has_the_matrices_of_the_textbook(density):
    """M, C and g of two links in a vertical plane, written out; water adds to each link's inertia.

    Across, each link counts m + pi density r^2; along, only m + 0.1 m, which the second link's center feels.
    """
    arm = two_link(density)
    q, qd = np.deg2rad([90.0, -90.0]) + 0.3, np.array([0.2, -0.1])
    displaced = density * np.pi * 0.01
    turning = (3 * 0.01 + 1.0) / 12 + displaced / 12
    across, along = 1.0 + displaced, 1.0 + (0.1 if density else 0.0)
    c2, s2, c1, c12 = np.cos(q[1]), np.sin(q[1]), np.cos(q[0]), np.cos(q.sum())
    # velocity of the second center in link axes: s2 w1 along the link, c2 w1 + (w1 + w2) / 2 across it
    m22 = across / 4 + turning
    m12 = across * (c2 / 2 + 0.25) + turning
    m11 = across / 4 + turning + along * s2**2 + across * (c2 + 0.5) ** 2 + turning
    np.testing.assert_allclose(arm.mass_matrix(q), [[m11, m12], [m12, m22]], rtol=1e-13)
    # Christoffel symbols from dM/dq2
    d11 = 2 * along * s2 * c2 - 2 * across * (c2 + 0.5) * s2
    d12 = -across * s2 / 2
    C = [[d11 / 2 * qd[1], d11 / 2 * qd[0] + d12 * qd[1]], [-d11 / 2 * qd[0], 0.0]]
    np.testing.assert_allclose(arm.coriolis_matrix(q, qd), C, rtol=0, atol=1e-13 * m11)
    weight = (1.0 - displaced) * 9.81
    expected = [weight * (1.5 * c1 + 0.5 * c12), weight * 0.5 * c12]
    np.testing.assert_allclose(arm.gravity_forces(q), expected, rtol=1e-12)
    np.testing.assert_allclose(arm.passive_forces(q, qd), -0.5 * qd, rtol=1e-14)


def test_moving_the_base_of_a_two_link_arm_only_changes_the_direction_of_gravity():
    """Translation and rotation about the vertical change nothing; other rotations change the direction of gravity."""
    q = np.array([0.4, -0.8])
    here, there = two_link(), two_link(base_coordinates=(1, 2, 3, 0, 0, 0.9))
    np.testing.assert_allclose(there.gravity_forces(q), here.gravity_forces(q), atol=1e-14)
    np.testing.assert_allclose(there.mass_matrix(q), here.mass_matrix(q), atol=1e-14)
    on_its_side = two_link(base_coordinates=(0, 0, 0, np.pi / 2, 0, 0))
    np.testing.assert_allclose(on_its_side.gravity_forces(q), 0.0, atol=1e-14)
    np.testing.assert_allclose(base_pose((0, 0, 0, 0.1, 0.2, 0.3)).rotation @ [0, 0, 1], np.array(
        [np.sin(0.3) * np.sin(0.1) + np.cos(0.3) * np.sin(0.2) * np.cos(0.1),
         -np.cos(0.3) * np.sin(0.1) + np.sin(0.3) * np.sin(0.2) * np.cos(0.1),
         np.cos(0.2) * np.cos(0.1)]
    ), atol=1e-15)  # fmt: skip


def test_three_link_arm_has_the_matrices_of_an_independent_sum():
    """M and g follow from fourth-order differences of the products of the table's matrices."""
    l1, l2, l3 = 0.75, 1.0, 1.0
    rows = [(0.0, np.pi / 2, l1), (l2, 0.0, 0.0), (l3, 0.0, 0.0)]
    centers, masses = [(0, -l1 / 2, 0), (-l2 / 2, 0, 0), (-l3 / 2, 0, 0)], (0.75, 1.0, 1.0)
    links = [
        DHLink(*row, mass=m, cg=c, radius=0.1, length=length, friction=0.5)
        for row, m, c, length in zip(rows, masses, centers, (l1, l2, l3), strict=True)
    ]
    arm = from_dh(links)
    q = np.array([0.3, 0.5, -0.4])

    def poses(q):
        T = np.eye(4)
        for (a, alpha, d), angle in zip(rows, q, strict=True):
            T = T @ screw(2, angle, d) @ screw(0, alpha, a)
            yield T

    def slope(function, j):
        e, h = np.eye(3)[j], 1e-3
        return (8 * (function(q + h * e) - function(q - h * e)) - function(q + 2 * h * e) + function(q - 2 * h * e)) / (
            12 * h
        )

    M, g = np.zeros((3, 3)), np.zeros(3)
    for i, (center, m, length) in enumerate(zip(centers, masses, (l1, l2, l3), strict=True)):
        R = list(poses(q))[i][:3, :3]
        J = np.array([slope(lambda x, i=i, c=center: list(poses(x))[i][:3] @ [*c, 1.0], j) for j in range(3)]).T
        spins = [slope(lambda x, i=i: list(poses(x))[i][:3, :3], j) @ R.T for j in range(3)]
        W = np.array([[S[2, 1], S[0, 2], S[1, 0]] for S in spins]).T
        axis = R @ np.eye(3)[np.argmax(np.abs(center))]
        across = m * (3 * 0.01 + length**2) / 12
        inertia = across * np.eye(3) + (m * 0.01 / 2 - across) * np.outer(axis, axis)
        M += m * J.T @ J + W.T @ inertia @ W
        g += m * 9.81 * J[2]
    np.testing.assert_allclose(arm.mass_matrix(q), M, rtol=0, atol=1e-10)
    np.testing.assert_allclose(arm.gravity_forces(q), g, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "settings", "sentence"),
    [
        ([[]], {}, r"links is \[\]; expected a list of one or more DHLink"),
        ([[DHLink(1, 0, 0)]], {"convention": "craig"}, "convention is 'craig'"),
        ([[DHLink(1, 0, 0, joint="ball")]], {}, "link 1: joint is 'ball'"),
        (
            [[DHLink(1, 0, 0, mass=1, radius=0.1)]],
            {},
            "link 1: radius is 0.1 and length is None; expected both or neither",
        ),
        ([[DHLink(1, 0, np.nan)]], {}, "d is"),
        ([[DHLink(1, 0, 0, mass=1)]], {"base_coordinates": (0, 0, 0)}, "base_coordinates has shape"),
        ([[DHLink(1, 0, 0, inertia=rb.Inertia(1.0), mass=1)]], {}, "link 1: inertia is an Inertia, .* but mass 1"),
        ([[DHLink(1, 0, 0, inertia=rb.Inertia(1.0), cg=(1, 0, 0))]], {}, "link 1: .*Omit mass and cg"),
        ([[DHLink(1, 0, 0, mass=1, friction=-1)]], {}, "link 1: friction is -1.0 .*expected zero or more"),
        (
            [[DHLink(1, 0, 0, mass=1, friction=1, motor_viscous_friction=-1)]],
            {},
            "motor_viscous_friction is -1.0; expected zero or more",
        ),
        ([[DHLink(1, 0, 0, mass=1, motor_coulomb_friction=-1)]], {}, "link 1: motor_coulomb_friction is -1.0"),
        ([[DHLink(1, 0, 0, mass=1, motor_coulomb_friction=(1, 1))]], {}, "and zero or less for negative velocities"),
        ([[DHLink(1, 0, 0, mass=1, motor_coulomb_friction=(-1, -1))]], {}, "zero or more for positive velocities"),
        ([[DHLink(1, 0, 0, mass=1, motor_coulomb_friction=(1, 0, -1))]], {}, "motor_coulomb_friction is"),
        ([[DHLink(1, 0, 0, mass=1, gear_ratio=np.inf)]], {}, "link 1: gear_ratio is inf; expected finite"),
        ([[DHLink(1, 0, 0, mass=1, rotor_inertia=-1)]], {}, "'link1': rotor_inertia is"),
        ([[DHLink(1, 0, 0, mass=1, limits=(-1, 1))]], {}, "'link1': limits is .*expected a JointLimits"),
    ],
)
def test_an_invalid_table_is_refused(arguments, settings, sentence):
    with pytest.raises(rb.ModelError, match=sentence):
        from_dh(*arguments, **settings)


@pytest.mark.parametrize("convention", ["classic", "modified"])
def test_an_inertia_object_equals_mass_cg_and_tensor(convention):
    rows, inertias = RNG.normal(size=(3, 4)), [random_inertia(RNG) for _ in range(3)]
    whole = [DHLink(*row, inertia=i, radius=0.1, length=0.5) for row, i in zip(rows, inertias, strict=True)]
    parts = [
        DHLink(*row, mass=i.mass, cg=i.cg, inertia=i.inertia, radius=0.1, length=0.5)
        for row, i in zip(rows, inertias, strict=True)
    ]
    one, other = (from_dh(links, convention=convention, fluid_density=1000.0) for links in (whole, parts))
    for name in ("mass", "cg", "inertia", "volume", "buoyancy_center", "added_volume"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.mass.all()
    assert one.volume.all()


def test_motor_friction_agrees_with_the_toolbox():
    """The toolbox's `test_friction` (B = 3, G = 2, Tc = [2, -1]), and its formula for the other direction."""
    link = DHLink(
        0, 0, 2, mass=1, inertia=(1, 1, 1), gear_ratio=2, motor_viscous_friction=3, motor_coulomb_friction=(2, -1)
    )
    arm = from_dh([link] * 4).vary(friction_velocity=np.full(4, 1e-9))
    np.testing.assert_allclose(arm.passive_forces(ZERO, [1, 2, 3, 4]), [-16, -28, -40, -52], rtol=1e-14)
    np.testing.assert_allclose(arm.passive_forces(ZERO, [-1, -2, -3, -4]), [14, 26, 38, 50], rtol=1e-14)


def test_a_gear_scales_the_parameters_of_the_motor():
    """Inertia and viscous friction scale with the square of the ratio, dry friction with its magnitude."""
    motor = {"rotor_inertia": 2e-4, "motor_viscous_friction": 3e-3, "friction": 0.5}
    links = [
        DHLink(1, 0, 0, mass=1, gear_ratio=-60, motor_coulomb_friction=0.1, **motor),
        DHLink(1, 0, 0, joint="prismatic", mass=1, gear_ratio=200, motor_coulomb_friction=(0.0, -0.3), **motor),
        DHLink(1, 0, 0, mass=1),
    ]
    arm = from_dh(links)
    np.testing.assert_allclose(arm.armature, [2e-4 * 3600, 2e-4 * 40000, 0], rtol=1e-15)
    np.testing.assert_allclose(arm.damping, [0.5 + 3e-3 * 3600, 0.5 + 3e-3 * 40000, 0], rtol=1e-15)
    np.testing.assert_allclose(arm.friction, [6.0, 30.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(arm.friction_asymmetry, [0.0, -30.0, 0.0], rtol=1e-15)


def test_limits_of_a_link_are_stored_but_not_enforced():
    limits = rb.JointLimits(lower=-1, upper=2, velocity=3, effort=4)
    arm = from_dh([DHLink(1, 0, 0, mass=1, limits=limits), DHLink(1, 0, 0, mass=1)])
    np.testing.assert_array_equal(arm.position_limits, [[-1, 2], [-np.inf, np.inf]])
    assert (arm.velocity_limit[0], arm.effort_limit[0]) == (3, 4)
    assert not arm.passive_forces([5.0, 0.0], [0.0, 0.0]).any()


def test_a_tensor_that_violates_the_triangle_inequality_is_accepted_only_on_request():
    links = [DHLink(1, 0, 0, mass=1, inertia=(1, 1, 1)), DHLink(1, 0.3, 0, mass=1, inertia=(1, 1, 2.5))]
    for settings in ({}, {"nonphysical_inertia": "refuse"}):
        with pytest.raises(rb.ModelError, match=r"'link2'.*triangle inequality.*nonphysical_inertia"):
            from_dh(links, **settings)
    with pytest.warns(UserWarning, match=r"\['link2'\]"):
        arm = from_dh(links, nonphysical_inertia="warn")
    np.testing.assert_array_equal(np.linalg.eigvalsh(arm.inertia[1]).round(12), [1, 1, 2.5])


@pytest.mark.parametrize("how", ["warn", "refuse"])
@pytest.mark.parametrize("moments", [(1, 1, -1e-3), (-1, -1, -1), (np.nan, 1, 1)])
def test_a_negative_principal_moment_is_always_refused(how, moments):
    with pytest.raises(rb.ModelError, match=r"'link1': inertia.*(none below zero|finite)"):
        from_dh([DHLink(1, 0, 0, mass=1, inertia=moments)], nonphysical_inertia=how)


def test_link_friction_becomes_a_passive_joint_force():
    link = DHLink(1.0, 0.0, 0.0, mass=1.0, inertia=(0.1, 0.1, 0.1), friction=0.5)
    assert isinstance(link.passive_forces(), rb.PassiveForces)
    assert from_dh([link]).damping.tolist() == [0.5]
