"""Build the ports, compare their results with rbchain, and measure their times.

    taskset -c 0 python -m benchmarks.ports

The problems are forward dynamics, RK4 and RK45 of a serial chain and of a tree, in batches. The script names the ports
whose compilers are not installed.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import rbchain as rb
from benchmarks.ports.toolchains import build_all, ports
from benchmarks.timing import medians, processor, relative
from tests.mechanisms import random_tree

AGREEMENT = 1e-10
SLOW = {"NumPy", "Octave", "C#, Mono"}  # these compute a smaller batch
PROBLEMS = {
    "serial chain of 7": random_tree(7, range(-1, 6)),
    "tree of 12": random_tree(12, [-1, 0, 1, 1, 0, 4, 5, 4, -1, 8, 9, 8], ("revolute", "prismatic", "screw")),
}
TASKS = {
    "forward dynamics": {},
    "rk4": {"duration": 0.1, "step": 1e-3},
    "rk45": {"duration": 0.5, "rtol": 1e-8, "atol": 1e-10},
}


def solve(model, states, task, duration=0.0, **settings):
    """Compute the numbers that a port must return."""
    q, qd, tau = states
    if task == "forward dynamics":
        return model.forward_dynamics(q, qd, tau)
    motion = model.simulate(q, qd, duration, method=task, tau=tau, **settings)
    return np.concatenate([motion.q[:, -1], motion.qd[:, -1]], axis=-1)


def compete(table, title, model, programs, folder):
    """Add the rows of a problem to the table; return the ports that do not agree."""
    wrong = []
    for task, settings in TASKS.items():
        states = np.random.default_rng(0).normal(size=(3, 1024, model.n_bodies))
        expected = solve(model, states, task, **settings)
        call = partial(solve, model, states, task, **settings)
        ours = medians({"rbchain": call}, 5)["rbchain"] / len(states[0])
        table.add_row(title, task, "rbchain", f"{ours * 1e6:.3g}", "1", "")
        for program in programs:
            count = 32 if program.name in SLOW else 1024
            few = [x[:count] for x in states]
            seconds, found, _ = program.run(folder, model, few, task, repeats=3, **settings)
            per_sample, off = np.median(seconds) / count, relative(found, expected[:count])
            table.add_row("", "", program.name, f"{per_sample * 1e6:.3g}", f"{per_sample / ours:.1f}", f"{off:.0e}")
            if not off < AGREEMENT:
                wrong.append(f"{program.name}, {title}, {task}: {off:.0e}")
    return wrong


def main():
    """Build, run, compare and print; exit with 1 if a port does not agree."""
    rb.set_num_threads(1)
    table = Table(title=f"{processor()}; one core; batches of 1024 (of {', '.join(sorted(SLOW))}: 32)")
    for column in ("problem", "task", "program", "us per sample", "divided by rbchain", "largest difference"):
        table.add_column(column)
    with tempfile.TemporaryDirectory() as folder:
        programs, missing = build_all(Path(folder), ports(Path(folder)))
        wrong = [line for title, model in PROBLEMS.items() for line in compete(table, title, model, programs, folder)]
    Console(width=120).print(table)
    for name, why in missing:
        print(f"not measured: {name}: {why}")
    if wrong:
        raise SystemExit("these differ from rbchain by more than " + f"{AGREEMENT}:\n" + "\n".join(wrong))
    print(f"all {len(programs)} agree with rbchain to {AGREEMENT}")


if __name__ == "__main__":
    main()
