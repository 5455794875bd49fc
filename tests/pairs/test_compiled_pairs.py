"""Compiled code in lanes gives the motions of plain Python, for cases of the pairs."""

import numpy as np
import pytest

from ..other_process import computed
from .cases import few_cases
from .running import SAMPLES, Setup
from .test_pairs import bound_of_error

CASES = few_cases()

pytestmark = pytest.mark.slow


def varied(case):
    """The motions of three samples, which differ in their masses."""
    setup = Setup(case)
    return setup.simulate(setup.varied(), (len(SAMPLES),))


def states_of_cases():
    """The positions and velocities of all cases, by the numbers of the cases."""
    motions = map(varied, CASES)
    return {str(number): np.concatenate([x.q, x.qd], axis=-1) for number, x in enumerate(motions)}


@pytest.fixture(scope="module")
def states_in_plain_python():
    return computed(states_of_cases, NUMBA_DISABLE_JIT="1")


@pytest.mark.parametrize("number", range(len(CASES)), ids=[str(case) for case in CASES])
def test_compiled_code_agrees_with_plain_python(number, states_in_plain_python):
    """Rounding differs, so that steps may have other lengths: both have the error that the method allows."""
    case = CASES[number]
    found = varied(case)
    assert found.success, found.message
    setup = Setup(case)
    bound, _ = bound_of_error(setup, setup.simulate())
    states = np.concatenate([found.q, found.qd], axis=-1)
    np.testing.assert_allclose(states, states_in_plain_python[str(number)], rtol=0, atol=2 * bound)
