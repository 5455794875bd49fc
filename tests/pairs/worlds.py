"""Descriptions of the same motion that look different: other axes, units, names or roots, bodies in two halves."""

from dataclasses import dataclass, field

import numpy as np

import rbchain as rb

#: Places, names and units that do not change a motion, as arguments of `World`.
WORLDS = {
    "turned": {"rotation": np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])},
    "in millimeters": {"length": 1e3},
    "in grams": {"mass": 1e3},
    "renamed": {"prefix": "robot/"},
    "divided": {"divided": True},
    "rerooted": {"root": "tool"},
}
HALF = rb.Pose((0.1, -0.2, 0.05), (0.5, 0.5, 0.5, 0.5))


@dataclass(frozen=True)
class World:
    """The rotation of the world axes, the size of the units, a prefix of all names, divided bodies and another root.

    `length` and `mass` are the numbers of units in a meter and in a kilogram. The unit of time is the second.
    """

    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    length: float = 1.0
    mass: float = 1.0
    prefix: str = ""
    divided: bool = False
    root: str | None = None

    def name(self, name):
        return None if name is None else self.prefix + name

    def scaled(self, value, mass=0, length=0):
        """A quantity in the units of this world; `mass` and `length` are the exponents of its unit."""
        return np.asarray(value, dtype=float) * self.mass**mass * self.length**length

    def vector(self, value, mass=0, length=0):
        """The same for a vector in world axes."""
        return self.rotation @ self.scaled(value, mass, length)

    def placement(self, translation, is_root):
        turned = self.rotation if is_root else np.eye(3)
        return rb.Pose(turned @ self.scaled(translation, length=1), turned)

    def add_body(self, builder, name, parent, joint, translation, properties, **options):
        """Add a body with (mass, cg, moments of inertia), as one body or as two halves that are welded together."""
        mass, cg, moments = properties
        share = 0.5 if self.divided else 1.0
        mass, cg = share * self.scaled(mass, mass=1), self.scaled(cg, length=1)
        tensor = share * np.diag(self.scaled(moments, mass=1, length=2))
        placement = self.placement(translation, parent is None)
        builder.add_body(
            self.name(name),
            parent=self.name(parent),
            joint=joint,
            placement=placement,
            inertia=rb.Inertia(mass, cg=cg, inertia=tensor),
            **options,
        )
        if self.divided:
            R = HALF.rotation
            half = rb.Inertia(mass, cg=R.T @ (cg - HALF.translation), inertia=R.T @ tensor @ R)
            builder.add_body(
                self.name(name + "_half"), parent=self.name(name), joint=rb.Fixed(), placement=HALF, inertia=half
            )

    def units_of_state(self, model):
        """The units of the entries of q and of qd."""
        position, velocity = [], []
        for kind in model.joint_types:
            linear, angular = {"revolute": (0, 1), "prismatic": (1, 0), "free": (3, 3)}[kind]
            position += [self.length] * linear + [1.0] * (4 if kind == "free" else angular)
            velocity += [self.length] * linear + [1.0] * angular
        return np.array(position), np.array(velocity)
