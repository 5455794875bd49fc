"""The same kernels as plain Python, as one number at a time, and in lanes of every width: hold them to each other."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import rbchain as rb
from rbchain.core import aba
from rbchain.core.jit import driver
from rbchain.core.layout import BODY_ROWS, GATHERED_ROWS, Loads, Work, flat_model, settle_base

from .conftest import mechanism

COMPUTE = """
import json, sys
import numpy as np
from tests.mechanisms import BREADTH_FIRST, ALL_KINDS, random_tree
model = random_tree(8, BREADTH_FIRST, ALL_KINDS)
rng = np.random.default_rng(0)
q, qd, tau = rng.normal(size=(3, 5, model.nv))
wrenches = rng.normal(size=(5, model.nv, 6))
mass = rng.uniform(1, 2, (5, model.nv))
out = {}
for dtype in (np.float64, np.float32):
    Q, QD, TAU, W = (x.astype(dtype) for x in (q, qd, tau, wrenches))
    name = np.dtype(dtype).name
    out["fd " + name] = model.forward_dynamics(Q, QD, TAU, W)
    out["id " + name] = model.inverse_dynamics(Q, QD, TAU, W)
    out["varied " + name] = model.vary(mass=mass).forward_dynamics(Q, QD, TAU)
out["single"] = np.array([model.forward_dynamics(*x) for x in zip(q, qd, tau)])
out["residual"] = model.force_balance_residual(q, qd, tau)
out["energy"] = np.array(model.energy(q, qd))
out["poses"] = model.body_poses(q).rotation
out["rk4"] = model.simulate(q, 0.1 * qd, 0.02, method="rk4", step=0.01).q
motion = model.simulate(q, 0.1 * qd, 0.02, rtol=1e-6, save_at=3)
out["rk45"], out["steps"] = motion.q, motion.steps
json.dump({name: value.tolist() for name, value in out.items()}, sys.stdout)
"""


def computed(**environment):
    """What a new process with these environment variables computes."""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMPUTE],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)} | environment,
        capture_output=True,
        text=True,
        check=True,
        cwd=os.path.dirname(os.path.dirname(__file__)),
    )
    return {name: np.array(value) for name, value in json.loads(result.stdout).items()}


@pytest.fixture(scope="module")
def in_default_lanes():
    return computed()


# The condition number of this tree's mass matrix is some 1e3: what differs by the order of rounding only.
TOLERANCES = {"float32": 1e-2, "float64": 1e-10}


@pytest.mark.parametrize(
    "environment",
    [{"NUMBA_DISABLE_JIT": "1"}, *({"RBCHAIN_LANE_WIDTH": width} for width in ("2", "4", "16"))],
    ids=["plain Python", "2 lanes", "4 lanes", "16 lanes"],
)
def test_every_way_of_running_the_kernels_agrees(environment, in_default_lanes):
    found = computed(**environment)
    assert np.array_equal(found.pop("steps"), in_default_lanes["steps"])
    residual = found.pop("residual")
    assert np.abs(residual).max() < 1e-10
    for name, value in found.items():
        expected = in_default_lanes[name]
        scale = np.abs(expected).max()
        assert np.abs(value - expected).max() <= TOLERANCES.get(name[-7:], 1e-10) * scale, name


def test_a_width_that_is_none_is_refused():
    with pytest.raises(subprocess.CalledProcessError) as failure:
        computed(RBCHAIN_LANE_WIDTH="3")
    assert "RBCHAIN_LANE_WIDTH" in failure.value.stderr


@driver
def one_number_at_a_time(topology, parameters, q, qd, tau, wrenches, qdd, body, gathered):
    model, work = flat_model(topology, parameters), Work(body, gathered)
    settle_base(model, work, 0)
    aba.forward_dynamics(model, q, qd, Loads(tau, wrenches), qdd, work, 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_integer_index_runs_the_sweeps_on_single_numbers(dtype):
    model = mechanism("mixed_tree")
    n = model.nv
    q, qd, tau = np.random.default_rng(0).normal(size=(3, n, 1)).astype(dtype)
    topology, parameters, _ = model._arrays_in(np.dtype(dtype))
    qdd = np.empty((n, 1), dtype)
    body, gathered = np.empty((n + 1, BODY_ROWS, 1), dtype), np.empty((n, GATHERED_ROWS, 1), dtype)
    # the last row of the gathered stays zero: it must be the one that childless bodies name
    gathered = gathered[: topology[2].max() + 1]
    one_number_at_a_time(topology, parameters, q, qd, tau, np.empty((0, 6, 1), dtype), qdd, body, gathered)
    expected = model.forward_dynamics(q[:, 0], qd[:, 0], tau[:, 0])
    assert qdd.dtype == expected.dtype == dtype
    np.testing.assert_allclose(qdd[:, 0], expected, rtol=1e-10 if dtype is np.float64 else 1e-2)


def test_a_cached_driver_is_compiled_again_when_a_kernel_changes(tmp_path):
    """Numba alone looks at the driver's own file only, and would go on using the old kernel."""
    import shutil

    package = tmp_path / "rbchain"
    shutil.copytree(os.path.dirname(rb.__file__), package, ignore=shutil.ignore_patterns("__pycache__"))
    script = "import rbchain as rb; print(rb.Model.serial_chain(1).energy([0.3], [1.0])[1])"
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def potential():
        run = [sys.executable, "-c", script]
        return float(
            subprocess.run(run, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        )

    before = potential()
    kernel = package / "core" / "energy.py"
    kernel.write_text(kernel.read_text().replace("k] - dot(gravity", "k] + dot(gravity"))
    assert potential() == -before
