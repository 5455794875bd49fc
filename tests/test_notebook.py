"""Models, figures and progress bars in notebooks."""

import base64
import io

import nbclient
import nbformat
import numpy as np
import pytest
from lxml import etree
from PIL import Image

import rbchain as rb
from rbchain.plots.notebook import html_of
from rbchain.plots.sketch import poses_in_python, sketch_of
from tests.mechanisms import MECHANISMS, random_trees

# the packages of Jupyter warn of each other
in_a_kernel = pytest.mark.filterwarnings("ignore::DeprecationWarning")


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


def test_constraints_are_listed_and_drawn_from_body_to_body():
    builder = rb.ModelBuilder()
    for name, x in (("left", 0.0), ("right", 2.0)):
        inertia = rb.Inertia.rod(1.0, mass=1.0)
        builder.add_body(name, joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((x, 0, 0)), inertia=inertia)
    builder.add_constraint(
        rb.DistanceConstraint("strut", "left", "right", point_a=(0, 0, 1), point_b=(0, 0, 3), length=1.0)
    )
    builder.add_constraint(rb.CouplerConstraint("gear", "left", "right", ratio=2.0))
    model = builder.build()
    text = "".join(etree.fromstring(html_of(model)).itertext())
    for part in ("strut", "distance: left - right, 1 m", "gear", "coupler: left = 2 right"):
        assert part in text
    sketch = etree.fromstring(sketch_of(model))
    dashed = [line for line in sketch if line.get("stroke-dasharray")]
    joints = [(circle.get("cx"), circle.get("cy")) for circle in sketch if len(circle)]
    ends = [((line.get("x1"), line.get("y1")), (line.get("x2"), line.get("y2"))) for line in dashed]
    assert len(dashed) == 3
    assert (ends[0][0], ends[2][1]) == tuple(joints)
    assert (ends[0][1], ends[1][1]) == (ends[1][0], ends[2][0])


@pytest.mark.plain_python
@pytest.mark.parametrize("name", ["mixed_tree", "every_joint_tree", "coordinate_tree", "small_floating_tree"])
def test_poses_in_plain_python_are_those_of_compiled_code(name):
    model = MECHANISMS[name]()
    q = model.integrate(model.neutral(), np.random.default_rng(0).normal(size=model.nv))
    rotations, origins = poses_in_python(model, q)
    poses = model.body_poses(q)
    np.testing.assert_allclose(origins, poses.translation, atol=1e-13)
    np.testing.assert_allclose(rotations, poses.rotation, atol=1e-13)


def test_a_planar_mechanism_is_seen_along_its_axes():
    """The arm hangs down: its joints lie below each other, and its links have their true ratio."""
    arm = rb.Model.serial_chain(3, length=0.5)  # in the x-y plane
    sketch = etree.fromstring(sketch_of(arm, np.array([-np.pi / 2, 0.0, 0.0])))
    x, y = np.array([(float(circle.get("cx")), float(circle.get("cy"))) for circle in sketch if len(circle)]).T
    np.testing.assert_allclose(x, x[0], atol=0.1)
    np.testing.assert_allclose(np.diff(y), np.diff(y)[0], atol=0.2)
    assert np.diff(y)[0] > 20


def test_names_are_escaped_in_markup():
    builder = rb.ModelBuilder(name="<b>&")
    builder.add_body("</td><script>", joint=rb.Revolute(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    assert "<script>" not in html_of(builder.build())
    assert "</td><script>" in "".join(etree.fromstring(html_of(builder.build())).itertext())


def test_a_batch_without_samples_has_a_title_only():
    text = html_of(rb.Model.serial_chain(2).vary(gravity=np.ones((3, 0, 3))))
    assert "2 bodies, nq = 2, nv = 2; a batch of shape (3, 0), without samples" in text
    assert "svg" not in text


def test_batches_and_long_chains_are_shortened():
    text = html_of(rb.Model.serial_chain(100).vary(mass=np.ones((5, 100))))
    assert "batch of shape (5,), the first sample is shown" in text
    assert "and 60 more bodies" in text


CELLS = {
    "set up": """
import os
os.environ["NUMBA_DISABLE_JIT"] = "1"  # nothing here needs speed
import rbchain as rb
from rbchain.common.progress import progress
arm = rb.Model.serial_chain(2)
motion = arm.simulate([[0.0, 0.0]], [[0.0, 0.0]], 0.05, method="rk4", step=0.01, save_at=6)
simulate = {"duration": 0.02, "method": "rk4", "step": 0.01}
vary = {"*.q": rb.Uniform("-20 deg", "20 deg")}
study = rb.Study(model=arm, samples=8, simulate=simulate, vary=vary, outputs={"motion": True})
""",
    "plot": "motion.plot()",
    "plot whose value is not used": "motion.plot();",
    "picture": "arm.picture(size=(200, 150))",
    "study": "results = study.run(progress=True)",
    "plot of a study": "results.rbchain.plot()",
    "quiet": """
os.environ["RBCHAIN_QUIET"] = "1"
results = study.run(progress=True)
del os.environ["RBCHAIN_QUIET"]""",
    "plot inline": "%matplotlib inline\nmotion.plot('energy')",
    "names are no markup": """
with progress("<script>", total=2, after=0.0) as work:
    work.advance(2)""",
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A notebook that was executed in a kernel of its own, saved and read again: the outputs of its cells."""
    sources = [source.strip() for source in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, timeout=None, kernel_name="python3").execute()
    file = tmp_path_factory.mktemp("notebook") / "stored.ipynb"
    nbformat.write(notebook, file)
    cells = nbformat.read(file, as_version=4).cells
    return {name: cell.outputs for name, cell in zip(CELLS, cells, strict=True)}


def pictures(outputs):
    """Pictures among the outputs of a cell; on a slow machine there are messages too."""
    return [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]


@pytest.mark.slow
@in_a_kernel
@pytest.mark.parametrize("cell", ["plot", "picture", "plot of a study", "plot inline"])
def test_a_figure_as_the_result_of_a_cell_is_shown_once(stored, cell):
    (picture,) = pictures(stored[cell])
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        assert min(image.size) >= 150
    assert not pictures(stored["plot whose value is not used"])


@in_a_kernel
def test_a_stored_notebook_shows_the_last_state_of_a_progress_bar(stored):
    (output,) = stored["study"]
    assert set(output.data) == {"text/plain", "text/html"}
    assert "8/8" in output.data["text/plain"]
    bar = etree.fromstring(output.data["text/html"]).find("progress")
    assert (bar.get("value"), bar.get("max")) == ("8", "8")


@in_a_kernel
def test_a_quiet_notebook_shows_no_progress_bar(stored):
    assert not stored["quiet"]


@in_a_kernel
def test_a_description_of_work_is_no_markup(stored):
    (output,) = stored["names are no markup"]
    assert "<script>" not in output.data["text/html"]
    assert "<script>" in output.data["text/plain"]
