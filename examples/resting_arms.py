"""Simulate 10,000 arms with uncertain dry friction, which come to rest at different positions.

The joints stick as soon as friction supports the weight: the velocities are then exactly zero. Regularized friction
resists a force only at a nonzero velocity, so the same arms with regularized friction creep towards the vertical.
Writes resting_arms.png. Pass another number of arms as an argument.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import rbchain as rb

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
CREEPING = min(COUNT, 8)  # arms that are simulated with regularized friction too
REST, END = 3.0, 12.0  # s

arm = rb.Model.serial_chain(2)  # two links of 0.25 m and 0.1 kg
friction = np.random.default_rng(0).normal([0.2, 0.05], [0.02, 0.005], (COUNT, 2))  # N m, of both joints
start = np.zeros((COUNT, 2))  # horizontal, at rest


def tip_angle(q):
    """Return the angle of the tip below the horizontal, seen from the base, in degrees."""
    pose = arm.frame_poses(q, "link2")
    tip = pose.translation + pose.rotation @ [0.25, 0, 0]
    return np.degrees(np.arctan2(-tip[..., 1], tip[..., 0]))


dry = [rb.DryFriction(joint, friction[:, i]) for i, joint in enumerate(arm.joint_names)]
motion = arm.simulate(start, start, REST, method="moreau", step=5e-3, forces=dry, save_at=61)
angles = tip_angle(motion.q)
resting = (motion.qd[:, -1] == 0.0).all(-1)
print(f"{resting.sum()} of {COUNT} arms are at rest after {REST:.0f} s")
print(f"tip below the horizontal: {angles[:, -1].mean():.1f} deg, standard deviation {angles[:, -1].std():.1f} deg")

regularized = arm.vary(friction=friction[:CREEPING], friction_velocity=np.full((CREEPING, 2), 0.05))
few = start[:CREEPING]
creeping = regularized.simulate(few, few, END, method="rosenbrock", rtol=1e-4, atol=1e-5, save_at=121)
slow = tip_angle(creeping.q)
change = np.abs(slow[:, -1] - slow[:, creeping.t.searchsorted(REST)])
print(f"from {REST:.0f} s to {END:.0f} s, arms with regularized friction creep by up to {change.max():.1f} deg")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
left.hist(angles[:, -1], bins=40)
left.set(xlabel="tip below the horizontal / deg", ylabel="arms", title="positions at rest")
right.plot(np.append(motion.t, END), np.column_stack([angles, angles[:, -1]])[:CREEPING].T, color="tab:blue")
right.plot(creeping.t, slow.T, color="tab:orange", linestyle="--")
right.plot([], [], color="tab:blue", label="friction that sticks")
right.plot([], [], color="tab:orange", linestyle="--", label="regularized friction")
right.set(xlabel="t / s", ylabel="tip below the horizontal / deg", title=f"{CREEPING} of the arms")
right.legend()
figure.tight_layout()
figure.savefig("resting_arms.png")
