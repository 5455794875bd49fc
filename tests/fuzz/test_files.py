"""Mutated files are refused with a specific error, or agree with other programs."""

import warnings

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given

import rbchain as rb

from ..oracles.mjcf import Engine
from .cases import cases, ended
from .mutations import mutated

pytestmark = [pytest.mark.plain_python, pytest.mark.filterwarnings("error::RuntimeWarning")]
URDF = """<robot name="arm" version="1.2">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0 0 0.2" rpy="0.1 0 0"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.12" iyz="0" izz="0.05"/></inertial></link>
  <link name="lower"><inertial><mass value="1"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.5" rpy="0 0.3 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="2"/></joint>
  <joint name="elbow" type="prismatic"><parent link="upper"/><child link="lower"/>
    <origin xyz="0 0 0.4" quat_xyzw="0.1 0 0.3 0.9"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="2" acceleration="3" jerk="40"/></joint>
  <joint name="flange" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0 0 0.1"/></joint>
</robot>
"""
#: Elements of other programs, which are put at the end of the URDF file.
EXTENSIONS = """
  <loop_joint name="loop" type="continuous"><axis xyz="0 1 0"/>
    <link1 link="base" xyz="0 0 1"/><link2 link="tool" xyz="0 0 0.1"/></loop_joint>
  <force_element name="s"><torsional_spring stiffness="2" rest_angle="0.1"><joint name="shoulder"/></torsional_spring>
  </force_element><frame name="tip" link="lower" xyz="0 0 0.3" rpy="0 0.1 0"/>
  <fixed_frame name="eye"><parent link="tool"/><origin xyz="0 0 1"/></fixed_frame>
  <transmission name="t"><joint name="elbow"/><actuator name="a"><drake:rotor_inertia value="1e-3"/>
    <drake:gear_ratio value="10"/></actuator></transmission>
  <gazebo reference="elbow"><springStiffness>3</springStiffness><springReference value="0.1"/></gazebo>
  <gazebo><plugin filename="x.so"/><static>true</static><pose>0 0 0 0 0 0</pose></gazebo>
  <link name="hand"/><drake:joint name="wrist" type="screw"><parent link="tool"/><child link="hand"/>
    <drake:screw_thread_pitch value="0.1"/><mimic joint="elbow" multiplier="2"/></drake:joint>
</robot>
"""
MJCF = """<mujoco model="arm">
  <option gravity="0 0 -9.81"><flag contact="disable"/></option>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" type="hinge" axis="0 1 0" damping="0.1" stiffness="2" armature="0.01"/>
      <inertial pos="0 0 -0.2" mass="2" diaginertia="0.1 0.1 0.05"/>
      <body name="lower" pos="0 0 -0.5" quat="0.9 0.1 0 0">
        <joint name="elbow" type="slide" axis="1 0 0"/>
        <geom type="capsule" size="0.05 0.2" mass="1"/>
      </body>
    </body>
    <body name="ball" pos="1 0 0"><freejoint name="floating"/><geom type="sphere" size="0.1" density="500"/></body>
  </worldbody>
</mujoco>
"""


def toml_of_an_arm(folder):
    """The text of a file of rbchain's own that has most of what such a file can have."""
    builder = rb.ModelBuilder(name="arm", gravity=(0, 0, -9.8), fluid_density=1000.0)
    shape = rb.Immersion.sphere(0.05)
    body = {"inertia": rb.Inertia(2.0, cg=(0, 0, 0.1), inertia=(0.1, 0.1, 0.05)), "immersion": shape}
    builder.add_body("upper", joint=rb.Revolute((0, 1, 0)), passive=rb.PassiveForces(damping=0.1), **body)
    builder.add_body("lower", parent="upper", joint=rb.Spherical(), placement=rb.Pose((0, 0, 0.4)), **body)
    builder.add_body("tool", parent="lower", joint=rb.Fixed())
    builder.add_drive(rb.PID("upper", rb.Signal.sines(0.2, 3.0), kp=2.0, gravity_compensation=True))
    rb.save(builder.build(), folder / "arm.toml")
    return (folder / "arm.toml").read_text(encoding="utf-8")


def loaded(path):
    """The model in a file, or None if the file is refused; and whether there was a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return rb.load(path), bool(caught)
        except rb.RbchainError as error:
            assert str(error).strip()
            assert str(path) in str(error) or isinstance(error, rb.ModelError), error
            return None, True


def check_dynamics(model):
    """Check that inverse dynamics is the inverse of forward dynamics, within the condition of the numbers."""
    if model.bodies_without_inertia:
        return
    q, qd = model.random_state(0)
    tau = np.ones(model.nv)
    with np.errstate(all="ignore"):
        try:
            qdd, mass = model.forward_dynamics(q, qd, tau), model.mass_matrix(q)
        except rb.ModelError as error:
            assert "beyond the range of float64" in str(error)
            return
        if not np.isfinite(qdd).all() or not np.isfinite(mass).all():
            return
        condition = np.linalg.cond(mass)
        size = np.abs(mass) @ np.abs(qdd) + np.abs(model.bias_forces(q, qd)) + 1.0
        found = model.inverse_dynamics(q, qd, qdd)
    if condition < 1e8:
        assert (np.abs(found - tau) <= 1e-13 * condition * size.max()).all()


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    return path


@cases(percent=8, ends=("refused", "compared"))
@given(mutated(URDF))
def test_a_mutated_urdf_is_refused_or_agrees_with_pinocchio(tmp_path, text):
    path = write(tmp_path, "arm.urdf", text)
    model, warned = loaded(path)
    if model is None:
        ended("refused")
        return
    check_dynamics(model)
    try:
        theirs = pin.buildModelFromXML(text)
    except (RuntimeError, ValueError):
        return
    same = sorted(theirs.names[1:]) == sorted(model.joint_names) and theirs.nq == model.nq
    extreme = "1e-320" in text or "1e308" in text  # Pinocchio does not give axes unit length; sums overflow
    if warned or extreme or not same:
        return
    index_q, index_v = model.joint_order(list(theirs.names), list(theirs.nqs))
    q, v, a = (np.random.default_rng(k).normal(size=theirs.nv) for k in range(3))
    theirs.armature[:] = 0.0
    expected = pin.rnea(theirs, theirs.createData(), q, v, a)[index_v]
    with np.errstate(all="ignore"):
        found = model.inverse_dynamics(q[index_q], v[index_v], a[index_v])
    if np.isfinite(expected).all():
        ended("compared")
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(expected).max()), err_msg=text)


@cases(percent=3, ends=("refused", "read"))
@given(mutated(URDF.replace("</robot>", EXTENSIONS)))
def test_a_mutated_urdf_with_elements_of_other_programs_is_refused_or_read(tmp_path, text):
    model, _ = loaded(write(tmp_path, "arm.urdf", text))
    ended("refused" if model is None else "read")
    if model is not None:
        check_dynamics(model.open_tree())


@cases(percent=8, ends=("refused", "compared"))
@given(mutated(MJCF))
def test_a_mutated_mjcf_is_refused_or_agrees_with_mujoco(tmp_path, text):
    path = write(tmp_path, "arm.xml", text)
    model, warned = loaded(path)
    if model is None or model.bodies_without_inertia:
        ended("refused")
        return
    check_dynamics(model)
    engine = Engine(path)
    if warned or engine.model.nv != model.nv or engine.model.nq != model.nq:
        assert warned or engine.model.nv == model.nv
        return
    q, qd = model.random_state(0)
    with np.errstate(all="ignore"):
        found = model.forward_dynamics(q, qd, model.passive_forces(q, qd))
    expected = engine.accelerations(model, q, qd)
    condition = np.linalg.cond(model.mass_matrix(q))
    if np.isfinite(expected).all() and condition < 1e8 and np.abs(expected).max() < mujoco.mjMAXVAL:
        ended("compared")
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(expected).max()), err_msg=text)


def test_a_mutated_toml_is_refused_or_unchanged_after_saving_and_loading(tmp_path):
    """Saving and loading again returns the same bits."""
    original = toml_of_an_arm(tmp_path)

    @cases(percent=2, ends=("refused", "compared"))
    @given(mutated(original))
    def check(text):
        model, _ = loaded(write(tmp_path, "mutated.toml", text))
        if model is None:
            ended("refused")
            return
        check_dynamics(model)
        rb.save(model, tmp_path / "again.toml")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = rb.load(tmp_path / "again.toml")
        for name in ("mass", "cg", "inertia", "placement_rotation", "placement_translation", "gravity", "damping"):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
        ended("compared")

    check()
