"""What a mechanism must obey before anything is computed with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ModelError
from .pose import NEARLY_ORTHOGONAL, is_rotation, nearest_rotation, normalized

# Tensors from files carry about seven digits; a violation beyond this share of the trace is an error of the model.
ROUNDING_OF_FILES = 1e-6
# kg m^2: what a file says when it means zero and has been through a calculation.
NOTHING = 1e-18


def check_mass(body_names: Sequence[str], mass: np.ndarray) -> None:
    """Refuse masses (..., n) below zero or not finite."""
    check_not_negative(body_names, "mass", mass)


def check_not_negative(body_names: Sequence[str], what: str, values: np.ndarray) -> None:
    """Refuse numbers (..., n) below zero or not finite."""
    check_finite(body_names, what, values, 0)
    _refuse(body_names, values < 0.0, what + " is {}; expected zero or more", values)


def check_symmetric(body_names: Sequence[str], what: str, matrix: np.ndarray) -> None:
    """Refuse matrices (..., n, m, m) that are not finite or not symmetric."""
    check_finite(body_names, what, matrix, 2)
    half = matrix / 2.0  # so that the difference is within the range
    skew = np.abs(half - np.swapaxes(half, -1, -2)).max((-1, -2))
    _refuse(body_names, skew > 0.5e-9 * np.abs(matrix).max((-1, -2)), what + " {} is not symmetric", matrix)


def check_moments(body_names: Sequence[str], inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Refuse tensors (..., n, 3, 3) with a principal moment below zero; the moments (..., n, 3), and their rounding."""
    check_symmetric(body_names, "inertia", inertia)
    moments = np.linalg.eigvalsh(inertia)
    allowed = (ROUNDING_OF_FILES * np.abs(moments)).sum(-1) + NOTHING  # in this order the sum does not overflow
    _refuse(
        body_names,
        moments[..., 0] < -allowed,
        "inertia has the principal moments {}; expected none below zero (positive semi-definite)",
        moments,
    )
    return moments, allowed


def check_inertia(body_names: Sequence[str], inertia: np.ndarray) -> None:
    """Refuse tensors (..., n, 3, 3) that no distribution of mass has."""
    moments, allowed = check_moments(body_names, inertia)
    _refuse(
        body_names,
        moments[..., 2] > moments[..., 0] + moments[..., 1] + allowed,
        "inertia has the principal moments {}; expected the largest to be at most the sum of the others "
        '(triangle inequality). Correct the tensor, or accept it when building: nonphysical_inertia="warn"',
        moments,
    )


def has_negative_moment(inertia: np.ndarray) -> bool:
    """Whether a tensor (3, 3) has a principal moment below zero, beyond the round-off of files, however small it is."""
    moments = np.linalg.eigvalsh(inertia)
    return bool(moments[0] < -ROUNDING_OF_FILES * np.abs(moments).sum())


def check_axes(joint_names: Sequence[str], axis: np.ndarray) -> np.ndarray:
    """Unit axes (..., nv, 3) of degrees of freedom, from finite ones. Raises ModelError where one is zero."""
    _refuse(joint_names, (axis == 0.0).all(-1), "axis is {}; expected a non-zero vector", axis, owner="joint")
    return normalized(axis)


def check_rotations(body_names: Sequence[str], rotation: np.ndarray) -> np.ndarray:
    """The rotations nearest to matrices (..., n, 3, 3). Raises ModelError where one is no rotation."""
    sentence = f"placement_rotation is {{}}; expected a rotation matrix, orthogonal to {NEARLY_ORTHOGONAL:g}"
    _refuse(body_names, ~is_rotation(rotation), sentence, rotation)
    return nearest_rotation(rotation)


def check_finite(body_names: Sequence[str], what: str, values: np.ndarray, components: int) -> None:
    """Refuse numbers that are not finite; `components` is how many trailing axes one body's value has."""
    bad = ~np.isfinite(values).all(tuple(range(-components, 0))) if components else ~np.isfinite(values)
    _refuse(body_names, bad, what + " is {}; expected finite numbers", values)


def _refuse(names: Sequence[str], bad: np.ndarray, sentence: str, values: np.ndarray, owner: str = "body") -> None:
    """Raise for the first body or joint (and sample) where `bad` (..., n) holds."""
    if not bad.any():
        return
    *sample, which = first = tuple(int(i) for i in np.argwhere(bad)[0])
    where = f" of sample {sample[0] if len(sample) == 1 else tuple(sample)}" if sample else ""
    raise ModelError(f"{owner} {names[which]!r}{where}: " + sentence.format(np.asarray(values[first]).tolist()))
