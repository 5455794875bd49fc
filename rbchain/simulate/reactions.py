"""Forces in the joints along a trajectory: properties of `Trajectory`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..acting.contacts import NAMES_OF_CONTACTS, is_contact
from ..acting.wrenches import Current, wrenches_on_bodies
from ..common.real_arrays import FloatArray
from ..errors import ArgumentError

if TYPE_CHECKING:
    from .trajectory import Trajectory


def reactions(motion: Trajectory) -> FloatArray:
    """Forces and moments that the joints transmit at the saved times, (..., times, n, 6), N and N m.

    They are the results of `Model.joint_reactions`, with the wrenches, springs and bushings of the simulation.
    Raises ArgumentError if the simulation has drag, a current, dry friction, hard stops or contacts, because the
    trajectory does not contain these forces.

    Examples
    --------
    A bob of 1 kg starts from rest in the horizontal position. The force in its bearing is zero at first, and three
    times the weight at the bottom:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, -10, 0))
    >>> builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(1.0, cg=(1, 0, 0)))
    >>> bottom = rb.Event("bob", value=-3.14159265 / 2, stop=True)
    >>> motion = builder.build().simulate([[0.0]], duration=2.0, events=[bottom], save_at=201)
    >>> force = motion.reactions[0, :, 0, 0]  # along the rod
    >>> bool(abs(force[0]) < 1e-12), round(float(force[~(force != force)].min()), 1)
    (True, -30.0)
    """
    wrenches = _wrenches(motion, "reactions")
    return motion.model_of_states.joint_reactions(motion.q, motion.qd, motion.qdd, wrenches, tau=joint_forces(motion))


def constraint_forces(motion: Trajectory) -> FloatArray:
    """Forces and moments of the constraints at the saved times, (..., times, m), N and N m.

    They are the results of `Model.constraint_forces`, with all forces of the simulation. Raises ModelError if the model
    has no constraints, and ArgumentError as `reactions` does.

    Examples
    --------
    A massless rod holds a bob of 1 kg, which starts from rest at the height of the pivot. At the bottom, the force is
    three times the weight:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, -10))
    >>> builder.add_body("bob", joint=rb.Free(), inertia=rb.Inertia.sphere(0.01, mass=1.0))
    >>> builder.add_constraint(rb.DistanceConstraint("rod", None, "bob", (0, 0, 0), (0, 0, 0), length=2.0))
    >>> motion = builder.build().simulate([2, 0, 0, 0, 0, 0, 1], duration=1.2, save_at=121)
    >>> round(float(motion.constraint_forces.min()), 2)  # negative in tension
    -30.0
    """
    wrenches, tau = _wrenches(motion, "constraint_forces"), joint_forces(motion)
    return motion.model_of_states.constraint_forces(motion.q, motion.qd, 0.0 if tau is None else tau, wrenches)


def _wrenches(motion: Trajectory, what: str) -> FloatArray | None:
    """Return the wrenches on the bodies along a trajectory; None without forces. Refuses forces that are not known."""
    model = motion.model
    refuse_contacts(motion, what)
    if any(isinstance(force, Current) for force in motion.forces) or model.kernel_model.has_drag:
        raise ArgumentError(
            f"{what} are not available in water with drag or a current; expected a model without drag, and no "
            "Current in forces"
        )
    if not motion.forces:
        return None
    return wrenches_on_bodies(model, motion.forces, motion.q, motion.qd, motion.t).astype(motion.q.dtype)


def refuse_contacts(motion: Trajectory, what: str) -> None:
    """Raise an error for a quantity that requires the contact forces at each time."""
    if any(is_contact(force) for force in motion.forces):
        raise ArgumentError(
            f"{what} is not available with {NAMES_OF_CONTACTS}, because accelerations jump in "
            "impacts; expected a simulation without them. Use qd and contact_forces"
        )


def joint_forces(motion: Trajectory) -> FloatArray | None:
    """Actuator and passive forces that constraint forces require; None for an open chain."""
    if not motion.model.constraint_names:
        return None
    return motion.tau + motion.model_of_states.passive_forces(motion.q, motion.qd)
