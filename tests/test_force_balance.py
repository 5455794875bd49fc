"""The force balance residual detects a wrong acceleration of any degree of freedom."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.core.algorithms import residual

from .mechanisms import JOINTS, random_inertia, random_rotation

pytestmark = [pytest.mark.plain_python, pytest.mark.quick]


@pytest.mark.parametrize("kind", JOINTS)
def test_the_residual_detects_a_wrong_force_in_any_degree_of_freedom(kind, monkeypatch):
    rng = np.random.default_rng(0)
    builder = rb.ModelBuilder()
    for name, parent in (("first", None), ("second", "first")):
        placement = rb.Pose(rng.normal(size=3), random_rotation(rng))
        builder.add_body(name, parent=parent, joint=JOINTS[kind](rng), placement=placement, inertia=random_inertia(rng))
    model = builder.build()
    q, qd = model.random_state(rng)
    tau, right = rng.normal(size=model.nv), residual.forward_dynamics
    assert np.abs(model.force_balance_residual(q, qd, tau)).max() < 1e-9
    for i in range(model.nv):

        def wrong(model, q, qd, loads, qdd, work, k, i=i):
            loads.tau[i, k] += 1.0
            right(model, q, qd, loads, qdd, work, k)
            loads.tau[i, k] -= 1.0

        monkeypatch.setattr(residual, "forward_dynamics", wrong)
        assert np.abs(model.force_balance_residual(q, qd, tau)).max() > 0.1
