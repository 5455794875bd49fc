"""Chains from Denavit and Hartenberg's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..chain import Model
from ..errors import ModelError
from ..model.builder import ModelBuilder
from ..model.immersion import Immersion
from ..model.inertia import Inertia
from ..model.joint import Fixed, Prismatic, Revolute
from ..model.passive import JointForces
from ..model.pose import Pose, numbers, rotation_matrix, vector3

JOINTS: dict[str, type[Revolute | Prismatic]] = {"revolute": Revolute, "prismatic": Prismatic}


@dataclass(frozen=True, eq=False)
class DHLink:
    """A row of the table, and the link that belongs to it.

    Parameters
    ----------
    a, alpha, d, theta : m, rad, m, rad
        Of a revolute joint, theta is an offset that is added to q; of a prismatic one, d is.
    joint : "revolute" or "prismatic"
    mass : float, kg
    cg : (3,) array, m
        In the link's frame (of a classic table, the one at its far end).
    inertia : (3,), (6,) or (3, 3) array, kg m^2, optional
        About the cg in the link's frame.
    radius, length : float, m, optional
        Of a cylinder whose inertia the link has, if none is given, and which water sees; along the largest
        component of cg, or along x.
    drag : float
        Coefficient of the cylinder's drag across.
    friction : float, N m s/rad or N s/m
        Viscous, of the joint.
    """

    a: float
    alpha: float
    d: float
    theta: float = 0.0
    joint: str = "revolute"
    mass: float = 0.0
    cg: npt.ArrayLike = (0.0, 0.0, 0.0)
    inertia: npt.ArrayLike | None = None
    radius: float | None = None
    length: float | None = None
    drag: float = 0.0
    friction: float = 0.0

    def fixed_part(self) -> tuple[Pose, Pose]:
        """Where the table's screw along x puts the next frame, and that along z this joint, apart from q."""
        a, alpha, d, theta = (float(numbers(getattr(self, n), n, ())) for n in ("a", "alpha", "d", "theta"))
        return Pose((a, 0, 0), turn(0, alpha)), Pose((0, 0, d), turn(2, theta))


def turn(axis: int, angle: float) -> np.ndarray:
    """Rotation matrix about x, y or z (0, 1, 2)."""
    c, s = np.cos(angle), np.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def base_pose(coordinates: npt.ArrayLike) -> Pose:
    """Pose from the six base coordinates x, y, z, roll, pitch, yaw (m, rad): R = Rz(yaw) Ry(pitch) Rx(roll)."""
    eta = numbers(coordinates, "base coordinates", (6,))
    return Pose(eta[:3], turn(2, eta[5]) @ turn(1, eta[4]) @ turn(0, eta[3]))


def from_dh(
    links: Sequence[DHLink],
    *,
    convention: str = "classic",
    base_rotation: npt.ArrayLike | None = None,
    base_coordinates: npt.ArrayLike = (0.0,) * 6,
    gravity: npt.ArrayLike = (0.0, 0.0, -9.81),
    fluid_density: float = 0.0,
    name: str = "chain",
) -> Model:
    """The chain of a Denavit-Hartenberg table.

    Parameters
    ----------
    links : list of DHLink
    convention : "classic" or "modified"
        Classic (Denavit and Hartenberg 1955; Spong): T = Rz(theta) Tz(d) Tx(a) Rx(alpha), the frame at the link's far
        end; modified (Craig): T = Rx(alpha) Tx(a) Rz(theta) Tz(d), the frame at its joint.
    base_rotation : (3, 3) array or quaternion, optional
        Of the table's base against the frame that the base coordinates move.
    base_coordinates : (6,) array, m and rad
        x, y, z, roll, pitch, yaw of the base: R = Rz(yaw) Ry(pitch) Rx(roll).
    gravity : (3,) array, m/s^2
    fluid_density : float, kg/m^3
        Of the water around links that have a radius and length.

    Returns
    -------
    Model
        Bodies "link1", "link2" ...; the frames of a classic table are "frame1", "frame2" ..., the last of a table also
        "end_effector".

    Examples
    --------
    A planar arm of two links of 1 m, stretched out along x:

    >>> from rbchain.io.dh import DHLink, from_dh
    >>> arm = from_dh([DHLink(1, 0, 0, mass=1, cg=(-0.5, 0, 0), radius=0.1, length=1) for _ in range(2)])
    >>> arm.frame_poses([0.0, 0.0], "end_effector").translation.tolist()
    [2.0, 0.0, 0.0]
    """
    if convention not in ("classic", "modified"):
        raise ModelError(f'convention is {convention!r}; expected "classic" or "modified"')
    if not links or not all(isinstance(link, DHLink) for link in links):
        raise ModelError(f"links are {links!r}; expected a list of DHLinks")
    builder = ModelBuilder(name=name, gravity=gravity, fluid_density=fluid_density)
    at = base_pose(base_coordinates) @ Pose(rotation=rotation_matrix(base_rotation))
    parent = None
    for number, link in enumerate(links, 1):
        if link.joint not in JOINTS:
            raise ModelError(f"link {number}: joint is {link.joint!r}; expected one of {list(JOINTS)}")
        along_x, along_z = link.fixed_part()
        classic = convention == "classic"
        # both screws along and about z commute, so that the offset may stand before the joint
        placement = at @ along_z if classic else at @ along_x @ along_z
        own = along_x if classic else Pose()
        builder.add_body(
            f"link{number}",
            parent=parent,
            joint=JOINTS[link.joint]((0.0, 0.0, 1.0)),
            placement=placement,
            inertia=_inertia(number, link).moved(own),
            passive=JointForces(damping=link.friction),
            immersion=_immersion(link, own),
        )
        parent, at = f"link{number}", own
        builder.add_body(f"frame{number}", parent=parent, joint=Fixed(), placement=own)
    builder.add_body("end_effector", parent=parent, joint=Fixed(), placement=at)
    return builder.build()


def _axis(link: DHLink) -> np.ndarray:
    """Along which axis of its frame a link's cylinder lies."""
    return np.eye(3)[np.argmax(np.abs(vector3(link.cg, "cg")))]


def _inertia(number: int, link: DHLink) -> Inertia:
    if link.inertia is not None:
        return Inertia(link.mass, link.cg, link.inertia)
    if link.radius is None and link.length is None:
        return Inertia(link.mass, link.cg)
    if link.radius is None or link.length is None:
        raise ModelError(f"link {number}: radius is {link.radius} and length {link.length}; expected both")
    return Inertia.cylinder(link.radius, link.length, mass=link.mass, axis=_axis(link), cg=link.cg)


def _immersion(link: DHLink, own: Pose) -> Immersion | None:
    """The link's cylinder in water, centred on its cg."""
    if link.radius is None or link.length is None:
        return None
    cylinder = Immersion.cylinder(
        link.radius, link.length, mass=link.mass or None, axis=_axis(link), center=link.cg, drag=link.drag
    )
    return cylinder.moved(own)
