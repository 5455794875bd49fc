"""Positions of everything that the viewer, films and images show, in each frame."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..common.lock_free import cached_property
from ..errors import ArgumentError
from ..plots.motions import warn_of_few_times
from ..plots.sketch import ends_of
from .camera import Camera
from .shapes import Shape, Sizes, sizes_of

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..simulate.trajectory import Trajectory

MAX_GHOSTS = 30
MAX_STATES = 2_000_000  # of a trajectory; reactions are computed for all of its samples and times, or not at all
LAYERS = ("bodies", "ghosts", "trails", "frames", "centers", "ellipsoids", "reactions")
#: Colors as red, green and blue from 0 to 255.
GHOST, TRAIL, CENTER, REACTION = (90, 110, 140), (225, 110, 40), (40, 40, 45), (30, 150, 80)
LONGEST_ARROW = 0.3  # relative to the space that the mechanism takes


def checked_layers(show: Sequence[str]) -> tuple[str, ...]:
    """Names of layers. Raises ArgumentError for unknown ones."""
    unknown = [name for name in show if name not in LAYERS]
    if isinstance(show, str) or unknown:
        raise ArgumentError(f"show is {show!r}; expected a list with some of {', '.join(LAYERS)}")
    return tuple(show)


@dataclass(frozen=True, eq=False)
class Scene:
    """One sample, and others as ghosts, at the times (frames,) of a film; world axes, m.

    `translation` (1 + ghosts, frames, n, 3), `rotation` (..., 3, 3) and `quaternion` (..., 4; w, x, y, z) are the poses
    of the bodies; the sample comes before the ghosts. `trails` (frames, tips, 3) are the paths of the sample's
    outermost points.
    """

    model: Model
    t: np.ndarray
    q: np.ndarray
    translation: np.ndarray
    rotation: np.ndarray
    quaternion: np.ndarray
    trails: np.ndarray
    compute_reactions: Callable[[], np.ndarray]

    @cached_property
    def reactions(self) -> np.ndarray:
        """Forces (frames, n, 3) on the sample's bodies in their joints, N.

        Computed when they are first read: they may need as much time as everything else. Raises ArgumentError if they
        are not known.
        """
        return self.compute_reactions()

    @cached_property
    def sizes(self) -> Sizes:
        """Sizes of the drawn parts of the sample."""
        return sizes_of(self.model)

    @property
    def up(self) -> np.ndarray:
        """Unit vector against gravity; z if there is no gravity."""
        g = self.model.gravity
        return -g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])

    def points(self, shapes: Sequence[Shape], layers: Sequence[str]) -> np.ndarray:
        """Points (m, 3) around these shapes of the sample, all ghosts, and the arrows, at all times."""
        points = [self.translation.reshape(-1, 3), self.trails.reshape(-1, 3)]
        some = slice(None, None, max(1, len(self.t) // 30))
        for shape in shapes:
            low, high = shape.vertices.min(0), shape.vertices.max(0)
            corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, 8).T
            if shape.body >= 0:
                R, p = self.rotation[0, some, shape.body], self.translation[0, some, shape.body]
                corners = (corners @ np.swapaxes(R, -1, -2) + p[:, None]).reshape(-1, 3)
            points.append(corners)
        if "reactions" in layers:
            points += [self.arrows(frame)[:, 1] for frame in range(len(self.t))[some]]
        return np.concatenate(points)

    def camera(self, points: np.ndarray) -> Camera:
        """Camera that sees these points (m, 3)."""
        center = (points.min(0) + points.max(0)) / 2
        radius = max(float(np.linalg.norm(points - center, axis=1).max()), 0.1 * self.sizes.extent)
        return Camera(center, radius, self.up)

    def centers(self, frame: int) -> np.ndarray:
        """Centers of mass of the sample's bodies (n, 3)."""
        return self.translation[0, frame] + np.einsum("nij,nj->ni", self.rotation[0, frame], self.model.cg)

    def axes(self, frame: int) -> tuple[np.ndarray, np.ndarray]:
        """Origins (m, 3) and quaternions (m, 4) of the bodies' frames, then of the frames fixed to bodies."""
        origins, rotations = [*self.translation[0, frame]], [*self.rotation[0, frame]]
        for fixed in self.model.description.frames.values():
            if fixed.body >= 0:
                origins.append(origins[fixed.body] + rotations[fixed.body] @ fixed.pose.translation)
                rotations.append(rotations[fixed.body] @ fixed.pose.rotation)
        return np.array(origins), quaternions(np.array(rotations))

    def arrows(self, frame: int) -> np.ndarray:
        """Ends (n, 2, 3) of an arrow for each joint reaction, all on the scale of the largest reaction at any time."""
        largest = np.linalg.norm(self.reactions, axis=-1).max()
        points = self.translation[0].reshape(-1, 3)
        span = np.linalg.norm(np.ptp(np.concatenate([points, self.trails.reshape(-1, 3)]), axis=0))
        scale = LONGEST_ARROW * np.clip(span, 0.2 * self.sizes.extent, self.sizes.extent) / max(largest, 1e-300)
        start = self.translation[0, frame]
        return np.stack([start, start + scale * self.reactions[frame]], axis=1)


def quaternions(rotations: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4) [w, x, y, z] of rotation matrices (..., 3, 3).

    Each component is computed from the largest of the four, which is at least 1/2 (Shepperd 1978, *Quaternion from
    Rotation Matrix*).
    """
    R = rotations
    # 4 q q^T: the row of the largest component is the quaternion times four times that component
    products = np.empty((*R.shape[:-2], 4, 4))
    x, y, z = (R[..., i, i] for i in range(3))
    for i, square in enumerate((1 + x + y + z, 1 + x - y - z, 1 - x + y - z, 1 - x - y + z)):
        products[..., i, i] = square
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        products[..., 0, i + 1] = products[..., i + 1, 0] = R[..., k, j] - R[..., j, k]
        products[..., j + 1, k + 1] = products[..., k + 1, j + 1] = R[..., j, k] + R[..., k, j]
    largest = np.argmax(np.diagonal(products, axis1=-2, axis2=-1), axis=-1)[..., None, None]
    row = np.take_along_axis(products, largest, axis=-2)[..., 0, :]
    return row / np.linalg.norm(row, axis=-1, keepdims=True)


def scene_of_states(
    model: Model,
    q: np.ndarray,
    t: npt.ArrayLike,
    compute_reactions: Callable[[], np.ndarray],
    ghosts: tuple[Model, np.ndarray] | None = None,
) -> Scene:
    """Scene of a sample at positions q (frames, nq); ghosts are a model and its q (ghosts, frames, nq)."""
    pairs = [(model, q[None]), *([] if ghosts is None else [ghosts])]
    poses = [of[..., None].body_poses(np.asarray(states, np.float64)) for of, states in pairs]
    translation = np.concatenate([pose.translation for pose in poses])
    rotation = np.concatenate([pose.rotation for pose in poses])
    trails = [translation[0, :, i] + rotation[0, :, i] @ point for i, point in tips_of(model)]
    return Scene(
        model,
        np.asarray(t),
        q,
        translation,
        rotation,
        quaternions(rotation),
        np.stack(trails, axis=1),
        compute_reactions,
    )


def scene_at_rest(model: Model, q: np.ndarray) -> Scene:
    """Scene of a model at rest at positions q (nq,)."""
    if q.shape != (model.nq,):
        raise ArgumentError(f"q has shape {q.shape}; expected ({model.nq},)")
    q, rest = q[None], np.zeros((1, model.nv))

    def reactions() -> np.ndarray:
        held = model.gravity_forces(q) if model.constraint_names else None  # motors hold all joints of a closed loop
        return _forces_in_world(model, q, model.joint_reactions(q, rest, rest, tau=held))

    return scene_of_states(model, q, (0.0,), reactions)


def _forces_in_world(model: Model, q: np.ndarray, reactions: np.ndarray) -> np.ndarray:
    """Forces (times, n, 3) in world axes of reactions (times, n, 6) in body axes."""
    rotation = model.body_poses(np.asarray(q, np.float64)).rotation
    return np.einsum("tnij,tnj->tni", rotation, reactions[..., :3])


def tips_of(model: Model) -> list[tuple[int, np.ndarray]]:
    """Outermost point of each body without children: (body, point in its frame)."""
    found = []
    for i in range(model.n_bodies):
        if not (model.parent == i).any():
            points = ends_of(model, i)
            found.append((i, points[np.argmax(np.linalg.norm(points, axis=1))] if len(points) else np.zeros(3)))
    return found


def scene_of_motion(motion: Trajectory, sample: int | tuple[int, ...], frames: int) -> Scene:
    """Scene of a trajectory at a number of evenly spaced times; one of its samples is not a ghost.

    A sample whose simulation failed stays at its last valid state. Raises an error if it has none.
    """
    batch, samples = motion.status.shape, motion.status.size
    warn_of_few_times(motion)
    motion = _without_held_states(motion)
    number = number_of(sample, batch)
    index = np.unravel_index(number, batch)
    one = motion[tuple(int(i) for i in index)] if batch else motion
    if not np.isfinite(one.q[0]).all():
        raise ArgumentError(f"sample {sample} cannot be shown: its first state is not finite")
    t = np.linspace(motion.t[0], motion.t[-1], frames)
    q = _between(one.model, motion.t, one.q[None], one.qd[None], t)[0]
    states = motion.status.size * motion.t.size

    def reactions() -> np.ndarray:
        if states > MAX_STATES:
            raise ArgumentError(f"the trajectory has {states} states; reactions are shown for at most {MAX_STATES}")
        return _reactions(one, t)

    if samples == 1:
        return scene_of_states(one.model, q, t, reactions)
    q_all, qd_all = (x.reshape(samples, *x.shape[len(batch) :]) for x in (motion.q, motion.qd))
    spread = np.unique(np.linspace(0, samples - 1, MAX_GHOSTS + 1).astype(int))
    chosen = np.array([i for i in spread if i != number and np.isfinite(q_all[i, 0]).all()][:MAX_GHOSTS], int)
    if not chosen.size:
        return scene_of_states(one.model, q, t, reactions)
    of_chosen = motion[np.unravel_index(chosen, batch)].model
    return scene_of_states(
        one.model, q, t, reactions, (of_chosen, _between(of_chosen, motion.t, q_all[chosen], qd_all[chosen], t))
    )


def known_layers(scene: Scene, layers: Sequence[str]) -> tuple[str, ...]:
    """The layers, without reactions if they are not known. Warns if it omits them."""
    if "reactions" in layers:
        try:
            _ = scene.reactions
        except ArgumentError as error:
            warnings.warn(f"joint reactions are not shown: {error}", stacklevel=5)
            return tuple(name for name in layers if name != "reactions")
    return tuple(layers)


def number_of(sample: int | tuple[int, ...], batch: tuple[int, ...]) -> int:
    """Number of a sample in its batch, from its number or its index."""
    index = np.atleast_1d(sample)
    if not batch and sample not in (0, ()):
        raise ArgumentError(f"sample is {sample!r}, but the trajectory has only one sample; expected 0")
    try:
        if index.size == 1 and len(batch) != 1:
            return int(np.ravel_multi_index(np.unravel_index(int(index[0]), batch), batch)) if batch else 0
        return int(np.ravel_multi_index(tuple(int(i) for i in index), batch))
    except (ValueError, TypeError):
        raise ArgumentError(f"sample is {sample!r}; expected one of a batch of shape {batch}") from None


def _between(model: Model, saved: np.ndarray, q: np.ndarray, qd: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Positions (samples, frames, nq) at times t from states (samples, times, ...) at the times saved.

    Cubic Hermite interpolation of the difference to the state before, in the tangent space.
    """
    q, qd = _frozen_after_failure(np.array(q, np.float64), np.array(qd, np.float64))
    if saved.size == 1:
        return np.repeat(q, t.size, axis=1)
    k = np.clip(np.searchsorted(saved, t, "right") - 1, 0, saved.size - 2)
    h = np.diff(saved)[k][:, None]
    s = (t - saved[k])[:, None] / h
    step = model.difference(q[:, k], q[:, k + 1])
    moved = s**2 * (3 - 2 * s) * step + s * (1 - s) ** 2 * h * qd[:, k] - s**2 * (1 - s) * h * qd[:, k + 1]
    return model.integrate(q[:, k], moved)


def _without_held_states(motion: Trajectory) -> Trajectory:
    """Return a trajectory with NaN after the end of each sample: the velocity at an event would move a body at rest."""
    has_ended = (motion.t > motion.end_time[..., None])[..., None]
    return replace(motion, q=np.where(has_ended, np.nan, motion.q), qd=np.where(has_ended, np.nan, motion.qd))


def _frozen_after_failure(q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States in which each sample rests at its last valid position instead of being NaN."""
    valid = np.isfinite(q).all(-1) & np.isfinite(qd).all(-1)
    last = np.maximum.accumulate(np.where(valid, np.arange(q.shape[1]), 0), axis=1)[..., None]
    moves = valid & np.concatenate([valid[:, 1:], valid[:, -1:]], axis=1)
    return np.take_along_axis(q, last, 1), np.where(moves[..., None], qd, 0.0)


def _reactions(motion: Trajectory, t: np.ndarray) -> np.ndarray:
    """Forces (frames, n, 3) in the joints of one sample at times t, in world axes."""
    world = np.nan_to_num(_forces_in_world(motion.model, motion.q, motion.reactions))
    flat = world.reshape(motion.t.size, -1)
    return np.array([np.interp(t, motion.t, column) for column in flat.T]).T.reshape(t.size, -1, 3)
