"""Complete the states that a driver saved: prescribed coordinates, actuator forces, events and exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .actions.controllers import model_arrays
from .actions.coordinates import dof_index
from .actions.drives import Drive, PrescribedPosition, PrescribedVelocity
from .actions.events import Event, EventRecord
from .actions.signals import as_signal
from .actions.user_code import UserCalls
from .core.integration.rollout import Saved
from .core.simd.levels import LANE_WIDTHS
from .core.tree.layout import TOPOLOGY_COORDINATE
from .drivers import threads
from .drivers.trajectories import Actions, actuator_forces, trajectory_memory
from .trajectory import sample_index

if TYPE_CHECKING:
    from .chain import Model
    from .kernel_model import KernelModel

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

    The integrator leaves a round-off of its own in them. `states` are q (samples, times, nq) and qd
    (samples, times, nv), which change in place.
    """
    for drive in drives:
        order = {PrescribedPosition: 0, PrescribedVelocity: 1}.get(type(drive))
        if order is None or not isinstance(drive, (PrescribedPosition, PrescribedVelocity)):
            continue
        signal, i = as_signal("signal", drive.signal), dof_index(model, "drive", drive.joint, drive.dof)
        rows = (int(model.kernel_model.topology[TOPOLOGY_COORDINATE, i]), i)
        for derivative in range(order, 2):
            found = states[derivative][:, :, rows[derivative]]
            exact = np.broadcast_to(signal(times, derivative - order), (*batch, times.size)).reshape(found.shape)
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
    times : (times,) array, s
    states : three arrays
        q (samples, times, nq), qd (samples, times, nv) and the integrals of controllers (samples, times, m).
    batch : tuple
        Shape of the batch.

    Returns
    -------
    (*batch, times, 2 nv) array
        Actuator forces, then accelerations.
    """
    q, qd, integrals = states
    dtype, width, (samples, m, n) = q.dtype, LANE_WIDTHS[q.dtype.name], qd.shape
    if actions is None:
        tau = np.broadcast_to(tau.reshape(samples, 1, n), qd.shape)
        states = tuple(x.reshape(*batch, m, x.shape[-1]) for x in (q, qd, tau))
        driver, given = model.forward_dynamics_driver
        qdd = model.compute(driver, (n,), ("q", "qd", "tau"), states, None, given=given)
        return np.concatenate([tau.reshape(*batch, m, n), qdd], -1)
    found = np.empty((samples * m, 2 * n), dtype)
    flat = Saved(*(np.ascontiguousarray(x.reshape(samples * m, x.shape[-1])) for x in states))
    tau = np.ascontiguousarray(tau.reshape(samples, n))
    size = q.shape[-1] + n + integrals.shape[-1]
    arguments = (*model_arrays(model, actions, dtype), model.constraint_tables, flat, tau, actions, times, found)
    memory = partial(trajectory_memory, model.topology, model.constraint_tables, size, 1, actions, width, dtype)
    threads.run(actuator_forces, [], memory, arguments, samples * m, width)
    found[np.isnan(flat.q).any(-1)] = np.nan
    return found.reshape(*batch, m, 2 * n)


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
