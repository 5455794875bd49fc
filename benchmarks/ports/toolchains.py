"""Build the ports with the installed compilers, and run them."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .exchange import read_result, write_problem

HERE = Path(__file__).parent
# Optimizations that change results by round-off at most.
NATIVE = ["-O3", "-march=native", "-flto", "-fno-math-errno"]
GCC = ["-fno-tree-vectorize"]  # a fifth to a third faster without, because the loops are too short to vectorize
PORT_TASKS = ("forward dynamics", "rk4", "rk45")


class Program(NamedTuple):
    """A program that reads a problem file and writes a result file."""

    name: str
    command: tuple
    tasks: tuple = PORT_TASKS
    free_base: bool = False  # whether it supports free joints

    def run(self, folder, model, states, task, **settings):
        """Run the program; return the seconds per repetition, the results (batch, m) and the last column (batch,)."""
        problem, result = Path(folder) / "problem.txt", Path(folder) / "result.txt"
        write_problem(problem, model, states, task, free_base=self.free_base, **settings)
        command = [part.format(problem=problem, result=result) for part in self.command]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name} failed: {done.stderr.strip() or done.stdout.strip()}")
        return np.array(done.stdout.split(), dtype=float), *read_result(result)


class Port(NamedTuple):
    """Requirements and commands to build and run a port."""

    name: str
    needs: tuple  # programs that must be installed
    build: list
    command: tuple
    tasks: tuple = PORT_TASKS
    free_base: bool = False


FILES = ("{problem}", "{result}")


def lanes_of_this_machine():
    """Return the number of doubles in a vector register."""
    flags = Path("/proc/cpuinfo").read_text()
    return 8 if "avx512f" in flags else 4 if "avx2" in flags else 2


def ports(folder):
    """Return all ports."""
    cpp, lanes = HERE / "cpp/chain.cpp", lanes_of_this_machine()
    gcc, clang = (
        ["g++", "-std=c++17", *NATIVE, *GCC],
        ["clang++", "-std=c++17", *NATIVE, "-ffp-contract=fast", "-fuse-ld=lld"],
    )
    in_lanes = [f"-DLANES={lanes}", "-w", "-lmvec", "-lm"]
    fortran = ["gfortran", "-std=f2008", *NATIVE, *GCC, "-finline-limit=2000", "-fstack-arrays", "-J", folder]
    mono = ["mcs", "-optimize+", "-langversion:latest", f"-out:{folder}/Chain.exe", HERE / "csharp/Chain.cs"]
    dotnet = ["dotnet", "publish", HERE / "csharp/Chain.csproj", "-c", "Release", "-o", folder / "dotnet"]
    octave = ("octave-cli", "--no-gui", "--path", HERE / "octave", "--eval", "chain_run('{problem}', '{result}')")
    return [
        Port("C++, g++", ("g++",), [*gcc, cpp, "-o", folder / "gcc"], (folder / "gcc", *FILES)),
        Port("C++, clang++", ("clang++", "lld"), [*clang, cpp, "-o", folder / "clang"], (folder / "clang", *FILES)),
        *(
            Port(
                f"C++ in {lanes} lanes, {how[0]}",
                needs,
                [*how, cpp, "-o", folder / f"{how[0]}_lanes", *in_lanes],
                (folder / f"{how[0]}_lanes", *FILES),
            )
            for needs, how in ((("g++",), gcc), (("clang++", "lld"), clang))
            if lanes >= 4
        ),
        Port(
            "Fortran",
            ("gfortran",),
            [*fortran, HERE / "fortran/chain.f90", "-o", folder / "fortran"],
            (folder / "fortran", *FILES),
        ),
        Port("C#, Mono", ("mcs", "mono"), mono, ("mono", "-O=all", folder / "Chain.exe", *FILES)),
        Port("C#, .NET", ("dotnet",), dotnet, (folder / "dotnet/Chain", *FILES)),
        Port("NumPy", (), [], (sys.executable, HERE / "numpy/chain.py", *FILES)),
        Port("Octave", ("octave-cli",), [], octave),
    ]


def pinocchio_ports(folder):
    """Return programs that call Pinocchio in C++; the headers are those of the wheels `pin` and `cmeel-eigen`."""
    prefixes = [Path(p) / "cmeel.prefix" for p in sys.path if (Path(p) / "cmeel.prefix/include/pinocchio").exists()]
    prefix = prefixes[0] if prefixes else None
    if prefix is None or not (prefix / "include/eigen3").exists():
        return []
    limits = ["MPL_LIMIT_LIST_SIZE=30", "MPL_LIMIT_VECTOR_SIZE=30", "MPL_CFG_NO_PREPROCESSED_HEADERS"]
    defines = [f"-DBOOST_{limit}" for limit in (*limits, "FUSION_INVOKE_MAX_ARITY=12")]
    flags = ["-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-w", *defines]
    headers = [f"-I{prefix}/include", f"-I{prefix}/include/eigen3"]
    tasks = ("forward dynamics", "rk4", "inverse dynamics", "mass matrix", "derivatives")
    return [
        Port(
            f"Pinocchio C++, {compiler}",
            (compiler,),
            [compiler, *flags, *headers, HERE / "pinocchio/chain.cpp", "-o", folder / f"pinocchio_{compiler}"],
            (folder / f"pinocchio_{compiler}", *FILES),
            tasks,
            free_base=True,
        )
        for compiler in ("g++", "clang++")
    ]


def is_built(port):
    """Whether the program is newer than its sources; Pinocchio takes minutes to compile."""
    sources = [part for part in (*port.build, Path(__file__)) if isinstance(part, Path) and part.is_relative_to(HERE)]
    changed = max(source.stat().st_mtime for source in sources)
    built = [part for part in port.command if isinstance(part, Path) and part.is_file()]
    return any(part.stat().st_mtime > changed for part in built)


def build_all(folder, candidates):
    """Build the ports; return the programs, and the name and reason of each port that cannot be built."""
    programs, missing = [], []
    for port in candidates:
        absent = [need for need in port.needs if not shutil.which(need)]
        if absent:
            missing.append((port.name, f"{', '.join(absent)} not installed"))
            continue
        if port.build and not is_built(port):
            done = subprocess.run([*map(str, port.build)], capture_output=True, text=True, check=False, cwd=folder)
            if done.returncode != 0:
                why = next((line for line in done.stderr.splitlines() if "error" in line), "no error message")
                missing.append((port.name, f"could not be built: {why[:200]}"))
                continue
        programs.append(Program(port.name, tuple(map(str, port.command)), port.tasks, port.free_base))
    return programs, missing
