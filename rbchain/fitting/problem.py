"""The least-squares problem of a fit: residuals of simulated trajectories and of priors, and their derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.actuators import Actuator
from ..acting.coordinates import dof_index
from ..acting.drives import PID, PRESCRIBED
from ..acting.numeric_fields import Drive
from ..common.real_arrays import FloatArray, real_array
from ..errors import ArgumentError
from ..simulate.trajectory import Trajectory
from .initial_states import ClosedInitialState, InitialState
from .measurements import ActionsOfMotion, Motion
from .springs import SpringVariables, fitted_forces, is_of_spring, variables_of_spring
from .variables import Variables, state_variables_of, units_of, variables_of

if TYPE_CHECKING:
    from ..facade.model import Model
    from .limits import Prior

#: The fitted numbers of drives, and the classes with these numbers.
OF_DRIVES: dict[str, type[PID] | type[Actuator]] = {"kp": PID, "ki": PID, "kd": PID, "gear_friction": Actuator}
STATE = ("q", "qd")


class Problem:
    """Residuals and their derivatives with respect to the variables of all parameters.

    `entries` are the fields to fit with the entries of their flat arrays, of "inertia" the bodies; None for all. They
    also contain the paths of parameters of springs.
    `simulated` are the trajectories of the last evaluation.
    """

    def __init__(
        self,
        model: Model,
        motions: Sequence[Motion],
        entries: Mapping[str, set[int] | None],
        settings: Mapping[str, Any],
    ) -> None:
        names = self.names = tuple(entries)
        self.model, self.motions, self.settings = model, motions, settings
        first = motions[0].actions
        if "tau" in names and any(motion.actions.has_own_tau for motion in motions):
            raise ArgumentError(
                'parameters contains "tau", but a Measurement has its own tau; expected one tau for all of them. Pass '
                "the known forces of a Measurement as drives=[rb.PrescribedForce(joint, force)]"
            )
        driven = {dof for motion in motions for dof in self._driven(motion.actions)}
        self.starts = [self._start(motion) for motion in motions]
        of_drives = {name: self._numbers_of_drives(name) for name in OF_DRIVES}
        self.fields: dict[str, Variables] = {
            name: state_variables_of(model, name, self.starts, entries[name])
            if name in STATE
            else variables_of_spring(model, name, [motion.actions.forces for motion in motions])
            if is_of_spring(name)
            else variables_of(model, name, first.tau, of_drives, sorted(driven), entries[name])
            for name in names
        }
        counts = [len(field.labels) for field in self.fields.values()]
        self.size = sum(counts)
        self.parts = dict(zip(names, np.split(np.arange(self.size), np.cumsum(counts)[:-1]), strict=True))
        self.labels = [label for field in self.fields.values() for label in field.labels]
        self.is_varied = np.repeat([field.is_varied for field in self.fields.values()], counts)
        self.largest_changes: FloatArray = np.repeat([field.largest_change for field in self.fields.values()], counts)
        self.priors: list[Prior] = []
        self.simulated: list[Any] = []
        self._last: tuple[bytes, Any] = (b"", None)

    @property
    def motion_names(self) -> list[str]:
        """Names of the trajectories of a list; none for a single trajectory."""
        return [motion.name for motion in self.motions if motion.name]

    @property
    def count(self) -> int:
        """Number of residuals."""
        return sum(int(np.count_nonzero(motion.weights)) for motion in self.motions) + len(self.priors)

    def _driven(self, actions: ActionsOfMotion) -> list[int]:
        """Return the degrees of freedom whose motion a drive prescribes."""
        found = [drive for drive in actions.drives if isinstance(drive, PRESCRIBED)]
        return [dof_index(self.model, "drive", drive.joint, drive.dof) for drive in found]

    def _start(self, motion: Motion) -> InitialState:
        if self.model.kernel_model.constraint_tables is None or not set(STATE) & set(self.names):
            return InitialState(self.model, motion.name, *motion.start)
        if self._driven(motion.actions):
            raise ArgumentError(
                'parameters contains "q" or "qd", which fit does not support for closed loops with prescribed '
                "motions. Pass a motion that starts in a closed state"
            )
        return ClosedInitialState(self.model, motion.name, *motion.start)

    def _numbers_of_drives(self, name: str) -> FloatArray:
        """Return the gains of the PID drives or the numbers of the actuators (nv,); zero for other dofs."""
        found = [self._numbers_of(name, motion.actions) for motion in self.motions]
        if name in self.names and any(not np.array_equal(numbers, found[0]) for numbers in found):
            owner = OF_DRIVES[name].__name__
            kind, drives = ("gains", f"{owner} drives") if owner == "PID" else ("numbers", f"an {owner}")
            raise ArgumentError(
                f'parameters contains "{name}", but the drives of the trajectories have different {kind}; expected '
                f"{drives} of the same joints with the same initial guesses for all trajectories"
            )
        return found[0]

    def _numbers_of(self, name: str, actions: ActionsOfMotion) -> FloatArray:
        found, seen = np.zeros(self.model.nv), set[int]()
        for drive in actions.drives:
            if isinstance(drive, OF_DRIVES[name]):
                what, value = f"{type(drive).__name__} of joint {drive.joint!r}: {name}", getattr(drive, name)
                if name not in self.names and drive.numeric_field(name).has_inputs(value):
                    continue
                number = real_array(what, value, ArgumentError)
                if number.ndim:
                    raise ArgumentError(f"{what} has shape {number.shape}; fit needs one number for each trajectory")
                if name in self.names and self._dof(drive) in seen:
                    raise ArgumentError(
                        f'parameters contains "{name}", but joint {drive.joint!r} has several PIDs; expected one. Add '
                        "their gains in one PID"
                    )
                seen.add(self._dof(drive))
                found[self._dof(drive)] = number
        return found

    def _dof(self, drive: PID | Actuator) -> int:
        return dof_index(self.model, f"{type(drive).__name__} of joint {drive.joint!r}", drive.joint, drive.dof)

    def values(self, x: FloatArray) -> dict[str, FloatArray]:
        """Return the parameters {name: (starts, ...)} for variables x (starts, size)."""
        return {name: field.values(x[:, self.parts[name]]) for name, field in self.fields.items()}

    def numbers(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the numbers (size,) that the labels name, for the variables x (size,) of one start.

        The others are their derivatives (size, size) with respect to the variables, and their changes (size,) that
        count as 100 %.
        """
        numbers, slopes, scales = np.zeros(self.size), np.zeros((self.size, self.size)), np.zeros(self.size)
        for name, field in self.fields.items():
            part = self.parts[name]
            numbers[part], slopes[np.ix_(part, part)] = field.numbers(x[None, part])
            scales[part] = field.scales(x[None, part])
        return numbers, slopes, scales

    @property
    def units(self) -> dict[str, str]:
        """The SI units of the numbers, by their labels; empty where they depend on the mechanism."""
        found = [
            [field.unit] if isinstance(field, SpringVariables) else units_of(self.model, name, field)
            for name, field in self.fields.items()
        ]
        return dict(zip(self.labels, chain.from_iterable(found), strict=True))

    def field_of(self, column: int) -> tuple[Variables, int]:
        """Return the variables of the field to which a column belongs, and its place among them."""
        name = next(name for name, part in self.parts.items() if column in part)
        return self.fields[name], column - int(self.parts[name][0])

    def fitted_drives(self, drives: Sequence[Drive], values: dict[str, FloatArray]) -> tuple[Drive, ...]:
        """Return the drives with the numbers in `values`."""
        return tuple(self._fitted(drive, values) if isinstance(drive, (PID, Actuator)) else drive for drive in drives)

    def _fitted(self, drive: PID | Actuator, values: dict[str, FloatArray]) -> Drive:
        names = [name for name, owner in OF_DRIVES.items() if name in values and isinstance(drive, owner)]
        numbers: dict[str, Any] = {name: values[name][..., self._dof(drive)] for name in names}
        return replace(drive, **numbers)

    def fitted_model(self, values: dict[str, FloatArray]) -> Model:
        """Return the model with the parameters in `values`."""
        others = (*OF_DRIVES, *STATE, "tau")
        fields = {name: x for name, x in values.items() if not (name in others or is_of_spring(name))}
        return self.model.vary(**fields) if fields else self.model

    def evaluate(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the residuals (starts, m) and their derivatives (starts, m, size), divided by the noise.

        They are NaN for a simulation that fails.
        """
        if self._last[0] != x.tobytes():
            self.simulated = []
            parts = [self._evaluated(k, x) for k in range(len(self.motions))] + self._of_priors(x)
            residuals, derivatives = (np.concatenate(part, 1) for part in zip(*parts, strict=True))
            self._last = x.tobytes(), (residuals, derivatives)
        return self._last[1]

    def _evaluated(self, k: int, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the residuals and the derivatives of trajectory k."""
        values, measured, start, n = self.values(x), self.motions[k], self.starts[k], self.model.nv
        dq, dqd = (values[name][:, k] if name in values else np.zeros((len(x), n)) for name in STATE)
        changes = {name: start.changes(name, dq, dqd) for name in STATE if name in values}
        is_closed = any(change is not None for change in changes.values())
        motion = self.fitted_model(values).simulate(
            *start.states(dq, dqd),
            duration=measured.t[-1],
            save_at=measured.t,
            forces=fitted_forces(self.model, measured.actions.forces, values),
            derivatives=tuple(dict.fromkeys((*self.names, *(STATE if is_closed else ())))),
            tau=values.get("tau", measured.actions.tau),
            drives=self.fitted_drives(measured.actions.drives, values),
            on_failure="ignore",
            **self.settings,
        )
        self.simulated.append(motion)
        weights, known = measured.weights, measured.weights > 0.0
        error = self.errors(measured, motion) * weights
        derivatives = np.empty((len(x), measured.t.size, 2 * n, self.size))
        for name, field in self.fields.items():
            columns = motion.derivatives[name].reshape(len(x), measured.t.size, 2 * n, -1)
            slopes = field.slopes(x[:, self.parts[name]])
            if name in STATE:
                slopes = slopes[:, k]
                change = changes[name]
                if change is not None:
                    columns = np.concatenate([motion.derivatives[kind] for kind in STATE], -1) @ change[:, None]
            derivatives[..., self.parts[name]] = columns @ slopes.reshape(len(x), 1, -1, len(field.labels))
        return error[:, known], (derivatives * weights[..., None])[:, known]

    def errors(self, measured: Motion, motion: Trajectory) -> FloatArray:
        """Return simulated minus measured positions and velocities (..., times, 2 nv); NaN for missing numbers."""
        difference = self.model.difference(np.broadcast_to(measured.q, motion.q.shape), motion.q)
        return np.concatenate([difference, motion.qd - measured.qd], -1)

    def _of_priors(self, x: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Return the residuals and the derivatives of the priors, as a list with at most one entry."""
        if not self.priors:
            return []
        columns, means, deviations = (np.array(part) for part in zip(*self.priors, strict=True))
        found = [self.numbers(one)[:2] for one in x]
        residuals = np.array([(numbers[columns] - means) / deviations for numbers, _ in found])
        return [(residuals, np.array([slopes[columns] / deviations[:, None] for _, slopes in found]))]
