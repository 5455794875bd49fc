"""Steps of the Rosenbrock method that are solved along the tree: the same as with a matrix, in lanes and without."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.core.linear import linearized_tree
from rbchain.core.methods import tableaus
from rbchain.core.methods.rosenbrock import compute_rosenbrock_step
from rbchain.core.sample import control_layout as controls
from rbchain.core.sample.rate import evaluate
from rbchain.core.sample.records import Tolerances

from .other_process import computed
from .test_one_source import check_alike
from .test_rosenbrock import block_with_state

plain = pytest.mark.plain_python
ROOTS = {"revolute": rb.Revolute((0, 1, 0)), "free": rb.Free(), "spherical": rb.Spherical()}


def tree(rng, root="revolute", joint=None):
    """A random tree with seven bodies. All joints but the root are revolute, prismatic or screws."""
    builder = rb.ModelBuilder(gravity=(0.5, 1.0, -9.81))
    for i in range(7):
        axis = rng.normal(size=3)
        joints = (rb.Revolute(axis), rb.Prismatic(axis), rb.Screw(axis, pitch=0.1))
        passive = rb.PassiveForces(stiffness=30.0, damping=2.0, friction=0.5, friction_velocity=0.1)
        if i == 0 or (i == 3 and joint is not None):
            joints, passive = (ROOTS[root] if i == 0 else joint,), None
        builder.add_body(
            f"b{i}",
            parent=None if i == 0 or isinstance(joints[0], rb.Free) else f"b{rng.integers(i)}",
            joint=joints[i % len(joints)],
            placement=rb.Pose(rng.normal(size=3), rotation=rng.normal(size=4)),
            inertia=rb.Inertia(rng.uniform(1, 2), cg=0.1 * rng.normal(size=3), inertia=rng.uniform(1, 1.5, 3)),
            passive=passive,
        )
    return builder.build()


def step(model, q, qd, fewest_dofs, monkeypatch, length=0.05, integrals=(), **actions):
    """The end of one step, the difference from the embedded method, and whether the step was solved along the tree."""
    monkeypatch.setattr(linearized_tree, "FEWEST_DOFS", fewest_dofs)
    tableau = tableaus.RODAS5P
    block, stepper, k = block_with_state(model, np.concatenate([q, qd, integrals])[None], tau=0.3, **actions)
    stepper.control[controls.H], stepper.control[controls.TIME] = length, 0.1
    evaluate(block, stepper.y, 0.1, stepper.rates[0], k)
    compute_rosenbrock_step(block, stepper, tableau, Tolerances(1e-8, 1e-8, 1), k)
    return stepper.y_new[:, 0], stepper.change[:, 0], linearized_tree.follows_tree(block, stepper.linear)


def check_same_step(model, seed, monkeypatch, along_tree, **given):
    rng = np.random.default_rng(seed)
    q, qd = model.random_state(rng)
    for length in (0.02, 0.2):
        wanted, error, _ = step(model, q, qd, 1000, monkeypatch, length, **given)
        found, change, follows = step(model, q, qd, 1, monkeypatch, length, **given)
        assert follows == along_tree
        allowed = 1e-11 * (np.abs(wanted).max() + np.abs(error).max())
        np.testing.assert_allclose(found, wanted, rtol=0, atol=allowed)
        np.testing.assert_allclose(change, error, rtol=0, atol=allowed)


@plain
@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("seed", range(3))
def test_a_step_along_the_tree_is_that_with_a_matrix(root, seed, monkeypatch):
    check_same_step(tree(np.random.default_rng(seed), root), seed, monkeypatch, along_tree=True)


@plain
@pytest.mark.parametrize("root", ROOTS)
def test_a_step_with_passive_forces_and_drives_is_that_with_a_matrix(root, monkeypatch):
    """The first drive integrates its error, the second is at its limit."""
    model = tree(np.random.default_rng(5), root)
    of_root = np.arange(model.nv) < model.nv - 6
    model = model.vary(rotor_inertia=np.where(of_root, 0.0, 0.2), gear_ratio=np.ones(model.nv))
    drives = [
        rb.PID("b4", rb.Signal.sines(0.5, 3.0), kp=50.0, kd=5.0, ki=20.0),
        rb.PID("b2", 3.0, kp=500.0, kd=1.0, limit=2.0),
        rb.PrescribedForce("b5", rb.Signal.sines(1.0, 2.0)),
    ]
    check_same_step(model, 5, monkeypatch, along_tree=True, drives=drives, integrals=[0.2])


@plain
@pytest.mark.parametrize(
    "given",
    [
        {"drives": [rb.PrescribedPosition("b4", rb.Signal.sines(0.2, 2.0))]},
        {"drives": [rb.PID("b4", 0.1, kp=50.0, gravity_compensation=True)]},
        {"forces": [rb.Wrench("b4", force=(1.0, 2.0, 3.0), moment=(3.0, 2.0, 1.0))]},
        {"forces": [rb.SpringDamper(None, "b4", point_a=(0, 0, 0), point_b=(0.1, 0, 0), stiffness=200.0, damping=2.0)]},
    ],
    ids=["prescribed motion", "controller with a model", "wrench", "spring between bodies"],
)
def test_forces_that_couple_dofs_are_solved_with_a_matrix(given, monkeypatch):
    check_same_step(tree(np.random.default_rng(6)), 6, monkeypatch, along_tree=False, **given)


@plain
@pytest.mark.parametrize("joint", [rb.Universal(), rb.Planar(), rb.Free()], ids=["universal", "planar", "second root"])
def test_a_step_with_joints_of_several_dofs_is_that_with_a_matrix(joint, monkeypatch):
    model = tree(np.random.default_rng(8), "free", joint=joint)
    check_same_step(model, 8, monkeypatch, along_tree=True)


@plain
def test_a_spherical_joint_that_is_not_a_root_is_solved_with_a_matrix(monkeypatch):
    model = tree(np.random.default_rng(7), joint=rb.Spherical())
    check_same_step(model, 7, monkeypatch, along_tree=False)


def last_samples():
    """The last two of nine samples of a long mechanism: one in the first block of lanes, one alone in the second."""
    out = {}
    n = linearized_tree.FEWEST_DOFS + 1
    for dtype, tolerance in ((np.float64, 1e-5), (np.float32, 1e-3)):
        chain = rb.Model.serial_chain(n).vary(damping=np.full(n, 5.0), stiffness=np.full(n, 400.0))
        rng = np.random.default_rng(3)
        chain = chain.vary(mass=chain.mass * rng.uniform(0.8, 1.2, (9, n)))
        q, qd = (0.1 * rng.normal(size=(2, 9, n))).astype(dtype)
        drives = [rb.PID("link3", 0.2, kp=500.0, ki=50.0, kd=5.0)]
        settings = dict(method="rosenbrock", rtol=tolerance, atol=tolerance, drives=drives)
        motion = chain.simulate(q, qd, 0.02, **settings)
        assert motion.success and motion.q.dtype == dtype
        out[f"q {np.dtype(dtype).name}"] = motion.q[7:]
        out[f"qd {np.dtype(dtype).name}"] = motion.qd[7:]
    return out


@pytest.mark.slow
def test_lanes_agree_with_plain_python():
    check_alike(computed(last_samples, NUMBA_DISABLE_JIT="1"), last_samples())


@pytest.mark.slow
def test_a_chain_of_forty_links_follows_rk45_and_its_tolerance():
    n = 40
    model = rb.Model.serial_chain(n).vary(damping=np.full(n, 1.0), stiffness=np.full(n, 100.0))
    q, qd = np.random.default_rng(1).normal(size=(2, 3, n)) * 0.1
    reference = model.simulate(q, qd, 0.2, rtol=1e-10, atol=1e-11, save_at=3)
    errors = []
    for tolerance in (1e-4, 1e-6, 1e-8):
        motion = model.simulate(q, qd, 0.2, method="rosenbrock", rtol=tolerance, atol=tolerance, save_at=3)
        assert motion.success
        errors.append(np.abs(motion.q - reference.q).max())
        assert errors[-1] < 10 * tolerance
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
