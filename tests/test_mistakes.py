"""Mistakes that once had no error, or the error of another package: each message says what to change."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.io.dh import DHLink, from_dh

from .plain_python import DISABLED

ARM = rb.Model.serial_chain(2)
MANY = ARM.vary(mass=np.ones((4, 2)))
REST = np.zeros(2)
ROBOT = """<robot name="r"><link name="base"/><link name="rod"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>{in_link}</link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/>{in_joint}</joint></robot>"""
MECHANISM = """format = "rbchain 1"
[[body]]
name = "rod"
joint = { type = "revolute" }
mass = 1
inertia = [1, 1, 1]
"""


def simulate(samples=None, **settings):
    state = np.zeros((2,) if samples is None else (samples, 2))
    return ARM.simulate(state, state, 0.02, **{"method": "rk4", "step": 0.01, "save_at": 2} | settings)


def written(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("mistake", "message"),
    {
        "parallel axes": (lambda: rb.Universal((1, 0, 0), (-2, 0, 0)), "which are parallel; expected two directions"),
        "pose of a visual": (
            lambda: rb.Visual("cylinder", (0.1, 0.5), pose=(0, 0, 1)),
            r"pose of a cylinder is \(0, 0, 1\); expected a Pose",
        ),
        "size of a sphere": (lambda: rb.Visual("sphere", 0.3), r"size of a sphere is 0.3; expected \(radius,\)"),
        "name of a color": (
            lambda: rb.Visual("sphere", (1,), color="red"),
            "color is 'red'; expected three or four numbers from 0 to 1",
        ),
        "pose of an inertia": (lambda: rb.Inertia(1).moved((0, 0, 1)), r"pose is \(0, 0, 1\); expected a Pose"),
        "file name as a model": (lambda: rb.Model("arm.urdf"), "expected a Description. Use rbchain.load for a file"),
        "arguments in the wrong order": (lambda: rb.save("a.toml", ARM), r"expected a Model. Call save\(model, path\)"),
        "one link": (lambda: from_dh(DHLink(1, 0, 0)), "expected a list of one or more DHLink"),
        "center of a payload": (
            lambda: ARM.with_payload("link2", mass=1, cg=0.1),
            r"payload on 'link2': cg has shape \(\); expected \(3,\)",
        ),
        "batch of a payload": (
            lambda: MANY.with_payload("link2", mass=[1, 2]),
            r"the batch shapes do not fit together: mass \(2,\), cg \(\), inertia \(\), the model \(4,\)",
        ),
        "missing limit": (
            lambda: rb.JointLimits(np.nan),
            "lower is nan; expected numbers, or infinity for no limit",
        ),
    }.values(),
)
def test_a_mistake_in_a_model_is_refused(mistake, message):
    with pytest.raises(rb.ModelError, match=message):
        mistake()


@pytest.mark.parametrize(
    ("mistake", "message"),
    {
        "rtol of rk4": (
            lambda: simulate(rtol=1e-6),
            'rtol is 1e-06, but method "rk4" has steps of fixed length and no error control. Remove rtol',
        ),
        "atol of implicit": (
            lambda: simulate(method="implicit", atol=1e-6),
            'atol is 1e-06, but method "implicit" has steps of fixed length',
        ),
        "longest step of rk4": (
            lambda: simulate(max_step=0.1),
            'max_step is 0.1, but method "rk4" has steps of fixed length and no error control. Remove max_step',
        ),
        "steps of rk4": (
            lambda: simulate(max_steps=100),
            'max_steps is 100, but method "rk4" has steps of fixed length',
        ),
        "longest step of zero": (lambda: simulate(method="rk45", step=None, max_step=0.0), "max_step is 0.0; expected"),
        "no frames": (
            lambda: ARM.frame_poses(REST, []),
            r"frame is \[\]; expected the name of a body or frame, or a list",
        ),
        "number of a frame": (
            lambda: ARM.jacobian(REST, 1),
            "frame is 1; expected the name of a body or frame, or a li",
        ),
        "gains for a single state": (
            lambda: simulate(drives=[rb.PID("link1", 0, kp=[1, 2])]),
            r"kp has shape \(2,\); expected one number, because q0 and qd0 are a single state",
        ),
        "parameters of three samples": (
            lambda: simulate(2, drives=[rb.UserForces(np.copyto, parameters=np.ones((3, 1)))]),
            r"UserForces with function 'copyto': parameters has shape \(3, 1\); expected m numbers, or m for each",
        ),
        "stop as text": (
            lambda: simulate(events=[rb.Event("link1", stop="no")]),
            "stop is 'no'; expected True or False",
        ),
        "value of a function": (
            lambda: simulate(events=[rb.Event(function=np.copyto, value=0.5, stop=True)]),
            "Event with function 'copyto' has value = 0.5, but only the event of a joint has a value; remove value",
        ),
        "quantity of a function": (
            lambda: simulate(events=[rb.Event(function=np.copyto, quantity="velocity", stop=True)]),
            "Event with function 'copyto' has quantity = 'velocity', but only the event of a joint",
        ),
        "dof of a function": (
            lambda: simulate(events=[rb.Event(function=np.copyto, dof=1, stop=True)]),
            "Event with function 'copyto' has dof = 1, but only the event of a joint",
        ),
        "parameters of the event of a joint": (
            lambda: simulate(events=[rb.Event("link1", parameters=[0.5], stop=True)]),
            r"Event of joint 'link1': parameters is \[0.5\], but only a function has parameters; remove them",
        ),
        "derivatives of a sampled function": (
            lambda: simulate(drives=[rb.Sampled(rb.UserForces(np.copyto, derivatives=np.copyto))]),
            "it has derivatives, which Sampled does not use",
        ),
        "more steps than memory": (
            lambda: simulate(dense_output=10**15),
            f"dense_output is {10**15} and there are 1 samples, which needs more memory than this machine has",
        ),
        "more steps than numbers": (
            lambda: simulate(dense_output=10**30),
            f"dense_output is {10**30} and there are 1 samples, which needs more memory than this machine has",
        ),
        "table of one time": (lambda: rb.Signal.table([0], [0]), "expected at least two times"),
        "sines of different lengths": (
            lambda: rb.Signal.sines([1, 2], [1, 2, 3]),
            r"the shapes of the sines differ: amplitude \(2,\), angular_frequency \(3,\)",
        ),
        "spline": (lambda: rb.Signal.pieces(3), "piecewise is 3; expected a PPoly of SciPy"),
        "seed": (lambda: ARM.random_state("seed"), "rng is 'seed'; expected a numpy Generator, or a seed"),
        "negative batch": (lambda: ARM.random_state(0, batch=-1), "batch is -1; expected a whole number of at least 0"),
        "read-only result": (
            lambda: ARM.gravity_forces(REST, out=np.frombuffer(bytes(16))),
            "out has shape .*, type float64, read-only; expected",
        ),
    }.values(),
)
def test_a_mistake_in_a_call_is_refused(mistake, message):
    with pytest.raises(rb.ArgumentError, match=message):
        mistake()


@pytest.mark.parametrize(
    ("mistake", "message"),
    {
        "port": (lambda motion: motion.view(port=99999), "port is 99999; expected a whole number from 0 to 65535"),
        "sample": (
            lambda motion: motion.film("a.png", sample=3),
            "the trajectory has only one sample",
        ),
        "size": (lambda motion: motion.film("a.png", size=800), "size is 800; expected a width and a height in pixels"),
        "empty picture": (lambda motion: ARM.picture(size=(0, 0)), r"size is \(0, 0\); expected a width and a height"),
        "folder": (lambda motion: motion.film("/nowhere/a.png"), "the folder '/nowhere' does not exist"),
    }.values(),
)
def test_a_mistake_in_a_picture_is_refused(mistake, message):
    """A viewer with an invalid port once waited without end for its server."""
    with pytest.raises(rb.ArgumentError, match=message):
        mistake(simulate(save_at=3))


@pytest.mark.skipif(DISABLED, reason="plain Python does not know the return type of a function")
def test_a_user_function_that_returns_its_result_is_refused():
    """SciPy's functions return their results; here, a returned value would be ignored."""

    def returns(t, q, qd, parameters, out):
        return -q

    for actions in ({"drives": [rb.UserForces(returns)]}, {"events": [rb.Event(function=returns, stop=True)]}):
        with pytest.raises(
            rb.ArgumentError, match=r"'returns' returns a value of type array.*Write the results to the last"
        ):
            simulate(1, **actions)


def test_stops_without_limits_are_named():
    builder = rb.ModelBuilder()
    with pytest.warns(UserWarning, match="'arm': passive has a limit_stiffness but no stop_lower and no stop_upper"):
        builder.add_body(
            "arm",
            joint=rb.Revolute(),
            inertia=rb.Inertia.rod(1.0, mass=1.0),
            limits=rb.JointLimits(-1, 1),
            passive=rb.PassiveForces(limit_stiffness=1e4),
        )


@pytest.mark.parametrize("name", ["vary", "replace"])
def test_the_stiffness_of_a_stop_that_no_sample_has_is_refused(name):
    builder = rb.ModelBuilder()
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0), limits=rb.JointLimits(-1, 1))
    model = builder.build()
    for given in ({"limit_stiffness": 1e4}, {"arm.limit_stiffness": 1e4}, {"limit_stiffness": 1e4, "damping": 1.0}):
        with pytest.raises(rb.ModelError, match=r"limit_stiffness of body 'arm' is 10000.0, but the joint has no stop"):
            getattr(model, name)(given) if "arm.limit_stiffness" in given else getattr(model, name)(**given)
    with pytest.raises(rb.ModelError, match=r"limit_stiffness of body 'arm' of sample 1 is 3.0"):
        model.vary(limit_stiffness=[[0.0], [3.0]])
    assert model.vary(limit_stiffness=[[2.0], [3.0]], stop_upper=[[1.0], [np.inf]]).batch_shape == (2,)
    with pytest.raises(rb.StudyError, match=r"'arm' of sample 0 is .*, but the joint has no stop"):
        rb.Study(
            model, samples=3, simulate=rb.Simulation(0.1),
            vary={"arm.limit_stiffness": rb.Dispersion(rb.Uniform(1.0, 2.0), how="set")},
        )  # fmt: skip


@pytest.mark.parametrize("name", ["rtol", "max_step", "max_steps"])
def test_tolerances_of_a_study_need_a_method_that_uses_them(name):
    settings = {"duration": 0.1, "method": "rk4", "step": 0.01, name: 7}
    message = rf"simulate.{name} is 7(.0)?, but .*method 'rk4'.*; remove {name}"
    with pytest.raises(rb.StudyError, match=message):
        rb.Study(model=ARM, samples=2, simulate=settings)


def test_the_tolerance_of_contacts_can_be_set_in_a_study():
    settings = {"duration": 0.1, "method": "moreau", "step": 0.01}
    study = rb.Study(model=ARM, samples=2, simulate=settings | {"atol": 1e-6})
    assert study.description.simulate.settings() == {"method": "moreau", "step": 0.01, "atol": 1e-6}


@pytest.mark.parametrize(
    ("in_link", "in_joint", "message"),
    [
        ("", '<origin rpy="90 0 0"/>', "joint 'hinge' has the angle 90 rad in rpy of <origin>, .* expected radians"),
        ('<mass value="1"/>', "", "link 'rod' has <mass> outside <inertial>, which has no effect"),
    ],
)
def test_a_likely_mistake_in_a_urdf_file_is_named(tmp_path, in_link, in_joint, message):
    with pytest.warns(UserWarning, match=f"robot.urdf: {message}"):
        rb.load(written(tmp_path, "robot.urdf", ROBOT.format(in_link=in_link, in_joint=in_joint)))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    {
        "invalid mechanism": (
            "a.urdf",
            ROBOT.format(in_link="", in_joint='<dynamics damping="-1"/>'),
            "a.urdf: body 'rod': damping is -1.0; expected zero or more",
        ),
        "commas": (
            "a.urdf",
            ROBOT.format(in_link="", in_joint='<axis xyz="0,0,1"/>'),
            "'0,0,1'; expected 3 finite numbers, separated by spaces",
        ),
        "macro": (
            "a.urdf",
            ROBOT.format(in_link="", in_joint='<dynamics damping="${d}"/>'),
            "expected 1 finite number. Pass arguments=.*, or expand its macros with the program xacro",
        ),
        "macros": (
            "a.urdf",
            ROBOT.format(in_link="", in_joint="").replace("<link", '<xacro:include filename="rod.xacro"/><link', 1),
            "uses <xacro:include> in line 1. Pass arguments=.* the program xacro: xacro .* > .*a_expanded.urdf",
        ),
        "lower case": (
            "a.toml",
            MECHANISM + '[[drive]]\ntype = "pid"\njoint = "rod"\nreference = 0\nkp = 1',
            "drive of joint 'rod': type is 'pid'; .*; did you mean PID?",
        ),
        "missing gain": (
            "a.toml",
            MECHANISM + '[[drive]]\ntype = "PID"\njoint = "rod"\nreference = 0',
            "drive of joint 'rod': PID: required keys are missing: kp",
        ),
        "study": (
            "a.toml",
            "samples = 3\n[simulate]\nduration = 1",
            "This is the file of a study; read it with Study.read",
        ),
    }.values(),
)
def test_a_mistake_in_a_file_is_refused(tmp_path, name, text, message):
    with pytest.raises((rb.FileFormatError, rb.ModelError), match=message):
        rb.load(written(tmp_path, name, text))


@pytest.mark.plain_python
@pytest.mark.parametrize(
    "call",
    [
        lambda arm: arm.simulate([0.0], [0.0], 0.1, drives=[rb.PID("elbo", reference=0.0, kp=1.0)], save_at=2),
        lambda arm: arm.simulate([0.0], [0.0], 0.1, events=[rb.Event("elbo", value=1.0, stop=True)], save_at=2),
        lambda arm: arm.simulate([0.0], [0.0], 0.1, forces=[rb.Wrench("elbo", force=(0, 0, 1))], save_at=2),
        lambda arm: arm.simulate([0.0], [0.0], 0.1, forces=[rb.DryFriction("elbo", kinetic=1.0)], save_at=2),
        lambda arm: arm.simulate(
            [0.0],
            [0.0],
            0.1,
            forces=[rb.SpringDamper("elbo", None, point_a=np.zeros(3), point_b=np.ones(3), stiffness=1.0)],
            save_at=2,
        ),
        lambda arm: arm.simulate(
            [0.0],
            [0.0],
            0.1,
            forces=[
                rb.SphereContact("elbo", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1))
            ],
            save_at=2,
        ),
        lambda arm: arm.jacobian([0.0], "elbo"),
        lambda arm: arm.frame_poses([0.0], "elbo"),
        lambda arm: arm.lock({"elbo": 0.0}),
        lambda arm: arm.reroot("elbo"),
        lambda arm: arm.with_payload("elbo", mass=1.0),
    ],
)
def test_an_unknown_name_is_one_error_wherever_it_is_given(call):
    arm = rb.ModelBuilder()
    arm.add_body("elbow", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    with pytest.raises(rb.UnknownNameError, match=r"elbo'.*elbow"):
        call(arm.build())
