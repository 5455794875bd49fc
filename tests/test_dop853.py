"""The method "dop853": order of its steps and of its dense output, step control, events, and agreement with others."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.core.methods.dop853 import DOP853, interpolate_dop853

from .closed_chains import closed_state, four_bar
from .mechanisms import random_tree
from .quantities import random_states

plain = pytest.mark.plain_python


def rate(t, y):
    """Return the rate of y = exp(sin t): smooth, and not linear in time."""
    return y * np.cos(t)


def stages_of_step(h):
    """Return the rates of a step of length h from t = 0, y = 1, and its end."""
    rates = np.zeros(16)
    for stage, c in enumerate(DOP853.c):
        rates[stage] = rate(c * h, 1.0 + h * DOP853.A[stage] @ rates[:13])
    end = 1.0 + h * DOP853.A[12] @ rates[:13]
    for stage, c in enumerate(DOP853.dense_c):
        rates[13 + stage] = rate(c * h, 1.0 + h * DOP853.dense_A[stage] @ rates)
    return rates, end


def test_each_stage_is_at_its_time():
    """A constant rate of 1 moves a stage by c h; the weights of an error are those of a difference, whose sum is 0."""
    np.testing.assert_allclose(DOP853.A.sum(1), DOP853.c, atol=1e-14)
    np.testing.assert_allclose(DOP853.dense_A.sum(1), DOP853.dense_c, atol=1e-14)
    np.testing.assert_allclose([DOP853.error.sum(), DOP853.low_error.sum()], 0.0, atol=1e-14)


def slope(errors):
    return np.log2(errors[0] / errors[1])


def test_the_error_of_a_step_is_of_ninth_order_and_its_estimates_of_sixth_and_fourth():
    """A method of order p has errors of a step proportional to h^(p + 1)."""
    errors, fifth, third = [], [], []
    for h in (0.8, 0.4):
        rates, end = stages_of_step(h)
        errors.append(abs(end - np.exp(np.sin(h))))
        fifth.append(abs(h * DOP853.error @ rates[:13]))
        third.append(abs(h * DOP853.low_error @ rates[:13]))
    assert slope(errors) > 8.3
    assert 5.3 < slope(fifth) < 7.7
    assert 3.3 < slope(third) < 5.7


@plain
@pytest.mark.parametrize("theta", [0.1, 0.35, 0.5, 0.8])
def test_the_dense_output_is_of_seventh_order(theta):
    errors = []
    for h in (0.8, 0.4):
        rates, end = stages_of_step(h)
        y, y_new, columns = np.array([[1.0]]), np.array([[end]]), rates[:, None, None]
        found = interpolate_dop853(DOP853, y, y_new, h, columns, theta, 0, 0)
        errors.append(abs(found - np.exp(np.sin(theta * h))))
    assert slope(errors) > 7.3


@pytest.mark.slow
@plain
def test_it_takes_fewer_evaluations_than_rk45_at_small_tolerances():
    """The evaluations grow with tolerance^(-1/8) instead of tolerance^(-1/5)."""
    pendulum = rb.Model.serial_chain(1)
    settings = {"rtol": 1e-12, "atol": 1e-12}
    found, other = (
        pendulum.simulate([1.0], [0.0], 2.0, method=name, save_at=2, **settings) for name in ("dop853", "rk45")
    )
    assert found.success
    assert found.evaluations < 0.6 * other.evaluations
    # both errors are a few steps' tolerances
    np.testing.assert_allclose(found.q[-1], other.q[-1], atol=1e-9)


@plain
def test_states_within_steps_and_extremes_are_those_of_short_steps():
    """An oscillator with frequency w from q = 1: q = cos(w t). Its steps span a large part of a period."""
    w = 3.0
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    spring = rb.PassiveForces(stiffness=w**2)
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0), passive=spring)
    times = np.linspace(0.0, 4.0, 83)
    motion = builder.build().simulate([1.0], [0.0], 4.0, method="dop853", rtol=1e-9, atol=1e-9, save_at=times)
    assert motion.steps < 40
    np.testing.assert_allclose(motion.q[:, 0], np.cos(w * times), atol=1e-7)
    np.testing.assert_allclose(motion.qd[:, 0], -w * np.sin(w * times), atol=3e-7)


@plain
def test_events_occur_where_the_closed_form_has_them():
    """q = cos(3 t) passes 0.5 at 3 t = pi / 3 and 5 pi / 3, and -1 + 1e-3 twice within a fraction of a step."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    spring = rb.PassiveForces(stiffness=9.0)
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0), passive=spring)
    events = [rb.Event("slide", value=level, stop=False) for level in (0.5, -1.0 + 1e-3)]
    motion = builder.build().simulate(
        [1.0], [0.0], 2.0, method="dop853", rtol=1e-10, atol=1e-10, events=events, save_at=2
    )
    np.testing.assert_allclose(motion.events[0].t[:2], np.array([1.0, 5.0]) * np.pi / 9.0, atol=1e-8)
    near = np.arccos(-1.0 + 1e-3)
    np.testing.assert_allclose(motion.events[1].t[:2], np.array([near, 2.0 * np.pi - near]) / 3.0, atol=1e-6)
    assert [event.count for event in motion.events] == [2, 2]


@pytest.mark.slow
@plain
def test_quaternions_are_integrated_as_by_radau():
    model = random_tree(3, [-1, 0, 1], kinds=("free", "spherical", "revolute"))
    q, qd = random_states(model, (), seed=1)[:2]
    motions = [
        model.simulate(q, qd, 0.2, method=name, rtol=1e-10, atol=1e-10, save_at=2) for name in ("dop853", "radau")
    ]
    np.testing.assert_allclose(motions[0].q[-1], motions[1].q[-1], atol=1e-8)


@pytest.mark.slow
@plain
def test_closed_chains_stay_closed():
    chain = four_bar()
    q, qd, _ = closed_state(chain)
    motions = [
        chain.model.simulate(q, qd, 0.2, method=name, rtol=1e-10, atol=1e-10, save_at=2) for name in ("dop853", "rk45")
    ]
    assert np.abs(chain.model.constraint_residual(motions[0].q)).max() < 1e-10
    np.testing.assert_allclose(motions[0].q[-1], motions[1].q[-1], atol=1e-8)


@pytest.mark.slow
@plain
def test_sensitivities_are_derivatives_of_the_motion():
    """Central differences by the mass with a step of 1e-4 have an error of about 1e-8."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body(
        "rod", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(1.0, cg=(0.5, 0, 0), inertia=(0.01, 0.01, 0.01))
    )
    model, settings = builder.build(), {"method": "dop853", "rtol": 1e-11, "atol": 1e-12}
    for controls in (True, False):
        with rb.options(control_derivative_errors=controls):
            motion = model.simulate([0.3], [0.0], 0.5, save_at=2, derivatives=["mass"], **settings)
        found = motion.derivatives["mass"]
    ends = [
        model.replace(mass=[1.0 + d]).simulate([0.3], [0.0], 0.5, save_at=2, **settings).end_q for d in (1e-4, -1e-4)
    ]
    np.testing.assert_allclose(found[-1, 0, 0], (ends[0] - ends[1])[0] / 2e-4, atol=1e-7)


@plain
def test_a_joint_at_rest_whose_value_differs_from_the_level_by_round_off_has_no_event():
    """0.1 + 0.2 and 0.3 differ by one unit of round-off."""
    rod = rb.Model.serial_chain(1, gravity=(0, 0, 0))
    event = rb.Event("link1", value=0.3, stop=False)
    motion = rod.simulate([0.1 + 0.2], [0.0], 1.0, method="dop853", max_step=0.05, events=[event], save_at=2)
    assert motion.steps >= 20
    assert motion.events[0].count == 0


@pytest.mark.slow_cases("True")
@plain
@pytest.mark.parametrize(("damping", "is_stiff"), [(1.0, False), (1e4, True)])
def test_stiffness_is_detected(damping, is_stiff):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    damper = rb.PassiveForces(stiffness=damping, damping=damping)
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0), passive=damper)
    motion = builder.build().simulate([1.0], [0.0], 1.0, method="dop853", rtol=1e-4, atol=1e-6, save_at=2)
    assert bool(motion.is_stiff) == is_stiff
