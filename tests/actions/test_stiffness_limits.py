"""The method "rk4" reports steps that are too long for the stiffness."""

import numpy as np
import pytest

import rbchain as rb

from .models import DONE, MASS, TOO_STIFF, slider


@pytest.mark.parametrize(
    ("passive", "gains", "factor"),
    [
        ({"damping": 2.7853 * MASS / 0.1}, {}, 1.0),
        ({"stiffness": 8.0 * MASS / 0.01}, {}, 1.0),
        ({}, {"kp": 8.0 * MASS / 0.01}, 1.0),
        ({}, {"kp": 1.0, "kd": 2.7853 * MASS / 0.1}, 1.0),
    ],
)
@pytest.mark.parametrize("share", [0.999, 1.001])
def test_rk4_reports_a_step_that_is_too_long_for_the_stiffness(passive, gains, factor, share):
    """The limits of stability are a damping of 2.7853 m / h and a stiffness of 8 m / h^2."""
    model = slider(**{name: value * share for name, value in passive.items()})
    gains = {name: value * share for name, value in gains.items()}
    drives = [rb.PID("slide", 0.0, **gains)] if gains else []
    motion = model.simulate(
        np.zeros((2, 1)),
        np.full((2, 1), 0.1),
        1.0,
        method="rk4",
        step=0.1,
        drives=drives,
        on_failure="ignore",
        save_at=2,
    )
    assert motion.status.tolist() == ([TOO_STIFF] * 2 if share > 1 else [DONE] * 2)
    assert np.isnan(motion.q[:, 1]).all() == (share > 1)
    assert motion.success == (share < 1)
    if share > 1:
        assert "implicit" in motion.message


@pytest.mark.plain_python
@pytest.mark.parametrize("omega", [0.5, 5.0])
def test_rk4_reports_a_stop_that_is_too_stiff_even_if_it_acts_within_a_step_only(omega):
    """Slides move against an elastic stop. The energy of those that reach it is an error of rk4 if h omega > 2.83."""
    step, start, speed = 0.1, -np.linspace(0.0, 0.3, 20)[:, None], 2.0
    model = slider(limit_stiffness=MASS * (omega / step) ** 2, stop_upper=0.3)
    motion = model.simulate(
        start, np.full_like(start, speed), 1.0, method="rk4", step=step, on_failure="ignore", save_at=2
    )
    if omega > 1:
        assert (motion.status == TOO_STIFF).all()
        assert (motion.end_q[:, 0] < 0.3).all()  # the last valid state
    else:
        assert (motion.status == DONE).all()
        np.testing.assert_allclose(motion.qd[:, -1, 0], -speed, rtol=0.02)


@pytest.mark.plain_python
@pytest.mark.parametrize("pull", [0.0, 4.0, 15.0])
def test_rk4_reports_friction_that_stops_a_joint_within_less_than_a_step(pull):
    """Friction of 5 N brings a slide to rest if the pull back is smaller. Else the slide turns, and rk4 is valid."""
    model, time = slider(friction=5.0, friction_velocity=1e-4), MASS / (5.0 + pull)
    step = time / 7.3
    motion = model.simulate(
        [0.0], [1.0], 2 * time, method="rk4", step=step, tau=[-pull], on_failure="ignore", save_at=2
    )
    if pull < 5.0:
        assert motion.status == TOO_STIFF
        assert abs(motion.end_time - time) <= 2 * step
    else:
        assert motion.status == DONE
        # the error of the step that passes the velocity zero is at most the one of a friction with the wrong sign
        np.testing.assert_allclose(motion.qd[-1], -(pull - 5.0) * time / MASS, rtol=0, atol=2 * 5.0 * step / MASS)


@pytest.mark.plain_python
def test_rk4_passes_the_velocity_zero_if_its_step_resolves_the_friction():
    """The largest slope of the friction is 2 / h, below the limit 2.785 / h."""
    model = slider(friction=5.0, friction_velocity=0.1)
    motion = model.simulate([0.0], [1.0], 3 * MASS, method="rk4", step=2.0 * 0.1 * MASS / 5.0, save_at=2)
    assert motion.status == DONE
    assert abs(motion.qd[-1, 0]) < 1e-3


def test_a_sample_too_stiff_for_rk4_does_not_change_others():
    """The cubic spring is too stiff only in samples that stretch it far enough."""
    model = slider(cubic_stiffness=100.0)
    q = np.linspace(0.1, 0.5, 9)[:, None]
    calm = model.simulate(q, 0 * q, 1.0, method="rk4", step=0.1, save_at=3)
    assert (calm.status == DONE).all()
    wild = q.copy()
    wild[4] = 4.0
    motion = model.simulate(wild, 0 * q, 1.0, method="rk4", step=0.1, save_at=3, on_failure="ignore")
    assert motion.status[4] == TOO_STIFF
    assert np.isnan(motion.q[4, 1:]).all()
    assert np.array_equal(np.delete(motion.q, 4, 0), np.delete(calm.q, 4, 0))
