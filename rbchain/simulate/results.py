"""Complete the states that a driver saved: prescribed coordinates, actuator forces, events and exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.body_contacts import BodyContact
from ..acting.contacts import (
    ImpactRecord,
    StickingRecord,
    is_contact,
)
from ..acting.controllers import model_arrays
from ..acting.coordinates import dof_index
from ..acting.drives import PrescribedPosition, PrescribedVelocity
from ..acting.events import Event, EventRecord
from ..acting.friction_and_stops import DryFriction, HardStops
from ..acting.numeric_fields import Drive, Force
from ..acting.signals import as_signal
from ..acting.user_code import UserCalls
from ..compiling.levels import LANE_WIDTHS
from ..core.sample import tally_layout as tallies
from ..core.sample.records import Outcome, Saved
from ..core.sample.status import INITIAL_PENETRATION, STOPPED
from ..core.tree.layout import PRISMATIC, TOPOLOGY_COORDINATE, TOPOLOGY_JOINT
from ..drivers import threads
from ..drivers.trajectories import Actions, actuator_forces
from ..drivers.trajectory_memory import state_memory
from ..errors import ArgumentError
from .dense_output import kept_steps
from .loops import close_states, held_dofs
from .messages import sample_index

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..model.kernel_model import KernelModel
    from .trajectory import Trajectory

#: Failed calls of user functions whose exceptions are kept.
MAX_EXCEPTIONS = 1000


def set_prescribed_states(
    model: Model,
    drives: Sequence[Drive],
    times: np.ndarray,
    states: tuple[np.ndarray, np.ndarray],
    batch: tuple[int, ...],
) -> None:
    """Replace prescribed positions and velocities by the exact values of their signals, up to the end of each sample.

    The integrator leaves round-off in them. `states` are q (samples, times, nq) and qd (samples, times, nv), which
    change in place. `times` are (times,), or (*batch, times) if they differ.
    """
    for drive in drives:
        order = {PrescribedPosition: 0, PrescribedVelocity: 1}.get(type(drive))
        if order is None or not isinstance(drive, (PrescribedPosition, PrescribedVelocity)):
            continue
        signal, i = as_signal("signal", drive.signal), dof_index(model, "drive", drive.joint, drive.dof)
        rows = (int(model.kernel_model.topology[TOPOLOGY_COORDINATE, i]), i)
        for derivative in range(order, 2):
            found = states[derivative][:, :, rows[derivative]]
            exact = np.broadcast_to(signal(times, derivative - order), (*batch, times.shape[-1])).reshape(found.shape)
            found[:] = np.where(np.isnan(found), found, exact)


def tau_and_qdd(
    model: KernelModel,
    actions: Actions | None,
    tau: np.ndarray,
    times: np.ndarray,
    states: Sequence[np.ndarray],
    batch: tuple[int, ...],
) -> np.ndarray:
    """Compute actuator forces and accelerations at saved states.

    Parameters
    ----------
    model : KernelModel
    actions : Actions or None
        The actions of the simulation.
    tau : (samples, nv) or (nv,) array, N m or N
        Constant joint forces.
    times : (times,) or (*batch, times) array, s
        The times of all samples, or of each one.
    states : four arrays
        q (samples, times, nq), qd (samples, times, nv), the integrals of controllers (samples, times, m), and the
        outputs of sampled controllers (samples, times, channels).
    batch : tuple
        Shape of the batch.

    Returns
    -------
    (*batch, times, 2 nv) array
        Actuator forces, then accelerations.
    """
    q, qd, integrals, outputs = states
    dtype, width, (samples, m, n) = q.dtype, LANE_WIDTHS[q.dtype.name], qd.shape
    if actions is None:
        tau = np.broadcast_to(tau.reshape(samples, 1, n), qd.shape)
        states = tuple(x.reshape(*batch, m, x.shape[-1]) for x in (q, qd, tau))
        driver, given = model.forward_dynamics_driver
        qdd = model.with_axis_of_states.compute(driver, (n,), ("q", "qd", "tau"), states, None, given=given)
        return np.concatenate([tau.reshape(*batch, m, n), qdd], -1)
    actions = actions._replace(modes=None, sensitivities=None)  # the forces of contacts are not computed again
    found = np.empty((samples * m, 2 * n), dtype)
    rows = [np.ascontiguousarray(x.reshape(samples * m, x.shape[-1])) for x in (q, qd, integrals, outputs)]
    flat = Saved(rows[0], rows[1], rows[2], None, None if actions.shared.samplers is None else rows[3], None)
    tau = np.ascontiguousarray(tau.reshape(samples, n))
    size = q.shape[-1] + n + integrals.shape[-1]
    times = np.ascontiguousarray(np.broadcast_to(times, (*batch, m)).reshape(samples, m))
    arguments = (*model_arrays(model, actions, dtype), model.constraint_tables, flat, tau, actions, times, found)
    memory = partial(state_memory, model.topology, model.constraint_tables, size, 1, actions, (width, dtype))
    threads.run(actuator_forces, [], memory, arguments, samples * m, width)
    found[np.isnan(flat.q).any(-1)] = np.nan
    if actions.shared.contacts is not None:  # their forces at the saved times are not known
        found[:, n:] = np.nan
        found[:, np.flatnonzero(held_dofs(actions, n))] = np.nan
    return found.reshape(*batch, m, 2 * n)


def held_after_stop(
    states: tuple[np.ndarray, np.ndarray], ends: tuple[np.ndarray, np.ndarray], status: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and velocities (*batch, times, n) that stay constant after an event ended the sample.

    The states after the end are NaN. The states of failed samples stay NaN. `ends` are (*batch, n).
    """
    has_stopped = status == STOPPED
    if np.count_nonzero(has_stopped) == 0:  # `any` takes longer
        return states
    q, qd = (
        np.where(
            (has_stopped[..., None] & np.isnan(x).any(-1))[..., None], end[..., None, :].astype(x.dtype, copy=False), x
        )
        for x, end in zip(states, ends, strict=True)
    )
    return q, qd


def with_dense_output(
    motion: Trajectory,
    kernel_model: KernelModel,
    actions: Actions | None,
    drives: Sequence[Drive],
    tau: np.ndarray,
    times: np.ndarray,
    saved: Saved,
    outcome: Outcome,
) -> Trajectory:
    """Return a trajectory with the accepted steps that a driver has recorded; without them if it has recorded none.

    `times` are all times that the driver has saved, s. The first and the last one are the start and the end of the
    motion.
    """
    if not outcome.record.times.shape[1]:
        return motion
    samples, nq, nv = len(outcome.tally), motion.model.nq, motion.model.nv
    more = outcome.end_states.shape[1] - nq - nv
    rows = [
        x.reshape(samples, times.size, size) for x, size in ((saved.q, nq), (saved.qd, nv), (saved.integrals, more))
    ]
    start = np.concatenate([x[:, 0] for x in rows], -1), outputs_of_samples(saved.outputs, rows[0])[:, 0]
    complete = partial(motion_at, motion, kernel_model, actions, drives, tau)
    counts = outcome.tally[:, tallies.PARTS].copy()
    t0, duration = float(times[0]), float(times[-1] - times[0])
    kept = kept_steps(outcome.record, counts, duration, t0, start, motion.model, complete)
    return replace(motion, dense_output=kept)


def motion_at(
    motion: Trajectory,
    kernel_model: KernelModel,
    actions: Actions | None,
    drives: Sequence[Drive],
    tau: np.ndarray,
    times: np.ndarray,
    states: np.ndarray,
    outputs: np.ndarray,
) -> Trajectory:
    """Return a trajectory with other states, which are within its steps: completed as the saved ones are.

    Parameters
    ----------
    motion : Trajectory
    kernel_model, actions, tau
        As for `tau_and_qdd`.
    drives : sequence
        The drives of the simulation.
    times : (samples, m) array, s
    states, outputs : (samples, m, rows) and (samples, m, channels) arrays
        States of the integrator, and outputs of sampled controllers.
    """
    model, batch, m = motion.model, motion.status.shape, times.shape[1]
    t = times.reshape(*batch, m)
    rows = np.cumsum([model.nq, model.nv, 0 if actions is None else actions.integrals])
    q, qd, sums, _ = (np.array(x) for x in np.split(states, rows, -1))
    set_prescribed_states(model, drives, t, (q, qd), batch)
    if kernel_model.constraint_tables is not None:
        close_states(model, actions, q, qd)
    found = [x.reshape(*batch, m, x.shape[-1]) for x in (q, qd)]
    compute = partial(tau_and_qdd, kernel_model, actions, tau, t, (q, qd, sums, outputs), batch)
    within = replace(motion, t=t, q=found[0], qd=found[1], dense_output=None, _compute_tau_and_qdd=compute)
    return within.without_energy_error()


def event_records(
    model: Model, actions: Actions | None, events: Sequence[Event], batch: tuple[int, ...]
) -> tuple[EventRecord, ...]:
    """Return the occurrences of each event, in the order of the events."""
    if actions is None:
        return ()
    counts, times, states, *_ = actions.records
    return tuple(
        EventRecord(
            counts[:, e].reshape(batch),
            times[:, e, :most].reshape(*batch, most),
            states[:, e, :most, : model.nq].reshape(*batch, most, model.nq),
            states[:, e, :most, model.nq : model.nq + model.nv].reshape(*batch, most, model.nv),
        )
        for e, most in enumerate(event.max_records for event in events)
    )


def new_contact_forces(actions: Actions | None, samples: int, times: int, dtype: np.dtype) -> np.ndarray | None:
    """Allocate the forces (samples, times, forces, 3) of dry friction, stops and contacts; None without them."""
    if actions is None or actions.records.contacts is None:
        return None
    return np.full((samples, times, actions.records.contacts.limits.size, 3), np.nan, dtype)


def new_outputs(actions: Actions | None, samples: int, times: int, dtype: np.dtype) -> np.ndarray | None:
    """Allocate the saved outputs of sampled controllers, flat from (samples, times, channels); None without them."""
    if actions is None or actions.shared.samplers is None:
        return None
    return np.zeros(samples * times * actions.shared.samplers.channels.shape[1], dtype)


def outputs_of_samples(saved: np.ndarray | None, q: np.ndarray) -> np.ndarray:
    """Return the saved outputs of sampled controllers as an array (samples, times, channels), for q of such a shape."""
    samples, times, _ = q.shape
    channels = 0 if saved is None or not samples else saved.size // (samples * times)
    return np.zeros((samples, times, 0)) if saved is None else saved.reshape(samples, times, channels)


def contact_results(
    actions: Actions | None,
    forces: Sequence[Force],
    saved: np.ndarray | None,
    asked: slice,
    batch: tuple[int, ...],
) -> dict[str, Any]:
    """Return the attributes of a trajectory that describe dry friction, hard stops and contacts.

    `saved` contains their forces at the saved times, (samples, times, forces, 3).
    """
    if actions is None or actions.records.contacts is None or saved is None:
        return {}
    records, saved = actions.records.contacts, saved[:, asked]
    impacts: list[ImpactRecord] = []
    sticking: list[StickingRecord] = []
    of_bodies = []
    for f, force in enumerate(filter(is_contact, forces)):
        most = force.max_records
        if isinstance(force, BodyContact):
            of_bodies.append(f)
        if not isinstance(force, DryFriction):
            impulses = records.impulses[:, f, :most].reshape(*batch, most, 3)
            times = records.impact_times[:, f, :most].reshape(*batch, most)
            impulses = impulses[..., 0] if isinstance(force, HardStops) else impulses
            impacts.append(ImpactRecord(force, records.impact_counts[:, f].reshape(batch), times, impulses))
        if isinstance(force, DryFriction) or (isinstance(force, BodyContact) and force.has_tangents):
            start, end = (records.sticking_times[:, f, :most, i].reshape(*batch, most) for i in range(2))
            sticking.append(StickingRecord(force, records.sticking_counts[:, f].reshape(batch), start, end))
    return {
        "contact_forces": saved[:, :, of_bodies].reshape(*batch, saved.shape[1], len(of_bodies), 3),
        "impacts": tuple(impacts),
        "sticking": tuple(sticking),
        "contact_residual": records.residuals.reshape(batch),
    }


def refuse_penetration(model: Model, forces: Sequence[Force], status: np.ndarray, q0: np.ndarray) -> None:
    """Raise an ArgumentError for a single initial state beyond a stop or in a plane, and name the deepest one."""
    if status.ndim > 0 or int(status) != INITIAL_PENETRATION:
        return
    found = []
    for force in forces:
        if isinstance(force, HardStops):
            i = dof_index(model, "HardStops", force.joint, force.dof)
            lower, upper = model.position_limits[i]
            position = float(q0[model.kernel_model.topology[TOPOLOGY_COORDINATE, i]])
            unit = "m" if model.kernel_model.topology[TOPOLOGY_JOINT, i] == PRISMATIC else "rad"
            remedy = "the limits of the joint"
            found.append((min(position - lower, upper - position), force.label(), unit, remedy))
        elif isinstance(force, BodyContact):
            found.append((force.gap(model, q0), force.label(), "m", "the geometry of the contact"))
    gap, label, unit, remedy = min(found)
    raise ArgumentError(f"q0: {label} has a gap of {gap:.3g} {unit}; expected zero or more. Change q0, or {remedy}")


def exceptions_of(
    model: Model, actions: Actions | None, calls: UserCalls, batch: tuple[int, ...]
) -> dict[tuple[int, ...], str]:
    """Describe the exception of a user function for each sample that failed by one: function, exception and time."""
    if actions is None:
        return {}
    samples = np.flatnonzero(actions.records.failures)[:MAX_EXCEPTIONS]
    return {
        sample_index(int(sample), batch): calls.failure(actions.records, int(sample), model.nq) for sample in samples
    }


def raise_exceptions(
    function: str, model: Model, actions: Actions | None, calls: UserCalls, batch: tuple[int, ...]
) -> None:
    """Raise an ArgumentError for the first sample for which a user function has failed. `function` is a public name."""
    failures = exceptions_of(model, actions, calls, batch)
    if failures:
        sample = min(failures)
        raise ArgumentError(f"{function}: {failures[sample]}" + (f", sample {sample}" if sample else ""))
