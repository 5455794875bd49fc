"""Samples: models, initial states, drives, forces and events of a range of samples, from their draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...acting.coordinates import dof_index
from ...acting.friction_and_stops import DryFriction
from ...acting.numeric_fields import POSE, SIGNAL
from ...acting.random_actions import actions_of_samples
from ...acting.sampled import with_sensors
from ...acting.sensors import Sensor
from ...acting.signal_numbers import numbers_of, three_components, with_numbers
from ...acting.signals import Signal, SignalLike, as_signal
from ...core.tree.layout import TOPOLOGY_COORDINATE
from ...errors import StudyError
from ...facade.model import Model
from ...model.joint import Free
from ...model.pose import Pose, computed_pose
from ...simulate.loops import assembled_states
from ..describe.parameter_table import DRIVE, ENCODER, EVENT, FUNCTION, MODEL, PARAMETERS, STRAINS, VELOCITY_SENSOR
from .nominal import Nominal
from .targets import Target, Varied, owner_of, signal_of


class Samples:
    """Samples of a study: fields of the model, initial states, drives, forces and events, changed by draws.

    Parameters
    ----------
    nominal : Nominal
    numbers : (count,) array of int
        Numbers of the samples in the study, on which their random signals depend.
    changes : sequence of (Varied, array)
        Parameters and their draws (count, components). The numbers of signals change before the signals as a whole, so
        that the result does not depend on the order.
    """

    def __init__(
        self, nominal: Nominal, numbers: np.ndarray, changes: Sequence[tuple[Varied, np.ndarray]] = ()
    ) -> None:
        count = self.count = numbers.size
        self.model = nominal.model
        self._assembly = nominal.simulation.assembly
        self.fields: dict[str, np.ndarray] = {}
        self.payloads: list[tuple[str, np.ndarray, tuple[float, float, float]]] = []
        self._q, self._displacement = np.tile(nominal.q, (count, 1)), np.zeros((count, nominal.model.nv))
        self.qd = np.tile(nominal.qd, (count, 1))
        self.tau = np.tile(nominal.tau, (count, 1))
        self.drives, self.forces, self.events = list(nominal.drives), list(nominal.forces), list(nominal.events)
        self._change_signals([change for change in changes if change[0].is_of_signal])
        duration, seed = nominal.simulation.duration, nominal.seed
        self.drives, self.forces = actions_of_samples(self.drives, self.forces, duration, numbers, seed)
        for varied, values in changes:
            if not varied.is_of_signal:
                self._change(varied, values)

    @property
    def q(self) -> np.ndarray:
        """Initial positions. The rotations of a free or spherical joint are integrated together."""
        return self.model.integrate(self._q, self._displacement) if self._displacement.any() else self._q

    def initial_states(self, many: Model) -> tuple[np.ndarray, np.ndarray]:
        """Return q and qd of the samples of the model that `build` returned; NaN if they cannot be assembled."""
        if self._assembly is None:
            return self.q, self.qd
        return assembled_states(many, self.q, self.qd, self._assembly.fixed)

    def field(self, name: str) -> np.ndarray:
        """Return a writable array for all samples: of a model field, of the initial velocities or joint forces."""
        if name in ("qd", "tau"):
            return self.qd if name == "qd" else self.tau
        if name not in self.fields:
            nominal = getattr(self.model, name)
            self.fields[name] = np.array(np.broadcast_to(nominal, (self.count, *nominal.shape)))
        return self.fields[name]

    def build(self, only: int | None = None) -> Model:
        """Build the model of all samples, or of one sample."""
        chosen = slice(None) if only is None else only
        many = self.model.vary(**{name: values[chosen] for name, values in self.fields.items()})
        for body, mass, point in self.payloads:
            many = many.with_payload(body, mass=mass[chosen], cg=point)
        return many

    def _change(self, varied: Varied, values: np.ndarray) -> None:
        """Change a parameter by draws (count, components)."""
        name, i = varied.parameter, varied.target.index
        if name in SEVERAL_FIELDS:
            SEVERAL_FIELDS[name](self, varied, values)
        elif PARAMETERS[name].owner in (ENCODER, VELOCITY_SENSOR):
            self._change_sensors(varied, values)
        elif PARAMETERS[name].owner in (DRIVE, FUNCTION):
            given = self.drives[i]
            owner = owner_of(given, name)
            new = self._with_draws(owner, varied, values)
            self.drives[i] = new if owner is given else replace(given, controller=new)
        elif PARAMETERS[name].owner == EVENT:
            self.events[i] = self._with_draws(self.events[i], varied, values)
        elif PARAMETERS[name].classes:
            self.forces[i] = self._with_draws(self.forces[i], varied, values)
        else:
            own = self.field(name)[:, ... if PARAMETERS[name].owner == MODEL else i]
            own[...] = self._changed_numbers(own, varied, values)

    def _change_signals(self, changes: Sequence[tuple[Varied, np.ndarray]]) -> None:
        """Change numbers of signals, or entries of lists, by draws (count, components). Each signal changes once."""
        new: dict[tuple[str, int, int | None], tuple[Target, dict[str, np.ndarray]]] = {}
        for varied, values in changes:
            target, name = varied.target, PARAMETERS[varied.parameter].field_in_paths(varied.parameter)
            _, of_signal = new.setdefault((target.signal, target.index, target.component), (target, {}))
            if name not in of_signal:
                old = numbers_of(signal_of(target, self.drives, self.forces))[name].values
                of_signal[name] = np.array(np.broadcast_to(old, (self.count, old.shape[-1])))
            columns = list(varied.components) or [0]
            of_signal[name][:, columns] = changed(of_signal[name][:, columns], values, varied.how)
        for target, of_signal in new.values():
            self._set_signal(target, with_numbers(signal_of(target, self.drives, self.forces), of_signal))

    def _set_signal(self, target: Target, signal: SignalLike) -> None:
        """Replace a signal of a drive or a force, which is the owner of a parameter."""
        field = PARAMETERS[target.signal].field
        assert field is not None
        actions: list[Any] = self.drives if PARAMETERS[target.signal].owner == DRIVE else self.forces
        action = actions[target.index]
        owner = owner_of(action, target.signal)
        given: Any = signal
        if target.component is not None:
            given = list(three_components(getattr(owner, field.name)))
            given[target.component] = signal
            given = tuple(given)
        new = replace(owner, **{field.name: given})
        actions[target.index] = new if owner is action else replace(action, controller=new)

    def _changed_numbers(self, old: np.ndarray, varied: Varied, values: np.ndarray) -> np.ndarray:
        """Return numbers (count, ...) of one owner, changed by draws (count, components).

        Draws of an angle turn vectors (count, 3), and frames (count, 3, 3) in their own axes.
        """
        parameter = PARAMETERS[varied.parameter]
        if parameter.components and parameter.dimension == "angle":
            turns = self._rotations(varied, values)
            return old @ turns if old.ndim == 3 else (turns @ old[..., None])[..., 0]
        if not parameter.components and (parameter.field is None or parameter.field.shape != (None,)):
            return changed(old, values[:, 0].reshape(-1, *(1 for _ in old.shape[1:])), varied.how)
        new, columns = np.array(old), list(varied.components)
        new[:, columns] = changed(new[:, columns], values, varied.how)
        return new

    def change_mass_and_inertia(self, varied: Varied, values: np.ndarray) -> None:
        """Change the mass, and scale the inertia tensor by the same factor."""
        mass, inertia, i = self.field("mass"), self.field("inertia"), varied.target.index
        new = changed(mass[:, i], values[:, 0], varied.how)
        with np.errstate(divide="ignore", invalid="ignore"):  # `build` reports invalid masses
            inertia[:, i] *= (new / mass[:, i])[:, None, None]
        mass[:, i] = new

    def change_inertia(self, varied: Varied, values: np.ndarray) -> None:
        """Deform the mass distribution about the cg by x -> exp(E / 2) x, with the strain E.

        The tensor of every strain is physically valid, because the second moments stay positive definite.
        """
        inertia, i = self.field("inertia"), varied.target.index
        strain = np.zeros((self.count, len(STRAINS)))
        strain[:, list(varied.components)] = values
        xx, yy, zz, xy, xz, yz = strain.T
        E = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], -1).reshape(-1, 3, 3)
        exponents, axes = np.linalg.eigh(E / 2)
        stretch = axes * np.exp(exponents)[:, None, :] @ axes.mT
        moments = stretch @ other_moments(inertia[:, i], 0.5) @ stretch
        inertia[:, i] = other_moments((moments + moments.mT) / 2, 1.0)

    def _rotations(self, varied: Varied, values: np.ndarray) -> np.ndarray:
        """Return rotation matrices of rotation vectors in rad; components that are not drawn are 0."""
        from scipy.spatial.transform import Rotation

        turn = np.zeros((self.count, 3))
        turn[:, list(varied.components)] = values
        return Rotation.from_rotvec(turn).as_matrix()

    def add_payload(self, varied: Varied, values: np.ndarray) -> None:
        self.payloads.append((varied.target.owner, values[:, 0], varied.point))

    def change_position(self, varied: Varied, values: np.ndarray) -> None:
        place = _places_of_free_joints(self.model).get(varied.target.index)
        if place is not None:
            self._q[:, place] = changed(self._q[:, place], values[:, 0], varied.how)
        elif varied.how == "add":
            self._displacement[:, varied.target.index] += values[:, 0]
        elif self.model.kernel_model.dofs.in_quaternion_joint[varied.target.index]:
            raise StudyError(
                f"how is 'set' for a rotation of {varied.target.owner!r}, a free or spherical joint; expected 'add', "
                "because its q contains a quaternion"
            )
        else:
            self._q[:, self.model.kernel_model.topology[TOPOLOGY_COORDINATE, varied.target.index]] = values[:, 0]
            self._displacement[:, varied.target.index] = 0.0

    def _change_sensors(self, varied: Varied, values: np.ndarray) -> None:
        """Change the sensors of a joint, or with one name, in all drives, so that equal sensors remain equal."""
        target = varied.target
        name = target.owner if target.dof is None else None

        def change(sensor: Sensor) -> Sensor:
            is_target = (
                dof_index(self.model, "sensor", sensor.joint, sensor.dof) == target.index and sensor.name == name
            )
            if not (is_target and isinstance(sensor, PARAMETERS[varied.parameter].classes)):
                return sensor
            return self._with_draws(sensor, varied, values)

        self.drives = [with_sensors(drive, change) for drive in self.drives]

    def scale_dry_friction(self, varied: Varied, values: np.ndarray) -> None:
        """Scale all friction levels of a DryFriction."""
        force = self.forces[varied.target.index]
        names = [field.name for field in force.numeric_fields]
        given = {name: np.asarray(getattr(force, name)) for name in names if getattr(force, name) is not None}
        self.forces[varied.target.index] = replace(force, **{name: old * values[:, 0] for name, old in given.items()})

    def _with_draws(self, owner: Any, varied: Varied, values: np.ndarray) -> Any:
        """Return a drive, sensor, force or event whose field has been changed by draws (count, components)."""
        field, how = PARAMETERS[varied.parameter].field, varied.how
        assert field is not None
        old = getattr(owner.with_defaults() if isinstance(owner, DryFriction) else owner, field.name)
        if field.kind == POSE:
            new: Any = self._moved(Pose() if old is None else old, varied, values)
        elif field.kind == SIGNAL and field.shape:
            new = list(three_components(old))
            for component, draws in zip(varied.components, values.T, strict=True):
                new[component] = shifted(new[component], draws, how)
            new = tuple(new)
        elif field.kind == SIGNAL or field.has_inputs(old):
            new = shifted(old, values[:, 0], how)
        elif field.shape == (None, 2):  # velocities and torques of a curve
            new = np.asarray(old, float) * np.stack([np.ones_like(values), values], -1)
        else:
            given = np.asarray(0.0 if old is None else old, float)
            shape = np.atleast_1d(given).shape[-1:] if field.shape == (None,) else field.shape
            new = self._changed_numbers(np.broadcast_to(given, (self.count, *shape)), varied, values)
        return replace(owner, **{field.name: new})

    def _moved(self, pose: Pose, varied: Varied, values: np.ndarray) -> Pose:
        """Return a pose for each sample, translated or rotated by draws."""
        translation = np.array(np.broadcast_to(pose.translation, (self.count, 3)))
        rotation = np.broadcast_to(pose.rotation, (self.count, 3, 3))
        if PARAMETERS[varied.parameter].dimension == "angle":
            return computed_pose(translation, rotation @ self._rotations(varied, values))
        columns = list(varied.components)
        translation[:, columns] = changed(translation[:, columns], values, varied.how)
        return computed_pose(translation, rotation)


#: The parameters that change several fields, a mass distribution or a configuration.
SEVERAL_FIELDS: dict[str, Callable[[Samples, Varied, np.ndarray], None]] = {
    "mass_and_inertia": Samples.change_mass_and_inertia,
    "inertia": Samples.change_inertia,
    "payload": Samples.add_payload,
    "q": Samples.change_position,
    "dry_friction": Samples.scale_dry_friction,
}


def changed(old: np.ndarray, draws: np.ndarray, how: str | None) -> np.ndarray:
    """Return a number changed by draws."""
    if how == "set":
        return np.broadcast_to(draws, old.shape)
    return old + draws if how == "add" else old * draws


def other_moments(matrix: np.ndarray, share: float) -> np.ndarray:
    """Convert an inertia tensor to second moments about the cg (share of the trace 1/2), or the reverse (share 1)."""
    return share * np.trace(matrix, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - matrix


def shifted(signal: SignalLike, draws: np.ndarray, how: str | None) -> Signal:
    """Return a signal for each sample, changed by its draw."""
    signal = as_signal("signal", signal)
    if how == "set":
        return Signal.constant(draws)
    pieces = np.array(np.broadcast_to(signal.coefficients, (*draws.shape, *signal.coefficients.shape[-2:])))
    if how == "add":
        pieces[..., 0] += draws[:, None]
        return replace(signal, coefficients=pieces)
    waves = np.array(np.broadcast_to(signal.waves, (*draws.shape, *signal.waves.shape[-2:])))
    waves[..., 0] *= draws[:, None]
    inputs = tuple(term.times(draws) for term in signal.inputs)
    return replace(signal, coefficients=pieces * draws[:, None, None], waves=waves, inputs=inputs)


def _places_of_free_joints(model: Model) -> dict[int, int]:
    """Return the coordinate of each degree of freedom that moves a free joint along an axis of its placement frame."""
    joints = zip(model.joint_types, model.position_index, model.velocity_index, strict=True)
    return {int(dof) + i: int(at) + i for kind, at, dof in joints if kind == Free.kind for i in range(3)}
