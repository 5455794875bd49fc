"""Identify the inertial parameters of an arm from noisy actuator torques, with the regressor.

Only certain linear combinations of the inertial parameters, the base parameters, can be identified from a motion.
Writes identification.png.
"""

import numpy as np
from matplotlib.figure import Figure

import rbchain as rb

NOISE = 0.02  # N m

arm = rb.Model.serial_chain(3, gravity=(0, -9.81, 0))
base = arm.base_parameters()
true = base.projection @ arm.inertial_parameters

rng = np.random.default_rng(0)
t = np.linspace(0.0, 5.0, 400)[:, None]
w = np.array([1.3, 2.1, 3.4])
q, qd, qdd = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
clean = arm.inverse_dynamics(q, qd, qdd)
measured = clean + rng.normal(0.0, NOISE, clean.shape)

Y = arm.inverse_dynamics_regressor(q, qd, qdd).reshape(-1, 10 * arm.n_bodies)[:, base.columns]
found, *_ = np.linalg.lstsq(Y, measured.ravel(), rcond=None)
spread = NOISE * np.sqrt(np.diag(np.linalg.inv(Y.T @ Y)))  # standard deviations of the estimates
for name, value, estimate, sigma in zip(base.names, true, found, spread, strict=True):
    print(f"{name:45s} {value:+.5f}   estimate {estimate:+.5f} +- {sigma:.5f}")
print(f"the largest error is {np.abs((found - true) / spread).max():.1f} standard deviations")

figure = Figure(figsize=(7, 3.5), layout="constrained")
axes = figure.subplots()
axes.plot(t, measured, ".", ms=2, color="0.6")
axes.plot(t, (Y @ found).reshape(measured.shape), lw=1.2)
axes.set(xlabel="t (s)", ylabel="actuator torque (N m)")
figure.savefig("identification.png")
