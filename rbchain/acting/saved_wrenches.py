"""Compute the wrenches on bodies and the elastic energy at the saved states of a trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.tree.layout import TOPOLOGY_COORDINATE
from ..drivers import between_bodies
from .flatten_between_bodies import compute_between_bodies, is_between_bodies
from .signals import three_signals
from .wrenches import Force, Wrench

if TYPE_CHECKING:
    from ..facade.model import Model


def wrenches_on_bodies(
    model: Model, forces: Sequence[Force], q: np.ndarray, qd: np.ndarray, t: np.ndarray
) -> np.ndarray:
    """Compute the wrenches on bodies at positions q (..., times, nq), velocities qd and times t (times,).

    Returns
    -------
    (..., times, n, 6) array, N and N m
        Force, then moment about the origin of the body's frame, in world axes, as methods of `Model` take them.
    """
    found = np.zeros((*q.shape[:-1], model.n_bodies, 6))
    origins = model.body_poses(q).translation
    for wrench in forces:
        if not isinstance(wrench, Wrench):
            continue
        i, pose = model.kernel_model.frame(wrench.frame).body, model.frame_poses(q, wrench.frame)
        wrench_at = [
            np.stack([np.broadcast_to(signal(t), q.shape[:-1]) for signal in three_signals(name, given)], -1)
            for name, given in (("force", wrench.force), ("moment", wrench.moment))
        ]
        if wrench.axes == "body":
            wrench_at = [np.einsum("...ij,...j->...i", pose.rotation, x) for x in wrench_at]
        point = np.asarray(wrench.point, np.float64)
        point = point[..., None, :] if point.ndim > 1 else point  # one for each sample, the same at all times
        arm = np.einsum("...ij,...j->...i", pose.rotation, point) + pose.translation - origins[..., i, :]
        found[..., i, :3] += wrench_at[0]
        found[..., i, 3:] += wrench_at[1] + np.cross(arm, wrench_at[0])
    if any(is_between_bodies(force) for force in forces):
        shape, rows = (model.n_bodies, 6), 6 * (model.nv + 1)
        driver = between_bodies.wrenches_between_bodies
        repeats = states_of_sample(model, q)
        found += compute_between_bodies(model, forces, q.shape[:-2], driver, shape, q, qd, rows=rows, repeats=repeats)
    return found


def elastic_energy(model: Model, forces: Sequence[Force], q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Compute the elastic energy at positions q (..., times, nq), as (..., times), J.

    It is that of joint springs and elastic stops, and of springs and bushings between bodies.
    """
    energy = elastic_energy_of_joints(model, q)
    if not any(is_between_bodies(force) for force in forces):
        return energy
    driver, repeats = between_bodies.elastic_energy, states_of_sample(model, q)
    return energy + compute_between_bodies(model, forces, q.shape[:-2], driver, (1,), q, qd, repeats=repeats)[..., 0]


def elastic_energy_of_joints(model: Model, q: np.ndarray) -> np.ndarray:
    """Compute the elastic energy of joint springs and stops at positions q (..., times, nq), as (..., times), J.

    The forces are those of `core.forces.passive`.
    """
    fields = ("stiffness", "cubic_stiffness", "rest_position", "limit_stiffness", "lower_limit", "upper_limit")
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
