"""Measured trajectories with the actions on the mechanism during each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..acting.numeric_fields import Drive, Force
from ..acting.random_actions import actions_of_samples
from ..common.calls import ExplainsCalls
from ..common.misspelled import SuggestsAttributes
from ..common.pickles import PickledByName
from ..common.real_arrays import FloatArray, real_array
from ..common.values import private_copy
from ..errors import ArgumentError
from ..simulate.trajectory import Trajectory

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True, eq=False)
class Measurement(PickledByName, ExplainsCalls, SuggestsAttributes):
    """A measured trajectory with its own drives and forces, for `rb.fit` and `rb.experiment_design`.

    Parameters
    ----------
    t : (times,) array, s
        Times that start at 0.
    q : (times, nq) array, rad or m
        Positions. NaN marks missing values, except in the first row, which must be complete.
    qd : (times, nv) array, rad/s or m/s, optional
        Velocities. NaN marks missing values. Where a value of the first row is missing, the initial velocity is zero.
    tau : (nv,) array, N m or N, optional
        Constant joint forces. None stands for the value that is given for all trajectories, as for `drives`, `forces`
        and `noise`.
    drives, forces : sequences, optional
        The drives and forces that act during this measurement.
    noise : float or (2 nv,) array, optional
        Standard deviation of the measured positions and velocities.

    Examples
    --------
    >>> import numpy as np, rbchain as rb
    >>> t = np.linspace(0, 1, 11)
    >>> rb.Measurement(t, 0.4 * t[:, None] ** 2, tau=[1.0]).tau
    [1.0]
    """

    t: npt.ArrayLike
    q: npt.ArrayLike
    qd: npt.ArrayLike | None = None
    _: KW_ONLY
    tau: npt.ArrayLike | None = None
    drives: Sequence[Drive] | None = None
    forces: Sequence[Force] | None = None
    noise: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, private_copy(getattr(self, field.name)))


#: A measured trajectory, as a caller gives it.
Measured: TypeAlias = Trajectory | Measurement | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike | None]


class ActionsOfMotion:
    """The actions `tau` (nv,), `drives` and `forces` of a measured trajectory.

    `has_own_tau` is True if `tau` differs from the `tau` of all trajectories.
    """

    def __init__(self, model: Model, given: Measurement, common: Measurement, duration: float) -> None:
        self.has_own_tau = given.tau is not None
        tau = given.tau if given.tau is not None else common.tau
        self.tau: FloatArray = np.broadcast_to(real_array("tau", tau, ArgumentError), (model.nv,))
        drives = given.drives if given.drives is not None else common.drives
        forces = given.forces if given.forces is not None else common.forces
        drives, forces = actions_of_samples(
            model.drives if drives is None else drives, () if forces is None else forces, duration, np.array(0)
        )
        self.drives: tuple[Drive, ...] = tuple(drives)
        self.forces: tuple[Force, ...] = tuple(forces)


class Motion:
    """A checked measured trajectory.

    `weights` (times, 2 nv) are the reciprocals of the standard deviations, 1 if no noise is given, and zero for missing
    numbers. `start` is the first measured state, and `name` the name of a trajectory of a list, such as "motion2".
    """

    def __init__(self, model: Model, motion: Measured, common: Measurement, name: str = "") -> None:
        self.name, name = name, name or "motion"
        given = _as_measurement(motion, name)
        self.t, self.q = real_array("t", given.t, ArgumentError), _with_missing("q", given.q, name)
        missing = np.full((self.t.size, model.nv), np.nan)
        self.qd = missing if given.qd is None else _with_missing("qd", given.qd, name)
        expected = (self.t.size, model.nq), (self.t.size, model.nv)
        if self.t.ndim != 1 or (self.q.shape, self.qd.shape) != expected:
            raise ArgumentError(
                f"{name} has times, positions and velocities of shapes {self.t.shape}, {self.q.shape} and "
                f"{self.qd.shape}; expected (times,), (times, {model.nq}) and (times, {model.nv})"
            )
        if self.t.size < 2 or self.t[0] != 0.0 or not np.isfinite(self.q[0]).all():
            raise ArgumentError(f"{name} has no state at t = 0; expected at least two times, of which the first is 0 s")
        noise = common.noise if given.noise is None else given.noise
        self.has_noise = noise is not None
        sigma = 1.0 if noise is None else real_array("noise", noise, ArgumentError)
        if not (np.asarray(sigma) > 0.0).all():
            raise ArgumentError(f"noise is {noise!r}; expected positive standard deviations")
        known = ~np.isnan(np.concatenate([model.difference(self.q, self.q), self.qd], -1))
        try:
            self.weights = known / np.broadcast_to(sigma, (2 * model.nv,))
        except ValueError:
            expected_shapes = f"one number or an array ({2 * model.nv},)"
            raise ArgumentError(f"noise has shape {np.shape(sigma)}; expected {expected_shapes}") from None
        self.start = self.q[0], np.where(np.isnan(self.qd[0]), 0.0, self.qd[0])
        self.actions = ActionsOfMotion(model, given, common, float(self.t[-1]))


def motions_of(model: Model, motion: Measured | list[Measured], common: Measurement) -> list[Motion]:
    """Check one trajectory, or each one of a list. `common` has actions and noise for those without their own."""
    if not isinstance(motion, list):
        return [Motion(model, motion, common)]
    if not motion:
        raise ArgumentError("motion is an empty list; expected at least one measured trajectory")
    found = [Motion(model, one, common, f"motion{k + 1}") for k, one in enumerate(motion)]
    if len({one.has_noise for one in found}) > 1:
        raise ArgumentError(
            "noise is given for only some trajectories, so their weights cannot be compared; expected the noise of all "
            "of them. Pass noise= to the function, too"
        )
    return found


def _as_measurement(motion: Any, name: str) -> Measurement:
    if isinstance(motion, Measurement):
        return motion
    if isinstance(motion, Trajectory):
        # an event holds the states, which are no measurements
        has_ended = (motion.t > motion.end_time[..., None])[..., None]
        return Measurement(motion.t, *(np.where(has_ended, np.nan, x) for x in (motion.q, motion.qd)))
    if not (isinstance(motion, tuple) and len(motion) == 3):
        raise ArgumentError(
            f"{name} is not a measured trajectory; expected a Trajectory, a Measurement, a tuple (t, q, qd), or a list "
            "of them. Without measured velocities, write (t, q, None): the initial velocity is then zero"
        )
    return Measurement(*motion)


def _with_missing(quantity: str, values: npt.ArrayLike, name: str) -> FloatArray:
    try:
        found = np.array(values, float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{quantity} of {name} is not an array of numbers") from None
    if np.isinf(found).any():
        raise ArgumentError(
            f"{quantity} of {name} contains infinite numbers; expected finite ones, or NaN where it is missing"
        )
    return found
