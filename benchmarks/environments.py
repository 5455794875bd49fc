"""Measure the steps per second of CPU time of vector environments of rbchain, and of Gymnasium with MuJoCo.

    python benchmarks/environments.py

A state step is one integration step of one sample. All environments take RK4 steps. The actions are random, and an
episode that has ended starts again in the next step.
"""

import platform
import sys
import time
from pathlib import Path

import gymnasium

import rbchain as rb
import rbchain.envs

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import processor

#: State steps for each step of an environment.
STATE_STEPS = {"rbchain/CartPoleSwingUp-v0": 2, "InvertedPendulum-v5": 2, "rbchain/Reacher-v0": 10, "Reacher-v5": 2}
BATCHES, SECONDS, ROUNDS = (1, 64, 1024), 1.0, 5


def steps_per_second(envs, seed=0):
    """Return the largest number of steps of all environments per second of CPU time, of a few rounds."""
    envs.reset(seed=seed)
    envs.action_space.seed(seed)
    actions = [envs.action_space.sample() for _ in range(10)]
    envs.step(actions[0])
    best = 0.0
    for _ in range(ROUNDS):
        count, start = 0, time.process_time()
        while time.process_time() - start < SECONDS:
            envs.step(actions[count % 10])
            count += 1
        best = max(best, count * envs.num_envs / (time.process_time() - start))
    return best


def main():
    """Print one row for each environment and size of the batch."""
    rb.set_num_threads(1)
    print(f"{processor()}, Python {platform.python_version()}, gymnasium {gymnasium.__version__}")
    print(f"{'environment':28s} {'samples':>7s} {'steps/s':>10s} {'state steps/s':>14s}")
    for name, count in STATE_STEPS.items():
        for samples in BATCHES:
            envs = gymnasium.make_vec(name, num_envs=samples)
            rate = steps_per_second(envs)
            print(f"{name:28s} {samples:7d} {rate:10,.0f} {count * rate:14,.0f}", flush=True)
            envs.close()


if __name__ == "__main__":
    main()
