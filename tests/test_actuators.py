"""Actuators against closed forms: lags and torque-speed curves, and motors that are built from joints."""

import math

import numpy as np
import pytest
from scipy.linalg import expm

import rbchain as rb
from rbchain.core.control.actuators import decay
from rbchain.errors import ArgumentError, ModelError

from .mechanisms import slide

pytestmark = pytest.mark.plain_python
METHODS = {"rk45": {}, "rosenbrock": {}, "rk4": {"step": 0.01}, "implicit": {"step": 0.01}, "moreau": {"step": 0.01}}
FIRST_ORDER = ("implicit", "moreau")
MASS = 2.0  # of `slide`


def about_z(inertia):
    return rb.Inertia(mass=1.0, inertia=(inertia, inertia, inertia))


def test_a_motor_at_constant_voltage():
    """Speed and current of a DC motor without inductance: w = w0 (1 - exp(-t / T)), T = J R / (k^2 n^2)."""
    k, R, n, J, voltage = 0.05, 0.8, 10.0, 0.3, 6.0
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    passive = rb.PassiveForces(damping=n**2 * k**2 / R)
    builder.add_body("shaft", joint=rb.Revolute((0, 0, 1)), inertia=about_z(J), passive=passive)
    drive = rb.PrescribedForce("shaft", n * k / R * voltage)
    motion = builder.build().simulate([[0.0]], [[0.0]], 2.0, method="rk4", step=0.02, drives=[drive], save_at=5)
    speed = voltage / (n * k) * (1 - np.exp(-motion.t * n**2 * k**2 / (R * J)))
    # rk4 with h / T = 0.02: local errors (h / T)^5 / 120
    np.testing.assert_allclose(motion.qd[0, :, 0], speed, rtol=0, atol=voltage / (n * k) * 1e-9)


def test_series_elasticity():
    """Motor and link oscillate against each other with the frequency sqrt(k (1 / J_motor + 1 / J_link))."""
    motor_inertia, link_inertia, stiffness, twist = 0.4, 0.1, 30.0, 0.05
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("motor", joint=rb.Revolute((0, 0, 1)), inertia=about_z(motor_inertia))
    builder.add_body(
        "link",
        parent="motor",
        joint=rb.Revolute((0, 0, 1)),
        inertia=about_z(link_inertia),
        passive=rb.PassiveForces(stiffness=stiffness),
    )
    w = math.sqrt(stiffness * (1 / motor_inertia + 1 / link_inertia))
    motion = builder.build().simulate([[0.0, twist]], [[0.0, 0.0]], 0.4, method="rk4", step=5e-3, save_at=9)
    # the global error of rk4 is (w h)^5 / 120 in each step
    atol = twist * (w * 5e-3) ** 5 / 120 * 80
    np.testing.assert_allclose(motion.q[0, :, 1], twist * np.cos(w * motion.t), rtol=0, atol=atol)
    # no moment acts from outside: the mean angle stays
    share = link_inertia / (motor_inertia + link_inertia)
    np.testing.assert_allclose(motion.q[0, :, 0] + share * motion.q[0, :, 1], share * twist, rtol=0, atol=1e-15)


def test_backlash():
    """The link crosses its play at constant speed, is in contact for half a period, and comes back as fast."""
    inertia, play, teeth, speed = 0.2, 0.02, 400.0, 0.1
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("motor", joint=rb.Revolute((0, 0, 1)), inertia=about_z(inertia))
    gap = rb.PassiveForces(stop_lower=-play / 2, stop_upper=play / 2, limit_stiffness=teeth)
    builder.add_body("link", parent="motor", joint=rb.Revolute((0, 0, 1)), inertia=about_z(inertia), passive=gap)
    contact = math.pi / math.sqrt(teeth * 2 / inertia)
    duration = play / speed + contact
    motion = builder.build().simulate([[0.0, 0.0]], [[0.0, speed]], duration, rtol=1e-9, atol=1e-12, save_at=2)
    np.testing.assert_allclose(motion.q[0, -1, 1], 0.0, rtol=0, atol=1e-7)
    np.testing.assert_allclose(motion.qd[0, -1, 1], -speed, rtol=1e-6)
    np.testing.assert_allclose(motion.qd[0, -1, 0], speed, rtol=1e-6)  # equal inertias exchange their speeds


# --- first-order lags -------------------------------------------------------------------------------------------------


def constant_force(t, q, qd, parameters, out):
    out[0] = parameters[0]


def test_the_exponential_function():
    for x in [0.0, 1e-9, 0.1, 0.3466, 0.35, 0.69, 1.0, 3.0, 10.0, 30.0, 43.9, -1e-6, -0.5]:
        assert abs(decay(x) * math.exp(x) - 1.0) < 1e-14
    assert decay(0.0) == 1.0
    assert 0.0 <= decay(1e9) < 1e-19


@pytest.mark.parametrize("method", METHODS)
def test_the_step_response_of_a_lag(method):
    """The torque follows a step from zero to u at 0.05 s by u (1 - exp(-t / T)), and it moves a mass."""
    T, u = 0.2, 3.0
    drives = [
        rb.Sampled(rb.UserForces(constant_force, parameters=[u]), period=0.1, phase=0.05),
        rb.Actuator("slide", time_constant=T),
    ]
    settings = {"method": method, "save_at": 41, **METHODS[method]}
    motion = slide(MASS).simulate([[0.0]], [[0.0]], 1.0, drives=drives, **settings)
    t = np.maximum(motion.t - 0.05, 0.0)
    np.testing.assert_allclose(motion.tau[0, :, 0], u * (1 - np.exp(-t / T)), rtol=0, atol=1e-14)
    speed = u / MASS * (t - T * (1 - np.exp(-t / T)))
    step = METHODS[method].get("step", 0.0)
    # the methods of first order have an error of at most h / 2 times the change of the acceleration
    atol = step / 2 * u / MASS if method in FIRST_ORDER else 1e-8
    np.testing.assert_allclose(motion.qd[0, :, 0], speed, rtol=0, atol=atol)


@pytest.mark.fast_cases("rk45")
@pytest.mark.parametrize("method", ["rk45", "rosenbrock", "rk4"])
def test_a_sampled_pd_controller_with_a_lag_is_the_discrete_time_system(method):
    """Samples with different time constants, one of them without a lag, and a limit that some commands exceed."""
    period, constants, limit, count = 0.05, [0.0, 0.01, 0.03, 0.2], 4.0, 12
    drives = [
        rb.Sampled(rb.PID("slide", 0.3, kp=20.0, kd=8.0, limit=limit), period=period),
        rb.Actuator("slide", time_constant=constants),
    ]
    settings = {"method": method, "save_at": count + 1, **({"step": 2e-3} if method == "rk4" else {})}
    motion = slide(MASS).simulate([[0.1]] * 4, [[0.2]] * 4, count * period, drives=drives, **settings)
    for sample, T in enumerate(constants):
        A = np.zeros((4, 4))  # position, velocity, torque, command
        A[0, 1], A[1, 2 if T else 3] = 1.0, 1.0 / MASS
        A[2, 2:] = [-1.0 / T, 1.0 / T] if T else 0.0
        step, x = expm(period * A), np.array([0.1, 0.2, 0.0, 0.0])
        for i in range(count + 1):
            x[3] = np.clip(20.0 * (0.3 - x[0]) - 8.0 * x[1], -limit, limit)
            found = motion.q[sample, i, 0], motion.qd[sample, i, 0], motion.tau[sample, i, 0]
            np.testing.assert_allclose(found, [*x[:2], x[2] if T else x[3]], rtol=0, atol=2e-7)
            x = step @ x


def test_a_lag_of_several_controllers_with_their_own_clocks():
    """The lag acts on the sum of the outputs: it is linear, so that the forces of two lags add up."""
    mass = slide(MASS)
    clocks = ({"period": 0.05, "delay": 0.02}, {"period": 0.03, "phase": 0.01})
    sampled = [
        rb.Sampled(rb.UserForces(constant_force, parameters=[u]), **clock)
        for u, clock in zip((3.0, -1.0), clocks, strict=True)
    ]
    lag = rb.Actuator("slide", time_constant=0.04)

    def torque(*drives):
        return mass.simulate([[0.0]], [[0.0]], 0.3, drives=[*drives, lag], save_at=31).tau

    np.testing.assert_allclose(torque(*sampled), torque(sampled[0]) + torque(sampled[1]), rtol=0, atol=1e-14)


# --- torque-speed curves ----------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("rk4")
@pytest.mark.parametrize("method", METHODS)
def test_acceleration_to_the_no_load_speed(method):
    """With F(v) = F0 (1 - v / v0), an inertia accelerates by v = v0 (1 - exp(-t F0 / (m v0)))."""
    stall, no_load = np.array([5.0, 4.0, np.inf]), np.array([5.0, 8.0, np.inf])
    drives = [rb.PrescribedForce("slide", 6.0), rb.Actuator("slide", stall_torque=stall, no_load_speed=no_load)]
    settings = {"method": method, "save_at": 21, **METHODS[method]}
    motion = slide(MASS).simulate([[0.0]] * 3, [[0.0]] * 3, 2.0, drives=drives, **settings)
    for i in range(2):
        speed = no_load[i] * (1 - np.exp(-motion.t * stall[i] / (MASS * no_load[i])))
        step = METHODS[method].get("step", 0.0)
        atol = step / 2 * stall[i] / MASS if method in FIRST_ORDER else 2e-8
        np.testing.assert_allclose(motion.qd[i, :, 0], speed, rtol=0, atol=atol)
        np.testing.assert_allclose(motion.tau[i, :, 0], stall[i] * (1 - speed / no_load[i]), rtol=0, atol=atol)
    np.testing.assert_allclose(motion.qd[2, :, 0], 3.0 * motion.t, rtol=1e-9, atol=1e-12)


def delivered(speeds, command, **curve):
    """The delivered torque at these speeds."""
    start = np.array(speeds, float)[:, None]
    drives = [rb.PrescribedForce("slide", command), rb.Actuator("slide", **curve)]
    motion = slide(MASS).simulate(np.zeros_like(start), start, 1e-6, method="rk4", step=1e-6, drives=drives, save_at=2)
    return motion.tau[:, 0, 0]


def test_all_quadrants_of_a_curve():
    """Driving and braking, in both directions: torques are between -F(-v) and F(v)."""
    speeds = [-30.0, -15.0, -5.0, 0.0, 5.0, 15.0, 30.0]
    line = {"stall_torque": 4.0, "no_load_speed": 20.0}
    np.testing.assert_allclose(delivered(speeds, 9.0, **line), [4, 4, 4, 4, 3, 1, 0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(delivered(speeds, -9.0, **line), [0, -1, -3, -4, -4, -4, -4], rtol=0, atol=1e-15)
    np.testing.assert_allclose(delivered(speeds, 0.5, **line), [0.5] * 6 + [0.0], rtol=0, atol=1e-15)
    table = np.array([[-20.0, 6.0], [-10.0, 8.0], [10.0, 5.0], [20.0, 0.0]])
    largest = np.interp(speeds, *table.T)
    np.testing.assert_allclose(delivered(speeds, 99.0, torque_speed=table), largest, rtol=1e-15)
    np.testing.assert_allclose(delivered(speeds, -99.0, torque_speed=table), -largest[::-1], rtol=1e-15)
    each = table * np.linspace(0.5, 2.0, 7)[:, None, None]
    found = delivered(speeds, 99.0, torque_speed=each)
    np.testing.assert_allclose(found, [np.interp(v, *own.T) for v, own in zip(speeds, each, strict=True)], rtol=1e-14)


def test_a_motor_at_its_largest_voltage_also_brakes():
    """The line of a DC motor continues beyond the no-load speed: a faster mass slows down to this speed."""
    line = [[-50.0, 7.0], [50.0, -3.0]]  # F0 = 2 at rest, 0 at v = 20
    drives = [rb.PrescribedForce("slide", 100.0), rb.Actuator("slide", torque_speed=line)]
    motion = slide(MASS).simulate([[0.0]], [[30.0]], 10.0, drives=drives, save_at=11)
    np.testing.assert_allclose(motion.qd[0, :, 0], 20 + 10 * np.exp(-motion.t * 0.1 / MASS), rtol=1e-9)


@pytest.mark.parametrize("method", ["rosenbrock", "rk4", "implicit", "moreau"])
def test_a_pid_controller_on_its_curve(method):
    """A PID controller that reaches its curve moves as with rk45, also with methods that use its derivatives."""
    drives = [
        rb.PID("slide", 1.0, kp=400.0, kd=30.0, ki=50.0),
        rb.Actuator("slide", stall_torque=8.0, no_load_speed=1.5),
    ]
    start = [[0.0]], [[0.0]], 1.5
    expected = slide(MASS).simulate(*start, drives=drives, save_at=4)
    assert expected.qd[0, 1, 0] > 0.5
    motion = slide(MASS).simulate(*start, method=method, drives=drives, save_at=4, **METHODS[method])
    # all have errors at the kinks of the force; implicit and moreau are of first order
    atol = {"implicit": 2e-2, "moreau": 2e-2, "rk4": 1e-3}.get(method, 1e-5)
    np.testing.assert_allclose(motion.q, expected.q, rtol=0, atol=atol)


def test_rosenbrock_has_exact_derivatives_on_a_curve():
    """With wrong derivatives, the order of the method would drop, and it would need many more steps."""
    drives = [rb.PrescribedForce("slide", 9.0), rb.Actuator("slide", stall_torque=8.0, no_load_speed=0.01)]
    motion = slide(MASS).simulate([[0.0]], [[0.0]], 5.0, method="rosenbrock", drives=drives, save_at=2)
    assert motion.steps[0] < 100  # the time constant of the speed is 2.5 ms
    np.testing.assert_allclose(motion.qd[0, -1, 0], 0.01, rtol=1e-8)


@pytest.mark.slow
def test_sensitivities_on_a_curve():
    drives = [
        rb.PID("slide", 1.0, kp=40.0, kd=3.0),
        rb.Actuator("slide", torque_speed=[[-2.0, 9.0], [0.5, 8.0], [1.5, 0.0]]),
    ]

    def motion(mass, speed, **settings):
        return slide(mass).simulate([[0.0]], [[speed]], 0.5, drives=drives, rtol=1e-12, atol=1e-13, **settings)

    found = motion(MASS, 0.2, derivatives=("mass", "qd")).derivatives
    h = 1e-4
    for name, change in (("mass", (h, 0.0)), ("qd", (0.0, h))):
        larger, smaller = (motion(MASS + s * change[0], 0.2 + s * change[1]) for s in (1, -1))
        expected = [(getattr(larger, x)[0, -1, 0] - getattr(smaller, x)[0, -1, 0]) / (2 * h) for x in ("q", "qd")]
        np.testing.assert_allclose(found[name][0, -1, :, 0], expected, rtol=0, atol=1e-7)


def test_a_lag_and_a_curve_together():
    """The curve limits the torque behind the lag."""
    T, u, stall, no_load = 0.1, 10.0, 4.0, 20.0
    drives = [
        rb.Sampled(rb.UserForces(constant_force, parameters=[u]), period=0.1),
        rb.Actuator("slide", time_constant=T, stall_torque=stall, no_load_speed=no_load),
    ]
    motion = slide(MASS).simulate([[0.0]], [[0.0]], 2.0, drives=drives, save_at=41)
    lagged = u * (1 - np.exp(-motion.t / T))
    expected = np.minimum(lagged, stall * (1 - motion.qd[0, :, 0] / no_load))
    assert (lagged < expected + 1e-12).any()
    assert (lagged > expected + 1.0).any()
    np.testing.assert_allclose(motion.tau[0, :, 0], expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(motion.qdd[0, :, 0], expected / MASS, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("drives", "message"),
    [
        (
            lambda: [rb.PID("slide", 1.0, kp=1.0), rb.Actuator("slide", time_constant=0.1)],
            "no drive of this joint is a digital controller",
        ),
        (lambda: [rb.Actuator("slide", time_constant=0.1)], "no drive of this joint is a digital controller"),
        (
            lambda: [
                rb.Sampled(rb.PID("slide", 1.0, kp=1.0)),
                rb.UserForces(constant_force, parameters=[1.0]),
                rb.Actuator("slide", time_constant=0.1),
            ],
            "UserForces adds forces that change between instants",
        ),
        (
            lambda: [rb.PrescribedVelocity("slide", 1.0), rb.Actuator("slide")],
            "a drive prescribes the motion of this joint",
        ),
        (lambda: [rb.Actuator("slide"), rb.Actuator("slide")], "already has an Actuator"),
        (lambda: [rb.Actuator("arm")], "arm"),
        (
            lambda: [rb.Actuator("slide", time_constant=-0.1)],
            "time_constant is -0.1; expected finite numbers of at least 0",
        ),
        (lambda: [rb.Actuator("slide", stall_torque=-1.0)], "expected a torque of at least 0 and a speed above 0"),
        (
            lambda: [rb.Actuator("slide", stall_torque=1.0, no_load_speed=0.0)],
            "expected a torque of at least 0 and a speed",
        ),
        (lambda: [rb.Actuator("slide", no_load_speed=2.0)], "it has a no_load_speed, but no stall_torque"),
        (lambda: [rb.Actuator("slide", stall_torque=1.0, torque_speed=[[0.0, 1.0]])], "use one of the two"),
        (lambda: [rb.Actuator("slide", torque_speed=[1.0, 2.0])], r"torque_speed has shape \(2,\); expected \(m, 2\)"),
        (
            lambda: [rb.Actuator("slide", torque_speed=np.ones((3, 4, 2)))],
            r"torque_speed has shape \(3, 4, 2\); expected \(m, 2\)",
        ),
        (lambda: [rb.Actuator("slide", torque_speed=[[1.0, 2.0], [1.0, 3.0]])], "expected increasing numbers"),
        (lambda: [rb.Actuator("slide", torque_speed=[[1.0, np.nan]])], "expected finite numbers"),
        (
            lambda: [rb.Actuator("slide", torque_speed=[[0.0, 2.0], [2.0, -3.0]])],
            "at the velocity 2, torque_speed allows torques from -2 to -3",
        ),
    ],
)
def test_mistakes_are_named(drives, message):
    with pytest.raises(ArgumentError, match=message):
        slide(MASS).simulate([[0.0]], [[0.0]], 0.1, drives=drives(), save_at=2)


# --- motors behind elastic transmissions ------------------------------------------------------------------------------

INERTIA, ROTOR, RATIO = 0.1, 4e-5, 100.0  # of the link, of the rotor, and the gear ratio


def rod(**passive):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    passive_forces = rb.PassiveForces(**passive)
    builder.add_body("rod", joint=rb.Revolute((0, 0, 1)), inertia=about_z(INERTIA), passive=passive_forces)
    return builder.build()


def with_motor(stiffness=30.0, **numbers):
    return rod().with_motor("rod", stiffness, rotor_inertia=ROTOR, gear_ratio=RATIO, **numbers)


@pytest.mark.slow
def test_the_frequency_of_an_elastic_joint():
    """Motor and link oscillate with the frequency sqrt(k (1 / (n^2 J_rotor) + 1 / J_link)); damping acts likewise."""
    reflected, stiffness, damping, twist = RATIO**2 * ROTOR, 30.0, 0.2, 0.05
    rate = 1 / reflected + 1 / INERTIA
    decay_rate = damping * rate / 2
    w = math.sqrt(stiffness * rate - decay_rate**2)
    model = with_motor(stiffness, damping=damping)
    motion = model.simulate([[0.0, twist]], [[0.0, 0.0]], 0.4, rtol=1e-11, atol=1e-13, save_at=9)
    wave = np.cos(w * motion.t) + decay_rate / w * np.sin(w * motion.t)
    np.testing.assert_allclose(motion.q[0, :, 1], twist * np.exp(-decay_rate * motion.t) * wave, rtol=0, atol=1e-10)
    share = INERTIA / (reflected + INERTIA)
    np.testing.assert_allclose(motion.q[0, :, 0] + share * motion.q[0, :, 1], share * twist, rtol=0, atol=1e-12)


def test_the_motor_moves_freely_inside_the_backlash():
    """The motor accelerates alone up to the end of the play, while the link is at rest."""
    play, torque, reflected = 0.04, 0.5, RATIO**2 * ROTOR
    model = with_motor(400.0, backlash=play)
    until = math.sqrt(play * reflected / torque)  # torque t^2 / (2 J) = play / 2
    drives = [rb.PrescribedForce("rod", torque)]
    motion = model.simulate([[0.0, 0.0]], [[0.0, 0.0]], 1.2 * until, drives=drives, save_at=13)
    motor, link = motion.q[0, :, 0], motion.q[0].sum(-1)
    free = motion.t <= until * (1 + 1e-12)
    np.testing.assert_allclose(motor[free], torque * motion.t[free] ** 2 / (2 * reflected), rtol=0, atol=1e-9)
    np.testing.assert_allclose(link[free], 0.0, rtol=0, atol=1e-9)
    assert (link[~free] > 1e-5).all()
    # the spring begins at the ends of the play
    forces = model.passive_forces([[0.0, x] for x in (-0.03, -0.02, 0.0, 0.02, 0.03)], np.zeros((5, 2)))
    np.testing.assert_allclose(forces[:, 1], [4.0, 0.0, 0.0, 0.0, -4.0], rtol=0, atol=1e-12)


def test_friction_of_the_motor_is_reflected_through_the_gear():
    """Damping is n^2 and dry friction n times larger at the joint. They add to those of the joint."""
    friction, damping, speed = 2e-3, 3e-5, 0.7
    model = rod(friction=0.1, static_friction=0.15, damping=0.2).with_motor(
        "rod", 30.0, rotor_inertia=ROTOR, gear_ratio=RATIO, motor_friction=friction, motor_damping=damping
    )
    np.testing.assert_allclose(model.friction, [0.1 + RATIO * friction, 0.0])
    np.testing.assert_allclose(model.static_friction, [0.15 + RATIO * friction, 0.0])
    np.testing.assert_allclose(model.damping, [0.2 + RATIO**2 * damping, 0.0])
    np.testing.assert_allclose(np.diag(model.mass_matrix([0.0, 0.0])), [RATIO**2 * ROTOR + INERTIA, INERTIA])
    # inside a large play, the motor turns alone: w = w0 exp(-t d / J), whatever the gear ratio is
    alone = with_motor(1.0, backlash=9.0, motor_damping=damping)
    motion = alone.simulate([[0.0, 0.0]], [[speed, -speed]], 2.0, save_at=5)
    np.testing.assert_allclose(motion.qd[0, :, 0], speed * np.exp(-motion.t * damping / ROTOR), rtol=1e-8)
    np.testing.assert_allclose(motion.qd[0].sum(-1), 0.0, rtol=0, atol=1e-9)


def test_friction_opposes_a_motor_with_a_negative_gear_ratio():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    geared = {"rotor_inertia": ROTOR, "gear_ratio": -RATIO}
    builder.add_body("rod", joint=rb.Revolute((0, 0, 1)), inertia=about_z(INERTIA), **geared)
    model = builder.build().with_motor("rod", 30.0, motor_friction=2e-3)
    np.testing.assert_allclose(model.friction, [RATIO * 2e-3, 0.0])


def test_dry_friction_of_the_motor_sticks():
    """Below its friction, the motor stands, and the link oscillates on the spring."""
    model, torque = with_motor(30.0), 0.2
    drives, friction = [rb.PrescribedForce("rod", torque)], rb.DryFriction("rod", 0.5)
    motion = model.simulate([[0.0, 0.01]], [[0.0, 0.0]], 0.3, drives=drives, forces=[friction], save_at=7)
    np.testing.assert_array_equal(motion.q[0, :, 0], 0.0)
    w = math.sqrt(30.0 / INERTIA)
    np.testing.assert_allclose(motion.q[0, :, 1], 0.01 * np.cos(w * motion.t), rtol=0, atol=1e-8)


def test_a_held_transmission_moves_as_armature():
    arm = rb.Model.serial_chain(2)
    rigid = arm.replace(rotor_inertia=[1e-5, 0.0], gear_ratio=[50.0, 1.0])
    elastic = rigid.with_motor("link1", stiffness=1e5)
    assert elastic.joint_names == ("link1", "link1_deflection", "link2")
    assert elastic.body_names == ("link1_motor", "link1", "link2")
    # without a motion of the deflection, the accelerations are those with the reflected inertia of the rotor
    expected = rigid.forward_dynamics([0.1, 0.2], [0.5, -0.3], [0.3, 0.1])
    held = np.array([False, True, False])
    qdd, _ = elastic.hybrid_dynamics([0.1, 0.0, 0.2], [0.5, 0.0, -0.3], [0.3, 0.0, 0.1], np.zeros(3), prescribed=held)
    np.testing.assert_allclose(qdd, [expected[0], 0.0, expected[1]], rtol=1e-12, atol=1e-12)


def test_a_file_keeps_the_motor(tmp_path):
    model = with_motor(30.0, backlash=0.01, damping=0.1, motor_friction=1e-3)
    rb.save(model, tmp_path / "rod.toml")
    loaded = rb.load(tmp_path / "rod.toml")
    assert loaded.joint_names == model.joint_names == ("rod", "rod_deflection")
    q, qd = [0.1, 0.02], [0.3, -0.4]
    np.testing.assert_array_equal(loaded.forward_dynamics(q, qd, [0, 0]), model.forward_dynamics(q, qd, [0, 0]))
    np.testing.assert_array_equal(loaded.passive_forces(q, qd), model.passive_forces(q, qd))


def test_mistakes_with_motors_are_named():
    with pytest.raises(ModelError, match="with_motor: joint 'rod': rotor_inertia is 0 and gear_ratio is 1; expected"):
        rod().with_motor("rod", 30.0)
    with pytest.raises(ModelError, match=r"joint 'rod': backlash is -0\.1; expected one number of at least 0"):
        with_motor(backlash=-0.1)
    with pytest.raises(ModelError, match="with_motor: joint 'rod': stiffness is 0; expected a number above 0"):
        with_motor(0.0)
    with pytest.raises(ModelError, match="with_motor: the model has no joint 'arm'"):
        rod().with_motor("arm", 30.0)
    builder = rb.ModelBuilder()
    builder.add_body("body", joint=rb.Free(), inertia=about_z(1.0))
    with pytest.raises(ModelError, match="is a free joint; expected a revolute or a prismatic joint"):
        builder.build().with_motor("body", 30.0)
    builder = rb.ModelBuilder()
    for name in ("a", "b"):
        builder.add_body(name, joint=rb.Revolute((0, 0, 1)), inertia=about_z(1.0))
    builder.add_constraint(rb.CouplerConstraint("gear", "a", "b", ratio=2.0))
    with pytest.raises(ModelError, match="belongs to CouplerConstraint 'gear'"):
        builder.build().with_motor("b", 30.0)


@pytest.mark.plain_python
def test_a_constant_force_passes_the_lag_of_an_actuator():
    drives = [rb.Sampled(hold, period=0.1), rb.Actuator("slide", time_constant=0.05)]
    without, motion = (slide().simulate([0.0], [0.0], 0.3, drives=drives, tau=tau, save_at=7) for tau in (0.0, 1.5))
    added = 1.5 * (1.0 - np.exp(-motion.t / 0.05))
    np.testing.assert_allclose(motion.tau[:, 0] - without.tau[:, 0], added, rtol=0, atol=1e-12)


def hold(t, q, qd, parameters):
    return np.ones_like(qd)
