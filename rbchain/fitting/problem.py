"""The least-squares problem of a fit: measurements, residuals of simulated motions, and their derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..acting.coordinates import dof_index
from ..acting.drives import PID, PRESCRIBED
from ..acting.numeric_fields import Drive, Force
from ..common.real_arrays import FloatArray, real_array
from ..core.tree.layout import TOPOLOGY_COORDINATE
from ..errors import ArgumentError
from ..simulate.trajectory import Trajectory
from .variables import variables_of

if TYPE_CHECKING:
    from ..facade.model import Model

GAINS = ("kp", "ki", "kd")


class Measurements:
    """The measured motion, and the reciprocals of its standard deviations, (times, 2 nv); zero for missing numbers."""

    def __init__(self, model: Model, motion: Any, noise: npt.ArrayLike | None) -> None:
        if isinstance(motion, Trajectory):
            motion = motion.t, motion.q, motion.qd
        if not (isinstance(motion, tuple) and len(motion) == 3):
            raise ArgumentError(
                "motion is not a measured motion; expected a Trajectory or a tuple (t, q, qd). Without measured "
                "velocities, write (t, q, None): the motion then starts at rest"
            )
        t, q, qd = motion
        self.t, self.q = real_array("t", t, ArgumentError), _with_missing("q", q)
        self.qd = np.full((self.t.size, model.nv), np.nan) if qd is None else _with_missing("qd", qd)
        expected = (self.t.size, model.nq), (self.t.size, model.nv)
        if self.t.ndim != 1 or (self.q.shape, self.qd.shape) != expected:
            raise ArgumentError(
                f"motion has times, positions and velocities of shapes {self.t.shape}, {self.q.shape} and "
                f"{self.qd.shape}; expected (times,), (times, {model.nq}) and (times, {model.nv})"
            )
        if self.t.size < 2 or self.t[0] != 0.0 or not np.isfinite(self.q[0]).all():
            raise ArgumentError("motion has no state at t = 0; expected at least two times, of which the first is 0 s")
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


def _with_missing(name: str, values: npt.ArrayLike) -> FloatArray:
    try:
        found = np.array(values, float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} of the motion is not an array of numbers") from None
    if np.isinf(found).any():
        raise ArgumentError(
            f"{name} of the motion contains infinite numbers; expected finite ones, or NaN where it is missing"
        )
    return found


class Problem:
    """Residuals and their derivatives by the variables of all parameters.

    `entries` are the fields to fit with the entries of their flat arrays, of "inertia" the bodies; None for all.
    """

    def __init__(
        self,
        model: Model,
        data: Measurements,
        entries: Mapping[str, set[int] | None],
        drives: tuple[Drive, ...],
        forces: tuple[Force, ...],
        tau: FloatArray,
        settings: Mapping[str, Any],
    ) -> None:
        names = self.names = tuple(entries)
        self.model, self.data, self.drives, self.forces = model, data, drives, forces
        self.tau, self.settings = tau, settings
        gains = {name: self._gains(name) for name in GAINS}
        driven = [
            dof_index(model, "drive", drive.joint, drive.dof) for drive in drives if isinstance(drive, PRESCRIBED)
        ]
        self.fields = {name: variables_of(model, name, tau, gains, driven, entries[name]) for name in names}
        counts = [len(field.labels) for field in self.fields.values()]
        self.size = sum(counts)
        self.parts = dict(zip(names, np.split(np.arange(self.size), np.cumsum(counts)[:-1]), strict=True))
        self.labels = [label for field in self.fields.values() for label in field.labels]
        self.is_varied = np.repeat([field.is_varied for field in self.fields.values()], counts)
        self.largest_changes = np.repeat([field.largest_change for field in self.fields.values()], counts)
        self.motion: Any = None  # the last simulation
        self._last: tuple[bytes, Any] = (b"", None)

    def _gains(self, name: str) -> FloatArray:
        found, seen = np.zeros(self.model.nv), set[int]()
        for drive in self.drives:
            if isinstance(drive, PID):
                what = f"PID of joint {drive.joint!r}: {name}"
                gain = real_array(what, getattr(drive, name), ArgumentError)
                if gain.ndim:
                    raise ArgumentError(f"{what} has shape {gain.shape}; fit needs one number for its single motion")
                if name in self.names and self._dof(drive) in seen:
                    raise ArgumentError(
                        f'parameters contains "{name}", but joint {drive.joint!r} has several PIDs; expected one. Add '
                        "their gains in one PID"
                    )
                seen.add(self._dof(drive))
                found[self._dof(drive)] = gain
        return found

    def _dof(self, drive: PID) -> int:
        return dof_index(self.model, f"PID of joint {drive.joint!r}", drive.joint, drive.dof)

    def values(self, x: FloatArray) -> dict[str, FloatArray]:
        """Return the parameters {name: (starts, ...)} for variables x (starts, size)."""
        return {name: field.values(x[:, self.parts[name]]) for name, field in self.fields.items()}

    def start(self, values: dict[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Return the initial states (starts, ...) for parameters."""
        count = len(next(iter(values.values())))
        q, qd = (np.tile(x, (count, 1)) for x in self.data.start)
        q = self.model.integrate(q, values["q"]) if "q" in values else q
        return q, qd + values["qd"] if "qd" in values else qd

    def initial_numbers(self, name: str) -> FloatArray:
        """Return the measured initial "q" or "qd" of each dof (nv,); 0 for the "q" of free and spherical joints."""
        q, qd = self.data.start
        dofs, topology = self.model.kernel_model.dofs, self.model.kernel_model.topology
        return qd if name == "qd" else np.where(dofs.in_quaternion_joint, 0.0, q[topology[TOPOLOGY_COORDINATE]])

    def fitted_drives(self, values: dict[str, FloatArray]) -> tuple[Drive, ...]:
        """Return the drives with the gains in `values`."""
        return tuple(self._fitted(drive, values) if isinstance(drive, PID) else drive for drive in self.drives)

    def _fitted(self, drive: PID, values: dict[str, FloatArray]) -> PID:
        gains: dict[str, Any] = {name: values[name][..., self._dof(drive)] for name in GAINS if name in values}
        return replace(drive, **gains)

    def fitted_model(self, values: dict[str, FloatArray]) -> Model:
        """Return the model with the parameters in `values`."""
        fields = {name: x for name, x in values.items() if name not in (*GAINS, "q", "qd", "tau")}
        return self.model.vary(**fields) if fields else self.model

    def evaluate(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the residuals (starts, m) and their derivatives (starts, m, size), divided by the noise.

        They are NaN for a motion that fails.
        """
        if self._last[0] == x.tobytes():
            return self._last[1]
        values, data, n = self.values(x), self.data, self.model.nv
        motion = self.fitted_model(values).simulate(
            *self.start(values),
            duration=data.t[-1],
            save_at=data.t,
            forces=self.forces,
            derivatives=self.names,
            tau=values.get("tau", self.tau),
            drives=self.fitted_drives(values),
            on_failure="ignore",
            **self.settings,
        )
        self.motion = motion
        weights, known = data.weights, data.weights > 0.0
        difference = self.model.difference(np.broadcast_to(data.q, motion.q.shape), motion.q)
        residuals = np.concatenate([difference, motion.qd - data.qd], -1)
        residuals = (residuals * weights)[:, known]
        derivatives = np.empty((len(x), data.t.size, 2 * n, self.size))
        for name, field in self.fields.items():
            slopes = field.slopes(x[:, self.parts[name]]).reshape(len(x), 1, -1, len(field.labels))
            columns = motion.derivatives[name].reshape(len(x), data.t.size, 2 * n, -1)
            derivatives[..., self.parts[name]] = columns @ slopes
        found = residuals, (derivatives * weights[..., None])[:, known]
        self._last = x.tobytes(), found
        return found
