"""Measures of the forces that joints and constraints transmit, compared with statics and energy."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import StudyError

pytestmark = pytest.mark.plain_python


def arch(first=2.0, second=3.0):
    """Two rods of 1 m lean against each other at 60 degrees: a three-hinged arch, which cannot move."""
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    for name, x, mass in (("left", 0.0, first), ("right", 1.0, second)):
        rod = rb.Inertia.rod(1.0, mass=mass, cg=(0.5, 0, 0))
        builder.add_body(name, joint=rb.Revolute((0, 0, 1)), placement=rb.Pose((x, 0, 0)), inertia=rod)
    builder.add_constraint(rb.BallConstraint("apex", "left", "right", point_a=(1, 0, 0), point_b=(1, 0, 0)))
    return builder.build()


@pytest.mark.slow
def test_the_forces_of_an_arch_at_rest_are_those_of_statics():
    """A weight of the left rod, its wrench, and a spring between the rods: the moments about both bases vanish."""
    extra, stiffness = 7.0, 40.0
    study = rb.Study(
        arch(),
        samples=3,
        simulate=rb.Simulation(0.01, method="rk4", step=0.005, q=(np.pi / 3, 2 * np.pi / 3)),
        vary={"left.force.y": rb.Dispersion(rb.Uniform(-1.0, 1.0), how="add")},
        forces=[
            rb.Wrench("left", force=(0, -extra, 0), point=(0.5, 0, 0)),
            rb.SpringDamper("left", "right", point_a=(0.5, 0, 0), point_b=(0.5, 0, 0), stiffness=stiffness),
        ],
        measures=[
            {"name": "apex", "quantity": "constraint_force", "constraint": "apex", "over": "max"},
            rb.Measure("foot", "reaction_force", joint="left", over="mean"),
            rb.Measure("final foot", "reaction_force", joint="right", unit="kN"),
        ],
    )
    results = study.run()
    # the vertical force V and the horizontal force H of the right rod on the left one, and the spring of 0.5 m
    left, right, spring = 20.0 + extra - results.parameters.values[:, 0], 30.0, 0.5 * stiffness
    h, x = np.sin(np.pi / 3), np.cos(np.pi / 3)
    across, up = (left + right) * x / 4 / h, (left - right) / 4
    horizontal = across + spring / 2
    np.testing.assert_allclose(results.apex, np.hypot(horizontal, up), rtol=1e-9)
    np.testing.assert_allclose(results.foot, np.hypot(across - spring / 2, left - up), rtol=1e-9)
    final = np.hypot(across - spring / 2, right + up)
    np.testing.assert_allclose(results["final foot"], final / 1e3, rtol=1e-9)


@pytest.mark.slow
def test_the_largest_forces_of_a_swing_in_a_closed_loop_are_twice_the_weight():
    """m g + m v^2 / l = (3 - 2 cos(60 deg)) m g at the bottom. The bob swings 0.5 m beside the origin of its hinge."""
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    bob = rb.Inertia(2.0, cg=(0, -1.5, 0.5), inertia=(1e-9, 1e-9, 1e-9))
    builder.add_body("bob", joint=rb.Free(), inertia=bob)
    builder.add_constraint(rb.HingeConstraint("hinge", None, "bob"))
    measures = [
        rb.Measure("force", "constraint_force", constraint="hinge", over="max"),
        rb.Measure("moment", "constraint_moment", constraint="hinge", over="max"),
    ]
    start = rb.Simulation(0.66, q=(0, 0, 0, 0, 0, 0.5, np.sqrt(0.75)), rtol=1e-6, atol=1e-8, save_at=2)
    results = rb.Study(builder.build(), samples=1, simulate=start, measures=measures).run()
    np.testing.assert_allclose([results.force[0], results.moment[0]], [40.0, 0.5 * 40.0], rtol=1e-5)


def test_the_multiplier_of_a_gear_is_a_moment():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name in ("motor", "arm"):
        builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    builder.add_constraint(rb.CouplerConstraint("gear", "arm", "motor", ratio=0.5))
    model, simulate = builder.build(), rb.Simulation(0.1, method="rk4", step=0.05, tau=(5.0, 0.0))
    moment = rb.Measure("moment", "constraint_moment", constraint="gear")
    results = rb.Study(model, samples=1, simulate=simulate, measures=[moment]).run()
    np.testing.assert_allclose(results.moment, 2.0, rtol=1e-12)  # 4 rad/s^2 of the motor and 2 rad/s^2 of the arm
    force = {"name": "x", "quantity": "constraint_force", "constraint": "gear"}
    with pytest.raises(StudyError, match="the coupler constraint 'gear' transmits no force; expected 'constraint_mom"):
        rb.Study(model, samples=1, simulate=simulate, measures=[force])


@pytest.mark.plain_python
def test_the_multiplier_on_a_joint_of_one_slide_in_series_is_a_force():
    """2 kg on the slide move by 0.5 m per rad of the motor of 1 kg m^2, which has a torque of 5 N m."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("motor", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    slide = rb.Composite([rb.Prismatic((1, 0, 0))])
    builder.add_body("slide", joint=slide, inertia=rb.Inertia(2.0, inertia=(1, 1, 1)))
    builder.add_constraint(rb.CouplerConstraint("rack", "slide", "motor", ratio=0.5))
    simulate = rb.Simulation(0.1, method="rk4", step=0.05, tau=(5.0, 0.0))
    force = rb.Measure("force", "constraint_force", constraint="rack")
    results = rb.Study(builder.build(), samples=1, simulate=simulate, measures=[force]).run()
    np.testing.assert_allclose(results.force, 2.0 * 0.5 * 5.0 / 1.5, rtol=1e-12)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"quantity": "constraint_force"}, "constraint is missing; the quantity 'constraint_force' needs it"),
        ({"quantity": "constraint_force", "constraint": "apx"}, "expected a constraint .*'apex'.*; did you mean apex"),
        ({"quantity": "constraint_moment", "constraint": "apex"}, "the ball constraint 'apex' transmits no moment"),
        ({"quantity": "energy", "constraint": "apex"}, "constraint is 'apex', but the quantity 'energy' does not use"),
    ],
)
def test_measures_of_other_constraints_are_refused(keys, message):
    with pytest.raises(StudyError, match=message):
        rb.Study(arch(), samples=1, simulate=rb.Simulation(1.0), measures=[{"name": "x", **keys}])


def test_constraint_forces_of_a_motion():
    still = rb.Model.serial_chain(1).simulate(duration=0.1, method="rk4", step=0.05)
    with pytest.raises(rb.ModelError, match="constraint_forces"):
        _ = still.constraint_forces
    at_rest = arch().simulate([[np.pi / 3, 2 * np.pi / 3]], duration=0.1, method="rk4", step=0.05, save_at=3)
    across, up = 50.0 / 4 / np.tan(np.pi / 3), (20.0 - 30.0) / 4
    np.testing.assert_allclose(at_rest.constraint_forces, np.tile([across, -up, 0.0], (1, 3, 1)), atol=1e-9)
    force = rb.Measure("apex", "constraint_force", constraint="apex", over="max")
    np.testing.assert_allclose(force.values(arch(), at_rest), np.hypot(across, up), rtol=1e-9)
    nobody = arch().simulate(np.empty((0, 2)), duration=0.1, method="rk4", step=0.05, save_at=3)
    assert nobody.constraint_forces.shape == (0, 3, 3)
