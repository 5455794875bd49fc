"""Compare the speed and the results of every quantity with the corresponding function of Pinocchio.

    taskset -c 0 python benchmarks/quantities.py

Needs the `test` extra. rbchain computes a batch of 4096 states in one call with `out=`. Pinocchio computes one state
per call from Python, and also the whole batch if it has a parallel function, with one thread. All functions run in
turns on one core; the times are medians.
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

BATCH, SAMPLE = 4096, 256  # states; Pinocchio computes the first SAMPLE of them
ROUNDS = 7


def mechanisms():
    """Load the three mechanisms of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solo12 = rb.load(ROBOTS / "solo_description/robots/solo12.urdf", base=rb.Free())
    return {
        "serial chain of 7": random_tree(7, range(-1, 6)),
        "quadruped, free base": solo12,
        "serial chain of 30": random_tree(30, range(-1, 29)),
    }


def contests(model, peer, q, qd, x):
    """Return per quantity: the call of rbchain, of Pinocchio for one state, and of the reference for one state."""
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
        "inverse of the mass matrix": (
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
    """Return Pinocchio's parallel calls, with one thread, for the whole batch."""
    pool = pin.ModelPool(peer.model, 1)
    q, qd, x = (np.asfortranarray(s.T) for s in states)
    found = np.empty(x.shape, order="F")
    return {
        "forward dynamics (ABA)": lambda: pin.abaInParallel(1, pool, q, qd, x, found),
        "inverse dynamics (RNEA)": lambda: pin.rneaInParallel(1, pool, q, qd, x, found),
    }


def add_rows(table, title, model):
    """Add one row per quantity to the table."""
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
    """Measure and print the table."""
    rb.set_num_threads(1)
    table = Table(
        title=f"{processor()}; Python {platform.python_version()}, Pinocchio {pin.__version__}, rbchain "
        f"{rb.__version__}; one core, batch {BATCH}"
    )
    columns = ("mechanism", "quantity", "rbchain, ns", "ns per dof", "Pinocchio, ns", "ratio", "parallel", "difference")
    for column in columns:
        table.add_column(column)
    for title, model in mechanisms().items():
        add_rows(table, title, model)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
