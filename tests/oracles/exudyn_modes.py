"""Compute the eigenvalues of a four-bar linkage with Exudyn, and write them to tests/references/four_bar_modes.json.

The tests do not need Exudyn. To compute the reference again:

    python -m venv exudyn-environment
    exudyn-environment/bin/pip install exudyn scipy
    exudyn-environment/bin/python tests/oracles/exudyn_modes.py

The linkage consists of three planar bodies with four revolute joints, and has two springs with dampers, which are not
stressed. Exudyn projects the equations of all coordinates of the bodies onto the null space of the constraints. It does
not include the change of the constraint forces with the positions, which are zero here.
"""

import json
from pathlib import Path

import exudyn
import numpy as np
from exudyn.itemInterface import (
    MarkerBodyPosition,
    NodeRigidBody2D,
    ObjectConnectorSpringDamper,
    ObjectGround,
    ObjectJointRevolute2D,
    ObjectRigidBody2D,
)

FILE = Path(__file__).parents[1] / "references/four_bar_modes.json"
LENGTHS = {"crank": 0.3, "coupler": 0.9, "rocker": 0.6}
PIVOTS = 1.0  # distance of the pivots of crank and rocker, m
CRANK_ANGLE = 1.0


def linkage():
    """Return the numbers of the linkage. The frames of the bodies are at their first joints, with x along the body."""
    a, b, c = LENGTHS.values()
    joint = a * np.array([np.cos(CRANK_ANGLE), np.sin(CRANK_ANGLE)])
    d = joint - [PIVOTS, 0.0]
    r = np.hypot(*d)
    rocker_angle = np.arctan2(d[1], d[0]) - np.arccos((r**2 + c**2 - b**2) / (2 * r * c))
    tip = np.array([PIVOTS, 0.0]) + c * np.array([np.cos(rocker_angle), np.sin(rocker_angle)])
    coupler_angle = np.arctan2(*(tip - joint)[::-1])
    places = {"crank": (0.0, 0.0), "coupler": joint.tolist(), "rocker": (PIVOTS, 0.0)}
    angles = {"crank": CRANK_ANGLE, "coupler": float(coupler_angle), "rocker": float(rocker_angle)}
    masses, inertias = {"crank": 1.0, "coupler": 2.5, "rocker": 1.7}, {"crank": 0.02, "coupler": 0.2, "rocker": 0.06}
    bodies = {
        name: {
            "length": LENGTHS[name],
            "place": places[name],
            "angle": angles[name],
            "mass": masses[name],
            "inertia": inertias[name],
            "center": 0.4 * LENGTHS[name],
        }
        for name in LENGTHS
    }
    springs = [
        {"ends": [None, "coupler"], "points": [[0.2, 1.3], [0.5, 0.0]], "stiffness": 50.0, "damping": 1.5},
        {"ends": ["crank", "rocker"], "points": [[0.2, 0.0], [0.3, 0.0]], "stiffness": 30.0, "damping": 0.4},
    ]
    return {"bodies": bodies, "springs": springs, "pivots": PIVOTS}


def place_of(data, name, point):
    """Return the place of a point of a body, or of the world."""
    if name is None:
        return np.array(point)
    body = data["bodies"][name]
    c, s = np.cos(body["angle"]), np.sin(body["angle"])
    return np.array(body["place"]) + np.array([[c, -s], [s, c]]) @ point


def main():
    """Compute and write the reference."""
    data = linkage()
    system = exudyn.SystemContainer().AddSystem()
    ground, objects = system.AddObject(ObjectGround()), {}
    for name, body in data["bodies"].items():
        center = place_of(data, name, [body["center"], 0.0])
        node = system.AddNode(NodeRigidBody2D(referenceCoordinates=[*center, body["angle"]]))
        given = {"mass": body["mass"], "inertia": body["inertia"], "nodeNumber": node}
        objects[name] = system.AddObject(ObjectRigidBody2D(**given))

    def marker(name, point):
        if name is None:
            return system.AddMarker(MarkerBodyPosition(bodyNumber=ground, localPosition=[*point, 0.0]))
        local = [point[0] - data["bodies"][name]["center"], point[1], 0.0]
        return system.AddMarker(MarkerBodyPosition(bodyNumber=objects[name], localPosition=local))

    a, b, c = LENGTHS.values()
    for first, second in (
        ((None, [0.0, 0.0]), ("crank", [0.0, 0.0])),
        (("crank", [a, 0.0]), ("coupler", [0.0, 0.0])),
        (("coupler", [b, 0.0]), ("rocker", [c, 0.0])),
        (("rocker", [0.0, 0.0]), (None, [PIVOTS, 0.0])),
    ):
        system.AddObject(ObjectJointRevolute2D(markerNumbers=[marker(*first), marker(*second)]))
    for spring in data["springs"]:
        ends = list(zip(spring["ends"], spring["points"], strict=True))
        spring["rest_length"] = float(np.linalg.norm(place_of(data, *ends[1]) - place_of(data, *ends[0])))
        system.AddObject(
            ObjectConnectorSpringDamper(
                markerNumbers=[marker(*end) for end in ends],
                stiffness=spring["stiffness"],
                damping=spring["damping"],
                referenceLength=spring["rest_length"],
            )
        )
    system.Assemble()
    values, _ = system.ComputeODE2Eigenvalues(computeComplexEigenvalues=True, useAbsoluteValues=False)
    data["eigenvalues"] = sorted([[float(x.real), float(x.imag)] for x in np.ravel(values)])
    FILE.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
