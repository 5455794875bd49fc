"""Drives that `rb.save` writes to MJCF files as actuators, compared with MuJoCo's own motion and read again."""

import warnings

import mujoco
import numpy as np
import pytest

import rbchain as rb

plain = pytest.mark.plain_python
STEP, STEPS = 1e-3, 25
U = rb.Input("u", lower=-1.0, upper=2.0)
BRAKE = rb.Input("brake", lower=0.0)
#: Drives and values of their inputs.
DRIVES = {
    "force": ([rb.PrescribedForce("turn", 2.0 * U + 0.5)], {"u": 0.7}),
    "constant force": ([rb.PrescribedForce("turn", 0.7)], {}),
    "clipped": ([rb.PrescribedForce("turn", 3.0 * U, limit=1.5)], {"u": 0.7}),
    "servo": ([rb.PID("slide", U, kp=20.0, kd=0.5, limit=6.0, feedforward=0.3)], {"u": 0.2}),
    "servo with a feedforward of its input": ([rb.PID("turn", 0.5 * U + 0.1, kp=9.0, feedforward=U)], {"u": -0.4}),
    "fixed reference": ([rb.PID("turn", 0.4, kp=20.0, kd=0.5, name="spring")], {}),
    "damper": ([rb.PID("slide", 0.0, kp=0.0, kd=0.1 + 2.0 * BRAKE)], {"brake": 0.6}),
    "spring with an input": ([rb.PID("turn", 0.3, kp=1.0 + 4.0 * BRAKE, kd=0.2)], {"brake": 1.5}),
    "lag": ([rb.PID("turn", 0.0, kp=2.0, kd=0.1, feedforward=3.0 * U, feedforward_time_constant=0.01)], {"u": 0.9}),
    "several of a joint": ([rb.PrescribedForce("turn", U), rb.PID("turn", BRAKE, kp=3.0)], {"u": 0.4, "brake": 0.2}),
    "joint with two degrees of freedom": ([rb.PID("wrist", U, kp=3.0, kd=0.1, dof=1)], {"u": 0.4}),
}
LOST = {
    "signal": rb.PrescribedForce("turn", rb.Signal.sines(1.0, 2.0)),
    "noise": rb.PrescribedForce("turn", rb.Signal.noise(1.0, (0.1, 10.0))),
    "integral": rb.PID("turn", U, kp=1.0, ki=2.0),
    "two inputs": rb.PID("turn", U, kp=1.0, feedforward=BRAKE),
    "square of an input": rb.PID("turn", BRAKE, kp=BRAKE),
    "lag of a constant": rb.PID("turn", 0.0, kp=1.0, feedforward=U + 1.0, feedforward_time_constant=0.1),
    "gravity compensation": rb.PID("turn", U, kp=1.0, gravity_compensation=True),
    "acceleration": rb.PrescribedAcceleration("turn", 1.0),
    "ball": rb.PrescribedForce("ball", U, dof=1),
}


def machine(drives):
    builder = rb.ModelBuilder(name="machine", gravity=(0, 0.2, -9.81))
    rod = rb.Inertia.box((0.4, 0.1, 0.05), mass=1.0, cg=(0.2, 0.0, 0.02))
    effort = rb.JointLimits(effort=0.5)  # which does not act on drives
    builder.add_body("one", joint=rb.Revolute((0, 1, 0)), joint_name="turn", inertia=rod, limits=effort)
    place = rb.Pose((0.4, 0, 0))
    builder.add_body(
        "two", parent="one", joint=rb.Prismatic((1, 0, 0)), joint_name="slide", placement=place, inertia=rod
    )
    builder.add_body("three", parent="two", joint=rb.Universal(), joint_name="wrist", placement=place, inertia=rod)
    builder.add_body("four", parent="three", joint=rb.Spherical(), joint_name="ball", placement=place, inertia=rod)
    for drive in drives:
        builder.add_drive(drive)
    return builder.build()


def saved(model, file):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rb.save(model, file)
    return " ".join(str(warning.message) for warning in caught)


def end_of(model, values):
    q, qd = model.neutral(), np.linspace(-0.5, 0.5, model.nv)
    stepper = model.stepper(q, qd, method="rk4", step=STEP)
    for name, value in values.items():
        stepper.inputs[name][...] = value
    stepper.step(STEPS)
    return np.concatenate([stepper.q, stepper.qd])


@plain
@pytest.mark.parametrize("case", DRIVES)
def test_a_saved_drive_moves_the_model_in_mujoco_and_after_reading_it(tmp_path, case):
    drives, values = DRIVES[case]
    model, file = machine(drives), tmp_path / "machine.xml"
    assert "drives" not in saved(model, file)
    expected = end_of(model, values)
    engine = mujoco.MjModel.from_xml_path(str(file))
    engine.opt.integrator, engine.opt.timestep = int(mujoco.mjtIntegrator.mjINT_RK4), STEP
    data = mujoco.MjData(engine)
    data.qvel[:] = np.linspace(-0.5, 0.5, engine.nv)
    for name, value in values.items():
        data.ctrl[mujoco.mj_name2id(engine, mujoco.mjtObj.mjOBJ_ACTUATOR, name)] = value
    mujoco.mj_step(engine, data, STEPS)
    found = np.concatenate([data.qpos[:4], data.qvel])
    own = np.concatenate([expected[:4], expected[model.nq :]])
    # steps of ball joints differ in the fourth order
    np.testing.assert_allclose(found, own, rtol=0, atol=1e-8 * np.abs(own).max())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = rb.load(file)
    assert len(again.drives) == len(drives)
    np.testing.assert_allclose(end_of(again, values), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    assert np.abs(expected - end_of(machine([]), {})).max() > 1e-3


@plain
@pytest.mark.parametrize("case", LOST)
def test_a_drive_that_mjcf_does_not_have_is_named(tmp_path, case):
    message = saved(machine([LOST[case]]), tmp_path / "machine.xml")
    assert f"drives ({LOST[case].label()})" in message
    assert "<actuator>" not in (tmp_path / "machine.xml").read_text()


@plain
def test_drives_with_a_common_input_are_named(tmp_path):
    drives = [rb.PrescribedForce("turn", U), rb.PrescribedForce("slide", 2.0 * U)]
    message = saved(machine(drives), tmp_path / "machine.xml")
    assert "drives (PrescribedForce of joint 'turn', PrescribedForce of joint 'slide')" in message


@plain
def test_values_of_inputs_and_effort_limits_are_named(tmp_path):
    message = saved(machine([rb.PID("turn", rb.Input("u", 0.3), kp=1.0)]), tmp_path / "machine.xml")
    assert "the values of inputs 'u'" in message
    assert "the effort limit of joint 'turn'" in message
