"""Measure a step of the method "moreau" against MuJoCo, with the same joint stops, dry friction and contacts.

    taskset -c 0 python benchmarks/contact.py

An arm of 7 joints falls onto a floor with one sphere at its tool; its joints have stops and dry friction. A chain of 20
links falls onto a floor with 20 spheres. Both programs run on one thread, in turns, and the times are medians. MuJoCo
solves a regularised problem with its Newton solver and elliptic cones; rbchain solves the rigid one to 1e-10 m/s.

    taskset -c 0 python benchmarks/contact.py residuals

counts the samples in which rbchain misses its tolerance while 512 chains of 20 links move on the floor for 1000 steps.
"""

import platform
import sys
from pathlib import Path

import mujoco
import mujoco.batch
import numpy as np

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians, processor

BATCH, STEPS, STEP = 64, 400, 1e-3
RADIUS, FRICTION = 0.03, 0.5
MASS, INERTIA = 0.5, (1e-3, 4e-3, 4e-3)


class Case:
    """A serial chain of links along x at first, with alternating axes, whose last `spheres` links touch the floor."""

    def __init__(self, name, links, length, height, spheres, dry, limit):
        self.name, self.links, self.length, self.height = name, links, length, height
        self.spheres, self.dry, self.limit = spheres, dry, limit
        self.axes = [(0, 0, 1) if i % 3 == 2 else (0, 1, 0) for i in range(links)]

    def rbchain(self):
        """Return the model and its forces."""
        builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
        for i, axis in enumerate(self.axes):
            builder.add_body(
                f"link{i}",
                parent=f"link{i - 1}" if i else None,
                joint=rb.Revolute(axis),
                placement=rb.Pose((self.length, 0, 0) if i else (0, 0, self.height)),
                inertia=rb.Inertia(MASS, cg=(self.length / 2, 0, 0), inertia=INERTIA),
                limits=rb.JointLimits(-self.limit, self.limit),
            )
        names = [f"link{i}" for i in range(self.links)]
        forces = [
            rb.SphereContact(
                name,
                point=(self.length, 0, 0),
                radius=RADIUS,
                plane_point=(0, 0, 0),
                plane_normal=(0, 0, 1),
                friction=FRICTION,
            )
            for name in names[self.links - self.spheres :]
        ]
        forces += [rb.HardStops(name) for name in names]
        forces += [rb.DryFriction(name, self.dry) for name in names if self.dry]
        return builder.build(), forces

    def mujoco(self):
        """Return the same mechanism as a MuJoCo model."""
        inner = ""
        for i in reversed(range(self.links)):
            axis, place = " ".join(map(str, self.axes[i])), f"{self.length if i else 0} 0 {0 if i else self.height}"
            ball = f'<geom type="sphere" size="{RADIUS}" pos="{self.length} 0 0" contype="1" conaffinity="0"/>'
            inner = (
                f'<body pos="{place}"><inertial pos="{self.length / 2} 0 0" mass="{MASS}" '
                f'diaginertia="{" ".join(map(str, INERTIA))}"/><joint axis="{axis}" range="{-self.limit} {self.limit}" '
                f'limited="true" frictionloss="{self.dry}"/>'
                f"{ball if i >= self.links - self.spheres else ''}{inner}</body>"
            )
        return mujoco.MjModel.from_xml_string(
            f'<mujoco><compiler angle="radian"/><option timestep="{STEP}" cone="elliptic" integrator="implicitfast"/>'
            f'<worldbody><geom type="plane" size="10 10 1" contype="0" conaffinity="1" friction="{FRICTION}"/>{inner}'
            "</worldbody></mujoco>"
        )


CASES = [
    Case("arm, 7 joints, 1 contact, stops and dry friction", 7, 0.3, 0.5, 1, 0.2, 1.5),
    Case("20 links, 20 contacts, stops", 20, 0.1, 0.3, 20, 0.0, 1.5),
]


def main():
    rb.set_num_threads(1)
    print(f"{processor()}; Python {platform.python_version()}, MuJoCo {mujoco.__version__}")
    print(f"{BATCH} samples, {STEPS} steps of {STEP} s; microseconds per sample and step")
    for case in CASES:
        model, forces = case.rbchain()
        engine = case.mujoco()
        q = np.random.default_rng(0).uniform(-0.05, 0.0, (BATCH, model.nv))
        qd = np.zeros_like(q)
        sims = mujoco.batch.Batch(engine, BATCH, 1, persistent=True)

        def by_mujoco(sims=sims, q=q, qd=qd):
            sims.qpos, sims.qvel = q, qd
            sims.step(nstep=STEPS)

        def by_rbchain(model=model, forces=forces, q=q, qd=qd):
            return model.simulate(q, qd, STEPS * STEP, method="moreau", step=STEP, forces=forces, save_at=2)

        motion = by_rbchain()
        print(f"{case.name}: largest residual {motion.contact_residual.max():.1e}; {motion.message}")
        found = medians({"rbchain": by_rbchain, "MuJoCo": by_mujoco}, rounds=3)
        times = {name: 1e6 * seconds / (BATCH * STEPS) for name, seconds in found.items()}
        print(f"  {times}; MuJoCo / rbchain = {times['MuJoCo'] / times['rbchain']:.2f}")
        print(f"  largest difference of q at the end: {np.abs(np.asarray(sims.qpos) - motion.q[:, -1]).max():.2g} rad")


def count_misses():
    """Print how many of many long motions have a step whose residual exceeds the tolerance."""
    model, forces = CASES[1].rbchain()
    q = np.random.default_rng(7).uniform(-0.05, 0.05, (512, model.nv))
    q[:, 0] -= 0.1
    for atol in (1e-10, 1e-6):
        settings = {"method": "moreau", "step": STEP, "save_at": 2, "forces": forces, "atol": atol}
        residual = model.simulate(q, np.zeros_like(q), 1000 * STEP, **settings).contact_residual
        missed = np.sum(~(residual <= atol))
        print(f"atol = {atol}: {missed} of {len(q)} samples miss it; the largest residual is {residual.max():.1e} m/s")


if __name__ == "__main__":
    if sys.argv[1:] == ["residuals"]:
        count_misses()
    else:
        main()
