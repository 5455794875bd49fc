"""What water does to a body: buoyancy, added mass, drag."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from .joint import axes_along
from .pose import Array, Pose, numbers, positive, unit_axis, vector3

#: Of an ellipsoid's semi-axes: with thinner ones round-off grows in its added inertia, to 1e-10 with these.
MOST_SLENDER = 1e6


def shifted(matrix: np.ndarray, pose: Pose) -> np.ndarray:
    """A symmetric (6, 6) matrix of forces per motion, [linear, angular] in a frame with `pose`, in the outer frame."""
    R, (x, y, z) = pose.rotation, pose.translation
    lever = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    # velocity of the frame's origin in its axes from that of the outer frame
    T = np.block([[R.T, -R.T @ lever], [np.zeros((3, 3)), R.T]])
    return T.T @ matrix @ T


def _lengths(given: npt.ArrayLike, what: str) -> np.ndarray:
    """Three lengths, or a ModelError that says what they were for."""
    found = np.array([positive(length, what) for length in vector3(given, what)])
    if found.max() > MOST_SLENDER * found.min():
        expected = f"expected lengths within a factor of {MOST_SLENDER:g} of each other"
        raise ModelError(f"{what} is {found.tolist()}; {expected}")
    return found


@dataclass(frozen=True, eq=False)
class Immersion:
    """A body in a fluid at rest, or in a current; the fluid's density is the model's.

    All matrices are of order [linear, angular] and refer to `frame`; six numbers stand for a diagonal.

    Parameters
    ----------
    volume : float, m^3
        Displaced.
    center : (3,) array, m
        Centre of buoyancy in body axes.
    added_mass : (6,) or (6, 6) array, kg, kg m, kg m^2
        Symmetric; whatever the fluid's density.
    added_volume : (6,) or (6, 6) array, m^3, m^4, m^5
        Added mass per unit of density, besides.
    linear_damping, quadratic_damping : (6,) or (6, 6) arrays
        D1 and D2 of the force - D1 v - D2 abs(v) v (each component of v times its size), v relative to the fluid.
    frame : Pose
        In the body's frame.
    strip_diameter, strip_length : float, m
        Of a slender cylinder along z of `frame` (centred on it), on each strip of which acts the drag
        - density / 2 strip_drag diameter abs(v) v of the velocity across it (strip theory; Morison et al. 1950).
    strip_drag : float

    Notes
    -----
    Added mass is not the same in all directions: it turns with the body, and unlike mass it gives momentum a direction
    of its own. rbchain turns it into world axes wherever bodies' quantities are added up.

    Examples
    --------
    A sphere in water is as inert as with half the displaced water's mass added (Lamb 1932, section 92):

    >>> import rbchain as rb
    >>> ball = rb.Immersion.sphere(0.1)
    >>> float((ball.added_volume[0, 0] / ball.volume).round(12))
    0.5
    """

    volume: float = 0.0
    center: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    added_mass: Array = (0.0,) * 6  # type: ignore[assignment]
    added_volume: Array = (0.0,) * 6  # type: ignore[assignment]
    linear_damping: Array = (0.0,) * 6  # type: ignore[assignment]
    quadratic_damping: Array = (0.0,) * 6  # type: ignore[assignment]
    frame: Pose = field(default_factory=Pose)
    strip_diameter: float = 0.0
    strip_length: float = 0.0
    strip_drag: float = 0.0

    def __post_init__(self) -> None:
        for name in ("volume", "strip_diameter", "strip_length", "strip_drag"):
            value = float(numbers(getattr(self, name), name, ()))
            if value < 0.0:
                raise ModelError(f"{name} is {value}; expected zero or more")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "center", vector3(self.center, "center"))
        for name in ("added_mass", "added_volume", "linear_damping", "quadratic_damping"):
            matrix = numbers(getattr(self, name), name)
            matrix = np.diag(matrix) if matrix.shape == (6,) else matrix
            if matrix.shape != (6, 6):
                raise ModelError(f"{name} has shape {matrix.shape}; expected (6,) for a diagonal, or (6, 6)")
            if name.startswith("added") and np.abs(matrix - matrix.T).max() > 1e-9 * np.abs(matrix).max():
                raise ModelError(f"{name} {matrix.tolist()} is not symmetric")
            object.__setattr__(self, name, matrix)

    @classmethod
    def cylinder(
        cls,
        radius: float,
        length: float,
        *,
        mass: float | None = None,
        axis: npt.ArrayLike = (0.0, 0.0, 1.0),
        center: npt.ArrayLike = (0.0, 0.0, 0.0),
        drag: float = 0.0,
    ) -> Self:
        """A slender cylinder along `axis`.

        Added mass across is that of the displaced fluid (pi density r^2 l), in rotation pi density r^2 l^3 / 12, along
        a tenth of the body's `mass` (kg), or of the displaced fluid's if that is not given. `drag` is the coefficient
        of strips' drag across.
        """
        radius, length = positive(radius, "radius"), positive(length, "length")
        volume = np.pi * radius**2 * length
        turning = volume * length**2 / 12
        along = 0.1 * volume if mass is None else 0.0
        return cls(
            volume,
            center,
            added_mass=(0, 0, 0.0 if mass is None else 0.1 * positive(mass, "mass"), 0, 0, 0),
            added_volume=(volume, volume, along, turning, turning, 0),
            frame=Pose(center, axes_along(unit_axis(axis))),
            strip_diameter=2 * radius,
            strip_length=length,
            strip_drag=drag,
        )

    @classmethod
    def sphere(cls, radius: float, *, center: npt.ArrayLike = (0.0, 0.0, 0.0)) -> Self:
        """A sphere: added mass half that of the displaced fluid (Lamb 1932, section 92)."""
        volume = 4 / 3 * np.pi * positive(radius, "radius") ** 3
        return cls(volume, center, added_volume=(volume / 2,) * 3 + (0,) * 3, frame=Pose(center))

    @classmethod
    def ellipsoid(
        cls, semi_axes: npt.ArrayLike, *, center: npt.ArrayLike = (0.0, 0.0, 0.0), rotation: npt.ArrayLike | None = None
    ) -> Self:
        """An ellipsoid with `semi_axes` (3,) m along its own axes (Lamb 1932, sections 114 and 115)."""
        from scipy.special import elliprd

        squares = _lengths(semi_axes, "semi_axes") ** 2
        volume, product = 4 / 3 * np.pi * np.sqrt(squares.prod()), np.sqrt(squares.prod())
        shares = np.array(
            [2 / 3 * product * elliprd(squares[i - 2], squares[i - 1], squares[i]) for i in range(3)]
        )  # alpha, beta, gamma of Lamb
        turning = []
        for i in range(3):
            b, c, beta, gamma = squares[i - 2], squares[i - 1], shares[i - 2], shares[i - 1]
            # a body of revolution turns about its axis without moving the fluid
            round_ = abs(b - c) <= 1e-12 * (b + c)
            below = 1.0 if round_ else 2 * (b - c) + (b + c) * (beta - gamma)
            turning.append(0.0 if round_ else volume / 5 * (b - c) * ((b - c) / below) * (gamma - beta))
        added = np.concatenate([volume * shares / (2 - shares), turning])
        return cls(volume, center, added_volume=added, frame=Pose(center, rotation))

    @classmethod
    def box(
        cls, size: npt.ArrayLike, *, center: npt.ArrayLike = (0.0, 0.0, 0.0), rotation: npt.ArrayLike | None = None
    ) -> Self:
        """A box with edges `size` (3,) m: the added mass of the ellipsoid of its volume and proportions, for want of a
        closed form."""
        size = _lengths(size, "size")
        alike = cls.ellipsoid(size / 2 * (6 / np.pi) ** (1 / 3), center=center, rotation=rotation)
        return replace(alike, volume=float(size.prod()))

    @property
    def drags(self) -> bool:
        """Whether it has any drag."""
        return bool(self.linear_damping.any() or self.quadratic_damping.any() or self.strip_drag * self.strip_length)

    def moved(self, pose: Pose) -> Immersion:
        """The same seen from a frame in which the body's frame has `pose`."""
        return replace(self, center=pose.rotation @ self.center + pose.translation, frame=pose @ self.frame)

    def joined(self, other: Immersion) -> Immersion:
        """Both as one body, in the frame they share; at most one may have drag."""
        if self.drags and other.drags:
            raise ModelError("both bodies that are fixed to each other have drag; expected all of it on one")
        one, two = (self, other) if self.drags else (other, self)
        volume = one.volume + two.volume
        center = (one.volume * one.center + two.volume * two.center) / volume if volume > 0.0 else one.center
        own, at = one.frame.inverse(), two.frame
        added = {
            name: getattr(one, name) + shifted(getattr(two, name), own @ at) for name in ("added_mass", "added_volume")
        }
        return replace(one, volume=volume, center=center, **added)
