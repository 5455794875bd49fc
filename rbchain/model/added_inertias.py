"""Added inertias: which degrees of freedom of a closed loop are too light, and how much inertia the dynamics add.

A light body between two constraints has nearly no inertia along its joint, but moves with heavy bodies. The dynamics
add an inertia to its joint and take its force away again (`core.loops.constraint_solver`). The result does not depend
on it. Its size only decides how round-off is shared between two systems of equations. With an added inertia e, the
condition number of one system is about (inertia of the heavy bodies) / e. The condition number of the other system is
at most e / (own inertia), if the body can also move on its own, such as a rod between two ball joints about its axis.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..core.tree.layout import TOPOLOGY_PARENT
from .description import CONSTRAINT_FIELDS, VARIABLE_FIELDS, ConstraintPlace, Description, some_samples
from .massless import INDEPENDENT, SAMPLES_AT_ONCE, least_articulated_inertias
from .topology import Dofs, dofs_of, topology_of

#: A degree of freedom is light if its inertia is below this fraction of the largest one in its loops.
LIGHT = 1e-5
#: Smallest added inertia of bodies with mass, as a fraction of the largest inertia.
SMALLEST_ADDED = {"float64": 1e-6, "float32": 1e-4}
#: Added inertia of massless bodies, as a fraction of the largest inertia.
ADDED_TO_MASSLESS = 1e-4
#: Fields of a Description that added inertias depend on.
FIELDS = (
    *("mass", "cg", "inertia", "rotor_inertia", "gear_ratio", "axis", "pitch"),
    *("placement_rotation", "placement_translation", "fluid_density", "added_mass", "added_volume"),
    *("constraint_point_a", "constraint_point_b", "constraint_ratio"),
)
#: A point is on the axis of a joint if its distance is below this fraction of its distance from the joint.
ON_AXIS = 1e-12


def with_added_inertias(description: Description, precision: str) -> Description | None:
    """Return the description of a model with closed loops and added inertias for a precision; None if no dof is light.

    Its rotor inertias contain the gear ratios and the added inertias, which also follow the constraints.
    """
    d, added = description, added_inertias(description, precision)
    light = np.flatnonzero((added > 0.0).any(tuple(range(added.ndim - 1))))
    if not light.size:
        return None
    body = dofs_of(d).body
    places = [ConstraintPlace(f"added inertia {dof}", "added inertia", -1, int(body[dof]), int(dof)) for dof in light]
    fields: dict[str, Any] = {"constraints": (*d.constraints, *places)}
    for name, (_, *shape) in CONSTRAINT_FIELDS.items():
        values = added[..., light] if name == "constraint_length" else np.zeros((light.size, *map(int, shape)))
        fields[name] = _appended(getattr(d, name), values, 1 + len(shape))
    armature = d.rotor_inertia * d.gear_ratio**2 + added
    return replace(d, rotor_inertia=armature, gear_ratio=np.ones(armature.shape[-1]), **fields)


def _appended(values: np.ndarray, more: np.ndarray, axes: int) -> np.ndarray:
    """Append values of further constraints, (..., m, ...) with `axes` axes after the batch axes."""
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - axes] for x in (values, more)))
    return np.concatenate([np.broadcast_to(x, (*batch, *x.shape[x.ndim - axes :])) for x in (values, more)], -axes)


def added_inertias(description: Description, precision: str) -> np.ndarray:
    """Return the added inertia of each degree of freedom (..., nv), kg or kg m^2; 0 if it is not light.

    The inertia of each sample depends on its own parameters only. It is the geometric mean of the own inertia and the
    largest one in the loops.
    """
    d, dofs = _with_one_sample_of_other_fields(description), dofs_of(description)
    batch = np.broadcast_shapes(*(_batch_of(d, name) for name in FIELDS))
    largest = np.broadcast_to(_largest_inertias(d, dofs, _loops_of(d, dofs)), (*batch, dofs.body.size))
    in_doubt = (_own_inertias(d, dofs) < LIGHT * largest) & (largest > 0.0) & ~_spins_freely(d, dofs)
    added = np.zeros((int(np.prod(batch)), largest.shape[-1]))
    suspects = np.flatnonzero(np.broadcast_to(in_doubt, largest.shape).reshape(added.shape).any(-1))
    for start in range(0, suspects.size, SAMPLES_AT_ONCE):
        some = suspects[start : start + SAMPLES_AT_ONCE]
        heavy = largest.reshape(added.shape)[some]
        with np.errstate(over="ignore", invalid="ignore"):
            own = least_articulated_inertias(some_samples(d, some))
            least = np.where(own > 0.0, SMALLEST_ADDED[precision], ADDED_TO_MASSLESS)
            found = np.maximum(np.sqrt(own * heavy), least * heavy)
            is_light = (own < LIGHT * heavy) & np.broadcast_to(in_doubt, largest.shape).reshape(added.shape)[some]
            added[some] = np.where(is_light, found, 0.0)
    return added.reshape(largest.shape)


def _with_one_sample_of_other_fields(d: Description) -> Description:
    """Return the description with batch axes of `FIELDS` only, so that its samples are the samples of the result."""
    changed = {}
    for name in (name for name in VARIABLE_FIELDS if name not in FIELDS):
        values, batch = getattr(d, name), _batch_of(d, name)
        changed[name] = values[(0,) * len(batch)] if values.size else np.zeros(values.shape[len(batch) :])
    return d.replaced(changed)


def _batch_of(d: Description, name: str) -> tuple[int, ...]:
    values = getattr(d, name)
    return values.shape[: values.ndim - len(VARIABLE_FIELDS[name])]


def _spins_freely(d: Description, dofs: Dofs) -> np.ndarray:
    """Whether no constraint changes when a degree of freedom moves (..., nv): its points are on the axis of a rotation.

    This applies to the dofs of revolute and spherical joints of bodies without children, if their constraints have no
    rows of directions.
    """
    last = np.isin(np.arange(dofs.body.size), dofs.last) & (dofs.counts[dofs.body] == 1)
    turns = (np.array(d.dof_types) == "revolute") & (last | (np.array(d.joint_types)[dofs.body] == "spherical"))
    found = turns & ~np.isin(dofs.body, d.parent)
    for c, place in enumerate(d.constraints):
        for body, point in ((place.body_a, d.constraint_point_a), (place.body_b, d.constraint_point_b)):
            here = dofs.body == body
            if place.rows.directions or not place.rows.of_points:
                found = found & ~here
            elif here.any():
                r = point[..., c, :]
                arm = np.linalg.norm(np.cross(d.axis, r[..., None, :]), axis=-1)
                found = found & (~here | (arm <= ON_AXIS * np.linalg.norm(r, axis=-1)[..., None]))
    return found


class _Loops(NamedTuple):
    """Groups of loops that share degrees of freedom.

    `of_dof` (nv,) is the group of each degree of freedom whose motion its constraints change, else -1. `members` are
    the degrees of freedom (nv,) bool of each group that move some of its bodies relative to others.
    """

    of_dof: np.ndarray
    members: list[np.ndarray]


def _loops_of(d: Description, dofs: Dofs) -> _Loops:
    parent = topology_of(d)[TOPOLOGY_PARENT]
    n = parent.size
    moved, members = [], []
    for place in d.constraints:
        ways = np.zeros((2, n), bool)
        for way, body in zip(ways, (place.body_a, place.body_b), strict=True):
            dof = n if body < 0 else int(dofs.last[body])
            while dof < n:
                way[dof] = True
                dof = int(parent[dof])
        own = ways[0] ^ ways[1]
        if place.kind == "coupler":  # one of its joints may carry the other one
            own[[dofs.last[place.body_a], dofs.last[place.body_b]]] = True
        moved.append(ways.any(0))
        members.append(own)
    groups: list[np.ndarray] = []  # (2, nv): members, and all degrees of freedom whose motion changes
    for pair in zip(members, moved, strict=True):
        joined = [group for group in groups if (group[0] & pair[0]).any()]
        groups = [group for group in groups if not (group[0] & pair[0]).any()]
        groups.append(np.logical_or.reduce([np.array(pair), *joined]))
    of_dof = np.full(n, -1)
    for part in (1, 0):
        for number, group in enumerate(groups):
            of_dof[group[part]] = number
    return _Loops(of_dof, [group[0] for group in groups])


def _largest_inertias(d: Description, dofs: Dofs, loops: _Loops) -> np.ndarray:
    """Return the largest inertia in the loops of each degree of freedom, in its units (..., nv); 0 outside of loops."""
    kinds = np.array(d.dof_types)
    armature = d.rotor_inertia * d.gear_ratio**2
    size = np.trace(d.inertia, axis1=-2, axis2=-1) + d.mass * np.square(d.cg).sum(-1)
    numbers = (size, armature, d.constraint_ratio, *_lengths(d))
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in numbers))
    found = np.zeros((*batch, kinds.size))
    for number, own in enumerate(loops.members):
        bodies = np.unique(dofs.body[own])
        length = _length_of(d, dofs, own, bodies)
        slides = own & (kinds == "prismatic")
        turns = own & ~slides
        masses = [d.mass[..., bodies].max(-1), armature[..., slides].max(-1, initial=0.0)]
        moments = [size[..., bodies].max(-1), armature[..., turns].max(-1, initial=0.0)]
        mass, moment = np.maximum(*masses), np.maximum(*moments)
        mass, moment = np.maximum(mass, moment / length**2), np.maximum(moment, mass * length**2)
        here = loops.of_dof == number
        found[..., here] = np.where(kinds[here] == "prismatic", mass[..., None], moment[..., None])
    return found


def _lengths(d: Description) -> tuple[np.ndarray, ...]:
    return tuple(
        np.linalg.norm(x, axis=-1) for x in (d.placement_translation, d.cg, d.constraint_point_a, d.constraint_point_b)
    )


def _length_of(d: Description, dofs: Dofs, own: np.ndarray, bodies: np.ndarray) -> np.ndarray:
    """Return the size of the bodies of a group (...), m: the longest distance within a body; 1 if all are zero.

    A coupler of a rotation and a translation has the length of its ratio.
    """
    placements, centers, points_a, points_b = _lengths(d)
    inner = [body for body in bodies if d.parent[body] >= 0 and own[dofs.last[d.parent[body]]]]
    found = [placements[..., inner].max(-1, initial=0.0), centers[..., bodies].max(-1)]
    for c, place in enumerate(d.constraints):
        for body, points in ((place.body_a, points_a), (place.body_b, points_b)):
            if body in bodies:
                found.append(points[..., c])
        if place.kind == "coupler" and place.body_b in bodies:
            kinds = [d.dof_types[dofs.last[body]] == "prismatic" for body in (place.body_a, place.body_b)]
            if kinds[0] != kinds[1]:
                ratio = np.abs(d.constraint_ratio[..., c])
                found.append(ratio if kinds[1] else 1.0 / np.where(ratio > 0.0, ratio, np.inf))
    length = np.maximum.reduce(np.broadcast_arrays(*found))
    return np.where(length > 0.0, length, 1.0)


def _own_inertias(d: Description, dofs: Dofs) -> np.ndarray:
    """Return lower bounds of the articulated inertias (..., nv): the rotor, and the body of the joint on its own."""
    first, kinds = dofs.velocity_index, np.array(d.dof_types)
    axis, pitch = d.axis[..., first, :], d.pitch[..., first]
    square, along = np.square(d.cg).sum(-1), (axis * d.cg).sum(-1)
    turning = np.einsum("...i,...ij,...j->...", axis, d.inertia, axis) + d.mass * (square - along**2)
    single = np.where(kinds[first] == "prismatic", d.mass, turning + pitch**2 * d.mass)
    least = np.maximum(np.linalg.eigvalsh(d.inertia)[..., 0], 0.0) * np.isin(d.joint_types, INDEPENDENT)
    total = least + d.mass * square
    mass = d.mass * least / np.where(total > 0.0, total, 1.0)
    several = np.where(kinds == "prismatic", mass[..., dofs.body], least[..., dofs.body])
    own = np.where(dofs.counts[dofs.body] > 1, several, single[..., dofs.body])
    return own + d.rotor_inertia * d.gear_ratio**2
