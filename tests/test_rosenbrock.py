"""The Rosenbrock method: order conditions, orders of convergence, stiff problems, and agreement with rk45."""

import itertools
from functools import cache

import numpy as np
import pytest

import rbchain as rb
from rbchain.acting.flatten import flatten_actions
from rbchain.core.lanes.lane_memory import all_lanes
from rbchain.core.linear.linearized_rate import (
    difference_accelerations,
    differentiate_by_time,
    differentiate_exactly,
)
from rbchain.core.loops.constraint_hooks import decide_rank
from rbchain.core.methods import tableaus
from rbchain.core.methods.rosenbrock import compute_rosenbrock_step
from rbchain.core.sample import control_layout as controls
from rbchain.core.sample.rate import evaluate, has_exact_derivatives, set_sample_forces
from rbchain.core.sample.records import Tolerances
from rbchain.drivers.trajectories import block_of_method
from rbchain.drivers.trajectory_memory import trajectory_memory

from .closed_chains import CHAINS, closed_chain, closed_state, four_bar
from .conftest import mechanism
from .quantities import random_states

plain = pytest.mark.plain_python


def rooted_trees(order):
    """Rooted trees with `order` vertices; a tree is the sorted tuple of the subtrees at its root."""
    if order == 1:
        return [()]
    found = set()
    for partition in partitions(order - 1, order - 1):
        for children in itertools.product(*(rooted_trees(size) for size in partition)):
            found.add(tuple(sorted(children)))
    return sorted(found)


def partitions(total, largest):
    """The sums of positive numbers, none above `largest`, that make `total`."""
    if total == 0:
        return [()]
    return [(n, *rest) for n in range(min(total, largest), 0, -1) for rest in partitions(total - n, n)]


def vertices(tree):
    return 1 + sum(vertices(child) for child in tree)


def density(tree):
    """gamma(t) of Butcher's theory."""
    return vertices(tree) * np.prod([density(child) for child in tree])


def classical_coefficients(tableau):
    """alpha, beta, the weights of the result and of the error, and Gamma, from the transformed coefficients."""
    stages = tableau.c.size - 2
    inner = slice(1, stages + 1)
    gamma = np.linalg.inv(np.eye(stages) / tableau.gamma - tableau.C[inner, inner])
    alpha = tableau.A[inner, inner] @ gamma
    return alpha, alpha + gamma, tableau.A[stages + 1, inner] @ gamma, tableau.error[inner] @ gamma, gamma


def stage_vector(tree, alpha, beta):
    """The sums over all stages of a tree: beta along a vertex with one child, alpha at one with several."""
    found = np.ones(len(alpha))
    for child in tree:
        found = found * ((beta if len(tree) == 1 else alpha) @ stage_vector(child, alpha, beta))
    return found


def test_rodas5p_satisfies_the_order_conditions():
    """Hairer and Wanner (1996), section IV.7, theorem 7.4: sum of b_i Phi_i(t) = 1 / gamma(t) for all trees t."""
    tableau = tableaus.RODAS5P
    alpha, beta, weights, error, gamma = classical_coefficients(tableau)
    np.testing.assert_allclose(alpha.sum(1), tableau.c[1:-1], rtol=0, atol=1e-13)
    np.testing.assert_allclose(gamma.sum(1), tableau.d[1:], rtol=0, atol=1e-12)
    for order in range(1, 7):
        defects = [weights @ stage_vector(t, alpha, beta) - 1 / density(t) for t in rooted_trees(order)]
        embedded = [(weights - error) @ stage_vector(t, alpha, beta) - 1 / density(t) for t in rooted_trees(order)]
        assert (np.abs(defects).max() < 1e-12) == (order <= tableau.order), (order, defects)
        assert (np.abs(embedded).max() < 1e-12) == (order <= tableau.order - 1), (order, embedded)
    assert [len(rooted_trees(order)) for order in range(1, 7)] == [1, 1, 2, 4, 9, 20]


def test_the_continuous_extension_of_rodas5p_has_fourth_order():
    tableau = tableaus.RODAS5P
    alpha, beta, weights, _, gamma = classical_coefficients(tableau)
    g = tableau.dense[:, 1:] @ gamma
    for x in (0.2, 0.5, 0.9):
        inside = x * (weights + (1 - x) * (g[0] + x * (g[1] + x * g[2])))
        for order in range(1, 6):
            wanted = [x**order / density(t) for t in rooted_trees(order)]
            defects = [inside @ stage_vector(t, alpha, beta) for t in rooted_trees(order)] - np.array(wanted)
            assert (np.abs(defects).max() < 1e-12) == (order <= 4), (order, defects)


def test_rodas5p_is_l_stable():
    """|R(z)| <= 1 on the imaginary axis, and R vanishes at infinity."""
    tableau = tableaus.RODAS5P
    _, beta, weights, *_ = classical_coefficients(tableau)
    ones = np.ones(len(beta))
    for z in 1j * np.logspace(-3, 6, 400):
        amplification = 1 + z * weights @ np.linalg.solve(np.eye(len(beta)) - z * beta, ones)
        assert abs(amplification) <= 1 + 1e-12
    assert abs(1 - weights @ np.linalg.solve(beta, ones)) < 1e-11


def steps_to_end(model, q, qd, count, duration):
    """Positions and velocities after `count` equal steps."""
    tableau = tableaus.RODAS5P
    block, stepper, k = block_with_state(model, np.concatenate([q, qd])[None])
    stepper.control[controls.H], stepper.control[controls.TIME] = duration / count, 0.0
    for step in range(count):
        decide_rank(block, 1.0 if step == 0 else 0.0, k)
        evaluate(block, stepper.y, 0.0, stepper.rates[0], k)
        decide_rank(block, 0.0, k)
        compute_rosenbrock_step(block, stepper, tableau, Tolerances(1e-8, 1e-8, 1), k)
        stepper.y[:] = stepper.y_new
    return stepper.y[:, 0].copy()


@pytest.mark.slow
@plain
@pytest.mark.parametrize(
    ("name", "duration", "counts"), [("free_body", 0.25, (2, 4, 8)), ("every_joint_tree", 0.05, (4, 8))]
)
def test_the_order_of_convergence_is_five(name, duration, counts):
    model = mechanism(name)
    q, qd = random_states(model, (), seed=1, arrays=2)
    check_order(model, q, qd, duration, counts)


@pytest.mark.slow
@plain
@pytest.mark.parametrize(
    ("name", "duration", "counts"), [("hinged arm", 0.1, (4, 8)), ("hung plate", 0.2, (4, 8)), ("Bricard", 0.4, (4, 8))]
)
def test_the_order_of_convergence_is_five_for_closed_chains(name, duration, counts):
    """Without projections: the equations with accelerations of the constraints are a differential equation."""
    chain = closed_chain(name)
    q, qd, _ = closed_state(chain, seed=1)
    check_order(chain.model, q, qd, duration, counts)


def check_order(model, q, qd, duration, counts):
    reference = model.simulate(q, 0.5 * qd, duration, rtol=1e-13, atol=1e-14, save_at=2)
    wanted = np.concatenate([reference.q[-1], reference.qd[-1]])
    errors = [np.abs(steps_to_end(model, q, 0.5 * qd, count, duration) - wanted).max() for count in counts]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (np.abs(orders - 5) < 0.5).all(), (orders, errors)


@pytest.mark.fast_cases("1e-05")
@plain
@pytest.mark.parametrize(
    ("method", "tolerance", "most_steps"),
    [("rosenbrock", 1e-5, 150), ("rosenbrock", 1e-8, 1000), ("radau", 1e-5, 60), ("radau", 1e-10, 250)],
)
def test_a_stiff_drive_follows_a_slow_signal_in_few_steps(method, tolerance, most_steps):
    """The closed form of m x'' = kp (s - x) + kd (s' - x'), s = sin t, without its fast transient."""
    mass, kp, kd = 2.0, 1e9, 1e6
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass))
    model = builder.build()
    amplitude = (kp + 1j * kd) / (kp + 1j * kd - mass)  # of exp(i t)
    drive = rb.PID("slide", rb.Signal.sines(1.0, 1.0), kp=kp, kd=kd)
    times = np.linspace(0.0, 10.0, 6)
    x = (amplitude * np.exp(1j * times)).imag
    start = [x[0]], [(amplitude * np.exp(1j * times)).real[0]]
    motion = model.simulate(*start, 10.0, drives=[drive], method=method, rtol=tolerance, atol=tolerance, save_at=times)
    assert motion.success
    np.testing.assert_allclose(motion.q[:, 0], x, rtol=0, atol=tolerance)
    # rk45 is stable for steps up to about 3.3 / (kd / mass), so it takes 1.5 million steps
    assert motion.steps + motion.rejections < most_steps


@plain
@pytest.mark.parametrize("method", ["rosenbrock", "radau"])
def test_a_stiff_transient_decays(method):
    """A damper of 1e6 / s stops a pendulum at once; it then falls slowly."""
    motion = pendulum(damping=1e6).simulate([0.0], [1.0], 1.0, method=method, rtol=1e-6, atol=1e-9, save_at=2)
    assert motion.success and motion.steps < 100
    np.testing.assert_allclose(motion.qd[-1], [-10.0 / 1e6], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(motion.q[-1], [1e-6 - 10.0 / 1e6], rtol=0, atol=1e-8)


def driven_tree():
    """A tree with all types of joints, passive forces, drives, wrenches and springs; one drive integrates its error."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    inertia = rb.Inertia(2.0, cg=(0.1, 0.05, -0.1), inertia=(0.3, 0.4, 0.5))
    passive = rb.PassiveForces(stiffness=30.0, damping=2.0, friction=0.5, friction_velocity=0.1)
    builder.add_body("hull", joint=rb.Free(), inertia=inertia)
    builder.add_body("ball", parent="hull", joint=rb.Spherical(), placement=rb.Pose((0.3, 0, 0)), inertia=inertia)
    builder.add_body("tip", parent="ball", joint=rb.Revolute((1, 2, 0)), inertia=inertia, passive=passive)
    builder.add_body("slide", parent="hull", joint=rb.Prismatic((0, 1, 0)), inertia=inertia, passive=passive)
    builder.add_body("wrist", parent="slide", joint=rb.Universal(), inertia=inertia)
    builder.add_body("screw", parent="hull", joint=rb.Screw((0, 0, 1), pitch=0.1), inertia=inertia, passive=passive)
    wave = rb.Signal.sines(0.5, 3.0, offset=0.1)
    return builder.build(), {
        "drives": [
            rb.PID("tip", wave, kp=50.0, kd=5.0, ki=20.0),
            rb.PrescribedPosition("slide", rb.Signal.sines(0.2, 2.0)),
            rb.PrescribedVelocity("screw", wave),
        ],
        "forces": [
            rb.Wrench("ball", force=(1.0, rb.Signal.sines(1.0, 5.0), 0.0), point=(0.1, 0, 0), axes="body"),
            rb.SpringDamper(None, "wrist", point_a=(0, 0, 0), point_b=(0.1, 0, 0), stiffness=200.0, damping=2.0),
        ],
        "events": [rb.Event("tip", value=0.02, stop=False)],
    }


def block_with_state(model, y, tau=0.0, **actions):
    """The block and the Stepper of a state y (1, rows), and its lanes."""
    dtype, flat = np.dtype(np.float64), None
    if actions:
        given = [actions.get(name, []) for name in ("drives", "forces", "events")]
        flat, _ = flatten_actions(model, (1,), 1.0, dtype, given)
    topology, parameters, _ = model.kernel_model.arrays(dtype)
    size, q, tableau = y.shape[1], y[:, : model.nq], tableaus.RODAS5P
    tables = model.kernel_model.constraint_tables
    memory = trajectory_memory(topology, tables, size, tableau, flat, (1, dtype))
    for numbers in (memory.block, memory.stepper, memory.method[0]):
        numbers[:] = np.nan  # new memory may hold any numbers
    block, stepper = block_of_method(memory, 0, topology, tables, parameters, q, flat, (tableau, size))
    set_sample_forces(block, np.full((1, model.nv), tau), 0.0, 0, 0)
    stepper.y[:, 0] = y[0]
    return block, stepper, all_lanes(q)


def derivatives_both_ways(model, q, qd, integrals=(), time=0.0, **actions):
    """(K, D, C) of the exact derivatives multiplied by the inverse of M, and of the differences, for one state."""
    actions = {"drives": []} | actions  # models in water have actions
    block, stepper, k = block_with_state(model, np.concatenate([q, qd, integrals])[None], **actions)
    linear, found = stepper.linear, []
    decide_rank(block, 1.0, k)
    evaluate(block, stepper.y, time, stepper.rates[0], k)
    decide_rank(block, 0.0, k)
    for differentiate in (differentiate_exactly, difference_accelerations):
        evaluate(block, stepper.y, time, stepper.rates[0], k)
        length = () if differentiate is differentiate_exactly else (1e-3,)
        differentiate(block, linear, stepper.y, stepper.rates[0], time, *length, k)
        found.append([*linear.derivatives[:2, ..., 0].copy(), linear.by_integral[..., 0].copy()])
        if differentiate is differentiate_exactly:
            M = linear.derivatives[2, ..., 0].copy()
    assert has_exact_derivatives(block)
    return [np.linalg.solve(M, exact) for exact in found[0]], found[1]


@plain
@pytest.mark.parametrize("drives", ["none", "signal", "user function"])
def test_the_derivative_by_time_is_exact(drives):
    """A spring does not depend on the time; a motor with the force sin t has the derivative cos t / m at t = 0.3."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(2.0))

    def force(t, q, qd, parameters, tau):
        tau[0] = np.sin(t)

    given = {
        "none": [],
        "signal": [rb.PrescribedForce("slide", rb.Signal.sines(1.0, 1.0))],
        "user function": [rb.UserForces(force)],
    }[drives]
    spring = rb.SpringDamper(None, "slide", point_a=(1.0, 0, 0), point_b=(0, 0, 0), stiffness=50.0, damping=1.0)
    block, stepper, k = block_with_state(builder.build(), np.array([[0.1, 0.2]]), drives=given, forces=[spring])
    differentiate_by_time(block, stepper.linear, stepper.y, 0.3, 1e-4, k)
    wanted = [0.0, 0.0 if drives == "none" else np.cos(0.3) / 2.0]
    np.testing.assert_allclose(stepper.linear.by_time[:, 0], wanted, rtol=1e-8, atol=0)


@plain
def test_exact_derivatives_agree_with_differences():
    """K, D and C of the joint forces are - M dqdd/dq, - M dqdd/dqd and M dqdd/dz."""
    model, actions = driven_tree()
    drives = [rb.PID("tip", 0.3, kp=50.0, kd=5.0, ki=20.0), rb.PrescribedForce("slide", 2.0)]
    moment = rb.Wrench("wrist", force=(3.0, 1.0, -2.0), moment=(1.0, 2.0, 3.0), point=(0.1, 0.2, 0.3), axes="world")
    bushing = rb.Bushing("ball", "wrist", stiffness=np.diag([1.0, 2, 3, 4, 5, 6]), damping=np.eye(6))
    q, qd = random_states(model, (), seed=5, arrays=2)
    forces = [*actions["forces"], moment, bushing]
    for exact, difference in zip(
        *derivatives_both_ways(model, q, qd, [0.2], drives=drives, forces=forces), strict=True
    ):
        np.testing.assert_allclose(exact, difference, rtol=0, atol=1e-8 * np.abs(difference).max())


@pytest.mark.slow_cases("welded and geared")
@plain
@pytest.mark.parametrize("name", CHAINS)
def test_exact_derivatives_of_closed_chains_agree_with_differences(name):
    """With a drive that integrates its error, springs, a wrench and passive forces."""
    chain = closed_chain(name)
    model, each = chain.model, np.ones(chain.model.nv)
    single = [joint for joint, kind in zip(model.joint_names, model.joint_types, strict=True) if kind == "revolute"]
    passive = np.where(model.kernel_model.dofs.in_quaternion_joint, 0.0, 1.0)
    model = model.vary(stiffness=30.0 * passive, damping=2.0 * each)
    q, qd, _ = closed_state(chain, seed=4)
    drives = [rb.PID(single[0], 0.3, kp=50.0, kd=5.0, ki=20.0)]
    bodies = model.body_names[0], model.body_names[-1]
    forces = [
        rb.Wrench(bodies[1], force=(3.0, 1.0, -2.0), moment=(1.0, 2.0, 3.0), point=(0.1, 0.2, 0.3), axes="world"),
        rb.SpringDamper(*bodies, point_a=(0.1, 0, 0.2), point_b=(0, 0.3, 0.1), stiffness=200.0, damping=2.0),
    ]
    for exact, difference in zip(
        *derivatives_both_ways(model, q, qd, [0.2], drives=drives, forces=forces), strict=True
    ):
        np.testing.assert_allclose(exact, difference, rtol=0, atol=1e-7 * np.abs(difference).max())


@plain
def test_exact_derivatives_of_closed_chains_in_water_agree_with_differences():
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81), fluid_density=1000.0)
    inertia, ball = (
        rb.Inertia(2.0, cg=(0.1, 0.05, -0.1), inertia=(0.3, 0.4, 0.5)),
        rb.Immersion.sphere(0.1, center=(0.1, 0, 0)),
    )
    builder.add_body("hull", joint=rb.Free(), inertia=inertia, immersion=ball)
    builder.add_body("arm", parent="hull", joint=rb.Revolute((0, 1, 0)), inertia=inertia, immersion=ball)
    builder.add_body("pod", joint=rb.Free(), inertia=inertia, immersion=ball)
    builder.add_constraint(rb.BallConstraint("joint", "arm", "pod", point_a=(0.5, 0, 0), point_b=(0, 0.3, 0)))
    builder.add_constraint(
        rb.DistanceConstraint("tether", None, "hull", point_a=(0, 0, 2.0), point_b=(0, 0, 0.1), length=2.0)
    )
    model = builder.build()
    q = model.assemble([0, 0, 0.1, 0.36, 0.48, 0, 0.8, 0.3, 0.5, -0.2, 0, 0, 0.6, 0, 0.8])
    qd = model.assemble_velocities(q, np.linspace(-1, 1, model.nv))
    current = rb.Current((0.1, rb.Signal.sines(0.1, 4.0, offset=0.2), 0.0))
    for exact, difference in zip(*derivatives_both_ways(model, q, qd, forces=[current]), strict=True):
        if exact.size:
            np.testing.assert_allclose(exact, difference, rtol=0, atol=1e-8 * np.abs(difference).max())


@pytest.mark.slow
@plain
def test_a_driven_tree_follows_rk45_and_its_tolerance():
    model, actions = driven_tree()
    q, qd = random_states(model, (), seed=3, arrays=2)
    settings = {"duration": 0.1, "save_at": 4} | actions
    reference = model.simulate(q, 0.3 * qd, rtol=1e-11, atol=1e-12, **settings)
    errors = []
    for tolerance in (1e-4, 1e-6, 1e-8):
        motion = model.simulate(q, 0.3 * qd, method="rosenbrock", rtol=tolerance, atol=tolerance, **settings)
        assert motion.success
        errors.append(np.abs(np.hstack([motion.q - reference.q, motion.qd - reference.qd])).max())
        assert errors[-1] < 10 * tolerance
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert motion.events[0].count == reference.events[0].count
    np.testing.assert_allclose(motion.tau, reference.tau, rtol=1e-6, atol=1e-5)
    single = model.simulate(
        *(x.astype(np.float32) for x in (q, 0.3 * qd)), method="rosenbrock", rtol=1e-4, atol=1e-4, **settings
    )
    assert single.q.dtype == np.float32
    np.testing.assert_allclose(single.q, reference.q, rtol=0, atol=1e-3)


def pendulum(**passive):
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    inertia = rb.Inertia(1.0, cg=(1.0, 0, 0))
    builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=inertia, passive=rb.PassiveForces(**passive))
    return builder.build()


@pytest.mark.slow_cases("1e-06")
@plain
@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_rk45_says_that_a_system_is_stiff(rtol):
    """A damper of 1e4 / s limits the steps to 3.3e-4 s; other pendulums are not stiff."""
    settings = {"rtol": rtol, "atol": rtol, "save_at": 3}
    stiff = pendulum(damping=1e4).simulate([0.0], [0.0], 0.1, **settings)
    assert stiff.success and stiff.is_stiff
    assert stiff.message.endswith(
        '\n1 of 1: The system is stiff: stability, not the tolerances, limits the step size. Use method="rosenbrock".'
    )
    free = pendulum(stiffness=100.0).simulate([[0.0], [np.pi / 2]], np.full((2, 1), 1e-3), 20.0, **settings)
    assert (free.steps > 130).all() and not free.is_stiff.any()
    assert "stiff" not in free.message


@plain
def test_samples_end_with_the_same_statuses_as_with_rk45():
    model = pendulum()
    stop = model.simulate(
        [0.0], [0.0], 2.0, method="rosenbrock", events=[rb.Event("bob", value=-1.0, stop=True)], save_at=2
    )
    reference = model.simulate([0.0], [0.0], 2.0, events=[rb.Event("bob", value=-1.0, stop=True)], save_at=2)
    assert stop.status == rb.Status.STOPPED
    np.testing.assert_allclose(stop.end_time, reference.end_time, rtol=1e-8)
    assert (
        model.simulate([0.0], [0.0], 2.0, method="rosenbrock", max_steps=3, on_failure="ignore", save_at=2).status
        == rb.Status.TOO_MANY_STEPS
    )
    with pytest.raises(rb.ArgumentError, match=r'step is 0.1, but method "rosenbrock" chooses the length of its steps'):
        model.simulate([0.0], [0.0], 2.0, method="rosenbrock", step=0.1, save_at=2)


@plain
def test_closed_chains_stay_closed():
    model, _, guess = four_bar()
    q = model.assemble(guess)
    qd = model.assemble_velocities(q, np.full(model.nv, 2.0))
    reference = model.simulate(q, qd, 0.2, rtol=1e-10, atol=1e-12, save_at=3)
    motion = model.simulate(q, qd, 0.2, method="rosenbrock", rtol=1e-7, atol=1e-9, save_at=3)
    assert motion.success
    np.testing.assert_allclose(motion.q, reference.q, rtol=0, atol=1e-6)
    assert np.abs(model.constraint_residual(motion.q)).max() < 1e-10
    # 6 stages, the end, the projected end, and one for the Jacobian
    assert motion.evaluations <= 10 * (motion.steps + motion.rejections) + 3


@cache
def motion_of_a_stiff_closed_chain(method, rtol, atol):
    """A four-bar linkage in space with a drive that integrates its error, stiff damping and a spring."""
    chain = closed_chain("turned four-bar")
    model = chain.model.vary(damping=[1e3, 1.0, 1.0])
    q, qd, _ = closed_state(chain, seed=2)
    spring = rb.SpringDamper(None, "rocker", point_a=(0.3, 0.2, 0.1), point_b=(0.4, 0, 0), stiffness=500.0, damping=2.0)
    drive = rb.PID("crank", rb.Signal.sines(0.5, 3.0, offset=1.0), kp=2e3, kd=1e3, ki=100.0)
    settings = {"duration": 0.1, "save_at": 4, "drives": [drive], "forces": [spring]}
    return model.simulate(q, qd, method=method, rtol=rtol, atol=atol, **settings)


@pytest.mark.slow_cases("rosenbrock")
@plain
@pytest.mark.parametrize("method", ["rosenbrock", "radau"])
def test_a_stiff_closed_chain_follows_its_tolerance(method):
    reference = motion_of_a_stiff_closed_chain("rk45", 1e-10, 1e-11)
    errors = []
    for tolerance in (1e-4, 1e-6, 1e-8):
        motion = motion_of_a_stiff_closed_chain(method, tolerance, tolerance)
        assert motion.success
        errors.append(np.abs(np.hstack([motion.q - reference.q, motion.qd - reference.qd])).max())
        assert errors[-1] < 10 * tolerance
    assert motion.steps < reference.steps / 5


@pytest.mark.slow
def test_samples_in_lanes_do_not_depend_on_their_neighbors():
    """Stiffness, damping and initial states vary; single samples agree with rk45 and with the batch."""
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    for name, parent in (("upper", None), ("lower", "upper")):
        builder.add_body(
            name,
            parent=parent,
            joint=rb.Revolute((0, 0, 1)),
            placement=rb.Pose((1.0, 0, 0) if parent else (0, 0, 0)),
            inertia=rb.Inertia(1.0, cg=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1)),
            passive=rb.PassiveForces(stiffness=1.0, damping=1.0),
        )
    samples = 11
    stiffness = np.logspace(0, 6, samples)[:, None] * [1.0, 2.0]
    model = builder.build().vary(stiffness=stiffness, damping=0.01 * stiffness)
    q = np.linspace(-0.1, 0.1, samples)[:, None] * [1.0, -1.0]
    settings = {"duration": 1.0, "save_at": 5, "rtol": 1e-6, "atol": 1e-8}
    together = model.simulate(q, 0 * q, method="rosenbrock", **settings)
    assert together.success and (together.steps < 400).all()
    some = [9, 2, 5]
    apart = builder.build().vary(stiffness=stiffness[some], damping=0.01 * stiffness[some])
    np.testing.assert_array_equal(
        apart.simulate(q[some], 0 * q[some], method="rosenbrock", **settings).q, together.q[some]
    )
    explicit = model.simulate(q, 0 * q, **settings | {"rtol": 1e-9, "atol": 1e-11})
    np.testing.assert_allclose(together.q, explicit.q, rtol=0, atol=1e-5)
    assert explicit.steps[-1] > 100 * together.steps[-1]
