"""Simulate Puma arms with a computed-torque controller in one compiled loop, without Python calls.

Each arm follows q_i(t) = 0.3 sin(t + i). The controller uses the model without payload, but the simulated arms carry up
to 0.1 kg at the wrist. The loop computes all samples of a vector register at once. Writes own_controller.png.
"""

import math
import time
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import rbchain as rb
from rbchain import compiled

STIFFNESS, DAMPING = 400.0, 40.0  # 1/s^2, 1/s, feedback gains of the error


@compiled.driver
def track(real, known, steps, h):
    """Integrate the arms `real` by semi-implicit Euler steps; the controller uses the model `known`."""
    k, n = compiled.all_lanes(real.q), real.q.shape[0]
    for step in range(steps):
        t = step * h
        for i in range(n):
            wanted, speed = 0.3 * math.sin(t + i), 0.3 * math.cos(t + i)
            known.q[i, k] = real.q[i, k]
            known.qd[i, k] = real.qd[i, k]
            known.qdd[i, k] = STIFFNESS * (wanted - real.q[i, k]) + DAMPING * (speed - real.qd[i, k]) - wanted
        compiled.inverse_dynamics(known.model, known.q, known.qd, known.qdd, known.loads, known.work, k)
        for i in range(n):
            real.loads.tau[i, k] = known.loads.tau[i, k]
        compiled.forward_dynamics(real.model, real.q, real.qd, real.loads, real.qdd, real.work, k)
        for i in range(n):
            real.qd[i, k] = real.qd[i, k] + h * real.qdd[i, k]
            real.q[i, k] = real.q[i, k] + h * real.qd[i, k]


def main():
    """Simulate ten seconds and print the error that the unknown payload causes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the measured inertia of link 3, see the README
        arm = rb.load(Path(__file__).parent / "puma560.urdf")
    known = compiled.block_of(arm, register_full=True)
    arms = known.q.shape[1]
    payload = np.linspace(0.0, 0.1, arms)
    mass = np.tile(arm.mass, (arms, 1))
    mass[:, -1] += payload
    real = compiled.block_of(arm.vary(mass=mass), register_full=True, samples=range(arms))
    real.q[:] = 0.3 * np.sin(np.arange(arm.nq))[:, None]
    real.qd[:] = 0.3 * np.cos(np.arange(arm.nq))[:, None]
    track(real, known, 0, 1e-3)  # compiles
    started = time.perf_counter()
    track(real, known, 10_000, 1e-3)
    seconds = time.perf_counter() - started
    error = np.abs(real.q - 0.3 * np.sin(10.0 + np.arange(arm.nq))[:, None]).max(0)
    print(f"{arms} arms, 10,000 steps with one inverse and one forward dynamics each: {seconds * 1e3:.0f} ms")
    for kilograms, radians in zip(payload, error, strict=True):
        print(f"  unknown payload of {kilograms:.2f} kg: error {radians:.1e} rad")
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(payload, error, "o-", color="#1f5a99")
    axes.set(xlabel="unknown payload (kg)", ylabel="error (rad)")
    figure.savefig("own_controller.png")


if __name__ == "__main__":
    main()
