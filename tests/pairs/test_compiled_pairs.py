"""Compiled code in lanes gives the motions of plain Python, for cases of the pairs."""

import numpy as np
import pytest

from ..other_process import computed
from .cases import compiled_cases
from .running import SAMPLES, Setup
from .test_pairs import bound_of_error

CASES = compiled_cases()

pytestmark = pytest.mark.slow


def varied(case):
    """The motions of three samples, which differ in their masses."""
    setup = Setup(case)
    return setup.simulate(setup.varied(), (len(SAMPLES),))


def states_of(motion):
    return np.concatenate([motion.q, motion.qd], axis=-1)


def states_and_bounds():
    """The positions and velocities of all cases, and the errors that their methods allow, by their numbers."""
    found = {f"states {number}": states_of(varied(case)) for number, case in enumerate(CASES)}
    bounds = {f"bound {number}": np.float64(bound(case)) for number, case in enumerate(CASES)}
    return found | bounds


def bound(case):
    setup = Setup(case)
    return bound_of_error(setup, setup.simulate())[0]


@pytest.fixture(scope="module")
def in_plain_python():
    return computed(states_and_bounds, NUMBA_DISABLE_JIT="1")


@pytest.mark.parametrize("number", range(len(CASES)), ids=[str(case) for case in CASES])
def test_compiled_code_agrees_with_plain_python(number, in_plain_python):
    """Rounding differs, so that steps may have other lengths: both have the error that the method allows."""
    found, expected = varied(CASES[number]), in_plain_python[f"states {number}"]
    assert found.success, found.message
    np.testing.assert_allclose(states_of(found), expected, rtol=0, atol=2 * in_plain_python[f"bound {number}"])
