"""Every quantity beside Pinocchio's own function: one table of speeds, with differences checked beside the times.

    taskset -c 0 python benchmarks/quantities.py

Needs the test extra (`pip install -e .[test]`). rbchain computes a batch of 4096 states in one call, into memory it is
given; Pinocchio one state after the other, called from Python, into memory of its own, and where it has one also by its
parallel call with one thread. Both on one core; medians of rounds in which the competitors take turns.
"""

import platform
import sys
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians, processor, relative
from tests.mechanisms import ROBOTS, random_tree
from tests.oracles import peers

BATCH, SAMPLE = 4096, 256  # states; Pinocchio's own are called for the first of them
ROUNDS = 7


def mechanisms():
    """The three that the table is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solo12 = rb.load(ROBOTS / "solo_description/robots/solo12.urdf", base=rb.Free())
    return {
        "chain of 7": random_tree(7, range(-1, 6)),
        "quadruped, free base": solo12,
        "chain of 30": random_tree(30, range(-1, 29)),
    }


def contests(model, peer, q, qd, x):
    """Of each quantity rbchain's call, Pinocchio's for one state, and Pinocchio's checked for one state."""
    engine, n = peer.model, model.nv
    body = model.n_bodies - 1
    name, joint = model.body_names[body], int(np.flatnonzero(peer.order == body)[0]) + 1
    frame = engine.addFrame(pin.Frame("tip", joint, 0, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    data = engine.createData()
    square, six, three = (np.empty((BATCH, *shape)) for shape in ((n, n), (6, n), (3, n, n)))
    wide = np.empty((BATCH, n, 10 * model.n_bodies))
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    return {
        "forward dynamics (ABA)": (
            lambda: model.forward_dynamics(q, qd, x),
            lambda q, qd, x: pin.aba(engine, data, q, qd, x),
            peer.forward_dynamics,
        ),
        "inverse dynamics (RNEA)": (
            lambda: model.inverse_dynamics(q, qd, x),
            lambda q, qd, x: pin.rnea(engine, data, q, qd, x),
            peer.inverse_dynamics,
        ),
        "mass matrix (CRBA)": (
            lambda: model.mass_matrix(q, out=square),
            lambda q, qd, x: pin.crba(engine, data, q),
            lambda q, qd, x: peer.mass_matrix(q),
        ),
        "its inverse": (
            lambda: model.mass_matrix_inverse(q, out=square),
            lambda q, qd, x: pin.computeMinverse(engine, data, q),
            lambda q, qd, x: peer.mass_matrix_inverse(q),
        ),
        "Coriolis matrix": (
            lambda: model.coriolis_matrix(q, qd, out=square),
            lambda q, qd, x: pin.computeCoriolisMatrix(engine, data, q, qd),
            lambda q, qd, x: peer.coriolis_matrix(q, qd),
        ),
        "Jacobian": (
            lambda: model.jacobian(q, name, out=six),
            lambda q, qd, x: pin.computeFrameJacobian(engine, data, q, frame, aligned),
            lambda q, qd, x: peer.jacobian(q, body),
        ),
        "derivatives of RNEA": (
            lambda: model.inverse_dynamics_derivatives(q, qd, x, out=three),
            lambda q, qd, x: pin.computeRNEADerivatives(engine, data, q, qd, x),
            peer.inverse_dynamics_derivatives,
        ),
        "derivatives of ABA": (
            lambda: model.forward_dynamics_derivatives(q, qd, x, out=three),
            lambda q, qd, x: pin.computeABADerivatives(engine, data, q, qd, x),
            peer.forward_dynamics_derivatives,
        ),
        "regressor": (
            lambda: model.inverse_dynamics_regressor(q, qd, x, out=wide),
            lambda q, qd, x: pin.computeJointTorqueRegressor(engine, data, q, qd, x),
            peer.inverse_dynamics_regressor,
        ),
        "momentum matrix": (
            lambda: model.centroidal_momentum_matrix(q, out=six),
            lambda q, qd, x: pin.computeCentroidalMap(engine, data, q),
            lambda q, qd, x: peer.centroidal_momentum_matrix(q),
        ),
    }


def parallel(peer, states):
    """Pinocchio's parallel calls, with one thread, for the whole batch."""
    pool = pin.ModelPool(peer.model, 1)
    q, qd, x = (np.asfortranarray(s.T) for s in states)
    found = np.empty(x.shape, order="F")
    return {
        "forward dynamics (ABA)": lambda: pin.abaInParallel(1, pool, q, qd, x, found),
        "inverse dynamics (RNEA)": lambda: pin.rneaInParallel(1, pool, q, qd, x, found),
    }


def add_rows(table, title, model):
    """One row of the table for each quantity."""
    peer, rng = peers.to_pinocchio(model), np.random.default_rng(0)
    q, qd = model.random_state(rng, BATCH)
    x = rng.normal(size=qd.shape)
    theirs = q[:, peer.position_order], qd[:, peer.velocity_order], x[:, peer.velocity_order]
    samples = [tuple(np.ascontiguousarray(s[i]) for s in theirs) for i in range(SAMPLE)]
    in_parallel = parallel(peer, theirs)
    for quantity, (ours, one, checked) in contests(model, peer, q, qd, x).items():

        def one_by_one(one=one):
            for sample in samples:
                one(*sample)

        contestants = {"rbchain": ours, "pinocchio": one_by_one}
        if quantity in in_parallel:
            contestants["parallel"] = in_parallel[quantity]
        seconds = medians(contestants, ROUNDS)
        mine, python = seconds["rbchain"] / BATCH, seconds["pinocchio"] / SAMPLE
        together = f"{seconds['parallel'] / BATCH / mine:.1f}" if "parallel" in seconds else ""
        found, expected = ours(), checked(q[0], qd[0], x[0])
        if isinstance(found, tuple):
            difference = max(relative(f[0], e) for f, e in zip(found, expected, strict=True))
        else:
            difference = relative(found[0], expected)
        per_dof = f"{mine / model.nv * 1e9:.1f}"
        row = (f"{mine * 1e9:.0f}", per_dof, f"{python * 1e9:.0f}", f"{python / mine:.1f}", together)
        table.add_row(title, quantity, *row, f"{difference:.0e}")


def main():
    """Print the table."""
    rb.set_num_threads(1)
    table = Table(
        title=f"{processor()}; Python {platform.python_version()}, Pinocchio {pin.__version__}, rbchain "
        f"{rb.__version__}; one core, batch {BATCH}"
    )
    columns = ("mechanism", "quantity", "rbchain, ns", "per dof", "Pinocchio, ns", "ratio", "parallel", "difference")
    for column in columns:
        table.add_column(column)
    for title, model in mechanisms().items():
        add_rows(table, title, model)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
