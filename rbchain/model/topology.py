"""Conversion of a Description to the topology of `core.tree.layout`: tree, joints and codes of the forces.

A joint with several degrees of freedom becomes a sequence of joints with one degree of freedom each. All its bodies
except the last are massless.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..common.lock_free import cached_property
from ..core.tree import layout
from .description import Description, is_in_water
from .joint import QUATERNION_JOINTS

DOF_CODES = {"revolute": layout.REVOLUTE, "prismatic": layout.PRISMATIC, "screw": layout.SCREW}
POSING_CODES = {"free": layout.POSING_FREE, "spherical": layout.POSING_SPHERICAL}
#: Codes of the passive forces. A joint has a force if at least one of these fields is not zero.
PASSIVE_CODES = {
    layout.PASSIVE_SPRING: ("stiffness", "cubic_stiffness"),
    layout.PASSIVE_DAMPER: ("damping",),
    layout.PASSIVE_FRICTION: ("friction", "static_friction"),
    layout.PASSIVE_STRIBECK: ("static_friction",),
    layout.PASSIVE_STOPS: ("limit_stiffness",),
    layout.PASSIVE_ASYMMETRIC: ("friction_asymmetry",),
}


@dataclass(frozen=True, eq=False)
class Dofs:
    """Indices of degrees of freedom, bodies and entries of q.

    `joint_types` and `counts` (n,) are the types of the joints and their numbers of degrees of freedom.
    """

    joint_types: tuple[str, ...]
    counts: np.ndarray

    @cached_property
    def body(self) -> np.ndarray:
        """Index of the body of each degree of freedom (nv,)."""
        return np.repeat(np.arange(self.counts.size), self.counts)

    @cached_property
    def velocity_index(self) -> np.ndarray:
        """First entry of each body in qd (n,)."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]])

    @cached_property
    def last(self) -> np.ndarray:
        """Last degree of freedom of each body (n,): the one that has the mass of the body in the kernels' arrays."""
        return self.velocity_index + self.counts - 1

    @cached_property
    def is_first(self) -> np.ndarray:
        """Whether each degree of freedom is the first of its joint (nv,)."""
        return np.isin(np.arange(self.body.size), self.velocity_index)

    @cached_property
    def is_last(self) -> np.ndarray:
        """Whether each degree of freedom is the last of its joint (nv,)."""
        return np.isin(np.arange(self.body.size), self.last)

    @cached_property
    def position_counts(self) -> np.ndarray:
        """Number of entries of each body in q (n,)."""
        return np.array([QUATERNION_JOINTS.get(k, c) for k, c in zip(self.joint_types, self.counts, strict=True)])

    @cached_property
    def position_index(self) -> np.ndarray:
        """First entry of each body in q (n,)."""
        return np.concatenate([[0], np.cumsum(self.position_counts)[:-1]])

    @cached_property
    def quaternions(self) -> list[int]:
        """First entry of each quaternion in q."""
        of_bodies = zip(self.joint_types, self.position_index, self.position_counts, strict=True)
        return [int(index + count - 4) for kind, index, count in of_bodies if kind in QUATERNION_JOINTS]

    @cached_property
    def in_quaternion_joint(self) -> np.ndarray:
        """Whether each degree of freedom belongs to a free or spherical joint (nv,)."""
        return np.array([kind in QUATERNION_JOINTS for kind in self.joint_types])[self.body]

    @cached_property
    def plain_positions(self) -> np.ndarray:
        """Entries of q outside of free and spherical joints, in the order of their velocities."""
        of_bodies = zip(self.joint_types, self.position_index, self.position_counts, strict=True)
        entries = [np.arange(at, at + count) for kind, at, count in of_bodies if kind not in QUATERNION_JOINTS]
        return np.concatenate(entries) if entries else np.array([], int)


def dofs_of(description: Description) -> Dofs:
    """Return the degrees of freedom of a description; models with the same joints share one object."""
    return _dofs_of_joints(description.joint_types, tuple(description.dof_counts.tolist()))


@lru_cache(maxsize=256)
def _dofs_of_joints(joint_types: tuple[str, ...], counts: tuple[int, ...]) -> Dofs:
    dofs = Dofs(joint_types, np.array(counts))
    for name, kind in vars(Dofs).items():
        if isinstance(kind, cached_property) and isinstance(array := getattr(dofs, name), np.ndarray):
            array.flags.writeable = False
    return dofs


def parents_of(description: Description) -> np.ndarray:
    """Return the index of the parent of each degree of freedom (nv,); -1 for the world."""
    return _parents_of_dofs(dofs_of(description), description.parent)


def _parents_of_dofs(dofs: Dofs, parent_of_body: np.ndarray) -> np.ndarray:
    parent = np.arange(-1, dofs.body.size - 1)
    parent[dofs.velocity_index] = np.where(parent_of_body < 0, -1, dofs.last[parent_of_body])
    return parent


def topology_of(description: Description) -> np.ndarray:
    """Return the topology (TOPOLOGY_ROWS, nv) of a description; `core.tree.layout` defines the rows."""
    dofs, n = dofs_of(description), len(description.dof_types)
    topology = _topology_without_forces(
        description.joint_types, tuple(dofs.counts.tolist()), description.dof_types, tuple(description.parent.tolist())
    ).copy()
    for code, fields in PASSIVE_CODES.items():
        for field in fields:
            given = getattr(description, field)
            if given.any():
                topology[layout.TOPOLOGY_PASSIVE] |= code * (given != 0.0).reshape(-1, n).any(0)
    if is_in_water(description):
        topology[layout.TOPOLOGY_DRAG, dofs.last] = _drag_codes(description)
        return topology.astype(layout.IN_WATER)
    return topology


@lru_cache(maxsize=64)
def _topology_without_forces(
    joint_types: tuple[str, ...], counts: tuple[int, ...], dof_types: tuple[str, ...], parents: tuple[int, ...]
) -> np.ndarray:
    """Return the topology of a mechanism without passive joint forces and without a fluid."""
    dofs, n = _dofs_of_joints(joint_types, counts), len(dof_types)
    topology = np.zeros((layout.TOPOLOGY_ROWS, n), layout.IN_AIR)
    parent = _parents_of_dofs(dofs, np.array(parents))
    topology[layout.TOPOLOGY_PARENT] = np.where(parent < 0, n, parent)
    topology[layout.TOPOLOGY_JOINT] = [DOF_CODES[kind] for kind in dof_types]
    topology[layout.TOPOLOGY_FIRST] = np.arange(n)
    topology[layout.TOPOLOGY_BODY] = -1
    topology[layout.TOPOLOGY_BODY, dofs.last] = np.arange(dofs.counts.size)
    for body, kind in enumerate(joint_types):
        first, last, at = dofs.velocity_index[body], dofs.last[body], dofs.position_index[body]
        if kind in QUATERNION_JOINTS:
            topology[layout.TOPOLOGY_POSING, first : last + 1] = layout.POSING_CARRIED
            topology[layout.TOPOLOGY_POSING, first] = POSING_CODES[kind]
            topology[layout.TOPOLOGY_COORDINATE, first : last + 1] = at
            topology[layout.TOPOLOGY_FIRST, first : last + 1] = first
        else:
            topology[layout.TOPOLOGY_COORDINATE, first : last + 1] = np.arange(at, at + dofs.counts[body])
    topology[layout.TOPOLOGY_CONTRIBUTION_ROW], topology[layout.TOPOLOGY_ACCUMULATES] = _contribution_rows(parent)
    topology.flags.writeable = False
    return topology


def _drag_codes(description: Description) -> np.ndarray:
    """Sum of the codes of the drag of each body (n,)."""
    both = description.linear_damping, description.quadratic_damping
    matrices = np.stack([np.abs(m).reshape(-1, *m.shape[-3:]).max(0) for m in both]).max(0)
    full = (matrices * (1.0 - np.eye(6))).any((-1, -2))
    strips = (description.strip_drag.reshape(-1, full.size) != 0.0).any(0) & (description.strip_length > 0.0)
    diagonal = matrices.any((-1, -2)) & ~full
    return layout.FULL_DRAG * full + layout.DIAGONAL_DRAG * diagonal + layout.STRIP_DRAG * strips


def _contribution_rows(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the contribution row of each degree of freedom (nv,), and whether it adds to its parent's row (nv,).

    The number of rows is the smallest possible. A degree of freedom whose only child is the next one needs no row.
    """
    n = parent.size
    children = np.bincount(parent[parent >= 0], minlength=n)
    in_registers = np.array([children[i] == 1 and i + 1 < n and parent[i + 1] == i for i in range(n)], bool)
    contribution_row, accumulates = np.full(n, -1), np.zeros(n, np.int64)
    free, rows = [], 0
    for i in range(n - 1, -1, -1):  # in the order of the inward sweep: once dof i has read its row, the row is free
        if contribution_row[i] >= 0:
            free.append(contribution_row[i])
        p = parent[i]
        if p >= 0 and not in_registers[p]:
            accumulates[i] = contribution_row[p] >= 0
            if contribution_row[p] < 0:
                if not free:
                    free.append(rows)
                    rows += 1
                contribution_row[p] = free.pop()
    contribution_row = np.where(contribution_row < 0, rows, contribution_row)
    return np.where(in_registers, layout.IN_REGISTERS, contribution_row), accumulates
