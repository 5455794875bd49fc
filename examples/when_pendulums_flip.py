"""Compute the time until a double pendulum first flips over, for 60 x 60 pairs of initial angles.

All pendulums start at rest, and one call simulates all of them for 6 s. Writes when_pendulums_flip.png.
"""

import numpy as np
from matplotlib.figure import Figure

import rbchain as rb

ACROSS, SECONDS = 60, 6.0

rod = rb.Inertia.rod(1.0, mass=1.0, axis=(0, -1, 0), cg=(0, -0.5, 0))
builder = rb.ModelBuilder(name="double pendulum", gravity=(0, -9.81, 0))
builder.add_body("upper", joint=rb.Revolute((0, 0, 1)), inertia=rod)
builder.add_body("lower", parent="upper", joint=rb.Revolute((0, 0, 1)), placement=rb.Pose((0, -1, 0)), inertia=rod)
pendulum = builder.build()

angles = np.linspace(-3.0, 3.0, ACROSS)
first, second = np.meshgrid(angles, angles, indexing="ij")
q = np.stack([first, second - first], axis=-1)  # the angle of the second joint is relative to the first link
motion = pendulum.simulate(q, duration=SECONDS, method="rk4", step=0.01, save_at=301)
turned = np.abs(motion.q.sum(-1)) > np.pi  # the absolute angle of the lower link
flip = np.where(turned.any(-1), motion.t[turned.argmax(-1)], np.nan)
print(f"{np.isfinite(flip).mean():.0%} of {flip.size} pendulums flip over within {SECONDS:.0f} s")

figure = Figure(figsize=(5.5, 4.5), layout="constrained")
axes = figure.subplots()
picture = axes.imshow(flip.T, origin="lower", extent=(-3, 3, -3, 3), cmap="viridis")
axes.set(xlabel="upper link (rad from hanging)", ylabel="lower link (rad)")
figure.colorbar(picture, label="time of the first flip (s); white: no flip")
figure.savefig("when_pendulums_flip.png")
