"""Measure the time that parameters per sample add, and the gain from two threads.

taskset -c 0 python benchmarks/own_parameters.py            # parameters per sample and shared parameters
python benchmarks/own_parameters.py --threads               # two threads and one thread, on an idle machine
"""

import sys
from pathlib import Path

import numpy as np

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians
from tests.mechanisms import random_tree

BATCH, N = 4096, 7


def own_parameters():
    """Measure forward dynamics with shared parameters and with parameters per sample."""
    rng = np.random.default_rng(1)
    model = random_tree(N, range(-1, N - 1))
    q, qd, tau = rng.normal(size=(3, BATCH, N))
    fields = {
        "mass": model.mass * rng.uniform(0.9, 1.1, (BATCH, N)),
        "cg": model.cg + 0.01 * rng.normal(size=(BATCH, N, 3)),
        "inertia": model.inertia * rng.uniform(0.9, 1.1, (BATCH, N, 1, 1)),
        "placement_translation": model.placement_translation + 0.01 * rng.normal(size=(BATCH, N, 3)),
        "axis": model.axis + 0.01 * rng.normal(size=(BATCH, N, 3)),
        "gravity": rng.normal(size=(BATCH, 3)),
    }
    models = {
        "shared": model,
        "mass, cg and inertia per sample": model.vary(**{name: fields[name] for name in ("mass", "cg", "inertia")}),
        "all parameters per sample": model.vary(**fields),
    }
    calls = {name: lambda varied=varied: varied.forward_dynamics(q, qd, tau) for name, varied in models.items()}
    seconds = medians(calls, 31)
    for name, time_of in seconds.items():
        per_dof = time_of / BATCH / N * 1e9
        print(f"{name}: {per_dof:.1f} ns per dof and sample, {time_of / seconds['shared']:.2f} times shared")


def two_threads():
    """Measure the gain from two threads, for a batch of 131,072 samples and for simulations."""
    model = random_tree(N, range(-1, N - 1))
    q, qd, tau = np.random.default_rng(0).normal(size=(3, 1 << 17, N))

    def with_threads(count, call):
        def run():
            rb.set_num_threads(count)
            for _ in range(5):
                call()

        return run

    calls = {
        "forward dynamics": lambda: model.forward_dynamics(q, qd, tau),
        "RK4": lambda: model.simulate(q[:BATCH], qd[:BATCH], 0.02, method="rk4", step=1e-3, save_at=2),
    }
    for name, call in calls.items():
        seconds = medians({"one": with_threads(1, call), "two": with_threads(2, call)})
        print(f"{name}: two threads are {seconds['one'] / seconds['two']:.2f} times as fast as one")


if __name__ == "__main__":
    if "--threads" in sys.argv[1:]:
        two_threads()
    else:
        rb.set_num_threads(1)
        own_parameters()
