"""Turn forces between bodies into arrays for the kernels, and compute them for given states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt, real_array
from ..core.forces import bushings, springs
from ..errors import StateError
from ..model.pose import Pose, asymmetry, is_rotation
from .between_bodies import BETWEEN_BODIES, Bushing, SpringDamper, label_of
from .contacts import SphereSphereContact
from .packing import SampleNumbers

if TYPE_CHECKING:
    from ..facade.model import Model

#: Largest difference between symmetric entries of a matrix, and largest negative eigenvalue, relative to its entries.
ROUND_OFF = 1e-12


def flatten_between_bodies(
    model: Model, forces: Sequence[Any], numbers: SampleNumbers
) -> tuple[np.ndarray, np.ndarray]:
    """Add the numbers of springs and bushings to the arrays, and return their codes.

    Returns
    -------
    springs, bushings : (SPRING_ROWS, springs) and (BUSHING_ROWS, bushings) arrays of int
        Both may have no columns. Other forces are left out.

    Raises
    ------
    StateError, ModelError
        If a body does not exist, both bodies are the same, or numbers are invalid.
    """
    of_springs = [_flat_spring(model, force, numbers) for force in forces if isinstance(force, SpringDamper)]
    of_bushings = [_flat_bushing(model, force, numbers) for force in forces if isinstance(force, Bushing)]
    return (
        np.array(of_springs, np.int64).reshape(-1, springs.SPRING_ROWS).T.copy(),
        np.array(of_bushings, np.int64).reshape(-1, bushings.BUSHING_ROWS).T.copy(),
    )


def compute_between_bodies(
    model: Model,
    forces: Sequence[Any],
    batch: tuple[int, ...],
    driver: Callable[..., Any],
    shape: tuple[int, ...],
    q: npt.ArrayLike,
    qd: npt.ArrayLike,
    *,
    rows: int = 0,
    repeats: int = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Call a driver of `drivers.between_bodies` for states (..., nq) and (..., nv).

    Parameters
    ----------
    model : Model
    forces : sequence
        Springs and bushings; other forces are left out.
    batch : tuple
        Shape of the batch for which the numbers of the forces are given.
    driver, shape, q, qd, out
        As for `KernelModel.compute`.
    rows : int
        Rows of working memory that the driver needs besides its result and the numbers of the forces.
    repeats : int
        Number of consecutive states that each sample of the batch has.
    """
    numbers = SampleNumbers(batch)
    codes = flatten_between_bodies(model, forces, numbers)
    given = numbers.rows()
    if given.shape[0] > 1 and repeats > 1:
        given = np.repeat(given, repeats, axis=0)
    scratch = rows + given.shape[1]
    return model.kernel_model.compute(
        driver, shape, ("q", "qd"), (q, qd), scratch=scratch, given=(*codes, given), out=out
    )


def is_between_bodies(force: Any) -> bool:
    """Whether a force acts between two bodies."""
    return isinstance(force, BETWEEN_BODIES)


def _flat_spring(model: Model, spring: SpringDamper, numbers: SampleNumbers) -> tuple[int, int, int, int]:
    what = f"SpringDamper {label_of(spring)}"
    (dof_a, pose_a), (dof_b, pose_b) = bodies_at_ends(model, what, spring)
    if not isinstance(spring.tension_only, bool | np.bool):
        raise StateError(f"{what}: tension_only is {spring.tension_only!r}; expected True or False")
    first = len(numbers.columns)
    for name, point, pose in (("point_a", spring.point_a, pose_a), ("point_b", spring.point_b, pose_b)):
        found = _finite(f"{what}: {name}", point, (3,))
        numbers.add_row(f"{what}: {name}", found @ pose.rotation.T + pose.translation)
    for name in ("stiffness", "damping", "rest_length"):
        numbers.add(f"{what}: {name}", _finite(f"{what}: {name}", getattr(spring, name), ()), least=0.0)
    return dof_a, dof_b, first, int(spring.tension_only)


def _flat_bushing(model: Model, bushing: Bushing, numbers: SampleNumbers) -> tuple[int, int, int]:
    what = f"Bushing {label_of(bushing)}"
    (dof_a, body_a), (dof_b, body_b) = bodies_at_ends(model, what, bushing)
    first = len(numbers.columns)
    for name, given, of_body in (("pose_a", bushing.pose_a, body_a), ("pose_b", bushing.pose_b, body_b)):
        pose = of_body @ _pose(f"{what}: {name}", given)
        numbers.add_row(f"{what}: {name}", pose.translation)
        numbers.add_row(f"{what}: {name}", pose.rotation.reshape(*pose.rotation.shape[:-2], 9))
    damping = np.zeros((6, 6)) if bushing.damping is None else bushing.damping
    for name, matrix in (("stiffness", bushing.stiffness), ("damping", damping)):
        found = _dissipative(f"{what}: {name}", matrix)
        numbers.add_row(f"{what}: {name}", found.reshape(*found.shape[:-2], 36))
    return dof_a, dof_b, first


def bodies_at_ends(
    model: Model, what: str, force: SpringDamper | Bushing | SphereSphereContact
) -> list[tuple[int, Pose]]:
    """Return the last dof of each body (nv for the world), and the pose of its frame in the axes of the body."""
    found = []
    for name, body in (("body_a", force.body_a), ("body_b", force.body_b)):
        if body is None:
            found.append((-1, Pose()))
            continue
        if not isinstance(body, str):
            raise StateError(f"{what}: {name} is {excerpt(body)}; expected the name of a body, or None for the world")
        frame = model.kernel_model.frame(body)
        found.append((frame.body, frame.pose))
    if found[0][0] == found[1][0]:
        body_name = "the world" if found[0][0] < 0 else f"body {model.body_names[found[0][0]]!r}"
        raise StateError(f"{what}: both ends are fixed to {body_name}; expected two different bodies")
    return [(model.nv if i < 0 else int(model.kernel_model.dofs.last[i]), pose) for i, pose in found]


def _finite(what: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    found = real_array(what, value, StateError)
    if found.shape[max(0, found.ndim - len(shape)) :] != shape:
        expected = ", ".join(map(str, shape))
        raise StateError(f"{what} has shape {found.shape}; expected {shape} or (..., {expected})")
    if not np.isfinite(found).all():
        raise StateError(f"{what} is {excerpt(found.tolist())}; expected finite numbers")
    return found


def _pose(what: str, pose: Pose | None) -> Pose:
    if pose is None:
        return Pose()
    if not isinstance(pose, Pose):
        raise StateError(f"{what} is {excerpt(pose)}; expected a Pose")
    _finite(f"{what}: translation", pose.translation, (3,))
    if not is_rotation(_finite(f"{what}: rotation", pose.rotation, (3, 3))).all():
        raise StateError(f"{what}: rotation is {excerpt(pose.rotation.tolist())}; expected rotation matrices")
    return pose


def _dissipative(what: str, matrix: npt.ArrayLike) -> np.ndarray:
    """Return symmetric matrices without negative eigenvalues; raise StateError for others."""
    found = _finite(what, matrix, (6, 6))
    allowed = ROUND_OFF * np.abs(found).max((-1, -2), initial=0.0)
    skew = np.abs(found - found.mT).max((-1, -2)) > allowed
    if skew.any():
        raise StateError(f"{what} {asymmetry(found[skew][0] if found.ndim > 2 else found)}")
    found = (found + found.mT) / 2
    least = np.linalg.eigvalsh(found)[..., 0]
    if (least < -allowed).any():
        raise StateError(
            f"{what} has the eigenvalue {float(least.min()):g}; expected a positive semidefinite matrix, without "
            "negative eigenvalues"
        )
    return found
