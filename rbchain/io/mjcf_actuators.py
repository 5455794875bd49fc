"""Actuators of an MJCF file as drives of rbchain. Their controls become inputs with the names of the actuators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..acting.drives import PID, OneJointDrive, PrescribedForce
from ..acting.inputs import Input
from ..acting.signals import SignalLike
from .mjcf_constraints import active_equalities, joints_of_tendon
from .mjcf_source import Source
from .names import Names

#: Name in the model of each of MuJoCo's joints, and its first degree of freedom there; None if there is only one.
Dofs = Mapping[int, tuple[str, int | None]]


class JointForce(NamedTuple):
    """The force of an actuator at one degree of freedom of the model: `factor` times a clipped force.

    The clipped force is `by_control` times the control, plus `constant`, `by_position` q and `by_velocity` qd. It is
    clipped to the range from `lower` to `upper`.
    """

    joint: str
    dof: int | None
    factor: float
    by_control: float
    constant: float
    by_position: float
    by_velocity: float
    lower: float
    upper: float


class Actuators:
    """The actuators of a file that act.

    Attributes
    ----------
    drives : list of drives
        The drives of the actuators that rbchain represents.
    left_out : dict of str and list of str
        The labels of the other actuators, by the reasons.
    unclipped : list of int
        MuJoCo's joints whose range of actuator forces does not act on the drives.
    controls : dict of int and str
        The name of the input of each actuator that rbchain represents.
    """

    def __init__(self, source: Source, dofs: Dofs) -> None:
        self._source, self._dofs = source, dofs
        model = source.model
        self.drives: list[OneJointDrive] = []
        self.left_out: dict[str, list[str]] = {}
        self.unclipped: list[int] = []
        self.controls: dict[int, str] = {}
        count = len(model.actuator_trntype)
        names = Names(source.name("actuator", i) for i in range(count))
        acting = [] if source.disabled("actuation") else [i for i in range(count) if not self._is_in_disabled_group(i)]
        of_joints = [int(model.actuator_trnid[i, 0]) for i in acting if self._is_of_joint(i)]
        tendons = [int(model.actuator_trnid[i, 0]) for i in acting if self._transmission(i) == "TENDON"]
        pulled = [joint for tendon in tendons for joint, _ in joints_of_tendon(source, tendon) or ()]
        for i in acting:
            reason = self._reason(i)
            if reason:
                self.left_out.setdefault(reason, []).append(source.label("actuator", i))
                continue
            own = source.name("joint", int(model.actuator_trnid[i, 0])) if self._is_of_joint(i) else ""
            name = source.name("actuator", i) or names.new(own or f"actuator{i}")
            self.controls[i] = name
            forces, control = self._joint_forces(i, [*of_joints, *pulled]), self._input(i, name)
            for number, force in enumerate(forces, 1):
                self.drives += _drives(name if len(forces) == 1 else f"{name}_{number}", control, force)
        limited = np.flatnonzero(model.jnt_actfrclimited).tolist()
        self.unclipped = [j for j in limited if [*of_joints, *pulled].count(j) > 1]

    def _is_in_disabled_group(self, i: int) -> bool:
        model = self._source.model
        group = int(model.actuator_group[i])
        return 0 <= group < 31 and bool(int(model.opt.disableactuator) >> group & 1)

    def _transmission(self, i: int) -> str:
        """Return the kind of the transmission of an actuator, such as "JOINT"."""
        found = self._source.model.actuator_trntype[i]
        kinds = ("JOINT", "JOINTINPARENT", "TENDON", "SITE", "BODY", "SLIDERCRANK")
        return next((kind for kind in kinds if found == self._source.kind("Trn", f"mjTRN_{kind}")), "other")

    def _is_of_joint(self, i: int) -> bool:
        return self._transmission(i) in ("JOINT", "JOINTINPARENT")

    def _numbers(self, i: int) -> tuple[float, float, float, float]:
        """Return gain, constant, factor of the length, and factor of the velocity in the force of an actuator."""
        model = self._source.model
        has_bias = model.actuator_biastype[i] == self._source.kind("Bias", "mjBIAS_AFFINE")
        constant, by_length, by_velocity = model.actuator_biasprm[i, :3].tolist() if has_bias else (0.0, 0.0, 0.0)
        return float(model.actuator_gainprm[i, 0]), constant, by_length, by_velocity

    def _reason(self, i: int) -> str:
        """Return why rbchain does not represent an actuator; an empty text if it does."""
        source, model, kind = self._source, self._source.model, self._transmission(i)
        count = len(model.actuator_trntype)
        gains = {source.kind("Gain", f"mjGAIN_{name}"): name for name in ("FIXED", "AFFINE")}
        biases = [source.kind("Bias", f"mjBIAS_{name}") for name in ("NONE", "AFFINE")]
        delay = source.field("actuator_delay", count)[i]
        controls = getattr(model, "actuator_ctrlnum", np.ones(count))[i]
        if model.actuator_plugin[i] >= 0:
            return "a plugin"
        if model.actuator_dyntype[i] != source.kind("Dyn", "mjDYN_NONE"):
            return "activation dynamics"
        gain, bias, is_affine = model.actuator_gaintype[i], model.actuator_biastype[i], True
        if gain in gains and gains[gain] == "AFFINE":
            is_affine = not model.actuator_gainprm[i, 1:3].any()
        if gain not in gains or bias not in biases or not is_affine:
            return "its gain is not constant, or its force is not linear"
        if delay or controls != 1:
            return "delayed controls" if delay else "several controls"
        _, _, by_length, by_velocity = self._numbers(i)
        if by_length > 0.0 or by_velocity > 0.0:
            return "its force grows with the position or the velocity"
        target = int(model.actuator_trnid[i, 0])
        if kind == "TENDON":
            return self._reason_of_tendon(target, bool(by_length or by_velocity))
        if kind not in ("JOINT", "JOINTINPARENT"):
            return "its transmission is not a joint or a tendon"
        has_angle = source.joint_type(target) in ("hinge", "slide")
        if not has_angle and (kind != "JOINT" or source.joint_type(target) == "free" or by_length or by_velocity):
            return f"its transmission is a {source.joint_type(target)} joint"
        return ""

    def _reason_of_tendon(self, tendon: int, is_servo: bool) -> str:
        """Return why rbchain does not represent an actuator of a tendon; an empty text if it does."""
        source, model, joints = self._source, self._source.model, joints_of_tendon(self._source, tendon)
        if joints is None:
            return "a spatial tendon"
        if source.field("tendon_actfrclimited", model.ntendon)[tendon]:
            return "a tendon with a range of forces"
        if len(joints) > 1 and is_servo:
            if not self._coupled(joints):
                return "its force depends on the length of a tendon of several joints"
            if any(model.jnt_actfrclimited[joint] for joint, _ in joints):
                return "actuatorfrcrange limits coupled joints of its tendon"
        return ""

    def _input(self, i: int, name: str) -> Input:
        model = self._source.model
        if not model.actuator_ctrllimited[i] or self._source.disabled("clampctrl"):
            return Input(name)
        lower, upper = model.actuator_ctrlrange[i].tolist()
        return Input(name, min(max(0.0, lower), upper), lower, upper)

    def _joint_forces(self, i: int, driven: list[int]) -> list[JointForce]:
        """Return the forces of an actuator at degrees of freedom of the model.

        The range of all actuator forces of a joint acts if the joint is only once in `driven`.
        """
        source, model = self._source, self._source.model
        gain, constant, by_length, by_velocity = self._numbers(i)
        target, first = int(model.actuator_trnid[i, 0]), int(getattr(model, "actuator_outadr", range(i + 1))[i])
        gear, ranges = model.actuator_gear[first].tolist(), (-np.inf, np.inf)
        if model.actuator_forcelimited[i]:
            ranges = tuple(model.actuator_forcerange[i].tolist())
        length = 0.0  # at q = 0
        if self._transmission(i) == "TENDON":
            joints = joints_of_tendon(source, target) or []
            length = sum(factor * self._reference(joint) for joint, factor in joints)
            coupled = self._coupled(joints) if len(joints) > 1 and (by_length or by_velocity) else None
            if coupled is not None:
                joints, length = [coupled[:2]], length + coupled[2]
            moments = [(joint, 0, gear[0] * factor) for joint, factor in joints]
        elif source.joint_type(target) == "ball":
            moments = [(target, dof, gear[dof]) for dof in range(3)]
        else:
            moments, length = [(target, 0, gear[0])], self._reference(target)
        constant += by_length * gear[0] * length
        found = []
        for joint, dof, moment in moments:
            (name, start), (lower, upper) = self._dofs[joint], ranges
            if model.jnt_actfrclimited[joint] and driven.count(joint) == 1 and moment:
                lower, upper = np.clip(ranges, *np.sort(model.jnt_actfrcrange[joint] / moment)).tolist()
            place = name, None if start is None else start + dof
            slopes = by_length * moment, by_velocity * moment
            found.append(JointForce(*place, moment, gain, constant, *slopes, lower, upper))
        return [force for force in found if force.factor]

    def _reference(self, joint: int) -> float:
        """Return MuJoCo's position of a hinge or slide at q = 0."""
        return float(self._source.model.qpos0[self._source.model.jnt_qposadr[joint]])

    def _coupled(self, joints: Sequence[tuple[int, float]]) -> tuple[int, float, float] | None:
        """Return a joint to which linear equality constraints couple all joints of a fixed tendon; None without one.

        The length of the tendon is a factor times its position, plus a constant. Both are behind the joint. Because the
        forces of constraints do no work, a force at this joint acts as the forces at all joints of the tendon.
        """
        source, model = self._source, self._source.model
        ratios: dict[tuple[int, int], tuple[float, float]] = {}  # joint = offset + ratio times the other joint
        for e in active_equalities(source):
            values = model.eq_data[e]
            pair = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
            is_linear = source.equality_type(e) == "joint" and values[1] and not values[2:5].any()
            # as in `constraint_of`
            if is_linear and all(joint in self._dofs and self._dofs[joint][1] is None for joint in pair):
                ratios[pair] = float(values[0]), float(values[1])
                ratios[pair[::-1]] = float(-values[0] / values[1]), float(1.0 / values[1])
        for first, own in joints:
            others = [(factor, ratios.get((joint, first))) for joint, factor in joints if joint != first]
            couplings = [(factor, *coupling) for factor, coupling in others if coupling is not None]
            if len(couplings) == len(others):
                total = own + sum(factor * ratio for factor, _, ratio in couplings)
                return first, total, sum(factor * offset for factor, offset, _ in couplings)
        return None


def _drives(name: str, control: Input, force: JointForce) -> list[OneJointDrive]:
    """Return the drives with a joint force, which depends on a control.

    A range that is not symmetric is a symmetric range around its middle, which becomes a constant force.
    """
    lower, upper = sorted([force.factor * force.lower, force.factor * force.upper])
    middle = 0.5 * (lower + upper) if math.isfinite(upper) else 0.0
    limit, by_control = upper - middle, force.factor * force.by_control
    constant = force.factor * force.constant - middle
    kp, kd = abs(force.factor * force.by_position), abs(force.factor * force.by_velocity)
    place: dict[str, Any] = {"joint": force.joint, "dof": force.dof, "limit": limit, "name": name}
    if not kp and not kd:
        found: list[OneJointDrive] = [PrescribedForce(signal=_signal(control, by_control, constant), **place)]
    elif kp:
        found = [PID(reference=_signal(control, by_control / kp, constant / kp), kp=kp, kd=kd, **place)]
    else:
        found = [PID(reference=0.0, kp=0.0, kd=kd, feedforward=_signal(control, by_control, constant), **place)]
    return [*found, PrescribedForce(force.joint, middle, dof=force.dof)] if middle else found


def _signal(control: Input, factor: float, constant: float) -> SignalLike:
    """Return factor times the control, plus a constant."""
    return control if factor == 1.0 and not constant else factor * control + constant
