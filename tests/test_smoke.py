"""One compiled function: what `pytest -m quick` checks besides the tests in plain Python."""

import numpy as np
import pytest

from .conftest import mechanism
from .oracles import peers
from .quantities import random_states


@pytest.mark.quick
def test_compiled_forward_dynamics_agree_with_pinocchio():
    """The batch needs more than one block of lanes."""
    model = mechanism("every_joint_tree")
    q, qd, tau = random_states(model, (9,))
    expected = np.array([peers.to_pinocchio(model).forward_dynamics(*state) for state in zip(q, qd, tau, strict=True)])
    np.testing.assert_allclose(model.forward_dynamics(q, qd, tau), expected, rtol=0, atol=1e-9 * np.abs(expected).max())
