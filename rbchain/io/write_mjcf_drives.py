"""Drives as actuators of an MJCF file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from ..acting.drives import PID, PrescribedForce
from ..acting.inputs import Input, InputTerm
from ..acting.signals import Signal, as_signal
from .mjcf_source import UNLIMITED
from .xml_writing import number_text, unused_name


class Multiple(NamedTuple):
    """A multiple of an input plus a constant."""

    constant: float
    factor: float
    term: InputTerm | None


class Actuator(NamedTuple):
    """A drive as an actuator: the force (gain[0] + gain[1] q + gain[2] qd) u + bias[0] + bias[1] q + bias[2] qd.

    The input is u, or zero without one. The force is clipped to `limit`. With a `lag` in s, a first-order lag delays u.
    """

    joint: str
    dof: int
    name: str
    gain: tuple[float, float, float]
    bias: tuple[float, float, float]
    limit: float
    lag: float
    term: InputTerm | None


def actuators_of(drives: Sequence[Any], joints: Collection[str]) -> tuple[list[Actuator], list[str]]:
    """Return the drives that are actuators in MJCF, and the labels of the others.

    `joints` are the names of joints without quaternions. Drives of other joints are among the others. Actuators have
    separate controls, so drives with a common input are also among them.
    """
    found = [(drive, _actuator(drive) if drive.joint in joints else None) for drive in drives]
    names = [actuator.term.name for _, actuator in found if actuator is not None and actuator.term is not None]
    written = [
        actuator is not None and (actuator.term is None or names.count(actuator.term.name) == 1)
        for _, actuator in found
    ]
    actuators = [a for (_, a), is_written in zip(found, written, strict=True) if is_written and a is not None]
    return actuators, [drive.label() for (drive, _), is_written in zip(found, written, strict=True) if not is_written]


def _actuator(drive: Any) -> Actuator | None:
    """Return a drive as an actuator, or None if MJCF does not have it."""
    if not isinstance(drive, PrescribedForce | PID) or drive.gravity_compensation:
        return None
    place, limit = (drive.joint, drive.dof or 0, drive.name or drive.joint), _number(drive.limit)
    if isinstance(drive, PrescribedForce):
        parts = [_multiple(x) for x in (drive.signal, 0.0, 0.0, 0.0)]
        ki = lag = 0.0
    else:
        follows = isinstance(drive.reference, str)
        parts = [_multiple(x) for x in (drive.feedforward, 0.0 if follows else drive.reference, drive.kp, drive.kd)]
        ki, lag = _number(drive.ki), _number(drive.feedforward_time_constant)
        if follows:
            return None
    terms = [part.term for part in parts if part is not None and part.term is not None]
    force, reference, kp, kd = parts
    if force is None or reference is None or kp is None or kd is None or ki != 0.0 or not (lag >= 0.0 and limit >= 0.0):
        return None
    has_square = bool(reference.factor and kp.factor)
    is_lagged = lag and (force.constant or reference.factor or kp.factor or kd.factor)
    if has_square or is_lagged or any(_range(term) != _range(terms[0]) for term in terms):
        return None
    by_input = force.factor + kp.constant * reference.factor + kp.factor * reference.constant
    constant = force.constant + kp.constant * reference.constant
    gain, bias = (by_input, -kp.factor, -kd.factor), (constant, -kp.constant, -kd.constant)
    return Actuator(*place, gain, bias, limit, lag, terms[0] if terms else None)


def _range(term: InputTerm) -> tuple[str, float, float]:
    return term.name, term.lower, term.upper


def _number(value: Any) -> float:
    """Return a number that all samples share; NaN for others."""
    return float(value) if np.ndim(value) == 0 else np.nan


def _multiple(value: Any) -> Multiple | None:
    """Return a signal or a gain as a multiple of one input plus a constant; None for other signals."""
    if not isinstance(value, Signal | Input) and np.ndim(value):
        return None
    try:
        signal = as_signal("signal", value)
    except ValueError:  # a random signal
        return None
    if not signal.is_constant or signal.batch_shape or np.isfinite(signal.end) or len(signal.inputs) > 1:
        return None
    constant = float(signal.coefficients[0, 0])
    if not signal.inputs:
        return Multiple(constant, 0.0, None)
    (term,) = signal.inputs
    return Multiple(constant, float(term.factor), term)


def add_actuators(root: Any, actuators: Sequence[Actuator], joints: Mapping[tuple[str, int], str]) -> None:
    """Write actuators. `joints` has the name of MuJoCo's joint for each joint and degree of freedom in it."""
    section = etree.SubElement(root, "actuator")
    names = {actuator.term.name for actuator in actuators if actuator.term is not None}
    for actuator in actuators:
        name = unused_name(actuator.name, names) if actuator.term is None else actuator.term.name
        element = etree.SubElement(section, "general", name=name, joint=joints[actuator.joint, actuator.dof])
        element.set("gaintype", "affine" if any(actuator.gain[1:]) else "fixed")
        element.set("gainprm", number_text(actuator.gain))
        element.attrib.update({"biastype": "affine", "biasprm": number_text(actuator.bias)})
        if actuator.lag:
            element.attrib.update({"dyntype": "filter", "dynprm": repr(actuator.lag)})
        if np.isfinite(actuator.limit):
            element.set("forcerange", number_text((-actuator.limit, actuator.limit)))
        ends = (-np.inf, np.inf) if actuator.term is None else actuator.term[3:]
        if np.isfinite(ends).any():
            element.set("ctrlrange", number_text(np.clip(ends, -UNLIMITED, UNLIMITED)))
