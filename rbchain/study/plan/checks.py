"""Checks of a study's settings, drives, forces and events against its model, before anything is compiled."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from ...acting.actuators import Actuator
from ...acting.coordinates import dof_index
from ...acting.drives import PRESCRIBED
from ...acting.flatten import flatten_actions
from ...acting.random_actions import random_signals_of
from ...acting.sampled import controller_of, has_noise, is_in_cascade
from ...common.real_arrays import FLOAT64
from ...errors import StudyError
from ...simulate.methods import METHODS
from ...simulate.settings import refuse_contacts, refuse_events
from ..describe.at_rest import cut_of, refuse_unsteady
from ..describe.description import Simulation
from ..describe.kinds_of_quantities import OF_MODES
from ..describe.measures import Measure
from ..describe.places import errors_at
from ..describe.quantities import dof_of
from .nominal import Nominal


def check_settings(nominal: Nominal) -> None:
    """Raise a StudyError if `Model.simulate` does not accept the settings. The check simulates a batch of 0 samples."""
    simulate, model = nominal.simulation, nominal.model
    if not simulate.is_adaptive and simulate.step is None:
        raise StudyError(f"simulate.step is missing; method {simulate.method!r} needs a step in s, such as step = 1e-3")
    if simulate.is_adaptive and simulate.step is not None:
        raise StudyError(
            f"simulate.step is {simulate.step}, but method {simulate.method!r} chooses its own steps; remove step, or "
            "set method to 'rk4' or 'implicit'"
        )
    fields, used = Simulation.model_fields, simulate.settings()
    unused = [name for name in ("atol", "max_step", "max_steps", "rtol") if name not in used]
    given = [name for name in unused if getattr(simulate, name) != fields[name].default]
    if "max_steps" in given:
        raise StudyError(
            f"simulate.max_steps is {simulate.max_steps}, but step determines the number of steps of method "
            f"{simulate.method!r}; remove max_steps"
        )
    if given:
        raise StudyError(
            f"simulate.{given[0]} is {getattr(simulate, given[0])}, but method {simulate.method!r} has steps "
            f"of fixed length and no error control; remove {' and '.join(given)}, or set method to 'rk45' or "
            "'rosenbrock'"
        )
    if simulate.assembly is not None:
        if not model.constraint_names:
            raise StudyError(
                f"simulate.assemble is given, but model {model.name!r} has no constraints; remove assemble"
            )
        with errors_at("simulate.assemble"):
            model.assemble(np.zeros((0, model.nq)), fixed=simulate.assembly.fixed)
    no_states = np.zeros((0, model.nq)), np.zeros((0, model.nv))
    settings = simulate.settings() | {"save_at": nominal.times, "energy_error": nominal.energy_error}
    with errors_at("simulate"):
        model.simulate(*no_states, simulate.duration, **settings)


def check_actions(nominal: Nominal) -> None:
    """Raise a StudyError if drives, forces or events do not fit the model, each alone or all together."""
    simulate = nominal.simulation
    method = METHODS[simulate.method]

    def check(place: str, drives: Sequence[Any] = (), forces: Sequence[Any] = (), events: Sequence[Any] = ()) -> None:
        settings = (1,), simulate.duration, FLOAT64
        with errors_at(place):
            flatten_actions(nominal.model, *settings, (drives, forces, events), method.is_implicit_in_joints)

    with errors_at("drives and forces"):
        drives, forces = nominal.actions(np.zeros(1, np.int64))
    for kind, actions in {"drives": drives, "forces": forces, "events": nominal.events}.items():
        for i, action in enumerate(actions):
            if not (isinstance(action, Actuator) or is_in_cascade(action)):  # they belong to another drive
                check(f"{kind}[{i}]", **{kind: (action,)})
        check(kind, **{kind: tuple(actions)})
    with errors_at("forces"):
        refuse_contacts(nominal.forces, method)
    with errors_at("events"):
        refuse_events(nominal.events, method)
    refuse_driven(nominal, "simulate.tau", np.flatnonzero(nominal.tau))


def refuse_driven(nominal: Nominal, place: str, forced: Container[int]) -> None:
    """Raise a StudyError if a drive prescribes the motion of one of the dofs `forced` with a constant joint force."""
    for i, drive in enumerate(nominal.drives):
        if isinstance(drive, PRESCRIBED) and dof_index(nominal.model, "drive", drive.joint, drive.dof) in forced:
            raise StudyError(
                f"{place}: drives[{i}] prescribes the motion of joint {drive.joint!r}, so a constant joint force has "
                "no effect. Remove the drive, or set the joint force to 0"
            )


def refuse_saturation_with_force(nominal: Nominal, measure: Measure, place: str, forced: Container[int]) -> None:
    """Raise a StudyError if a time in saturation belongs to one of the dofs `forced` with a constant joint force."""
    if measure.over == "time_in_saturation" and dof_of(measure, nominal.model) in forced:
        raise StudyError(
            f"{place}: over is 'time_in_saturation', but joint {measure.joint!r} has a constant joint force, so its "
            "torque is not only the force of the drive with the limit. Set the joint force to 0, or use a PID with a "
            "feedforward"
        )


def check_at_rest(nominal: Nominal, measure: Measure) -> None:
    """Raise an error if the linear analysis does not support the study. The check analyzes a batch of 0 samples."""
    if not measure.is_at_rest:
        return
    model = nominal.model
    refuse_unsteady(nominal.drives, nominal.forces)
    acting: dict[str, Any] = {"drives": nominal.drives, "forces": nominal.forces, "t": nominal.simulation.duration}
    no_states = np.zeros((0, model.nq))
    if measure.quantity == "gain_margin":  # it also supports sampled controllers
        model.margins(no_states, cut=cut_of(measure), **acting)
        acting["drives"] = [controller_of(drive) for drive in nominal.drives]
    model.equilibrium(no_states, **acting)
    if measure.quantity in OF_MODES and not model.constraint_names:  # loops of 0 samples have no independent dofs
        states = len(model.linearize(no_states, **acting).states)
        if measure.mode >= states:
            raise StudyError(
                f"mode is {measure.mode}, but the linear model has {states} states, so it has fewer modes; "
                f"expected a number from 0 to {states - 1}"
            )


def refuse_noise(nominal: Nominal, varied: Container[str]) -> None:
    """Raise a StudyError if a measure depends on random signals or noise, and not only on the parameters `varied`."""
    has_signals = random_signals_of(nominal.drives) or random_signals_of(nominal.forces)
    if has_signals or has_noise(nominal.drives) or "encoder_noise" in varied or "velocity_sensor_noise" in varied:
        raise StudyError(
            "the study has random signals or sensor noise, whose effect on the measure does not belong to a "
            "dispersion; expected a study without noise and waves. Remove them, or replace random signals by the "
            "signals of one sample, signal(duration)"
        )
