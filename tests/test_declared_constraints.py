"""A kind of constraint that consists of existing rows needs only its class: a universal joint is declared here."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import rbchain as rb
from rbchain.model.constraints import KINDS
from rbchain.model.declared_constraint import BodyConstraint, Rows

from .mechanisms import random_inertia, random_rotation
from .quantities import derivative, random_states

pytestmark = pytest.mark.plain_python


@dataclass(frozen=True, eq=False)
class Universal(BodyConstraint):
    """Hold two points together, and an axis of body a normal to an axis of body b."""

    name: str
    frame_a: str | None
    frame_b: str | None
    point_a: np.ndarray
    point_b: np.ndarray
    axis_a: np.ndarray
    axis_b: np.ndarray
    kind: ClassVar[str] = "universal"
    rows: ClassVar[Rows] = Rows("position", (((2, 2),),))
    side_fields: ClassVar[tuple[str, ...]] = ("point", "axis")


@pytest.fixture
def universal(monkeypatch):
    """A universal joint between a branch of joints and a free body, and its model."""
    monkeypatch.setitem(KINDS, Universal.kind, Universal)
    rng = np.random.default_rng(2)
    builder = rb.ModelBuilder(gravity=(1, 2, -9))
    for name, parent, joint in (
        ("arm", None, rb.Spherical()),
        ("hand", "arm", rb.Revolute()),
        ("load", None, rb.Free()),
    ):
        pose = rb.Pose(rng.normal(size=3), random_rotation(rng))
        builder.add_body(name, parent=parent, joint=joint, placement=pose, inertia=random_inertia(rng))
    constraint = Universal("cross", "hand", "load", *rng.normal(size=(4, 3)))
    builder.add_constraint(constraint)
    return constraint, builder.build()


def test_its_residuals_are_the_distance_of_the_points_and_the_product_of_the_axes(universal):
    constraint, model = universal
    q = random_states(model, ())[0]
    hand, load = model.frame_poses(q, "hand"), model.frame_poses(q, "load")
    point_a, point_b = hand @ rb.Pose(constraint.point_a), load @ rb.Pose(constraint.point_b)
    product = (hand.rotation @ constraint.axis_a) @ (load.rotation @ constraint.axis_b)
    expected = [*(point_b.translation - point_a.translation), product]
    np.testing.assert_allclose(model.constraint_residual(q), expected, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_its_jacobian_and_derivatives_agree_with_differences(universal):
    _, model = universal
    q, qd, tau = random_states(model, (), arrays=3)
    J, (by_q, by_qd, _) = model.constraint_jacobian(q), model.forward_dynamics_derivatives(q, qd, tau)
    for i, e in enumerate(np.eye(model.nv)):
        for column, slope in (
            (J, derivative(lambda s, e=e: model.constraint_residual(model.integrate(q, s * e)))),
            (by_q, derivative(lambda s, e=e: model.forward_dynamics(model.integrate(q, s * e), qd, tau))),
            (by_qd, derivative(lambda s, e=e: model.forward_dynamics(q, qd + s * e, tau))),
        ):
            np.testing.assert_allclose(column[:, i], slope, rtol=0, atol=1e-9 * (1.0 + np.abs(column).max()))


def test_files_and_other_models_keep_it(universal, tmp_path):
    _, model = universal
    rb.save(model, tmp_path / "model.toml")
    builder = rb.ModelBuilder(gravity=model.gravity)
    builder.add_model(model)
    q, qd, tau = random_states(model, (), arrays=3)
    for copy in (rb.load(tmp_path / "model.toml"), builder.build()):
        np.testing.assert_array_equal(copy.forward_dynamics(q, qd, tau), model.forward_dynamics(q, qd, tau))


def test_studies_vary_its_points_and_axes_only(universal):
    _, model = universal
    settings = {"model": model, "samples": 2, "simulate": {"duration": 0.001, "q": random_states(model, ())[0]}}
    varied = rb.Dispersion(rb.Normal(0, 0.1), how="add")
    for name in ("axes_a", "point_b"):
        rb.Study(**settings, vary={f"cross.{name}": varied})
    for name in ("length", "offset"):
        with pytest.raises(rb.StudyError, match=f"'cross' has no '{name}'; expected one of point_a, point_b, axes_a"):
            rb.Study(**settings, vary={f"cross.{name}": varied})
