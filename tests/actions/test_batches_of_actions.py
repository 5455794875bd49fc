"""Samples with drives, forces and events do not depend on their batch, and other actions compile nothing."""

from functools import partial

import numpy as np
import pytest

import rbchain as rb
from rbchain.drivers.trajectories import integrate_batch

from .models import everything, floater, slider, start


@pytest.mark.parametrize("settings", [{"rtol": 1e-7, "atol": 1e-9}, {"method": "rk4", "step": 0.005}])
def test_no_bit_of_a_driven_sample_depends_on_its_batch(settings):
    model, n = floater(), 43
    q, qd = start(model, n)
    whole = model.simulate(q, qd, 0.5, save_at=4, **everything(n), **settings)
    assert whole.success
    before = rb.get_num_threads()
    for part, threads in ((slice(17, 18), 1), (slice(20, 31), 1), (slice(None, None, -1), 2)):
        rb.set_num_threads(threads)
        some = model.simulate(q[part], qd[part], 0.5, save_at=4, **everything(n, part), **settings)
        for name in ("q", "qd", "tau", "qdd", "status", "steps", "rejections"):
            assert np.array_equal(getattr(whole, name)[part], getattr(some, name)), name
        for one, other in zip(whole.events, some.events, strict=True):
            for name in ("count", "t", "q", "qd"):
                assert np.array_equal(getattr(one, name)[part], getattr(other, name), equal_nan=True), name
    rb.set_num_threads(before)
    assert whole.events[0].count.any()
    happened = np.isfinite(whole.events[0].t)
    assert np.abs(np.linalg.norm(whole.events[0].q[happened, 3:7], axis=-1) - 1).max() < 1e-14
    # two axes of the batch
    folded = {"drives": [rb.PID("arm", 0.1, kp=np.arange(6.0).reshape(2, 3))]}
    flat = {"drives": [rb.PID("arm", 0.1, kp=np.arange(6.0))]}
    one = model.simulate(q[:6].reshape(2, 3, -1), qd[:6].reshape(2, 3, -1), 0.1, **folded, **settings)
    two = model.simulate(q[:6], qd[:6], 0.1, **flat, **settings)
    assert np.array_equal(one.q.reshape(two.q.shape), two.q)
    assert np.array_equal(one.tau.reshape(two.tau.shape), two.tau)


def test_changing_values_or_types_of_actions_does_not_recompile():
    """Other drives, signals and forces of other models run the same compiled code, because actions are data."""
    motion_under = partial(slider().simulate, np.zeros((3, 1)), np.ones((3, 1)), 0.1)
    motion_under(drives=[rb.PrescribedForce("slide", 1.0)])
    compiled = len(integrate_batch.signatures)
    motion_under(drives=[rb.PID("slide", rb.Signal.table([0, 0.1, 0.2], [0, 1, 0]), kp=np.arange(3.0), ki=1.0)])
    motion_under(drives=[rb.PrescribedPosition("slide", rb.Signal.sines([1.0, 2.0], [3.0, 4.0]))])
    motion_under(
        drives=[rb.UserForces(lambda t, q, qd, parameters, out: None)], events=[rb.Event("slide", value=1.0, stop=True)]
    )
    motion_under(forces=[rb.Wrench(slider().body_names[0], force=(1.0, 0, 0))])
    floater().simulate(*start(floater(), 3), 0.01, save_at=2)
    assert len(integrate_batch.signatures) == compiled
