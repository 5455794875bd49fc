"""The table of signatures in docs/how-to/batch.md: core dimensions of all functions, with axes in front."""

import re
from pathlib import Path

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .quantities import ARGUMENTS, SHARED

pytestmark = pytest.mark.plain_python
PAGE = (Path(__file__).parents[1] / "docs/how-to/batch.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`\w+`.*?) \| `(\S*)->(\S*)` \|$", PAGE, re.MULTILINE)
SIGNATURES = {name: (of, to) for names, of, to in ROWS for name in re.findall(r"`(\w+)`", names)}
#: Batch axes of the first argument and of the others.
FIRST, OTHERS, BATCH = (4, 1), (3,), (4, 3)
OF_CLOSED_CHAINS = (
    "constraint_residual",
    "constraint_jacobian",
    "constraint_forces",
    "assemble",
    "assemble_velocities",
)
WITH_FRAME = ("frame_poses", "jacobian", "jacobian_derivative")


def rods():
    """Two rods whose tips are connected by a third one."""
    builder = rb.ModelBuilder()
    for name, x in (("left", 0.0), ("right", 0.8)):
        joint, place = rb.Revolute(axis=(0, 1, 0)), rb.Pose((x, 0, 0))
        builder.add_body(name, joint=joint, placement=place, inertia=rb.Inertia.rod(1.0, mass=1.0))
    builder.add_constraint(
        rb.DistanceConstraint("rod", "left", "right", point_a=(0, 0, 1), point_b=(0, 0, 1), length=1.0)
    )
    return builder.build()


def core_dimensions(text, model):
    """The shapes of a part of a signature, such as (nq),(nv,6)."""
    sizes = {"nq": model.nq, "nv": model.nv, "nb": model.n_bodies, "10*nb": 10 * model.n_bodies}
    if model.constraint_names:
        sizes["nc"] = len(model.constraint_names_of_rows)
    shapes = re.findall(r"\(([^)]*)\)", text)
    return [tuple(sizes[s] if s in sizes else int(s) for s in shape.split(",") if s) for shape in shapes]


def test_the_table_has_all_functions_of_states():
    assert {name.removeprefix("relative_") for name in ARGUMENTS} < SIGNATURES.keys()
    assert set(OF_CLOSED_CHAINS) < SIGNATURES.keys()


@pytest.mark.parametrize("name", SIGNATURES)
def test_shapes_are_those_of_the_signature_with_broadcast_axes_in_front(name):
    model = rods() if name in OF_CLOSED_CHAINS else mechanism("small_floating_tree")
    inputs, outputs = (core_dimensions(text, model) for text in SIGNATURES[name])
    rng = np.random.default_rng(1)
    q = np.broadcast_to(model.neutral(), (*FIRST, model.nq))
    q = model.assemble(q) if name in OF_CLOSED_CHAINS else q
    arguments = [q, *(rng.random((*OTHERS, *shape)) for shape in inputs[1:])]
    if name == "difference":
        arguments[1] = np.broadcast_to(model.neutral(), (*OTHERS, model.nq))
    if name == "hybrid_dynamics":
        arguments[4] = arguments[4] < 0.5
    if name in ARGUMENTS:  # all array arguments are in the signature
        assert len(inputs) == len([x for x in ARGUMENTS[name].split() if x not in SHARED])
    frame = {"frame": model.body_names[-1]} if name in WITH_FRAME else {}
    found = getattr(model, name)(*arguments, **frame)
    if isinstance(found, rb.Pose):
        found = found.translation, found.rotation
    batch = BATCH if len(inputs) > 1 else FIRST
    assert inputs[0] == (model.nq,)
    assert [x.shape for x in (found if isinstance(found, tuple) else (found,))] == [(*batch, *s) for s in outputs]
