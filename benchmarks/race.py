"""rbchain beside Pinocchio and MuJoCo: one table of speeds, with errors checked beside the times.

    taskset -c 0 python benchmarks/race.py            # one core; the line about two threads is then left out
    python benchmarks/race.py --threads-only          # two threads against one, on an otherwise idle machine

Needs the test extra (`pip install -e .[test]`). Every figure is the median of several rounds in which the competitors
take turns, so that all meet the same machine; a ratio is between medians of one run. Times per body and evaluation
include everything a caller pays: packing a (batch, n) array into lanes and unpacking the result.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mujoco
import mujoco.batch
import mujoco.rollout
import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import ROUNDS, medians, processor, relative
from tests.mechanisms import random_tree
from tests.oracles import peers

BATCH = 4096


def general_chain(n):
    """A chain of n revolute joints, every placement, axis and inertia general."""
    return random_tree(n, range(-1, n - 1))


def states(n, batch, seed=0):
    return np.random.default_rng(seed).normal(size=(3, batch, n))


def forward_dynamics(table, n):
    """A batch's accelerations: rbchain in both precisions, Pinocchio's parallel call, MuJoCo's batch."""
    batch = BATCH if n < 1000 else 512
    model, (q, qd, tau) = general_chain(n), states(n, batch)
    single = [x.astype(np.float32) for x in (q, qd, tau)]
    found = {}
    contestants = {
        "rbchain": lambda: found.update({"rbchain": model.forward_dynamics(q, qd, tau)}),
        "rbchain, float32": lambda: found.update({"rbchain, float32": model.forward_dynamics(*single)}),
    }
    if n <= 100:  # beyond, Pinocchio's workspace grows with n^3
        peer = peers.to_pinocchio(model)
        pool = pin.ModelPool(peer.model, 1)
        theirs = [np.asfortranarray(x[:, peer.velocity_order].T) for x in (q, qd, tau)]
        qdd = np.empty((n, batch), order="F")
        contestants["pin.abaInParallel"] = lambda: pin.abaInParallel(1, pool, *theirs, qdd)
        found["pin.abaInParallel"] = qdd
    engine = peers.to_mujoco(model)
    sims = mujoco.batch.Batch(engine.model, batch, 1, persistent=True)
    sims.qpos, sims.qvel, sims.qfrc_applied = q, qd, tau
    contestants["mujoco.batch forward"] = sims.forward
    seconds = medians(contestants, ROUNDS if n < 100 else 3)
    found["mujoco.batch forward"] = np.asarray(sims.qacc)
    reference = found["rbchain"]
    for name, time_of in seconds.items():
        value = found[name].T if name.startswith("pin") else found[name]
        ns = time_of / batch / n * 1e9
        error = "" if name == "rbchain" else f"{relative(value, reference):.0e}"
        table.add_row(f"forward dynamics, n = {n}, batch {batch}", name, f"{ns:.1f}", _ratio(time_of, seconds), error)


def long_chains(table):
    """How the time per body grows with the length of the chain."""
    batches = {7: BATCH, 1000: 512}
    calls = {}
    for n, batch in batches.items():
        model, (q, qd, tau) = general_chain(n), states(n, batch)
        calls[n] = lambda model=model, q=q, qd=qd, tau=tau: model.forward_dynamics(q, qd, tau)
    per_body = {n: seconds / batches[n] / n for n, seconds in medians(calls).items()}
    table.add_row("time per body, n = 1000 over n = 7", "rbchain", "", f"{per_body[1000] / per_body[7]:.2f}", "")


def _ratio(time_of, seconds):
    return f"{time_of / seconds['rbchain']:.2f}"


def trajectories(table):
    """Fixed steps of RK4 by everyone: times per evaluation, and how far the ends lie apart."""
    n, steps, h = 7, 100, 1e-4
    model, (q, qd, _) = general_chain(n), states(n, BATCH)
    zero = np.zeros((BATCH, n))
    engine = peers.to_mujoco(model)
    engine.model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    engine.model.opt.timestep = h
    data = mujoco.MjData(engine.model)
    initial = np.concatenate([np.zeros((BATCH, 1)), q, qd], axis=1)
    sims = mujoco.batch.Batch(engine.model, BATCH, 1, persistent=True)
    ends = {}

    def batch_rollout():
        sims.qpos, sims.qvel = q, qd
        sims.step(nstep=steps)
        ends["mujoco.batch step"] = np.array(sims.qpos)

    def rollout():
        state, _ = mujoco.rollout.rollout(engine.model, data, initial, nstep=steps)
        ends["mujoco.rollout"] = state[:, -1, 1 : 1 + n]

    def ours():
        ends["rbchain"] = model.simulate(q, qd, steps * h, method="rk4", step=h).q[:, -1]

    alone = {"rbchain": ours, "rbchain forward dynamics": lambda: model.forward_dynamics(q, qd, zero)}
    ours_alone = medians(alone, 7)
    seconds = medians({"rbchain": ours, "mujoco.rollout": rollout, "mujoco.batch step": batch_rollout}, 3)
    for name, time_of in seconds.items():
        ns = time_of / (4 * steps) / BATCH / n * 1e9
        error = "" if name == "rbchain" else f"{relative(ends[name], ends['rbchain']):.0e}"
        table.add_row(f"RK4, {steps} steps, n = {n}, batch {BATCH}", name, f"{ns:.1f}", _ratio(time_of, seconds), error)
    cost = ours_alone["rbchain"] / (4 * steps * ours_alone["rbchain forward dynamics"])
    table.add_row("RK4 step over 4 forward dynamics", "rbchain", "", f"{cost:.2f}", "")


def single_call(table):
    """One chain's accelerations, from Python."""
    model = general_chain(7)
    q, qd, tau = states(7, 1)[:, 0]
    peer = peers.to_pinocchio(model)
    theirs = [np.ascontiguousarray(x[peer.velocity_order]) for x in (q, qd, tau)]
    data = peer.model.createData()
    calls = range(5000)
    contestants = {
        "rbchain": lambda: [model.forward_dynamics(q, qd, tau) for _ in calls],
        "pin.aba": lambda: [pin.aba(peer.model, data, *theirs) for _ in calls],
    }
    seconds = medians(contestants)
    error = relative(peer.forward_dynamics(q, qd, tau), model.forward_dynamics(q, qd, tau))
    for name, time_of in seconds.items():
        us = time_of / len(calls) * 1e6
        shown = "" if name == "rbchain" else f"{error:.0e}"
        table.add_row("one call from Python, n = 7", name, f"{us:.2f} us", _ratio(time_of, seconds), shown)


def own_parameters(table):
    """What it costs that chains differ."""
    n = 7
    model, (q, qd, tau) = general_chain(n), states(n, BATCH)
    rng = np.random.default_rng(1)
    fields = {
        "mass": model.mass * rng.uniform(0.9, 1.1, (BATCH, n)),
        "cg": model.cg + 0.01 * rng.normal(size=(BATCH, n, 3)),
        "inertia": model.inertia * rng.uniform(0.9, 1.1, (BATCH, n, 1, 1)),
        "placement_translation": model.placement_translation + 0.01 * rng.normal(size=(BATCH, n, 3)),
        "axis": model.axis + 0.01 * rng.normal(size=(BATCH, n, 3)),
        "gravity": rng.normal(size=(BATCH, 3)),
    }
    inertial = model.vary(**{name: fields[name] for name in ("mass", "cg", "inertia")})
    everything = model.vary(**fields)
    seconds = medians(
        {
            "rbchain": lambda: model.forward_dynamics(q, qd, tau),
            "mass, cg and inertia": lambda: inertial.forward_dynamics(q, qd, tau),
            "all parameters of revolute joints": lambda: everything.forward_dynamics(q, qd, tau),
        },
        31,
    )
    for name, time_of in list(seconds.items())[1:]:
        ns = time_of / BATCH / n * 1e9
        table.add_row("own parameters over shared ones", name, f"{ns:.1f}", _ratio(time_of, seconds), "")


def first_call(table):
    """A new process until its first forward dynamics, import included."""
    script = "import rbchain as rb; rb.Model.serial_chain(7).forward_dynamics([0.1] * 7, [0.0] * 7, [0.0] * 7)"
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        took = []
        for _ in range(6):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", script], env=environment, check=True)
            took.append(time.perf_counter() - started)
    table.add_row("new process to first result", "cache empty", f"{took[0]:.2f} s", "", "")
    table.add_row("new process to first result", "cache filled", f"{np.median(took[1:]):.2f} s", "", "")


def two_threads():
    """Speed of two threads over one, for a batch of 131,072 and for trajectories."""
    model, (q, qd, tau) = general_chain(7), states(7, 1 << 17)

    def with_threads(count, call):
        def run():
            rb.set_num_threads(count)
            for _ in range(5):
                call()

        return run

    calls = {
        "forward dynamics": lambda: model.forward_dynamics(q, qd, tau),
        "RK4": lambda: model.simulate(q[:4096], qd[:4096], 0.02, method="rk4", step=1e-3),
    }
    for name, call in calls.items():
        seconds = medians({"one": with_threads(1, call), "two": with_threads(2, call)})
        print(f"two threads over one, {name}: {seconds['one'] / seconds['two']:.2f} times the speed")


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads-only", action="store_true")
    if parser.parse_args().threads_only:
        two_threads()
        return
    rb.set_num_threads(1)
    table = Table(title=f"{processor()}; Python {platform.python_version()}, Pinocchio {pin.__version__}, "
                  f"MuJoCo {mujoco.__version__}, rbchain {rb.__version__}; one core")  # fmt: skip
    for column in ("problem", "who", "ns per body and evaluation", "over rbchain's", "largest difference"):
        table.add_column(column)
    for n in (2, 7, 30, 100, 1000):
        forward_dynamics(table, n)
    long_chains(table)
    own_parameters(table)
    single_call(table)
    trajectories(table)
    first_call(table)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
