"""The Radau IIA method: its coefficients, linear systems and error estimate, closed forms, and agreement with rk45."""

import mpmath
import numpy as np
import pytest

import rbchain as rb
from rbchain.actions.flatten import flatten_actions
from rbchain.core.integration.action_hooks import evaluate, set_sample_forces
from rbchain.core.integration.complex_systems import factorize_complex_step, solve_complex_system
from rbchain.core.integration.linearised_rate import differentiate_by_state
from rbchain.core.integration.radau import compute_radau_step
from rbchain.core.integration.radau_tableau import STAGES, radau_tableau
from rbchain.core.integration.rollout import CONTROL_H, CONTROL_TIME, Tolerances
from rbchain.core.simd.lane_memory import all_lanes
from rbchain.drivers.radau_trajectories import radau_memory, radau_memory_for

from .closed_chains import closed_chain, closed_state, four_bar
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
        given = [actions.get(name, []) for name in ("drives", "forces")]
        flat, _ = flatten_actions(model, (1,), 1.0, dtype, *given, [], False, False)
    topology, parameters, _ = model.kernel_model.arrays(dtype)
    shape, q = (y.size, TABLEAU.c.size), y[None, : model.nq]
    tables = model.kernel_model.constraint_tables
    memory = radau_memory(topology, tables, *shape, flat, 1, dtype)
    block, stepper = radau_memory_for(memory, topology, tables, parameters, q, flat, shape)
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
    stepper.control[CONTROL_H], stepper.control[CONTROL_TIME] = h, 0.0
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
def test_the_estimate_bounds_the_error_of_a_vibration(phase):
    """Steps of 0.3 to 2 rad, and the closed form cos(t + phase); the estimate is within 4 digits of the error."""
    for h in (0.3, 0.6, 1.0, 1.5, 2.0):
        found, estimate = one_step(slider(stiffness=1.0), [np.cos(phase)], [-np.sin(phase)], h)
        wanted = np.cos(phase + h), -np.sin(phase + h)
        error, estimate = np.linalg.norm(found - wanted), np.linalg.norm(estimate)
        assert error < estimate + 1e-15, h
        assert estimate < 1e4 * error + 1e-13, h


@plain
@pytest.mark.parametrize("time", np.linspace(0.01, 0.98, 13))
def test_the_estimate_bounds_the_error_of_a_step_with_a_kink(time):
    """A force that is zero before `time` and then grows: v = (t - time)^2 / 2 at the end of a step of 1 s."""
    times = np.array([0.0, time, 2.0])
    force = rb.PrescribedForce("slide", rb.Signal.table(times, [0.0, 0.0, 2.0 - time], kind="linear"))
    found, estimate = one_step(slider(), [0.0], [0.0], 1.0, drives=[force])
    rest = 1.0 - time
    wanted = rest**3 / 6.0, rest**2 / 2.0
    assert np.linalg.norm(found - wanted) < np.linalg.norm(estimate)
