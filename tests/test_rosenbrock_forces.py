"""The Rosenbrock method with forces of water and with user functions: exact derivatives, closed forms and rk45."""

from dataclasses import replace

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import CHAINS, closed_chain, closed_state
from .other_process import computed as computed_by
from .quantities import random_states
from .test_one_source import check_alike
from .test_rosenbrock import derivatives_both_ways
from .test_water import KINDS, immersed_tree, in_air

plain = pytest.mark.plain_python


def agree(found, wanted, error):
    """Whether K, D and C agree, relative to the largest entry of each."""
    for exact, difference in zip(found, wanted, strict=True):
        np.testing.assert_allclose(exact, difference, rtol=0, atol=error * np.abs(difference).max(initial=0.0))


# --- water ------------------------------------------------------------------------------------------------------------

DOFS = {"revolute": 1, "prismatic": 1, "screw": 1, "universal": 2}
MOVING = rb.Signal.sines(0.3, 2.0, offset=0.1)
CURRENT = rb.Current((rb.Signal.sines(0.3, 2.0, offset=0.4), 0.2, rb.Signal.sines(0.5, 3.0)))


@plain
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("forces", [[], [CURRENT]], ids=["still", "current"])
def test_exact_derivatives_in_water_agree_with_differences(kinds, forces):
    model = immersed_tree(KINDS[kinds])
    q, qd = random_states(model, (), seed=7, arrays=2)
    agree(*derivatives_both_ways(model, q, qd, time=0.3, forces=forces), 1e-8)


@plain
@pytest.mark.parametrize("drag", [0.0, 1.0])
def test_derivatives_in_water_are_exact_at_rest(drag):
    """Where the derivative of the quadratic drag is zero."""
    model = immersed_tree(KINDS["vehicle_with_arm"], drag)
    q, qd = random_states(model, (), seed=8, arrays=2)
    agree(*derivatives_both_ways(model, q, 0 * qd), 1e-6)


@pytest.mark.slow
@plain
def test_a_vehicle_with_an_arm_in_a_current_follows_rk45_and_its_tolerance():
    model = immersed_tree(KINDS["vehicle_with_arm"])
    q, qd = random_states(model, (), seed=9, arrays=2)
    settings = {"duration": 0.05, "save_at": 3, "forces": [CURRENT]}
    reference = model.simulate(q, qd, rtol=1e-11, atol=1e-12, **settings)
    for tolerance in (1e-4, 1e-7):
        motion = model.simulate(q, qd, method="rosenbrock", rtol=tolerance, atol=tolerance, **settings)
        assert motion.success
        np.testing.assert_allclose(motion.q, reference.q, rtol=0, atol=10 * tolerance)
        np.testing.assert_allclose(motion.qd, reference.qd, rtol=0, atol=100 * tolerance)


def falling_plates():
    """Plates that fall along a slide, and each rate of change c / m of the linear drag, from 0.1 to 1e7 / s."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10.0), fluid_density=1.0)
    drag = rb.Immersion(linear_damping=(0, 0, 1.0, 0, 0, 0))
    builder.add_body("plate", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(2.0), immersion=drag)
    rates = np.logspace(-1, 7, 11)
    damping = np.zeros((11, 1, 6, 6))
    damping[:, 0, 2, 2] = 2.0 * rates
    return builder.build().vary(linear_damping=damping), rates


@pytest.mark.slow
def test_plates_in_lanes_reach_their_terminal_velocities():
    """v' = - g - rate (v - w): the velocity of linear drag in a steady current, from slow to very stiff."""
    model, rates = falling_plates()
    current = [rb.Current((0.0, 0.0, 0.3))]
    settings = {"method": "rosenbrock", "rtol": 1e-7, "atol": 1e-9, "save_at": 5, "forces": current}
    motion = model.simulate(np.zeros((11, 1)), np.zeros((11, 1)), 2.0, **settings)
    assert motion.success and (motion.steps < 200).all()
    terminal = 0.3 - 10.0 / rates[:, None]
    wanted = terminal * -np.expm1(-rates[:, None] * motion.t)
    np.testing.assert_allclose(motion.qd[..., 0], wanted, rtol=0, atol=1e-6)


def controlled_in_water(controllers, model, known):
    """Drives of a tree in water, for all dofs outside of free and spherical joints."""
    dofs = [
        (joint, dof)
        for joint, kind in zip(model.joint_names, model.joint_types, strict=True)
        for dof in range(DOFS.get(kind, 0))
    ]
    compensating = [
        rb.PID(joint, MOVING, kp=5.0, kd=0.2, dof=dof, gravity_compensation=True, controller_model=known)
        for joint, dof in dofs
    ]
    computing = [
        rb.ComputedTorque(joint, MOVING, kp=50.0, kd=8.0, dof=dof, controller_model=known) for joint, dof in dofs
    ]
    both = [*computing[:1], *compensating[1:]]
    return {"compensation": compensating, "computed torque": computing, "both": both}[controllers]


@pytest.mark.slow_cases("vehicle_with_arm")
@plain
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("controllers", ["compensation", "computed torque", "both"])
@pytest.mark.parametrize("is_known", [True, False], ids=["model in water", "model in air"])
def test_derivatives_of_controllers_in_water_are_exact(kinds, controllers, is_known):
    """Their model contains added mass and buoyancy, but no drag and no current. One knows nothing of the water.

    The solution of the equations of motion multiplies the round-off of the accelerations by the condition number of
    the mass matrix, and the central differences divide it by their increment, the cube root of epsilon.
    """
    model = immersed_tree(KINDS[kinds])
    known = model.vary(mass=1.3 * model.mass, added_mass=0.7 * model.added_mass)
    actions = {
        "drives": controlled_in_water(controllers, model, known if is_known else in_air(model)),
        "forces": [CURRENT],
    }
    q, qd = random_states(model, (), seed=10, arrays=2)
    exact, differences = derivatives_both_ways(model, q, qd, time=0.3, **actions)
    acceleration = np.abs(model.simulate(q, qd, 1e-6, method="rk4", step=1e-6, save_at=2, **actions).qdd[0]).max()
    error = np.finfo(float).eps ** (2 / 3) * np.linalg.cond(model.mass_matrix(q)) * acceleration
    for found, wanted in zip(exact, differences, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=error)


@pytest.mark.slow
@plain
def test_a_controlled_arm_in_water_follows_rk45_and_needs_no_differences():
    model = immersed_tree(KINDS["one_dof_tree"])
    q, qd = random_states(model, (), seed=10, arrays=2)
    for controllers, evaluations in (("compensation", 8), ("computed torque", 8), ("both", 9)):
        drives = controlled_in_water(controllers, model, "nominal")
        settings = {"duration": 0.05, "save_at": 3, "drives": drives, "forces": [CURRENT]}
        reference = model.simulate(q, qd, rtol=1e-10, atol=1e-11, **settings)
        motion = model.simulate(q, qd, method="rosenbrock", rtol=1e-7, atol=1e-7, **settings)
        assert motion.success and reference.success
        np.testing.assert_allclose(motion.q, reference.q, rtol=0, atol=1e-5)
        np.testing.assert_allclose(motion.qd, reference.qd, rtol=0, atol=1e-4)
        assert evaluations_of_a_step(model, q, qd, drives=drives, forces=[CURRENT]) == evaluations


# --- joints -----------------------------------------------------------------------------------------------------------


@plain
@pytest.mark.parametrize("q", [[0.3, -0.2, 0.1], [0.9, -0.8, 0.6]], ids=["free", "in the stops"])
@pytest.mark.parametrize("speed", [-0.1, 0.03])
def test_derivatives_of_passive_forces_and_drives_are_exact(q, speed):
    """Negative stiffness of cubic springs, the Stribeck effect, stops, and a PID drive below and at its limit."""
    each = np.ones(3)
    model = rb.Model.serial_chain(3).vary(
        stiffness=0.3 * each,
        cubic_stiffness=-0.5 * each,
        damping=0.01 * each,
        friction=0.02 * each,
        static_friction=0.05 * each,
        stribeck_velocity=0.2 * each,
        friction_velocity=0.1 * each,
        friction_asymmetry=0.01 * each,
        stop_lower=-0.5 * each,
        stop_upper=0.5 * each,
        limit_stiffness=20.0 * each,
        limit_damping=3.0 * each,
    )
    first, last = model.joint_names[0], model.joint_names[2]
    drives = [rb.PID(first, 0.1, kp=0.3, kd=0.02, ki=0.1), rb.PID(last, 0.1, kp=5.0, kd=0.2, ki=1.0, limit=0.01)]
    found = derivatives_both_ways(model, np.array(q), speed * np.array([1.0, -0.5, 0.7]), [0.2, 0.1], drives=drives)
    agree(*found, 1e-7)


# --- controllers with a model -----------------------------------------------------------------------------------------


def screw_arm():
    """Three joints of different types, and the model of its controllers, whose masses and gravity differ."""
    builder = rb.ModelBuilder(gravity=(1.0, -9.0, 2.0))
    tensor = np.diag([0.02, 0.03, 0.04]) + 0.005
    joints = (rb.Revolute((0, 0.6, 0.8)), rb.Prismatic((1, 0, 0)), rb.Screw((0, 0, 1), pitch=0.1))
    for i, joint in enumerate(joints):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else None,
            joint=joint,
            placement=rb.Pose((0.3, 0.1, -0.2)),
            inertia=rb.Inertia(1.0 + 0.5 * i, cg=(0.1, -0.2, 0.15), inertia=tensor),
            passive=rb.PassiveForces(damping=0.1, stiffness=1.0),
            rotor_inertia=0.01 * (i + 1),
        )
    model = builder.build()
    return model, model.vary(mass=[1.5, 1.0, 3.0], gravity=(0.0, -8.0, 1.0))


STATE = np.array([0.4, -0.3, 0.8]), np.array([1.2, -0.7, 2.0])
PRESCRIBED = (rb.PrescribedAcceleration, rb.PrescribedVelocity, rb.PrescribedPosition)
WRENCH = rb.Wrench("link1", force=(3.0, 1.0, -2.0), moment=(1.0, 2.0, 3.0), point=(0.1, 0.2, 0.3), axes="world")


def compensated(model, limit):
    """PID drives of the first and the last joint, of which the last compensates gravity."""
    joints = model.joint_names
    last = rb.PID(joints[2], MOVING, kp=5.0, kd=0.2, limit=limit, gravity_compensation=True)
    return [rb.PID(joints[0], 0.1, kp=30.0, ki=3.0, gravity_compensation=True), last]


def computed(model, limit, **settings):
    """Computed torque in all joints; the first one also integrates its error, and the last one has a limit."""
    limits, integral_gains = (np.inf, np.inf, limit), (20.0, 0.0, 0.0)
    return [
        rb.ComputedTorque(joint, MOVING, kp=50.0 + i, kd=8.0, ki=integral_gains[i], limit=limits[i], **settings)
        for i, joint in enumerate(model.joint_names)
    ]


def partly_computed(model, limit):
    """Computed torque of the first joint with its integral, and PID with gravity compensation of the last joint."""
    last = rb.PID(model.joint_names[2], MOVING, kp=5.0, ki=4.0, kd=0.2, limit=limit, gravity_compensation=True)
    return [*computed(model, limit)[:1], last]


def computed_beside_a_prescribed_motion(model, limit):
    """Computed torque of the last joint with a limit; the second joint has no drive."""
    last = rb.ComputedTorque(model.joint_names[2], MOVING, kp=50.0, kd=8.0, ki=20.0, limit=limit)
    return [rb.PrescribedAcceleration(model.joint_names[0], MOVING), last]


def several_drives_of_a_joint(model, limit):
    """Computed torque beside a PID on the first joint, and two PIDs beside a force on the last joint."""
    first, _, last = model.joint_names
    return [
        rb.PID(first, 0.2, kp=2.0, ki=1.0, limit=limit),
        *computed(model, np.inf)[:1],
        rb.PID(last, MOVING, kp=5.0, ki=4.0, kd=0.2, gravity_compensation=True),
        rb.PrescribedForce(last, 0.3),
        rb.PID(last, 0.1, kp=3.0, ki=2.0, limit=limit, feedforward=MOVING),
    ]


#: Drives, and the integrals of their errors.
INTEGRALS = {
    compensated: [0.2],
    computed: [0.2],
    partly_computed: [0.2, -0.3],
    computed_beside_a_prescribed_motion: [0.2],
    several_drives_of_a_joint: [0.2, -0.3, 0.1, 0.4],
}
CONTROLLERS = [*INTEGRALS]


@plain
@pytest.mark.parametrize("limit", [np.inf, 1e-3], ids=["below the limit", "at the limit"])
@pytest.mark.parametrize("drives_of", CONTROLLERS)
def test_derivatives_of_controllers_with_their_own_model_are_exact(drives_of, limit):
    model, nominal = screw_arm()
    drives = with_model(drives_of(model, limit), nominal)
    state = *STATE, INTEGRALS[drives_of]
    agree(*derivatives_both_ways(model, *state, time=0.3, drives=drives, forces=[WRENCH]), 1e-8)


def with_model(drives, model):
    """Return drives whose controllers compute with a model, if they need one."""

    def needs(drive):
        return isinstance(drive, rb.ComputedTorque) or getattr(drive, "gravity_compensation", False)

    return [replace(drive, controller_model=model) if needs(drive) else drive for drive in drives]


@pytest.mark.slow_cases("partly_computed", "several_drives_of_a_joint")
@plain
@pytest.mark.parametrize("drives_of", CONTROLLERS)
def test_a_controlled_arm_follows_rk45_and_its_tolerance(drives_of):
    model, _ = screw_arm()
    check_that_rosenbrock_follows_rk45(model, drives_of(model, 8.0))


def check_that_rosenbrock_follows_rk45(model, drives):
    settings = {"duration": 0.2, "save_at": 4, "drives": drives, "forces": [WRENCH]}
    reference = model.simulate(*STATE, rtol=1e-10, atol=1e-11, **settings)
    motion = model.simulate(*STATE, method="rosenbrock", rtol=1e-7, atol=1e-7, **settings)
    assert motion.success and reference.success
    np.testing.assert_allclose(motion.q, reference.q, rtol=0, atol=1e-5)
    np.testing.assert_allclose(motion.qd, reference.qd, rtol=0, atol=1e-4)


@plain
@pytest.mark.parametrize("prescribe", PRESCRIBED)
@pytest.mark.parametrize("joint", range(3))
def test_derivatives_beside_a_prescribed_motion_are_exact(prescribe, joint):
    model, nominal = screw_arm()
    names, settings = model.joint_names, {"kp": 30.0, "ki": 3.0, "gravity_compensation": True}
    pid = rb.PID(names[(joint + 1) % 3], 0.1, **settings, controller_model=nominal)
    drives = [prescribe(names[joint], MOVING), pid]
    agree(*derivatives_both_ways(model, *STATE, [0.2], time=0.3, drives=drives, forces=[WRENCH]), 1e-8)


@plain
@pytest.mark.parametrize("prescribe", PRESCRIBED)
def test_an_arm_with_a_prescribed_joint_follows_rk45_and_its_tolerance(prescribe):
    model, _ = screw_arm()
    check_that_rosenbrock_follows_rk45(model, [prescribe(model.joint_names[1], MOVING)])


def prescribed_from(state, drive, joint, model, acceleration=1.3):
    """A drive that prescribes a motion of a joint from this state on."""
    i = model.joint_names.index(joint)
    position, velocity = state[0][model.position_index[i]], state[1][model.velocity_index[i]]
    signal = [position, velocity, 0.5 * acceleration]
    signal = {rb.PrescribedAcceleration: [acceleration], rb.PrescribedVelocity: [velocity, acceleration]}.get(
        drive, signal
    )
    return drive(joint, rb.Signal.polynomial(signal))


@pytest.mark.slow_cases("welded and geared")
@plain
@pytest.mark.parametrize(
    ("name", "prescribe"),
    [
        pytest.param(name, prescribe, marks=[] if (i + j) % 3 == 0 else pytest.mark.slow)
        for i, name in enumerate(CHAINS)
        for j, prescribe in enumerate(PRESCRIBED)
    ],
)
def test_derivatives_beside_a_prescribed_motion_of_a_closed_chain_are_exact(name, prescribe):
    """With damping and a PID drive of another joint. In a mechanism with one degree of freedom, they have no effect.

    The error is therefore relative to these forces too, divided by the inertia of their joint: up to 50 / s^2.
    """
    chain = closed_chain(name)
    model, (q, qd, _) = chain.model, closed_state(chain, seed=4)
    inertia = np.diag(model.mass_matrix(q))
    model = model.vary(damping=2.0 * inertia)
    single = [joint for joint, kind in zip(model.joint_names, model.joint_types, strict=True) if kind == "revolute"]
    drives, integrals = [prescribed_from((q, qd), prescribe, single[0], model)], []
    if len(single) > 1:
        m = inertia[model.velocity_index[model.joint_names.index(single[-1])]]
        drives.append(rb.PID(single[-1], 0.3, kp=50.0 * m, kd=5.0 * m, ki=20.0 * m))
        integrals.append(0.2)
    for exact, difference in zip(*derivatives_both_ways(model, q, qd, integrals, drives=drives), strict=True):
        largest = np.abs(difference).max(initial=50.0)
        np.testing.assert_allclose(exact, difference, rtol=0, atol=1e-8 * largest)


@pytest.mark.slow
@plain
@pytest.mark.parametrize(
    "prescribe", [*(pytest.param(kind, marks=pytest.mark.slow) for kind in PRESCRIBED[:2]), PRESCRIBED[2]]
)
def test_a_closed_chain_with_a_prescribed_joint_follows_rk45_and_needs_no_differences(prescribe):
    """A plate on rods, two of which hang on an arm. The Jacobian of a closed chain takes one of nine evaluations."""
    chain = closed_chain("hung plate")
    model, (q, qd, _) = chain.model, closed_state(chain, seed=4)
    settings = {"duration": 0.3, "save_at": 4, "drives": [prescribed_from((q, qd), prescribe, "arm", model)]}
    reference = model.simulate(q, qd, rtol=1e-10, atol=1e-11, **settings)
    motion = model.simulate(q, qd, method="rosenbrock", rtol=1e-7, atol=1e-7, **settings)
    assert motion.success and reference.success
    np.testing.assert_allclose(motion.q, reference.q, rtol=0, atol=1e-5)
    np.testing.assert_allclose(motion.qd, reference.qd, rtol=0, atol=1e-4)
    np.testing.assert_allclose(motion.tau[:, 0], reference.tau[:, 0], rtol=0, atol=1e-4 * np.abs(reference.tau).max())
    assert evaluations_of_a_step(model, q, qd, drives=settings["drives"]) == 9


@plain
def test_controllers_with_a_model_need_no_differences():
    """A step takes eight evaluations; that of the Jacobian with computed torque of some joints takes one more."""
    model, _ = screw_arm()
    for drives_of, evaluations in ((compensated, 8), (computed, 8), (partly_computed, 9)):
        assert evaluations_of_a_step(model, *STATE, drives=drives_of(model, 8.0)) == evaluations


def evaluations_of_a_step(model, q, qd, **actions):
    motion = model.simulate(q, qd, 0.1, method="rosenbrock", rtol=1e-5, atol=1e-5, **actions)
    assert motion.success
    return (motion.evaluations - 2) / (motion.steps + motion.rejections)  # two for the length of the first step


def last_samples():
    """The last two of nine samples: one in the first block of lanes, one alone in the second."""
    rng, out = np.random.default_rng(3), {}

    def add(name, dtype, model, states, tolerance, drives):
        q, qd = (x.astype(dtype) for x in states)
        settings = {"method": "rosenbrock", "rtol": tolerance, "atol": tolerance}
        motion = model.simulate(q, qd, 0.02, drives=drives, **settings)
        assert motion.success
        out[name] = motion.q[7:]

    model, _ = screw_arm()
    arm = model.vary(mass=model.mass * rng.uniform(0.9, 1.1, (9, 3)))
    states = [x + 0.1 * rng.normal(size=(9, 3)) for x in STATE]
    add("arm", np.float64, arm, states, 1e-7, partly_computed(model, 8.0))
    chain = closed_chain("hung plate")
    states = closed_state(chain, batch=(9,))[:2]
    add("plate in float32", np.float32, chain.model, states, 1e-4, [rb.PrescribedAcceleration("arm", 1.0)])
    tree = immersed_tree(KINDS["vehicle_with_arm"])
    drives = controlled_in_water("both", tree, "nominal")
    add("tree in water, float32", np.float32, tree, random_states(tree, (9,), seed=9, arrays=2), 1e-4, drives)
    return out


@pytest.mark.slow
def test_lanes_agree_with_plain_python():
    check_alike(computed_by(last_samples, NUMBA_DISABLE_JIT="1"), last_samples())


# --- user functions ---------------------------------------------------------------------------------------------------


def coupling(t, q, qd, parameters, out):
    """Springs of third order and dampers between the joints, and a force over time."""
    n = out.shape[0]
    for i in range(n - 1):
        stretch = q[q.shape[0] - 1 - i] - q[q.shape[0] - 2 - i]
        force = parameters[0] * stretch + parameters[1] * stretch**3 + parameters[2] * (qd[n - 1 - i] - qd[n - 2 - i])
        out[n - 1 - i] -= force
        out[n - 2 - i] += force
    out[0] += 0.1 * np.sin(3.0 * t) - 0.01 * q[0] * qd[n - 1]


def derivatives_of_coupling(t, q, qd, parameters, out):
    n = out.shape[1]
    for i in range(n - 1):
        stretch = q[q.shape[0] - 1 - i] - q[q.shape[0] - 2 - i]
        stiffness = parameters[0] + 3.0 * parameters[1] * stretch**2
        a, b = n - 1 - i, n - 2 - i
        for by, slope in ((0, stiffness), (1, parameters[2])):
            out[by, a, a] -= slope
            out[by, a, b] += slope
            out[by, b, a] += slope
            out[by, b, b] -= slope
    out[0, 0, 0] -= 0.01 * qd[n - 1]
    out[1, 0, n - 1] -= 0.01 * q[0]


def wrong_derivatives(t, q, qd, parameters, out):
    derivatives_of_coupling(t, q, qd, parameters, out)
    out[0, 1, 1] *= 1.3


SPRINGS = [0.4, 0.2, 0.003]


@plain
def test_user_derivatives_agree_with_differences():
    model = rb.Model.serial_chain(4)
    q, qd = random_states(model, (), seed=2, arrays=2)
    drives = [rb.UserForces(coupling, parameters=SPRINGS, derivatives=derivatives_of_coupling)]
    drives[0].check_derivatives(model, q, qd, t=0.2)
    agree(*derivatives_both_ways(model, q, qd, time=0.2, drives=drives), 1e-8)
    # the limit of a drive does not limit the user force at its joint
    for limit in (1e-4, 1e3):
        limited = [*drives, rb.PrescribedForce(model.joint_names[1], 0.01, limit=limit)]
        agree(*derivatives_both_ways(model, q, qd, time=0.2, drives=limited), 1e-8)


def turning(t, q, qd, parameters, out):
    """A moment about the body's x axis that depends on the quaternion of a spherical joint."""
    out[0] = q[0] * q[3] + qd[1]


def derivatives_of_turning(t, q, qd, parameters, out):
    """The rate of the quaternion (x, y, z, w) is (x, y, z, w) (omega, 0) / 2."""
    x, y, z, w = q[:4]
    out[0, 0, 0] = 0.5 * (w * w - x * x)
    out[0, 0, 1] = 0.5 * (-z * w - y * x)
    out[0, 0, 2] = 0.5 * (y * w - z * x)
    out[1, 0, 1] = 1.0


@plain
def test_user_derivatives_of_spherical_joints_are_along_the_velocities():
    builder = rb.ModelBuilder()
    builder.add_body("ball", joint=rb.Spherical(), inertia=rb.Inertia(2.0, cg=(0.1, 0.2, 0.3), inertia=(0.3, 0.4, 0.5)))
    model = builder.build()
    q, qd = random_states(model, (), seed=4, arrays=2)
    drives = [rb.UserForces(turning, derivatives=derivatives_of_turning)]
    drives[0].check_derivatives(model, q, qd)
    agree(*derivatives_both_ways(model, q, qd, drives=drives), 1e-8)


@plain
@pytest.mark.parametrize("motor", [[], [0], [2]], ids=["without motor", "computed torque", "PID"])
def test_computed_torque_depends_on_the_user_forces_and_motors_of_other_joints(motor):
    """A joint without drive has user forces only. The torque-speed curves reduce the forces of their joints."""
    model, nominal = screw_arm()
    joints = model.joint_names
    drives = [
        *with_model(partly_computed(model, np.inf), nominal),
        *(rb.Actuator(joints[i], stall_torque=0.5, no_load_speed=4.0) for i in motor),
        rb.UserForces(coupling, parameters=SPRINGS, derivatives=derivatives_of_coupling),
    ]
    agree(*derivatives_both_ways(model, *STATE, [0.2, -0.3], time=0.3, drives=drives), 1e-8)


@pytest.mark.slow_cases("differences")
@plain
@pytest.mark.parametrize("derivatives", [None, derivatives_of_coupling], ids=["differences", "derivatives"])
def test_user_forces_follow_rk45_and_the_tolerance(derivatives):
    model = rb.Model.serial_chain(3)
    q, qd = 0.3 * random_states(model, (), seed=1, arrays=2)[0], np.zeros(3)
    settings = {"duration": 0.03, "save_at": 4}
    reference = model.simulate(
        q, qd, drives=[rb.UserForces(coupling, parameters=SPRINGS)], rtol=1e-11, atol=1e-12, **settings
    )
    drives = [rb.UserForces(coupling, parameters=SPRINGS, derivatives=derivatives)]
    errors = []
    for tolerance in (1e-4, 1e-7):
        motion = model.simulate(q, qd, drives=drives, method="rosenbrock", rtol=tolerance, atol=tolerance, **settings)
        assert motion.success
        np.testing.assert_allclose(motion.q, reference.q, rtol=0, atol=20 * tolerance)
        speed = np.abs(reference.qd).max()
        np.testing.assert_allclose(motion.qd, reference.qd, rtol=0, atol=20 * tolerance * speed)
        errors.append(np.abs(motion.qd - reference.qd).max())
    assert errors[0] > 30 * errors[1]
    start = q.astype(np.float32), qd.astype(np.float32)
    single = model.simulate(*start, drives=drives, method="rosenbrock", rtol=1e-4, atol=1e-4, **settings)
    assert single.success and single.q.dtype == np.float32
    np.testing.assert_allclose(single.q, reference.q, rtol=0, atol=2e-3)
    np.testing.assert_allclose(motion.tau, reference.tau, rtol=0, atol=1e-4)


@pytest.mark.slow
@plain
def test_wrong_user_derivatives_cost_steps_and_are_reported_by_the_check():
    model = rb.Model.serial_chain(3)
    q, qd = 0.3 * random_states(model, (), seed=1, arrays=2)[0], np.zeros(3)
    settings = {"duration": 0.03, "rtol": 1e-7, "atol": 1e-7}
    reference = model.simulate(
        q, qd, drives=[rb.UserForces(coupling, parameters=SPRINGS)], save_at=2, **settings | {"rtol": 1e-11}
    )
    right, wrong = (
        model.simulate(
            q,
            qd,
            method="rosenbrock",
            drives=[rb.UserForces(coupling, parameters=SPRINGS, derivatives=by)],
            save_at=2,
            **settings,
        )
        for by in (derivatives_of_coupling, wrong_derivatives)
    )
    assert wrong.steps > 2 * right.steps
    np.testing.assert_allclose(wrong.q[-1], reference.q[-1], rtol=0, atol=1e-6)
    with pytest.raises(rb.ArgumentError, match=r"d tau\[1\] / d q\[1\] is -.*; the difference of the function is -"):
        rb.UserForces(coupling, parameters=SPRINGS, derivatives=wrong_derivatives).check_derivatives(model, q, qd)


@plain
def test_the_derivatives_of_user_forces_are_checked():
    model = rb.Model.serial_chain(2)

    def short(t, q, out):
        pass

    for derivatives, message in (
        (3, r"UserForces with function 'coupling': derivatives is 3; expected a function"),
        (short, "five parameters"),
    ):
        with pytest.raises(rb.ArgumentError, match=message):
            model.simulate(
                [0, 0],
                [0, 0],
                1.0,
                drives=[rb.UserForces(coupling, parameters=SPRINGS, derivatives=derivatives)],
                save_at=2,
            )
    forces = rb.UserForces(coupling, parameters=SPRINGS, derivatives=derivatives_of_coupling)
    for call, message in (
        (
            lambda: rb.UserForces(coupling, parameters=SPRINGS).check_derivatives(model, [0, 0], [0, 0]),
            "has no derivatives",
        ),
        (lambda: forces.check_derivatives(model, [0], [0, 0]), r"q has shape \(1,\); expected \(2,\), for one state"),
        (
            lambda: rb.UserForces(
                coupling, parameters=[SPRINGS] * 2, derivatives=derivatives_of_coupling
            ).check_derivatives(model, [0, 0], [0, 0]),
            r"parameters has shape \(2, 3\); expected \(m,\)",
        ),
    ):
        with pytest.raises(rb.ArgumentError, match=message):
            call()


def fails_late(t, q, qd, parameters, out):
    if t > 0.1:
        raise ValueError("no derivatives there")
    derivatives_of_coupling(t, q, qd, parameters, out)


@plain
def test_an_exception_in_the_derivatives_ends_the_sample():
    model = rb.Model.serial_chain(2)
    start = [[0.1, 0.2]] * 2, [[0.0, 0.0]] * 2
    motion = model.simulate(
        *start,
        0.2,
        drives=[rb.UserForces(coupling, parameters=SPRINGS, derivatives=fails_late)],
        method="rosenbrock",
        save_at=[0.0, 0.05, 0.2],
        on_failure="ignore",
    )
    assert (motion.status == rb.Status.USER_FUNCTION_FAILED).all()
    assert (
        "UserForces with derivatives 'fails_late' raised ValueError: no derivatives there at t = 0.1" in motion.message
    )
    assert np.isfinite(motion.q[:, 1]).all() and np.isnan(motion.q[:, 2]).all()
    # explicit methods do not call it
    assert model.simulate(
        *start, 0.2, drives=[rb.UserForces(coupling, parameters=SPRINGS, derivatives=fails_late)], save_at=2
    ).success


def oscillator(t, q, qd, parameters, out):
    out[0] = -parameters[0] * q[0] - parameters[1] * qd[0] + parameters[2] * np.cos(t)


def derivatives_of_oscillator(t, q, qd, parameters, out):
    out[0, 0, 0] = -parameters[0]
    out[1, 0, 0] = -parameters[1]


@pytest.mark.slow
def test_stiff_oscillators_in_lanes_follow_their_closed_form():
    """m x'' + c x' + k x = f cos t, without its transient; with derivatives, each step takes fewer evaluations."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(2.0))
    model, stiffness = builder.build().vary(mass=np.full((11, 1), 2.0)), np.logspace(2, 8, 11)
    numbers = np.stack([stiffness, 0.1 * stiffness, stiffness], -1)
    amplitude = stiffness / (stiffness + 0.1j * stiffness - 2.0)  # of exp(i t)
    start = amplitude.real[:, None], (1j * amplitude).real[:, None]
    evaluations = []
    for derivatives in (None, derivatives_of_oscillator):
        drives = [rb.UserForces(oscillator, parameters=numbers, derivatives=derivatives)]
        settings = {"method": "rosenbrock", "rtol": 1e-7, "atol": 1e-9, "save_at": 4, "drives": drives}
        motion = model.simulate(*start, 3.0, **settings)
        assert motion.success and (motion.steps < 300).all()
        wanted = (amplitude[:, None] * np.exp(1j * motion.t)).real
        np.testing.assert_allclose(motion.q[..., 0], wanted, rtol=0, atol=1e-6)
        evaluations.append(motion.evaluations / (motion.steps + motion.rejections))
    assert (evaluations[1] < evaluations[0] - 3).all()
