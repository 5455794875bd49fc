"""Reactions and forces of constraints as outputs of `Model.linearize`, compared with differences and closed forms."""

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import four_bar, hinged_arm, hung_plate, welded_and_geared
from .mechanisms import EVERY_KIND, random_tree
from .test_linearize import WEIGHTS, rod
from .test_overconstrained_loops import cardan_joint

PLAIN = pytest.mark.plain_python
NAMES, STEP = "abc", 5e-3
AT = np.array([0.3, -0.2, 0.5])


def forces_of(model, q, qd, settings):
    """The reactions (..., n, 6) and the forces of constraints (..., m) at the start of motions of a batch."""
    motion = model.simulate(q, qd, duration=1e-6, save_at=[0.0], method="rk45", **settings)
    assert motion.success, motion.message
    found = motion.constraint_forces[..., 0, :] if model.constraint_names else np.zeros((*q.shape[:-1], 0))
    return motion.reactions[..., 0, :, :], found


def along_states(model, q, qd, linear, settings):
    """Derivatives with respect to the positions and velocities of the state, on paths that keep the loops closed."""
    steps = STEP * np.array([sign * k for k, _ in WEIGHTS for sign in (1, -1)])
    weights = np.array([sign * w / STEP for _, w in WEIGHTS for sign in (1, -1)])
    count = sum(name.startswith("q") for name in linear.states)
    moves, changes = (x[:, :count].T[:, None] * steps[:, None] for x in (linear.positions, linear.velocities))
    q_x, qd_x = model.integrate(q, moves.reshape(-1, model.nv)), qd + changes.reshape(-1, model.nv)
    if model.constraint_names:
        q_x = model.assemble(q_x)
        qd_x = model.assemble_velocities(q_x, qd_x)
    found = (x.reshape(count, len(steps), -1) for x in forces_of(model, q_x, qd_x, settings))
    return [np.einsum("cse,s->ec", x, weights) for x in found]


def along_inputs(model, q, qd, settings_at):
    """Derivatives with respect to the three inputs."""
    columns = []
    for axis in np.eye(3):
        parts = [
            (sign * w / STEP, forces_of(model, q[None], qd[None], settings_at(AT + sign * k * STEP * axis)))
            for k, w in WEIGHTS
            for sign in (1, -1)
        ]
        columns.append([sum(w * x[i][0].ravel() for w, x in parts) for i in range(2)])
    return [np.stack(x, -1) for x in zip(*columns, strict=True)]


def assert_derivatives(model, q, qd, settings_at):
    settings = settings_at(AT)
    outputs = [("reaction", joint) for joint in model.joint_names]
    outputs += [("constraint_force", name) for name in model.constraint_names]
    inputs = [rb.Input(name) for name in NAMES]
    linear = model.linearize(q, qd, inputs=inputs, outputs=outputs, **settings)
    assert linear.success
    by_states, by_inputs = along_states(model, q, qd, linear, settings), along_inputs(model, q, qd, settings_at)
    count = by_states[0].shape[1]
    for found, parts in ((linear.C[:, :count], by_states), (linear.D, by_inputs)):
        expected = np.concatenate(parts)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * max(1.0, abs(expected).max()))
        assert abs(expected).max() > 1e-2
    return linear


# --- springs, bushings and water --------------------------------------------------------------------------------------


def numbers_at(u):
    return [rb.Input(name, value) for name, value in zip(NAMES, u, strict=True)]


def bushings_and_bearings():
    """Bushings and bearings to the world, between bodies and from a frame, a cable and a wrench."""
    model = random_tree(3, [-1, 0, 0, 2], ["spherical", "revolute", "universal", "prismatic"])
    rng = np.random.default_rng(5)

    def symmetric(scale):
        X = rng.normal(size=(6, 6))
        return scale * X @ X.T

    tilts = np.zeros((6, 6))
    tilts[:5, :5] = symmetric(1.0)[:5, :5]
    pose = rb.Pose((0.1, 0.2, -0.1), [0.1, 0.2, -0.1, np.sqrt(0.94)])
    bushing = rb.Bushing("body1", "body3", stiffness=symmetric(2.0), damping=symmetric(0.3), pose_a=pose)
    bearing = rb.Bushing(None, "body2", stiffness=3 * tilts, damping=tilts, pose_b=pose, free_axis=True)
    ends = {"point_a": (0.1, 0, 0), "point_b": (0, 0.2, 0), "stiffness": 20.0}
    cable = rb.SpringDamper("body0", "body3", damping=2.0, rest_length=0.05, tension_only=True, **ends)

    def settings_at(u):
        return {"forces": [bushing, bearing, cable, rb.Wrench("body3", force=numbers_at(u))]}

    return model, settings_at


def in_water():
    """Every joint under buoyancy and added mass."""
    rng = np.random.default_rng(6)
    builder = rb.ModelBuilder(gravity=(1.0, 2.0, -9.0), fluid_density=2.0)
    kinds = [rb.Free(), rb.Revolute((0.3, 1, 0)), rb.Spherical(), rb.Screw((1, 0.2, 0), 0.3)]
    for i, joint in enumerate(kinds):
        X, Y = rng.normal(size=(2, 6, 6))
        immersion = rb.Immersion(
            0.3, buoyancy_center=rng.normal(size=3), added_mass=X @ X.T, added_volume=0.1 * Y @ Y.T
        )
        inertia = rb.Inertia(1.0 + i, cg=rng.normal(size=3), inertia=(1.0, 1.2, 1.4))
        parent = f"body{i - 1}" if i else None
        place = rb.Pose(rng.normal(size=3))
        builder.add_body(f"body{i}", parent=parent, joint=joint, placement=place, inertia=inertia, immersion=immersion)

    def settings_at(u):
        return {"forces": [rb.Wrench("body3", force=numbers_at(u), axes="body", point=(0.1, 0.2, 0.3))]}

    return builder.build(), settings_at


def every_joint():
    def settings_at(u):
        return {"forces": [rb.Wrench("body5", force=numbers_at(u))]}

    return random_tree(3, [-1, 0, 1, 2, 3, 4, 5, 6], EVERY_KIND), settings_at


@PLAIN
@pytest.mark.slow_cases("every_joint")
@pytest.mark.parametrize("case", [bushings_and_bearings, in_water, every_joint])
def test_reactions_of_open_trees_are_outputs(case):
    model, settings_at = case()
    q, qd = (x[0] for x in model.random_state(1, 5))
    assert_derivatives(model, q, qd, settings_at)


# --- closed loops -----------------------------------------------------------------------------------------------------


def state_of(chain):
    q = chain.model.assemble(chain.guess)
    return q, chain.model.assemble_velocities(q, np.random.default_rng(1).normal(size=chain.model.nv))


def controlled_four_bar(closure="ball"):
    """A controller with an integral, a prescribed force, a wrench, and a bushing between crank and rocker."""
    chain = four_bar(closure=closure)
    first, second, _ = chain.model.joint_names
    bushing = rb.Bushing("crank", "rocker", stiffness=np.diag([3.0, 2, 1, 0.3, 0.2, 0.1]), damping=0.1 * np.eye(6))

    def settings_at(u):
        a, b, c = numbers_at(u)
        drives = [rb.PID(first, a, kp=2.0, ki=1.5), rb.PrescribedForce(second, b)]
        return {"drives": drives, "forces": [bushing, rb.Wrench("rocker", force=(c, c, 0), point=(0.1, 0.2, 0))]}

    return chain.model, *state_of(chain), settings_at


def four_bar_of_hinges():
    """Three of five rows are redundant."""
    return controlled_four_bar("hinge")


def four_bar_in_water():
    model, q, qd, settings_at = controlled_four_bar()
    wet = model.replace(
        fluid_density=1.5, volume=[0.1, 0.2, 0.3], added_volume=[np.diag([1.0, 2, 3, 0.1, 0.2, 0.3])] * 3
    )
    return wet, q, qd, settings_at


def prescribed_four_bar():
    """The accelerations of the crank are prescribed."""
    chain = four_bar()

    def settings_at(u):
        a, b, c = numbers_at(u)
        drives = [rb.PrescribedAcceleration("crank", a), rb.PrescribedForce("coupler", b)]
        return {"drives": drives, "forces": [rb.Wrench("rocker", force=(c, c, 0))]}

    return chain.model, *state_of(chain), settings_at


def with_wrench(chain, body):
    def settings_at(u):
        return {"forces": [rb.Wrench(body, force=numbers_at(u))]}

    return chain.model, *state_of(chain), settings_at


def plate_on_rods():
    return with_wrench(hung_plate(), "plate")


def hinge_to_a_free_body():
    return with_wrench(hinged_arm(), "load")


def weld_and_gears():
    return with_wrench(welded_and_geared(), "right3")


def cardan():
    """Three of six rows are redundant, and others in each position: the forces of minimum norm turn with the shafts."""
    model, q, qd = cardan_joint()

    def settings_at(u):
        return {"forces": [rb.Wrench("out", moment=numbers_at(u))]}

    return model, q, qd, settings_at


def light_coupler():
    """A coupler of 1 mg between two heavy bodies."""
    model, q, qd, settings_at = controlled_four_bar()
    inertia = model.inertia.copy()
    inertia[1] *= 1e-6
    return model.replace(mass=[1.0, 1e-6, 2.0], inertia=inertia), q, qd, settings_at


LOOPS = [
    controlled_four_bar,
    four_bar_of_hinges,
    four_bar_in_water,
    prescribed_four_bar,
    light_coupler,
    plate_on_rods,
    hinge_to_a_free_body,
    weld_and_gears,
    cardan,
]


@PLAIN
@pytest.mark.slow_cases("weld_and_gears")
@pytest.mark.parametrize("case", LOOPS)
def test_forces_in_closed_loops_are_outputs(case):
    linear = assert_derivatives(*case())
    assert any(name.startswith("constraint_force ") for name in linear.outputs)


@PLAIN
def test_integrals_of_control_errors_act_like_forces():
    model, q, qd, settings_at = controlled_four_bar()
    outputs = [("reaction", joint) for joint in model.joint_names] + [("constraint_force", "tip")]
    linear = model.linearize(q, qd, inputs=["crank"], outputs=outputs, integrals=[0.3], **settings_at(AT))
    assert linear.states[-1] == "integral crank"
    np.testing.assert_allclose(linear.C[:, -1], 1.5 * linear.D[:, 0], rtol=1e-10, atol=1e-12)  # ki
    assert abs(linear.D).max() > 0.1


@PLAIN
def test_samples_of_a_loop_have_their_own_forces():
    model, q, qd, settings_at = controlled_four_bar("hinge")
    outputs = [("reaction", "coupler"), ("constraint_force", "tip")]
    mass = np.array([[1.0, 2.0, 3.0], [1.5, 0.5, 2.0], [1.0, 1.0, 1.0]])
    states = [np.tile(x, (3, 1)) for x in (q, qd)]
    states[0][1, 0] += 0.1  # violates the constraint
    linear = model.vary(mass=mass).linearize(*states, outputs=outputs, **settings_at(AT))
    assert linear.success.tolist() == [True, False, True]
    assert np.isnan(linear.C[1]).all()
    for i in (0, 2):
        single = model.replace(mass=mass[i]).linearize(q, qd, outputs=outputs, **settings_at(AT))
        np.testing.assert_allclose(linear.C[i], single.C, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(linear.D[i], single.D, rtol=1e-9, atol=1e-9)


# --- closed forms -----------------------------------------------------------------------------------------------------


@PLAIN
def test_the_tension_of_a_rod_has_its_closed_form():
    """A bob at l (sin a, -cos a) on a rod without mass: the force is - m g cos a - m l a'^2, with l cos a a' = x'."""
    m, l, g, a, v = 2.0, 0.8, 10.0, 0.3, 1.5  # noqa: E741
    builder = rb.ModelBuilder(gravity=(0, 0, -g))
    joint = rb.Composite([rb.Prismatic((1, 0, 0)), rb.Prismatic((0, 0, 1))])
    builder.add_body("bob", joint=joint, inertia=rb.Inertia(m))
    builder.add_constraint(rb.DistanceConstraint("rod", None, "bob", (0, 0, 0), (0, 0, 0), length=l))
    model = builder.build()
    q, qd = [l * np.sin(a), -l * np.cos(a)], [v, v * np.tan(a)]
    linear = model.linearize(q, qd, outputs=[("constraint_force", "rod"), ("reaction", "bob")])
    assert linear.states[0] == f"q {model.velocity_labels[0]}"
    by_x = m * g * np.tan(a) / l - 2 * m * v**2 * np.sin(a) / (l**2 * np.cos(a) ** 4)
    np.testing.assert_allclose(linear.C[0], [by_x, -2 * m * v / (l * np.cos(a) ** 2)], rtol=1e-12)
    np.testing.assert_allclose(linear.D[0], [-np.sin(a), np.cos(a)], rtol=1e-12)
    np.testing.assert_allclose(linear.D[1:], np.eye(6)[:, [0, 2]], atol=1e-12)  # the joint transmits the joint forces
    np.testing.assert_allclose(linear.C[1:], 0.0, atol=1e-10)


@PLAIN
def test_the_bearing_of_a_pendulum_in_water_has_its_closed_form():
    """Mass m, added mass a and displaced mass b at the length l: f = -(m + a) l x'^2 + (m - b) g sin x along it."""
    m, a, volume, rho, l, g, x, v = 2.0, 1.5, 4e-4, 1000.0, 0.8, 10.0, 0.4, 3.0  # noqa: E741
    builder = rb.ModelBuilder(gravity=(0, -g, 0), fluid_density=rho)
    added = rb.Immersion(volume, buoyancy_center=(l, 0, 0), added_mass=[a, a, a, 0, 0, 0], pose=rb.Pose((l, 0, 0)))
    builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(m, cg=(l, 0, 0)), immersion=added)
    linear = builder.build().linearize([x], [v], outputs=[("reaction", "bob")])
    by_state = [(m - rho * volume) * g * np.cos(x), -2 * (m + a) * l * v]
    np.testing.assert_allclose(linear.C[:, :], [by_state, *np.zeros((5, 2))], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(linear.D[:, 0], [0, 1 / l, 0, 0, 0, 1], rtol=1e-12, atol=1e-12)


@PLAIN
def test_a_bushing_relieves_a_bearing():
    """A bushing to the world at the origin with the stiffness k against rotation: the bearing carries the rest."""
    bushing = rb.Bushing(None, "link1", stiffness=np.diag([0, 0, 0, 0, 0, 3.0]))
    free = rod(mass=[2.0]).linearize([0.2], outputs=[("reaction", "link1")])
    held = rod(mass=[2.0]).linearize([0.2], outputs=[("reaction", "link1")], forces=[bushing])
    across = np.array([0, 0.75 / (1.5**2 / 3), 0, 0, 0, 1.0])  # the force of a unit moment about the bearing
    np.testing.assert_allclose(held.C[:, 0] - free.C[:, 0], -3.0 * across + [0, 0, 0, 0, 0, 3.0], rtol=1e-9, atol=1e-9)


@PLAIN
def test_reactions_with_drag_or_a_current_are_refused():
    def submerged(**drag):
        builder = rb.ModelBuilder(fluid_density=1000.0)
        immersion = rb.Immersion(volume=1e-3, **drag)
        builder.add_body("link1", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)), immersion=immersion)
        return builder.build()

    with pytest.raises(rb.ArgumentError, match="the model is in water with drag; expected a model without drag"):
        submerged(linear_damping=[1.0] * 6).linearize(outputs=[("reaction", "link1")])
    with pytest.raises(rb.ArgumentError, match="forces contains a Current"):
        submerged().linearize(outputs=[("reaction", "link1")], forces=[rb.Current((1.0, 0, 0))])
