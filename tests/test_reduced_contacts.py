"""Newton steps with six unknowns for each body that touches the world at three or more points (`contact_reduction`)."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.core.contacts import contact_layout as contact, contact_newton
from rbchain.core.motion import moreau

pytestmark = pytest.mark.plain_python
SIZE = (0.2, 0.1, 0.04)
STEP = 1e-3


def walker(prismatic=False):
    """Return a free body with two box feet on the floor, 12 degrees of freedom, and the contacts of all corners."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("pelvis", joint=rb.Free(), inertia=rb.Inertia.box((0.2, 0.3, 0.2), mass=10.0))
    forces = []
    for side, y in (("left", 0.15), ("right", -0.15)):
        joint = rb.Prismatic((0, 0, 1)) if prismatic else rb.Revolute((1, 0, 0))
        builder.add_body(
            f"{side} leg",
            parent="pelvis",
            joint=joint,
            placement=rb.Pose((0, y, -0.1)),
            inertia=rb.Inertia.box(SIZE, mass=1.0),
        )
        builder.add_body(
            f"{side} shank",
            parent=f"{side} leg",
            joint=rb.Revolute((0, 1, 0)),
            placement=rb.Pose((0, 0, -0.3)),
            inertia=rb.Inertia.box(SIZE, mass=1.0),
        )
        builder.add_body(
            f"{side} foot",
            parent=f"{side} shank",
            joint=rb.Revolute((0, 1, 0)),
            placement=rb.Pose((0, 0, -0.3)),
            inertia=rb.Inertia.box(SIZE, mass=0.5),
        )
    for corner in [(x, y, -SIZE[2] / 2) for x in (-0.1, 0.1) for y in (-0.05, 0.05)]:
        for side in ("right", "left"):  # rows of the two feet alternate
            plane = {"plane_point": (0, 0, 0), "plane_normal": (0, 0, 1), "friction": 0.6}
            forces.append(rb.SphereContact(f"{side} foot", point=corner, radius=0.0, **plane))
    stiffness = np.concatenate([np.zeros(6), np.full(6, 300.0)])
    return builder.build().replace(stiffness=stiffness, damping=0.02 * stiffness), forces


def solved_contacts(monkeypatch, model, forces, q, qd, duration=STEP):
    """Return the motion, and copies of the Contacts after each solution."""
    found, solve = [], moreau.solve_contacts

    def keep(contacts, tolerance, k):
        residual = solve(contacts, tolerance, k)
        found.append(type(contacts)(*(np.array(field) for field in contacts)))
        return residual

    monkeypatch.setattr(moreau, "solve_contacts", keep)
    settings = {"method": "moreau", "step": STEP, "forces": forces, "save_at": 2}
    return model.simulate([q], [qd], duration, **settings), found


def start(model):
    q = model.neutral().copy()
    q[2] = 0.7 + SIZE[2] / 2
    return q


@pytest.mark.parametrize("prismatic", [False, True])
def test_the_matrix_of_the_rows_is_that_of_the_mass_matrix_and_the_jacobian(monkeypatch, prismatic):
    """J H^-1 J^T, where H is the mass matrix of joints without springs."""
    model, forces = walker(prismatic)
    model = model.replace(stiffness=np.zeros(12), damping=np.zeros(12))
    q = start(model)
    q[7:] = 0.05 * np.array([1, -2, 1, 0.5, 1, -1.5])
    q[2] -= min(force.gap(model, q) for force in forces)
    _, found = solved_contacts(monkeypatch, model, forces, q, np.zeros(12))
    contacts = found[0]
    jacobian = contacts.jacobian[:, :, 0]
    expected = jacobian @ np.linalg.solve(model.mass_matrix(q), jacobian.T)
    np.testing.assert_allclose(contacts.matrix[:, :, 0], expected, atol=1e-12 * np.abs(expected).max())
    responses = contacts.responses[:, :, 0]
    np.testing.assert_allclose(contacts.matrix[:, :, 0], jacobian @ responses.T, atol=1e-12 * np.abs(expected).max())
    assert contacts.sums.shape[0] == 12


def test_the_motion_is_that_of_newton_steps_with_all_rows(monkeypatch):
    """The impulses of four points of a foot are not unique, but the motion is, up to the tolerance of the solver."""
    model, forces = walker()
    qd = np.concatenate([[0.2, 0.1, -0.1, 0.1, 0.3, 0.2], np.zeros(6)])
    reduced, found = solved_contacts(monkeypatch, model, forces, start(model), qd, 30 * STEP)
    assert any(contacts.rows[0, contact.REDUCES, 0] == 1.0 for contacts in found)
    assert reduced.contact_residual.max() <= 1e-10
    monkeypatch.undo()
    monkeypatch.setattr(contact_newton, "REDUCED_ROUNDS", 0)
    rows, _ = solved_contacts(monkeypatch, model, forces, start(model), qd, 30 * STEP)
    np.testing.assert_allclose(reduced.q, rows.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(reduced.qd, rows.qd, rtol=0, atol=1e-7)


def test_models_with_other_contacts_use_all_rows(monkeypatch):
    model, forces = walker()
    plane = {"plane_point": (0, 0, 0), "plane_normal": (0, 0, 1), "friction": 0.5}
    forces = [*forces, rb.SphereContact("pelvis", point=(0, 0, 0), radius=0.1, **plane)]
    _, found = solved_contacts(monkeypatch, model, forces, start(model), np.zeros(12))
    assert found[0].sums.shape[0] == 0
