"""A motion that a stepper computes in pieces is the motion in one call of `simulate`, bit for bit with fixed steps."""

import itertools

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import closed_chain, closed_state
from .pairs.actions import DRIVES, FORCES
from .pairs.cases import FIXED_STEPS, Case, documented_refusals
from .pairs.running import Setup
from .test_compiled_stepper import check_compiled_steps
from .test_motions_in_pieces import contacts_of_tree, free_tree, leg

plain = pytest.mark.plain_python
STEP, STEPS = 1e-3, 12  # the times of the steps are rounded
DURATION = STEPS * STEP
MECHANISMS = ("open", "floating", "closed", "geared", "water")
FIXED = pytest.mark.parametrize("method", FIXED_STEPS)


def lengths_of_pieces(seed, steps=STEPS):
    """Numbers of steps of four to six calls."""
    rng = np.random.default_rng(seed)
    cuts = rng.choice(np.arange(1, steps), rng.integers(3, 6), replace=False)
    return np.diff(np.sort([0, *cuts, steps])).tolist()


def moved(model, q, qd, lengths, **settings):
    """A stepper after calls of these numbers of steps."""
    stepper = model.stepper(q, qd, **settings)
    for count in lengths:
        stepper.step(count)
    return stepper


def check_pieces(model, q, qd, seed=0, duration=None, **settings):
    """Compare a motion in random pieces with the motion in one call. Tables and random signals need a duration.

    `simulate` projects the states of closed chains once more onto their constraints, which may change the round-off.
    """
    length = STEPS * settings["step"]
    duration = length if duration is None else duration
    motion = model.simulate(q, qd, duration, save_at=[length], **settings)
    stepper = moved(model, q, qd, lengths_of_pieces(seed), duration=duration, **settings)
    assert motion.success
    assert (stepper.status == rb.Status.DONE).all()
    np.testing.assert_array_equal(stepper.t, length)
    expected, scale = (motion.q[..., 0, :], motion.qd[..., 0, :]), 0.0
    if model.constraint_names:
        one = moved(model, q, qd, [STEPS], duration=duration, **settings)
        expected, scale = (one.q, one.qd), 100.0 * np.finfo(one.q.dtype).eps
    for name, exact in zip(("q", "qd"), expected, strict=True):
        found, of_call = getattr(stepper, name), getattr(motion, name)[..., 0, :]
        np.testing.assert_array_equal(found, exact)
        np.testing.assert_allclose(found, of_call, rtol=0, atol=scale * np.abs(of_call).max())
    return motion


def cases_with_fixed_steps():
    """Cases with each drive and each method. Forces, mechanisms and precisions alternate."""
    forces, mechanisms = itertools.cycle(FORCES), itertools.cycle(MECHANISMS)
    precisions = itertools.cycle(("float64", "float64", "float32"))
    for method, drive in itertools.product(FIXED_STEPS, DRIVES):
        precision = next(precisions)
        while True:
            case = Case(next(mechanisms), drive, next(forces), method, precision, "single state", "ours")
            if not documented_refusals(case):
                break
        yield case


@pytest.mark.slow_cases(
    "closed, ComputedTorque, SpringDamper, rk4, float64, single state, ours",
    "geared, PrescribedVelocity, Bushing, rk4, float64, single state, ours",
)
@plain
@pytest.mark.parametrize("case", list(cases_with_fixed_steps()), ids=str)
def test_every_drive_continues(case):
    setup = Setup(case)
    settings = {name: value for name, value in setup.settings().items() if name != "save_at"}
    check_pieces(setup.model, *setup.state(), seed=len(str(case)), **settings)


def tree(samples=0):
    """A floating tree. One sample is enough for what does not depend on the lanes."""
    model, q, qd = free_tree()
    return model, q[samples], qd[samples]


@plain
@FIXED
def test_quaternions_continue(method):
    model, q, qd = tree()
    drives = [rb.PID("link0", reference=0.2, kp=20.0, kd=1.0, ki=3.0, limit=3.0)]
    check_pieces(model, q, qd, method=method, step=0.01, drives=drives)


@pytest.mark.slow_cases("hung plate")
@plain
@FIXED
@pytest.mark.parametrize("name", ["turned four-bar", "hung plate"])
def test_closed_chains_continue(method, name):
    chain = closed_chain(name)
    q, qd, tau = closed_state(chain)
    check_pieces(chain.model, q, qd, method=method, step=5e-3, tau=tau)


@plain
def test_contacts_stops_and_dry_friction_continue():
    model, q, qd = tree(slice(1))
    motion = check_pieces(model, q, qd, method="moreau", step=2.0**-7, forces=contacts_of_tree())
    assert sum(record.count.sum() for record in motion.impacts) > 0


@plain
def test_a_leg_that_stands_continues():
    model, q, settings = leg(0.05)
    q[0] -= 0.05  # the foot is 11 mm above the floor
    motion = check_pieces(model, q, np.zeros(3), method="moreau", step=2.0**-7, **settings)
    assert np.abs(motion.contact_forces).max() > 1.0


def step_of_reference(t, q, qd, parameters, out):
    out[0] = parameters[0] * (q[2] + 0.1) + 0.05 * t


def count_calls(t, q, qd, parameters, states, out):
    states[0] += 1.0
    out[1] -= parameters[0] * qd[1] + 1e-3 * states[0]


def count_calls_of_batch(t, q, qd, parameters, states):
    states += 1.0
    out = np.zeros_like(qd)
    out[:, 1] = -(parameters[:, 0] * qd[:, 1] + 1e-3 * states[:, 0] + 0.01 * t)
    return out


SAMPLES = 3


def encoder(**fields):
    noise = np.linspace(0.0, 2e-3, SAMPLES)
    return rb.Encoder("link1", resolution=1e-4, bias=1e-3, noise=noise, measures_velocity=True, **fields)


def controllers():
    """Digital controllers with clocks of their own. Their instants are at ends of steps."""
    gains = {"kp": np.linspace(0.2, 0.4, SAMPLES), "kd": 0.04, "ki": 3.0, "limit": 2.0}
    pid = rb.PID("link1", 0.2, **gains)
    user = rb.UserForces(count_calls, parameters=[0.02])
    outer = rb.UserForces(step_of_reference, parameters=[0.5])
    limits = {"rate_limit": 30.0, "resolution": 1e-3}
    return {
        "delay": [rb.Sampled(pid, period=3e-3, delay=7e-3, sensors=[encoder()], **limits)],
        "latency": [
            rb.Sampled(
                rb.ComputedTorque("link2", 0.1, kp=20.0, kd=5.0), period=4e-3, phase=1e-3, latency=2e-3, delay=1e-3
            )
        ],
        "discrete states": [rb.Sampled(user, period=5e-3, states=[2.0])],
        "function in Python": [
            rb.Sampled(rb.UserForces(count_calls_of_batch, parameters=[0.02]), period=5e-3, states=[2.0])
        ],
        "cascade": [
            rb.Sampled(outer, period=6e-3, outputs="position", joints=["link3"], limit=0.08),
            rb.Sampled(rb.PID("link3", "outer", kp=0.05, kd=0.01, ki=0.1), period=2e-3),
        ],
        "cascade with a continuous controller": [
            rb.Sampled(outer, period=6e-3, outputs="position", joints=["link3"]),
            rb.PID("link3", "outer", kp=0.05, kd=0.01),
        ],
        "motor": [
            rb.Sampled(pid, period=3e-3, sensors=[encoder(seed=7)]),
            rb.Actuator("link1", time_constant=np.array([0.0, 2e-3, 9e-3]), stall_torque=0.5, no_load_speed=1.0),
        ],
        "several": [
            rb.Sampled(pid, period=3e-3, delay=1e-3, sensors=[encoder()]),
            rb.Sampled(user, period=7e-3, phase=2e-3, states=[0.0]),
            rb.PID("link3", rb.Signal.sines(0.3, 20.0), kp=0.5, ki=2.0),
            rb.PrescribedForce("link2", rb.Signal.table([0.0, 4.5e-3, 0.02], [0.0, 0.1, -0.2])),
        ],
    }


@plain
@FIXED
@pytest.mark.parametrize("name", controllers())
def test_digital_controllers_continue(method, name):
    start = np.zeros((SAMPLES, 3))
    check_pieces(rb.Model.serial_chain(3), start, start, method=method, step=STEP, drives=controllers()[name])


@plain
def test_digital_controllers_continue_in_float32():
    start, drives = np.zeros((SAMPLES, 3), np.float32), controllers()["several"]
    check_pieces(rb.Model.serial_chain(3), start, start, method="rk4", step=STEP, drives=drives)


@plain
def test_instants_that_differ_from_ends_of_steps_by_round_off_continue():
    """2 * 1.2e-3 differs from 6 * 4e-4. The user's function and the signal depend on the time."""
    model, start = rb.Model.serial_chain(3), np.zeros((SAMPLES, 3))
    function = rb.UserForces(count_calls_of_batch, parameters=[0.02])
    wave = rb.PrescribedForce("link3", rb.Signal.sines(1.0, 3.0))
    drives = [rb.Sampled(function, period=1.2e-3, states=[0.0]), wave]
    for method in FIXED_STEPS:
        check_pieces(model, start, start, method=method, step=4e-4, drives=drives)


RANDOM = {
    "noise": lambda: rb.Signal.noise([0.0, 2.0, 1.0], [0.5, 20.0, 40.0], sines=10),
    "Ornstein-Uhlenbeck": lambda: rb.Signal.ornstein_uhlenbeck(2.0, 0.05, interval=4e-3),
    "random walk": lambda: rb.Signal.random_walk(0.3, 2e-3),
    "sum": lambda: rb.Signal.random_walk(0.3, 2e-3) + rb.Signal.sines(0.3, 50.0),
}


@plain
@pytest.mark.parametrize("kind", RANDOM)
def test_random_signals_continue(kind):
    model, start = rb.Model.serial_chain(2), np.zeros((SAMPLES, 2))
    drives = [rb.PrescribedForce("link1", RANDOM[kind]())]
    forces = [rb.Wrench("link2", force=(RANDOM[kind](), 0.0, 1.0))]
    for method in FIXED_STEPS:
        settings = {"method": method, "step": STEP, "duration": 2 * DURATION}
        motion = check_pieces(model, start, start, drives=drives, forces=forces, **settings)
        assert np.unique(motion.q[:, 0, 0]).size == SAMPLES


@plain
@FIXED
def test_loads_between_bodies_and_over_time_continue(method):
    model, q, qd = tree()
    table = rb.Signal.table([0.0, 3.3e-3, 0.01, 0.05], [0.0, 5.0, -2.0, 1.0], interpolation="linear")
    forces = [
        rb.Wrench("base", force=(table, rb.Signal.sines(2.0, 90.0), 0.0), moment=(0.0, table, 0.1)),
        rb.SpringDamper("link0", "link2", point_a=(0, 0, 0.1), point_b=(0, 0, 0), stiffness=100.0, damping=1.0),
        rb.Bushing("base", "link2", stiffness=np.diag([50.0] * 3 + [2.0] * 3), damping=0.1 * np.eye(6)),
    ]
    check_pieces(model, q, qd, method=method, step=STEP, forces=forces)


@plain
@FIXED
def test_a_stepper_that_starts_at_another_time_moves_as_a_motion_that_starts_there(method):
    model, start, t0 = rb.Model.serial_chain(3), np.zeros((SAMPLES, 3)), 0.7
    settings = {"method": method, "step": STEP, "t0": t0}
    table = rb.Signal.table([0.0, 0.7055, 0.72], [0.0, 5.0, -2.0], interpolation="linear")
    drives = [*controllers()["motor"], rb.PrescribedForce("link2", table)]
    stepper = moved(model, start, start, lengths_of_pieces(3), duration=DURATION, drives=drives, **settings)
    motion = model.simulate(start, start, DURATION, save_at=2, drives=drives, **settings)
    np.testing.assert_array_equal(stepper.t, motion.t[-1])
    np.testing.assert_array_equal(stepper.q, motion.end_q)
    np.testing.assert_array_equal(stepper.qd, motion.end_qd)


@plain
@FIXED
def test_advance_takes_the_steps_of_a_duration(method):
    model, start = rb.Model.serial_chain(2), [[0.3, -0.2]]
    steppers = [model.stepper(start, method=method, step=STEP) for _ in range(2)]
    for count in lengths_of_pieces(1):
        steppers[0].step(count)
        steppers[1].advance(count * STEP)
    np.testing.assert_array_equal(steppers[0].q, steppers[1].q)
    np.testing.assert_array_equal(steppers[0].t, steppers[1].t)


# --- methods with tolerances ------------------------------------------------------------------------------------------

ADAPTIVE = ("rk45", "dop853", "rosenbrock", "radau")
TOLERANCE = {"rtol": 1e-6, "atol": 1e-8}
#: The tolerances bound the error of a step. The motions take ten to thirty steps, and multiply errors by less than 10.
MULTIPLE = 300.0


def check_tolerance(model, q, qd, pieces, **settings):
    """Compare the states after each piece of a motion with the motion at much smaller tolerances."""
    times = np.cumsum(pieces)
    accurate = {"method": "rk45", "rtol": 1e-9, "atol": 1e-11}
    motion = model.simulate(q, qd, times[-1], save_at=times, **(settings | accurate))
    stepper = model.stepper(q, qd, duration=1.1 * times[-1], **TOLERANCE, **settings)
    assert motion.success
    for k, piece in enumerate(pieces):
        stepper.advance(piece)
        for found, expected in ((stepper.q, motion.q[..., k, :]), (stepper.qd, motion.qd[..., k, :])):
            np.testing.assert_allclose(found, expected, rtol=MULTIPLE * 1e-6, atol=MULTIPLE * 1e-8)
    np.testing.assert_allclose(stepper.t, times[-1], rtol=1e-14)
    return stepper


PIECES = [0.013, 0.03, 0.002, 0.021]


@pytest.mark.fast_cases("dop853")
@plain
@pytest.mark.parametrize("method", ADAPTIVE)
def test_integrals_and_signals_continue_within_the_tolerance(method):
    model, start = rb.Model.serial_chain(2), np.array([[0.3, -0.2]])
    table = rb.Signal.table([0.0, 0.04, 0.2], [0.0, 3.0, -1.0], interpolation="linear")
    drives = [rb.PID("link1", 0.5, kp=20.0, kd=1.0, ki=100.0), rb.PrescribedForce("link2", table)]
    forces = [rb.Wrench("link2", force=(rb.Signal.sines(5.0, 40.0), 0.0, 0.0))]
    check_tolerance(model, start, 0.5 * start, PIECES, method=method, drives=drives, forces=forces)


@plain
@pytest.mark.parametrize("method", ["rk45", "rosenbrock"])
def test_digital_controllers_continue_within_the_tolerance(method):
    """Some instants are at the ends of pieces. Without noise, errors of states are not multiplied."""
    pid = rb.PID("link1", 0.5, kp=5.0, kd=0.4, ki=20.0)
    drives = [
        rb.Sampled(pid, period=0.01, delay=0.013),
        rb.Sampled(rb.UserForces(count_calls, parameters=[0.02]), period=7e-3, latency=2e-3, states=[2.0]),
        rb.Actuator("link1", time_constant=0.02),
    ]
    pieces = [0.01, 0.013, 0.007, 0.002, 0.018]
    check_tolerance(rb.Model.serial_chain(2), [[0.3, -0.2]], 0.0, pieces, method=method, drives=drives)


@pytest.mark.slow_cases("rosenbrock")
@plain
@pytest.mark.parametrize("method", ["rk45", "rosenbrock"])
def test_contacts_continue_within_the_tolerance(method):
    """A ball falls, bounces and slides; a block on another slide sticks by friction."""
    builder = rb.ModelBuilder(gravity=(0.5, 0, -9.81))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(0.1))
    builder.add_body("ball", parent="slide", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    builder.add_body("block", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(1.0))
    law = {"friction": 0.2, "restitution": 0.5}
    floor = rb.SphereContact("ball", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), **law)
    forces = [floor, rb.DryFriction("block", kinetic=12.0)]
    pieces = [0.03, 0.05, 0.02, 0.06]
    stepper = check_tolerance(builder.build(), [0.0, 0.12, 0.0], [0.4, 0.0, 0.0], pieces, method=method, forces=forces)
    assert stepper.q[2] == 0.0
    assert 0.1 < stepper.qd[0] < 0.3  # friction has acted


@plain
def test_closed_chains_continue_within_the_tolerance():
    chain = closed_chain("turned four-bar")
    q, qd, _ = closed_state(chain)
    check_tolerance(chain.model, q, qd, PIECES, method="rk45")


# --- compiled code ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compiled_digital_controllers_with_noise_continue():
    """A batch of ten samples fills more than one block of lanes."""
    model, samples = rb.Model.serial_chain(3), 10
    start = np.random.default_rng(0).uniform(-0.1, 0.1, (samples, 3))
    sensor = rb.Encoder("link1", resolution=1e-4, noise=1e-3, measures_velocity=True)
    drives = [
        rb.Sampled(rb.PID("link1", 0.2, kp=0.3, kd=0.04, ki=3.0), period=3e-3, delay=7e-3, sensors=[sensor]),
        rb.Sampled(rb.UserForces(count_calls, parameters=[0.02]), period=5e-3, states=[2.0]),
        rb.Actuator("link1", time_constant=9e-3),
    ]
    motion = check_pieces(model, start, start, method="rk4", step=STEP, drives=drives)
    assert np.unique(motion.q[:, 0, 0]).size == samples
    check_compiled_steps(lambda: model.stepper(start, start, method="rk4", step=STEP, drives=drives))


@pytest.mark.slow
def test_compiled_contacts_continue():
    model, q, qd = free_tree()
    check_pieces(model, q, qd, method="moreau", step=2.0**-7, forces=contacts_of_tree())
