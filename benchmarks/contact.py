"""Measure a step of the method "moreau" against MuJoCo, with the same joint stops, dry friction and contacts.

    taskset -c 0 python benchmarks/contact.py

An arm of 7 joints falls onto a floor with one sphere at its tool; its joints have stops and dry friction. A chain of 20
links falls onto a floor with 20 spheres. A quadruped and a humanoid of example-robot-data drop onto their feet. Both
programs run alternately on one thread, and the times are medians of the processor time. MuJoCo solves a regularized
problem with its Newton solver and elliptic cones; rbchain solves the rigid one to 1e-10 m/s.

    taskset -c 0 python benchmarks/contact.py residuals

counts the samples in which rbchain misses its tolerance while 512 chains of 20 links move on the floor for 1000 steps.
"""

import platform
import sys
import sysconfig
import tempfile
import time
import warnings
from pathlib import Path

import mujoco
import mujoco.batch
import numpy as np

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians, processor

ROBOTS = Path(sysconfig.get_path("purelib"), "cmeel.prefix/share/example-robot-data/robots")
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

    def states(self, model):
        """Return initial states (samples, nq) and (samples, nv)."""
        q = np.random.default_rng(0).uniform(-0.05, 0.0, (BATCH, model.nv))
        return q, np.zeros_like(q)


class Robot:
    """A robot of example-robot-data that springs and dampers of its joints hold on its feet, dropped from 1 cm.

    `feet` are the names of bodies or frames, `center` and `size` the shape there: a sphere has a radius, a box three
    lengths, m.
    """

    def __init__(self, name, file, leg, feet, center, size, stiffness, damping):
        self.name, self.feet, self.center, self.size = name, feet, np.array(center), size
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about elements of the file that do not act here
            model = rb.load(ROBOTS / file, base=rb.Free())
        joints = np.arange(model.nv) >= 6
        self.q = model.neutral().copy()
        self.q[7 : 7 + len(leg)] = leg
        gains = {"stiffness": stiffness, "damping": damping, "rotor_inertia": 0.01}
        rest = np.append(np.zeros(6), self.q[7:])
        self.model = model.replace(rest_position=rest, **{field: value * joints for field, value in gains.items()})
        self.q[2] = 0.01 - min(contact.gap(self.model, self.q) for contact in self.contacts())

    def contacts(self):
        """Return a contact for each sphere, and for each lower corner of the boxes."""
        points, radius = [self.center], self.size
        if np.ndim(self.size):
            corners = [(x, y, -1) for x in (-1, 1) for y in (-1, 1)]
            points, radius = self.center + 0.5 * np.array(corners) * self.size, 0.0
        plane = {"plane_point": (0, 0, 0), "plane_normal": (0, 0, 1), "friction": FRICTION}
        return [rb.SphereContact(foot, point=p, radius=radius, **plane) for foot in self.feet for p in points]

    def rbchain(self):
        """Return the model and its forces."""
        return self.model, self.contacts()

    def mujoco(self):
        """Return the same mechanism as a MuJoCo model."""
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MJCF files have no meshes and no collision shapes
            rb.save(self.model, Path(folder) / "robot.xml")
            spec = mujoco.MjSpec.from_file(str(Path(folder) / "robot.xml"))
        for geom in list(spec.geoms):  # visuals
            spec.delete(geom)
        spec.option.timestep, spec.option.cone = STEP, mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        touch = {"conaffinity": 0, "friction": [FRICTION, 0.005, 0.0001]}
        shape = {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": [self.size, 0, 0]}
        if np.ndim(self.size):
            shape = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": 0.5 * np.array(self.size)}
        for foot in self.feet:
            frame = self.model.kernel_model.frame(foot)
            body = spec.body(self.model.body_names[frame.body])
            body.add_geom(pos=frame.pose.rotation @ self.center + frame.pose.translation, contype=1, **shape, **touch)
        plane = mujoco.mjtGeom.mjGEOM_PLANE
        spec.worldbody.add_geom(type=plane, size=[10, 10, 1], contype=0, conaffinity=1, friction=touch["friction"])
        return spec.compile()

    def states(self, model):
        """Return initial states (samples, nq) and (samples, nv) that differ by up to 0.02 rad in each joint."""
        q = np.tile(self.q, (BATCH, 1))
        q[:, 7:] += np.random.default_rng(0).uniform(-0.02, 0.02, (BATCH, self.model.nv - 6))
        return q, np.zeros((BATCH, self.model.nv))


CASES = [
    Case("arm, 7 joints, 1 contact, stops and dry friction", 7, 0.3, 0.5, 1, 0.2, 1.5),
    Case("20 links, 20 contacts, stops", 20, 0.1, 0.3, 20, 0.0, 1.5),
    Robot(
        "quadruped A1 on four feet, 4 contacts",
        "a1_description/urdf/a1.urdf",
        leg=4 * [0.0, 0.8, -1.6],
        feet=["FR_foot", "FL_foot", "RR_foot", "RL_foot"],
        center=(0, 0, 0),
        size=0.02,
        stiffness=100.0,
        damping=3.0,
    ),
    Robot(
        "humanoid G1 on box feet, 8 contacts",
        "g1_description/urdf/g1_29dof_rev_1_0.urdf",
        leg=[],
        feet=["left_ankle_roll_link", "right_ankle_roll_link"],
        center=(0.035, 0, -0.03),
        size=(0.17, 0.06, 0.02),
        stiffness=500.0,
        damping=10.0,
    ),
]


def main():
    rb.set_num_threads(1)
    print(f"{processor()}; Python {platform.python_version()}, MuJoCo {mujoco.__version__}")
    print(f"{BATCH} samples, {STEPS} steps of {STEP} s; microseconds per sample and step")
    for case in CASES:
        model, forces = case.rbchain()
        engine = case.mujoco()
        q, qd = case.states(model)
        qpos, qvel = rb.io.mjcf.state_to_mujoco(model, engine, q, qd)
        sims = mujoco.batch.Batch(engine, BATCH, 1, persistent=True)

        def by_mujoco(sims=sims, qpos=qpos, qvel=qvel):
            sims.qpos, sims.qvel = qpos, qvel
            sims.step(nstep=STEPS)

        def by_rbchain(model=model, forces=forces, q=q, qd=qd):
            return model.simulate(q, qd, STEPS * STEP, method="moreau", step=STEP, forces=forces, save_at=2)

        motion = by_rbchain()
        print(f"{case.name}: largest residual {motion.contact_residual.max():.1e}; {motion.message}")
        calls = {"rbchain": by_rbchain, "MuJoCo": by_mujoco}
        found = medians(calls, rounds=3, clock=time.process_time)
        times = {name: 1e6 * seconds / (BATCH * STEPS) for name, seconds in found.items()}
        print(f"  {times}; MuJoCo / rbchain = {times['MuJoCo'] / times['rbchain']:.2f}")
        ends = motion.q[:, -1], rb.io.mjcf.state_from_mujoco(model, engine, sims.qpos, sims.qvel)[0]
        contacts = [force for force in forces if isinstance(force, rb.SphereContact)]
        depths = [max(-contact.gap(model, q) for contact in contacts for q in end) for end in ends]
        print(f"  deepest penetration at the end: {depths[0]:.1e} and {depths[1]:.1e} m")
        print(f"  largest difference of q at the end: {np.abs(ends[1] - ends[0]).max():.2g}")


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
