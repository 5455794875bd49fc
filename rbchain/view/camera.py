"""The initial camera of the viewer and of images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FIELD_OF_VIEW = np.radians(45.0)  # from the lower edge of the picture to the upper one
NARROWEST = 0.75  # width over height of the narrowest window that shows everything
ELEVATION, AZIMUTH = np.radians(22.0), np.radians(-58.0)


@dataclass(frozen=True, eq=False)
class Camera:
    """A camera that looks at a ball, given by its center (3,) and radius, m; `up` (3,) is a unit vector.

    All in world axes.
    """

    center: np.ndarray
    radius: float
    up: np.ndarray

    @property
    def distance(self) -> float:
        """Distance from the center, m, at which the ball fits into the narrowest window."""
        return self.radius / float(np.sin(np.arctan(NARROWEST * np.tan(FIELD_OF_VIEW / 2))))

    @property
    def axes(self) -> np.ndarray:
        """Rows: the unit vectors to the right, upwards in the image, and towards the camera."""
        first = np.eye(3)[np.argmin(np.abs(self.up))]
        second = np.cross(self.up, first)
        second /= np.linalg.norm(second)
        first = np.cross(second, self.up)
        level = np.cos(AZIMUTH) * first + np.sin(AZIMUTH) * second
        towards = np.cos(ELEVATION) * level + np.sin(ELEVATION) * self.up
        right = np.cross(self.up, towards)
        right /= np.linalg.norm(right)
        return np.array([right, np.cross(towards, right), towards])

    @property
    def position(self) -> np.ndarray:
        """Position of the camera (3,), m."""
        return self.center + self.distance * self.axes[2]

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Perspective view of points (..., 3): coordinates (..., 2) in the image and distances (...), m.

        At the distance of the center, a meter is one unit of the image.
        """
        seen = (points - self.center) @ self.axes.T
        away = self.distance - seen[..., 2]
        # points beside or behind the camera stay finite; callers omit them by their distance
        return seen[..., :2] * (self.distance / np.maximum(away, 1e-3 * self.distance))[..., None], away

    @property
    def half_height(self) -> float:
        """Half of the image's shorter side that shows the ball, in units of `project`."""
        return self.radius / float(np.sqrt(1.0 - (self.radius / self.distance) ** 2))

    @property
    def grid(self) -> tuple[int, np.ndarray, float, int]:
        """Ground grid: index of the world axis normal to it, its center (3,), cell (m), and cells to each side."""
        normal = int(np.argmax(np.abs(self.up)))
        cell = 10.0 ** np.floor(np.log10(1.5 * self.radius)) / 2
        center = np.round(self.center / cell) * cell
        center[normal] = 0.0
        return normal, center, cell, int(np.ceil(2 * self.radius / cell))
