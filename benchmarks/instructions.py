"""Count the instructions and floating-point operations of kernels. The counts are independent of other processes.

    python benchmarks/instructions.py [--record]

Needs valgrind, gcc and objdump. The script links the machine code of a driver into a small C program, with the
arguments of one call, and runs it under valgrind's callgrind. objdump identifies each instruction. The counts are per
degree of freedom and sample of a batch of 256 and include the conversion to lanes; those of rk45 are per evaluation of
the dynamics too. The script prints them next to the last record, `instructions.txt`. `--record` replaces the record.
"""

import argparse
import collections
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
BATCH = 256
RECORD = Path(__file__).with_name("instructions.txt")
FLOPS = re.compile(r"v?(?P<fused>fn?m)?(add|sub|mul|div|max|min|sqrt|rndscale|round)(\d*)(?P<kind>[ps][sd])$")

MAIN = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int driver(void *result, void *error, {types});
/* Replaces the function of Numba's runtime for `reshape`, for contiguous arrays. */
int numba_attempt_nocopy_reshape(int64_t m, void *shape, void *strides, int64_t n, int64_t *new_shape,
                                 int64_t *new_strides, int64_t size, int fortran) {{
    while (n--) new_strides[n] = size, size *= new_shape[n];
    return 1;
}}
static void *array(FILE *file, size_t bytes) {{
    void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (fread(memory, 1, bytes, file) != bytes) exit(2);
    return memory;
}}
int main(int argc, char **argv) {{
    FILE *file = fopen("arguments", "rb");
    {arrays}
    void *result = 0, *error = 0;
    for (int i = 0; i < atoi(argv[1]); ++i) driver(&result, &error, {arguments});
    return 0;
}}
"""


def cases():
    """Yield the name, the degrees of freedom times evaluations per sample, and the call of each case."""
    import numpy as np

    import rbchain as rb
    from tests.mechanisms import random_tree

    rng = np.random.default_rng(0)
    for n in (7, 30):
        model = random_tree(n, range(-1, n - 1))
        q, qd, x = rng.normal(size=(3, BATCH, n))
        yield f"forward dynamics, n = {n}", n, lambda m=model, s=(q, qd, x): m.forward_dynamics(*s)
        if n == 7:
            single = [s.astype(np.float32) for s in (q, qd, x)]
            yield "forward dynamics, n = 7, float32", n, lambda m=model, s=single: m.forward_dynamics(*s)
            yield "inverse dynamics, n = 7", n, lambda m=model, s=(q, qd, x): m.inverse_dynamics(*s)
            yield "mass matrix, n = 7", n, lambda m=model, q=q: m.mass_matrix(q)
            arm, settings = rb.Model.serial_chain(n), {"duration": 1.0, "rtol": 1e-8, "atol": 1e-10, "save_at": 2}
            evaluations = arm.simulate(0.3 * q, 0.3 * qd, **settings).evaluations.mean()
            yield "rk45, n = 7", n * evaluations, partial(arm.simulate, 0.3 * q, 0.3 * qd, **settings)


def recorded(call):
    """Return the driver that a call runs, and its arguments."""
    from rbchain.drivers import threads

    found, run, run_interruptibly = [], threads.run, threads.run_interruptibly

    def record(driver, spare, new_memory, arguments, samples, *rest):
        run(driver, spare, new_memory, arguments, samples, *rest)
        found.append((driver, (new_memory(), *arguments, 0, samples)))

    def record_simulation(driver, new_memory, arguments, samples, width, *rest):
        record(driver, [], new_memory, arguments, samples, width)

    threads.run, threads.run_interruptibly = record, record_simulation
    try:
        call()
    finally:
        threads.run, threads.run_interruptibly = run, run_interruptibly
    return found[0]


def flat(arguments):
    """Return the entries of tuples and of the tuples in them, one after the other, as Numba passes them."""
    return [x for given in arguments for x in (flat(given) if isinstance(given, tuple) else [given])]


def build(folder, driver, arguments):
    """Build a program that calls the driver n times with these arguments; n is its command-line argument."""
    import numba
    import numpy as np

    signature = tuple(numba.typeof(x) for x in arguments)
    compiled = driver.overloads[next(s for s in driver.signatures if tuple(s) == signature)]
    (folder / "driver.o").write_bytes(compiled.library._get_compiled_object())  # noqa: SLF001 - Numba has no public name
    types, arrays, passed = [], [], []
    with open(folder / "arguments", "wb") as file:
        for i, x in enumerate(flat(arguments)):
            if isinstance(x, np.ndarray):
                file.write(x.tobytes())
                arrays.append(f"void *a{i} = array(file, {x.nbytes});")
                numbers = [x.size, x.itemsize, f"a{i}", *x.shape, *x.strides]
                types += ["void *", "void *", *("void *" if n == f"a{i}" else "int64_t" for n in numbers)]
                passed += ["0", "0", *map(str, numbers)]
            else:
                types.append("void *" if x is None else "double" if isinstance(x, float) else "int64_t")
                passed.append("0" if x is None else "__builtin_inf()" if x == np.inf else str(x))
    text = MAIN.format(types=", ".join(types), arrays=" ".join(arrays), arguments=", ".join(passed))
    (folder / "main.c").write_text(text)
    symbol = compiled.fndesc.llvm_func_name
    rename = ["objcopy", f"--redefine-sym={symbol}=driver", "driver.o"]
    # symbols of the Python wrapper stay unresolved; the program does not call it
    link = ["gcc", "-no-pie", "-w", "main.c", "driver.o", "-o", "program", "-lm", "-Wl,--unresolved-symbols=ignore-all"]
    for command in (rename, link):
        subprocess.run(command, cwd=folder, check=True)


def executed(folder, times):
    """Count how often each instruction of the program ran, by address."""
    command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--callgrind-out-file=counts"]
    subprocess.run([*command, "./program", str(times)], cwd=folder, check=True, capture_output=True)
    counts, skip = collections.Counter(), False
    for line in (folder / "counts").read_text().splitlines():
        if line.startswith("calls="):
            skip = True  # the next line is the cost of the called function
        elif line.startswith("0x"):
            address, _, cost = line.split()[:3] if len(line.split()) > 2 else (*line.split(), "0")
            if not skip:
                counts[int(address, 16)] += int(cost)
            skip = False
    return counts


def mix(folder):
    """Count the instructions of one call by kind, and their floating-point operations."""
    once, thrice = executed(folder, 1), executed(folder, 3)
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "program"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    names = {}
    for line in listing.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+(\S+)(.*)", line)
        if match:
            names[int(match[1], 16)] = match[2], match[3]
    found = collections.Counter()
    for address, count in thrice.items():
        runs = (count - once[address]) / 2
        name, operands = names.get(address, ("elsewhere", ""))
        lanes = 64 if "zmm" in operands else 32 if "ymm" in operands else 16
        found["instructions"] += runs
        match = FLOPS.match(name)
        if match:
            found["arithmetic"] += runs
            width = 1 if match["kind"][0] == "s" else lanes // (8 if match["kind"][1] == "d" else 4)
            found["flops"] += runs * width * (2 if match["fused"] else 1)
        elif name.startswith("vmov") and "%" in operands and "(" in operands:
            found["stores" if operands.rstrip().endswith(")") else "loads"] += runs
    return found


def main():
    """Count, print next to the record, and replace the record if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    keep = parser.parse_args().record
    for program in ("valgrind", "gcc", "objdump", "objcopy"):
        if not shutil.which(program):
            sys.exit(f"{program} is not installed; install valgrind, gcc and binutils")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["RBCHAIN_MACHINE_CODE"] = "x86-64-v3"  # valgrind does not know AVX-512
        os.environ["NUMBA_CACHE_DIR"] = cache  # Numba keeps the object code only after a new compilation
        import llvmlite
        import numba

        from rbchain.compiling.levels import LANE_WIDTHS

        lines = [
            f"per degree of freedom and sample, {LANE_WIDTHS['float64']} lanes of float64; Numba {numba.__version__}, "
            f"llvmlite {llvmlite.__version__}, Python {platform.python_version()}",
            f"{'':36}instructions  arithmetic     loads    stores     flops",
        ]
        for name, n, call in cases():
            folder = Path(tempfile.mkdtemp(dir=cache))
            build(folder, *recorded(call))
            found = mix(folder)
            kinds = ("instructions", "arithmetic", "loads", "stores", "flops")
            figures = "".join(f"{found[kind] / BATCH / n:10.1f}" for kind in kinds)
            lines.append(f"{name:38}{figures}")
            print(lines[-1], flush=True)
    old = RECORD.read_text().splitlines() if RECORD.exists() else []
    print("\n".join([*lines[:2], *(f"{line}    (recorded)" for line in old[2:])]))
    if keep:
        RECORD.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
