"""`Model.margins`, compared with closed forms and with the eigenvalues of closed loops with other gains."""

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import four_bar
from .mechanisms import random_tree

PLAIN = pytest.mark.plain_python
INERTIA = 1.5


def rod(gravity=0.0, **fields):
    """A thin rod of 1.5 m with I = 1.5 kg m^2 that turns about z."""
    return rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, -gravity, 0)).replace(**fields)


def growth(model, q, **settings):
    """The largest real part of the eigenvalues of a closed loop."""
    return np.linalg.eigvals(model.linearize(q, **settings).A).real.max(-1)


@PLAIN
def test_pd_control_of_a_rod_has_the_margins_of_its_closed_form():
    """L = (kd s + kp) / (I s^2): |L| = 1 at I^2 w^4 = kd^2 w^2 + kp^2, with the phase margin atan(kd w / kp)."""
    kp, kd = np.array([6.0, 0.2]), np.array([2.0, 5.0])
    found = rod().margins([[0.0], [0.3]], cut="link1", drives=[rb.PID("link1", [0.0, 0.3], kp=kp, kd=kd)])
    w = np.sqrt((kd**2 + np.sqrt(kd**4 + 4 * INERTIA**2 * kp**2)) / (2 * INERTIA**2))
    np.testing.assert_allclose(2 * np.pi * found.gain_crossover, w, rtol=1e-12)
    np.testing.assert_allclose(found.phase_margin, np.arctan(kd * w / kp), rtol=1e-12)
    np.testing.assert_allclose(found.delay_margin, np.arctan(kd * w / kp) / w, rtol=1e-12)
    np.testing.assert_array_equal(found.gain_margin, np.inf)
    np.testing.assert_array_equal(found.lower_gain_margin, 0.0)
    assert np.isnan([found.phase_crossover, found.lower_phase_crossover]).all()
    assert found.stable.all()
    assert found.loop.outputs == ("feedback link1",)
    L = found.loop.frequency_response(np.array([0.1, 2.0])).response[:, :, 0, 0]
    s = 2j * np.pi * np.array([0.1, 2.0])
    np.testing.assert_allclose(L, (kd[:, None] * s + kp[:, None]) / (INERTIA * s**2), rtol=1e-12)


@PLAIN
def test_pid_control_of_a_rod_is_conditionally_stable():
    """L is real at w^2 = ki / kd, where its gain is kp kd / (I ki)."""
    kp, ki, kd = 6.0, 2.0, 5.0
    found = rod().margins([0.0], cut="link1", drives=[rb.PID("link1", 0.0, kp=kp, ki=ki, kd=kd)])
    np.testing.assert_allclose(found.lower_gain_margin, INERTIA * ki / (kp * kd), rtol=1e-12)
    np.testing.assert_allclose(2 * np.pi * found.lower_phase_crossover, np.sqrt(ki / kd), rtol=1e-12)
    assert found.gain_margin == np.inf
    w = 2 * np.pi * found.gain_crossover
    L = (kd * 1j * w + kp + ki / (1j * w)) / (-INERTIA * w**2)
    np.testing.assert_allclose(L, -np.exp(1j * found.phase_margin), rtol=1e-12)


@PLAIN
def test_pi_control_of_a_damped_rod_has_an_upper_margin():
    """L = (kp s + ki) / (s (I s^2 + d s + c)) is real at w^2 = ki c / (ki I - kp d), with the gain kp / (I w^2 - c)."""
    model = rod(stiffness=[2.0], damping=[0.3])
    factors = np.array([1.0, 4.0 * (1 - 1e-6), 4.0 * (1 + 1e-6)])
    drives = [rb.PID("link1", 0.0, kp=0.5 * factors, ki=0.2 * factors)]
    found = model.margins(np.zeros((3, 1)), cut="link1", drives=drives)
    np.testing.assert_allclose(found.gain_margin[:2], 4.0 / factors[:2], rtol=1e-10)
    np.testing.assert_allclose(2 * np.pi * found.phase_crossover[:2], np.sqrt(0.4 / 0.15), rtol=1e-10)
    np.testing.assert_array_equal(found.lower_gain_margin[:2], 0.0)
    assert found.stable.tolist() == [True, True, False]
    assert (growth(model, np.zeros((3, 1)), drives=drives) > 0).tolist() == [False, False, True]
    assert found.phase_margin[1] < 1e-5 < found.phase_margin[0]


@PLAIN
def test_a_rod_that_stands_upright_has_its_lower_margin_at_rest():
    """L(0) = - kp / (m g l / 2); without kd, a motion does not decay, so the margins of the gain are 1."""
    drives = [rb.PID("link1", np.pi / 2, kp=60.0, kd=3.0)]
    found = rod(10.0).margins([np.pi / 2], cut="link1", drives=drives)
    np.testing.assert_allclose(found.lower_gain_margin, 15.0 / 60.0, rtol=1e-12)
    assert (found.lower_phase_crossover, found.gain_margin) == (0.0, np.inf)
    undamped = rod().margins([0.0], cut="link1", drives=[rb.PID("link1", 0.0, kp=6.0)])
    np.testing.assert_allclose(undamped.phase_margin, 0.0, atol=1e-12)
    np.testing.assert_allclose(undamped.delay_margin, 0.0, atol=1e-12)
    np.testing.assert_allclose([undamped.gain_margin, undamped.lower_gain_margin], 1.0, rtol=1e-9)
    falls = rod(10.0).margins([np.pi / 2], cut="link1", drives=[rb.PID("link1", np.pi / 2, kp=10.0, kd=3.0)])
    assert bool(falls.success)
    assert not falls.stable
    assert np.isnan([falls.gain_margin, falls.phase_margin, falls.delay_margin]).all()


def flexible_arm(factor=1.0, samples=1):
    """The first joint of three carries the others on springs, and holds them against gravity with an integral."""
    model = rb.Model.serial_chain(3, length=0.5, mass=1.0, gravity=(0, -2, 0))
    model = model.replace(stiffness=[0, 40.0, 30.0], damping=[0.1, 0.01, 0.02])
    rng = np.random.default_rng(0)
    model = model.vary({"link3.mass": 1.0 + 0.5 * rng.random(samples)})
    own = rb.PID("link1", 0.2, kp=30.0 * factor, ki=4.0 * factor, kd=8.0 * factor)
    return model, [own, rb.PID("link3", 0.1, kp=5.0, kd=0.5, ki=1.0)]


@pytest.mark.slow
@PLAIN
def test_other_gains_of_the_loop_change_the_stability_at_the_margins():
    """The mechanism is at rest under the integrals of both controllers, of which one loop remains closed."""
    samples = 3
    model, drives = flexible_arm(samples=samples)
    at_rest = model.equilibrium(np.tile([0.2, 0.0, 0.1], (samples, 1)), drives=drives)
    assert at_rest.success.all()
    found = model.margins(at_rest.q, cut="link1", drives=drives, integrals=at_rest.integrals)
    assert found.stable.all()
    assert (found.lower_gain_margin > 0.0).all()
    for i in range(samples):
        for margin in (found.gain_margin[i], found.lower_gain_margin[i]):
            if not np.isfinite(margin):
                continue
            grown = []
            for factor in (margin * (1 - 1e-5), margin * (1 + 1e-5)):
                varied, others = flexible_arm(factor, samples)
                sums = at_rest.integrals[i] / [factor, 1.0]
                force = -drives[0].kp * (factor - 1) * (0.2 - at_rest.q[i, 0])
                settings = {"drives": others, "integrals": sums, "tau": [force, 0, 0]}
                grown.append(growth(varied[i], at_rest.q[i], **settings))
            assert grown[0] * grown[1] < 0, (margin, grown)
        # with the delay margin as the delay, 1 + L exp(- i w T) = 0 at a frequency
        f = np.geomspace(0.01, 50.0, 20001)
        L = found.loop[i].frequency_response(f).response[:, 0, 0]
        delayed = L * np.exp(-2j * np.pi * f * found.delay_margin[i])
        assert abs(1 + delayed).min() < 1e-2
        assert abs(1 + L).min() > 1e-2
        inside = np.sign(abs(L[:-1]) - 1) != np.sign(abs(L[1:]) - 1)
        angles = abs(np.angle(-L[:-1][inside]))
        np.testing.assert_allclose(found.phase_margin[i], angles.min(), atol=1e-2)
    np.testing.assert_allclose(found[1].phase_margin, found.phase_margin[1])
    np.testing.assert_allclose(found[1].loop.A, found.loop.A[1])


@PLAIN
def test_the_loop_of_partial_computed_torque_closes_to_the_linear_model():
    """The eigenvalues of A - B k are those of `linearize`; the computed torque knows the force of the cut joint."""
    model = random_tree(7, [-1, 0, 1]).replace(stiffness=[2.0, 0.0, 1.0], damping=[0.1, 0.2, 0.3])
    first, second, _ = model.joint_names
    drives = [rb.ComputedTorque(first, 0.2, kp=4.0, kd=0.5), rb.PID(second, 0.3, kp=3.0, kd=0.2)]
    q, qd = (x[0] for x in model.random_state(1, 5))
    closed = model.linearize(q, 0.0 * qd, drives=drives)
    for cut, dof in ((first, 0), (second, 1)):
        loop = model.margins(q, 0.0 * qd, cut=cut, drives=drives).loop
        scale = abs(closed.A).max()
        np.testing.assert_allclose(loop.A - loop.B @ loop.C, closed.A, rtol=1e-10, atol=1e-10 * scale)
        np.testing.assert_allclose(loop.B[:, 0], closed.B[:, dof], rtol=1e-12, atol=1e-14)
        assert (loop.inputs, loop.outputs) == ((f"tau {cut}",), (f"feedback {cut}",))
    # the loop of the PID, whose own force is all that it adds
    np.testing.assert_allclose(loop.C[0], [0, 3.0, 0, 0, 0.2, 0], atol=1e-11)


MASS, PERIOD = 2.0, 0.1


def slide():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(MASS))
    return builder.build()


@PLAIN
@pytest.mark.parametrize("delay", [0, 1, 2])
def test_a_sampled_damper_has_the_margins_of_its_closed_form(delay):
    """With delays of d periods, L = g / (z^d (z - 1)): its phase is -pi at the angle pi / (2 d + 1) of z."""
    gains = np.array([0.1, 0.5, 1.9])
    damper = rb.Sampled(rb.PID("slide", 0.0, kp=0, kd=gains * MASS / PERIOD), period=PERIOD, delay=delay * PERIOD)
    found = slide().margins(np.zeros((3, 1)), cut="slide", drives=[damper])
    angle = np.pi / (2 * delay + 1)
    largest = 2 * np.sin(angle / 2)
    assert found.stable.tolist() == (gains < largest).tolist()
    gains, found = gains[found.stable], found[found.stable]
    np.testing.assert_allclose(found.gain_margin, largest / gains, rtol=1e-12)
    np.testing.assert_allclose(found.phase_crossover, angle / (2 * np.pi * PERIOD), rtol=1e-12)
    at_one = 2 * np.arcsin(gains / 2)
    np.testing.assert_allclose(found.gain_crossover, at_one / (2 * np.pi * PERIOD), rtol=1e-9)
    np.testing.assert_allclose(found.phase_margin, np.pi / 2 - (delay + 0.5) * at_one, rtol=1e-9)
    assert np.isnan(found.delay_margin).all()
    assert (found.lower_gain_margin == 0.0).all()
    z = np.exp(2j * np.pi * 0.7 * PERIOD)
    response = found.loop.frequency_response(np.array([0.7])).response[:, 0, 0, 0]
    np.testing.assert_allclose(response, gains / (z**delay * (z - 1)), rtol=1e-12)


@PLAIN
def test_other_gains_of_a_sampled_loop_change_the_stability_at_the_margins():
    """The state is at rest at the references, so the gains do not change it. The loops of the others remain closed."""
    model = random_tree(7, [-1, 0, 1]).replace(gravity=(0, 0, 0), stiffness=[0.0, 0.3, 0.0], damping=[0.1, 0.0, 0.2])
    q = model.random_state(1, 5)[0][0]
    cut = model.joint_names[1]

    def drives(factor, **clock):
        gains = zip(model.joint_names, q, [8.0, 6.0 * factor, 3.0], strict=True)
        pids = [rb.PID(name, angle, kp=kp, ki=kp / 3, kd=kp / 5) for name, angle, kp in gains]
        return [rb.Sampled(pid, **clock) for pid in pids]

    def largest(factor, **clock):
        return abs(np.linalg.eigvals(model.linearize(q, drives=drives(factor, **clock)).A)).max()

    unit = slowest_fast_period(model, q)
    for period, delay in ((0.05, 0.0), (0.05, 0.3), (0.05, 1.7)):
        clock = {"period": period * unit, "delay": delay * period * unit}
        found = model.margins(q, cut=cut, drives=drives(1.0, **clock))
        closed = model.linearize(q, drives=drives(1.0, **clock))
        np.testing.assert_allclose(found.loop.A - found.loop.B @ found.loop.C, closed.A, rtol=0, atol=1e-12)
        assert bool(found.stable) == (largest(1.0, **clock) <= 1.0)
        assert bool(found.stable)
        assert np.isfinite(found.gain_margin)
        assert largest(found.gain_margin * (1 - 1e-6), **clock) < 1.0 < largest(found.gain_margin * (1 + 1e-6), **clock)
        if found.lower_gain_margin > 0.0:
            lower = found.lower_gain_margin
            assert largest(lower * (1 + 1e-6), **clock) < 1.0 < largest(lower * (1 - 1e-6), **clock)


def slowest_fast_period(model, q):
    """The inverse of the fastest rate of the mechanism under unit stiffness, s."""
    return 1.0 / np.sqrt(np.linalg.eigvalsh(np.linalg.inv(model.mass_matrix(q))).max())


@PLAIN
def test_a_short_period_gives_the_margins_without_sampling():
    """A hold of the period T delays by T / 2: the phase at the crossover w changes by w T / 2."""
    pid = rb.PID("link1", 0.0, kp=6.0, kd=5.0, ki=2.0)
    without = rod().margins([0.0], cut="link1", drives=[pid])
    period = 1e-4
    found = rod().margins([0.0], cut="link1", drives=[rb.Sampled(pid, period=period)])
    w = 2 * np.pi * without.gain_crossover
    np.testing.assert_allclose(found.gain_crossover, without.gain_crossover, rtol=10 * (w * period) ** 2 + 1e-4)
    np.testing.assert_allclose(found.phase_margin, without.phase_margin - w * period / 2, atol=2e-4)
    np.testing.assert_allclose(found.lower_gain_margin, without.lower_gain_margin, rtol=1e-3)
    assert np.isfinite(found.gain_margin)
    assert without.gain_margin == np.inf


def proportional(t, q, qd, parameters, out):
    out[0] -= parameters[0] * q[0] + parameters[1] * qd[0]


def derivatives_of_proportional(t, q, qd, parameters, out):
    out[0, 0, 0] = -parameters[0]
    out[1, 0, 0] = -parameters[1]


@PLAIN
def test_user_forces_have_the_margins_of_the_same_controller():
    own = [rb.UserForces(proportional, parameters=[6.0, 2.0], derivatives=derivatives_of_proportional)]
    model = rod(10.0)
    q = [-np.pi / 2]
    found = model.margins(q, cut="link1", drives=own)
    expected = model.margins(q, cut="link1", drives=[rb.PID("link1", 0.0, kp=6.0, kd=2.0)])
    np.testing.assert_allclose(found.phase_margin, expected.phase_margin, rtol=1e-10)
    np.testing.assert_allclose(found.loop.C, expected.loop.C, rtol=1e-10)


@PLAIN
def test_each_loop_of_a_closed_mechanism_has_the_feedback_of_its_own_controller():
    """A crank and a rocker, both with an integral; k is the derivative of the force by the independent states."""
    model, _, guess = four_bar()
    q = model.assemble(guess)
    first, second = model.joint_names[0], model.joint_names[-1]
    drives = [
        rb.PID(first, float(q[0]), kp=9.0, ki=2.0, kd=3.0),
        rb.PID(second, float(q[-1]) + 0.1, kp=4.0, ki=1.0, kd=2.0),
    ]
    closed = model.linearize(q, drives=drives)
    for cut in (first, second):
        loop = model.margins(q, cut=cut, drives=drives).loop
        np.testing.assert_allclose(loop.A - loop.B @ loop.C, closed.A, rtol=1e-8, atol=1e-9 * abs(closed.A).max())
        i = model.joint_names.index(cut)
        own = drives[cut == second]
        by_q, by_qd = closed.positions[i, 0], closed.velocities[i, 1]
        expected = [own.kp * by_q + own.kd * closed.velocities[i, 0], own.kd * by_qd, 0, 0]
        expected[2 + (cut == second)] = -own.ki
        np.testing.assert_allclose(loop.C[0], expected, rtol=1e-8, atol=1e-8)
    with pytest.raises(rb.ArgumentError, match="margins does not support UserForces on closed loops"):
        own = rb.UserForces(proportional, parameters=[6.0, 2.0], derivatives=derivatives_of_proportional)
        model.margins(q, cut=first, drives=[own])


@PLAIN
def test_samples_that_fail_do_not_change_the_others():
    drives = [rb.PID("link1", 0.0, kp=6.0, kd=2.0)]
    found = rod().margins(np.array([[np.nan], [0.0]], np.float32), cut="link1", drives=drives)
    assert (found.success.tolist(), found.stable.tolist()) == ([False, True], [False, True])
    assert np.isnan(found.phase_margin[0])
    assert np.isnan(found.loop.A[0]).all()
    assert found.phase_margin[1] == rod().margins([0.0], cut="link1", drives=drives).phase_margin
    empty = rod().margins(np.zeros((0, 1)), cut="link1", drives=drives)
    assert (empty.delay_margin.shape, empty.loop.A.shape, len(empty)) == ((0,), (0, 2, 2), 0)


SAMPLED = rb.Sampled(rb.PID("arm", 0.0, kp=1.0), period=1.0)
REFUSED = [
    ({"cut": "elbow"}, "cut: the model has no joint 'elbow'"),
    ({"cut": 3}, "cut is 3; expected the name of a joint"),
    ({"cut": "base"}, "cut: joint 'base' has 6 degrees of freedom, but dof is not given"),
    ({"cut": ("base", 0)}, "no drive commands the joint force of 'base.vx'; expected a PID"),
    ({"cut": "arm", "drives": [rb.PrescribedPosition("arm", 0.0)]}, "cut: a drive prescribes the motion"),
    ({"cut": ("base", 3), "drives": [SAMPLED]}, "cut: no Sampled drive commands the joint force of 'base.wx'"),
    ({"cut": "arm", "drives": [SAMPLED, rb.PID("arm", 0.0, kp=1.0)]}, "commands the cut joint force without sampling"),
    ({"cut": "arm", "drives": [rb.Sampled(rb.PID("arm", 0.0, kp=1.0), period=1.0, resolution=0.1)]}, "margins: .* res"),
]


@PLAIN
@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=range(len(REFUSED)))
def test_wrong_arguments_are_refused_by_name(arguments, message):
    builder = rb.ModelBuilder()
    builder.add_body("base", joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    link = rb.Inertia(1.0, cg=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    builder.add_body("arm", parent="base", joint=rb.Revolute((0, 1, 0)), inertia=link)
    with pytest.raises(rb.ArgumentError, match=message):
        builder.build().margins(**{"drives": [rb.PID("arm", 0.0, kp=1.0)], **arguments})
