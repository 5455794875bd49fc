"""Check the initial states of closed loops, and project saved states onto the constraints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.contacts import NAMES_OF_CONTACTS
from ..acting.drive_table import PRESCRIBES_MOTION
from ..core.control import drive_layout
from ..core.tree import setting_layout
from ..drivers import closed_chains
from ..drivers.trajectories import Actions
from ..errors import ArgumentError
from ..model.kernel_arrays import IN_PLACE
from ..model.loop_geometry import is_turned_over

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..model.kernel_model import KernelModel
    from .methods import Method

#: Largest residual of an initial state, relative to the sum of the absolute values of its terms. For an
#: initial state, about 1e-6 m, rad, m/s or rad/s (1e-3 in float32) are added to this sum. Smaller residuals of the
#: positions and velocities of an initial state are removed without a message.
LARGEST_RESIDUAL = {"float64": 1e-6, "float32": 1e-3}
#: The same of a saved state, after its projection.
LARGEST_SAVED_RESIDUAL = {"float64": 1e-9, "float32": 1e-3}
#: Longest fixed steps in which the residuals of compliant constraints decay, as multiples of the relaxation time.
LONGEST_STEPS = {"rk4": 2.0, "implicit": 0.5}


def held_dofs(actions: Actions | None, nv: int) -> np.ndarray:
    """Whether a drive prescribes the motion of each degree of freedom (nv,)."""
    if actions is None:
        return np.zeros(nv, bool)
    return PRESCRIBES_MOTION[actions.shared.drives[drive_layout.KIND, :nv]]


def refuse_controllers_of_closed_chains(kernel_model: KernelModel, actions: Actions | None) -> None:
    """Raise an ArgumentError for drives that compute forces with a model, if the model has constraints.

    For functions that need the derivatives of these forces, which are available for open trees only.
    """
    if actions is None or kernel_model.constraint_tables is None:
        return
    for setting, drive in (
        (setting_layout.COMPUTES, "ComputedTorque"),
        (setting_layout.COMPENSATES, "gravity_compensation"),
    ):
        if actions.settings[setting] == 1:
            raise ArgumentError(
                f"{drive} has no derivatives in closed loops, so the methods rosenbrock and radau, derivatives of "
                "trajectories and linear analysis do not support it. Use rk45 or dop853, or other drives: PID, or "
                "PrescribedForce with the forces of Model.inverse_dynamics"
            )


def refuse_steps_of_compliances(model: Model, method: Method, settings: Any) -> None:
    """Raise an error for methods and fixed steps with which compliant constraints are not stable."""
    is_compliant = [place.is_compliant for place in model.description.constraints]
    if method.is_adaptive or not any(is_compliant):
        return
    if method.name not in LONGEST_STEPS:
        remedy = f'Use method "rk45" or "radau". For {NAMES_OF_CONTACTS}: {IN_PLACE}'
        model.kernel_model.refuse_compliance(f'method "{method.name}"', remedy)
    longest = LONGEST_STEPS[method.name] * float(
        model.constraint_relaxation_time[..., is_compliant].min(initial=np.inf)
    )
    if settings.step > longest:
        raise ArgumentError(
            f'step is {settings.step:g} s, but with method "{method.name}", compliant constraints are '
            f"stable only up to {longest:g} s, {LONGEST_STEPS[method.name]:g} times the smallest relaxation_time; "
            'expected shorter steps. Reduce step, or use method "radau"'
        )


def assembled_states(
    model: Model, q: np.ndarray, qd: np.ndarray, fixed: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return states near q (..., nq) and qd (..., nv) that satisfy the constraints; NaN if none was found."""
    q = model.assemble(q, fixed=fixed, on_failure="ignore")
    return q, model.assemble_velocities(q, qd, fixed=fixed, on_failure="ignore")


def closed_initial_states(
    model: Model, held: np.ndarray, states: list[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return initial states with residuals at the level of round-off.

    Parameters
    ----------
    model : Model
    held : (nv,) array of bool
        Degrees of freedom whose motion is prescribed.
    states : list of two arrays
        q (..., nq) and qd (..., nv).

    Returns
    -------
    states : list of two arrays
    not_assembled : (samples,) array of bool
        The samples that do not satisfy the constraints. Their states are NaN.

    Raises
    ------
    ArgumentError
        If a single state does not satisfy the constraints.
    """
    q, qd = states
    found = _projected(model.kernel_model.with_added_inertias, q, qd, np.broadcast_to(held, qd.shape).astype(q.dtype))
    nq, nv = model.nq, model.nv
    before, after = found[..., nq + nv], found[..., nq + nv + 1]
    largest = LARGEST_RESIDUAL[q.dtype.name]
    failed = ~((before <= largest) & (after <= largest)) | is_turned_over(
        model.description, model.body_poses(q).rotation
    )
    if not q.shape[:-1] and failed:
        raise ArgumentError(_message(model, q, qd))
    closed = np.where(failed[..., None], np.nan, found).astype(q.dtype)
    return [
        np.ascontiguousarray(closed[..., :nq]),
        np.ascontiguousarray(closed[..., nq : nq + nv]),
    ], failed.reshape(-1)


def _message(model: Model, q: np.ndarray, qd: np.ndarray) -> str:
    """Return a message about the constraint that an initial state violates most."""
    if is_turned_over(model.description, model.body_poses(q).rotation):
        return (
            "q0 does not satisfy the constraints: the axes of a hinge are opposite, or the frames of a weld are "
            "rotated by 180 degrees; expected a closed configuration. Use model.assemble with another guess"
        )
    residual, rate = np.abs(model.constraint_residual(q)), np.abs(model.constraint_jacobian(q) @ qd)
    names = model.constraint_names_of_rows
    if residual.max() > 0.1 * rate.max():
        row = int(np.argmax(residual))
        return (
            f"q0 does not satisfy the constraints: the residual of {names[row]!r} is {residual[row]:.2e}; expected 0 "
            "to within round-off. Use model.assemble(q0)"
        )
    row = int(np.argmax(rate))
    return (
        f"qd0 does not satisfy the constraints: the residual of {names[row]!r} changes at a rate of {rate[row]:.2e}; "
        "expected 0 to within round-off. Use model.assemble_velocities(q0, qd0)"
    )


def close_saved_states(
    model: Model, actions: Actions | None, saved: tuple[np.ndarray, np.ndarray], end_states: np.ndarray
) -> np.ndarray:
    """Project saved states onto the constraints, in place, because states between steps are interpolated.

    `saved` contains q (samples, times, nq) and qd (samples, times, nv); `end_states` (samples, rows) contains the last
    states. A state that cannot be projected is NaN, and so are the later ones of its sample.

    Returns (samples,) bool: whether the sample has such a state.
    """
    nq, nv = model.nq, model.nv
    q, qd = saved
    groups = [(q, qd), (end_states[:, None, :nq], end_states[:, None, nq : nq + nv])]
    if actions is not None:
        events = actions.records.states
        flat = events.reshape(events.shape[0], math.prod(events.shape[1:-1]), events.shape[-1])
        groups.append((flat[..., :nq], flat[..., nq : nq + nv]))
    is_open = np.zeros(len(q), bool)
    for positions, velocities in groups:
        if positions.size:
            open_states = close_states(model, actions, positions, velocities)
            is_open |= open_states.any(-1)
            if positions is q:
                is_later = np.logical_or.accumulate(open_states, axis=1)
                q[is_later], qd[is_later] = np.nan, np.nan
    return is_open


def close_states(model: Model, actions: Actions | None, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Project states (samples, m, ...) onto the constraints, in place; NaN for states that cannot be projected.

    Returns (samples, m) bool: which states could not be projected.
    """
    nq, nv = model.nq, model.nv
    found = _of_each_sample(model, q, qd, held_dofs(actions, nv))
    is_open: np.ndarray = found[..., nq + nv + 1] > LARGEST_SAVED_RESIDUAL[q.dtype.name]
    found[is_open] = np.nan
    q[...], qd[...] = found[..., :nq], found[..., nq : nq + nv]
    return is_open


def _of_each_sample(model: Model, q: np.ndarray, qd: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Project several states (samples, m, ...) of each sample."""
    shape = (*model.batch_shape, *q.shape[1:-1]) if model.batch_shape else q.shape[:-1]
    q_of_samples, qd_of_samples = (np.ascontiguousarray(x).reshape(*shape, x.shape[-1]) for x in (q, qd))
    held_of_samples = np.broadcast_to(held, qd_of_samples.shape).astype(q.dtype)
    several = model.kernel_model.with_added_inertias.with_axis_of_states
    found = _projected(several, q_of_samples, qd_of_samples, held_of_samples)
    return found.reshape(*q.shape[:-1], found.shape[-1])


def _projected(model: KernelModel, q: np.ndarray, qd: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Project states: (..., nq + nv + 2), with the relative residuals before and after as the last entries."""
    return model.compute(
        closed_chains.closed_states,
        (model.nq + model.nv + 2,),
        ("q", "qd", "held"),
        (q, qd, held),
        scratch=model.nv,
        given=(model.constraint_tables,),
    )
