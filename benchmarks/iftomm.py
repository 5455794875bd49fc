"""Measure error against CPU time for the IFToMM benchmarks A02 to A05, one mechanism on one core, at three tolerances.

    taskset -c 0 python benchmarks/iftomm.py

The published times are those of OpenSim on a core of an i5-4570 at 3.2 GHz. Problems: Gonzalez, Dopico, Gonzalez and
Cuadrado (2006), "A benchmarking system for MBS simulation software". CPU times are medians of five runs in a warm
process, with 101 saved states.
"""

import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.closed_chains import parallelograms
from benchmarks.timing import processor
from tests.closed_chains import benchmark

TOLERANCES = (1e-6, 1e-8, 1e-10)
RUNS, SAVED = 5, 101
PUBLISHED = {"A02, N = 40": 0.455, "A03": 0.384, "A04, square section": 0.258, "A05": 0.233}  # s
REFERENCES = Path(__file__).parents[1] / "tests" / "references"


class Problem:
    """A mechanism with its initial state, loads and duration, and the error of a motion."""

    def __init__(self, model, q, qd, duration, error, tau=0.0, springs=()):
        self.model, self.q, self.qd, self.duration, self.error = model, q, qd, duration, error
        self.settings = {"tau": tau, "forces": list(springs)}

    def run(self, tolerance):
        return self.model.simulate(
            self.q, self.qd, self.duration, rtol=tolerance, atol=tolerance, save_at=SAVED, **self.settings
        )


def energy_variation(problem_model):
    def error(motion):
        energy = np.sum(problem_model.energy(motion.q, motion.qd), axis=0)
        return f"energy {np.abs(energy - energy[0]).max():.1e} J"

    return error


def four_bars(count):
    model = parallelograms(count)
    qd = np.r_[np.tile([1.0, -1.0], count), 1.0]

    def error(motion):
        energy = np.sum(model.energy(motion.q, motion.qd), axis=0)
        spread = np.ptp(motion.q[:, ::2], axis=1).max()
        return f"energy {np.abs(energy - energy[0]).max():.1e} J, cranks {spread:.0e} rad apart"

    return Problem(model, np.zeros(model.nv), qd, 10.0, error)


def squeezer():
    chain, reference = benchmark("A03_beta0062")
    names = [body["name"] for body in reference["bodies"]]
    springs = [
        rb.SpringDamper(
            *(None if spring[side] < 0 else names[spring[side]] for side in "ab"),
            point_a=spring["pa"],
            point_b=spring["pb"],
            stiffness=spring["stiffness"],
            damping=spring.get("damping", 0.0),
            rest_length=spring["rest_length"],
        )
        for spring in reference["springs"]
    ]
    last = np.array([float(x) for x in reference["samples"][-1]["q"]])
    tau = np.array([body["tau"] for body in reference["bodies"]])
    error = lambda motion: f"angles {np.abs(motion.q[-1] - last).max():.1e} rad"  # noqa: E731
    return Problem(chain.model, chain.guess, np.zeros(chain.model.nv), 0.05, error, tau, springs)


def bricard(name):
    chain, _ = benchmark(name)
    return Problem(chain.model, chain.guess, np.zeros(chain.model.nv), 10.0, energy_variation(chain.model))


def governor():
    reference = json.loads((REFERENCES / "governor.json").read_text(encoding="utf-8"))
    builder, bodies = rb.ModelBuilder(name="A05", gravity=reference["gravity"]), reference["bodies"]
    names = [body["name"] for body in bodies]
    for body in bodies:
        joint = (rb.Prismatic if body["joint"] == "prismatic" else rb.Revolute)(body["axis"])
        builder.add_body(
            body["name"],
            parent=None if body["parent"] < 0 else names[body["parent"]],
            joint=joint,
            placement=rb.Pose(body["placement"]),
            inertia=rb.Inertia(body["mass"], cg=body["cg"], inertia=np.array(body["inertia"])),
        )
    springs = [
        rb.SpringDamper(
            names[s["a"]],
            names[s["b"]],
            point_a=s["pa"],
            point_b=s["pb"],
            stiffness=s["stiffness"],
            damping=s["damping"],
            rest_length=s["rest_length"],
        )
        for s in reference["springs"]
    ]
    first, last = (np.array([float(x) for x in reference["samples"][i]["q"]]) for i in (0, -1))
    qd = np.array([float(x) for x in reference["samples"][0]["v"]])
    error = lambda motion: f"s {abs(motion.q[-1, 1] - last[1]):.1e} m"  # noqa: E731
    return Problem(builder.build(), first, qd, 10.0, error, springs=springs)


def main():
    rb.set_num_threads(1)
    problems = {
        "A02, N = 2": four_bars(2),
        "A02, N = 40": four_bars(40),
        "A03": squeezer(),
        "A04, square section": bricard("A04_bricard"),
        "A04, slender": bricard("A04_bricard_slender"),
        "A05": governor(),
    }
    table = Table("problem", "rtol = atol", "steps", "error", "CPU, s", "published, s")
    for name, problem in problems.items():
        for tolerance in TOLERANCES:
            motion, seconds = problem.run(tolerance), []
            for _ in range(RUNS):
                started = time.process_time()
                problem.run(tolerance)
                seconds.append(time.process_time() - started)
            error = problem.error(motion) if motion.success else motion.message
            published = str(PUBLISHED.get(name, ""))
            table.add_row(name, f"{tolerance:g}", str(int(motion.steps)), error, f"{np.median(seconds):.4f}", published)
    console = Console(width=130)
    console.print(f"{processor()}, Python {platform.python_version()}")
    console.print(table)


if __name__ == "__main__":
    main()
