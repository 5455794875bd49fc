"""Invalid descriptions are refused, with the name of the body."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.model.pose import computed_pose

from .models import TwoBodies, pendulum

UNPHYSICAL = {
    "mass nan": {"mass": np.nan},
    "mass infinite": {"mass": np.inf},
    "cg nan": {"cg": (0, np.nan, 0)},
    "cg infinite": {"cg": (0, np.inf, 0)},
    "diagonal nan": {"inertia": (1, np.nan, 1)},
    "six numbers nan": {"inertia": (1, 0, np.nan, 1, 0, 1)},
    "diagonal infinite": {"inertia": (np.inf, np.inf, 1)},
    "negative moment": {"inertia": (1, 1, -0.1)},
    "not positive semi-definite": {"inertia": (1, 2, 0, 1, 0, 1)},
    "triangle inequality": {"inertia": (1, 1, 2.1)},
    "triangle inequality in other axes": {"inertia": TwoBodies.rotation @ np.diag([1, 1, 2.1]) @ TwoBodies.rotation.T},
}


@pytest.mark.parametrize("numbers", UNPHYSICAL.values(), ids=UNPHYSICAL)
@pytest.mark.parametrize("joint", [rb.Revolute(), rb.Fixed()], ids=["moving", "fixed"])
def test_unphysical_inertias_are_refused_with_the_name_of_the_body(numbers, joint):
    with pytest.raises(rb.ModelError, match="forearm"):
        pendulum().add_body(
            "forearm", parent="arm", joint=joint, inertia=rb.Inertia(**({"mass": 1.0, "inertia": (1, 1, 1)} | numbers))
        )


def test_a_negative_mass_is_refused_when_the_inertia_is_made():
    with pytest.raises(rb.ModelError, match="mass is -1e-09; expected zero or more"):
        rb.Inertia(-1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_tensor_with_nonfinite_entries_is_refused(bad):
    """The message of Inertia cannot name the body, but it must name the error."""
    with pytest.raises(rb.ModelError, match="finite"):
        pendulum(inertia=rb.Inertia(1.0, inertia=np.diag([1.0, 1.0, bad])))


@pytest.mark.parametrize("moments", [(0, 0, 0), (0, 1, 1), (1, 1, 2), (0.3, 0.7, 1.0)])
def test_tensors_at_the_limit_of_the_triangle_inequality_are_accepted(moments):
    """Round-off must not lead to the refusal of points, thin rods and flat plates in any axes."""
    tensor = TwoBodies.rotation @ np.diag(moments) @ TwoBodies.rotation.T
    for scale in (1e-9, 1.0, 1e9):
        pendulum(inertia=rb.Inertia(1.0, cg=(1, 0, 0), inertia=scale * tensor)).build()


def test_an_unphysical_inertia_can_be_accepted_with_a_warning():
    builder = rb.ModelBuilder(nonphysical_inertia="warn")
    builder.add_body("forearm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 2.1)))
    with pytest.warns(UserWarning, match="forearm"):
        model = builder.build()
    np.testing.assert_array_equal(model.inertia[0], np.diag([1, 1, 2.1]))


def test_accepting_unphysical_inertias_does_not_accept_other_errors():
    builder = rb.ModelBuilder(nonphysical_inertia="warn")
    with pytest.raises(rb.ModelError, match="forearm"):
        builder.add_body("forearm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(np.nan, 1, 1)))


def test_an_unknown_parent_is_refused_with_both_names():
    builder = pendulum()
    with pytest.raises(rb.ModelError, match=r"(?s)forearm.*shoulder"):
        builder.add_body("forearm", parent="shoulder", joint=rb.Revolute(), inertia=rb.Inertia(1.0))
        builder.build()


def test_a_duplicate_body_name_is_refused():
    builder = pendulum()
    with pytest.raises(rb.ModelError, match="arm"):
        builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0))
        builder.build()


def test_a_duplicate_of_a_fixed_body_name_is_refused():
    builder = pendulum()
    builder.add_body("ball", parent="arm", joint=rb.Fixed())
    with pytest.raises(rb.ModelError, match="ball"):
        builder.add_body("ball", joint=rb.Revolute(), inertia=rb.Inertia(1.0))
        builder.build()


def test_a_duplicate_joint_name_is_refused():
    builder = rb.ModelBuilder()
    builder.add_body("upper", joint=rb.Revolute(), joint_name="hinge", inertia=rb.Inertia(1.0, cg=(1, 0, 0)))
    with pytest.raises(rb.ModelError, match="hinge"):
        builder.add_body(
            "lower", parent="upper", joint=rb.Revolute(), joint_name="hinge", inertia=rb.Inertia(1.0, cg=(1, 0, 0))
        )
        builder.build()


@pytest.mark.parametrize(
    "parents",
    [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "a"}, {"root": None, "a": "b", "b": "c", "c": "b"}],
    ids=str,
)
@pytest.mark.parametrize("joint", [rb.Revolute(), rb.Fixed()], ids=["moving", "fixed"])
def test_a_cycle_is_refused_with_the_name_of_a_body(parents, joint):
    builder = rb.ModelBuilder()
    with pytest.raises(rb.ModelError, match=r"'[abc]'"):
        for name, parent in parents.items():
            builder.add_body(name, parent=parent, joint=joint, inertia=rb.Inertia(1.0, cg=(1, 0, 0)))
        builder.build()


def test_a_parent_listed_after_its_child_is_refused_with_both_names():
    builder = rb.ModelBuilder()
    with pytest.raises(rb.ModelError, match=r"(?s)forearm.*shoulder"):
        builder.add_body("forearm", parent="shoulder", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)))
        builder.add_body("shoulder", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)))
        builder.build()


def test_an_empty_model_is_refused():
    with pytest.raises(rb.ModelError, match="crane"):
        rb.ModelBuilder(name="crane").build()


def test_a_model_without_a_moving_body_is_refused():
    builder = rb.ModelBuilder(name="statue")
    builder.add_body("block", joint=rb.Fixed(), inertia=rb.Inertia(1.0))
    with pytest.raises(rb.ModelError, match="statue"):
        builder.build()


@pytest.mark.parametrize(
    "arguments",
    [
        {"joint": None},
        {"joint": "revolute"},
        {"joint": rb.Revolute},
        {"placement": (0, 0, 1)},
        {"inertia": 3.0},
        {"placement": computed_pose(np.zeros((2, 3)), np.tile(np.eye(3), (2, 1, 1)))},
        {"parent": 0},
    ],
    ids=["no joint", "joint by name", "joint class", "bare translation", "bare mass", "many poses", "parent by number"],
)
def test_an_argument_of_the_wrong_type_is_refused_with_the_name_of_the_body(arguments):
    with pytest.raises(rb.ModelError, match="arm"):
        pendulum(**arguments).build()


@pytest.mark.parametrize(
    "rotation",
    [
        np.diag([1.0, 1.0, -1.0]),
        2 * np.eye(3),
        np.full((3, 3), np.nan),
        np.zeros((3, 3)),
        (0, 0, 0, 0),
        (0, 0, 0, np.nan),
        (1, 2, 3),
    ],
)
def test_an_invalid_rotation_of_a_placement_is_refused(rotation):
    with pytest.raises(rb.ModelError, match=r"rotation|quaternion"):
        rb.Pose(rotation=rotation)


@pytest.mark.parametrize("translation", [(0, 0, np.nan), (0, np.inf, 0), (1, 2), 1.0])
def test_an_invalid_translation_of_a_placement_is_refused(translation):
    with pytest.raises(rb.ModelError, match="translation"):
        rb.Pose(translation)


@pytest.mark.parametrize("gravity", [9.81, (0, 0), (0, 0, np.nan), (np.inf, 0, 0)])
def test_an_invalid_gravity_is_refused(gravity):
    with pytest.raises(rb.ModelError, match="gravity"):
        rb.ModelBuilder(gravity=gravity)
