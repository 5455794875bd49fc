"""The expected time of a compilation follows from the number of functions, which is known before."""

import subprocess
import sys

import pytest

from rbchain.compiling.numba_internals.announcements import expected_functions

PROGRAM = """
import sys
import numpy as np
import rbchain as rb
from rbchain.compiling.numba_internals import announcements as module

counts, announced = [], module.expected_functions

def expected_functions(driver, types):
    counts.append((module._compiled[0], announced(driver, types)))
    return counts[-1][1]

module.expected_functions = expected_functions
model, z = rb.Model.serial_chain(2), np.zeros((8, 2))
EVAL
(before, expected), after = counts[0], module._compiled[0]
print(expected, after - before)
"""
CALL = "model.simulate(z, z, 0.1, save_at=2, method='moreau', step=0.01, forces=[rb.DryFriction('link1', kinetic=0.1)])"


@pytest.mark.slow
def test_the_expected_number_of_functions_is_right_within_a_factor_of_two(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    program = PROGRAM.replace("EVAL", CALL)
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    expected, found = map(int, run.stdout.split())
    assert found / 2 < expected < 2 * found


def test_a_driver_of_the_user_has_no_estimate():
    assert expected_functions("mine.step", "(float64,)") is None
