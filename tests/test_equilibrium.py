"""`Model.equilibrium`: positions at rest, compared with closed forms, and by accelerations that vanish."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

import rbchain as rb

from .closed_chains import four_bar

PLAIN = pytest.mark.plain_python
G = 10.0


def rod(**fields):
    return rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, -G, 0)).replace(**fields)


@PLAIN
def test_a_chain_hangs_down_from_any_guess():
    chain = rb.Model.serial_chain(3, length=0.4, mass=0.5, gravity=(0, -G, 0))
    guesses = np.random.default_rng(0).uniform(-3, 3, (4, 3))
    found = chain.equilibrium(guesses)
    assert found.success.all()
    assert found.stable.all()
    directions = np.cumsum(found.q, -1)
    np.testing.assert_allclose(np.cos(directions), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.sin(directions), -1.0, rtol=1e-12)
    assert (found.residual < 1e-11).all()
    np.testing.assert_allclose(chain.accelerations(found.q), 0.0, atol=1e-10)


@PLAIN
def test_an_unstable_equilibrium_is_found_only_from_itself():
    found = rod().equilibrium([[np.pi / 2], [np.pi / 2 + 1e-6]])
    assert (found.success.tolist(), found.stable.tolist()) == ([True, True], [False, True])
    assert found.q[0, 0] == pytest.approx(np.pi / 2, abs=1e-12)
    assert np.sin(found.q[1, 0]) == pytest.approx(-1.0)


@PLAIN
def test_a_controller_with_finite_gain_yields_to_gravity():
    """kp (r - q) = m g l / 2 cos q."""
    drives = [rb.PID("link1", 0.4, kp=60.0, kd=1.0)]
    found = rod().equilibrium([1.0], drives=drives)
    expected = brentq(lambda q: 60.0 * (0.4 - q) - 15.0 * np.cos(q), -1.0, 1.0, xtol=1e-14)
    assert found.q == pytest.approx([expected], abs=1e-12)
    assert (bool(found.success), bool(found.stable), found.tau.tolist()) == (True, True, [0.0])


@pytest.mark.slow
@PLAIN
def test_the_integral_of_a_controller_carries_the_weight():
    drives = [rb.PID("link1", 0.4, kp=60.0, ki=20.0, kd=5.0)]
    found = rod().equilibrium([[1.0], [-2.0]], drives=drives)
    assert found.success.all()
    assert found.stable.all()
    np.testing.assert_allclose(found.q, 0.4, atol=1e-12)
    np.testing.assert_allclose(found.integrals, 15.0 * np.cos(0.4) / 20.0, rtol=1e-12)
    linear = rod().linearize(found.q, drives=drives, integrals=found.integrals)
    np.testing.assert_allclose(linear.acceleration, 0.0, atol=1e-12)
    # more integral gain than I s^3 + kd s^2 + (kp - m g l / 2 sin q) s + ki allows
    unstable = rod().equilibrium([0.3], drives=[rb.PID("link1", 0.4, kp=60.0, ki=500.0, kd=5.0)])
    assert (bool(unstable.success), bool(unstable.stable)) == (True, False)
    # the limit is below the weight
    limited = rod().equilibrium([0.3], drives=[rb.PID("link1", 0.4, kp=60.0, ki=20.0, kd=5.0, limit=3.0)])
    assert not limited.success


@PLAIN
@pytest.mark.parametrize("joints", [["link1", "link2"], ["link2"], ["link1", "link2", "link3"]])
def test_joints_whose_errors_are_integrated_reach_their_references(joints):
    """The other joints hang freely, and no direction is free if all errors are integrated."""
    chain = rb.Model.serial_chain(3, length=0.4, mass=0.5, gravity=(0, -G, 0))
    drives = [rb.PID(name, 0.3 - 0.5 * i, kp=20.0, ki=20.0, kd=2.0) for i, name in enumerate(joints)]
    found = chain.equilibrium([[0.0, 0.0, 0.0], [-2.0, 1.0, 0.5]], drives=drives)
    assert found.success.all()
    driven = [chain.joint_names.index(name) for name in joints]
    np.testing.assert_allclose(found.q[:, driven], [[0.3 - 0.5 * i for i in range(len(joints))]] * 2, atol=1e-11)
    linear = chain.linearize(found.q, drives=drives, integrals=found.integrals)
    np.testing.assert_allclose(linear.acceleration, 0.0, atol=1e-8)


@pytest.mark.slow
@PLAIN
def test_a_buoyant_sphere_stretches_its_tether():
    """k (l - l0) = (rho V - m) g, above the anchor; the sphere may turn about the vertical axis."""
    radius, mass, k, l0 = 0.2, 20.0, 500.0, 1.0
    builder = rb.ModelBuilder(gravity=(0, 0, -G), fluid_density=1000.0)
    sphere = rb.Inertia(mass, inertia=(0.3, 0.3, 0.3))
    builder.add_body("buoy", joint=rb.Free(), inertia=sphere, immersion=rb.Immersion.sphere(radius))
    tether = rb.SpringDamper(
        None, "buoy", point_a=(1, 2, 0), point_b=(0, 0, -radius), stiffness=k, damping=1.0, rest_length=l0
    )
    turn = np.array([0.2, 0.1, 0.3, 0.0])
    turn[3] = np.sqrt(1 - turn @ turn)
    guess = np.array([[1.3, 1.6, 1.0, 0, 0, 0, 1], [0.9, 2.3, 1.5, *turn]])
    model = builder.build()
    found = model.equilibrium(guess, forces=[tether])
    stretch = (4 / 3 * np.pi * radius**3 * 1000.0 - mass) * G / k
    assert found.success.all()
    assert found.stable.all()
    np.testing.assert_allclose(found.q[:, :3], [[1, 2, l0 + stretch + radius]] * 2, atol=1e-9)
    poses = model.frame_poses(found.q, "buoy")
    np.testing.assert_allclose(poses.rotation[:, 2, 2], 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.accelerations(found.q, forces=[tether]), 0.0, atol=1e-9)


@PLAIN
def test_a_bushing_carries_a_body():
    """The bushing is at the cg of the body, so that the displacement is the weight divided by the stiffness."""
    builder = rb.ModelBuilder(gravity=(1.0, 2.0, -G))
    builder.add_body("plate", joint=rb.Free(), inertia=rb.Inertia(3.0, inertia=(0.1, 0.2, 0.3)))
    stiffness = np.array([400.0, 500.0, 600.0, 30.0, 20.0, 40.0])
    bushing = rb.Bushing(None, "plate", stiffness=np.diag(stiffness))
    found = builder.build().equilibrium(forces=[bushing])
    assert bool(found.success)
    assert bool(found.stable)
    np.testing.assert_allclose(found.q[:3], 3.0 * np.array([1.0, 2.0, -G]) / stiffness[:3], rtol=1e-9)


@pytest.mark.slow
@PLAIN
def test_a_four_bar_rests_at_the_minimum_of_its_potential_energy():
    model, _, guess = four_bar()
    found = model.equilibrium(guess)
    assert bool(found.success)
    assert bool(found.stable)
    np.testing.assert_allclose(model.constraint_residual(found.q), 0.0, atol=1e-10)
    np.testing.assert_allclose(model.accelerations(found.q), 0.0, atol=1e-9)

    def height(crank):
        q = model.assemble([crank, *found.q[1:]], fixed=["crank"])
        return model.energy(q, np.zeros(3))[1]

    lowest = minimize_scalar(height, bounds=(found.q[0] - 0.2, found.q[0] + 0.2), method="bounded")
    assert lowest.x == pytest.approx(found.q[0], abs=1e-4)


@PLAIN
def test_joints_that_are_not_free_are_held_by_forces():
    chain = rb.Model.serial_chain(3, length=0.4, mass=0.5, gravity=(0, -G, 0))
    found = chain.equilibrium([0.3, -0.2, 0.5], tau=[0.0, 0.1, 0.0], free=["link2", "link3"])
    assert bool(found.success)
    assert found.q[0] == 0.3
    assert found.tau[1:].tolist() == [0.1, 0.0]
    np.testing.assert_allclose(chain.accelerations(found.q, tau=found.tau), 0.0, atol=1e-9)
    posture = chain.equilibrium([0.3, -0.2, 0.5], free=[])
    assert posture.q.tolist() == [0.3, -0.2, 0.5]
    np.testing.assert_allclose(posture.tau, chain.gravity_forces(posture.q), rtol=1e-12)


@PLAIN
def test_actuated_joints_hold_a_posture():
    chain = rb.Model.serial_chain(3, length=0.4, mass=0.5, gravity=(0, -G, 0))
    posture = [[0.3, -0.2, -0.1 - np.pi / 2], [0.3, -0.2, 0.5]]  # in the first one, the last link hangs
    found = chain.equilibrium(posture, actuated=["link1", "link2"])
    assert found.success.tolist() == [True, False]
    assert found.stable.tolist() == [False, False]
    assert (found.q == posture).all()
    np.testing.assert_allclose(found.tau[0], [*chain.gravity_forces(posture[0])[:2], 0.0], rtol=1e-12)
    np.testing.assert_allclose(chain.accelerations(found.q[0], tau=found.tau[0]), 0.0, atol=1e-9)
    assert found.tau[1, 2] == 0.0
    hanging = chain.equilibrium([-np.pi / 2, 0.0, 0.0], actuated=["link1"])
    assert (bool(hanging.success), bool(hanging.stable)) == (True, True)


@PLAIN
def test_one_actuated_joint_holds_a_four_bar():
    model, _, guess = four_bar()
    q = model.assemble(guess)
    found = model.equilibrium(q, actuated=["crank"])
    expected = model.inverse_dynamics(q, np.zeros(3), np.zeros(3), actuated=["crank"])
    assert bool(found.success)
    np.testing.assert_allclose(found.tau, [*expected, 0.0, 0.0], rtol=1e-9)
    assert (found.q == q).all()


@PLAIN
def test_a_sample_is_found_alone_as_in_a_batch():
    """A step computes only the samples that still move."""
    chain = rb.Model.serial_chain(3, length=0.4, mass=0.5, gravity=(0, -G, 0)).vary({"link1.mass": [0.5, 2.0, 9.0]})
    guesses = np.array([[-1.5, 0.01, 0.0], [1.0, 2.0, -3.0], [0.1, 0.2, 0.3]])
    found = chain.equilibrium(guesses)
    assert found.success.all()
    for sample, guess in enumerate(guesses):
        np.testing.assert_allclose(chain[sample].equilibrium(guess).q, found.q[sample], rtol=0, atol=1e-14)


@PLAIN
def test_the_forces_that_hold_a_closed_chain_have_the_smallest_norm():
    model, _, guess = four_bar()
    found = model.equilibrium(model.assemble(guess), free=[])
    assert bool(found.success)
    np.testing.assert_allclose(model.accelerations(found.q, tau=found.tau), 0.0, atol=1e-9)
    by_crank = model.inverse_dynamics(found.q, np.zeros(3), np.zeros(3), actuated=["crank"])
    assert np.linalg.norm(found.tau) < np.linalg.norm(by_crank)
    # in the direction of the only free motion, which does the same work
    motion = model.linearize(found.q).positions[:, 0]
    np.testing.assert_allclose(np.cross(found.tau, motion), 0.0, atol=1e-9)
    assert found.tau @ motion == pytest.approx(by_crank[0] * motion[0])


@PLAIN
def test_a_joint_may_be_held_by_a_prescribed_position():
    chain = rb.Model.serial_chain(2, length=0.4, mass=0.5, gravity=(0, -G, 0))
    drive = rb.PrescribedPosition("link1", rb.Signal.polynomial([0.3, -0.5, 0.5]))  # at rest at 0.5 s
    found = chain.equilibrium([1.0, -1.0], drives=[drive], t=0.5)
    assert bool(found.success)
    np.testing.assert_allclose(found.q, [0.175, -np.pi / 2 - 0.175], rtol=1e-9)
    with pytest.raises(rb.ArgumentError, match="moves joint 'link1' at time t"):
        chain.equilibrium([1.0, -1.0], drives=[drive], t=0.2)


@PLAIN
def test_samples_without_an_equilibrium_do_not_change_the_others():
    """k q = m g l / 2 has no solution at rest for too large constant torques."""
    found = rod().equilibrium(np.zeros((3, 1)), tau=[[7.5], [16.0], [np.nan]], max_iterations=30)
    assert found.success.tolist() == [True, False, False]
    assert found.stable.tolist() == [True, False, False]
    assert np.cos(found.q[0, 0]) == pytest.approx(0.5)
    builder = rb.ModelBuilder()
    builder.add_body("stone", joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    assert not builder.build().equilibrium(max_iterations=5).success


@pytest.mark.slow
@PLAIN
def test_a_sample_has_the_same_bits_in_each_batch():
    """Sums over several axes may have another order for one sample than for several."""
    chain = rb.Model.serial_chain(8, length=0.5, mass=1.0, gravity=(0, -G, 0))
    guesses = np.random.default_rng(1).normal(0.0, 0.3, (8, 8)) - np.eye(8)[0]
    together = chain.equilibrium(guesses)
    for i in range(8):
        np.testing.assert_array_equal(chain.equilibrium(guesses[i : i + 1]).q[0], together.q[i])


@PLAIN
def test_batches_may_have_any_shape():
    mass = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 6.0]])
    found = rod(stiffness=[50.0]).vary({"link1.mass": mass}).equilibrium()
    assert (found.q.shape, found.tau.shape, found.residual.shape) == ((2, 3, 1), (2, 3, 1), (2, 3))
    np.testing.assert_allclose(50 * found.q[..., 0], -mass * G * 0.75 * np.cos(found.q[..., 0]), rtol=1e-10)
    assert (len(found), found[1, 2].q.shape) == (2, (1,))
    empty = rod().equilibrium(np.zeros((0, 1)))
    assert (empty.q.shape, empty.success.shape, empty.integrals.shape) == ((0, 1), (0,), (0, 0))
    assert rod().equilibrium(np.zeros((2, 1), np.float32)).q.dtype == np.float64


@PLAIN
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"drives": [rb.PrescribedVelocity("link1", 1.0)]}, "PrescribedVelocity, which does not prescribe a position"),
        ({"drives": [rb.Sampled(rb.PID("link1", 0.0, kp=1.0), period=0.1)]}, "equilibrium does not support Sampled"),
        ({"free": "link1"}, "free is 'link1'; expected a list"),
        ({"free": ["elbow"]}, "no joint 'elbow'"),
        ({"actuated": ["elbow"]}, "no joint 'elbow'"),
        ({"actuated": "link1"}, "actuated is 'link1'; expected a list"),
        ({"actuated": ["link1"], "free": []}, "free and actuated are given; use one"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"q_guess": [[0.0, 1.0]]}, "q_guess has shape"),
    ],
    ids=range(9),
)
def test_wrong_arguments_are_refused_by_name(arguments, message):
    with pytest.raises(rb.ArgumentError, match=message):
        rod().equilibrium(**arguments)


@PLAIN
def test_joints_with_prescribed_motions_are_not_actuated():
    """Their joint forces have no effect, so that they cannot hold a posture."""
    chain, held = rb.Model.serial_chain(2, gravity=(0, -G, 0)), [rb.PrescribedPosition("link2", 0.2)]
    with pytest.raises(rb.ArgumentError, match="actuated: a drive prescribes the motion of joint 'link2'"):
        chain.equilibrium([0.1, 0.2], drives=held, actuated=["link1", "link2"])
    assert chain.equilibrium([0.1, 0.2], drives=held, actuated=["link1"]).success


@pytest.mark.slow
def test_lanes_find_the_equilibria_of_different_chains():
    """Lanes search for different samples, each as long as it needs."""
    rng = np.random.default_rng(2)
    chain = rb.Model.serial_chain(7, length=0.4, mass=0.5, gravity=(0, -G, 0))
    many, guesses = chain.vary(mass=rng.uniform(0.1, 2.0, (50, 7))), rng.uniform(-3, 3, (50, 7))
    found = many.equilibrium(guesses)
    assert found.success.all()
    assert found.stable.all()
    np.testing.assert_allclose(np.sin(np.cumsum(found.q, -1)), -1.0, rtol=1e-12)
    for sample in (0, 17, 49):
        np.testing.assert_array_equal(many[sample].equilibrium(guesses[sample]).q, found.q[sample])
