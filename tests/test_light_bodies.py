"""Light and massless bodies between constraints: closed forms, 50 digits, batches, and refusals."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbchain as rb

from .oracles.maximal_coordinates import as_doubles, closed_chain_dynamics
from .quantities import derivative

plain = pytest.mark.plain_python
NOTHING = rb.Inertia(0.0)
HINGE, UP = rb.Revolute((0, 0, 1)), rb.Prismatic((0, 0, 1))
# The condition number of the equations of light bodies is up to 1e6, so that round-off grows to 1e-9 at most.
TOLERANCE = {np.float64: 1e-9, np.float32: 1e-3}


def wheels(middle):
    """Three wheels, each of which turns the next one at -2 times its speed. The middle one has the given inertia."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name, moment in (("first", 1.0), ("middle", middle), ("last", 1.0)):
        builder.add_body(name, joint=HINGE, inertia=rb.Inertia(1.0, inertia=(moment, moment, moment)))
    builder.add_constraint(rb.CouplerConstraint("a", joint="middle", other="first", ratio=-2.0))
    builder.add_constraint(rb.CouplerConstraint("b", joint="last", other="middle", ratio=-2.0))
    return builder.build()


@plain
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("middle", [1.0, 1e-3, 1e-5, 1e-8, 1e-13, 1e-16, 0.0])
def test_a_light_wheel_passes_the_torque_on(middle, dtype):
    """The first wheel moves J1 + 4 J2 + 16 J3. The multipliers are the torques of the gears on the driven wheels."""
    model = wheels(middle)
    qdd = np.array([1.0, -2.0, 4.0]) / (1.0 + 4.0 * middle + 16.0)
    torques = [middle * qdd[1] + 2.0 * qdd[2], qdd[2]]  # of gear a: J2 qdd2 and the torque of gear b at the wheel
    rest, tau = np.zeros(3, dtype), np.array([1.0, 0, 0], dtype)
    atol = TOLERANCE[dtype]
    np.testing.assert_allclose(model.forward_dynamics(rest, rest, tau), qdd, rtol=0, atol=atol)
    np.testing.assert_allclose(model.constraint_forces(rest, rest, tau)[1], torques[1], rtol=0, atol=2 * atol)
    found = model.constraint_forces(rest, rest, tau)[0] + 2.0 * model.constraint_forces(rest, rest, tau)[1]
    np.testing.assert_allclose(found, middle * qdd[1], rtol=0, atol=4 * atol)
    batch = np.tile(tau, (9, 1))
    np.testing.assert_array_equal(
        model.forward_dynamics(np.tile(rest, (9, 1)), 0 * batch, batch)[1:],
        np.tile(model.forward_dynamics(rest[None], rest[None], tau[None]), (8, 1)),
    )


@plain
@pytest.mark.parametrize("pulley", [1e-6, 1e-13, 0.0])
def test_a_movable_pulley_has_the_accelerations_of_the_textbook(pulley):
    """Mass m1 on one side of a fixed pulley, a movable pulley without mass on the other, over which m2 and m3 hang.

    The tension of the upper rope is T = 8 m1 m2 m3 g / (m1 (m2 + m3) + 4 m2 m3), that of the lower one T / 2. A pulley
    of mass m changes them by a fraction of about m / m1.
    """
    g, m1, m2, m3 = 9.81, 4.0, 3.0, 1.0
    builder = rb.ModelBuilder(gravity=(0, 0, -g))
    builder.add_body("m1", joint=UP, inertia=rb.Inertia(m1))
    builder.add_body("pulley", joint=UP, inertia=rb.Inertia(pulley))
    builder.add_body("m2", parent="pulley", joint=UP, inertia=rb.Inertia(m2))
    builder.add_body("m3", parent="pulley", joint=UP, inertia=rb.Inertia(m3))
    builder.add_constraint(rb.CouplerConstraint("upper", joint="pulley", other="m1", ratio=-1.0))
    builder.add_constraint(rb.CouplerConstraint("lower", joint="m3", other="m2", ratio=-1.0))
    model = builder.build()
    T = 8.0 * m1 * m2 * m3 * g / (m1 * (m2 + m3) + 4.0 * m2 * m3)
    up = T / m1 - g
    relative = T / 2.0 / m2 - g + up
    rest, atol = np.zeros(4), 100.0 * pulley + 1e-8
    qdd = model.forward_dynamics(rest, rest, rest)
    np.testing.assert_allclose(qdd, [up, -up, relative, -relative], rtol=0, atol=atol)
    np.testing.assert_allclose(model.constraint_forces(rest, rest, rest), [T, T / 2.0], rtol=0, atol=10 * atol)
    assert np.abs(model.force_balance_residual(rest, rest, rest)).max() < 1e-9 * T


def four_bar(mass, length=1.0, place=(0.0, 0.0, 0.0)):
    """A four-bar mechanism in the x-y plane, closed by a hinge (two of its rows depend on the others)."""

    def rod(size, m):
        return rb.Inertia(m, cg=(size / 2, 0, 0), inertia=m * size**2 / 12 * np.array([0.01, 1.0, 1.0]))

    builder = rb.ModelBuilder(gravity=(0, -9.81, 0))
    builder.add_body("crank", joint=HINGE, placement=rb.Pose(place), inertia=rod(0.3 * length, 1.0))
    builder.add_body(
        "coupler", parent="crank", joint=HINGE, placement=rb.Pose((0.3 * length, 0, 0)), inertia=rod(0.9 * length, mass)
    )
    builder.add_body(
        "rocker", joint=HINGE, placement=rb.Pose(np.add(place, (length, 0, 0))), inertia=rod(0.6 * length, 1.0)
    )
    tip = rb.HingeConstraint("tip", "coupler", "rocker", point_a=(0.9 * length, 0, 0), point_b=(0.6 * length, 0, 0))
    builder.add_constraint(tip)
    return builder.build(), [tip]


def moving(model):
    q = model.assemble([1.0, -0.5, 1.5], fixed=["crank"])
    return q, model.assemble_velocities(q, [5.0, 0, 0], fixed=["crank"])


@plain
@pytest.mark.parametrize(
    ("mass", "length", "place"),
    [
        (1e-6, 1.0, (0, 0, 0)),
        (1e-12, 1.0, (0, 0, 0)),
        (1e-12, 1e-3, (0, 0, 0)),
        (1e-12, 1.0, (1e3, 0, 0)),
    ],
)
def test_a_light_coupler_agrees_with_50_digits(mass, length, place):
    model, constraints = four_bar(mass, length, place)
    q, qd = moving(model)
    tau = np.array([1.0, 0.0, 0.0]) * length
    expected = as_doubles(closed_chain_dynamics(model, constraints, q, qd, tau)[0])
    found = model.forward_dynamics(q, qd, tau)
    # the position has the round-off of the place, relative to the length of the crank
    round_off = 1e-15 * (1.0 + np.linalg.norm(place) / length)
    np.testing.assert_allclose(found, expected, rtol=0, atol=(1e-9 + 1e3 * round_off) * np.abs(expected).max())
    single = model.forward_dynamics(*(x.astype(np.float32) for x in (q, qd, tau)))
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-3 * np.abs(expected).max())


@plain
def test_a_massless_coupler_is_the_limit_of_light_ones():
    """The accelerations depend on the mass m of the coupler as a + b m + O(m^2)."""
    (massless, _), (light, _) = four_bar(0.0), four_bar(1e-6)
    q, qd = moving(massless)
    tau = np.array([1.0, 0.0, 0.0])
    limit = massless.forward_dynamics(q, qd, tau)
    np.testing.assert_allclose(light.forward_dynamics(q, qd, tau), limit, rtol=0, atol=1e-4)
    assert massless.bodies_without_inertia == ()
    with pytest.raises(rb.ModelError, match=r"mass_matrix_inverse.*coupler"):
        massless.mass_matrix_inverse(q)

    # power balance: the rate of the energy is the power of the torque
    def energy(s):
        return np.sum(massless.energy(massless.integrate(q, s * qd + s * s / 2 * limit), qd + s * limit))

    assert abs(derivative(energy) - tau @ qd) < 1e-7 * abs(tau @ qd)


@plain
@pytest.mark.parametrize("mass", [1e-12, 0.0])
def test_derivatives_with_light_bodies_agree_with_differences(mass):
    model, _ = four_bar(mass)
    q, qd = moving(model)
    tau = np.array([1.0, 0.2, -0.1])
    _, by_qd, by_tau = model.forward_dynamics_derivatives(q, qd, tau)
    along = np.array([0.3, -0.2, 0.5])
    slope = derivative(lambda s: model.forward_dynamics(q, qd, tau + s * along))
    np.testing.assert_allclose(by_tau @ along, slope, rtol=0, atol=1e-6 * np.abs(slope).max())
    closed = qd / np.linalg.norm(qd)  # keeps the loop closed
    slope = derivative(lambda s: model.forward_dynamics(q, qd + s * closed, tau))
    np.testing.assert_allclose(by_qd @ closed, slope, rtol=0, atol=1e-6 * np.abs(slope).max())


@plain
def test_samples_with_light_massless_and_heavy_bodies_are_the_models_with_their_numbers():
    model, _ = four_bar(0.5)
    factors = np.array([1.0, 0.0, 1e-12, 0.3, 1e-6, 0.0, 1.0, 2.0, 1e-9, 1.0])
    many = model.vary(
        mass=model.mass * np.stack([1 + 0 * factors, factors, 1 + 0 * factors], -1),
        inertia=model.inertia * np.stack([1 + 0 * factors, factors, 1 + 0 * factors], -1)[..., None, None],
    )
    q, qd = moving(model)
    tau = np.array([1.0, 0.0, 0.0])
    found = many.forward_dynamics(q, qd, tau)
    assert np.isfinite(found).all()
    for sample in range(len(factors)):
        np.testing.assert_array_equal(many[sample].forward_dynamics(q[None], qd[None], tau[None])[0], found[sample])


def fingers(link=NOTHING, coupled=True):
    """A rod with two fingers; `coupled`: the second one moves against the rod, or else the first one has mass."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body(
        "rod", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(2.0, cg=(0.1, 0, 0.3), inertia=(0.2, 0.3, 0.25))
    )
    builder.add_body("left", parent="rod", joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((0, 0.1, 0.5)), inertia=link)
    builder.add_body(
        "right", parent="rod", joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((0, -0.1, 0.5)), inertia=NOTHING
    )
    builder.add_constraint(rb.CouplerConstraint("mimic", joint="right", other="rod" if coupled else "left", ratio=-1.0))
    return builder


def screw_press(offset=0.1, pitch=0.02, tilt=0.0, ratio=0.3):
    """A screw with a light nut on it, which a gear couples to a slide."""
    builder = rb.ModelBuilder(gravity=(0.5, 0, -9.81))
    heavy = rb.Inertia(2.0, cg=(offset, 0, 0), inertia=(0.1, 0.1, 0.1))
    turned = rb.Pose((0.1, 0, 0), Rotation.from_euler("y", tilt).as_matrix())
    nut = rb.Inertia(1e-8, inertia=1e-9 * np.eye(3))
    builder.add_body("screw", joint=rb.Screw((0, 0, 1), pitch=pitch), inertia=heavy)
    builder.add_body("nut", parent="screw", joint=HINGE, placement=turned, inertia=nut)
    builder.add_body("slide", joint=UP, inertia=rb.Inertia(3.0))
    builder.add_constraint(rb.CouplerConstraint("gear", joint="slide", other="nut", ratio=ratio))
    return builder.build()


@plain
@pytest.mark.parametrize(
    ("field", "argument"),
    [
        ("cg", "offset"),
        ("pitch", "pitch"),
        ("placement_rotation", "tilt"),
        ("constraint_ratio", "ratio"),
    ],
)
def test_each_parameter_can_be_the_only_one_that_varies(field, argument):
    """The batch has two axes, of which the parameter has the first one and the damping the second one."""
    values = [0.1, 0.2, 0.4]
    models = [screw_press(**{argument: value}) for value in values]
    damping = np.broadcast_to([[0.0], [0.5]], (2, 3))
    many = models[0].vary(**{field: np.stack([getattr(model, field) for model in models])[:, None], "damping": damping})
    q, qd = np.full((3, 2, 3), 0.1), np.full((3, 2, 3), 0.2)
    q[..., 2], qd[..., 2] = 0.3 * q[..., 1], 0.3 * qd[..., 1]
    found = many.forward_dynamics(q, qd, 0.0, passive=True)
    for k, model in enumerate(models):
        for j in range(2):
            expected = model.replace(damping=damping[j]).forward_dynamics(q[k, j], qd[k, j], 0.0, passive=True)
            np.testing.assert_allclose(found[k, j], expected, rtol=1e-8, atol=1e-8)


@plain
def test_massless_bodies_that_no_constraint_determines_are_refused_by_name():
    with pytest.warns(UserWarning, match=r"motion of \['left'\]"):
        model = fingers().build()
    with pytest.raises(rb.ModelError, match=r"forward_dynamics.*\['left'\]"):
        model.forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3))
    with pytest.warns(UserWarning, match=r"motion of \['left', 'right'\]"):  # each may move, if the other one follows
        fingers(coupled=False).build()
    whole = fingers(rb.Inertia(0.1, cg=(0, 0, 0.1), inertia=(1e-3, 1e-3, 1e-3)), coupled=False).build()
    assert whole.bodies_without_inertia == ()
    qdd = whole.forward_dynamics([0.1, 0.2, -0.2], np.zeros(3), [0.0, 1.0, 0.0])
    assert np.isfinite(qdd).all()
    assert qdd[2] == pytest.approx(-qdd[1], rel=1e-12)


@plain
def test_a_massless_sample_that_no_constraint_determines_fails_alone():
    whole = fingers(rb.Inertia(0.1, cg=(0, 0, 0.1), inertia=(1e-3, 1e-3, 1e-3)), coupled=False).build()
    mass = np.tile(whole.mass, (10, 1))
    inertia = np.tile(whole.inertia, (10, 1, 1, 1))
    mass[4, 1], inertia[4, 1] = 0.0, 0.0
    q, qd = np.tile([0.1, 0.2, -0.2], (10, 1)), np.zeros((10, 3))
    found = whole.vary(mass=mass, inertia=inertia).forward_dynamics(q, qd, qd)
    good = whole.vary(mass=np.tile(whole.mass, (10, 1))).forward_dynamics(q, qd, qd)
    assert np.isnan(found[4]).all()
    np.testing.assert_array_equal(np.delete(found, 4, 0), np.delete(good, 4, 0))
    assert whole.vary(mass=mass[:0], inertia=inertia[:0]).forward_dynamics(q[:0], qd[:0], qd[:0]).shape == (0, 3)


MIMIC = """<robot name="gripper"><link name="base"/>
  <link name="rod"><inertial><origin xyz="0.1 0.02 0.3"/><mass value="2"/>
    <inertia ixx="0.2" iyy="0.3" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="finger"/>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>
  <joint name="grip" type="continuous"><parent link="rod"/><child link="finger"/><axis xyz="0 1 0"/>
    <mimic joint="hinge" multiplier="-1"/></joint></robot>"""


@plain
def test_a_massless_link_with_a_mimic_joint_moves_with_its_joint(tmp_path, recwarn):
    """Gravity turns the rod about the hinge with m g (x cos q + z sin q) / (Iyy + m (x^2 + z^2))."""
    file = tmp_path / "gripper.urdf"
    file.write_text(MIMIC)
    model = rb.load(file)
    assert not recwarn.list
    q, m, x, z = 0.2, 2.0, 0.1, 0.3
    expected = (1.0 + m * 9.81 * (x * np.cos(q) + z * np.sin(q))) / (0.3 + m * (x**2 + z**2))
    found = model.forward_dynamics([q, -q], [0, 0], [1.0, 0])
    np.testing.assert_allclose(found, [expected, -expected], rtol=1e-9)
    assert np.abs(model.force_balance_residual([q, -q], [0, 0], [1.0, 0])).max() < 1e-9


@plain
def test_a_light_body_moves_with_the_others_and_keeps_the_energy():
    model, _ = four_bar(1e-12)
    q, qd = moving(model)
    motion = model.vary(mass=model.mass[None]).simulate(q[None], qd[None], 0.3, save_at=4)
    assert motion.success, motion.message
    assert np.abs(model.constraint_residual(motion.q)).max() < 1e-10
    total = sum(model.energy(motion.q, motion.qd))
    np.testing.assert_allclose(total, total[0, 0], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("mass", [1e-12, 0.0])
@pytest.mark.parametrize("method", ["rosenbrock", "radau", "rk4", "implicit", "moreau"])
def test_all_methods_move_light_bodies(mass, method):
    model, _ = four_bar(mass)
    q, qd = moving(model)
    fixed = {"step": 1e-3} if method in ("rk4", "implicit", "moreau") else {}
    reference = model.simulate(q, qd, 0.3, save_at=4)
    motion = model.simulate(q, qd, 0.3, save_at=4, method=method, **fixed)
    assert motion.success, motion.message
    tolerance = {"implicit": 0.05, "moreau": 1e-3}.get(method, 1e-6)  # first order, and second order
    np.testing.assert_allclose(motion.q, reference.q, rtol=0, atol=tolerance)
