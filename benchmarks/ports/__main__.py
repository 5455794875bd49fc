"""Build the ports, compare their results with rbchain, and measure their times.

    taskset -c 0 python -m benchmarks.ports

The problems are forward dynamics, RK4 and RK45 of a serial chain and of a tree, in batches. The script prints the
command that builds each port, and names the ports whose compilers are not installed.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

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


def print_row(*cells):
    """Print a row of the table. The output appears at once, also in a file or a pipe."""
    print("{:17} {:16} {:23} {:>13} {:>18} {:>18}".format(*cells).rstrip(), flush=True)


def build(folder):
    """Build the ports and print the command of each; return the programs."""
    programs = []
    for port in ports(folder):
        built, missing = build_all(folder, [port])
        programs += built
        for name, why in missing:
            print(f"not measured: {name}: {why}", flush=True)
        if built and port.build:
            print(f"built: {port.name}:", *port.build, flush=True)
    return programs


def compete(title, model, programs, folder):
    """Measure a problem and print its rows; return the ports that do not agree."""
    wrong = []
    for task, settings in TASKS.items():
        states = np.random.default_rng(0).normal(size=(3, 1024, model.n_bodies))
        expected = solve(model, states, task, **settings)
        call = partial(solve, model, states, task, **settings)
        ours = medians({"rbchain": call}, 5)["rbchain"] / len(states[0])
        print_row(title, task, "rbchain", f"{ours * 1e6:.3g}", "1", "")
        for program in programs:
            count = 32 if program.name in SLOW else 1024
            few = [x[:count] for x in states]
            seconds, found, _ = program.run(folder, model, few, task, repeats=3, **settings)
            per_sample, off = np.median(seconds) / count, relative(found, expected[:count])
            print_row("", "", program.name, f"{per_sample * 1e6:.3g}", f"{per_sample / ours:.1f}", f"{off:.0e}")
            if not off < AGREEMENT:
                wrong.append(f"{program.name}, {title}, {task}: {off:.0e}")
    return wrong


def main():
    """Build, run, compare and print; exit with 1 if a port does not agree."""
    rb.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        programs = build(Path(folder))
        print(f"\n{processor()}; one core; batches of 1024 (of {', '.join(sorted(SLOW))}: 32)\n")
        print_row("problem", "task", "program", "us per sample", "divided by rbchain", "largest difference")
        wrong = [line for title, model in PROBLEMS.items() for line in compete(title, model, programs, folder)]
    if wrong:
        raise SystemExit("these differ from rbchain by more than " + f"{AGREEMENT}:\n" + "\n".join(wrong))
    print(f"all {len(programs)} agree with rbchain to {AGREEMENT}")


if __name__ == "__main__":
    main()
