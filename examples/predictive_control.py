"""Swing up a pendulum by predictive control in one compiled loop. The torque limit is 40 % of the gravity torque.

Before each call, all samples of the plan start from the state of the plant and move for 1.2 s with random torques. The
mean of these torques, weighted by their costs, is the new plan (model predictive path integral control). The plant is
5 % heavier than the model of the plan. Writes predictive_control.png.

    python predictive_control.py [samples] [calls]
"""

import math
import sys
import time

import numpy as np
from matplotlib.figure import Figure

import rbchain as rb
from rbchain import compiled

STEP, STEPS, HORIZON = 0.01, 5, 24  # s, steps of a call, and calls of the plan
LIMIT, TEMPERATURE = 0.05, 0.1  # N m, and the cost by which a weight falls to 37 %


@compiled.driver
def control(plant, plan, torques, trials, costs, motion):
    """Move the plant. `trials` (calls, samples, horizon) start as noise; `motion` (calls, 2) gets angle and torque."""
    samples, horizon = trials.shape[1:]
    for call in range(trials.shape[0]):
        trial = trials[call]
        for s in range(samples):
            compiled.copy_sample(plant, 0, plan, s)
            costs[s] = 0.0
        for i in range(horizon):
            for s in range(samples):
                trial[s, i] = min(max(torques[i] + trial[s, i], -LIMIT), LIMIT)
                plan.tau[s, 0] = trial[s, i]
            compiled.step(plan, STEPS)
            for s in range(samples):
                costs[s] += 1.0 - math.sin(plan.q[s, 0]) + 0.01 * plan.qd[s, 0] ** 2
        least, total = math.inf, 0.0
        for s in range(samples):
            least = min(least, costs[s])
        for s in range(samples):
            costs[s] = math.exp((least - costs[s]) / TEMPERATURE)
            total += costs[s]
        for i in range(horizon):
            torques[i] = 0.0
            for s in range(samples):
                torques[i] += costs[s] / total * trial[s, i]
        motion[call, 0], motion[call, 1] = plant.q[0, 0], torques[0]
        plant.tau[0, 0] = torques[0]
        compiled.step(plant, STEPS)
        for i in range(horizon - 1):  # the last torque stays the same
            torques[i] = torques[i + 1]


def main():
    """Control the pendulum for four seconds, which start with a call that only compiles."""
    samples, calls = (int(given) for given in (*sys.argv[1:], *(64, 80)[len(sys.argv) - 1 :]))
    pendulum = rb.Model.serial_chain(1)
    plant = pendulum.vary(mass=[[0.105]]).stepper([[-np.pi / 2]], step=STEP)
    plan = pendulum.vary(mass=np.full((samples, 1), 0.1)).stepper(np.zeros((samples, 1)), step=STEP)
    trials = np.random.default_rng(0).normal(0.0, LIMIT, (calls, samples, HORIZON))
    torques, costs, motion = np.zeros(HORIZON), np.zeros(samples), np.zeros((calls, 2))
    steppers = plant.in_compiled_code(), plan.in_compiled_code()
    control(*steppers, torques, trials[:0], costs, motion)
    started = time.perf_counter()
    control(*steppers, torques, trials, costs, motion)
    seconds = time.perf_counter() - started
    print(f"{calls} calls: {1e3 * seconds / calls:.1f} ms for each call of {1e3 * STEP * STEPS:.0f} ms")
    print(f"{1e6 * seconds / (calls * samples * HORIZON * STEPS):.2f} us per sample and step of the plan")
    upright = np.sin(motion[-20:, 0]).min()
    print(f"smallest sine of the angle in the last second: {upright:.2f}; upright is 1")

    t = STEP * STEPS * np.arange(calls)
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(t, np.sin(motion[:, 0]), color="#1f5a99")
    above.set(ylabel="sine of the angle", ylim=(-1.1, 1.1))
    below.step(t, motion[:, 1], where="post", color="#e0702a")
    below.set(xlabel="time (s)", ylabel="torque (N m)")
    figure.savefig("predictive_control.png")


if __name__ == "__main__":
    main()
