"""A controller of your own in compiled code: computed torque, as many Puma arms at once as fill a register.

Each arm is to follow q_i(t) = 0.3 sin(t + i), and does not know its own payload: the controller computes with the bare
arm, the motion with up to 0.1 kg at the wrist. Nothing in the loop is Python.
"""

import math
import time
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import rbchain as rb
from rbchain import compiled

STIFFNESS, DAMPING = 400.0, 40.0  # 1/s^2, 1/s: of the error, once the dynamics is cancelled


@compiled.driver
def track(real, known, steps, h):
    """Semi-implicit Euler steps of the real arms; `known` is what the controller takes them for."""
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
    """Run ten seconds and show what error the payload leaves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the measured inertia of link 3, see the README
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
    print(f"{arms} arms, 10,000 steps each with one inverse and one forward dynamics: {seconds * 1e3:.0f} ms")
    for kilograms, radians in zip(payload, error, strict=True):
        print(f"  {kilograms:.2f} kg unknown at the wrist: off by {radians:.1e} rad")
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(payload, error, "o-", color="#1f5a99")
    axes.set(xlabel="payload that the controller does not know (kg)", ylabel="off by (rad)")
    figure.savefig("own_controller.png")


if __name__ == "__main__":
    main()
