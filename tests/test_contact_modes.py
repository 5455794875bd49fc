"""Modes of contacts at rest: forces and accelerations satisfy the conditions of complementarity and of Coulomb."""

import numpy as np
import pytest

from rbchain.core.contacts import contact_layout as contact, element_layout as element, mode_layout as mode
from rbchain.core.contacts.contact_choice import choose_modes
from rbchain.core.contacts.contact_layout import contacts_in, contacts_size
from rbchain.core.contacts.contact_mode_changes import close_row
from rbchain.core.contacts.contact_modes import modes_in, modes_size
from rbchain.core.contacts.contact_shapes import SPHERE_PLANE

pytestmark = pytest.mark.plain_python
# Seeds of contacts whose modes were not found without the reduction of a diagonal that is added to the matrix.
RANDOM_SEEDS = (127, 172, 239, 285, 448, 667, 688, 706, 776, 781)
BODY_SEEDS = (55, 87, 96, 112, 147, 183, 211, 214, 222)


def contacts_at_rest(W, a, friction):
    """Contacts in one lane, with the accelerations a without forces and the matrix W."""
    count = len(friction)
    table, numbers = np.zeros((element.ROWS, count), np.int64), np.zeros((2 * count, 1))
    table[element.KIND], table[element.SIZE] = SPHERE_PLANE, 3
    table[element.ROW], table[element.NUMBERS] = np.arange(count) * 3, np.arange(count) * 2
    numbers[element.NUMBER_FRICTION :: 2, 0] = friction
    contacts = contacts_in(np.zeros(contacts_size(table, 1)), 0, 1, table, 1)
    modes = modes_in(np.zeros(modes_size(3 * count)), 0, 1, 3 * count)
    contacts.matrix[..., 0], modes.rows[:, mode.ACCELERATION, 0] = W, a
    for e in range(count):
        n, t = 3 * e, slice(3 * e + 1, 3 * e + 3)
        contacts.rows[n, contact.FRICTION, 0] = friction[e]
        contacts.rows[n, contact.INVERSE, 0] = 1 / W[n, n]
        contacts.rows[t, contact.INVERSE, 0] = 1 / np.linalg.eigvalsh(W[t, t])[1]
        modes.rows[n, mode.FRICTION, 0] = friction[e]  # otherwise, the tangents do not stick
        close_row(e, contacts, modes, 1e-9, 0)
        modes.rows[n, mode.CAN_CHANGE, 0] = 1.0
    return contacts, modes, numbers


def errors(contacts, modes, friction):
    """Return the largest violations of the conditions, relative to the largest force and acceleration."""
    a, p = modes.rows[:, mode.ACCELERATION, 0], modes.rows[:, mode.FORCE, 0]
    w = ((a + contacts.matrix[..., 0] @ p) / np.abs(a).max()).reshape(-1, 3)
    p = (p / np.abs(p).max()).reshape(-1, 3)
    force, motion = np.linalg.norm(p[:, 1:], axis=1), np.linalg.norm(w[:, 1:], axis=1)
    normal = np.maximum(np.maximum(-p[:, 0], -w[:, 0]), np.abs(p[:, 0] * w[:, 0]))
    cone = force - friction * p[:, 0]
    sticks = np.minimum(-cone, motion)  # a contact moves only with the largest friction
    against = force * motion + np.sum(p[:, 1:] * w[:, 1:], axis=1)
    return np.max([normal, cone, sticks, against], axis=1)


def random_contacts(random):
    """Return the Jacobian of random contacts, their accelerations without forces, and their friction."""
    count, dofs = random.integers(2, 5), random.integers(3, 14)
    J, friction = random.normal(size=(3 * count, dofs)), random.uniform(0.1, 0.9, count)
    return J, J @ random.normal(size=dofs), friction


def contacts_of_a_body(random):
    """Return the same for one to five points of a free body, on planes in random directions."""
    root = np.linalg.cholesky(np.diag([1.0, 1.0, 1.0, *random.uniform(3.0, 30.0, 3)]))  # of the inverse mass matrix
    J = []
    for point in random.normal(size=(random.integers(1, 6), 3)):
        axes = np.linalg.qr(random.normal(size=(3, 3)))[0]
        J.append(np.hstack([axes, np.cross(point, axes)]) @ root)
    J = np.concatenate(J)
    return J, J @ random.normal(size=6), random.uniform(0.1, 1.2, len(J) // 3)


@pytest.mark.slow_cases("False")
@pytest.mark.parametrize("plane", [True, False])
def test_forces_and_accelerations_of_random_contacts_satisfy_their_conditions(plane):
    """Also if contacts depend on each other. Rarely, no modes are found, or the direction of sliding in space."""
    random, failures, moving = np.random.default_rng(0), 0, 0
    for _ in range(60):
        J, a, friction = random_contacts(random)
        if plane:
            J[2::3] = a[2::3] = 0.0
        contacts, modes, numbers = contacts_at_rest(J @ J.T, a, friction)
        found = choose_modes(contacts, modes, numbers, 1e-9, 0)
        if found and not modes.rows[:, mode.FORCE, 0].any():
            assert (a[::3] > 0.0).all()
            continue
        moving += 1
        failures += not found or errors(contacts, modes, friction).max() > 1e-8
    assert moving > 40 and failures <= (0 if plane else 1)


@pytest.mark.slow
def test_directions_of_sliding_that_converge_slowly_are_accurate():
    random = np.random.default_rng(5)
    for _ in range(526):
        J, a, friction = random_contacts(random)
    contacts, modes, numbers = contacts_at_rest(J @ J.T, a, friction)
    assert choose_modes(contacts, modes, numbers, 1e-9, 0)
    assert errors(contacts, modes, friction).max() < 1e-9


@pytest.mark.slow_cases("contacts_of_a_body")
@pytest.mark.parametrize("contacts_of", [random_contacts, contacts_of_a_body])
def test_forces_are_found_that_neither_changes_of_single_modes_nor_sweeps_find(contacts_of):
    """Contacts at rest always have such forces. With redundant contacts, few of the possible modes have them."""
    seeds = {random_contacts: RANDOM_SEEDS, contacts_of_a_body: BODY_SEEDS}[contacts_of]
    for seed in seeds:
        J, a, friction = contacts_of(np.random.default_rng(seed))
        contacts, modes, numbers = contacts_at_rest(J @ J.T, a, friction)
        assert choose_modes(contacts, modes, numbers, 1e-9, 0), seed
        assert errors(contacts, modes, friction).max() < 1e-9, seed
        np.testing.assert_array_equal(contacts.matrix[..., 0], J @ J.T)  # which is changed temporarily


def test_a_contact_that_starts_to_slide_backwards_sticks_when_another_one_slides():
    """Both contacts exceed their friction if both stick. The first one sticks if the second one slides."""
    W = np.eye(6)
    W[1, 4] = W[4, 1] = 8.0
    W[4, 4] = 100.0
    a = np.array([-1.0, 0.3, 0.0, -1.0, 10.0, 0.0])
    contacts, modes, numbers = contacts_at_rest(W, a, np.array([0.35, 0.04]))
    assert choose_modes(contacts, modes, numbers, 1e-9, 0)
    np.testing.assert_allclose(modes.rows[:, mode.FORCE, 0], [1.0, 0.02, 0.0, 1.0, -0.04, 0.0], atol=1e-12)
