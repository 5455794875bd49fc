"""States are reordered from Pinocchio's order of the joints to rbchain's and back."""

import numpy as np
import pinocchio as pin
import pytest

import rbchain as rb

from .conftest import mechanism
from .mechanisms import ROBOTS

EPS = np.finfo(float).eps
BRANCHED = {
    "solo12": ("solo_description/robots/solo12.urdf", None),
    "anymal, floating": ("anymal_b_simple_description/robots/anymal.urdf", rb.Free()),
    "talos": ("talos_data/robots/talos_full_v2.urdf", None),
    "talos, floating": ("talos_data/robots/talos_reduced.urdf", rb.Free()),
    "allegro hand": ("allegro_hand_description/urdf/allegro_left_hand.urdf", None),
    "humanoid": ("simple_humanoid_description/urdf/simple_humanoid.urdf", rb.Free()),
}
LINK = """<link name="{}"><inertial>
  <mass value="{}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
</inertial></link>"""
JOINT = """<joint name="{}" type="{}">
  <origin xyz="{} 0.2 0.1"/><parent link="{}"/><child link="{}"/><axis xyz="1 {} 0"/>
</joint>"""


def random_urdf(seed, n=12):
    """A tree whose joint names, link names and order in the file are unrelated."""
    rng = np.random.default_rng(seed)
    joints, links = (list(rng.permutation([f"{kind}{i}" for i in range(n)])) for kind in "jl")
    links.append("base")
    parts = [LINK.format(link, mass) for link, mass in zip(links, rng.uniform(1, 2, n + 1), strict=True)]
    for i, joint in enumerate(joints):
        kind = rng.choice(["revolute", "prismatic", "fixed"], p=[0.6, 0.2, 0.2])
        parent = links[int(rng.integers(-1, i))]
        text = JOINT.format(joint, kind, rng.uniform(), parent, links[i], rng.uniform())
        parts.append(text.replace("</joint>", '<limit effort="1" velocity="1" lower="-1" upper="1"/></joint>'))
    return f'<robot name="r">{"".join(rng.permutation(parts))}</robot>'


def compared(path, base=None):
    """The model, Pinocchio's, and the index arrays between them."""
    model = rb.load(path, base=base).open_tree()  # Pinocchio ignores mimic joints
    theirs = pin.buildModelFromUrdf(str(path), *([] if base is None else [pin.JointModelFreeFlyer()]))
    # the joint of the base has its link's name here
    names = [model.joint_names[0] if name == "root_joint" else name for name in theirs.names]
    return model, theirs, names


def assert_same_dynamics(model, theirs, index_q, index_v):
    rng = np.random.default_rng(0)
    q = pin.integrate(theirs, pin.neutral(theirs), rng.uniform(-1, 1, theirs.nv))
    v, a = rng.uniform(-1, 1, (2, theirs.nv))
    expected = pin.rnea(theirs, theirs.createData(), q, v, a)
    found = model.inverse_dynamics(q[index_q], v[index_v], a[index_v])
    # two engines and two readers, each with about 16 rounding errors of EPS / 2 per body, relative to the largest force
    allowed = 32 * model.nv * EPS * np.abs(expected).max()
    np.testing.assert_allclose(found, expected[index_v], rtol=0, atol=allowed)
    np.testing.assert_allclose(found[np.argsort(index_v)], expected, rtol=0, atol=allowed)
    np.testing.assert_array_equal(q[index_q][np.argsort(index_q)], q)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("robot", BRANCHED)
def test_a_branched_robot_agrees_with_pinocchio_after_reordering(robot):
    file, base = BRANCHED[robot]
    model, theirs, names = compared(ROBOTS / file, base)
    index_q, index_v = model.joint_order(names, theirs.nqs)
    assert_same_dynamics(model, theirs, index_q, index_v)
    for found, expected in zip(model.joint_order(names), (index_q, index_v), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("base", [None, rb.Free()])
def test_a_tree_with_unsorted_names_agrees_with_pinocchio_after_reordering(tmp_path, seed, base):
    """Pinocchio sorts the children of a link by the names of their joints; rbchain keeps the order of the file."""
    path = tmp_path / "tree.urdf"
    path.write_text(random_urdf(seed))
    model, theirs, names = compared(path, base)
    assert_same_dynamics(model, theirs, *model.joint_order(names))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_two_orders_of_the_test_models_differ():
    model, _, names = compared(ROBOTS / BRANCHED["allegro hand"][0])
    assert list(model.joint_names) != names[1:]


def test_the_entries_of_a_joint_stay_together():
    """Each entry has its own number and is reordered by a random order of the joints."""
    model = mechanism("every_joint_tree")
    ends_q, ends_v = [*model.position_index[1:], model.nq], [*model.velocity_index[1:], model.nv]
    order = np.random.default_rng(0).permutation(model.n_bodies)
    names = [model.joint_names[i] for i in order]
    other_q = np.concatenate([np.arange(model.position_index[i], ends_q[i]) for i in order])
    other_v = np.concatenate([np.arange(model.velocity_index[i], ends_v[i]) for i in order])
    index_q, index_v = model.joint_order(names)
    np.testing.assert_array_equal(other_q[index_q], np.arange(model.nq))
    np.testing.assert_array_equal(other_v[index_v], np.arange(model.nv))


def test_names_without_coordinates_are_skipped():
    builder = rb.ModelBuilder()
    for name in ("a", "b"):
        builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    builder.add_body("tool", parent="b", joint=rb.Fixed())
    model = builder.build()
    for names, counts in ((["universe", "b", "tool", "a"], None), (["x", "b", "y", "a", "a"], [0, 1, 0, 1, 0])):
        assert [found.tolist() for found in model.joint_order(names, counts)] == [[1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("names", "counts", "message"),
    [
        (["link1"], None, r"missing: \['link2'\]\); expected each of \['link1', 'link2'\] once"),
        (["link1", "link2", "hand"], None, r"\(unknown: \['hand'\]\); expected"),
        (["link1", "link2", "link1"], None, r"\(repeated: \['link1'\]\); expected"),
        (["link1", "hand"], [1, 1], r"missing: \['link2'\]; unknown: \['hand'\]\); expected"),
        (["link1", "link2"], [1, 0], r"missing: \['link2'\]"),
        (["link1", "link2"], [1, 2], r"counts: joint 'link2' has 2 positions in the other order; expected 1, as in"),
        (["link1", "link2"], [1], "counts has 1 entries and names has 2; expected one count for each joint"),
        ([], None, r"missing: \['link1', 'link2'\]"),
    ],
)
def test_an_order_that_does_not_fit_is_refused(names, counts, message):
    with pytest.raises(rb.ArgumentError, match=message):
        rb.Model.serial_chain(2).joint_order(names, counts)
