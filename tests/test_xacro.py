"""URDF files with macros of xacro, which the package xacrodoc expands."""

import builtins

import numpy as np
import pytest

import rbchain as rb

plain = pytest.mark.plain_python
PART = """
<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="color" default="red"/>
  <xacro:macro name="arm" params="name parent mass">
    <link name="${name}">
      <inertial> <mass value="${2*mass}"/> <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/> </inertial>
      <visual> <geometry> <mesh filename="arm.stl"/> </geometry> </visual>
    </link>
    <joint name="${name}" type="continuous"> <parent link="${parent}"/> <child link="${name}"/> </joint>
  </xacro:macro>
</robot>
"""
ROBOT = """<?xml version="1.0"?>
<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:include filename="part.xacro"/>
  <xacro:arg name="prefix" default="a_"/> <xacro:arg name="heavy" default="false"/>
  <link name="base"/>
  <xacro:arm name="$(arg prefix)one" parent="base" mass="1.5"/>
  <xacro:if value="$(arg heavy)"> <xacro:arm name="two" parent="$(arg prefix)one" mass="5"/> </xacro:if>
</robot>
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "part.xacro").write_text(PART)
    path = tmp_path / "robot.urdf.xacro"
    path.write_text(ROBOT)
    return path


@plain
def test_xacro_expands_a_file_with_arguments(file):
    pytest.importorskip("xacrodoc")
    model = rb.load(file, arguments={})
    assert model.joint_names == ("a_one",)
    assert model.visuals["a_one"][0].file == str(file.with_name("arm.stl"))
    model = rb.load(file, arguments={"prefix": "left/", "heavy": True, "color": "blue"})
    assert model.joint_names == ("left/one", "two")
    np.testing.assert_array_equal(model.mass, [3.0, 10.0])


@plain
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prefx": 1}, r"the file has no argument 'prefx'; its arguments are \['color', 'heavy', 'prefix'\].*prefix\?"),
        ({"heavy": "very"}, "xacro cannot expand the file: .*not a boolean expression"),
        ("left", "arguments is 'left'; expected a dict"),
    ],
)
def test_wrong_arguments_are_refused(file, arguments, message):
    pytest.importorskip("xacrodoc")
    with pytest.raises(rb.FileFormatError, match=message):
        rb.load(file, arguments=arguments)


@plain
def test_the_missing_package_and_the_missing_arguments_are_named(file, monkeypatch):
    with pytest.raises(rb.FileFormatError, match=r"Pass arguments=\{\} to load \(extra xacro\), or expand its macros"):
        rb.load(file)
    with pytest.raises(rb.FileFormatError, match="remove arguments: it applies only to URDF files"):
        rb.load("examples/seven_joint_arm.toml", arguments={})
    original = builtins.__import__

    def without_xacro(name, *rest):
        if name.startswith("xacro"):
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_xacro)
    with pytest.raises(ImportError, match=r"arguments need the package xacrodoc.*\[xacro\]"):
        rb.load(file, arguments={})
