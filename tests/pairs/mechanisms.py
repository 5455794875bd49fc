"""Mechanisms of the pairs: each has a revolute joint "driven", a joint "other" near its limit, and a body "tool"."""

import numpy as np

import rbchain as rb

ROD = (1.0, (0.15, 0.01, 0.02), (0.002, 0.03, 0.031))
BLOCK = (2.0, (0.02, 0.0, 0.01), (0.04, 0.05, 0.06))
VOLUME, CENTER = 2e-4, (0.1, 0, 0)
#: Linear and angular entries of the diagonals.
ADDED_MASS = (0.1, 0.3, 0.3), (0.0, 1e-3, 1e-3)
DRAG = (1.0, 5.0, 5.0), (0.0, 0.1, 0.1)
PASSIVE = {"damping": 0.1, "stiffness": 1.0}
#: How far "other" is from its limit at the start, rad or m.
PLAY = 5e-3
LONG = 25
MISFIT, RELAXATION_TIME = 1e-5, 5e-3  # of the compliant loop, m and s


class Mechanism:
    """A model in a world, and an initial state that satisfies its constraints.

    `start` gives positions and velocities of joints with one degree of freedom; others start at zero.
    """

    def __init__(self, world, build, start, duration, gravity=(0.5, -1.0, -9.0), fluid_density=0.0):
        self.world, self.duration = world, duration
        density = float(world.scaled(fluid_density, mass=1, length=-3))
        builder = rb.ModelBuilder(gravity=world.vector(gravity, length=1), fluid_density=density)
        build(world, builder)
        self.model = builder.build()
        q, qd = self.model.neutral(), np.zeros(self.model.nv)
        for name, (position, velocity) in start.items():
            joint = self.model.joint_names.index(world.name(name))
            q[self.model.position_index[joint]] = position
            qd[self.model.velocity_index[joint]] = velocity
        self.q_unit, self.qd_unit = world.units_of_state(self.model)
        free = [slice(i, i + 6) for i in self.model.velocity_index[np.array(self.model.joint_types) == "free"]]
        for dofs in free:
            qd[dofs] = 0.3, -0.2, 0.4, 0.5, -0.3, 0.2
        self.q, self.qd = q * self.q_unit, qd * self.qd_unit
        if self.model.constraint_names:
            fixed = [world.name("driven")]
            self.q = self.model.assemble(self.q, fixed=fixed)
            self.qd = self.model.assemble_velocities(self.q, self.qd, fixed=fixed)
        if world.root:
            root = world.name(world.root)
            self.q, self.qd = self.model.reroot_state(root, self.q, self.qd)
            self.model = self.model.reroot(root)


def passive(world, linear=False):
    """Passive forces in the units of a revolute or of a prismatic joint."""
    return rb.PassiveForces(**{name: float(world.scaled(x, 1, 0 if linear else 2)) for name, x in PASSIVE.items()})


def limits(world, upper, linear=False):
    """Limits of the joint "other"; it starts at `upper` less PLAY and moves up."""
    unit = world.length if linear else 1.0
    return rb.JointLimits(lower=-10.0 * unit, upper=(upper + PLAY) * unit)


def open_tree(world, builder):
    world.add_body(builder, "driven", None, rb.Revolute((0, 1, 0)), (0, 0, 1), BLOCK)
    options = {"passive": passive(world, True), "limits": limits(world, 0.1, True)}
    world.add_body(builder, "other", "driven", rb.Prismatic((1, 0, 0)), (0.3, 0, 0), ROD, **options)
    world.add_body(builder, "tool", "other", rb.Revolute((0, 0.6, 0.8)), (0.2, 0.1, 0), ROD)


def floating_base(world, builder):
    world.add_body(builder, "base", None, rb.Free(), (0, 0, 1), BLOCK)
    world.add_body(builder, "driven", "base", rb.Revolute((0, 1, 0)), (0.1, 0, 0), ROD)
    options = {"passive": passive(world), "limits": limits(world, 0.2)}
    world.add_body(builder, "other", "driven", rb.Revolute((0, 0, 1)), (0.3, 0, 0), ROD, **options)
    world.add_body(builder, "tool", "other", rb.Revolute((0, 1, 0)), (0.3, 0, 0), ROD)


def closed_loop(world, builder):
    """A four-bar linkage whose pivots are 1 m apart, with a tool on the coupler."""
    world.add_body(builder, "driven", None, rb.Revolute(), (0, 0, 0), ROD)
    options = {"passive": passive(world), "limits": limits(world, 2.0)}
    world.add_body(builder, "coupler", "driven", rb.Revolute(), (0.3, 0, 0), ROD)
    world.add_body(builder, "rocker", None, rb.Revolute(), (1, 0, 0), ROD)
    world.add_body(builder, "other", "coupler", rb.Revolute((0, 1, 0)), (0.4, 0.1, 0), ROD, **options)
    world.add_body(builder, "tool", "other", rb.Revolute((0, 0, 1)), (0.2, 0, 0), ROD)
    ends = {name: world.scaled((x, 0, 0), length=1) for name, x in (("point_a", 0.9), ("point_b", 0.6))}
    builder.add_constraint(rb.BallConstraint(world.name("pin"), world.name("coupler"), world.name("rocker"), **ends))


def geared(world, builder):
    """Two gears on a floating base, with an arm on one of them."""
    world.add_body(builder, "base", None, rb.Free(), (0, 0, 1), BLOCK)
    world.add_body(builder, "driven", "base", rb.Revolute((0, 1, 0)), (0, 0, 0.1), BLOCK)
    world.add_body(builder, "wheel", "base", rb.Revolute((0, 1, 0)), (0.5, 0, 0.1), BLOCK)
    options = {"passive": passive(world), "limits": limits(world, 0.2)}
    world.add_body(builder, "other", "wheel", rb.Revolute((0, 0, 1)), (0.3, 0, 0), ROD, **options)
    world.add_body(builder, "tool", "other", rb.Revolute((0, 1, 0)), (0.3, 0, 0), ROD)
    builder.add_constraint(
        rb.CouplerConstraint(world.name("gear"), world.name("wheel"), world.name("driven"), ratio=-2.0)
    )


def compliant_loop(world, builder):
    """The linkage on a floating base, closed by a compliant hinge in another plane, with a gear on the rocker."""
    world.add_body(builder, "base", None, rb.Free(), (0, 0, 1), BLOCK)
    world.add_body(builder, "driven", "base", rb.Revolute(), (0, 0, 0), ROD)
    options = {"passive": passive(world), "limits": limits(world, 2.0)}
    world.add_body(builder, "coupler", "driven", rb.Revolute(), (0.3, 0, MISFIT), ROD)
    world.add_body(builder, "other", "coupler", rb.Revolute((0, 1, 0)), (0.4, 0.1, 0), ROD, **options)
    world.add_body(builder, "tool", "other", rb.Revolute((0, 0, 1)), (0.2, 0, 0), ROD)
    world.add_body(builder, "rocker", "base", rb.Revolute(), (1, 0, 0), ROD)
    world.add_body(builder, "wheel", "base", rb.Revolute(), (1, 0.5, 0), ROD)
    ends = {name: world.scaled((x, 0, 0), length=1) for name, x in (("point_a", 0.9), ("point_b", 0.6))}
    builder.add_constraint(
        rb.HingeConstraint(world.name("pin"), world.name("coupler"), world.name("rocker"), **ends),
        compliance=float(world.scaled(1e-6, mass=-1)),
        angular_compliance=float(world.scaled(1e-4, mass=-1, length=-2)),
        relaxation_time=RELAXATION_TIME,
    )
    builder.add_constraint(
        rb.CouplerConstraint(world.name("gear"), world.name("wheel"), world.name("rocker"), ratio=-2.0)
    )


def in_water(world, builder):
    """A vehicle with an arm."""

    def immersed(**options):
        scaled = {
            "volume": float(world.scaled(VOLUME, length=3)),
            "buoyancy_center": world.scaled(CENTER, length=1),
            "added_mass": np.append(world.scaled(ADDED_MASS[0], 1, 0), world.scaled(ADDED_MASS[1], 1, 2)),
            "quadratic_damping": np.append(world.scaled(DRAG[0], 1, -1), world.scaled(DRAG[1], 1, 2)),
        }
        return {"immersion": rb.Immersion(**scaled), **options}

    world.add_body(builder, "base", None, rb.Free(), (0, 0, 1), BLOCK, **immersed())
    world.add_body(builder, "driven", "base", rb.Revolute((0, 1, 0)), (0.1, 0, 0), ROD, **immersed())
    options = immersed(passive=passive(world), limits=limits(world, 0.2))
    world.add_body(builder, "other", "driven", rb.Revolute((0, 0, 1)), (0.3, 0, 0), ROD, **options)
    world.add_body(builder, "tool", "other", rb.Revolute((0, 1, 0)), (0.3, 0, 0), ROD, **immersed())


def long_chain(world, builder):
    names = ["driven", "other", *(f"link{i}" for i in range(2, LONG - 1)), "tool"]
    for i, name in enumerate(names):
        axis = ((0, 1, 0), (0, 0, 1))[i % 2]
        options = {"passive": passive(world), "limits": limits(world, 0.2)} if name == "other" else {}
        parent = names[i - 1] if i else None
        world.add_body(builder, name, parent, rb.Revolute(axis), (0.3 * (i > 0), 0, 1 - (i > 0)), ROD, **options)


MECHANISMS = {
    "open": lambda world: Mechanism(
        world, open_tree, {"driven": (0.3, 1.0), "other": (0.1, 0.8), "tool": (-0.4, 1.0)}, 0.05
    ),
    "floating": lambda world: Mechanism(
        world, floating_base, {"driven": (0.3, 1.0), "other": (0.2, 1.0), "tool": (-0.4, 1.0)}, 0.05
    ),
    "closed": lambda world: Mechanism(
        world,
        closed_loop,
        {"driven": (1.0, 1.0), "coupler": (-0.5, 0.0), "rocker": (1.5, 0.0), "other": (2.0, 1.0), "tool": (0.2, 1.0)},
        0.05,
    ),
    "geared": lambda world: Mechanism(
        world, geared, {"driven": (0.3, 1.0), "wheel": (-0.6, -2.0), "other": (0.2, 1.0), "tool": (-0.4, 1.0)}, 0.05
    ),
    "compliant": lambda world: Mechanism(
        world,
        compliant_loop,
        {
            **{"driven": (1.0, 1.0), "coupler": (-0.603577, -1.198083), "other": (2.0, 1.0), "tool": (0.2, 1.0)},
            **{"rocker": (1.58364, 0.306035), "wheel": (-3.16728, -0.61207)},
        },
        0.05,
    ),
    "water": lambda world: Mechanism(
        world,
        in_water,
        {"driven": (0.3, 1.0), "other": (0.2, 1.0), "tool": (-0.4, 1.0)},
        0.05,
        fluid_density=1000.0,
    ),
    "long": lambda world: Mechanism(world, long_chain, {"driven": (0.3, 1.0), "other": (0.2, 1.0)}, 0.001),
}
