"""The method "implicit": its recurrence, order and stability."""

import numpy as np
import pytest

import rbchain as rb

from .models import MASS, TIGHT, columns, everything, floater, slider, start


@pytest.mark.parametrize("asymmetry", [0.0, 2.5, -3.0])
def test_an_implicit_motion_follows_its_recurrence(asymmetry):
    """(m + h D + h^2 K) (v1 - v0) / h = F(x0, v0, t0) - h K v0, x1 = x0 + h v1; D and K contain all stiff terms."""
    k, c, d, f, fs, vs, v0 = 400.0, 50.0, 30.0, 3.0, 4.0, 0.1, 0.01
    hard, dissipation, kp, kd, h = 1e4, 0.5, 100.0, 20.0, 0.01
    model = slider(
        stiffness=k, cubic_stiffness=c, rest_position=0.1, damping=d, friction=f, static_friction=fs, stop_lower=-0.3,
        stribeck_velocity=vs, friction_velocity=v0, stop_upper=0.3, limit_stiffness=hard, limit_damping=dissipation,
        friction_asymmetry=asymmetry,
    )  # fmt: skip
    x, v = np.array([0.0, 0.25, -0.5, 0.35]), np.array([3.0, 4.0, -1.0, -1.5])
    q, qd, count, limit = x[:, None], v[:, None], 40, np.array([np.inf, np.inf, 60.0, np.inf])
    for n in range(count):
        side, depth = np.sign(x), np.maximum(np.abs(x) - 0.3, 0.0)
        pressing = np.maximum(1 + dissipation * side * v, 0.0)
        rubbing = f + (fs - f) / (1 + (v / vs) ** 2) + asymmetry * np.sign(v)
        control = kp * (0.4 * np.sin(20 * n * h) - x) + kd * (8.0 * np.cos(20 * n * h) - v)
        free = np.abs(control) < limit
        F = np.clip(control, -limit, limit) - k * (x - 0.1) - c * (x - 0.1) ** 3 - d * v
        F += -rubbing * v / np.hypot(v, v0) - side * hard * depth * pressing
        K = k + 3 * c * (x - 0.1) ** 2 + kp * free + np.where(depth > 0, hard * pressing, 0.0)
        D = (
            d
            + rubbing * v0**2 / np.hypot(v, v0) ** 3
            + kd * free
            + np.where(pressing > 0, hard * depth * dissipation, 0)
        )
        v = v + h * (F - h * K * v) / (MASS + h * D + h**2 * K)
        x = x + h * v
        if n in (0, 4, count - 1):
            drive = rb.PID("slide", rb.Signal.sines(0.4, 20.0), kp=kp, kd=kd, limit=limit)
            motion = model.simulate(q, qd, (n + 1) * h, drives=[drive], method="implicit", step=h, save_at=2)
            assert (motion.steps == n + 1).all()
            np.testing.assert_allclose(motion.q[:, 1, 0], x, rtol=0, atol=1e-11)
            np.testing.assert_allclose(motion.qd[:, 1, 0], v, rtol=0, atol=1e-9)


def test_the_implicit_method_converges_with_first_order():
    model, n = floater(stops=False), 3
    q, qd = start(model, n)
    actions = everything(n)
    actions.pop("events")
    reference = model.simulate(q, qd, 0.25, save_at=2, **actions, **TIGHT)
    steps = 2.0 ** -np.arange(9, 13)
    ends = [model.simulate(q, qd, 0.25, method="implicit", step=step, save_at=2, **actions) for step in steps]
    errors = np.array([np.abs(end.q[:, 1] - reference.q[:, 1]).max(-1) for end in ends])
    orders = np.log2(errors[:-1] / errors[1:])
    assert np.abs(orders[-1] - 1).max() < 0.1, orders


def test_the_implicit_method_is_stable_for_any_stiffness():
    """Damping, springs, gains and stops are a million times too stiff for an explicit step; all come to rest."""
    wild = {"damping": 1e6, "stiffness": 1e9, "limit_stiffness": 1e9, "stop_upper": 0.01, "friction": 1e5}
    motion = slider(**wild).simulate(
        columns(1.0, 0.0, -0.5), columns(0.0, 10.0, 3.0), 20.0, drives=[rb.PID("slide", 0.0, kp=1e8, kd=1e5)],
        method="implicit", step=0.1, save_at=2,
    )  # fmt: skip
    assert motion.success
    assert np.abs(motion.q[:, 1]).max() < 1e-3
    assert np.abs(motion.qd[:, 1]).max() < 1e-3


def test_events_are_found_in_implicit_steps_too():
    motion = slider().simulate(
        np.zeros((2, 1)),
        columns(0.5, 2.0),
        1.0,
        method="implicit",
        step=0.3,
        events=[rb.Event("slide", value=0.4, stop=True)],
        save_at=2,
    )
    np.testing.assert_allclose(motion.events[0].t[:, 0], [0.8, 0.2], rtol=0, atol=1e-11)
