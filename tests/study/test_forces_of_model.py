"""Studies of robots on the ground: contacts of collision shapes, stops at position limits and keyframes."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.study.plan.plan import plan_of

from ..mechanisms import EXAMPLES

plain = pytest.mark.plain_python
QUADRUPED = EXAMPLES / "quadruped.toml"
FALL = {"duration": 0.01, "method": "moreau", "step": 2e-3, "save_at": 2}
HOPPER = """
samples = 2
model = { file = "hopper.toml" }
simulate = { duration = 0.01, method = "moreau", step = 0.005SIMULATE }
FORCES
"""


def hopper():
    """A model with a shape, limits, a drive with an input and a keyframe."""
    builder = rb.ModelBuilder(name="hopper")
    sphere, leg = rb.CollisionShape("sphere", (0.1,)), rb.Inertia.rod(0.4, mass=1.0)
    limits = rb.JointLimits(lower=-1.0, upper=1.0)
    builder.add_body("trunk", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=2.0), collisions=[sphere])
    builder.add_body("leg", parent="trunk", joint=rb.Revolute((0, 1, 0)), joint_name="hip", inertia=leg, limits=limits)
    builder.add_drive(rb.PID("hip", rb.Input("servo"), kp=5.0, kd=0.1))
    model = builder.build()
    q, qd = model.neutral(), np.zeros(model.nv)
    q[2], qd[6] = 0.5, 0.3
    keyframe = rb.model.keyframe.Keyframe(q, qd, {"servo": 0.4})
    return rb.Model(model.description.replaced({"keyframes": {"standing": keyframe}}))


def study_of_hopper(folder, simulate="", forces=""):
    rb.save(hopper(), folder / "hopper.toml")
    file = folder / "study.toml"
    file.write_text(HOPPER.replace("SIMULATE", f", {simulate}" if simulate else "").replace("FORCES", forces))
    return rb.Study.read(file)


@plain
def test_a_table_of_contacts_and_one_of_stops_are_the_forces_of_the_model(tmp_path):
    forces = """
        forces = [
          { type = "contacts", ground = { point = [0, 0, -1], normal = [0, 0, 1] }, frames = "trunk", friction = 0.3 },
          { type = "hard_stops", restitution = 0.2 },
          { type = "Wrench", frame = "leg", force = [1.0, 0.0, 0.0] },
        ]"""
    model, found = hopper(), study_of_hopper(tmp_path, forces=forces).plan.nominal.forces
    expected = [
        *model.contacts(ground=rb.Plane((0.0, 0.0, -1.0), (0.0, 0.0, 1.0)), frames=["trunk"], friction=0.3),
        *model.hard_stops(restitution=0.2),
        rb.Wrench("leg", force=[1.0, 0.0, 0.0]),
    ]
    assert [repr(force) for force in found] == [repr(force) for force in expected]
    assert len(found) == 3


@plain
def test_a_keyframe_is_the_initial_state_and_the_inputs_of_the_drives(tmp_path):
    nominal, model = study_of_hopper(tmp_path, 'keyframe = "standing"').plan.nominal, hopper()
    np.testing.assert_array_equal(nominal.q, model.keyframes["standing"].q)
    np.testing.assert_array_equal(nominal.qd, model.keyframes["standing"].qd)
    assert nominal.model.inputs == {"servo": 0.4}
    assert nominal.drives == nominal.model.drives


@plain
@pytest.mark.parametrize(
    ("simulate", "forces", "message"),
    [
        ('keyframe = "stand"', "", "simulate.keyframe: the model has no keyframe 'stand'; its keyframes are"),
        ('keyframe = "standing", qd = 1.0', "", "simulate.keyframe and qd are given; remove qd"),
        ("", 'forces = [{ type = "contact" }]', "type is 'contact'; expected one of .*contacts, hard_stops"),
        ("", 'forces = [{ type = "contacts", plane = 1 }]', "unknown key 'plane'; expected one of ground, frames"),
        ("", 'forces = [{ type = "contacts", friction = -1 }]', "friction is -1; expected a number .*0"),
        ("", 'forces = [{ type = "contacts", frames = ["leg"] }]', "forces: .*"),
        ("", 'forces = [{ type = "hard_stops", restitution = 2 }]', "restitution is 2; expected a number .*1"),
    ],
)
def test_mistakes_are_named(tmp_path, simulate, forces, message):
    with pytest.raises(rb.StudyError, match=message):
        study_of_hopper(tmp_path, simulate, forces)


@plain
@pytest.mark.filterwarnings("ignore:.*omitted from the model")
def test_the_quadruped_from_a_file_is_the_one_in_python():
    """The first steps of two samples have the same outputs, bit for bit."""
    pytest.importorskip("mujoco")
    study = rb.Study.read(QUADRUPED)
    robot = rb.load(EXAMPLES / "quadruped.xml")
    keyframe = robot.keyframes["standing"]
    forces = [*robot.contacts(ground=rb.Plane((0, 0, 0), (0, 0, 1))), *robot.hard_stops()]
    given = study.description.model_copy(update={"samples": 2, "simulate": rb.Simulation(keyframe="standing", **FALL)})
    python = rb.Study(
        robot.with_inputs(keyframe.inputs),
        samples=2,
        seed=1,
        forces=forces,
        vary=study.description.vary,
        simulate=rb.Simulation(q=keyframe.q, qd=keyframe.qd, **FALL),
        measures=study.description.measures,
    )
    found, expected = plan_of(given, EXAMPLES).compute(0, 2), python.plan.compute(0, 2)
    assert len(forces) == 24
    assert (found["status"] == rb.Status.DONE).all()
    assert found.keys() == expected.keys()
    for name in found:
        np.testing.assert_array_equal(found[name], expected[name])
    np.testing.assert_allclose(found["lowest height"], 0.35, atol=0.5 * 9.81 * 0.01**2 + 1e-9)
