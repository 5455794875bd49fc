"""The forces of the drives of a joint add up; at most one drive prescribes its motion; an Actuator shapes the sum."""

import re
from dataclasses import replace

import numpy as np
import pytest

import rbchain as rb

plain = pytest.mark.plain_python
LOOSE = {"rtol": 1e-5, "atol": 1e-5}
METHODS = {
    "rk4": {"step": 5e-3},
    "implicit": {"step": 5e-3},
    "moreau": {"step": 5e-3},
    **dict.fromkeys(("rk45", "dop853", "rosenbrock", "radau"), LOOSE),
}
Q0, QD0 = np.array([[0.1, 0.2], [0.3, -0.2]]), np.array([[0.0, 0.5], [-0.3, 0.0]])
WAVE = rb.Signal.sines(0.3, 5.0)


def spring(t, q, qd, parameters, out):
    out[0] -= parameters[0] * q[0] + parameters[1] * qd[0]


def slopes(t, q, qd, parameters, out):
    out[0, 0, 0] = -parameters[0]
    out[1, 0, 0] = -parameters[1]


def pid(**fields):
    return rb.PID("link1", **({"reference": WAVE, "kp": 1.0} | fields))


def held(controller, **fields):
    return rb.Sampled(controller, period=0.01, **fields)


#: Drives whose forces add up, and drives of which each joint has one, with the same sum.
SUMS = {
    "two PIDs": ([pid(), pid(kp=2.0)], [pid(kp=3.0)]),
    "three PIDs with integrals": (
        [pid(ki=0.5, kd=0.1), pid(kp=2.0, ki=1.5), pid(kp=0.5, kd=0.2)],
        [pid(kp=3.5, ki=2.0, kd=0.3)],
    ),
    "PIDs with two references": ([pid(reference=0.2), pid(reference=0.5, kp=3.0)], [pid(reference=0.425, kp=4.0)]),
    "two forces": (
        [rb.PrescribedForce("link1", WAVE), rb.PrescribedForce("link1", 0.4)],
        [rb.PrescribedForce("link1", WAVE + 0.4)],
    ),
    "a PID and its feedforward": ([pid(), rb.PrescribedForce("link1", 2.0 * WAVE)], [pid(feedforward=2.0 * WAVE)]),
    "PIDs at their limits": (
        [
            pid(reference=9.0, kp=5.0, limit=0.3),
            pid(reference=9.0, kp=5.0, limit=0.2),
            rb.PrescribedForce("link2", 0.0),
        ],
        [rb.PrescribedForce("link1", 0.5)],
    ),
    "user functions": (
        [
            rb.UserForces(spring, parameters=[1.0, 0.1], derivatives=slopes),
            rb.UserForces(spring, parameters=[2.0, 0.2], derivatives=slopes),
            pid(),
        ],
        [rb.UserForces(spring, parameters=[3.0, 0.3], derivatives=slopes), pid()],
    ),
    "user functions of which one has no derivatives": (
        [
            rb.UserForces(spring, parameters=[1.0, 0.1], derivatives=slopes),
            rb.UserForces(spring, parameters=[2.0, 0.2]),
        ],
        [rb.UserForces(spring, parameters=[3.0, 0.3])],
    ),
    "gravity compensation": (
        [pid(gravity_compensation=True), pid(kp=2.0)],
        [pid(kp=3.0), rb.PrescribedForce("link1", 0.0, gravity_compensation=True)],
    ),
    "sampled PIDs": ([held(pid(ki=0.2)), held(pid(kp=2.0, ki=0.3))], [held(pid(kp=3.0, ki=0.5))]),
    "a sampled and a continuous PID": ([pid(), held(pid(kp=2.0))], [held(pid(kp=2.0, feedforward=0.0)), pid()]),
    "sampled feedforward": ([held(pid(feedforward=WAVE))], [held(pid()), held(pid(kp=0.0, feedforward=WAVE))]),
}


def motion(drives, method="rk4", tau=0.0, duration=0.05, **settings):
    """Simulate a double pendulum."""
    arm = rb.Model.serial_chain(2)
    return arm.simulate(Q0, QD0, duration, tau=tau, drives=drives, method=method, **METHODS[method] | settings)


def assert_equal(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a.q, b.q, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(a.qd, b.qd, rtol=0.0, atol=100.0 * tolerance)
    np.testing.assert_allclose(a.tau, b.tau, rtol=0.0, atol=1000.0 * tolerance)


@pytest.mark.fast_cases("implicit", "rk4", "rk45")
@plain
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SUMS)
def test_drives_of_a_joint_equal_one_drive_with_the_sum_of_their_forces(name, method):
    """The steps are the same up to round-off, except that the error of a step contains the errors of all integrals."""
    several, one = (motion(drives, method) for drives in SUMS[name])
    assert_equal(several, one, 1e-6 if "integrals" in name else 1e-10)


@pytest.mark.fast_cases("implicit", "moreau", "rk4")
@plain
@pytest.mark.parametrize("method", METHODS)
def test_tau_adds_to_the_force_of_a_drive(method):
    """Tau and a PrescribedForce with the same number give the same motion, with and without a sampled controller."""
    for drives in ([pid(kp=2.0, kd=0.1)], [held(pid(kp=2.0))], []):
        by_tau = motion(drives, method, tau=[0.3, 0.0])
        by_drive = motion([*drives, rb.PrescribedForce("link1", 0.3)], method)
        assert_equal(by_tau, by_drive, 1e-12)


@pytest.mark.slow_cases("rosenbrock")
@pytest.mark.parametrize("method", ["rk45", pytest.param("rosenbrock", marks=plain)])
def test_lanes_contain_all_drives_of_each_sample(method):
    """Eleven samples fill more than one block; each has gains of its own."""
    arm, gains = rb.Model.serial_chain(2), np.linspace(0.5, 3.0, 11)
    q0, qd0 = np.tile(Q0, (6, 1))[:11], np.tile(QD0, (6, 1))[:11]
    drives = [
        pid(kp=gains, ki=0.5),
        rb.UserForces(spring, parameters=[1.0, 0.1], derivatives=slopes),
        pid(kp=2.0, ki=gains, limit=9.0),
        rb.UserForces(spring, parameters=[2.0, 0.0], derivatives=slopes),
        rb.PrescribedForce("link1", 0.2),
    ]
    one = [
        pid(kp=2.0 + gains, ki=0.5 + gains, feedforward=0.2),
        rb.UserForces(spring, parameters=[3.0, 0.1], derivatives=slopes),
    ]
    several, single = (arm.simulate(q0, qd0, 0.2, drives=x, method=method, save_at=2, **LOOSE) for x in (drives, one))
    assert several.success
    assert_equal(several, single, 1e-5)
    found = arm.accelerations(several.q[:, -1], several.qd[:, -1], t=0.2, drives=drives[1:2] + drives[3:])
    push = [rb.UserForces(spring, parameters=[3.0, 0.1], derivatives=slopes), rb.PrescribedForce("link1", 0.2)]
    expected = arm.accelerations(several.q[:, -1], several.qd[:, -1], t=0.2, drives=push)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@plain
def test_tau_of_each_sample_adds_to_a_drive():
    both = motion([pid(kp=2.0)], tau=[[0.3, 0.0], [-0.1, 0.2]])
    for k, tau in enumerate(([0.3, 0.0], [-0.1, 0.2])):
        assert np.array_equal(both.q[k], motion([pid(kp=2.0)], tau=tau).q[k])


@pytest.mark.slow_cases("moreau", "rk4")
@plain
@pytest.mark.parametrize("method", METHODS)
def test_a_force_beside_computed_torque_moves_the_linear_error(method):
    """On one joint with inertia J, the error of computed torque obeys e'' + kd e' + kp e = - F / J."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("rotor", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(0.5, 0.5, 0.5)))
    drives = [rb.PrescribedForce("rotor", 0.8), rb.ComputedTorque("rotor", 0.3, kp=16.0, kd=8.0), pid_of_rotor()]
    settings = {"rtol": 1e-8, "atol": 1e-10} if METHODS[method] is LOOSE else {"step": 1e-3}
    motion = builder.build().simulate([0.3], [0.0], 0.5, drives=drives, method=method, save_at=2, **settings)
    # the sum of both feedbacks: q'' = -16 x - 8 x' + (0.8 - 4 x) / 0.5 with x = q - 0.3, critically damped by kd = 1
    w = np.sqrt(24.0)
    damping = 8.0 + 2.0 * (w - 4.0)
    assert damping == pytest.approx(2.0 * w)
    exact = 0.3 + 1.6 / w**2 * (1.0 - np.exp(-w * 0.5) * (1.0 + w * 0.5))
    tolerance = {"implicit": 2e-3, "moreau": 2e-3}.get(method, 1e-6)
    assert motion.q[-1, 0] == pytest.approx(exact, abs=tolerance)


def pid_of_rotor():
    return rb.PID("rotor", 0.3, kp=4.0, kd=np.sqrt(24.0) - 4.0)


@plain
@pytest.mark.parametrize("method", METHODS)
def test_the_feedforward_of_the_reference_motion_leaves_no_error(method):
    """With the force J r'' as feedforward, a rotor follows its reference r exactly for all gains."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("rotor", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(0.5, 0.5, 0.5)))
    reference = rb.Signal.sines(0.2, 3.0)
    feedforward = -9.0 * 0.5 * reference
    drive = rb.PID("rotor", reference, kp=1.0, kd=0.2, feedforward=feedforward)
    settings = {"rtol": 1e-8, "atol": 1e-10} if METHODS[method] is LOOSE else {"step": 1e-3}
    motion = builder.build().simulate([0.0], [0.6], 0.5, drives=[drive], method=method, save_at=2, **settings)
    tolerance = {"implicit": 1e-3, "moreau": 1e-3}.get(method, 1e-7)  # of first order: about h / 10
    assert motion.q[-1, 0] == pytest.approx(0.2 * np.sin(1.5), abs=tolerance)


@plain
def test_the_limit_of_a_pid_includes_its_feedforward_but_no_other_force():
    drives = [pid(kp=0.0, feedforward=2.0, limit=0.5), rb.PrescribedForce("link1", 3.0)]
    assert np.all(motion(drives).tau[..., 0] == 3.5)
    sampled = [held(pid(kp=0.0, feedforward=2.0, limit=0.5)), rb.PrescribedForce("link1", 3.0)]
    assert np.all(motion(sampled).tau[..., 0] == 3.5)


@plain
def test_an_actuator_limits_the_sum_of_all_forces():
    push = rb.UserForces(constant_force, parameters=[2.0])
    drives = [pid(kp=0.0, feedforward=1.0), rb.PrescribedForce("link1", 1.5), push]
    assert np.all(motion(drives, tau=[0.5, 0.0]).tau[..., 0] == 5.0)
    limited = motion([*drives, rb.Actuator("link1", stall_torque=4.5)], tau=[0.5, 0.0])
    assert np.all(limited.tau[..., 0] == 4.5)
    below = motion([*drives, rb.Actuator("link1", stall_torque=5.5)], tau=[0.5, 0.0])
    assert np.all(below.tau[..., 0] == 5.0)


def constant_force(t, q, qd, parameters, out):
    out[0] += parameters[0]


@plain
@pytest.mark.parametrize("method", ["rk4", "rk45", "implicit", "rosenbrock"])
def test_the_lag_of_an_actuator_follows_the_sum_of_sampled_forces_and_tau(method):
    """The lag of a constant command u is u (1 - exp(-t / T))."""
    drives = [
        held(pid(kp=0.0, feedforward=1.0)),
        rb.Sampled(pid(kp=0.0, feedforward=0.5), period=0.02),
        rb.Sampled(rb.UserForces(constant_force, parameters=[0.25]), period=0.05),
        rb.Actuator("link1", time_constant=0.03),
    ]
    found = motion(drives, method, tau=[0.125, 0.0], save_at=7)
    exact = 1.875 * (1.0 - np.exp(-found.t / 0.03))
    np.testing.assert_allclose(found.tau[..., 0], np.broadcast_to(exact, (2, 7)), atol=1e-12)


@plain
def test_the_lag_needs_sampled_drives_only():
    drives = [held(pid()), pid(), rb.Actuator("link1", time_constant=0.03)]
    with pytest.raises(rb.ArgumentError, match="a drive of this joint acts continuously"):
        motion(drives)


@plain
@pytest.mark.parametrize(
    ("drives", "message"),
    [
        ([rb.PrescribedAcceleration("link1", 0.0), pid()], "PID of joint 'link1': PrescribedAcceleration prescribes"),
        ([pid(), rb.PrescribedPosition("link1", 0.1)], "so the force of this drive has no effect"),
        ([rb.PrescribedVelocity("link1", 0.1)] * 2, "another drive already prescribes the motion"),
        ([rb.PrescribedVelocity("link1", 0.1), held(pid())], "so the force of this drive has no effect"),
        ([rb.ComputedTorque("link1", 0.1, kp=1.0, kd=1.0)] * 2, "already has a ComputedTorque"),
        ([pid(gravity_compensation=True)] * 2, "several drives .* compensate gravity"),
        ([held(pid(gravity_compensation=True)), rb.ComputedTorque("link1", 0.1, kp=1.0, kd=1.0)], "compensate gravity"),
    ],
)
def test_drives_that_exclude_each_other_are_refused(drives, message):
    with pytest.raises(rb.ArgumentError, match=message):
        motion(drives)


@plain
def test_tau_of_a_prescribed_motion_is_refused():
    with pytest.raises(rb.ArgumentError, match=r"\['link1'\] have a tau other than zero.*tau has no effect"):
        motion([rb.PrescribedVelocity("link1", 0.1)], tau=[0.1, 0.0])


@plain
@pytest.mark.parametrize(
    "name", ["two PIDs", "three PIDs with integrals", "PIDs at their limits", "gravity compensation"]
)
def test_accelerations_contain_all_drives(name):
    arm = rb.Model.serial_chain(2)
    several, one = (arm.accelerations(Q0, QD0, t=0.1, tau=0.2, drives=drives) for drives in SUMS[name])
    np.testing.assert_allclose(several, one, rtol=1e-12)


@pytest.mark.fast_cases("rosenbrock-drives0")
@plain
@pytest.mark.parametrize(
    "drives",
    [
        [pid(kp=2.0, ki=0.5), rb.ComputedTorque("link1", 0.2, kp=9.0, kd=3.0, ki=0.4)],
        [
            rb.PID("link2", 0.1, kp=3.0, ki=2.0, kd=0.1),
            rb.ComputedTorque("link1", 0.2, kp=9.0, kd=3.0, ki=0.4),
            rb.PID("link2", 0.4, kp=1.0, ki=1.0, gravity_compensation=True),
            rb.PID("link1", 0.3, kp=1.0, ki=1.0, limit=5.0),
        ],
        [pid(kp=9.0), pid(kp=8.0, ki=3.0), rb.Actuator("link1", stall_torque=3.0, no_load_speed=6.0)],
    ],
)
@pytest.mark.parametrize("method", ["rosenbrock", "radau"])
def test_jacobians_of_several_drives_are_exact(drives, method):
    """With a wrong Jacobian, a method takes more steps than with the Jacobian by differences of a user function."""
    zero = rb.UserForces(no_force)  # without derivatives: the method takes differences
    exact = motion(drives, method, rtol=1e-6, atol=1e-6)
    by_differences = motion([*drives, zero], method, rtol=1e-6, atol=1e-6)
    assert_equal(exact, by_differences, 1e-5)
    assert np.all(exact.steps <= by_differences.steps + 1)


def no_force(t, q, qd, parameters, out):
    pass


@pytest.mark.slow
@plain
@pytest.mark.parametrize("name", ["q", "qd", "tau"])
def test_sensitivities_contain_all_drives(name):
    """Central differences of motions whose initial states or forces differ."""
    drives = [
        rb.PID("link2", 0.1, kp=3.0, ki=2.0, kd=0.1),
        rb.ComputedTorque("link1", 0.2, kp=9.0, kd=3.0, ki=0.4),
        rb.PID("link2", 0.4, kp=1.0, ki=1.0, feedforward=WAVE),
        rb.PID("link1", 0.3, kp=1.0, ki=1.0),
        rb.UserForces(spring, parameters=[1.0, 0.1], derivatives=slopes),
        rb.UserForces(spring, parameters=[2.0, 0.0], derivatives=slopes),
    ]
    arm, settings = rb.Model.serial_chain(2), {"rtol": 1e-10, "atol": 1e-10}
    start = {"q": Q0[0], "qd": QD0[0], "tau": np.array([0.1, -0.2])}

    def end(values):
        found = arm.simulate(values["q"], values["qd"], 0.1, tau=values["tau"], drives=drives, save_at=2, **settings)
        return np.concatenate([found.q[-1], found.qd[-1]])

    found = arm.simulate(
        start["q"], start["qd"], 0.1, tau=start["tau"], drives=drives, derivatives=[name], save_at=2, **settings
    )
    for j, unit in enumerate(np.eye(2)):
        ends = [end(start | {name: start[name] + sign * 1e-4 * unit}) for sign in (1.0, -1.0)]
        np.testing.assert_allclose(found.derivatives[name][-1, :, j], (ends[0] - ends[1]) / 2e-4, atol=1e-7)


@plain
def test_sensitivities_by_gains_need_one_pid_per_joint():
    beside = [pid(kp=2.0, limit=9.0), rb.PrescribedForce("link1", 0.3)]
    settings = {"method": "rk45", "derivatives": ["kp"]}
    one = motion([pid(kp=2.0, feedforward=0.3)], **settings)
    np.testing.assert_allclose(motion(beside, **settings).derivatives["kp"], one.derivatives["kp"], atol=1e-12)
    of_path = motion([*beside, *[rb.PID("link2", 0.1, kp=0.0)] * 2], method="rk45", derivatives=["link1.kp"])
    np.testing.assert_allclose(of_path.derivatives["link1.kp"], one.derivatives["kp"][..., 0], atol=1e-12)
    with pytest.raises(rb.ArgumentError, match=r'contains "kp".*has several drives with gains'):
        motion([pid(kp=2.0), pid()], **settings)


@pytest.mark.slow
@plain
def test_steps_along_a_tree_contain_all_integrals():
    """Steps of an arm with 24 links are solved along the tree, unless a user function acts."""
    arm = rb.Model.serial_chain(24, gravity=(0, 0, 0))
    drives = [rb.PID(joint, 0.1, kp=5.0, kd=0.5, ki=gain) for joint in arm.joint_names[:2] for gain in (0.0, 1.0, 3.0)]
    settings = {"method": "rosenbrock", "rtol": 1e-4, "atol": 1e-4}
    q0, qd0 = np.zeros(24), np.zeros(24)
    along, by_matrix = (
        arm.simulate(q0, qd0, 0.01, drives=[*drives, *more], save_at=2, **settings)
        for more in ((), (rb.UserForces(no_force, derivatives=no_force),))
    )
    assert np.array_equal(along.steps, by_matrix.steps)
    np.testing.assert_allclose(along.q, by_matrix.q, atol=1e-12)


@plain
def test_failures_name_the_function_that_raised():
    def breaks(t, q, qd, parameters, out):
        raise ValueError("broken")

    for drives in ([rb.UserForces(no_force), rb.UserForces(breaks)], [rb.UserForces(breaks), rb.UserForces(no_force)]):
        found = motion(drives, on_failure="ignore")
        assert np.all(found.status == rb.Status.USER_FUNCTION_FAILED)
        with pytest.raises(rb.SimulationError, match="UserForces with function 'breaks' raised ValueError: broken"):
            motion(drives, on_failure="raise")


@plain
def test_models_and_files_store_several_drives_of_a_joint(tmp_path):
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("rod", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia.rod(1.0, mass=1.0))
    builder.add_drive(rb.PID("rod", 0.3, kp=20.0, kd=2.0, feedforward=rb.Signal.sines(0.2, 3.0)))
    builder.add_drive(rb.PrescribedForce("rod", 0.5))
    model = builder.build()
    rb.save(model, tmp_path / "rod.toml")
    loaded = rb.load(tmp_path / "rod.toml")
    assert loaded.drives == model.drives
    motion = loaded.simulate([0.1], [0.0], 0.1, tau=0.25, method="rk4", step=0.01, save_at=2)
    one = rb.PID("rod", 0.3, kp=20.0, kd=2.0, feedforward=0.75 + rb.Signal.sines(0.2, 3.0))
    expected = model.simulate([0.1], [0.0], 0.1, drives=[one], method="rk4", step=0.01, save_at=2)
    assert_equal(motion, expected, 1e-12)


@plain
def test_a_study_file_adds_the_drives_of_a_joint(tmp_path):
    builder = rb.ModelBuilder()
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=2.0))
    rb.save(builder.build(), tmp_path / "slide.toml")
    (tmp_path / "study.toml").write_text("""
model = "slide.toml"
samples = 3
simulate = { duration = 0.5, tau = 0.5 }
vary = { "slide.feedforward" = { how = "add", distribution = { type = "uniform", low = 0.0, high = 1.0 } } }
measures = [{ name = "end", quantity = "velocity", joint = "slide" }]
drives = [
  { type = "PrescribedForce", joint = "slide", signal = 0.25 },
  { type = "PID", joint = "slide", reference = 0.0, kp = 0.0, feedforward = 1.0 },
]
""")
    results = rb.Study.read(tmp_path / "study.toml").run()
    expected = (1.75 + results.parameters.values[:, 0]) * 0.5 / 2.0
    np.testing.assert_allclose(results["end"].values, expected, rtol=1e-8)


T = np.array([0.05, 0.2])
LAGGED = rb.PID("slide", 0.0, kp=0.0, feedforward=3.0, feedforward_time_constant=T)


def slide():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=2.0))
    return builder.build()


@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("method", "tolerance"),
    [
        ({"method": "rk45"}, 1e-8),
        ({"method": "dop853"}, 1e-8),
        ({"method": "rk4", "step": 2e-3}, 1e-8),
        ({"method": "implicit", "step": 1e-3}, 1e-2),  # h / (2 T)
        ({"method": "moreau", "step": 1e-3}, 1e-4),  # (h / T)^2
    ],
    ids=lambda given: given.get("method") if isinstance(given, dict) else None,
)
def test_a_lagged_feedforward_is_the_step_response_of_its_lag(method, tolerance):
    check_step_response(method, tolerance)


def test_compiled_code_delays_the_feedforward():
    check_step_response({"method": "rk4", "step": 2e-3}, 1e-8)


def check_step_response(method, tolerance):
    motion = slide().simulate(np.zeros((2, 1)), duration=0.2, drives=[LAGGED], save_at=4, **method)
    t, time = motion.t, T[:, None]
    np.testing.assert_allclose(motion.tau[..., 0], 3.0 * (1.0 - np.exp(-t / time)), rtol=0, atol=3.0 * tolerance)
    speed = 1.5 * (t - time * (1.0 - np.exp(-t / time)))
    np.testing.assert_allclose(motion.qd[..., 0], speed, rtol=0, atol=tolerance)


@pytest.mark.plain_python
@pytest.mark.parametrize(("method", "longest"), [("rk4", 2.7853), ("implicit", 2.0), ("moreau", 2.0)])
def test_steps_that_are_unstable_with_a_lag_are_refused(method, longest):
    """The force comes to rest with shorter steps, and grows with longer ones."""
    step = 0.99 * longest * T.min()
    motion = slide().simulate(np.zeros((2, 1)), duration=100 * step, method=method, step=step, drives=[LAGGED])
    assert np.abs(motion.tau).max() < 7.0
    with pytest.raises(rb.ArgumentError, match=r"feedforward_time_constant is 0\.05 s and step is .* are unstable"):
        slide().simulate(np.zeros((2, 1)), duration=10.0, method=method, step=1.01 * longest * T.min(), drives=[LAGGED])


@pytest.mark.plain_python
def test_a_lag_continues_and_is_saved(tmp_path):
    model, settings = slide(), {"method": "rk4", "step": 1e-2, "drives": [LAGGED]}
    whole = model.simulate(np.zeros((2, 1)), duration=0.2, **settings)
    half = model.simulate(np.zeros((2, 1)), duration=0.1, **settings)
    half = model.simulate(duration=0.1, continue_from=half)
    np.testing.assert_allclose(half.qd[:, -1], whole.qd[:, -1], rtol=0, atol=1e-14)
    builder = rb.ModelBuilder()
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=2.0))
    builder.add_drive(rb.PID("slide", 0.1, kp=2.0, ki=1.0, feedforward=rb.Input("u"), feedforward_time_constant=0.1))
    rb.save(builder.build(), tmp_path / "slide.toml")
    assert rb.load(tmp_path / "slide.toml").drives == builder.build().drives


@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda model, drive: model.simulate([0.0], duration=0.1, drives=[drive], method="radau"),
            'method "radau" does not support',
        ),
        (
            lambda model, drive: model.simulate([0.0], duration=0.1, drives=[drive], method="rosenbrock"),
            'Use method "rk45", "dop853", "rk4", "implicit" or "moreau"',
        ),
        (
            lambda model, drive: model.simulate([0.0], duration=0.1, drives=[drive], derivatives=("q",)),
            "the computation of derivatives",
        ),
        (lambda model, drive: model.linearize([0.0], [0.0], drives=[drive]), "linearize does not support"),
        (lambda model, drive: model.equilibrium([0.0], drives=[drive]), "equilibrium does not support"),
        (
            lambda model, drive: model.simulate([0.0], duration=0.1, drives=[rb.Sampled(drive, period=0.1)]),
            "Use an Actuator with a time_constant",
        ),
        (
            lambda model, drive: model.simulate(
                [[0.0]] * 2, duration=0.1, drives=[replace(drive, feedforward_time_constant=[0.1, 0])]
            ),
            "expected numbers above 0, or 0 for all samples",
        ),
    ],
    ids=["radau", "rosenbrock", "derivatives", "linearize", "equilibrium", "Sampled", "zero"],
)
def test_functions_without_lags_refuse_them(call, message):
    drive = rb.PID("slide", 0.0, kp=1.0, feedforward=3.0, feedforward_time_constant=0.1)
    with pytest.raises(rb.ArgumentError, match=re.escape(message)):
        call(slide(), drive)
