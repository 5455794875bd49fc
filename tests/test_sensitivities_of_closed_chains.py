"""Sensitivities of closed chains: a closed form, differences of simulations, identities, lanes, and refused input."""

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import closed_chain, closed_state, four_bar
from .other_process import computed
from .quantities import derivative
from .test_one_source import check_alike
from .test_sensitivities import STEP, TIGHT, extrapolated

plain = pytest.mark.plain_python
LENGTH, GRAVITY = 0.7, 9.81
SLIDES = {"mass": (1.5, 0.8), "damping": (0.3, 0.2), "stiffness": (2.0, 1.0), "tau": (0.4, -0.3)}
START = np.array([0.6, 1.1])  # angle of the rod and its rate
DURATION = 0.1  # s


def trammel():
    """Two slides on the x and the y axis, whose bodies a rod keeps at a distance."""
    builder = rb.ModelBuilder(gravity=(0, -GRAVITY, 0))
    for i, axis in enumerate(((1, 0, 0), (0, 1, 0))):
        passive = rb.PassiveForces(damping=SLIDES["damping"][i], stiffness=SLIDES["stiffness"][i])
        inertia = rb.Inertia(SLIDES["mass"][i], cg=(0.1, 0.2, 0))
        builder.add_body("xy"[i], joint=rb.Prismatic(axis), inertia=inertia, passive=passive)
    builder.add_constraint(rb.DistanceConstraint("rod", "x", "y", point_a=(0, 0, 0), point_b=(0, 0, 0), length=LENGTH))
    return builder.build()


def rate_of_trammel(state, x):
    """The equation of the rod's angle: x = L cos, y = L sin."""
    (angle, rate), (m1, m2), (d1, d2), (k1, k2), (f1, f2) = state, *x.values()
    c, s = LENGTH * np.cos(angle), LENGTH * np.sin(angle)
    along_x = f1 - k1 * c + d1 * s * rate + m1 * c * rate**2
    along_y = f2 - k2 * s - d2 * c * rate + m2 * s * rate**2 - m2 * GRAVITY
    return np.array([rate, (c * along_y - s * along_x) / (m1 * s**2 + m2 * c**2)])


def slides_of(state):
    """Positions and velocities of both slides."""
    angle, rate = state
    c, s = LENGTH * np.cos(angle), LENGTH * np.sin(angle)
    return np.array([c, s, -s * rate, c * rate])


@pytest.mark.slow_cases("rk4")
@plain
@pytest.mark.parametrize("settings", [TIGHT, {"method": "rk4", "step": 1e-3}], ids=["rk45", "rk4"])
def test_two_slides_and_a_rod_agree_with_complex_steps_of_their_equation(settings):
    model, names = trammel(), ["q", "qd", *SLIDES]
    start, allowed = slides_of(START), 1e-10 if "rtol" in settings else 1e-9
    motion = model.simulate(start[:2], start[2:], DURATION, tau=SLIDES["tau"], derivatives=names, save_at=4, **settings)
    found = {name: motion.derivatives[name][-1] for name in names}
    for field in SLIDES:
        for i in range(2):
            x = {key: np.array(values, complex) for key, values in SLIDES.items()}
            x[field][i] += 1j * STEP
            end = slides_of(extrapolated(lambda s, x=x: rate_of_trammel(s, x), START.astype(complex), DURATION))
            np.testing.assert_allclose(np.r_[motion.q[-1], motion.qd[-1]], end.real, rtol=0, atol=allowed)
            np.testing.assert_allclose(found[field][:, i], end.imag / STEP, rtol=0, atol=allowed, err_msg=field)
    for i in range(2):
        first = START + 1j * STEP * np.eye(2)[i]
        end, moved = extrapolated(lambda s: rate_of_trammel(s, SLIDES), first, DURATION), slides_of(first).imag / STEP
        change = found["q"] @ moved[:2] + found["qd"] @ moved[2:]
        np.testing.assert_allclose(change, slides_of(end).imag / STEP, rtol=0, atol=allowed)


@plain
def test_a_light_slide_does_not_change_the_projection_of_derivatives():
    """The dynamics add an inertia to a slide of 0.1 mg, and take its force away again."""
    fields = {**SLIDES, "mass": (1.5, 1e-7)}
    model, start = trammel().replace(mass=fields["mass"]), slides_of(START)
    motion = model.simulate(
        start[:2], start[2:], DURATION, tau=fields["tau"], derivatives=["q", "qd", "tau"], save_at=4, **TIGHT
    )
    found = {name: motion.derivatives[name][-1] for name in ("q", "qd", "tau")}
    for i in range(2):
        first = START + 1j * STEP * np.eye(2)[i]
        end, moved = extrapolated(lambda s: rate_of_trammel(s, fields), first, DURATION), slides_of(first).imag / STEP
        change = found["q"] @ moved[:2] + found["qd"] @ moved[2:]
        np.testing.assert_allclose(change, slides_of(end).imag / STEP, rtol=0, atol=1e-9)
        x = {**fields, "tau": np.array(fields["tau"], complex)}
        x["tau"][i] += 1j * STEP
        end = slides_of(extrapolated(lambda s, x=x: rate_of_trammel(s, x), START.astype(complex), DURATION))
        np.testing.assert_allclose(found["tau"][:, i], end.imag / STEP, rtol=0, atol=1e-9)


CART_ACCELERATION = 1.5
BOB = {"mass": (2.0, 0.5, 0.8), "damping": (0.7, 0.3, 0.2), "tau": (0.6, 0.4, -0.3)}  # of the cart, and of x and y
CART_START = np.array([0.4, 1.1, 0.2, -0.5])  # angle of the rod and its rate, position and velocity of the cart


def pendulum_of_a_cart():
    """A cart, and a bob on two slides that a rod keeps at a distance from the cart."""
    builder = rb.ModelBuilder(gravity=(0, -GRAVITY, 0))
    bodies = (("cart", None, (1, 0, 0)), ("x", None, (1, 0, 0)), ("y", "x", (0, 1, 0)))
    for i, (name, parent, axis) in enumerate(bodies):
        passive = rb.PassiveForces(damping=BOB["damping"][i])
        inertia = rb.Inertia(BOB["mass"][i])
        builder.add_body(name, parent=parent, joint=rb.Prismatic(axis), inertia=inertia, passive=passive)
    builder.add_constraint(
        rb.DistanceConstraint("rod", "cart", "y", point_a=(0, 0, 0), point_b=(0, 0, 0), length=LENGTH)
    )
    return builder.build()


def rate_of_pendulum(state, x):
    """The equation along the path of the bob, whose position is (cart + L sin, - L cos)."""
    (angle, rate, _, v), (_, m1, m2), (_, d1, d2), (_, f1, f2) = state, *x.values()
    c, s = np.cos(angle), np.sin(angle)
    force = c * (f1 - d1 * (v + LENGTH * c * rate)) + s * (f2 - d2 * LENGTH * s * rate - m2 * GRAVITY)
    inertial = c * (m1 + m2) * (CART_ACCELERATION - LENGTH * s * rate**2) + s * m2 * LENGTH * c * rate**2
    return np.array(
        [rate, (force - inertial) / (LENGTH * ((m1 + m2) * c**2 + m2 * s**2)), v, 0 * v + CART_ACCELERATION]
    )


def slides_of_pendulum(state):
    """Positions and velocities of the cart and both slides."""
    angle, rate, x, v = state
    c, s = LENGTH * np.cos(angle), LENGTH * np.sin(angle)
    return np.array([x, x + s, -c, v, v + c * rate, s * rate])


@pytest.mark.fast_cases("PrescribedPosition")
@plain
@pytest.mark.parametrize("drive", [rb.PrescribedAcceleration, rb.PrescribedVelocity, rb.PrescribedPosition])
def test_a_pendulum_of_a_prescribed_cart_agrees_with_complex_steps_of_its_equation(drive):
    """The motion of the cart depends on its own initial state only, as far as that is not prescribed."""
    start, (_, _, x, v) = slides_of_pendulum(CART_START), CART_START
    signal, free = {
        rb.PrescribedAcceleration: ([CART_ACCELERATION], 4),
        rb.PrescribedVelocity: ([v, CART_ACCELERATION], 3),
        rb.PrescribedPosition: ([x, v, 0.5 * CART_ACCELERATION], 2),
    }[drive]
    motion = pendulum_of_a_cart().simulate(
        *(start[:3], start[3:], DURATION),
        tau=[0.0, *BOB["tau"][1:]],
        drives=[drive("cart", rb.Signal.polynomial(signal))],
        derivatives=["q", "qd", *BOB],
        **TIGHT,
    )
    found = {name: values[-1] for name, values in motion.derivatives.items()}
    for field in BOB:
        assert not found[field][[0, 3]].any()
        for i in range(3):
            x = {key: np.array(values, complex) for key, values in BOB.items()}
            x[field][i] += 1j * STEP
            end = extrapolated(lambda s, x=x: rate_of_pendulum(s, x), CART_START.astype(complex), DURATION)
            end = slides_of_pendulum(end)
            np.testing.assert_allclose(np.r_[motion.q[-1], motion.qd[-1]], end.real, rtol=0, atol=1e-10)
            np.testing.assert_allclose(found[field][:, i], end.imag / STEP, rtol=0, atol=1e-10, err_msg=field)
    for i in range(free):
        first = CART_START + 1j * STEP * np.eye(4)[i]
        end, moved = (
            extrapolated(lambda s: rate_of_pendulum(s, BOB), first, DURATION),
            slides_of_pendulum(first).imag / STEP,
        )
        change = found["q"] @ moved[:3] + found["qd"] @ moved[3:]
        np.testing.assert_allclose(change, slides_of_pendulum(end).imag / STEP, rtol=0, atol=1e-10)


# --- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("hinged arm", "hung plate")
@plain
@pytest.mark.parametrize("name", ["turned four-bar", "hung plate", "hinged arm", "Bricard"])
def test_sensitivities_begin_with_the_derivative_of_the_projection(name):
    """It moves positions to the nearest closed ones in the metric of inertia, then the velocities."""
    chain = closed_chain(name)
    model, n = chain.model, chain.model.nv
    q, qd, _ = closed_state(chain, seed=3)
    motion = model.simulate(q, qd, 1e-6, method="rk4", step=1e-6, derivatives=("q", "qd"), save_at=2)
    J, inverse = model.constraint_jacobian(q), model.mass_matrix_inverse(q)
    normal = inverse @ J.T @ np.linalg.pinv(J @ inverse @ J.T, rcond=1e-10)
    P = np.eye(n) - normal @ J
    turn = np.array(
        [derivative(lambda s, e=e: model.constraint_jacobian(model.integrate(q, s * e)) @ qd) for e in P.T]
    ).T
    by_q, by_qd = motion.derivatives["q"][0], motion.derivatives["qd"][0]
    np.testing.assert_allclose(by_q[:n], P, rtol=0, atol=1e-10)
    np.testing.assert_allclose(by_q[n:], -normal @ turn, rtol=0, atol=1e-8 * np.abs(normal).max() * np.abs(turn).max())
    np.testing.assert_allclose(by_qd, np.vstack([0 * P, P]), rtol=0, atol=1e-10)


@pytest.mark.slow
@plain
def test_sensitivities_satisfy_the_derivatives_of_the_constraints():
    """J u = 0 and d(J qd)/dq u + J w = 0, up to round-off after steps, and up to the tolerance between them."""
    chain = four_bar()
    model, (q, qd, _) = chain.model, closed_state(four_bar(), seed=3)
    names = ["q", "qd", "mass", "cg", "inertia"]
    motion = model.simulate(q, qd, 0.5, rtol=1e-7, atol=1e-7, save_at=[0.0, 0.111, 0.3, 0.5], derivatives=names)
    for i, allowed in ((0, 1e-12), (1, 1e-6), (2, 1e-6), (3, 1e-12)):
        J = model.constraint_jacobian(motion.q[i])
        columns = np.concatenate([motion.derivatives[name][i].reshape(2 * model.nv, -1) for name in names], -1)
        u, w = columns[:3], columns[3:]
        turn = np.array(
            [
                derivative(
                    lambda s, e=e, i=i: model.constraint_jacobian(model.integrate(motion.q[i], s * e)) @ motion.qd[i]
                )
                for e in np.eye(3)
            ]
        ).T
        assert np.abs(J @ u).max() < allowed * np.abs(u).max()
        assert np.abs(J @ w + turn @ u).max() < (allowed + 1e-9) * np.abs(columns).max()


# --- differences of simulations ---------------------------------------------------------------------------------------


def slopes_of_end(model, end, *functions):
    """Derivatives of the end of a motion, end(s) = (q, qd), along the tangent space."""
    return [
        np.concatenate([derivative(lambda s: model.difference(end[0], f(s)[0])), derivative(lambda s: f(s)[1])])  # noqa: B023
        for f in functions
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["turned four-bar", "hung plate", "hinged arm", "Bricard", "welded and geared"])
def test_sensitivities_agree_with_differences_of_simulations(name):
    """Along closed initial states, and along parameters. The tolerances of 1e-11 limit the accuracy."""
    chain, rng = closed_chain(name), np.random.default_rng(0)
    model = chain.model.vary(damping=np.full(chain.model.nv, 0.2))
    q, qd, tau = closed_state(chain, seed=3)
    spring = rb.SpringDamper(
        None, model.body_names[-1], point_a=(0.1, 0.2, 0.3), point_b=(0, 0.1, 0), stiffness=50.0, damping=1.0
    )
    settings = {"duration": 0.1, "forces": [spring], "rtol": 1e-11, "atol": 1e-12}
    names = ["q", "qd", "mass", "cg", "inertia", "damping", "tau"]
    motion = model.simulate(q, qd, tau=tau, derivatives=names, save_at=2, **settings)
    found, end = {key: values[-1] for key, values in motion.derivatives.items()}, (motion.q[-1], motion.qd[-1])
    dq, dqd = model.assemble_velocities(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)
    dtau, d_damping = rng.normal(size=(2, model.nv))
    d_mass, d_cg = rng.normal(size=model.n_bodies) * model.mass, 0.1 * rng.normal(size=(model.n_bodies, 3))

    def state(s):
        moved = model.assemble(model.integrate(q, s * dq))
        return moved, model.assemble_velocities(moved, qd + s * dqd)

    def end_of(of=model, start=(q, qd), forces=tau):
        there = of.simulate(*start, tau=forces, save_at=2, **settings)
        return there.q[-1], there.qd[-1]

    slopes = slopes_of_end(
        model,
        end,
        lambda s: end_of(start=state(s)),
        lambda s: end_of(model.vary(mass=model.mass + s * d_mass)),
        lambda s: end_of(model.vary(cg=model.cg + s * d_cg)),
        lambda s: end_of(model.vary(damping=model.damping + s * d_damping)),
        lambda s: end_of(forces=tau + s * dtau),
    )
    expected = [
        found["q"] @ dq + found["qd"] @ derivative(lambda s: state(s)[1]),
        found["mass"] @ d_mass,
        np.einsum("ijk,jk->i", found["cg"], d_cg),
        found["damping"] @ d_damping,
        found["tau"] @ dtau,
    ]
    for slope, wanted in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(slope, wanted, rtol=0, atol=1e-8 * (1 + np.abs(wanted).max()))


@pytest.mark.slow
@plain
def test_gains_and_water_agree_with_differences_of_equal_steps():
    """RK4 of the variational equations is the derivative of RK4, but for the projections, which hardly move the end."""
    builder = rb.ModelBuilder(gravity=(0, -9.81, 0), fluid_density=1000.0)
    ball = rb.Immersion.sphere(0.1, center=(0.2, 0, 0))
    rod = rb.Inertia(5.0, cg=(0.2, 0.1, 0), inertia=(0.1, 0.2, 0.3))
    for name, parent, x in (("crank", None, 0.0), ("coupler", "crank", 0.4), ("rocker", None, 0.9)):
        place = rb.Pose((x, 0, 0))
        builder.add_body(name, parent=parent, joint=rb.Revolute(), placement=place, inertia=rod, immersion=ball)
    builder.add_constraint(rb.BallConstraint("tip", "coupler", "rocker", point_a=(0.8, 0, 0), point_b=(0.6, 0, 0)))
    model = builder.build()
    q = model.assemble([1.0, -0.5, 1.5])
    qd = model.assemble_velocities(q, [1.0, 0.0, 0.0])
    gains = {"kp": 20.0, "ki": 30.0, "kd": 2.0}
    settings = {"duration": 0.02, "method": "rk4", "step": 0.001}

    def motion_of(model=model, derivatives=(), **changed):
        drive = rb.PID("crank", 0.3, **(gains | changed))
        return model.simulate(q, qd, drives=[drive], derivatives=derivatives, save_at=2, **settings)

    found = motion_of(derivatives=[*gains, "mass"]).derivatives
    for name, value in gains.items():
        slope = derivative(lambda s, name=name, value=value: end_of_motion(motion_of(**{name: value + s})))
        np.testing.assert_allclose(found[name][-1, :, 0], slope, rtol=0, atol=1e-8 * np.abs(slope).max() + 1e-11)
    slope = derivative(lambda s: end_of_motion(motion_of(model.vary(mass=model.mass + s * np.array([1.0, 2.0, 3.0])))))
    np.testing.assert_allclose(found["mass"][-1] @ [1.0, 2.0, 3.0], slope, rtol=0, atol=1e-8 * np.abs(slope).max())


def end_of_motion(motion):
    return np.concatenate([motion.q[-1], motion.qd[-1]])


# --- lanes, fits and refused input ------------------------------------------------------------------------------------


def last_samples():
    """Derivatives of the last two of nine samples: one in the first block of lanes, one alone in the second."""
    out = {}
    chain, rng = closed_chain("turned four-bar"), np.random.default_rng(2)
    (q, qd, _), tolerance = closed_state(chain, batch=(9,)), 1e-6
    model = chain.model.vary(mass=chain.model.mass * rng.uniform(0.9, 1.1, (9, 3)))
    motion = model.simulate(q, qd, 0.1, rtol=tolerance, atol=tolerance, derivatives=["q", "mass", "inertia"])
    assert motion.success
    for name, values in motion.derivatives.items():
        out[f"{name} float64"] = values[7:]
    return out


@pytest.mark.slow
def test_lanes_agree_with_plain_python():
    check_alike(computed(last_samples, NUMBA_DISABLE_JIT="1"), last_samples())


@pytest.mark.slow
def test_a_fit_finds_the_damping_of_a_closed_chain():
    model, start = trammel(), slides_of(START)
    motion = model.simulate(start[:2], start[2:], 0.5, save_at=5, rtol=1e-7)
    guess = model.vary(damping=[1.0, 1.0])
    found = rb.fit(guess, (motion.t, motion.q, motion.qd), ["damping"], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.model.damping, SLIDES["damping"], rtol=1e-4)


@plain
def test_refused_arguments():
    model, (q, qd, _) = four_bar().model, closed_state(four_bar())
    with pytest.raises(rb.ArgumentError, match='does not compute derivatives; expected "rk45", "dop853" or "rk4"'):
        model.simulate(q, qd, 0.1, method="rosenbrock", derivatives=["mass"], save_at=2)
