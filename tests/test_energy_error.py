"""The error of the energy: zero for exact motions, and exactly the energy that a coarse method loses or gains."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad

import rbchain as rb
from rbchain.cli import main

from .mechanisms import random_tree

TIGHT = {"method": "rk45", "rtol": 1e-10, "atol": 1e-12}
MASS = 1.3
PLAIN = pytest.mark.plain_python


def slider(gravity=0.0, mass=MASS, **passive):
    """A mass on a vertical axis."""
    builder = rb.ModelBuilder(gravity=(0, 0, -gravity))
    builder.add_body(
        "slide",
        joint=rb.Prismatic((0, 0, 1)),
        inertia=rb.Inertia(mass=mass),
        passive=rb.PassiveForces(**passive) if passive else None,
    )
    return builder.build()


def energy_of(motion):
    """Return the kinetic, potential and elastic energy."""
    return sum(motion.model[..., None].energy(motion.q, motion.qd)) + motion.elastic_energy


def assert_only_round_off(motion, tolerance):
    """Assert that the error is below a share of the energy that is transformed or dissipated."""
    energy = energy_of(motion)
    kinetic = motion.model[..., None].energy(motion.q, motion.qd)[0]
    scale = max(np.abs(energy - energy[..., :1]).max(), kinetic.max())
    assert motion.success
    assert scale > 0
    np.testing.assert_array_less(np.abs(motion.energy_error), tolerance * scale)


# --- closed forms -----------------------------------------------------------------------------------------------------


@PLAIN
def test_an_implicit_method_loses_exactly_what_backward_euler_loses():
    """Backward Euler divides the energy of a linear oscillator by 1 + h^2 k / m in each step. No force does work."""
    k, h, steps = 40.0, 0.01, 50
    q0, v0 = np.array([[0.3], [-0.1]]), np.array([[0.0], [2.0]])
    motion = slider(stiffness=k).simulate(
        q0, v0, steps * h, method="implicit", step=h, save_at=steps + 1, energy_error=True
    )
    start = 0.5 * (MASS * v0[:, 0] ** 2 + k * q0[:, 0] ** 2)
    factor = (1 + h * h * k / MASS) ** -np.arange(steps + 1.0)
    np.testing.assert_allclose(motion.energy_error, start[:, None] * (factor - 1), rtol=0, atol=1e-13)


def rates_of_servo(t, y, numbers):
    """Return the rate of (q, v, integral) of a mass with spring, damper, friction, PID and force, and the work's power.

    The power is that of all forces except the spring.
    """
    q, v, integral = y
    k, k3, rest, d, f, v0, kp, ki, kd = numbers
    force = kp * (0.4 - q) + ki * integral - kd * v - d * v - f * v / np.hypot(v, v0) + 2.0 * np.sin(6.0 * t)
    spring = -(q - rest) * (k + k3 * (q - rest) ** 2)
    return np.array([v, (force + spring) / MASS, 0.4 - q]), force * v


@PLAIN
def test_coarse_steps_have_the_error_of_an_independent_integration():
    """Repeat the steps of Kutta in NumPy, with the power along cubic Hermite polynomials, by adaptive quadrature.

    Gauss' formula with five nodes is exact to (h omega)^10 / 10!, below 1e-9 of the power of a step for 20 rad/s.
    """
    numbers = (40.0, 3.0, 0.1, 0.7, 0.5, 2.0, 30.0, 8.0, 1.5)
    k, k3, rest, d, f, v0, kp, ki, kd = numbers
    model = slider(stiffness=k, cubic_stiffness=k3, rest_position=rest, damping=d, friction=f, friction_velocity=v0)
    drives = [rb.PID("slide", reference=0.4, kp=kp, ki=ki, kd=kd)]
    force = rb.Wrench("slide", force=(0, 0, rb.Signal.sines(2.0, 6.0)))
    h, steps = 0.02, 40
    motion = model.simulate(
        [[0.5]], [[1.0]], steps * h, method="rk4", step=h, save_at=steps + 1, drives=drives, forces=[force],
        energy_error=True,
    )  # fmt: skip

    def energy(y):
        x = y[0] - rest
        return 0.5 * MASS * y[1] ** 2 + 0.5 * k * x**2 + 0.25 * k3 * x**4

    y, work, expected = np.array([0.5, 1.0, 0.0]), 0.0, [0.0]
    start = energy(y)
    for step in range(steps):
        t = step * h
        stages = [rates_of_servo(t, y, numbers)[0]]
        for c in (0.5, 0.5, 1.0):
            stages.append(rates_of_servo(t + c * h, y + c * h * stages[-1], numbers)[0])
        end = y + h * (stages[0] + 2 * stages[1] + 2 * stages[2] + stages[3]) / 6
        rates = stages[0], rates_of_servo(t + h, end, numbers)[0]

        def power(x, y=y, end=end, rates=rates, t=t):
            rest_of_step = 1 - x
            start_bend, end_bend = h * rates[0] - (end - y), (end - y) - h * rates[1]
            at = y + x * (end - y) + x * rest_of_step * (rest_of_step * start_bend + x * end_bend)
            return rates_of_servo(t + x * h, at, numbers)[1]

        work += h * quad(power, 0, 1, epsabs=1e-13, epsrel=1e-12)[0]
        y = end
        expected.append(energy(y) - start - work)
    np.testing.assert_allclose(motion.q[0, -1, 0], y[0], rtol=1e-12)
    assert np.abs(expected).max() > 1e-5
    np.testing.assert_allclose(motion.energy_error[0], expected, rtol=0, atol=1e-9)


@pytest.mark.slow_cases("settings2")
@PLAIN
@pytest.mark.parametrize("settings", [TIGHT, {"method": "rosenbrock"}, {"method": "moreau", "step": 4e-3}])
def test_impacts_of_a_bouncing_ball_lose_energy_without_an_error(settings):
    """Flights and impacts are exact for all these methods, so only round-off remains. Each impact loses 1 - e^2."""
    contact = rb.SphereContact(
        "slide", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), restitution=0.8
    )
    motion = slider(gravity=10.0).simulate(
        [[1.0], [0.7]], [[0.0], [0.3]], 0.8, save_at=9, forces=[contact], energy_error=True, **settings
    )
    energy = energy_of(motion)
    assert (energy[:, -1] < 0.7 * energy[:, 0]).all()
    assert_only_round_off(motion, 1e-11)


@pytest.mark.slow_cases("0.007")
@PLAIN
@pytest.mark.parametrize("step", [1e-2, 7e-3])
def test_impacts_of_a_turning_rod_have_no_error(step):
    """The mass matrix of a rod in a plane is constant, so time stepping is exact but for the places of the impacts."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body(
        "rod", joint=rb.Planar((0, 1, 0)), inertia=rb.Inertia(1.0, cg=(0, 0, 0), inertia=(0.01, 0.08, 0.08))
    )
    model = builder.build()
    ends = [
        rb.SphereContact(
            "rod", point=(x, 0, 0), radius=0.01, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), restitution=0.9
        )
        for x in (-0.5, 0.5)
    ]
    height = next(i for i in range(3) if abs(model.body_poses(np.eye(3)[i]).translation[0, 2]) > 0.5)
    start = 1.2 * np.eye(3)[height] / model.body_poses(np.eye(3)[height]).translation[0, 2]
    start[2] = 0.3
    motion = model.simulate(
        start, [0, 0, 3.0], 1.5, method="moreau", step=step, forces=ends, save_at=16, energy_error=True
    )
    assert sum(int(impacts.count) for impacts in motion.impacts) >= 2
    assert_only_round_off(motion, 1e-11)


@PLAIN
@pytest.mark.parametrize("settings", [TIGHT, {"method": "moreau", "step": 8e-3}])
def test_a_force_that_pushes_a_mass_against_a_floor_works_over_its_way(settings):
    """A constant force of the drive replaces gravity, so flights and impacts are exact, and its work is not zero."""
    contact = rb.SphereContact(
        "slide", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), restitution=0.8
    )
    motion = slider().simulate(
        [[1.0], [0.7]], [[0.0], [0.3]], 0.8, tau=[-10.0 * MASS], save_at=9, forces=[contact], energy_error=True,
        **settings,
    )  # fmt: skip
    assert (motion.impacts[0].count > 0).all()
    assert_only_round_off(motion, 1e-11)


@pytest.mark.slow_cases("settings1")
@PLAIN
@pytest.mark.parametrize("settings", [TIGHT, {"method": "moreau", "step": 8e-3}])
def test_dry_friction_stops_a_mass_without_an_error(settings):
    """The friction f works - f s until the mass sticks, also in the step in which it stops."""
    f, v = 3.0, np.array([[2.0], [-1.0]])
    motion = slider().simulate(
        np.zeros((2, 1)), v, 1.2, save_at=13, forces=[rb.DryFriction("slide", kinetic=f)], energy_error=True, **settings
    )
    energy = energy_of(motion)
    np.testing.assert_allclose(energy[:, 0] - energy[:, -1], 0.5 * MASS * v[:, 0] ** 2, rtol=1e-12)
    assert_only_round_off(motion, 1e-11)


@pytest.mark.slow
@PLAIN
def test_a_prescribed_platform_works_on_the_mass_that_it_lifts():
    """A platform moves up with constant acceleration. The contact, and so the platform's drive, lifts the mass."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    for name, mass in (("platform", 5.0), ("mass", 2.0)):
        builder.add_body(name, joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=mass))
    lift = rb.PrescribedVelocity("platform", rb.Signal.polynomial([0.2, 0.3]))
    contact = rb.SphereSphereContact(
        "platform", "mass", point_a=(0, 0, 0), point_b=(0, 0, 0), radius_a=0.1, radius_b=0.1
    )
    motion = builder.build().simulate(
        [[0.0, 0.2]], [[0.2, 0.2]], 1.0, method="moreau", step=4e-3, drives=[lift], forces=[contact], save_at=6,
        energy_error=True,
    )  # fmt: skip
    np.testing.assert_allclose(motion.q[0, -1], [0.35, 0.55], rtol=1e-12)
    assert_only_round_off(motion, 1e-12)


# --- every force counts -----------------------------------------------------------------------------------------------


def body_in_water():
    immersion = rb.Immersion(
        volume=0.006,
        buoyancy_center=(0, 0.01, 0.02),
        added_mass=(2, 3, 4, 0.01, 0.02, 0.03),
        linear_damping=(3, 3, 3, 0.1, 0.1, 0.1),
        quadratic_damping=(20, 30, 20, 0.1, 0.1, 0.2),
    )
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81), fluid_density=1000.0)
    builder.add_body("hull", joint=rb.Free(), inertia=rb.Inertia.box((0.1, 0.2, 0.3), mass=9.0), immersion=immersion)
    current = rb.Current((0.3, rb.Signal.sines(0.2, 3.0), 0.1))
    return builder.build(), np.full((1, 6), 0.5), {"forces": [current]}


def chain_with_springs():
    builder = rb.ModelBuilder(gravity=(0, -9.81, 0))
    for i, parent in enumerate((None, "link0", "link1")):
        builder.add_body(
            f"link{i}",
            parent=parent,
            joint=rb.Revolute((0, 0, 1)) if i != 1 else rb.Universal((0, 1, 0), (0, 0, 1)),
            placement=rb.Pose((0.5 * (i > 0), 0, 0)),
            inertia=rb.Inertia(mass=1.0, cg=(0.25, 0, 0), inertia=(0.01, 0.02, 0.02)),
            passive=rb.PassiveForces(
                stiffness=3.0, cubic_stiffness=5.0, rest_position=0.1, damping=0.1, stop_lower=-0.5, stop_upper=0.5,
                limit_stiffness=80.0, limit_damping=0.4,
            ),
        )  # fmt: skip
    cable = rb.SpringDamper(
        None,
        "link1",
        point_a=(0, 1, 0),
        point_b=(0.3, 0.1, 0),
        stiffness=50.0,
        damping=2.0,
        rest_length=0.4,
        tension_only=True,
    )
    bushing = rb.Bushing(
        None,
        "link2",
        stiffness=np.diag([100, 80, 60, 5, 4, 3.0]),
        damping=0.5 * np.eye(6),
        pose_a=rb.Pose((1, 0, 0)),
        pose_b=rb.Pose((0.1, 0, 0)),
    )
    push = rb.Wrench("link2", force=(rb.Signal.sines(2.0, 4.0), 1.0, 0), moment=(0, 0, 0.2), axes="body")
    return builder.build(), np.full((1, 4), 0.3), {"forces": [cable, bushing, push]}


def driven_linkage():
    """A four-bar linkage whose crank turns with a prescribed speed; a spring and a damper act at the rocker."""
    builder = rb.ModelBuilder(gravity=(0, -9.81, 0))
    for name, length, parent, x in (
        ("crank", 0.3, None, 0.0),
        ("coupler", 1.0, "crank", 0.3),
        ("rocker", 0.8, None, 1.0),
    ):
        builder.add_body(
            name,
            parent=parent,
            joint=rb.Revolute((0, 0, 1)),
            placement=rb.Pose((x, 0, 0)),
            inertia=rb.Inertia(mass=length, cg=(length / 2, 0, 0), inertia=(0.01, 0.05, 0.05)),
            passive=rb.PassiveForces(stiffness=2.0, damping=0.3) if name == "rocker" else None,
        )
    builder.add_constraint(rb.BallConstraint("pin", "coupler", "rocker", point_a=(1.0, 0, 0), point_b=(0.8, 0, 0)))
    model = builder.build()
    q = model.assemble([[0.4, 0.5, 1.6]], fixed=("crank",))
    qd = model.assemble_velocities(q, [[4.0, 0.0, 0.0]], fixed=("crank",))
    turn = rb.PrescribedVelocity("crank", rb.Signal.polynomial([4.0, 1.0]))
    return model, qd, {"drives": [turn], "q": q}


def gear_train():
    """Two pendulums on gears with a light idler gear between them."""
    builder = rb.ModelBuilder(gravity=(0, -9.81, 0))
    for i, (name, cg, mass) in enumerate((("left", 0.3, 1.0), ("idler", 0.0, 1e-6), ("right", 0.2, 1.0))):
        builder.add_body(
            name,
            joint=rb.Revolute((0, 0, 1)),
            placement=rb.Pose((i, 0, 0)),
            inertia=rb.Inertia(mass, cg=(cg, 0, 0), inertia=(0.1 * mass,) * 3),
            passive=rb.PassiveForces(damping=0.3) if name == "right" else None,
        )
    builder.add_constraint(rb.CouplerConstraint("first", "left", "idler", ratio=-2.0))
    builder.add_constraint(rb.CouplerConstraint("second", "idler", "right", ratio=-1.5))
    model = builder.build()
    q = model.assemble([[0.2, 0.0, 0.0]], fixed=("left",))
    return model, model.assemble_velocities(q, [[1.0, 0.0, 0.0]], fixed=("left",)), {"q": q}


def controlled_chain():
    model = rb.Model.serial_chain(2)
    drives = [
        rb.Sampled(rb.PID("link1", reference=0.5, kp=5.0, ki=1.0, kd=0.3, limit=2.0), period=0.02),
        rb.PrescribedPosition("link2", rb.Signal.sines(0.4, 6.0)),
    ]
    return model, np.array([[1.0, 2.4]]), {"drives": drives}


def tumbling_tree():
    rng = np.random.default_rng(5)
    kinds = ("free", "spherical", "screw", "planar", "universal")
    model = random_tree(5, (-1, 0, 1, 0, 3), kinds, geared=("screw",))
    q = model.integrate(model.neutral(), rng.normal(size=model.nv))
    return model, rng.normal(size=(1, model.nv)), {"q": q[None]}


SYSTEMS = {
    "body in water": body_in_water,
    "springs": chain_with_springs,
    "linkage": driven_linkage,
    "gears": gear_train,
    "controllers": controlled_chain,
    "tree": tumbling_tree,
}


def simulated(system, duration, **settings):
    model, qd, given = SYSTEMS[system]()
    q = given.pop("q", np.atleast_2d(model.neutral()))
    return model.simulate(q, qd, duration, save_at=4, **given, energy_error=True, **settings)


@pytest.mark.slow_cases("springs")
@PLAIN
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_error_of_an_accurate_motion_is_small(system):
    """The work that rbchain integrates explains the change of the energy, for all forces."""
    motion = simulated(system, 0.15, rtol=1e-9, atol=1e-11)
    assert_only_round_off(motion, 1e-7)


@pytest.mark.slow
@PLAIN
@pytest.mark.parametrize("method", ["rosenbrock", "radau"])
def test_stiff_methods_have_a_small_error(method):
    assert_only_round_off(simulated("springs", 0.15, method=method), 1e-6)


@pytest.mark.slow_cases("4")
@PLAIN
@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("implicit", 1)])
def test_the_error_has_the_order_of_the_method(method, order):
    """Half the step divides the error by 2^order, within a factor of sqrt(2)."""
    model = rb.Model.serial_chain(2).vary(damping=[0.01, 0.01])
    drives = [rb.PID("link1", reference=0.5, kp=1.0, ki=0.5, kd=0.02)]
    coarse, fine = (
        model.simulate(
            [[0.3, 0.4]], [[1.0, -2.0]], 0.64, method=method, step=h, drives=drives, energy_error=True, save_at=2
        ).energy_error[0, -1]
        for h in (0.008, 0.004)
    )
    assert abs(coarse) > 1e-8
    assert np.log2(abs(coarse / fine)) == pytest.approx(order, abs=0.5)


@pytest.mark.slow
@PLAIN
def test_long_steps_of_prescribed_motions_are_resolved():
    """Prescribed motions have no error, so the steps are as long as the projection allows. The motion is exact."""
    motion = simulated("linkage", 1.5)
    assert motion.steps[0] < 20
    assert_only_round_off(motion, 1e-6)


def slide(**passive):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    joint, inertia = rb.Prismatic((1, 0, 0)), rb.Inertia(mass=1.0)
    builder.add_body("slide", joint=joint, inertia=inertia, passive=rb.PassiveForces(**passive))
    return builder.build()


@pytest.mark.fast_cases("settings0")
@PLAIN
@pytest.mark.parametrize("settings", [{}, {"method": "dop853"}, {"method": "radau"}])
def test_a_stop_that_a_body_leaves_without_a_force_takes_its_elastic_energy(settings):
    """At -4 m/s, the factor 1 + d dx/dt of the force is below zero. The body moves freely from each depth, 8 J."""
    model = slide(stop_upper=1.0, limit_stiffness=100.0, limit_damping=0.5)
    start = np.linspace(1.05, 1.5, 10)[:, None]
    motion = model.simulate(start, np.full((10, 1), -4.0), 1.0, save_at=5, energy_error=True, **settings)
    np.testing.assert_allclose(motion.q[:, -1], start - 4.0, rtol=1e-13)
    # the parts with the kink are 2^-16 of a step of at most 1 s, and the power is at most 100 * 0.5 * 4 W
    assert np.abs(motion.energy_error).max() < 2.0**-16 * 200.0 * 2.0**-16 * 4.0 + 8.0 * 1e-6


@PLAIN
@pytest.mark.parametrize("settings", [{}, {"method": "dop853"}])
@pytest.mark.parametrize("what", ["stop", "cable"])
def test_a_prescribed_motion_into_a_stop_or_a_cable_has_no_error(what, settings):
    """x = 0.137 + t from 0.137 to 2.3 m: the drive stores 100 / 2 * 1.3^2 J. Its steps are as long as the motion."""
    forces = [
        rb.SpringDamper(
            None,
            "slide",
            point_a=(0, 0, 0),
            point_b=(0, 0, 0),
            stiffness=100.0,
            damping=0.0,
            rest_length=1.0,
            tension_only=True,
        )
    ]
    model = slide(stop_upper=1.0, limit_stiffness=100.0) if what == "stop" else slide()
    drives = [rb.PrescribedPosition("slide", rb.Signal.polynomial([0.137, 1.0]))]
    settings |= {"forces": forces if what == "cable" else []}
    motion = model.simulate([[0.137]], [[1.0]], 2.163, drives=drives, energy_error=True, **settings)
    assert np.abs(motion.energy_error).max() < 0.5 * 1e-6


@pytest.mark.fast_cases("rk45")
@PLAIN
@pytest.mark.parametrize("method", ["rk45", "dop853", "radau"])
def test_a_cable_that_lets_go_while_it_is_taut_has_no_error(method):
    """Near the end of the stretch, the damper takes away the whole tension, while the cable still has energy."""
    cable = rb.SpringDamper(
        None,
        "slide",
        point_a=(0, 0, 0),
        point_b=(0, 0, 0),
        stiffness=64.47,
        damping=5.116,
        rest_length=1.0,
        tension_only=True,
    )
    motion = slide().simulate([[0.9]], [[5.163]], 2.0, method=method, forces=[cable], energy_error=True, save_at=2)
    assert motion.q[0, -1, 0] < 0.0  # it has been caught and flies back
    assert np.abs(motion.energy_error).max() < 1e-6 * 13.4


# --- the request ------------------------------------------------------------------------------------------------------


@PLAIN
@pytest.mark.parametrize("settings", [TIGHT, {"method": "rk4", "step": 0.01}, {"method": "implicit", "step": 0.01}])
def test_the_request_does_not_change_the_motion(settings):
    model, qd, given = controlled_chain()
    q = np.zeros((1, 2))
    plain = model.simulate(q, qd, 0.2, save_at=5, **given, **settings)
    motion = model.simulate(q, qd, 0.2, save_at=5, **given, **settings, energy_error=True)
    for name in ("q", "qd", "steps", "rejections", "evaluations", "end_time", "end_q", "end_qd"):
        assert getattr(plain, name).tobytes() == getattr(motion, name).tobytes()


@PLAIN
def test_without_a_request_the_error_is_refused():
    motion = slider().simulate([[0.0]], [[1.0]], 0.1, save_at=2)
    assert not motion.has_energy_error
    with pytest.raises(rb.ArgumentError, match=r"expected a trajectory from simulate\(\.\.\., energy_error=True\)"):
        _ = motion.energy_error
    with pytest.raises(rb.ArgumentError, match="energy_error is 1; expected True or False"):
        slider().simulate([[0.0]], [[1.0]], 0.1, energy_error=1, save_at=2)


@PLAIN
@pytest.mark.filterwarnings("ignore:.*no mass, inertia or rotor resists")
def test_bodies_without_inertia_in_implicit_steps_are_refused_by_name():
    model = slider(mass=0.0, stiffness=1.0, damping=1.0)
    with pytest.raises(rb.ArgumentError, match="energy_error is True, but model"):
        model.simulate([[1.0]], [[0.0]], 0.1, method="implicit", step=0.01, energy_error=True, save_at=2)


@PLAIN
@pytest.mark.parametrize("batch", [(), (0,), (2, 3)])
def test_the_error_has_the_shape_of_the_batch_and_the_times(batch, tmp_path):
    state = np.ones((*batch, 1))
    motion = slider(damping=0.3).simulate(state, state, 0.5, save_at=[0.1, 0.3], energy_error=True)
    assert motion.energy_error.shape == (*batch, 2)
    assert motion.energy_error.dtype == np.float64
    motion.save(tmp_path / "motion.npz")
    loaded = rb.load_motion(tmp_path / "motion.npz")
    np.testing.assert_array_equal(loaded.energy_error, motion.energy_error)
    np.testing.assert_array_equal(motion.to_xarray().energy_error, motion.energy_error)
    np.testing.assert_array_equal(motion.at_times([1]).energy_error, motion.energy_error[..., 1:])
    if batch == (2, 3):
        np.testing.assert_array_equal(motion[1, 2].energy_error, motion.energy_error[1, 2])


@PLAIN
def test_the_error_is_nan_after_the_end_of_a_sample():
    stop = rb.Event("slide", value=0.35, stop=True)
    motion = slider(damping=0.1).simulate(
        [[0.0], [0.0]], [[1.0], [0.1]], 1.0, save_at=11, events=[stop], energy_error=True
    )
    np.testing.assert_array_equal(np.isnan(motion.energy_error), motion.t > motion.end_time[:, None])
    assert np.isnan(motion.energy_error[0]).any()
    np.testing.assert_array_less(np.abs(np.nan_to_num(motion.energy_error)), 1e-8)


@PLAIN
def test_samples_of_a_varied_model_have_their_own_errors():
    model = slider(stiffness=40.0)
    many = model.vary(mass=[[1.0], [2.0]], stiffness=[[40.0], [10.0]])
    settings = {"method": "implicit", "step": 0.01, "save_at": 3, "energy_error": True}
    motion = many.simulate([[1.0], [1.0]], [[0.0], [0.0]], 0.5, **settings)
    for k in range(2):
        alone = many[k].simulate([[1.0]], [[0.0]], 0.5, **settings)
        np.testing.assert_allclose(motion.energy_error[k], alone.energy_error[0], rtol=1e-12)


@pytest.mark.slow
@PLAIN
def test_a_study_measures_and_reports_the_error(tmp_path):
    """Backward Euler divides the energy of a linear oscillator by 1 + h^2 k / m, for the stiffness of each sample."""
    rb.save(slider(stiffness=40.0), tmp_path / "slider.toml")
    file = tmp_path / "study.toml"
    file.write_text(
        """
        model = "slider.toml"
        samples = 8
        simulate = { duration = 0.5, method = "implicit", step = 0.01, save_at = 26, q = 0.3 }
        [vary."*.stiffness"]
        distribution = { type = "uniform", low = 10.0, high = 90.0 }
        [[measures]]
        name = "loss"
        quantity = "energy_error"
        [[measures]]
        name = "peak loss"
        quantity = "energy_error"
        over = "peak"
        """
    )
    study = rb.Study.read(file)
    results = study.run(tmp_path / "results")
    k = results.parameters.values[:, 0]
    expected = 0.5 * k * 0.3**2 * ((1 + 1e-4 * k / MASS) ** -50.0 - 1)
    assert results.loss.attrs["units"] == "J"
    np.testing.assert_allclose(results.loss, expected, rtol=1e-10)
    np.testing.assert_allclose(results["peak loss"], -expected, rtol=1e-10)
    np.testing.assert_allclose(study.motions(3).energy_error[:, -1], expected[:3], rtol=1e-10)
    assert main(["study", "report", str(tmp_path / "results")]) == 0
    assert "peak loss" in (tmp_path / "results" / "report.html").read_text()


def test_lanes_have_the_bits_of_their_samples():
    """Also for samples that end at different times, and after they have left their lane."""
    model = rb.Model.serial_chain(2)
    rng = np.random.default_rng(1)
    q, qd = rng.normal(size=(2, 19, 2))
    settings = {"save_at": 4, "energy_error": True, "rtol": 1e-7}
    motion = model.simulate(q, qd, 0.5, **settings)
    plain = model.simulate(q, qd, 0.5, save_at=4, rtol=1e-7)
    assert motion.q.tobytes() == plain.q.tobytes()
    assert 0 < np.abs(motion.energy_error).max() < 1e-5
    for k in (0, 7, 18):
        alone = model.simulate(q[k : k + 1], qd[k : k + 1], 0.5, **settings)
        assert alone.energy_error[0].tobytes() == motion.energy_error[k].tobytes()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "dtype"), [("rosenbrock", np.float64), ("moreau", np.float32)])
def test_compiled_methods_agree_with_plain_python(method, dtype):
    """The error of a damped mechanism is at most its energy times the round-off or the error of the method."""
    model = rb.Model.serial_chain(2).vary(damping=[0.02, 0.02])
    settings = {"step": 1e-3} if method == "moreau" else {}
    states = np.linspace(-1, 1, 22, dtype=dtype).reshape(11, 2)
    motion = model.simulate(states, states, 0.5, save_at=6, method=method, energy_error=True, **settings)
    plain = model.simulate(states, states, 0.5, save_at=6, method=method, **settings)
    assert motion.q.tobytes() == plain.q.tobytes()
    assert motion.energy_error.dtype == np.float64
    expected = 1e-2 if method == "moreau" else 1e-7 if dtype == np.float64 else 1e-3
    kinetic = model.energy(motion.q, motion.qd)[0].max()
    assert 0 < np.abs(motion.energy_error).max() < expected * kinetic


@pytest.mark.slow
@pytest.mark.plain_python
def test_functions_for_the_whole_batch_have_the_error_of_compiled_controllers():
    """The controller pauses the integration of all samples at its instants."""

    def torques(t, q, qd, parameters):
        return -2.0 * q - 0.1 * qd

    model = rb.Model.serial_chain(2)
    motion = model.simulate(
        np.ones((3, 2)), np.zeros((3, 2)), 0.2, save_at=5, drives=[rb.Sampled(torques, period=0.02)], energy_error=True
    )
    energy = energy_of(motion)
    assert np.abs(energy - energy[:, :1]).max() > 1e-3
    np.testing.assert_array_less(np.abs(motion.energy_error), 1e-7)


# --- elastic energy ---------------------------------------------------------------------------------------------------


@PLAIN
def test_the_elastic_energy_of_joints_is_the_potential_of_their_forces():
    """Differences of the energy over dq are minus the forces at rest, of springs and stops on both sides."""
    model = slider(
        stiffness=3.0, cubic_stiffness=5.0, rest_position=0.1, stop_lower=-0.2, stop_upper=0.3, limit_stiffness=80.0
    )
    q, dq = np.linspace(-0.61, 0.69, 14)[:, None], 1e-5

    def elastic(x):
        motion = model.simulate(x, np.zeros_like(x), 1e-3, save_at=2)
        return dataclasses.replace(motion, q=x[:, None], qd=0 * x[:, None], t=motion.t[:1]).elastic_energy[:, 0]

    slope = (elastic(q + dq) - elastic(q - dq)) / (2 * dq)
    np.testing.assert_allclose(slope, -model.passive_forces(q, np.zeros_like(q))[:, 0], rtol=1e-7, atol=1e-8)
