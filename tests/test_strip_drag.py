"""The drag of slender cylinders by strip theory, against elementary integrals and integrals in extended precision."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.core.forces.strip_drag import strip_drag, strip_drag_along
from rbchain.core.tree import parameter_layout as param

DENSITY, DIAMETER, LENGTH, COEFFICIENT = 1000.0, 0.1, 1.0, 1.2
AXIS = np.array([0.0, 0.0, 1.0])


def rod(axis=(0, 0, 1), joint=None, inertia=0.5):
    """A rod along x, with its middle in the joint."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0), fluid_density=DENSITY)
    builder.add_body(
        "rod",
        joint=joint or rb.Revolute(axis),
        inertia=rb.Inertia(7.0, cg=(0, 0, 0), inertia=(0.3, inertia, inertia)),
        immersion=rb.Immersion(
            strip_diameter=DIAMETER,
            strip_length=LENGTH,
            strip_drag=COEFFICIENT,
            pose=rb.Pose((0, 0, 0), [0, np.sqrt(0.5), 0, np.sqrt(0.5)]),
        ),
    )
    return builder.build()


def test_the_moment_of_a_rod_that_turns_about_its_middle_is_the_elementary_integral():
    """Twice the integral of density/2 Cd D (w s)^2 s from 0 to L/2 is density Cd D L^4 w^2 / 64."""
    found = rod().passive_forces(np.zeros((3, 1)), [[3.0], [-2.0], [0.0]])[:, 0]
    factor = DENSITY * COEFFICIENT * DIAMETER * LENGTH**4 / 64
    np.testing.assert_allclose(found, [-factor * 9, factor * 4, 0.0], rtol=1e-14, atol=0)


@pytest.mark.plain_python
def test_a_rod_that_turns_about_its_middle_slows_down_as_the_closed_form():
    """J w' = - c w^2 gives w = w0 / (1 + c w0 t / J)."""
    factor = DENSITY * COEFFICIENT * DIAMETER * LENGTH**4 / 64 / 0.5
    motion = rod().simulate([[0.0]], [[3.0]], 1.0, rtol=1e-10, atol=1e-12, save_at=[0.5, 1.0])
    np.testing.assert_allclose(motion.qd[0, :, 0], 3.0 / (1.0 + 3.0 * factor * motion.t), rtol=1e-9)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


def integral_of_drag(h, a, b, along=None):
    """Integrals of |u| u and z |u| u (2, 3) over the rod, u = a + z b, or their derivatives along a change of a, b."""
    square = b @ b
    slowest = -(a @ b) / square if square else 0.0
    # short intervals where the integrand has a kink, or nearly one, at which it is an analytic function on each side
    places = slowest + h * np.concatenate([[0.0], *([-(2.0**-n), 2.0**-n] for n in range(-9, 40))])
    ends = np.unique([-h, h, *np.clip(places, -h, h)])
    half = np.diff(ends)[:, None] / 2
    z, weights = (ends[:-1, None] + half + half * NODES).ravel(), (half * WEIGHTS).ravel()
    u = a + z[:, None] * b
    speed = np.linalg.norm(u, axis=1)[:, None]
    drag = speed * u
    if along is not None:
        w = along[0] + z[:, None] * along[1]
        drag = speed * w + u * (u * w).sum(1)[:, None] / np.where(speed > 0.0, speed, 1.0)
    return np.array([weights @ drag, (weights * z) @ drag])


def velocities():
    """Velocities of the middle and angular velocities: of rods that turn about points of themselves, or nearly so."""
    rng = np.random.default_rng(0)
    for place in (0.0, 0.3, 0.9999, 1.0, 1.5, 8.0, 20.0, 300.0):
        for sideways in (0.0, 1e-9, 1e-4, 0.1, 3.0):
            omega = rng.normal(size=3)
            turning = -np.cross(omega, AXIS) * place * LENGTH / 2
            yield turning + sideways * np.cross(AXIS, np.cross(omega, AXIS)) + rng.normal() * AXIS, omega
    yield np.zeros(3), np.zeros(3)
    yield rng.normal(size=3), np.zeros(3)
    yield rng.normal(size=3), 1e-9 * rng.normal(size=3)
    yield np.zeros(3), 2.0 * AXIS


@pytest.mark.plain_python
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_drag_and_its_derivative_are_the_integrals_over_the_strips(dtype):
    """The closed forms amplify round-off by (p/h)^2 where they are used, that is up to (eps^-0.1 / 2)^2."""
    eps = float(np.finfo(dtype).eps)
    allowed = eps * (eps**-0.1 / 2) ** 2
    parameters = np.zeros((1, param.COLUMNS_IN_WATER), dtype)
    parameters[0, param.STRIP_LENGTH], parameters[0, param.STRIP_FACTOR] = LENGTH, 1.0
    rng, axis = np.random.default_rng(1), tuple(AXIS.astype(dtype))
    for lin, omega in velocities():
        v = lin.astype(dtype), omega.astype(dtype)
        w = rng.normal(size=3).astype(dtype), rng.normal(size=3).astype(dtype)
        found = strip_drag(0, parameters, tuple(v[0]), tuple(v[1]), axis, 0)
        along = strip_drag_along(0, parameters, tuple(map(tuple, v)), tuple(map(tuple, w)), axis, 0)
        (a, b), change = ((x.astype(float) * (1, 1, 0), np.cross(y.astype(float), AXIS)) for x, y in (v, w))
        speed, faster = (np.linalg.norm(x) + LENGTH / 2 * np.linalg.norm(y) for x, y in ((a, b), change))
        for force, expected, size in (
            (found, integral_of_drag(LENGTH / 2, a, b), speed * speed),
            (along, integral_of_drag(LENGTH / 2, a, b, change), speed * faster),
        ):
            assert np.abs(np.array(force.lin) + expected[0]).max() <= 20 * allowed * size
            assert np.abs(np.array(force.ang) + np.cross(AXIS, expected[1])).max() <= 20 * allowed * size
