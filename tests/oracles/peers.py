"""Peers: the same model in Pinocchio and in MuJoCo, to compare the dynamics with two other engines.

Both peers take and return arrays in the numbering and conventions of the model: q (nq,), qd, qdd, tau (nv,) in SI units
and quaternions [x, y, z, w]. Wrenches (n,6) per body are [force (N); moment (N m) about the frame origin] in world axes
and act on the body. Results are like those of the methods of `rb.Model` with the same names.

``.model`` and ``.data`` are the objects of the engine, in its own numbering. Benchmarks that use them directly need
``.order`` (n,), the model's body at each body of the engine. ``.position_order`` (nq,) and ``.velocity_order`` (nv,)
are the model's entries at each entry of the engine: ``engine_q = q[peer.position_order]``.
"""

from functools import cached_property

import mujoco
import numpy as np
import pinocchio as pin

WORLD, AT_BODY = pin.ReferenceFrame.WORLD, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
# Pinocchio's inertial parameters end in xx, xy, yy, xz, yz, zz, ours in xx, xy, xz, yy, yz, zz.
PARAMETERS = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
HINGE_OR_SLIDE = {"revolute": mujoco.mjtJoint.mjJNT_HINGE, "prismatic": mujoco.mjtJoint.mjJNT_SLIDE}


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


def entries(index, total):
    """Return the entries of each body in q or qd, from the first entry of each body."""
    return np.split(np.arange(total), np.asarray(index)[1:])


def mirrored(upper):
    """Return the symmetric matrix with this upper triangle; the lower triangle is ignored."""
    return np.triu(upper) + np.triu(upper, 1).T


class Tree:
    """A model built in Pinocchio: ``model``, ``data``, and ``joint_id`` (n,) of the joint that each body hangs on.

    Joints that are several motions one after the other become one JointModelComposite, or, taken apart, as many
    joints with nothing between them. Both number q and qd alike.
    """

    def __init__(self, model, order, apart=False):
        self.model = pin.Model()
        self.model.gravity.linear = np.asarray(model.gravity, dtype=float)
        dofs = entries(model.velocity_index, model.nv)
        self.joint_id = np.zeros(model.n_bodies + 1, dtype=int)  # the world's pose is last, where the index -1 finds it
        for i in order:
            joint_id = int(self.joint_id[model.parent[i]])
            rotation = np.asarray(model.placement_rotation[i], dtype=float)
            placement = pin.SE3(rotation, np.asarray(model.placement_translation[i], dtype=float))
            for joint in self._joints(model, i, dofs[i], apart):
                joint_id = self.model.addJoint(joint_id, joint, placement, f"joint_{self.model.njoints}")
                placement = pin.SE3.Identity()
            self.joint_id[i] = joint_id
            cg, tensor = np.asarray(model.cg[i], dtype=float), np.asarray(model.inertia[i], dtype=float)
            inertia = pin.Inertia(float(model.mass[i]), cg, tensor)
            self.model.appendBodyToJoint(joint_id, inertia, pin.SE3.Identity())
        self.model.armature = np.asarray(model.armature, dtype=float)[np.concatenate([dofs[i] for i in order])]
        self.data = self.model.createData()

    @classmethod
    def _joints(cls, model, i, dofs, apart):
        if model.joint_types[i] == "free":
            return [pin.JointModelFreeFlyer()]
        if model.joint_types[i] == "spherical":
            return [pin.JointModelSpherical()]
        joints = [cls._joint(model, k) for k in dofs]
        if apart or len(joints) == 1:
            return joints
        composite = pin.JointModelComposite()
        for joint in joints:
            composite.addJoint(joint, pin.SE3.Identity())
        return [composite]

    @staticmethod
    def _joint(model, k):
        axis = np.asarray(model.axis[k], dtype=float)
        kind = model.dof_types[k]
        if kind == "revolute":
            return pin.JointModelRevoluteUnaligned(axis)
        if kind == "prismatic":
            return pin.JointModelPrismaticUnaligned(axis)
        if kind == "screw":
            return pin.JointModelHelicalUnaligned(axis, float(model.pitch[k]))
        raise ValueError(f"joint type {kind!r}")


def at_point(spatial, point):
    """Rows [linear; angular] at a point from those at the world's origin."""
    moved = spatial.copy()
    moved[:3] += np.cross(spatial[3:], point, axisa=0).T
    return moved


class PinocchioPeer:
    """Pinocchio's algorithms, for every quantity.

    Largest errors relative to the largest value, compared with newton_euler on 75 random trees of 1 to 5 bodies with
    all joints and armature: poses 1e-15, inverse dynamics 2e-15, forward dynamics 3e-14, mass matrix 1e-15. Those of
    energies are 3e-15 and those of derivatives of the dynamics 4e-14. The backward error of the forward dynamics,
    residual over max(|H||qdd|), is 4e-16 at 100 bodies of one dof.

    For composite joints, its Coriolis matrix, Jacobian derivatives and derivatives of the dynamics are wrong by tenths:
    it treats the axes of the first motions as if they turned with the last. For these quantities, the peer uses a model
    with such joints split into single joints. Its kinetic energy omits the armature of some joints; it is added here.

    ``pin.Data`` takes about 32 n^3 bytes for second derivatives: 1.2 GB measured at 300 bodies. At 1000 bodies, the
    process was killed on a machine with 23 GB. Use MuJoCo for long serial chains.
    """

    def __init__(self, model):
        # CRBA reads a subtree as one contiguous block, so the joints have to be numbered depth-first.
        self.order = depth_first(model.parent)
        positions, velocities = entries(model.position_index, model.nq), entries(model.velocity_index, model.nv)
        self.position_order = np.concatenate([positions[i] for i in self.order])
        self.velocity_order = np.concatenate([velocities[i] for i in self.order])
        self._described = model
        self._tree = Tree(model, self.order)
        self.model, self.data = self._tree.model, self._tree.data

    @cached_property
    def _apart(self):
        """The model with composite joints taken apart; the same if there are none."""
        if not any(joint.shortname() == "JointModelComposite" for joint in self.model.joints):
            return self._tree
        return Tree(self._described, self.order, apart=True)

    def _position(self, q):
        return pin.normalize(self.model, np.asarray(q, dtype=float)[self.position_order])

    def _velocity(self, values):
        """Of velocities, accelerations or joint forces."""
        return np.ascontiguousarray(np.asarray(values, dtype=float)[self.velocity_order])

    def _columns(self, values):
        """Back to the model's numbering: the last axis is that of qd."""
        result = np.empty_like(values)
        result[..., self.velocity_order] = values
        return result

    def _square(self, values):
        return self._columns(self._columns(values).T).T

    def _of_bodies(self, value_at):
        """Array (n, ...) of what a function gives for the joint of each body."""
        return np.array([value_at(int(joint_id)) for joint_id in self._tree.joint_id[:-1]])

    def external_forces(self, q, wrenches):
        """fext for Pinocchio: one Force per joint, universe first, in the body's axes about its origin."""
        pin.forwardKinematics(self.model, self.data, self._position(q))
        forces = pin.StdVec_Force()
        forces.append(pin.Force.Zero())
        loads = np.asarray(wrenches, dtype=float)[self.order]
        for pose, load in zip(list(self.data.oMi)[1:], loads, strict=True):
            # Same reference point, other axes: rotate only (actInv would also move the point).
            forces.append(pin.Force(pose.rotation.T @ load[:3], pose.rotation.T @ load[3:]))
        return forces

    def forward_dynamics(self, q, qd, tau, wrenches=None):
        """Joint accelerations (nv,), by ABA."""
        loads = () if wrenches is None else (self.external_forces(q, wrenches),)
        state = self._position(q), self._velocity(qd), self._velocity(tau)
        return self._columns(pin.aba(self.model, self.data, *state, *loads))

    def inverse_dynamics(self, q, qd, qdd, wrenches=None):
        """Joint forces (nv,), by RNEA."""
        loads = () if wrenches is None else (self.external_forces(q, wrenches),)
        state = self._position(q), self._velocity(qd), self._velocity(qdd)
        return self._columns(pin.rnea(self.model, self.data, *state, *loads))

    def joint_reactions(self, q, qd, qdd, wrenches=None):
        """Force and moment about the body's origin through each joint (n,6), body axes."""
        self.inverse_dynamics(q, qd, qdd, wrenches)
        return self._of_bodies(lambda joint_id: self.data.f[joint_id].vector)

    def mass_matrix(self, q):
        """Joint-space mass matrix (nv,nv), symmetric, by CRBA."""
        return self._square(mirrored(pin.crba(self.model, self.data, self._position(q))))

    def mass_matrix_inverse(self, q):
        return self._square(mirrored(pin.computeMinverse(self.model, self.data, self._position(q))))

    def bias_forces(self, q, qd):
        return self._columns(pin.nonLinearEffects(self.model, self.data, self._position(q), self._velocity(qd)))

    def gravity_forces(self, q):
        return self._columns(pin.computeGeneralizedGravity(self.model, self.data, self._position(q)))

    def coriolis_matrix(self, q, qd):
        """One of the matrices (nv,nv) that give the Coriolis forces and make Hdot - 2 C skew."""
        state = self._position(q), self._velocity(qd)
        return self._square(pin.computeCoriolisMatrix(self._apart.model, self._apart.data, *state))

    def coriolis_force(self, q, qd):
        """Bias forces (nv,) without gravity."""
        return self.coriolis_matrix(q, qd) @ np.asarray(qd, dtype=float)

    def body_poses(self, q):
        """Frame origins (n,3) in world (m) and rotations (n,3,3), body axes to world axes."""
        pin.forwardKinematics(self.model, self.data, self._position(q))
        return (
            self._of_bodies(lambda joint_id: self.data.oMi[joint_id].translation),
            self._of_bodies(lambda joint_id: self.data.oMi[joint_id].rotation),
        )

    def body_velocities(self, q, qd):
        """Body velocities [linear of the origin; angular] (n,6), world axes."""
        pin.forwardKinematics(self.model, self.data, self._position(q), self._velocity(qd))
        return self._of_bodies(lambda i: pin.getVelocity(self.model, self.data, i, AT_BODY).vector)

    def body_accelerations(self, q, qd, qdd):
        """Time derivatives (n,6) of the body velocities."""
        state = self._position(q), self._velocity(qd), self._velocity(qdd)
        pin.forwardKinematics(self.model, self.data, *state)
        return self._of_bodies(lambda i: pin.getClassicalAcceleration(self.model, self.data, i, AT_BODY).vector)

    def _jacobian_in_world(self, function, body, relative_to):
        """(6,nv) at the world's origin, which does not move, so that derivatives are plain ones."""
        tree = self._apart
        found = function(tree.model, tree.data, int(tree.joint_id[body]), WORLD)
        if relative_to is not None:
            found = found - function(tree.model, tree.data, int(tree.joint_id[relative_to]), WORLD)
        return found.reshape(6, -1)  # a single column comes as a vector

    def _point(self, body, point):
        tree = self._apart
        return tree.data.oMi[int(tree.joint_id[body])].act(np.asarray(point, dtype=float))

    def jacobian(self, q, body, point=(0.0, 0.0, 0.0), relative_to=None):
        """[linear; angular] (6,nv), world axes, of a point in the body's own axes; bodies by index."""
        pin.computeJointJacobians(self._apart.model, self._apart.data, self._position(q))
        J = self._jacobian_in_world(pin.getJointJacobian, body, relative_to)
        return self._columns(at_point(J, self._point(body, point)))

    def jacobian_derivative(self, q, qd, body, point=(0.0, 0.0, 0.0), relative_to=None):
        """Time derivative (6,nv) of the Jacobian."""
        qd = self._velocity(qd)
        pin.computeJointJacobiansTimeVariation(self._apart.model, self._apart.data, self._position(q), qd)
        p = self._point(body, point)
        p_rate = at_point(self._jacobian_in_world(pin.getJointJacobian, body, None), p)[:3] @ qd
        J = self._jacobian_in_world(pin.getJointJacobian, body, relative_to)
        rate = at_point(self._jacobian_in_world(pin.getJointJacobianTimeVariation, body, relative_to), p)
        rate[:3] += np.cross(J[3:], p_rate, axisa=0).T
        return self._columns(rate)

    def momentum(self, q, qd):
        """[linear; angular about the center of mass] (6,), world axes."""
        state = self._position(q), self._velocity(qd)
        return pin.computeCentroidalMomentum(self.model, self.data, *state).vector.copy()

    def centroidal_momentum_matrix(self, q):
        """(6,nv) that gives the momentum, per unit of qd."""
        return self._columns(pin.computeCentroidalMap(self.model, self.data, self._position(q)).reshape(6, -1))

    def center_of_mass(self, q):
        return pin.centerOfMass(self.model, self.data, self._position(q)).copy()

    def energy(self, q, qd):
        """Kinetic and potential energy, J; V = -sum m g.c."""
        q, qd = self._position(q), self._velocity(qd)
        pin.forwardKinematics(self.model, self.data, q, qd)
        moving = zip(list(self.model.inertias)[1:], list(self.data.v)[1:], strict=True)
        twice = sum(inertia.vtiv(v) for inertia, v in moving) + self.model.armature @ qd**2
        return twice / 2, pin.computePotentialEnergy(self.model, self.data, q)

    def inverse_dynamics_derivatives(self, q, qd, qdd):
        """dtau/dq (on the tangent space), dtau/dqd, dtau/dqdd (nv,nv)."""
        state = self._position(q), self._velocity(qd), self._velocity(qdd)
        by_q, by_qd, by_qdd = pin.computeRNEADerivatives(self._apart.model, self._apart.data, *state)
        return self._square(by_q), self._square(by_qd), self._square(mirrored(by_qdd))

    def forward_dynamics_derivatives(self, q, qd, tau):
        """dqdd/dq (on the tangent space), dqdd/dqd, dqdd/dtau (nv,nv)."""
        state = self._position(q), self._velocity(qd), self._velocity(tau)
        by_q, by_qd, by_tau = pin.computeABADerivatives(self._apart.model, self._apart.data, *state)
        return self._square(by_q), self._square(by_qd), self._square(mirrored(by_tau))

    def _parameters(self, values):
        """Back to the model's numbering of bodies and the order of its parameters: the last axis is theirs."""
        blocks = values.reshape(*values.shape[:-1], -1, 10)[..., PARAMETERS]
        result = np.empty_like(blocks)
        result[..., self.order, :] = blocks
        return result.reshape(values.shape)

    def inverse_dynamics_regressor(self, q, qd, qdd):
        """Joint forces (nv, 10 n) per unit of each inertial parameter."""
        state = self._position(q), self._velocity(qd), self._velocity(qdd)
        found = pin.computeJointTorqueRegressor(self.model, self.data, *state).reshape(self.model.nv, -1)
        return self._columns(self._parameters(found).T).T

    def kinetic_energy_regressor(self, q, qd):
        state = self._position(q), self._velocity(qd)
        return self._parameters(pin.computeKineticEnergyRegressor(self.model, self.data, *state))

    def potential_energy_regressor(self, q):
        return self._parameters(pin.computePotentialEnergyRegressor(self.model, self.data, self._position(q)))

    def integrate(self, q, v):
        """Position (nq,) after unit time at v.

        Quaternions have the sign of those in q: after more than half a turn, the negative of newton_euler's. Errors are
        up to 1e-12 when a free body turns by 1e-4 to 1e-2 rad.
        """
        result = np.empty(self.model.nq)
        result[self.position_order] = pin.integrate(self.model, self._position(q), self._velocity(v))
        return result

    def difference(self, q0, q1):
        """Velocity (nv,) that takes q0 to q1 in unit time, by less than half a turn; off like integrate."""
        return self._columns(pin.difference(self.model, self._position(q0), self._position(q1)))


def to_pinocchio(model):
    """The model in Pinocchio; all joint types."""
    return PinocchioPeer(model)


def quaternion(rotation):
    """Unit quaternion [w, x, y, z] of a rotation matrix (3,3)."""
    x, y, z, w = pin.Quaternion(np.asarray(rotation, dtype=float)).normalized().coeffs()
    return np.array([w, x, y, z])


def rotation(quaternion):
    """Rotation matrix (3,3) of a quaternion [x, y, z, w]."""
    return pin.Quaternion(np.asarray(quaternion, dtype=float)).normalized().matrix()


class MujocoPeer:
    """MuJoCo's smooth dynamics: constraints, contacts, actuation, springs and dampers are off.

    It has no screw joints, and free joints only on the world. There, q of a free joint is the pose in the world instead
    of the placement, and its linear velocity, acceleration and force have world axes. Rates of components in body axes
    are smaller by w x v than the components of the acceleration. ``.velocity_order`` does not account for this.

    Rotations are passed as quaternions and inertia tensors as principal moments and axes, computed here by eigh. This
    changes the mass matrix by about 2.5e-15, for distinct, nearly equal and equal moments (7e-15 with MuJoCo's own
    ``fullinertia``). Largest errors relative to the largest value, compared with newton_euler on 20 random trees of 1
    to 8 bodies of one dof: poses 1e-15, inverse dynamics 4e-15, forward dynamics 1.2e-14, mass matrix 2e-15. Energies
    are within 3e-15. On 25 trees of 1 to 5 bodies with all joints, forward dynamics are within 5e-14 and energies
    within 6e-15. The backward error of the forward dynamics is 3e-16 at 100 and 1000 bodies. The mass matrices of the
    former trees have condition numbers of at most 4e2; errors of accelerations grow with the condition number.
    """

    def __init__(self, model):
        positions, velocities = entries(model.position_index, model.nq), entries(model.velocity_index, model.nv)
        self._check(model, velocities)
        self.model, moments = self._compile(model, velocities)
        self.data = mujoco.MjData(self.model)
        # MuJoCo renumbers bodies and joints depth-first when it compiles; ask it rather than assume.
        self.body_id = np.array([self.model.body(f"body_{i}").id for i in range(model.n_bodies)])
        self.order = np.argsort(self.body_id)
        self.velocity_order = np.concatenate([velocities[i] for i in self.order])
        self.position_order = np.concatenate([self._w_first(model.joint_types[i], positions[i]) for i in self.order])
        self._free = [
            (int(positions[i][0]), int(velocities[i][0]), model.placement_translation[i], model.placement_rotation[i])
            for i in range(model.n_bodies)
            if model.joint_types[i] == "free"
        ]
        # Set after compiling, because the compiler refuses inertias at the limit of what is physical: thin rods,
        # point masses, massless bodies, and flat plates if A + B >= C fails by round-off.
        self.model.body_mass[self.body_id] = model.mass
        self.model.body_inertia[self.body_id] = moments
        self.model.dof_armature[:] = np.asarray(model.armature)[self.velocity_order]
        mujoco.mj_setConst(self.model, self.data)

    @staticmethod
    def _check(model, velocities):
        if "screw" in model.dof_types:
            raise ValueError("joint type 'screw' does not exist in MuJoCo")
        for i, parent in enumerate(model.parent):
            if model.joint_types[i] == "free" and parent >= 0:
                raise ValueError("joint type 'free' below another body does not exist in MuJoCo")
            if model.joint_types[i] == "free" and np.any(np.asarray(model.armature)[velocities[i][:3]]):
                raise ValueError("armature of a free joint's linear motion has other axes in MuJoCo")

    @staticmethod
    def _w_first(kind, entries):
        if kind in ("free", "spherical"):
            return [*entries[:-4], entries[-1], *entries[-4:-1]]
        return entries

    @staticmethod
    def _add_joints(body, model, i, dofs):
        if model.joint_types[i] == "free":
            body.add_joint(name=f"joint_{i}", type=mujoco.mjtJoint.mjJNT_FREE)
        elif model.joint_types[i] == "spherical":
            body.add_joint(name=f"joint_{i}", type=mujoco.mjtJoint.mjJNT_BALL)
        else:
            for k in dofs:
                axis = np.asarray(model.axis[k], dtype=float)
                body.add_joint(name=f"joint_{i}_{k}", type=HINGE_OR_SLIDE[model.dof_types[k]], axis=axis)

    @classmethod
    def _compile(cls, model, velocities):
        """MuJoCo model with unit masses and moments, and the principal moments (n,3) that belong in it."""
        spec = mujoco.MjSpec()
        spec.option.gravity = np.asarray(model.gravity, dtype=float)
        off = mujoco.mjtDisableBit
        spec.option.disableflags = (
            off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_EQUALITY
            | off.mjDSBL_FRICTIONLOSS | off.mjDSBL_SPRING | off.mjDSBL_DAMPER | off.mjDSBL_ACTUATION
            | off.mjDSBL_AUTORESET  # mj_step resets a diverging state without an error
        )  # fmt: skip
        moments, axes = np.linalg.eigh(np.asarray(model.inertia, dtype=float))
        axes[:, :, 2] *= np.sign(np.linalg.det(axes))[:, None]  # right-handed
        bodies = {-1: spec.worldbody}
        for i, parent in enumerate(model.parent):
            body = bodies[int(parent)].add_body(
                name=f"body_{i}",
                pos=np.asarray(model.placement_translation[i], dtype=float),
                quat=quaternion(model.placement_rotation[i]),
            )
            bodies[i] = body
            cls._add_joints(body, model, i, velocities[i])
            body.explicitinertial = True
            body.mass, body.inertia = 1.0, np.ones(3)
            body.ipos = np.asarray(model.cg[i], dtype=float)
            body.iquat = quaternion(axes[i])
        return spec.compile(), moments

    def _position(self, q):
        """q for MuJoCo: free bodies posed in the world."""
        q = np.array(q, dtype=float)
        for at_q, _, translation, turn in self._free:
            q[at_q : at_q + 3] = translation + turn @ q[at_q : at_q + 3]
            w, *xyz = quaternion(turn @ rotation(q[at_q + 3 : at_q + 7]))
            q[at_q + 3 : at_q + 7] = *xyz, w
        return q[self.position_order]

    def _world_axes(self, q, values, inverse=False):
        """Velocities, accelerations or forces (nv, ...): linear parts of free joints from body axes to world axes."""
        values = np.array(values, dtype=float)
        for at_q, k, _, turn in self._free:
            R = turn @ rotation(q[at_q + 3 : at_q + 7])
            values[k : k + 3] = (R.T if inverse else R) @ values[k : k + 3]
        return values

    def _to_engine(self, q, values):
        return self._world_axes(q, values)[self.velocity_order]

    def _from_engine(self, q, values):
        result = np.empty_like(values)
        result[self.velocity_order] = values
        return self._world_axes(q, result, inverse=True)

    def _turning(self, qd):
        """What acceleration has, in body axes, besides the rates of the velocity's components: w x v (nv,)."""
        result, qd = np.zeros(self.model.nv), np.asarray(qd, dtype=float)
        for _, k, *_ in self._free:
            result[k : k + 3] = np.cross(qd[k + 3 : k + 6], qd[k : k + 3])
        return result

    def _set(self, q, qd=None, wrenches=None):
        """State, in MuJoCo's numbering; loads are moved from the frame origin to the center of mass."""
        data = self.data
        data.qpos[:] = self._position(q)
        data.qvel[:] = 0.0 if qd is None else self._to_engine(q, qd)
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
        """Joint accelerations (nv,), by mj_forward."""
        data = self._set(q, qd, wrenches)
        data.qfrc_applied[:] = self._to_engine(q, tau)
        mujoco.mj_forward(self.model, data)
        return self._from_engine(q, data.qacc) - self._turning(qd)

    def inverse_dynamics(self, q, qd, qdd, wrenches=None):
        """Joint forces (nv,), by mj_inverse."""
        data = self._set(q, qd, wrenches)
        data.qacc[:] = self._to_engine(q, np.asarray(qdd) + self._turning(qd))
        mujoco.mj_inverse(self.model, data)
        # mj_inverse returns all applied forces, including those of the wrenches on bodies; subtract the latter.
        share = np.zeros(self.model.nv)
        for body in self.body_id:
            force, torque = data.xfrc_applied[body, :3], data.xfrc_applied[body, 3:]
            mujoco.mj_applyFT(self.model, data, force, torque, data.xipos[body], body, share)
        return self._from_engine(q, data.qfrc_inverse - share)

    def mass_matrix(self, q):
        """Joint-space mass matrix (nv,nv), symmetric."""
        data = self._set(q)
        mujoco.mj_forward(self.model, data)
        full = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, data, full)
        return self._from_engine(q, self._from_engine(q, full).T).T

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
    """The model in MuJoCo; no screws, free joints on the world only."""
    return MujocoPeer(model)
