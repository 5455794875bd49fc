"""The viewer in a real Chromium, films, and the numbers of the pictures.

The tests in a browser need one called chromium, chromium-browser or google-chrome; `.ci/run` sees to it.
"""

import functools
import io
import os
import shutil
import subprocess
import sys
import time

import imageio_ffmpeg
import matplotlib.image as matplotlib_image
import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

import rbchain as rb
from rbchain.common.progress import progress
from rbchain.view import film as film_module, meshes
from rbchain.view.painting import Painting
from rbchain.view.scene import quaternions, scene_at_rest, scene_of_motion
from rbchain.view.shapes import CLOSURE, box_of_inertia, ellipsoids_of, shapes_of, sizes_of

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


def colored(picture):
    """Count the colored pixels: bodies have a color and the grid has none."""
    return int((np.ptp(picture, axis=-1) > 0.15).sum())


@pytest.mark.slow
def test_a_slider_in_the_browser_moves_the_arm(chromium):
    viewer = rb.Model.serial_chain(3).view(port=0)
    try:
        page = opened(chromium, viewer.url)
        wait_until(lambda: colored(pixels(page)) > 500)
        before = pixels(page)
        box = page.locator("input[inputmode=decimal]").first
        box.fill("1.2")
        box.press("Enter")
        elbow = 0.25 * np.array([np.cos(1.2), np.sin(1.2), 0.0])
        wait_until(lambda: np.abs(viewer._stage.nodes[1].position - elbow).max() < 1e-6)
        wait_until(lambda: (np.abs(pixels(page) - before).max(-1) > 0.15).sum() > 500)
    finally:
        viewer.close()


@pytest.mark.slow
def test_a_motion_plays_in_the_browser_until_it_is_closed(chromium):
    viewer = swing_of(3).view(port=0)
    try:
        page = opened(chromium, viewer.url)
        wait_until(lambda: colored(pixels(page)) > 300)
        before = pixels(page)
        wait_until(lambda: (np.abs(pixels(page) - before).max(-1) > 0.15).sum() > 300)
    finally:
        viewer.close()
    assert "closed" in repr(viewer)


@pytest.mark.slow
def test_an_exported_page_plays_without_server_or_network(chromium, tmp_path):
    (file,) = swing_of(3).film(tmp_path / "swing.html", fps=15)
    page = opened(chromium, file.as_uri(), offline=True)
    wait_until(lambda: colored(pixels(page)) > 300)
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
    assert colored(few) > 200
    assert colored(many) > 1.2 * colored(few)
    assert colored(np.asarray(many - few)) > 0


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


@pytest.mark.plain_python
def test_a_sample_stays_where_an_event_has_stopped_it():
    """It is drawn at its last saved state before the event, without the velocity that it has there."""
    stop = rb.Event("link1", value=-0.5, stop=True)
    motion = rb.Model.serial_chain(1).simulate(duration=1.0, method="rk4", step=0.01, save_at=11, events=[stop])
    q = scene_of_motion(motion, 0, 201).q[:, 0]
    after = np.linspace(0.0, 1.0, 201) >= motion.end_time
    assert (q[after] == q[after][0]).all()


@pytest.mark.plain_python
def test_points_of_constraints_are_drawn_on_both_bodies():
    builder = rb.ModelBuilder()
    for name, x in (("left", 0.0), ("right", 2.0)):
        inertia = rb.Inertia.rod(1.0, mass=1.0)
        builder.add_body(name, joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((x, 0, 0)), inertia=inertia)
    builder.add_constraint(rb.BallConstraint("pin", "left", "right", point_a=(0, 0, 1), point_b=(0, 0, 3)))
    builder.add_constraint(rb.BallConstraint("hook", None, "left", point_a=(1, 2, 3), point_b=(0, 0, 2)))
    builder.add_constraint(rb.CouplerConstraint("gear", "left", "right", ratio=2.0))
    balls = [shape for shape in shapes_of(builder.build()) if shape.color == CLOSURE]
    centers = {(ball.body, *(ball.vertices.min(0) + ball.vertices.max(0)).round(9) / 2) for ball in balls}
    assert centers == {(-1, 1, 2, 3), (0, 0, 0, 1), (0, 0, 0, 2), (1, 0, 0, 3)}


def test_the_box_of_a_body_has_its_inertia():
    inertia = rb.Inertia.box((0.3, 0.1, 0.2), mass=2.0)
    edges, axes = box_of_inertia(inertia.mass, inertia.inertia)
    found = np.abs(axes) @ edges
    np.testing.assert_allclose(found, (0.3, 0.1, 0.2), rtol=1e-12)
    np.testing.assert_allclose(np.linalg.det(axes), 1.0)


def test_visuals_are_drawn_and_missing_meshes_are_named(tmp_path):
    builder = rb.ModelBuilder()
    looks = [rb.Visual("sphere", (0.2,), pose=rb.Pose((0, 0, 1))), rb.Visual("mesh", file=str(tmp_path / "gone.stl"))]
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)), visuals=looks)
    with pytest.warns(UserWarning, match=r"these meshes are not shown: .*gone\.stl does not exist"):
        (ball,) = shapes_of(builder.build())
    np.testing.assert_allclose(np.linalg.norm(ball.vertices - [0, 0, 1], axis=1), 0.2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"show": ("bodies", "shadows")}, "show is .*; expected a list with some of bodies, ghosts"),
        ({"sample": 40}, r"sample is 40; expected one of a batch of shape \(40,\)"),
        ({"fps": 0.0}, "fps is 0.0; expected a positive number"),
        ({"speed": 1e-9}, "the film would have .* frames"),
    ],
)
def test_invalid_settings_are_refused(swing, tmp_path, settings, message):
    with pytest.raises(rb.ArgumentError, match=message):
        swing.film(tmp_path / "swing.gif", **settings)


def test_an_unknown_film_format_is_refused(swing, tmp_path):
    with pytest.raises(rb.ArgumentError, match=r"expected \.html, \.gif, \.mp4 or \.png; found \.avi"):
        swing.film(tmp_path / "swing.avi")


def test_ghosts_of_a_varied_model_are_drawn_with_their_own_geometry():
    """As many ghosts as frames, so that a ghost with the geometry of another one would not be noticed by its shape."""
    model = rb.Model.serial_chain(2)
    many = model.vary(placement_translation=np.random.default_rng(0).uniform(0.5, 1.5, (5, 2, 3)))
    motion = many.simulate(np.full((5, 2), 0.3), duration=0.1, save_at=4)
    scene = scene_of_motion(motion, 0, 4)
    assert scene.translation.shape == (5, 4, 2, 3)
    for k in range(5):
        expected = many[k].body_poses(motion.q[k]).translation
        np.testing.assert_allclose(scene.translation[k], expected, rtol=0, atol=1e-12)


def test_a_motion_saved_only_at_its_ends_gives_a_warning(tmp_path):
    motion = rb.Model.serial_chain(1).simulate([[0.0]], [[0.0]], 1.0, save_at=2)
    with pytest.warns(UserWarning, match="saved only at 0 and 1 s.*call simulate without save_at"):
        motion.film(tmp_path / "swing.png", fps=2)
    with pytest.warns(UserWarning, match="saved only at 0 and 1 s"):
        motion.plot()


def test_a_picture_contains_all_shapes_of_a_mechanism():
    """The edges of the picture stay empty, although the visuals extend far beyond joints and centers of mass."""
    builder = rb.ModelBuilder()
    looks = [rb.Visual("box", (0.1, 0.1, 4.0), pose=rb.Pose((0, 0, 2.0)), color=(1, 0, 0))]
    builder.add_body("pole", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(1.0, cg=(0, 0, 0.1)), visuals=looks)
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
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)), limits=limited)
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


@pytest.mark.plain_python
def test_a_motion_without_known_reactions_can_be_drawn():
    builder = rb.ModelBuilder(fluid_density=1000.0)
    water = rb.Immersion(volume=1e-3, linear_damping=(1, 1, 1, 1, 1, 1))
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)), immersion=water)
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
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)), visuals=looks)
    with pytest.warns(UserWarning, match=f"{name} cannot be read"):
        assert shapes_of(builder.build())


def arm_of_size(length):
    """Three links of this length, m, of steel."""
    builder = rb.ModelBuilder()
    rod = rb.Inertia.box((length, length / 10, length / 10), mass=78.5 * length**3, cg=(length / 2, 0, 0))
    for i, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 1, 0)]):
        placement = rb.Pose((length if i else 0.0, 0, 0))
        parent = f"link{i - 1}" if i else None
        builder.add_body(f"link{i}", parent=parent, joint=rb.Revolute(axis), placement=placement, inertia=rod)
    return builder.build()


MECHANISMS = {
    "small arm": (lambda: rb.Model.serial_chain(3), None),
    "puma": (lambda: rb.load("examples/puma560.urdf"), None),
    "straight chain": (lambda: rb.Model.serial_chain(60), None),
    "coiled chain": (lambda: rb.Model.serial_chain(60), np.full(60, 0.3)),
    "links of 10 m": (lambda: arm_of_size(10.0), np.array([0.3, -0.5, 0.8])),
    "links of 1 cm": (lambda: arm_of_size(0.01), np.array([0.3, -0.5, 0.8])),
}


@pytest.fixture(params=MECHANISMS, scope="module")
def mechanism(request):
    build, q = MECHANISMS[request.param]
    model = build()
    return model, model.neutral() if q is None else q


@pytest.mark.slow_cases("size0")
@pytest.mark.plain_python
@pytest.mark.parametrize("size", [(800, 600), (300, 600)])
def test_pictures_of_a_film_are_filled_by_the_motion(size):
    """A mechanism that swings down: no frame cuts it, and it fills most of the width or of the height."""
    motion = rb.Model.serial_chain(2).simulate(np.zeros(2), duration=0.6, method="rk4", step=0.02, save_at=21)
    painting = Painting(scene_of_motion(motion, 0, 13), ("bodies",), size)
    window = np.array([painting.axes.get_xlim(), painting.axes.get_ylim()])
    places = []
    for frame in range(13):
        poses = painting.scene.rotation[0, frame], painting.scene.translation[0, frame]
        places.append((painting.camera.project(painting.surfaces.placed(*poses))[0] - window[:, 0]) / np.ptp(window, 1))
    places = np.concatenate(places)
    assert places.min() > 0.0
    assert places.max() < 1.0
    assert np.ptp(places, axis=0).max() > 0.8
    assert np.ptp(window[0]) / np.ptp(window[1]) == pytest.approx(size[0] / size[1])


@pytest.mark.slow_cases("straight chain")
@pytest.mark.parametrize("width", [0.75, 1.0, 2.0])
def test_the_first_camera_position_shows_the_whole_mechanism(mechanism, width):
    """In windows of several ratios of width to height: all corners of bodies and arrows are in the picture."""
    model, q = mechanism
    viewer = model.view(q, port=0, show=("bodies", "reactions"))
    try:
        camera, scene = viewer._server.initial_camera, viewer._stage.scene
        points = [scene.arrows(0).reshape(-1, 3)]
        for shape in viewer._stage.shapes:
            points.append(shape.vertices @ scene.rotation[0, 0, shape.body].T + scene.translation[0, 0, shape.body])
        towards = camera.position - camera.look_at
        right = np.cross(camera.up, towards)
        axes = [axis / np.linalg.norm(axis) for axis in (right, np.cross(towards, right), towards)]
        x, y, z = np.array(axes) @ (np.concatenate(points) - camera.position).T
        half = np.tan(camera.fov / 2)
        assert np.abs(x / z).max() < half * width
        assert np.abs(y / z).max() < half
        assert max(np.abs(x / z).max() / width, np.abs(y / z).max()) > 0.1 * half  # and is not a dot
        assert camera.near < -z.max()
        assert -z.min() < camera.far
    finally:
        viewer.close()


def test_arrows_and_ellipsoids_suit_the_mechanism(mechanism):
    model, q = mechanism
    sizes, scene = sizes_of(model), scene_at_rest(model, q)
    arrows = scene.arrows(0)
    span = np.linalg.norm(np.ptp(scene.translation[0, 0], axis=0))
    assert 0.05 * span < np.linalg.norm(arrows[:, 1] - arrows[:, 0], axis=1).max() < 0.5 * sizes.extent
    assert 0.003 * sizes.extent <= sizes.thickness <= 0.02 * sizes.extent
    for ellipsoid in ellipsoids_of(model):
        center = model.cg[ellipsoid.body]
        assert np.linalg.norm(ellipsoid.vertices - center, axis=1).max() <= 0.5 * sizes.extent + 1e-12


def test_what_is_drawn_scales_with_the_mechanism():
    small, large = (sizes_of(arm_of_size(length)) for length in (0.01, 10.0))
    np.testing.assert_allclose([large.extent, large.thickness], 1000 * np.array([small.extent, small.thickness]))


def test_links_of_a_long_chain_are_thinner_than_long():
    assert sizes_of(rb.Model.serial_chain(100)).thickness < 0.5 * 0.25  # links are 0.25 m long


def test_a_body_without_length_has_the_size_of_its_inertia():
    builder = rb.ModelBuilder()
    builder.add_body("satellite", joint=rb.Free(), inertia=rb.Inertia.box((2.0, 1.0, 1.0), mass=100.0))
    (shape,) = shapes_of(builder.build())
    np.testing.assert_allclose(np.ptp(shape.vertices, axis=0), (2.0, 1.0, 1.0), rtol=1e-12)


def volume(vertices, faces):
    """By the divergence theorem; positive if the corners of faces run counter-clockwise as seen from outside."""
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    return np.einsum("ni,ni->", a, np.cross(b, c)) / 6


@pytest.mark.parametrize("segments", [6, 20, 200])
def test_solids_have_their_volumes(segments):
    circle = segments / 2 * np.sin(2 * np.pi / segments)  # area of the polygon in a circle of radius 1
    assert volume(*meshes.box((1.0, 2.0, 3.0))) == pytest.approx(6.0, rel=1e-12)
    assert volume(*meshes.cylinder(0.5, 2.0, segments)) == pytest.approx(0.25 * circle * 2.0, rel=1e-12)
    ball, capsule = volume(*meshes.ball(segments)), volume(*meshes.capsule(1.0, 3.0, segments))
    assert circle * 3.0 < capsule < np.pi * (3.0 + 4 / 3)
    if segments == 200:
        assert ball == pytest.approx(4 / 3 * np.pi, rel=1e-3)
        assert capsule == pytest.approx(np.pi * (3.0 + 4 / 3), rel=1e-3)


def test_quaternions_are_those_of_scipy():
    turns = Rotation.random(1000, rng=0)
    half_turns = Rotation.from_rotvec(np.pi * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.6, 0.8], [0, 0, 0]]))
    for rotations in (turns, half_turns):
        found, expected = quaternions(rotations.as_matrix()), rotations.as_quat(scalar_first=True)
        sign = np.sign(np.einsum("ni,ni->n", found, expected))[:, None]
        np.testing.assert_allclose(sign * found, expected, atol=1e-15 * 4)


def test_pictures_of_many_bodies_have_few_triangles():
    """A round link that is a few pixels thick needs few segments."""
    triangles = {}
    for n in (3, 200):
        painting = Painting(scene_at_rest(rb.Model.serial_chain(n), np.zeros(n)), ("bodies",), (800, 600))
        triangles[n] = len(painting.surfaces.faces) / n
    assert triangles[3] > 3 * triangles[200]
    assert triangles[200] < 60


def test_near_triangles_hide_far_ones():
    """A red plate between the camera and a blue one hides it, in both orders of the bodies."""
    for order in (("red", "blue"), ("blue", "red")):
        builder = rb.ModelBuilder()
        for name in order:
            # a plate is 1 m wide; the camera looks from the side of negative y
            at = rb.Pose((0.0, -0.2 if name == "red" else 0.2, 0.0))
            plate = rb.Visual("box", (1.0, 0.02, 1.0), pose=at, color=(1, 0, 0) if name == "red" else (0, 0, 1))
            builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia.sphere(0.1, mass=1.0), visuals=[plate])
        drawn = io.BytesIO()
        builder.build().picture(size=(200, 200)).savefig(drawn, format="png")
        drawn.seek(0)
        middle = matplotlib_image.imread(drawn)[95:105, 95:105, :3]
        assert middle[..., 0].min() > 0.3
        assert middle[..., 2].max() < 0.1  # the edge between two triangles is slightly transparent


def test_reactions_are_computed_when_they_are_first_shown():
    viewer = rb.Model.serial_chain(2).view(port=0)
    try:
        scene = viewer._stage.scene
        assert "reactions" not in vars(scene)
        viewer._set_visible("reactions", True)
        assert "reactions" in vars(scene)
        (arrows,) = viewer._stage.layers["reactions"]
        np.testing.assert_allclose(arrows.points, scene.arrows(0), atol=1e-6)
    finally:
        viewer.close()


@pytest.fixture(scope="module")
def in_water():
    builder = rb.ModelBuilder(fluid_density=1000.0)
    water = rb.Immersion(volume=1e-3, linear_damping=(1, 1, 1, 1, 1, 1))
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)), immersion=water)
    return builder.build().simulate([[0.0]], [[0.0]], 0.1, method="rk4", step=0.01, save_at=3)


@pytest.mark.plain_python
def test_a_film_without_the_reactions_that_it_should_show_says_why(in_water, tmp_path):
    with pytest.warns(UserWarning, match="joint reactions are not shown: reactions"):
        (file, _) = in_water.film(tmp_path / "arm.png", fps=10, show=("bodies", "reactions"), size=(100, 80))
    assert file.exists()


@pytest.mark.plain_python
def test_the_page_says_why_reactions_are_not_shown(in_water):
    viewer = in_water.view(port=0)
    try:
        viewer._set_visible("reactions", True)
        assert "reactions" in viewer._problem.content
        viewer._set_visible("frames", True)
        assert viewer._problem.content == ""
    finally:
        viewer.close()


@pytest.mark.parametrize("ending", ["html", "gif", "mp4", "png"])
def test_a_film_reports_its_progress(swing, tmp_path, monkeypatch, caplog, ending):
    monkeypatch.setattr(film_module, "progress", functools.partial(progress, after=0.0))
    caplog.set_level("INFO", "rbchain")
    swing.film(tmp_path / f"swing.{ending}", fps=2, size=(100, 80))
    assert f"Writing swing.{ending}: 3/3" in caplog.text


def test_the_viewer_starts_without_packages_that_are_slow_to_import():
    """Each of them takes about as long to import as everything else."""
    script = """
import sys, rbchain as rb
rb.load("examples/puma560.urdf").view(port=0).close()
print(sorted({"trimesh", "matplotlib", "networkx", "pandas", "mujoco"} & set(sys.modules)))
"""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.split("\n")[-2] == "[]"


def test_a_large_visual_is_round_in_a_picture():
    """A wheel of 1 m has many segments, one of a few pixels has few."""
    builder = rb.ModelBuilder()
    wheel = rb.Visual("cylinder", (1.0, 0.2))
    hub = rb.Visual("cylinder", (0.01, 0.3))
    builder.add_body("wheel", joint=rb.Revolute(), inertia=rb.Inertia.sphere(0.1, mass=1.0), visuals=[wheel, hub])
    large, small = (len(shape.faces) for shape in shapes_of(builder.build(), pixel=0.005))
    assert large > 2 * small
