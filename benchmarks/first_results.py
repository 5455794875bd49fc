"""Time from the start of a process to its first results, with an empty cache, a full one, or an installed wheel.

    python benchmarks/first_results.py                          # empty cache, then full cache, of this environment
    python benchmarks/first_results.py --python wheel/bin/python --runs 5

Each run is a separate process. The table shows medians of the wall time, and of the CPU time of the process and its
children, in seconds.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
START = """
import numpy as np, rbchain as rb
arm = rb.Model.serial_chain(7)
q = np.zeros((64, 7))
"""
PROGRAMS = {
    "forward dynamics of a batch": START + "arm.forward_dynamics(q, q, q)",
    "adaptive simulation": START + "arm.simulate(q, q, 0.1)",
    "simulation with drives": START + "arm.simulate(q, q, 0.1, drives=[rb.PID('link1', reference=0.0, kp=1.0)])",
}


def commands(python, results):
    """The commands of each measurement, by name."""
    study = [python, "-c", "import sys; from rbchain.cli import main; sys.exit(main())", "study"]
    landing = str(ROOT / "examples" / "landing.toml")
    found = {name: [[python, "-W", "ignore", "-c", program]] for name, program in PROGRAMS.items()}
    found["README's study with report"] = [
        [*study, "run", landing, "--out", str(results)],
        [*study, "report", str(results)],
    ]
    return found


def seconds(sequence, cache, results):
    """Wall and CPU time of commands, one after the other."""
    shutil.rmtree(results, ignore_errors=True)
    # an installed package has the bytecode of its modules
    unwanted = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment |= {"NUMBA_CACHE_DIR": str(cache), "RBCHAIN_QUIET": "1"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    for command in sequence:
        subprocess.run(command, env=environment, check=True, capture_output=True, cwd=cache)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu


def measure(python, runs, only_full):
    """Medians by name: {state of the cache: (wall, CPU)}."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results")
        for name, sequence in commands(python, results).items():
            found[name] = {}
            for state in ("full",) if only_full else ("empty", "full"):
                cache = Path(folder, "cache")
                if state == "full":
                    cache.mkdir(exist_ok=True)
                    seconds(sequence, cache, results)
                times = []
                for _ in range(runs):
                    if state == "empty":
                        shutil.rmtree(cache, ignore_errors=True)
                        cache.mkdir()
                    times.append(seconds(sequence, cache, results))
                found[name][state] = [round(statistics.median(column), 2) for column in zip(*times, strict=True)]
            shutil.rmtree(cache)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="an environment's Python (default: this one)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="only with a full cache")
    options = parser.parse_args()
    for name, by_state in measure(options.python, options.runs, options.full).items():
        for state, (wall, cpu) in by_state.items():
            print(f"{name:32} {state:6} {wall:7.2f} s, CPU {cpu:7.2f} s")
