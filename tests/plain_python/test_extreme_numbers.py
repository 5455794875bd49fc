"""Numbers at the ends of the ranges: an error that names them, or infinity and NaN in their own sample."""

import warnings

import numpy as np
import pytest

import rbchain as rb

from ..conftest import mechanism
from ..quantities import random_state


def test_joint_forces_beyond_float32_are_refused_by_name():
    """They became infinite, and with the states in float32 the motion ended as not finite."""
    arm = rb.Model.serial_chain(2)
    q = np.zeros((2, 2), np.float32)
    with pytest.raises(rb.StateError, match=r"^tau is .*expected numbers within float32's range"):
        arm.simulate(q, q, 0.1, method="rk4", step=0.05, tau=[1e39, 0.0])


@pytest.mark.parametrize("name", ["q0", "qd0", "tau"])
def test_what_is_no_array_is_refused_by_the_name_of_simulates_argument(name):
    """NumPy's own error came before the check."""
    arm, given = rb.Model.serial_chain(2), {"q0": np.zeros((2, 2)), "qd0": np.zeros((2, 2)), "tau": 0.0}
    for bad in ([[1.0], [1.0, 2.0]], [10**400, 0], None):
        with pytest.raises(rb.StateError, match=f"^{name} is "):
            arm.simulate(**given | {name: bad}, duration=0.1, method="rk4", step=0.05)


@pytest.mark.parametrize("varies", [False, True])
def test_parameters_beyond_the_range_of_a_calculation_are_refused(varies):
    """A mass of 1e39 kg was infinite in float32: the joint did not move."""
    heavy = rb.Model.serial_chain(1, mass=1e39)
    heavy = heavy.vary(mass=[[1e39], [2e39]]) if varies else heavy
    q = np.zeros((2, 1), np.float32)
    with pytest.raises(rb.ModelError, match=r"model 'chain': parameters.*beyond the range of float32"):
        heavy.forward_dynamics(q, q, q)
    assert np.isfinite(heavy.forward_dynamics(*(x.astype(float) for x in (q, q, q)))).all()


def test_an_armature_beyond_float64_is_refused():
    """Its square was infinite: the joint did not move."""
    with pytest.raises(rb.ModelError, match="rotor_inertia gear_ratio"), np.errstate(all="ignore"):
        rb.Model.serial_chain(1).vary(rotor_inertia=[1.0], gear_ratio=[1e200]).forward_dynamics([0.0], [0.0], [1.0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_states_that_overflow_stay_in_their_sample_without_a_warning(dtype):
    model = mechanism("every_joint_tree")
    state = random_state(model, (3,))
    q, q1, v, tau = (x.astype(dtype) for x in (state.q, state.q1, state.qd, state.tau))
    far, fast = q.copy(), v.copy()
    far[1, model.position_index[3]], fast[1] = np.finfo(dtype).max, np.finfo(dtype).max
    calls = (
        lambda q, v: model.integrate(q, v),
        lambda q, v: model.difference(q, q1),
        lambda q, v: model.power(q1, v, tau + v / 4),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in calls:
            found, expected = call(far, fast), call(q, v)
            assert np.array_equal(np.delete(found, 1, 0), np.delete(expected, 1, 0))
