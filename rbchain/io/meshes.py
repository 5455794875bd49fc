"""Mass properties of closed triangle meshes, read through trimesh (the extra `meshes`)."""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileFormatError, ModelError
from ..model.inertia import Inertia
from ..model.materials import density_of
from ..model.pose import positive

LENGTHS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "in": 0.0254}
ENDINGS = (".stl", ".obj")


def inertia_of_mesh(
    path: str | Path, *, density: float | str | None = None, mass: float | None = None, units: float | str = 1.0
) -> Inertia:
    """Mass properties of a solid whose surface is a triangle mesh.

    Parameters
    ----------
    path : str or Path
        An STL or OBJ file. Each edge of the surface joins two triangles, which turn counterclockwise as seen from
        outside; hollows are surfaces turned the other way. Vertices are joined where they agree to the bit.
    density : float (kg/m^3) or str
        Or the name of a material, such as "steel" (`rbchain.model.materials`).
    mass : float, kg
        Of the whole body, instead of a density.
    units : float or str
        What 1 in the file is, in m, or its name: "m", "cm", "mm", "in". Meshes do not say.

    Returns
    -------
    Inertia
        In the axes of the file.

    Raises
    ------
    FileFormatError
        If the file holds no such mesh: it cannot be read, the surface is open, its triangles turn in both ways, it is
        turned inside out, or one of its parts lies within another that is no hollow. Where surfaces cut through each
        other is not looked for.
    ModelError
        If density, mass or units do not fit.
    FileNotFoundError
    ImportError
        If trimesh is not installed.

    Notes
    -----
    Exact for the mesh: polynomials are integrated over its triangles (Eberly, *Polyhedral Mass Properties*, 2002).

    Examples
    --------
    >>> import tempfile, trimesh
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = trimesh.creation.box(extents=(30, 20, 10)).export(f"{folder}/brick.stl")
    ...     brick = inertia_of_mesh(f"{folder}/brick.stl", density="concrete", units="cm")
    >>> round(brick.mass, 9), brick.inertia.diagonal().round(9).tolist()
    (14.4, [0.06, 0.12, 0.156])
    """
    scale = _scale(units)
    if (mass is None) == (density is None):
        raise ModelError(f"mass is {mass} and density is {density}; expected exactly one of them")
    density = None if density is None else density_of(density)
    mass = None if mass is None else positive(mass, "mass")
    corners, middle, size = _solid(Path(path))
    found = _trimesh().triangles.mass_properties(corners)
    mass = float(density * found["volume"] * (size * scale) ** 3 if mass is None else mass)
    tensor = np.asarray(found["inertia"]) / found["volume"] * mass * (size * scale) ** 2
    return Inertia(mass, (middle + size * np.asarray(found["center_mass"])) * scale, tensor + 0.0)


def _scale(units: float | str) -> float:
    """Metres to a unit of the file."""
    if isinstance(units, str) and units in LENGTHS:
        return LENGTHS[units]
    try:
        return positive(units, "units")
    except ModelError as error:
        raise ModelError(f"{error} (of metres). Names of units do as well: {', '.join(LENGTHS)}") from None


def _solid(path: Path) -> tuple[np.ndarray, np.ndarray, float]:
    """Corners (triangles, 3, 3) of a mesh that bounds a solid, about its middle and of size 1; the middle; the size.

    Raises FileFormatError, which says why it bounds none.
    """
    corners = _triangles(path).reshape(-1, 3)
    if not np.isfinite(corners).all():
        raise FileFormatError(f"{path}: some coordinates are not finite; expected finite numbers")
    vertices, faces = np.unique(corners, axis=0, return_inverse=True)
    faces = faces.reshape(-1, 3)
    # a triangle two of whose corners are one closes no hole and opens none
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(1)]
    if not len(faces):
        raise FileFormatError(f"{path}: the mesh has no triangles; expected a closed surface")
    # integrals about a far origin would lose digits
    low, high = vertices.min(0), vertices.max(0)
    middle, size = (low + high) / 2, (high - low).max()
    mesh = _trimesh().Trimesh((vertices - middle) / size, faces, process=False)
    if not mesh.is_watertight:
        raise FileFormatError(
            f"{path}: the mesh is not closed: {_loose_edges(faces)} of its edges do not join two triangles; expected a "
            "surface without holes"
        )
    if not mesh.is_winding_consistent:
        raise FileFormatError(
            f"{path}: neighbouring triangles turn in opposite ways; expected all of them counterclockwise from outside"
        )
    corners = np.asarray(mesh.triangles)
    volume = np.linalg.det(corners).sum() / 6
    if not volume > 1e-12:  # of a size of 1: less is rounding
        raise FileFormatError(
            f"{path}: the mesh encloses the volume {volume * size**3:.3g}; expected a positive one, with triangles "
            "counterclockwise as seen from outside"
        )
    _check_parts(path, mesh.face_adjacency, corners)
    return corners, middle, size


def _triangles(path: Path) -> np.ndarray:
    """Corners (triangles, 3, 3) of whatever triangles are in a file."""
    if path.suffix.lower() not in ENDINGS:
        raise FileFormatError(
            f"{path}: rbchain reads meshes that end in {' or '.join(ENDINGS)}; found {path.suffix or 'no ending'}"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    trimesh = _trimesh()
    try:
        mesh = trimesh.load_mesh(path, process=False, skip_materials=True)
        return np.asarray(mesh.triangles, np.float64)
    except Exception as error:  # of whatever kind a broken file makes a reader raise
        raise FileFormatError(f"{path}: cannot be read as a triangle mesh ({error})") from error


def _loose_edges(faces: np.ndarray) -> int:
    """How many edges do not join exactly two triangles."""
    edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    return int((np.unique(edges, axis=0, return_counts=True)[1] != 2).sum())


def _check_parts(path: Path, neighbours: np.ndarray, corners: np.ndarray) -> None:
    """Refuse a mesh unless just beneath the surface of each part there is material, once: not twice, and not none."""
    labels = _trimesh().graph.connected_component_labels(neighbours, node_count=len(corners))
    parts = [np.flatnonzero(labels == part) for part in range(labels.max() + 1)]
    low, high = (np.array([bound(corners[part], axis=(0, 1)) for part in parts]) for bound in (np.min, np.max))
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(normals, axis=1)

    def turns(triangle: int, depth: float) -> float:
        """How often the mesh winds around a point beneath a triangle; the parts whose boxes it lies outside, never."""
        point = corners[triangle].mean(0) - depth / areas[triangle] * normals[triangle]
        near = ((low <= point) & (point <= high)).all(1)
        return _winding(corners[near[labels]] - point)

    for number, part in enumerate(parts, 1):
        largest = part[np.argmax(areas[part])]
        if areas[largest] == 0.0:
            continue
        # near enough for thin sheets; or else deep enough for parts that touch as well as float32 can say
        found = [turns(largest, depth) for depth in (1e-9, 1e-6)]
        if all(abs(x - 1.0) > 0.1 for x in found):
            raise FileFormatError(
                f"{path}: beneath the surface of part {number} of {len(parts)} there is material {round(found[1])} "
                "times; expected once: a part is turned inside out, or lies within another"
            )


def _winding(corners: np.ndarray) -> float:
    """How often triangles with these corners wind around the origin (Van Oosterom and Strackee 1983)."""
    a, b, c = np.moveaxis(corners, 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("ij,ij->i", x, y) for x, y in ((a, b), (b, c), (c, a)))
    return float(np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb).sum() / (2 * np.pi))


def _trimesh() -> Any:
    """The package, imported when first needed."""
    try:
        import trimesh
    except ImportError:
        raise ImportError("meshes need the package trimesh, which is missing: pip install 'rbchain[meshes]'") from None
    return trimesh
