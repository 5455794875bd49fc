"""Bodies whose accelerations no inertia determines, in any position of the mechanism.

The articulated-body algorithm divides by the articulated inertia D of each degree of freedom. D is zero in all
positions where nothing that the joint moves resists: no mass, tensor or rotor, or only a point mass on the axis. As the
determinant of the mass matrix is an analytic function of the positions, it is zero in all of them if it is in one drawn
at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..core.algorithms.aba import ROUND_OFF_FACTOR
from .description import VARIABLE_FIELDS, Description, is_in_water
from .flatten import Dofs, added_matrices, dofs_of

NOISE = ROUND_OFF_FACTOR * np.finfo(np.float64).eps
POSITIONS = 2  # that are drawn: in one, a sound mechanism may be close to a singular position
SAMPLES_AT_ONCE = 1024
MOST_NAMES = 30  # in a message
INDEPENDENT = ("free", "spherical", "planar")  # joints of several degrees of freedom whose motions always differ
#: The fields that an articulated inertia depends on.
INERTIAL_FIELDS = (
    *("placement_rotation", "placement_translation", "axis", "pitch", "rotor_inertia", "gear_ratio"),
    *("mass", "cg", "inertia", "fluid_density", "added_mass", "added_volume"),
)


def dofs_without_inertia(
    description: Description, held: np.ndarray | None = None, resisted: np.ndarray | None = None
) -> np.ndarray:
    """Degrees of freedom whose accelerations are undetermined: (samples, nv), or (1, nv) if samples do not differ.

    `held` (nv,) are those with a prescribed acceleration, and `resisted`, (nv,) or (samples, nv), those that something
    else than inertia resists, such as damping in an implicit step.
    """
    dofs = dofs_of(description)
    nothing = np.zeros((1, dofs.body.size), bool)
    held, resisted = (nothing if given is None else np.atleast_2d(given) for given in (held, resisted))
    varied = {name: values for name in INERTIAL_FIELDS if (values := _of_samples(description, name)) is not None}
    counts = {len(resisted), *map(len, varied.values())}
    count = next(iter(counts - {1}), 1)
    resisted, free = np.broadcast_to(resisted, (count, dofs.body.size)), np.zeros((count, dofs.body.size), bool)
    for start in range(0, count, SAMPLES_AT_ONCE):
        some = slice(start, start + SAMPLES_AT_ONCE)
        fields: dict[str, Any] = {name: values[some] for name, values in varied.items()}
        free[some] = _among_samples(replace(description, **fields), dofs, held, resisted[some])
    return free


def _among_samples(d: Description, dofs: Dofs, held: np.ndarray, resisted: np.ndarray) -> np.ndarray:
    """`dofs_without_inertia` of so few samples that their matrices fit into memory."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            in_doubt = _may_be_free(d, dofs) & ~held & ~resisted
            if not in_doubt.any():
                return in_doubt
            return _free_dofs(d, dofs, held, resisted) & in_doubt
    except np.linalg.LinAlgError:  # products of extreme numbers overflow, in the dynamics too
        return np.zeros_like(resisted)


def bodies_of_dofs(description: Description, free: np.ndarray) -> tuple[str, ...]:
    """Names of the bodies that these degrees of freedom (nv,) move."""
    return tuple(description.body_names[body] for body in np.unique(dofs_of(description).body[free]))


def remedies(name: str, bodies: Sequence[str]) -> str:
    """What to say of a model with bodies without inertia."""
    more = f" and {len(bodies) - MOST_NAMES} more" if len(bodies) > MOST_NAMES else ""
    return (
        f"model {name!r}: no mass, inertia or rotor resists the motion of {list(bodies[:MOST_NAMES])}{more}, so "
        "that forces do not determine accelerations. Give these bodies a mass and an inertia, give their joints a "
        "rotor_inertia (armature), or make the joints fixed"
    )


def _of_samples(description: Description, name: str) -> np.ndarray | None:
    """A field with one axis in front for the samples, (samples, ...); None where they share it."""
    value, axes = getattr(description, name), VARIABLE_FIELDS[name]
    return value.reshape(-1, *value.shape[value.ndim - len(axes) :]) if value.ndim > len(axes) else None


def _may_be_free(d: Description, dofs: Dofs) -> np.ndarray:
    """Degrees of freedom (..., nv) that neither their rotor nor their own body alone resists for certain.

    What the body carries can only add to that.
    """
    first = dofs.velocity_index
    axis, pitch = d.axis[..., first, :], d.pitch[..., first]
    square, along = np.square(d.cg).sum(-1), (axis * d.cg).sum(-1)
    turning = np.einsum("...i,...ij,...j->...", axis, d.inertia, axis) + d.mass * (square - along**2)
    size = np.trace(d.inertia, axis1=-2, axis2=-1) + 2.0 * d.mass * square
    kinds = np.array(d.dof_types)[first]
    sliding = np.where(kinds == "prismatic", 1.0, pitch**2) * d.mass
    firm = np.where(kinds == "prismatic", sliding > 0.0, turning + sliding > NOISE * size)
    several = dofs.counts > 1
    if several.any():
        # the axes of other joints may depend on each other
        independent = np.isin(d.joint_types, INDEPENDENT)
        firm = np.where(several, independent & (d.mass > 0.0) & _is_positive_definite(d.inertia), firm)
    return ~(firm[..., dofs.body] | (d.rotor_inertia * d.gear_ratio**2 > 0.0))


def _is_positive_definite(tensor: np.ndarray) -> np.ndarray:
    """Which symmetric tensors (..., 3, 3) are so beyond round-off: by the signs of their invariants."""
    (a, b, c), (_, e, f), (_, _, i) = np.moveaxis(tensor, (-2, -1), (0, 1))
    trace = a + e + i
    minors = (a * e - b * b) + (a * i - c * c) + (e * i - f * f)
    determinant = a * (e * i - f * f) - b * (b * i - c * f) + c * (b * f - c * e)
    return (trace > 0.0) & (minors > NOISE * trace**2) & (determinant > NOISE * trace**3)


def _free_dofs(d: Description, dofs: Dofs, held: np.ndarray, resisted: np.ndarray) -> np.ndarray:
    """Degrees of freedom (..., nv) whose articulated inertia is zero in all the positions that are drawn.

    The joint of a quaternion is taken for a row of slides and hinges, which moves as it does in almost all positions.
    Slides move as far as the mechanism is large: farther away its inertias would be round-off.
    """
    own = _factors(d)
    free = np.ones(dofs.body.size, bool)
    for q in np.random.default_rng(0).uniform(-np.pi, np.pi, (POSITIONS, dofs.body.size)):
        free = free & _free_dofs_at(q, d, dofs, own, held, resisted)
    return free


def _factors(d: Description) -> np.ndarray:
    """Factors W (..., n, rows, 6) of the bodies' inertias W^T W about their origins, linear before angular."""
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


def _free_dofs_at(
    q: np.ndarray, d: Description, dofs: Dofs, own: np.ndarray, held: np.ndarray, resisted: np.ndarray
) -> np.ndarray:
    """Degrees of freedom (..., nv) whose articulated inertia is round-off at q.

    The articulated-body algorithm (Featherstone 2008, section 7.3) on factors of the inertias, in the bodies' own axes:
    IA - U U^T / D = (W - b w w^T W)^T (W - b w w^T W) with w = W S. As that is a projection, it makes no round-off
    larger, however many bodies without inertia follow each other.
    """
    armature, large = d.rotor_inertia * d.gear_ratio**2 + resisted, _length(d)[..., None]
    carried: list[list[_Articulated]] = [[] for _ in d.parent]
    free: list[np.ndarray] = []
    for i in range(q.size - 1, -1, -1):
        body = dofs.body[i]
        if i == dofs.last[body]:
            found = _together([_Articulated(own[..., body, :, :], _size(own[..., body, :, :])), *carried[body]])
        axis, slides = d.axis[..., i, :], d.dof_types[i] == "prismatic"
        advance = d.pitch[..., i, None] if d.dof_types[i] == "screw" else float(slides)
        travel, turn = advance * axis, axis * (not slides)
        w = (found.factor @ np.concatenate(np.broadcast_arrays(travel, turn), -1)[..., None])[..., 0]
        square = (w * w).sum(-1)
        D = square + armature[..., i]
        firm = NOISE * found.size[0 if slides else 1] < D
        free.append(~firm & ~held[..., i])
        gives_way = firm & (square > 0.0) & ~held[..., i]
        share = np.where(gives_way, 1.0 - np.sqrt(armature[..., i] / np.where(firm, D, 1.0)), 0.0)
        b = share / np.where(square > 0.0, square, 1.0)
        factor = found.factor - (b[..., None] * w)[..., None] * (w[..., None, :] @ found.factor)
        moved = q[i] * large if slides else q[i]
        found = _at_root(_Articulated(factor, found.size), _rotation(turn, q[i]), moved * travel)
        if i == dofs.velocity_index[body] and d.parent[body] >= 0:
            place = d.placement_rotation[..., body, :, :], d.placement_translation[..., body, :]
            carried[d.parent[body]].append(_at_root(found, *place))
    return np.stack(np.broadcast_arrays(*free[::-1]), -1)


def _length(d: Description) -> np.ndarray:
    """How large a mechanism is (...), m: the longest way between two of its joints, or to a centre of mass."""
    longest = [np.linalg.norm(field, axis=-1).max(-1) for field in (d.placement_translation, d.cg)]
    found = np.maximum(*longest)
    return np.where(found > 0.0, found, 1.0)


class _Articulated(NamedTuple):
    """An articulated inertia by its factor (..., rows, 6); and how large it was before joints gave way.

    The size (2, ...), of the translational and of the rotational part, tells inertia from round-off.
    """

    factor: np.ndarray
    size: np.ndarray


def _size(factor: np.ndarray) -> np.ndarray:
    return np.array([np.square(factor[..., k : k + 3]).sum((-2, -1)) for k in (0, 3)])


def _together(parts: list[_Articulated]) -> _Articulated:
    """Inertias at the same point as one."""
    factor, size = parts[0]
    for part in parts[1:]:
        factor = np.asarray(np.linalg.qr(_stacked(factor, part.factor), mode="r"))
        # row by row: only some of the parts may have an axis of samples
        size = np.array([ours + theirs for ours, theirs in zip(size, part.size, strict=True)])
    return _Articulated(factor, size)


def _stacked(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    batch = np.broadcast_shapes(above.shape[:-2], below.shape[:-2])
    return np.concatenate([np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (above, below)], -2)


def _at_root(inertia: _Articulated, rotation: np.ndarray, translation: np.ndarray) -> _Articulated:
    """The inertia in a frame with this pose, in the outer frame: W T with the T of velocities."""
    linear, angular = inertia.factor[..., :3], inertia.factor[..., 3:]
    back = np.swapaxes(rotation, -1, -2)
    linear, angular = linear @ back, angular @ back
    angular = angular - linear @ _cross(translation)
    factor = np.concatenate(np.broadcast_arrays(linear, angular), -1)
    lever = np.sqrt(2.0 / 3.0 * inertia.size[0]) * np.linalg.norm(translation, axis=-1)
    sizes = np.broadcast_arrays(inertia.size[0], (np.sqrt(inertia.size[1]) + lever) ** 2)
    return _Articulated(factor, np.array(sizes))


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotations (..., 3, 3) about unit axes (..., 3), or none about zero (Rodrigues)."""
    K = _cross(axis)
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def _cross(r: np.ndarray) -> np.ndarray:
    x, y, z = np.moveaxis(r, -1, 0)
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*r.shape, 3)
