"""Mass, centre of mass and rotational inertia of a body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from .materials import density_of
from .pose import LARGEST, Array, Pose, numbers, positive, rotation_matrix, unit_axis, vector3


def inertia_tensor(inertia: npt.ArrayLike) -> np.ndarray:
    """Symmetric tensor (3, 3) from 3 numbers (its diagonal), 6 (xx, xy, xz, yy, yz, zz) or (3, 3)."""
    found = numbers(inertia, "inertia", finite=False)
    if found.shape == (3,):
        return np.diag(found)
    if found.shape == (6,):
        return found[[0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(3, 3)
    if found.shape != (3, 3):
        raise ModelError(
            f"inertia has shape {found.shape}; expected (3,) for a diagonal, (6,) for xx xy xz yy yz zz, or (3, 3)"
        )
    if np.isfinite(found).all() and np.abs(found - found.T).max() > 1e-9 * np.abs(found).max():
        raise ModelError(f"inertia {found.tolist()} is not symmetric")
    with np.errstate(invalid="ignore"):  # what is not finite stays so, for the builder to refuse
        return (found + found.T) / 2


def tensor_of_point(mass: npt.ArrayLike, arm: np.ndarray) -> np.ndarray:
    """Inertia about a point of a point mass at `arm` from it, m (|r|^2 1 - r r^T); of masses (...), arms (..., 3)."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused where the body has a name
        squares = np.einsum("...i,...i", arm, arm)[..., None, None] * np.eye(3)
        return np.asarray(mass)[..., None, None] * (squares - arm[..., :, None] * arm[..., None, :])


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass properties of a rigid body.

    Parameters
    ----------
    mass : float, kg
    cg : (3,) array, m
        Centre of mass in body axes.
    inertia : (3,), (6,) or (3, 3) array, kg m^2
        Tensor about the centre of mass in body axes: its diagonal, ``xx xy xz yy yz zz``, or all of it.

    Examples
    --------
    A rod of 2 m, hinged at its end, has the inertia m l^2 / 3 about the hinge:

    >>> import rbchain as rb
    >>> rod = rb.Inertia.rod(2.0, mass=3.0, cg=(1, 0, 0))
    >>> float(rod.about((0, 0, 0))[2, 2])
    4.0
    >>> (rod + rod).mass
    6.0
    """

    mass: float
    cg: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    inertia: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        # whether the numbers can be those of a body is judged where the body has a name: by the builder
        object.__setattr__(self, "mass", float(numbers(self.mass, "mass", (), finite=False)))
        object.__setattr__(self, "cg", numbers(self.cg, "cg", (3,), finite=False))
        object.__setattr__(self, "inertia", inertia_tensor(self.inertia))

    @classmethod
    def rod(
        cls,
        length: float,
        *,
        mass: float | None = None,
        density: float | str | None = None,
        axis: npt.ArrayLike = (1.0, 0.0, 0.0),
        cg: npt.ArrayLike = (0.0, 0.0, 0.0),
    ) -> Self:
        """A thin uniform rod of `length` m along `axis`. The density of a rod is per length, in kg/m."""
        if isinstance(density, str):
            raise ModelError(f"density of a rod is {density!r}; expected a number, in kg/m, for a rod has no thickness")
        length = positive(length, "length")
        mass = _mass_of(length, mass, density)
        direction = unit_axis(axis)
        return cls(mass, cg, mass * length**2 / 12 * (np.eye(3) - np.outer(direction, direction)))

    @classmethod
    def box(
        cls,
        size: npt.ArrayLike,
        *,
        mass: float | None = None,
        density: float | str | None = None,
        cg: npt.ArrayLike = (0.0, 0.0, 0.0),
        rotation: npt.ArrayLike | None = None,
    ) -> Self:
        """A uniform box with edges `size` (3,) m along its own axes, which `rotation` turns into the body's.

        Its density, as that of the other solids, is in kg/m^3, or the name of a material (`density_of`).
        """
        x, y, z = (positive(edge, "size") for edge in vector3(size, "size"))
        mass = _mass_of(x * y * z, mass, density)
        return cls._turned(mass, cg, mass / 12 * np.array([y * y + z * z, x * x + z * z, x * x + y * y]), rotation)

    @classmethod
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
        """A uniform solid cylinder of `radius` and `length` m along `axis`."""
        radius, length = positive(radius, "radius"), positive(length, "length")
        mass = _mass_of(np.pi * radius**2 * length, mass, density)
        direction = unit_axis(axis)
        along, across = mass * radius**2 / 2, mass * (3 * radius**2 + length**2) / 12
        return cls(mass, cg, across * np.eye(3) + (along - across) * np.outer(direction, direction))

    @classmethod
    def sphere(
        cls,
        radius: float,
        *,
        mass: float | None = None,
        density: float | str | None = None,
        cg: npt.ArrayLike = (0.0, 0.0, 0.0),
    ) -> Self:
        """A uniform solid sphere of `radius` m."""
        radius = positive(radius, "radius")
        mass = _mass_of(4 / 3 * np.pi * radius**3, mass, density)
        return cls(mass, cg, np.full(3, 0.4 * mass * radius**2))

    @classmethod
    def _turned(cls, mass: float, cg: npt.ArrayLike, diagonal: np.ndarray, rotation: npt.ArrayLike | None) -> Self:
        R = rotation_matrix(rotation)
        return cls(mass, cg, R @ np.diag(diagonal) @ R.T)

    def about(self, point: npt.ArrayLike) -> np.ndarray:
        """Tensor (3, 3) about a point (3,) in body axes, by the parallel-axis theorem."""
        return self.inertia + tensor_of_point(self.mass, self.cg - vector3(point, "point"))

    def moved(self, pose: Pose) -> Inertia:
        """The same body seen from a frame in which its own frame has `pose`."""
        R = pose.rotation
        return Inertia(self.mass, R @ self.cg + pose.translation, R @ self.inertia @ R.T)

    def __add__(self, other: Inertia) -> Inertia:
        """Both bodies as one, in the frame they share. Sums beyond float64 are infinite, and no model takes them."""
        with np.errstate(over="ignore", invalid="ignore"):
            mass = self.mass + other.mass
            cg = (self.mass * self.cg + other.mass * other.cg) / mass if mass > 0.0 else self.cg
            tensor = self.inertia + tensor_of_point(self.mass, self.cg - cg)
            return Inertia(mass, cg, tensor + other.inertia + tensor_of_point(other.mass, other.cg - cg))


def as_arrays(inertias: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Masses (...), centres of mass (..., 3) and tensors (..., 3, 3) of an Inertia, or of nested lists of them.

    None where `inertias` is anything else, such as numbers.
    """
    numbers_only = isinstance(inertias, np.ndarray) and inertias.dtype.kind != "O"
    if numbers_only or not isinstance(inertias, (Inertia, list, tuple, np.ndarray)):
        return None
    try:
        found = np.asarray(inertias, dtype=object)  # which converts no number
    except ValueError:  # lists of different lengths
        return None
    bodies = found.ravel()
    if not bodies.size or not all(isinstance(one, Inertia) for one in bodies):
        return None
    mass, cg, tensor = (np.array([getattr(one, name) for one in bodies]) for name in ("mass", "cg", "inertia"))
    return mass.reshape(found.shape), cg.reshape(*found.shape, 3), tensor.reshape(*found.shape, 3, 3)


def load_arrays(what: str, mass: Any, cg: Any, inertia: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass (...), centre of mass (..., 3) and tensor (..., 3, 3) of a load: given so, or as `Inertia` alone."""
    bodies = as_arrays(inertia)
    if as_arrays(mass) is not None:
        raise ModelError(f"{what}: mass is an Inertia; expected a number. Pass the Inertia as inertia=")
    if bodies is None and mass is None:
        raise ModelError(f"{what}: there is no mass; expected mass, or inertia= as an Inertia")
    if bodies is not None and (mass is not None or np.any(cg)):
        raise ModelError(f"{what}: inertia is an Inertia, and mass or cg is given besides; expected one or the other")
    mass, cg, inertia = (mass, cg, inertia) if bodies is None else bodies
    mass, cg, tensor = (numbers(x, f"{what}: {name}") for x, name in ((mass, "mass"), (cg, "cg"), (inertia, "inertia")))
    if (mass < 0.0).any():
        raise ModelError(f"{what}: mass is {mass.tolist()}; expected zero or more")
    return mass, cg, tensor if tensor.shape[-2:] == (3, 3) else inertia_tensor(tensor)


def _mass_of(volume: float, mass: float | None, density: float | str | None) -> float:
    """The mass, given or from density and volume, of a shape."""
    if (mass is None) == (density is None):
        raise ModelError(f"mass is {mass} and density is {density}; expected exactly one of them")
    if density is not None:
        return density_of(density) * volume
    given = float(numbers(mass, "mass", (), finite=False))  # type: ignore[arg-type]
    if abs(given) > LARGEST:
        raise ModelError(f"mass is {given}; expected at most {LARGEST:g} kg")
    return given
