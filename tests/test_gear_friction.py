"""Friction that grows with the force of the drives, against closed forms and SciPy."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import rbchain as rb

from .other_process import computed

PLAIN = pytest.mark.plain_python
METHODS = {"rk45": {}, "rosenbrock": {}, "moreau": {"step": 0.01}}
LOCATING = ("rk45", "rosenbrock")
each_method = pytest.mark.parametrize("method", METHODS)
G = 10.0


def block(mass=2.0, gravity=0.0):
    """A block on a rail along z, with gravity along -z."""
    builder = rb.ModelBuilder(gravity=(0, 0, -gravity))
    builder.add_body("block", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=mass))
    return builder.build()


def force(value):
    return rb.PrescribedForce("block", value)


def simulated(model, qd, duration, method, friction, drives, **more):
    qd = np.asarray(qd, float)[..., None]
    return model.simulate(
        0.0 * qd, qd, duration, method=method, forces=[friction], drives=drives, **METHODS[method], **more
    )


# --- dry friction that sticks -----------------------------------------------------------------------------------------


@PLAIN
@each_method
def test_a_constant_force_accelerates_a_block(method):
    """m a = F - kinetic - c F in the direction of F, for samples that differ in all numbers."""
    F, kinetic, c = np.array([3.0, 4.0, -4.0, 2.0]), np.array([1.0, 0.5, 0.5, 0.0]), np.array([0.0, 0.25, 0.25, 0.5])
    friction = rb.DryFriction("block", kinetic, gear_friction=c)
    motion = simulated(block(), np.sign(F), 1.0, method, friction, [force(F)], save_at=2)
    a = np.sign(F) * (np.abs(F) * (1.0 - c) - kinetic) / 2.0
    np.testing.assert_allclose(motion.qd[:, -1, 0], np.sign(F) + a, rtol=1e-12)
    np.testing.assert_allclose(motion.q[:, -1, 0], np.sign(F) + 0.5 * a, rtol=1e-12)
    np.testing.assert_array_equal(motion.tau[..., 0], np.stack([F, F], -1))


@pytest.mark.slow_cases("moreau")
@PLAIN
@each_method
def test_a_block_starts_to_slide_when_the_driven_part_of_a_ramp_exceeds_the_static_friction(method):
    """F = 2 t releases the block at F (1 - c) = static, and accelerates it by F (1 - c) - kinetic."""
    c, kinetic, static = 0.25, 1.0, 2.0
    friction = rb.DryFriction("block", kinetic, static=static, gear_friction=c)
    ramp = force(rb.Signal.polynomial([0.0, 2.0]))
    motion = simulated(block(), [0.0], 3.0, method, friction, [ramp], save_at=[1.0, 3.0], energy_error=True)
    release = static / (2.0 * (1.0 - c))
    # a force exceeds its limit beyond 1e-9 of the largest force, which is here a time of 1.8e-9 s; or within a step
    late = 2e-9 if method in LOCATING else 0.01
    assert abs(motion.sticking[0].end[0, 0] - release) < late
    assert motion.qd[0, 0, 0] == 0.0
    v = ((1.0 - c) * (9.0 - release**2) - kinetic * (3.0 - release)) / 2.0
    slope = (static - kinetic) / 2.0  # dv per time of release
    assert abs(motion.qd[0, -1, 0] - v) < late * slope + 1e-9
    assert motion.energy_error[0, -1] == pytest.approx(0.0, abs=1e-12 if method in LOCATING else 1e-4)


@PLAIN
@each_method
def test_a_gear_is_less_efficient_when_it_lifts(method):
    """Lifting, m a = F (1 - c) - m g; lowering, the friction helps the motor: m a = F (1 + c) - m g."""
    c, mass = 0.2, 2.0
    F = mass * G / (1.0 - c)  # lifts at constant speed, with the efficiency m g / F = 1 - c
    friction = rb.DryFriction("block", 0.0, gear_friction=c)
    lifts = simulated(block(mass, G), [0.5], 1.0, method, friction, [force(F)], save_at=2)
    np.testing.assert_allclose(lifts.qd[0, -1], 0.5, rtol=1e-12)
    lowers = simulated(block(mass, G), [-2.0], 0.25, method, friction, [force(F)], save_at=2)
    np.testing.assert_allclose(lowers.qd[0, -1], -2.0 + 0.25 * (F * (1.0 + c) / mass - G), rtol=1e-12)


@PLAIN
@each_method
def test_a_motor_holds_the_weights_of_a_range(method):
    """Drives with the force F hold m g between (1 - c) F and (1 + c) F; beyond, the block accelerates."""
    c, weight = 0.25, 20.0
    shares = np.array([0.999, 1.001, 0.999, 1.001])  # of the limits of the range
    F = shares * weight / np.array([1.0 + c, 1.0 + c, 1.0 - c, 1.0 - c])
    friction = rb.DryFriction("block", 0.0, gear_friction=c)
    motion = simulated(block(2.0, G), np.zeros(4), 0.5, method, friction, [force(F)], save_at=2)
    a = np.array([F[0] * (1.0 + c) - weight, 0.0, 0.0, F[3] * (1.0 - c) - weight]) / 2.0
    # 1e-10 of the method moreau, whose joints stick up to its tolerance
    np.testing.assert_allclose(motion.qd[:, -1, 0], 0.5 * a, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(motion.qd[1:3, -1, 0], 0.0)


@PLAIN
@each_method
def test_drives_cannot_move_a_joint_whose_friction_grows_as_much_as_their_force(method):
    """With c = 1, no force of a drive moves the block, and a force from outside does."""
    friction = rb.DryFriction("block", 0.5, gear_friction=1.0)
    stuck = simulated(block(), [0.0, 0.0], 1.0, method, friction, [force([3.0, -1e6])], save_at=2)
    np.testing.assert_array_equal(stuck.qd[:, -1], 0.0)
    push = rb.Wrench("block", force=(0, 0, 2.5))
    settings = METHODS[method] | {"forces": [friction, push], "method": method, "save_at": 2}
    pushed = block().simulate([[0.0]], [[0.0]], 1.0, **settings)
    np.testing.assert_allclose(pushed.qd[0, -1], (2.5 - 0.5) / 2.0, rtol=1e-12)
    # sliding, a drive brakes on both sides, as 0.5 N does without it
    slides = simulated(block(), [2.0], 1.0, method, friction, [force(7.0)], save_at=2)
    np.testing.assert_allclose(slides.qd[0, -1], 2.0 - 0.5 / 2.0, rtol=1e-12)


@PLAIN
@each_method
def test_a_servo_stops_beyond_its_reference(method):
    """Before the reference, the stiffness is (1 - c) kp, and behind it (1 + c) kp, until the block sticks."""
    m, kp, c, kinetic, static = 2.0, 8.0, 0.2, 0.3, 6.0
    friction = rb.DryFriction("block", kinetic, static=static, gear_friction=c)
    servo = rb.PID("block", 1.0, kp=kp)
    motion = simulated(block(m), [0.5], 2.0, method, friction, [servo], save_at=2, energy_error=True)
    energy = 0.5 * m * 0.5**2 + 0.5 * (1.0 - c) * kp - kinetic  # at the reference
    stiffness = (1.0 + c) * kp
    beyond = (np.sqrt(kinetic**2 + 2.0 * stiffness * energy) - kinetic) / stiffness
    assert (1.0 - c) * kp * beyond < static
    # rk45 and rosenbrock have a relative tolerance of 1e-8; the steps of moreau have errors of order h
    np.testing.assert_allclose(motion.q[0, -1, 0], 1.0 + beyond, rtol=1e-7 if method in LOCATING else 0.02)
    assert motion.qd[0, -1, 0] == 0.0 and motion.sticking[0].count == 1
    assert abs(motion.energy_error[0, -1]) < (1e-6 if method in LOCATING else 0.25)  # first order, too


@pytest.mark.slow_cases("rosenbrock")
@PLAIN
@pytest.mark.parametrize("method", LOCATING)
def test_an_arm_with_gears_agrees_with_scipy(method):
    """Gravity compensation, a user's `tau` and the limit of an actuator count. All joints move forward."""
    arm = rb.Model.serial_chain(2, length=0.5, mass=1.0, gravity=(0, -G, 0))
    c, kinetic, tau, limit = np.array([0.3, 0.1]), np.array([0.2, 0.1]), np.array([0.5, 0.0]), 12.0
    target, kp = np.array([1.0, 0.8]), np.array([4.0, 3.0])
    drives = [
        rb.PID(name, r, kp=k, gravity_compensation=True) for name, r, k in zip(arm.joint_names, target, kp, strict=True)
    ]
    drives.append(rb.Actuator("link1", stall_torque=limit))
    forces = [rb.DryFriction(name, f, gear_friction=x) for name, f, x in zip(arm.joint_names, kinetic, c, strict=True)]

    def rate(t, y):
        q, qd = y[:2], y[2:]
        f = tau + kp * (target - q) + arm.gravity_forces(q)
        f[0] = np.clip(f[0], -limit, limit)
        return np.concatenate([qd, arm.forward_dynamics(q, qd, f - kinetic - c * np.abs(f))])

    start, duration = np.array([0.1, 0.2, 2.0, 2.0]), 0.2
    expected = solve_ivp(rate, (0.0, duration), start, method="DOP853", rtol=1e-11, atol=1e-12)
    assert (expected.y[2:] > 0.0).all()  # the joints do not turn back
    motion = arm.simulate(
        start[:2], start[2:], duration, method=method, tau=tau, drives=drives, forces=forces, save_at=2
    )
    found = np.concatenate([motion.q[-1], motion.qd[-1]])
    np.testing.assert_allclose(found, expected.y[:, -1], rtol=0, atol=1e-6)  # 100 rtol, as the force has a corner


@PLAIN
def test_dry_friction_without_gears_has_no_numbers_of_gears():
    """Kernels contain nothing for gears if the gear friction is zero, so that motions are the same to the last bit."""
    from rbchain.acting.flatten import flatten_actions

    def actions(**more):
        friction = rb.DryFriction("block", 1.0, **more)
        return flatten_actions(block(), (2,), 1.0, np.dtype(float), ([], [friction], []))[0].shared

    assert actions().gear_friction is None
    assert actions(gear_friction=[0.0, 0.0]).gear_friction is None
    assert actions().numbers.shape[1] == actions(gear_friction=0.0).numbers.shape[1]
    assert actions(gear_friction=[0.0, 0.1]).gear_friction.tolist() == [[0], [0]]


@PLAIN
def test_gear_friction_that_is_not_possible_is_refused_by_name():
    for value in (-0.1, 1.1, np.nan):
        with pytest.raises(rb.ArgumentError, match=r"DryFriction of joint 'block': gear_friction is .* from 0 to 1"):
            rb.DryFriction("block", 1.0, gear_friction=value)
    friction = rb.DryFriction("block", 1.0, gear_friction=[0.1, 0.2, 0.3])
    with pytest.raises(rb.ArgumentError, match=r"gear_friction has shape \(3,\)"):
        simulated(block(), [1.0, 1.0], 0.1, "rk45", friction, [], save_at=2)


@PLAIN
def test_samples_and_files_and_studies(tmp_path):
    """A sample moves alone as in the batch, a saved motion keeps the number, and a study varies it."""
    c = np.array([0.1, 0.3])
    friction = rb.DryFriction("block", 0.5, gear_friction=c, name="gear")
    motion = simulated(block(), [1.0, 1.0], 0.5, "moreau", friction, [force(3.0)], save_at=3)
    alone = motion[1].forces[0]
    assert alone.gear_friction == 0.3
    again = simulated(block(), [1.0], 0.5, "moreau", alone, [force(3.0)], save_at=3)
    np.testing.assert_array_equal(again.q[0], motion.q[1])
    motion.save(tmp_path / "motion.npz")
    np.testing.assert_array_equal(rb.load_motion(tmp_path / "motion.npz").forces[0].gear_friction, c)
    none = simulated(block(), np.zeros(0), 0.5, "moreau", rb.DryFriction("block", 0.5, gear_friction=c[:0]), [])
    assert none.q.shape[0] == 0
    results = rb.Study(
        block(),
        samples=3,
        seed=1,
        simulate=rb.Simulation(0.5, method="moreau", step=0.01),
        drives=[force(3.0)],
        forces=[friction.of_sample(0, (2,))],
        vary={"gear.gear_friction": rb.Uniform(0.0, 0.5)},
    ).run()
    a = (3.0 * (1.0 - results.parameters.values[:, 0]) - 0.5) / 2.0
    np.testing.assert_allclose(results.qd_final.values[:, 0], 0.5 * a, rtol=1e-12)


@PLAIN
def test_float32():
    friction = rb.DryFriction("block", np.float32(0.5), gear_friction=0.25)
    state = np.zeros((1, 1), np.float32)
    motion = block().simulate(
        state, state + 1, 1.0, method="moreau", step=0.01, forces=[friction], drives=[force(4.0)], save_at=2
    )
    assert motion.qd.dtype == np.float32
    np.testing.assert_allclose(motion.qd[0, -1], 2.25, rtol=1e-5)


# --- actuators, whose friction is regularized -------------------------------------------------------------------------


SMOOTH = {
    **{"rk45": {}, "dop853": {}, "rosenbrock": {}, "radau": {}, "rk4": {"step": 4e-3}},
    **{"implicit": {"step": 4e-3}, "moreau": {"step": 4e-3}},
}


def servo(c=0.3, limit=12.0, v0=0.2):
    """A rod under gravity, whose servo accelerates, brakes and is at its torque-speed curve for a while."""
    rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -G, 0))
    motor = rb.Actuator("link1", stall_torque=limit, no_load_speed=9.0, gear_friction=c, gear_friction_velocity=v0)
    return rod, [rb.PID("link1", 0.8, kp=40.0, kd=1.0), motor]


def delivered(q, qd, c=0.3, limit=12.0, v0=0.2):
    """The delivered torque of `servo`, written again."""
    upper = limit * (1.0 - np.clip(qd / 9.0, 0.0, 1.0))
    lower = -limit * (1.0 - np.clip(-qd / 9.0, 0.0, 1.0))
    f = np.clip(40.0 * (0.8 - q) - qd, lower, upper)
    return f - c * np.abs(f) * qd / np.sqrt(qd**2 + v0**2)


@pytest.mark.fast_cases("dop853", "radau", "rk45")
@PLAIN
@pytest.mark.parametrize("method", SMOOTH)
def test_a_servo_with_a_gear_agrees_with_scipy(method):
    rod, drives = servo()

    def rate(t, y):
        return [y[1], rod.forward_dynamics(y[:1], y[1:], delivered(y[:1], y[1:]))[0]]

    duration = 0.4
    expected = solve_ivp(rate, (0.0, duration), [-0.5, 0.0], method="DOP853", rtol=1e-10, atol=1e-12, max_step=0.02)
    motion = rod.simulate(
        [-0.5], duration=duration, method=method, drives=drives, save_at=3, energy_error=True, **SMOOTH[method]
    )
    # corners of the curve, in which the tolerances of 1e-8 do not hold for a step; errors of first order
    atol = {"rk4": 1e-4, "implicit": 0.1, "moreau": 0.1}.get(method, 1e-6)
    np.testing.assert_allclose([motion.q[-1, 0], motion.qd[-1, 0]], expected.y[:, -1], rtol=0, atol=atol)
    np.testing.assert_allclose(motion.tau, delivered(motion.q, motion.qd), rtol=1e-12, atol=1e-12)
    assert abs(motion.energy_error[-1]) < {"rk4": 1e-3, "implicit": 0.2, "moreau": 0.2}.get(method, 1e-5)


def difference(function, step=1e-3):
    """The derivative at 0, by central differences of eighth order."""
    weights = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
    return sum(w * (function(k * step) - function(-k * step)) for k, w in weights) / step


@PLAIN
@pytest.mark.parametrize("state", [(0.6, 0.3), (0.9, -0.4), (-0.5, 2.0)], ids=["forward", "backward", "on the curve"])
def test_linear_models_of_a_gear_are_exact(state):
    rod, drives = servo()
    q, qd = (np.array([x]) for x in state)

    def acceleration(dq=0.0, dqd=0.0, force=0.0):
        return rod.accelerations(q + dq, qd + dqd, tau=force, drives=drives)[0]

    found = rod.linearize(q, qd, inputs=["link1"], drives=drives)
    expected = [difference(lambda x: acceleration(x)), difference(lambda x: acceleration(dqd=x))]
    np.testing.assert_allclose(found.A[1], expected, rtol=1e-8)
    np.testing.assert_allclose(found.B[1, 0], difference(lambda x: acceleration(force=x)), rtol=1e-8, atol=1e-12)


@PLAIN
def test_linear_models_of_computed_torque_beside_a_gear_are_exact():
    """The computed torque of one joint depends on the delivered torque of the other joint."""
    arm = rb.Model.serial_chain(2, length=0.5, mass=1.0, gravity=(0, -G, 0))
    drives = [
        rb.ComputedTorque("link1", 0.3, kp=4.0, kd=0.5),
        rb.PID("link2", 0.9, kp=30.0, kd=0.2, gravity_compensation=True),
        rb.Actuator("link1", gear_friction=0.2, gear_friction_velocity=0.3),
        rb.Actuator("link2", gear_friction=0.3, gear_friction_velocity=0.1),
    ]
    state = np.array([0.2, 0.4, 0.5, -0.3])

    def accelerations(change):
        y = state + change
        return arm.accelerations(y[:2], y[2:], drives=drives)

    found = arm.linearize(state[:2], state[2:], drives=drives).A[2:]
    expected = np.stack([difference(lambda s, e=e: accelerations(s * e)) for e in np.eye(4)], -1)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.slow
@PLAIN
def test_derivatives_of_motions_by_the_gear_friction():
    """Exact derivatives against differences of motions, for samples that differ."""
    rod, _ = servo()
    c, tight = np.array([0.2, 0.4]), {"duration": 0.2, "rtol": 1e-10, "atol": 1e-12, "save_at": 2}

    def motion(change=0.0, **more):
        return rod.simulate([[-0.5], [-0.5]], drives=servo(c + change, v0=0.5)[1], **tight, **more)

    found = motion(derivatives=("gear_friction", "link1.gear_friction")).derivatives
    h = 1e-3
    sides = [np.concatenate([m.q[:, -1], m.qd[:, -1]], -1) for m in (motion(h), motion(-h))]
    # third derivatives times h^2 / 6; the sizes of the derivatives are 0.1 and 1
    np.testing.assert_allclose(
        found["link1.gear_friction"][:, -1], (sides[0] - sides[1]) / (2 * h), rtol=1e-5, atol=1e-7
    )
    np.testing.assert_array_equal(found["gear_friction"][..., 0], found["link1.gear_friction"])


@pytest.mark.slow
@PLAIN
def test_fits_estimate_the_gear_friction():
    """Without noise, the fit returns the gear friction that moved the rod, and never a number above 1."""
    rod, drives = servo(0.25, v0=0.5)
    t, settings = np.linspace(0.0, 0.15, 6), {"starts": 1, "rtol": 1e-6, "atol": 1e-8}
    measured = rod.simulate([-0.5], duration=t[-1], save_at=t, drives=drives, rtol=1e-6, atol=1e-8)
    guess = servo(0.1, v0=0.5)[1]
    fit = rb.fit(rod, measured, ["link1.gear_friction"], drives=guess, **settings)
    assert fit.values["link1.gear_friction"] == pytest.approx(0.25, rel=1e-6)
    assert fit.units["link1.gear_friction"] == "1"
    assert fit.drives[1].gear_friction == fit.values["link1.gear_friction"]
    # a motion that is slower than any gear friction allows
    slow = measured.q[:1] + 0.1 * (measured.q - measured.q[:1])
    limited = rb.fit(rod, (t, slow, None), ["gear_friction"], drives=guess, **settings)
    assert 1.0 - 1e-12 < limited.values["link1.gear_friction"] <= 1.0 and limited.at_bounds == ("link1.gear_friction",)


@PLAIN
def test_a_gear_is_too_stiff_for_explicit_steps():
    """At rest, the slope of the friction, c |f| / v0, exceeds the limit of stability of rk4 with this step."""
    drives = [force(5.0), rb.Actuator("block", gear_friction=1.0, gear_friction_velocity=1e-4)]
    motion = block().simulate([[0.0]], duration=0.5, method="rk4", step=0.01, drives=drives, on_failure="ignore")
    assert motion.status[0] == rb.Status.TOO_STIFF
    drives[1] = rb.Actuator("block", gear_friction=0.5, gear_friction_velocity=0.5)
    assert block().simulate([[0.0]], duration=0.5, method="rk4", step=0.01, drives=drives).status[0] == rb.Status.DONE


@PLAIN
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rb.Actuator("block", gear_friction=-0.1), "gear_friction is -0.1; expected numbers from 0 to 1"),
        (lambda: rb.Actuator("block", gear_friction=1.1), "gear_friction is 1.1; expected numbers from 0 to 1"),
        (lambda: rb.Actuator("block", gear_friction_velocity=0.0), "gear_friction_velocity is 0.0; expected"),
        (
            lambda: simulated(
                block(),
                [1.0],
                0.1,
                "rk45",
                rb.DryFriction("block", 1.0, gear_friction=0.1),
                [force(1.0), rb.Actuator("block", gear_friction=0.1)],
            ),
            "DryFriction of joint 'block': it has a gear_friction, and the Actuator of this joint has one, too",
        ),
        (
            lambda: block().simulate([0.0], duration=0.1, derivatives=("gear_friction",)),
            "no Actuator has a gear_friction",
        ),
        (
            lambda: rb.fit(block(), ([0, 1], [[0.0], [1.0]], None), ["gear_friction"], drives=[rb.Actuator("block")]),
            "all its entries are zero, so they stay fixed; expected an Actuator with a positive gear_friction",
        ),
    ],
)
def test_gears_that_are_not_possible_are_refused_by_name(call, message):
    with pytest.raises(rb.ArgumentError, match=message):
        call()


# --- compiled code ----------------------------------------------------------------------------------------------------


def motor_of_samples(first, last):
    """Samples that start to slide at different times or not at all."""
    samples = slice(first, last)
    friction = rb.DryFriction("block", 0.5, static=1.0, gear_friction=np.array([0.0, 0.3, 0.9])[samples])
    ramp = force(rb.Signal.polynomial([0.0, 2.0]))
    motion = simulated(block(), np.zeros(3)[samples], 2.0, "moreau", friction, [ramp], save_at=5)
    return {"q": motion.q, "qd": motion.qd}


@pytest.mark.slow
def test_lanes_agree_with_plain_python():
    compiled, plain = motor_of_samples(0, 3), computed(motor_of_samples, 0, 3, NUMBA_DISABLE_JIT="1")
    for name in ("q", "qd"):
        np.testing.assert_allclose(compiled[name], plain[name], rtol=1e-12, atol=1e-13, err_msg=name)
    np.testing.assert_array_equal(compiled["q"][1:2], motor_of_samples(1, 2)["q"])


def servos_of_samples(first, last):
    """Servos with gears of different friction, and the derivatives of their motions."""
    c = np.array([0.0, 0.2, 0.6])[first:last]
    rod, drives = servo(c)
    start, names = np.full((c.size, 1), -0.5), ("gear_friction", "kp")
    motion = rod.simulate(start, duration=0.2, drives=drives, save_at=3, derivatives=names)
    return {"q": motion.q, "tau": motion.tau, **motion.derivatives}


@pytest.mark.slow
def test_servos_in_lanes_agree_with_plain_python():
    compiled, plain = servos_of_samples(0, 3), computed(servos_of_samples, 0, 3, NUMBA_DISABLE_JIT="1")
    for name in ("q", "tau", "gear_friction", "kp"):  # steps may differ by round-off
        np.testing.assert_allclose(compiled[name], plain[name], rtol=1e-7, atol=1e-9, err_msg=name)
    np.testing.assert_array_equal(compiled["q"][1:2], servos_of_samples(1, 2)["q"])
