"""Robots by their names in robot_descriptions, which a module of the tests replaces, because it downloads files."""

import sys
from types import ModuleType

import pytest

import rbchain as rb

plain = pytest.mark.plain_python


@pytest.fixture
def descriptions(monkeypatch):
    modules = {
        "robot_descriptions": {"DESCRIPTIONS": {"puma_description": 0, "meshes_description": 0}},
        "robot_descriptions.puma_description": {"URDF_PATH": "examples/puma560.urdf"},
        "robot_descriptions.meshes_description": {},
    }
    for name, contents in modules.items():
        module = ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)


@plain
@pytest.mark.usefixtures("descriptions")
def test_a_robot_has_the_name_of_its_description():
    assert rb.load("puma_description").n_bodies == 6
    assert rb.load("puma_description", base=rb.Free()).nv == 12


@plain
@pytest.mark.usefixtures("descriptions")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pumas_description", "neither a file nor a robot of robot_descriptions; .* did you mean puma_description"),
        ("meshes_description", "has no URDF, xacro or MJCF file of this robot"),
    ],
)
def test_unknown_robots_are_refused(name, message):
    with pytest.raises(rb.FileFormatError, match=message):
        rb.load(name)


@plain
def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "robot_descriptions", raising=False)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ImportError, match=r"need the package robot_descriptions.*\[robots\]"):
        rb.load("panda_description")
