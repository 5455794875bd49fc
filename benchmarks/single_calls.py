"""Measure single calls from Python, alternating with calls of Pinocchio's Python binding, in one process.

    taskset -c 0 python benchmarks/single_calls.py [--seconds 20]

Needs the `test` extra. Each function gets one state, as NumPy arrays. The table shows the median and the minimum of the
times per call, in microseconds. Both libraries check their arguments. rbchain returns new arrays; Pinocchio returns or
keeps its results in its `Data`.
"""

import argparse
import platform
import sys
import time
from pathlib import Path

import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import processor
from tests.mechanisms import random_tree
from tests.oracles import peers

CALLS = 50  # between two readings of the clock
STEPS, STEP = 10, 1e-3


def mechanisms():
    """Return the two mechanisms of the table."""
    return {
        "7 revolute joints": random_tree(7, range(-1, 6)),
        "floating base and 7 revolute joints": random_tree(8, range(-1, 7), ["free", *["revolute"] * 7]),
    }


def rk4_steps(engine, data, q, v, tau):
    """Integrate with the classical fourth-order method, as a user of Pinocchio writes it."""
    for _ in range(STEPS):
        a1 = pin.aba(engine, data, q, v, tau).copy()
        v2 = v + STEP / 2 * a1
        a2 = pin.aba(engine, data, pin.integrate(engine, q, STEP / 2 * v), v2, tau).copy()
        v3 = v + STEP / 2 * a2
        a3 = pin.aba(engine, data, pin.integrate(engine, q, STEP / 2 * v2), v3, tau).copy()
        v4 = v + STEP * a3
        a4 = pin.aba(engine, data, pin.integrate(engine, q, STEP * v3), v4, tau)
        q = pin.integrate(engine, q, STEP / 6 * (v + 2 * v2 + 2 * v3 + v4))
        v = v + STEP / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return q, v


def contests(model):
    """Return, for each quantity, the call of rbchain and that of Pinocchio."""
    peer = peers.to_pinocchio(model)
    engine, last = peer.model, model.n_bodies - 1
    data, joint = engine.createData(), int(np.flatnonzero(peer.order == last)[0]) + 1
    tip = engine.addFrame(pin.Frame("tip", joint, 0, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    data, aligned, body = engine.createData(), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED, model.body_names[last]
    rng = np.random.default_rng(0)
    q, qd = model.random_state(rng)
    x, pq, pv = rng.normal(size=model.nv), q[peer.position_order], qd[peer.velocity_order]
    duration = STEPS * STEP
    return {
        "forward dynamics": (lambda: model.forward_dynamics(q, qd, x), lambda: pin.aba(engine, data, pq, pv, x)),
        "inverse dynamics": (lambda: model.inverse_dynamics(q, qd, x), lambda: pin.rnea(engine, data, pq, pv, x)),
        "mass matrix": (lambda: model.mass_matrix(q), lambda: pin.crba(engine, data, pq)),
        "bias forces": (lambda: model.bias_forces(q, qd), lambda: pin.nonLinearEffects(engine, data, pq, pv)),
        "energy": (
            lambda: model.energy(q, qd),
            lambda: (pin.computeKineticEnergy(engine, data, pq, pv), pin.computePotentialEnergy(engine, data, pq)),
        ),
        "Jacobian": (
            lambda: model.jacobian(q, body),
            lambda: pin.computeFrameJacobian(engine, data, pq, tip, aligned),
        ),
        "poses, as arrays": (
            lambda: model.body_poses(q),
            lambda: (
                pin.forwardKinematics(engine, data, pq),
                [(pose.translation, pose.rotation) for pose in data.oMi],
            ),
        ),
        "poses, not read": (lambda: model.body_poses(q), lambda: pin.forwardKinematics(engine, data, pq)),
        f"{STEPS} steps of RK4": (
            lambda: model.simulate(q, qd, duration, method="rk4", step=STEP, tau=x, save_at=2),
            lambda: rk4_steps(engine, data, pq, pv, x),
        ),
    }


def timed(calls, seconds):
    """Return the times per call of each function, s, measured in turns for so many seconds."""
    found = {name: [] for name in calls}
    for call in calls.values():
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            call()
            started = time.perf_counter()
            for _ in range(CALLS):
                call()
            found[name].append((time.perf_counter() - started) / CALLS)
    return found


def main():
    """Time all calls and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each mechanism (default: 20)")
    seconds = parser.parse_args().seconds
    console = Console()
    console.print(f"{processor()}, Python {platform.python_version()}, Pinocchio {pin.__version__}")
    for title, model in mechanisms().items():
        pairs = contests(model)
        calls = {(name, i): pair[i] for name, pair in pairs.items() for i in range(2)}
        found = timed(calls, seconds)
        table = Table("us per call", "rbchain", "least", "Pinocchio", "least", "ratio", title=title)
        for name in pairs:
            ours, theirs = (1e6 * np.array(found[name, i]) for i in range(2))
            figures = (np.median(ours), ours.min(), np.median(theirs), theirs.min())
            table.add_row(name, *(f"{x:.2f}" for x in figures), f"{np.median(ours) / np.median(theirs):.2f}")
        console.print(table)


if __name__ == "__main__":
    main()
