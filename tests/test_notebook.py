"""Models in notebooks: the markup is well-formed and complete, and names are escaped."""

import numpy as np
from lxml import etree

import rbchain as rb
from rbchain.notebook import html_of, origins_at_rest, sketch_of
from tests.mechanisms import random_trees


def test_the_table_names_every_body_joint_and_parent():
    arm = rb.Model.serial_chain(3)
    text = "".join(etree.fromstring(html_of(arm)).itertext())
    for name in (*arm.body_names, "world", "revolute", "nv = 3"):
        assert name in text


def test_every_tree_is_drawn_inside_its_frame():
    for model in random_trees(0)[:30]:
        sketch = etree.fromstring(sketch_of(model))
        width, height = float(sketch.get("width")), float(sketch.get("height"))
        points = np.array([(float(c.get("cx")), float(c.get("cy"))) for c in sketch if c.tag.endswith("circle")])
        assert len(points) == 2 * model.n_bodies
        assert (points > 0).all()
        assert (points < [width, height]).all()


def test_joints_are_drawn_at_their_positions():
    for model in random_trees(1)[:10]:
        origins, centers = origins_at_rest(model)
        poses = model.body_poses(model.neutral())
        np.testing.assert_allclose(origins, poses.translation, atol=1e-13)
        expected = poses.translation + (poses.rotation @ model.cg[:, :, None])[..., 0]
        np.testing.assert_allclose(centers, expected, atol=1e-13)


def test_names_are_escaped_in_markup():
    builder = rb.ModelBuilder(name="<b>&")
    builder.add_body("</td><script>", joint=rb.Revolute(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    assert "<script>" not in html_of(builder.build())
    assert "</td><script>" in "".join(etree.fromstring(html_of(builder.build())).itertext())


def test_batches_and_long_chains_are_shortened():
    text = html_of(rb.Model.serial_chain(100).vary(mass=np.ones((5, 100))))
    assert "a batch (5,) of samples" in text
    assert "and 60 more" in text
