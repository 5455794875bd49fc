"""`model.body[...]`, `model.joint[...]` and `motion.of_joint(...)` show the numbers of one body or joint."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.model.description import VARIABLE_FIELDS

pytestmark = pytest.mark.plain_python


def walker():
    """A free base with two legs, one on a universal joint, and a frame on a fixed joint."""
    inertia = rb.Inertia.box((0.3, 0.2, 0.1), mass=2.0)
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("base", joint=rb.Free(), inertia=inertia)
    builder.add_body(
        "left",
        parent="base",
        joint=rb.Universal(),
        joint_name="hip",
        placement=rb.Pose((0, 0.1, 0)),
        inertia=inertia,
        passive=rb.PassiveForces(damping=(0.1, 0.2)),
        limits=rb.JointLimits(-1.0, 2.0, effort=(5.0, 6.0)),
    )
    builder.add_body("right", parent="base", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia.sphere(0.1, mass=0.5))
    builder.add_body("foot", parent="right", joint=rb.Fixed())
    return builder.build()


WALKER = walker()
VARIED = WALKER.vary(mass=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], damping=1e-3 * np.arange(18.0).reshape(2, 9))


@pytest.mark.parametrize("model", [WALKER, VARIED], ids=["one model", "batch"])
def test_views_have_the_numbers_of_the_model(model):
    for name, (axis, *behind) in ((name, shape) for name, shape in VARIABLE_FIELDS.items() if shape):
        values = getattr(model, name)
        for i in range(model.n_bodies) if axis in ("n", "nv") else ():
            if axis == "n":
                found, entries = getattr(model.body[model.body_names[i]], name), i
            else:
                entries = slice(model.velocity_index[i], [*model.velocity_index, model.nv][i + 1])
                found = getattr(model.joint[model.joint_names[i]], name)
            expected = values[(..., entries, *[slice(None)] * len(behind))]
            np.testing.assert_array_equal(found, expected)


def test_views_name_their_neighbors():
    left, hip = WALKER.body["left"], WALKER.joint["hip"]
    assert (left.index, left.joint, left.parent, WALKER.body["base"].parent) == (1, "hip", "base", None)
    assert (hip.index, hip.body, hip.type, hip.dofs) == (1, "left", "universal", 2)
    assert left.placement == rb.Pose((0, 0.1, 0))
    assert hip.position_limits.tolist() == [[-1.0, 2.0], [-1.0, 2.0]]
    assert hip.effort_limit.tolist() == [5.0, 6.0]
    assert list(WALKER.body) == ["base", "left", "right"]
    assert "foot" not in WALKER.body and "left" not in WALKER.joint and len(WALKER.joint) == 3
    assert WALKER.body.get("foot") is None


def test_a_joint_chooses_its_entries_of_states():
    q, qd = np.arange(2.0 * WALKER.nq).reshape(2, -1), np.arange(2.0 * WALKER.nv).reshape(2, -1)
    of = WALKER.joint
    assert np.array_equal(np.concatenate([of[name].q(q) for name in of], -1), q)
    assert np.array_equal(np.concatenate([of[name].qd(qd) for name in of], -1), qd)
    with pytest.raises(rb.ArgumentError, match=r"positions has shape \(2, 9\); expected \(\.\.\., 10\)"):
        of["hip"].q(qd)


@pytest.mark.parametrize(
    ("look", "message"),
    [
        (
            lambda: WALKER.body["lft"],
            r"no body 'lft'; its bodies are \['base', 'left', 'right'\]; did you mean left\?",
        ),
        (lambda: WALKER.body["foot"], "'foot' is a frame that is fixed to body 'right'"),
        (lambda: WALKER.joint["left"], "The joint of body 'left' is 'hip'"),
        (lambda: WALKER.body[1], "no body 1"),
    ],
)
def test_an_unknown_body_or_joint_is_named(look, message):
    with pytest.raises(rb.UnknownNameError, match=message):
        look()


def test_views_are_read_only():
    with pytest.raises(AttributeError, match=r"model.replace\({'left.mass': \.\.\.}\)"):
        WALKER.body["left"].mass = 3.0
    with pytest.raises(ValueError, match="read-only"):
        WALKER.body["left"].cg[0] = 1.0


def test_the_motion_of_a_joint_is_a_part_of_the_motion():
    q0 = np.broadcast_to(WALKER.neutral(), (2, WALKER.nq))
    motion = VARIED.simulate(q0, np.ones((2, WALKER.nv)), 0.02, method="rk4", step=0.01, tau=np.arange(9.0), save_at=2)
    names = WALKER.joint_names
    for what in ("q", "qd", "qdd", "tau"):
        parts = [getattr(motion.of_joint(name), what) for name in names]
        assert np.array_equal(np.concatenate(parts, -1), getattr(motion, what))
    assert np.array_equal(motion.of_joint("hip").t, motion.t)
    with pytest.raises(rb.UnknownNameError, match=r"no joint 'hp'.*did you mean hip"):
        motion.of_joint("hp")


def test_a_motion_names_its_statuses():
    motion = WALKER.simulate(WALKER.neutral(), np.zeros(WALKER.nv), 0.1, method="rk4", step=0.05, save_at=2)
    assert motion.status_names.tolist() == "DONE" and not motion.failed
    start = np.broadcast_to(WALKER.neutral(), (2, WALKER.nq)), [np.zeros(WALKER.nv), np.full(WALKER.nv, 1e200)]
    broken = WALKER.simulate(*start, 0.1, method="rk4", step=0.05, on_failure="ignore", save_at=2)
    assert broken.status_names.tolist() == ["DONE", "NOT_FINITE"]
    assert broken.failed.tolist() == [False, True]
