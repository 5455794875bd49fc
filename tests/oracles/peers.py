"""The same model in Pinocchio and in MuJoCo, so that two other engines can judge the dynamics.

Both peers take and return arrays in the model's own numbering, whatever order the engine keeps inside:
q, qd, qdd, tau (n,) in SI units; wrenches (n,6) per body, [force (N); moment (N m) about the frame origin],
world axes, acting on the body. ``.model`` and ``.data`` are the engine's own objects, in the engine's
numbering; ``.order`` (n,) lists the model's body at each engine joint, for a benchmark that feeds them
directly: ``engine_q = q[peer.order]``.
"""

import mujoco
import numpy as np
import pinocchio as pin


def depth_first(parent):
    """Body indices (n,) with every subtree contiguous, parents first."""
    children = {}
    for i, p in enumerate(parent):
        children.setdefault(int(p), []).append(i)
    order, waiting = [], children.get(-1, [])[::-1]
    while waiting:
        order.append(waiting.pop())
        waiting.extend(children.get(order[-1], [])[::-1])
    return np.array(order, dtype=int)


class PinocchioPeer:
    """Pinocchio's ABA, RNEA and CRBA.

    Against newton_euler on 20 random trees of 1 to 8 bodies (largest error over largest value): poses 1e-15,
    inverse dynamics 4e-15, forward dynamics 9e-15, mass matrix 2e-15, energies 5e-15. The backward error of
    the forward dynamics, residual over max(|H||qdd|), is 4e-16 at 100 bodies.

    ``pin.Data`` takes about 32 n^3 bytes, room for second derivatives that nobody asked for: 1.2 GB measured
    at 300 bodies, and at 1000 the process was killed on a machine of 23 GB. Use MuJoCo for long chains.
    """

    def __init__(self, model):
        # CRBA reads a subtree as one contiguous block, so the joints have to be numbered depth-first.
        self.order = depth_first(model.parent)
        self.model = pin.Model()
        self.model.gravity.linear = np.asarray(model.gravity, dtype=float)
        joint_id = {-1: 0}
        for i in self.order:
            rotation = np.asarray(model.placement_rotation[i], dtype=float)
            placement = pin.SE3(rotation, np.asarray(model.placement_translation[i], dtype=float))
            parent_id = joint_id[int(model.parent[i])]
            joint_id[i] = self.model.addJoint(parent_id, self._joint(model, i), placement, f"joint_{i}")
            cg, tensor = np.asarray(model.cg[i], dtype=float), np.asarray(model.inertia[i], dtype=float)
            inertia = pin.Inertia(float(model.mass[i]), cg, tensor)
            self.model.appendBodyToJoint(joint_id[i], inertia, pin.SE3.Identity())
        self.data = self.model.createData()

    @staticmethod
    def _joint(model, i):
        axis = np.asarray(model.axis[i], dtype=float)
        kind = model.joint_types[i]
        if kind == "revolute":
            return pin.JointModelRevoluteUnaligned(axis)
        if kind == "prismatic":
            return pin.JointModelPrismaticUnaligned(axis)
        if kind == "screw":
            return pin.JointModelHelicalUnaligned(axis, float(model.pitch[i]))
        raise ValueError(f"joint type {kind!r}")

    def _to_engine(self, values):
        return np.ascontiguousarray(np.asarray(values, dtype=float)[self.order])

    def _from_engine(self, values):
        result = np.empty_like(values)
        result[self.order] = values
        return result

    def external_forces(self, q, wrenches):
        """fext for Pinocchio: one Force per joint, universe first, in the body's axes about its origin."""
        pin.forwardKinematics(self.model, self.data, self._to_engine(q))
        forces = pin.StdVec_Force()
        forces.append(pin.Force.Zero())
        for pose, load in zip(list(self.data.oMi)[1:], self._to_engine(wrenches), strict=True):
            # Same reference point, other axes: rotate only (actInv would also move the point).
            forces.append(pin.Force(pose.rotation.T @ load[:3], pose.rotation.T @ load[3:]))
        return forces

    def forward_dynamics(self, q, qd, tau, wrenches=None):
        """Joint accelerations (n,), by ABA."""
        state = self._to_engine(q), self._to_engine(qd), self._to_engine(tau)
        loads = () if wrenches is None else (self.external_forces(q, wrenches),)
        return self._from_engine(pin.aba(self.model, self.data, *state, *loads))

    def inverse_dynamics(self, q, qd, qdd, wrenches=None):
        """Joint forces (n,), by RNEA."""
        state = self._to_engine(q), self._to_engine(qd), self._to_engine(qdd)
        loads = () if wrenches is None else (self.external_forces(q, wrenches),)
        return self._from_engine(pin.rnea(self.model, self.data, *state, *loads))

    def mass_matrix(self, q):
        """Joint-space mass matrix (n,n), symmetric, by CRBA."""
        upper = np.triu(pin.crba(self.model, self.data, self._to_engine(q)))  # only this half is promised
        result = np.empty_like(upper)
        result[np.ix_(self.order, self.order)] = upper + np.triu(upper, 1).T
        return result

    def body_poses(self, q):
        """Frame origins (n,3) in world (m) and rotations (n,3,3), body axes to world axes."""
        pin.forwardKinematics(self.model, self.data, self._to_engine(q))
        placed = list(self.data.oMi)[1:]
        return (
            self._from_engine(np.array([pose.translation for pose in placed])),
            self._from_engine(np.array([pose.rotation for pose in placed])),
        )

    def energy(self, q, qd):
        """Kinetic and potential energy, J; V = -sum m g.c."""
        q, qd = self._to_engine(q), self._to_engine(qd)
        return (
            pin.computeKineticEnergy(self.model, self.data, q, qd),
            pin.computePotentialEnergy(self.model, self.data, q),
        )


def to_pinocchio(model):
    """The model in Pinocchio; all joint types."""
    return PinocchioPeer(model)


def quaternion(rotation):
    """Unit quaternion [w, x, y, z] of a rotation matrix (3,3)."""
    x, y, z, w = pin.Quaternion(np.asarray(rotation, dtype=float)).normalized().coeffs()
    return np.array([w, x, y, z])


class MujocoPeer:
    """MuJoCo's smooth dynamics: constraints, contacts, actuation, springs and dampers are off.

    No screw joints. Rotations travel as quaternions and inertia tensors as principal moments and axes, found
    here by eigh: that costs about 2.5e-15 of the mass matrix, whether the moments are apart, nearly equal or
    equal (MuJoCo's own ``fullinertia`` costs 7e-15). Against newton_euler on 20 random trees of 1 to 8
    bodies (largest error over largest value): poses 1e-15, inverse dynamics 4e-15, forward dynamics 1.2e-14,
    mass matrix 2e-15, energies 3e-15. Backward error of the forward dynamics 3e-16 at 100 and 1000 bodies.
    These trees have mass matrices of condition 4e2 or less; accelerations get worse with it.
    """

    def __init__(self, model):
        self.model, moments = self._compile(model)
        self.data = mujoco.MjData(self.model)
        n = len(model.parent)
        # MuJoCo renumbers bodies and joints depth-first when it compiles; ask it rather than assume.
        self.body_id = np.array([self.model.body(f"body_{i}").id for i in range(n)])
        self.dof = np.array([self.model.joint(f"joint_{i}").dofadr[0] for i in range(n)])
        self.order = np.argsort(self.dof)
        # Put in after compiling, because the compiler refuses what is physical but on the edge: thin rods,
        # point masses, massless bodies, and flat plates whenever A + B >= C fails by a rounding.
        self.model.body_mass[self.body_id] = model.mass
        self.model.body_inertia[self.body_id] = moments
        mujoco.mj_setConst(self.model, self.data)

    @staticmethod
    def _compile(model):
        """MuJoCo model with unit masses and moments, and the principal moments (n,3) that belong in it."""
        spec = mujoco.MjSpec()
        spec.option.gravity = np.asarray(model.gravity, dtype=float)
        off = mujoco.mjtDisableBit
        spec.option.disableflags = (
            off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_EQUALITY
            | off.mjDSBL_FRICTIONLOSS | off.mjDSBL_SPRING | off.mjDSBL_DAMPER | off.mjDSBL_ACTUATION
            | off.mjDSBL_AUTORESET  # mj_step would answer a diverging state by a silent reset
        )  # fmt: skip
        kinds = {"revolute": mujoco.mjtJoint.mjJNT_HINGE, "prismatic": mujoco.mjtJoint.mjJNT_SLIDE}
        moments, axes = np.linalg.eigh(np.asarray(model.inertia, dtype=float))
        axes[:, :, 2] *= np.sign(np.linalg.det(axes))[:, None]  # right-handed
        bodies = {-1: spec.worldbody}
        for i, parent in enumerate(model.parent):
            if model.joint_types[i] not in kinds:
                raise ValueError(f"joint type {model.joint_types[i]!r} does not exist in MuJoCo")
            body = bodies[int(parent)].add_body(
                name=f"body_{i}",
                pos=np.asarray(model.placement_translation[i], dtype=float),
                quat=quaternion(model.placement_rotation[i]),
            )
            bodies[i] = body
            body.add_joint(
                name=f"joint_{i}",
                type=kinds[model.joint_types[i]],
                axis=np.asarray(model.axis[i], dtype=float),
            )
            body.explicitinertial = True
            body.mass, body.inertia = 1.0, np.ones(3)
            body.ipos = np.asarray(model.cg[i], dtype=float)
            body.iquat = quaternion(axes[i])
        return spec.compile(), moments

    def _set(self, q, qd=0.0, wrenches=None):
        """State, in MuJoCo's numbering; loads are moved from the frame origin to the centre of mass."""
        data = self.data
        data.qpos[self.dof] = q
        data.qvel[self.dof] = qd
        data.qfrc_applied[:] = 0.0
        data.xfrc_applied[:] = 0.0
        if wrenches is not None:
            wrenches = np.asarray(wrenches, dtype=float)
            mujoco.mj_kinematics(self.model, data)
            arm = data.xipos[self.body_id] - data.xpos[self.body_id]
            data.xfrc_applied[self.body_id, :3] = wrenches[:, :3]
            data.xfrc_applied[self.body_id, 3:] = wrenches[:, 3:] - np.cross(arm, wrenches[:, :3])
        return data

    def forward_dynamics(self, q, qd, tau, wrenches=None):
        """Joint accelerations (n,), by mj_forward."""
        data = self._set(q, qd, wrenches)
        data.qfrc_applied[self.dof] = tau
        mujoco.mj_forward(self.model, data)
        return data.qacc[self.dof].copy()

    def inverse_dynamics(self, q, qd, qdd, wrenches=None):
        """Joint forces (n,), by mj_inverse."""
        data = self._set(q, qd, wrenches)
        data.qacc[self.dof] = qdd
        mujoco.mj_inverse(self.model, data)
        # mj_inverse returns everything that is applied, the loads on bodies included: take their share out.
        share = np.zeros(self.model.nv)
        for body in self.body_id:
            force, torque = data.xfrc_applied[body, :3], data.xfrc_applied[body, 3:]
            mujoco.mj_applyFT(self.model, data, force, torque, data.xipos[body], body, share)
        return (data.qfrc_inverse - share)[self.dof]

    def mass_matrix(self, q):
        """Joint-space mass matrix (n,n), symmetric."""
        data = self._set(q)
        mujoco.mj_forward(self.model, data)
        full = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, data, full)
        return full[np.ix_(self.dof, self.dof)]

    def body_poses(self, q):
        """Frame origins (n,3) in world (m) and rotations (n,3,3), body axes to world axes."""
        data = self._set(q)
        mujoco.mj_kinematics(self.model, data)
        return data.xpos[self.body_id].copy(), data.xmat[self.body_id].reshape(-1, 3, 3).copy()

    def energy(self, q, qd):
        """Kinetic and potential energy, J; V = -sum m g.c."""
        data = self._set(q, qd)
        mujoco.mj_forward(self.model, data)
        mujoco.mj_energyPos(self.model, data)
        mujoco.mj_energyVel(self.model, data)
        return data.energy[1], data.energy[0]


def to_mujoco(model):
    """The model in MuJoCo; revolute and prismatic joints only."""
    return MujocoPeer(model)
