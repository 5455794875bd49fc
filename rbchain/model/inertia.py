"""Mass, center of mass and rotational inertia of a body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray
from ..common.values import Value
from ..errors import ModelError
from .materials import density_of
from .pose import LARGEST, Array, Pose, asymmetry, numbers, positive, rotation_matrix, unit_axis, vector3


def inertia_tensor(inertia: npt.ArrayLike) -> FloatArray:
    """Return a symmetric tensor (3, 3) from its diagonal (3,), from (xx, xy, xz, yy, yz, zz), or from (3, 3)."""
    found = numbers(inertia, "inertia", finite=False)
    if found.shape == (3,):
        return np.diag(found)
    if found.shape == (6,):
        return tensors(found)
    if found.shape != (3, 3):
        raise ModelError(
            f"inertia has shape {found.shape}; expected (3,) for a diagonal, (6,) for xx xy xz yy yz zz, or (3, 3)"
        )
    if np.isfinite(found).all() and np.abs(found - found.T).max() > 1e-9 * np.abs(found).max():
        raise ModelError(f"inertia {asymmetry(found)}")
    with np.errstate(invalid="ignore"):  # ModelBuilder refuses tensors that are not finite
        return (found + found.T) / 2


def tensors(entries: np.ndarray) -> np.ndarray:
    """Return symmetric tensors (..., 3, 3) from their entries (..., 6): xx, xy, xz, yy, yz, zz."""
    return entries[..., [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(*entries.shape[:-1], 3, 3)


def tensor_of_point(mass: npt.ArrayLike, arm: FloatArray) -> FloatArray:
    """Return m (|r|^2 1 - r r^T), the inertia tensors (..., 3, 3) of point masses (...) at positions r (..., 3)."""
    with np.errstate(over="ignore", invalid="ignore"):  # ModelBuilder refuses tensors that are not finite
        squares = np.einsum("...i,...i", arm, arm)[..., None, None] * np.eye(3)
        return np.asarray(mass)[..., None, None] * (squares - arm[..., :, None] * arm[..., None, :])


@dataclass(frozen=True, eq=False)
class Inertia(Value):
    """Mass properties of a rigid body.

    Parameters
    ----------
    mass : float, kg
        Mass of the body.
    cg : (3,) array, m
        Center of mass in body axes.
    inertia : (3,), (6,) or (3, 3) array, kg m^2
        Inertia tensor about the center of mass in body axes: its diagonal, ``xx xy xz yy yz zz``, or the full tensor.
        Studies list the components of the parameter "inertia" as ``xx yy zz xy xz yz``.

    Raises
    ------
    ModelError
        If an argument has the wrong shape or type, the mass is negative, or the tensor is not symmetric.
        `ModelBuilder.add_body` checks whether the values are physically possible.

    Examples
    --------
    The inertia of a 2 m rod about its end is m l^2 / 3:

    >>> import rbchain as rb
    >>> rod = rb.Inertia.rod(2.0, mass=3.0, cg=(1, 0, 0))
    >>> float(rod.about((0, 0, 0))[2, 2])
    4.0
    >>> (rod + rod).mass
    6.0
    """

    foreign_arguments: ClassVar[dict[str, str]] = {
        "com": "cg",
        "ipos": "cg",
        "center_of_mass": "cg",
        "diaginertia": "inertia",
        "fullinertia": "inertia",
        "tensor": "inertia",
    }
    mass: float
    cg: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    inertia: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        mass = float(numbers(self.mass, "mass", (), finite=False))
        if mass < 0.0:
            raise ModelError(f"mass is {mass}; expected zero or more")
        # ModelBuilder checks whether the other values are possible, because its messages can name the body
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "cg", numbers(self.cg, "cg", (3,), finite=False))
        object.__setattr__(self, "inertia", inertia_tensor(self.inertia))

    @classmethod
    @explains_calls(is_method=True)
    def rod(
        cls,
        length: float,
        *,
        mass: float | None = None,
        density: float | str | None = None,
        axis: npt.ArrayLike = (1.0, 0.0, 0.0),
        cg: npt.ArrayLike = (0.0, 0.0, 0.0),
    ) -> Self:
        """Return the inertia of a thin uniform rod.

        Parameters
        ----------
        length : float, m
            Length of the rod.
        mass : float, kg
            Mass of the rod; give either `mass` or `density`.
        density : float, kg/m
            Mass per unit length.
        axis : (3,) array
            Direction of the rod in body axes; any length.
        cg : (3,) array, m
            Center of the rod in body axes.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Inertia.rod(2.0, mass=3.0).inertia.diagonal().tolist()
        [0.0, 1.0, 1.0]
        """
        if isinstance(density, str):
            raise ModelError(
                f"density of a rod is {density!r}; expected a number in kg/m, because a rod has no thickness. Use "
                "Inertia.cylinder for a material"
            )
        length = positive(length, "length")
        mass = _mass_of(length, mass, density)
        direction = unit_axis(axis)
        return cls(mass, cg=cg, inertia=mass * length**2 / 12 * (np.eye(3) - np.outer(direction, direction)))

    @classmethod
    @explains_calls(is_method=True)
    def box(
        cls,
        size: npt.ArrayLike,
        *,
        mass: float | None = None,
        density: float | str | None = None,
        cg: npt.ArrayLike = (0.0, 0.0, 0.0),
        rotation: npt.ArrayLike | None = None,
    ) -> Self:
        """Return the inertia of a uniform box.

        Parameters
        ----------
        size : (3,) array, m
            Lengths of the edges along the axes of the box.
        mass : float, kg
            Mass of the box; give either `mass` or `density`.
        density : float (kg/m^3) or str
            Density, or the name of a material (`rbchain.density_of`).
        cg : (3,) array, m
            Center of the box in body axes.
        rotation : (3, 3) array or quaternion [x, y, z, w], optional
            Rotation of the axes of the box to body axes.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Inertia.box((1.0, 1.0, 1.0), mass=6.0).inertia.diagonal().round(12).tolist()
        [1.0, 1.0, 1.0]
        """
        x, y, z = (positive(edge, "size") for edge in vector3(size, "size"))
        mass = _mass_of(x * y * z, mass, density)
        return cls._turned(mass, cg, mass / 12 * np.array([y * y + z * z, x * x + z * z, x * x + y * y]), rotation)

    @classmethod
    @explains_calls(is_method=True)
    def cylinder(
        cls,
        radius: float,
        length: float,
        *,
        mass: float | None = None,
        density: float | str | None = None,
        axis: npt.ArrayLike = (0.0, 0.0, 1.0),
        cg: npt.ArrayLike = (0.0, 0.0, 0.0),
    ) -> Self:
        """Return the inertia of a uniform solid cylinder.

        Parameters
        ----------
        radius, length : float, m
            Size of the cylinder.
        mass : float, kg
            Mass of the cylinder; give either `mass` or `density`.
        density : float (kg/m^3) or str
            Density, or the name of a material (`rbchain.density_of`).
        axis : (3,) array
            Direction of the cylinder's axis in body axes; any length.
        cg : (3,) array, m
            Center of the cylinder in body axes.

        Examples
        --------
        >>> import rbchain as rb
        >>> round(rb.Inertia.cylinder(0.01, 1.0, density="steel").mass, 3)
        2.466
        """
        radius, length = positive(radius, "radius"), positive(length, "length")
        mass = _mass_of(np.pi * radius**2 * length, mass, density)
        direction = unit_axis(axis)
        along, across = mass * radius**2 / 2, mass * (3 * radius**2 + length**2) / 12
        return cls(mass, cg=cg, inertia=across * np.eye(3) + (along - across) * np.outer(direction, direction))

    @classmethod
    @explains_calls(is_method=True)
    def sphere(
        cls,
        radius: float,
        *,
        mass: float | None = None,
        density: float | str | None = None,
        cg: npt.ArrayLike = (0.0, 0.0, 0.0),
    ) -> Self:
        """Return the inertia of a uniform solid sphere.

        Parameters
        ----------
        radius : float, m
            Radius of the sphere.
        mass : float, kg
            Mass of the sphere; give either `mass` or `density`.
        density : float (kg/m^3) or str
            Density, or the name of a material (`rbchain.density_of`).
        cg : (3,) array, m
            Center of the sphere in body axes.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Inertia.sphere(0.5, mass=10.0).inertia.diagonal().tolist()
        [1.0, 1.0, 1.0]
        """
        radius = positive(radius, "radius")
        mass = _mass_of(4 / 3 * np.pi * radius**3, mass, density)
        return cls(mass, cg=cg, inertia=np.full(3, 0.4 * mass * radius**2))

    @classmethod
    def _turned(cls, mass: float, cg: npt.ArrayLike, diagonal: FloatArray, rotation: npt.ArrayLike | None) -> Self:
        R = rotation_matrix(rotation)
        return cls(mass, cg=cg, inertia=R @ np.diag(diagonal) @ R.T)

    def about(self, point: npt.ArrayLike) -> FloatArray:
        """Return the tensor (3, 3) about a point (3,) in body axes (parallel-axis theorem), kg m^2."""
        return self.inertia + tensor_of_point(self.mass, self.cg - vector3(point, "point"))

    def moved(self, pose: Pose) -> Inertia:
        """Return the same inertia expressed in a frame in which the body's frame has this pose."""
        if not isinstance(pose, Pose):
            raise ModelError(f"pose is {pose!r}; expected a Pose, such as Pose((0, 0, 1))")
        R = pose.rotation
        return Inertia(self.mass, cg=R @ self.cg + pose.translation, inertia=R @ self.inertia @ R.T)

    def __add__(self, other: Inertia) -> Inertia:
        """Return the inertia of two bodies fixed to each other, both expressed in the same frame.

        Sums that overflow float64 are infinite; `ModelBuilder` raises an error for them.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            mass = self.mass + other.mass
            cg: FloatArray
            if self.mass > 0.0 and other.mass > 0.0:
                cg = (self.mass * self.cg + other.mass * other.cg) / mass
            else:  # a part without mass changes no bit, such as a frame of a file
                cg = other.cg if other.mass > 0.0 else self.cg
            tensor = self.inertia + tensor_of_point(self.mass, self.cg - cg)
            return Inertia(mass, cg=cg, inertia=tensor + other.inertia + tensor_of_point(other.mass, other.cg - cg))


def as_arrays(inertias: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return masses (...), centers of mass (..., 3) and tensors (..., 3, 3) of an Inertia or of nested lists of them.

    Returns None if `inertias` is something else, such as numbers.
    """
    numbers_only = isinstance(inertias, np.ndarray) and inertias.dtype.kind != "O"
    if numbers_only or not isinstance(inertias, (Inertia, list, tuple, np.ndarray)):
        return None
    try:
        found = np.asarray(inertias, dtype=object)  # does not convert numbers
    except ValueError:  # lists of different lengths
        return None
    bodies = found.ravel()
    if not bodies.size or not all(isinstance(one, Inertia) for one in bodies):
        return None
    mass, cg, tensor = (np.array([getattr(one, name) for one in bodies]) for name in ("mass", "cg", "inertia"))
    return mass.reshape(found.shape), cg.reshape(*found.shape, 3), tensor.reshape(*found.shape, 3, 3)


def _mass_of(volume: float, mass: float | None, density: float | str | None) -> float:
    """Return the given mass, or density times volume."""
    if (mass is None) == (density is None):
        raise ModelError(f"mass is {mass} and density is {density}; expected exactly one of them")
    if density is not None:
        return density_of(density) * volume
    given = float(numbers(mass, "mass", (), finite=False))  # type: ignore[arg-type]
    if abs(given) > LARGEST:
        raise ModelError(f"mass is {given}; expected at most {LARGEST:g} kg")
    return given
