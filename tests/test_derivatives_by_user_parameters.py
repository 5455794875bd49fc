"""Derivatives of motions by the parameters of user functions."""

import numpy as np
import pytest

import rbchain as rb

from .test_sensitivities import (
    DURATION,
    LINKS,
    START,
    STEP,
    TIGHT,
    extrapolated,
    rate_of_two_links,
    two_links,
)
from .test_sensitivities_of_closed_chains import slides_of, trammel

plain = pytest.mark.plain_python
NUMBERS = np.array([3.0, 0.7, 1.3])


def coupling(t, q, qd, p, out):
    """A nonlinear spring and a damper between the joints, with a time-dependent torque."""
    out[0] += p[0] * np.sin(p[2] * q[1]) * np.cos(t)
    out[1] -= p[1] * (qd[1] - qd[0]) * p[0]


def by_state(t, q, qd, p, out):
    out[0, 0, 1] = p[0] * p[2] * np.cos(p[2] * q[1]) * np.cos(t)
    out[1, 1, 0] = p[1] * p[0]
    out[1, 1, 1] = -p[1] * p[0]


def by_parameters(t, q, qd, p, out):
    out[0, 0] = np.sin(p[2] * q[1]) * np.cos(t)
    out[0, 2] = p[0] * q[1] * np.cos(p[2] * q[1]) * np.cos(t)
    out[1, 0] = -p[1] * (qd[1] - qd[0])
    out[1, 1] = -(qd[1] - qd[0]) * p[0]


def forces(**changes):
    given = {"parameters": NUMBERS, "derivatives": by_state, "parameter_derivatives": by_parameters, "name": "law"}
    return rb.UserForces(coupling, **given | changes)


@plain
def test_parameters_of_a_user_function_agree_with_complex_steps():
    """The time is a state of the reference, whose torque depends on it."""
    names = ["law.parameters", "link2.mass"]
    motion = two_links().simulate(
        START[:2], START[2:], DURATION, drives=[forces()], derivatives=names, save_at=2, **TIGHT
    )
    found = motion.derivatives["law.parameters"]
    assert found.shape == (2, 4, 3)
    assert not found[0].any()
    for j in range(3):
        p = NUMBERS.astype(complex)
        p[j] += 1j * STEP

        def rate(state, p=p):
            def torques(s):
                out = np.zeros(2, complex)
                coupling(state[4], s[:2], s[2:], p, out)
                return out

            return np.append(rate_of_two_links(state[:4], LINKS, torques), 1.0)

        end = extrapolated(rate, np.append(START, 0.0).astype(complex), DURATION)
        np.testing.assert_allclose(motion.q[-1], end.real[:2], rtol=0, atol=1e-11)
        np.testing.assert_allclose(found[-1, :, j], end.imag[:4] / STEP, rtol=0, atol=1e-9, err_msg=str(j))


@plain
def test_one_parameter_is_a_column_of_all_and_each_sample_has_its_own():
    numbers = NUMBERS * [[1.0], [1.2]]
    start = np.tile(START, (2, 1))
    given = {"duration": 0.2, "save_at": 2, "method": "rk4", "step": 0.01}
    paths = ["coupling.parameters.1", "coupling.parameters"]
    drives = [forces(parameters=numbers, name=None)]
    both = two_links().simulate(start[:, :2], start[:, 2:], drives=drives, derivatives=paths, **given)
    one, every = (both.derivatives[path] for path in paths)
    assert one.shape == (2, 2, 4)
    np.testing.assert_array_equal(one, every[..., 1])
    alone = two_links().simulate(
        START[:2], START[2:], drives=[forces(parameters=numbers[1])], derivatives=["law.parameters"], **given
    )
    np.testing.assert_allclose(every[1], alone.derivatives["law.parameters"], rtol=1e-12, atol=1e-14)


def by_differences(model, start, duration, drives, count, **settings):
    """Return differences of sixth order of the ends of motions; drives(parameters) returns the drives."""
    weights, steps, h = np.array([3 / 4, -3 / 20, 1 / 60]), np.array([1.0, 2, 3, -1, -2, -3]), 0.002
    found = []
    for j in range(count):
        numbers = np.tile(NUMBERS, (6, 1))
        numbers[:, j] += h * steps
        states = np.tile(start, (6, 1))
        ends = model.simulate(
            *np.split(states, [model.nq], 1), duration, drives=drives(numbers), save_at=[duration], **settings
        )
        moves = np.concatenate([ends.q[:, -1], ends.qd[:, -1]], -1)
        found.append(weights @ (moves[:3] - moves[3:]) / h)
    return np.stack(found, -1)


@plain
@pytest.mark.slow_cases("actuator", "second function")
@pytest.mark.parametrize("other", ["actuator", "computed torque", "second function"])
def test_parameters_of_a_user_function_agree_with_differences_of_motions(other):
    """The friction of a gear reduces the forces, and the computed torque of one joint depends on the other joint's."""

    def drives(numbers):
        own = forces(parameters=numbers)
        if other == "actuator":
            return [own, rb.Actuator("link2", gear_friction=0.2)]
        if other == "second function":
            return [forces(parameters=[1.0, 0.2, 0.4], name="other"), own]
        return [own, rb.ComputedTorque("link1", 0.5, kp=20.0, kd=4.0, controller_model="nominal")]

    model, duration = two_links(), 0.1
    motion = model.simulate(
        START[:2],
        START[2:],
        duration,
        drives=drives(NUMBERS),
        derivatives=["law.parameters"],
        save_at=2,
        **TIGHT,
    )
    wanted = by_differences(model, START, duration, drives, 3, **TIGHT)
    assert (np.abs(wanted).max(0) > 1e-3).all()
    np.testing.assert_allclose(motion.derivatives["law.parameters"][-1], wanted, rtol=0, atol=1e-8)


@pytest.mark.slow
@plain
def test_parameters_of_a_user_function_in_a_closed_loop_agree_with_differences():
    model = trammel()
    start = slides_of((0.4, 1.1))
    motion = model.simulate(
        *np.split(start, 2), 0.1, drives=[forces()], derivatives=["law.parameters"], save_at=2, **TIGHT
    )
    wanted = by_differences(model, start, 0.1, lambda numbers: [forces(parameters=numbers)], 3, **TIGHT)
    assert (np.abs(wanted).max(0) > 1e-3).all()
    np.testing.assert_allclose(motion.derivatives["law.parameters"][-1], wanted, rtol=0, atol=1e-8)


def wrong(t, q, qd, p, out):
    by_parameters(t, q, qd, p, out)
    out[0, 2] *= 1.001


def fails_late(t, q, qd, p, out):
    if t > 0.1:
        raise ValueError("no derivatives there")


@plain
def test_derivatives_by_parameters_are_checked_and_refused_by_name():
    model, state = two_links(), (START[:2], START[2:])
    forces().check_derivatives(model, *state, t=0.3)
    forces(derivatives=None).check_derivatives(model, *state, t=0.3)
    for call, message in (
        (
            lambda: forces(parameter_derivatives=wrong).check_derivatives(model, *state, t=0.3),
            r"parameter_derivatives of UserForces: d tau\[0\] / d parameters\[2\] is .*; the difference of the",
        ),
        (
            lambda: model.simulate(
                *state, 0.1, drives=[forces(parameter_derivatives=None)], derivatives=["law.parameters"]
            ),
            "'law.parameters', but UserForces with function 'coupling' has no parameter_derivatives; expected",
        ),
        (
            lambda: model.simulate(*state, 0.1, drives=[forces(), forces()], derivatives=["law.parameters.0"]),
            "matches 2 parameters; expected the path of one of .*Give each force another name",
        ),
        (
            lambda: model.simulate(
                *state, 0.1, drives=[rb.Sampled(forces(derivatives=None), period=0.01, joints=["link1"])]
            ),
            "it has parameter_derivatives, which Sampled does not use",
        ),
        (
            lambda: rb.fit(model, rb.Measurement([0.0, 0.1], [START[:2]] * 2), ["law.parameters"], drives=[forces()]),
            "no parameter 'law.parameters'|law",
        ),
    ):
        with pytest.raises(rb.ArgumentError, match=message):
            call()
    with pytest.raises(rb.UnknownNameError, match="law"):
        model.simulate(*state, 0.1, drives=[forces()], derivatives=["law.parameters.3"])
    motion = model.simulate(
        *(np.tile(x, (1, 1)) for x in state),
        0.2,
        drives=[forces(parameter_derivatives=fails_late)],
        derivatives=["law.parameters"],
        on_failure="ignore",
    )
    assert motion.status[0] == rb.Status.USER_FUNCTION_FAILED
    assert "with parameter_derivatives 'fails_late' raised ValueError: no derivatives there" in str(motion.message)
