"""`rbchain.analysis.periodic`, compared with closed forms and with Mathieu's equation."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipk, mathieu_a, mathieu_b

import rbchain as rb

from .closed_chains import four_bar

PLAIN = pytest.mark.plain_python


def rod(gravity=0.0, **fields):
    """A thin rod of 1.5 m with I = 1.5 kg m^2 that turns about z."""
    return rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, -gravity, 0)).replace(**fields)


@pytest.mark.slow
@PLAIN
def test_a_forced_rod_on_a_damped_spring_has_the_motion_of_its_closed_form():
    """I x'' + d x' + c x = f sin(w t + p): multipliers exp(s T) with the roots s of I s^2 + d s + c."""
    w, stiffness = 2.0, np.array([4.0, 9.0])
    model = rod(damping=[1.0]).vary(stiffness=stiffness[:, None])
    drives = [rb.PrescribedForce("link1", rb.Signal.sines(1.3, w, phase=0.4))]
    settings = {"period": 2 * np.pi / w, "drives": drives, "method": "rk4", "step": np.pi / w / 32}
    found = rb.analysis.periodic(model, np.array([[0.3], [0.3]], np.float32), **settings)
    amplitude = 1.3 * np.exp(0.4j) / (stiffness - 1.5 * w**2 + 1j * w)
    np.testing.assert_allclose(found.q[:, 0], amplitude.imag, atol=1e-5)
    np.testing.assert_allclose(found.qd[:, 0], (1j * w * amplitude).imag, atol=1e-5)
    expected = np.array([np.exp(2 * np.pi / w * np.roots([1.5, 1.0, c])) for c in stiffness])
    np.testing.assert_allclose(abs(found.multipliers), abs(expected), rtol=1e-4)
    np.testing.assert_allclose(found.multipliers.real, expected.real, atol=1e-4)
    assert found.success.all()
    assert found.stable.all()
    assert found.states == ("q link1", "qd link1")
    assert (len(found), found[1].q.shape, found[1].multipliers.shape) == (2, (1,), (2,))
    one = rb.analysis.periodic(model, [[np.nan], [0.3]], **settings)
    assert (one.success.tolist(), one.stable.tolist()) == ([False, True], [False, True])
    np.testing.assert_allclose(one.q[1], found.q[1], atol=1e-12)


def on_moving_pivot(a, w, length):
    """A pendulum of a point mass, whose pivot moves vertically by a cos(w t)."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("base", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(1.0))
    point = rb.Inertia(2.0, cg=(0, 0, -length))
    builder.add_body("mass", parent="base", joint=rb.Revolute((0, 1, 0)), inertia=point)
    return builder.build(), [rb.PrescribedPosition("base", rb.Signal.sines(a, w, phase=np.pi / 2))]


@PLAIN
def test_the_state_contains_the_prescribed_motion_at_the_time_zero():
    model, _ = on_moving_pivot(0.1, 3.0, 0.8)
    settings = {"q_guess": [0.0, 0.01], "period": 2 * np.pi / 3.0, "max_iterations": 1}
    pivot = rb.PrescribedPosition("base", 0.5 + rb.Signal.sines(0.1, 3.0))
    found = rb.analysis.periodic(model, drives=[pivot], **settings)
    np.testing.assert_allclose([found.q[0], found.qd[0]], [0.5, 0.1 * 3.0], rtol=1e-12)
    ramp = rb.PrescribedPosition("base", rb.Signal.polynomial([0.5, 1.0]))
    with pytest.raises(rb.ArgumentError, match=r"a prescribed position differs by 2\.1 one period later; expected"):
        rb.analysis.periodic(model, drives=[ramp], **settings)


@pytest.mark.slow
@PLAIN
def test_a_pendulum_on_a_vibrating_pivot_is_stable_where_mathieu_functions_are():
    """y'' + (A - 2 Q cos 2 s) y = 0 with s = w t / 2, A = 4 g / (l w^2) and Q = 2 a / l, is unstable from b1 to a1."""
    w, length, Q = 7.0, 0.8, 0.2
    A = np.array([mathieu_b(1, Q) - 1e-3, mathieu_b(1, Q) + 1e-3, mathieu_a(1, Q) - 1e-3, mathieu_a(1, Q) + 1e-3])
    model, drives = on_moving_pivot(Q * length / 2, w, length)
    gravity = A[:, None] * length * w**2 / 4 * [0, 0, -1.0]
    T = 2 * np.pi / w
    settings = {"period": T, "drives": drives, "method": "rk4", "step": T / 60}
    found = rb.analysis.periodic(model.vary(gravity=gravity), [0.0, 0.01], **settings)
    assert found.success.all()
    assert found.stable.tolist() == [True, False, False, True]
    np.testing.assert_allclose(found.q[:, 1], 0.0, atol=1e-8)
    for k in range(4):

        def rate(s, y, k=k):
            return [y[1], -(A[k] - 2 * Q * np.cos(2 * s)) * y[0]]

        ends = [solve_ivp(rate, (0, np.pi), y, rtol=1e-12, atol=1e-14).y[:, -1] for y in np.eye(2)]
        expected = np.linalg.eigvals(np.transpose(ends))
        np.testing.assert_allclose(found.multipliers[k].sum(), expected.sum().real, rtol=1e-5)
        np.testing.assert_allclose(found.multipliers[k].prod(), 1.0, rtol=1e-5)  # the system is conservative
    assert found.states == ("q mass", "qd mass")


@pytest.mark.slow
@PLAIN
def test_a_free_pendulum_has_the_amplitude_of_its_period():
    """T = 4 K(k) / sqrt(3 g / (2 l)) with k = sin(amplitude / 2); both multipliers are 1."""
    amplitude = 1.2
    T = 4 * ellipk(np.sin(amplitude / 2) ** 2) / np.sqrt(10.0)
    hanging = -np.pi / 2
    found = rb.analysis.periodic(rod(10.0), [hanging + 1.0], period=T, rtol=1e-8, atol=1e-10, tolerance=1e-6)
    assert bool(found.success)
    # the energy is that of the amplitude, at any phase
    energy = found.qd[0] ** 2 / 2 - 10.0 * np.cos(found.q[0] - hanging)
    np.testing.assert_allclose(energy, -10.0 * np.cos(amplitude), rtol=1e-4)
    np.testing.assert_allclose(found.multipliers, 1.0, atol=1e-2)  # a double eigenvalue


def van_der_pol(t, q, qd, parameters, out):
    out[0] = parameters[0] * (1.0 - q[0] ** 2) * qd[0]


def by_state(t, q, qd, parameters, out):
    out[0, 0, 0] = -2.0 * parameters[0] * q[0] * qd[0]
    out[1, 0, 0] = parameters[0] * (1.0 - q[0] ** 2)


@pytest.mark.slow
@PLAIN
def test_an_oscillator_of_van_der_pol_has_an_unknown_period():
    """q'' - m (1 - q^2) q' + q = 0. One multiplier is 1, the product is exp of the integral of m (1 - q^2)."""
    model = rod(stiffness=[1.5])  # I = 1.5 kg m^2 about the pivot
    model = model.replace(stiffness=[float(model.mass_matrix([0.0])[0, 0])])
    m = np.array([0.2, 1.0])
    drive = rb.UserForces(van_der_pol, derivatives=by_state, parameters=(m * model.stiffness[0])[:, None])
    settings = {"method": "rk4", "step": 0.1, "tolerance": 1e-6}
    found = rb.analysis.periodic(model, [2.0], period_guess=[6.2, 6.6], drives=[drive], **settings)
    assert found.success.all()
    assert found.stable.all()
    assert found.period.shape == (2,)
    np.testing.assert_allclose(found.period[1], 6.66328685932313, rtol=1e-4)
    for i in range(2):

        def rate(t, y, m=m[i]):
            return [y[1], m * (1 - y[0] ** 2) * y[1] - y[0], m * (1 - y[0] ** 2)]

        start = [found.q[i, 0], found.qd[i, 0], 0.0]
        end = solve_ivp(rate, (0, found.period[i]), start, rtol=1e-11, atol=1e-13).y[:, -1]
        np.testing.assert_allclose(end[:2], start[:2], atol=1e-3)
        np.testing.assert_allclose(found.multipliers[i], [1.0, np.exp(end[2])], atol=1e-3)


@pytest.mark.slow
@PLAIN
def test_a_pendulum_of_finite_amplitude_has_the_period_of_its_closed_form():
    """T = 4 K(k) / sqrt(3 g / (2 l)) with k = sin(amplitude / 2)."""
    model, hanging = rod(10.0), -np.pi / 2
    settings = {"method": "rk4", "step": 0.05, "tolerance": 1e-5}  # rk4 changes the energy
    found = rb.analysis.periodic(model, [hanging + 1.2], period_guess=2.1, **settings)
    energy = -np.cos(found.q[0] - hanging) + found.qd[0] ** 2 / 20.0
    assert bool(found.success)
    np.testing.assert_allclose(found.period, 4 * ellipk((1 + energy) / 2) / np.sqrt(10.0), rtol=1e-5)
    at_rest = rb.analysis.periodic(model, [hanging], period_guess=2.0, **settings)
    assert not at_rest.success


PUSH = rb.PrescribedForce("link1", rb.Signal.sines(1.0, 2.0))
REFUSED = [
    ({"period": None}, "period is None and period_guess is None; expected one of the two"),
    ({"period_guess": 1.0}, "expected one of the two"),
    ({"period": None, "period_guess": -1.0}, "period_guess is -1.0; expected finite numbers above 0 s"),
    ({"period": None, "period_guess": 3.0}, "period_guess: the accelerations .* that do not depend on the time"),
    ({"period": 0.0}, "period is 0.0; expected a finite number above 0"),
    ({"period": 3.0}, "period is 3 s, but the accelerations .* expected the period of the forces"),
    ({"drives": [rb.PID("link1", 0.0, kp=1.0, ki=1.0)]}, "does not support drives with an integral gain"),
    ({"drives": [rb.Sampled(rb.PID("link1", 0.0, kp=1.0), period=0.1)]}, "periodic does not support Sampled"),
    ({"forces": [rb.DryFriction("link1", kinetic=0.1)]}, "periodic does not support .*DryFriction"),
    ({"q_guess": [0.0, 0.0]}, "q_guess has shape"),
]


@PLAIN
@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=range(len(REFUSED)))
def test_wrong_arguments_are_refused_by_name(arguments, message):
    given = {"q_guess": [0.1], "period": np.pi, "drives": [PUSH], "method": "rk4", "step": 0.2, **arguments}
    with pytest.raises(rb.ArgumentError, match=message):
        rb.analysis.periodic(rod(damping=[1.0]), **given)


@PLAIN
def test_closed_chains_are_refused_and_names_are_suggested():
    with pytest.raises(rb.ArgumentError, match="periodic does not support closed loops"):
        rb.analysis.periodic(four_bar().model, period=1.0)
    with pytest.raises(AttributeError, match="did you mean periodic"):
        _ = rb.analysis.periodc
    empty = rb.analysis.periodic(rod(), np.zeros((0, 1)), period=1.0, method="rk4", step=0.1)
    assert (empty.multipliers.shape, empty.stable.shape) == ((0, 2), (0,))
