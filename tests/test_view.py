"""The viewer in a real Chromium, films, and the numbers of the pictures.

The tests in a browser need one called chromium, chromium-browser or google-chrome; `.ci/run` sees to it.
"""

import io
import shutil
import time

import imageio_ffmpeg
import matplotlib.image as matplotlib_image
import numpy as np
import pytest
from PIL import Image

import rbchain as rb
from rbchain.view.scene import scene_of_motion
from rbchain.view.shapes import box_of_inertia, shapes_of

from .conftest import HANG_LIMIT

# viser and Playwright use deprecated functions of other packages
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# software rendering: a test machine has no graphics card
SWITCHES = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@pytest.fixture(scope="module")
def chromium():
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=SWITCHES, timeout=1e3 * HANG_LIMIT)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def swing():
    return swing_of(40)


def swing_of(chains):
    """Simulate double pendulums. The browser draws without a graphics card, so that they must be few."""
    q = 0.5 * np.random.default_rng(0).standard_normal((chains, 2))
    return rb.Model.serial_chain(2).simulate(q, np.zeros((chains, 2)), 1.0, save_at=31)


def opened(browser, url, offline=False):
    page = browser.new_context(viewport={"width": 800, "height": 440}, offline=offline).new_page()
    page.set_default_timeout(1e3 * HANG_LIMIT)  # ms; Playwright's own limit is 30 s
    page.goto(url)
    page.wait_for_selector("canvas")
    return page


def pixels(page):
    """Return the picture without controls: (height, width, 3), 0 to 1."""
    clip = {"x": 0, "y": 150, "width": 470, "height": 240}
    return matplotlib_image.imread(io.BytesIO(page.screenshot(clip=clip)))[..., :3]


def wait_until(condition):
    end = time.monotonic() + HANG_LIMIT
    while not condition():
        assert time.monotonic() < end, "the condition was never met"
        time.sleep(0.1)


def coloured(picture):
    """Count the coloured pixels: bodies have a colour and the grid has none."""
    return int((np.ptp(picture, axis=-1) > 0.15).sum())


def test_a_slider_in_the_browser_moves_the_arm(chromium):
    viewer = rb.Model.serial_chain(3).view(port=0)
    try:
        page = opened(chromium, viewer.url)
        wait_until(lambda: coloured(pixels(page)) > 500)
        before = pixels(page)
        box = page.locator("input[inputmode=decimal]").first
        box.fill("1.2")
        box.press("Enter")
        elbow = 0.25 * np.array([np.cos(1.2), np.sin(1.2), 0.0])
        wait_until(lambda: np.abs(viewer._stage.nodes[1].position - elbow).max() < 1e-6)
        wait_until(lambda: (np.abs(pixels(page) - before).max(-1) > 0.15).sum() > 500)
    finally:
        viewer.close()


def test_a_motion_plays_in_the_browser_until_it_is_closed(chromium):
    viewer = swing_of(3).view(port=0)
    try:
        page = opened(chromium, viewer.url)
        wait_until(lambda: coloured(pixels(page)) > 300)
        before = pixels(page)
        wait_until(lambda: (np.abs(pixels(page) - before).max(-1) > 0.15).sum() > 300)
    finally:
        viewer.close()
    assert "closed" in repr(viewer)


def test_an_exported_page_plays_without_server_or_network(chromium, tmp_path):
    (file,) = swing_of(3).film(tmp_path / "swing.html", fps=15)
    page = opened(chromium, file.as_uri(), offline=True)
    wait_until(lambda: coloured(pixels(page)) > 300)
    before = pixels(page)
    wait_until(lambda: (np.abs(pixels(page) - before).max(-1) > 0.15).sum() > 300)


def test_layers_and_samples_can_be_chosen_during_playback(swing):
    everything = ("bodies", "ghosts", "trails", "frames", "centers", "ellipsoids", "reactions")
    viewer = swing.view(port=0, show=everything)
    try:
        stage = viewer._stage
        assert all(handle.visible for name in everything for handle in stage.layers[name])
        stage.set_visible("ghosts", False)
        assert not any(handle.visible for handle in stage.layers["ghosts"])
        viewer._to_time(0.5)
        viewer._to_sample(7)
        np.testing.assert_array_equal(stage.scene.q[0], swing.q[7, 0])
        viewer._pose([0.3, 0.0])
        np.testing.assert_allclose(stage.nodes[1].position, [0.25 * np.cos(0.3), 0.25 * np.sin(0.3), 0.0])
    finally:
        viewer.close()


def test_films_have_the_expected_number_of_frames(swing, tmp_path):
    (gif,) = swing.film(tmp_path / "swing.gif", fps=5, size=(200, 160))
    with Image.open(gif) as pictures:
        assert pictures.n_frames == 6
    (mp4,) = swing.film(tmp_path / "swing.mp4", fps=5, size=(200, 160))
    assert imageio_ffmpeg.count_frames_and_secs(str(mp4))[0] == 6


def test_pictures_show_every_layer(swing, tmp_path):
    plain = swing.film(tmp_path / "plain.png", fps=2, show=("bodies",), size=(400, 300))
    full = swing.film(
        tmp_path / "full.png",
        fps=2,
        size=(400, 300),
        show=("bodies", "ghosts", "trails", "frames", "centers", "ellipsoids", "reactions"),
    )
    assert [file.name for file in plain] == ["plain_0000.png", "plain_0001.png", "plain_0002.png"]
    few, many = (matplotlib_image.imread(files[-1])[..., :3] for files in (plain, full))
    assert few.shape == (300, 400, 3)
    assert coloured(few) > 200
    assert coloured(many) > 1.2 * coloured(few)
    assert coloured(np.asarray(many - few)) > 0


def test_a_model_with_every_joint_type_can_be_drawn():
    builder = rb.ModelBuilder()
    joints = (rb.Free(), rb.Screw((0, 0, 1), 0.1), rb.Spherical(), rb.Universal(), rb.Planar(), rb.Prismatic((1, 0, 0)))
    for i, joint in enumerate(joints):
        parent = f"body{i - 1}" if i else None
        inertia = rb.Inertia.box((0.1, 0.2, 0.3), mass=1.0)
        builder.add_body(f"body{i}", parent=parent, joint=joint, placement=rb.Pose((0.3, 0, 0)), inertia=inertia)
    model = builder.build()
    assert {shape.body for shape in shapes_of(model)} == set(range(6))
    assert model.picture(show=("bodies", "ellipsoids", "reactions")).axes


def test_interpolation_of_a_steady_spin_is_exact():
    """A free body spins steadily about a principal axis, and cubic interpolation of a straight line is exact."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("top", joint=rb.Free(), inertia=rb.Inertia.box((0.1, 0.2, 0.3), mass=1.0))
    motion = builder.build().simulate([[0, 0, 0, 0, 0, 0, 1.0]], [[0.1, 0, 0, 0, 0, 2.0]], 1.0, save_at=3)
    scene = scene_of_motion(motion, 0, 41)
    half = scene.t  # half the angle, 2 rad/s
    np.testing.assert_allclose(scene.quaternion[0, :, 0, 0], np.cos(half), atol=1e-8)
    np.testing.assert_allclose(scene.quaternion[0, :, 0, 3], np.sin(half), atol=1e-8)


def test_interpolation_of_a_swing_converges_with_fourth_order():
    """The error decreases with the fourth power of the time between saved states."""
    rod = rb.Model.serial_chain(1)
    exact = rod.simulate([[0.0]], [[0.0]], 1.0, save_at=801, rtol=1e-12, atol=1e-14)
    errors = []
    for saved in (11, 21):
        motion = rod.simulate([[0.0]], [[0.0]], 1.0, save_at=saved, rtol=1e-12, atol=1e-14)
        errors.append(np.abs(scene_of_motion(motion, 0, 801).q - exact.q[0]).max())
    assert 12.0 < errors[0] / errors[1] < 20.0


def test_a_failed_sample_is_drawn_at_its_last_state(swing):
    q = swing.q.copy()
    q[3, 10:] = np.nan
    broken = rb.Trajectory(swing.t, q, swing.qd, *(getattr(swing, n) for n in COUNTS), model=swing.model)
    scene = scene_of_motion(broken, 3, 301)  # also between saved times
    np.testing.assert_array_equal(scene.q[90:], np.broadcast_to(scene.q[-1], scene.q[90:].shape))
    assert np.isfinite(scene.translation).all()


COUNTS = ("status", "steps", "rejections", "evaluations")


def test_the_box_of_a_body_has_its_inertia():
    inertia = rb.Inertia.box((0.3, 0.1, 0.2), mass=2.0)
    edges, axes = box_of_inertia(inertia.mass, inertia.inertia)
    found = np.abs(axes) @ edges
    np.testing.assert_allclose(found, (0.3, 0.1, 0.2), rtol=1e-12)
    np.testing.assert_allclose(np.linalg.det(axes), 1.0)


def test_visuals_are_drawn_and_missing_meshes_are_named(tmp_path):
    builder = rb.ModelBuilder()
    looks = [rb.Visual("sphere", (0.2,), rb.Pose((0, 0, 1))), rb.Visual("mesh", file=str(tmp_path / "gone.stl"))]
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, (1, 0, 0)), visuals=looks)
    with pytest.warns(UserWarning, match=r"these meshes are not shown: .*gone\.stl does not exist"):
        (ball,) = shapes_of(builder.build())
    np.testing.assert_allclose(np.linalg.norm(ball.vertices - [0, 0, 1], axis=1), 0.2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"show": ("bodies", "shadows")}, "show is .*; expected some of bodies, ghosts"),
        ({"sample": 40}, r"sample is 40; expected one of a batch of shape \(40,\)"),
        ({"fps": 0.0}, "fps is 0.0; expected a positive number"),
        ({"speed": 1e-9}, "the film would have .* frames"),
    ],
)
def test_invalid_settings_are_refused(swing, tmp_path, settings, message):
    with pytest.raises(rb.StateError, match=message):
        swing.film(tmp_path / "swing.gif", **settings)


def test_an_unknown_film_format_is_refused(swing, tmp_path):
    with pytest.raises(rb.StateError, match=r"expected \.html, \.gif, \.mp4 or \.png; found \.avi"):
        swing.film(tmp_path / "swing.avi")


def test_a_motion_saved_only_at_its_ends_gives_a_warning(tmp_path):
    motion = rb.Model.serial_chain(1).simulate([[0.0]], [[0.0]], 1.0)
    with pytest.warns(UserWarning, match="saved at its beginning and end only.*give simulate a save_at"):
        motion.film(tmp_path / "swing.png", fps=2)
    with pytest.warns(UserWarning, match="saved at its beginning and end only"):
        motion.plot()


def test_a_picture_contains_all_shapes_of_a_mechanism():
    """The edges of the picture stay empty, although the visuals extend far beyond joints and centres of mass."""
    builder = rb.ModelBuilder()
    looks = [rb.Visual("box", (0.1, 0.1, 4.0), rb.Pose((0, 0, 2.0)), colour=(1, 0, 0))]
    builder.add_body("pole", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(1.0, (0, 0, 0.1)), visuals=looks)
    figure = builder.build().picture(size=(300, 300))
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    drawn.seek(0)
    red = np.ptp(matplotlib_image.imread(drawn)[..., :3], axis=-1) > 0.3
    rows = np.flatnonzero(red.any(1))
    assert 3 <= rows.min() < 120
    assert 180 < rows.max() <= 296


@pytest.mark.parametrize("limits", [(-1.0, np.inf), (-np.inf, -4.0), (0.5, 0.5), (-np.inf, np.inf)])
def test_sliders_cover_the_joint_limits(limits):
    builder = rb.ModelBuilder()
    lower, upper = limits
    limited = rb.JointLimits(lower=lower, upper=upper)
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, (1, 0, 0)), limits=limited)
    viewer = builder.build().view(port=0)
    try:
        (slider,) = viewer._sliders
        assert slider.min <= slider.value <= slider.max
        assert slider.min < slider.max
        assert slider.min == (lower if np.isfinite(lower) else slider.min)
        assert slider.max == (upper if np.isfinite(upper) and upper > lower else slider.max)
    finally:
        viewer.close()


def test_a_short_motion_plays():
    """Its clock has a finer resolution than its slider."""
    motion = rb.Model.serial_chain(1).simulate([[0.0]], [[3.0]], 0.004, method="rk4", step=1e-3, save_at=5)
    viewer = motion.view(port=0)
    try:
        wait_until(lambda: viewer._now > 0.001)
    finally:
        viewer.close()


def test_the_shapes_are_those_of_the_chosen_sample():
    lengths = np.array([0.25, 1.0])
    placed = np.zeros((2, 2, 3))
    placed[:, 1, 0] = lengths
    chains = rb.Model.serial_chain(2).vary(placement_translation=placed)
    motion = chains.simulate(np.zeros((2, 2)), np.zeros((2, 2)), 0.1, method="rk4", step=0.01, save_at=3)
    viewer = motion.view(1, port=0)
    try:
        for chain in (1, 0):
            viewer._to_sample(chain)
            link = next(shape for shape in viewer._stage.shapes if shape.body == 0)
            assert link.vertices[:, 0].max() == pytest.approx(lengths[chain], rel=0.1)
    finally:
        viewer.close()


def test_a_motion_without_known_reactions_can_be_drawn():
    builder = rb.ModelBuilder(fluid_density=1000.0)
    water = rb.Immersion(volume=1e-3, linear_damping=(1, 1, 1, 1, 1, 1))
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, (1, 0, 0)), immersion=water)
    motion = builder.build().simulate([[0.0]], [[0.0]], 0.1, method="rk4", step=0.01, save_at=3)
    viewer = motion.view(port=0)
    try:
        viewer._turn(0, 0.3)
        np.testing.assert_allclose(viewer._seen, [0.3])
    finally:
        viewer.close()


@pytest.mark.parametrize(("name", "text"), [("empty.obj", "v 0 0 0\n"), ("damaged.stl", "xx")])
def test_a_damaged_mesh_is_left_out_with_a_warning(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    builder = rb.ModelBuilder()
    looks = [rb.Visual("mesh", file=str(tmp_path / name))]
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, (1, 0, 0)), visuals=looks)
    with pytest.warns(UserWarning, match=f"{name} cannot be read"):
        assert shapes_of(builder.build())
