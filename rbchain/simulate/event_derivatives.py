"""Derivatives of the times and states of events by the parameters of `simulate(derivatives=...)`.

An event with the value g(t, q, qd) occurs at the time T, at which g = 0. Its value does not depend on the parameters p
of the model. With the derivatives u of the state at a fixed time, the rate x' of the state, and the slopes of g,

    dT/dp = - g_x u / (g_t + g_x x'),    dx(T)/dp = u + x' dT/dp.

The integrator interpolates u within the step, as the state. If the value turns back close to zero, the time depends on
the errors of the state, and has no derivative. An error e of the value changes its rate r = g_t + g_x x' by about
e r' / r. The derivatives are therefore NaN where r^2 / 2 is at most TURNS |r'| times the tolerance of the value.

Source: Galan, Feehery and Barton (1999), "Parametric sensitivity functions for hybrid discrete/continuous systems".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..acting.events import EventRecord
from ..core.methods.settings import AdaptiveStepSettings
from .event_slopes import bend_of_function, dof_of_event, slopes_of_function, value_of_function
from .preparation import Prepared
from .request import Request
from .results import tau_and_qdd
from .samplers import outputs_of_samplers
from .sensitivities import columns_of_states, named, sensitivity_rows
from .settings import DEFAULT_ATOL, DEFAULT_RTOL

#: Tolerances of the value within which an event has no derivatives if its value turns back.
TURNS = 100.0
#: Part of the mean length of a step over which accelerations are differentiated.
SPAN = 1e-2


class Occurrences(NamedTuple):
    """The recorded occurrences of one event: arrays (samples, records, ...), NaN for unused entries.

    `t` (samples, records), s; positions `q`, velocities `qd`, and accelerations `qdd` with their derivatives `jerk`.
    `span` (samples,), s, is the time over which the derivatives of accelerations are differences.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    jerk: np.ndarray
    span: np.ndarray


def with_derivatives(
    records: Sequence[EventRecord], request: Request, prepared: Prepared, steps: np.ndarray, end_times: np.ndarray
) -> tuple[EventRecord, ...]:
    """Return the records of events with the derivatives of their times and states; the same without derivatives.

    `steps` (samples,) are the numbers of steps, and `end_times` (samples,) the times at the ends of the samples, s.
    """
    actions = prepared.actions
    if actions is None or not request.names:
        return tuple(records)
    span = SPAN * (end_times - request.times[0]) / np.maximum(steps, 1)
    found = []
    for e, (event, record) in enumerate(zip(request.events, records, strict=True)):
        states = actions.records.states[:, e, : event.max_records]
        first = request.model.nq + request.model.nv + prepared.integrals
        last = first + sensitivity_rows(request.model, actions)
        occurrences = _occurrences(request, prepared, actions.records.times[:, e, : event.max_records], states, span)
        u = columns_of_states(request.model, actions, states[..., first:last])
        of_t, of_state = _derivatives(request, prepared, e, occurrences, u.astype(np.float64))
        rows = np.concatenate([of_t[..., None, :], of_state], -2).astype(request.dtype)
        by_name = named(request, actions, rows.reshape(*record.t.shape, *rows.shape[2:]))
        axis = record.t.ndim
        found.append(
            replace(
                record,
                derivatives_of_t={name: x.take(0, axis) for name, x in by_name.items()},
                derivatives_of_state={name: np.delete(x, 0, axis) for name, x in by_name.items()},
            )
        )
    return tuple(found)


def _occurrences(
    request: Request, prepared: Prepared, t: np.ndarray, states: np.ndarray, span: np.ndarray
) -> Occurrences:
    """Return the occurrences of one event from their times (samples, records) and states (samples, records, rows).

    The last rows are the latched outputs of sampled controllers, which also act shortly before and after the event.
    """
    model, n = request.model, request.model.nv
    q, qd, more = np.split(states[..., : model.nq + n + prepared.integrals], [model.nq, model.nq + n], -1)
    channels = 0 if prepared.actions is None else outputs_of_samplers(prepared.actions)
    outputs = np.ascontiguousarray(states[..., states.shape[-1] - channels :])

    def accelerations(times: np.ndarray, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        arrays = [np.ascontiguousarray(x, request.dtype) for x in (q, qd, more)]
        compute = partial(tau_and_qdd, prepared.kernel_model, prepared.actions, prepared.start.tau)
        times = np.where(np.isfinite(times), times, 0.0)  # entries without an occurrence
        found = compute(times.reshape(*request.batch, t.shape[1]), (*arrays, outputs), request.batch)
        return found[..., n:].reshape(qd.shape).astype(np.float64)

    q, qd, h = q.astype(np.float64), qd.astype(np.float64), span[:, None, None]
    qdd = accelerations(t, q, qd)
    used = np.isfinite(qdd).all(-1)
    sides = []
    for side in (h, -h):
        moved = np.full_like(q, np.nan)
        moved[used] = model.nominal.integrate(q[used], (side * qd)[used])
        sides.append(accelerations(t + side[..., 0], moved, qd + side * qdd))
    jerk = (sides[0] - sides[1]) / (2.0 * h)
    return Occurrences(t, q, qd, qdd, np.where(np.isfinite(jerk), jerk, 0.0), span)


def _derivatives(
    request: Request, prepared: Prepared, e: int, occurrences: Occurrences, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of times (samples, records, columns), and of states (samples, records, 2 nv, columns)."""
    slopes, bend = _slopes(request, prepared, e, occurrences)
    rates = np.concatenate([occurrences.qd, occurrences.qdd], -1)
    by_t, by_x = slopes[..., 0], slopes[..., 1:]
    rate = by_t + (by_x * rates).sum(-1)
    tolerance = (np.abs(by_x) * _tolerances(request, prepared, occurrences)).sum(-1)
    turns_back = rate**2 / 2.0 <= TURNS * np.abs(bend) * tolerance
    of_t = -np.einsum("...i,...ij->...j", by_x, u) / np.where(turns_back, np.nan, rate)[..., None]
    return of_t, u + rates[..., None] * of_t[..., None, :]


def _tolerances(request: Request, prepared: Prepared, occurrences: Occurrences) -> np.ndarray:
    """Return the tolerances of positions and velocities at occurrences, (samples, records, 2 nv).

    They are relative to the largest values at the saved times and at the event, and to 1 rad for turns. Methods with
    fixed steps have the default tolerances.
    """
    rtol, atol = DEFAULT_RTOL[request.dtype.name], DEFAULT_ATOL[request.dtype.name]
    if isinstance(request.settings, AdaptiveStepSettings):
        rtol, atol = request.settings.tolerances.rtol, request.settings.tolerances.atol
    n, dofs = request.model.nv, request.model.kernel_model.dofs
    q, qd = (
        np.fmax(np.abs(of_event), np.fmax.reduce(np.abs(saved), 1)[:, None])
        for of_event, saved in ((occurrences.q, prepared.q), (occurrences.qd, prepared.qd))
    )
    sizes = np.ones((*occurrences.t.shape, 2 * n))
    sizes[..., :n][..., ~dofs.in_quaternion_joint] = q[..., dofs.plain_positions]
    sizes[..., n:] = qd
    return atol + rtol * sizes


def _slopes(request: Request, prepared: Prepared, e: int, occurrences: Occurrences) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes (samples, records, 1 + 2 nv) of the value of event e, and its second time derivatives."""
    model, event, (t, q, qd, qdd, jerk, span) = request.model, request.events[e], occurrences
    slopes, bend = np.zeros((*t.shape, 1 + 2 * model.nv)), np.full(t.shape, np.nan)
    if event.joint is not None:
        i = dof_of_event(model, event)
        is_velocity = event.quantity == "velocity"
        slopes[..., 1 + i + (model.nv if is_velocity else 0)] = 1.0
        return slopes, (jerk if is_velocity else qdd)[..., i]
    for sample, record in np.argwhere(np.isfinite(qdd).all(-1)):
        value, at = value_of_function(prepared.calls, e, sample), (sample, record)
        slopes[at] = slopes_of_function(model, value, t[at], q[at], qd[at])
        bend[at] = bend_of_function(model, value, (t[at], q[at], qd[at]), (qdd[at], jerk[at]), span[sample])
    return slopes, bend
