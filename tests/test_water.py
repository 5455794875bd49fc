"""Bodies in water: compared with Kirchhoff's equations, sums over Jacobians, and Lamb's values."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad

import rbchain as rb
from rbchain.model.immersion import shifted
from tests.mechanisms import JOINTS, random_inertia, random_rotation
from tests.test_strip_drag import integral_of_drag

pytestmark = [pytest.mark.plain_python, pytest.mark.quick]
TREE = [-1, 0, 1, 0, 3]
KINDS = {
    "one_dof_tree": ("revolute", "prismatic", "screw"),
    "vehicle_with_arm": ("free", "revolute", "spherical", "universal"),
}


def immersed_tree(kinds, drag=1.0, seed=3):
    """A tree of bodies with full added-mass and damping matrices."""
    rng = np.random.default_rng(seed)
    builder = rb.ModelBuilder(gravity=rng.normal(size=3) * 5, fluid_density=1000.0)
    for i, p in enumerate(TREE):
        root = rng.normal(size=(6, 6))
        builder.add_body(
            f"body{i}",
            parent=None if p < 0 else f"body{p}",
            joint=JOINTS[kinds[i % len(kinds)]](rng),
            placement=rb.Pose(rng.normal(size=3) * 0.4, random_rotation(rng)),
            inertia=random_inertia(rng),
            immersion=rb.Immersion(
                2e-3 * rng.random(),
                buoyancy_center=rng.normal(size=3) * 0.1,
                added_mass=0.2 * root @ root.T,
                added_volume=rng.random(6) * 1e-3,
                linear_damping=drag * (root @ root.T if i % 2 else rng.random(6)),
                quadratic_damping=drag * rng.random(6),
                pose=rb.Pose(rng.normal(size=3) * 0.1, random_rotation(rng)),
                strip_diameter=0.1,
                strip_length=0.5,
                strip_drag=drag,
            ),
        )
    return builder.build()


def state(model, batch=4):
    rng = np.random.default_rng(0)
    q, qd = model.random_state(rng, batch)
    return q, qd, rng.normal(size=qd.shape)


def times(matrix, vector):
    return np.einsum("...ij,...j", matrix, vector)


def in_air(model):
    return rb.Model(dataclasses.replace(model.description, fluid_density=np.array(0.0)))


def body_jacobians(model, q):
    """Of each body's origin, [linear, angular] in the body's own axes."""
    poses = model.body_poses(q)
    for b, name in enumerate(model.body_names):
        J = model.jacobian(q, name)
        back = np.swapaxes(poses.rotation[:, b], -1, -2)
        yield b, np.concatenate([back @ J[:, :3], back @ J[:, 3:]], 1)


@pytest.mark.parametrize("kinds", KINDS)
def test_mass_matrix_is_the_sum_of_all_added_masses(kinds):
    model = immersed_tree(KINDS[kinds])
    q, _, _ = state(model)
    expected = in_air(model).mass_matrix(q)
    added = model.added_mass + model.fluid_density * model.added_volume
    for b, J in body_jacobians(model, q):
        expected = expected + np.swapaxes(J, -1, -2) @ added[b] @ J
    np.testing.assert_allclose(model.mass_matrix(q), expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("kinds", KINDS)
def test_water_forces_satisfy_kirchhoffs_equations_for_each_body(kinds):
    """Bias and gravity forces minus those in air are the cross terms of A v in body axes and the buoyancy."""
    model = immersed_tree(KINDS[kinds])
    q, qd, _ = state(model)
    added = model.added_mass + model.fluid_density * model.added_volume
    rotation = model.body_poses(q).rotation
    expected = in_air(model).bias_forces(q, qd)
    accelerations = model.body_accelerations(q, qd, 0 * qd)
    for b, J in body_jacobians(model, q):
        v = times(J, qd)
        lin, ang = v[:, :3], v[:, 3:]
        # the rate of v in body axes, a rotating frame
        rate = np.concatenate([accelerations[:, b, :3], accelerations[:, b, 3:]], -1).reshape(-1, 2, 3)
        rate = np.einsum("...ji,...kj->...ki", rotation[:, b], rate)
        rate = np.concatenate([rate[:, 0] - np.cross(ang, lin), rate[:, 1]], -1)
        p = times(added[b], v)
        force = times(added[b], rate)
        force[:, :3] += np.cross(ang, p[:, :3])
        force[:, 3:] += np.cross(ang, p[:, 3:]) + np.cross(lin, p[:, :3])
        lift = -model.fluid_density * model.volume[b] * np.einsum("...ji,j", rotation[:, b], model.gravity)
        force[:, :3] -= lift
        force[:, 3:] -= np.cross(model.buoyancy_center[b], lift)
        expected = expected + times(np.swapaxes(J, -1, -2), force)
    found = model.bias_forces(q, qd)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("kinds", KINDS)
def test_inverse_dynamics_in_water_is_the_sum_of_its_terms(kinds):
    model = immersed_tree(KINDS[kinds])
    q, qd, qdd = state(model)
    H, C, g = model.mass_matrix(q), model.coriolis_matrix(q, qd), model.gravity_forces(q)
    tau = model.inverse_dynamics(q, qd, qdd)
    size = np.abs(tau).max()
    np.testing.assert_allclose(tau, times(H, qdd) + times(C, qd) + g, rtol=0, atol=1e-13 * size)
    growth = np.linalg.cond(H).max()
    np.testing.assert_allclose(model.forward_dynamics(q, qd, tau), qdd, rtol=0, atol=1e-14 * growth)
    np.testing.assert_allclose(model.mass_matrix_inverse(q) @ H, [np.eye(model.nv)] * 4, rtol=0, atol=1e-14 * growth)
    assert np.abs(model.force_balance_residual(q, qd, tau)).max() < 1e-14 * growth * size


@pytest.mark.parametrize("kinds", KINDS)
def test_the_rate_of_the_mass_matrix_in_water_agrees_with_the_coriolis_matrix(kinds):
    """dH/dt = C + C^T, so that dH/dt - 2 C is skew-symmetric. The error of the fourth-order difference is O(h^4)."""
    model = immersed_tree(KINDS[kinds])
    q, qd, _ = state(model)
    H = [model.mass_matrix(model.integrate(q, s * 1e-3 * qd)) for s in (-2, -1, 1, 2)]
    rate = (8 * (H[2] - H[1]) - (H[3] - H[0])) / 12e-3
    C = model.coriolis_matrix(q, qd)
    np.testing.assert_allclose(rate, C + np.swapaxes(C, -1, -2), rtol=0, atol=1e-8 * np.abs(C).max())


@pytest.mark.parametrize("kinds", KINDS)
def test_power_of_the_joint_forces_is_the_rate_of_energy(kinds):
    model = immersed_tree(KINDS[kinds])
    q, qd, qdd = state(model)
    energies = []
    for s in (-2e-3, -1e-3, 1e-3, 2e-3):
        # to second order along the motion, as the fourth-order difference requires
        middle = qd + s / 2 * qdd
        energies.append(sum(model.energy(model.integrate(q, s * middle), qd + s * qdd)))
    rate = (8 * (energies[2] - energies[1]) - (energies[3] - energies[0])) / 12e-3
    power = (model.inverse_dynamics(q, qd, qdd) * qd).sum(-1)
    np.testing.assert_allclose(rate, power, rtol=0, atol=1e-4 * np.abs(power).max())


@pytest.mark.parametrize("kinds", KINDS)
def test_drag_is_the_sum_over_bodies_and_strips(kinds):
    model = immersed_tree(KINDS[kinds])
    q, qd, _ = state(model)
    d, expected = model.description, np.zeros_like(qd)
    for b, J in body_jacobians(model, q):
        frame = rb.Pose(d.drag_translation[b], d.drag_rotation[b])
        v = times(J, qd)
        lin = (v[:, :3] + np.cross(v[:, 3:], frame.translation)) @ frame.rotation
        ang = v[:, 3:] @ frame.rotation
        u = np.concatenate([lin, ang], -1)
        force = -times(model.linear_damping[b], u) - times(model.quadratic_damping[b], np.abs(u) * u)
        for sample, (middle, turning) in enumerate(zip(lin * (1, 1, 0), np.cross(ang, [0, 0, 1]), strict=True)):
            pull, moment = -500.0 * 0.1 * model.strip_drag[b] * integral_of_drag(0.25, middle, turning)
            force[sample] += np.concatenate([pull, np.cross([0, 0, 1], moment)])
        force = np.concatenate([force[:, :3] @ frame.rotation.T, force[:, 3:] @ frame.rotation.T], -1)
        force[:, 3:] += np.cross(frame.translation, force[:, :3])
        expected += times(np.swapaxes(J, -1, -2), force)
    np.testing.assert_allclose(model.passive_forces(q, qd), expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def ball(radius=0.1, density=2500.0, drag=0.0, fluid=1000.0):
    builder = rb.ModelBuilder(fluid_density=fluid)
    immersion = dataclasses.replace(rb.Immersion.sphere(radius), quadratic_damping=np.array([drag] * 3 + [0] * 3))
    inertia = rb.Inertia.sphere(radius, density=density)
    builder.add_body("ball", joint=rb.Free(), inertia=inertia, immersion=immersion)
    return builder.build()


@pytest.mark.parametrize("density", [2500.0, 300.0])
def test_a_sphere_starts_with_the_acceleration_of_its_added_mass(density):
    model = ball(density=density)
    displaced = 1000.0 * 4 / 3 * np.pi * 1e-3
    expected = -(model.mass[0] - displaced) * 9.81 / (model.mass[0] + displaced / 2)
    found = model.forward_dynamics(model.neutral(), np.zeros(6), np.zeros(6))
    np.testing.assert_allclose(found, [0, 0, expected, 0, 0, 0], atol=1e-13)


def test_a_sinking_sphere_follows_the_closed_form():
    """m v' = W - c v^2 with the added mass in m: v = terminal tanh(t W / (m terminal))."""
    model = ball(drag=3.0)
    displaced = 1000.0 * model.volume[0]
    weight, inertia = (model.mass[0] - displaced) * 9.81, model.mass[0] + displaced / 2
    terminal = np.sqrt(weight / 3.0)
    times_ = np.linspace(0, 0.5, 3)
    motion = model.simulate(model.neutral(), np.zeros(6), 0.5, rtol=1e-8, atol=1e-10, save_at=times_)
    expected = -terminal * np.tanh(times_ * weight / (inertia * terminal))
    np.testing.assert_allclose(motion.qd[:, 2], expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("density", [2500.0, 300.0])
@pytest.mark.parametrize("axis", range(3))
def test_an_ellipsoid_sinks_or_rises_along_each_axis_with_its_added_mass(axis, density):
    """Without drag, its acceleration is (weight - buoyancy) / (m + k displaced mass), with k from Lamb's integral."""
    semi_axes, gravity = np.array([0.3, 0.2, 0.1]), -9.81 * np.eye(3)[axis]
    builder = rb.ModelBuilder(gravity=gravity, fluid_density=1000.0)
    volume = 4 / 3 * np.pi * semi_axes.prod()
    inertia = rb.Inertia(density * volume, inertia=density * volume / 5 * ((semi_axes**2).sum() - semi_axes**2))
    builder.add_body("hull", joint=rb.Free(), inertia=inertia, immersion=rb.Immersion.ellipsoid(semi_axes))
    model = builder.build()
    squares = semi_axes**2
    share, _ = quad(
        lambda x: semi_axes.prod() / ((squares[axis] + x) * np.sqrt((squares + x).prod())), 0, np.inf, epsabs=1e-12
    )
    k = share / (2 - share)
    expected = (density - 1000.0) / (density + k * 1000.0) * gravity
    motion = model.simulate(model.neutral(), np.zeros(6), 0.3, rtol=1e-9, atol=1e-11, save_at=2)
    np.testing.assert_allclose(motion.q[-1, :3], expected * 0.3**2 / 2, rtol=0, atol=1e-8)


def test_a_body_drifting_with_the_current_keeps_its_velocity():
    """A neutrally buoyant body without gravity moves like the water in a changing current."""
    model = ball(density=1000.0, drag=1.0).vary(gravity=(0, 0, 0))
    wave = rb.Signal.sines(0.3, 2.0, phase=0.4)
    start = np.array([0.5, wave(0.0), 0, 0, 0, 0.2])
    times_ = np.linspace(0, 0.5, 3)
    current = rb.Current((0.5, wave, 0.0))
    motion = model.simulate(model.neutral(), start, 0.5, forces=[current], rtol=1e-8, atol=1e-10, save_at=times_)
    velocity = model.body_velocities(motion.q, motion.qd)[:, 0, :3]
    np.testing.assert_allclose(velocity[:, 0], 0.5, rtol=0, atol=1e-7)
    np.testing.assert_allclose(velocity[:, 1], wave(times_), rtol=0, atol=1e-7)


def test_the_velocities_of_currents_add_up():
    model = ball(density=1000.0, drag=1.0)
    wave = rb.Signal.sines(0.3, 2.0, phase=0.4)
    settings = {"method": "rk4", "step": 0.02, "save_at": 3}
    start = model.neutral(), np.zeros(6), 0.2
    one, two = (
        model.simulate(*start, forces=forces, **settings)
        for forces in (
            [rb.Current((0.5, 0.1 + wave, 0.2))],
            [rb.Current((0.5, wave, 0.0)), rb.Current((0.0, 0.1, 0.2))],
        )
    )
    np.testing.assert_allclose(two.q, one.q, rtol=0, atol=1e-14)
    assert np.abs(one.q[-1, :3]).min() > 1e-4


def test_a_steady_current_is_equivalent_to_a_moving_frame():
    """By Galilean invariance, the body moves relative to the current as in still water."""
    model = immersed_tree(("free",), seed=5)
    model = rb.Model(dataclasses.replace(model.description, gravity=np.zeros(3)))
    q, qd, _ = (x[0] for x in state(model))
    stream = np.array([0.3, -0.2, 0.5])
    root = qd.copy()
    rotation = model.body_poses(q).rotation[0]
    root[:3] += rotation.T @ stream
    # velocities of the other joints are relative to their parents, so only the root's velocity changes
    settings = {"rtol": 1e-7, "atol": 1e-9}
    still = model.simulate(q, qd, 0.02, save_at=2, **settings)
    drifting = model.simulate(q, root, 0.02, forces=[rb.Current(tuple(stream))], save_at=2, **settings)
    shift = model.body_poses(drifting.q[-1]).translation - model.body_poses(still.q[-1]).translation
    np.testing.assert_allclose(shift, np.tile(0.02 * stream, (model.n_bodies, 1)), rtol=0, atol=1e-6)


def test_added_masses_of_ellipsoids_agree_with_lamb():
    """Lamb (1932), section 114: of a prolate spheroid of 2:1, k = 0.209 along and 0.702 across, k' = 0.240.

    His table has three digits; a sphere's 1/2 and a disc's limit are exact.
    """
    spheroid = rb.Immersion.ellipsoid((2.0, 1.0, 1.0))
    shares = np.diag(spheroid.added_volume) / spheroid.volume
    np.testing.assert_allclose(shares[:3], [0.209, 0.702, 0.702], atol=3e-3)
    # k' is in units of the displaced water's own moment of inertia, m (a^2 + b^2) / 5, which is m here
    np.testing.assert_allclose(shares[3:], [0.0, 0.240, 0.240], atol=2e-3)
    sphere = rb.Immersion.ellipsoid((0.3, 0.3, 0.3))
    np.testing.assert_allclose(np.diag(sphere.added_volume)[:3], sphere.volume / 2, rtol=1e-12)
    assert not sphere.added_volume[3:].any()
    disc = np.diag(rb.Immersion.ellipsoid((1e-5, 1.0, 1.0)).added_volume)
    # section 108: the added mass of a disc moving broadside is 8/3 a^3, the added inertia about a diameter 16/45 a^5
    np.testing.assert_allclose(disc[[0, 4]], [8 / 3, 16 / 45], rtol=1e-4)


def test_a_cylinder_has_the_added_mass_used_for_manipulators():
    along_y = rb.Immersion.cylinder(0.1, 2.0, mass=3.0, axis=(0, 1, 0), center=(0, 0.5, 0))
    added = shifted(along_y.added_mass + 1000.0 * along_y.added_volume, rb.Pose(rotation=along_y.pose.rotation))
    across, turning = 1000 * np.pi * 0.01 * 2.0, 1000 * np.pi * 0.01 * 8.0 / 12
    np.testing.assert_allclose(np.diag(added), [across, 0.3, across, turning, 0, turning], rtol=1e-12, atol=1e-12)


def test_zero_fluid_density_means_air():
    model = immersed_tree(KINDS["one_dof_tree"])
    q, qd, qdd = state(model)
    dry = in_air(model)
    assert not dry.in_water
    assert not dry.passive_forces(q, qd).any()
    varied = model.vary(fluid_density=np.array([1000.0, 500.0, 0.0, 250.0]))
    for chain, density in enumerate((1000.0, 500.0, 0.0, 250.0)):
        alone = model.vary(fluid_density=density)
        expected = alone.inverse_dynamics(q[chain], qd[chain], qdd[chain])
        np.testing.assert_allclose(varied.inverse_dynamics(q, qd, qdd)[chain], expected, rtol=1e-12)


@pytest.mark.parametrize("field", ["fluid_density", "volume", "linear_damping", "strip_drag", "mass", "inertia", "cg"])
def test_samples_with_different_water_parameters_equal_single_models(field):
    """The first sample may be in air, or have no field on which water acts."""
    model = immersed_tree(KINDS["one_dof_tree"])
    q, qd, qdd = (x[:2] for x in state(model))
    own = np.stack([0.0 * getattr(model, field) if field not in ("mass", "inertia") else getattr(model, field)] * 2)
    own[1] = 1.5 * getattr(model, field)
    many = model.vary(**{field: own})
    for chain in range(2):
        alone = model.vary(**{field: own[chain]})
        for quantity in ("inverse_dynamics", "mass_matrix", "passive_forces"):
            given = {"inverse_dynamics": (q, qd, qdd), "mass_matrix": (q,)}.get(quantity, (q, qd))
            expected = getattr(alone, quantity)(*(x[chain] for x in given))
            np.testing.assert_allclose(getattr(many, quantity)(*given)[chain], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (lambda: rb.ModelBuilder(fluid_density=-1.0), "fluid_density is -1.0; expected zero or more"),
        (lambda: rb.Immersion(volume=-1.0), "volume is -1.0"),
        (lambda: rb.Immersion(added_mass=np.triu(np.ones((6, 6)))), "not symmetric"),
        (lambda: rb.Immersion(linear_damping=np.ones(5)), r"linear_damping has shape \(5,\)"),
        (lambda: rb.Immersion.sphere(-0.1), "radius is -0.1; expected a positive number"),
        (lambda: rb.Immersion.cylinder(0.1, np.inf), "length is inf"),
        (lambda: ball().vary(fluid_density=-2.0), "fluid_density"),
        (lambda: ball().vary(added_mass=np.triu(np.ones((1, 6, 6)))), "not symmetric"),
        (lambda: ball().inverse_dynamics_regressor(*state_of_ball()), "regressor does not support bodies in water"),
        (lambda: ball().forward_dynamics_derivatives(*state_of_ball()), "derivatives does not support bodies in water"),
        (
            lambda: rb.Model.serial_chain(1).simulate([0], [0], 1, forces=[rb.Current((0, 0, 0))], save_at=2),
            "no body is in water",
        ),
    ],
)
def test_invalid_water_parameters_are_refused_by_name(fault, sentence):
    with pytest.raises(rb.RbchainError, match=sentence):
        fault()


def state_of_ball():
    return ball().neutral(), np.zeros(6), np.zeros(6)
