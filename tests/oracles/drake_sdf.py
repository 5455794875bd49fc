"""Compute the references of the SDF files in tests/sdf with Drake, and write them to tests/references/sdf.json.

The tests do not need Drake. To compute the references again:

    python -m venv drake-environment
    drake-environment/bin/pip install drake
    drake-environment/bin/python tests/oracles/drake_sdf.py

Each file has some random states. The positions, velocities, forces and accelerations of the joints are in rbchain's
conventions; the mass matrix too, in the order of the list `joints`. Poses are homogeneous matrices (3, 4).
"""

import json
import re
from pathlib import Path

import numpy as np
from pydrake.math import RollPitchYaw
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable, ModelInstanceIndex

TESTS = Path(__file__).parents[1]
STATES = 3
#: The file with a loop, which Drake does not support: the joint that closes it is removed, and its force is computed
#: here. It holds a point of a link at a point of another one.
LOOP, CLOSING, LINK, OTHER, POINT = "four_bar.sdf", "c", "rocker", "coupler", (0.0, 0.0, 0.5)


class Source:
    """A file in Drake. Its states have random positions around the positions in the file."""

    def __init__(self, file):
        self.plant = MultibodyPlant(0.0)
        parser = Parser(self.plant)
        parser.package_map().Add("hand", str(TESTS / "sdf/hand"))
        self.text = text = file.read_text()
        if file.name == LOOP:
            text = re.sub(rf'<joint name="{CLOSING}".*?</joint>', "", text, flags=re.DOTALL)
        parser.AddModelsFromString(text, "sdf")
        self.plant.Finalize()
        self.context = self.plant.CreateDefaultContext()
        self.model = re.findall(r'<model name="(\w+)"', text)[-1 if "<world" in text else 0]
        joints = map(self.plant.get_joint, self.plant.GetJointIndices())
        moving = [joint for joint in joints if joint.num_velocities()]
        self.joints = sorted(moving, key=lambda joint: joint.velocity_start())
        self.at_start = {
            joint.name(): self.plant.EvalBodyPoseInWorld(self.context, joint.child_body()) for joint in self.joints
        }

    def name(self, item):
        """Return the name of a joint, body or frame without the name of the outer model."""
        scope = self.plant.GetModelInstanceName(item.model_instance()).removeprefix(self.model).removeprefix("::")
        return f"{scope}::{item.name()}" if scope else item.name()

    def name_of_joint(self, joint):
        """Return the name of a joint without the outer model. Drake puts joints into the model of their child."""
        if joint.type_name() == "quaternion_floating":
            return self.name(joint.child_body())
        return joint.name() if f'<joint name="{joint.name()}"' in self.text else self.name(joint)

    def position(self, joint):
        """Return the position of a joint in rbchain's convention."""
        start, count = joint.position_start(), joint.num_positions()
        q = self.plant.GetPositions(self.context)[start : start + count]
        if joint.type_name() == "ball_rpy":
            return self._quaternion(RollPitchYaw(q).ToRotationMatrix())
        if joint.type_name() == "quaternion_floating":
            now = self.plant.EvalBodyPoseInWorld(self.context, joint.child_body())
            moved = self.at_start[joint.name()].inverse() @ now
            return [*moved.translation(), *self._quaternion(moved.rotation())]
        return list(q)

    @staticmethod
    def _quaternion(rotation):
        wxyz = rotation.ToQuaternion().wxyz()
        return list(np.roll(wxyz * np.sign(wxyz[0]), -1))

    def turns(self):
        """Return T and b (nv) of v = T v_rbchain and vdot = T vdot_rbchain + b for the state of the context."""
        n, velocity = self.plant.num_velocities(), self.plant.GetVelocities(self.context)
        T, b = np.eye(n), np.zeros(n)
        for joint in self.joints:
            first = joint.velocity_start()
            if joint.type_name() == "ball_rpy":
                start = joint.position_start()
                q = self.plant.GetPositions(self.context)[start : start + 3]
                T[first : first + 3, first : first + 3] = RollPitchYaw(q).ToRotationMatrix().matrix()
            if joint.type_name() == "quaternion_floating":
                R = self.plant.EvalBodyPoseInWorld(self.context, joint.child_body()).rotation().matrix()
                T[first : first + 6, first : first + 6] = np.block([[np.zeros((3, 3)), R], [R, np.zeros((3, 3))]])
                angular, linear = velocity[first : first + 3], velocity[first + 3 : first + 6]
                b[first + 3 : first + 6] = np.cross(angular, linear)
        return T, b

    def set_state(self, rng, file):
        """Set a random state; a loop is closed."""
        plant, context = self.plant, self.context
        plant.SetPositions(context, plant.GetPositions(plant.CreateDefaultContext()))
        q, scale = plant.GetPositions(context), 0.1 if file.name == LOOP else 0.8
        plant.SetPositions(context, q + rng.uniform(-scale, scale, q.size))
        q = plant.GetPositions(context)
        for joint in self.joints:
            if joint.type_name() == "quaternion_floating":
                start = joint.position_start()
                q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
        plant.SetPositions(context, q)
        velocity = rng.uniform(-1, 1, plant.num_velocities())
        plant.SetVelocities(context, velocity)
        if file.name != LOOP:
            return
        for _ in range(20):
            residual, J, _ = self.loop()
            plant.SetPositions(context, plant.GetPositions(context) - np.linalg.pinv(J, rcond=1e-9) @ residual)
        plant.SetVelocities(context, velocity - np.linalg.pinv(J, rcond=1e-9) @ J @ velocity)

    def loop(self):
        """Return the residual (3,) of a loop, its Jacobian, and the acceleration of the residual at vdot = 0."""
        plant, context, world, values = self.plant, self.context, self.plant.world_frame(), []
        start = plant.CreateDefaultContext()
        frame, other = plant.GetFrameByName(LINK), plant.GetFrameByName(OTHER)
        for body, point in ((frame, plant.CalcPointsPositions(start, other, POINT, frame)), (other, POINT)):
            options = (body, point, world, world)
            at = plant.CalcPointsPositions(context, body, point, world)
            J = plant.CalcJacobianTranslationalVelocity(context, JacobianWrtVariable.kV, *options)
            bias = plant.CalcBiasTranslationalAcceleration(context, JacobianWrtVariable.kV, *options)
            values.append((at.ravel(), J, bias.ravel()))
        return [b - a for a, b in zip(*values, strict=True)]

    def accelerations(self, file):
        """Return vdot with gravity, springs and damping, and with the forces of the loop."""
        plant, n = self.plant, self.plant.num_velocities()
        free = plant.EvalTimeDerivatives(self.context).CopyToVector()[-n:]
        if file.name != LOOP:
            return free
        _, J, bias = self.loop()
        M = plant.CalcMassMatrix(self.context)
        forces = np.linalg.lstsq(J @ np.linalg.solve(M, J.T), -bias - J @ free, rcond=1e-9)[0]
        return free + np.linalg.solve(M, J.T @ forces)

    def state(self, file):
        """Return the quantities of the state of the context."""
        plant, context = self.plant, self.context
        T, b = self.turns()
        velocity, own = np.linalg.solve(T, plant.GetVelocities(context)), {}
        forces = T.T @ plant.CalcGravityGeneralizedForces(context)
        rates = np.linalg.solve(T, self.accelerations(file) - b)
        for joint in self.joints:
            rows = slice(joint.velocity_start(), joint.velocity_start() + joint.num_velocities())
            own[self.name_of_joint(joint)] = {
                "q": self.position(joint),
                "qd": velocity[rows].tolist(),
                "gravity": (-forces[rows]).tolist(),
                "qdd": rates[rows].tolist(),
            }
        poses = {
            self.name(frame): frame.CalcPoseInWorld(context).GetAsMatrix34().tolist() for frame in self.frames(file)
        }
        mass_matrix = T.T @ plant.CalcMassMatrix(context) @ T
        return {"joints": own, "mass_matrix": mass_matrix.tolist(), "poses": poses}

    def frames(self, file):
        """Return the links and frames of the moving model."""
        names = re.findall(r'<(?:link|frame) name="(\w+)"', file.read_text())
        for index in map(ModelInstanceIndex, range(self.plant.num_model_instances())):
            if self.plant.GetModelInstanceName(index).split("::")[0] == self.model:
                found = map(self.plant.get_frame, self.plant.GetFrameIndices(index))
                yield from (frame for frame in found if frame.name() in (*names, "palm", "finger", "grip"))


def references(file, seed):
    rng = np.random.default_rng(seed)
    source = Source(file)
    found = []
    for _ in range(STATES):
        source.set_state(rng, file)
        found.append(source.state(file))
    return found


if __name__ == "__main__":
    files = sorted((TESTS / "sdf").glob("*.sdf"))
    found = {file.stem: references(file, seed) for seed, file in enumerate(files)}
    (TESTS / "references/sdf.json").write_text(json.dumps(found, indent=None) + "\n")
