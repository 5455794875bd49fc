"""Passive forces of an MJCF file: springs, damping, friction, armature, gravity compensation and the fluid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ..model.immersion import Immersion, shifted
from ..model.passive import PassiveForces
from ..model.pose import Pose
from .mjcf_source import MIN_VALUE, Source, rotation


class Forces:
    """The passive forces of a file, as its `<flag>` element enables them, with damping and armature of its actuators.

    `stiffness` (njnt, 3) and `damping` (nv, 3) are the coefficients of the polynomials k0 x + k1 x^2 + k2 x^3 and
    d0 v + d1 abs(v) v + d2 v^3. `friction` and `armature` (nv,) belong to the degrees of freedom, and `gravcomp`
    (nbody,) belongs to the bodies. `fluid` has the density (kg/m^3) and the viscosity (Pa s).
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        model = source.model
        springs = not source.disabled("spring", "passive")
        dampers = not source.disabled("damper", "passive")
        acts = springs or dampers  # if both are disabled, MuJoCo also skips gravity compensation and the fluid
        armature, damping = _of_actuators(source)
        self.armature = model.dof_armature + armature
        damping += np.column_stack([model.dof_damping, source.field("dof_dampingpoly", model.nv, 2)])
        self.damping = damping * dampers
        stiffness = np.column_stack([model.jnt_stiffness, source.field("jnt_stiffnesspoly", model.njnt, 2)])
        self.stiffness = stiffness * springs
        self.friction = model.dof_frictionloss * (not source.disabled("frictionloss", "constraint"))
        self.gravity = model.opt.gravity * (not source.disabled("gravity"))
        compensation = model.body_gravcomp * (model.body_weldid > 0) * (acts and self.gravity.any())
        compensated = [body for body in range(1, model.nbody) if compensation[body]]
        by_actuators = {body: _compensating_joints(source, body) for body in compensated}
        #: Bodies whose gravity is compensated by actuators at all joints that carry them, then at some of these joints.
        self.lifted_by_actuators = [body for body, joints in by_actuators.items() if joints and all(joints)]
        self.partly_compensated = [body for body, joints in by_actuators.items() if any(joints) and not all(joints)]
        self.gravcomp = np.where(np.isin(np.arange(model.nbody), self.lifted_by_actuators), 0.0, compensation)
        self.fluid = acts * np.maximum([model.opt.density, model.opt.viscosity], 0.0)
        self.in_fluid = bool(self.fluid.any())
        self._dragged = self._drags() if self.in_fluid else {}
        self.free = np.array([j for j in range(model.njnt) if source.joint_type(j) == "free"], int)

    @property
    def fluid_density(self) -> float:
        """Density of the model's fluid in kg/m^3.

        It is 1 if the file has no dense fluid but needs immersions for other forces, and 0 if it needs no immersion.
        """
        if self.fluid[0]:
            return float(self.fluid[0])
        free = self._source.model.jnt_dofadr[self.free]
        return float(self.in_fluid or self.gravcomp.any() or self.armature[free].any())

    def without_drag(self) -> list[int]:
        """Bodies whose quadratic drag the model omits: they are fixed to another body with drag."""
        return sorted(other for others in self._dragged.values() for other in others) if self.fluid[0] else []

    def _drags(self) -> dict[int, list[int]]:
        """Bodies with drag, and bodies fixed to them whose linear drag is added.

        Quadratic drags in different frames cannot be added. So of the bodies that are fixed to each other, only the
        body with the largest area has quadratic drag.
        """
        model = self._source.model
        moving = (model.body_mass >= MIN_VALUE) & (model.body_weldid > 0)
        groups: dict[int, list[int]] = {}
        for body in np.flatnonzero(moving).tolist():
            groups.setdefault(int(model.body_weldid[body]), []).append(body)
        found = {}
        for bodies in groups.values():
            largest = max(bodies, key=lambda body: self._drag(body)[1].trace())
            found[largest] = [body for body in bodies if body != largest]
        return found

    def _drag(self, body: int) -> tuple[np.ndarray, np.ndarray]:
        """Linear and quadratic drag (6, 6) of a body in its inertial frame."""
        model = self._source.model
        linear, quadratic = _box_drag(model.body_mass[body], model.body_inertia[body], *self.fluid)
        return np.diag(linear), np.diag(quadratic)

    def _inertial_frame(self, body: int) -> Pose:
        """Inertial frame of a body in the frame of the body that carries all bodies fixed to it."""
        model = self._source.model
        pose, carrier = Pose(model.body_ipos[body], rotation(model.body_iquat[body])), model.body_weldid[body]
        while body != carrier:
            pose = Pose(model.body_pos[body], rotation(model.body_quat[body])) @ pose
            body = model.body_parentid[body]
        return pose

    def of_joints(self, joints: Sequence[int], has_angle: bool) -> PassiveForces:
        """Passive forces of a group of joints; `has_angle` is False if the position of the joint is a quaternion."""
        model, dofs = self._source.model, self.dofs(joints)
        forces = {"damping": self.damping[dofs, 0], "friction": self.friction[dofs]}
        if has_angle:
            which, at = list(joints), model.jnt_qposadr[list(joints)]
            forces["stiffness"], _, forces["cubic_stiffness"] = self.stiffness[which].T
            forces["rest_position"] = model.qpos_spring[at] - model.qpos0[at]
        return PassiveForces(**forces)

    def dofs(self, joints: Sequence[int]) -> slice:
        """Entries of a group of joints in arrays of degrees of freedom."""
        return slice(self._source.dofs(joints[0]).start, self._source.dofs(joints[-1]).stop)

    def rotor_inertia(self, joints: Sequence[int]) -> np.ndarray:
        """Armature of a group of joints. A free joint keeps the armature of rotations; the rest becomes added mass."""
        found = self.armature[self.dofs(joints)]
        return np.where(np.arange(found.size) < 3, 0.0, found) if joints[0] in self.free else found

    def immersion(self, body: int, anchor: np.ndarray) -> Immersion | None:
        """Immersion of a body with its frame at `anchor`: gravity compensation, fluid and armature of translations.

        Gravity compensation becomes a buoyancy at the center of mass. For translations of a free joint, MuJoCo adds the
        armature to the mass in world axes. This is the inertia of a point mass without weight, that is, an added mass.
        """
        model, parts = self._source.model, []
        mass, center = model.body_mass[body], model.body_ipos[body] - anchor
        if self.gravcomp[body] and mass:
            parts.append(Immersion(self.gravcomp[body] * mass / self.fluid_density, buoyancy_center=center))
        if body in self._dragged:
            pose = Pose(center, rotation(model.body_iquat[body]))
            linear, quadratic = self._drag(body)
            for other in self._dragged[body]:
                at = self._inertial_frame(body).inverse() @ self._inertial_frame(other)
                linear = linear + shifted(self._drag(other)[0], at)
            parts.append(Immersion(linear_damping=linear, quadratic_damping=quadratic, pose=pose))
        for joint in self._source.joints(body):
            inertia = self.armature[model.jnt_dofadr[joint]]
            if joint in self.free and inertia:
                parts.append(Immersion(added_mass=(inertia,) * 3 + (0.0,) * 3))
        return reduce(Immersion.joined, parts) if parts else None


def _compensating_joints(source: Source, body: int) -> list[bool]:
    """Whether actuators compensate gravity (actuatorgravcomp) at each of the joints that carry a body."""
    found: list[bool] = []
    while body:
        found += [bool(source.model.jnt_actgravcomp[joint]) for joint in source.joints(body)]
        body = source.model.body_parentid[body]
    return found


def _of_actuators(source: Source) -> tuple[np.ndarray, np.ndarray]:
    """Armature (nv,) and damping (nv, 3) that actuators add to joints, even if actuation is disabled."""
    model, count = source.model, len(source.model.actuator_trntype)
    armature, damping = np.zeros(model.nv), np.zeros((model.nv, 3))
    own = source.field("actuator_armature", count)
    linear, powers = source.field("actuator_damping", count), source.field("actuator_dampingpoly", count, 2)
    first_output = getattr(model, "actuator_outadr", range(count))
    of_joints = [source.kind("Trn", f"mjTRN_{name}") for name in ("JOINT", "JOINTINPARENT")]
    for i in range(count):
        if model.actuator_trntype[i] in of_joints:
            dofs = source.dofs(model.actuator_trnid[i, 0])
            # the first gear ratio applies to all directions of a ball or free joint
            gear = model.actuator_gear[first_output[i], 0]
            armature[dofs] += gear**2 * own[i]
            damping[dofs] += gear**2 * np.array([linear[i], *powers[i]])
    return armature, damping


def _box_drag(mass: float, inertia: np.ndarray, density: float, viscosity: float) -> tuple[np.ndarray, np.ndarray]:
    """Linear and quadratic drag (6,), [linear, angular], of the box with this mass and these principal moments.

    MuJoCo's documentation, "Fluid forces", inertia model: the linear part is the Stokes drag of a sphere with the mean
    edge as diameter, the quadratic part is the drag of the faces.
    """
    x, y, z = np.sqrt(np.maximum(MIN_VALUE, inertia.sum() - 2 * inertia) / mass * 6.0)
    diameter = (x + y + z) / 3
    linear = np.pi * viscosity * np.array([3 * diameter] * 3 + [diameter**3] * 3)
    faces = np.array([y * z, x * z, x * y]) / 2
    turning = np.array([x * (y**4 + z**4), y * (x**4 + z**4), z * (x**4 + y**4)]) / 64
    return linear, density * np.concatenate([faces, turning])
