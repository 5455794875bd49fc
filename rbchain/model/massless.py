"""Detection of bodies without inertia: their accelerations are undetermined in every position of the mechanism.

The articulated-body algorithm divides by the articulated inertia D of each degree of freedom. D is zero in all
positions if the joint moves neither mass nor inertia nor a rotor, or only a point mass on its axis. The determinant of
the mass matrix is an analytic function of the positions. So if it is zero in a random position, it is zero in all
positions, with probability one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.algorithms.aba import ROUND_OFF_FACTOR
from .description import Description, is_in_water
from .parameters import added_matrices, batch_shapes_of
from .topology import Dofs, dofs_of

NOISE = ROUND_OFF_FACTOR * np.finfo(np.float64).eps
RANDOM_POSITIONS = 2  # a single one may be close to a singular configuration of a valid mechanism
SAMPLES_AT_ONCE = 1024
MAX_NAMES = 30  # in a message
INDEPENDENT = ("free", "spherical", "planar")  # joints whose degrees of freedom are independent in every position
#: The fields that articulated inertias depend on.
INERTIAL_FIELDS = (
    *("placement_rotation", "placement_translation", "axis", "pitch", "rotor_inertia", "gear_ratio"),
    *("mass", "cg", "inertia", "fluid_density", "added_mass", "added_volume"),
)


class OwnInertia(NamedTuple):
    """Terms of the inertias of single bodies about their joints, which do not depend on the masses.

    Attributes
    ----------
    turning, trace : (..., n) arrays, kg m^2
        Moments of inertia about the axes through the centers of mass, and traces of the tensors.
    lever, square : (..., n) arrays, m^2
        Squares of the distances of the centers of mass from the axes and from the origins.
    sliding : (..., n) array, 1 or m^2/rad^2
        Factor of the mass: 1 of a prismatic joint, the square of the pitch of others.
    is_prismatic : (n,) array of bool
    resists : (..., n) array of bool, or None
        Whether the tensors of joints with several degrees of freedom resist all of them; None without such joints.
    has_rotor : (..., nv) array of bool
    """

    turning: np.ndarray
    trace: np.ndarray
    lever: np.ndarray
    square: np.ndarray
    sliding: np.ndarray
    is_prismatic: np.ndarray
    resists: np.ndarray | None
    has_rotor: np.ndarray


def own_inertia(d: Description) -> OwnInertia:
    """Return the terms of the inertias of the bodies of a description."""
    dofs = dofs_of(d)
    first = dofs.velocity_index
    axis, pitch = d.axis[..., first, :], d.pitch[..., first]
    square, along = np.square(d.cg).sum(-1), (axis * d.cg).sum(-1)
    is_prismatic = np.array(d.dof_types)[first] == "prismatic"
    resists = None
    if (dofs.counts > 1).any():
        # the axes of composite and universal joints may be linearly dependent
        resists = np.isin(d.joint_types, INDEPENDENT) & _is_positive_definite(d.inertia)
    return OwnInertia(
        turning=np.einsum("...i,...ij,...j->...", axis, d.inertia, axis),
        trace=np.trace(d.inertia, axis1=-2, axis2=-1),
        lever=square - along**2,
        square=square,
        sliding=np.where(is_prismatic, 1.0, pitch**2),
        is_prismatic=is_prismatic,
        resists=resists,
        has_rotor=d.rotor_inertia * d.gear_ratio**2 > 0.0,
    )


def dofs_without_inertia(
    description: Description,
    held: np.ndarray | None = None,
    resisted: np.ndarray | None = None,
    own: OwnInertia | None = None,
) -> np.ndarray:
    """Return which degrees of freedom have undetermined accelerations: (samples, nv), or (1, nv) for equal samples.

    `held` (nv,) marks degrees of freedom with a prescribed acceleration. `resisted`, (nv,) or (samples, nv), marks
    degrees of freedom that something other than inertia resists, such as damping in an implicit step. `own` is the
    result of `own_inertia`, if all samples share it.
    """
    dofs = dofs_of(description)
    nothing = np.zeros((1, dofs.body.size), bool)
    held, resisted = (nothing if given is None else np.atleast_2d(given) for given in (held, resisted))
    varied: dict[str, np.ndarray] = {}
    for name, batch in batch_shapes_of(description, INERTIAL_FIELDS).items():
        values = getattr(description, name)
        varied[name] = values.reshape(-1, *values.shape[len(batch) :])
    counts = {len(resisted), *map(len, varied.values())}
    count = next(iter(counts - {1}), 1)
    resisted, free = np.broadcast_to(resisted, (count, dofs.body.size)), np.zeros((count, dofs.body.size), bool)
    for start in range(0, count, SAMPLES_AT_ONCE):
        some = slice(start, start + SAMPLES_AT_ONCE)
        fields: dict[str, Any] = {name: values[some] for name, values in varied.items()}
        free[some] = _among_samples(description.replaced(fields), dofs, held, resisted[some], own)
    return free


def _among_samples(
    d: Description, dofs: Dofs, held: np.ndarray, resisted: np.ndarray, own: OwnInertia | None
) -> np.ndarray:
    """`dofs_without_inertia` of at most SAMPLES_AT_ONCE samples, which limits the memory for their matrices."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            in_doubt = _may_be_free(d.mass, own_inertia(d) if own is None else own, dofs) & ~held & ~resisted
            if not in_doubt.any():
                return in_doubt
            return _free_dofs(d, dofs, held, resisted) & in_doubt
    except np.linalg.LinAlgError:  # extreme numbers overflow; the dynamics then return NaN
        return np.zeros_like(resisted)


def bodies_of_dofs(description: Description, free: np.ndarray) -> tuple[str, ...]:
    """Names of the bodies that the marked degrees of freedom (nv,) move."""
    return tuple(description.body_names[body] for body in np.unique(dofs_of(description).body[free]))


def remedies(name: str, bodies: Sequence[str]) -> str:
    """Message about bodies without inertia, with possible corrections."""
    more = f" and {len(bodies) - MAX_NAMES} more" if len(bodies) > MAX_NAMES else ""
    return (
        f"model {name!r}: no mass, inertia or rotor resists the motion of {list(bodies[:MAX_NAMES])}{more}, so "
        "forces do not determine their accelerations. Give these bodies a mass and an inertia, give their joints a "
        "rotor_inertia (armature), or use fixed joints"
    )


def _may_be_free(mass: np.ndarray, own: OwnInertia, dofs: Dofs) -> np.ndarray:
    """Degrees of freedom (..., nv) that may be without inertia, judged by their rotor and their own body only.

    The bodies of the subtree can only add inertia.
    """
    turning, sliding = own.turning + mass * own.lever, own.sliding * mass
    size = own.trace + 2.0 * mass * own.square
    resists = np.where(own.is_prismatic, sliding > 0.0, turning + sliding > NOISE * size)
    if own.resists is not None:
        resists = np.where(dofs.counts > 1, own.resists & (mass > 0.0), resists)
    return ~(resists[..., dofs.body] | own.has_rotor)


def _is_positive_definite(tensor: np.ndarray) -> np.ndarray:
    """Whether symmetric tensors (..., 3, 3) are positive definite beyond round-off, by their invariants."""
    (a, b, c), (_, e, f), (_, _, i) = np.moveaxis(tensor, (-2, -1), (0, 1))
    trace = a + e + i
    minors = (a * e - b * b) + (a * i - c * c) + (e * i - f * f)
    determinant = a * (e * i - f * f) - b * (b * i - c * f) + c * (b * f - c * e)
    return (trace > 0.0) & (minors > NOISE * trace**2) & (determinant > NOISE * trace**3)


def _free_dofs(d: Description, dofs: Dofs, held: np.ndarray, resisted: np.ndarray) -> np.ndarray:
    """Degrees of freedom (..., nv) whose articulated inertia is zero in all random positions.

    Joints with a quaternion are treated as prismatic and revolute joints in series, which allow the same motions in
    almost all positions. Translations are scaled by the size of the mechanism; if they were much larger, its
    inertias would be lost in round-off.
    """
    own = inertia_factors(d)
    free = np.ones(dofs.body.size, bool)
    for q in random_positions(dofs.body.size):
        D, round_off = _articulated_inertias_at(q, d, dofs, own, held, resisted)
        free = free & ~(round_off < D) & ~held
    return free


def random_positions(count: int) -> np.ndarray:
    """Return the positions (RANDOM_POSITIONS, count) at which inertias are computed; always the same ones."""
    return np.random.default_rng(0).uniform(-np.pi, np.pi, (RANDOM_POSITIONS, count))


def least_articulated_inertias(d: Description) -> np.ndarray:
    """Return the smaller articulated inertia of each degree of freedom in the random positions; 0 for round-off.

    The shape is (samples, nv), or (nv,) for equal samples.
    """
    dofs, own, nothing = dofs_of(d), inertia_factors(d), np.zeros(len(d.dof_types), bool)
    found = [_articulated_inertias_at(q, d, dofs, own, nothing, nothing) for q in random_positions(nothing.size)]
    return np.minimum.reduce([np.where(round_off < D, D, 0.0) for D, round_off in found])


def inertia_factors(d: Description) -> np.ndarray:
    """Return factors W (..., n, rows, 6) of the inertias W^T W of the bodies about their origins, linear first."""
    moments, axes = np.linalg.eigh(d.inertia)
    turning = np.sqrt(np.maximum(moments, 0.0))[..., None] * np.swapaxes(axes, -1, -2)
    root = np.sqrt(d.mass)[..., None, None]
    blocks = (root * np.eye(3), -root * _cross(d.cg), np.zeros_like(turning), turning)
    sliding, lever, none, turning = np.broadcast_arrays(*blocks)
    rows = np.concatenate([np.concatenate([sliding, lever], -1), np.concatenate([none, turning], -1)], -2)
    if not is_in_water(d):
        return rows
    masses, modes = np.linalg.eigh(added_matrices(d))
    added = np.sqrt(np.maximum(masses, 0.0))[..., None] * np.swapaxes(modes, -1, -2)
    return _stacked(rows, added)


def _articulated_inertias_at(
    q: np.ndarray, d: Description, dofs: Dofs, own: np.ndarray, held: np.ndarray, resisted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Articulated inertias of the degrees of freedom (..., nv) at q, and the largest ones that are round-off.

    Articulated-body algorithm (Featherstone 2008, section 7.3) on factors of the inertias, in body axes:

        IA - U U^T / D = (W - b w w^T W)^T (W - b w w^T W)    with w = W S

    This is a projection. It does not amplify round-off, even for many bodies without inertia in series.
    """
    armature, large = d.rotor_inertia * d.gear_ratio**2 + resisted, _length(d)[..., None]
    carried: list[list[_Articulated]] = [[] for _ in d.parent]
    found_all: list[tuple[np.ndarray, np.ndarray]] = []
    for i in range(q.size - 1, -1, -1):
        body = dofs.body[i]
        if i == dofs.last[body]:
            found = _sum([_Articulated(own[..., body, :, :], _size(own[..., body, :, :])), *carried[body]])
        axis, slides = d.axis[..., i, :], d.dof_types[i] == "prismatic"
        advance = d.pitch[..., i, None] if d.dof_types[i] == "screw" else float(slides)
        travel, turn = advance * axis, axis * (not slides)
        w = (found.factor @ np.concatenate(np.broadcast_arrays(travel, turn), -1)[..., None])[..., 0]
        square = (w * w).sum(-1)
        D = square + armature[..., i]
        round_off = NOISE * found.size[0 if slides else 1]
        resists = round_off < D
        found_all.append((D, round_off))
        moves = resists & (square > 0.0) & ~held[..., i]
        share = np.where(moves, 1.0 - np.sqrt(armature[..., i] / np.where(resists, D, 1.0)), 0.0)
        b = share / np.where(square > 0.0, square, 1.0)
        factor = found.factor - (b[..., None] * w)[..., None] * (w[..., None, :] @ found.factor)
        moved = q[i] * large if slides else q[i]
        found = _at_root(_Articulated(factor, found.size), _rotation(turn, q[i]), moved * travel)
        if i == dofs.velocity_index[body] and d.parent[body] >= 0:
            place = d.placement_rotation[..., body, :, :], d.placement_translation[..., body, :]
            carried[d.parent[body]].append(_at_root(found, *place))
    inertias, limits = ([pair[part] for pair in found_all[::-1]] for part in range(2))
    return np.stack(np.broadcast_arrays(*inertias), -1), np.stack(np.broadcast_arrays(*limits), -1)


def _length(d: Description) -> np.ndarray:
    """Size of the mechanism (...), m: the largest distance between consecutive joints, or of a center of mass."""
    longest = [np.linalg.norm(field, axis=-1).max(-1) for field in (d.placement_translation, d.cg)]
    found = np.maximum(*longest)
    return np.where(found > 0.0, found, 1.0)


class _Articulated(NamedTuple):
    """An articulated inertia as its factor (..., rows, 6), and the size (2, ...) of its linear and angular parts.

    The size is the size of the rigid inertia, before the joints of the subtree were taken into account. It sets the
    threshold for round-off.
    """

    factor: np.ndarray
    size: np.ndarray


def _size(factor: np.ndarray) -> np.ndarray:
    return np.array([np.square(factor[..., k : k + 3]).sum((-2, -1)) for k in (0, 3)])


def _sum(parts: list[_Articulated]) -> _Articulated:
    """Sum of inertias about the same point."""
    factor, size = parts[0]
    for part in parts[1:]:
        factor = np.asarray(np.linalg.qr(_stacked(factor, part.factor), mode="r"))
        # row by row, because only some of the parts may have an axis of samples
        size = np.array([ours + theirs for ours, theirs in zip(size, part.size, strict=True)])
    return _Articulated(factor, size)


def _stacked(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    batch = np.broadcast_shapes(above.shape[:-2], below.shape[:-2])
    return np.concatenate([np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (above, below)], -2)


def _at_root(inertia: _Articulated, rotation: np.ndarray, translation: np.ndarray) -> _Articulated:
    """Transform an inertia from a frame with this pose to the outer frame: W T, where T transforms velocities."""
    linear, angular = inertia.factor[..., :3], inertia.factor[..., 3:]
    back = np.swapaxes(rotation, -1, -2)
    linear, angular = linear @ back, angular @ back
    angular = angular - linear @ _cross(translation)
    factor = np.concatenate(np.broadcast_arrays(linear, angular), -1)
    lever = np.sqrt(2.0 / 3.0 * inertia.size[0]) * np.linalg.norm(translation, axis=-1)
    sizes = np.broadcast_arrays(inertia.size[0], (np.sqrt(inertia.size[1]) + lever) ** 2)
    return _Articulated(factor, np.array(sizes))


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation matrices (..., 3, 3) about unit axes (..., 3) by Rodrigues' formula; the identity for a zero axis."""
    K = _cross(axis)
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def _cross(r: np.ndarray) -> np.ndarray:
    x, y, z = np.moveaxis(r, -1, 0)
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*r.shape, 3)
