"""Actuators and keyframes of MJCF files, compared with MuJoCo's own motion."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

import rbchain as rb
from rbchain.io.mjcf import state_from_mujoco, state_to_mujoco

plain = pytest.mark.plain_python
STEP, STEPS = 1e-3, 25
#: Joints of all types, in MuJoCo's coordinates with a reference, and two fixed tendons.
MJCF = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="1e-3" integrator="RK4" gravity="0.3 0.2 -9.81"><flag contact="disable" {flag}/></option>
  <worldbody>
    <body name="a">
      <joint name="ja" axis="0 1 0" ref="0.2" damping="0.1" {ja}/>
      <geom size="0.1" mass="1" pos="0.2 0 0"/>
      <body name="b" pos="0.4 0 0">
        <joint name="jb" axis="0 1 0"/> <joint name="jc" axis="0 0 1"/>
        <geom size="0.1" mass="0.8" pos="0.2 0 0.1"/>
        <body name="d" pos="0.4 0 0">
          <joint name="ball" type="ball"/> <geom size="0.1" mass="0.6" pos="0.2 0.1 0"/>
        </body>
        <body name="e" pos="0.4 0.3 0">
          <joint name="slide" type="slide" ref="-0.1"/> <geom size="0.1" mass="0.5" pos="0.2 0.1 0"/>
        </body>
      </body>
    </body>
    <body name="f" pos="0 0 2"> <freejoint name="free"/> <geom size="0.1" mass="0.5"/> <site name="s"/> </body>
  </worldbody>
  <tendon>
    <fixed name="two"> <joint joint="jb" coef="0.7"/> <joint joint="slide" coef="-2"/> </fixed>
    <fixed name="one"> <joint joint="slide" coef="-2"/> </fixed>
    <fixed name="weak" actuatorfrclimited="true" actuatorfrcrange="-1 1"> <joint joint="slide" coef="1"/> </fixed>
    <spatial name="path"> <site site="s"/> <site site="t"/> </spatial>
  </tendon>
  <actuator>{actuators}</actuator>
  {more}
</mujoco>
""".replace('<body name="a">', '<site name="t"/><body name="a">')
#: Actuators that become drives, and one control for each.
DRIVES = {
    "motor": ('<motor name="m" joint="jb" gear="-3"/>', [0.4]),
    "limited control": ('<motor name="m" joint="jb" ctrlrange="-1 2"/>', [3.0]),
    "unlimited control": ('<motor name="m" joint="jb" ctrlrange="-1 2" ctrllimited="false"/>', [3.0]),
    "one-sided control": ('<motor name="m" joint="jb" ctrlrange="0.5 2"/>', [0.0]),
    "limited force": ('<motor name="m" joint="jb" forcerange="-1 2"/>', [-3.0]),
    "position": ('<position name="m" joint="ja" kp="20"/>', [1.2]),
    "damped position": ('<position name="m" joint="slide" kp="20" kv="3" gear="-2"/>', [0.3]),
    "critically damped position": ('<position name="m" joint="ja" kp="20" dampratio="1"/>', [0.3]),
    "position with a range": ('<position name="m" joint="ja" kp="90" forcerange="-2 5" ctrlrange="-1 1"/>', [1.2]),
    "velocity": ('<velocity name="m" joint="jc" kv="0.7" gear="2"/>', [0.9]),
    "general": (
        '<general name="m" joint="slide" gainprm="2" biastype="affine" biasprm="0.3 -4 -1" gear="0.5"/>',
        [-0.8],
    ),
    "affine gain that is constant": (
        '<general name="m" joint="jb" gaintype="affine" gainprm="2 0 0" biastype="affine" biasprm="0.3 0 0"/>',
        [0.5],
    ),
    "ball": ('<motor name="m" joint="ball" gear="0.1 0.2 -0.3" forcerange="-0.2 1"/>', [-0.7]),
    "tendon of one joint": ('<position name="m" tendon="one" kp="4" kv="0.2"/>', [0.6]),
    "tendon of two joints": ('<motor name="m" tendon="two" gear="1.5" forcerange="-0.5 2"/>', [-0.9]),
    "filter": ('<general name="m" joint="jb" dyntype="filter" dynprm="0.01" forcerange="-2 2" gainprm="3"/>', [0.9]),
    "exact filter": ('<motor name="m" joint="jb" gear="-2"/>'.replace("motor", 'general dyntype="filterexact"'), [0.4]),
    "position with a lag": (
        '<position name="m" joint="ja" kp="90" kv="2" timeconst="0.005" forcerange="-2 5" ctrlrange="-1 1"/>',
        [1.2],
    ),
    "lag with a constant force": (
        '<general name="m" joint="slide" gear="-0.5" dyntype="filter" dynprm="0.02" gainprm="2" biastype="affine"'
        ' biasprm="0.3 0 -1"/>',
        [0.8],
    ),
    "range of an activation": (
        '<general name="m" joint="jb" dyntype="filter" dynprm="0.01" ctrlrange="-1 1" actrange="-2 1"/>',
        [3.0],
    ),
    "motor of a tendon with a lag": ('<general name="m" tendon="two" dyntype="filter" dynprm="0.01"/>', [0.7]),
    "damper": ('<damper name="m" joint="jc" kv="2" ctrlrange="0 1" gear="-1.5" forcerange="-0.3 0.4"/>', [0.7]),
    "damper beyond its range": ('<damper name="m" joint="jb" kv="2" ctrlrange="0.5 1"/>', [3.0]),
    "damper of a tendon": ('<damper name="m" tendon="one" kv="0.2" ctrlrange="0 2"/>', [1.6]),
    "gains that depend on length and velocity": (
        '<general name="m" joint="slide" gear="-0.5" ctrlrange="-1 2" gaintype="affine" gainprm="3 -2 -1" '
        'biastype="affine" biasprm="0.3 -5 -4" forcerange="-1 3"/>',
        [1.3],
    ),
    "negative stiffness in the bias only": (
        '<general name="m" joint="ja" ctrlrange="1 2" gaintype="affine" gainprm="0 -9 0" biastype="affine" '
        'biasprm="0 8 0"/>',
        [1.5],
    ),
    "several": (
        '<position name="m" joint="ja" kp="5"/><motor joint="ja"/><motor joint="ja"/><damper name="w" joint="jc" kv="1"'
        ' ctrlrange="0 1"/>',
        [0.2, 0.3, -0.1, 0.5],
    ),
}
JOINTS = {
    "limited joint": ('actuatorfrcrange="-1 2"', '<motor name="m" joint="ja" forcerange="-4 1.5" gear="-2"/>', [3.0]),
    "joint beyond the range": ('actuatorfrcrange="3 4"', '<motor name="m" joint="ja" forcerange="-1 2"/>', [1.0]),
}
#: Actuators of MuJoCo 4.
NEW_DRIVES = {
    "pid": ('<pid name="m" joint="ja" kp="20" ki="300" kv="2" gear="-0.5" forcerange="-9 5"/>', [0.5, -0.6]),
    "pid within a range": ('<pid name="m" joint="ja" kp="20" ki="300" kv="2" forcerange="-90 50"/>', [0.5, 0.0]),
    "pid with a force": (
        '<pid name="m" joint="slide" kp="20" kv="2" input="pos vel ff" ctrlrange="-1 0.3"/>',
        [0.4, -0.6, 1.2],
    ),
    "pid of the velocity": ('<pid name="m" joint="jb" kv="2" input="vel"/>', [0.4]),
    "dcmotor": ('<dcmotor name="m" joint="jb" motorconst="0.5" resistance="2" gear="3"/>', [4.0]),
    "after a pid": ('<pid joint="ja" kp="0.1" ki="0.2"/><motor joint="jb" ctrlrange="-1 2"/>', [0.4, 0.1, 3.0]),
}
#: Actuators that the model leaves out, and the reasons in the warning.
LEFT_OUT = {
    "integrator": (
        '<intvelocity joint="ja" actrange="-1 1"/>',
        "its activation integrates the control; use rb.PID with the integrated reference",
    ),
    "range of an activation": (
        '<general joint="ja" dyntype="filter" dynprm="0.1" actrange="0.2 1"/>',
        "actrange clips its lagged control; remove actrange",
    ),
    "lag with a one-sided range": (
        '<general joint="ja" dyntype="filter" dynprm="0.1" forcerange="0 1"/>',
        "a lag, and a range of forces that is not symmetric around its constant force; use rb.UserForces",
    ),
    "wide one-sided range": (
        '<motor joint="ja" forcerange="0 1e20"/>',
        "a range of forces that is not symmetric and wider than 1e+08; use a smaller forcerange",
    ),
    "infinite one-sided range": (
        '<position joint="ja" kp="2" forcerange="-0.1 inf"/>',
        "a range of forces that is not symmetric and wider than 1e+08; use a smaller forcerange",
    ),
    "muscle": (
        '<muscle joint="ja" lengthrange="0 1"/>',
        "its activation is the activation of a muscle; use rb.Sampled with a function",
    ),
    "lag of a damper": (
        '<general joint="ja" gaintype="affine" gainprm="0 0 -1" ctrlrange="0 1" dyntype="filter" dynprm="0.1"/>',
        "a lag, and a gain that depends on the position or velocity; use rb.UserForces",
    ),
    "damper without a range": (
        '<general joint="ja" gaintype="affine" gainprm="0 0 -1"/>',
        "its force grows with the position or the velocity; use rb.UserForces",
    ),
    "damper of a tendon of two joints": (
        '<damper tendon="two" kv="1" ctrlrange="0 1"/>',
        "its force depends on the length of a tendon of several joints",
    ),
    "growing": (
        '<general joint="ja" biastype="affine" biasprm="0 1 0"/>',
        "its force grows with the position or the velocity; use rb.UserForces",
    ),
    "site": ('<motor site="s"/>', "its transmission is not a joint or a tendon; use rb.Wrench"),
    "free": ('<motor joint="free"/>', "its transmission is a free joint; use rb.PrescribedForce or rb.UserForces"),
    "servo of a ball": (
        '<position joint="ball"/>',
        "its transmission is a ball joint; use rb.PrescribedForce or rb.UserForces",
    ),
    "ball in its parent": (
        '<motor jointinparent="ball"/>',
        "its transmission is a ball joint; use rb.PrescribedForce or rb.UserForces",
    ),
    "spatial tendon": ('<motor tendon="path"/>', "a spatial tendon"),
    "weak tendon": ('<motor tendon="weak"/>', "a tendon with a range of forces"),
    "length of a tendon": (
        '<position tendon="two"/>',
        "its force depends on the length of a tendon of several joints",
    ),
}

#: Two fingers that an equality constraint couples, on one tendon.
GRIPPER = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="hand">
      <joint name="wrist" axis="0 1 0"/> <geom size="0.1" mass="1" pos="0.2 0 0"/>
      <body name="right" pos="0.1 0 0">
        <joint name="right" axis="1 0 0" ref="0.3"/> <geom size="0.1" mass="0.8" pos="0.2 0 0.1"/>
      </body>
      <body name="left" pos="0.4 0.1 0">
        <joint name="left" type="slide" ref="-0.2"/> <geom size="0.1" mass="0.6" pos="0.2 0.1 0"/>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="both"> <joint joint="right" coef="0.7"/> <joint joint="left" coef="-2"/> </fixed></tendon>
  <equality><joint joint1="left" joint2="right" polycoef="0.1 -0.5 0 0 0"/></equality>
  <actuator><position name="m" tendon="both" kp="4" kv="0.3" gear="-1.5" forcerange="-9 2"/></actuator>
</mujoco>
"""


def written(folder, actuators, ja="", flag="", more=""):
    file = folder / "model.xml"
    file.write_text(MJCF.format(actuators=actuators, ja=ja, flag=flag, more=more))
    return file


def pair(file):
    """The models of a file, without the warning."""
    with pytest.warns(UserWarning) as caught:
        model = rb.load(file)
    return model, mujoco.MjModel.from_xml_path(str(file)), str(caught[0].message)


def check_motion(file, controls):
    """Compare 25 steps of the same method, from a random state."""
    model, engine, _ = pair(file)
    # steps of `filterexact` have the first order with RK4; `filter` is the same differential equation
    exact = engine.actuator_dyntype == int(mujoco.mjtDyn.mjDYN_FILTEREXACT)
    engine.actuator_dyntype[exact] = int(mujoco.mjtDyn.mjDYN_FILTER)
    data, rng = mujoco.MjData(engine), np.random.default_rng(7)
    data.qvel[:] = rng.normal(0.0, 0.5, engine.nv)
    data.ctrl[:] = controls
    q, qd = state_from_mujoco(model, engine, data.qpos, data.qvel)
    stepper = model.stepper(q, qd, method="rk4", step=STEP)
    for name, control in zip(model.inputs, controls, strict=False):
        stepper.inputs[name][...] = control
    stepper.step(STEPS)
    mujoco.mj_step(engine, data, STEPS)
    found = np.concatenate([stepper.q, stepper.qd])
    expected = np.concatenate(state_from_mujoco(model, engine, data.qpos, data.qvel))
    # MuJoCo moves free and ball joints otherwise: its steps of them are of another fourth order
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    assert np.abs(expected[: model.nq] - q).max() > 2e-3


@plain
@pytest.mark.parametrize("name", ["half_cheetah", "hopper", "inverted_double_pendulum", "pusher", "walker2d"])
def test_a_motion_of_a_published_file_is_the_motion_of_mujoco(name):
    """`benchmarks/model_files.py --motions` compares the motions of 180 files."""
    gymnasium = pytest.importorskip("gymnasium")
    file = Path(gymnasium.__file__).parent / f"envs/mujoco/assets/{name}.xml"
    model, engine, _ = pair(file)
    engine.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    engine.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)
    engine.opt.integrator, engine.opt.timestep = int(mujoco.mjtIntegrator.mjINT_RK4), 1e-4
    data, rng = mujoco.MjData(engine), np.random.default_rng(7)
    q, qd = model.neutral() + rng.uniform(-0.3, 0.3, model.nq), rng.normal(0.0, 0.5, model.nv)
    data.qpos[:], data.qvel[:] = state_to_mujoco(model, engine, q, qd)
    data.ctrl[:] = rng.uniform(-1.0, 1.0, engine.nu)
    model = model.replace(friction=np.zeros(model.nv)).with_inputs(
        dict(zip(model.inputs, data.ctrl.tolist(), strict=True))
    )
    stepper = model.stepper(q, qd, method="rk4", step=1e-4)
    stepper.step(STEPS)
    mujoco.mj_step(engine, data, STEPS)
    found, expected = (stepper.q, stepper.qd), state_from_mujoco(model, engine, data.qpos, data.qvel)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-9 * np.abs(np.concatenate(expected)).max())


@plain
@pytest.mark.parametrize("case", DRIVES)
def test_a_motion_under_actuators_is_the_motion_of_mujoco(tmp_path, case):
    actuators, controls = DRIVES[case]
    check_motion(written(tmp_path, actuators), controls)


@plain
@pytest.mark.skipif(not hasattr(mujoco.mjtGain, "mjGAIN_PID"), reason="this version of MuJoCo has no pid actuators")
@pytest.mark.parametrize("case", NEW_DRIVES)
def test_a_motion_under_actuators_of_mujoco_4_is_the_motion_of_mujoco(tmp_path, case):
    actuators, controls = NEW_DRIVES[case]
    check_motion(written(tmp_path, actuators), controls)


@plain
@pytest.mark.parametrize("case", DRIVES | NEW_DRIVES)
def test_the_forces_of_actuators_are_the_forces_of_mujoco(tmp_path, case):
    """Activations and integrals are zero."""
    if case in NEW_DRIVES and not hasattr(mujoco.mjtGain, "mjGAIN_PID"):
        pytest.skip("this version of MuJoCo has no pid actuators")
    actuators, controls = (DRIVES | NEW_DRIVES)[case]
    model, engine, _ = pair(written(tmp_path, actuators))
    data, rng = mujoco.MjData(engine), np.random.default_rng(3)
    q, qd = model.random_state(rng)
    data.qpos[:], data.qvel[:] = state_to_mujoco(model, engine, q, qd)
    data.ctrl[:] = controls
    mujoco.mj_forward(engine, data)
    low, high = np.where(engine.actuator_ctrllimited[:, None], engine.actuator_ctrlrange, (-np.inf, np.inf)).T
    inputs = dict(zip(model.inputs, np.clip(controls, low, high)[:, None], strict=False))
    model = model.with_inputs(inputs)
    motion = model.simulate([q], [qd], 1e-3, method="rk4", step=1e-3, save_at=2)
    expected = data.qfrc_actuator
    np.testing.assert_allclose(motion.tau[0, 0], expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))


@plain
@pytest.mark.parametrize("lag", ["0", "-0.1", "1e-16"])
@pytest.mark.parametrize("kind", ["filter", "filterexact"])
def test_an_activation_with_no_time_constant_is_no_lag(tmp_path, kind, lag):
    """After a step of MuJoCo's Euler method, the activation of a `filterexact` is the control."""
    of = f'dyntype="{kind}" dynprm="{lag}" forcerange="-9 2" gainprm="3" biastype="affine" biasprm="0.3 -4 -1"'
    file = written(tmp_path, f'<general name="m" joint="ja" {of}/>')
    model, engine, _ = pair(file)
    engine.actuator_dyntype[:] = int(mujoco.mjtDyn.mjDYN_FILTEREXACT)
    engine.opt.integrator = int(mujoco.mjtIntegrator.mjINT_EULER)
    data = mujoco.MjData(engine)
    for control in (0.9, -0.7, 5.0):  # the last force is clipped
        data.ctrl[:] = control
        mujoco.mj_step(engine, data)
        mujoco.mj_forward(engine, data)
        q, qd = state_from_mujoco(model, engine, data.qpos, data.qvel)
        found = model.with_inputs({"m": control}).accelerations(q, qd)
        expected = model.accelerations(q, qd, tau=data.qfrc_actuator, drives=())
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
        assert abs(data.qfrc_actuator[0]) > 0.1


@plain
@pytest.mark.parametrize("case", JOINTS)
def test_the_range_of_the_forces_of_a_joint_limits_its_actuator(tmp_path, case):
    ja, actuators, controls = JOINTS[case]
    check_motion(written(tmp_path, actuators, ja), controls)


@plain
@pytest.mark.parametrize("case", LEFT_OUT)
def test_actuators_that_are_left_out_are_named_with_the_reason(tmp_path, case):
    actuators, reason = LEFT_OUT[case]
    model, _, message = pair(written(tmp_path, actuators.replace(" ", ' name="m" ', 1)))
    assert f"omitted from the model: actuators 'm' ({reason})" in message
    assert not model.drives
    assert not model.inputs


@plain
def test_the_range_of_a_joint_with_several_actuators_is_named(tmp_path):
    _, _, message = pair(written(tmp_path, '<motor joint="ja"/><motor joint="ja"/>', 'actuatorfrcrange="-1 1"'))
    assert "actuatorfrcrange of joints 'ja' does not limit the sum of their actuator forces" in message


@plain
def test_the_range_of_a_joint_with_two_actuators_on_one_tendon_is_named(tmp_path):
    file = written(tmp_path, '<motor tendon="one"/><motor tendon="one"/>')
    file.write_text(file.read_text().replace('name="slide"', 'name="slide" actuatorfrcrange="-1 1"'))
    _, _, message = pair(file)
    assert "actuatorfrcrange of joints 'slide' does not limit the sum of their actuator forces" in message


@plain
@pytest.mark.parametrize("joint", ["right", "left"])
def test_a_servo_on_a_tendon_of_coupled_joints_with_a_range_is_left_out(tmp_path, joint):
    file = tmp_path / "gripper.xml"
    file.write_text(GRIPPER.replace(f'<joint name="{joint}"', f'<joint name="{joint}" actuatorfrcrange="-1 1"'))
    model, _, message = pair(file)
    assert "actuators 'm' (actuatorfrcrange limits coupled joints of its tendon)" in message
    assert not model.drives


@plain
def test_disabled_actuators_do_not_act(tmp_path):
    motor = '<motor name="m" joint="ja" group="3"/>'
    assert not pair(written(tmp_path, motor, flag='actuation="disable"'))[0].drives
    file = written(tmp_path, motor + '<motor name="n" joint="ja"/>')
    file.write_text(file.read_text().replace('integrator="RK4"', 'integrator="RK4" actuatorgroupdisable="3"'))
    assert pair(file)[0].inputs == {"n": 0.0}


@plain
def test_a_servo_on_a_tendon_of_coupled_joints(tmp_path):
    """The force at one joint has the power of the forces at all joints of the tendon."""
    file = tmp_path / "gripper.xml"
    file.write_text(GRIPPER)
    model, engine, _ = pair(file)
    data, q, qd = mujoco.MjData(engine), np.array([0.3, 0.25, -0.025]), np.array([0.2, -0.1, 0.05])
    np.testing.assert_allclose(model.constraint_residual(q), 0.0, atol=1e-15)  # left = 0.1 - 0.5 right
    data.qpos[:], data.qvel[:] = state_to_mujoco(model, engine, q, qd)
    data.ctrl[:] = 0.7
    mujoco.mj_forward(engine, data)
    found = model.with_inputs({"m": 0.7}).accelerations(q, qd)
    expected = model.accelerations(q, qd, tau=data.qfrc_actuator, drives=())
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert np.abs(data.qfrc_actuator[1:]).min() > 0.1


@plain
def test_keyframes_have_states_of_the_model_and_controls(tmp_path):
    keys = """<keyframe>
      <key name="home" qpos="0.3 0.1 0.2 1 0 0 0 0.4 1 2 3 0 1 0 0" qvel="1 2 3 4 5 6 7 8 9 10 11 12 13" ctrl="3"/>
      <key/></keyframe>"""
    file = written(tmp_path, '<motor name="m" joint="jb" ctrlrange="-1 2"/>', more=keys)
    model, engine, _ = pair(file)
    assert [*model.keyframes] == ["home", "key1"]
    home = model.keyframes["home"]
    q, qd = state_from_mujoco(model, engine, engine.key_qpos[0], engine.key_qvel[0])
    np.testing.assert_array_equal(home.q, q)
    np.testing.assert_array_equal(home.qd, qd)
    assert home.inputs == {"m": 2.0}
    with pytest.raises(ValueError, match="read-only"):  # a program that changes its start would change the model
        home.q[0] = 1.0
    np.testing.assert_allclose(model.keyframes["key1"].q, model.neutral(), rtol=0, atol=1e-15)
    rb.save(model, tmp_path / "model.toml")
    again = rb.load(tmp_path / "model.toml")
    assert again.keyframes == model.keyframes
    assert again.drives == model.drives
    assert model.with_inputs(home.inputs).inputs == {"m": 2.0}


@plain
def test_stops_and_friction_on_request(tmp_path):
    file = written(tmp_path, "", 'range="-1 1" frictionloss="0.3"')
    model, _, _ = pair(file)
    stops, (rough, friction) = model.hard_stops(restitution=0.5), model.dry_friction()
    assert stops == (rb.HardStops("ja", restitution=0.5),)
    assert [force.joint for force in friction] == ["ja"]
    assert not rough.friction.any()
    many = model.vary(friction=0.1 * np.arange(1, 3)[:, None] * np.ones(model.nv))
    _, friction = many.dry_friction()
    np.testing.assert_array_equal(friction[0].kinetic, [0.1, 0.2])


@plain
@pytest.mark.parametrize("flag", ['limit="disable"', 'constraint="disable"'])
def test_ranges_that_a_flag_disables_are_no_stops(tmp_path, flag):
    model, _, _ = pair(written(tmp_path, "", 'range="-1 1"', flag))
    assert model.hard_stops() == ()
    assert np.isinf(model.position_limits).all()


@plain
def test_activations_of_keyframes_are_named(tmp_path):
    key = f'<keyframe><key name="on" qpos="{"0 " * 3}1 0 0 0 0 0 0 2 1 0 0 0" act="1"/></keyframe>'
    lagged = '<general joint="ja" dyntype="filter" dynprm="0.1"/>'
    _, _, message = pair(written(tmp_path, lagged, more=key))
    assert "activations of keyframes 'on' are not read: lags of controls start at zero" in message


@plain
def test_the_functions_of_the_documentation_are_the_spring_and_the_damper_of_a_fixed_tendon(tmp_path):
    page = (Path(rb.__file__).parents[1] / "docs/how-to/mjcf.md").read_text(encoding="utf-8")
    names = {}
    exec(page[page.index("def tendon(") :].partition("finger =")[0], names)
    file = tmp_path / "gripper.xml"
    spring = '<fixed name="both" stiffness="7" damping="0.4" springlength="0.3">'
    text = GRIPPER.replace('<fixed name="both">', spring).partition("<equality>")[0] + "</mujoco>"
    file.write_text(text.replace(' ref="0.3"', "").replace(' ref="-0.2"', ""))
    model, engine, message = pair(file)
    assert "omitted from the model: tendons 'both'" in message
    data, (q, qd) = mujoco.MjData(engine), model.random_state(5)
    data.qpos[:], data.qvel[:] = q, qd
    mujoco.mj_forward(engine, data)
    drive = rb.UserForces(names["tendon"], parameters=[7.0, 0.4, 0.3, 0.0, 0.7, -2.0], derivatives=names["of_tendon"])
    drive.check_derivatives(model, q, qd)
    np.testing.assert_allclose(model.accelerations(q, qd, drives=[drive]), data.qacc, rtol=1e-11)
