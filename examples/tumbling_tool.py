"""Simulate the Dzhanibekov effect: a T-handle in free fall that spins about its intermediate axis flips periodically.

The angular momentum is constant, which checks the result. Writes tumbling_tool.png.
"""

import numpy as np
from matplotlib.figure import Figure

import rbchain as rb

builder = rb.ModelBuilder(name="T-handle", gravity=(0, 0, 0))
builder.add_body("bar", joint=rb.Free(), inertia=rb.Inertia.cylinder(0.008, 0.12, mass=0.06, axis=(1, 0, 0)))
stem = rb.Inertia.cylinder(0.008, 0.06, mass=0.03, axis=(0, 1, 0))
builder.add_body("stem", parent="bar", joint=rb.Fixed(), placement=rb.Pose((0, 0.03, 0)), inertia=stem)
tool = builder.build()

q, qd = tool.neutral(), np.array([0, 0, 0, 0.05, 12.0, 0.05])  # a free joint's velocity: m/s, then rad/s
motion = tool.simulate(q, qd, 5.0, rtol=1e-10, atol=1e-12, save_at=501)

spin = motion.qd[:, 3:]
flips = int((np.diff(np.sign(spin[:, 1])) != 0).sum())
momentum = tool.momentum(motion.q, motion.qd)[:, 3:]
drift = np.abs(momentum - momentum[0]).max() / np.linalg.norm(momentum[0])
print(f"moments of inertia {np.linalg.eigvalsh(tool.inertia[0])} kg m^2")
print(f"{flips} flips in 5 s; relative change of the angular momentum: {drift:.0e}")

figure = Figure(figsize=(8, 3.5), layout="constrained")
axes = figure.subplots()
axes.plot(motion.t, spin, label=["along the bar", "along the stem", "across both"])
axes.set(xlabel="t (s)", ylabel="angular velocity, body axes (rad/s)")
axes.legend(loc="upper right", frameon=False)
figure.savefig("tumbling_tool.png")
