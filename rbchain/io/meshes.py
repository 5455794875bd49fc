"""Mass properties of closed triangle meshes; trimesh reads the files (the `meshes` extra)."""

from pathlib import Path
from typing import Any

import numpy as np

from ..common.calls import explains_calls
from ..errors import FileFormatError, ModelError, missing_package
from ..model.inertia import Inertia
from ..model.materials import density_of
from ..model.pose import positive

LENGTHS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "in": 0.0254}
ENDINGS = (".stl", ".obj")


@explains_calls()
def inertia_of_mesh(
    path: str | Path, *, density: float | str | None = None, mass: float | None = None, units: float | str = 1.0
) -> Inertia:
    """Compute the mass properties of a homogeneous solid whose surface is a triangle mesh.

    Parameters
    ----------
    path : str or Path
        An STL or OBJ file with a closed surface: each edge belongs to two triangles. The vertices of the triangles are
        in counterclockwise order as seen from outside the material; this also applies to the surfaces of cavities.
        Vertices with equal coordinates are merged.
    density : float (kg/m^3) or str
        Density, or the name of a material such as "steel" (`rbchain.density_of`). Give either `density` or `mass`.
    mass : float, kg
        Mass of the body.
    units : float or str
        Unit of the coordinates in the file: its length in m, or its name "m", "cm", "mm" or "in". Mesh files do not
        contain their unit.

    Returns
    -------
    Inertia
        In the axes of the file.

    Raises
    ------
    FileFormatError
        If the file cannot be read, the surface is open, neighboring triangles have opposite orientations, the surface
        is inside out, or one part lies inside another without being a cavity. Intersecting surfaces are not detected.
    ModelError
        If density, mass or units are invalid.
    FileNotFoundError
        If the file does not exist.
    ImportError
        If trimesh is not installed.

    Notes
    -----
    The result is exact for the mesh: polynomials are integrated over its triangles (Eberly, *Polyhedral Mass
    Properties*, 2002).

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
    return Inertia(mass, cg=(middle + size * np.asarray(found["center_mass"])) * scale, inertia=tensor + 0.0)


def _scale(units: float | str) -> float:
    """Return the unit of the file in m."""
    if isinstance(units, str) and units in LENGTHS:
        return LENGTHS[units]
    try:
        return positive(units, "units")
    except ModelError as error:
        raise ModelError(f"{error} (the length of the unit in m), or one of {', '.join(LENGTHS)}") from None


def _solid(path: Path) -> tuple[np.ndarray, np.ndarray, float]:
    """Read a mesh: the corners of its triangles (triangles, 3, 3), its middle (3,) and its size.

    The corners are relative to the middle and scaled to size 1. Raises FileFormatError with the reason if the mesh does
    not bound a solid.
    """
    corners = _triangles(path).reshape(-1, 3)
    if not np.isfinite(corners).all():
        raise FileFormatError(f"{path}: some coordinates are NaN or infinite; expected finite numbers")
    vertices, faces = np.unique(corners, axis=0, return_inverse=True)
    faces = faces.reshape(-1, 3)
    # triangles with two equal corners have no area and do not change whether the surface is closed
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(1)]
    if not len(faces):
        raise FileFormatError(f"{path}: the mesh has no triangles; expected a closed surface")
    # integrals about a distant origin would lose digits
    low, high = vertices.min(0), vertices.max(0)
    middle, size = (low + high) / 2, (high - low).max()
    mesh = _trimesh().Trimesh((vertices - middle) / size, faces, process=False)
    if not mesh.is_watertight:
        raise FileFormatError(
            f"{path}: the mesh is not closed: {_loose_edges(faces)} of its edges do not join two triangles; expected a "
            "surface without holes. Repair the mesh, for example in MeshLab or Blender"
        )
    if not mesh.is_winding_consistent:
        raise FileFormatError(
            f"{path}: neighboring triangles have opposite orientations; expected the vertices of all triangles in "
            "counterclockwise order as seen from outside"
        )
    corners = np.asarray(mesh.triangles)
    volume = np.linalg.det(corners).sum() / 6
    if not volume > 1e-12:  # the mesh has size 1, so a smaller volume is round-off
        raise FileFormatError(
            f"{path}: the mesh encloses the volume {volume * size**3:.3g}; expected a positive volume, with the "
            "vertices of triangles in counterclockwise order as seen from outside"
        )
    _check_parts(path, mesh.face_adjacency, corners)
    return corners, middle, size


def _triangles(path: Path) -> np.ndarray:
    """Read the corners (triangles, 3, 3) of all triangles in a file."""
    if path.suffix.lower() not in ENDINGS:
        raise FileFormatError(
            f"{path}: the name ends in {path.suffix!r}; expected a mesh, {' or '.join(map(repr, ENDINGS))}"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    trimesh = _trimesh()
    try:
        mesh = trimesh.load_mesh(path, process=False, skip_materials=True)
        return np.asarray(mesh.triangles, np.float64)
    except Exception as error:  # trimesh raises many types of exceptions for broken files
        raise FileFormatError(f"{path}: cannot be read as a triangle mesh ({error})") from error


def _loose_edges(faces: np.ndarray) -> int:
    """Number of edges that do not join exactly two triangles."""
    edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    return int((np.unique(edges, axis=0, return_counts=True)[1] != 2).sum())


def _check_parts(path: Path, neighbors: np.ndarray, corners: np.ndarray) -> None:
    """Raise a FileFormatError unless the mesh winds exactly once around points just inside the surface of each part."""
    labels = _trimesh().graph.connected_component_labels(neighbors, node_count=len(corners))
    parts = [np.flatnonzero(labels == part) for part in range(labels.max() + 1)]
    low, high = (np.array([bound(corners[part], axis=(0, 1)) for part in parts]) for bound in (np.min, np.max))
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(normals, axis=1)

    def winding_inside(triangle: int, depth: float) -> float:
        """Winding number of the mesh at a point inside a triangle. Parts whose bounding box excludes it count zero."""
        point = corners[triangle].mean(0) - depth / areas[triangle] * normals[triangle]
        near = ((low <= point) & (point <= high)).all(1)
        return _winding(corners[near[labels]] - point)

    for number, part in enumerate(parts, 1):
        largest = part[np.argmax(areas[part])]
        if areas[largest] == 0.0:
            continue
        # the first depth suits thin sheets, the second suits parts that touch up to round-off of float32
        found = [winding_inside(largest, depth) for depth in (1e-9, 1e-6)]
        if all(abs(x - 1.0) > 0.1 for x in found):
            raise FileFormatError(
                f"{path}: part {number} of {len(parts)} of the mesh is inside out or lies inside another part (winding "
                f"number {round(found[1])} below its surface); expected 1. Remove the part or reverse its triangles"
            )


def _winding(corners: np.ndarray) -> float:
    """Winding number of triangles with these corners around the origin (Van Oosterom and Strackee 1983)."""
    a, b, c = np.moveaxis(corners, 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("ij,ij->i", x, y) for x, y in ((a, b), (b, c), (c, a)))
    return float(np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb).sum() / (2 * np.pi))


def _trimesh() -> Any:
    """Import trimesh when it is first needed."""
    try:
        import trimesh
    except ImportError:
        raise ImportError(missing_package("meshes need the package trimesh", "meshes")) from None
    return trimesh
