"""Simulate fifty Puma arms whose masses are known to 5 %, and write a film of their motions.

Writes swinging_arms.png, and swinging_arms.html, which plays in any browser.
"""

import warnings
from pathlib import Path

import numpy as np

import rbchain as rb

ARMS = 50

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about the measured inertia of link 3, see the README
    arm = rb.load(Path(__file__).parent / "puma560.urdf")
masses = arm.mass * np.random.default_rng(0).uniform(0.95, 1.05, (ARMS, arm.n_bodies))
arms = arm.vary(mass=masses)
start = np.tile([0.3, -0.8, 0.6, 0.2, 0.4, 0.0], (ARMS, 1))
# without a warning that the arms leave their position limits, which do not act on the motion
motion = arms.simulate(start, duration=1.0, rtol=1e-6, save_at=31, on_failure="ignore")

tool = arms.frame_poses(motion.q[:, -1], "tool0").translation
print(f"range of the tool positions after {motion.t[-1]:.1f} s: {np.ptp(tool, axis=0).round(3)} m")
motion.film("swinging_arms.html", fps=15)
motion.plot("states").savefig("swinging_arms.png")
