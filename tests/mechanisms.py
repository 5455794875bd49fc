"""Mechanisms that the tests compute with: random, but always the same."""

import sysconfig
from functools import cache
from pathlib import Path

import numpy as np

import rbchain as rb

ROBOTS = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
EXAMPLES = Path(__file__).parents[1] / "examples"
ONE_DOF = ("revolute", "prismatic", "screw")
JOINTS = {
    "revolute": lambda rng: rb.Revolute(rng.normal(size=3)),
    "prismatic": lambda rng: rb.Prismatic(rng.normal(size=3)),
    "screw": lambda rng: rb.Screw(rng.normal(size=3), pitch=rng.normal() * 0.2),
    "free": lambda rng: rb.Free(),
    "spherical": lambda rng: rb.Spherical(),
    "planar": lambda rng: rb.Planar(rng.normal(size=3)),
    "universal": lambda rng: rb.Universal(rng.normal(size=3), rng.normal(size=3)),
    "composite": lambda rng: rb.Composite([JOINTS[kind](rng) for kind in rng.choice(ONE_DOF, rng.integers(1, 4))]),
}


def random_rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def random_inertia(rng):
    """Mass properties of a random cloud of points, which are always physically valid."""
    points = rng.normal(size=(5, 3)) * 0.2
    masses = rng.uniform(0.1, 1.0, 5)
    cg = masses @ points / masses.sum()
    arms = points - cg
    tensor = sum(m * (a @ a * np.eye(3) - np.outer(a, a)) for m, a in zip(masses, arms, strict=True))
    return rb.Inertia(masses.sum(), cg=cg, inertia=tensor)


def random_tree(seed, parents, kinds=("revolute",), geared=()):
    """A mechanism with these parents (-1: the world), joints of these types in turn, and random placements.

    Joints of the `geared` kinds have a motor with a rotor and a gear at each degree of freedom.
    """
    rng = np.random.default_rng(seed)
    builder = rb.ModelBuilder(name=f"tree{seed}", gravity=rng.normal(size=3) * 6)
    for i, p in enumerate(parents):
        kind = kinds[i % len(kinds)]
        joint = JOINTS[kind](rng)
        builder.add_body(
            f"body{i}",
            parent=None if p < 0 else f"body{p}",
            joint=joint,
            placement=rb.Pose(rng.normal(size=3) * 0.4, random_rotation(rng)),
            inertia=random_inertia(rng),
            **(random_motors(rng, len(joint.dofs)) if kind in geared else {}),
        )
    return builder.build()


def random_motors(rng, dofs):
    """Rotors with a reflected inertia like that of a body, and gear ratios of either sign."""
    return {
        "rotor_inertia": rng.uniform(1e-5, 1e-4, dofs),
        "gear_ratio": rng.uniform(20, 100, dofs) * rng.choice([-1, 1], dofs),
    }


def random_parents(seed, n):
    """Parents of a random forest, numbered in any order that has parents first."""
    rng = np.random.default_rng(seed)
    return [-1, *(int(rng.integers(-1, i)) for i in range(1, n))]


# Random trees, in chunks for one test each.
CHUNKS, TREES_PER_CHUNK = 4, 50


@cache
def random_trees(chunk, count=TREES_PER_CHUNK):
    """The first trees of a chunk: one to eight bodies in any order, any joints, and motors on any of them."""
    rng = np.random.default_rng(chunk)
    trees = []
    for seed in range(TREES_PER_CHUNK * chunk, TREES_PER_CHUNK * chunk + count):
        n = int(rng.integers(1, 9))
        kinds, geared = rng.choice(list(JOINTS), n), rng.choice(list(JOINTS), 4)
        trees.append(random_tree(seed, random_parents(seed, n), kinds, geared))
    return trees


def slide(mass=2.0, **passive):
    """Return a body on a slide along x, without gravity."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body(
        "slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass), passive=rb.PassiveForces(**passive)
    )
    return builder.build()


def massless_middle():
    """A universal joint: a body without mass between two hinges."""
    builder = rb.ModelBuilder(name="massless_middle")
    builder.add_body("cross", joint=rb.Revolute((1, 0, 0)))
    builder.add_body(
        "pendulum", parent="cross", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(1.0, cg=(0.2, 0.1, -0.5))
    )
    return builder.build()


ALL_KINDS = ("revolute", "screw", "prismatic", "revolute")
EVERY_KIND = ("free", "composite", "spherical", "revolute", "universal", "prismatic", "planar", "screw")
# Joint types of MuJoCo; only the roots, bodies 0 and 9 of the breadth-first tree, are free.
FLOATING_KINDS = (
    "free",
    "spherical",
    "revolute",
    "universal",
    "planar",
    "prismatic",
    "spherical",
    "revolute",
    "planar",
)
BREADTH_FIRST = [-1, 0, 0, 1, 2, 1, 2, 3, 4, -1, 9]

MECHANISMS = {
    "one_link": lambda: random_tree(1, [-1]),
    "double_pendulum": lambda: random_tree(2, [-1, 0]),
    "arm7": lambda: random_tree(3, range(-1, 6)),
    "chain30": lambda: random_tree(4, range(-1, 29)),
    "prismatic_chain": lambda: random_tree(5, range(-1, 4), ("prismatic", "revolute")),
    "screw_chain": lambda: random_tree(6, range(-1, 5), ("screw",)),
    "breadth_first_tree": lambda: random_tree(7, BREADTH_FIRST),
    "mixed_tree": lambda: random_tree(8, BREADTH_FIRST, ALL_KINDS),
    "forest": lambda: random_tree(9, random_parents(9, 20), ALL_KINDS),
    "star": lambda: random_tree(10, [-1, 0, 0, 0, 0, 0]),
    "massless_middle": massless_middle,
    "planar_chain": lambda: rb.Model.serial_chain(6),
    "puma560": lambda: rb.load(EXAMPLES / "puma560.urdf"),
    "panda": lambda: rb.load(ROBOTS / "panda_description/urdf/panda.urdf").open_tree(),
    "ur5": lambda: rb.load(ROBOTS / "ur_description/urdf/ur5_robot.urdf"),
    "solo12": lambda: rb.load(ROBOTS / "solo_description/robots/solo12.urdf"),
    "talos": lambda: rb.load(ROBOTS / "talos_data/robots/talos_reduced.urdf").open_tree(),
    "free_body": lambda: random_tree(12, [-1], ("free",)),
    "ball_chain": lambda: random_tree(13, range(-1, 3), ("spherical",)),
    "geared_arm": lambda: random_tree(14, range(-1, 6), ("revolute",), geared=("revolute",)),
    "floating_tree": lambda: random_tree(15, BREADTH_FIRST, FLOATING_KINDS, geared=FLOATING_KINDS[1:]),
    "coordinate_tree": lambda: random_tree(16, [-1, 0, 0, 1], ("universal", "planar", "composite", "universal")),
    "small_floating_tree": lambda: random_tree(19, [-1, 0, 0], ("free", "spherical", "screw"), ("spherical", "screw")),
    "every_joint_tree": lambda: random_tree(17, [-1, 0, 0, 1, 2, 1, 0, 6], EVERY_KIND, geared=EVERY_KIND),
    "every_joint_forest": lambda: random_tree(18, random_parents(18, 14), EVERY_KIND[::-1], geared=EVERY_KIND[::2]),
    "floating_quadruped": lambda: rb.load(ROBOTS / "solo_description/robots/solo12.urdf", base=rb.Free()),
    "floating_humanoid": lambda: rb.load(ROBOTS / "talos_data/robots/talos_reduced.urdf", base=rb.Free()).open_tree(),
}
