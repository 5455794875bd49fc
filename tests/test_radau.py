"""The Radau IIA method: its coefficients, linear systems and error estimate, closed forms, and agreement with rk45."""

import mpmath
import numpy as np
import pytest

import rbchain as rb
from rbchain.acting.flatten import flatten_actions
from rbchain.core.lanes.lane_memory import all_lanes
from rbchain.core.linear.complex_systems import factorize_complex_step, solve_complex_system
from rbchain.core.linear.linearized_rate import differentiate_by_state
from rbchain.core.methods.radau import compute_radau_step
from rbchain.core.methods.radau_error import MARGIN
from rbchain.core.methods.radau_tableau import STAGES, radau_tableau
from rbchain.core.sample import control_layout as controls
from rbchain.core.sample.rate import evaluate, set_sample_forces
from rbchain.core.sample.records import Tolerances
from rbchain.drivers.trajectories import block_of_method
from rbchain.drivers.trajectory_memory import trajectory_memory

from .closed_chains import four_bar
from .quantities import random_states
from .test_rosenbrock import driven_tree, pendulum

plain = pytest.mark.plain_python
TABLEAU = radau_tableau(1e-8, 2.2e-16)


# --- coefficients -----------------------------------------------------------------------------------------------------


def exact_nodes():
    """The zeros of P_5 - P_4 on [0, 1], to 50 digits."""
    mpmath.mp.dps = 50
    coefficients = [sum(sign * term for sign, term in ((1, shifted(5, m)), (-1, shifted(4, m)))) for m in range(6)]
    return sorted(mpmath.polyroots(coefficients, maxsteps=200, extraprec=200, asc=True))


def shifted(degree, m):
    """The coefficient of x^m of the Legendre polynomial on [0, 1]."""
    return (-1) ** (degree + m) * mpmath.binomial(degree, m) * mpmath.binomial(degree + m, m)


def test_the_nodes_are_those_of_radau():
    np.testing.assert_allclose(TABLEAU.c[1:-1], [float(c) for c in exact_nodes()], rtol=1e-15, atol=0)


def test_the_stages_integrate_polynomials_of_degree_four_and_the_end_those_of_degree_eight():
    """C(5) and B(9) of Butcher, which make the order 9: Hairer and Wanner (1996), section IV.5."""
    A, c = np.linalg.inv(TABLEAU.inverse), TABLEAU.c[1:-1]
    for power in range(9):
        integrals = A @ c**power
        wanted = c ** (power + 1) / (power + 1)
        np.testing.assert_allclose(integrals[-1], wanted[-1], rtol=0, atol=1e-14)
        if power < STAGES:
            np.testing.assert_allclose(integrals, wanted, rtol=0, atol=1e-14)
    assert abs(A[-1] @ c**9 - 0.1) > 1e-6


def test_the_transformation_makes_blocks():
    blocks = TABLEAU.to_modes @ TABLEAU.inverse @ TABLEAU.from_modes
    wanted = np.zeros((STAGES, STAGES))
    wanted[0, 0] = TABLEAU.eigenvalues[0, 0]
    for pair, (re, im) in enumerate(TABLEAU.eigenvalues[1:]):
        at = slice(1 + 2 * pair, 3 + 2 * pair)
        wanted[at, at] = [[re, -im], [im, re]]
    np.testing.assert_allclose(blocks, wanted, rtol=0, atol=1e-12)


def test_the_embedded_method_has_order_five():
    """With J = 0, h times the estimate is the difference of two quadratures; both are exact up to degree four."""
    c, h = TABLEAU.c[1:-1], 0.7
    A = np.linalg.inv(TABLEAU.inverse)
    for power in range(7):
        z = h ** (power + 1) * A @ c**power
        start = 1.0 if power == 0 else 0.0
        difference = start + TABLEAU.error @ z / h
        if power < STAGES:
            assert abs(difference) < 1e-13
        else:
            assert abs(difference) > 1e-5


def test_the_polynomial_passes_through_the_step():
    z = np.random.default_rng(0).normal(size=STAGES)
    g = TABLEAU.polynomial @ z
    at = lambda x: z[-1] + sum(g[m] * (x - 1.0) ** (m + 1) for m in range(STAGES))  # noqa: E731
    np.testing.assert_allclose([at(c) for c in TABLEAU.c[1:-1]], z, rtol=0, atol=1e-10)
    assert abs(at(0.0)) < 1e-10


def test_the_legendre_coefficients_are_those_of_the_rate():
    legendre = np.polynomial.legendre.Legendre([0.3, -1.0, 2.0, 0.5, -0.7], domain=[0.0, 1.0])
    z = legendre.integ(lbnd=0.0)(TABLEAU.c[1:-1])
    np.testing.assert_allclose(TABLEAU.legendre @ z, legendre.coef[1:], rtol=0, atol=1e-12)


# --- linear systems ---------------------------------------------------------------------------------------------------


def block_with_state(model, y, **actions):
    """The block and the Stepper of a state y (rows,), and its lanes."""
    dtype, flat = np.dtype(np.float64), None
    if actions:
        given = [actions.get(name, []) for name in ("drives", "forces", "events")]
        flat, _ = flatten_actions(model, (1,), 1.0, dtype, given)
    topology, parameters, _ = model.kernel_model.arrays(dtype)
    q = y[None, : model.nq]
    tables = model.kernel_model.constraint_tables
    memory = trajectory_memory(topology, tables, y.size, TABLEAU, flat, (1, dtype))
    block, stepper = block_of_method(memory, 0, topology, tables, parameters, q, flat, (TABLEAU, y.size))
    set_sample_forces(block, np.zeros((1, model.nv)), 0.0, 0, 0)
    stepper.y[:, 0] = y
    return block, stepper, all_lanes(q)


@plain
def test_the_solutions_of_complex_systems_satisfy_them():
    """(a - J) x = r for a complex a, with J by differences of the rate, for all types of joints and an integral."""
    model, actions = driven_tree()
    drives = [rb.PID("tip", 0.3, kp=50.0, kd=5.0, ki=20.0)]
    q, qd = random_states(model, (), seed=5, arrays=2)
    y = np.concatenate([q, qd, [0.2]])
    block, stepper, k = block_with_state(model, y, drives=drives, forces=actions["forces"])
    systems, rng = stepper.linear.systems, np.random.default_rng(2)
    systems.center[:, 0] = y
    evaluate(block, stepper.y, 0.1, stepper.rates[0], k)
    differentiate_by_state(block, systems.linear, systems.center, stepper.rates[0], 0.1, 1e-3, k)
    jacobian, step, rate = np.zeros((y.size, y.size)), 1e-5, np.zeros((y.size, 1))
    for j in range(y.size):
        for sign in (1, -1):
            moved = y.copy()[:, None]
            moved[j] += sign * step
            evaluate(block, moved, 0.1, rate, k)
            jacobian[:, j] += sign * rate[:, 0] / (2 * step)
    for number, a in enumerate((3.7 + 6.5j, 570.0 + 321.0j)):
        right = rng.normal(size=y.size) + 1j * rng.normal(size=y.size)
        parts = np.array([right.real, right.imag])[..., None]
        factorize_complex_step(block, systems, number, (a.real, a.imag), k)
        solve_complex_system(block, systems, number, parts, (a.real, a.imag), k)
        found = parts[0, :, 0] + 1j * parts[1, :, 0]
        matrix = a * np.eye(y.size) - jacobian
        # the quaternions are unit ones, for which the exact derivatives on the tangent space hold
        wanted = np.linalg.solve(matrix, right)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())


# --- the estimate of the error ----------------------------------------------------------------------------------------


def one_step(model, q, qd, h, **actions):
    """The end of a step from the time 0, and the estimate of its error."""
    block, stepper, k = block_with_state(model, np.r_[q, qd], **{"drives": []} | actions)
    stepper.control[controls.H], stepper.control[controls.TIME] = h, 0.0
    evaluate(block, stepper.y, 0.0, stepper.rates[0], k)
    compute_radau_step(block, stepper, radau_tableau(1e-12, 2.2e-16), Tolerances(1e-12, 1e-12, 1), k)
    return stepper.y_new[:, 0].copy(), stepper.change[:, 0].copy()


def slider(**passive):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    inertia, passive = rb.Inertia(1.0), rb.PassiveForces(**passive)
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=inertia, passive=passive)
    return builder.build()


@plain
@pytest.mark.parametrize("phase", np.linspace(0.0, np.pi, 9))
def test_the_estimate_of_a_vibration_is_above_its_error(phase):
    """Steps of 0.3 to 2 rad, and the closed form cos(t + phase).

    The second estimate is MARGIN times the error, for small steps. The first one is the error of y' = i y times
    300 / x^4 (2 x / 6.29)^4 = 3.1 or less.
    """
    for h in (0.3, 0.6, 1.0, 1.5, 2.0):
        found, estimate = one_step(slider(stiffness=1.0), [np.cos(phase)], [-np.sin(phase)], h)
        error = np.linalg.norm(found - [np.cos(phase + h), -np.sin(phase + h)])
        # the error of the step of 0.3 rad is 1e-14, so its round-off is a tenth of it
        assert 0.5 * MARGIN * error < np.linalg.norm(estimate) < 3.0 * MARGIN * error, h


@plain
@pytest.mark.parametrize("stiffness", np.logspace(0, 10, 11))
def test_the_estimate_of_stiff_components_is_near_their_error(stiffness):
    """A damper pulls a body to a target that moves as sin t; x and v are those of the closed form without transient."""
    kp, kd = 0.0, stiffness
    amplitude = 1j * kd / (1j * kd - 1.0)  # of exp(i t)
    drive = rb.PID("slide", rb.Signal.sines(1.0, 1.0), kp=kp, kd=kd)
    for h in (0.3, 0.6):
        start, end = amplitude * np.exp(0.7j), amplitude * np.exp(1j * (0.7 + h))
        shifted = rb.PID("slide", rb.Signal.sines(1.0, 1.0, phase=0.7), kp=kp, kd=kd)
        found, estimate = one_step(slider(), [start.imag], [start.real], h, drives=[shifted])
        error = abs(found[1] - end.real)
        if error > 1e-13:
            assert error < 6.0 * abs(estimate[1]), (h, drive)


@pytest.mark.slow
@plain
@pytest.mark.parametrize(
    ("shape", "tolerance"),
    [
        ("kink", 1e-8),
        ("jump", 1e-6),
        pytest.param("kink", 1e-6, marks=pytest.mark.slow),
        pytest.param("jump", 1e-8, marks=pytest.mark.slow),
    ],
)
def test_kinks_and_jumps_of_a_force_are_detected(shape, tolerance):
    """A force of the user grows or jumps from zero at 12 different times, beside a body that vibrates.

    No error is larger than the largest one of rk45, whose estimate does not depend on the smoothness of the motion.
    """

    def kink(t, q, qd, parameters, out):
        out[1] = max(t - parameters[0], 0.0)

    def jump(t, q, qd, parameters, out):
        out[1] = 1.0 if t >= parameters[0] else 0.0

    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name, passive in (("spring", rb.PassiveForces(stiffness=100.0)), ("slide", None)):
        joint, inertia = rb.Prismatic((1, 0, 0)), rb.Inertia(1.0)
        builder.add_body(name, joint=joint, inertia=inertia, passive=passive or rb.PassiveForces())
    model, errors = builder.build(), {"radau": 0.0, "rk45": 0.0}
    for time in np.linspace(0.01, 0.99, 12):
        force = rb.UserForces({"kink": kink, "jump": jump}[shape], parameters=[time])
        rest = 1.0 - time
        wanted = np.array([rest**3 / 6.0, rest**2 / 2.0] if shape == "kink" else [rest**2 / 2.0, rest])
        settings = {"rtol": tolerance, "atol": tolerance, "drives": [force]}
        for method, largest in errors.items():
            motion = model.simulate([0.1, 0.0], [0.0, 0.0], 1.0, method=method, save_at=2, **settings)
            found = np.array([motion.q[-1, 1], motion.qd[-1, 1]])
            errors[method] = max(largest, np.linalg.norm(found - wanted))
    assert errors["radau"] <= errors["rk45"]


@plain
@pytest.mark.parametrize("method", ["rosenbrock", "radau"])
@pytest.mark.parametrize("stiffness", [1e8, pytest.param(1e10, marks=pytest.mark.slow), 1e12])
@pytest.mark.parametrize("tolerance", [1e-4, pytest.param(1e-6, marks=pytest.mark.slow), 1e-8])
def test_a_body_leaves_a_stiff_stop(method, stiffness, tolerance):
    """The force t - 1 holds the body at an elastic stop for a second. Nothing else limits the steps; q(4) = 27 / 6."""
    force = rb.PrescribedForce("slide", rb.Signal.table([0.0, 10.0], [-1.0, 9.0], interpolation="linear"))
    model = slider(stop_lower=0.0, limit_stiffness=stiffness, limit_damping=1.0)
    settings = {"method": method, "rtol": tolerance, "atol": tolerance, "drives": [force]}
    motion = model.simulate([-1.0 / stiffness], [0.0], 4.0, save_at=2, **settings)
    assert motion.success
    np.testing.assert_allclose(motion.q[-1], 4.5, rtol=0, atol=10 * tolerance)


@plain
@pytest.mark.parametrize("method", ["rosenbrock", "radau"])
def test_friction_breaks_away(method):
    """The force t overcomes the regularized friction of 1 N after a second; q(4) = 4.5 m with Coulomb friction.

    Above 20 friction velocities, the friction is 1 N to round-off, so that creeping adds at most this velocity. Each
    step may add its tolerance to q and qd, which are at most 4.5 m and m/s. Errors of qd last for up to 4 s.
    """
    friction_velocity, tolerance, duration, expected = 1e-6, 1e-5, 4.0, 4.5
    force = rb.PrescribedForce("slide", rb.Signal.table([0.0, 10.0], [0.0, 10.0], interpolation="linear"))
    settings = {"method": method, "rtol": tolerance, "atol": tolerance, "drives": [force]}
    model = slider(friction=1.0, friction_velocity=friction_velocity)
    motion = model.simulate([0.0], [0.0], duration, save_at=2, **settings)
    assert motion.success
    error_of_step = tolerance * (1.0 + expected) * (1.0 + duration)
    bound = 20.0 * friction_velocity * duration + motion.steps * error_of_step
    np.testing.assert_allclose(motion.q[-1], expected, rtol=0, atol=bound)


@plain
def test_saved_times_may_be_close_together():
    times = [0.0, 0.5, np.nextafter(0.5, 1.0), np.nextafter(np.nextafter(0.5, 1.0), 1.0), 1.0]
    motion = slider(stiffness=1.0).simulate([1.0], [0.0], 1.0, method="radau", drives=[], save_at=times)
    assert motion.success
    np.testing.assert_allclose(motion.q[:, 0], np.cos(times), rtol=0, atol=1e-8)
    assert motion.steps < 15


@plain
def test_the_order_of_convergence_is_nine():
    """Steps of equal length, and the closed form of a vibration."""
    errors = []
    for count in (8, 16):
        state = np.array([1.0, 0.0])
        for _ in range(count):
            state, _ = one_step(slider(stiffness=1.0), state[:1], state[1:], 16.0 / count)
        errors.append(np.linalg.norm(state - [np.cos(16.0), -np.sin(16.0)]))
    assert abs(np.log2(errors[0] / errors[1]) - 9.0) < 0.5


@pytest.mark.slow
@plain
def test_a_driven_tree_follows_its_tolerance():
    """All types of joints, an integral, prescribed motions, forces over time; dop853 with 1e-13 is the reference."""
    model, actions = driven_tree()
    q, qd = random_states(model, (), seed=3, arrays=2)
    settings = {"duration": 0.1, "save_at": 4, "drives": actions["drives"], "forces": actions["forces"]}
    reference = model.simulate(q, 0.3 * qd, method="dop853", rtol=1e-13, atol=1e-14, **settings)
    for tolerance in (1e-4, 1e-7, 1e-10):
        motion = model.simulate(q, 0.3 * qd, method="radau", rtol=tolerance, atol=tolerance, **settings)
        assert motion.success
        assert np.abs(np.hstack([motion.q - reference.q, motion.qd - reference.qd])).max() < 10 * tolerance
    np.testing.assert_allclose(motion.tau, reference.tau, rtol=1e-8, atol=1e-7)
    assert motion.steps < 40
    single = model.simulate(
        *(x.astype(np.float32) for x in (q, 0.3 * qd)), method="radau", rtol=1e-4, atol=1e-4, **settings
    )
    assert single.q.dtype == np.float32
    np.testing.assert_allclose(single.q, reference.q, rtol=0, atol=1e-3)


@plain
def test_closed_chains_follow_rk45():
    model, _, guess = four_bar()
    q = model.assemble(guess)
    qd = model.assemble_velocities(q, np.full(model.nv, 2.0))
    reference = model.simulate(q, qd, 0.2, rtol=1e-12, atol=1e-13, save_at=3)
    motion = model.simulate(q, qd, 0.2, method="radau", rtol=1e-9, atol=1e-10, save_at=3)
    assert motion.success
    np.testing.assert_allclose(motion.q, reference.q, rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.qd, reference.qd, rtol=0, atol=1e-7)


@plain
def test_a_digital_controller_acts_as_with_rk45():
    """Steps end at the instants of the controller, and the output jumps there."""
    drive = rb.Sampled(rb.PID("slide", 1.0, kp=40.0, kd=5.0), period=0.05, delay=0.01)
    settings = {"drives": [drive], "save_at": 5, "rtol": 1e-9, "atol": 1e-10}
    found, wanted = (slider().simulate([0.0], [0.0], 0.5, method=method, **settings) for method in ("radau", "rk45"))
    np.testing.assert_allclose(found.q, wanted.q, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.tau, wanted.tau, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_samples_in_lanes_do_not_depend_on_their_neighbors():
    """Stiffness, damping and initial states vary, so lanes converge after different numbers of iterations."""
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    for name, parent in (("upper", None), ("lower", "upper")):
        place = rb.Pose((1.0, 0, 0) if parent else (0, 0, 0))
        inertia = rb.Inertia(1.0, cg=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
        builder.add_body(name, parent=parent, joint=rb.Revolute((0, 0, 1)), placement=place, inertia=inertia)
    samples = 11
    stiffness = np.logspace(0, 6, samples)[:, None] * [1.0, 2.0]
    model = builder.build().vary(stiffness=stiffness, damping=0.01 * stiffness)
    q = np.linspace(-0.1, 0.1, samples)[:, None] * [1.0, -1.0]
    settings = {"duration": 1.0, "save_at": 5, "rtol": 1e-8, "atol": 1e-10, "method": "radau"}
    together = model.simulate(q, 0 * q, **settings)
    assert together.success and np.ptp(together.steps) > 0
    some = [9, 2, 5]
    apart = builder.build().vary(stiffness=stiffness[some], damping=0.01 * stiffness[some])
    found = apart.simulate(q[some], 0 * q[some], **settings)
    for name in ("q", "qd", "steps", "evaluations"):
        np.testing.assert_array_equal(getattr(found, name), getattr(together, name)[some])
    explicit = model.simulate(q, 0 * q, **settings | {"method": "rk45", "rtol": 1e-10, "atol": 1e-12})
    np.testing.assert_allclose(together.q, explicit.q, rtol=0, atol=1e-7)


@plain
def test_what_the_method_does_not_support_is_refused():
    model, start = pendulum(), ([0.0], [0.0], 1.0)
    with pytest.raises(
        rb.ArgumentError, match='events is not empty, but method "radau" does not compute accurate states'
    ):
        model.simulate(*start, method="radau", events=[rb.Event("bob", value=-1.0, stop=True)], save_at=2)
    with pytest.raises(rb.ArgumentError, match=r'forces contains DryFriction .* which method "radau" does not support'):
        model.simulate(*start, method="radau", forces=[rb.DryFriction("bob", kinetic=0.1)], save_at=2)
    with pytest.raises(rb.ArgumentError, match='method is "radau", which does not compute derivatives'):
        model.simulate(*start, method="radau", derivatives=["mass"], save_at=2)
    assert (
        model.simulate(*start, method="radau", max_steps=3, on_failure="ignore", save_at=2).status
        == rb.Status.TOO_MANY_STEPS
    )


@plain
def test_a_relative_tolerance_nearly_alone_is_enough():
    """The body starts at zero, where a relative tolerance allows hardly any error; x = sin t."""
    motion = slider(stiffness=1.0).simulate(
        [0.0], [1.0], 3.0, method="radau", rtol=1e-9, atol=1e-18, drives=[], save_at=4
    )
    assert motion.success
    np.testing.assert_allclose(motion.q[:, 0], np.sin(motion.t), rtol=0, atol=1e-8)


@plain
def test_an_absolute_tolerance_alone_is_enough():
    motion = slider(stiffness=1.0).simulate(
        [0.0], [1.0], 3.0, method="radau", rtol=0.0, atol=1e-9, drives=[], save_at=2
    )
    assert motion.success
    np.testing.assert_allclose(motion.q[-1], np.sin(3.0), rtol=0, atol=1e-8)


@pytest.mark.slow
@plain
def test_a_motion_that_becomes_infinite_gets_a_status():
    """An unstable spring: the state overflows."""
    motion = slider(stiffness=-1e6).simulate(
        [1.0], [0.0], 10.0, method="radau", rtol=1e-6, drives=[], on_failure="ignore", save_at=2
    )
    assert motion.status == rb.Status.NOT_FINITE
