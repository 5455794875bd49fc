"""Triangle meshes of simple solids.

A mesh is a pair: vertices (V, 3), m, and faces (F, 3), whose corners run counter-clockwise as seen from outside.
Solids have their center at the origin and their axis along z.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Mesh = tuple[np.ndarray, np.ndarray]


def box(edges: npt.ArrayLike) -> Mesh:
    """Box with edges (3,) along x, y and z."""
    u, v = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]).T
    sides = []
    for axis in range(3):
        for end in (-0.5, 0.5):
            corners = np.full((4, 3), end)
            corners[:, (axis + 1) % 3], corners[:, (axis + 2) % 3] = (u, v) if end > 0.0 else (v, u)
            sides.append(corners)
    faces = 4 * np.arange(6)[:, None, None] + [[0, 1, 2], [0, 2, 3]]
    return np.concatenate(sides) * edges, faces.reshape(-1, 3)


def cylinder(radius: float, length: float, segments: int) -> Mesh:
    """Cylinder; its ends have separate vertices, so that the edges are shaded as edges."""
    half = length / 2
    bottom, side, top = (
        _revolved(np.array(line), segments)
        for line in (
            [(0.0, -half), (radius, -half)],
            [(radius, -half), (radius, half)],
            [(radius, half), (0.0, half)],
        )
    )
    return _joined([bottom, side, top])


def capsule(radius: float, length: float, segments: int) -> Mesh:
    """Cylinder of this length with a half ball at each end."""
    angle = np.linspace(0.0, np.pi / 2, max(2, segments // 4 + 1))
    cap = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    cap[-1, 0] = 0.0
    top = cap + [0.0, length / 2]
    return _revolved(np.concatenate([top[::-1] * [1.0, -1.0], top]), segments)


def ball(segments: int) -> Mesh:
    """Ball of radius 1."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, segments // 2 + 1)
    line = np.column_stack([np.cos(angle), np.sin(angle)])
    line[[0, -1], 0] = 0.0
    return _revolved(line, segments)


def _revolved(line: np.ndarray, segments: int) -> Mesh:
    """Surface of revolution about z of a line (k, 2): radii and heights of its points, from the lowest upwards."""
    angle = 2.0 * np.pi * np.arange(segments) / segments
    radii, heights = line.T
    rings = [radii[:, None] * np.cos(angle), radii[:, None] * np.sin(angle), np.repeat(heights[:, None], segments, 1)]
    ring, first = np.indices((len(line) - 1, segments))
    second = (first + 1) % segments
    below, above = ring * segments, (ring + 1) * segments
    # a ring of radius zero is a point: one of the two adjacent triangles has no area
    lower = np.stack([below + first, below + second, above + second], axis=-1)[radii[:-1] > 0.0]
    upper = np.stack([below + first, above + second, above + first], axis=-1)[radii[1:] > 0.0]
    return np.stack(rings, axis=-1).reshape(-1, 3), np.concatenate([lower.reshape(-1, 3), upper.reshape(-1, 3)])


def _joined(parts: Sequence[Mesh]) -> Mesh:
    counts = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    faces = [part + count for (_, part), count in zip(parts, counts, strict=False)]
    return np.concatenate([vertices for vertices, _ in parts]), np.concatenate(faces)
