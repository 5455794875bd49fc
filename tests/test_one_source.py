"""The same kernels agree in plain Python, on single numbers and in lanes of every width."""

import os

import numpy as np
import pytest

import rbchain as rb
from rbchain.compiling.jit import driver
from rbchain.core.algorithms import aba
from rbchain.core.tree import frame_layout as frame
from rbchain.core.tree.layout import CONTRIBUTION_ROWS, Loads, Work, flat_model, reset_base

from .closed_chains import closed_chain, closed_state
from .conftest import mechanism
from .mechanisms import ALL_KINDS, BREADTH_FIRST, EVERY_KIND, random_tree
from .other_process import computed
from .test_water import immersed_tree


def dynamics():
    """Dynamics with every lane width; a motion only with the default, because a stepper takes long to compile."""
    model = random_tree(8, BREADTH_FIRST, ALL_KINDS)
    rng = np.random.default_rng(0)
    q, qd, tau = rng.normal(size=(3, 5, model.nv))
    wrenches = rng.normal(size=(5, model.nv, 6))
    mass = rng.uniform(1, 2, (5, model.nv))
    out = {}
    out["fd"] = model.forward_dynamics(q, qd, tau, wrenches)
    out["varied"] = model.vary(mass=mass).forward_dynamics(q, qd, tau)
    out["id float32"] = model.inverse_dynamics(*(x.astype(np.float32) for x in (q, qd, tau)))
    if "RBCHAIN_LANE_WIDTH" not in os.environ:
        motion = model.simulate(q, 0.1 * qd, 0.02, rtol=1e-6, save_at=3)
        out["rk45"], out["steps"] = motion.q, motion.steps
    return out


def quantities():
    """All quantities of a tree with all kinds of joints."""
    rng, out = np.random.default_rng(0), {}
    model = random_tree(9, [-1, 0, 0, 1, 2, 1, -1, 6], EVERY_KIND, geared=EVERY_KIND)
    q, qd = model.random_state(rng, 5)
    qdd, tau = rng.normal(size=(2, *qd.shape))
    for dtype in (np.float64, np.float32):
        Q, QD, QDD, TAU = (x.astype(dtype) for x in (q, qd, qdd, tau))
        found = {
            "fd": model.forward_dynamics(Q, QD, TAU),
            "id": model.inverse_dynamics(Q, QD, QDD),
            "residual": model.force_balance_residual(Q, QD, TAU),
            "poses": model.body_poses(Q).rotation,
            "energy": np.array(model.energy(Q, QD)),
            "hybrid": model.hybrid_dynamics(Q, QD, TAU, QDD, rng.random(qd.shape) < 0.5)[1],
            "reactions": model.joint_reactions(Q, QD, QDD),
            "velocities": model.body_velocities(Q, QD),
            "accelerations": model.body_accelerations(Q, QD, QDD),
            "jacobian": model.jacobian(Q, "body5", point=(0.1, 0.2, 0.3), relative_to="body7"),
            "jacobian derivative": model.jacobian_derivative(Q, QD, "body5", point=(0.1, 0.2, 0.3)),
            "momentum": model.momentum(Q, QD),
            "H": model.mass_matrix(Q),
            "inverse": model.mass_matrix_inverse(Q),
            "C": model.coriolis_matrix(Q, QD),
            "momentum matrix": model.centroidal_momentum_matrix(Q),
            "id derivatives": np.stack(model.inverse_dynamics_derivatives(Q, QD, QDD)),
            "fd derivatives": np.stack(model.forward_dynamics_derivatives(Q, QD, TAU)),
            "regressor": model.inverse_dynamics_regressor(Q, QD, QDD),
            "kinetic": model.kinetic_energy_regressor(Q, QD),
            "potential": model.potential_energy_regressor(Q),
        }
        out |= {name + " " + np.dtype(dtype).name: value for name, value in found.items()}
    out["all joints single"] = np.stack([model.forward_dynamics(*x) for x in zip(q, qd, tau, strict=True)])
    out["symbols"] = model.christoffel_symbols(q[:1])
    out["rk4 of all joints"] = model.simulate(q[:1], 0.1 * qd[:1], 0.01, method="rk4", step=0.005).q
    out["rk45 of all joints"] = model.simulate(q[:1], 0.1 * qd[:1], 0.01, rtol=1e-6, save_at=3).q
    return out


def motion_in_water():
    """A batch in water under drives, wrenches and events: it shares its compiled stepper with other tests."""
    rng = np.random.default_rng(0)
    model = immersed_tree(("revolute", "free", "universal", "prismatic"))
    q, qd = model.random_state(rng, 5)
    qdd = rng.normal(size=qd.shape)
    out = {
        "fd": model.forward_dynamics(q, qd, qdd),
        "C": model.coriolis_matrix(q, qd),
    }
    drives = [
        rb.PID(
            "body0", rb.Signal.table([0, 0.01, 0.03], [0, 0.1, 0.2]), kp=2.0, kd=0.1, ki=0.5, gravity_compensation=True
        ),
        rb.ComputedTorque("body4", rb.Signal.sines(0.1, 3.0), kp=10.0, kd=1.0, limit=5.0),
        rb.PrescribedVelocity("body3", rb.Signal.polynomial([0.1, 0.2])),
    ]
    forces = [
        rb.Wrench("body2", force=(rb.Signal.sines(1.0, 5.0), 0, 1.0), point=(0.1, 0, 0), axes="body"),
        rb.Current((0.1, rb.Signal.sines(0.1, 4.0), 0.0)),
    ]
    events = [rb.Event("body0", value=q[1, 0] + 1e-3, stop=False)]
    acting = {"drives": drives, "forces": forces, "events": events}
    dry = {"friction": 0.1, "static_friction": 0.2, "friction_asymmetry": 0.05}
    rough = model.vary(**{name: np.full(model.nv, value) for name, value in dry.items()})
    out["passive"] = rough.passive_forces(q, qd)
    motion = rough.simulate(q[1:2], 0.1 * qd[1:2], 0.02, method="rk4", step=0.005, save_at=3, **acting)
    out |= {"q": motion.q, "qd": motion.qd, "happened": motion.events[0].count}
    return out


def closed_quantities():
    """Closed chains with all kinds of constraints. `test_closed_motions.py` simulates some of them."""
    out = {}
    for name in ("hinged arm", "welded and geared", "hung plate", "Bricard"):
        chain = closed_chain(name)
        model, (q, qd, tau) = chain.model, closed_state(chain, batch=(3,))
        out |= {
            name + " fd": model.forward_dynamics(q, qd, tau),
            name + " forces": model.constraint_forces(q, qd, tau),
            name + " jacobian": model.constraint_jacobian(q),
            name + " derivatives": np.stack(model.forward_dynamics_derivatives(q, qd, tau)),
            name + " fd float32": model.forward_dynamics(*(x.astype(np.float32) for x in (q, qd, tau))),
            name + " residual float64": model.constraint_residual(q),
        }
    out["residual float64"] = np.concatenate([out.pop(name).ravel() for name in list(out) if "residual" in name])
    return out


@pytest.fixture(scope="module")
def in_default_lanes():
    return computed(dynamics)


# The condition number of this tree's mass matrix is about 1e3, which amplifies round-off.
TOLERANCES = {"float32": 1e-2, "float64": 1e-10}


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [{"NUMBA_DISABLE_JIT": "1"}, {"RBCHAIN_LANE_WIDTH": "2"}],
    ids=["plain Python", "2 lanes"],
)
def test_plain_python_and_other_lane_widths_agree_with_default_lanes(environment, in_default_lanes):
    found = computed(dynamics, **environment)
    if "steps" in found:
        assert np.array_equal(found.pop("steps"), in_default_lanes["steps"])
    check_alike(found, in_default_lanes)


def check_alike(found, expected):
    for name, value in found.items():
        if name.startswith("residual"):  # round-off only
            assert np.abs(value).max() <= TOLERANCES[name[-7:]]
            continue
        allowed = TOLERANCES.get(name[-7:], 1e-10) * np.abs(expected[name]).max()
        assert np.abs(value - expected[name]).max() <= allowed, name


@pytest.mark.slow
def test_plain_python_agrees_with_lanes_in_every_quantity():
    check_alike(computed(quantities, NUMBA_DISABLE_JIT="1"), quantities())


@pytest.mark.slow
def test_plain_python_agrees_with_lanes_under_drives_water_and_events():
    found, expected = computed(motion_in_water, NUMBA_DISABLE_JIT="1"), motion_in_water()
    assert np.array_equal(found.pop("happened"), expected.pop("happened"))
    check_alike(found, expected)


@pytest.mark.slow
def test_plain_python_agrees_with_lanes_in_closed_chains():
    check_alike(computed(closed_quantities, NUMBA_DISABLE_JIT="1"), closed_quantities())


def test_an_invalid_lane_width_is_refused():
    with pytest.raises(AssertionError, match="RBCHAIN_LANE_WIDTH"):
        computed(dynamics, RBCHAIN_LANE_WIDTH="3")


@driver
def one_number_at_a_time(topology, parameters, q, qd, tau, wrenches, qdd, dof, contributions):
    model, work = flat_model(topology, parameters, None), Work(dof, contributions)
    reset_base(model, work, 0)
    aba.forward_dynamics(model, q, qd, Loads(tau, wrenches, None), qdd, work, 0)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_sweeps_run_on_single_numbers_with_an_integer_lane_index(dtype):
    model = mechanism("mixed_tree")
    n = model.nv
    q, qd, tau = np.random.default_rng(0).normal(size=(3, n, 1)).astype(dtype)
    topology, parameters, _ = model.kernel_model.arrays(np.dtype(dtype))
    qdd = np.empty((n, 1), dtype)
    dof, contributions = np.empty((n + 1, frame.ROWS, 1), dtype), np.empty((n, CONTRIBUTION_ROWS, 1), dtype)
    # the last row of the contributions stays zero and must be the one of bodies without children
    contributions = contributions[: topology[2].max() + 1]
    one_number_at_a_time(topology, parameters, q, qd, tau, np.empty((0, 6, 1), dtype), qdd, dof, contributions)
    expected = model.forward_dynamics(q[:, 0], qd[:, 0], tau[:, 0])
    assert qdd.dtype == expected.dtype == dtype
    np.testing.assert_allclose(qdd[:, 0], expected, rtol=1e-10 if dtype is np.float64 else 1e-2)
