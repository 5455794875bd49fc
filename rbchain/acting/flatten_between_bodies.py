"""Arrays of the springs and bushings between bodies, and the quantities that a model computes with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt
from ..core.forces import bushings, springs
from ..core.tree.layout import TOPOLOGY_COORDINATE
from ..drivers import between_bodies as drivers
from ..errors import ArgumentError
from ..model.pose import Pose, asymmetry, is_rotation
from .between_bodies import Bushing, SpringDamper, finite_numbers, is_between_bodies
from .packing import SampleNumbers

if TYPE_CHECKING:
    from ..facade.model import Model
    from .sphere_contacts import SphereSphereContact

#: Largest difference between symmetric entries of a matrix, and largest negative eigenvalue, relative to its entries.
ROUND_OFF = 1e-12


def flatten_between_bodies(
    model: Model, forces: Sequence[Any], numbers: SampleNumbers
) -> tuple[np.ndarray, np.ndarray]:
    """Add the numbers of springs and bushings to the arrays, and return their codes.

    Returns
    -------
    springs, bushings : (SPRING_ROWS, springs) and (BUSHING_ROWS, bushings) arrays of int
        Both may have no columns. Other forces are ignored.

    Raises
    ------
    ArgumentError, ModelError
        If a body does not exist, both bodies are the same, or values are invalid.
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
    states: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    repeats: int = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Call a driver of `drivers.between_bodies` for states, (..., nq) and (..., nv) arrays.

    Parameters
    ----------
    model : Model
    forces : sequence
        Springs and bushings; other forces are ignored.
    batch : tuple
        Shape of the batch for which the numbers of the forces are given.
    driver, shape, states, out
        As for `KernelModel.compute`.
    repeats : int
        Number of consecutive states that each sample of the batch has.
    """
    numbers = SampleNumbers(batch)
    codes = flatten_between_bodies(model, forces, numbers)
    given = numbers.rows()
    if given.shape[0] > 1 and repeats > 1:
        given = np.repeat(given, repeats, axis=0)
    sums = 6 * (model.nv + 1) if driver is drivers.wrenches_between_bodies else 0
    return model.kernel_model.compute(
        driver, shape, ("q", "qd"), states, scratch=sums + given.shape[1], given=(*codes, given), out=out
    )


def _flat_spring(model: Model, spring: SpringDamper, numbers: SampleNumbers) -> tuple[int, int, int, int]:
    what = spring.label()
    (dof_a, pose_a), (dof_b, pose_b) = bodies_at_ends(model, what, spring)
    first = len(numbers.columns)
    for name, pose in (("point_a", pose_a), ("point_b", pose_b)):
        found = spring.numeric_field(name).checked(what, getattr(spring, name))
        numbers.add_row(f"{what}: {name}", found @ pose.rotation.T + pose.translation)
    for name in ("stiffness", "damping", "rest_length"):
        numbers.add_field(what, spring, name)
    return dof_a, dof_b, first, int(spring.tension_only)


def _flat_bushing(model: Model, bushing: Bushing, numbers: SampleNumbers) -> tuple[int, int, int, int]:
    what = bushing.label()
    (dof_a, body_a), (dof_b, body_b) = bodies_at_ends(model, what, bushing)
    first = len(numbers.columns)
    for name, given, of_body in (("pose_a", bushing.pose_a, body_a), ("pose_b", bushing.pose_b, body_b)):
        pose = of_body @ _pose(f"{what}: {name}", given)
        numbers.add_row(f"{what}: {name}", pose.translation)
        numbers.add_row(f"{what}: {name}", pose.rotation.reshape(*pose.rotation.shape[:-2], 9))
    damping = np.zeros((6, 6)) if bushing.damping is None else bushing.damping
    for name, matrix in (("stiffness", bushing.stiffness), ("damping", damping)):
        found = _dissipative(f"{what}: {name}", bushing.numeric_field(name).checked(what, matrix))
        if bushing.free_axis and np.any(found[..., 5, :]):
            raise ArgumentError(
                f"{what}: the last row of its {name} is {excerpt(found[..., 5, :].tolist())}; expected zeros, because "
                "it turns freely about its z axis. Set free_axis to False if it resists this rotation"
            )
        numbers.add_row(f"{what}: {name}", found.reshape(*found.shape[:-2], 36))
    return dof_a, dof_b, first, int(bushing.free_axis)


def bodies_at_ends(
    model: Model, what: str, force: SpringDamper | Bushing | SphereSphereContact
) -> list[tuple[int, Pose]]:
    """Return the last dof of each body (nv for the world), and the pose of its frame in the axes of the body."""
    found = []
    for name in (force.frame_a, force.frame_b):
        if name is None:
            found.append((-1, Pose()))
            continue
        frame = model.kernel_model.frame(name)
        found.append((frame.body, frame.pose))
    if found[0][0] == found[1][0]:
        body_name = "the world" if found[0][0] < 0 else f"body {model.body_names[found[0][0]]!r}"
        raise ArgumentError(f"{what}: both ends are fixed to {body_name}; expected two different bodies")
    return [(model.nv if i < 0 else int(model.kernel_model.dofs.last[i]), pose) for i, pose in found]


def elastic_energy(model: Model, forces: Sequence[Any], q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Compute the elastic energy at positions q (..., times, nq), as (..., times), J.

    Joint springs, elastic stops, and springs and bushings between bodies store it.
    """
    energy = elastic_energy_of_joints(model, q)
    if not any(is_between_bodies(force) for force in forces):
        return energy
    driver, repeats, batch = drivers.elastic_energy, states_of_sample(model, q), q.shape[:-2]
    several = model[..., None]
    return energy + compute_between_bodies(several, forces, batch, driver, (1,), (q, qd), repeats=repeats)[..., 0]


def elastic_energy_of_joints(model: Model, q: np.ndarray) -> np.ndarray:
    """Compute the elastic energy of joint springs and stops at positions q (..., times, nq), as (..., times), J.

    `core.forces.passive` computes the forces.
    """
    fields = ("stiffness", "cubic_stiffness", "rest_position", "limit_stiffness", "stop_lower", "stop_upper")
    k, k3, rest, k_stop, lower, upper = (getattr(model, name)[..., None, :].astype(q.dtype) for name in fields)
    position = q[..., model.kernel_model.topology[TOPOLOGY_COORDINATE]]
    squared = (position - rest) ** 2
    depth = np.maximum(lower - position, 0.0) + np.maximum(position - upper, 0.0)
    return (0.5 * k * squared + 0.25 * k3 * squared**2 + 0.5 * k_stop * depth**2).sum(-1)


def states_of_sample(model: Model, q: np.ndarray) -> int:
    """Return how many consecutive states a driver receives for each sample, for positions q (..., times, nq).

    The states of a varied model are passed to drivers at one time after the other.
    """
    return 1 if model.batch_shape else q.shape[-2]


def _pose(what: str, pose: Pose | None) -> Pose:
    if pose is None:
        return Pose()
    if not isinstance(pose, Pose):
        raise ArgumentError(f"{what} is {excerpt(pose)}; expected a Pose")
    finite_numbers(f"{what}: translation", pose.translation, (3,))
    if not is_rotation(finite_numbers(f"{what}: rotation", pose.rotation, (3, 3))).all():
        raise ArgumentError(f"{what}: rotation is {excerpt(pose.rotation.tolist())}; expected rotation matrices")
    return pose


def _dissipative(what: str, found: np.ndarray) -> np.ndarray:
    """Return symmetric matrices without negative eigenvalues; raise ArgumentError for others."""
    allowed = ROUND_OFF * np.abs(found).max((-1, -2), initial=0.0)
    skew = np.abs(found - found.mT).max((-1, -2)) > allowed
    if skew.any():
        raise ArgumentError(f"{what} {asymmetry(found[skew][0] if found.ndim > 2 else found)}")
    found = (found + found.mT) / 2
    least = np.linalg.eigvalsh(found)[..., 0]
    if (least < -allowed).any():
        raise ArgumentError(
            f"{what} has the eigenvalue {float(least.min()):g}; expected a positive semidefinite matrix, without "
            "negative eigenvalues"
        )
    return found
