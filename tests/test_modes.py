"""`Model.modes`: natural frequencies, damping ratios and shapes, compared with closed forms."""

import pickle

import numpy as np
import pytest

import rbchain as rb

PLAIN = pytest.mark.plain_python
G = 10.0


def hanging(*bodies):
    """Bodies that hang on each other by hinges about y: (name, parent, place, inertia)."""
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    for name, parent, place, inertia in bodies:
        builder.add_body(
            name, parent=parent, joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((0, 0, place)), inertia=inertia
        )
    return builder.build()


@PLAIN
def test_a_double_pendulum_has_the_frequencies_of_its_closed_form():
    """Two equal thin rods: w^2 = 3 g / l (1 -+ 2 / sqrt 7)."""
    length = 1.5
    rod = rb.Inertia(2.0, cg=(0, 0, -length / 2), inertia=np.diag([2.0 * length**2 / 12] * 2 + [1e-3]))
    found = hanging(("upper", None, 0.0, rod), ("lower", "upper", -length, rod)).modes([0.0, 0.0])
    expected = np.sqrt(3 * G / length * (1 + np.array([-2, 2]) / np.sqrt(7)))
    np.testing.assert_allclose(2 * np.pi * found.frequency, expected, rtol=1e-12)
    np.testing.assert_array_equal(found.damping_ratio, [0.0, 0.0])
    np.testing.assert_allclose(found.eigenvalue, 1j * expected, rtol=1e-12)
    assert (found.shape.imag == 0).all()
    ratio = (found.shape[:, 1] / found.shape[:, 0]).real  # of the relative angles: (-1 + 2 sqrt 7) / 3 - 1 for one mode
    np.testing.assert_allclose(ratio, (-1 + np.array([2, -2]) * np.sqrt(7)) / 3 - 1, rtol=1e-10)


@PLAIN
def test_a_chain_of_torsion_springs_approaches_the_beam_of_euler_and_bernoulli():
    """A cantilever: w_k = b_k^2 sqrt(E I / (m l^4)) with cos b cosh b = -1."""
    roots, found = np.array([1.875104068711961, 4.694091132974175]), []
    for n in (8, 16):
        stiffness = np.full(n, float(n))  # E I / h for E I = l = 1; the clamped end has half an element
        stiffness[0] *= 2.0
        beam = rb.Model.serial_chain(n, length=1 / n, mass=1 / n, gravity=(0, 0, 0)).replace(stiffness=stiffness)
        found.append(2 * np.pi * beam.modes(np.zeros(n)).frequency[:2])
    errors = [abs(x / roots**2 - 1).max() for x in found]
    assert errors[1] < 0.3 * errors[0] < 0.02
    extrapolated = found[1] + (found[1] - found[0]) / 3  # errors of second order
    np.testing.assert_allclose(extrapolated, roots**2, rtol=5e-4)


@PLAIN
def test_a_bifilar_pendulum_twists_and_swings_and_turns_freely_about_its_bar():
    """A bar on two parallel rods of length l at the distance b from its cg: w^2 = m g b^2 / (I l) and g / l, twice."""
    m, b, length, inertia = 3.0, 0.4, 1.2, 0.25
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("bar", joint=rb.Free(), inertia=rb.Inertia(m, inertia=np.diag([0.02, inertia, inertia])))
    for name, x in (("left", -b), ("right", b)):
        above, on_bar = (x, 0, length), (x, 0, 0)
        builder.add_constraint(rb.DistanceConstraint(name, None, "bar", point_a=above, point_b=on_bar, length=length))
    found = builder.build().modes([[0, 0, 0, 0, 0, 0, 1]])
    expected = np.sqrt([0.0, m * G * b**2 / (inertia * length), G / length, G / length])
    np.testing.assert_allclose(2 * np.pi * found.frequency[0], np.sort(expected), rtol=1e-10, atol=0)
    assert found.eigenvalue[0, 0] == 0  # the bar turns about its axis
    np.testing.assert_allclose(abs(found.shape[0, 0]), np.sqrt([0, 0, 0, 1 / 0.02, 0, 0]), atol=1e-10)


@PLAIN
def test_water_adds_mass_and_carries_a_part_of_the_weight():
    """A sphere on a massless rod: (I + (m + m') l^2) w^2 = (m - rho V) g l, with m' = rho V / 2."""
    length, radius, density = 0.8, 0.1, 1000.0
    builder = rb.ModelBuilder(gravity=(0, 0, -G), fluid_density=density)
    volume = 4 / 3 * np.pi * radius**3
    builder.add_body(
        "sphere",
        joint=rb.Revolute((0, 1, 0)),
        inertia=rb.Inertia.sphere(radius, mass=12.0).moved(rb.Pose((0, 0, -length))),
        immersion=rb.Immersion.sphere(radius, center=(0, 0, -length)),
    )
    found = builder.build().modes([0.0])
    mass = 0.4 * 12.0 * radius**2 + (12.0 + density * volume / 2) * length**2
    expected = np.sqrt((12.0 - density * volume) * G * length / mass)
    np.testing.assert_allclose(2 * np.pi * found.frequency, [expected], rtol=1e-10)


def free_chain(damping):
    """A free body with two links on springs, without gravity."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    link = rb.Inertia(1.0, cg=(0.3, 0.1, 0), inertia=(0.05, 0.1, 0.1))
    builder.add_body("hull", joint=rb.Free(), inertia=rb.Inertia(5.0, inertia=(0.4, 0.5, 0.6)))
    for name, parent, axis in (("first", "hull", (0, 1, 0)), ("second", "first", (0, 0, 1))):
        spring = rb.PassiveForces(stiffness=30.0, damping=damping)
        place = rb.Pose((0.5, 0.1, 0.2))
        builder.add_body(name, parent=parent, joint=rb.Revolute(axis), placement=place, inertia=link, passive=spring)
    return builder.build()


@PLAIN
@pytest.mark.parametrize("damping", [0.0, 0.2])
def test_rigid_body_motions_have_frequencies_of_exactly_zero(damping):
    model = free_chain(damping)
    q = model.neutral()
    q[:3] = 1.0, 2.0, 3.0
    found = model.modes(q)
    assert (found.eigenvalue[:6] == 0).all()
    assert (found.damping_ratio[:6] == 0).all()
    assert (found.frequency[6:] > 0.5).all()
    assert ((found.damping_ratio[6:] > 1e-3) == (damping > 0)).all()
    assert found.count == 8
    np.testing.assert_allclose(found.shape[:6, 6:], 0.0, atol=1e-12)  # the springs do not move
    M = model.mass_matrix(q)
    np.testing.assert_allclose([x.conj() @ M @ x for x in found.shape], 1.0, rtol=1e-12)
    # the free motions of the springs with the mass matrix of the whole mechanism: det(K - w^2 / inv(M)_ss) = 0
    inverse = np.linalg.inv(M)[6:, 6:]
    values = np.linalg.eigvals(np.block([[np.zeros((2, 2)), np.eye(2)], [-30.0 * inverse, -damping * inverse]]))
    expected = np.array(sorted(values[values.imag > 0], key=abs))
    np.testing.assert_allclose(found.eigenvalue[6:], expected, rtol=1e-10, atol=1e-12)


@PLAIN
@pytest.mark.parametrize(("axis", "stiffening"), [((0, 0, 1), 0.0), ((0, 1, 0), 1.0)])
def test_a_blade_on_a_rotating_hub_is_stiffened_by_its_rotation(axis, stiffening):
    """w^2 = W^2 a S / I in the plane of rotation, and W^2 (1 + a S / I) out of it, with S = m c."""
    W, a, m, c = 7.0, 0.3, 2.0, 0.4
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("hub", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    blade = rb.Inertia(m, cg=(c, 0, 0), inertia=np.diag([0.0, 0.1, 0.1]))
    place = rb.Pose((a, 0, 0))
    builder.add_body("blade", parent="hub", joint=rb.Revolute(axis), placement=place, inertia=blade)
    hub = rb.PrescribedPosition("hub", rb.Signal.polynomial([0.0, W]))
    found = builder.build().modes([0.0, 0.0], drives=[hub], t=[0.0, 0.4])
    expected = W * np.sqrt(stiffening + a * m * c / (0.1 + m * c**2))
    np.testing.assert_allclose(2 * np.pi * found.frequency, [[expected]] * 2, rtol=1e-10)


@PLAIN
def test_controllers_move_eigenvalues_to_the_roots_of_the_characteristic_polynomial():
    """An inverted rod under PID: I s^3 + kd s^2 + (kp - m g l / 2) s + ki = 0, and without a controller."""
    rod = rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, -G, 0))
    inertia = 1.5
    found = rod.modes([np.pi / 2], drives=[rb.PID("link1", np.pi / 2, kp=40.0, ki=6.0, kd=3.0)])
    roots = np.roots([inertia, 3.0, 40.0 - 15.0, 6.0])
    expected = np.array(sorted(roots[roots.imag >= 0], key=abs))
    np.testing.assert_allclose(found.eigenvalue, expected, rtol=1e-9)
    np.testing.assert_allclose(found.frequency, abs(expected) / (2 * np.pi), rtol=1e-9)
    np.testing.assert_allclose(found.damping_ratio, -expected.real / abs(expected), rtol=1e-9)
    upright = rod.modes([np.pi / 2])
    np.testing.assert_allclose(upright.eigenvalue, np.sqrt(G) * np.array([-1, 1]), rtol=1e-12)
    np.testing.assert_array_equal(upright.damping_ratio, [1.0, -1.0])


@PLAIN
def test_each_sample_of_a_batch_has_its_own_modes():
    rod = rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, -G, 0))
    found = rod.modes([[-np.pi / 2], [np.pi / 2], [np.nan]])
    assert found.count.tolist() == [1, 2, 0]
    assert found.success.tolist() == [True, True, False]
    np.testing.assert_allclose(found.eigenvalue[0], [1j * np.sqrt(G), np.nan], rtol=1e-12)
    np.testing.assert_array_equal(found[1].eigenvalue, found.eigenvalue[1])
    assert (len(found), found[1:].shape.shape) == (3, (2, 2, 1))
    empty = rod.modes(np.zeros((0, 1)))
    assert (empty.frequency.shape, empty.shape.shape, empty.success.shape) == ((0, 1), (0, 1, 1), (0,))
    lengths = np.array([0.5, 2.0])
    many = rod.vary({"link1.cg.x": lengths}).modes([-np.pi / 2])
    expected = np.sqrt(2.0 * G * lengths / (2.0 * 1.5**2 / 12 + 2.0 * lengths**2)) / (2 * np.pi)
    np.testing.assert_allclose(many.frequency[:, 0], expected, rtol=1e-12)


@PLAIN
def test_a_state_away_from_an_equilibrium_shows_its_acceleration():
    rod = rb.Model.serial_chain(1, length=1.5, gravity=(0, -G, 0))
    assert rod.modes([-np.pi / 2]).acceleration == pytest.approx([0.0], abs=1e-12)
    assert rod.modes([0.0]).acceleration == pytest.approx([-G])


@PLAIN
def test_modes_keep_their_identity_where_frequencies_cross():
    """Two rods that hang from the world beside each other. The first one becomes stiffer than the second one."""
    builder = rb.ModelBuilder(gravity=(0, -10.0, 0))
    for name, k in (("first", 1.0), ("second", 2.0)):
        rod = rb.Inertia(1.0, cg=(0, -0.5, 0), inertia=(1 / 12, 0, 1 / 12))
        elastic = rb.PassiveForces(stiffness=k)
        builder.add_body(name, joint=rb.Revolute((0, 0, 1)), inertia=rod, passive=elastic)
    stiffness = np.linspace(0.1, 4.0, 6)
    sweep = builder.build().vary({"first.stiffness": stiffness})
    expected = np.sqrt(3 * np.stack([5 + stiffness, np.full(6, 7.0)], -1)) / (2 * np.pi)
    found = sweep.modes(order="shape")
    np.testing.assert_allclose(found.frequency, expected, rtol=1e-12)
    assert (abs(found.shape[:, 0, 1]) < 1e-12).all()
    np.testing.assert_allclose(sweep.modes().frequency, np.sort(expected, -1), rtol=1e-12)
    # an overdamped mode has two entries, of which the first sample has one
    damped = builder.build().vary({"first.damping": [0.0, 50.0, 0.1]}).modes(order="shape")
    assert damped.count.tolist() == [2, 3, 2]
    np.testing.assert_allclose(damped.frequency[:, 1], np.sqrt(21.0) / (2 * np.pi), rtol=1e-12)
    with pytest.raises(rb.ArgumentError, match="order is 'energy'"):
        sweep.modes(order="energy")


@PLAIN
def test_a_campbell_diagram_shows_frequencies_damping_and_orders():
    """Two decoupled slides, whose frequencies cross; the lower one is damped."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name, axis, damping in (("x", (1, 0, 0), 0.0), ("y", (0, 1, 0), 0.4)):
        elastic = rb.PassiveForces(stiffness=2.0, damping=damping)
        builder.add_body(name, joint=rb.Prismatic(axis), inertia=rb.Inertia(1.0), passive=elastic)
    stiffness = np.linspace(1.0, 4.0, 7)
    found = builder.build().vary({"x.stiffness": stiffness}).modes(order="shape")
    above, below = found.plot(stiffness, label="stiffness (N/m)", orders=[2]).axes
    lines = {line.get_label(): line.get_xydata() for line in above.get_lines()}
    assert [*lines] == ["mode 0", "mode 1", "order 2"]
    np.testing.assert_allclose(lines["mode 0"], np.stack([stiffness, np.sqrt(stiffness) / (2 * np.pi)], -1))
    np.testing.assert_allclose(lines["mode 1"][:, 1], np.sqrt(2.0) / (2 * np.pi))
    np.testing.assert_allclose(lines["order 2"][:, 1], 2 * stiffness)
    ratios = [line.get_ydata() for line in below.get_lines()]
    np.testing.assert_allclose(ratios, np.outer([0.0, 0.4 / (2 * np.sqrt(2.0))], np.ones(7)), atol=1e-15)
    assert below.get_xlabel() == "stiffness (N/m)"


@PLAIN
@pytest.mark.parametrize(
    ("parameter", "keys", "message"),
    [
        ([1.0, 2.0], {}, r"parameter is .*of shape \(2,\), and the modes have the batch shape \(3,\)"),
        ([1.0, np.nan, 2.0], {}, "a finite number for each of its samples"),
        ([1.0, 2.0, 3.0], {"orders": 2}, "orders is 2; expected a list of finite numbers"),
    ],
)
def test_wrong_arguments_of_campbell_diagrams_are_refused(parameter, keys, message):
    found = rb.Model.serial_chain(1).modes(np.zeros((3, 1)))
    with pytest.raises(rb.ArgumentError, match=message):
        found.plot(parameter, **keys)


@PLAIN
def test_a_motion_of_a_mode_solves_the_linear_equations():
    """M q'' + K q = 0 for small amplitudes, by the accelerations of each sample of a varied model."""
    arm = rb.Model.serial_chain(2, length=1.5, gravity=(0, -G, 0)).vary({"link1.mass": [0.1, 0.4]})
    found = arm.modes([-np.pi / 2, 0.0])
    for sample in range(2):
        one, size = found[sample], 1e-5
        motion = one.motion(1, amplitude=size)
        w = 2 * np.pi * one.frequency[1]
        change = motion.q - [-np.pi / 2, 0.0]
        np.testing.assert_allclose(abs(change).max(), size, rtol=1e-9)
        np.testing.assert_allclose(motion.t[-1], 2 * np.pi / w, rtol=1e-12)
        found_rates = arm[sample].accelerations(motion.q, 0.0 * motion.qd)
        np.testing.assert_allclose(found_rates, -(w**2) * change, atol=1e-8 * w**2 * size)
        np.testing.assert_allclose(motion.qd[0], 0.0, atol=1e-15)
        np.testing.assert_allclose(abs(motion.qd).max(), w * size, rtol=1e-9)
        assert motion.plot("states").axes
    with pytest.raises(rb.ArgumentError, match="expected the modes of one sample"):
        found.motion(0)
    with pytest.raises(rb.ArgumentError, match="mode is 2"):
        found[0].motion(2)
    free = rb.Model.serial_chain(1, gravity=(0, 0, 0)).modes([0.0])
    with pytest.raises(rb.ArgumentError, match="mode 0 does not oscillate"):
        free.motion(0)


@PLAIN
def test_results_of_the_linear_analysis_can_be_pickled():
    arm = rb.Model.serial_chain(2).vary({"link1.mass": [0.1, 0.4]})
    control = {"drives": [rb.PID("link1", 0.0, kp=9.0, kd=1.0)]}
    states = np.zeros((2, 2))
    for found in (
        arm.modes(states),
        arm.linearize(states),
        arm.equilibrium(states),
        arm.margins(states, cut="link1", **control),
        arm.frequency_response([1.0], states),
    ):
        copy = pickle.loads(pickle.dumps(found))
        assert type(copy) is type(found)
        np.testing.assert_array_equal(copy[1].success, found[1].success)


@PLAIN
def test_samples_of_a_loop_may_need_different_independent_coordinates():
    """x = L cos a and y = L sin a: at a = 0 only y moves, and at a = pi/2 only x, with w^2 = (k2 - k1) / m."""
    k, m = np.array([[1.0, 5.0], [7.0, 2.0]]), np.array([1.5, 0.8])
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name, axis, mass in zip("xy", ((1, 0, 0), (0, 1, 0)), m, strict=True):
        builder.add_body(name, joint=rb.Prismatic(axis), inertia=rb.Inertia(mass))
    builder.add_constraint(rb.DistanceConstraint("rod", "x", "y", point_a=(0, 0, 0), point_b=(0, 0, 0), length=0.7))
    model = builder.build().vary(stiffness=k)
    rest = model.equilibrium([[0.7, 0.0], [0.0, 0.7]])
    assert rest.success.all()
    assert rest.stable.all()
    found = model.modes(rest.q)
    assert found.success.all()
    w = np.sqrt(abs(k[:, 1] - k[:, 0]) / m[::-1])
    np.testing.assert_allclose(found.frequency[:, 0] * 2 * np.pi, w, rtol=1e-12)
    alone = model[1].modes(rest.q[1])
    np.testing.assert_array_equal(found.eigenvalue[1], alone.eigenvalue)
