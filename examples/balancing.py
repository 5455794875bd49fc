"""Balance a pole on a cart with a linear-quadratic regulator, computed from the exact derivatives of the dynamics.

Twelve carts start with different tilts of the pole. Writes balancing.png.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import solve_continuous_are

import rbchain as rb

MOTOR = 12.0  # N, largest force of the motor

builder = rb.ModelBuilder(name="cart and pole")
builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0))
pole = rb.Inertia.rod(1.0, mass=0.2, axis=(0, 0, 1), cg=(0, 0, 0.5))
builder.add_body("pole", parent="cart", joint=rb.Revolute((0, 1, 0)), inertia=pole)
cart = builder.build()

upright = np.zeros(2)
by_q, by_qd, by_tau = cart.forward_dynamics_derivatives(upright, upright, upright)
A = np.block([[np.zeros((2, 2)), np.eye(2)], [by_q, by_qd]])
B = np.concatenate([np.zeros((2, 1)), by_tau[:, :1]])  # only the cart has a motor
cost = np.diag([1.0, 10.0, 1.0, 1.0])
gains = B.T @ solve_continuous_are(A, B, cost, np.eye(1))
print("gains:", gains[0].round(3), " poles:", np.linalg.eigvals(A - B @ gains).round(2))


def regulate(t, q, qd, K, out):
    """Apply the force -K x to the cart, limited by the motor."""
    force = K[0] * q[0] + K[1] * q[1] + K[2] * qd[0] + K[3] * qd[1]
    out[0] -= min(max(force, -K[4]), K[4])


tilts = np.linspace(0.1, 1.3, 12)
start = np.stack([np.zeros(12), tilts], axis=-1)
motion = cart.simulate(
    start,
    0 * start,
    4.0,
    method="rk4",
    step=0.02,
    save_at=101,
    drives=[rb.UserForces(regulate, parameters=[*gains[0], MOTOR])],
)
stands = np.abs(motion.q[:, -1, 1]) < 0.05
print(f"{stands.sum()} of 12 poles are upright after 4 s, with initial tilts up to {tilts[stands].max():.2f} rad")

figure = Figure(figsize=(7, 3.5), layout="constrained")
axes = figure.subplots()
axes.plot(motion.t, motion.q[stands, :, 1].T, color="#1f5a99", alpha=0.6)
axes.plot(motion.t, motion.q[~stands, :, 1].T, color="#e0702a", alpha=0.8)
axes.set(xlabel="t (s)", ylabel="pole (rad from upright)", ylim=(-2, 4))
figure.savefig("balancing.png")
