"""Trajectories: closed forms, orders of convergence, energy, statuses, and bits that depend only on the sample."""

import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from scipy.special import ellipj, ellipk

import rbchain as rb

from .conftest import mechanism
from .quantities import random_states

DONE, STEP_UNDERFLOW, NOT_FINITE, TOO_MANY_STEPS = range(4)


def pendulum():
    """A mass on a weightless rod of 1 m; q from the horizontal x axis, gravity 9.81 along -y."""
    builder = rb.ModelBuilder(gravity=(0, -9.81, 0))
    builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(2.0, cg=(1.0, 0, 0)))
    return builder.build()


def swing(amplitude, t):
    """Angle from the vertical of a pendulum released at rest, in Jacobi's elliptic functions (e.g. Lima 2010)."""
    k = np.sin(amplitude / 2)
    sn, *_ = ellipj(ellipk(k**2) - np.sqrt(9.81) * t, k**2)
    return 2 * np.arcsin(k * sn)


@pytest.mark.parametrize("amplitude", [0.1, 1.0, 3.0])
def test_a_pendulum_follows_its_elliptic_solution(amplitude):
    times = np.linspace(0, 3, 31)
    motion = pendulum().simulate([amplitude - np.pi / 2], [0.0], 3.0, rtol=1e-12, atol=1e-12, save_at=times)
    # SciPy's elliptic functions have errors of about 1e-15, the integrator the tolerance of a few steps
    np.testing.assert_allclose(motion.q[:, 0] + np.pi / 2, swing(amplitude, times), rtol=0, atol=1e-10)


def errors_at_end(model, reference, settings):
    q, qd = start(model)
    found = [model.simulate(q, qd, 1.0, save_at=2, **one) for one in settings]
    return np.array([np.abs(motion.q[-1] - reference.q[-1]).max() for motion in found])


def start(model):
    if model.nq > model.nv:
        q, qd = random_states(model, (), seed=1, arrays=2)
        return q, 0.5 * qd
    return np.random.default_rng(1).normal(size=(2, model.nv)) * 0.5


# The longest step (2^-n) is short enough for the order of RK4, and round-off does not dominate the shortest.
MOVING = {"arm7": 9, "mixed_tree": 9, "free_body": 5, "ball_chain": 8, "floating_tree": 7}


@pytest.mark.parametrize("name", MOVING)
def test_rk4_converges_with_fourth_order(name):
    model = mechanism(name)
    reference = model.simulate(*start(model), 1.0, rtol=1e-13, atol=1e-14, save_at=2)
    steps = 2.0 ** -np.arange(MOVING[name], MOVING[name] + 3)
    errors = errors_at_end(model, reference, [{"method": "rk4", "step": step} for step in steps])
    orders = np.log2(errors[:-1] / errors[1:])
    assert (np.abs(orders - 4) < 0.35).all(), orders


@pytest.mark.parametrize("name", MOVING)
def test_rk45_follows_its_tolerance_over_six_decades(name):
    model = mechanism(name)
    reference = model.simulate(*start(model), 1.0, rtol=1e-13, atol=1e-14, save_at=2)
    tolerances = 10.0 ** -np.arange(5, 12)
    errors = errors_at_end(model, reference, [{"rtol": tol, "atol": tol} for tol in tolerances])
    slope = np.polyfit(np.log10(tolerances), np.log10(errors), 1)[0]
    assert 0.8 < slope < 1.2, (slope, errors)
    # the global error is the sum of the local errors, amplified by the motion by the same factor for all tolerances
    assert (errors[:-1] > errors[1:]).all()
    assert np.ptp(np.log10(errors / tolerances)) < 1.5


def test_rk45_agrees_with_scipy():
    """SciPy implements the same tableau; the final states agree to within the tolerance."""
    model = mechanism("arm7")
    q, qd = start(model)
    tau = np.full(7, 0.3)

    def rate(t, y):
        return np.concatenate([y[7:], model.forward_dynamics(y[:7], y[7:], tau)])

    times = np.linspace(0, 1, 17)
    theirs = solve_ivp(rate, (0, 1), np.concatenate([q, qd]), method="DOP853", rtol=1e-12, atol=1e-12, t_eval=times)
    ours = model.simulate(q, qd, 1.0, tau=tau, rtol=1e-11, atol=1e-12, save_at=times)
    np.testing.assert_allclose(ours.q, theirs.y[:7].T, rtol=0, atol=1e-7)
    np.testing.assert_allclose(ours.qd, theirs.y[7:].T, rtol=0, atol=1e-6)


def test_states_saved_between_steps_are_as_accurate_as_the_steps():
    """The continuous extension has fourth order; at these tolerances its error is at most ten times larger."""
    times = np.linspace(0, 2, 1001)
    motion = pendulum().simulate([0.5], [0.0], 2.0, rtol=1e-9, atol=1e-9, save_at=times)
    assert motion.steps < 500
    np.testing.assert_allclose(motion.q[:, 0] + np.pi / 2, swing(0.5 + np.pi / 2, times), rtol=0, atol=1e-7)


@pytest.mark.slow_cases("method1")
@pytest.mark.parametrize("method", [{"rtol": 1e-10, "atol": 1e-12}, {"method": "rk4", "step": 1e-3}])
def test_energy_is_conserved(method):
    model = mechanism("puma560")
    q, qd = np.random.default_rng(0).normal(size=(2, 20, 6)) * 0.3
    motion = model.simulate(q, qd, 1.0, save_at=11, **method)
    kinetic, potential = model.energy(motion.q, motion.qd)
    total = kinetic + potential
    assert np.abs(total - total[:, :1]).max() < 1e-6 * kinetic.max()


def test_the_energy_changes_by_the_work_of_constant_joint_forces():
    """The energy increases by the work of the joint forces."""
    model = mechanism("arm7")
    q, qd = start(model)
    tau = np.linspace(-1, 1, 7)
    motion = model.simulate(q, qd, 0.7, tau=tau, rtol=1e-11, atol=1e-12, save_at=2)
    (before, after) = np.add(*model.energy(motion.q, motion.qd))
    assert abs(after - before - tau @ (motion.q[1] - motion.q[0])) < 1e-8 * abs(after)


def test_no_bit_of_a_trajectory_depends_on_its_batch():
    """They do not depend on the batch, the index in it, the other lanes or the number of threads."""
    model = mechanism("arm7")
    q, qd, tau = np.random.default_rng(5).normal(size=(3, 203, 7))
    settings = [{"save_at": 6, "rtol": 1e-6, "atol": 1e-8}, {"method": "rk4", "step": 0.01, "save_at": [0.1, 0.25]}]
    for setting in settings:
        whole = model.simulate(q, qd, 0.3, tau=tau, **setting)
        assert whole.success
        for part in (slice(0, 1), slice(17, 18), slice(50, 61), slice(None, None, -1)):
            some = model.simulate(q[part], qd[part], 0.3, tau=tau[part], **setting)
            for name in ("q", "qd", "status", "steps", "rejections", "evaluations"):
                assert np.array_equal(getattr(whole, name)[part], getattr(some, name)), name
        before = rb.get_num_threads()
        for threads in (1, 3):
            rb.set_num_threads(threads)
            assert np.array_equal(whole.q, model.simulate(q, qd, 0.3, tau=tau, **setting).q)
        rb.set_num_threads(before)


def test_each_sample_has_its_own_step_size():
    """A slow sample takes few steps beside a fast one."""
    model = rb.Model.serial_chain(2)
    qd = np.array([[0.0, 0.0], [300.0, -200.0]])
    motion = model.simulate(np.full((2, 2), -np.pi / 2) * [1, 0], qd, 1.0, save_at=2)
    assert motion.steps[1] > 20 * motion.steps[0]


@pytest.mark.parametrize("method", [{}, {"method": "rk4", "step": 0.01}])
def test_a_failed_sample_has_a_status_and_does_not_change_others(method):
    model = mechanism("arm7")
    q, qd = np.random.default_rng(6).normal(size=(2, 20, 7))
    good = model.simulate(q, qd, 0.2, save_at=5, **method)
    for bad in (np.nan, np.inf):
        spoilt = qd.copy()
        spoilt[7, 3] = bad
        motion = model.simulate(q, spoilt, 0.2, save_at=5, **method, on_failure="ignore")
        assert motion.status[7] == NOT_FINITE
        assert not motion.success
        assert "not finite" in motion.message
        assert np.isnan(motion.q[7, 1:]).all()
        assert np.array_equal(np.delete(motion.q, 7, 0), np.delete(good.q, 7, 0))


@pytest.mark.usefixtures("plain_or_slow")
def test_a_singular_sample_ends_with_the_status_not_finite():
    rod = rb.Model.serial_chain(1).vary(mass=[[1.0], [0.0]], inertia=np.zeros((1, 3, 3)))
    motion = rod.simulate(np.zeros((2, 1)), np.zeros((2, 1)), 0.1, on_failure="ignore", save_at=2)
    assert motion.status.tolist() == [0, NOT_FINITE]
    assert motion.q[1, 0, 0] == 0.0
    assert np.isnan(motion.q[1, 1]).all()


def test_a_sample_with_too_many_steps_is_nan_after_its_end():
    model = mechanism("arm7")
    q, qd = np.random.default_rng(6).normal(size=(2, 10, 7))
    motion = model.simulate(q, qd, 5.0, max_steps=50, save_at=51, on_failure="ignore")
    assert (motion.status == TOO_MANY_STEPS).all()
    assert (motion.steps + motion.rejections == 50).all()
    unknown = np.isnan(motion.q).all(-1)
    assert not unknown[:, 0].any()
    assert unknown[:, -1].all()
    assert (np.diff(unknown.astype(int), axis=1) >= 0).all()


def test_a_step_that_underflows_ends_the_sample():
    """Tolerances below round-off cannot be met, so that every step is rejected."""
    motion = mechanism("arm7").simulate(
        *start(mechanism("arm7")), 1.0, rtol=0.0, atol=1e-100, on_failure="ignore", save_at=2
    )
    assert motion.status == STEP_UNDERFLOW
    assert "too small" in motion.message


def test_steps_rejections_and_evaluations_are_consistent():
    model = mechanism("arm7")
    q, qd = np.random.default_rng(6).normal(size=(2, 50, 7))
    motion = model.simulate(q, qd, 0.5, save_at=2)
    # two evaluations at the start and six per step: the seventh stage is the first of the next step
    assert np.array_equal(motion.evaluations, 2 + 6 * (motion.steps + motion.rejections))
    motion = model.simulate(q, qd, 0.5, method="rk4", step=0.1, save_at=2)
    assert (motion.steps == 5).all()
    # four per step: the last of each step is the first of the next, and the end of the motion needs none
    assert (motion.evaluations == 20).all()


@pytest.mark.parametrize("save_at", [None, 2, 7, [0.0], [0.5], [0.1, 0.2, 0.5], np.linspace(0, 0.5, 4)])
@pytest.mark.parametrize("method", [{}, {"method": "rk4", "step": 0.013}])
def test_the_saved_times_are_the_requested_times(save_at, method):
    model = pendulum()
    motion = model.simulate([[0.3], [0.4]], [[0.0], [1.0]], 0.5, save_at=save_at, **method)
    by_default = np.linspace(0, 0.5, 40 if method else 101)  # the ends of 39 steps
    expected = {None: by_default, 2: [0, 0.5], 7: np.linspace(0, 0.5, 7)}.get(
        save_at if not isinstance(save_at, (list, np.ndarray)) else "times", save_at
    )
    assert motion.t.tolist() == np.asarray(expected, float).tolist()
    assert motion.q.shape == (2, len(expected), 1)
    for i, t in enumerate(motion.t):
        alone = model.simulate([0.3], [0.0], t, rtol=1e-10, save_at=2) if t > 0 else None
        np.testing.assert_allclose(motion.q[0, i], alone.q[-1] if t > 0 else [0.3], atol=1e-6)


def test_each_sample_of_a_varied_model_moves_with_its_own_parameters():
    """Pendulums with different gravity are back at the start after their own periods."""
    model = pendulum()
    g = np.linspace(5, 15, 40)
    gravity = np.zeros((40, 3))
    gravity[:, 1] = -g
    many = model.vary(gravity=gravity)
    amplitude = 1.0
    motion = many.simulate(np.full((40, 1), amplitude - np.pi / 2), np.zeros((40, 1)), 3.0, rtol=1e-11, save_at=31)
    k = np.sin(amplitude / 2)
    for i in range(40):
        sn, *_ = ellipj(ellipk(k**2) - np.sqrt(g[i]) * motion.t, k**2)
        np.testing.assert_allclose(motion.q[i, :, 0] + np.pi / 2, 2 * np.arcsin(k * sn), rtol=0, atol=1e-8)


@pytest.mark.slow
def test_float32_trajectories_are_float32_and_close_to_float64():
    model = mechanism("arm7")
    q, qd = (np.random.default_rng(7).normal(size=(2, 30, 7)) * 0.3).astype(np.float32)
    single = model.simulate(q, qd, 0.3, rtol=1e-4, atol=1e-5, save_at=2)
    double = model.simulate(q.astype(float), qd.astype(float), 0.3, save_at=2)
    assert single.q.dtype == np.float32
    assert single.success
    np.testing.assert_allclose(single.q, double.q, atol=1e-2)


# --- orientations -----------------------------------------------------------------------------------------------------


def spinning_top(moments, cg=(0, 0, 0)):
    """A body on a ball joint, without gravity."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("top", joint=rb.Spherical(), inertia=rb.Inertia(2.0, cg=cg, inertia=moments))
    return builder.build()


def lengths(model, q):
    """Return the lengths of all quaternions in positions (..., nq): (..., quaternions)."""
    at = [
        end - 4
        for end, kind in zip([*model.position_index[1:], model.nq], model.joint_types, strict=True)
        if kind in ("free", "spherical")
    ]
    return np.linalg.norm(np.stack([q[..., i : i + 4] for i in at], -2), axis=-1)


@pytest.mark.parametrize("settings", [{"rtol": 1e-12, "atol": 1e-12}, {"method": "rk4", "step": 2e-4}])
def test_a_symmetric_top_precesses_about_its_angular_momentum(settings):
    """In body axes w precesses about the figure axis at (C - A) / A w3, and the body precesses about L at L / A."""
    A, C = 0.3, 0.5
    model = spinning_top((A, A, C))
    q0, w0 = Rotation.from_rotvec([0.3, -0.5, 0.9]), np.array([0.8, -0.4, 2.0])
    times = np.linspace(0, 5, 26)
    motion = model.simulate(q0.as_quat(), w0, 5.0, save_at=times, **settings)
    slip = (C - A) / A * w0[2]
    momentum = q0.apply(np.array([A, A, C]) * w0)
    own = Rotation.from_rotvec(np.outer(times, [0, 0, -slip]))
    expected = Rotation.from_rotvec(np.outer(times, momentum / A)) * q0 * own
    apart = (expected.inv() * Rotation.from_quat(motion.q)).magnitude()
    assert apart.max() < 1e-10
    np.testing.assert_allclose(motion.qd, own.inv().apply(w0), rtol=0, atol=1e-10)


@pytest.mark.parametrize("settings", [{"rtol": 1e-11, "atol": 1e-11}, {"method": "rk4", "step": 5e-4}])
@pytest.mark.parametrize("name", ["small_floating_tree", "floating_quadruped"])
def test_a_floating_tree_without_gravity_conserves_energy_and_momentum(name, settings):
    model = mechanism(name).vary(gravity=np.zeros(3))
    q, qd = random_states(model, (), seed=3, arrays=2)
    motion = model.simulate(q, qd, 1.0, save_at=11, **settings)
    assert motion.success
    kinetic, _ = model.energy(motion.q, motion.qd)
    momentum = model.momentum(motion.q, motion.qd)
    np.testing.assert_allclose(kinetic, kinetic[0], rtol=1e-8)
    np.testing.assert_allclose(momentum, np.tile(momentum[0], (11, 1)), rtol=0, atol=1e-8 * np.abs(momentum).max())
    # the center of mass moves in a straight line
    center = model.center_of_mass(motion.q)
    straight = center[0] + motion.t[:, None] * momentum[0, :3] / model.mass.sum()
    np.testing.assert_allclose(center, straight, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_quaternions_keep_unit_length_over_a_million_steps():
    model = spinning_top((0.3, 0.4, 0.5), cg=(0.1, -0.2, 0.3))
    q0, w0 = Rotation.from_rotvec([0.3, -0.5, 0.9]).as_quat(), np.array([0.8, -0.4, 2.0])
    motion = model.simulate(q0, w0, 1000.0, method="rk4", step=1e-3, save_at=101)
    assert motion.steps >= 1e6
    assert np.abs(lengths(model, motion.q) - 1).max() <= 1e-12
    # the angular momentum about the joint is constant
    momentum = Rotation.from_quat(motion.q).apply(motion.qd @ model.mass_matrix(q0))
    np.testing.assert_allclose(momentum, np.tile(momentum[0], (101, 1)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("settings", [{"rtol": 1e-4, "atol": 1e-5}, {"method": "rk4", "step": 0.01}])
@pytest.mark.parametrize("name", ["ball_chain", "floating_tree", "floating_quadruped"])
def test_quaternions_have_unit_length_at_every_saved_time(name, settings, dtype):
    """Also between steps of coarse tolerance, where the interpolating polynomial leaves the unit sphere."""
    model = mechanism(name)
    q, qd = (x.astype(dtype) for x in random_states(model, (9,), arrays=2))
    q *= dtype(1 + 3e-7)  # the tolerance for unit quaternions
    motion = model.simulate(q, qd, 0.5, save_at=101, **settings)
    assert motion.success
    assert np.abs(lengths(model, motion.q[:, 1:]) - 1).max() <= 4 * np.finfo(dtype).eps


def test_quaternions_keep_unit_length_over_a_long_motion_with_adaptive_steps():
    model = mechanism("ball_chain")
    q, qd = random_states(model, (8,), arrays=2)
    motion = model.simulate(q, qd, 100.0, rtol=1e-6, atol=1e-8, save_at=201)
    assert motion.success
    assert motion.steps.min() > 1000
    assert np.abs(lengths(model, motion.q) - 1).max() <= 1e-12


def test_a_floating_tree_moves_the_same_ten_kilometers_away():
    """In RK4 the motions are bit-identical except for the position."""
    model = mechanism("floating_quadruped")
    q, qd = random_states(model, (3,), arrays=2)
    far = q.copy()
    far[:, :3] += 1e4
    here, there = (model.simulate(x, qd, 0.2, method="rk4", step=0.01, save_at=2) for x in (q, far))
    np.testing.assert_allclose(there.qd, here.qd, rtol=0, atol=1e-13 * np.abs(here.qd).max())
    np.testing.assert_allclose(there.q[..., 3:], here.q[..., 3:], rtol=0, atol=1e-13)
    # a position of 1e4 m is rounded to 1e-12 m in each of 20 steps
    np.testing.assert_allclose(there.q[..., :3] - 1e4, here.q[..., :3], rtol=0, atol=20 * np.spacing(1e4))


def test_no_bit_of_a_trajectory_with_quaternions_depends_on_its_batch():
    model = mechanism("every_joint_tree")
    q, qd, tau = random_states(model, (50,))
    for settings in (
        {"save_at": 6, "rtol": 1e-6, "atol": 1e-8},
        {"method": "rk4", "step": 0.01, "save_at": [0.05, 0.1]},
    ):
        whole = model.simulate(q, qd, 0.1, tau=tau, **settings)
        assert whole.success
        for part in (slice(17, 18), slice(20, 31), slice(None, None, -1)):
            some = model.simulate(q[part], qd[part], 0.1, tau=tau[part], **settings)
            for name in ("q", "qd", "steps"):
                assert np.array_equal(getattr(whole, name)[part], getattr(some, name)), name
        alone = model.simulate(q[3], qd[3], 0.1, tau=tau[3], **settings)
        np.testing.assert_allclose(alone.q, whole.q[3], rtol=0, atol=1e-6)


def test_the_energy_changes_by_the_work_of_constant_forces_in_body_axes():
    """The energy increases by the integral of the power."""
    model = mechanism("floating_tree")
    q, qd = start(model)
    tau = np.random.default_rng(0).normal(size=model.nv)
    motion = model.simulate(q, qd, 0.5, tau=tau, rtol=1e-11, atol=1e-12, save_at=2001)
    energy = sum(model.energy(motion.q, motion.qd))
    power = model.power(motion.q, motion.qd, tau)
    work = np.trapezoid(power, motion.t) - (motion.t[1] ** 2 / 12) * np.diff(np.gradient(power, motion.t)[[0, -1]])[0]
    assert abs(energy[-1] - energy[0] - work) < 1e-6 * np.abs(energy).max()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"duration": 0.0}, "duration"),
        ({"duration": np.nan}, "duration"),
        ({"method": "euler"}, "method"),
        ({"method": "rk4"}, "step"),
        ({"method": "rk4", "step": -1.0}, "step"),
        ({"step": 0.1}, "step"),
        ({"rtol": -1e-3}, "rtol"),
        ({"rtol": 0.0, "atol": 0.0}, "atol"),
        ({"save_at": 1}, "save_at"),
        ({"save_at": [0.2, 0.1]}, "save_at"),
        ({"save_at": [0.5, 2.0]}, "save_at"),
        ({"save_at": [-0.5, 0.1]}, "save_at"),
        ({"save_at": []}, "save_at"),
        ({"save_at": [[0.1]]}, "save_at"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_steps": np.inf}, "max_steps"),
        ({"save_at": np.inf}, "save_at"),
        ({"duration": "1"}, "duration"),
        ({"method": "rk4", "step": 1e-20}, "step"),
        ({"rtol": 1.0}, "rtol"),
        ({"tau": [1.0, 2.0]}, "tau"),
        ({"q0": [0.0, 0.0]}, "q0"),
    ],
)
def test_an_invalid_setting_is_refused_by_name(arguments, word):
    settings = {"q0": [0.0], "qd0": [0.0], "duration": 1.0} | arguments
    with pytest.raises(rb.ArgumentError, match=word):
        pendulum().simulate(**settings)


@pytest.mark.parametrize("method", [{}, {"method": "rk4", "step": 0.1}])
@pytest.mark.parametrize("batch", [(), (1,), (0,), (2, 3), (2, 0)])
def test_a_trajectory_has_the_shape_of_its_batch(batch, method):
    motion = pendulum().simulate(np.zeros((*batch, 1)), np.zeros((*batch, 1)), 0.3, save_at=4, **method)
    assert motion.q.shape == motion.qd.shape == (*batch, 4, 1)
    assert motion.status.shape == motion.steps.shape == batch
    assert motion.success


def test_a_trajectory_built_by_hand_does_not_provide_forces():
    chain = rb.Model.serial_chain(1)
    motion = rb.Trajectory(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), *np.zeros((4, 1), int), model=chain)
    assert pickle.loads(pickle.dumps(motion)).t.size == 1
    with pytest.raises(rb.ArgumentError, match="this trajectory does not record its drives"):
        _ = motion.tau
