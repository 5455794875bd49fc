"""Linear models and modes, compared with Drake and Exudyn (tests/oracles/drake_linear.py and exudyn_modes.py)."""

import json
from pathlib import Path

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python
REFERENCES = Path(__file__).parent / "references"


def test_an_arm_has_the_linear_model_and_the_reactions_of_drake():
    """Drake differentiates the accelerations and the reactions automatically."""
    data = json.loads((REFERENCES / "linear_arm.json").read_text())
    builder = rb.ModelBuilder(gravity=data["gravity"])
    for i, numbers in enumerate(data["bodies"]):
        kind = {"revolute": rb.Revolute, "prismatic": rb.Prismatic}[numbers["joint"]]
        passive = rb.PassiveForces(**{name: numbers[name] for name in ("damping", "stiffness", "rest_position")})
        builder.add_body(
            f"body{i}",
            parent=f"body{i - 1}" if i else None,
            joint=kind(numbers["axis"]),
            placement=rb.Pose(numbers["translation"], numbers["rotation"]),
            inertia=rb.Inertia(numbers["mass"], cg=numbers["cg"], inertia=numbers["inertia"]),
            passive=passive,
        )
    model, spring = builder.build(), rb.SpringDamper(None, "body2", **data["spring"])
    joints = model.joint_names
    outputs = [("acceleration", joint) for joint in joints] + [("reaction", joint) for joint in joints]
    linear = model.linearize(data["q"], data["qd"], tau=data["tau"], forces=[spring], outputs=outputs)
    found = np.concatenate([linear.C, linear.D], 1)
    expected = [*data["by_state_and_force"], *np.concatenate(data["reactions_by_state_and_force"])]
    np.testing.assert_allclose(linear.acceleration, data["acceleration"], rtol=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def test_a_four_bar_linkage_has_the_eigenvalues_of_exudyn():
    """Exudyn has the coordinates of all bodies, and differentiates the forces by differences."""
    data = json.loads((REFERENCES / "four_bar_modes.json").read_text())
    bodies, builder = data["bodies"], rb.ModelBuilder(gravity=(0, 0, 0))
    for name, body in bodies.items():
        parent = "crank" if name == "coupler" else None
        place = (bodies["crank"]["length"], 0, 0) if parent else (*body["place"], 0)
        inertia = rb.Inertia(body["mass"], cg=(body["center"], 0, 0), inertia=(0.1, 0.1, body["inertia"]))
        builder.add_body(name, parent=parent, joint=rb.Revolute(), placement=rb.Pose(place), inertia=inertia)
    tips = {"point_a": (bodies["coupler"]["length"], 0, 0), "point_b": (bodies["rocker"]["length"], 0, 0)}
    builder.add_constraint(rb.BallConstraint("tip", "coupler", "rocker", **tips))
    springs = [
        rb.SpringDamper(
            *spring["ends"],
            point_a=(*spring["points"][0], 0),
            point_b=(*spring["points"][1], 0),
            **{name: spring[name] for name in ("stiffness", "damping", "rest_length")},
        )
        for spring in data["springs"]
    ]
    crank, coupler, rocker = (body["angle"] for body in bodies.values())
    found = builder.build().modes([crank, coupler - crank, rocker], forces=springs).eigenvalue
    expected = [complex(*x) for x in data["eigenvalues"] if x[1] >= 0.0]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
