"""A motion of fixed steps in several calls is the motion in one call, to round-off."""

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import four_bar

pytestmark = pytest.mark.plain_python
STEP, STEPS = 2.0**-7, 16  # s; binary, so that all calls have the same step
GRAVITY = (0, 0, -9.81)


def leg(damping):
    """A trunk on a leg of two light links with damping, and its foot on the floor."""
    builder, passive = rb.ModelBuilder(gravity=GRAVITY), rb.PassiveForces(damping=damping)
    rods = [rb.Inertia.rod(0.16, mass=mass, axis=(0, 0, 1), cg=(0, 0, -0.08)) for mass in (0.2, 0.1)]
    builder.add_body("trunk", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(2.0))
    hip, knee = rb.Revolute((0, 1, 0)), rb.Revolute((0, 1, 0))
    builder.add_body("thigh", parent="trunk", joint=hip, inertia=rods[0], passive=passive)
    place = rb.Pose((0, 0, -0.16))
    builder.add_body("shank", parent="thigh", joint=knee, placement=place, inertia=rods[1], passive=passive)
    floor = rb.SphereContact("shank", point=(0, 0, -0.16), radius=0.016, plane_point=(0, 0, 0), plane_normal=(0, 0, 1))
    return builder.build(), np.array([0.30, 0.8, -1.6]), {"forces": [floor]}


def free_tree():
    """A floating tree with spherical and revolute joints, damping and stops."""
    builder, passive = rb.ModelBuilder(gravity=GRAVITY), rb.PassiveForces(damping=0.1, stiffness=0.5)
    inertia = rb.Inertia(1.0, cg=(0.05, 0.02, -0.01), inertia=(0.01, 0.012, 0.015))
    limits = rb.JointLimits(lower=-0.4, upper=0.5)
    builder.add_body("base", joint=rb.Free(), inertia=inertia)
    for i, parent in enumerate(("base", "base", "link1")):
        place, is_hinge = rb.Pose((0.1 * (-1) ** i, 0.05 * i, 0)), i < 2
        joint = rb.Revolute((0, 1, 0)) if is_hinge else rb.Spherical()
        settings = {"passive": passive, "limits": limits} if is_hinge else {}
        builder.add_body(f"link{i}", parent=parent, joint=joint, placement=place, inertia=inertia, **settings)
    model, rng = builder.build(), np.random.default_rng(0)
    q = np.tile(model.neutral(), (3, 1))
    q[:, 2], q[:, 7:9] = 0.2, rng.uniform(-0.3, 0.4, (3, 2))
    return model, q, rng.normal(size=(3, model.nv))


def contacts_of_tree():
    points = (
        ("base", (0.1, 0.1, -0.05), 0.5, 0.3),
        ("base", (-0.1, -0.1, -0.05), 0.5, 0.3),
        ("link2", (0, 0, -0.1), 0.9, 0.0),
    )
    spheres = [
        rb.SphereContact(
            body, point=at, radius=0.05, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), friction=mu, restitution=e
        )
        for body, at, mu, e in points
    ]
    stops = [rb.HardStops("link0", restitution=0.5), rb.HardStops("link1", restitution=0.2)]
    return [*spheres, *stops, rb.DryFriction("link0", 0.2, static=0.3)]


def difference(model, q, qd, method, **settings):
    """Return the largest difference between a motion in one call and in calls of one step, of the last states."""
    settings = {"method": method, "step": STEP, **settings}
    one = model.simulate(q, qd, STEPS * STEP, save_at=2, **settings)
    saved = model.simulate(q, qd, STEPS * STEP, save_at=STEPS + 1, **settings)
    assert np.all(one.success)
    np.testing.assert_array_equal(saved.end_q, one.end_q)
    np.testing.assert_array_equal(saved.end_qd, one.end_qd)
    for _ in range(STEPS):
        piece = model.simulate(q, qd, STEP, save_at=2, **settings)
        q, qd = piece.end_q, piece.end_qd
    return max(np.abs(q - one.end_q).max(), np.abs(qd - one.end_qd).max())


@pytest.mark.parametrize("damping", [0.05, 0.8])
def test_a_leg_on_the_floor_continues_bit_for_bit(damping):
    model, q, settings = leg(damping)
    assert difference(model, q, np.zeros(3), "moreau", **settings) == 0.0


@pytest.mark.fast_cases("implicit")
@pytest.mark.parametrize("method", ["moreau", "implicit", "rk4"])
def test_quaternions_damping_and_a_controller_at_its_limit_continue_to_round_off(method):
    """Each call normalizes the quaternions again, which changes them by round-off."""
    model, q, qd = free_tree()
    drives = [rb.PID("link0", reference=0.2, kp=20.0, kd=1.0, limit=3.0)]
    assert difference(model, q, qd, method, drives=drives) < 1e-12


@pytest.mark.slow
def test_contacts_stops_and_friction_continue_to_round_off():
    """Impacts multiply differences, here by up to 1e3 in 16 steps."""
    model, q, qd = free_tree()
    drives = [rb.PID("link0", reference=0.2, kp=20.0, kd=1.0, limit=3.0)]
    assert difference(model, q, qd, "moreau", forces=contacts_of_tree(), drives=drives) < 1e-11


@pytest.mark.fast_cases("implicit")
@pytest.mark.parametrize("method", ["moreau", "implicit", "rk4"])
def test_closed_chains_continue_bit_for_bit(method):
    bars = four_bar()
    model = bars.model
    q, forces = model.assemble(bars.guess), []
    if method == "moreau":
        height = model.frame_poses(q, "coupler").translation[1] - 0.02
        floor = rb.SphereContact(
            "coupler",
            point=(0, 0, 0),
            radius=0.0,
            plane_point=(0, height, 0),
            plane_normal=(0, 1, 0),
            friction=0.3,
            restitution=0.4,
        )
        forces = [rb.DryFriction(model.joint_names[2], kinetic=0.05), floor]
    assert difference(model, q, np.zeros(3), method, forces=forces) < 1e-13


@pytest.mark.slow
def test_a_closed_chain_that_slides_on_a_plane_continues_to_round_off():
    """The moves out of the plane satisfy the constraint of the rod to first order only."""
    builder = rb.ModelBuilder(gravity=GRAVITY)
    body = rb.Inertia(1.0, cg=(0.05, 0.02, -0.01), inertia=(0.01, 0.012, 0.015))
    places = {"a": (0, 0, 0), "b": (0.3, 0.1, -0.1), "c": (0.2, -0.1, 0.1), "d": (-0.1, 0.3, 0.1)}
    joints = {"a": rb.Revolute((0, 1, 0)), "b": rb.Revolute((1, 0, 0)), "c": rb.Planar(), "d": rb.Revolute((0, 1, 0))}
    for name, parent in (("a", None), ("b", "a"), ("c", "b"), ("d", "a")):
        builder.add_body(
            name, parent=parent, joint=joints[name], placement=rb.Pose(places[name], (0.1, 0.3, 0.2, 1.0)), inertia=body
        )
    open_tree = builder.build()
    q = open_tree.neutral()
    ends = [open_tree.frame_poses(q, name).translation for name in ("c", "d")]
    length = float(np.linalg.norm(ends[1] - ends[0]))
    builder.add_constraint(rb.DistanceConstraint("rod", "c", "d", point_a=(0, 0, 0), point_b=(0, 0, 0), length=length))
    model = builder.build()
    q, height = model.assemble(q), ends[0][2]
    floor = rb.SphereContact(
        "c", point=(0, 0, 0), radius=0.0, plane_point=(0, 0, height - 1e-3), plane_normal=(0, 0, 1)
    )
    motion = model.simulate(q, np.zeros(model.nv), STEPS * STEP, method="moreau", step=STEP, forces=[floor])
    assert np.linalg.norm(motion.contact_forces[:, 0], axis=-1).max() > 1.0
    assert difference(model, q, np.zeros(model.nv), "moreau", forces=[floor]) < 1e-11


@pytest.mark.slow
def test_a_box_on_redundant_feet_continues_to_round_off():
    """Four feet have twelve rows for six dofs. The impulses start from zero in each step, so they are the same."""
    builder = rb.ModelBuilder(gravity=GRAVITY)
    builder.add_body("box", joint=rb.Free(), inertia=rb.Inertia.box((0.4, 0.3, 0.2), mass=2.0))
    feet = [
        rb.SphereContact(
            "box",
            point=(x, y, -0.1),
            radius=0.0,
            plane_point=(0, 0, 0),
            plane_normal=(0, 0, 1),
            friction=0.5,
            restitution=0.3,
        )
        for x in (-0.2, 0.2)
        for y in (-0.15, 0.15)
    ]
    start = np.array([0, 0, 0.11, 0, 0, 0, 1.0]), np.array([0.5, 0.2, 0, 0, 0.1, 1.0])
    assert difference(builder.build(), *start, "moreau", forces=feet) < 1e-11


def test_a_joint_that_sticks_does_not_move_while_another_body_bounces():
    """The position of a step with an impact follows from the velocities before and after it."""
    builder = rb.ModelBuilder(gravity=GRAVITY)
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    builder.add_body("block", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(1.0))
    floor = rb.SphereContact(
        "ball", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), restitution=0.8
    )
    forces = [floor, rb.DryFriction("block", kinetic=12.0)]
    settings = {"method": "moreau", "step": 0.007, "forces": forces, "save_at": 21}
    motion = builder.build().simulate([0.5, 0.3], [0.0, 0.0], 2.0, **settings)
    assert motion.impacts[0].count > 2
    np.testing.assert_array_equal(motion.q[:, 1], 0.3)
