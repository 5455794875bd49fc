"""Each pair of features is right or is refused by name."""

import numpy as np
import pytest

import rbchain as rb

from .cases import CONTACTS, FIXED_STEPS, LOOPS, PART, PRESCRIBED, covering_cases, documented_refusals
from .running import STEPS, WAYS_TO_RUN, Setup
from .worlds import WORLDS, World

ACCEPTED, REFUSED = covering_cases()

pytestmark = pytest.mark.plain_python


def marked(cases):
    """Leave most cases to the slow tests."""
    return [
        pytest.param(case, id=str(case), marks=[] if i % PART == 0 else pytest.mark.slow)
        for i, case in enumerate(cases)
    ]


def other_method(case):
    """A method for the reference, of another family if there is one that supports the case."""
    if case.force in CONTACTS and (case.mechanism in LOOPS or case.drive in PRESCRIBED):
        return None
    return "rosenbrock" if case.method == "rk45" else "rk45"


def bound_of_error(setup, motion):
    """The largest error at the end that the method and its settings allow, for q and for qd.

    Adaptive methods: each step may add its tolerance, and stiffness and gains multiply earlier errors by less than 3
    during these short motions. Fixed steps: the difference to half the step exceeds the error of the latter; an impact
    that is located to a step adds the change of the velocity during a step.
    """
    size = 1.0 + max(np.abs(motion.q).max(), np.abs(motion.qd).max())
    round_off = 10 * STEPS * np.finfo(setup.dtype).eps * size
    if setup.case.method not in FIXED_STEPS:
        tolerance = setup.settings()["rtol"]
        return 3 * int(np.max(motion.steps)) * tolerance * size + round_off, motion
    fine = setup.simulate(**setup.settings(refinement=2))
    difference = max(np.abs(fine.q[-1] - motion.q[-1]).max(), np.abs(fine.qd[-1] - motion.qd[-1]).max())
    if setup.case.force in CONTACTS:
        difference += 2 * setup.settings()["step"] * np.ptp(motion.qd, axis=0).max() / setup.mechanism.duration
    return 2 * difference + round_off, fine


@pytest.mark.parametrize("case", marked(ACCEPTED))
def test_a_case_is_right(case, tmp_path):
    """Its way to run gives the same motion, another method agrees, and so does the same motion in another world."""
    setup = Setup(case)
    WAYS_TO_RUN[case.way](setup, tmp_path)
    motion = setup.simulate()
    assert motion.success, motion.message
    bound, accurate = bound_of_error(setup, motion)
    method = other_method(case)
    if method:
        reference = setup.reference(method)
        assert reference.success, reference.message
        np.testing.assert_allclose(accurate.q[-1], reference.q[-1], rtol=0, atol=bound)
        np.testing.assert_allclose(accurate.qd[-1], reference.qd[-1], rtol=0, atol=bound)
    other = Setup(case, World(**WORLDS[case.world]))
    again = other.simulate()
    assert again.success, again.message
    q, qd = again.q[-1] / other.mechanism.q_unit, again.qd[-1] / other.mechanism.qd_unit
    np.testing.assert_allclose(q, motion.q[-1], rtol=0, atol=2 * bound)
    np.testing.assert_allclose(qd, motion.qd[-1], rtol=0, atol=2 * bound)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_case_that_the_page_on_limits_excludes_is_refused_by_name(case, tmp_path):
    (word,) = documented_refusals(case)
    with pytest.raises((rb.StateError, rb.ModelError)) as refused:
        WAYS_TO_RUN[case.way](Setup(case), tmp_path)
    assert word in str(refused.value)
