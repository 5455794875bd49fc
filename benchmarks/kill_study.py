"""Kill a study at random times, continue it, and compare its stored files with those of an uninterrupted run.

    python benchmarks/kill_study.py [KILLS] [SEED]

tests/study/test_run.py contains a short version. Run this script after a change of the store. 20 kills take some
minutes.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

STUDY = """
name = "killed"
model = { serial_chain = { n = 4 } }
samples = 60_000
stop_when = { measure = "height", half_width = 0.0012 }

[vary."*.mass_and_inertia"]
how = "multiply"
distribution = { type = "normal", mean = 1, std = 0.05 }

[vary."*.q"]
distribution = { type = "normal", std = 0.3 }

[simulate]
duration = 2.0
method = "rk4"
step = 0.005

[outputs]
motion = true

[[measures]]
name = "height"
quantity = "coordinate"
frame = "link4"
axis = "y"
"""
COMMAND = [sys.executable, "-m", "rbchain.cli", "study", "run", "study.toml", "--out", "out", "--chunk", "512"]


def files(folder):
    """Read all files of the results, by their name within the folder."""
    places = [folder / "out" / place for place in ("results.zarr", "checksums")]
    found = sorted(path for place in places for path in place.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def main():
    """Run the study twice without interruption, then with kills."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    with tempfile.TemporaryDirectory() as place:
        whole, killed = Path(place) / "whole", Path(place) / "killed"
        for folder in (whole, killed):
            folder.mkdir()
            (folder / "study.toml").write_text(STUDY)
        subprocess.run(COMMAND, cwd=whole, check=True, stdout=subprocess.DEVNULL)
        started = time.perf_counter()
        subprocess.run(COMMAND, cwd=killed, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        expected = files(whole)
        if files(killed) != expected:
            sys.exit("the results of two uninterrupted runs differ; expected identical files")
        wrong = 0
        subprocess.run(["rm", "-r", str(killed / "out")], check=True)
        for kill in range(1, kills + 1):
            with subprocess.Popen(COMMAND, cwd=killed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
                try:
                    running.wait(rng.uniform(0.2, 1.0) * seconds)
                    state = "finished"
                except subprocess.TimeoutExpired:
                    running.kill()
                    state = "killed"
            done = sum(name.startswith("out/checksums/") for name in files(killed))
            print(f"{kill}: {state} with {done} chunks")
            if state != "killed":
                wrong += files(killed) != expected
                subprocess.run(["rm", "-r", str(killed / "out")], check=True)
        subprocess.run(COMMAND, cwd=killed, check=True, stdout=subprocess.DEVNULL)
        wrong += files(killed) != expected
        print(f"{len(expected)} files, {sum(map(len, expected.values())):,} bytes: ", end="")
        print("bit-identical each time" if not wrong else f"different {wrong} times")
        sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
