"""Measure error against CPU time for stiff systems: "rosenbrock", "rk45", and SciPy's Radau and BDF, on one core.

    taskset -c 0 python benchmarks/stiff.py [--problems A05 arm cable]

SciPy integrates the same right-hand side: `forward_dynamics` with the passive forces and the forces between bodies. It
computes Jacobians by differences of one vectorised call. The error is the largest deviation of a position from a
reference at the end, in rad or m. The reference is "rosenbrock" with a tolerance of 1e-12. CPU times are the minimum of
the runs in a warm process.
"""

import argparse
import platform
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.iftomm import Problem, governor
from benchmarks.timing import processor

TOLERANCES = 10.0 ** -np.arange(3, 11)
LIMIT = 20.0  # s; a method that takes longer is not run with smaller tolerances
RUNS = 3


def arm():
    """A falling Puma 560 with dampers, dry friction and, in the elbow and the wrist, stiff springs."""
    robot = rb.load(Path(__file__).parents[1] / "examples" / "puma560.urdf")
    n = robot.nv
    model = robot.vary(damping=np.full(n, 20.0), friction=np.full(n, 5.0), friction_velocity=np.full(n, 1e-3))
    model = model.vary(stiffness=np.r_[0.0, 0.0, np.full(n - 2, 1e6)])
    return Problem(model, np.zeros(n), np.zeros(n), 1.0, None)


def cable(links=50):
    """A hanging cable of 10 m with stiff bending and damping in the joints, which starts horizontally."""
    length, mass = 10.0 / links, 20.0 / links
    builder = rb.ModelBuilder(name="cable", gravity=(0, -9.81, 0))
    rod = rb.Inertia(mass, (length / 2, 0, 0), np.array([1e-6, 1.0, 1.0]) * mass * length**2 / 12)
    for i in range(links):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else None,
            joint=rb.Revolute((0, 0, 1)),
            placement=rb.Pose((length if i else 0.0, 0, 0)),
            inertia=rod,
            passive=rb.PassiveForces(stiffness=100.0 / length if i else 0.0, damping=1.0 / length if i else 0.0),
        )
    return Problem(builder.build(), np.zeros(links), np.zeros(links), 1.0, None)


def right_hand_side(problem):
    """Return the rate of y = (q, qd) for SciPy; y is (2 n,) or (2 n, m)."""
    model, forces = problem.model, problem.settings["forces"]
    n = model.nv

    def rate(t, y):
        states = np.ascontiguousarray(y.T)
        q, qd = np.ascontiguousarray(states[..., :n]), np.ascontiguousarray(states[..., n:])
        wrenches = model.wrenches_between_bodies(q, qd, forces) if forces else None
        qdd = model.forward_dynamics(q, qd, model.passive_forces(q, qd), wrenches)
        return np.concatenate([qd, qdd], -1).T

    return rate


def methods(problem):
    """Return each method as a function of the tolerance, which returns the positions at the end."""
    y0, rate, n = np.r_[problem.q, problem.qd], right_hand_side(problem), problem.model.nv

    def with_rbchain(method):
        def run(tolerance):
            settings = {"rtol": tolerance, "atol": tolerance} | problem.settings
            motion = problem.model.simulate(problem.q, problem.qd, problem.duration, method=method, **settings)
            return motion.q[-1], int(motion.steps)

        return run

    def with_scipy(method):
        def run(tolerance):
            settings = {"rtol": max(tolerance, 1e-13), "atol": tolerance, "vectorized": True}
            try:
                found = solve_ivp(rate, (0.0, problem.duration), y0, method, **settings)
            except ValueError:  # the state of a trial step was not finite
                return np.full(n, np.nan), 0
            return found.y[:n, -1] if found.success else np.full(n, np.nan), found.t.size

        return run

    ours = {name: with_rbchain(name) for name in ("rosenbrock", "rk45")}
    return ours | {f"SciPy {name}": with_scipy(name) for name in ("Radau", "BDF")}


def main():
    """Print a table for each problem."""
    problems = {"A05": governor, "arm": arm, "cable": cable}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=problems, default=list(problems))
    rb.set_num_threads(1)
    console = Console(width=130)
    console.print(f"{processor()}, Python {platform.python_version()}")
    for name in parser.parse_args().problems:
        problem = problems[name]()
        contest = methods(problem)
        wanted, _ = contest["rosenbrock"](1e-12)
        table = Table("method", "rtol = atol", "steps", "error", "CPU, s", title=name)
        for method, run in contest.items():
            run(1e-3)  # compiles
            for tolerance in TOLERANCES:
                seconds = []
                while len(seconds) < RUNS and sum(seconds) < LIMIT / 4:
                    started = time.process_time()
                    found, steps = run(tolerance)
                    seconds.append(time.process_time() - started)
                error = np.abs(found - wanted).max()
                table.add_row(method, f"{tolerance:.0e}", str(steps), f"{error:.1e}", f"{min(seconds):.4f}")
                if min(seconds) > LIMIT:
                    break
            table.add_section()
        console.print(table)


if __name__ == "__main__":
    main()
