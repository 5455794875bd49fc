"""Compute the linear model of an arm with Drake, and write it to tests/references/linear_arm.json.

The tests do not need Drake. To compute the reference again:

    python -m venv drake-environment
    drake-environment/bin/pip install drake
    drake-environment/bin/python tests/oracles/drake_linear.py

Drake's automatic differentiation computes the derivatives of the accelerations and of the reactions of the joints with
respect to the positions, velocities and joint forces. The file contains the numbers of the arm, from which
tests/test_linear_references.py builds the same arm.
"""

import json
from pathlib import Path

import numpy as np
from pydrake.autodiffutils import ExtractGradient, ExtractValue, InitializeAutoDiff
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    FixedOffsetFrame,
    LinearSpringDamper,
    PrismaticJoint,
    RevoluteJoint,
    RevoluteSpring,
    SpatialInertia,
    UnitInertia,
)

FILE = Path(__file__).parents[1] / "references/linear_arm.json"
KINDS = {"revolute": RevoluteJoint, "prismatic": PrismaticJoint}


def rotation(seed):
    """Return a random rotation matrix."""
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    q = q @ np.diag(np.sign(np.diag(r)))
    return q * np.linalg.det(q)


def arm():
    """Return the numbers of an arm with three joints, a spring between its tip and the world, and one state."""
    rng = np.random.default_rng(11)
    bodies = []
    for i, joint in enumerate(("revolute", "prismatic", "revolute")):
        axis = rng.normal(size=3)
        bodies.append(
            {
                "joint": joint,
                "axis": (axis / np.linalg.norm(axis)).tolist(),
                "translation": (0.4 * rng.normal(size=3)).tolist(),
                "rotation": rotation(i).tolist(),
                "mass": 1.0 + i,
                "cg": (0.2 * rng.normal(size=3)).tolist(),
                "inertia": [0.05, 0.06, 0.07],
                "damping": [0.1, 0.5, 0.2][i],
                "stiffness": [2.0, 0.0, 1.5][i],
                "rest_position": [0.3, 0.0, -0.2][i],
            }
        )
    spring = {"point_a": [0.3, -0.5, 1.0], "point_b": [0.2, 0.1, -0.1], "rest_length": 0.4}
    return {
        "gravity": [0.5, 1.0, -9.0],
        "bodies": bodies,
        "spring": spring | {"stiffness": 12.0, "damping": 0.7},
        "q": [0.4, 0.2, -0.7],
        "qd": [0.8, -0.5, 1.1],
        "tau": [0.6, -1.2, 0.4],
    }


def plant_of(data):
    """Return the arm in Drake."""
    plant = MultibodyPlant(0.0)
    plant.mutable_gravity_field().set_gravity_vector(data["gravity"])
    parent = plant.world_body()
    for i, numbers in enumerate(data["bodies"]):
        mass, cg = numbers["mass"], np.array(numbers["cg"])
        about_cg = UnitInertia(*(np.array(numbers["inertia"]) / mass))
        inertia = SpatialInertia(mass, cg, about_cg.ShiftFromCenterOfMass(-cg))
        body = plant.AddRigidBody(f"body{i}", inertia)
        pose = RigidTransform(RotationMatrix(np.array(numbers["rotation"])), numbers["translation"])
        place = plant.AddFrame(FixedOffsetFrame(f"place{i}", parent.body_frame(), pose))
        kind, axis, damping = KINDS[numbers["joint"]], numbers["axis"], numbers["damping"]
        joint = plant.AddJoint(kind(f"body{i}", place, body.body_frame(), axis, damping=damping))
        plant.AddJointActuator(f"body{i}", joint)
        if numbers["stiffness"]:
            plant.AddForceElement(RevoluteSpring(joint, numbers["rest_position"], numbers["stiffness"]))
        parent = body
    spring = data["spring"]
    ends = (plant.world_body(), spring["point_a"]), (parent, spring["point_b"])
    force = LinearSpringDamper(*ends[0], *ends[1], spring["rest_length"], spring["stiffness"], spring["damping"])
    plant.AddForceElement(force)
    plant.Finalize()
    return plant


def main():
    """Compute and write the reference."""
    data = arm()
    plant = plant_of(data).ToAutoDiffXd()
    context, n = plant.CreateDefaultContext(), len(data["q"])
    given = InitializeAutoDiff(np.concatenate([data[name] for name in ("q", "qd", "tau")]))[:, 0]
    plant.SetPositionsAndVelocities(context, given[: 2 * n])
    plant.get_actuation_input_port().FixValue(context, given[2 * n :])
    accelerations = plant.EvalTimeDerivatives(context).CopyToVector()[n:]
    forces = plant.get_reaction_forces_output_port().Eval(context)
    indices = [int(plant.GetJointByName(f"body{i}").index()) for i in range(n)]
    reactions = [np.concatenate([forces[i].translational(), forces[i].rotational()]) for i in indices]
    data["acceleration"] = ExtractValue(accelerations)[:, 0].tolist()
    data["by_state_and_force"] = ExtractGradient(accelerations).tolist()
    data["reactions"] = [ExtractValue(x)[:, 0].tolist() for x in reactions]
    data["reactions_by_state_and_force"] = [ExtractGradient(x).tolist() for x in reactions]
    FILE.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
