"""The samples of a stepper are independent: each moves as alone, and a sample that ends does not affect others."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import SimulationError, SimulationWarning

from .mechanisms import slide
from .stepped import EPISODE, MASSES, QD, SAMPLES, STEP, Q, arm, check_end, controllers, fresh

pytestmark = pytest.mark.plain_python


@pytest.mark.slow_cases("rk45", "rosenbrock")
@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau", "rk45", "rosenbrock"])
def test_a_sample_moves_alone_as_in_a_batch(method):
    is_adaptive = method in ("rk45", "rosenbrock")
    settings = {"method": method} | ({"rtol": 1e-5} if is_adaptive else {"step": STEP})

    def end_of(model, q, qd, ids):
        stepper = model.stepper(q, qd, drives=controllers(ids), **settings)
        for piece in (0.003, 0.005):
            stepper.advance(piece)
        return stepper.q, stepper.qd

    of_grid = (x.reshape(2, 2, 2) for x in (MASSES, Q, QD))
    model, *states = rb.Model.serial_chain(2).vary(mass=next(of_grid)), *of_grid
    batch, grid = end_of(arm(), Q, QD, range(SAMPLES)), end_of(model, *states, np.arange(SAMPLES).reshape(2, 2))
    for k in range(SAMPLES):
        model = rb.Model.serial_chain(2).vary(mass=MASSES[k])
        single, row = end_of(model, Q[k], QD[k], k), end_of(arm(slice(k, k + 1)), Q[[k]], QD[[k]], [k])
        for alone, of_row, of_batch, of_grid in zip(single, row, batch, grid, strict=True):
            assert alone.shape == (2,)
            np.testing.assert_array_equal(alone, of_batch[k])
            np.testing.assert_array_equal(of_row[0], of_batch[k])
            np.testing.assert_array_equal(of_grid[k // 2, k % 2], of_batch[k])


def test_batches_of_any_shape():
    model = rb.Model.serial_chain(2)
    stepper = model.stepper(np.zeros((2, 3, 2)), step=STEP)
    stepper.tau[1, 2] = 1.0
    stepper.step()
    stepper.reset((0, slice(None)), q=[0.1, 0.2])
    assert stepper.q.shape == stepper.qd.shape == stepper.tau.shape == (2, 3, 2)
    assert stepper.t.shape == stepper.status.shape == stepper.episodes.shape == (2, 3)
    np.testing.assert_array_equal(stepper.t, [[0.0] * 3, [STEP] * 3])
    np.testing.assert_array_equal(stepper.episodes, [[1] * 3, [0] * 3])
    np.testing.assert_array_equal(stepper.q[0], [[0.1, 0.2]] * 3)
    for empty in (np.zeros((0, 2)), np.zeros((3, 0, 2))):
        stepper = model.stepper(empty, step=STEP, drives=[rb.PID("link1", 0.2, kp=1.0, ki=1.0)])
        stepper.step(3)
        stepper.reset()
        stepper.restore(stepper.save())
        assert stepper.q.shape == empty.shape
        assert stepper.status.shape == empty.shape[:-1]


def check_others(stepper, ended, steps):
    for k in set(range(SAMPLES)) - set(ended):
        check_end(stepper, k, fresh(k, steps, [k]))


def test_a_diverging_sample_keeps_its_last_state_until_it_is_reset():
    stepper = arm().stepper(Q, QD, step=STEP, drives=controllers())
    stepper.step(2)
    before = stepper.q[2].copy(), stepper.qd[2].copy()
    stepper.tau[2] = 1e200
    with pytest.warns(SimulationWarning, match="1 of 4 samples failed. Sample 2 reached 0.002 s"):
        stepper.step(3)
    stepper.step(4)  # without a further warning
    assert stepper.status.tolist() == [rb.Status.DONE, rb.Status.DONE, rb.Status.NOT_FINITE, rb.Status.DONE]
    np.testing.assert_allclose(stepper.t, [0.009, 0.009, 0.002, 0.009], rtol=1e-14)
    np.testing.assert_array_equal(stepper.q[2], before[0])
    np.testing.assert_array_equal(stepper.qd[2], before[1])
    check_others(stepper, [2], 9)
    stepper.reset(2)
    stepper.step(4)
    check_others(stepper, [2], 13)
    check_end(stepper, 2, fresh(2, 4, [2 + EPISODE]))
    assert (stepper.status == rb.Status.DONE).all()


def fails_in_a_sample(t, q, qd, parameters, out):
    if t > parameters[0]:
        raise ValueError("too late")
    out[0] -= 0.1 * qd[0]


@pytest.mark.parametrize("is_sampled", [True, False])
def test_a_user_function_that_raises_ends_its_sample(is_sampled):
    limits = np.array([9.0, 0.0035, 9.0, 9.0])[:, None]

    def drives(part=slice(None)):
        user = rb.UserForces(fails_in_a_sample, parameters=limits[part])
        return [rb.Sampled(user, period=2e-3)] if is_sampled else [user]

    stepper = arm().stepper(Q, QD, step=STEP, drives=drives())
    stepper.step(3)
    with pytest.warns(SimulationWarning, match="(?s)Sample 1 reached 0.00[34] s: .*too late"):
        stepper.step(4)
    assert stepper.status[1] == rb.Status.USER_FUNCTION_FAILED
    for k in (0, 2, 3):
        check_end(stepper, k, fresh(k, 7, drives=drives(slice(k, k + 1))))
    end = fresh(1, 7, drives=drives(slice(1, 2)))
    check_end(stepper, 1, end)
    np.testing.assert_allclose(stepper.t[1], end.end_time[0], rtol=1e-14)
    stepper.reset([1])
    stepper.step(3)
    check_end(stepper, 1, fresh(1, 3, drives=drives(slice(1, 2))))


def test_a_call_that_is_interrupted_changes_nothing():
    """Two samples are ahead of the others, so the call has two parts. The second one is interrupted."""
    stops = [9.0]

    def hold(t, q, qd, parameters):
        if t > stops[0]:
            raise KeyboardInterrupt
        return -0.1 * qd

    drives = [rb.Sampled(rb.UserForces(hold), period=2e-3), controllers()[0]]
    stepper = arm().stepper(Q, QD, step=STEP, drives=drives)
    stepper.step(5)
    stepper.reset([0, 1])
    stepper.step(3)
    before, stops[0] = stepper.save(), 9.5e-3
    with pytest.raises(KeyboardInterrupt):
        stepper.step(4)
    for name in ("q", "qd", "t", "status"):
        np.testing.assert_array_equal(getattr(stepper, name), getattr(before, name))
    stops[0] = 9.0
    stepper.step(4)
    for k, steps, number in ((0, 7, EPISODE), (1, 7, 1 + EPISODE), (2, 12, 2), (3, 12, 3)):
        check_end(stepper, k, fresh(k, steps, drives=[drives[0], controllers([number])[0]]))


def test_failures_raise_or_are_ignored():
    settings = {"step": STEP, "tau": [[0.0, 0.0], [1e200, 0.0]]}
    model, start = rb.Model.serial_chain(2), np.zeros((2, 2))
    with pytest.raises(SimulationError, match="1 of 2 samples failed"):
        model.stepper(start, on_failure="raise", **settings).step()
    ignoring = model.stepper(start, on_failure="ignore", **settings)
    ignoring.step()
    assert ignoring.status.tolist() == [rb.Status.DONE, rb.Status.NOT_FINITE]
    with pytest.raises(SimulationError, match="It reached 0 s"):
        model.stepper([0.0, 0.0], step=STEP, tau=[1e200, 0.0]).step()


@pytest.mark.parametrize("method", ["rk4", "rk45"])
def test_an_event_ends_a_sample_at_its_time(method):
    """Slides with constant velocities: sample k is at 0.05 m after 0.05 / v_k."""
    v = np.array([[4.0], [1.0], [8.5]])
    settings = {"step": STEP} if method == "rk4" else {}
    events = [rb.Event("slide", value=0.05, stop=True)]
    stepper = slide().stepper(np.zeros((3, 1)), v, method=method, events=events, **settings)
    for _ in range(5):
        stepper.advance(4 * STEP)
    assert stepper.status.tolist() == [rb.Status.STOPPED, rb.Status.DONE, rb.Status.STOPPED]
    np.testing.assert_allclose(stepper.t, [0.0125, 0.02, 0.05 / 8.5], rtol=1e-12)
    np.testing.assert_allclose(stepper.q[:, 0], [0.05, 0.02, 0.05], rtol=1e-12)
    stepper.reset([0])
    stepper.advance(4 * STEP)
    np.testing.assert_allclose(stepper.t, [0.004, 0.024, 0.05 / 8.5], rtol=1e-12)
    np.testing.assert_allclose(stepper.q[:, 0], [0.016, 0.024, 0.05], rtol=1e-12)
