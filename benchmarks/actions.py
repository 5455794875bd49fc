"""Measure the time that drives, passive joint forces and water add to an evaluation of the dynamics in RK4.

    taskset -c 0 python benchmarks/actions.py

Simulates a batch of serial chains of 7 revolute joints with general placements. All cases run alternately; the times
are medians.
"""

import platform
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians, processor
from tests.mechanisms import random_tree

N, BATCH, STEPS = 7, 4096, 20


def immersed(arm, **damping):
    """Return the same arm in water, with a slender cylinder around each body."""
    builder = rb.ModelBuilder(gravity=arm.gravity, fluid_density=1000.0)
    slender = rb.Immersion.cylinder(0.05, 0.4)
    for i in range(arm.n_bodies):
        builder.add_body(
            f"body{i}",
            parent=None if i == 0 else f"body{i - 1}",
            joint=rb.Revolute(arm.axis[i]),
            placement=rb.Pose(arm.placement_translation[i], arm.placement_rotation[i]),
            inertia=rb.Inertia(arm.mass[i], cg=arm.cg[i], inertia=arm.inertia[i]),
            immersion=rb.Immersion(
                slender.volume,
                added_volume=slender.added_volume,
                pose=rb.Pose(arm.cg[i], slender.pose.rotation),
                **damping,
            ),
        )
    return builder.build()


def main():
    rb.set_num_threads(1)
    arm = random_tree(7, range(-1, N - 1))
    q, qd = np.random.default_rng(0).normal(size=(2, BATCH, N)) * 0.1
    settings = {"method": "rk4", "step": 1e-4, "save_at": 2}
    duration = STEPS * settings["step"]
    soft = {"stiffness": 1.0, "damping": 0.05, "friction": 0.05, "friction_velocity": 0.5}
    jointed = arm.replace(**{name: np.full(N, value) for name, value in soft.items()})
    drives = [rb.PID(joint, 0.1, kp=5.0, kd=0.1) for joint in arm.joint_names]
    wave = [rb.PID(joint, rb.Signal.sines(0.1, 3.0), kp=5.0, kd=0.1) for joint in arm.joint_names]
    varied = arm.vary(mass=arm.mass * np.random.default_rng(1).uniform(0.9, 1.1, (BATCH, N)))
    computed, computed_true = (
        [rb.ComputedTorque(joint, 0.1, kp=5.0, kd=0.1, controller_model=model) for joint in arm.joint_names]
        for model in ("nominal", "own")
    )
    drag = {"linear_damping": np.ones(6), "quadratic_damping": np.ones(6)}
    wet, dragged = immersed(arm), immersed(arm, **drag)
    contestants = {
        "constant forces": lambda: arm.simulate(q, qd, duration, **settings),
        "springs, damping, friction, PD on all joints": lambda: jointed.simulate(
            q, qd, duration, drives=drives, **settings
        ),
        "the same, following sines": lambda: jointed.simulate(q, qd, duration, drives=wave, **settings),
        "masses per sample, constant forces": lambda: varied.simulate(q, qd, duration, **settings),
        "masses per sample, computed torque with the true model": lambda: varied.simulate(
            q, qd, duration, drives=computed_true, **settings
        ),
        "masses per sample, computed torque with the nominal model": lambda: varied.simulate(
            q, qd, duration, drives=computed, **settings
        ),
        "water: added mass, buoyancy": lambda: wet.simulate(q, qd, duration, **settings),
        "water with linear and quadratic drag": lambda: dragged.simulate(q, qd, duration, **settings),
    }
    for call in contestants.values():
        assert call().success
    seconds = medians(contestants)
    plain = seconds["constant forces"]
    table = Table("7 revolute joints", "ns per dof, sample and evaluation", "divided by constant forces")
    for name, of in seconds.items():
        table.add_row(name, f"{of / (BATCH * N * (4 * STEPS + 1)) * 1e9:.1f}", f"{of / plain:.2f}")
    console = Console(width=120)
    console.print(table)
    console.print(f"{processor()}; Python {platform.python_version()}; batch {BATCH}, one core")


if __name__ == "__main__":
    main()
