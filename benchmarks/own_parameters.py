"""What it costs that chains differ, and what two threads gain.

taskset -c 0 python benchmarks/own_parameters.py            # own parameters over shared ones
python benchmarks/own_parameters.py --threads               # two threads against one, on an otherwise idle machine
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
    """Forward dynamics of chains that differ in their masses, and in everything, over those that are all the same."""
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
        "own mass, cg and inertia": model.vary(**{name: fields[name] for name in ("mass", "cg", "inertia")}),
        "own everything of revolute joints": model.vary(**fields),
    }
    calls = {name: lambda chains=chains: chains.forward_dynamics(q, qd, tau) for name, chains in models.items()}
    seconds = medians(calls, 31)
    for name, time_of in seconds.items():
        print(
            f"{name}: {time_of / BATCH / N * 1e9:.1f} ns per body, {time_of / seconds['shared']:.2f} times shared ones"
        )


def two_threads():
    """Speed of two threads over one, for a batch of 131,072 and for trajectories."""
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
        "RK4": lambda: model.simulate(q[:BATCH], qd[:BATCH], 0.02, method="rk4", step=1e-3),
    }
    for name, call in calls.items():
        seconds = medians({"one": with_threads(1, call), "two": with_threads(2, call)})
        print(f"two threads over one, {name}: {seconds['one'] / seconds['two']:.2f} times the speed")


if __name__ == "__main__":
    if "--threads" in sys.argv[1:]:
        two_threads()
    else:
        rb.set_num_threads(1)
        own_parameters()
