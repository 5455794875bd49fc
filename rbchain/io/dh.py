"""Models from Denavit-Hartenberg (DH) tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ..common.values import Value
from ..errors import ModelError
from ..facade.builder import ModelBuilder
from ..facade.model import Model
from ..model import validation
from ..model.immersion import Immersion
from ..model.inertia import Inertia
from ..model.joint import Fixed, Prismatic, Revolute
from ..model.limits import JointLimits
from ..model.passive import PassiveForces
from ..model.pose import Pose, numbers, rotation_matrix, vector3

JOINTS: dict[str, type[Revolute | Prismatic]] = {"revolute": Revolute, "prismatic": Prismatic}


@dataclass(frozen=True, eq=False)
class DHLink(Value):
    """A row of a Denavit-Hartenberg table, with the properties of the link, the joint and the motor.

    The friction of the motor is given at its shaft, as B and Tc in Corke's Robotics Toolbox. At the joint it is a
    `damping` of gear_ratio^2 B and a dry friction of abs(gear_ratio) Tc (see `PassiveForces`).

    Parameters
    ----------
    a, alpha, d, theta : float, m, rad, m, rad
        DH parameters. q is added to theta of a revolute joint and to d of a prismatic joint.
    joint : "revolute" or "prismatic"
        Type of the joint.
    mass : float, kg
        Mass of the link.
    cg : (3,) array, m
        Center of mass in the link's frame (in a classic table, the frame at the far end of the link).
    inertia : Inertia, or (3,), (6,) or (3, 3) array, kg m^2, optional
        An `Inertia` in the link's frame, which includes mass and cg, or a tensor about the center of mass.
    radius, length : float, m, optional
        Size of a cylinder centered at cg, along the axis of the largest component of cg (x if cg is zero). It defines
        the inertia, if `inertia` is not given, and the immersion in water.
    drag : float
        Drag coefficient of the cylinder for a flow normal to its axis.
    friction : float, N m s/rad or N s/m
        Viscous friction of the joint.
    rotor_inertia : float, kg m^2
        Moment of inertia of the motor's rotor about its own axis (Jm).
    gear_ratio : float (prismatic joint: rad/m)
        Rotations of the rotor per rotation of the joint (G). Its sign has no effect.
    motor_viscous_friction : float, N m s/rad
        Viscous friction of the motor at its shaft (B).
    motor_coulomb_friction : float or (2,) array, N m
        Dry friction of the motor at its shaft (Tc): the torque that overcomes it at positive velocities of the joint,
        zero or more, and at negative velocities, zero or less. One number c stands for (c, -c).
    limits : JointLimits, optional
        Limits of the joint's position (qlim), velocity and effort. They are stored but not enforced.

    Examples
    --------
    In the waist of the Puma 560, the friction at the motor's shaft is 0.395 N m in the positive and 0.435 N m in the
    negative direction. The gear ratio of 62.6 multiplies both:

    >>> from rbchain.io.dh import DHLink, from_dh
    >>> waist = DHLink(0, 0, 0, mass=1, inertia=(1, 1, 1), gear_ratio=-62.6111, motor_coulomb_friction=(0.395, -0.435))
    >>> from_dh([waist]).passive_forces([[0.0], [0.0]], [[1.0], [-1.0]]).round(1).ravel().tolist()
    [-24.7, 27.2]
    """

    internal_names: ClassVar[tuple[str, ...]] = ("fixed_part", "own_inertia", "immersion", "passive_forces")
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
        """Return the poses Tx(a) Rx(alpha) and Rz(theta) Tz(d), without q."""
        a, alpha, d, theta = (float(numbers(getattr(self, n), n, ())) for n in ("a", "alpha", "d", "theta"))
        return Pose((a, 0, 0), rotation_about(0, alpha)), Pose((0, 0, d), rotation_about(2, theta))

    def own_inertia(self) -> Inertia:
        """Return the inertia of the link in its own frame."""
        if isinstance(self.inertia, Inertia):
            if self.mass != 0.0 or np.any(self.cg):
                raise ModelError(
                    f"inertia is an Inertia, which contains mass and cg, but mass {self.mass} and cg {self.cg} are "
                    "given as well. Omit mass and cg, or pass inertia as a tensor"
                )
            return self.inertia
        if self.inertia is not None:
            return Inertia(self.mass, cg=self.cg, inertia=self.inertia)
        if self.radius is None and self.length is None:
            return Inertia(self.mass, cg=self.cg)
        if self.radius is None or self.length is None:
            raise ModelError(f"radius is {self.radius} and length is {self.length}; expected both or neither")
        return Inertia.cylinder(self.radius, self.length, mass=self.mass, axis=main_axis(self.cg), cg=self.cg)

    def passive_forces(self) -> PassiveForces:
        """Return the friction of the joint and of the motor, at the joint."""
        names = ("friction", "motor_viscous_friction", "gear_ratio")
        joint, motor, gear = (float(numbers(getattr(self, name), name, ())) for name in names)
        if joint < 0.0 or motor < 0.0:
            raise ModelError(f"friction is {joint} and motor_viscous_friction is {motor}; expected zero or more")
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
                f"motor_coulomb_friction is {given.tolist()}; expected a number of zero or more, or two numbers: zero "
                "or more for positive velocities, and zero or less for negative velocities"
            )
        return float(found[0]), float(found[1])

    def immersion(self, inertia: Inertia) -> Immersion | None:
        """Return the immersion of the link's cylinder; None if the link does not have a radius and a length."""
        if self.radius is None or self.length is None:
            return None
        cg, mass = inertia.cg, inertia.mass or None
        return Immersion.cylinder(self.radius, self.length, mass=mass, axis=main_axis(cg), center=cg, drag=self.drag)


def main_axis(cg: npt.ArrayLike) -> np.ndarray:
    """Return the unit vector of the axis with the largest component of cg; x if cg is zero."""
    return np.eye(3)[np.argmax(np.abs(vector3(cg, "cg")))]


def rotation_about(axis: int, angle: float) -> np.ndarray:
    """Return the rotation matrix about x, y or z (0, 1, 2)."""
    c, s = np.cos(angle), np.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def base_pose(coordinates: npt.ArrayLike) -> Pose:
    """Return the pose of x, y, z, roll, pitch, yaw (m, rad): R = Rz(yaw) Ry(pitch) Rx(roll)."""
    found = numbers(coordinates, "base_coordinates", (6,))
    roll, pitch, yaw = found[3:]
    return Pose(found[:3], rotation_about(2, yaw) @ rotation_about(1, pitch) @ rotation_about(0, roll))


def from_dh(
    links: Sequence[DHLink],
    *,
    convention: str = "classic",
    base_rotation: npt.ArrayLike | None = None,
    base_coordinates: npt.ArrayLike = (0.0,) * 6,
    gravity: npt.ArrayLike = (0.0, 0.0, -9.81),
    fluid_density: float = 0.0,
    name: str = "chain",
    nonphysical_inertia: Literal["refuse", "warn"] = "refuse",
) -> Model:
    """Build the serial chain of a Denavit-Hartenberg table.

    Parameters
    ----------
    links : list of DHLink
        The rows of the table, from the base to the end effector.
    convention : "classic" or "modified"
        Classic (Denavit and Hartenberg 1955; Spong): T = Rz(theta) Tz(d) Tx(a) Rx(alpha), with the frame at the far end
        of the link. Modified (Craig): T = Rx(alpha) Tx(a) Rz(theta) Tz(d), with the frame at the joint of the link.
    base_rotation : (3, 3) array or quaternion [x, y, z, w], optional
        Additional rotation of the table's base: its pose is the pose of `base_coordinates` times this rotation.
    base_coordinates : (6,) array, m and rad
        Pose of the base in the world: x, y, z, roll, pitch, yaw with R = Rz(yaw) Ry(pitch) Rx(roll).
    gravity : (3,) array, m/s^2
        Gravitational acceleration in world axes.
    fluid_density : float, kg/m^3
        Density of the water around the links that have a radius and a length; 0 in air.
    name : str
        Name of the model.
    nonphysical_inertia : "refuse" or "warn"
        Whether an inertia tensor that violates the triangle inequality raises a ModelError, or only causes a warning
        and is used unchanged. Measured tensors of real robots may violate it, such as the tensors of links 1 and 3 of
        the Puma 560. A tensor with a negative principal moment always raises a ModelError.

    Returns
    -------
    Model
        Its bodies are "link1", "link2", ...; the frames of the table are "frame1", "frame2", ...; the last frame is
        also "end_effector".

    Raises
    ------
    ModelError
        If an argument is invalid; the message contains the number of the link.

    References
    ----------
    Denavit and Hartenberg (1955); Craig (2005), chapter 3; Corke (2017), *Robotics, Vision and Control*, chapters 7
    and 9. The tests compare the Puma 560 with Corke's results.

    Examples
    --------
    A planar arm with two links of 1 m, stretched out along x:

    >>> from rbchain.io.dh import DHLink, from_dh
    >>> arm = from_dh([DHLink(1, 0, 0, mass=1, cg=(-0.5, 0, 0), radius=0.1, length=1) for _ in range(2)])
    >>> arm.frame_poses([0.0, 0.0], "end_effector").translation.tolist()
    [2.0, 0.0, 0.0]
    """
    if convention not in ("classic", "modified"):
        raise ModelError(f'convention is {convention!r}; expected "classic" or "modified"')
    if isinstance(links, DHLink) or not links or not all(isinstance(link, DHLink) for link in links):
        raise ModelError(f"links is {links!r}; expected a list of one or more DHLink")
    builder = ModelBuilder(
        name=name, gravity=gravity, fluid_density=fluid_density, nonphysical_inertia=nonphysical_inertia
    )
    at = base_pose(base_coordinates) @ Pose(rotation=rotation_matrix(base_rotation))
    parent = None
    for number, link in enumerate(links, 1):
        if link.joint not in JOINTS:
            raise ModelError(f'link {number}: joint is {link.joint!r}; expected "revolute" or "prismatic"')
        classic = convention == "classic"
        with validation.naming(f"link {number}"):
            along_x, along_z = link.fixed_part()
            inertia, passive = link.own_inertia(), link.passive_forces()
            immersion = link.immersion(inertia)
        # translations along and rotations about z commute, so theta and d can be part of the placement
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
