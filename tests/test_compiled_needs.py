"""Compiled functions receive the quantities that they need, as functions in plain Python do."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import ArgumentError, UnknownNameError

from .pairs.actions import forces
from .pairs.mechanisms import MECHANISMS
from .pairs.worlds import World

ARM = rb.Model.serial_chain(3)
ARMS = ARM.vary(mass=[[1.0, 1.0, 1.0], [1.1, 0.9, 1.2]])
Q, QD = np.array([[0.3, -0.5, 0.9], [0.1, 0.4, -0.6]]), np.array([[0.2, 0.1, -0.3], [0.0, -0.4, 0.5]])
STEP = 1e-3
FACTORS = np.array([1.0, 1.1])
FIXED_STEPS = ("rk4", "implicit", "moreau")


def all_needs(frames, model):
    """All quantities; several frames give arrays with a further axis."""
    return rb.Needs(
        pose=frames, jacobian=frames[-1], jacobian_derivative=frames, mass_matrix=True, bias_forces=True,
        gravity_forces=True, model=model,
    )  # fmt: skip


def quantities(model, frames, q, qd):
    """Of one state, by the methods of Model, in the order of the fields."""
    pose = model.frame_poses(q, frames)
    return {
        "translation": pose.translation,
        "rotation": pose.rotation,
        "jacobian": model.jacobian(q, frames[-1]),
        "jacobian_derivative": model.jacobian_derivative(q, qd, frames),
        "mass_matrix": model.mass_matrix(q),
        "bias_forces": model.bias_forces(q, qd),
        "gravity_forces": model.gravity_forces(q),
    }


def mixture(numbers, nv, scale=1e-3):
    """Forces (..., nv) that depend on all numbers (..., m)."""
    weights = np.cos(np.arange(nv)[:, None] + 1.7 * np.arange(numbers.shape[-1]))
    return scale * (numbers @ weights.T)


def many_joints():
    """A free base, a spherical joint, a screw, and frames on fixed joints of a body and of the world."""
    builder = rb.ModelBuilder(gravity=(0.5, -1.0, -9.0))
    rod, turned = rb.Inertia(1.0, (0.15, 0.01, 0.02), (0.002, 0.03, 0.031)), (0.5, 0.5, 0.5, 0.5)
    builder.add_body("base", joint=rb.Free(), inertia=rod)
    builder.add_body("ball", parent="base", joint=rb.Spherical(), placement=rb.Pose((0.3, 0, 0), turned), inertia=rod)
    screw = rb.Screw((0, 0.6, 0.8), pitch=0.1)
    builder.add_body("nut", parent="ball", joint=screw, placement=rb.Pose((0.2, 0, 0)), inertia=rod)
    builder.add_body("flange", parent="nut", joint=rb.Fixed(), placement=rb.Pose((0.1, -0.2, 0.05), turned))
    builder.add_body("wall", joint=rb.Fixed(), placement=rb.Pose((1.0, 2.0, 3.0), turned))
    model = builder.build()
    q = model.integrate(model.neutral(), np.linspace(-0.8, 0.7, model.nv))
    return model, q, np.linspace(0.5, -0.4, model.nv), ["ball", "flange", "wall"]


def mechanism(name):
    found = MECHANISMS[name](World())
    return found.model, found.q, found.qd, ["driven", "tool"]


CASES = [
    ("open", "SphereContact", "moreau", "float32", "own"),
    ("open", "SphereContact", "rosenbrock", "float64", "nominal"),
    ("open", "none", "radau", "float64", "another"),
    ("floating", "SphereContact", "rk45", "float64", "own"),
    ("closed", "none", "dop853", "float64", "own"),
    ("closed", "HardStops", "moreau", "float64", "nominal"),
    ("water", "Current", "rk4", "float64", "own"),
    ("many joints", "none", "rk4", "float32", "another"),
    ("many joints", "none", "implicit", "float64", "own"),
]


@pytest.mark.fast_cases("implicit", "open", "water")
@pytest.mark.plain_python
@pytest.mark.parametrize(("name", "force", "method", "precision", "of_model"), CASES, ids=lambda x: str(x))
def test_a_compiled_function_gets_the_quantities_and_the_motion_of_one_in_plain_python(
    name, force, method, precision, of_model
):
    """They are those of the methods of Model in the measured states; the sensor rounds one velocity."""
    model, q, qd, frames = many_joints() if name == "many joints" else mechanism(name)
    varied = model.vary(mass=model.mass * FACTORS[:, None])
    another = model.vary(mass=2.0 * model.mass, gravity=[1.0, 2.0, 3.0])
    owners = {"nominal": [model] * 2, "own": [varied[k] for k in range(2)], "another": [another] * 2}[of_model]
    needs = all_needs(frames, another if of_model == "another" else of_model)
    calls = []

    def compiled(t, q, qd, parameters, states, computed, out):
        calls.append((int(parameters[0]), q.copy(), qd.copy(), [x.copy() for x in computed]))
        states[0] += 1.0
        out[:] = mixture(np.concatenate([x.ravel() for x in computed]), len(qd)) + 0.01 * states[0]

    def plain(t, q, qd, parameters, states, computed):
        states += 1.0
        return mixture(np.concatenate([x.reshape(2, -1) for x in computed], -1), qd.shape[-1]) + 0.01 * states

    place = None if name == "many joints" else MECHANISMS[name](World())
    acting = [] if force == "none" else forces(force, place)
    joint = "nut" if name == "many joints" else "driven"
    settings = {"method": method, "forces": acting, "save_at": 3}
    settings |= {"step": STEP} if method in FIXED_STEPS else {"rtol": 1e-5, "atol": 1e-7}
    start = [np.tile(x, (2, 1)).astype(precision) for x in (q, qd)]
    motions = []
    for function in (compiled, plain):
        drive = rb.Sampled(
            rb.UserForces(function, parameters=[[0.0], [1.0]]),
            period=2 * STEP, delay=STEP, phase=STEP, states=[0.0], needs=needs,
            sensors=[rb.VelocitySensor(joint, resolution=1e-3)],
        )  # fmt: skip
        motions.append(varied.simulate(*start, 6 * STEP, drives=[drive], **settings))
    assert len(calls) == 6
    tolerance = 1e-11 if precision == "float64" else 1e-4
    for sample, measured, velocities, found in calls:
        expected = quantities(owners[sample], frames, measured, velocities)
        assert len(found) == len(expected)
        for one, (quantity, other) in zip(found, expected.items(), strict=True):
            scale = max(1.0, np.abs(other).max())
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale, err_msg=quantity)
    for quantity in ("q", "qd", "tau"):
        of_compiled, of_plain = (getattr(motion, quantity) for motion in motions)
        scale = np.abs(of_plain).max()
        np.testing.assert_allclose(of_compiled, of_plain, rtol=0, atol=10 * tolerance * scale, err_msg=quantity)


def hold(t, q, qd, parameters, computed, out):
    out[:] = computed.gravity_forces - 0.5 * qd


def hold_all(t, q, qd, parameters, computed):
    return computed.gravity_forces - 0.5 * qd


def pull(t, q, qd, parameters, computed, out):
    out[:] = computed.jacobian[:3].T @ (parameters - computed.translation)


def pull_all(t, q, qd, parameters, computed):
    return (computed.jacobian[..., :3, :].mT @ (parameters - computed.translation)[..., None])[..., 0]


@pytest.mark.plain_python
@pytest.mark.parametrize("method", ["rk4", "rk45"])
def test_functions_with_different_needs_clocks_and_models_act_together(method):
    """Gravity compensation uses the nominal model; "own" is possible besides."""
    of_pull, points = rb.Needs(pose="link3", jacobian="link3", model="own"), [[0.5, 1.0, 0.0], [1.0, 0.5, 0.0]]
    motions = []
    for holds, pulls in ((hold, pull), (hold_all, pull_all)):
        drives = [
            rb.Sampled(rb.UserForces(pulls, parameters=points), period=3 * STEP, needs=of_pull),
            rb.Sampled(rb.PID("link2", 0.3, kp=1.0, gravity_compensation=True), period=2 * STEP),
            rb.Sampled(lambda t, q, qd, parameters, out: None, period=STEP),
            rb.Sampled(holds, period=2 * STEP, phase=STEP, needs=rb.Needs(gravity_forces=True)),
        ]
        step = {"step": STEP} if method == "rk4" else {}
        motions.append(ARMS.simulate(Q, QD, 9 * STEP, method=method, drives=drives, save_at=4, **step))
    for name in ("q", "tau"):
        compiled, plain = (getattr(motion, name) for motion in motions)
        np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.plain_python
def test_a_stepper_computes_with_the_parameters_of_now_and_a_motion_continues():
    drive = rb.Sampled(hold, period=4 * STEP, needs=rb.Needs(gravity_forces=True, model="own"))
    settings = {"step": STEP, "drives": [drive]}
    stepper = ARMS.stepper(Q, **settings)
    stepper.step(5)
    stepper.reset([1], mass=[[3.0, 2.0, 1.0]])
    stepper.step(5)
    np.testing.assert_allclose(stepper.q, Q, rtol=0, atol=1e-9)
    whole, first = (ARMS.simulate(Q, QD, duration, method="rk4", **settings) for duration in (0.02, 0.01))
    rest = ARMS.simulate(duration=0.01, continue_from=first)
    np.testing.assert_array_equal(rest.end_q, whole.end_q)


@pytest.mark.plain_python
def test_an_exception_that_depends_on_the_quantities_ends_its_sample_and_is_reported():
    heavy = ARM.vary(mass=[[1.0, 1.0, 1.0], [1.0, 1.0, 9.0]])
    most = heavy.mass_matrix(0.0 * Q)[:, 0, 0].mean()

    def refuse(t, q, qd, parameters, computed, out):
        if t > 0.0015 and computed.mass_matrix[0, 0] > parameters[0]:
            raise ValueError("the load is too heavy")
        out[:] = computed.gravity_forces

    needs = rb.Needs(mass_matrix=True, gravity_forces=True, model="own")
    drive = rb.Sampled(rb.UserForces(refuse, parameters=[most]), period=STEP, needs=needs)
    motion = heavy.simulate(0.0 * Q, duration=0.005, method="rk4", step=STEP, drives=[drive], on_failure="ignore")
    assert motion.status.tolist() == [rb.Status.DONE, rb.Status.USER_FUNCTION_FAILED]
    assert "raised ValueError: the load is too heavy at t = 0.002 s" in motion[1].message


def without_computed(t, q, qd, parameters, out):
    out[0] = 0.0


def with_states(t, q, qd, parameters, states, out):
    out[0] = 0.0


def in_python(t, q, qd, parameters, computed):
    return 0.0 * qd


@pytest.mark.plain_python
def test_functions_and_needs_that_do_not_fit_are_refused():
    needs, other = rb.Needs(jacobian="link3"), ARM.vary(mass=[2.0, 2.0, 2.0])
    of_other = rb.Sampled(hold, needs=rb.Needs(gravity_forces=True, model=other))
    compensates = rb.PID("link1", 0.1, kp=1.0, gravity_compensation=True)
    for match, drives in (
        (
            r"function\(t, q, qd, parameters, computed, out\): .* Give it these six",
            [rb.Sampled(without_computed, needs=needs)],
        ),
        (
            r"function\(t, q, qd, parameters, states, computed, out\): .* Give it these seven",
            [rb.Sampled(with_states, states=[0.0], needs=needs)],
        ),
        ("a parameter called computed, but needs is not given", [rb.Sampled(hold)]),
        ("a parameter called computed, but needs is not given", [rb.Sampled(in_python)]),
        ("a parameter called computed, but needs is not given", [rb.Sampled(in_python, states=[0.0])]),
        ("controller_model is not the model of the other drives", [of_other, compensates]),
        (
            "needs of Sampled UserForces: model is not the model of the other drives",
            [of_other, rb.Sampled(hold, needs=rb.Needs(gravity_forces=True))],
        ),
    ):
        with pytest.raises(ArgumentError, match=match):
            ARMS.simulate(Q, duration=STEP, drives=drives)
    with pytest.raises(UnknownNameError, match="'hand'"):
        ARM.simulate(Q, duration=STEP, drives=[rb.Sampled(hold, needs=rb.Needs(pose="hand"))])


def weighted(t, q, qd, parameters, computed, out):
    at = 0
    for numbers in (
        computed.translation.ravel(), computed.rotation.ravel(), computed.jacobian.ravel(),
        computed.jacobian_derivative.ravel(), computed.mass_matrix.ravel(), computed.bias_forces,
        computed.gravity_forces,
    ):  # fmt: skip
        for number in numbers:
            for i in range(out.shape[0]):
                out[i] += 1e-3 * number * np.cos(i + 1.7 * at)
            at += 1


def closed_form(model, mass, q, qd):
    """The numbers of `quantities` of a planar arm of revolute joints about z, by sums over its bodies."""
    n, z, weight = len(q), np.array([0.0, 0.0, 1.0]), model.gravity
    angles, spins = np.cumsum(q), np.cumsum(qd)
    R = [np.array([[np.cos(x), -np.sin(x), 0.0], [np.sin(x), np.cos(x), 0.0], z]) for x in angles]
    origin, velocity = np.zeros((n, 3)), np.zeros((n, 3))
    for i in range(1, n):
        arm = R[i - 1] @ model.placement_translation[i]
        origin[i], velocity[i] = origin[i - 1] + arm, velocity[i - 1] + spins[i - 1] * np.cross(z, arm)

    def columns(body, point):
        J, rate = np.zeros((6, n)), np.zeros((6, n))
        arm = R[body] @ point
        for j in range(body + 1):
            J[:3, j], J[5, j] = np.cross(z, origin[body] + arm - origin[j]), 1.0
            rate[:3, j] = np.cross(z, velocity[body] + spins[body] * np.cross(z, arm) - velocity[j])
        return J, rate

    mass_matrix, gravity, bias = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for i in range(n):
        J, rate = columns(i, model.cg[i])
        mass_matrix += mass[i] * J[:3].T @ J[:3] + model.inertia[i][2, 2] * np.outer(J[5], J[5])
        gravity -= mass[i] * J[:3].T @ weight
        bias += mass[i] * J[:3].T @ (rate[:3] @ qd - weight)
    (_, rate_1), (J_2, rate_2) = (columns(i, np.zeros(3)) for i in (1, 2))
    arrays = origin[1:], np.stack(R[1:]), J_2, rate_1, rate_2, mass_matrix, bias, gravity
    return np.concatenate([x.ravel() for x in arrays])


@pytest.mark.slow
def test_compiled_code_computes_the_quantities_of_each_lane_at_its_own_instants():
    """The outputs at instants against closed forms; lanes have different steps, and some have no sample."""
    samples, rng = 13, np.random.default_rng(0)
    arms = ARM.vary(mass=rng.uniform(0.8, 1.2, (samples, 3)))
    q, qd = rng.uniform(-1.0, 1.0, (2, samples, 3))
    drive = rb.Sampled(weighted, period=0.05, needs=all_needs(["link2", "link3"], "own"))
    motion = arms.simulate(q, qd, 0.5, drives=[drive], save_every=0.05)
    assert motion.success
    for k in range(samples):
        for i in range(len(motion.t)):
            expected = mixture(closed_form(ARM, arms.mass[k], motion.q[k, i], motion.qd[k, i]), 3)
            np.testing.assert_allclose(motion.tau[k, i], expected, rtol=0, atol=1e-11)
