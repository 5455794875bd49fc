"""Simulate 10,000 four-bar linkages whose lengths are known to 1 %, and plot the paths of a point of the coupler.

Writes four_bars.png. Pass another number of samples as an argument.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import rbchain as rb

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
CRANK, COUPLER, ROCKER = 0.3, 0.9, 0.6  # m
POINT = (0.45, 0.3, 0)  # on the coupler, m


def link(length, mass):
    across = mass * length**2 / 12
    return rb.Inertia(mass, cg=(length / 2, 0, 0), inertia=(1e-6, across, across))


builder = rb.ModelBuilder(name="four-bar", gravity=(0, -9.81, 0))
hinge = rb.Revolute(axis=(0, 0, 1))
builder.add_body("crank", joint=hinge, inertia=link(CRANK, 1.0))
builder.add_body("coupler", parent="crank", joint=hinge, placement=rb.Pose((CRANK, 0, 0)), inertia=link(COUPLER, 2.0))
builder.add_body("rocker", joint=hinge, placement=rb.Pose((1, 0, 0)), inertia=link(ROCKER, 1.5))
builder.add_constraint(rb.BallConstraint("tip", "coupler", "rocker", point_a=(COUPLER, 0, 0), point_b=(ROCKER, 0, 0)))
model = builder.build()

# the lengths of coupler and rocker have a standard deviation of 1 %
rng = np.random.default_rng(0)
many = model.vary(
    constraint_point_a=model.constraint_point_a * rng.normal(1.0, 0.01, (COUNT, 1, 1)),
    constraint_point_b=model.constraint_point_b * rng.normal(1.0, 0.01, (COUNT, 1, 1)),
)
q = many.assemble(np.tile([1.2, -0.9, 2.0], (COUNT, 1)), fixed=["crank"])
qd = many.assemble_velocities(q, np.tile([8.0, 0.0, 0.0], (COUNT, 1)), fixed=["crank"])
motion = many.simulate(q, qd, 2.0, rtol=1e-6, save_at=101)
print(motion.message)
print(f"largest residual: {np.abs(many[..., None].constraint_residual(motion.q)).max():.1e} m")

shown = motion.q[:20]
poses = model.body_poses(shown)  # the tree does not depend on the constraint
path = poses.translation[..., 1, :] + poses.rotation[..., 1, :, :] @ POINT
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
left.plot(path[..., 0].T, path[..., 1].T, linewidth=0.8)
left.set(xlabel="x / m", ylabel="y / m", title="path of a point of the coupler", aspect="equal")
turns = motion.q[..., 0] / (2 * np.pi)
right.fill_between(motion.t, *np.quantile(turns, [0.05, 0.95], axis=0), color="tab:blue", alpha=0.4)
right.plot(motion.t, np.median(turns, axis=0), color="tab:blue")
right.set(xlabel="t / s", ylabel="turns of the crank", title=f"median and 90 % of {COUNT} samples")
figure.tight_layout()
figure.savefig("four_bars.png")
