"""Compiled code in lanes gives the motions of plain Python, for cases of the pairs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .cases import few_cases
from .running import SAMPLES, Setup
from .test_pairs import bound_of_error

ROOT = Path(__file__).parents[2]
CASES = few_cases()
CHILD = """
import sys
import numpy as np
from tests.pairs.test_compiled_pairs import CASES, varied
np.savez(sys.argv[1], *(np.concatenate([x.q, x.qd], axis=-1) for x in map(varied, CASES)))
"""

pytestmark = pytest.mark.slow


def varied(case):
    """The motions of three samples, which differ in their masses."""
    setup = Setup(case)
    return setup.simulate(setup.varied(), (len(SAMPLES),))


@pytest.fixture(scope="module")
def motions_in_plain_python(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "motions.npz"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD, path], env=environment, cwd=ROOT, check=True)
    return list(np.load(path).values())


@pytest.mark.parametrize("number", range(len(CASES)), ids=[str(case) for case in CASES])
def test_compiled_code_agrees_with_plain_python(number, motions_in_plain_python):
    """Rounding differs, so that steps may have other lengths: both have the error that the method allows."""
    case = CASES[number]
    found = varied(case)
    assert found.success, found.message
    setup = Setup(case)
    bound, _ = bound_of_error(setup, setup.simulate())
    states = np.concatenate([found.q, found.qd], axis=-1)
    np.testing.assert_allclose(states, motions_in_plain_python[number], rtol=0, atol=2 * bound)
