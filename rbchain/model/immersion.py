"""Immersion: buoyancy, added mass and drag of a body in a fluid."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray
from ..common.values import Value
from ..errors import ModelError
from .joint import axes_along
from .pose import Array, Pose, asymmetry, numbers, positive, unit_axis, vector3

#: Largest ratio of two semi-axes of an ellipsoid. At this ratio the round-off of its added inertia is 1e-10.
LARGEST_RATIO = 1e6


def shifted(matrix: FloatArray, pose: Pose) -> FloatArray:
    """Transform a symmetric (6, 6) matrix, [linear, angular] in a frame with this pose, to the outer frame."""
    R, (x, y, z) = pose.rotation, pose.translation
    lever = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    # maps the velocity at the outer origin to the velocity at the frame's origin, in the axes of the frame
    T = np.block([[R.T, -R.T @ lever], [np.zeros((3, 3)), R.T]])
    return T.T @ matrix @ T


def _lengths(given: npt.ArrayLike, what: str) -> FloatArray:
    """Three positive lengths (3,). Raises a ModelError that names them as `what` for anything else."""
    found = np.array([positive(length, what) for length in vector3(given, what)])
    if found.max() > LARGEST_RATIO * found.min():
        expected = f"expected lengths within a factor of {LARGEST_RATIO:g} of each other"
        raise ModelError(f"{what} is {found.tolist()}; {expected}")
    return found


@dataclass(frozen=True, eq=False)
class Immersion(Value):
    """Buoyancy, added mass and drag of a body in a fluid at rest or in a current.

    The model defines the density of the fluid. All matrices refer to the frame with the pose `pose`, with linear
    components before angular ones; six values stand for a diagonal matrix.

    Parameters
    ----------
    volume : float, m^3
        Displaced volume.
    buoyancy_center : (3,) array, m
        Center of buoyancy in body axes.
    added_mass : (6,) or (6, 6) array, kg, kg m, kg m^2
        Symmetric added mass that does not depend on the density of the fluid. It acts in any fluid, but not in air.
    added_volume : (6,) or (6, 6) array, m^3, m^4, m^5
        Symmetric added mass per unit of density; the total is added_mass + density * added_volume.
    linear_damping, quadratic_damping : (6,) or (6, 6) arrays
        Matrices D1 and D2 of the drag - D1 v - D2 abs(v) v, where v is the velocity relative to the fluid. abs(v) v
        is taken for each component.
    pose : Pose
        Pose of the frame of the matrices and of the cylinder, in the body's frame.
    strip_diameter, strip_length : float, m
        Size of a slender cylinder along z of this frame, with its center at the origin. Each strip of length ds has the
        drag - density / 2 strip_drag strip_diameter abs(v) v ds, where v is the velocity of the strip normal to the
        axis (strip theory; Morison et al. 1950).
    strip_drag : float
        Drag coefficient of the cylinder.

    Raises
    ------
    ModelError
        If a value is negative, a shape is wrong, or an added mass is not symmetric.

    Notes
    -----
    The model assumes potential flow without a wake and ignores hydrodynamic interaction between bodies. Unlike mass,
    added mass depends on the direction, so the momentum of a body need not be parallel to its velocity.

    Examples
    --------
    The added mass of a sphere is half the displaced mass of the fluid (Lamb 1932, section 92):

    >>> import rbchain as rb
    >>> ball = rb.Immersion.sphere(0.1)
    >>> float((ball.added_volume[0, 0] / ball.volume).round(12))
    0.5
    """

    internal_names: ClassVar[tuple[str, ...]] = ("has_drag", "joined", "moved")
    renamed_arguments: ClassVar[dict[str, str]] = {"frame": "pose", "center": "buoyancy_center"}
    renamed_attributes: ClassVar[dict[str, str]] = renamed_arguments

    volume: float = 0.0
    _: KW_ONLY
    buoyancy_center: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    added_mass: Array = (0.0,) * 6  # type: ignore[assignment]
    added_volume: Array = (0.0,) * 6  # type: ignore[assignment]
    linear_damping: Array = (0.0,) * 6  # type: ignore[assignment]
    quadratic_damping: Array = (0.0,) * 6  # type: ignore[assignment]
    pose: Pose = field(default_factory=Pose)
    strip_diameter: float = 0.0
    strip_length: float = 0.0
    strip_drag: float = 0.0

    def __post_init__(self) -> None:
        for name in ("volume", "strip_diameter", "strip_length", "strip_drag"):
            value = float(numbers(getattr(self, name), name, ()))
            if value < 0.0:
                raise ModelError(f"{name} is {value}; expected zero or more")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "buoyancy_center", vector3(self.buoyancy_center, "buoyancy_center"))
        for name in ("added_mass", "added_volume", "linear_damping", "quadratic_damping"):
            matrix = numbers(getattr(self, name), name)
            matrix = np.diag(matrix) if matrix.shape == (6,) else matrix
            if matrix.shape != (6, 6):
                raise ModelError(f"{name} has shape {matrix.shape}; expected (6,) for a diagonal, or (6, 6)")
            if name.startswith("added") and np.abs(matrix - matrix.T).max() > 1e-9 * np.abs(matrix).max():
                raise ModelError(f"{name} {asymmetry(matrix)}")
            object.__setattr__(self, name, matrix)

    @classmethod
    @explains_calls(is_method=True)
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
        """Return the Immersion of a slender cylinder.

        Parameters
        ----------
        radius, length : float, m
            Size of the cylinder.
        mass : float, kg, optional
            Mass of the body. The added mass along the axis is a tenth of this mass, or by default of the displaced
            mass.
        axis : (3,) array
            Direction of the axis in body axes; any length.
        center : (3,) array, m
            Center of the cylinder in body axes.
        drag : float
            Drag coefficient of a flow normal to the axis (`strip_drag`).

        Notes
        -----
        For density rho, the added mass normal to the axis is pi rho r^2 l, and the added inertia of rotations about
        axes normal to it is pi rho r^2 l^3 / 12.

        Examples
        --------
        >>> import rbchain as rb
        >>> round(rb.Immersion.cylinder(0.1, 2.0).volume, 6)
        0.062832
        """
        radius, length = positive(radius, "radius"), positive(length, "length")
        volume = np.pi * radius**2 * length
        turning = volume * length**2 / 12
        along = 0.1 * volume if mass is None else 0.0
        return cls(
            volume,
            buoyancy_center=center,
            added_mass=(0, 0, 0.0 if mass is None else 0.1 * positive(mass, "mass"), 0, 0, 0),
            added_volume=(volume, volume, along, turning, turning, 0),
            pose=Pose(center, axes_along(unit_axis(axis))),
            strip_diameter=2 * radius,
            strip_length=length,
            strip_drag=drag,
        )

    @classmethod
    @explains_calls(is_method=True)
    def sphere(cls, radius: float, *, center: npt.ArrayLike = (0.0, 0.0, 0.0)) -> Self:
        """Return the Immersion of a sphere of this radius (m); its added mass is half the displaced mass.

        The source is Lamb (1932), section 92.

        Examples
        --------
        >>> import rbchain as rb
        >>> round(rb.Immersion.sphere(0.1).volume, 6)
        0.004189
        """
        volume = 4 / 3 * np.pi * positive(radius, "radius") ** 3
        added = (volume / 2,) * 3 + (0,) * 3
        return cls(volume, buoyancy_center=center, added_volume=added, pose=Pose(center))

    @classmethod
    @explains_calls(is_method=True)
    def ellipsoid(
        cls, semi_axes: npt.ArrayLike, *, center: npt.ArrayLike = (0.0, 0.0, 0.0), rotation: npt.ArrayLike | None = None
    ) -> Self:
        """Return the Immersion of an ellipsoid (Lamb 1932, sections 114 and 115).

        Parameters
        ----------
        semi_axes : (3,) array, m
            Half the lengths of the ellipsoid along its axes.
        center : (3,) array, m
            Center of the ellipsoid in body axes.
        rotation : (3, 3) array or quaternion [x, y, z, w], optional
            Rotation of the axes of the ellipsoid to body axes.

        Examples
        --------
        The added mass of a long ellipsoid is small along its axis, and almost the displaced mass across it:

        >>> import rbchain as rb
        >>> hull = rb.Immersion.ellipsoid((2.0, 0.25, 0.25))
        >>> (hull.added_volume.diagonal()[:3] / hull.volume).round(3).tolist()
        [0.029, 0.945, 0.945]
        """
        from scipy.special import elliprd

        squares = _lengths(semi_axes, "semi_axes") ** 2
        volume, product = 4 / 3 * np.pi * np.sqrt(squares.prod()), np.sqrt(squares.prod())
        shares = np.array(
            [2 / 3 * product * elliprd(squares[i - 2], squares[i - 1], squares[i]) for i in range(3)]
        )  # alpha, beta and gamma in Lamb's notation
        rotational = []
        for i in range(3):
            b, c, beta, gamma = squares[i - 2], squares[i - 1], shares[i - 2], shares[i - 1]
            # a body of revolution can rotate about its axis without moving the fluid
            is_round = abs(b - c) <= 1e-12 * (b + c)
            denominator = 1.0 if is_round else 2 * (b - c) + (b + c) * (beta - gamma)
            rotational.append(0.0 if is_round else volume / 5 * (b - c) * ((b - c) / denominator) * (gamma - beta))
        added = np.concatenate([volume * shares / (2 - shares), rotational])
        return cls(volume, buoyancy_center=center, added_volume=added, pose=Pose(center, rotation))

    @classmethod
    @explains_calls(is_method=True)
    def box(
        cls, size: npt.ArrayLike, *, center: npt.ArrayLike = (0.0, 0.0, 0.0), rotation: npt.ArrayLike | None = None
    ) -> Self:
        """Return the Immersion of a box, with the added mass of an ellipsoid that has its volume and proportions.

        No closed form for the added mass of a box is known.

        Parameters
        ----------
        size : (3,) array, m
            Lengths of the edges along the axes of the box.
        center : (3,) array, m
            Center of the box in body axes.
        rotation : (3, 3) array or quaternion [x, y, z, w], optional
            Rotation of the axes of the box to body axes.

        Examples
        --------
        >>> import rbchain as rb
        >>> round(rb.Immersion.box((2.0, 0.5, 0.5)).volume, 12)
        0.5
        """
        size = _lengths(size, "size")
        ellipsoid = cls.ellipsoid(size / 2 * (6 / np.pi) ** (1 / 3), center=center, rotation=rotation)
        return replace(ellipsoid, volume=float(size.prod()))

    @property
    def has_drag(self) -> bool:
        """Whether any of the coefficients of drag is not zero."""
        return bool(self.linear_damping.any() or self.quadratic_damping.any() or self.strip_drag * self.strip_length)

    def moved(self, pose: Pose) -> Immersion:
        """Return the same immersion expressed in a frame in which the body's frame has this pose."""
        center = pose.rotation @ self.buoyancy_center + pose.translation
        return replace(self, buoyancy_center=center, pose=pose @ self.pose)

    def joined(self, other: Immersion) -> Immersion:
        """Return the immersion of two bodies that are fixed to each other, both expressed in the same frame.

        Raises a ModelError if both have drag, because drags in different frames cannot be added.
        """
        if self.has_drag and other.has_drag:
            raise ModelError(
                "this body and a body fixed to it both have drag; expected drag in only one of their Immersions"
            )
        one, two = (self, other) if self.has_drag else (other, self)
        volume = one.volume + two.volume
        center = one.buoyancy_center
        if volume > 0.0:
            center = (one.volume * one.buoyancy_center + two.volume * two.buoyancy_center) / volume
        own, at = one.pose.inverse(), two.pose
        added = {
            name: getattr(one, name) + shifted(getattr(two, name), own @ at) for name in ("added_mass", "added_volume")
        }
        return replace(one, volume=volume, buoyancy_center=center, **added)
