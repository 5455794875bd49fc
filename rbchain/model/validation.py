"""Checks of the numbers of a mechanism; each raises a ModelError that names the body or joint, and the sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import ModelError
from .pose import NEARLY_ORTHOGONAL, asymmetry, is_rotation, nearest_rotation, normalized

# Tensors from files have about seven digits. A violation above this fraction of the trace is an error of the model.
ROUND_OFF_OF_FILES = 1e-6
# kg m^2; files contain such values instead of zero, as round-off of earlier calculations
NEGLIGIBLE_INERTIA = 1e-18
NEGLIGIBLE_DISTANCE = 1e-9  # m


@contextmanager
def naming(where: str | Path) -> Iterator[None]:
    """Put the name of a file, or of one of its parts, before the message of a ModelError."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None


def check_mass(body_names: Sequence[str], mass: np.ndarray) -> None:
    """Check that masses (..., n) are finite and not negative."""
    check_not_negative(body_names, "mass", mass)


def check_not_negative(body_names: Sequence[str], what: str, values: np.ndarray) -> None:
    """Check that numbers (..., n) are finite and not negative."""
    check_finite(body_names, what, values, 0)
    _refuse(body_names, values < 0.0, what + " is {}; expected zero or more", values)


def check_symmetric(body_names: Sequence[str], what: str, matrix: np.ndarray) -> None:
    """Check that matrices (..., n, m, m) are finite and symmetric."""
    check_finite(body_names, what, matrix, 2)
    half = matrix / 2.0  # so that differences do not overflow
    skew = np.abs(half - np.swapaxes(half, -1, -2)).max((-1, -2))
    bad = skew > 0.5e-9 * np.abs(matrix).max((-1, -2))
    if bad.any():
        first = matrix[tuple(np.argwhere(bad)[0])]
        _refuse(body_names, bad, f"{what} {asymmetry(first)}", matrix)


def check_moments(body_names: Sequence[str], inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Check that tensors (..., n, 3, 3) have no negative principal moment.

    Returns the principal moments (..., n, 3) and the tolerance (..., n) for their round-off.
    """
    check_symmetric(body_names, "inertia", inertia)
    moments = np.linalg.eigvalsh(inertia)
    # multiplied before the sum, which could overflow otherwise
    tolerance = (ROUND_OFF_OF_FILES * np.abs(moments)).sum(-1) + NEGLIGIBLE_INERTIA
    _refuse(
        body_names,
        moments[..., 0] < -tolerance,
        "inertia has the principal moments {}; expected none below zero (positive semi-definite). Correct the tensor",
        moments,
    )
    return moments, tolerance


def check_inertia(body_names: Sequence[str], inertia: np.ndarray) -> None:
    """Check that tensors (..., n, 3, 3) are physically possible: moments >= 0 that obey the triangle inequality."""
    moments, tolerance = check_moments(body_names, inertia)
    _refuse(
        body_names,
        moments[..., 2] > moments[..., 0] + moments[..., 1] + tolerance,
        "inertia has the principal moments {}; expected the largest to be at most the sum of the other two "
        '(triangle inequality). Correct the tensor, or build the model with nonphysical_inertia="warn" to accept it',
        moments,
    )


def has_negative_moment(mass: float, inertia: np.ndarray) -> bool:
    """Whether the tensor (3, 3) of a body of any size has a negative principal moment, beyond the round-off of files.

    Moments of `mass` at a distance of 1 nm are round-off, even if all moments are that small.
    """
    moments = np.linalg.eigvalsh(inertia)
    return bool(moments[0] < -ROUND_OFF_OF_FILES * np.abs(moments).sum() - NEGLIGIBLE_DISTANCE**2 * mass)


def check_axes(joint_names: Sequence[str], axis: np.ndarray) -> np.ndarray:
    """Scale finite axes (..., nv, 3) of degrees of freedom to length 1, after a check that none is zero."""
    _refuse(joint_names, (axis == 0.0).all(-1), "axis is {}; expected a non-zero vector", axis, owner="joint")
    return normalized(axis)


def check_rotations(
    names: Sequence[str], rotation: np.ndarray, what: str = "placement_rotation", owner: str = "body"
) -> np.ndarray:
    """Check that matrices (..., n, 3, 3) are rotations within `NEARLY_ORTHOGONAL`, and return the nearest rotations."""
    sentence = (
        f"{what} is {{}}; expected a rotation matrix, orthogonal to within {NEARLY_ORTHOGONAL:g} and with determinant 1"
    )
    _refuse(names, ~is_rotation(rotation), sentence, rotation, owner)
    return nearest_rotation(rotation)


def check_finite(names: Sequence[str], what: str, values: np.ndarray, components: int, owner: str = "body") -> None:
    """Check that numbers are finite; `components` is the number of trailing axes of the value of one body."""
    bad = ~np.isfinite(values).all(tuple(range(-components, 0))) if components else ~np.isfinite(values)
    _refuse(names, bad, what + " is {}; expected finite numbers", values, owner)


def _refuse(names: Sequence[str], bad: np.ndarray, sentence: str, values: np.ndarray, owner: str = "body") -> None:
    """Raise a ModelError for the first body or joint (and sample) for which `bad` (..., n) is true."""
    if not bad.any():
        return
    *sample, which = first = tuple(int(i) for i in np.argwhere(bad)[0])
    where = f" of sample {sample[0] if len(sample) == 1 else tuple(sample)}" if sample else ""
    raise ModelError(f"{owner} {names[which]!r}{where}: " + sentence.format(np.asarray(values[first]).tolist()))
