"""MuJoCo's accelerations of the mechanism in an MJCF, in rbchain's coordinates."""

import mujoco
import numpy as np

FREE, BALL, SLIDE, HINGE = (
    int(getattr(mujoco.mjtJoint, f"mjJNT_{kind}")) for kind in ("FREE", "BALL", "SLIDE", "HINGE")
)
OFF = mujoco.mjtDisableBit
#: rbchain stores limits without enforcing them and supports neither contacts nor actuators of a file.
ALWAYS_OFF = (OFF.mjDSBL_CONTACT, OFF.mjDSBL_LIMIT, OFF.mjDSBL_ACTUATION)


def rotation(quaternion):
    """Matrix of a quaternion [w, x, y, z]."""
    found = np.empty(9)
    mujoco.mju_quat2Mat(found, quaternion)
    return found.reshape(3, 3)


class Engine:
    """MuJoCo's model of a file, with contacts, limits and actuators disabled."""

    def __init__(self, path):
        self.model = mujoco.MjModel.from_xml_path(str(path))
        for feature in ALWAYS_OFF:
            self.model.opt.disableflags |= int(feature)
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER  # `discrete` makes qacc a quotient of a step
        self.data = mujoco.MjData(self.model)

    def set_state(self, model, q, qd):
        """Give MuJoCo the state (q, qd) of rbchain's model of the file; return rotations of its free joints.

        MuJoCo has w first in quaternions, adds `ref` to positions, and describes free joints in world axes.
        """
        engine, data, turns = self.model, self.data, {}
        data.qpos[:], data.qvel[:] = q + np.where(np.isin(np.arange(engine.nq), self.scalars()), engine.qpos0, 0.0), qd
        for j in range(engine.njnt):
            at, dof, kind = engine.jnt_qposadr[j], engine.jnt_dofadr[j], engine.jnt_type[j]
            if kind in (FREE, BALL):
                first = at + 3 * (kind == FREE)
                data.qpos[first : first + 4] = q[[first + 3, first, first + 1, first + 2]]
            if kind == FREE:
                (body,) = np.flatnonzero(model.position_index == at)
                place = model.placement_rotation[body]
                turns[dof] = place @ rotation(data.qpos[at + 3 : at + 7])
                mujoco.mju_mat2Quat(data.qpos[at + 3 : at + 7], turns[dof].ravel())
                data.qpos[at : at + 3] = place @ q[at : at + 3] + model.placement_translation[body]
                data.qvel[dof : dof + 3] = turns[dof] @ qd[dof : dof + 3]
        return turns

    def scalars(self):
        """Entries of qpos that belong to hinges and slides."""
        kinds = self.model.jnt_type
        return self.model.jnt_qposadr[(kinds == SLIDE) | (kinds == HINGE)]

    def accelerations(self, model, q, qd):
        """Return the accelerations of `mj_forward` in rbchain's convention: for free joints, rates in body axes."""
        turns = self.set_state(model, q, qd)
        mujoco.mj_forward(self.model, self.data)
        qdd = self.data.qacc.copy()
        for dof, turn in turns.items():
            linear, spin = slice(dof, dof + 3), qd[dof + 3 : dof + 6]
            qdd[linear] = turn.T @ qdd[linear] - np.cross(spin, qd[linear])
        return qdd
