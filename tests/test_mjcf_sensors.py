"""Sensors of MJCF files, compared with MuJoCo's sensor data."""

import mujoco
import numpy as np
import pytest

import rbchain as rb
from rbchain.io.mjcf import state_from_mujoco

plain = pytest.mark.plain_python
MJCF = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0.3 0.2 -9.81"><flag contact="disable"/></option>
  <worldbody>
    <site name="fixed" pos="1 2 3" euler="0.1 0.2 0.3"/>
    <body name="a" euler="0.3 0.1 0.2" pos="0.1 0 1">
      <joint name="ja" axis="0 1 0" pos="0.1 0.2 0" ref="0.2" damping="0.1"/>
      <geom name="g" type="box" size="0.1 0.2 0.3" mass="1" pos="0.2 0 0" euler="0.1 0 0.2"/>
      <site name="sa" pos="0.1 0.1 0.2" euler="0.5 0.2 0.1"/>
      <body name="b" pos="0.4 0 0">
        <joint name="jb" axis="0 1 0"/> <joint name="jc" axis="0 0 1"/>
        <geom size="0.1" mass="0.8" pos="0.2 0 0.1"/> <site name="sb" pos="0.3 0.1 0.2" euler="0.1 0.7 0.3"/>
        <body name="fin" pos="0.1 0.2 0.3" euler="0.3 0 0">
          <geom type="box" size="0.1 0.2 0.1" mass="0.3"/> <site name="sf" pos="0.1 0 0.1" euler="0 0.4 0"/>
        </body>
      </body>
    </body>
    <body name="f" pos="0 0 2" euler="1 0 0">
      <freejoint/> <geom size="0.1" mass="0.5"/> <site name="free" pos="0.1 0 0"/>
    </body>
  </worldbody>
  <actuator><motor joint="ja"/></actuator>
  <sensor>{sensors}</sensor>
</mujoco>
"""
FRAMES = ("site", "sf"), ("body", "fin"), ("xbody", "a"), ("geom", "g"), ("site", "fixed"), ("site", "free")
SENSORS = {
    "joints": '<jointpos name="0" joint="ja"/><jointvel name="1" joint="jc"/>'
    '<jointpos name="2" joint="jb" cutoff="0.2"/><jointactuatorfrc name="3" joint="ja"/>',
    "frames": "".join(
        f'<{kind} name="{kind}{name}" objtype="{element}" objname="{name}"/>'
        for kind in ("framepos", "framelinvel", "frameangvel", "framelinacc", "frameangacc")
        for element, name in FRAMES
    ),
    "sites": "".join(
        f'<{kind} name="{kind}{site}" site="{site}"/>'
        for kind in ("velocimeter", "gyro", "accelerometer")
        for site in ("sa", "sb", "sf", "fixed", "free")
    ),
    "loads": "".join(
        f'<{kind} name="{kind}{site}" site="{site}"/>' for kind in ("force", "torque") for site in ("sa", "sb", "free")
    ),
}


def both(folder, sensors):
    file = folder / "model.xml"
    file.write_text(MJCF.format(sensors=sensors))
    with pytest.warns(UserWarning) as caught:
        model = rb.load(file)
    return model, mujoco.MjModel.from_xml_path(str(file)), str(caught[0].message)


def measured(model, engine):
    """The sensor data in two random states, and the state in rbchain's coordinates."""
    data, rng, expected, states = mujoco.MjData(engine), np.random.default_rng(3), [], []
    for _ in range(2):
        data.qpos[:3], data.qvel[:] = rng.normal(0.0, 0.5, 3), rng.normal(0.0, 1.0, engine.nv)
        data.qpos[3:6], data.qpos[6:] = rng.normal(0.0, 1.0, 3), np.array([0.5, -0.5, 0.5, 0.5])
        data.ctrl[:] = 0.4
        mujoco.mj_forward(engine, data)
        expected.append(data.sensordata.copy())
        states.append(state_from_mujoco(model, engine, data.qpos, data.qvel))
    q, qd = map(np.array, zip(*states, strict=True))
    driven = model.with_inputs(dict.fromkeys(model.inputs, 0.4))
    return driven.simulate(q, qd, 1e-3, method="rk4", step=1e-3, save_at=2), np.array(expected)


@plain
@pytest.mark.parametrize("case", SENSORS)
def test_sensors_measure_as_in_mujoco(tmp_path, case):
    model, engine, message = both(tmp_path, SENSORS[case])
    assert "omitted" not in message
    motion, expected = measured(model, engine)
    found = model.sensors.of(motion)
    assert len(found) == engine.nsensor
    for i, (name, values) in enumerate(found.items()):
        at = slice(engine.sensor_adr[i], engine.sensor_adr[i] + engine.sensor_dim[i])
        start = values[:, 0].reshape(2, -1)
        np.testing.assert_allclose(start, expected[:, at], rtol=0, atol=1e-11 * np.abs(expected).max(), err_msg=name)
        assert engine.sensor(i).name == name
    assert np.abs(expected).max() > 0.1


@plain
def test_files_of_rbchain_keep_sensors(tmp_path):
    model, _, _ = both(tmp_path, "".join(SENSORS.values()))
    rb.save(model, tmp_path / "model.toml")
    again = rb.load(tmp_path / "model.toml")
    assert dict(again.sensors) == dict(model.sensors)
    for name, kind in (("joint", "position"), ("body", "gyroscope"), ("kind", "scale")):
        text = (tmp_path / "model.toml").read_text()
        text += f'\n[[sensor]]\nname = "new"\nkind = "{kind}"\n' + ("" if name == "kind" else f'{name} = "missing"\n')
        (tmp_path / "wrong.toml").write_text(text)
        with pytest.raises(rb.FileFormatError, match=rf"sensor 'new': .*{name}.*expected one of"):
            rb.load(tmp_path / "wrong.toml")


@plain
def test_sensors_of_a_rerooted_model_are_kept_in_files_of_rbchain(tmp_path):
    text = """
    <mujoco>
      <worldbody>
        <body name="base"> <freejoint/> <geom size="0.1" mass="1"/>
          <body name="arm" pos="0.1 0 0">
            <joint name="turn" axis="0 1 0"/> <joint name="lift" type="slide" axis="1 0 0"/> <geom size="0.1" mass="1"/>
          </body>
        </body>
      </worldbody>
      <sensor> <jointpos name="angle" joint="turn"/> <jointvel name="rate" joint="lift"/> </sensor>
    </mujoco>"""
    (tmp_path / "model.xml").write_text(text)
    with pytest.warns(UserWarning):
        turned = rb.load(tmp_path / "model.xml").reroot("arm")
    rb.save(turned, tmp_path / "model.toml")
    assert dict(rb.load(tmp_path / "model.toml").sensors) == dict(turned.sensors)
    assert [sensor.dof for sensor in turned.sensors.values()] == [1, 0]


@plain
def test_quaternions_have_w_last(tmp_path):
    model, engine, _ = both(tmp_path, '<framequat name="turn" objtype="site" objname="sf"/>')
    motion, expected = measured(model, engine)
    found = model.sensors.of(motion)["turn"][:, 0]
    np.testing.assert_allclose(np.abs((found * expected[:, [1, 2, 3, 0]]).sum(-1)), 1.0, rtol=1e-12)
    assert model.sensors["turn"].unit == "1"


@plain
def test_failed_samples_have_nan(tmp_path):
    model, _, _ = both(tmp_path, "".join(SENSORS.values()))
    q, qd = np.tile(model.neutral(), (2, 1)), np.zeros((2, model.nv))
    qd[1, 0] = np.nan
    motion = model.simulate(q, qd, 1e-3, method="rk4", step=1e-3, save_at=2, on_failure="ignore")
    for values in model.sensors.of(motion).values():
        assert np.isfinite(values[0]).all()
    assert np.isnan(model.sensors.of(motion)["0"][1, 1])
    assert model.sensors.of(motion[:0])["0"].shape == (0, 2)


@plain
def test_motions_of_other_models_raise_errors(tmp_path):
    model, _, _ = both(tmp_path, "".join(SENSORS.values()))
    other = rb.Model.serial_chain(2, name="arm")
    for wrong in (other.simulate([0.1, 0.2], duration=1e-3, method="rk4", step=1e-3), 0.5):
        with pytest.raises(rb.ArgumentError, match=r"motion is .*; expected a trajectory of this model"):
            model.sensors.of(wrong)


@plain
def test_other_sensors_are_named(tmp_path):
    others = '<magnetometer name="m" site="sa"/><force name="weld" site="sf"/><touch name="t" site="sa"/>'
    others += '<framepos name="relative" objtype="site" objname="sa" reftype="site" refname="sb"/>'
    model, _, message = both(tmp_path, others + '<gyro site="sb"/>')
    assert "sensors 'm', 'weld', 't', 'relative'" in message
    assert [*model.sensors] == ["sensor4"]
    with pytest.raises(rb.UnknownNameError, match="the model has no sensor 'turn'; its sensors are"):
        model.sensors["turn"]


@plain
def test_loads_of_immersed_bodies_are_named(tmp_path):
    """MuJoCo measures also gravity compensation and the armature of free joints, which act from outside."""
    loads = '<force name="inner" site="sb"/><torque name="carrier" site="sa"/><force name="other" site="free"/>'
    file = tmp_path / "model.xml"
    text = MJCF.format(sensors=loads)
    file.write_text(text.replace('<body name="fin"', '<body name="fin" gravcomp="1"'))
    with pytest.warns(UserWarning, match="sensors 'inner', 'carrier';"):
        assert [*rb.load(file).sensors] == ["other"]
    file.write_text(text.replace("<freejoint/>", '<joint type="free" armature="1"/>'))
    with pytest.warns(UserWarning, match="sensors 'other';"):
        assert [*rb.load(file).sensors] == ["inner", "carrier"]
