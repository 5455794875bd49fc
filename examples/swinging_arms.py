"""Simulate ten thousand falling Puma arms whose link masses are known to 5 %, and animate them with their distribution.

Writes swinging_arms.gif, the picture of the README; its last frame as swinging_arms.png; and swinging_arms.html, which
plays fifty arms in any browser. `swinging_arms.py 50` simulates fifty arms only.
"""

import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

import rbchain as rb

ARMS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
DRAWN = min(50, ARMS)
START = [0.3, -0.8, 0.6, 0.2, 0.4, 0.0]  # rad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about the published inertia of link 3, which no body can have
    arm = rb.load(Path(__file__).parent / "puma560.urdf")
masses = arm.mass * np.random.default_rng(0).normal(1.0, 0.05, (ARMS, arm.n_bodies))
arms = arm.vary(mass=masses)
# no warning that the arms exceed their position limits, which are not enforced
motion = arms.simulate(START, duration=1.2, rtol=1e-6, save_at=49, on_failure="ignore")

tool = arms[:, None].frame_poses(motion.q, "tool0").translation  # (arms, times, 3), m
print(f"standard deviation of the tool positions after {motion.t[-1]:.1f} s: {tool[:, -1].std(0).round(3)} m")

frames = [*arm.body_names, "tool0"]
joints = np.stack([arm.frame_poses(motion.q[:DRAWN], name).translation for name in frames], axis=-2)
side, height = joints[..., [0, 2]], tool[..., 2]

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), dpi=80, gridspec_kw={"width_ratios": (1, 0.8)})
left.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xlabel="x (m)", ylabel="z (m)", title=f"{DRAWN} of the arms")
left.plot([0], [0], "ko", markersize=9)
colors = plt.cm.viridis(np.linspace(0.0, 0.95, DRAWN))
lines = [left.plot([], [], "o-", color=color, linewidth=2.0, markersize=3.0, alpha=0.6)[0] for color in colors]
bins = np.linspace(height.min(), height.max(), 100)
right.set(xlim=(height.min(), height.max()), xlabel="height of the tool (m)", ylabel="share of the arms", yticks=[])
steps = right.stairs(np.zeros(len(bins) - 1), bins, fill=True, color="tab:blue")


def draw(i: int) -> None:
    """Draw the arms and the histogram at saved time i."""
    for line, positions in zip(lines, side[:, i], strict=True):
        line.set_data(*positions.T)
    counts = np.histogram(height[:, i], bins)[0]
    steps.set_data(counts)
    right.set(ylim=(0, 1.1 * counts.max()), title=f"{ARMS:,} arms after {motion.t[i]:.2f} s")


figure.tight_layout()
FuncAnimation(figure, draw, frames=len(motion.t)).save("swinging_arms.gif", writer="pillow", fps=12)
figure.savefig("swinging_arms.png")
motion[:DRAWN].film("swinging_arms.html", fps=15)
