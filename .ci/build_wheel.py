"""Build a wheel of rbchain that contains machine code, so that its users need not wait for the compiler.

Usage, in an environment with rbchain and its extra "wheel", in a checkout:

    python .ci/build_wheel.py --out dist                       # for x86-64-v3 and x86-64-v4
    python .ci/build_wheel.py --out dist --for x86-64-v3       # for one level
    python .ci/build_wheel.py --out dist --study FILE          # only what a study needs

`python -m build` builds a wheel of Python code alone. The wheel of this script is for this version of Python and for
this system. It contains the same files, and machine code of everything in `rbchain.precompile.calls`.
"""

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path

from packaging.tags import sys_tags

from rbchain.common.progress import progress
from rbchain.compiling.levels import levels_of_architecture
from rbchain.compiling.machine_code import INSTALLED, PACKAGE
from rbchain.precompile.calls import call_everything
from rbchain.precompile.parallel import compile_signatures
from rbchain.precompile.signatures import signatures_of

CHECKOUT = Path(__file__).resolve().parents[1]
LEVELS = ("x86-64-v3", "x86-64-v4")
LIMIT = 80e6  # bytes of a wheel
run = partial(subprocess.run, check=True)


def machine_code_files(levels, study, processes):
    """Compile what is not compiled yet; returns the files."""
    if study:
        from rbchain import Study
        from rbchain.study.run.compilation import signatures_of_plan

        signatures = signatures_of_plan(Study.read(study).plan)
    else:
        signatures = signatures_of(call_everything)
    files = []
    for level in levels:
        with progress(f"Compiling for {level}", total=len(signatures), after=0.0) as work:
            files += compile_signatures(signatures, level, processes, partial(_advance, work))
    return files


def _advance(work, signature):
    work.advance(note=signature.name)


def require_these_versions(unpacked):
    """Make the wheel require the versions of Numba and llvmlite that its machine code is for."""
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    lines = metadata.read_text().splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.startswith("Requires-Dist: numba"))
    lines[at : at + 1] = [f"Requires-Dist: {name}=={version(name)}" for name in ("llvmlite", "numba")]
    metadata.write_text("\n".join(lines) + "\n")


def build(levels, study, processes, out):
    """Build the wheel; returns its path."""
    files = machine_code_files(levels, study, processes)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        run([*pip, "--wheel-dir", folder / "pure", CHECKOUT])
        (pure,) = (folder / "pure").glob("rbchain-*.whl")
        wheel = [sys.executable, "-m", "wheel"]
        run([*wheel, "unpack", "--dest", folder, pure], stdout=subprocess.DEVNULL)
        (unpacked,) = folder.glob("rbchain-*")
        target = unpacked / "rbchain" / INSTALLED.relative_to(PACKAGE)
        target.mkdir(parents=True)
        for file in files:
            shutil.copy2(file, target)
        require_these_versions(unpacked)
        out.mkdir(parents=True, exist_ok=True)
        run([*wheel, "pack", "--dest-dir", folder, unpacked], stdout=subprocess.DEVNULL)
        (packed,) = folder.glob("rbchain-*.whl")
        this = next(sys_tags())  # the ABI of a free-threaded build has a name of its own, such as cp314t
        tags = ["--python-tag", this.interpreter, "--abi-tag", this.abi, "--platform-tag", platform_tag()]
        run([*wheel, "tags", "--remove", *tags, packed], stdout=subprocess.DEVNULL)
        (tagged,) = folder.glob("rbchain-*.whl")
        return Path(shutil.copy2(tagged, out)), len(files)


def platform_tag():
    """The system that the machine code is for: it calls no library but Numba's, hence any Linux will do."""
    return "manylinux_2_17_x86_64"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder of the wheel (default: dist)")
    parser.add_argument(
        "--for", dest="levels", action="append", help=f"processor level (default: {' and '.join(LEVELS)})"
    )
    parser.add_argument("--study", help="a study file: only the drivers that it needs (default: everything)")
    parser.add_argument("--processes", type=int, help="how many processes compile at once (default: one for each core)")
    options = parser.parse_args()
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        sys.exit("wheels with machine code are built on x86-64 Linux only; use python -m build for a pure-Python wheel")
    if not set(options.levels or LEVELS) <= set(levels_of_architecture()):
        sys.exit(f"--for is {options.levels}; expected some of {levels_of_architecture()}")
    if PACKAGE != CHECKOUT / "rbchain":
        sys.exit(f"this environment imports rbchain from {PACKAGE}; install this checkout: pip install --editable .")
    path, count = build(options.levels or LEVELS, options.study, options.processes, options.out)
    size = path.stat().st_size
    print(f"{path}: {count} files of machine code, {size / 1e6:.1f} MB")
    if size > LIMIT:
        sys.exit(f"the wheel is larger than {LIMIT / 1e6:.0f} MB")
