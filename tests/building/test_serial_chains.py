"""The serial chain, and the default gravity."""

import numpy as np
import pytest

import rbchain as rb

from .models import EPS, assert_same_mechanism


def test_the_serial_chain_is_the_classical_benchmark():
    chain = rb.Model.serial_chain(5)
    assert chain.parent.tolist() == [-1, 0, 1, 2, 3]
    assert chain.joint_types == ("revolute",) * 5
    np.testing.assert_array_equal(chain.axis, [[0, 0, 1]] * 5)
    np.testing.assert_array_equal(chain.mass, 0.1)
    np.testing.assert_array_equal(chain.cg, [[0.125, 0, 0]] * 5)
    np.testing.assert_allclose(chain.inertia, [np.diag([0, 0.1 / 192, 0.1 / 192])] * 5, atol=EPS * 0.1)
    np.testing.assert_array_equal(chain.gravity, [0, -10, 0])
    np.testing.assert_array_equal(chain.placement_rotation, [np.eye(3)] * 5)
    np.testing.assert_array_equal(chain.placement_translation, [[0, 0, 0]] + [[0.25, 0, 0]] * 4)


def test_the_serial_chain_equals_the_same_links_from_the_builder():
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    for i in range(6):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else None,
            joint=rb.Revolute(axis=(0, 0, 1)),
            placement=rb.Pose((0.25 if i else 0, 0, 0)),
            inertia=rb.Inertia(0.1, cg=(0.125, 0, 0), inertia=(0, 0.1 * 0.0625 / 12, 0.1 * 0.0625 / 12)),
        )
    assert_same_mechanism(rb.Model.serial_chain(6), builder.build())


def test_default_gravity_is_the_same_for_builders_tables_and_files(tmp_path):
    """The builder, Denavit-Hartenberg tables and files use 9.81 m/s^2; the serial chain uses that of the benchmark."""
    (tmp_path / "slider.toml").write_text(
        'format = "rbchain 1"\n[[body]]\nname = "a"\njoint = { type = "prismatic" }\nmass = 1.0'
    )
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    joint = '<joint name="slide" type="prismatic"><parent link="world"/><child link="a"/><axis xyz="1 0 0"/></joint>'
    (tmp_path / "slider.urdf").write_text(
        f'<robot name="slider"><link name="world"/><link name="a">{inertial}</link>{joint}</robot>'
    )
    models = [
        rb.ModelBuilder(),
        rb.io.dh.from_dh([rb.io.dh.DHLink(1.0, 0.0, 0.0, mass=1.0, inertia=(0.1, 0.1, 0.1))]),
        *(rb.load(tmp_path / f"slider.{ending}") for ending in ("toml", "urdf")),
    ]
    assert [model.gravity.tolist() for model in models] == [[0.0, 0.0, -9.81]] * 4
    assert rb.Model.serial_chain(1).gravity.tolist() == [0.0, -10.0, 0.0]
    in_study = rb.study.ModelSource(serial_chain={"n": 1}).build(tmp_path)
    assert in_study.gravity.tolist() == [0.0, -10.0, 0.0]


def test_the_serial_chain_accepts_other_parameters():
    link = rb.Inertia.cylinder(0.05, 2.0, mass=3.0, axis=(1, 0, 0), cg=(1, 0, 0))
    chain = rb.Model.serial_chain(3, length=2.0, mass=3.0, inertia=link, gravity=(0, 0, -1))
    np.testing.assert_array_equal(chain.inertia, [link.inertia] * 3)
    np.testing.assert_array_equal(chain.placement_translation[1:], [[2, 0, 0]] * 2)
    np.testing.assert_array_equal(chain.gravity, [0, 0, -1])


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 0},
        {"n": -1},
        {"n": 1.5},
        {"n": 2, "length": np.nan},
        {"n": 2, "length": np.nan, "inertia": rb.Inertia(1.0)},
        {"n": 2, "mass": -1.0},
        {"n": 2, "mass": np.nan},
        {"n": 2, "inertia": rb.Inertia(1.0, cg=(np.nan, 0, 0))},
        {"n": 2, "inertia": rb.Inertia(1.0, inertia=(1, 1, 3))},
        {"n": 2, "gravity": (0, np.nan, 0)},
        {"n": 2, "gravity": 9.81},
    ],
    ids=lambda arguments: ", ".join(arguments),
)
def test_invalid_parameters_of_a_serial_chain_are_refused(arguments):
    with pytest.raises(rb.ModelError):
        rb.Model.serial_chain(**arguments)
