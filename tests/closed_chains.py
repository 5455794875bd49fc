"""Closed chains that the tests compute with, each with its constraints and a guess of its positions."""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

import rbchain as rb

from .mechanisms import random_inertia, random_rotation

REFERENCES = Path(__file__).parent / "references"


def ends(**pairs):
    """Return the arguments of both ends of a constraint, such as point_a and point_b for `point`, a pair of values."""
    return {f"{name}_{side}": value for name, pair in pairs.items() for side, value in zip("ab", pair, strict=True)}


class ClosedChain(NamedTuple):
    model: rb.Model
    constraints: list
    guess: np.ndarray


def built(builder, constraints, guess):
    for constraint in constraints:
        builder.add_constraint(constraint)
    model = builder.build()
    guess = np.array(guess, float)
    for joint, at in zip(model.joint_types, model.position_index, strict=True):
        if joint in ("free", "spherical"):
            quaternion = slice(at + 3, at + 7) if joint == "free" else slice(at, at + 4)
            guess[quaternion] /= np.linalg.norm(guess[quaternion])
    return ClosedChain(model, list(constraints), guess)


def joined(chain, a, b, pose_a, pose_b, moved):
    """The closed chain with a guess in which the body `moved`, on a free joint, brings two frames together."""
    model, guess = chain.model, chain.guess.copy()
    target = model.frame_poses(guess, a) @ pose_a
    relative = model.frame_poses(guess, moved).inverse() @ model.frame_poses(guess, b) @ pose_b
    pose = target @ relative.inverse()
    at = model.position_index[model.body_names.index(moved)]
    guess[at : at + 7] = [*pose.translation, *Rotation.from_matrix(pose.rotation).as_quat()]
    return chain._replace(guess=guess)


def four_bar(rotation=None, closure="ball"):
    """A crank, a coupler and a rocker with masses off the plane, whose plane is turned by `rotation`.

    The pivots are 1 m apart; the crank is 0.3 m, the coupler 0.9 m, and the rocker 0.6 m long.
    """
    rng = np.random.default_rng(4)
    turn = np.eye(3) if rotation is None else rotation
    builder = rb.ModelBuilder(name="four-bar", gravity=turn @ [1.0, -9.0, 0.5])
    for name, parent, place in (
        ("crank", None, (0, 0, 0)),
        ("coupler", "crank", (0.3, 0, 0)),
        ("rocker", None, (1, 0, 0)),
    ):
        pose = rb.Pose(place) if parent else rb.Pose(turn @ place, turn)
        builder.add_body(name, parent=parent, joint=rb.Revolute(), placement=pose, inertia=random_inertia(rng))
    kind, points = {"ball": rb.BallConstraint}.get(closure, rb.HingeConstraint), ends(point=((0.9, 0, 0), (0.6, 0, 0)))
    tip = kind("tip", "coupler", "rocker", **points)
    return built(builder, [tip], [1.0, -0.5, 1.5])


def hung_plate():
    """A free body on three rods, with the ends of two of them on an arm."""
    rng = np.random.default_rng(5)
    builder = rb.ModelBuilder(name="hung plate", gravity=(0.3, 0.4, -9.5))
    builder.add_body("arm", joint=rb.Revolute((0.2, 1, 0.1)), inertia=random_inertia(rng))
    builder.add_body("plate", joint=rb.Free(), inertia=random_inertia(rng))
    corners = ((0.3, 0, 0.1), (-0.2, 0.3, 0), (-0.2, -0.3, 0))
    above = ((None, (0.4, 0, 1.0)), ("arm", (-0.3, 0.3, 0.9)), ("arm", (-0.3, -0.4, 1.0)))
    rods = [
        rb.DistanceConstraint(f"rod{i}", body, "plate", point_a=place, point_b=corner, length=0.9 + 0.05 * i)
        for i, ((body, place), corner) in enumerate(zip(above, corners, strict=True))
    ]
    return built(builder, rods, [0.1, 0.05, 0.0, 0.02, 0.1, -0.1, 0.05, 1.0])


def hinged_arm():
    """An arm of four joints, the third one a slide, whose hand is hinged to a free body."""
    rng = np.random.default_rng(6)
    builder = rb.ModelBuilder(name="hinged arm", gravity=(0, 2.0, -9.0))
    joints = [rb.Revolute(rng.normal(size=3)), rb.Revolute(rng.normal(size=3)), rb.Prismatic(rng.normal(size=3))]
    for i, joint in enumerate([*joints, rb.Spherical()]):
        pose = rb.Pose(rng.normal(size=3) * 0.3, random_rotation(rng))
        parent = f"link{i - 1}" if i else None
        builder.add_body(f"link{i}", parent=parent, joint=joint, placement=pose, inertia=random_inertia(rng))
    builder.add_body("load", joint=rb.Free(), inertia=random_inertia(rng))
    axes = rng.normal(size=(2, 3))
    points = rng.normal(size=(2, 3)) * 0.2
    pin = rb.HingeConstraint("pin", "link3", "load", **ends(point=points, axis=axes))
    chain = built(builder, [pin], [0.2, -0.3, 0.1, 0, 0, 0, 1.0, 0, 0, 0, 0, 0, 0, 1.0])
    poses = [
        rb.Pose(p, Rotation.align_vectors([a], [[0, 0, 1]])[0].as_matrix()) for p, a in zip(points, axes, strict=True)
    ]
    return joined(chain, "link3", "load", *poses, moved="load")


def welded_and_geared():
    """Two trees that are welded together, with a gear between two of their joints and a rack between two others."""
    rng = np.random.default_rng(7)
    builder = rb.ModelBuilder(name="welded and geared", gravity=(1.0, 2.0, -9.0))
    kinds = (rb.Revolute, rb.Revolute, rb.Revolute, rb.Prismatic)
    for side in ("left", "right"):
        builder.add_body(f"{side}0", joint=rb.Free(), inertia=random_inertia(rng))
        for i, kind in enumerate(kinds):
            pose = rb.Pose(rng.normal(size=3) * 0.3, random_rotation(rng))
            joint = kind(rng.normal(size=3))
            builder.add_body(
                f"{side}{i + 1}", parent=f"{side}{i}", joint=joint, placement=pose, inertia=random_inertia(rng)
            )
    poses = [rb.Pose(rng.normal(size=3) * 0.2, random_rotation(rng)) for _ in range(2)]
    weld = rb.WeldConstraint("weld", "left4", "right2", **ends(pose=poses))
    gear = rb.CouplerConstraint("gear", "left2", "right3", ratio=-1.7, offset=0.2)
    rack = rb.CouplerConstraint("rack", "right4", "left1", ratio=0.3)
    chain = built(builder, [weld, gear, rack], [*np.eye(7)[6], 0.1, 0.2, 0.3, 0.1, *np.eye(7)[6], 0.3, 0.2, 0.1, 0.05])
    return joined(chain, "left4", "right2", *poses, moved="right0")


def held_cable(links=20, kind=rb.Spherical):
    """A chain of links that is held at both ends."""
    builder = rb.ModelBuilder(name="cable", gravity=(0, 1.0, -9.81))
    for i in range(links):
        pose = rb.Pose((0, 0, 0.1)) if i else rb.Pose((0.3, 0, 0))
        parent = f"link{i - 1}" if i else None
        inertia = rb.Inertia(0.1, cg=(0.001, 0, 0.05), inertia=(1e-4, 1e-4, 2e-5))
        builder.add_body(f"link{i}", parent=parent, joint=kind(), placement=pose, inertia=inertia)
    end = rb.BallConstraint("end", None, f"link{links - 1}", point_a=(-0.2, 0.3, 0.4), point_b=(0, 0, 0.1))
    # bent a little, because a straight chain is singular
    angle = np.array([0.02, 0.15, 0.01, 0.0])
    quaternion = angle / 2 + [0, 0, 0, np.sqrt(1 - angle @ angle / 4)]
    return built(builder, [end], np.tile(quaternion, links))


def polygon(links=12, rotation=None):
    """A planar chain that is hinged to the world at both ends, in a plane turned by `rotation`: three rows depend."""
    rng = np.random.default_rng(8)
    turn = np.eye(3) if rotation is None else rotation
    builder = rb.ModelBuilder(name="polygon", gravity=turn @ [0, -9.81, 0])
    for i in range(links):
        pose = rb.Pose((0.1, 0, 0)) if i else rb.Pose((0, 0, 0), turn)
        parent = f"link{i - 1}" if i else None
        builder.add_body(f"link{i}", parent=parent, joint=rb.Revolute(), placement=pose, inertia=random_inertia(rng))
    axis = turn @ [0, 0, 1]
    end = rb.HingeConstraint(
        "end", None, f"link{links - 1}", point_a=turn @ [0.5, 0, 0], point_b=(0.1, 0, 0), axis_a=axis, axis_b=(0, 0, 1)
    )
    return built(builder, [end], np.linspace(1.2, -0.6, links))


def random_turn(seed=9):
    return random_rotation(np.random.default_rng(seed))


@cache
def references():
    """The benchmark mechanisms of the IFToMM library: definitions and reference results."""
    return json.loads((REFERENCES / "closed_loops.json").read_text(encoding="utf-8"))


def as_batch(model, samples=1):
    """The model as varied samples with equal numbers, so that tests without drives share a compiled simulation."""
    return model.vary(mass=np.tile(model.mass, (samples, 1)))


def benchmark(name):
    """A benchmark mechanism and its reference."""
    reference = references()[name]
    builder, bodies = rb.ModelBuilder(name=name, gravity=reference["gravity"]), reference["bodies"]
    names = [body["name"] for body in bodies]
    for body in bodies:
        xx, xy, xz, yy, yz, zz = body["inertia"]
        builder.add_body(
            body["name"],
            parent=None if body["parent"] < 0 else names[body["parent"]],
            joint=rb.Revolute(body["axis"]),
            placement=rb.Pose(body["placement"]),
            inertia=rb.Inertia(body["mass"], cg=body["cg"], inertia=[[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
        )
    constraints = []
    for i, loop in enumerate(reference["loops"]):
        pair = [None if loop[side] < 0 else names[loop[side]] for side in "ab"]
        points = ends(point=(loop["pa"], loop["pb"]))
        if loop["type"] == "ball":
            constraints.append(rb.BallConstraint(f"loop{i}", *pair, **points))
        else:
            axes = ends(axis=(np.cross(loop["e1"], loop["e2"]), loop["axis_b"]))
            constraints.append(rb.HingeConstraint(f"loop{i}", *pair, **points, **axes))
    q = np.array([float(x) for x in reference["initial"]["q"]])
    return built(builder, constraints, q), reference


def closed_state(chain, seed=0, batch=(), spread=0.05):
    """Return closed positions near the guess, velocities that keep them closed, and joint forces."""
    rng, model = np.random.default_rng(seed), chain.model
    guess = np.broadcast_to(chain.guess, (*batch, model.nq))
    q = model.assemble(model.integrate(guess, spread * rng.normal(size=(*batch, model.nv))))
    qd = model.assemble_velocities(q, rng.normal(size=(*batch, model.nv)))
    return q, qd, rng.normal(size=(*batch, model.nv))


CHAINS = {
    "four-bar": four_bar,
    "turned four-bar": lambda: four_bar(random_turn()),
    "four-bar with a hinge": lambda: four_bar(random_turn(), "hinge"),
    "hung plate": hung_plate,
    "hinged arm": hinged_arm,
    "welded and geared": welded_and_geared,
    "Andrews' squeezer": lambda: benchmark("A03_andrews")[0],
    "Bricard": lambda: benchmark("A04_bricard")[0],
}


@cache
def closed_chain(name):
    return CHAINS[name]()
