"""Identify the gearbox of a servo, whose friction grows with the torque, from a noisy trajectory.

A joint lifts and lowers an arm. The example fits two models: one with constant joint friction only, and one that also
has gearbox friction in proportion to the torque. Only the second model explains the motion. Writes geared_joint.png.
"""

import numpy as np
from matplotlib.figure import Figure

import rbchain as rb

NOISE = 2e-3  # rad
SPEED = 0.05  # rad/s, below which the friction is smaller

arm = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -9.81, 0))


def with_friction(friction):
    return arm.replace(friction=friction, friction_velocity=SPEED)


def drives(gear_friction):
    servo = rb.PID("link1", rb.Signal.sines(0.8, 4.0), kp=30.0, kd=1.0)
    return [servo, rb.Actuator("link1", gear_friction=gear_friction, gear_friction_velocity=SPEED)]


t = np.linspace(0.0, 1.0, 51)
settings = {"rtol": 1e-5, "atol": 1e-7}
true = with_friction(0.3).simulate([0.0], duration=t[-1], save_at=t, drives=drives(0.25), **settings)
measured = true.q + np.random.default_rng(0).normal(0.0, NOISE, true.q.shape)
measured[0] = 0.0  # the servo starts at its reference

settings |= {"noise": NOISE, "starts": 1}
motion, joint, gear = (t, measured, None), "link1.friction", "link1.gear_friction"
constant = rb.fit(with_friction(0.6), motion, [joint], drives=drives(0.0), **settings)
geared = rb.fit(with_friction(0.6), motion, [joint, gear], drives=drives(0.1), **settings)
print(f"friction of the joint only\n{constant}\n\nfriction of the joint and of the gear\n{geared}")

figure = Figure(figsize=(7, 4), layout="constrained")
upper, lower = figure.subplots(2, 1, sharex=True)
upper.plot(t, measured, ".", ms=3, color="0.6", label="measured")
upper.plot(t, geared.motion.q, lw=1.2, label="model with a gear")
upper.set(ylabel="angle (rad)")
upper.legend()
lower.plot(t, 1e3 * constant.residuals[:, 0], lw=1.2, label="without a gear")
lower.plot(t, 1e3 * geared.residuals[:, 0], lw=1.2, label="with a gear")
lower.set(xlabel="t (s)", ylabel="residual (mrad)")
lower.legend()
figure.savefig("geared_joint.png")
