"""Bodies without mass: correct where other bodies resist their motion, else refused."""

import numpy as np
import pytest

import rbchain as rb

from .models import EPS, SERIAL, assert_accelerations_are_right, built, described, pendulum, random_body, rotation_about


def test_a_universal_joint_of_massless_bodies_has_the_correct_accelerations():
    """Two pairs of crossed axes with massless bodies between them, in random states."""
    rng = np.random.default_rng(9)
    bodies = [random_body(rng, kind) for kind in ("revolute", "revolute", "screw", "revolute", "prismatic", "revolute")]
    for i in (0, 2, 4):
        bodies[i].mass, bodies[i].cg, bodies[i].inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    model, reference = built(bodies, SERIAL[:6]), described(bodies, SERIAL[:6])
    assert model.mass.tolist()[::2] == [0.0, 0.0, 0.0]
    for _ in range(3):
        assert_accelerations_are_right(model, reference, *rng.uniform(-1, 1, (3, 6)))


def test_a_body_without_inertia_is_massless():
    builder = pendulum(inertia=None)
    builder.add_body("bob", parent="arm", joint=rb.Revolute(axis=(1, 0, 0)), inertia=rb.Inertia(2.0, cg=(0, 0, -1)))
    assert builder.build().mass.tolist() == [0.0, 2.0]


def test_a_massless_body_with_two_children_has_the_correct_accelerations():
    rng = np.random.default_rng(10)
    bodies = [random_body(rng, "revolute") for _ in range(3)]
    bodies[0].mass, bodies[0].inertia = 0.0, np.zeros((3, 3))
    model, reference = built(bodies, [-1, 0, 0]), described(bodies, [-1, 0, 0])
    assert_accelerations_are_right(model, reference, *rng.uniform(-1, 1, (3, 3)))


@pytest.mark.parametrize("joint", [rb.Revolute((1, 2, 3)), rb.Prismatic((1, 2, 3)), rb.Screw((1, 2, 3), 0.2)])
def test_a_massless_tip_is_singular_and_is_refused(joint):
    builder = pendulum()
    builder.add_body(
        "tip", parent="arm", joint=joint, placement=rb.Pose((0.1, 0.2, 0.3), rotation_about((3, 1, 2), 1.0))
    )
    with pytest.warns(UserWarning, match=r"resists the motion of \['tip'\]"):
        model = builder.build()
    with pytest.raises(rb.ModelError, match=r"resists the motion of \['tip'\]"):
        model.forward_dynamics([0.1, 0.2], [1.0, 2.0], [0.3, 0.4])
    with pytest.raises(rb.ModelError, match=r"resists the motion of \['tip'\]"):
        model.forward_dynamics(*np.full((3, 11, 2), 0.7))


def test_two_massless_coaxial_hinges_are_singular_and_are_refused():
    builder = pendulum(inertia=None)
    builder.add_body(
        "bob", parent="arm", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(2.0, cg=(0.1, 0, -1), inertia=(1, 1, 1))
    )
    with pytest.warns(UserWarning, match=r"resists the motion of \['arm'\]"):
        model = builder.build()
    with pytest.raises(rb.ModelError, match=r"resists the motion of \['arm'\]"):
        model.forward_dynamics([0.0, 0.2], [1.0, 2.0], [0.3, 0.4])


def test_kinematics_and_inverse_dynamics_accept_a_massless_tip():
    builder = pendulum()
    builder.add_body("tip", parent="arm", joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((1, 2, 3)))
    with pytest.warns(UserWarning, match=r"resists the motion of \['tip'\]"):
        with_tip, without = builder.build(), pendulum().build()
    found = with_tip.inverse_dynamics([0.1, 0.2], [1.0, 2.0], [0.3, 0.4])
    np.testing.assert_allclose(found, [*without.inverse_dynamics([0.1], [1.0], [0.3]), 0.0], rtol=10 * EPS)


def test_a_singular_sample_does_not_change_a_bit_of_others():
    chain = rb.Model.serial_chain(3)
    rng = np.random.default_rng(11)
    q, qd, tau = rng.uniform(-1, 1, (3, 20, 3))
    inertia = np.tile(chain.inertia, (20, 1, 1, 1))
    mass = rng.uniform(0.1, 0.2, (20, 3))
    sound = chain.vary(mass=mass, inertia=inertia).forward_dynamics(q, qd, tau)
    mass[5, 2], inertia[5, 2] = 0.0, 0.0
    found = chain.vary(mass=mass, inertia=inertia).forward_dynamics(q, qd, tau)
    assert np.isnan(found[5]).all()
    np.testing.assert_array_equal(np.delete(found, 5, 0), np.delete(sound, 5, 0))
