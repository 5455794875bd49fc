"""Sensors and keyframes of a model file stay with its joints and frames when the model is edited."""

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python

FRAMES = ("framepos", "framelinvel", "frameangvel", "framelinacc", "frameangacc", "framequat")
SITES = ("velocimeter", "gyro", "accelerometer")
REACTIONS = ("force", "torque")
MJCF = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="trunk" pos="0 0 1"><freejoint name="root"/>
      <geom type="box" size="0.1 0.2 0.05" mass="2" contype="0" conaffinity="0"/>
      <site name="imu" pos="0.05 0 0.02" euler="0.1 0 0.3"/>
      <body name="thigh" pos="0.1 0 0">
        <joint name="hip" axis="0 1 0" damping="0.2"/><joint name="roll" axis="1 0 0"/>
        <geom size="0.05" pos="0 0 -0.1" mass="0.3" contype="0" conaffinity="0"/>
        <body name="shank" pos="0 0 -0.3" euler="0 0 0.4">
          <joint name="knee" axis="0 1 0"/><geom size="0.03" pos="0 0 -0.1" mass="0.1" contype="0" conaffinity="0"/>
          <site name="toe" pos="0 0.02 -0.2" euler="0.2 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="lift" joint="hip"/><motor name="bend" joint="knee"/></actuator>
  <sensor>
    <jointpos name="hip" joint="hip"/><jointvel name="roll" joint="roll"/><jointpos name="knee" joint="knee"/>
    {frames}
    <framepos name="fixed" objtype="xbody" objname="world"/>
  </sensor>
  <keyframe><key name="home" qpos="0.1 0 1 1 0 0 0 0.3 -0.2 0.5" qvel="1 0 0 0 0 2 3 4 5" ctrl="0.3 0.7"/></keyframe>
</mujoco>
"""


@pytest.fixture
def model(tmp_path):
    frames = "".join(f'<{kind} name="{kind}" objtype="site" objname="toe"/>' for kind in FRAMES)
    frames += "".join(f'<{kind} name="{kind}_{site}" site="{site}"/>' for kind in SITES for site in ("toe", "imu"))
    frames += "".join(f'<{kind} name="{kind}" site="toe"/>' for kind in REACTIONS)
    (tmp_path / "leg.xml").write_text(MJCF.format(frames=frames))
    with pytest.warns(UserWarning, match="form the composite joints 'thigh'"):
        return rb.load(tmp_path / "leg.xml")


def measured(model, q, qd):
    """The measurements in a state under gravity and no forces of drives."""
    return model.sensors.of(model.simulate(q, qd, 1e-4, method="rk4", step=1e-4, drives=[], save_at=2))


def assert_equal_at_start(found, expected, names):
    for name in names:
        np.testing.assert_allclose(found[name][0], expected[name][0], rtol=0, atol=1e-11, err_msg=name)


def test_sensors_of_a_locked_model_measure_the_same_positions_and_velocities(model):
    q, qd = model.random_state(1)
    qd[-1] = 0.0
    locked = model.lock({"knee": q[-1]})
    assert model.sensors.keys() - locked.sensors.keys() == {"knee", *REACTIONS}
    found, expected = measured(locked, *model.lock_state(["knee"], q, qd)), measured(model, q, qd)
    names = [name for name in found if "acc" not in name]
    assert {"framepos", "gyro_toe", "velocimeter_imu", "hip", "roll", "fixed"} <= set(names)
    assert_equal_at_start(found, expected, names)


def test_keyframes_of_a_locked_model_lose_the_locked_joints_and_their_inputs(model):
    key, locked = model.keyframes["home"], model.lock({"knee": 0.1})
    found = locked.keyframes["home"]
    q, qd = model.lock_state(["knee"], key.q, key.qd)
    assert found.q.tolist() == q.tolist() and found.qd.tolist() == qd.tolist()
    assert found.inputs == {"lift": 0.3}
    assert locked.with_inputs(found.inputs).inputs == {"lift": 0.3}


def test_sensors_of_a_rerooted_model_measure_the_same(model):
    q, qd = model.random_state(2)
    rerooted = model.replace(damping=0.0 * model.damping).reroot("shank")
    assert model.sensors.keys() - rerooted.sensors.keys() == set(REACTIONS)
    found = measured(rerooted, *model.reroot_state("shank", q, qd))
    assert_equal_at_start(found, measured(model.replace(damping=0.0 * model.damping), q, qd), rerooted.sensors)
    key = model.keyframes["home"]
    expected = model.reroot_state("shank", key.q, key.qd)
    np.testing.assert_array_equal(rerooted.keyframes["home"].q, expected[0])
    np.testing.assert_array_equal(rerooted.keyframes["home"].qd, expected[1])


def test_a_new_motor_is_at_rest_relative_to_its_link_in_keyframes(model):
    driven = model.with_motor("knee", stiffness=50.0, rotor_inertia=1e-4)
    key, found = model.keyframes["home"], driven.keyframes["home"]
    assert found.q.tolist() == [*key.q, 0.0] and found.qd.tolist() == [*key.qd, 0.0]
    assert driven.sensors.keys() == model.sensors.keys()
    assert_equal_at_start(
        measured(driven, found.q, found.qd), measured(model, key.q, key.qd), ("framepos", "gyro_toe", "knee")
    )


def test_sensors_of_an_added_model_measure_at_its_new_place(model):
    builder = rb.ModelBuilder()
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(3.0))
    builder.add_body("mount", parent="cart", joint=rb.Fixed(), placement=rb.Pose((0, 0, 0.5)))
    place = rb.Pose((0.3, -0.2, 0.1), [[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])
    for side in ("left", "right"):
        builder.add_model(model, parent="mount", placement=place, prefix=f"{side}/")
    both = builder.build()
    assert len(both.sensors) == 2 * len(model.sensors) and not both.keyframes
    q, qd = model.random_state(3)
    found = measured(both, np.concatenate([[0.4], q, q]), np.concatenate([[0.0], qd, qd]))
    expected, whole = measured(model, q, qd), rb.Pose((0.4, 0, 0.5)) @ place
    for side in ("left", "right"):
        for name in ("gyro_toe", "velocimeter_imu", "hip"):
            np.testing.assert_allclose(found[f"{side}/{name}"][0], expected[name][0], rtol=0, atol=1e-12)
        in_world = whole.rotation @ expected["framepos"][0] + whole.translation
        np.testing.assert_allclose(found[f"{side}/framepos"][0], in_world, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[f"{side}/fixed"][0], whole.translation, rtol=0, atol=1e-12)
    with pytest.raises(rb.ModelError, match="body 'left/trunk'"):
        builder.add_model(model, prefix="left/")


@pytest.mark.parametrize(
    ("suffix", "omitted"), [(".xml", ": sensors, keyframes"), (".urdf", "drives, sensors, keyframes")]
)
def test_a_format_without_sensors_and_keyframes_warns_of_them(model, tmp_path, suffix, omitted):
    single = model.lock({"thigh": (0.1, 0.2)})  # URDF has no composite joints
    with pytest.warns(UserWarning, match=omitted):
        rb.save(single, tmp_path / f"saved{suffix}")


def test_mappings_of_names_tell_whether_they_contain_any_object(model):
    stepper = model.stepper(model.neutral(), np.zeros(model.nv), method="rk4", step=1e-3)
    study = rb.Study(rb.Model.serial_chain(1), samples=2, simulate=rb.Simulation(1.0), vary={"*.q": rb.Uniform(0, 1)})
    for names, singular in (
        (model.body, "body"),
        (model.joint, "joint"),
        (model.sensors, "sensor"),
        (stepper.inputs, "input"),
        (study.inputs, "input"),
    ):
        known = next(iter(names))
        assert known in names and "other" not in names and 3 not in names and None not in names
        assert names.get("other", 5) == 5 and names.get(known, 5) != 5
        assert len(names) == len(list(names)) > 0
        with pytest.raises(rb.UnknownNameError, match=f"has no {singular} 'other'; its .* are"):
            names["other"]
        with pytest.raises(rb.UnknownNameError, match=f"has no {singular} 3"):
            names[3]
