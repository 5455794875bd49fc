"""Simulations of closed chains: published benchmarks, closed forms, identities, and samples that fail."""

import numpy as np
import pytest
import scipy.integrate

import rbchain as rb

from .closed_chains import as_batch, benchmark, closed_chain, closed_state, four_bar
from .quantities import derivative
from .test_constraints import andrews_spring, varied

plain = pytest.mark.plain_python
CLOSED = 1e-10  # of a residual during the whole simulation, m or rad


def assert_closed(model, motion):
    model = model[..., None]
    assert motion.success, motion.message
    assert np.abs(model.constraint_residual(motion.q)).max() < CLOSED
    rates = model.constraint_jacobian(motion.q) @ motion.qd[..., None]
    assert np.abs(rates).max() < CLOSED * (1 + np.abs(motion.qd).max())


def total_energy(model, motion):
    return sum(model[..., None].energy(motion.q, motion.qd))


# --- benchmarks of the IFToMM library ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A03_andrews", "A03_beta0062"])
def test_andrews_squeezer_reaches_the_published_angles(name):
    (model, _, q), reference = benchmark(name)
    times, angles = zip(*[(sample["t"], sample["q"]) for sample in reference["samples"]], strict=True)
    tau = np.array([body["tau"] for body in reference["bodies"]])
    settings = {"rtol": 1e-12, "atol": 1e-14, "save_at": times, "forces": [andrews_spring(reference)]}
    motion = model.simulate(q[None], np.zeros((1, model.nv)), times[-1], tau=tau, **settings)
    assert_closed(model, motion)
    np.testing.assert_allclose(motion.q[0, -1], angles[-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.q[0], angles, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["A04_bricard", "A04_bricard_slender"])
def test_bricards_mechanism_keeps_its_energy_and_symmetry(name):
    """Five rows with rank four in all positions, and bars without inertia about their axes in the second model."""
    (model, _, q), reference = benchmark(name)
    settings = {"rtol": 1e-12, "atol": 1e-13, "save_at": 101}
    motion = as_batch(model).simulate(q[None], np.zeros((1, 5)), reference["duration"], **settings)
    assert_closed(model, motion)
    energy = total_energy(model, motion)
    assert np.abs(energy - energy[:, :1]).max() < 1e-9
    angles = motion.q[0]
    for i, j in ((0, 2), (0, 4), (1, 3)):
        np.testing.assert_allclose(angles[:, i], angles[:, j], rtol=0, atol=1e-9)


def largest_errors(rate, times):
    """The errors of the crank angles of A02 per unit of rtol, if the errors of all steps add up.

    The upright cranks obey w' = c sin(angle). A step of length h has an error of at most rtol (1 + abs(y)) in the
    solution of fourth order. The integration continues from the solution of fifth order, whose error is smaller by a
    factor of about h w. With the sensitivities G(t, s) of the angle at t to angle and rate at s, the sum over the steps
    is the integral of

        ((1 + abs(angle)) abs(G_angle) + (1 + abs(w)) abs(G_rate)) abs(w) ds.
    """
    c = 9.81 * (3 / 2 + 2) / (3 / 3 + 2)

    def rates(_, y):
        pull, curvature = c * np.sin(y[0]), c * np.cos(y[0])
        return [y[1], pull, y[3], curvature * y[2], y[5], curvature * y[4]]

    s = np.linspace(0.0, times[-1], 1001)
    motion = scipy.integrate.solve_ivp(rates, s[[0, -1]], [0, rate, 1, 0, 0, 1], t_eval=s, rtol=1e-9, atol=1e-9)
    angle, w = motion.y[:2]
    transitions = motion.y[[2, 4, 3, 5]].T.reshape(-1, 2, 2)  # from the start
    found = []
    for t in times:
        until = np.searchsorted(s, t, side="right")
        G = np.abs(transitions[until - 1, 0] @ np.linalg.inv(transitions[:until]))
        errors = ((1 + np.abs(angle[:until])) * G[:, 0] + (1 + np.abs(w[:until])) * G[:, 1]) * np.abs(w[:until])
        found.append(scipy.integrate.trapezoid(errors, s[:until]))
    return np.array(found)


@pytest.mark.parametrize("rtol", [1e-6, 1e-9, 1e-12])
def test_two_four_bars_follow_the_closed_form_through_singular_positions(rtol):
    """The largest errors are 2e4 rtol after 9 s if they all add up, of which half is allowed; 8e2 rtol are usual."""
    (model, _, q), reference = benchmark("A02_N2")
    times, angles = zip(*[(sample["t"], sample["q"]) for sample in reference["samples"]], strict=True)
    qd = np.array([[float(x) for x in reference["initial"]["v"]]])
    motion = as_batch(model).simulate(q[None], qd, times[-1], rtol=rtol, atol=rtol, save_at=times)
    assert_closed(model, motion)
    allowed = rtol * np.minimum(largest_errors(qd[0, 0], times) / 2, 1e4)
    assert (np.abs(motion.q[0] - angles).max(-1) <= allowed + 1e-13).all()


def parallel_four_bars(count):
    """Problem A02: `count` four-bars side by side, with cranks that start upright."""
    builder = rb.ModelBuilder(name="four-bars", gravity=(0, -9.81, 0))
    for i in range(count + 1):
        upright = rb.Inertia(1.0, cg=(0, 0.5, 0), inertia=(1 / 12, 0, 1 / 12))
        builder.add_body(f"crank{i}", joint=rb.Revolute(), placement=rb.Pose((i, 0, 0)), inertia=upright)
    for i in range(1, count + 1):
        level = rb.Inertia(1.0, cg=(0.5, 0, 0), inertia=(0, 1 / 12, 1 / 12))
        tip = rb.Pose((0, 1, 0))
        builder.add_body(f"coupler{i}", parent=f"crank{i - 1}", joint=rb.Revolute(), placement=tip, inertia=level)
        builder.add_constraint(
            rb.BallConstraint(f"tip{i}", f"coupler{i}", f"crank{i}", point_a=(1, 0, 0), point_b=(0, 1, 0))
        )
    model = builder.build()
    return model, np.zeros((1, model.nv)), np.array([[-1.0] * (count + 1) + [1.0] * count])


def test_forty_four_bars_stay_parallel():
    """The errors of all steps, as in `largest_errors`, add up to at most 7e-7 rad and 5e-5 J."""
    model, q, qd = parallel_four_bars(40)
    motion = as_batch(model).simulate(q, qd, 4.0, rtol=1e-9, atol=1e-9, save_at=41)
    assert_closed(model, motion)
    cranks = motion.q[0, :, :41]
    np.testing.assert_allclose(cranks, np.broadcast_to(cranks[:, :1], cranks.shape), rtol=0, atol=1e-6)
    np.testing.assert_allclose(motion.q[0, :, 41:], -np.broadcast_to(cranks[:, :1], (41, 40)), rtol=0, atol=1e-6)
    energy = total_energy(model, motion)
    assert np.abs(energy - energy[:, :1]).max() < 1e-7 * energy[0, 0]


# --- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hung plate", "hinged arm", "welded and geared", "turned four-bar"])
def test_spatial_loops_keep_their_energy(name):
    chain = closed_chain(name)
    q, qd, _ = closed_state(chain, batch=(1,))
    motion = as_batch(chain.model).simulate(q, qd, 2.0, rtol=1e-11, atol=1e-12, save_at=21)
    assert_closed(chain.model, motion)
    energy = total_energy(chain.model, motion)
    scale = np.abs(chain.model.energy(motion.q, motion.qd)).max()
    assert np.abs(energy - energy[:, :1]).max() < 1e-8 * scale


@plain
def test_loose_tolerances_close_loops_as_well():
    """States between steps are interpolated, then projected; here the rank of the rows is not full."""
    (model, _, q), _ = benchmark("A04_bricard")
    motion = model.simulate(q, np.zeros(5), 1.0, rtol=1e-3, atol=1e-3, save_at=11)
    assert_closed(model, motion)


@plain
def test_a_prescribed_crank_moves_the_loop_and_reports_its_torque():
    chain = closed_chain("four-bar")
    model = chain.model
    q = model.assemble(chain.guess, fixed=["crank"])
    qd = model.assemble_velocities(q, [2.0, 0, 0], fixed=["crank"])
    drive = rb.PrescribedPosition("crank", rb.Signal.polynomial([q[0], 2.0]))
    motion = model.simulate(q, qd, 0.2, rtol=1e-8, atol=1e-8, save_at=5, drives=[drive])
    assert_closed(model, motion)
    np.testing.assert_allclose(motion.q[:, 0], q[0] + 2.0 * motion.t, rtol=0, atol=1e-14)
    needed = model.inverse_dynamics(motion.q, motion.qd, motion.qdd, actuated=["crank"])
    np.testing.assert_allclose(motion.tau[:, :1], needed, rtol=0, atol=1e-8 * np.abs(needed).max())


@plain
@pytest.mark.parametrize("settings", [{"rtol": 1e-4, "atol": 1e-4}, {"method": "moreau", "step": 2e-3}])
def test_drives_that_contradict_the_constraints_get_a_status(settings):
    chain = closed_chain("four-bar")
    q = chain.model.assemble(chain.guess)
    drives = [
        rb.PrescribedPosition(name, rb.Signal.polynomial([q[i], 1.0])) for i, name in enumerate(("crank", "rocker"))
    ]
    motion = chain.model.simulate(q, [0.0, 0, 0], 0.1, save_at=3, drives=drives, **settings, on_failure="ignore")
    assert motion.status == rb.Status.NOT_ASSEMBLED
    assert "drives contradict the constraints" in motion.message
    assert np.isnan(motion.q[-1]).all()


@plain
@pytest.mark.parametrize("method", ["rk4", "implicit"])
def test_fixed_steps_keep_loops_closed(method):
    chain = closed_chain("four-bar")
    q, qd, _ = closed_state(chain)
    motion = chain.model.simulate(q, qd, 0.1, method=method, step=0.005, save_at=3)
    assert_closed(chain.model, motion)
    reference = chain.model.simulate(q, qd, 0.1, rtol=1e-9, atol=1e-9, save_at=3)
    tolerance = {"rk4": 1e-6, "implicit": 0.05}[method]
    np.testing.assert_allclose(motion.q, reference.q, rtol=0, atol=tolerance)


@pytest.mark.slow
@plain
def test_drives_wrenches_and_events_act_on_closed_chains():
    """The work of a PID and a wrench is the change of the energy, and an event stops the crank at its angle."""
    chain = closed_chain("turned four-bar")
    q, qd, _ = closed_state(chain, batch=(1,))
    model = chain.model
    acting = {
        "drives": [rb.PID("crank", rb.Signal.polynomial([3.0]), kp=5.0, kd=0.5)],
        "forces": [rb.Wrench("rocker", force=(1.0, 2.0, 0.5))],
    }
    motion = model.simulate(q, qd, 0.5, rtol=1e-10, atol=1e-10, save_at=501, **acting)
    assert_closed(model, motion)
    wrenches = np.zeros((1, 501, 3, 6))
    wrenches[..., 2, :3] = (1.0, 2.0, 0.5)
    power = model.power(motion.q, motion.qd, motion.tau, wrenches)[0]
    energy = total_energy(model, motion)[0]
    work = (power[:-1] + power[1:]) / 2 @ np.diff(motion.t)  # an error of h^2 / 12 times the change of its rate
    assert abs(energy[-1] - energy[0] - work) < 1e-4 * np.abs(power).max()
    middle = float(motion.q[0, 250, 0])
    stopped = model.simulate(
        q, qd, 0.5, rtol=1e-10, atol=1e-10, events=[rb.Event("crank", value=middle, stop=True)], save_at=2, **acting
    )
    np.testing.assert_allclose(stopped.end_time, motion.t[250], rtol=0, atol=1e-8)
    np.testing.assert_allclose(stopped.end_q[0, 0], middle, rtol=0, atol=1e-9)
    assert np.abs(model.constraint_residual(stopped.end_q)).max() < CLOSED


def triangle_and_pendulum():
    """Two rods that hold each other, and a pendulum beside them with a gear that is also locked."""
    builder, rod = rb.ModelBuilder(gravity=(0, -9.81, 0)), rb.Inertia.rod(1.0, mass=1.0, axis=(1, 0, 0))
    for name, x in (("left", 0.0), ("right", 1.0), ("pendulum", 3.0), ("wheel", 5.0), ("gear", 7.0)):
        builder.add_body(name, joint=rb.Revolute(), placement=rb.Pose((x, 0, 0)), inertia=rod)
    builder.add_constraint(rb.BallConstraint("top", "left", "right", point_a=(1, 0, 0), point_b=(1, 0, 0)))
    builder.add_constraint(rb.CouplerConstraint("once", "gear", "wheel", ratio=2.0))
    builder.add_constraint(rb.CouplerConstraint("twice", "gear", "wheel", ratio=3.0))
    return builder.build()


@plain
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_parts_at_rest_may_have_velocities_and_angles_of_the_size_of_round_off(dtype, noise):
    """Relative to themselves, they violate the constraints. Assembled states of locked parts are of this kind."""
    model, eps = triangle_and_pendulum(), float(np.finfo(dtype).eps)
    q = model.assemble([1.0, 2.1, 0.3, 0.1, 0.1])
    qd = model.assemble_velocities(q, np.ones(5))
    assert np.abs(qd[[0, 1, 3, 4]]).max() < 1e-14
    q = (q + noise * eps * np.array([0, 0, 0, 1.0, -1.0])).astype(dtype)
    qd = (qd + noise * eps * np.array([1.0, -1.0, 0, 1.0, 1.0])).astype(dtype)
    motion = model.simulate(q, qd, 0.2, save_at=3)
    assert motion.success, motion.message
    still = [0, 1, 3, 4]
    np.testing.assert_allclose(motion.q[:, still], np.broadcast_to(q[still], (3, 4)), rtol=0, atol=8 * eps)
    alone = model.open_tree().simulate(q, qd, 0.2, save_at=3)
    np.testing.assert_allclose(motion.q[:, 2], alone.q[:, 2], rtol=0, atol=1e-3 if dtype is np.float32 else 1e-7)
    open_loop = q + np.array([1e-2, 0, 0, 0, 0], dtype)
    with pytest.raises(rb.ArgumentError, match="q0 does not satisfy the constraints: the residual of 'top'"):
        model.simulate(open_loop, qd, 0.2, save_at=2)


@plain
def test_an_initial_state_with_opposite_frames_is_refused():
    builder = rb.ModelBuilder()
    builder.add_body("body", joint=rb.Spherical(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    builder.add_constraint(rb.WeldConstraint("weld", None, "body"))
    model, q = builder.build(), np.array([1.0, 0, 0, 0])
    assert not model.constraint_residual(q).any()
    with pytest.raises(rb.ArgumentError, match="the frames of a weld are rotated by 180 degrees"):
        model.simulate(q, np.zeros(3), 0.1, save_at=2)
    assert model.simulate(q[None], np.zeros((1, 3)), 0.1, on_failure="ignore", save_at=2).status.tolist() == [
        rb.Status.NOT_ASSEMBLED
    ]


# --- samples ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_bits_of_a_motion_do_not_depend_on_its_neighbors():
    """Samples with other masses and lengths, one of them open, and one that is not finite."""
    chain = closed_chain("Bricard")
    count = 19
    many = chain.model.vary(mass=chain.model.mass * np.random.default_rng(0).uniform(0.5, 2.0, (count, 5)))
    q, qd = np.tile(chain.guess, (count, 1)), np.zeros((count, 5))
    qd[:] = chain.model.assemble_velocities(chain.guess, np.ones(5)) * np.linspace(0.1, 3.0, count)[:, None]
    settings = {"rtol": 1e-7, "atol": 1e-7, "save_at": 5}
    motion = many.simulate(q, qd, 1.0, **settings)
    assert_closed(many, motion)
    broken_q = q.copy()
    broken_q[4, 0] += 0.1  # not closed
    broken = many.simulate(broken_q, qd, 1.0, **settings, on_failure="ignore")
    assert broken.status[4] == rb.Status.NOT_ASSEMBLED
    assert np.isnan(broken.q[4]).all()
    others = np.delete(np.arange(count), 4)
    for field in ("q", "qd", "steps", "rejections"):
        np.testing.assert_array_equal(getattr(broken, field)[others], getattr(motion, field)[others])
    part = slice(5, 7)
    few = chain.model.vary(mass=many.mass[part]).simulate(q[part], qd[part], 1.0, **settings)
    np.testing.assert_array_equal(few.q, motion.q[part])


def test_varied_four_bars_are_the_models_with_their_numbers():
    chain = closed_chain("four-bar")
    many = varied(chain, 9)
    q, qd, _ = closed_state(chain._replace(model=many), batch=(9,))
    motion = many.simulate(q, qd, 0.5, rtol=1e-9, atol=1e-9, save_at=3)
    assert_closed(many, motion)
    for k in (0, 8):
        one = as_batch(many[k])
        alone = one.simulate(q[k : k + 1], qd[k : k + 1], 0.5, rtol=1e-9, atol=1e-9, save_at=3)
        np.testing.assert_allclose(alone.q[0], motion.q[k], rtol=0, atol=1e-12)


@pytest.mark.slow
@plain
def test_float32_motions_agree_to_their_tolerance():
    chain = four_bar()
    q, qd, _ = closed_state(chain, batch=(3,))
    exact = chain.model.simulate(q, qd, 0.2, rtol=1e-8, atol=1e-8, save_at=3)
    found = chain.model.simulate(q.astype(np.float32), qd.astype(np.float32), 0.2, save_at=3)
    assert found.q.dtype == np.float32
    assert found.success
    np.testing.assert_allclose(found.q, exact.q, rtol=0, atol=1e-3)
    assert np.abs(chain.model.constraint_residual(found.q)).max() < 1e-5


@plain
def test_reactions_of_a_motion_balance_the_mechanism():
    """The forces of the pivots and the weight are the rate of the linear momentum."""
    chain = closed_chain("four-bar")
    q, qd, _ = closed_state(chain)
    model = chain.model
    motion = model.simulate(q, qd, 0.1, save_at=3, rtol=1e-9, atol=1e-9)
    rotation = model.body_poses(motion.q).rotation
    forces = (rotation @ motion.reactions[..., :3, None])[..., 0]  # from body axes to world axes
    for k, state in enumerate(zip(motion.q, motion.qd, motion.qdd, strict=True)):
        total = forces[k, 0] + forces[k, 2] + model.mass.sum() * model.gravity
        rate = derivative(lambda s, q=state[0], qd=state[1], qdd=state[2]: linear_momentum(model, q, qd, qdd, s))
        np.testing.assert_allclose(total, rate, rtol=0, atol=1e-8 * np.abs(forces).max())


def linear_momentum(model, q, qd, qdd, time):
    """The momentum after a short time, with an error of the order of its square."""
    return model.momentum(model.integrate(q, time * qd), qd + time * qdd)[:3]
