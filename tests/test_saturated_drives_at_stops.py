"""Steps of "moreau" with a PID whose damping is stiff and whose force reaches its limit, beside joint stops.

A force at its limit has no damping, so the linearly implicit change of the velocity jumps where the force reaches it.
"""

import numpy as np
import pytest

import rbchain as rb

plain = pytest.mark.plain_python
STOP = 0.5  # rad


def rod(moment=1 / 12):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    limits = rb.JointLimits(lower=-STOP, upper=STOP)
    builder.add_body("rod", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(1.0, inertia=[moment] * 3), limits=limits)
    return builder.build()


WAVE = 0.9 * rb.Signal.sines(1.0, 8.0)
LEAVING = rb.Signal.table([0.0, 0.1, 0.12, 1.0], [0.8, 0.8, -0.3, -0.3], interpolation="linear")
#: kp, kd, limit, step, reference and duration, at which the steps failed.
CASES = {
    "from rest": (24.2, 153.4, 3.82, 5e-3, WAVE, 0.1),
    "to a stop": (2965.0, 171.0, 122.6, 5e-3, WAVE, 0.1),
    "short time constant": (4.78, 203.0, 292.7, 1e-3, WAVE, 0.2),
    "from a stop": (200.0, 40.0, 20.0, 5e-3, LEAVING, 0.25),
    "from a stop in small steps": (200.0, 200.0, 20.0, 1e-3, LEAVING, 0.25),
}


@plain
@pytest.mark.parametrize("case", CASES)
def test_a_force_that_reaches_its_limit_in_a_step(case):
    """The adaptive method, which finds the times of impacts, is the reference.

    With a stiff damping, a step halves the error of the velocity. So the positions are as late as a few steps.
    """
    kp, kd, limit, step, reference, duration = CASES[case]
    model, drives = rod(), [rb.PID("rod", reference, kp=kp, kd=kd, limit=limit)]
    acting = {"drives": drives, "forces": model.hard_stops(), "duration": duration}
    exact = model.simulate([0.45], method="rk45", rtol=1e-6, **acting)
    motion = model.simulate([0.45], method="moreau", step=step, **acting, on_failure="ignore")
    assert exact.success and motion.success, motion.message
    largest = np.abs(model.simulate([0.45], method="moreau", step=step, save_at=51, **acting).qd).max()
    np.testing.assert_allclose(motion.end_q, exact.end_q, rtol=0, atol=4 * step * max(largest, 1.0))
    np.testing.assert_allclose(motion.end_qd, exact.end_qd, rtol=0, atol=0.1 * max(largest, 1.0))
