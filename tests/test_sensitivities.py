"""Sensitivities of trajectories: closed forms, complex steps of other equations, identities, and refused input."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

import rbchain as rb

from .mechanisms import slide
from .other_process import computed
from .quantities import derivative, random_states
from .test_one_source import check_alike

plain = pytest.mark.plain_python
TIGHT = {"rtol": 1e-12, "atol": 1e-13}
DURATION = 0.1  # of motions of two links, s
STEP = 1e-30  # of a complex step, whose derivative has no error of cancellation
INERTIAL = ("mass", "cg", "inertia")


def extrapolated(rate, state, duration, intervals=4, columns=8):
    """Integrate by the extrapolated midpoint rule (Hairer, Norsett and Wanner 1993, section II.9); also complex."""
    for _ in range(intervals):
        rows = []
        for column in range(columns):
            count = 2 * (column + 1)
            h = duration / intervals / count
            before, now = state, state + h * rate(state)
            for _ in range(count - 1):
                before, now = now, before + 2 * h * rate(now)
            row = [0.5 * (now + before + h * rate(now))]
            for j in range(column):
                ratio = (count / (2 * (column - j))) ** 2 - 1.0
                row.append(row[j] + (row[j] - rows[-1][j]) / ratio)
            rows.append(row)
        state = rows[-1][-1]
    return state


LENGTH, GRAVITY = 0.5, 9.81
LINKS = {  # of two links: mass, x and y of the center of mass, inertia, damping, stiffness, rotor inertia
    "mass": (1.2, 0.8),
    "x": (0.3, 0.4),
    "y": (0.1, -0.2),
    "inertia": (0.05, 0.04),
    "damping": (0.3, 0.1),
    "stiffness": (1.0, 2.0),
    "rotor_inertia": (0.02, 0.03),
}
START = np.array([0.3, -0.7, 1.0, -2.0])


def equations_of_two_links(state, x):
    """M and the joint forces without acceleration and passive forces, of a planar arm of two links in closed form."""
    (q1, q2, v1, v2), (m1, m2), (x1, x2), (y1, y2) = state, x["mass"], x["x"], x["y"]
    B, dB = LENGTH * (x2 * np.cos(q2) - y2 * np.sin(q2)), -LENGTH * (x2 * np.sin(q2) + y2 * np.cos(q2))
    r = x["inertia"][1] + m2 * (x2**2 + y2**2)
    M12, M22 = r + m2 * B, r + x["rotor_inertia"][1]
    M11 = x["rotor_inertia"][0] + x["inertia"][0] + m1 * (x1**2 + y1**2) + r + m2 * (LENGTH**2 + 2 * B)
    elbow = GRAVITY * m2 * (x2 * np.cos(q1 + q2) - y2 * np.sin(q1 + q2))
    shoulder = GRAVITY * (m1 * (x1 * np.cos(q1) - y1 * np.sin(q1)) + m2 * LENGTH * np.cos(q1)) + elbow
    return np.array([[M11, M12], [M12, M22]]), np.array(
        [m2 * dB * (2 * v1 * v2 + v2**2) + shoulder, -m2 * dB * v1**2 + elbow]
    )


def rate_of_two_links(state, x, tau=lambda state: 0.0):
    """The rate of the arm's state under passive forces and the joint forces `tau`."""
    (M, h), q, v = equations_of_two_links(state, x), state[:2], state[2:]
    b = tau(state) - h - np.array(x["damping"]) * v - np.array(x["stiffness"]) * q
    D = M[0, 0] * M[1, 1] - M[0, 1] ** 2
    return np.array([*v, (M[1, 1] * b[0] - M[0, 1] * b[1]) / D, (M[0, 0] * b[1] - M[0, 1] * b[0]) / D])


def two_links():
    builder = rb.ModelBuilder(gravity=(0, -GRAVITY, 0))
    for i, (name, parent) in enumerate((("link1", None), ("link2", "link1"))):
        x = {key: values[i] for key, values in LINKS.items()}
        builder.add_body(
            name,
            parent=parent,
            joint=rb.Revolute((0, 0, 1)),
            placement=rb.Pose((LENGTH * i, 0, 0)),
            inertia=rb.Inertia(x["mass"], cg=(x["x"], x["y"], 0), inertia=np.diag([0.1, 0.1, x["inertia"]])),
            passive=rb.PassiveForces(damping=x["damping"], stiffness=x["stiffness"]),
            rotor_inertia=x["rotor_inertia"],
        )
    return builder.build()


@pytest.mark.slow
@plain
def test_two_links_agree_with_complex_steps_of_their_equations():
    names = ["q", "qd", "mass", "cg", "inertia", "damping", "stiffness", "rotor_inertia"]
    motion = two_links().simulate(START[:2], START[2:], DURATION, derivatives=names, save_at=2, **TIGHT)
    at_start = motion.derivatives["q"][0], motion.derivatives["qd"][0]
    np.testing.assert_array_equal(np.concatenate(at_start, -1), np.eye(4))
    assert all(not motion.derivatives[name][0].any() for name in names[2:])
    found = {name: motion.derivatives[name][-1] for name in names}
    found |= {"x": found["cg"][..., 0], "y": found["cg"][..., 1], "inertia": found["inertia"][..., 2, 2]}
    for field in LINKS:
        for i in range(2):
            x = {key: np.array(values, complex) for key, values in LINKS.items()}
            x[field][i] += 1j * STEP
            end = extrapolated(lambda s, x=x: rate_of_two_links(s, x), START.astype(complex), DURATION)
            np.testing.assert_allclose(motion.q[-1], end.real[:2], rtol=0, atol=1e-11)
            np.testing.assert_allclose(found[field][:, i], end.imag / STEP, rtol=0, atol=1e-9, err_msg=field)
    for i in range(4):
        start = START + 1j * STEP * np.eye(4)[i]
        end = extrapolated(lambda s: rate_of_two_links(s, LINKS), start, DURATION)
        np.testing.assert_allclose(found["q" if i < 2 else "qd"][:, i % 2], end.imag / STEP, rtol=0, atol=1e-9)
    assert not found["cg"][..., 2].any()


def gravity_forces(state):
    """PD control of the arm with gravity compensation, for the parameters that the controller knows."""
    at_rest = np.concatenate([state[:2], 0 * state[2:]])
    return equations_of_two_links(at_rest, KNOWN)[1] - 3.0 * (state[:2] - 0.2) - 0.4 * state[2:]


def computed_torque(state):
    """Computed torque of the arm, for the parameters that the controller knows."""
    M, h = equations_of_two_links(state, KNOWN)
    return M @ (-30.0 * (state[:2] - 0.2) - 5.0 * state[2:]) + h


def partly_computed_torque(state, kp=6.0, kd=0.7, first=0.0, last=0.0):
    """Computed torque of the first link beside a PD drive of the second link, and constant forces of both."""
    (M, h), force = equations_of_two_links(state, KNOWN), -kp * (state[1] - 0.2) - kd * state[3] + last
    acceleration = -30.0 * (state[0] - 0.2) - 5.0 * state[2]
    other = (force - h[1] - M[1, 0] * acceleration) / M[1, 1]
    return np.array([M[0, 0] * acceleration + M[0, 1] * other + h[0] + first, force])


KNOWN = LINKS | {"mass": (1.0, 1.1)}
CONTROLLERS = {
    gravity_forces: lambda joint: rb.PID(joint, 0.2, kp=3.0, kd=0.4, gravity_compensation=True),
    computed_torque: lambda joint: rb.ComputedTorque(joint, 0.2, kp=30.0, kd=5.0),
    partly_computed_torque: lambda joint: (
        rb.ComputedTorque(joint, 0.2, kp=30.0, kd=5.0) if joint == "link1" else rb.PID(joint, 0.2, kp=6.0, kd=0.7)
    ),
}


def controllers_of_known_links(tau):
    """The drives of both links, with a model whose masses are not those of the arm."""
    known = two_links().vary(mass=KNOWN["mass"])
    drives = [CONTROLLERS[tau](joint) for joint in known.joint_names]
    uses_model = [isinstance(drive, rb.ComputedTorque) or drive.gravity_compensation for drive in drives]
    return [
        replace(drive, controller_model=known) if uses else drive
        for drive, uses in zip(drives, uses_model, strict=True)
    ]


@pytest.mark.slow
@plain
@pytest.mark.parametrize("tau", CONTROLLERS)
def test_controllers_with_a_model_agree_with_complex_steps(tau):
    drives, names = controllers_of_known_links(tau), ["q", "qd", "mass", "damping"]
    motion = two_links().simulate(START[:2], START[2:], DURATION, drives=drives, derivatives=names, save_at=2, **TIGHT)
    for field in ("mass", "damping"):
        for i in range(2):
            x = {key: np.array(values, complex) for key, values in LINKS.items()}
            x[field][i] += 1j * STEP
            end = extrapolated(lambda s, x=x: rate_of_two_links(s, x, tau), START.astype(complex), DURATION)
            np.testing.assert_allclose(motion.q[-1], end.real[:2], rtol=0, atol=1e-11)
            found = motion.derivatives[field][-1, :, i]
            np.testing.assert_allclose(found, end.imag / STEP, rtol=0, atol=1e-9, err_msg=field)
    for i in range(4):
        start = START + 1j * STEP * np.eye(4)[i]
        end = extrapolated(lambda s: rate_of_two_links(s, LINKS, tau), start, DURATION)
        found = motion.derivatives["q" if i < 2 else "qd"][-1, :, i % 2]
        np.testing.assert_allclose(found, end.imag / STEP, rtol=0, atol=1e-9)


@pytest.mark.slow
@plain
def test_computed_torque_of_one_link_depends_on_the_drive_and_the_force_of_the_other():
    names = {"kp": ("kp",), "kd": ("kd",), "tau": ("first", "last")}
    drives = controllers_of_known_links(partly_computed_torque)
    motion = two_links().simulate(
        START[:2], START[2:], DURATION, drives=drives, derivatives=[*names], save_at=2, **TIGHT
    )
    x = {"kp": 6.0, "kd": 0.7, "first": 0.0, "last": 0.0}
    for name, arguments in names.items():
        for i, argument in enumerate(arguments, 2 - len(arguments)):
            varied = x | {argument: x[argument] + 1j * STEP}
            tau = lambda s, varied=varied: partly_computed_torque(s, **varied)  # noqa: E731
            end = extrapolated(lambda s, tau=tau: rate_of_two_links(s, LINKS, tau), START.astype(complex), DURATION)
            found = motion.derivatives[name][-1, :, i]
            np.testing.assert_allclose(found, end.imag / STEP, rtol=0, atol=1e-9, err_msg=argument)


def commanded_torques(state, x, is_partial):
    """Computed torque with the gains and the moving reference of x, of the first or of both links, and its errors.

    The rows of the state are the positions, the velocities, the integrals of the errors, and the time.
    """
    (M, h), t = equations_of_two_links(state[:4], KNOWN), state[-1]
    error = np.array([x["offset"] + x["rise"] * t**3, 0.2]) - state[:2]
    rate = np.array([x["rise"] * 3 * t**2, 0.0]) - state[2:4]
    a = np.array([x["rise"] * 6 * t, 0.0]) + x["kp"] * error + x["kd"] * rate + x["ki"] * state[4:6]
    if is_partial:
        force = 6.0 * error[1] + 0.7 * rate[1]
        other = (force - h[1] - M[1, 0] * a[0]) / M[1, 1]
        return np.array([M[0, 0] * a[0] + M[0, 1] * other + h[0], force]), error
    return M @ a + h, error


@pytest.mark.slow
@plain
@pytest.mark.parametrize("is_partial", [False, True], ids=["both links", "one link beside a PID"])
def test_computed_torque_by_its_gains_and_its_reference_agrees_with_complex_steps(is_partial):
    """The reference r = offset + rise t^3 is a cubic table, of which offset and rise combine the values."""
    known, times = two_links().vary(mass=KNOWN["mass"]), np.linspace(0.0, DURATION, 4)
    x = {"kp": np.array([30.0, 25.0]), "ki": np.array([8.0, 6.0]), "kd": np.array([5.0, 4.0])}
    x |= {"offset": 0.3, "rise": 2.0}
    table = rb.Signal.table(times, x["offset"] + x["rise"] * times**3)
    gains = [{name: x[name][i] for name in ("kp", "ki", "kd")} for i in range(2)]
    drives = [rb.ComputedTorque("link1", table, **gains[0], controller_model=known)]
    other = rb.PID("link2", 0.2, kp=6.0, kd=0.7)
    drives += [other if is_partial else rb.ComputedTorque("link2", 0.2, **gains[1], controller_model=known)]
    names = ["kp", "kd", "signal", "link1.ki"]
    motion = two_links().simulate(START[:2], START[2:], DURATION, drives=drives, derivatives=names, save_at=2, **TIGHT)
    end = {name: motion.derivatives[name][-1] for name in names}
    found = {"offset": end["signal"] @ np.ones(4), "rise": end["signal"] @ times**3, "first ki": end["link1.ki"]}
    found |= {"first kp": end["kp"][:, 0], "first kd": end["kd"][:, 0]}
    if not is_partial:
        found |= {"second kp": end["kp"][:, 1], "second kd": end["kd"][:, 1]}

    def rate(state, varied):
        tau, error = commanded_torques(state, varied, is_partial)
        return np.concatenate([rate_of_two_links(state[:4], LINKS, lambda _: tau), error, [1.0]])

    start = np.concatenate([START, np.zeros(3)]).astype(complex)
    for label, wanted in found.items():
        which, _, name = label.rpartition(" ")
        change = {"first": np.array([1.0, 0.0]), "second": np.array([0.0, 1.0]), "": 1.0}[which]
        varied = x | {name: x[name] + 1j * STEP * change}
        reached = extrapolated(lambda s, varied=varied: rate(s, varied), start, DURATION)[:4]
        np.testing.assert_allclose(motion.q[-1], reached.real[:2], rtol=0, atol=1e-11)
        np.testing.assert_allclose(wanted, reached.imag / STEP, rtol=0, atol=1e-9, err_msg=label)


@pytest.mark.slow
@plain
def test_the_nominal_model_of_a_controller_does_not_change_with_the_masses():
    """As differences between samples whose masses differ, for which the nominal model is the same too."""
    model, step = two_links(), 1e-4
    masses = np.array(LINKS["mass"]) + step * np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    drives = [CONTROLLERS[gravity_forces](joint) for joint in model.joint_names]
    motion = model.simulate(START[:2], START[2:], DURATION, drives=drives, derivatives=["mass"], save_at=2, **TIGHT)
    starts = np.tile(START, (4, 1))
    ends = model.vary(mass=masses).simulate(starts[:, :2], starts[:, 2:], DURATION, drives=drives, save_at=2, **TIGHT)
    state = np.concatenate([ends.q[:, -1], ends.qd[:, -1]], -1)
    differences = (state[::2] - state[1::2]).T / (2 * step)
    np.testing.assert_allclose(motion.derivatives["mass"][-1], differences, rtol=0, atol=1e-6)


@pytest.mark.slow
@plain
def test_a_pendulum_at_rest_has_the_sensitivities_of_a_linear_oscillator():
    builder = rb.ModelBuilder(gravity=(0, -9.81, 0))
    builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(2.0, cg=(1.5, 0, 0)))
    motion = builder.build().simulate([-np.pi / 2], [0.0], 1.0, save_at=5, derivatives=("q", "qd"), **TIGHT)
    found = np.concatenate([motion.derivatives["q"], motion.derivatives["qd"]], -1)
    omega = np.sqrt(9.81 / 1.5)
    c, s = np.cos(omega * motion.t), np.sin(omega * motion.t)
    wanted = np.moveaxis(np.array([[c, s / omega], [-omega * s, c]]), -1, 0)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)


@pytest.mark.fast_cases("spherical")
@plain
@pytest.mark.parametrize("joint", [rb.Universal(), rb.Free(), rb.Spherical()], ids=["universal", "free", "spherical"])
def test_gravity_agrees_with_differences(joint):
    """Along each axis, also by the path of one component."""
    model, step, duration = arm_with(joint), 0.05, 0.05
    q, qd = model.random_state(two_seeds(6))
    settings = {"method": "dop853"} | TIGHT
    motion = model.simulate(q, qd, duration, derivatives=["gravity", "gravity.y", "qd"], save_at=2, **settings)
    found = motion.derivatives["gravity"]
    assert found.shape == (2, 2 * model.nv, 3)
    np.testing.assert_array_equal(motion.derivatives["gravity.y"], found[..., 1])
    steps = step * np.array([1.0, 2, 3, -1, -2, -3])[:, None]
    for axis in range(3):
        varied = model.vary(gravity=model.gravity + steps * np.eye(3)[axis])
        ends = varied.simulate(np.tile(q, (6, 1)), np.tile(qd, (6, 1)), duration, save_at=[duration], **settings)
        moves = np.concatenate([model.difference(motion.q[-1:], ends.q[:, -1]), ends.qd[:, -1]], -1)
        wanted = np.array([3 / 4, -3 / 20, 1 / 60]) @ (moves[:3] - moves[3:]) / step
        np.testing.assert_allclose(found[-1, :, axis], wanted, rtol=0, atol=1e-9)


@plain
def test_refused_derivatives_by_gravity():
    with pytest.raises(rb.ArgumentError, match="contains gravity, but the model is in water"):
        arm_with(rb.Universal(), in_water=True).simulate(np.zeros(4), duration=0.1, derivatives=["gravity.z"])


@plain
def test_a_mass_under_a_constant_force():
    """q = F t^2 / (2 m)."""
    motion = slide().simulate([0.0], [0.0], 1.5, tau=3.0, derivatives=("mass", "tau"), save_at=2, **TIGHT)
    wanted = {"mass": [-3.0 * 1.5**2 / 8, -3.0 * 1.5 / 4], "tau": [1.5**2 / 4, 1.5 / 2]}
    for name, values in wanted.items():
        np.testing.assert_allclose(motion.derivatives[name][-1, :, 0], values, rtol=0, atol=1e-12)


@pytest.mark.slow
@plain
def test_gains_and_a_spring_agree_with_the_matrix_exponential():
    """A mass with a PID drive, a damper and a spring is linear: y' = A y + b, for q, qd, the integral and 1."""
    x = {"kp": 7.0, "ki": 3.0, "kd": 1.0, "damping": 0.5, "stiffness": 2.0, "rest_position": 0.2, "mass": 2.0}

    def end_of(x):
        stiffness, damping = x["kp"] + x["stiffness"], x["kd"] + x["damping"]
        constant = x["kp"] * 0.4 + x["stiffness"] * x["rest_position"]
        A = np.zeros((4, 4), complex)
        A[0, 1], A[2, 0], A[2, 3] = 1, -1, 0.4
        A[1] = np.array([-stiffness, -damping, x["ki"], constant]) / x["mass"]
        return (expm(A) @ [0.1, -0.3, 0, 1])[:2]

    passive = {name: x[name] for name in ("damping", "stiffness", "rest_position")}
    drive = rb.PID("slide", 0.4, kp=x["kp"], ki=x["ki"], kd=x["kd"])
    motion = slide(x["mass"], **passive).simulate(
        [0.1], [-0.3], 1.0, drives=[drive], derivatives=[*x], save_at=2, **TIGHT
    )
    for name, value in x.items():
        wanted = end_of(x | {name: value + 1j * 1e-20}).imag / 1e-20
        np.testing.assert_allclose(motion.derivatives[name][-1, :, 0], wanted, rtol=0, atol=1e-9, err_msg=name)
    assert motion.tau.shape == (2, 1)


@plain
def test_a_drive_at_its_limit_does_not_depend_on_its_gains():
    drive = rb.PID("slide", 10.0, kp=100.0, limit=1.0)
    motion = slide().simulate(
        [0.0], [0.0], 0.1, drives=[drive], derivatives=["kp", "mass"], method="rk4", step=0.05, save_at=2
    )
    assert not motion.derivatives["kp"].any()
    np.testing.assert_allclose(motion.derivatives["mass"][-1, :, 0], [-(0.1**2) / 8, -0.1 / 4], rtol=0, atol=1e-14)


def floating(joint):
    """A body without gravity, on a joint that leaves it free to turn."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    tensor = np.diag([0.3, 0.4, 0.5]) + 0.02 * np.array([[0, 1, 2], [1, 0, -1], [2, -1, 0]])
    builder.add_body("body", joint=joint, inertia=rb.Inertia(1.5, cg=(0, 0, 0), inertia=tensor))
    return builder.build()


@plain
@pytest.mark.parametrize("joint", [rb.Free(), rb.Spherical()], ids=["free", "spherical"])
def test_momentum_of_a_body_in_free_motion_is_constant_to_first_order(joint):
    """R J omega and R m v are constant, and so are their derivatives by the initial state and by J."""
    model = floating(joint)
    q, qd = random_states(model, (), seed=2, arrays=2)
    motion = model.simulate(q, qd, 0.2, save_at=3, derivatives=("q", "qd", "inertia"), rtol=1e-11, atol=1e-12)
    n, J = model.nv, model.inertia[0]
    columns = np.concatenate([motion.derivatives[name].reshape(3, 2 * n, -1) for name in ("q", "qd", "inertia")], -1)
    tensors = np.zeros((columns.shape[-1], 3, 3))
    tensors[2 * n :] = np.eye(9).reshape(9, 3, 3)
    tensors = 0.5 * (tensors + np.swapaxes(tensors, -1, -2))
    momentum = []
    for i in range(3):
        R = model.body_poses(motion.q[i]).rotation[0]
        turn, omega, change = columns[i, n - 3 : n].T, motion.qd[i, n - 3 :], columns[i, 2 * n - 3 :].T
        parts = [np.cross(turn, J @ omega) + change @ J + tensors @ omega]
        if n == 6:
            parts.append(1.5 * (np.cross(turn, motion.qd[i, :3]) + columns[i, n : n + 3].T))
        momentum.append(np.concatenate([part @ R.T for part in parts], -1))
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], np.shape(momentum)), rtol=0, atol=1e-9)
    assert np.abs(columns[-1, :n, 2 * n :]).max() > 0.01


def without_dissipation(model):
    """Without rotors too: the model neglects their gyroscopic moments, so those of a spherical joint do work."""
    fields = "damping", "friction", "static_friction", "rotor_inertia"
    return model.vary(**dict.fromkeys(fields, np.zeros(model.nv)))


@plain
@pytest.mark.parametrize("name", ["two links", "free body", "arm with a spherical joint"])
def test_transition_matrices_compose_and_preserve_volume(name):
    """Phi(t2, t0) = Phi(t2, t1) Phi(t1, t0). By Liouville's theorem, det Phi = det M(q0) / det M(q1)."""
    models = {"two links": two_links, "free body": lambda: floating(rb.Free())}
    model = without_dissipation(models.get(name, lambda: arm_with(rb.Spherical()))())
    q, qd = random_states(model, (), seed=3, arrays=2)
    tolerances = {"rtol": 1e-11, "atol": 1e-12}

    def transition(q, qd, duration):
        motion = model.simulate(q, qd, duration, derivatives=("q", "qd"), save_at=2, **tolerances)
        found = motion.derivatives
        return np.concatenate([found["q"][-1], found["qd"][-1]], -1), motion.q[-1], motion.qd[-1]

    whole, q2, _ = transition(q, qd, 0.02)
    first, q1, qd1 = transition(q, qd, 0.008)
    second, q_end, _ = transition(q1, qd1, 0.012)
    np.testing.assert_allclose(model.difference(q2, q_end), 0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(second @ first, whole, rtol=0, atol=1e-9 * np.abs(whole).max())
    determinants = [np.linalg.det(model.mass_matrix(x)) for x in (q, q2)]
    np.testing.assert_allclose(np.linalg.det(whole), determinants[0] / determinants[1], rtol=1e-9)


def arm_with(joint, in_water=False):
    """Three links; the joint in the middle is given. The middle link has friction, the others also springs."""
    builder, rng = rb.ModelBuilder(gravity=(0, 0, -9.8), fluid_density=1000.0 if in_water else 0.0), two_seeds(5)
    friction = {"friction": 0.2, "static_friction": 0.5, "stribeck_velocity": 0.5, "friction_velocity": 0.3}
    spring = {"stiffness": 2.0, "cubic_stiffness": 3.0, "rest_position": 0.2}
    joints = rb.Revolute((0, 0.6, 0.8)), joint, rb.Prismatic((1, 0, 1))
    for i, (name, parent) in enumerate((("a", None), ("b", "a"), ("c", "b"))):
        tensor = np.diag([0.3, 0.4, 0.5]) + 0.02 * np.array([[0, 1, 2], [1, 0, -1], [2, -1, 0]])
        water = rb.Immersion(volume=0.001, added_mass=0.3 * np.eye(6), quadratic_damping=np.eye(6))
        builder.add_body(
            name,
            parent=parent,
            joint=joints[i],
            placement=rb.Pose((0.3, 0.1, 0.2)),
            inertia=rb.Inertia(rng.uniform(1, 2), cg=0.2 * rng.normal(size=3), inertia=tensor),
            passive=rb.PassiveForces(damping=0.3, **friction, **(spring if i != 1 else {})),
            rotor_inertia=0.0 if i == 1 else 0.1,
            gear_ratio=1.0 if i == 1 else 2.0,
            immersion=water if in_water else None,
        )
    return builder.build()


def two_seeds(seed):
    return np.random.default_rng([seed, 21])


def motion_along(model, start, names, direction, size, duration, **actions):
    """The motion with the initial state and the fields `names` displaced by `size` times a direction each."""
    (q, qd), fields = start, {}
    for name in names:
        if name == "q":
            q = model.integrate(q, size * direction[name])
        elif name == "qd":
            qd = qd + size * direction[name]
        else:
            fields[name] = getattr(model, name) + size * direction[name]
    varied = model.vary(**fields) if fields else model
    return varied.simulate(q, qd, duration, **actions)


def assert_agrees_with_differences(model, names, duration, tolerance, **actions):
    """Compare with a central difference along a random direction in each field, extrapolated to fourth order."""
    start, rng = random_states(model, (), seed=4, arrays=2), two_seeds(7)
    for drive in actions.get("drives", ()):
        if isinstance(drive, rb.PrescribedVelocity):
            start[1][model.velocity_index[model.joint_names.index(drive.joint)]] = drive.signal(0.0)
    motion = model.simulate(*start, duration, derivatives=names, **actions)
    for name in names:
        shape = motion.derivatives[name].shape[2:]
        direction = rng.normal(size=shape)
        if name not in ("q", "qd"):
            direction = direction * (0.1 * np.abs(getattr(model, name)).max(axis=None) if shape else 1.0)
            direction = direction * (getattr(model, name) != 0.0) if len(shape) == 1 else direction
        if name == "inertia":
            direction = direction + np.swapaxes(direction, -1, -2)
        slopes = []
        for size in (2e-3, 1e-3):
            ends = [
                motion_along(model, start, [name], {name: direction}, s, duration, **actions) for s in (-size, size)
            ]
            change = model.difference(ends[0].q[-1], ends[1].q[-1]), ends[1].qd[-1] - ends[0].qd[-1]
            slopes.append(np.concatenate(change) / (2 * size))
        wanted = (4 * slopes[1] - slopes[0]) / 3
        found = motion.derivatives[name][-1].reshape(2 * model.nv, -1) @ direction.reshape(-1)
        assert np.abs(wanted).max() > 1e-4, name
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max(), err_msg=name)


FIXED = {"method": "rk4", "step": 0.05}  # sensitivities are then the exact derivatives of the numerical result
PASSIVE = ("stiffness", "rest_position", "cubic_stiffness", "damping", "friction", "static_friction")


@plain
def test_all_fields_agree_with_differences():
    names = ["q", "qd", *INERTIAL, "rotor_inertia", "gear_ratio", *PASSIVE]
    assert_agrees_with_differences(arm_with(rb.Universal()), names, 0.1, 1e-6, **FIXED)


@pytest.mark.slow_cases("in water")
@plain
@pytest.mark.parametrize("in_water", [False, True], ids=["in air", "in water"])
def test_a_spherical_joint_agrees_with_differences(in_water):
    """Between quaternions, the steps of differences change the normalization of a step, so the steps are short."""
    names = ["q", "qd", *INERTIAL, "damping"]
    settings = {"method": "rk4", "step": 0.005}
    assert_agrees_with_differences(arm_with(rb.Spherical(), in_water), names, 0.02, 1e-6, **settings)


CURRENT = rb.Current((rb.Signal.sines(0.3, 2.0, offset=0.4), 0.2, 0.0))
IN_WATER = {
    "compensation": [rb.PID("a", 0.2, kp=30.0, kd=4.0, gravity_compensation=True)],
    "computed torque": [
        rb.ComputedTorque(joint, 0.2, kp=30.0, kd=5.0, dof=dof)
        for joint, dof in (("a", 0), ("b", 0), ("b", 1), ("c", 0))
    ],
    "both": [rb.ComputedTorque("a", 0.2, kp=30.0, kd=5.0), rb.PID("c", 0.3, kp=20.0, gravity_compensation=True)],
}


@pytest.mark.fast_cases("compensation")
@plain
@pytest.mark.parametrize("controllers", IN_WATER)
def test_controllers_in_water_agree_with_differences(controllers):
    model, known = arm_with(rb.Universal(), True), arm_with(rb.Universal(), True)
    actions = {
        "drives": [replace(drive, controller_model=known) for drive in IN_WATER[controllers]],
        "forces": [CURRENT],
    }
    assert_agrees_with_differences(model, ["q", "qd", "mass", "damping"], 0.1, 1e-6, **actions, **FIXED)


@plain
def test_computed_torque_in_water_depends_on_the_forces_of_other_joints():
    model, (q, qd), direction = arm_with(rb.Universal(), True), np.zeros((2, 4)), np.array([0.0, -0.2, 0.5, 0.0])
    settings = {"drives": IN_WATER["both"], "forces": [CURRENT], **FIXED}
    found = model.simulate(q, qd, 0.1, derivatives=["tau"], **settings).derivatives["tau"][-1] @ direction
    wanted = derivative(lambda s: end_of(model.simulate(q, qd, 0.1, tau=s * direction, **settings)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


def end_of(motion):
    return np.concatenate([motion.q[-1], motion.qd[-1]])


@plain
def test_prescribed_motions_do_not_depend_on_parameters():
    signal = rb.Signal.sines(1.0, 2.0, phase=0.3)
    for drives in (
        [rb.PrescribedAcceleration("a", signal), rb.PrescribedVelocity("c", signal)],
        [rb.PrescribedPosition("c", signal)],
    ):
        model = arm_with(rb.Universal())
        names = ["q", "qd", "mass", "damping"]
        assert_agrees_with_differences(model, names, 0.1, 1e-6, drives=drives, **FIXED)
        q, qd = random_states(model, (), seed=4, arrays=2)
        found = model.simulate(q, qd, 0.1, drives=drives, derivatives=["q", "mass"], save_at=2, **FIXED).derivatives
        rows = [3, 7] if len(drives) == 1 else [4, 7]
        assert not found["mass"][:, rows].any()
        assert len(drives) == 2 or not found["q"][:, rows].any()


@plain
def test_drives_springs_and_wrenches_agree_with_differences():
    drives = [
        rb.PID("a", rb.Signal.sines(1.0, 2.0, phase=0.3), kp=30.0, ki=10.0, kd=4.0),
        rb.PID("c", 0.3, kp=20.0, kd=2.0),
    ]
    spring = rb.SpringDamper(None, "c", point_a=(0, 0, 1), point_b=(0.1, 0, 0.2), stiffness=20.0, damping=2.0)
    wrench = rb.Wrench("b", force=(rb.Signal.sines(3.0, 2.0, phase=0.3), 1, 2), point=(0.1, 0.2, 0.3))
    names = ["q", "qd", "mass", "cg", "rest_position"]
    model = arm_with(rb.Universal())
    assert_agrees_with_differences(model, names, 0.1, 1e-6, drives=drives, forces=[spring, wrench], **FIXED)


@pytest.mark.slow
@plain
def test_steps_are_unchanged_unless_sensitivities_control_them():
    plain_motion = two_links().simulate(START[:2], START[2:], 0.5, save_at=4, rtol=1e-6, atol=1e-6)
    motions = []
    for control in (False, True):
        with rb.options(control_derivative_errors=control):
            motions.append(
                two_links().simulate(
                    START[:2], START[2:], 0.5, save_at=4, rtol=1e-6, atol=1e-6, derivatives=["inertia"]
                )
            )
    np.testing.assert_array_equal(motions[0].q, plain_motion.q)
    np.testing.assert_array_equal(motions[0].tau, plain_motion.tau)
    assert motions[0].steps == plain_motion.steps < motions[1].steps
    exact = two_links().simulate(START[:2], START[2:], 0.5, save_at=4, rtol=1e-9, atol=1e-9, derivatives=["inertia"])
    errors = [np.abs(motion.derivatives["inertia"] - exact.derivatives["inertia"]).max() for motion in motions]
    assert errors[1] < 0.3 * errors[0]


@plain
def test_a_motion_under_gravity_does_not_change_if_all_bodies_are_heavier_by_the_same_factor():
    """Then the derivatives with respect to the masses, along which the inertia tensors scale, cancel."""
    rng = np.random.default_rng(0)
    chain = rb.Model.serial_chain(2)
    heavy = chain.vary(mass=chain.mass * rng.uniform(0.5, 2.0, 2))
    paths = [f"{body}.mass_and_inertia" for body in heavy.body_names]
    settings = {"duration": 0.1, "save_at": 2, "rtol": 1e-9, "atol": 1e-10}
    found = heavy.simulate(rng.normal(size=2), 1.0, derivatives=paths, **settings).derivatives
    changes = np.array([found[path][-1] * heavy.mass[i] for i, path in enumerate(paths)])
    assert (np.abs(changes).max(-1) > 1e-3).all()
    np.testing.assert_allclose(changes.sum(0), 0.0, atol=1e-8)


@plain
def test_events_end_the_sensitivities_and_do_not_change_them():
    model, names = two_links(), ["q", "mass", "ki"]
    drives = [rb.PID("link1", 0.3, kp=1.0, ki=1.0)]
    settings = {"save_at": 5, "derivatives": names, "drives": drives, "method": "rk4", "step": 0.02}
    free = model.simulate(START[:2], START[2:], 0.4, **settings)
    event = rb.Event("link1", value=free.q[2, 0], stop=True)
    stopped = model.simulate(START[:2], START[2:], 0.4, events=[event], **settings)
    assert stopped.events[0].count == 1
    for name in names:
        np.testing.assert_array_equal(stopped.derivatives[name][:2], free.derivatives[name][:2])
        assert np.isnan(stopped.derivatives[name][3:]).all()
    np.testing.assert_allclose(stopped.events[0].q[0], free.q[2], rtol=0, atol=1e-6)


@plain
def test_sensitivities_of_one_sample_in_float32_and_in_a_file(tmp_path):
    states = np.stack([START[:2], START[2:]])[:, None] * np.array([1.0, 0.5])[:, None]
    motion = two_links().simulate(*states, 0.1, derivatives=["q", "inertia"], save_at=2, **FIXED)
    single = two_links().simulate(*states[:, 1], 0.1, derivatives=["q", "inertia"], save_at=2, **FIXED)
    motion.save(tmp_path / "motion.npz")
    loaded = rb.load_motion(tmp_path / "motion.npz")
    rough = two_links().simulate(*states.astype(np.float32), 0.1, derivatives=["q", "inertia"], save_at=2, **FIXED)
    empty = two_links().simulate(*states[:, :0], 0.1, derivatives=["q", "inertia"], save_at=2, **FIXED)
    for name in ("q", "inertia"):
        np.testing.assert_array_equal(motion[1].derivatives[name], single.derivatives[name])
        np.testing.assert_array_equal(loaded.derivatives[name], motion.derivatives[name])
        assert rough.derivatives[name].dtype == np.float32
        assert empty.derivatives[name].shape == (0, *motion.derivatives[name].shape[1:])
        np.testing.assert_allclose(rough.derivatives[name], motion.derivatives[name], rtol=0, atol=1e-4)


@plain
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"derivatives": "mass"}, "derivatives is 'mass'; expected a list of names"),
        ({"derivatives": ["masses"]}, "derivatives contains 'masses'; expected names among q, qd, tau, mass"),
        ({"derivatives": ["mass", "mass"]}, "expected each name once"),
        ({"method": "rosenbrock"}, 'method is "rosenbrock", which does not compute derivatives; expected "rk45"'),
        ({"derivatives": ["kp"]}, '"kp"; expected a PID or ComputedTorque, but drives contains none'),
        ({"derivatives": ["ki"], "drives": [rb.PID("a", 0.0, kp=1.0)]}, r"joints \['a'\] have ki = 0"),
        (
            {"drives": [rb.PID("a", 0.0, kp=1.0, gravity_compensation=True, controller_model="own")]},
            r'contains mass, but the controllers use these parameters too \(controller_model="own"\)',
        ),
        ({"forces": [rb.DryFriction("a", kinetic=1.0)]}, "do not support DryFriction, HardStops, SphereC"),
    ],
)
def test_refused_arguments(given, message):
    model = without_dissipation(arm_with(rb.Universal()))
    with pytest.raises(rb.ArgumentError, match=message):
        model.simulate(np.zeros(4), np.zeros(4), 0.1, **({"derivatives": ["mass"]} | given))


@plain
def test_refused_user_forces():
    def forces(t, q, qd, parameters, tau):
        tau[0] = -q[0]

    with pytest.raises(rb.ArgumentError, match=r"Pass UserForces\(..., derivatives=...\)"):
        slide().simulate([0.0], [0.0], 0.1, drives=[rb.UserForces(forces)], derivatives=["mass"], save_at=2)


def speed_above(t, q, qd, parameters, out):
    out[0] = qd[0] - parameters[0]


def last_samples():
    """Derivatives of the last two of nine samples: one in the first block of lanes, one alone in the second."""
    model, rng = arm_with(rb.Spherical()), two_seeds(9)
    model = model.vary(mass=model.mass * rng.uniform(0.9, 1.1, (9, 3)))
    q, qd = model.random_state(rng, (9,))
    names = ["q", "qd", "mass", "cg", "inertia", "friction"]
    motion = model.simulate(q, 0.5 * qd, 0.05, rtol=1e-6, atol=1e-6, derivatives=names)
    found = {name: values[7:] for name, values in motion.derivatives.items()}

    arm = rb.Model.serial_chain(2)
    drives = [rb.ComputedTorque(joint, 0.5, kp=100.0, kd=20.0, limit=4.0) for joint in arm.joint_names]
    q, qd = rng.normal(size=(2, 9, 2))
    events = [rb.Event(function=speed_above, parameters=qd[:, :1] - 0.5, max_records=1)]
    settings = {"drives": drives, "derivatives": ["q", "mass"], "events": events}
    motion = arm.simulate(q, qd, 0.05, rtol=1e-6, atol=1e-6, **settings)
    found |= {f"{name} of an arm with a controller": x[7:] for name, x in motion.derivatives.items()}
    found |= {f"time of an event by {name}": x[7:] for name, x in motion.events[0].derivatives_of_t.items()}
    assert np.isfinite(found["time of an event by mass"]).all()
    drives[1] = rb.PID(arm.joint_names[1], 0.5, kp=1.0)
    motion = arm.simulate(q, qd, 0.05, rtol=1e-6, atol=1e-6, drives=drives, derivatives=["q", "kp"])
    found |= {f"{name} of an arm with both controllers": x[7:] for name, x in motion.derivatives.items()}
    drives = [
        rb.PrescribedForce(arm.joint_names[0], rb.Signal.table([0.0, 0.02, 0.05], rng.normal(size=(9, 3)))),
        rb.PID(arm.joint_names[1], rb.Signal.table([0.0, 0.05], [0.1, 0.2], interpolation="linear"), kp=1.0, ki=1.0),
    ]
    forces = [
        rb.SpringDamper(None, "link2", point_a=(0.7, 0.4, 0), point_b=(0.1, 0, 0), stiffness=2.0, name="cord"),
        rb.Bushing("link1", "link2", stiffness=np.eye(6), damping=0.1 * np.eye(6), name="mount"),
    ]
    names = ["signal", "cord.stiffness", "cord.damping", "cord.rest_length", "mount.damping", "gravity"]
    motion = arm.simulate(q, qd, 0.05, rtol=1e-6, atol=1e-6, drives=drives, forces=forces, derivatives=names)
    return found | {f"{name} of an arm with tables and springs": x[7:] for name, x in motion.derivatives.items()}


@pytest.mark.slow
def test_lanes_agree_with_plain_python():
    check_alike(computed(last_samples, NUMBA_DISABLE_JIT="1"), last_samples())
