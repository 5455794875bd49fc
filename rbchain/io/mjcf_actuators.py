"""Actuators of an MJCF file as drives of rbchain. Their controls become inputs with the names of the actuators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..acting.drives import OneJointDrive
from ..acting.inputs import Input
from .mjcf_constraints import active_equalities, joints_of_tendon
from .mjcf_laws import JointForce, Law, drives_of
from .mjcf_source import Source
from .names import Names

#: Types of activations, gains and biases that rbchain knows.
KINDS = {
    "Dyn": ("NONE", "FILTER", "FILTEREXACT", "INTEGRATOR", "MUSCLE"),
    "Gain": ("FIXED", "AFFINE", "PID", "DCMOTOR"),
    "Bias": ("NONE", "AFFINE", "DCMOTOR"),
}
#: Why rbchain does not represent actuators with activations of some types.
NO_ACTIVATION = {
    "INTEGRATOR": "its activation integrates the control; use rb.PID with the integrated reference",
    "MUSCLE": "its activation is the activation of a muscle; use rb.Sampled with a function",
    "FILTER": "actrange clips its lagged control; remove actrange",
    "FILTEREXACT": "actrange clips its lagged control; remove actrange",
}

#: Largest time constant in s that is no lag: MuJoCo's steps replace smaller ones by it.
NO_LAG = 1e-15
#: Widest range of forces, N m or N, around a middle that is not zero. The round-off of the middle is 1e-8 N m or N.
WIDEST_RANGE = 1e8

#: Name in the model of each of MuJoCo's joints, and its first degree of freedom there; None if there is only one.
Dofs = Mapping[int, tuple[str, int | None]]


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
    controls : dict of str and int
        The inputs of the actuators that rbchain represents, and their places among MuJoCo's controls.
    """

    def __init__(self, source: Source, dofs: Dofs) -> None:
        self._source, self._dofs = source, dofs
        model = source.model
        self.drives: list[OneJointDrive] = []
        self.left_out: dict[str, list[str]] = {}
        self.unclipped: list[int] = []
        self.controls: dict[str, int] = {}
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
            forces, controls = self._joint_forces(i, [*of_joints, *pulled]), self._inputs(i, name, names)
            for number, force in enumerate(forces, 1):
                self.drives += drives_of(name if len(forces) == 1 else f"{name}_{number}", controls, force)
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

    def _parameters(self, i: int) -> dict[str, np.ndarray]:
        """Return the parameters of gain, bias and activation of an actuator."""
        model = self._source.model
        return {name: getattr(model, f"actuator_{name}prm")[i] for name in ("gain", "bias", "dyn")}

    def _type(self, i: int, what: str, enum: str) -> str:
        """Return the type of the gain, the bias or the activation of an actuator, such as "FIXED"."""
        found = getattr(self._source.model, f"actuator_{what}type")[i]
        return next((kind for kind in KINDS[enum] if found == self._source.kind(enum, f"mj{enum.upper()}_{kind}")), "")

    def _law(self, i: int) -> Law | str:
        """Return the law of the force of an actuator, or why rbchain does not represent it."""
        gain, bias, activation = (
            self._type(i, "gain", "Gain"),
            self._type(i, "bias", "Bias"),
            self._type(i, "dyn", "Dyn"),
        )
        of, lag = self._parameters(i), 0.0
        constant, by_length, by_velocity = of["bias"][:3].tolist() if bias == "AFFINE" else (0.0, 0.0, 0.0)
        if gain == "DCMOTOR":
            return self._law_of_dc_motor(i)
        if gain == "PID":
            return self._law_of_pid(i, constant, by_length, by_velocity)
        if activation in ("FILTER", "FILTEREXACT") and not self._is_clipped(i):
            lag = float(of["dyn"][0]) if of["dyn"][0] > NO_LAG else 0.0
        elif activation != "NONE":
            return NO_ACTIVATION.get(activation, "its activation dynamics")
        if gain not in ("FIXED", "AFFINE") or bias not in ("NONE", "AFFINE"):
            return "its force is not linear; use rb.UserForces"
        by_control = of["gain"][1:3].tolist() if gain == "AFFINE" else [0.0, 0.0]
        if lag and any(by_control):
            return "a lag, and a gain that depends on the position or velocity; use rb.UserForces"
        references = 0 if lag or any(by_control) else 1
        return Law((float(of["gain"][0]),), constant, by_length, by_velocity, references, 0.0, lag, 0.0, *by_control)

    def _is_clipped(self, i: int) -> bool:
        """Whether the range of the activation of an actuator can clip its lagged control."""
        model, first = self._source.model, self._first_control(i)
        if not model.actuator_actlimited[i]:
            return False
        lower, upper = model.actuator_actrange[i].tolist()
        least, most = self._range_of_control(first)
        return not (lower <= min(0.0, least) and max(0.0, most) <= upper)

    def _law_of_dc_motor(self, i: int) -> Law | str:
        """Return the law of a motor with a resistance R and a constant K: K u / R - K^2 qd / R, for the voltage u."""
        of = self._parameters(i)
        resistance, constant = of["gain"][:2].tolist()
        others = [of["gain"][2:], of["bias"], of["dyn"]]
        if self._source.model.actuator_actnum[i] or any(values.any() for values in others) or not resistance > 0.0:
            return "a dcmotor with more than resistance and motorconst; use rb.UserForces"
        return Law((constant / resistance,), 0.0, 0.0, -(constant**2) / resistance)

    def _law_of_pid(self, i: int, constant: float, by_length: float, by_velocity: float) -> Law | str:
        """Return the law of a PID controller, whose controls are some of a position, a velocity and a force."""
        source, of = self._source, self._parameters(i)
        bits = int(source.field("actuator_ctrlspec", i + 1)[i])
        gains = (-by_length, -by_velocity, 1.0)
        used = tuple(gain for number, gain in enumerate(gains) if bits >> number & 1)
        integral = float(of["gain"][0])
        if of["dyn"].any() or of["gain"][1:].any():
            return "a pid with imax or slewmax; use rb.Sampled with a function"
        if integral and not by_length < 0.0:
            return "a pid with ki and without kp; use rb.Sampled with a function"
        return Law(used, constant, by_length, by_velocity, references=bits & 1, by_integral=integral)

    def _first_control(self, i: int) -> int:
        """Return the place of the first control of an actuator among MuJoCo's controls."""
        return int(getattr(self._source.model, "actuator_ctrladr", range(i + 1))[i])

    def _reason(self, i: int) -> str:
        """Return why rbchain does not represent an actuator; an empty text if it does."""
        source, model, kind = self._source, self._source.model, self._transmission(i)
        count = len(model.actuator_trntype)
        if model.actuator_plugin[i] >= 0:
            return "a plugin"
        law = self._law(i)
        if isinstance(law, str):
            return law
        if source.field("actuator_delay", count)[i]:
            return "delayed controls; use rb.Sampled with a delay"
        if len(law.gains) != getattr(model, "actuator_ctrlnum", np.ones(count))[i]:
            return "several controls"
        if self._largest_slope(i, law) > 0.0:
            return "its force grows with the position or the velocity; use rb.UserForces"
        if law.lag and not law.by_length and self._is_clipped_around(i, law.constant):
            return "a lag, and a range of forces that is not symmetric around its constant force; use rb.UserForces"
        if any(lower != -upper and not upper - lower <= WIDEST_RANGE for lower, upper in self._ranges(i)):
            return f"a range of forces that is not symmetric and wider than {WIDEST_RANGE:g}; use a smaller forcerange"
        target, is_servo = int(model.actuator_trnid[i, 0]), law.is_servo
        if kind == "TENDON":
            return self._reason_of_tendon(target, is_servo)
        if kind not in ("JOINT", "JOINTINPARENT"):
            return "its transmission is not a joint or a tendon; use rb.Wrench"
        has_angle = source.joint_type(target) in ("hinge", "slide")
        if not has_angle and (kind != "JOINT" or source.joint_type(target) == "free" or is_servo or law.lag):
            return f"its transmission is a {source.joint_type(target)} joint; use rb.PrescribedForce or rb.UserForces"
        return ""

    def _largest_slope(self, i: int, law: Law) -> float:
        """Return the largest derivative of a force by the length or its rate, for all possible controls."""
        lower, upper = self._range_of_control(self._first_control(i))
        pairs = (law.by_length, law.gain_by_length), (law.by_velocity, law.gain_by_velocity)
        return max(slope + (max(gain * lower, gain * upper) if gain else 0.0) for slope, gain in pairs)

    def _range_of_control(self, at: int) -> tuple[float, float]:
        """Return the range to which MuJoCo clips a control."""
        model = self._source.model
        if not model.actuator_ctrllimited[at] or self._source.disabled("clampctrl"):
            return -np.inf, np.inf
        lower, upper = model.actuator_ctrlrange[at].tolist()
        return lower, upper

    def _is_clipped_around(self, i: int, constant: float) -> bool:
        """Whether a range of the forces of an actuator, or of its joints, is not symmetric, or `constant` is not zero.

        Without a range, the result is False.
        """
        return any(constant or lower != -upper for lower, upper in self._ranges(i))

    def _ranges(self, i: int) -> list[tuple[float, float]]:
        """Return the ranges of the forces of an actuator and of its joints."""
        model = self._source.model
        ranges = [model.actuator_forcerange[i]] if model.actuator_forcelimited[i] else []
        ranges += [model.jnt_actfrcrange[joint] for joint in self._driven(i) if model.jnt_actfrclimited[joint]]
        return [(float(lower), float(upper)) for lower, upper in ranges]

    def _driven(self, i: int) -> list[int]:
        """Return MuJoCo's joints on which an actuator acts."""
        target = int(self._source.model.actuator_trnid[i, 0])
        if self._transmission(i) == "TENDON":
            return [joint for joint, _ in joints_of_tendon(self._source, target) or ()]
        return [target] if self._is_of_joint(i) else []

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

    def _inputs(self, i: int, name: str, names: Names) -> list[Input]:
        """Return the inputs of an actuator. The second control of a PID controller is a velocity, the third a force."""
        first = self._first_control(i)
        bits = int(self._source.field("actuator_ctrlspec", i + 1)[i]) if self._type(i, "gain", "Gain") == "PID" else 1
        kinds = [kind for number, kind in enumerate(("", "velocity", "force")) if bits >> number & 1]
        found = []
        for number, kind in enumerate(kinds):
            own = names.new(f"{name}_{kind}") if number else name
            self.controls[own] = at = first + number
            lower, upper = self._range_of_control(at)
            found.append(Input(own, min(max(0.0, lower), upper), lower, upper))
        return found

    def _joint_forces(self, i: int, driven: list[int]) -> list[JointForce]:
        """Return the forces of an actuator at degrees of freedom of the model.

        The range of all actuator forces of a joint acts if the joint is only once in `driven`.
        """
        source, model = self._source, self._source.model
        law = self._law(i)
        assert isinstance(law, Law)  # because `_reason` found none
        target, first = int(model.actuator_trnid[i, 0]), int(getattr(model, "actuator_outadr", range(i + 1))[i])
        gear, ranges = model.actuator_gear[first].tolist(), (-np.inf, np.inf)
        if model.actuator_forcelimited[i]:
            ranges = tuple(model.actuator_forcerange[i].tolist())
        length = 0.0  # at q = 0
        if self._transmission(i) == "TENDON":
            joints = joints_of_tendon(source, target) or []
            length = sum(factor * self._reference(joint) for joint, factor in joints)
            coupled = self._coupled(joints) if len(joints) > 1 and law.is_servo else None
            if coupled is not None:
                joints, length = [coupled[:2]], length + coupled[2]
            moments = [(joint, 0, gear[0] * factor) for joint, factor in joints]
        elif source.joint_type(target) == "ball":
            moments = [(target, dof, gear[dof]) for dof in range(3)]
        else:
            moments, length = [(target, 0, gear[0])], self._reference(target)
        length *= gear[0]
        law, found = law._replace(at_zero=law.by_length * length), []
        if law.gain_by_length:  # only with one control
            law = law._replace(gains=(law.gains[0] + law.gain_by_length * length,))
        for joint, dof, moment in moments:
            (name, start), (lower, upper) = self._dofs[joint], ranges
            if model.jnt_actfrclimited[joint] and driven.count(joint) == 1 and moment:
                lower, upper = np.clip(ranges, *np.sort(model.jnt_actfrcrange[joint] / moment)).tolist()
            place = name, None if start is None else start + dof
            slopes = ("by_length", "by_velocity", "by_integral", "gain_by_length", "gain_by_velocity")
            own = law._replace(**{slope: getattr(law, slope) * moment for slope in slopes})
            found.append(JointForce(*place, moment, own, lower, upper))
        return [force for force in found if force.factor]

    def _reference(self, joint: int) -> float:
        """Return MuJoCo's position of a hinge or slide at q = 0."""
        return float(self._source.model.qpos0[self._source.model.jnt_qposadr[joint]])

    def _coupled(self, joints: Sequence[tuple[int, float]]) -> tuple[int, float, float] | None:
        """Return a joint to which linear equality constraints couple all joints of a fixed tendon; None without one.

        The length of the tendon is a factor times the position of this joint, plus a constant. The result is the joint,
        the factor and the constant. Because the forces of constraints do no work, a force at this joint acts as the
        forces at all joints of the tendon.
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
