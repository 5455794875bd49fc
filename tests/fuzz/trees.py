"""Random trees of bodies, with all that a body may have, and the same trees in other units."""

import warnings
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import rbchain as rb

from ..closed_chains import ends
from ..mechanisms import JOINTS, random_inertia, random_motors, random_rotation

KINDS = [*JOINTS, "fixed"]


class Body(NamedTuple):
    """Of a body: its parent's number (-1: the world), its kind of joint, and what it has besides."""

    parent: int
    kind: str
    has_inertia: bool
    has_motors: bool
    has_passive_forces: bool
    is_immersed: bool


class Tree(NamedTuple):
    """Bodies, the fluid they are in, and the seed from which all numbers follow."""

    bodies: tuple[Body, ...]
    in_water: bool
    seed: int


@st.composite
def trees(draw, kinds=KINDS, most=6, dry=False):
    """Strategy for trees of up to `most` bodies, at least one of which moves."""
    count, flags = draw(st.integers(1, most)), st.booleans()
    bodies = [
        Body(
            draw(st.integers(-1, i - 1)), draw(st.sampled_from(kinds)), draw(flags) or draw(flags), *draw_many(draw, 3)
        )
        for i in range(count)
    ]
    if all(body.kind == "fixed" for body in bodies):
        bodies[0] = bodies[0]._replace(kind="revolute")
    return Tree(tuple(bodies), not dry and draw(flags) and draw(flags), draw(st.integers(0, 9999)))


def draw_many(draw, count):
    return [draw(st.booleans()) for _ in range(count)]


def random_immersion(rng):
    root = rng.normal(size=(6, 6))
    pose = rb.Pose(rng.normal(size=3) * 0.1, random_rotation(rng))
    return rb.Immersion(
        rng.random() * 2e-3, buoyancy_center=rng.normal(size=3) * 0.1, added_mass=0.2 * root @ root.T, pose=pose
    )


def random_passive_forces(rng, joint):
    """Damping and friction, and springs where the joint has angles; one number for each degree of freedom."""
    dofs = len(joint.dofs)
    friction = rng.random(dofs)
    given = {"damping": rng.random(dofs), "friction": friction, "static_friction": 1.5 * friction}
    if joint.kind not in ("free", "spherical"):
        given |= {"stiffness": rng.random(dofs), "rest_position": rng.normal(size=dofs)}
    return rb.PassiveForces(**given)


def arguments_of_bodies(tree):
    """The arguments of `add_body` for each body, as dictionaries."""
    rng, found = np.random.default_rng(tree.seed), []
    for i, body in enumerate(tree.bodies):
        joint = rb.Fixed() if body.kind == "fixed" else JOINTS[body.kind](rng)
        given: dict[str, Any] = {
            "name": f"body{i}",
            "parent": None if body.parent < 0 else f"body{body.parent}",
            "joint": joint,
            "placement": rb.Pose(rng.normal(size=3) * 0.4, random_rotation(rng)),
        }
        if body.has_inertia:
            given["inertia"] = random_inertia(rng)
        if body.has_motors and body.kind != "fixed":
            given |= random_motors(rng, len(joint.dofs))
        if body.has_passive_forces and body.kind != "fixed":
            given["passive"] = random_passive_forces(rng, joint)
        if body.is_immersed and tree.in_water:
            given["immersion"] = random_immersion(rng)
        found.append(given)
    return found


def builder_of(tree):
    rng = np.random.default_rng(tree.seed + 1)
    builder = rb.ModelBuilder(name="tree", gravity=rng.normal(size=3) * 6, fluid_density=1000.0 * tree.in_water)
    for given in arguments_of_bodies(tree):
        builder.add_body(**given)
    return builder


def built(tree):
    """The model of a tree, and its warnings' words."""
    return model_and_words(builder_of(tree))


def model_and_words(builder):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = builder.build()
    return model, [str(warning.message) for warning in caught]


def closed(builder, q, kinds, seed):
    """Add constraints of these kinds to a builder, which the positions q of its model satisfy; return the model.

    Constraints of kinds that start with "compliant " have random compliances.
    """
    rng, model = np.random.default_rng(seed), builder.build()
    joints = [name for name, count in zip(model.joint_names, model.description.dof_counts, strict=True) if count == 1]
    for i, name in enumerate(kinds):
        kind = name.removeprefix("compliant ")
        given = random_compliances(rng, kind) if kind != name else {}
        b = rng.choice(model.body_names)
        a = rng.choice([None, *(name for name in model.body_names if name != b)])
        pose_a = rb.Pose(rng.normal(size=3), random_rotation(rng))
        pose_b = model.frame_poses(q, b).inverse() @ (pose_a if a is None else model.frame_poses(q, a) @ pose_a)
        pair, points = (f"{kind}{i}", a, b), ends(point=(pose_a.translation, pose_b.translation))
        if kind == "ball":
            builder.add_constraint(rb.BallConstraint(*pair, **points), **given)
        elif kind == "hinge":
            axes = ends(axis=(pose_a.rotation[:, 0], pose_b.rotation[:, 0]))
            builder.add_constraint(rb.HingeConstraint(*pair, **points, **axes), **given)
        elif kind == "weld":
            builder.add_constraint(rb.WeldConstraint(*pair, pose_a=pose_a, pose_b=pose_b), **given)
        elif kind == "distance":
            rod = pose_b @ rb.Pose(rng.normal(size=3))
            length = np.linalg.norm(rod.translation - pose_b.translation)
            points = ends(point=(pose_a.translation, rod.translation))
            builder.add_constraint(rb.DistanceConstraint(*pair, **points, length=length), **given)
        elif len(joints) > 1:
            joint, other = rng.choice(joints, 2, replace=False)
            x, y = (q[model.position_index[model.joint_names.index(name)]] for name in (joint, other))
            ratio = rng.normal()
            builder.add_constraint(rb.CouplerConstraint(pair[0], joint, other, ratio=ratio, offset=x - ratio * y))
    return builder.build()


def random_compliances(rng, kind):
    """The arguments of `add_constraint` for a compliant constraint; the fixed steps of the motions are stable."""
    given = {"compliance": 10.0 ** rng.uniform(-8, -2), "relaxation_time": 0.05}
    return given | ({"angular_compliance": 10.0 ** rng.uniform(-6, 0)} if kind in ("hinge", "weld") else {})


# --- the same tree in other units -------------------------------------------------------------------------------------


class Units(NamedTuple):
    """Powers of two that one kilogram, meter and second are in other units: products with them are exact."""

    mass: int
    length: int
    time: int

    def of(self, x, mass=0, length=0, time=0):
        """Numbers in the other units; the dimensions may be arrays."""
        exponent = mass * self.mass + np.asarray(length) * self.length + np.asarray(time) * self.time
        return np.ldexp(x, exponent)


def slides(model):
    """1 for each degree of freedom that is a length, 0 for angles."""
    return np.array([int(kind == "prismatic") for kind in model.dof_types])


def in_units(tree, units):
    """The tree built in other units."""
    builder = builder_of(tree)
    other = rb.ModelBuilder(
        name="tree",
        gravity=units.of(builder.gravity, length=1, time=-2),
        fluid_density=units.of(builder.fluid_density, 1, -3),
    )
    for given in arguments_of_bodies(tree):
        joint, inertia, immersion = given["joint"], given.get("inertia"), given.get("immersion")
        place = given["placement"]
        given["placement"] = rb.Pose(units.of(place.translation, length=1), place.rotation)
        given["joint"] = joint_in_units(joint, units)
        if inertia is not None:
            tensor = units.of(inertia.inertia, 1, 2)
            given["inertia"] = rb.Inertia(units.of(inertia.mass, 1), cg=units.of(inertia.cg, length=1), inertia=tensor)
        if "rotor_inertia" in given:
            powers = np.array([0 if dof.kind == "prismatic" else 2 for dof in joint.dofs])
            given["rotor_inertia"] = units.of(given["rotor_inertia"], 1, powers)
        given.pop("passive", None)
        if immersion is not None:
            powers = np.add.outer([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1])
            pose = rb.Pose(units.of(immersion.pose.translation, length=1), immersion.pose.rotation)
            added = units.of(immersion.added_mass, 1, powers)
            center = units.of(immersion.buoyancy_center, length=1)
            given["immersion"] = rb.Immersion(
                units.of(immersion.volume, 0, 3), buoyancy_center=center, added_mass=added, pose=pose
            )
        other.add_body(**given)
    return other


def joint_in_units(joint, units):
    if isinstance(joint, rb.Composite):
        return rb.Composite([joint_in_units(part, units) for part in joint.joints])
    return rb.Screw(joint.axis, units.of(joint.pitch, length=1)) if isinstance(joint, rb.Screw) else joint


def state_in_units(model, state, units):
    """A state of the tree in other units."""
    e = slides(model)
    lengths = np.zeros(model.nq, int)
    for at, dof in model.coordinate_pairs:
        lengths[at] = e[dof]
    changed = vars(state) | {
        "q": units.of(state.q, length=lengths),
        "qd": units.of(state.qd, length=e, time=-1),
        "qdd": units.of(state.qdd, length=e, time=-2),
        "tau": units.of(state.tau, 1, 2 - e, -2),
        "wrenches": units.of(state.wrenches, 1, [1, 1, 1, 2, 2, 2], -2),
    }
    return SimpleNamespace(**changed)


def result_in_units(model, quantity, found, units):
    """What a quantity of the tree is in other units."""
    e = slides(model)
    spatial = np.array([1, 1, 1, 2, 2, 2])
    dimensions = {
        "forward_dynamics": (0, e, -2),
        "inverse_dynamics": (1, 2 - e, -2),
        "gravity_forces": (1, 2 - e, -2),
        "mass_matrix": (1, 2 - np.add.outer(e, e), 0),
        "mass_matrix_inverse": (-1, np.add.outer(e, e) - 2, 0),
        "energy": (1, 2, -2),
        "power": (1, 2, -3),
        "momentum": (1, spatial, -1),
        "joint_reactions": (1, spatial, -2),
        "center_of_mass": (0, 1, 0),
        "body_velocities": (0, spatial % 2, -1),
    }[quantity]
    return tuple(units.of(x, *dimensions) for x in found)
