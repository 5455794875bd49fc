"""User functions as forces."""

import numba
import numpy as np
import pytest

import rbchain as rb

from .models import BOTH, arm, slider, start, wave


def follow(t, q, qd, parameters, out):
    kp, kd, a, w = parameters
    out[0] += kp * (a * np.sin(w * t) - q[0]) + kd * (a * w * np.cos(w * t) - qd[0])
    out[3] += 0.5 * q[3]


@pytest.mark.parametrize("settings", BOTH)
def test_a_user_force_acts_like_the_equivalent_drive(settings):
    """With parameters per sample, together with a constant force, another drive and a spring."""
    model = arm()
    parameters = np.array([[5.0, 1.0, 0.3, 2.0], [3.0, 0.5, 0.1, 4.0], [8.0, 0.2, 0.2, 1.0]])
    kp, kd, a, w = parameters.T
    last, tau = model.joint_names[2], np.array([0.0, 0.1, 0.0, 0.0])
    other = rb.PrescribedForce(last, wave(0), dof=0)
    ours = [rb.PID(model.joint_names[0], rb.Signal.sines(a[:, None], w[:, None]), kp=kp, kd=kd), other]
    q, qd = start(model, 3)
    theirs = [rb.UserForces(follow, parameters=parameters), other]
    # the spring with negative stiffness that is equivalent to `follow`
    away = model.vary(stiffness=[0, 0, 0, -0.5])
    one = away.simulate(q, qd, 0.5, tau=tau, drives=ours, save_at=4, **settings)
    two = model.simulate(q, qd, 0.5, tau=tau, drives=theirs, save_at=4, **settings)
    np.testing.assert_allclose(two.q, one.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(two.tau, one.tau + away.passive_forces(one.q, one.qd), rtol=0, atol=1e-8)
    compiled = [rb.UserForces(numba.njit(follow), parameters=parameters), other]
    assert np.array_equal(two.q, model.simulate(q, qd, 0.5, tau=tau, drives=compiled, save_at=4, **settings).q)


def test_a_function_that_cannot_be_compiled_is_refused():
    def asks(t, q, qd, parameters, out):
        out[0] = float(input("force?"))

    def short(t, q):
        return q

    for function in (asks, short):
        for actions in ({"drives": [rb.UserForces(function)]}, {"events": [rb.Event(function=function, stop=True)]}):
            with pytest.raises(
                rb.ArgumentError, match=r"cannot be compiled as a function\(t, q, qd, parameters, out\)"
            ):
                slider().simulate(np.zeros((1, 1)), np.zeros((1, 1)), 1.0, **actions)
