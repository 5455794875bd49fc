"""Wrong calls: former names of arguments, names from other packages, and values by position that need keywords."""

import inspect
import re
from functools import cache

import numpy as np
import pytest

import rbchain as rb
from rbchain.acting.events import EventRecord
from rbchain.cli import main

ARM = rb.Model.serial_chain(2)
ORIGIN = (0, 0, 0)
NOISE = rb.Signal.noise(0.5, frequencies=(0.0, 10.0))

pytestmark = pytest.mark.plain_python


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rb.Signal.table([0, 1], [0, 1], kind="linear"), "Signal.table has no argument 'kind'; use interpolat"),
        (lambda: ARM.simulate(duration=1.0, sensitivities=["q"]), "has no argument 'sensitivities'; use derivatives"),
        (lambda: ARM.simulate(t_end=1.0), "Model.simulate has no argument 't_end'; use duration"),
        (lambda: ARM.simulate(t=1.0), "Model.simulate has no argument 't'; use duration"),
        (lambda: ARM.simulate(duration=1.0, samples=11), "Model.simulate has no argument 'samples'; use save_at"),
        (lambda: ARM.simulate(duration=1.0, contacts=[]), "Model.simulate has no argument 'contacts'; use forces"),
        (lambda: rb.PID("link1", 0.0, kp=1, model="own"), "PID has no argument 'model'; use controller_model"),
        (lambda: rb.PassiveForces(lower_limit=0.0), "has no argument 'lower_limit'; use stop_lower"),
        (lambda: rb.Wrench(body="link1"), "Wrench has no argument 'body'; use frame"),
        (lambda: rb.SphereContact(body="link1"), "SphereContact has no argument 'body'; use frame"),
        (lambda: rb.SpringDamper(body_a="link1"), "SpringDamper has no argument 'body_a'; use frame_a"),
        (lambda: rb.BallConstraint("tip", body_b="link1"), "BallConstraint has no argument 'body_b'; use frame_b"),
        (lambda: rb.Immersion(frame=rb.Pose()), "Immersion has no argument 'frame'; use pose"),
        (lambda: rb.Immersion(1.0, center=ORIGIN), "Immersion has no argument 'center'; use buoyancy_center"),
        (lambda: rb.Encoder("link1", samples=[1]), "Encoder has no argument 'samples'; use sample_ids"),
        (lambda: rb.VelocitySensor("link1", samples=1), "VelocitySensor has no argument 'samples'; use sample_ids"),
        (lambda: NOISE.signal(1.0, samples=[1]), "RandomSignal.signal has no argument 'samples'; use sample_ids"),
        (lambda: (NOISE + 1.0).signal(1.0, samples=[1]), "SignalSum.signal has no argument 'samples'; use sample_ids"),
        (lambda: rb.Event("link1", most=3), "Event has no argument 'most'; use max_records"),
        (lambda: rb.PID("link1", 0.0, kp=1, torque_limit=3), "PID has no argument 'torque_limit'; use limit"),
        (lambda: rb.Sampled(rb.PID("link1", 0.0, kp=1), rate=100), "'rate'; use period, the inverse of the rate"),
        (lambda: rb.Encoder("link1", std=0.1), "'std'; use noise, the standard deviation"),
        (lambda: rb.SphereContact("link1", mu=0.5), "SphereContact has no argument 'mu'; use friction"),
        (lambda: rb.Inertia(1.0, com=ORIGIN), "Inertia has no argument 'com'; use cg"),
        (lambda: rb.Revolute(range=(0, 1)), "use limits=rb.JointLimits.* of ModelBuilder.add_body"),
        (lambda: rb.ModelBuilder().add_body("link", armature=0.1), "'armature'; use rotor_inertia"),
        (lambda: ARM.jacobian([0, 0], "link2", axes="world"), "'axes'; use the result as it is, in world axes"),
    ],
)
def test_former_and_foreign_names_of_arguments_name_the_right_one(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_each_hint_for_a_foreign_name_is_for_an_unknown_argument_and_names_a_known_one():
    hinted = [cls for name in rb.__all__ if getattr(cls := getattr(rb, name), "foreign_arguments", None)]
    assert len(hinted) > 15
    body = inspect.signature(rb.ModelBuilder.add_body).parameters
    for cls in hinted:
        known = inspect.signature(cls.__init__).parameters
        for foreign, instead in cls.foreign_arguments.items():
            assert foreign not in known, (cls, foreign)
            first = re.match(r"\w+", instead)[0]
            assert first in (body if "add_body" in instead else known) or instead.startswith("rb."), (cls, foreign)


def test_former_names_of_attributes_name_the_right_one():
    weld = rb.WeldConstraint("weld", None, "link1")
    for value, former, now in ((weld, "body_b", "frame_b"), (rb.Immersion(), "frame", "pose")):
        with pytest.raises(AttributeError, match=f"object has no attribute '{former}'; it is now {now}"):
            getattr(value, former)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rb.PID("link1", 0.0, kpp=1), r"PID has no argument 'kpp'; expected .*; did you mean kp\?"),
        (lambda: ARM.simulate(duration=1.0, save_att=3), r"has no argument 'save_att'; .*; did you mean save_at\?"),
        (lambda: rb.Study(ARM, sample=3), r"Study has no argument 'sample'; expected .*; did you mean samples\?"),
        (lambda: rb.ModelBuilder(gravty=0), r"ModelBuilder has no argument 'gravty'; .*; did you mean gravity\?"),
        (lambda: rb.Free(axis=0), "Free has no argument 'axis'; expected none"),
    ],
)
def test_misspelled_names_of_arguments_suggest_the_right_one(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rb.SphereContact("b", ORIGIN, 0.1, ORIGIN, (0, 0, 1), 0.5),
            "SphereContact was called with 6 values by position; expected frame. Give the others by keyword: "
            "point, radius, plane_point, plane_normal; optional: name, friction, restitution, max_records",
        ),
        (
            lambda: rb.SpringDamper("a", "b", ORIGIN, ORIGIN, 10.0, 1.0),
            "SpringDamper was called with 6 values by position; expected frame_a, frame_b. Give the others by keyword: "
            "point_a, point_b, stiffness; optional: name, damping, rest_length, tension_only",
        ),
        (
            lambda: rb.PID("link1", 0.0, 50, 2, 5),
            "PID was called with 5 .* expected joint, reference. .* keyword: kp; ",
        ),
        (lambda: rb.PassiveForces(0.1), "called with 1 value by position; expected none. Give them by keyword: stiff"),
        (
            lambda: ARM.simulate([0, 0], [0, 0], 1.0, "rk4"),
            "simulate was called with 4 values by position; expected q0, qd0, duration. Give .* keyword: method, tau",
        ),
        (lambda: ARM.accelerations([0, 0], [0, 0], 1.0), "accelerations was called with 3 .* q, qd. .*keyword: t, tau"),
        (
            lambda: rb.ModelBuilder("arm"),
            "ModelBuilder was called with 1 value by position; expected none. Give them by keyword: name, grav",
        ),
        (lambda: ARM.assemble([0, 0], ["link1"]), "Model.assemble was called with 2 .* q_guess. .* keyword: fixed"),
        (lambda: ARM.jacobian([0, 0], "link2", ORIGIN), "Model.jacobian was called with 3 .* q, frame. .*: point"),
        (lambda: rb.Inertia.rod(1.0, 2.0), "Inertia.rod was called with 2 .* length. .* keyword: mass, density, axis"),
        (lambda: rb.Signal.sines(1, 2, 3), "Signal.sines was called with 3 .* keyword: phase, offset"),
        (lambda: rb.Signal.noise(1, 2, 3), "noise was called with 3 .* keyword: factor, offset"),
        (lambda: rb.Signal([0, 1], [0, 1]), r"Signal was called with 2 .* use Signal\.table\(times, values\)"),
        (
            lambda: rb.ModelBuilder().add_body("b", rb.Revolute()),
            "ModelBuilder.add_body was called with 2 .*: parent, joint",
        ),
        (lambda: rb.load("arm.urdf", rb.Free()), "load was called with 2 .* path. .* keyword: base, nonphys"),
        (lambda: ARM.frame_poses([0, 0], "link1", True), "Model.frame_poses was called with 3 .* expected q, frame"),
        (lambda: rb.Study(ARM, samples=8, simulate=rb.Simulation(1.0)).run(None, 4), "Study.run was called with 2 "),
        (lambda: rb.fit(ARM, None, [], []), "fit was called with 4 .* model, motion, parameters. .* keyword: drives"),
        (lambda: rb.Study(ARM, 8, rb.Simulation(1.0)), "Study was called with 3 .* model. .*: samples, simulate; opt"),
    ],
)
def test_values_by_position_that_need_keywords_name_the_keywords(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_descriptions_of_studies_name_the_keywords_too():
    message = "Measure was called with 3 values by position; expected name, quantity. Give .* keyword: over, frame"
    with pytest.raises(rb.StudyError, match=message):
        rb.Measure("x", "speed", "tool")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ARM.body("link1"), r"model\.body is not a method; write model\.body\['link1'\]"),
        (lambda: ARM.joint("link2"), r"model\.joint is not a method; write model\.joint\['link2'\]"),
        (lambda: rb.Event("link1", 0.5), r"function is 0\.5; .*Give the value .* by keyword: value=0\.5"),
        (
            lambda: rb.Study(ARM, samples=3, simulate=0.1),
            r"simulate: found 0\.1; expected a Simulation, such as rb\.Simulation\(0\.1\), or a table",
        ),
    ],
)
def test_habits_from_other_packages_name_the_right_call(call, message):
    with pytest.raises((TypeError, rb.RbchainError), match=message):
        call()


@cache
def motion():
    """A motion. It is made when a test needs it, because all commands import this file."""
    return ARM.simulate(duration=0.01, method="rk4", step=0.01, save_at=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rb.Pose() @ np.zeros(3), r"cannot compose a Pose with array\(.*; use pose.apply\(points\)"),
        (lambda: rb.Model(), r"models are made by rbchain.load\(path\), ModelBuilder.build\(\) or Model.serial_chain"),
        (lambda: motion()["link1"], r"the sample index is the name 'link1'; .* use motion.of_joint\('link1'\)"),
        (lambda: ARM["link1"], r"is the name 'link1'; .* use model.body\['link1'\] or model.joint\['link1'\]"),
        (lambda: ARM[0], "the sample index is 0, but this is not a batch"),
        (lambda: ARM.simulate(duration=1.0, tau=rb.Signal.constant(1.0)), "tau is a signal, .*rb.PrescribedForce"),
        (lambda: ARM.simulate(duration=1.0, timestep=0.1), "has no argument 'timestep'; use step"),
        (lambda: ARM.simulate(duration=1.0, ctrl=0.1), "has no argument 'ctrl'; use tau, or drives"),
        (lambda: rb.Event("link1", terminal=True), "Event has no argument 'terminal'; use stop"),
    ],
)
def test_other_habits_name_the_right_call_too(call, message):
    with pytest.raises((TypeError, rb.RbchainError), match=message):
        call()


@pytest.mark.parametrize(
    ("value", "name", "here"),
    [
        (lambda: ARM, "nbody", "n_bodies"),
        (lambda: ARM, "ndof", "nv"),
        (motion, "qpos", "q"),
        (motion, "y", "q and qd"),
        (lambda: EventRecord(*np.zeros((4, 1))), "time", "t"),
    ],
)
def test_attributes_of_other_packages_name_the_right_one(value, name, here):
    with pytest.raises(AttributeError, match=f"object has no attribute '{name}'; use {here}$"):
        getattr(value(), name)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ARM.vary(masss=[1.0, 1.0]), r"vary\(\) has no field 'masss'; .*; did you mean mass\?"),
        (lambda: ARM.vary(link2=3.0), r"'link2' is the name of an owner; use a path such as \{\"link2.mass\": value\}"),
        (lambda: rb.fit(ARM, motion(), ["mas"]), r"parameters contains 'mas'; .*; did you mean mass\?"),
        (lambda: rb.fit(ARM, motion(), ["link1.dampng"]), r"'link1' has no 'dampng'; did you mean damping\?"),
        (lambda: ARM.simulate(duration=1.0, derivatives=["mas"]), r"contains 'mas'; .*; did you mean mass\?"),
        (lambda: motion().plot(joints=["lnk1"]), r"joints contains 'lnk1'; .*; did you mean link1\?"),
    ],
)
def test_misspelled_names_in_lists_are_unknown_names(call, message):
    with pytest.raises(rb.UnknownNameError, match=message):
        call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("study", "sensitivity", "x.toml", "--samples", "5"), "sensitivity is now called rbchain study indices"),
        (("study", "indices", "x.toml", "--samples", "5"), "--samples is now called --base-samples"),
        (("simulate", "x.urdf", "--samples=5"), "--samples is now called --save-at"),
    ],
)
def test_former_names_on_the_command_line_name_the_new_ones(capsys, arguments, message):
    with pytest.raises(SystemExit) as exit_code:
        main(arguments)
    assert exit_code.value.code == 2
    assert message in capsys.readouterr().err


def test_explained_functions_keep_their_signatures_and_classes_of_users_their_arguments():
    assert list(inspect.signature(rb.Signal.table).parameters) == ["times", "values", "interpolation"]
    assert rb.Model.simulate.__doc__.startswith("Simulate the motion")

    class Step(rb.PID):
        def __init__(self, joint, *gains, **others):
            super().__init__(joint, 1.0, kp=gains[0], **others)

    assert Step("link1", 3.0, 4.0, kd=np.float64(2.0)).kp == 3.0


def test_warnings_of_explained_functions_point_at_the_line_of_the_call():
    rod = {"joint": rb.Revolute(), "inertia": rb.Inertia.rod(1, mass=1), "limits": rb.JointLimits(-0.1, 0.1)}
    builder, other = rb.ModelBuilder(), rb.ModelBuilder()
    with pytest.warns(UserWarning, match="no stop_lower") as of_builder:
        builder.add_body("rod", passive=rb.PassiveForces(limit_stiffness=1.0), **rod)
    other.add_body("rod", **rod)
    with pytest.warns(rb.SimulationWarning, match="limits") as of_motion:
        other.build().simulate([[0.0]], [[20.0]], 0.01, method="rk4", step=0.01, save_at=2)
    assert {of_builder[0].filename, of_motion[0].filename} == {__file__}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rb.Revolute("y"), rb.ModelError, "is 'y'; expected a vector of three numbers, such as"),
        (lambda: rb.Inertia.rod(1.0, mass=1.0, axis="z"), rb.ModelError, "axis is 'z'; expected a vector of three"),
        (lambda: ARM.vary(mass_and_inertia=[1.0, 1.0]), rb.UnknownNameError, r'as \{"link1.mass_and_inertia": mass\}'),
        (
            lambda: rb.fit(ARM, (np.arange(3.0), np.zeros((3, 2)), None), ["link1.mass_and_inertia"]),
            rb.ArgumentError,
            "'link1.mass_and_inertia', which fit does not support; expected the path of the mass",
        ),
        (lambda: ARM.simulate(duration=0.1, forces=[rb.PID("link1", 0.0, kp=1)]), rb.ArgumentError, "Pass drives as"),
        (lambda: ARM.simulate(duration=0.1, drives=[rb.Wrench("link1")]), rb.ArgumentError, "Pass forces as"),
        (lambda: rb.Dispersion(rb.Normal(std=0.05), how="multiply"), rb.StudyError, "expected the mean factor"),
        (lambda: rb.Hinge((0, 0, 1)), AttributeError, "has no attribute 'Hinge'; use rb.Revolute"),
        (lambda: rb.rnea, AttributeError, "has no attribute 'rnea'; use model.inverse_dynamics"),
        (lambda: ARM.crba, AttributeError, "has no attribute 'crba'; use mass_matrix"),
        (lambda: ARM.simulate(duration=0.1, method="RK45"), rb.ArgumentError, "did you mean rk45"),
        (
            lambda: ARM.vary(mass=np.ones((3, 2))).lock_state(["link1"], [0, 0], [0, 0]),
            rb.ModelError,
            "lock_state: the samples of the model differ; .* before vary",
        ),
    ],
)
def test_values_that_other_packages_accept_are_answered_by_what_to_pass(call, error, message):
    with pytest.raises(error, match=message):
        call()
