"""Calls that reach all the drivers that a wheel contains, on models as small as possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rbchain as rb

from ..simulate.methods import METHODS, Method

PRECISIONS = (np.float64, np.float32)


def _settings(is_wanted: Callable[[Method], bool]) -> list[dict[str, Any]]:
    """Return the shortest settings of each method for which a condition holds."""
    return [
        {"method": name, "on_failure": "ignore"} | ({"max_steps": 2} if method.is_adaptive else {"step": 0.1})
        for name, method in METHODS.items()
        if is_wanted(method)
    ]


# "implicit" has the driver of "rk4", and "moreau" is for contacts
SMOOTH = _settings(lambda method: not method.is_implicit_in_joints)
WITH_SENSITIVITIES = [settings for settings in SMOOTH if METHODS[settings["method"]].has_sensitivities]
WITH_CONTACTS = _settings(lambda method: method.has_contacts)
WITH_CONTACTS_PER_STEP = _settings(lambda method: method.has_contacts and not method.locates_contacts)
BETWEEN_BODIES = (rb.SpringDamper(None, "link2", point_a=(0, 0, 0), point_b=(1, 0, 0), stiffness=1.0),)
LINK = rb.Inertia(mass=1.0, cg=(0.5, 0, 0), inertia=(1, 1, 1))


def call_everything() -> None:
    """Call every public function that has a driver: both precisions, one state and batches, in air and in water."""
    for model in (_chain(0.0), _chain(1000.0)):
        for dtype in PRECISIONS:
            for batch in ((), (2,)):
                _call_with(model, dtype, batch)
        varied = model.vary(mass=[[1.0, 1.0], [1.0, 2.0]])
        for dtype in PRECISIONS:
            _call_with(varied, dtype, (2,))
    closed = _closed_chain()
    for dtype in PRECISIONS:
        for batch in ((), (2,)):
            _call_closed_chain(closed, dtype, batch)
        _call_closed_chain(closed.vary(mass=[[1.0, 1.0], [1.0, 2.0]]), dtype, (2,))


def _chain(fluid_density: float) -> rb.Model:
    """Two links, with everything that a driver may read: passive forces and, in water, added mass and drag."""
    immersion = rb.Immersion(volume=0.001) if fluid_density else None
    builder = rb.ModelBuilder(fluid_density=fluid_density)
    for parent, name in ((None, "link1"), ("link1", "link2")):
        builder.add_body(name, parent=parent, joint=rb.Revolute((0, 0, 1)), inertia=LINK, immersion=immersion)
    return builder.build()


def _closed_chain() -> rb.Model:
    """Two cranks whose tips are held at a distance."""
    builder = rb.ModelBuilder()
    for name, x in (("link1", 0.0), ("link2", 1.0)):
        builder.add_body(name, joint=rb.Revolute((0, 0, 1)), placement=rb.Pose((x, 0, 0)), inertia=LINK)
    tip = np.array([0.0, 1.0, 0.0])
    builder.add_constraint(rb.DistanceConstraint("rod", "link1", "link2", point_a=tip, point_b=tip, length=1.0))
    return builder.build()


def _call_closed_chain(model: rb.Model, dtype: Any, batch: tuple[int, ...]) -> None:
    q = qd = np.zeros((*batch, 2), dtype)
    model.assemble(q)
    qdd = model.forward_dynamics(q, qd, qd)
    model.forward_dynamics_derivatives(q, qd, qd)
    model.constraint_forces(q, qd, qd)
    model.joint_reactions(q, qd, qdd, tau=qd)
    _simulate(model, q, qd)
    for method in WITH_CONTACTS_PER_STEP:
        model.simulate(q, qd, 0.1, forces=[rb.DryFriction("link1", kinetic=0.1)], **method)


def _call_with(model: rb.Model, dtype: Any, batch: tuple[int, ...]) -> None:
    q = qd = np.zeros((*batch, 2), dtype)
    _call_dynamics(model, q, qd)
    if model.in_water:
        return _simulate(model, q, qd)
    _call_quantities(model, q, qd)
    _simulate(model, q, qd)
    for method in WITH_CONTACTS if q.dtype == np.float64 else WITH_CONTACTS_PER_STEP:
        motion = model.simulate(q, qd, 0.1, forces=[rb.DryFriction("link1", kinetic=0.1)], **method)
        _ = motion.tau
    if q.dtype == np.float64:
        for method in SMOOTH:
            controllers = [rb.PID("link1", reference=0.0, kp=1.0), *((_no_forces,) if batch else ())]
            for controller in controllers:
                _ = model.simulate(q, qd, 0.1, drives=[rb.Sampled(controller, period=0.1)], **method).tau
            model.simulate(q, qd, 0.1, forces=BETWEEN_BODIES, **method)
        for method in WITH_SENSITIVITIES:
            model.simulate(q, qd, 0.1, derivatives=["mass"], **method)


def _no_forces(t: float, q: np.ndarray, qd: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Return zeros: a user function that Python calls for the whole batch."""
    return np.zeros_like(qd)


def _call_dynamics(model: rb.Model, q: np.ndarray, qd: np.ndarray) -> None:
    model.forward_dynamics(q, qd, qd)
    model.inverse_dynamics(q, qd, qd)
    model.hybrid_dynamics(q, qd, qd, qd, prescribed=np.array([True, False]))
    model.mass_matrix(q)
    model.body_poses(q)
    model.body_velocities(q, qd)
    model.energy(q, qd)
    model.momentum(q, qd)
    model.passive_forces(q, qd)
    model.jacobian(q, "link2")


def _call_quantities(model: rb.Model, q: np.ndarray, qd: np.ndarray) -> None:
    model.force_balance_residual(q, qd, qd)
    model.joint_reactions(q, qd, qd)
    model.body_accelerations(q, qd, qd)
    model.jacobian_derivative(q, qd, "link2")
    model.mass_matrix_inverse(q)
    model.coriolis_matrix(q, qd)
    model.christoffel_symbols(q)
    model.centroidal_momentum_matrix(q)
    model.inverse_dynamics_derivatives(q, qd, qd)
    model.forward_dynamics_derivatives(q, qd, qd, passive=True)
    model.inverse_dynamics_regressor(q, qd, qd)
    model.kinetic_energy_regressor(q, qd)
    model.potential_energy_regressor(q)
    model.wrenches_between_bodies(q, qd, BETWEEN_BODIES)
    model.elastic_energy(q, BETWEEN_BODIES)
    model.derivatives_between_bodies(q, qd, BETWEEN_BODIES)
    model.inverse_kinematics({"link2": rb.Target((0, 0, 0))}, q)
    for drives in ((), (rb.PID("link1", reference=0.0, kp=1.0),)):
        model.linearize(q, qd, drives=drives)
        model.equilibrium(q, drives=drives)


def _simulate(model: rb.Model, q: np.ndarray, qd: np.ndarray) -> None:
    for method in SMOOTH:
        for drives in ((), (rb.PID("link1", reference=0.0, kp=1.0),)):
            motion = model.simulate(q, qd, 0.1, drives=drives, **method)
            _ = motion.tau
        if q.ndim > 1 and q.dtype == np.float64 and not model.batch_shape:  # as `rbchain simulate` does
            model.simulate(q, qd, 0.1, energy_error=True, **method)
