"""`Model.contacts`: contacts of the collision shapes of a model with the ground and with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt, real_array
from ..common.values import Value
from ..errors import ArgumentError, UnknownNameError, missing_package
from ..model.collision_shape import CollisionShape
from .body_contacts import BodyContact
from .capsule_contacts import CapsuleCapsuleContact
from .ellipsoid_contacts import EllipsoidContact
from .sphere_contacts import SphereContact, SphereSphereContact

if TYPE_CHECKING:
    from ..facade.model import Model

#: Largest number of vertices of a hull: the time and the memory of a simulation grow with the square of the contacts.
MOST_VERTICES = 64


@dataclass(frozen=True, eq=False)
class Plane(Value):
    """A fixed plane, the ground of `Model.contacts`.

    Parameters
    ----------
    point : (3,) or (..., 3) array, m
        A point of the plane, in the world. An array has one row for each sample, and the same applies to `normal`.
    normal : (3,) or (..., 3) array
        Direction from the plane into the space in which the bodies move, in world axes; of any length above 0.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Plane((0, 0, 0), (0, 0, 1)).normal
    (0, 0, 1)
    """

    point: npt.ArrayLike
    normal: npt.ArrayLike

    def __post_init__(self) -> None:
        for name in ("point", "normal"):
            found = real_array(f"Plane: {name}", getattr(self, name), ArgumentError)
            if found.shape[-1:] != (3,) or not np.isfinite(found).all():
                raise ArgumentError(f"Plane: {name} is {excerpt(found.tolist())}; expected three finite numbers")
        if not np.any(np.asarray(self.normal), -1).all():
            raise ArgumentError(f"Plane: normal is {excerpt(self.normal)}; expected a vector that is not zero")


@explains_calls(is_method=True, plane="ground", mu="friction", bodies="frames")
def contacts(
    model: Model,
    *,
    ground: Plane | None = None,
    frames: Sequence[str] | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    friction: npt.ArrayLike = 0.6,
    restitution: npt.ArrayLike = 0.0,
) -> list[BodyContact]:
    """Return contacts of the collision shapes of the model, for `simulate(forces=...)`.

    Parameters
    ----------
    ground : Plane, optional
        The plane that the shapes touch. Without it, only `pairs` touch.
    frames : sequence of str, optional
        Bodies and frames whose shapes touch the ground, such as the feet; by default all that have shapes.
    pairs : sequence of pairs of str
        Bodies or frames whose shapes touch each other. Their shapes must be spheres or capsules.
    friction, restitution : float or (...) array
        Coefficients of all contacts, as in `SphereContact`.

    Returns
    -------
    list of contacts
        With the ground, a sphere and an ellipsoid have one contact. A capsule and a cylinder have two, at their ends. A
        box has one contact for each corner and a mesh one for each vertex of its convex hull. These contacts are exact.
        The attribute `point` of a contact is the corner or vertex.
        Two bodies have a contact for each pair of their shapes. Several contacts of a frame or of a pair have the names
        "trunk 1", "trunk 2" and so on. A single contact has the name of its frame or frames, like other contacts.

    Raises
    ------
    ArgumentError
        If a shape cannot touch the ground or another shape, if there are no shapes, or if an argument is invalid.
    UnknownNameError
        If a frame does not exist.
    FileNotFoundError, ImportError
        If the file of a mesh does not exist, or trimesh, which reads it, is not installed.

    Notes
    -----
    Shapes of bodies that are fixed to the world do not touch the ground. Shapes of a file touch the ground if the file
    allows it: see `CollisionShape.touches_ground`. Pairs touch even if the file excludes them. A
    simulation takes longer with more contacts, so choose only the frames that can touch the ground.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> rod, inertia = rb.CollisionShape("capsule", (0.1, 0.4)), rb.Inertia(1.0, inertia=(0.02, 0.02, 0.005))
    >>> builder.add_body("rod", joint=rb.Free(), inertia=inertia, collisions=[rod])
    >>> [contact.point.tolist() for contact in builder.build().contacts(ground=rb.Plane((0, 0, 0), (0, 0, 1)))]
    [[0.0, 0.0, 0.2], [0.0, 0.0, -0.2]]
    """
    frames = None if frames is None else _without_repetitions("frames", frames)
    pairs = _without_repetitions("pairs", pairs)
    if ground is None and not pairs:
        raise ArgumentError("contacts: no ground and no pairs; expected ground=rb.Plane(point, normal), pairs, or both")
    if ground is None and frames is not None:
        raise ArgumentError(f"contacts: frames is {excerpt(frames)}, but no ground; expected ground=rb.Plane(...), too")
    if not (ground is None or isinstance(ground, Plane)):
        raise ArgumentError(
            f"contacts: ground is {excerpt(ground)}; expected a Plane, such as rb.Plane((0, 0, 0), (0, 0, 1))"
        )
    found: list[BodyContact] = []
    coefficients: dict[str, Any] = {"friction": friction, "restitution": restitution}
    if ground is not None:
        for name in _frames_on_ground(model, frames):
            shapes = [shape for shape in model.collisions[name] if shape.touches_ground]
            found += _named(name, [x for shape in shapes for x in _with_ground(name, shape, ground, coefficients)])
    for pair in pairs:
        between = _between(model, pair, coefficients)
        found += _named("-".join(pair), between)
    return found


def _named(owner: str, contacts: list[BodyContact]) -> list[BodyContact]:
    """Return contacts with names of their own, by which studies distinguish them. A single one needs no name."""
    if len(contacts) == 1:
        return contacts
    return [replace(contact, name=f"{owner} {i}") for i, contact in enumerate(contacts, 1)]


def _without_repetitions(what: str, given: Sequence[Any]) -> list[Any]:
    """Return the names or the pairs of names of an argument, each of which may occur once."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        example = f"[{given!r}]" if what == "frames" else '[("a", "b")]'
        raise ArgumentError(f"contacts: {what} is {excerpt(given)}; expected a list, such as {what}={example}")
    keys = [sorted(map(str, each)) if isinstance(each, tuple | list) else each for each in given]
    for key, each in zip(keys, given, strict=True):
        if keys.count(key) > 1:
            raise ArgumentError(f"contacts: {what} contains {excerpt(each)} twice; expected each of them once")
    return list(given)


def _frames_on_ground(model: Model, frames: Sequence[str] | None) -> list[str]:
    """Return the bodies and frames that move and have shapes for the ground."""
    if frames is not None and not frames:
        raise ArgumentError("contacts: frames is empty, so nothing can touch the ground; expected at least one name")
    possible = [
        name
        for name, shapes in model.collisions.items()
        if model.kernel_model.frame(name).body >= 0 and any(shape.touches_ground for shape in shapes)
    ]
    if not possible:
        raise ArgumentError(
            f"model {model.name!r} has no collision shapes that can touch the ground; expected at least one. Use a "
            "file with <collision> elements, add_body(collisions=[rb.CollisionShape(...)]), or lists of SphereContact"
        )
    for name in frames or ():
        _shapes_of(model, name)
        if name not in possible:
            raise ArgumentError(
                f"contacts: the shapes of {name!r} cannot touch the ground, because it is fixed to the world or its "
                f"file excludes them; expected one of {excerpt(possible)}"
            )
    return possible if frames is None else list(frames)


def _shapes_of(model: Model, name: str) -> tuple[CollisionShape, ...]:
    """Return the shapes of a body or frame, which must have at least one."""
    known = [*model.body_names, *model.fixed_frames]
    if name not in known:
        raise UnknownNameError(f"contacts: {excerpt(name)} is not a body or frame{did_you_mean(str(name), known)}")
    shapes = model.collisions.get(name, ())
    if not shapes:
        raise ArgumentError(
            f"contacts: {name!r} has no collision shapes; expected one of {excerpt(list(model.collisions))}"
        )
    return shapes


def _with_ground(name: str, shape: CollisionShape, ground: Plane, coefficients: dict[str, Any]) -> list[BodyContact]:
    """Return the contacts of one shape with a plane."""
    plane: dict[str, Any] = {"plane_point": ground.point, "plane_normal": ground.normal}
    spheres = _spheres(shape)
    if spheres is None and shape.shape in ("box", "mesh", "hull"):
        spheres = [(point, 0.0) for point in _corners(name, shape)]
    if spheres is not None:
        return [SphereContact(name, point=point, radius=radius, **plane, **coefficients) for point, radius in spheres]
    ellipsoids = [(shape.pose.translation, shape.size)]
    if shape.shape == "cylinder":
        radius, half = shape.size[0], 0.5 * shape.size[1] * shape.pose.rotation[:, 2]
        ellipsoids = [(shape.pose.translation + side * half, (radius, radius, 0.0)) for side in (1.0, -1.0)]
    return [
        EllipsoidContact(name, point=point, semi_axes=np.diag(axes) @ shape.pose.rotation.T, **plane, **coefficients)
        for point, axes in ellipsoids
    ]


def _spheres(shape: CollisionShape) -> list[tuple[np.ndarray, float]] | None:
    """Return the centers (3,) and the radii of the spheres whose convex hull is the shape, m; None for other shapes."""
    if shape.shape == "sphere":
        return [(shape.pose.translation, shape.size[0])]
    if shape.shape == "capsule":
        half = 0.5 * shape.size[1] * shape.pose.rotation[:, 2]
        return [(shape.pose.translation + side * half, shape.size[0]) for side in (1.0, -1.0)]
    return None


def _corners(name: str, shape: CollisionShape) -> np.ndarray:
    """Return the vertices (p, 3) of a polyhedron in the axes of its body or frame, m."""
    if shape.shape == "box":
        points = 0.5 * np.array(list(product((1, -1), repeat=3))) * shape.size
    else:
        points = _hull_of(name, shape)
    return points @ shape.pose.rotation.T + shape.pose.translation


def _hull_of(name: str, shape: CollisionShape) -> np.ndarray:
    """Return the vertices (p, 3) of the convex hull of a mesh or a hull, m."""
    from scipy.spatial import ConvexHull, QhullError

    points, what = shape.points, f"contacts: the {shape.shape} of {name!r}"
    if shape.shape == "mesh":
        points = _vertices(shape.file) * shape.size
    try:
        points = points[ConvexHull(points).vertices]
    except QhullError:  # points in a plane, whose vertices are among them
        points = np.unique(points, axis=0)
    if len(points) > MOST_VERTICES:
        raise ArgumentError(
            f"{what} has a convex hull of {len(points)} vertices; expected at most {MOST_VERTICES}, because each is a "
            "contact. Simplify the mesh, or omit it with frames=[...] and pass a SphereContact for it"
        )
    return points


def _vertices(file: str) -> np.ndarray:
    """Read the vertices (p, 3) of a mesh file."""
    try:
        import trimesh
    except ImportError:
        raise ImportError(missing_package(f"{file}: mesh files need the package trimesh", "meshes")) from None
    try:
        return np.asarray(trimesh.load_mesh(file, process=False, skip_materials=True).vertices, float)
    except FileNotFoundError:
        raise
    except Exception as error:  # trimesh raises many types of exceptions for broken files
        raise ArgumentError(f"contacts: {file} cannot be read as a mesh ({error})") from error


def _between(model: Model, pair: tuple[str, str], coefficients: dict[str, Any]) -> list[BodyContact]:
    """Return the contacts of all shapes of one body or frame with all shapes of another one."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ArgumentError(f'contacts: pairs contains {excerpt(pair)}; expected pairs of names, such as ("a", "b")')
    found: list[BodyContact] = []
    for shapes in product(*(_shapes_of(model, name) for name in pair)):
        numbers = coefficients | {
            f"{field}_{side}": value
            for name, shape, side in zip(pair, shapes, "ab", strict=True)
            for field, value in _capsule(name, shape).items()
        }
        is_round = all(shape.shape == "sphere" for shape in shapes)
        found.append((SphereSphereContact if is_round else CapsuleCapsuleContact)(*pair, **numbers))
    return found


def _capsule(name: str, shape: CollisionShape) -> dict[str, Any]:
    """Return the numbers of a sphere or a capsule, m, by the names of the fields of a contact without their ending."""
    if shape.shape not in ("sphere", "capsule"):
        raise ArgumentError(
            f"contacts: pairs contains {name!r}, which has a collision shape that is a {shape.shape}; expected "
            "spheres and capsules. Replace it by spheres or capsules"
        )
    found = {"point": shape.pose.translation, "radius": shape.size[0]}
    half_axis = {} if shape.shape == "sphere" else {"half_axis": 0.5 * shape.size[1] * shape.pose.rotation[:, 2]}
    return found | half_axis
