"""The cache of machine code: damaged or missing files never change a result, and each one is reported."""

import math
import os
import pickle
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest

import rbchain as rb
from rbchain.compiling import machine_code
from rbchain.compiling.numba_internals import kernel_dispatcher
from rbchain.drivers.motion import body_poses
from rbchain.precompile.signatures import signatures_of

from .conftest import HANG_LIMIT

ROOT = Path(__file__).parents[1]
# A quantity that compiles fast, in two precisions: two builds of one driver.
SCRIPT = """
import sys, warnings
import numpy as np
import rbchain as rb
before = {before}
q = np.full((3, 2), 0.3, sys.argv[1])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = rb.Model.serial_chain(2).body_poses(q).translation[:, 1]
print(*(round(float(x), 5) for x in found[0]), found.dtype)
for warning in caught:
    print("warning:", warning.message)
"""


def environment_with(cache):
    """One thread, so that no second process replaces files."""
    return os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT), "RBCHAIN_NUM_THREADS": "1"}


def started(cache, dtype="float64", before="None"):
    command = [sys.executable, "-c", SCRIPT.format(before=before), dtype]
    environment = environment_with(cache)
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process):
    output, errors = process.communicate(timeout=HANG_LIMIT)
    assert process.returncode == 0, errors
    result, *warnings = output.splitlines()
    return result, warnings


def compiled_code(cache):
    return sorted(cache.rglob("*body_poses*.rbc"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Return a cache that contains a driver, and the result of the driver."""
    folder = tmp_path_factory.mktemp("cache")
    double, _ = finished(started(folder))
    assert double.endswith("float64")
    return folder, double


@pytest.mark.slow
def test_processes_that_start_together_cache_both_builds_of_a_driver(tmp_path):
    """The builds have different precisions."""
    together = [started(tmp_path, dtype) for dtype in ("float64", "float32")]
    (double, _), (single, _) = (finished(process) for process in together)
    kept = {path: path.stat().st_mtime_ns for path in compiled_code(tmp_path)}
    assert len(kept) == 2
    assert finished(started(tmp_path, "float64")) == (double, [])
    assert finished(started(tmp_path, "float32")) == (single, [])
    assert kept == {path: path.stat().st_mtime_ns for path in compiled_code(tmp_path)}  # nothing was compiled again


def test_damaged_cache_files_are_reported_and_replaced(cache):
    folder, double = cache
    for path in compiled_code(folder):
        path.write_bytes(path.read_bytes()[:1000])
    result, (warning,) = finished(started(folder, "float64"))
    assert result == double
    assert "motion.body_poses." in warning
    assert "is damaged" in warning
    assert "does not execute it and compiles motion.body_poses again" in warning
    assert finished(started(folder, "float64")) == (double, [])


def compiled_kernels(cache):
    return sorted(cache.rglob("*.rbk"))


def copy_of_kernels(cache, folder):
    """Copy the kernels of a cache, without its drivers."""
    shutil.copytree(cache, folder, ignore=shutil.ignore_patterns("*.rbc"))
    return {path: path.stat().st_mtime_ns for path in compiled_kernels(folder)}


@pytest.mark.slow
def test_a_driver_is_compiled_from_the_kernels_of_other_processes(cache, tmp_path):
    folder, double = cache
    kept = copy_of_kernels(folder, tmp_path / "cache")
    assert len(kept) > 10
    assert finished(started(tmp_path / "cache", "float64")) == (double, [])
    assert len(compiled_code(tmp_path / "cache")) == 1
    assert kept == {path: path.stat().st_mtime_ns for path in compiled_kernels(tmp_path / "cache")}


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_process_finds_each_routine_by_the_name_in_the_file_of_its_caller():
    """Also if the module has a choice that contains the routine under this name."""
    choices = 0
    for module in [module for name, module in sorted(sys.modules.items()) if name.startswith("rbchain.core.")]:
        for name, found in vars(module).items():
            plain = getattr(found, "__wrapped__", None)
            if plain is not None and (plain.__module__, name) in kernel_dispatcher.dispatchers:
                assert kernel_dispatcher.dispatchers[plain.__module__, name].py_func is plain, (plain.__module__, name)
                choices += not numba.extending.is_jitted(found)
    assert choices > 10


def instructions(driver):
    """Machine code in the file of a driver, without the names of its functions, which Numba numbers."""
    code = driver.read_bytes()
    end = len(machine_code.MAGIC) + machine_code.DIGEST_SIZE
    key = code[len(machine_code.MAGIC) : end].hex()
    (_, _, (compiled, _)), *_ = machine_code.unpacked(key, code)
    return [part.data() for part in llvm.ObjectFileRef.from_data(compiled).sections() if part.is_text()]


@pytest.mark.slow
def test_kernels_that_a_second_process_compiles_in_another_order_are_the_same(cache, tmp_path):
    """The second process compiles all kernels here, and the first one only the driver."""
    folder, double = cache
    model = rb.Model.serial_chain(2)
    (signature,) = signatures_of(partial(model.body_poses, np.zeros((3, 2))))
    command = [sys.executable, "-m", "rbchain.drivers.kernel_worker"]
    environment = environment_with(tmp_path) | {"RBCHAIN_COMPILE_ONLY": "1"}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as process:
        process.stdin.write(pickle.dumps(signature))
        process.stdin.flush()
        assert process.wait(HANG_LIMIT) == 0
    kept = {path: path.stat().st_mtime_ns for path in compiled_kernels(tmp_path)}
    assert len(kept) > 10
    assert finished(started(tmp_path)) == (double, [])
    assert kept == {path: path.stat().st_mtime_ns for path in compiled_kernels(tmp_path)}
    (driver,) = compiled_code(tmp_path)
    (alone,) = folder.rglob(driver.name)
    assert instructions(driver) == instructions(alone) != []


@pytest.fixture
def threads():
    """Set the number of threads; it is set back at the end."""
    before = rb.get_num_threads()
    yield rb.set_num_threads
    rb.set_num_threads(before)


@pytest.fixture
def processes(monkeypatch):
    """The processes that are started."""
    found, start = [], subprocess.Popen

    def recorded(*given, **named):
        found.append(start(*given, **named))
        return found[-1]

    monkeypatch.setattr(subprocess, "Popen", recorded)
    return found


def test_a_second_process_ends_with_the_compilation(processes, threads):
    threads(2)
    with machine_code.while_compiling(body_poses.py_func, ()):
        (process,) = processes
        assert process.poll() is None
    assert process.returncode is not None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has priority classes instead")
def test_a_second_process_has_the_lowest_priority(processes, threads):
    threads(2)
    with machine_code.while_compiling(body_poses.py_func, ()):
        assert os.getpriority(os.PRIO_PROCESS, processes[0].pid) == 19


def test_a_second_process_ends_with_the_first_one(processes, threads, monkeypatch, tmp_path):
    """The end of the first process, even if it is killed, is the end of the input of the second one."""
    (signature,) = signatures_of(partial(rb.Model.serial_chain(2).body_poses, np.zeros((3, 2))))
    processes.clear()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    threads(2)
    with machine_code.while_compiling(body_poses.py_func, signature.types):
        (process,) = processes
        process.stdin.close()
        assert process.wait(HANG_LIMIT) == 0
    assert compiled_kernels(tmp_path) == []


def test_a_process_with_one_thread_starts_no_second_process(processes, threads):
    threads(1)
    with machine_code.while_compiling(body_poses.py_func, ()):
        assert processes == []


def test_a_program_that_contains_python_is_not_started_again(processes, threads, monkeypatch):
    threads(2)
    monkeypatch.setattr(sys, "executable", "/usr/bin/blender")
    with machine_code.while_compiling(body_poses.py_func, ()):
        assert processes == []


def test_paths_that_python_ignores_do_not_prevent_processes(processes, threads, monkeypatch):
    threads(2)
    monkeypatch.setattr(sys, "path", [*sys.path, Path("/nowhere")])
    with machine_code.while_compiling(body_poses.py_func, ()):
        assert len(processes) == 1


@pytest.mark.slow
def test_damaged_kernels_are_reported_and_replaced(cache, tmp_path):
    folder, double = cache
    kept = copy_of_kernels(folder, tmp_path / "cache")
    for path in kept:
        if path.name.startswith("blocks.block_for."):
            path.write_bytes(path.read_bytes()[:-1])
    result, (warning,) = finished(started(tmp_path / "cache", "float64"))
    assert result == double
    assert "blocks.block_for." in warning
    assert "is damaged" in warning
    assert "does not execute it and compiles blocks.block_for again" in warning
    for driver in compiled_code(tmp_path / "cache"):
        driver.unlink()
    assert finished(started(tmp_path / "cache", "float64")) == (double, [])


@pytest.mark.slow
def test_a_damaged_file_of_the_package_is_reported_with_a_remedy(cache, tmp_path):
    folder, double = cache
    for path in compiled_code(folder):
        (tmp_path / path.name).write_bytes(path.read_bytes()[:1000])
    kept = {path: path.stat().st_mtime_ns for path in compiled_code(folder)}
    before = (
        "setattr(__import__('rbchain.compiling.machine_code', fromlist=['INSTALLED']), 'INSTALLED', "
        f"__import__('pathlib').Path({str(tmp_path)!r}))"
    )
    result, (warning,) = finished(started(folder, "float64", before))
    assert result == double
    assert f"the machine code {tmp_path}" in warning
    assert "is damaged" in warning
    assert "Reinstall rbchain: pip install --force-reinstall --no-deps rbchain" in warning
    assert kept == {path: path.stat().st_mtime_ns for path in compiled_code(folder)}  # nothing was compiled again


def test_files_of_machine_code_that_are_not_used_for_a_long_time_are_deleted(tmp_path):
    now, day = time.time(), 86400.0
    ages = {
        "new.rbc": (0, 0),
        "read.rbc": (10, 200),
        "old.rbc": (91, 91),
        "old.rbc.1f.part": (95, 95),
        "old.py": (91, 91),
    }
    for name, (accessed, modified) in ages.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (now - accessed * day, now - modified * day))
    machine_code.remove_unused(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.rbc", "old.py", "read.rbc"]


def test_a_used_file_is_marked_without_a_change_of_its_date(tmp_path):
    file, day = tmp_path / "driver.rbc", 86400.0
    file.touch()
    os.utime(file, (time.time() - 91 * day, 1.5e9))
    machine_code.mark_used(file)
    assert file.stat().st_mtime == 1.5e9
    assert time.time() - file.stat().st_atime < 60.0
    machine_code.remove_unused(tmp_path)
    machine_code.mark_used(tmp_path / "missing.rbc")
    assert file.exists()


@pytest.mark.slow
def test_a_cache_folder_that_is_not_writable_is_reported(cache, tmp_path):
    _, double = cache
    # a file in place of the folder: not even root can write into it
    before = (
        "[(__import__('shutil').rmtree(f), open(f, 'w').close()) for f in "
        "[__import__('rbchain.drivers.motion').drivers.motion.body_poses._cache.cache_path]]"
    )
    result, (warning,) = finished(started(tmp_path / "cache", "float64", before))
    assert result == double
    assert "the machine code of motion.body_poses cannot be stored in" in warning
    assert "NUMBA_CACHE_DIR" in warning


PACKAGE = Path(rb.__file__).parent
PACKAGES = sorted(path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("core/*/__init__.py"))
ENERGY = "import rbchain as rb; print(rb.Model.serial_chain(1).energy([0.3], [1.0])[1])"


# Numba imports slowly, so one process reads all keys.
BUILDS = """
import importlib
from pathlib import Path
from rbchain.compiling import machine_code
print(machine_code.BUILD)
print(importlib.reload(machine_code).BUILD)
for kernel in map(Path, {kernels}):
    kernel.write_text(kernel.read_text() + "# changed")
    print(importlib.reload(machine_code).BUILD)
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Return a copy of rbchain, and a function that runs a script with it and returns the words that it prints."""
    folder = tmp_path_factory.mktemp("copied")
    package = folder / "rbchain"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}

    def printed(script):
        command = [sys.executable, "-c", script]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=folder)
        return run.stdout.strip()

    return package, printed


def test_all_kernels_are_in_the_packages_of_core():
    assert len(PACKAGES) == 12
    assert [path.name for path in PACKAGE.glob("core/*.py")] == ["__init__.py"]


def test_a_change_of_any_kernel_package_changes_the_key_of_all_machine_code(copied):
    """Numba itself checks only the file of the driver, and would continue to use the old kernel."""
    package, printed = copied
    kernels = [
        str(next(path for path in sorted((package / name).glob("*.py")) if path.name != "__init__.py"))
        for name in (*PACKAGES, "drivers", "compiling")
    ]
    unchanged, again, *changed = printed(BUILDS.format(kernels=kernels)).split()
    assert unchanged == again
    assert len({unchanged, *changed}) == len(kernels) + 1


@pytest.mark.slow
def test_a_driver_is_compiled_again_when_a_kernel_changes(copied):
    package, printed = copied
    builds = lambda: len(list((package.parent / "cache").rglob("*energy*.rbc")))  # noqa: E731
    value, kept = float(printed(ENERGY)), builds()
    assert (float(printed(ENERGY)), builds()) == (value, kept)
    kernel = package / "core" / "algorithms" / "energy.py"
    kernel.write_text(kernel.read_text().replace("k] - dot(gravity", "k] + dot(gravity"))
    assert (float(printed(ENERGY)), builds()) == (-value, kept + 1)


CHILDREN = f"""
import multiprocessing
import numpy as np
import rbchain as rb

def work(seed):
    model = rb.Model.serial_chain(2)
    q, _ = model.random_state(seed, batch=3000)
    return float(model.body_poses(q).translation.sum())

if __name__ == "__main__":
    rb.set_num_threads(2)
    own = [work(seed) for seed in range(3)]
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map_async(work, range(3)).get({HANG_LIMIT}) == own, method
    print("agree")
"""


@pytest.mark.slow
def test_child_processes_compute_the_results_of_their_parent(cache, tmp_path):
    """A forked child has none of the threads that its parent has used before."""
    script = tmp_path / "children.py"
    script.write_text(CHILDREN)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache[0]), "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "agree\n", run.stderr


CELL = """
def push(t, q, qd, numbers, out):
    out[0] += {force}
motion = rod.simulate([[0.0]], [[0.0]], 0.01, method="rk4", step=0.01, drives=[rb.UserForces(push)])
"""


def test_a_function_redefined_under_the_same_name_is_used():
    """As in a notebook whose cell is changed and run again."""
    code = "import rbchain as rb\nrod = rb.Model.serial_chain(1, gravity=(0, 0, 0))\n"
    for force in ("1.0", "2.0"):
        code += CELL.format(force=force) + "print(round(float(motion.qd[0, -1, 0]), 3))\n"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    first, second = map(float, run.stdout.split())
    assert second == pytest.approx(2.0 * first, rel=1e-2), run.stderr


# Two drivers of the same name, closure and instructions: only a constant, or a name, differs.
VARIANTS = """
import math, os
import numpy as np
from rbchain import compiled
x = np.zeros(1)
if os.environ["VARIANT"] == "1":
    @compiled.driver
    def put(x):
        x[0] = math.cos(1.0)
elif os.environ["VARIANT"] == "2":
    @compiled.driver
    def put(x):
        x[0] = math.cos(2.0)
else:
    @compiled.driver
    def put(x):
        x[0] = math.sin(2.0)
put(x)
print(x[0])
"""


def output_of(script, **environment):
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    command = [sys.executable, script]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_LIMIT)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_functions_of_the_same_name_in_one_file_have_their_own_machine_code(tmp_path):
    script = tmp_path / "variants.py"
    script.write_text(VARIANTS)
    values = {"1": math.cos(1.0), "2": math.cos(2.0), "3": math.sin(2.0)}
    for variant in ("1", "2", "3", "1"):  # the last is loaded
        printed = output_of(script, VARIANT=variant, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        assert float(printed) == pytest.approx(values[variant], rel=1e-15)
    assert len(list(tmp_path.rglob("*.rbc"))) == 3


# Numba sets what a function needs to print when it compiles the function: here for the host, before the driver.
PRINTING = """
import numba
import numpy as np
from rbchain import compiled

@numba.njit
def shown(x):
    print("x is", x)
    return x + 1.0

@compiled.driver
def driver(x):
    x[0] = shown(x[0])

@numba.njit
def other(x):
    return shown(x) + 1.0

def call_driver():
    x = np.ones(1)
    driver(x)
    print(x[0])

def call_other():
    print(other(3.0))

"""
ORDERS = {
    "host first": ("shown(0.0); call_driver(); call_other()", "x is 0.0\nx is 1.0\n2.0\nx is 3.0\n5.0\n"),
    "driver first": ("call_driver(); call_other(); shown(0.0)", "x is 1.0\n2.0\nx is 3.0\n5.0\nx is 0.0\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("in_file", "order"),
    [
        (True, "host first"),
        (False, "driver first"),
        pytest.param(True, "driver first", marks=pytest.mark.slow),
        pytest.param(False, "host first", marks=pytest.mark.slow),
    ],
)
def test_drivers_and_other_functions_can_call_functions_that_print(tmp_path, order, in_file):
    calls, expected = ORDERS[order]
    script = tmp_path / "printing.py"
    script.write_text(PRINTING + calls if in_file else f"exec({PRINTING + calls!r})")
    for _ in range(2):  # compiled, then loaded if the functions are in a file
        assert output_of(script, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == expected


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="plain Python can call them")
def test_drivers_of_rbchain_cannot_be_called_from_compiled_code():
    """Their files lack what compiled callers would be linked with."""

    @numba.njit
    def call(x):
        body_poses(x)

    with pytest.raises(TypeError, match="body_poses can only be called from Python; compiled code can"):
        call(1.0)
