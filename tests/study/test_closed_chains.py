"""Studies of closed chains, with everything that acts on them."""

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python

ACTING = {
    "nothing": {},
    "drive": {"drives": [rb.PID("crank", 1.0, kp=1.0, kd=1.0)]},
    "prescribed motion": {"drives": [rb.PrescribedVelocity("crank", 1.0)]},
    "wrench": {"forces": [rb.Wrench("rocker", force=(1, 0, 0))]},
    "spring": {"forces": [rb.SpringDamper(None, "rocker", point_a=(0, 1, 0), point_b=(0, 0, 0), stiffness=10.0)]},
    "noise": {"drives": [rb.PrescribedForce("crank", rb.Signal.noise(1.0, [0.5, 5.0], sines=3))]},
    "event": {"events": [rb.Event("crank", value=1.3, stop=False)]},
}


def four_bar():
    """A crank, a coupler and a rocker with parallel axes."""
    builder, hinge = rb.ModelBuilder(gravity=(0, -9.81, 0)), rb.Revolute(axis=(0, 0, 1))
    rod = rb.Inertia.rod(0.5, mass=1.0, cg=(0.25, 0, 0))
    builder.add_body("crank", joint=hinge, inertia=rod, passive=rb.PassiveForces(damping=0.1))
    builder.add_body("coupler", parent="crank", joint=hinge, placement=rb.Pose((0.5, 0, 0)), inertia=rod)
    builder.add_body("rocker", joint=hinge, placement=rb.Pose((0.6, 0, 0)), inertia=rod)
    builder.add_constraint(rb.BallConstraint("tip", "coupler", "rocker", point_a=(0.5, 0, 0), point_b=(0.5, 0, 0)))
    return builder.build()


SETTINGS = {"rk45": {"rtol": 1e-4}, "moreau": {"method": "moreau", "step": 0.02}}
#: Each with one of the methods; the slow tests run the others.
FEW = {(name, list(SETTINGS)[i % 2]) for i, name in enumerate(ACTING)}
CASES = [
    pytest.param(acting, method, marks=[] if (acting, method) in FEW else pytest.mark.slow)
    for acting in ACTING
    for method in SETTINGS
]


@pytest.mark.fast_cases("nothing")
@pytest.mark.parametrize(("acting", "method"), CASES)
def test_a_closed_chain_can_be_studied_with_anything_that_acts_on_it(acting, method):
    """The samples end in closed configurations, and each is the motion of its own model."""
    study = rb.Study(
        model=four_bar(),
        samples=2,
        vary={"*.mass": rb.Dispersion(rb.Normal(1, 0.01), how="multiply")},
        simulate={"duration": 0.02, "q": [1.2, -1.0, 1.5], "assemble": True, "save_at": 2} | SETTINGS[method],
        **ACTING[acting],
    )
    results = study.run()
    assert np.abs(four_bar().constraint_residual(results.q_final.values)).max() < 1e-12
    assert study.motions(2).q[:, -1].tobytes() == results.q_final.values.tobytes()
