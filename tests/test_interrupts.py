"""Ctrl-C ends simulations and films and leaves no incomplete file."""

import os
import subprocess
import sys

import pytest

from .conftest import HANG_LIMIT

if not hasattr(os, "fork"):
    pytest.skip("signals are sent as POSIX has them", allow_module_level=True)

#: A script passes `interrupted` a call that would take hours, and its own process sends SIGINT after half a second; or
#: it passes a call that sends SIGINT itself to `outcome`.
PREPARE = """
import os, signal, threading
import numpy as np
import rbchain as rb

# a shell starts background jobs with SIGINT ignored
signal.signal(signal.SIGINT, signal.default_int_handler)

def outcome(run):
    try:
        run()
    except KeyboardInterrupt:
        print("interrupted")
    else:
        print("complete")

def interrupted(run):
    def run_and_interrupt():
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        run()
    outcome(run_and_interrupt)

arm = rb.Model.serial_chain(2)
"""


def output_of(script, folder, **environment):
    """Return the words that a script prints. Without an interruption it would run for longer than the limit."""
    command = [sys.executable, "-c", PREPARE + script]
    run = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "batch", "threads"),
    [
        ("rtol=1e-12, max_steps=10**9", "(100,)", "2"),
        ("rtol=1e-12, max_steps=10**9", "(100,)", "1"),
        ("method='rk4', step=1e-6", "(100,)", "2"),
        ("method='rk4', step=1e-6", "()", "1"),
        ("method='rk4', step=1e-6, drives=[rb.PID('link1', 0, kp=1)]", "(100,)", "2"),
    ],
)
def test_ctrl_c_ends_a_simulation(settings, batch, threads, tmp_path):
    """The same function can be called again afterwards."""
    script = f"""
zero = np.zeros(({batch} + (2,)))
simulate = lambda duration: arm.simulate(zero, zero, duration, {settings})
simulate(1e-5)
interrupted(lambda: simulate(1e5))
print(simulate(1e-5).success)
"""
    assert output_of(script, tmp_path, RBCHAIN_NUM_THREADS=threads) == ["interrupted", "True"]


def test_ctrl_c_ends_a_simulation_in_plain_python(tmp_path):
    script = "interrupted(lambda: arm.simulate([0.0, 0.0], [0.0, 0.0], 1e5, method='rk4', step=1e-3))"
    assert output_of(script, tmp_path, NUMBA_DISABLE_JIT="1") == ["interrupted"]


INTERRUPT_OFTEN = """
import contextlib, random, sys
from rbchain.drivers import threads

sys.setswitchinterval(1e-6)  # the threads meet at every instruction
signal.signal(signal.SIGALRM, signal.default_int_handler)
threads.set_num_threads(3)
complete = 0

def add_one(memory, numbers, first, last):
    numbers[first:last] += 1

for attempt in range(300):
    with contextlib.suppress(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 3e-3))
        while True:
            numbers, stop = np.zeros(64), np.zeros(1)
            if attempt % 2:
                threads.run(add_one, [], list, (numbers,), 64, 8)
            else:
                threads.run_interruptibly(add_one, list, (numbers,), 64, 8, stop, 1e9)
            assert (numbers == 1.0).all()
            complete += 1
print(complete > 0)
"""


def test_ctrl_c_at_any_instruction_does_not_block_the_worker_threads(tmp_path):
    """With a ThreadPoolExecutor instead, one of about 100 interrupts blocks all threads for ever."""
    assert output_of(INTERRUPT_OFTEN, tmp_path, NUMBA_DISABLE_JIT="1") == ["True"]


def test_a_simulation_in_another_thread_is_not_disturbed_by_ctrl_c(tmp_path):
    """Python handles signals in the main thread."""
    script = """
import time
zero = np.zeros((100, 2))
arm.simulate(zero, zero, 1e-3)
found = []
thread = threading.Thread(target=lambda: found.append(arm.simulate(zero, zero, 20.0, rtol=1e-10)))
thread.start()
interrupted(lambda: time.sleep(3600))
thread.join()
print(found[0].success)
"""
    assert output_of(script, tmp_path) == ["interrupted", "True"]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["gif", "mp4", "png", "html"])
def test_ctrl_c_ends_a_film_and_leaves_no_file(ending, tmp_path):
    script = f"""
import trimesh, viser  # while it is imported, trimesh ignores Ctrl-C
motion = arm.simulate([0.0, 0.0], [0.0, 0.0], 600.0, method="rk4", step=0.01, save_at=60)
interrupted(lambda: motion.film("swing.{ending}"))
"""
    assert output_of(script, tmp_path) == ["interrupted"]
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_not_hidden_by_the_error_of_a_library_that_it_disturbs(tmp_path):
    """Matplotlib turns a KeyboardInterrupt within a conversion into this error."""
    script = """
from rbchain.view.painting import Painting

def show(self, frame):
    try:
        signal.raise_signal(signal.SIGINT)
        for _ in range(1000):  # Python calls the handler between instructions
            pass
    except BaseException:
        raise ValueError("Invalid bounding box") from None
    if frame == 1:
        raise ValueError("Invalid bounding box")

Painting.show = show
motion = arm.simulate([0.0, 0.0], [0.0, 0.0], 1.0, method="rk4", step=0.1)
for name in ("swing.gif", "swing_.png"):
    outcome(lambda: motion.film(name))
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    assert output_of(script, tmp_path, NUMBA_DISABLE_JIT="1") == ["interrupted", "interrupted", "True"]
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_in_a_terminal_also_reaches_the_program_that_writes_a_film(tmp_path):
    script = """
import time
from rbchain.view.painting import Painting

draw = Painting.show

def show(self, frame):
    draw(self, frame)
    if frame == 3:
        os.killpg(0, signal.SIGINT)
        time.sleep(1.0)  # the program ends

Painting.show = show
os.setsid()
motion = arm.simulate([0.0, 0.0], [0.0, 0.0], 1.0, method="rk4", step=0.1)
outcome(lambda: motion.film("swing.mp4"))
"""
    assert output_of(script, tmp_path, NUMBA_DISABLE_JIT="1") == ["interrupted"]
    assert list(tmp_path.iterdir()) == []
