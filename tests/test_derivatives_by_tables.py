"""Derivatives of motions by the values of tables: closed forms, differences of high order, and refused input."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PPoly, make_interp_spline
from scipy.linalg import expm

import rbchain as rb

from .mechanisms import slide
from .test_sensitivities import FIXED, TIGHT, arm_with, end_of, without_dissipation
from .test_sensitivities_of_closed_chains import BOB, pendulum_of_a_cart, slides_of, trammel

pytestmark = pytest.mark.plain_python
TIMES = np.array([0.0, 0.1, 0.4, 0.5, 0.8])
WEIGHTS = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])  # of central differences of eighth order


def held(values):
    """A signal with one value for each interval between TIMES."""
    return rb.Signal(np.asarray(values)[..., None], breaks=TIMES[:-1], end=TIMES[-1])


TABLES = {
    "linear": (lambda values: rb.Signal.table(TIMES, values, interpolation="linear"), 5),
    "cubic": (lambda values: rb.Signal.table(TIMES, values), 5),
    "held": (held, 4),
}


def weights_of(kind):
    """SciPy's piecewise polynomials of the derivatives of a table by its values."""
    if kind == "held":
        return PPoly(np.eye(4)[None], TIMES)
    return CubicSpline(TIMES, np.eye(5)) if kind == "cubic" else make_interp_spline(TIMES, np.eye(5), k=1)


def derivative_along(function, values, direction, size):
    """The derivative of a function of values along a direction, by central differences of eighth order."""
    ends = [[function(values + s * j * size * direction) for s in (1, -1)] for j in (1, 2, 3, 4)]
    return sum(w * (after - before) for w, (after, before) in zip(WEIGHTS, ends, strict=True)) / size


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        *((kind, {"method": method, "save_at": 4, **TIGHT}) for kind in TABLES for method in ("rk45", "dop853")),
        ("linear", {"method": "rk4", "step": 0.05, "save_at": 2}),  # which is exact for linear forces
    ],
)
def test_a_mass_under_a_force_agrees_with_integrals_of_the_weights(kind, settings):
    """The table is zero, so that its pieces have no breaks of their own."""
    table, count = TABLES[kind]
    drives = [rb.PrescribedForce("slide", table(np.zeros(count)))]
    motion = slide(2.0).simulate([0.1], [0.2], 0.7, drives=drives, derivatives=["signal"], **settings)
    wanted = np.stack([weights_of(kind).antiderivative(order)(motion.t) / 2.0 for order in (2, 1)], 1)
    assert motion.derivatives["signal"].shape == (settings["save_at"], 2, count)
    np.testing.assert_allclose(motion.derivatives["signal"], wanted, rtol=0, atol=1e-11)


@pytest.mark.slow
def test_the_reference_of_a_controller_agrees_with_the_matrix_exponential():
    """Between the times of a linear table, q, qd, the integral, the reference and its slope obey y' = A y."""
    kp, ki, kd, m = 7.0, 3.0, 1.0, 2.0
    A = np.zeros((5, 5))
    A[0, 1], A[2, [0, 3]], A[3, 4] = 1.0, (-1.0, 1.0), 1.0
    A[1] = np.array([-kp, -kd, ki, kp, kd]) / m
    wanted = []
    for values in np.eye(5):
        y = np.zeros(5)
        for i, h in enumerate(np.diff(TIMES)):
            y = expm(h * A) @ [*y[:3], values[i], (values[i + 1] - values[i]) / h]
        wanted.append(y[:2])
    drives = [rb.PID("slide", TABLES["linear"][0](np.array([1.0, 1.0, 1.0, -2.0, 0.0])), kp=kp, ki=ki, kd=kd)]
    motion = slide(m).simulate([0.1], [0.2], 0.8, drives=drives, derivatives=["signal"], save_at=2, **TIGHT)
    np.testing.assert_allclose(motion.derivatives["signal"][-1], np.transpose(wanted), rtol=0, atol=1e-10)


def drives_of_arm(values):
    """Drives with three tables, of 5, 4 and 5 values, and a sine without values."""
    return [
        rb.PrescribedForce("a", TABLES["linear"][0](values[..., :5])),
        rb.PID("c", TABLES["cubic"][0](values[..., 9:]), feedforward=held(values[..., 5:9]), kp=20.0, ki=10.0, kd=2.0),
        rb.PrescribedForce("b", rb.Signal.sines(0.5, 3.0), dof=0),
    ]


# columns follow the fields of a drive: the reference, then the feedforward
ORDER = np.r_[0:5, 9:14, 5:9]


@pytest.mark.fast_cases("feedforward")
@pytest.mark.parametrize("part", [slice(0, 5), slice(5, 9), slice(9, 14)], ids=["force", "feedforward", "reference"])
def test_samples_with_tables_of_their_own_agree_with_differences(part):
    """With fixed steps, the derivatives are the derivatives of the numerical result."""
    model, rng = arm_with(rb.Universal()), np.random.default_rng(3)
    model = model.vary(mass=model.mass * [[1.0, 1.1, 0.9], [0.8, 1.0, 1.2]])
    values, direction = rng.normal(size=(2, 14)), np.zeros((2, 14))
    direction[:, part] = rng.normal(size=(2, part.stop - part.start))
    start = rng.normal(size=(2, 2, 4))

    def end(values, **names):
        return model.simulate(*start, 0.3, drives=drives_of_arm(values), save_at=2, **FIXED, **names)

    found = end(values, derivatives=["signal", "kp"]).derivatives["signal"]
    assert found.shape == (2, 2, 8, 14)
    found = (found[:, -1] * direction[:, None, ORDER]).sum(-1)
    wanted = derivative_along(lambda x: states_at_end(end(x)), values, direction, 0.01)
    assert np.abs(wanted).max(-1).min() > 1e-4
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


def states_at_end(motion):
    return np.concatenate([motion.q[..., -1, :], motion.qd[..., -1, :]], -1)


def test_a_prescribed_acceleration_agrees_with_differences():
    model, rng = arm_with(rb.Universal()), np.random.default_rng(4)
    start, values, direction = rng.normal(size=(2, 4)), rng.normal(size=5), rng.normal(size=5)

    def end(values, **names):
        drives = [rb.PrescribedAcceleration("a", TABLES["linear"][0](values)), rb.PID("c", 0.2, kp=5.0)]
        return model.simulate(*start, 0.3, drives=drives, save_at=2, **FIXED, **names)

    found = end(values, derivatives=["mass", "signal"]).derivatives["signal"][-1] @ direction
    wanted = derivative_along(lambda x: end_of(end(x)), values, direction, 0.01)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.slow
def test_a_force_in_a_closed_chain_agrees_with_differences():
    model, rng, start = trammel(), np.random.default_rng(5), slides_of(np.array([0.6, 1.1]))
    values, direction = rng.normal(size=5), rng.normal(size=5)

    def end(values, **names):
        drives = [rb.PrescribedForce("x", TABLES["linear"][0](values))]
        return model.simulate(start[:2], start[2:], 0.3, drives=drives, save_at=2, rtol=1e-11, atol=1e-12, **names)

    found = end(values, derivatives=["signal"]).derivatives["signal"][-1] @ direction
    wanted = derivative_along(lambda x: end_of(end(x)), values, direction, 0.2)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


def test_a_force_at_its_limit_does_not_depend_on_the_table():
    table = TABLES["linear"][0]
    for drive in (
        rb.PrescribedForce("slide", table([5.0, 6.0, 7.0, 8.0, 9.0]), limit=4.0),
        rb.PID("slide", table([5.0, 6.0, 7.0, 8.0, 9.0]), kp=10.0, limit=4.0),
    ):
        motion = slide().simulate([0.0], [0.0], 0.5, drives=[drive], derivatives=["signal"], **FIXED)
        assert not motion.derivatives["signal"].any()


def test_multiples_and_sums_are_the_tables_of_their_values():
    """A multiple of a table is a table, whose values are multiplied too, and a constant may be added to it."""
    found = []
    for signal in (TABLES["cubic"][0](np.arange(5.0) ** 2), 2.0 * TABLES["cubic"][0](np.arange(5.0) ** 2) + 1.0):
        drives = [rb.PrescribedForce("slide", signal)]
        motion = slide().simulate([0.0], [0.0], 0.5, drives=drives, derivatives=["signal"], **FIXED)
        found.append(motion.derivatives["signal"])
    np.testing.assert_allclose(*found, rtol=0, atol=1e-15)


def test_empty_batches_float32_files_and_continued_motions(tmp_path):
    values = np.array([[1.0, 2.0, -1.0, 0.0, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0]])
    model, settings = slide(), {"derivatives": ["signal"], "save_at": 3, **FIXED}

    def motion_of(states, values, duration=0.4, **others):
        drives = [rb.PrescribedForce("slide", TABLES["linear"][0](values))]
        return model.simulate(*states, duration, drives=drives, **settings, **others)

    states = np.ones((2, 2, 1))
    motion = motion_of(states, values)
    found = motion.derivatives["signal"]
    assert motion_of(states[:, :0], values[:0]).derivatives["signal"].shape == (0, 3, 2, 5)
    rough = motion_of(states.astype(np.float32), values).derivatives["signal"]
    assert rough.dtype == np.float32
    np.testing.assert_allclose(rough, found, rtol=0, atol=1e-6)
    motion.save(tmp_path / "motion.npz")
    np.testing.assert_array_equal(rb.load_motion(tmp_path / "motion.npz").derivatives["signal"], found)
    longer = model.simulate(duration=0.4, continue_from=motion, save_at=2)
    whole = motion_of(states, values, 0.8)
    np.testing.assert_allclose(longer.derivatives["signal"][:, -1], whole.derivatives["signal"][:, -1], atol=1e-14)


TABLE = TABLES["linear"][0](np.ones(5))
FORCE = rb.PrescribedForce("a", TABLE)


@pytest.mark.parametrize(
    ("drives", "message"),
    [
        ([], 'contains "signal", but no drive has a table; expected a drive such as'),
        ([rb.PID("a", 0.3, kp=1.0)], "no drive has a table"),
        ([rb.PrescribedForce("a", TABLE + rb.Signal.sines(1.0, 2.0))], "joint 'a': signal is Signal.*, which is not"),
        ([rb.PrescribedForce("a", TABLE + rb.Input("push"))], "which is not the table of its values"),
        ([rb.PrescribedForce("a", TABLE + held(np.arange(4.0)))], "which is not the table of its values"),
        ([rb.PrescribedForce("a", CubicSpline(TIMES, TIMES**2, bc_type="natural"))], "which is not the table"),
        ([FORCE, rb.PID("c", rb.Signal.random_walk(1.0, 0.01), kp=1.0)], "joint 'c': reference is a random sig"),
        ([rb.PrescribedVelocity("a", TABLE)], "PrescribedVelocity of joint 'a': signal is a table.*expected tables in"),
        (
            [rb.PrescribedAcceleration("a", TABLE), rb.ComputedTorque("c", 0.0, kp=1.0, kd=1.0)],
            "a PrescribedAcceleration has a table, and another drive is a ComputedTorque",
        ),
        ("abc", "drives is 'abc'; expected a list"),
    ],
)
def test_refused_drives(drives, message):
    model = without_dissipation(arm_with(rb.Universal()))
    with pytest.raises(rb.ArgumentError, match=message):
        model.simulate(np.zeros(4), np.zeros(4), 0.1, drives=drives, derivatives=["signal"], **FIXED)


def test_a_prescribed_acceleration_in_a_closed_chain_is_refused():
    drives = [rb.PrescribedAcceleration("cart", TABLE)]
    start = pendulum_of_a_cart().assemble([0.0, 0.3, -0.6])
    with pytest.raises(rb.ArgumentError, match="has a table, and the model has closed loops; expected tables in"):
        pendulum_of_a_cart().simulate(
            start, tau=[0.0, *BOB["tau"][1:]], duration=0.1, drives=drives, derivatives=["signal"]
        )


def test_signals_have_no_paths_and_are_no_parameters_of_a_fit():
    with pytest.raises(rb.UnknownNameError):
        slide().simulate([0.0], duration=0.1, derivatives=["slide.signal"])
    with pytest.raises(rb.UnknownNameError):
        rb.fit(slide(), (TIMES, np.zeros((5, 1)), None), ["signal"])
