"""Contacts of three or more points of a rigid body: `moreau` gives its solver velocities and bounds that fit together.

Otherwise, no impulses could stop all points, and the solver would have to find out which of them opens or slides.
"""

import numpy as np
import pytest

import rbchain as rb
from rbchain.core.contacts import contact_layout as contact
from rbchain.core.motion import moreau

pytestmark = pytest.mark.plain_python
SIZE, STEP = (0.4, 0.3, 0.2), 1e-3


def problem(monkeypatch, q, qd, points=4):
    """Return the rows of the four corners of a box (12, columns) that the solver gets in a step of 1 ms."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("box", joint=rb.Free(), inertia=rb.Inertia.box(SIZE, mass=2.0))
    x, y, z = (length / 2 for length in SIZE)
    corners = [(i * x, j * y, -z) for i in (-1, 1) for j in (-1, 1)][:points]
    plane = {"plane_point": (0, 0, 0), "plane_normal": (0, 0, 1), "friction": 0.5}
    forces = [rb.SphereContact("box", point=corner, radius=0.0, **plane) for corner in corners]
    found, solve = [], moreau.solve_contacts

    def keep(contacts, tolerance, k):
        found.append(np.array(contacts.rows)[:, :, 0])
        return solve(contacts, tolerance, k)

    monkeypatch.setattr(moreau, "solve_contacts", keep)
    builder.build().simulate([q], [qd], STEP, method="moreau", step=STEP, forces=forces, save_at=2)
    return found[0]


def misfit(rows, values):
    """Return the largest difference of values of rows, m/s, from the nearest velocities of a rigid body."""
    levers = np.repeat(rows[::3, contact.LEVER : contact.LEVER + 3], 3, axis=0)
    directions = rows[:, contact.NORMAL : contact.NORMAL + 3]
    motion = np.column_stack([directions, np.cross(levers, directions)])
    chosen = np.isfinite(values)
    motion, values = motion[chosen], values[chosen]
    return np.abs(values - motion @ np.linalg.lstsq(motion, values, rcond=None)[0]).max()


def normals_only(rows, column):
    """Return a column of the rows of normals, and NaN for the tangents."""
    return np.where(np.arange(len(rows)) % 3 == 0, rows[:, column], np.nan)


def test_the_velocities_of_the_corners_of_a_slowly_turning_box_are_those_of_a_rigid_body(monkeypatch):
    """The centripetal acceleration w x (w x r) would add up to 0.0005 |w|^2 r = 3e-8 m/s to them."""
    rows = problem(monkeypatch, [0, 0, 0.1, 0, 0, 0, 1], [0, 0, 0, 0.01, -0.005, 0.01])
    assert misfit(rows, rows[:, contact.VELOCITY]) < 1e-14


@pytest.mark.parametrize("points, spin", [(4, 1.0), (2, 0.01)])
def test_the_centripetal_acceleration_acts_if_it_is_not_small_or_there_are_two_points(monkeypatch, points, spin):
    """Its part along the line between the corners of an edge: half a step times w^2 times half of the edge, m/s."""
    rows = problem(monkeypatch, [0, 0, 0.1, 0, 0, 0, 1], [0, 0, 0, 0, 0, spin], points)
    assert misfit(rows, rows[:, contact.VELOCITY]) == pytest.approx(0.5 * STEP * spin**2 * 0.15, rel=1.0)


@pytest.mark.parametrize("speed", [0.0, -0.3])
def test_the_bounds_of_corners_with_gaps_near_zero_are_velocities_of_a_rigid_body(monkeypatch, speed):
    """Gaps of up to 9e-9 m; some corners close and some open, or two corners have an impact."""
    q = [0, 0, 0.1 + 4.5e-9, 4e-9, 7e-9, 0, 1]
    rows = problem(monkeypatch, q, [0, 0, 0.5 * speed, 5e-6, 0.5 * speed / 0.2 + 1e-5, 0])
    bounds = normals_only(rows, contact.BOUND)
    assert misfit(rows, bounds) < 1e-12


def test_the_bounds_of_corners_that_approach_the_plane_are_velocities_of_a_rigid_body(monkeypatch):
    """Gaps of 1e-6 m. Two corners would close within the step and two would not."""
    rows = problem(monkeypatch, [0, 0, 0.1 + 1e-6, 0, 0, 0, 1], [0, 0, -1e-3, 0, 2e-3, 0])
    bounds = normals_only(rows, contact.BOUND)
    assert misfit(rows, bounds) < 1e-12
    np.testing.assert_allclose(bounds[::3], -rows[::3, contact.GAP] / STEP, rtol=1e-12)
