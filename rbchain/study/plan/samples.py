"""Samples: models, initial states, drives and forces of a range of samples, from their draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...acting.coordinates import dof_index
from ...acting.friction_and_stops import DryFriction
from ...acting.sampled import OF_SAMPLED, controller_of, with_encoders
from ...acting.sensors import Encoder
from ...acting.signals import Signal, SignalLike, ThreeSignals, as_signal
from ...acting.wrenches import Current
from ...core.tree.layout import TOPOLOGY_COORDINATE
from ...errors import StudyError
from ...facade.model import Model
from ...simulate.loops import assembled_states
from ..describe.description import Dispersion
from ..describe.parameter_table import BUSHING, DRIVE, ENCODER, MODEL, PARAMETERS, PREFIXES, SPRING, STRAINS, WRENCH
from .nominal import Nominal
from .targets import Target, contact_field


class Samples:
    """Samples of a study. `apply` changes fields of the model, initial states, drives or forces by a draw.

    Parameters
    ----------
    nominal : Nominal
    numbers : (count,) array of int
        Numbers of the samples in the study, on which their random signals depend.
    """

    def __init__(self, nominal: Nominal, numbers: np.ndarray) -> None:
        count = self.count = numbers.size
        self.model = nominal.model
        self._assembly = nominal.simulation.assembly
        self.fields: dict[str, np.ndarray] = {}
        self.payloads: list[tuple[str, np.ndarray, tuple[float, float, float]]] = []
        self._q, self._displacement = np.tile(nominal.q, (count, 1)), np.zeros((count, nominal.model.nv))
        self.qd = np.tile(nominal.qd, (count, 1))
        self.tau = np.tile(nominal.tau, (count, 1))
        self.drives, self.forces = nominal.actions(numbers)

    @property
    def q(self) -> np.ndarray:
        """Initial positions. Displacements of a free or spherical joint are integrated together."""
        return self.model.integrate(self._q, self._displacement) if self._displacement.any() else self._q

    def initial_states(self, many: Model) -> tuple[np.ndarray, np.ndarray]:
        """Return q and qd of the samples of the model that `build` returned; NaN if they cannot be assembled."""
        if self._assembly is None:
            return self.q, self.qd
        return assembled_states(many, self.q, self.qd, self._assembly.fixed)

    def field(self, name: str) -> np.ndarray:
        """Return a writable array of a model field for all samples."""
        if name not in self.fields:
            nominal = getattr(self.model, name)
            self.fields[name] = np.array(np.broadcast_to(nominal, (self.count, *nominal.shape)))
        return self.fields[name]

    def build(self, only: int | None = None) -> Model:
        """Build the model of all samples, or of one sample."""
        chosen = slice(None) if only is None else only
        many = self.model.vary(**{name: values[chosen] for name, values in self.fields.items()})
        for body, mass, point in self.payloads:
            many = many.with_payload(body, mass[chosen], point)
        return many

    def apply(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        """Change the parameter of a target by draws (count, components)."""
        name, i = dispersion.parameter, target.index
        special = getattr(self, f"_apply_{name}", None)
        if special is not None:
            special(dispersion, target, values)
        elif PARAMETERS[name].owner == DRIVE:
            self._apply_to_drive(dispersion, target, values)
        elif PARAMETERS[name].owner == ENCODER:
            self._apply_to_encoder(dispersion, target, values)
        elif PARAMETERS[name].owner == WRENCH:
            self._apply_to_wrench(dispersion, target, values)
        elif PARAMETERS[name].owner in (SPRING, BUSHING):
            self._apply_between_bodies(dispersion, target, values)
        elif PARAMETERS[name].owner in PREFIXES:
            self._apply_to_contact(dispersion, target, values)
        else:
            place = (slice(None),) if PARAMETERS[name].owner == MODEL else (slice(None), i)
            place = (*place, list(dispersion.component_indices)) if PARAMETERS[name].components else place
            field, draws = self.field(name), values if PARAMETERS[name].components else values[:, 0]
            draws = draws.reshape(draws.shape + (1,) * (field[place].ndim - draws.ndim))
            field[place] = changed(field[place], draws, dispersion.how)

    def _apply_mass_and_inertia(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        """Change the mass, and scale the inertia tensor by the same factor."""
        mass, inertia, i = self.field("mass"), self.field("inertia"), target.index
        new = changed(mass[:, i], values[:, 0], dispersion.how)
        with np.errstate(divide="ignore", invalid="ignore"):  # `build` reports invalid masses
            inertia[:, i] *= (new / mass[:, i])[:, None, None]
        mass[:, i] = new

    def _apply_inertia(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        """Deform the mass distribution about the cg by x -> exp(E / 2) x, with the strain E.

        The tensor of every strain is physically valid, because the second moments stay positive definite.
        """
        inertia, i = self.field("inertia"), target.index
        strain = np.zeros((self.count, len(STRAINS)))
        strain[:, list(dispersion.component_indices)] = values
        xx, yy, zz, xy, xz, yz = strain.T
        E = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], -1).reshape(-1, 3, 3)
        exponents, axes = np.linalg.eigh(E / 2)
        stretch = axes * np.exp(exponents)[:, None, :] @ axes.mT
        moments = stretch @ other_moments(inertia[:, i], 0.5) @ stretch
        inertia[:, i] = other_moments((moments + moments.mT) / 2, 1.0)

    def _apply_placement_rotation(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        rotation = self.field("placement_rotation")
        rotation[:, target.index] = rotation[:, target.index] @ self._rotations(dispersion, values)

    def _apply_axis(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        axis = self.field("axis")
        axis[:, target.index] = (self._rotations(dispersion, values) @ axis[:, target.index, :, None])[..., 0]

    def _rotations(self, dispersion: Dispersion, values: np.ndarray) -> np.ndarray:
        """Return rotation matrices of rotation vectors in rad; components that are not drawn are 0."""
        from scipy.spatial.transform import Rotation

        turn = np.zeros((self.count, 3))
        turn[:, list(dispersion.component_indices)] = values
        return Rotation.from_rotvec(turn).as_matrix()

    def _apply_payload(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        self.payloads.append((target.name, values[:, 0], dispersion.point))

    def _apply_q(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        if dispersion.how == "add":
            self._displacement[:, target.index] += values[:, 0]
        elif self.model.kernel_model.dofs.in_quaternion_joint[target.index]:
            raise StudyError(
                f"how is 'set' for q of {target.name!r}, a free or spherical joint; expected 'add', because its q "
                "contains a quaternion"
            )
        else:
            self._q[:, self.model.kernel_model.topology[TOPOLOGY_COORDINATE, target.index]] = values[:, 0]
            self._displacement[:, target.index] = 0.0

    def _apply_qd(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        self.qd[:, target.index] = changed(self.qd[:, target.index], values[:, 0], dispersion.how)

    def _apply_tau(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        self.tau[:, target.index] = changed(self.tau[:, target.index], values[:, 0], dispersion.how)

    def _apply_current(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        at = next(i for i, force in enumerate(self.forces) if isinstance(force, Current))
        velocity = list(_three(self.forces[at].velocity))
        for component, draws in zip(dispersion.component_indices, values.T, strict=True):
            velocity[component] = shifted(velocity[component], draws, dispersion.how)
        self.forces[at] = Current(tuple(velocity))

    def _apply_to_drive(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        given, name = self.drives[target.index], dispersion.parameter
        drive = given if name in OF_SAMPLED else controller_of(given)
        if name in ("reference", "signal"):
            new: Signal | np.ndarray = shifted(getattr(drive, name), values[:, 0], dispersion.how)
        else:
            new = changed(np.broadcast_to(getattr(drive, name), self.count), values[:, 0], dispersion.how)
        new_drive = replace(drive, **{name: new})
        self.drives[target.index] = new_drive if drive is given else replace(given, controller=new_drive)

    def _apply_to_encoder(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        """Change the encoders of a joint in all drives, so that equal encoders remain equal."""
        field = dispersion.parameter.removeprefix("encoder_")

        def change(encoder: Encoder) -> Encoder:
            if dof_index(self.model, "Encoder", encoder.joint, encoder.dof) != target.index:
                return encoder
            old = np.broadcast_to(getattr(encoder, field), self.count)
            changes: dict[str, Any] = {field: changed(old, values[:, 0], dispersion.how)}
            return replace(encoder, **changes)

        self.drives = [with_encoders(drive, change) for drive in self.drives]

    def _apply_to_wrench(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        wrench = self.forces[target.index]
        three = list(_three(getattr(wrench, dispersion.parameter)))
        for component, draws in zip(dispersion.component_indices, values.T, strict=True):
            three[component] = shifted(three[component], draws, dispersion.how)
        self.forces[target.index] = replace(wrench, **{dispersion.parameter: tuple(three)})

    def _apply_between_bodies(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        force, name = self.forces[target.index], dispersion.parameter
        field = name.removeprefix("spring_").removeprefix("bushing_")
        matrix = (6, 6) if PARAMETERS[name].owner == BUSHING else ()
        given = getattr(force, field)
        old = np.broadcast_to(np.zeros(matrix) if given is None else np.asarray(given), (self.count, *matrix))
        draws = values[:, 0].reshape(-1, *np.ones(len(matrix), int))
        self.forces[target.index] = replace(force, **{field: changed(old, draws, dispersion.how)})

    def _apply_dry_friction(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        """Scale all numbers of a DryFriction."""
        force = self.forces[target.index]
        fields = ("kinetic", "static", "kinetic_backward", "static_backward")
        given = {field: np.asarray(getattr(force, field)) for field in fields if getattr(force, field) is not None}
        self.forces[target.index] = replace(force, **{field: old * values[:, 0] for field, old in given.items()})

    def _apply_plane_normal(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        contact = self.forces[target.index]
        normal = self._rotations(dispersion, values) @ np.asarray(contact.plane_normal, float)[..., None]
        self.forces[target.index] = replace(contact, plane_normal=normal[..., 0])

    def _apply_to_contact(self, dispersion: Dispersion, target: Target, values: np.ndarray) -> None:
        """Change a number or a vector of dry friction, hard stops or a contact."""
        force, field = self.forces[target.index], contact_field(dispersion.parameter)
        given = getattr(force.with_defaults() if isinstance(force, DryFriction) else force, field)
        has_components = bool(PARAMETERS[dispersion.parameter].components)
        old = np.broadcast_to(given, (self.count, 3)) if has_components else np.broadcast_to(given, self.count)[:, None]
        new, columns = np.array(old, float), list(dispersion.component_indices) or [0]
        new[:, columns] = changed(new[:, columns], values, dispersion.how)
        self.forces[target.index] = replace(force, **{field: new if has_components else new[:, 0]})


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
    return replace(signal, coefficients=pieces * draws[:, None, None], waves=waves)


def _three(components: ThreeSignals) -> tuple[SignalLike, ...]:
    """Return the three component signals of a sequence of three or of an array (..., 3)."""
    return tuple(components) if len(components) == 3 else tuple(np.moveaxis(np.asarray(components), -1, 0))
