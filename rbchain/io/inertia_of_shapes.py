"""Inertias of links without mass, from their shapes and a density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..errors import FileFormatError, ModelError
from ..model.collision_shape import CollisionShape
from ..model.inertia import Inertia
from ..model.materials import density_of
from ..model.visual import Visual
from .meshes import inertia_of_mesh
from .notes import Notes, listed


def inertias_of_links(
    groups: Sequence[Sequence[str]],
    given: Mapping[str, Inertia],
    shapes: tuple[Mapping[str, Sequence[CollisionShape]], Mapping[str, Sequence[Visual]]],
    density: float | str,
    notes: Notes,
) -> dict[str, Inertia]:
    """Return the inertias of the links of massless moving bodies, from their shapes.

    Parameters
    ----------
    groups : sequence of sequences of str
        The links of each moving body: the link of its joint, and the links that are fixed to it.
    given : dict of Inertia
        The inertias in the file. A body is massless if none of its links has a mass.
    shapes : two dicts
        The collision shapes and the visuals of the links. Only links without collision shapes use their visuals.
    density : float (kg/m^3) or str
        The density, or the name of a material.
    notes : Notes
        Receives sentences on the links that get inertias, and on shapes that have none.

    Raises
    ------
    ModelError
        If the density is not positive, or no material.
    """
    number, found, faults = density_of(density), dict[str, Inertia](), dict[str, None]()
    for group in groups:
        if any(link in given and given[link].mass > 0.0 for link in group):
            continue
        for link in group:
            for shape in shapes[0].get(link, ()) or shapes[1].get(link, ()):
                try:
                    found[link] = found.get(link, Inertia(0.0)) + inertia_of_shape(shape, number)
                except (FileFormatError, ModelError, FileNotFoundError) as error:
                    faults[f"link {link!r}: {error}"] = None
    if found:
        notes.add(f"links {listed([*found])} have no mass in the file: their inertias follow from their shapes")
    if faults:
        notes.add(f"shapes without inertia: {'; '.join(faults)}")
    return found


def inertia_of_shape(shape: CollisionShape | Visual, density: float) -> Inertia:
    """Return the inertia of a homogeneous solid with this shape, in the frame of its body.

    Raises FileFormatError if a mesh is not closed, and ModelError if the shape has no volume.
    """
    kind, size = shape.shape, shape.size
    if kind == "box":
        found = Inertia.box(size, density=density)
    elif kind == "sphere":
        found = Inertia.sphere(*size, density=density)
    elif kind == "cylinder":
        found = Inertia.cylinder(*size, density=density)
    elif kind == "capsule":
        found = _of_capsule(size[0], size[1], density)
    elif kind == "ellipsoid":
        a, b, c = np.square(size)
        mass = density * 4.0 / 3.0 * np.pi * float(np.prod(size))
        found = Inertia(mass, inertia=mass / 5.0 * np.array([b + c, a + c, a + b]))
    elif kind == "mesh":
        found = _scaled(inertia_of_mesh(Path(shape.file), density=density), np.asarray(size))
    else:
        raise ModelError(f"the shape is a {kind}; expected a solid")
    return found.moved(shape.pose)


def _of_capsule(radius: float, length: float, density: float) -> Inertia:
    """Return the inertia of a cylinder along z with two hemispheres at its ends."""
    half = Inertia.sphere(radius, density=density).mass / 2.0
    arm = length / 2.0 + 3.0 / 8.0 * radius  # of the center of mass of a hemisphere
    across = half * (2.0 / 5.0 - 9.0 / 64.0) * radius**2 + half * arm**2
    ends = Inertia(2.0 * half, inertia=(2.0 * across, 2.0 * across, 0.8 * half * radius**2))
    return ends + Inertia.cylinder(radius, length, density=density) if length else ends


def _scaled(solid: Inertia, factors: np.ndarray) -> Inertia:
    """Return the inertia of a solid whose coordinates are multiplied by factors along the axes."""
    S, mass = np.diag(factors), solid.mass * abs(float(np.prod(factors)))
    moments = S @ (np.trace(solid.inertia) / 2.0 * np.eye(3) - solid.inertia) @ S / solid.mass  # of second order
    tensor = mass * (np.trace(moments) * np.eye(3) - moments)
    return Inertia(mass, cg=factors * solid.cg, inertia=(tensor + tensor.T) / 2.0)
