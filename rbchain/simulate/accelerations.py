"""The accelerations of a state under the forces that `simulate` integrates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.contacts import NAMES_OF_CONTACTS, is_contact
from ..acting.flatten import flatten_actions
from ..acting.numeric_fields import Drive, Force
from ..acting.random_actions import random_signals_of
from ..acting.sampled import Sampled
from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray, common_batch, real_array
from ..errors import ArgumentError
from ..model.arguments import with_batch
from .closed_chain_controllers import prepare_closed_controllers
from .methods import method_named
from .preparation import kernel_model_for_simulation, refuse_forces_of_drives
from .request import checked_states, checked_times
from .results import raise_exceptions, set_prescribed_states, tau_and_qdd

if TYPE_CHECKING:
    from ..facade.model import Model


@explains_calls(is_method=True, contacts="forces")
def accelerations(
    model: Model,
    q: npt.ArrayLike | None = None,
    qd: npt.ArrayLike = 0.0,
    *,
    t: npt.ArrayLike = 0.0,
    tau: npt.ArrayLike = 0.0,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
) -> FloatArray:
    """Compute joint accelerations from all forces that `simulate` integrates, at one time.

    These are gravity, the passive forces of the joints (`PassiveForces`), joint forces, drives, wrenches, springs and
    bushings between bodies, and the forces of water. `forward_dynamics` omits drives, springs and bushings, and by
    default the passive forces. The result is `simulate(q, qd, ...).qdd` at the start of the motion.

    Parameters
    ----------
    model : Model
    q, qd : (..., nq) and (..., nv) arrays, rad or m, and rad/s or m/s
        State of each sample. The defaults are as for `simulate`. With closed loops, it must satisfy the constraints,
        which is not checked. Prescribed positions and velocities replace the given ones.
    t : float or (...) array, s
        Time of each sample, from 0, at which the signals are evaluated.
    tau : float or (..., nv) array, N m or N
        Joint forces, which are added to the forces of the drives. The array must fit into the batch of the states, the
        times and the model.
    drives, forces : lists
        As for `simulate`, except for actions that have a memory or cause impacts: `Sampled`, random signals,
        `DryFriction`, `HardStops` and contacts. The integrals of `PID` are zero, as at the start of a simulation.

    Returns
    -------
    (..., nv) array, rad/s^2 or m/s^2

    Raises
    ------
    ArgumentError
        If a shape does not fit, a drive or a force is not supported, or a user function raises an exception.
    ModelError
        If the model has `bodies_without_inertia` whose motion is not prescribed.

    Examples
    --------
    A pendulum of length 1.5 m falls from the horizontal position, and its bearing has viscous damping:

    >>> import rbchain as rb
    >>> rod = rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, -10, 0)).replace(damping=[0.3])
    >>> rod.accelerations([0.0], [1.0]).round(9).tolist(), rod.forward_dynamics([0.0], [1.0], [0.0]).tolist()
    ([-10.2], [-10.0])
    >>> push = rb.PrescribedForce("link1", rb.Signal.polynomial([0.0, 1.5]))
    >>> rod.accelerations([0.0], [0.0], t=[0.0, 1.0], drives=[push]).round(9).tolist()
    [[-10.0], [-9.0]]
    """
    times, q = _broadcast(t, model.neutral() if q is None else q)
    (q, qd, tau), dtype, batch = checked_states(model, ("q", "qd", "tau"), q, qd, tau)
    times, model = np.broadcast_to(times, batch), with_batch(model, batch)
    drives = model.drives if drives is None else drives
    _refuse_memory(drives, forces)
    actions, calls = flatten_actions(model, batch, float(times.max(initial=0.0)), dtype, (drives, forces, ()))
    refuse_forces_of_drives(model, actions, tau)
    kernel_model = kernel_model_for_simulation(model, actions, method_named("rk45"), has_energy_error=False)
    prepare_closed_controllers(model, kernel_model, actions, drives, q)
    samples, integrals = times.size, 0 if actions is None else actions.integrals
    states = [
        q.reshape(samples, 1, model.nq).copy(),
        qd.reshape(samples, 1, model.nv).copy(),
        np.zeros((samples, 1, integrals), dtype),
        np.zeros((samples, 1, 0), dtype),
    ]
    set_prescribed_states(model, drives, times[..., None], (states[0], states[1]), batch)
    found = tau_and_qdd(kernel_model, actions, tau, times[..., None], states, batch)
    raise_exceptions("accelerations", model, actions, calls, batch)
    return found[..., 0, model.nv :]


def _broadcast(t: npt.ArrayLike, q: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the times and the positions, of one batch shape."""
    times, q = checked_times("accelerations", t), real_array("q", q, ArgumentError, keep_float32=True)
    batch = common_batch({"t": times.shape, "q": q.shape[:-1]}, ArgumentError)
    return times, np.broadcast_to(q, batch + q.shape[-1:])


def _refuse_memory(drives: Sequence[Drive], forces: Sequence[Force]) -> None:
    """Raise an error for actions whose forces do not follow from the state and the time."""
    if any(isinstance(drive, Sampled) for drive in drives) or random_signals_of(drives) or random_signals_of(forces):
        raise ArgumentError(
            "accelerations depend on the past with Sampled and random signals; expected drives and forces without "
            "them. Use simulate(...).qdd"
        )
    if any(is_contact(force) for force in forces):
        raise ArgumentError(
            f"accelerations are not available with {NAMES_OF_CONTACTS}, because velocities jump in impacts; expected "
            "forces without them"
        )
