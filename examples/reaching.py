"""Solve the inverse kinematics of forty arms by damped least squares with the Jacobian.

Writes reaching.png.
"""

import numpy as np
from matplotlib.figure import Figure

import rbchain as rb

ARMS, TIP, DAMPING = 40, (0.4, 0.0, 0.0), 1e-2

arm = rb.Model.serial_chain(4, length=0.4)
rng = np.random.default_rng(1)
distance, direction = rng.uniform(0.5, 1.5, ARMS), rng.uniform(-np.pi, np.pi, ARMS)
targets = distance[:, None] * np.stack([np.cos(direction), np.sin(direction)], axis=-1)
q = np.stack([direction, *np.full((3, ARMS), 0.3)], axis=-1)

iterations = 0
while True:
    poses = arm.frame_poses(q, "link4")
    tips = poses.translation + poses.rotation @ TIP
    error = targets - tips[:, :2]
    if np.abs(error).max() < 1e-10 or iterations == 50:
        break
    iterations += 1
    J = arm.jacobian(q, "link4", point=TIP)[:, :2]
    weight = DAMPING * (error**2).sum(-1)[:, None, None] * np.eye(2)  # vanishes at the target
    q = q + (np.swapaxes(J, 1, 2) @ np.linalg.solve(J @ np.swapaxes(J, 1, 2) + weight, error[..., None]))[..., 0]
print(f"{ARMS} arms, {iterations} iterations: largest error {np.abs(error).max():.0e} m")

figure = Figure(figsize=(5, 5), layout="constrained")
axes = figure.subplots()
joints = np.concatenate([arm.body_poses(q).translation, tips[:, None]], axis=1)
axes.plot(*np.moveaxis(joints[..., :2], (2, 0), (0, 2)), color="#1f5a99", alpha=0.35)
axes.plot(*targets.T, ".", color="#e0702a")
axes.set(aspect="equal", xlabel="x (m)", ylabel="y (m)")
figure.savefig("reaching.png")
