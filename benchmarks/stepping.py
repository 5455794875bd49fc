"""Measure steps of a batch: `model.stepper` from Python and in compiled code, `simulate`, and `mujoco.batch`.

    python benchmarks/stepping.py

Arms with 7 joints, each with its own masses, move for 200 steps of RK4, on one thread. Before each call, Python or the
compiled loop sets the joint forces from the state. `simulate` computes the motion in one call, with constant forces.
"""

import platform
import sys
import tempfile
from pathlib import Path

import mujoco
import mujoco.batch
import numpy as np

import rbchain as rb
from rbchain import compiled

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians, processor

JOINTS, STEPS, STEP = 7, 200, 2e-3
BATCHES, STEPS_PER_CALL = (1, 64, 1024), (1, 10)
STIFFNESS, DAMPING = 2.0, 0.2  # N m/rad and N m s/rad


@compiled.driver
def move(samples, calls, count):
    """Take `count` steps in each call, before which the joint forces are set from the state."""
    for _ in range(calls):
        for s in range(samples.q.shape[0]):
            for i in range(samples.q.shape[1]):
                samples.tau[s, i] = -STIFFNESS * samples.q[s, i] - DAMPING * samples.qd[s, i]
        compiled.step(samples, count)


def engine_of(model):
    """Return a MuJoCo model of the same arm."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.xml"
        rb.save(model, path)
        engine = mujoco.MjModel.from_xml_path(str(path))
    engine.opt.integrator, engine.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, STEP
    return engine


def contestants(samples, count):
    """Return functions that move `samples` arms by STEPS steps, with `count` steps for each call."""
    arm, rng = rb.Model.serial_chain(JOINTS), np.random.default_rng(0)
    mass, q = rng.uniform(0.5, 2.0, (samples, JOINTS)), rng.uniform(-0.3, 0.3, (samples, JOINTS))
    many = arm.vary(mass=mass)
    stepper, own = (many.stepper(q, method="rk4", step=STEP) for _ in range(2))
    arrays = own.in_compiled_code()
    sims = mujoco.batch.Batch(engine_of(arm), samples, 1, persistent=True)
    sims.expand("body_mass")[:, 1:] = mass
    sims.set_const()
    positions, velocities, forces = (sims.bind(name) for name in ("qpos", "qvel", "qfrc_applied"))

    def by_stepper():
        stepper.reset()
        for _ in range(STEPS // count):
            stepper.tau[:] = -STIFFNESS * stepper.q - DAMPING * stepper.qd
            stepper.step(count)
        return stepper.q

    def by_compiled_loop():
        own.reset()
        move(arrays, STEPS // count, count)
        return own.q

    def by_mujoco():
        positions[:], velocities[:] = q, 0.0
        for _ in range(STEPS // count):
            forces[:] = -STIFFNESS * positions - DAMPING * velocities
            sims.step(nstep=count)
        return positions

    def by_simulate():
        return many.simulate(q, duration=STEPS * STEP, method="rk4", step=STEP, save_at=[STEPS * STEP]).end_q

    return {
        "stepper": by_stepper,
        "compiled": by_compiled_loop,
        "simulate": by_simulate,
        "mujoco.batch": by_mujoco,
    }


def main():
    rb.set_num_threads(1)
    print(f"{processor()}; Python {platform.python_version()}, MuJoCo {mujoco.__version__}")
    print("microseconds per sample and step; the last column is the difference of the positions at the end, rad")
    for samples in BATCHES:
        for count in STEPS_PER_CALL:
            calls = contestants(samples, count)
            difference = np.abs(calls["stepper"]() - calls["mujoco.batch"]()).max()
            times = {name: 1e6 * t / (samples * STEPS) for name, t in medians(calls, rounds=5).items()}
            ratios = [times[name] / times["stepper"] for name in ("compiled", "simulate", "mujoco.batch")]
            row = ", ".join(f"{name} {time:.2f}" for name, time in times.items())
            print(
                f"{samples} samples, {count} steps for each call: {row}; stepper / compiled = {1 / ratios[0]:.2f}, "
                f"stepper / simulate = {1 / ratios[1]:.2f}, mujoco.batch / stepper = {ratios[2]:.1f}; {difference:.1e}"
            )


if __name__ == "__main__":
    main()
