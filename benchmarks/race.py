"""Run rbchain, the ports, Pinocchio, MuJoCo, Drake and MJX on the same problems, on one machine.

    python benchmarks/race.py                  # all sections, about an hour
    python benchmarks/race.py evaluations      # one or several sections; the others keep their results

Needs the `test` extra, cmeel-eigen, and the compilers that `ports/README.md` names. Drake, JAX and mujoco-mjx are
measured if they are installed. All programs run alternately on one core. The figures are medians with quartiles, and
the results are compared with those of rbchain. The script writes `results/race.json`; `pages.py` writes the page and
plots from it.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import contestants as who, pages
from benchmarks.contestants import Problem, Unable
from benchmarks.ports.toolchains import build_all, pinocchio_ports, ports
from benchmarks.timing import processor, relative
from tests.mechanisms import ROBOTS, random_tree

RESULTS = Path(__file__).with_name("results")
BUILD = Path(__file__).with_name("build")
CORES = sorted(os.sched_getaffinity(0))
ROUNDS = 5


def general_chain(n):
    """Return a serial chain of n revolute joints with general placements, axes and inertias."""
    return random_tree(n, range(-1, n - 1))


def problems():
    """Return the problems, each with its batch size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solo12 = rb.load(ROBOTS / "solo_description/robots/solo12.urdf", base=rb.Free())
    return [
        (Problem("six-link chain", rb.Model.serial_chain(6)), 4096),
        (Problem("arm of 7 joints", general_chain(7)), 4096),
        (Problem("quadruped, free base", solo12), 4096),
        (Problem("quadruped, 18 single joints", who.single_jointed(solo12)), 4096),
        (Problem("chain of 30", general_chain(30)), 4096),
        (Problem("chain of 100", general_chain(100)), 512),
        (Problem("chain of 1000", general_chain(1000)), 64),
    ]


def compete(contestants, problem, task, states, rounds=ROUNDS, **settings):
    """Measure the time per state of all programs that support a task, and compare their results with the first."""
    laps, seconds, found = {}, {}, {}
    for contestant in contestants:
        try:
            laps[contestant.name] = contestant.prepare(problem, task, states, **settings)
        except Unable:
            continue
    for _ in range(rounds):
        for name, lap in laps.items():
            took, found[name] = lap()
            seconds.setdefault(name, []).append(took)
    records, expected = [], next(iter(found.values()))
    for name, times in seconds.items():
        last_of_sample = len(found[name]) == 1 < len(expected)  # the program keeps only the matrix of the last state
        same = expected[who.SAMPLE - 1 : who.SAMPLE] if last_of_sample else expected[: len(found[name])]
        low, median, high = np.quantile(times, [0.25, 0.5, 0.75])
        record = {"problem": problem.name, "n": problem.model.nv, "task": task, "who": name, "batch": len(states[0])}
        record |= {"seconds": median, "from": low, "to": high, "difference": float(relative(found[name], same))}
        records.append(record)
        print(
            f"{problem.name}, {task}: {name}: {median * 1e6:.4g} us, differs by {record['difference']:.0e}", flush=True
        )
    return records


def compiled_ones(programs):
    """Select the compiled programs."""
    return [p for p in programs if p.name in who.COMPILED or "Pinocchio" in p.name]


def evaluations(programs):
    """Measure one evaluation of each quantity, in batches."""
    contestants = [who.Rbchain(), who.Rbchain(np.float32), *programs, who.PinocchioFromPython()]
    contestants += [who.PinocchioInParallel(), who.Mujoco(), who.Drake(), who.Mjx()]
    records = []
    for problem, batch in problems():
        states = problem.states(batch)
        for task in ("forward dynamics", "inverse dynamics", "mass matrix", "derivatives"):
            if problem.model.nv > 100 and task != "forward dynamics":
                continue
            records += compete(contestants, problem, task, states, 3 if problem.model.nv > 30 else ROUNDS)
    return records


def trajectories(programs):
    """Measure simulations of a batch: RK4 with given steps, and RK45 with given tolerances."""
    contestants = [who.Rbchain(), *programs, who.Mujoco("rollout"), who.Mujoco()]
    records = []
    # without the quadruped: the programs integrate quaternions differently, and its single joints can lock
    for problem, batch in (problems()[i] for i in (0, 1, 4)):
        q, qd, tau = problem.states(batch // 8)
        states = q, qd, 0.01 * tau
        for task, settings in {"rk4": {"step": 1e-3, "duration": 0.1}, "rk45": {"duration": 0.1}}.items():
            records += compete(contestants, problem, task, states, 3, **settings)
    return records


def ends_by_scipy(problem, states, duration, samples, **settings):
    """Compute the final states of the first samples with SciPy's integrators and Pinocchio's dynamics."""
    engine, n, ends = problem.pinocchio.model, problem.model.nv, []
    data = engine.createData()

    def rates(_, y, tau):
        return np.concatenate([y[n:], pin.aba(engine, data, y[:n], y[n:], tau)])

    for q, qd, tau in zip(*(s[:samples] for s in states), strict=True):
        ends.append(solve_ivp(rates, (0, duration), np.concatenate([q, qd]), args=(tau,), **settings).y[:, -1])
    return np.array(ends)


class SciPyWithPinocchio:
    """SciPy's RK45 in Python with Pinocchio's dynamics."""

    name = "SciPy RK45 + Pinocchio, Python"

    def prepare(self, problem, task, states, duration=0.0, rtol=1e-8, atol=1e-10, **_):
        if task != "rk45":
            raise Unable
        few, settings = 4, {"method": "RK45", "rtol": rtol, "atol": atol}
        return who.timed(lambda: ends_by_scipy(problem, states, duration, few, **settings), few)


def precision(programs):
    """Measure time against error of simulations, from coarse to fine steps and tolerances."""
    duration, batch, known = 0.5, 64, 16
    records = []
    for problem in (problems()[0][0], problems()[1][0]):
        q, qd, tau = problem.states(batch)
        states = 0.5 * q, 0.5 * qd, 0.01 * tau
        ends = ends_by_scipy(problem, states, duration, known, method="DOP853", rtol=3e-14, atol=1e-14)
        fast = [p for p in programs if p.name not in who.MOST_STATES]
        for task, levels in {
            "rk4": [{"step": duration / steps} for steps in (16, 32, 64, 128, 256, 512, 1024, 2048)],
            "rk45": [{"rtol": 10.0**-e, "atol": 10.0 ** -(e + 2)} for e in range(2, 14)],
        }.items():
            contestants = [who.Rbchain(), *fast, who.Mujoco("rollout"), SciPyWithPinocchio()]
            for level in levels:
                for record in compete_for_error(contestants, problem, task, states, ends, duration, level):
                    records.append(record)
    return records


def compete_for_error(contestants, problem, task, states, ends, duration, level):
    """Yield the time per sample, and the median of the largest final error of a coordinate."""
    for contestant in contestants:
        try:
            lap = contestant.prepare(problem, task, states, duration=duration, **level)
        except Unable:
            continue
        laps = [lap() for _ in range(2)]
        found, n = laps[0][1], problem.model.nv
        some = min(len(found), len(ends))
        error = float(np.median(np.abs(found[:some, :n] - ends[:some, :n]).max(axis=1)))
        seconds = float(np.median([seconds for seconds, _ in laps]))
        if np.isfinite(error):
            print(
                f"{problem.name}, {task} {level}: {contestant.name}: {seconds * 1e6:.4g} us, error {error:.1e}",
                flush=True,
            )
            record = {"problem": problem.name, "task": task, "who": contestant.name}
            yield record | {"seconds": seconds, "error": error, **level}


def batches(programs):
    """Measure forward dynamics of 7 joints in batches of one to a million, on one core and on all."""
    problem, records = problems()[1][0], []
    fast = compiled_ones(programs)
    for threads in sorted({1, len(CORES)}):
        os.sched_setaffinity(0, CORES[:threads])
        rb.set_num_threads(threads)
        for batch in [4**i for i in range(11)]:
            contestants = [who.Rbchain(), who.PinocchioInParallel(threads)]
            if batch <= 4**7:  # larger batches do not fit into memory
                contestants.append(who.Mujoco(threads=threads))
            if threads == 1 and batch <= 4**6:
                contestants += fast
            states = problem.states(batch)
            for record in compete(contestants, problem, "forward dynamics", states, 7 if batch <= 4**6 else 3):
                records.append(record | {"threads": threads})
    os.sched_setaffinity(0, CORES[:1])
    rb.set_num_threads(1)
    return records


def lengths(programs):
    """Measure forward dynamics of serial chains of 2 to 1000 bodies."""
    fast = compiled_ones(programs)
    records = []
    for n in (2, 4, 7, 15, 30, 60, 100, 300, 1000):
        problem = Problem(f"chain of {n}", general_chain(n))
        states = problem.states(int(np.clip(32768 // n, 64, 4096)))
        records += compete([who.Rbchain(), *fast, who.Mujoco()], problem, "forward dynamics", states, 5)
    return records


def single(programs):
    """Measure a single sample: one call of forward dynamics, and one simulation."""
    fast = compiled_ones(programs)
    records = []
    for n in (6, 7, 30):
        problem = Problem(f"chain of {n}", general_chain(n))
        q, qd, tau = (s[0] for s in problem.states(1))
        model, calls = problem.model, 2000
        data, peer = problem.pinocchio.model.createData(), problem.pinocchio.model
        call = lambda: [model.forward_dynamics(q, qd, tau) for _ in range(calls)]  # noqa: B023, E731
        laps = {"rbchain, called from Python": who.timed(call, calls)}
        theirs = lambda: [pin.aba(peer, data, q, qd, tau) for _ in range(calls)]  # noqa: B023, E731
        laps["Pinocchio, Python"] = who.timed(theirs, calls)
        one = [x[None] for x in (q, qd, tau)]
        for program in fast:
            laps[program.name] = program.prepare(problem, "forward dynamics", one, calls=calls)
        records += in_turn(laps, problem, "one call")
        for task, settings in {"rk4": {"step": 1e-4, "duration": 1.0}, "rk45": {"duration": 1.0}}.items():
            records += compete([who.Rbchain(alone=True), *fast], problem, task, one, 5, **settings)
    return records


def in_turn(laps, problem, task):
    """Measure the given laps in turns and return their records."""
    seconds = {name: [] for name in laps}
    for _ in range(ROUNDS):
        for name, lap in laps.items():
            seconds[name].append(lap()[0])
    quantiles = {name: np.quantile(times, [0.25, 0.5, 0.75]) for name, times in seconds.items()}
    return [
        {"problem": problem.name, "n": problem.model.nv, "task": task, "who": name, "batch": 1}
        | {"from": low, "seconds": median, "to": high}
        for name, (low, median, high) in quantiles.items()
    ]


FIRST_RESULTS = {
    "rbchain": "import rbchain as rb; rb.Model.serial_chain(7).forward_dynamics([0.1] * 7, [0.0] * 7, [0.0] * 7)",
    "Pinocchio, Python": "import numpy as np, pinocchio as pin; m = pin.buildSampleModelManipulator(); "
    "pin.aba(m, m.createData(), *np.zeros((3, m.nv)))",
    "MJX (JAX), CPU": "import sys; sys.path.insert(0, '.'); from benchmarks import race, contestants as who; "
    "p = who.Problem('', race.general_chain(7)); who.Mjx().prepare(p, 'forward dynamics', p.states(64))()",
}


def first_results(_):
    """Measure a new process up to its first forward dynamics, with imports and compilation."""
    records, build = [], {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)  # noqa: PLW2901
        for port in ports(folder):  # Pinocchio takes minutes: `ports/README.md`
            started = time.perf_counter()
            if port.build and build_all(folder, [port])[0]:
                build[port.name] = time.perf_counter() - started
    records += [{"who": f"{name}: to compile", "seconds": seconds} for name, seconds in build.items()]
    for name, script in FIRST_RESULTS.items():
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"NUMBA_CACHE_DIR": cache}
            for state in ("nothing cached", "cached") if name == "rbchain" else ("",):
                started = time.perf_counter()
                done = subprocess.run([sys.executable, "-c", script], env=environment, check=False, capture_output=True)
                seconds = time.perf_counter() - started
                if done.returncode == 0:
                    records.append({"who": f"{name}{': ' if state else ''}{state}", "seconds": seconds})
    return records


def roofline(_):
    """Compare the kernels with the peak of the core; the operation counts are from `instructions.txt`."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "peak"
        source = Path(__file__).with_name("peak.c")
        subprocess.run(["gcc", "-O3", "-march=native", source, "-o", program, "-lm"], check=True)
        peaks = []
        for _ in range(3):
            done = subprocess.run([program], check=True, capture_output=True, text=True)
            peaks.append([float(x) for x in done.stdout.split()])
    doubles, singles, bandwidth = np.median(peaks, axis=0)
    lines = Path(__file__).with_name("instructions.txt").read_text().splitlines()[2:]
    flops = {line[:38].strip(): float(line.split()[-1]) for line in lines}
    records = [{"who": "peak", "float64": doubles, "float32": singles, "bandwidth": bandwidth}]
    for name, n, dtype, task in (
        ("forward dynamics, n = 7", 7, np.float64, "forward dynamics"),
        ("forward dynamics, n = 30", 30, np.float64, "forward dynamics"),
        ("forward dynamics, n = 7, float32", 7, np.float32, "forward dynamics"),
        ("inverse dynamics, n = 7", 7, np.float64, "inverse dynamics"),
        ("mass matrix, n = 7", 7, np.float64, "mass matrix"),
    ):
        problem = Problem("", general_chain(n))
        lap = who.Rbchain(dtype).prepare(problem, task, problem.states(4096))
        seconds = float(np.median([lap()[0] for _ in range(9)])) / n
        numbers = 4 if task != "mass matrix" else 1 + n
        size = np.dtype(dtype).itemsize
        peak = doubles if dtype is np.float64 else singles
        records.append(
            {"who": name, "flops": flops[name], "bytes": numbers * size, "seconds": seconds}
            | {"rate": flops[name] / seconds, "of peak": flops[name] / seconds / peak}
        )
    return records


SECTIONS = {
    "evaluations": evaluations,
    "trajectories": trajectories,
    "precision": precision,
    "batches": batches,
    "lengths": lengths,
    "single": single,
    "first_results": first_results,
    "roofline": roofline,
}


def versions():
    """Return the versions of all programs."""
    found = {"Python": platform.python_version(), "rbchain": rb.__version__}
    for package in ("numpy", "numba", "llvmlite", "pin", "mujoco", "mujoco-mjx", "jax", "drake"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    for program in ("g++", "clang++", "gfortran", "mcs", "octave-cli"):
        try:
            done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
            found[program] = done.stdout.splitlines()[0]
        except FileNotFoundError:
            found[program] = "not installed"
    return found


def main(sections):
    """Run the sections, and write the results and the page."""
    os.sched_setaffinity(0, CORES[:1])
    rb.set_num_threads(1)
    RESULTS.mkdir(exist_ok=True)
    BUILD.mkdir(exist_ok=True)
    file = RESULTS / "race.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    programs, missing = build_all(BUILD, [*ports(BUILD), *pinocchio_ports(BUILD)])
    with tempfile.TemporaryDirectory() as folder:
        programs = [who.FromProgram(program, folder) for program in programs]
        for name in sections:
            kept[name] = {
                "machine": processor(), "versions": versions(), "left out": missing, "date": time.strftime("%Y-%m-%d"),
                "records": SECTIONS[name](programs),
            }  # fmt: skip
            file.write_text(json.dumps(kept, indent=1) + "\n")
    pages.write(kept, RESULTS)


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(SECTIONS)
    if unknown:
        sys.exit(f"unknown section {', '.join(sorted(unknown))}; expected some of {', '.join(SECTIONS)}")
    main(sys.argv[1:] or list(SECTIONS))
