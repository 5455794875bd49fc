"""Controller models in compiled lanes: torques follow from the controller model, the motion from the mechanism."""

import numpy as np
import pytest

import rbchain as rb

BATCH = 13
REFERENCE, KP, KD = 0.4, 30.0, 8.0


def arm():
    return rb.Model.serial_chain(3)


def varied(seed):
    numbers = np.random.default_rng(seed).uniform(0.7, 1.4, (BATCH, 3))
    return arm().vary(mass=arm().mass * numbers, gravity=[0, -10, 0] * numbers)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "controller"),
    [(arm(), arm()), (varied(0), arm()), (arm(), varied(1)), (varied(0), varied(1)), (varied(0), "own")],
    ids=["one for all", "samples differ", "controllers differ", "both differ", "own"],
)
def test_computed_torques_equal_the_inverse_dynamics_of_the_controller_model(mechanism, controller):
    q0 = np.random.default_rng(2).normal(size=(BATCH, 3))
    drives = [
        rb.ComputedTorque(name, REFERENCE, kp=KP, kd=KD, controller_model=controller) for name in arm().joint_names
    ]
    settings = {"drives": drives, "method": "rk4", "step": 0.01, "save_at": 4}
    motion = mechanism.simulate(q0, np.zeros_like(q0), 0.3, **settings)
    known = mechanism if controller == "own" else controller
    wanted = KP * (REFERENCE - motion.q) - KD * motion.qd
    torques = known[..., None].inverse_dynamics(motion.q, motion.qd, wanted)
    moved = mechanism[..., None].inverse_dynamics(motion.q, motion.qd, motion.qdd)
    # both compute the same sums of forces, about ten per link
    allowed = 200 * np.finfo(float).eps * np.abs(torques).max()
    np.testing.assert_allclose(motion.tau, torques, rtol=0, atol=allowed)
    np.testing.assert_allclose(motion.tau, moved, rtol=0, atol=allowed)
    # neither the other lanes nor the index in the batch change a bit
    part = slice(5, 8)
    known = part_of(controller, part)
    drives = [rb.ComputedTorque(name, REFERENCE, kp=KP, kd=KD, controller_model=known) for name in arm().joint_names]
    some = part_of(mechanism, part).simulate(q0[part], np.zeros_like(q0[part]), 0.3, **{**settings, "drives": drives})
    np.testing.assert_array_equal(some.q, motion.q[part])
    np.testing.assert_array_equal(some.tau, motion.tau[part])


def part_of(model, part):
    """Return the model of some of the samples."""
    if isinstance(model, str) or not model.batch_shape:
        return model
    return arm().vary(mass=model.mass[part], gravity=model.gravity[part])


def test_a_controller_model_varied_by_equal_values_acts_like_the_shared_model():
    """Compiled code then treats both models as varied."""
    q0 = np.random.default_rng(2).normal(size=(BATCH, 3))
    same = arm().vary(mass=np.tile(arm().mass, (BATCH, 1)))
    found = []
    for model in (arm(), same):
        drives = [
            rb.PID(n, REFERENCE, kp=KP, kd=KD, gravity_compensation=True, controller_model=model)
            for n in arm().joint_names
        ]
        found.append(
            arm().simulate(q0, 0 * q0, 0.3, drives=drives, method="rk4", step=0.01, on_failure="ignore", save_at=2).q
        )
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-14)
