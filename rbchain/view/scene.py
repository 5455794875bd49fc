"""All numbers of a moving picture: where everything is in each of its frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from ..errors import StateError
from ..plots import warn_of_few_times
from .shapes import Shape, ends_of, extent_of

if TYPE_CHECKING:
    from ..chain import Model
    from ..trajectory import Trajectory

MOST_GHOSTS = 30
MOST_STATES = 2_000_000  # of a motion, for reactions to be shown: they are computed for all of its samples
LAYERS = ("bodies", "ghosts", "trails", "frames", "centers", "ellipsoids", "reactions")
#: Red, green and blue, to 255, of what is no body.
GHOST, TRAIL, CENTER, REACTION = (90, 110, 140), (225, 110, 40), (40, 40, 45), (30, 150, 80)


def checked_layers(show: Sequence[str]) -> tuple[str, ...]:
    """The names of layers, or a StateError that names what is none."""
    unknown = [name for name in show if name not in LAYERS]
    if isinstance(show, str) or unknown:
        raise StateError(f"show is {show!r}; expected some of {', '.join(LAYERS)}")
    return tuple(show)


@dataclass(frozen=True, eq=False)
class Scene:
    """One sample in full, others as ghosts, at the times (frames,) of the picture; world axes, m.

    `translation` (1 + ghosts, frames, n, 3), `rotation` (..., 3, 3) and `quaternion` (..., 4; w, x, y, z) place the
    bodies; the sample itself comes first. Of that `trails` (frames, tips, 3) are the ways of the outermost points, and
    `reactions` (frames, n, 3) what holds its bodies, N, or None where that is not known.
    """

    model: Model
    t: np.ndarray
    q: np.ndarray
    translation: np.ndarray
    rotation: np.ndarray
    quaternion: np.ndarray
    trails: np.ndarray
    reactions: np.ndarray | None

    @property
    def up(self) -> np.ndarray:
        """Away from gravity; z without any."""
        g = self.model.gravity
        return -g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])

    def ball(self, shapes: Sequence[Shape]) -> tuple[np.ndarray, float]:
        """Centre and radius of a ball around everything at any time; `shapes` are the sample's."""
        points = [self.translation.reshape(-1, 3), self.trails.reshape(-1, 3)]
        some = slice(None, None, max(1, len(self.t) // 30))
        for shape in shapes:
            low, high = shape.vertices.min(0), shape.vertices.max(0)
            corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, 8).T
            if shape.body >= 0:
                R, p = self.rotation[0, some, shape.body], self.translation[0, some, shape.body]
                corners = (corners @ np.swapaxes(R, -1, -2) + p[:, None]).reshape(-1, 3)
            points.append(corners)
        low, high = (bound(np.concatenate(points), axis=0) for bound in (np.min, np.max))
        return (low + high) / 2, max(float(np.linalg.norm(high - low)) / 2, 0.1 * extent_of(self.model))

    def centers(self, frame: int) -> np.ndarray:
        """Centres of mass of the sample's bodies (n, 3)."""
        return self.translation[0, frame] + np.einsum("nij,nj->ni", self.rotation[0, frame], self.model.cg)

    def axes(self, frame: int) -> tuple[np.ndarray, np.ndarray]:
        """Origins (m, 3) and quaternions (m, 4) of the bodies' frames, and of those fixed to bodies."""
        origins, rotations = [*self.translation[0, frame]], [*self.rotation[0, frame]]
        for fixed in self.model.description.frames.values():
            if fixed.body >= 0:
                origins.append(origins[fixed.body] + rotations[fixed.body] @ fixed.pose.translation)
                rotations.append(rotations[fixed.body] @ fixed.pose.rotation)
        return np.array(origins), quaternions(np.array(rotations))

    def arrows(self, frame: int) -> np.ndarray:
        """Of each joint's reaction its two ends (n, 2, 3), the longest ever half as long as the mechanism."""
        assert self.reactions is not None
        longest = np.linalg.norm(self.reactions, axis=-1).max()
        scale = 0.5 * extent_of(self.model) / max(longest, 1e-300)
        start = self.translation[0, frame]
        return np.stack([start, start + scale * self.reactions[frame]], axis=1)


def quaternions(rotations: np.ndarray) -> np.ndarray:
    """Of rotation matrices (..., 3, 3): w, x, y, z."""
    found = Rotation.from_matrix(rotations.reshape(-1, 3, 3)).as_quat(scalar_first=True)
    return found.reshape(*rotations.shape[:-2], 4)


def scene_of_states(
    model: Model,
    q: np.ndarray,
    t: npt.ArrayLike = (0.0,),
    reactions: np.ndarray | None = None,
    ghosts: tuple[Model, np.ndarray] | None = None,
) -> Scene:
    """A scene of a sample at positions q (frames, nq); ghosts are a model and its q (ghosts, frames, nq)."""
    pairs = [(model, q[None]), *([] if ghosts is None else [ghosts])]
    poses = [of.body_poses(np.asarray(states, np.float64)) for of, states in pairs]
    translation = np.concatenate([pose.translation for pose in poses])
    rotation = np.concatenate([pose.rotation for pose in poses])
    trails = [translation[0, :, i] + rotation[0, :, i] @ point for i, point in tips_of(model)]
    return Scene(
        model, np.asarray(t), q, translation, rotation, quaternions(rotation), np.stack(trails, axis=1), reactions
    )


def scene_at_rest(model: Model, q: np.ndarray) -> Scene:
    """A scene of a model that is held at positions (nq,)."""
    if q.shape != (model.nq,):
        raise StateError(f"q has shape {q.shape}; expected ({model.nq},)")
    q, rest = q[None], np.zeros((1, model.nv))
    return scene_of_states(model, q, reactions=_forces_in_world(model, q, model.joint_reactions(q, rest, rest)))


def _forces_in_world(model: Model, q: np.ndarray, reactions: np.ndarray) -> np.ndarray:
    """Of reactions (times, n, 6) in body axes the forces (times, n, 3), in world axes."""
    rotation = model.body_poses(np.asarray(q, np.float64)).rotation
    return np.einsum("tnij,tnj->tni", rotation, reactions[..., :3])


def tips_of(model: Model) -> list[tuple[int, np.ndarray]]:
    """The outermost point of each body that carries no other: (body, point in its frame)."""
    found = []
    for i in range(model.n_bodies):
        if not (model.parent == i).any():
            points = ends_of(model, i)
            found.append((i, points[np.argmax(np.linalg.norm(points, axis=1))] if len(points) else np.zeros(3)))
    return found


def scene_of_motion(motion: Trajectory, sample: int | tuple[int, ...], frames: int, reactions: bool = False) -> Scene:
    """A scene of a motion at so many times, evenly spaced, with one of its samples in full.

    A sample that could not be computed to the end stays where it got to. Raises StateError where there is nothing to
    show.
    """
    batch, samples = motion.status.shape, motion.status.size
    warn_of_few_times(motion)
    number = number_of(sample, batch)
    index = np.unravel_index(number, batch)
    one = motion.of_sample(tuple(int(i) for i in index)) if batch else motion
    if not np.isfinite(one.q[0]).all():
        raise StateError(f"sample {sample} has no state to show: already its first is not finite")
    t = np.linspace(motion.t[0], motion.t[-1], frames)
    q = _between(one.model, motion.t, one.q[None], one.qd[None], t)[0]
    held = _reactions(one, t) if reactions and motion.status.size * motion.t.size <= MOST_STATES else None
    if samples == 1:
        return scene_of_states(one.model, q, t, held)
    q_all, qd_all = (x.reshape(samples, *x.shape[len(batch) :]) for x in (motion.q, motion.qd))
    spread = np.unique(np.linspace(0, samples - 1, MOST_GHOSTS + 1).astype(int))
    chosen = np.array([i for i in spread if i != number and np.isfinite(q_all[i, 0]).all()][:MOST_GHOSTS], int)
    if not chosen.size:
        return scene_of_states(one.model, q, t, held)
    of_chosen = motion.model.of_sample(np.unravel_index(chosen, batch))
    return scene_of_states(
        one.model, q, t, held, (of_chosen, _between(of_chosen, motion.t, q_all[chosen], qd_all[chosen], t))
    )


def number_of(sample: int | tuple[int, ...], batch: tuple[int, ...]) -> int:
    """The number of a sample in its batch, from that or its index."""
    index = np.atleast_1d(sample)
    try:
        if index.size == 1 and len(batch) != 1:
            return int(np.ravel_multi_index(np.unravel_index(int(index[0]), batch), batch)) if batch else 0
        return int(np.ravel_multi_index(tuple(int(i) for i in index), batch))
    except (ValueError, TypeError):
        raise StateError(f"sample is {sample!r}; expected one of a batch of shape {batch}") from None


def _between(model: Model, saved: np.ndarray, q: np.ndarray, qd: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Positions (samples, frames, nq) at times t: of saved ones (samples, times, nq), by a cubic in what moves them."""
    q, qd = _held(np.array(q, np.float64), np.array(qd, np.float64))
    if saved.size == 1:
        return np.repeat(q, t.size, axis=1)
    k = np.clip(np.searchsorted(saved, t, "right") - 1, 0, saved.size - 2)
    h = np.diff(saved)[k][:, None]
    s = (t - saved[k])[:, None] / h
    way = model.difference(q[:, k], q[:, k + 1])
    moved = s**2 * (3 - 2 * s) * way + s * (1 - s) ** 2 * h * qd[:, k] - s**2 * (1 - s) * h * qd[:, k + 1]
    return model.integrate(q[:, k], moved)


def _held(q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States without what could not be computed: there each sample stays where it was last."""
    good = np.isfinite(q).all(-1) & np.isfinite(qd).all(-1)
    last = np.maximum.accumulate(np.where(good, np.arange(q.shape[1]), 0), axis=1)[..., None]
    goes_on = good & np.concatenate([good[:, 1:], good[:, -1:]], axis=1)
    return np.take_along_axis(q, last, 1), np.where(goes_on[..., None], qd, 0.0)


def _reactions(motion: Trajectory, t: np.ndarray) -> np.ndarray | None:
    """Forces (frames, n, 3) that hold the bodies of one sample, in world axes; None where they are not known."""
    try:
        reactions = motion.reactions
    except StateError:
        return None
    world = np.nan_to_num(_forces_in_world(motion.model, motion.q, reactions))
    flat = world.reshape(motion.t.size, -1)
    return np.array([np.interp(t, motion.t, column) for column in flat.T]).T.reshape(t.size, -1, 3)
