"""Chains from Denavit and Hartenberg's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..builder import ModelBuilder
from ..chain import Model
from ..errors import ModelError
from ..model import validation
from ..model.immersion import Immersion
from ..model.inertia import Inertia
from ..model.joint import Fixed, Prismatic, Revolute
from ..model.limits import JointLimits
from ..model.passive import PassiveForces
from ..model.pose import Pose, numbers, rotation_matrix, vector3

JOINTS: dict[str, type[Revolute | Prismatic]] = {"revolute": Revolute, "prismatic": Prismatic}


@dataclass(frozen=True, eq=False)
class DHLink:
    """A row of the table, and the link, joint and motor that belong to it.

    The motor's friction is given at its shaft, as in Corke's robotics toolbox, where it is called B and Tc. The joint
    feels gear_ratio^2 B as `damping` and abs(gear_ratio) Tc as dry friction (see `PassiveForces`).

    Parameters
    ----------
    a, alpha, d, theta : m, rad, m, rad
        Of a revolute joint, theta is an offset that is added to q; of a prismatic one, d is.
    joint : "revolute" or "prismatic"
    mass : float, kg
    cg : (3,) array, m
        In the link's frame (of a classic table, the one at its far end).
    inertia : Inertia, or (3,), (6,) or (3, 3) array, kg m^2, optional
        In the link's frame: an `Inertia`, which says mass and cg too, or a tensor about the cg.
    radius, length : float, m, optional
        Of a cylinder whose inertia the link has, if none is given, and which water sees; along the largest
        component of cg, or along x.
    drag : float
        Coefficient of the cylinder's drag across.
    friction : float, N m s/rad or N s/m
        Viscous friction of the joint.
    rotor_inertia : float, kg m^2
        Inertia of the motor's rotor about its own axis (Jm).
    gear_ratio : float (rad/m of a prismatic joint)
        Turns of the rotor per turn of the joint (G). It may be negative; only its size matters here.
    motor_viscous_friction : float, N m s/rad
        Viscous friction of the motor, at its shaft (B).
    motor_coulomb_friction : float or (2,) array, N m
        Dry friction of the motor, at its shaft (Tc): the torque that overcomes it at positive velocities of the joint,
        zero or more, and at negative ones, zero or less. One number c stands for (c, -c).
    limits : JointLimits, optional
        Range of the joint (qlim), velocity and effort at the joint. They are kept, but do not act.

    Examples
    --------
    The waist of the Puma 560 resists with 0.395 N m at the motor's shaft in the positive direction, and with 0.435 N m
    in the negative one; its gear multiplies both by 62.6:

    >>> from rbchain.io.dh import DHLink, from_dh
    >>> waist = DHLink(0, 0, 0, mass=1, inertia=(1, 1, 1), gear_ratio=-62.6111, motor_coulomb_friction=(0.395, -0.435))
    >>> from_dh([waist]).passive_forces([[0.0], [0.0]], [[1.0], [-1.0]]).round(1).ravel().tolist()
    [-24.7, 27.2]
    """

    a: float
    alpha: float
    d: float
    theta: float = 0.0
    joint: str = "revolute"
    mass: float = 0.0
    cg: npt.ArrayLike = (0.0, 0.0, 0.0)
    inertia: Inertia | npt.ArrayLike | None = None
    radius: float | None = None
    length: float | None = None
    drag: float = 0.0
    friction: float = 0.0
    rotor_inertia: float = 0.0
    gear_ratio: float = 1.0
    motor_viscous_friction: float = 0.0
    motor_coulomb_friction: npt.ArrayLike = 0.0
    limits: JointLimits | None = None

    def fixed_part(self) -> tuple[Pose, Pose]:
        """Where the table's screw along x puts the next frame, and that along z this joint, apart from q."""
        a, alpha, d, theta = (float(numbers(getattr(self, n), n, ())) for n in ("a", "alpha", "d", "theta"))
        return Pose((a, 0, 0), turn(0, alpha)), Pose((0, 0, d), turn(2, theta))

    def own_inertia(self) -> Inertia:
        """The link's mass, centre of mass and tensor, in its own frame."""
        if isinstance(self.inertia, Inertia):
            if self.mass != 0.0 or np.any(self.cg):
                raise ModelError(
                    f"inertia is an Inertia, and mass {self.mass} and cg {self.cg} are given besides; expected one way "
                    "to say mass and cg. Leave out mass and cg, or give inertia as a tensor"
                )
            return self.inertia
        if self.inertia is not None:
            return Inertia(self.mass, self.cg, self.inertia)
        if self.radius is None and self.length is None:
            return Inertia(self.mass, self.cg)
        if self.radius is None or self.length is None:
            raise ModelError(f"radius is {self.radius} and length {self.length}; expected both")
        return Inertia.cylinder(self.radius, self.length, mass=self.mass, axis=main_axis(self.cg), cg=self.cg)

    def passive_forces(self) -> PassiveForces:
        """Friction of the joint and of its motor, as the joint feels it."""
        names = ("friction", "motor_viscous_friction", "gear_ratio")
        joint, motor, gear = (float(numbers(getattr(self, name), name, ())) for name in names)
        if joint < 0.0 or motor < 0.0:
            raise ModelError(f"friction is {joint} and motor_viscous_friction {motor}; expected zero or more")
        forwards, backwards = self._coulomb_friction()
        return PassiveForces(
            damping=joint + motor * gear**2,
            friction=abs(gear) * (forwards - backwards) / 2,
            friction_asymmetry=abs(gear) * (forwards + backwards) / 2,
        )

    def _coulomb_friction(self) -> tuple[float, float]:
        given = numbers(self.motor_coulomb_friction, "motor_coulomb_friction")
        found = np.array([given, -given]) if given.shape == () else given
        if found.shape != (2,) or found[0] < 0.0 or found[1] > 0.0:
            raise ModelError(
                f"motor_coulomb_friction is {given.tolist()}; expected a number that is not negative, or two: that in "
                "the positive direction, zero or more, and that in the negative direction, zero or less"
            )
        return float(found[0]), float(found[1])

    def immersion(self, inertia: Inertia) -> Immersion | None:
        """The link's cylinder in water, centred on its cg; None where it has no radius and length."""
        if self.radius is None or self.length is None:
            return None
        cg, mass = inertia.cg, inertia.mass or None
        return Immersion.cylinder(self.radius, self.length, mass=mass, axis=main_axis(cg), center=cg, drag=self.drag)


def main_axis(cg: npt.ArrayLike) -> np.ndarray:
    """Along which axis of its frame a link with this cg lies: that of the largest component, x if there is none."""
    return np.eye(3)[np.argmax(np.abs(vector3(cg, "cg")))]


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
    nonphysical_inertia: str = "refuse",
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
    nonphysical_inertia : "refuse" or "warn"
        What to do about an inertia tensor against the triangle inequality: no body can have one, but measured tensors
        of real robots do, such as those of links 1 and 3 of the Puma 560. "warn" names the links, and uses the tensors
        as they are. A tensor with a negative principal moment is always refused.

    Returns
    -------
    Model
        Bodies "link1", "link2" ...; the frames of a classic table are "frame1", "frame2" ..., the last of a table also
        "end_effector".

    References
    ----------
    Denavit and Hartenberg (1955); Craig (2005), chapter 3; Corke (2017), *Robotics, Vision and Control*, chapters 7 and
    9, with which the tests compare the Puma 560.

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
    builder = ModelBuilder(
        name=name, gravity=gravity, fluid_density=fluid_density, nonphysical_inertia=nonphysical_inertia
    )
    at = base_pose(base_coordinates) @ Pose(rotation=rotation_matrix(base_rotation))
    parent = None
    for number, link in enumerate(links, 1):
        if link.joint not in JOINTS:
            raise ModelError(f"link {number}: joint is {link.joint!r}; expected one of {list(JOINTS)}")
        classic = convention == "classic"
        try:
            along_x, along_z = link.fixed_part()
            inertia, passive = link.own_inertia(), link.passive_forces()
            immersion = link.immersion(inertia)
        except ModelError as error:
            raise ModelError(f"link {number}: {error}") from None
        # both screws along and about z commute, so that the offset may stand before the joint
        placement = at @ along_z if classic else at @ along_x @ along_z
        own = along_x if classic else Pose()
        validation.check_moments((f"link{number}",), inertia.inertia[None])
        builder.add_body(
            f"link{number}",
            parent=parent,
            joint=JOINTS[link.joint]((0.0, 0.0, 1.0)),
            placement=placement,
            inertia=inertia.moved(own),
            rotor_inertia=link.rotor_inertia,
            gear_ratio=link.gear_ratio,
            passive=passive,
            immersion=None if immersion is None else immersion.moved(own),
            limits=link.limits,
        )
        parent, at = f"link{number}", own
        builder.add_body(f"frame{number}", parent=parent, joint=Fixed(), placement=own)
    builder.add_body("end_effector", parent=parent, joint=Fixed(), placement=at)
    return builder.build()
