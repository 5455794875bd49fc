"""Compare a Monte Carlo study with the same study in other tools, and measure its parts.

    python benchmarks/study.py            # rbchain, MuJoCo rollout, Drake and NumPy with joblib
    python benchmarks/study.py --shares   # the share of each part of a study
    python benchmarks/study.py --million  # a million short samples: time and peak memory

A serial chain of six links swings for 2 s. Masses (with the inertia tensors) and initial positions vary between
samples. The integrator is RK4 with steps of 5 ms. The results are the final positions and the lowest position of the
last link's origin. All tools have the same draws and use all cores. Needs the extras `study` and `test`.
"""

import inspect
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import processor

SAMPLES, DURATION, STEP, TIMES = 10_000, 2.0, 5e-3, 21
LINKS = 6


def study_with_rbchain(samples):
    """Run the study with rbchain."""
    study = rb.Study(
        model=rb.Model.serial_chain(LINKS),
        samples=samples,
        vary={"*.mass_and_inertia": rb.Dispersion(rb.Normal(1, 0.05), how="multiply"), "*.q": rb.Normal(std=0.1)},
        simulate={"duration": DURATION, "method": "rk4", "step": STEP, "save_at": TIMES},
        measures=[{"name": "lowest", "quantity": "coordinate", "frame": "link6", "axis": "y", "over": "min"}],
    )
    results = study.run()
    return results.parameters.values, results.q_final.values, results.lowest.values


def study_with_mujoco(drawn):
    """Run the study with MuJoCo: one model per sample, integrated by `rollout` on all cores."""
    import copy

    import mujoco
    from mujoco import rollout

    links = "".join(
        f'<body name="link{i}" pos="{0.25 * (i > 0)} 0 0"><joint type="hinge" axis="0 0 1"/>'
        f'<inertial pos="0.125 0 0" mass="0.1" diaginertia="0 {0.1 * 0.25**2 / 12} {0.1 * 0.25**2 / 12}"/>'
        for i in range(LINKS)
    )
    option = f'<option gravity="0 -10 0" integrator="RK4" timestep="{STEP}"><flag contact="disable"/></option>'
    text = f'<mujoco><compiler boundmass="0" boundinertia="1e-12"/>{option}<worldbody>{links}{"</body>" * LINKS}'
    nominal = mujoco.MjModel.from_xml_string(text + "</worldbody></mujoco>")
    every = round(DURATION / STEP / (TIMES - 1))

    def run(chunk):
        models = []
        for sample in chunk:
            model = copy.copy(nominal)
            model.body_mass[1:] *= sample[:LINKS]
            model.body_inertia[1:] *= sample[:LINKS, None]
            mujoco.mj_setConst(model, mujoco.MjData(model))
            models.append(model)
        initial = np.zeros((len(chunk), 1 + 2 * LINKS))
        initial[:, 1 : 1 + LINKS] = chunk[:, LINKS:]
        data = [mujoco.MjData(nominal) for _ in range(rb.get_num_threads())]
        states, _ = rollout.rollout(models, data, initial, nstep=round(DURATION / STEP))
        q = np.concatenate([initial[:, None, 1 : 1 + LINKS], states[:, every - 1 :: every, 1 : 1 + LINKS]], 1)
        height = 0.25 * np.sin(np.cumsum(q, -1)[..., :-1]).sum(-1)
        return q[:, -1], height.min(1)

    parts = [run(chunk) for chunk in np.array_split(drawn, max(1, len(drawn) // 1000))]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def study_with_drake(drawn):
    """Run the study with Drake: one plant per sample, fifth-order Runge-Kutta with the same fixed steps."""
    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import FixedOffsetFrame, RevoluteJoint, RotationalInertia, SpatialInertia
    from pydrake.systems.analysis import ResetIntegratorFromFlags, Simulator

    def one(sample):
        plant = MultibodyPlant(time_step=0.0)
        parent = plant.world_frame()
        for i in range(LINKS):
            mass = 0.1 * sample[i]
            turning = mass * 0.25**2 / 12
            com = np.array([0.125, 0.0, 0.0])
            inertia = SpatialInertia.MakeFromCentralInertia(mass, com, RotationalInertia(0.0, turning, turning))
            body = plant.AddRigidBody(f"link{i}", inertia)
            place = RigidTransform([0.25 * (i > 0), 0, 0])
            on_parent = plant.AddFrame(FixedOffsetFrame(f"frame{i}", parent, place))
            plant.AddJoint(RevoluteJoint(f"joint{i}", on_parent, body.body_frame(), [0, 0, 1]))
            parent = body.body_frame()
        plant.mutable_gravity_field().set_gravity_vector([0, -10, 0])
        plant.Finalize()
        simulator = Simulator(plant)
        integrator = ResetIntegratorFromFlags(simulator, "runge_kutta5", STEP)
        integrator.set_fixed_step_mode(True)
        plant.SetPositions(simulator.get_mutable_context(), sample[LINKS:])
        simulator.Initialize()
        lowest = np.inf
        for t in np.linspace(0.0, DURATION, TIMES):
            simulator.AdvanceTo(t)
            q = plant.GetPositions(simulator.get_context())
            lowest = min(lowest, 0.25 * np.sin(np.cumsum(q)[:-1]).sum())
        return q.copy(), lowest

    import joblib

    found = joblib.Parallel(n_jobs=rb.get_num_threads(), prefer="threads")(joblib.delayed(one)(s) for s in drawn)
    return np.array([q for q, _ in found]), np.array([lowest for _, lowest in found])


def study_with_numpy(drawn):
    """Run the study with NumPy: one sample after the other, with Kane's equations."""

    def one(sample):
        mass = 0.1 * sample[:LINKS]
        turning = mass * 0.25**2 / 12

        def rates(q, qd):
            a, w = np.cumsum(q), np.cumsum(qd)
            joint = 0.25 * np.tril(np.ones((LINKS, LINKS)), -1) + 0.125 * np.eye(LINKS)
            Jx, Jy = -joint * np.sin(a), joint * np.cos(a)
            M = Jx.T @ (mass[:, None] * Jx) + Jy.T @ (mass[:, None] * Jy) + np.diag(turning)
            ax, ay = -(joint * np.cos(a)) @ w**2, -(joint * np.sin(a)) @ w**2 + 10.0
            wd = np.linalg.solve(M, -(Jx.T @ (mass * ax) + Jy.T @ (mass * ay)))
            return qd, np.diff(wd, prepend=0.0)

        q, qd, lowest = sample[LINKS:].copy(), np.zeros(LINKS), np.inf
        steps = round(DURATION / STEP)
        for step in range(steps + 1):
            if step % (steps // (TIMES - 1)) == 0:
                lowest = min(lowest, 0.25 * np.sin(np.cumsum(q)[:-1]).sum())
            if step == steps:
                return q, lowest
            k1 = rates(q, qd)
            k2 = rates(q + STEP / 2 * k1[0], qd + STEP / 2 * k1[1])
            k3 = rates(q + STEP / 2 * k2[0], qd + STEP / 2 * k2[1])
            k4 = rates(q + STEP * k3[0], qd + STEP * k3[1])
            q = q + STEP / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
            qd = qd + STEP / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        return None

    import joblib

    found = joblib.Parallel(n_jobs=rb.get_num_threads())(joblib.delayed(one)(sample) for sample in drawn)
    return np.array([q for q, _ in found]), np.array([lowest for _, lowest in found])


def race():
    """Measure the time, the lines of code and the differences of all tools."""
    study_with_rbchain(64)  # compiles
    started = time.perf_counter()
    drawn, q, lowest = study_with_rbchain(SAMPLES)
    rows = [("rbchain", study_with_rbchain, time.perf_counter() - started, SAMPLES, 0.0)]
    for name, other, samples in (
        ("MuJoCo rollout, one model per sample", study_with_mujoco, SAMPLES),
        ("Drake with joblib, one plant per sample", study_with_drake, 64),
        ("NumPy with joblib", study_with_numpy, 64),
    ):
        try:
            other(drawn[:8])
            started = time.perf_counter()
            found_q, found_lowest = other(drawn[:samples])
        except ImportError as missing:
            rows.append((f"{name}: not run, {missing.name} is not installed", other, np.nan, samples, np.nan))
            continue
        seconds = (time.perf_counter() - started) / samples * SAMPLES
        # the motion is chaotic, so the median difference, not the largest, shows whether the physics agree
        error = np.median(np.abs(found_q - q[:samples]).max(-1))
        rows.append((name, other, seconds, samples, max(error, np.median(np.abs(found_lowest - lowest[:samples])))))
    table = Table(title=f"{SAMPLES:,} samples; {processor()}, {rb.get_num_threads()} threads")
    for column in ("", "seconds", "divided by rbchain", "lines of code", "samples run", "median difference"):
        table.add_column(column)
    for name, function, seconds, samples, error in rows:
        source = inspect.getsource(function).splitlines()
        lines = sum(bool(line.strip()) for line in source) - 1  # without the docstring
        ratio = f"{seconds / rows[0][2]:.1f}"
        table.add_row(name, f"{seconds:.2f}", ratio, str(lines), f"{samples:,}", f"{error:.0e}")
    Console(width=140).print(table)


def shares():
    """Measure the parts of the study examples/landing.toml, one after the other."""
    import warnings

    from rbchain.drivers import threads
    from rbchain.study.plan.effects import effects_of
    from rbchain.study.run.chunks import CHUNK
    from rbchain.study.run.executors import local
    from rbchain.study.run.statistics import Statistics
    from rbchain.study.store.store import Store

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = rb.Study.read(Path(__file__).parents[1] / "examples" / "landing.toml")
        plan = study.plan
    plan.compute(0, 64)
    spent, in_kernels = dict.fromkeys(("sampling", "kernels", "models and measures", "statistics", "storing"), 0.0), []
    threads_run = threads.run

    def timed(part, call, *arguments):
        started = time.perf_counter()
        found = call(*arguments)
        spent[part] += time.perf_counter() - started
        return found

    def run_and_note(*arguments, **settings):
        started = time.perf_counter()
        threads_run(*arguments, **settings)
        in_kernels.append(time.perf_counter() - started)

    threads.run = run_and_note
    statistics = Statistics(plan)
    with tempfile.TemporaryDirectory() as folder:
        store = timed("storing", Store.create, folder, plan, CHUNK, effects_of(plan))
        for chunk in range(store.chunks):
            values = timed("sampling", plan.draw, *store.bounds(chunk))
            outputs = timed("models and measures", plan.compute_values, values, np.arange(*store.bounds(chunk)))
            timed("statistics", statistics.add, outputs)
            timed("storing", store.write, chunk, outputs)
        timed("statistics", statistics.finish)
        timed("storing", store.write_statistics, statistics.as_json(), "")
        threads.run = threads_run
        spent["kernels"] = sum(in_kernels)
        spent["models and measures"] -= spent["kernels"]
        total = sum(spent.values())
        started = time.perf_counter()
        study.run(Path(folder) / "whole")
        whole = time.perf_counter() - started
    table = Table(title=f"{plan.description.samples:,} samples of 2 s; {processor()}, {local.__name__} executor")
    table.add_column("part")
    table.add_column("share")
    for part, seconds in spent.items():
        table.add_row(part, f"{seconds / total:.1%}")
    overhead = spent["sampling"] + spent["statistics"] + spent["storing"]
    table.add_row("sampling, statistics and storing, divided by the rest", f"{overhead / (total - overhead):.1%}")
    Console().print(table)
    print(f"all parts one after the other: {total:.2f} s; the study, which stores while it computes: {whole:.2f} s")


def million():
    """Run a study of a million short samples, and print its time and peak memory."""
    text = {
        "name": "a million",
        "model": rb.Model.serial_chain(2),
        "samples": 1_000_000,
        "vary": {"*.mass_and_inertia": rb.Dispersion(rb.Normal(1, 0.05), how="multiply"), "*.q": rb.Normal(std=0.1)},
        "simulate": {"duration": 0.2, "method": "rk4", "step": 0.01, "save_at": 11},
        "outputs": {"motion": True},
        "measures": [{"name": "height", "quantity": "coordinate", "frame": "link2", "axis": "y"}],
    }
    from rbchain.study.show.report import write_report

    study = rb.Study(**text)
    rb.Study(**text | {"samples": 100}).run()  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        results = study.run(folder)
        ran = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        started = time.perf_counter()
        page = write_report(folder)
        reported = time.perf_counter() - started
        size = sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file()) / 2**20
        print(f"{results.sizes['sample']:,} samples in {ran:.0f} s, {size:.0f} MiB of results")
        print(f"peak memory: {before:.0f} MiB after compilation, {after:.0f} MiB after the study, ", end="")
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB after its report ", end="")
        print(f"({reported:.0f} s, {page.stat().st_size / 2**20:.1f} MiB)")


if __name__ == "__main__":
    {"--shares": shares, "--million": million}.get(sys.argv[-1], race)()
