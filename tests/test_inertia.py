"""Mass properties, compared with closed forms and with sums over point masses that integrate the shapes exactly."""

import numpy as np
import pytest

import rbchain as rb

EPS = np.finfo(float).eps
TURN = rb.Pose(rotation=(0.3, -0.5, 0.2, 0.7)).rotation
CG = np.array([0.4, -1.1, 0.7])


class Points:
    """A body as point masses: weights (p,) and positions (p, 3). Mass, cg and tensors are plain sums."""

    def __init__(self, weights, places):
        self.weights, self.places = np.asarray(weights, float), np.asarray(places, float)

    def __add__(self, other):
        return Points(np.append(self.weights, other.weights), np.concatenate([self.places, other.places]))

    def moved(self, rotation, translation):
        return Points(self.weights, self.places @ np.asarray(rotation).T + translation)

    @property
    def mass(self):
        return self.weights.sum()

    @property
    def cg(self):
        return self.weights @ self.places / self.mass

    def about(self, point):
        tensor = np.zeros((3, 3))
        for weight, (x, y, z) in zip(self.weights, self.places - point, strict=True):
            tensor += weight * np.array(
                [[y * y + z * z, -x * y, -x * z], [-x * y, x * x + z * z, -y * z], [-x * z, -y * z, x * x + y * y]]
            )
        return tensor


def gauss(low, high, count=4):
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (high - low) / 2 * nodes + (high + low) / 2, (high - low) / 2 * weights


def grid(*axes):
    """Return points and weights of the product of one-dimensional quadrature rules."""
    nodes = np.meshgrid(*[nodes for nodes, _ in axes], indexing="ij")
    weights = np.meshgrid(*[weights for _, weights in axes], indexing="ij")
    return [x.ravel() for x in nodes], np.prod([w.ravel() for w in weights], axis=0)


def circle(count=8):
    """The trapezoidal rule, exact here: the integrands are trigonometric polynomials of degree 2."""
    return 2 * np.pi * np.arange(count) / count, np.full(count, 2 * np.pi / count)


def rod_points(length, density):
    x, w = gauss(-length / 2, length / 2)
    return Points(density * w, np.stack([x, 0 * x, 0 * x], -1))


def box_points(size, density):
    places, w = grid(*[gauss(-s / 2, s / 2) for s in size])
    return Points(density * w, np.stack(places, -1))


def cylinder_points(radius, length, density):
    (r, a, z), w = grid(gauss(0, radius), circle(), gauss(-length / 2, length / 2))
    return Points(density * w * r, np.stack([r * np.cos(a), r * np.sin(a), z], -1))


def sphere_points(radius, density):
    (r, a, u), w = grid(gauss(0, radius), circle(), gauss(-1, 1))
    s = np.sqrt(1 - u * u)
    return Points(density * w * r**2, np.stack([r * s * np.cos(a), r * s * np.sin(a), r * u], -1))


def assert_same_body(found, points):
    scale = np.abs(points.about(np.zeros(3))).max()
    assert found.mass == pytest.approx(points.mass, rel=50 * EPS)
    np.testing.assert_allclose(found.cg, points.cg, atol=50 * EPS * np.abs(points.places).max())
    np.testing.assert_allclose(found.inertia, points.about(points.cg), atol=200 * EPS * scale)
    for point in (np.zeros(3), np.array([0.3, 2.0, -1.0])):
        expected = points.about(point)
        np.testing.assert_allclose(found.about(point), expected, atol=200 * EPS * np.abs(expected).max())


# --- closed forms -----------------------------------------------------------------------------------------------------


def test_a_rod_has_the_inertia_of_the_closed_form():
    rod = rb.Inertia.rod(3.0, mass=2.0)
    np.testing.assert_allclose(rod.inertia, np.diag([0, 1.5, 1.5]), atol=4 * EPS)
    np.testing.assert_array_equal(rod.cg, 0)


def test_a_rod_about_its_end_has_a_third_of_m_l_squared():
    rod = rb.Inertia.rod(3.0, mass=2.0, cg=(1.5, 0, 0))
    np.testing.assert_allclose(rod.about((0, 0, 0)), np.diag([0, 6, 6]), atol=8 * EPS)


def test_a_box_has_the_inertia_of_the_closed_form():
    np.testing.assert_allclose(rb.Inertia.box((1, 2, 3), mass=12.0).inertia, np.diag([13, 10, 5]), rtol=4 * EPS)


def test_a_cylinder_has_the_inertia_of_the_closed_form():
    np.testing.assert_allclose(rb.Inertia.cylinder(2.0, 6.0, mass=3.0).inertia, np.diag([12, 12, 6]), atol=20 * EPS)


def test_a_sphere_has_the_inertia_of_the_closed_form():
    np.testing.assert_allclose(rb.Inertia.sphere(0.5, mass=10.0).inertia, np.eye(3), atol=4 * EPS)


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (lambda **m: rb.Inertia.rod(0.7, **m), 0.7),
        (lambda **m: rb.Inertia.box((0.2, 0.3, 0.5), **m), 0.03),
        (lambda **m: rb.Inertia.cylinder(0.2, 0.9, **m), np.pi * 0.036),
        (lambda **m: rb.Inertia.sphere(0.3, **m), 0.036 * np.pi),
    ],
    ids=["rod", "box", "cylinder", "sphere"],
)
def test_density_is_mass_over_volume(shape, volume):
    by_density, by_mass = shape(density=7.0), shape(mass=7.0 * volume)
    assert by_density.mass == pytest.approx(7.0 * volume, rel=10 * EPS)
    np.testing.assert_allclose(by_density.inertia, by_mass.inertia, atol=10 * EPS * np.abs(by_mass.inertia).max())


# --- sums over point masses -------------------------------------------------------------------------------------------


def test_a_rod_along_any_axis_is_the_sum_of_its_points():
    rod = rb.Inertia.rod(1.7, density=2.3, axis=2.5 * TURN[:, 0], cg=CG)
    assert_same_body(rod, rod_points(1.7, 2.3).moved(TURN, CG))


def test_a_turned_box_is_the_sum_of_its_points():
    box = rb.Inertia.box((0.3, 0.8, 1.9), density=5.0, rotation=TURN, cg=CG)
    assert_same_body(box, box_points((0.3, 0.8, 1.9), 5.0).moved(TURN, CG))


def test_a_cylinder_along_any_axis_is_the_sum_of_its_points():
    cylinder = rb.Inertia.cylinder(0.4, 1.3, density=3.0, axis=0.1 * TURN[:, 2], cg=CG)
    assert_same_body(cylinder, cylinder_points(0.4, 1.3, 3.0).moved(TURN, CG))


def test_a_sphere_is_the_sum_of_its_points():
    assert_same_body(rb.Inertia.sphere(0.6, density=4.0, cg=CG), sphere_points(0.6, 4.0).moved(np.eye(3), CG))


def test_a_sum_of_inertias_is_the_inertia_of_all_their_points():
    found = (
        rb.Inertia.box((0.3, 0.8, 1.9), density=5.0, rotation=TURN, cg=CG)
        + rb.Inertia.cylinder(0.4, 1.3, density=3.0, cg=-CG)
        + rb.Inertia.sphere(0.6, density=4.0, cg=(0, 2, 0))
    )
    expected = (
        box_points((0.3, 0.8, 1.9), 5.0).moved(TURN, CG)
        + cylinder_points(0.4, 1.3, 3.0).moved(np.eye(3), -CG)
        + sphere_points(0.6, 4.0).moved(np.eye(3), np.array([0, 2, 0]))
    )
    assert_same_body(found, expected)


def test_a_moved_inertia_is_the_inertia_of_its_moved_points():
    step = np.array([-2.0, 0.5, 0.1])
    found = rb.Inertia.box((0.3, 0.8, 1.9), density=5.0, cg=CG).moved(rb.Pose(step, TURN))
    assert_same_body(found, box_points((0.3, 0.8, 1.9), 5.0).moved(np.eye(3), CG).moved(TURN, step))


def test_successive_moves_compose_like_their_poses():
    body, a, b = (
        rb.Inertia(2.0, cg=CG, inertia=(1.0, 1.5, 2.0)),
        rb.Pose(CG, TURN),
        rb.Pose((1, 2, 3), (0, 0.6, 0, 0.8)),
    )
    once, twice = body.moved(a @ b), body.moved(b).moved(a)
    np.testing.assert_allclose(once.cg, twice.cg, atol=20 * EPS)
    np.testing.assert_allclose(once.inertia, twice.inertia, atol=20 * EPS)


# --- sums -------------------------------------------------------------------------------------------------------------


def test_two_halves_sum_to_the_whole():
    half = rb.Inertia.box((0.5, 2, 3), density=7.0)
    left, right = half.moved(rb.Pose((-0.25, 0, 0))), half.moved(rb.Pose((0.25, 0, 0)))
    whole = rb.Inertia.box((1, 2, 3), density=7.0)
    assert (left + right).mass == pytest.approx(whole.mass)
    np.testing.assert_allclose((left + right).cg, 0, atol=EPS)
    np.testing.assert_allclose((left + right).inertia, whole.inertia, rtol=20 * EPS)


def test_a_massless_body_adds_nothing_but_its_own_tensor():
    body, rotor = (
        rb.Inertia(2.0, cg=CG, inertia=(1.0, 1.5, 2.0)),
        rb.Inertia(0.0, cg=(9, 9, 9), inertia=(0.1, 0.1, 0.2)),
    )
    for total in (body + rotor, rotor + body):
        assert total.mass == 2.0
        np.testing.assert_allclose(total.cg, CG, rtol=4 * EPS)
        np.testing.assert_allclose(total.inertia, np.diag([1.1, 1.6, 2.2]), rtol=4 * EPS)


def test_two_massless_bodies_sum_to_a_massless_body():
    total = rb.Inertia(0.0, cg=(1, 2, 3), inertia=(0.1, 0.1, 0.2)) + rb.Inertia(0.0, inertia=(0.3, 0.3, 0.3))
    assert total.mass == 0.0
    assert np.isfinite(total.cg).all()
    np.testing.assert_allclose(total.inertia, np.diag([0.4, 0.4, 0.5]), rtol=4 * EPS)


def test_sums_and_moves_do_not_change_their_operands():
    body = rb.Inertia(2.0, cg=CG, inertia=(1.0, 1.5, 2.0))
    body + body
    body.moved(rb.Pose(CG, TURN))
    assert body.mass == 2.0
    np.testing.assert_array_equal(body.cg, CG)
    np.testing.assert_array_equal(body.inertia, np.diag([1.0, 1.5, 2.0]))


# --- what is given ----------------------------------------------------------------------------------------------------


def test_a_tensor_may_be_given_by_three_six_or_nine_numbers():
    nine = np.array([[2.0, 0.1, 0.2], [0.1, 2.5, 0.3], [0.2, 0.3, 3.0]])
    np.testing.assert_array_equal(rb.Inertia(1.0, inertia=nine).inertia, nine)
    np.testing.assert_array_equal(rb.Inertia(1.0, inertia=(2.0, 0.1, 0.2, 2.5, 0.3, 3.0)).inertia, nine)
    np.testing.assert_array_equal(rb.Inertia(1.0, inertia=(2.0, 2.5, 3.0)).inertia, np.diag([2.0, 2.5, 3.0]))


@pytest.mark.parametrize("shape", [(), (2,), (4,), (2, 2), (9,), (1, 3, 3)])
def test_a_tensor_of_another_shape_is_refused(shape):
    with pytest.raises(rb.ModelError, match="inertia"):
        rb.Inertia(1.0, inertia=np.ones(shape))


def test_a_tensor_that_is_not_symmetric_is_refused():
    with pytest.raises(rb.ModelError, match="symmetric"):
        rb.Inertia(1.0, inertia=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]])


def test_a_cg_of_another_shape_is_refused():
    with pytest.raises(rb.ModelError, match="cg"):
        rb.Inertia(1.0, cg=(1.0, 2.0))


def test_an_inertia_copies_its_input():
    cg, tensor = np.zeros(3), np.eye(3)
    body = rb.Inertia(1.0, cg=cg, inertia=tensor)
    cg[:], tensor[:] = 5.0, 5.0
    np.testing.assert_array_equal(body.cg, 0.0)
    np.testing.assert_array_equal(body.inertia, np.eye(3))


SHAPES = {
    "rod": lambda **given: rb.Inertia.rod(1.0, **given),
    "box": lambda **given: rb.Inertia.box((1, 1, 1), **given),
    "cylinder": lambda **given: rb.Inertia.cylinder(1.0, 1.0, **given),
    "sphere": lambda **given: rb.Inertia.sphere(1.0, **given),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("given", [{}, {"mass": 1.0, "density": 1.0}], ids=["neither", "both"])
def test_exactly_one_of_mass_and_density_must_be_given(shape, given):
    with pytest.raises(rb.ModelError, match="density"):
        shape(**given)


@pytest.mark.parametrize(
    "shape",
    [
        lambda: rb.Inertia.rod(0.0, mass=1),
        lambda: rb.Inertia.rod(-1.0, mass=1),
        lambda: rb.Inertia.rod(np.nan, mass=1),
        lambda: rb.Inertia.rod(np.inf, mass=1),
        lambda: rb.Inertia.box((1, 0, 1), mass=1),
        lambda: rb.Inertia.box((-1, -1, 1), mass=1),
        lambda: rb.Inertia.box((1, 1), mass=1),
        lambda: rb.Inertia.cylinder(-1.0, 1.0, mass=1),
        lambda: rb.Inertia.cylinder(1.0, -1.0, mass=1),
        lambda: rb.Inertia.sphere(-1.0, mass=1),
        lambda: rb.Inertia.sphere(np.nan, mass=1),
    ],
)
def test_a_shape_without_positive_dimensions_is_refused(shape):
    with pytest.raises(rb.ModelError):
        shape()


@pytest.mark.parametrize(
    "shape",
    [
        lambda axis: rb.Inertia.rod(1.0, mass=1, axis=axis),
        lambda axis: rb.Inertia.cylinder(1.0, 1.0, mass=1, axis=axis),
    ],
    ids=["rod", "cylinder"],
)
@pytest.mark.parametrize("axis", [(0, 0, 0), (0, 0, np.nan), (0, 1)], ids=["zero", "nan", "two numbers"])
def test_a_zero_axis_is_refused(shape, axis):
    with pytest.raises(rb.ModelError, match="axis"):
        shape(axis)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("given", [{"mass": -1.0}, {"density": -1.0}, {"mass": np.nan}, {"density": np.nan}])
def test_a_negative_or_missing_mass_is_refused(shape, given):
    """The shape or the builder may refuse it."""
    with pytest.raises(rb.ModelError):
        rb.ModelBuilder().add_body("bob", joint=rb.Revolute(), inertia=shape(**given))


def test_a_part_without_mass_changes_no_bit_of_the_center_of_mass():
    rng = np.random.default_rng(0)
    for _ in range(100):
        body, empty = rb.Inertia(1.7, rng.normal(size=3)), rb.Inertia(0.0, rng.normal(size=3))
        assert (body + empty).cg.tolist() == (empty + body).cg.tolist() == body.cg.tolist()
