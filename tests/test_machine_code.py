"""Machine code: it is loaded from the package or the cache, never executed if it is not what it should be."""

import os
import pickle
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import rbchain as rb
from rbchain.compiling import kernel_cache, levels, machine_code
from rbchain.compiling.dependencies import dependencies_of
from rbchain.precompile import parallel
from rbchain.precompile.calls import call_everything
from rbchain.precompile.parallel import MOST_PER_PROCESS, compile_signatures, groups
from rbchain.precompile.signatures import Signature, signatures_of

ROOT = Path(__file__).parents[1]
DRIVERS = ROOT / "rbchain" / "drivers"
KEY, OTHER_KEY = (machine_code.digest_of(name) for name in ("one", "other"))

# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_gives_back_its_content():
    assert machine_code.unpacked(KEY, machine_code.packed(KEY, {"code": b"\x90"})) == {"code": b"\x90"}


def test_a_file_in_which_any_byte_differs_is_refused():
    file = machine_code.packed(KEY, "code")
    for at in range(len(file)):
        damaged = bytearray(file)
        damaged[at] ^= 1
        with pytest.raises(machine_code.UnusableFile):
            machine_code.unpacked(KEY, bytes(damaged))


def test_a_file_that_is_cut_anywhere_is_refused():
    file = machine_code.packed(KEY, "code")
    for end in range(len(file)):
        with pytest.raises(machine_code.UnusableFile):
            machine_code.unpacked(KEY, file[:end])


def test_the_code_of_another_signature_is_refused():
    with pytest.raises(machine_code.UnusableFile, match="was compiled for something else"):
        machine_code.unpacked(KEY, machine_code.packed(OTHER_KEY, "code"))


def test_a_file_of_another_program_is_refused_and_not_unpickled():
    class Trap:
        def __reduce__(self):
            return os._exit, (1,)

    with pytest.raises(machine_code.UnusableFile, match="is not a file of rbchain's machine code"):
        machine_code.unpacked(KEY, pickle.dumps(Trap()))


# --- drivers of users -------------------------------------------------------------------------------------------------


def user_function(text, **names):
    """A function `work` of this text, whose globals have these names."""
    exec(text, names)
    return names["work"]


PARAMETERS, OTHER_PARAMETERS = types.ModuleType("parameters"), types.ModuleType("parameters")
PARAMETERS.mass, OTHER_PARAMETERS.mass = 1.0, 2.0
HELPER, OTHER_HELPER = (user_function(f"def work(x): return x * {factor}") for factor in (2, 3))


@pytest.mark.parametrize(
    ("expression", "one", "other"),
    [
        ("x * value", 1.0, 2.0),
        ("x * value[0]", (1.0, 2.0), (3.0, 2.0)),
        ("x * value[0]", np.array([1.0]), np.array([2.0])),
        ("x * value.mass", PARAMETERS, OTHER_PARAMETERS),
        ("value(x)", HELPER, OTHER_HELPER),
        ("[value * y for y in x]", 1.0, 2.0),
    ],
)
def test_the_code_of_a_user_depends_on_what_its_names_refer_to(expression, one, other):
    text = f"def work(x): return {expression}"
    first, again, changed = (dependencies_of(user_function(text, value=value)) for value in (one, one, other))
    assert repr(first) == repr(again)
    assert repr(first) != repr(changed)


def test_functions_that_call_each_other_are_described():
    text = "def work(x): return other(x)\ndef other(x): return work(x)"
    assert "other" in repr(dependencies_of(user_function(text)))


# --- kernels ----------------------------------------------------------------------------------------------------------


def test_kernels_of_the_same_name_are_told_apart():
    one, other = (lambda x: x + 1.0), (lambda x: x + 2.0)
    assert kernel_cache.unique_name(one) != kernel_cache.unique_name(other)


def test_the_kernels_of_users_and_closures_are_not_kept():
    step = 1.0

    def of_user(x):
        return x + 1.0

    def closure(x):
        return x + step

    assert not kernel_cache.can_be_kept(of_user)
    of_user.__module__ = closure.__module__ = "rbchain.core.algorithms.aba"
    assert kernel_cache.can_be_kept(of_user)
    assert not kernel_cache.can_be_kept(closure)


# --- what is compiled -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything():
    return signatures_of(call_everything)


@pytest.mark.slow
def test_a_wheel_has_every_driver(everything):
    defined = {
        line.split("(")[0].removeprefix("def ").strip()
        for file in DRIVERS.glob("*.py")
        for before, line in zip(file.read_text().splitlines(), file.read_text().splitlines()[1:], strict=False)
        if before == "@driver"
    }
    assert {signature.name for signature in everything} == defined
    assert len(defined) > 20


def simulate_controlled_arm():
    """Digital controllers with noise and varying gains, and sensitivities, for another model than that of the wheel."""
    arm = rb.Model.serial_chain(3).vary(mass=np.ones((4, 3)))
    q = np.zeros((4, 3))
    pid = rb.PID("link1", 0.0, kp=np.ones(4), ki=1.0, gravity_compensation=True)
    encoder = rb.Encoder("link1", resolution=1e-4, noise=1e-3)
    drives = [rb.Sampled(pid, period=0.01, delay=0.01, sensors=[encoder])]
    arm.simulate(q, q, 0.02, drives=drives, method="implicit", step=0.01, save_at=2)
    arm.simulate(q, q, 0.02, derivatives=["q", "mass", "kp"], drives=[rb.PID("link1", 0.0, kp=1.0)], save_at=2)


@pytest.mark.slow
def test_a_wheel_has_the_drivers_of_digital_controllers_and_sensitivities(everything):
    found = signatures_of(simulate_controlled_arm)
    assert {signature.name for signature in found} == {"integrate_batch"} and len(found) == 2
    assert set(map(str, found)) <= set(map(str, everything))


@pytest.mark.slow
def test_recorded_signatures_are_those_that_compiled_calls_have(everything):
    """Recording runs in plain Python, where numbers could have other types."""
    model = rb.Model.serial_chain(2)
    q = np.zeros((3, 2))
    model.energy(q, q)
    model.energy(q[0], q[0])
    compiled = [types for function, types in machine_code.files if function.__name__ == "energy"]
    recorded = [signature.types for signature in everything if signature.name == "energy"]
    assert len(compiled) >= 2
    assert set(compiled) <= set(recorded)


def test_signatures_are_shared_out_without_loss():
    signatures = [Signature("module", f"driver{i}", (0, i % 3, 0, 0)) for i in range(100)]
    for processes in (1, 2, 5, 200):
        shared_out = groups(signatures, processes)
        assert sorted(signature for group in shared_out for signature in group) == sorted(signatures)
        assert len(shared_out) >= min(processes, 100)
        assert all(len(group) <= MOST_PER_PROCESS for group in shared_out)
    assert groups([], 2) == []


def test_a_function_that_fails_while_it_is_recorded_is_reported():
    with pytest.raises(rb.RbchainError, match="ZeroDivisionError"):
        signatures_of(divide_by_zero)


def test_a_function_that_cannot_be_pickled_is_reported():
    with pytest.raises(rb.RbchainError, match=r"the drivers cannot be recorded in another process: .*pickle"):
        signatures_of(lambda: None)


def divide_by_zero():
    return 1 // 0


# --- processes --------------------------------------------------------------------------------------------------------

# The energy compiles fast. Prints it, how many drivers were compiled, and the warnings.
SCRIPT = """
import warnings
import numba.core.event as events
import numpy as np
import rbchain as rb
from rbchain.compiling.numba_internals.driver_dispatcher import DriverDispatcher

class Count(events.Listener):
    drivers = 0
    def on_start(self, event):
        self.drivers += isinstance(event.data["dispatcher"], DriverDispatcher)
    def on_end(self, event):
        pass

count = Count()
events.register("numba:compile", count)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(float(rb.Model.serial_chain(1).energy([0.3], [1.0])[1]).hex())
print(count.drivers)
for warning in caught:
    print(warning.message)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory, everything):
    """A copy of rbchain with machine code of the energy of one state, as a wheel installs it."""
    energy = [s for s in everything if s.name == "energy" and "float64, 1d" in str(s.types[4])]
    energy = [s for s in energy if "int64" in str(s.types[1])]
    (file,) = compile_signatures(energy)
    package = tmp_path_factory.mktemp("installed") / "rbchain"
    shutil.copytree(ROOT / "rbchain", package, ignore=shutil.ignore_patterns("__pycache__", "machine_code"))
    folder = package / "drivers" / "machine_code"
    folder.mkdir()
    return Path(shutil.copy2(file, folder))


def run(installed, cache, **environment):
    """The energy, how many drivers were compiled, and the warnings, of a process that uses a copy of rbchain."""
    folder = installed.parents[3]
    environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(cache)} | environment
    command = [sys.executable, "-c", SCRIPT]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    assert found.returncode == 0, found.stderr
    energy, compiled, *warned = found.stdout.splitlines()
    return float.fromhex(energy), int(compiled), warned


EXPECTED = pytest.approx(0.1 * 10 * 0.125 * np.sin(0.3), rel=1e-15)


@pytest.mark.slow
def test_installed_machine_code_is_used_without_compiling(installed, tmp_path):
    assert run(installed, tmp_path) == (EXPECTED, 0, [])
    assert list(tmp_path.rglob("*.rbc")) == []


@pytest.mark.slow
def test_installed_machine_code_that_is_damaged_is_reported_and_compiled_again(installed, tmp_path):
    whole = installed.read_bytes()
    try:
        installed.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        energy, compiled, (warning,) = run(installed, tmp_path)
    finally:
        installed.write_bytes(whole)
    assert (energy, compiled) == (EXPECTED, 1)
    assert str(installed) in warning
    assert "is damaged" in warning


@pytest.mark.slow
def test_installed_machine_code_is_not_used_for_changed_sources(installed, tmp_path):
    source = installed.parents[2] / "core" / "algorithms" / "energy.py"
    text = source.read_text()
    try:
        source.write_text(text + "# changed\n")
        assert run(installed, tmp_path) == (EXPECTED, 1, [])
    finally:
        source.write_text(text)


@pytest.mark.slow
def test_machine_code_for_the_host_alone_is_compiled_where_it_is_asked_for(installed, tmp_path):
    assert run(installed, tmp_path, RBCHAIN_MACHINE_CODE="native") == (EXPECTED, 1, [])
    (file,) = tmp_path.rglob("*.rbc")
    assert ".native-" in file.name
    assert run(installed, tmp_path, RBCHAIN_MACHINE_CODE="native") == (EXPECTED, 0, [])


@pytest.mark.slow
def test_of_processes_that_need_the_same_code_one_compiles(installed, tmp_path):
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "NUMBA_CACHE_DIR": str(tmp_path),
        "RBCHAIN_MACHINE_CODE": levels.LEVEL,
    }
    command = [sys.executable, "-c", SCRIPT]
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    found = [process.communicate()[0].splitlines() for process in processes]
    assert [float.fromhex(energy) for energy, *_ in found] == [EXPECTED] * 3
    assert sorted(int(compiled) for _, compiled, *_ in found) == [0, 0, 1]
    assert list(tmp_path.rglob("*.lock")) == []


@pytest.mark.slow
def test_numba_without_its_internals_computes_the_same(tmp_path):
    """RBCHAIN_PLAIN_NUMBA=1, for versions of Numba whose internals differ."""
    script = "import sys, rbchain as rb; print(float(rb.Model.serial_chain(1).energy([0.3], [1.0])[1]).hex())\n"
    script += "assert 'rbchain.compiling.numba_internals' not in sys.modules"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RBCHAIN_PLAIN_NUMBA": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert float.fromhex(found.stdout) == EXPECTED
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [("x86-64-v9", "is 'x86-64-v9', not a level; expected one of"), ("aarch64", "does not support; expected one of")],
)
def test_a_level_that_cannot_be_used_is_refused_by_name(wanted, message):
    if wanted in levels.supported_levels():
        wanted = "x86-64-v4"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RBCHAIN_MACHINE_CODE": wanted}
    command = [sys.executable, "-c", "import rbchain.compiling.levels"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert message in found.stderr


def test_processes_that_only_compile_refuse_levels_of_another_architecture():
    """Numba would compile for its own architecture, and store that code under the name of the other."""
    others = [level for level in levels.LEVELS if level not in levels.levels_of_architecture()]
    assert others
    assert levels.LEVEL in [*levels.levels_of_architecture(), levels.NATIVE]
    for level in others:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "RBCHAIN_COMPILE_ONLY": "1", "RBCHAIN_MACHINE_CODE": level}
        command = [sys.executable, "-c", "import rbchain.compiling.levels"]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert f"RBCHAIN_MACHINE_CODE is {level!r}, a level that this processor does not support" in found.stderr


@pytest.mark.skipif(machine_code.fcntl is None, reason="this operating system has no such locks")
def test_a_process_that_never_ends_is_waited_for_only_a_limited_time(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_code, "LONGEST_WAIT", 0.1)
    path = tmp_path / "driver.lock"
    first, second, third = machine_code.Lock(), machine_code.Lock(), machine_code.Lock()
    first.take(path, "driver")
    second.take(path, "driver")
    second.release()
    assert path.exists()  # the first still has it
    first.release()
    assert not path.exists()
    third.take(path, "driver")
    assert path.exists()
    third.release()


def test_a_process_that_only_compiles_calls_no_driver():
    """Its code may be for another processor."""
    script = "import rbchain as rb; rb.Model.serial_chain(1).energy([0.3], [1.0])"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RBCHAIN_COMPILE_ONLY": "1"}
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert "energy: RBCHAIN_COMPILE_ONLY is set, so this process calls no driver; unset it" in found.stderr


def test_nothing_is_compiled_in_advance_where_machine_code_is_not_kept(monkeypatch):
    monkeypatch.setattr(parallel, "PLAIN_NUMBA", True)
    with pytest.raises(rb.RbchainError, match="because RBCHAIN_PLAIN_NUMBA is set; unset it"):
        compile_signatures([])


LEVEL_SCRIPT = """
import sys
import numpy as np
import rbchain as rb
chain = rb.Model.serial_chain(5).vary(mass=np.linspace(0.1, 0.2, 55).reshape(11, 5))
q, qd = chain.random_state(np.random.default_rng(0), batch=(11,))
sys.stdout.buffer.write(chain.forward_dynamics(q, qd, q).tobytes())
sys.stdout.buffer.write(chain[3].body_poses(q[3]).translation.tobytes())
"""


@pytest.mark.slow
@pytest.mark.skipif("x86-64-v4" not in levels.supported_levels(), reason="this processor has no second level with FMA")
def test_results_are_the_same_bit_for_bit_for_avx2_and_for_avx512():
    """Both have fused multiplication and addition; they differ in the number of lanes."""
    found = set()
    for level in ("x86-64-v3", "x86-64-v4"):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "RBCHAIN_MACHINE_CODE": level, "RBCHAIN_QUIET": "1"}
        run = subprocess.run([sys.executable, "-c", LEVEL_SCRIPT], env=environment, capture_output=True, check=True)
        found.add(run.stdout)
    assert len(found) == 1
    assert len(found.pop()) == (11 * 5 + 5 * 3) * 8
