"""Laws of the forces of MJCF actuators, and drives of rbchain with these forces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..acting.drives import PID, OneJointDrive, PrescribedForce
from ..acting.inputs import Input
from ..acting.signals import SignalLike


class Law(NamedTuple):
    """The force of an actuator: the sum of the gains times its controls, plus forces of its length and velocity.

    The force is `constant` + `at_zero` + `by_length` times the length from q = 0 + `by_velocity` times its rate. The
    first `references` controls are references of the length, and the integral of their error has the factor
    `by_integral`. `at_zero` is the force of the length at q = 0, which is a part of this error. With a `lag` in s, a
    first-order lag delays the controls. `gain_by_length` and `gain_by_velocity` are the changes of `by_length` and
    `by_velocity` by the control.
    """

    gains: tuple[float, ...]
    constant: float
    by_length: float
    by_velocity: float
    references: int = 1
    by_integral: float = 0.0
    lag: float = 0.0
    at_zero: float = 0.0
    gain_by_length: float = 0.0
    gain_by_velocity: float = 0.0

    @property
    def is_servo(self) -> bool:
        """Whether the force depends on the length or its rate."""
        return any((self.by_length, self.by_velocity, self.gain_by_length, self.gain_by_velocity))


class JointForce(NamedTuple):
    """The force of an actuator at one degree of freedom of the model: `factor` times a force with a law.

    The length in the law is the position of the degree of freedom. The force of the law is clipped to the range from
    `lower` to `upper`.
    """

    joint: str
    dof: int | None
    factor: float
    law: Law
    lower: float
    upper: float


def drives_of(name: str, controls: list[Input], force: JointForce) -> list[OneJointDrive]:
    """Return the drives with a joint force, which depends on controls.

    A range that is not symmetric is a symmetric range around its middle, which becomes a constant force.
    """
    law = force.law
    lower, upper = sorted([force.factor * force.lower, force.factor * force.upper])
    middle = 0.5 * (lower + upper) if math.isfinite(upper) else 0.0
    limit, constant, shift = upper - middle, force.factor * law.constant - middle, force.factor * law.at_zero
    if law.gain_by_length or law.gain_by_velocity:
        return _drives_with_gains(name, controls[0], force, middle, limit)
    kp, kd, ki = (abs(force.factor * slope) for slope in (law.by_length, law.by_velocity, law.by_integral))
    terms = [(control, force.factor * gain) for control, gain in zip(controls, law.gains, strict=True)]
    place: dict[str, Any] = {"joint": force.joint, "dof": force.dof, "name": name}
    found: list[OneJointDrive] = [PrescribedForce(force.joint, middle, dof=force.dof)] if middle else []
    if not (kp or kd or law.lag):
        return [PrescribedForce(signal=_signal(terms, constant), limit=limit, **place), *found]
    references = law.references if kp else 0
    if kp and not ki:  # only the error of the length is integrated
        constant, shift = 0.0, shift + constant
    reference = _signal([(control, gain / kp) for control, gain in terms[:references]], shift / kp) if kp else 0.0
    if law.lag and not kp and constant:  # the lag does not delay it, and nothing clips it
        found.append(PrescribedForce(force.joint, constant, dof=force.dof))
        constant = 0.0
    feedforward = _signal(terms[references:], constant)
    place |= {"feedforward_time_constant": law.lag} if law.lag else {}
    gains: dict[str, Any] = {"kp": kp, "ki": ki, "kd": kd, "limit": limit}
    return [PID(reference=reference, feedforward=feedforward, **gains, **place), *found]


def _drives_with_gains(
    name: str, control: Input, force: JointForce, middle: float, limit: float
) -> list[OneJointDrive]:
    """Return the drives with a joint force whose stiffness or damping depends on the control."""
    law = force.law
    place: dict[str, Any] = {"joint": force.joint, "dof": force.dof}
    pairs = (law.by_length, law.gain_by_length), (law.by_velocity, law.gain_by_velocity)
    kp, kd = (_multiple(control, -force.factor * gain, -force.factor * slope) for slope, gain in pairs)
    constant = force.factor * (law.constant + law.at_zero) - middle
    feedforward = _multiple(control, force.factor * law.gains[0], constant)
    drive = PID(reference=0.0, kp=kp, kd=kd, feedforward=feedforward, limit=limit, name=name, **place)
    return [drive, *([PrescribedForce(signal=middle, **place)] if middle else [])]


def _signal(terms: Sequence[tuple[Input, float]], constant: float) -> SignalLike:
    """Return the sum of the controls times their factors, plus a constant."""
    parts: list[Any] = [control if factor == 1.0 else factor * control for control, factor in terms]
    if constant or not parts:
        parts.append(constant)
    return sum(parts[1:], parts[0])


def _multiple(control: Input, factor: float, constant: float) -> Any:
    """Return a multiple of a control plus a constant; a number if the factor is zero."""
    return _signal([(control, factor)] if factor else [], constant)
