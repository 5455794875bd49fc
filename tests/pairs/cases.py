"""The cases: each pair of values of two factors occurs in a case, unless rbchain refuses all cases with this pair."""

import math
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from .actions import CONTACTS, DRIVES, FORCES
from .mechanisms import MECHANISMS
from .worlds import WORLDS

METHODS = ("rk45", "dop853", "rosenbrock", "radau", "rk4", "implicit", "moreau")
FIXED_STEPS = ("rk4", "implicit", "moreau")
PRECISIONS = ("float64", "float32")
WAYS = (
    *("single state", "varied batch", "empty batch", "study in chunks", "resumed study", "saved and loaded"),
    *("pickled", "of_sample", "sensitivities", "plain Python"),
)
STUDIES = ("study in chunks", "resumed study")
PRESCRIBED = ("PrescribedAcceleration", "PrescribedVelocity", "PrescribedPosition")
#: Gravity compensation carries the bodies beyond the joint, and noise depends on the index of a coordinate.
OF_ROOT = ("PID with gravity compensation", "Encoder")
MODEL_BASED = ("ComputedTorque", "PID with gravity compensation")
LOOPS = ("closed", "geared", "compliant")
FLOATING = ("floating", "geared", "compliant", "water")


class Case(NamedTuple):
    mechanism: str
    drive: str
    force: str
    method: str
    precision: str
    way: str
    world: str

    def __str__(self):
        return ", ".join(self)


FACTORS = (tuple(MECHANISMS), DRIVES, FORCES, METHODS, PRECISIONS, WAYS, tuple(WORLDS))


def documented_refusals(case):
    """The statements of the page on limits that let `simulate` refuse a case, each with a word of the message."""
    events = case.force in CONTACTS and case.method in ("rk45", "rosenbrock")
    loops = case.mechanism in LOOPS
    needs_derivatives = case.method in ("rosenbrock", "radau") or case.way == "sensitivities"
    needs_rigid = case.method == "moreau" or case.drive in MODEL_BASED or case.way == "sensitivities"
    found = {
        "compliant constraints": case.mechanism == "compliant" and needs_rigid,
        "does not support": case.force in CONTACTS and case.method in ("dop853", "rk4", "implicit", "radau"),
        "float64": events and case.precision == "float32",
        "closed loops": (events and loops) or (loops and case.drive in MODEL_BASED and needs_derivatives),
        "prescribe": events and case.drive in PRESCRIBED,
        "water": case.force == "Current" and case.mechanism != "water",
        "expected a free joint": case.world == "rerooted" and case.mechanism not in FLOATING,
    }
    if case.way == "sensitivities":
        found |= {
            "does not compute derivatives": case.method not in ("rk45", "dop853", "rk4"),
            "derivatives do not support DryFriction": case.force in CONTACTS,
            "with a resolution of its Encoder": case.drive == "Encoder",
        }
    return [word for word, applies in found.items() if applies]


@cache
def all_cases():
    """The combinations that rbchain accepts, and those that it refuses for one reason.

    The initial states of studies are float64. Some drives depend on the root. Controllers with a model in closed loops
    come last among the accepted ones, so that few cases contain these expensive pairs.
    """
    combined = map(Case._make, product(*FACTORS))
    combined = (case for case in combined if not (case.precision == "float32" and case.way in STUDIES))
    combined = (case for case in combined if not (case.world == "rerooted" and case.drive in OF_ROOT))
    accepted, refused = [], []
    for case in combined:
        refusals = len(documented_refusals(case))
        if refusals < 2:
            (refused if refusals else accepted).append(case)
    accepted.sort(key=controls_a_loop)
    return accepted, refused


def controls_a_loop(case):
    """Whether a controller computes forces with a model that has constraints."""
    return case.mechanism in LOOPS and case.drive in MODEL_BASED


#: About how much longer a case with this value takes; 1 for other values.
EFFORTS = {
    **{"floating": 1.3, "closed": 2.0, "geared": 2.0, "compliant": 3.0, "water": 2.0, "long": 4.0, "divided": 1.3},
    **{"rosenbrock": 4.0, "radau": 4.0, "moreau": 1.5, "sensitivities": 3.0, "varied batch": 2.2, "of_sample": 1.7},
    **{"study in chunks": 2.0, "resumed study": 2.0, "saved and loaded": 1.5, "pickled": 1.5},
    **{"SphereContact": 2.0, "EllipsoidContact": 2.5, "SphereSphereContact": 4.0, "CapsuleCapsuleContact": 6.0},
}


def effort(case):
    """About how many times as long as others a case takes. The long mechanism has derivatives by many parameters."""
    many_columns = 20.0 if case.mechanism == "long" and case.way == "sensitivities" else 1.0
    return many_columns * math.prod(EFFORTS.get(value, 1.0) for value in case)


def pairs_of(cases):
    """Number the pairs of values of two factors in each case, (pairs of factors, cases)."""
    places = [{value: place for place, value in enumerate(values)} for values in FACTORS]
    at = np.array([[place[value] for place, value in zip(places, case, strict=True)] for case in cases]).T
    found, first = [], 0
    for i, j in combinations(range(len(FACTORS)), 2):
        found.append(first + at[i] * len(FACTORS[j]) + at[j])
        first += len(FACTORS[i]) * len(FACTORS[j])
    return np.array(found, np.int16)


@cache
def covering_cases():
    """Choose accepted cases that contain each pair, and refused cases for the pairs that no accepted case contains.

    The greedy algorithm takes the case with the most new pairs (Cohen et al. 1997, "The AETG system").
    """
    covered, chosen = set(), []
    accepted, refused = all_cases()
    first = next(i for i, case in enumerate(accepted) if controls_a_loop(case))
    for cases in (accepted[:first], accepted[first:], refused):
        pairs = pairs_of(cases)
        new = set(pairs.ravel().tolist()) - covered
        covered |= new
        count = np.isin(pairs, list(new)).sum(axis=0)  # new pairs in each case
        chosen.append([])
        while new:
            best = int(count.argmax())
            chosen[-1].append(cases[best])
            for row in pairs:
                if row[best] in new:
                    new.remove(row[best])
                    count -= row == row[best]
    return chosen[0] + chosen[1], chosen[2]


#: About how much longer a simulation with this value takes to compile; 1 for other values.
COMPILATION = {
    **{"closed": 1.3, "geared": 1.3, "compliant": 1.3, "water": 1.5, "rosenbrock": 2.0, "radau": 2.0, "moreau": 1.2},
    **{"Sampled": 1.5, "Encoder": 1.5, "UserForces": 1.1, "SpringDamper": 1.2, "Bushing": 1.2},
    **{
        "DryFriction": 1.5,
        "HardStops": 1.5,
        "SphereContact": 1.5,
        "EllipsoidContact": 1.5,
        "SphereSphereContact": 1.5,
        "CapsuleCapsuleContact": 1.5,
    },
    **{"float32": 3.0},
}


def compiled_as(case):
    """The features of a case on which its machine code depends: two cases with the same ones compile once."""
    mechanism = {**dict.fromkeys(LOOPS, "loops"), "water": "water"}.get(case.mechanism, "open")
    drive = (
        case.drive
        if case.drive in ("none", "UserForces")
        else "sampled"
        if case.drive in ("Sampled", "Encoder")
        else "drive"
    )
    force = "between" if case.force in ("SpringDamper", "Bushing") else "contact" if case.force in CONTACTS else "force"
    return mechanism, drive, force, case.method, case.precision


def cases_with_each_value(candidates, factors, gain):
    """Choose cases that contain each value of the first `factors` factors: always the one with the largest gain.

    The gain is a function of the number of new values of a case, of the case, and of the cases chosen before.
    """
    missing, chosen = {(i, value) for i, values in enumerate(FACTORS[:factors]) for value in values}, []
    while missing:
        counts = [(len(missing & set(enumerate(case))), case) for case in candidates]
        chosen.append(max(counts, key=lambda found: gain(*found, chosen))[1])
        missing -= set(enumerate(chosen[-1]))
    return chosen


@cache
def compiled_cases():
    """Choose cases that contain each mechanism, drive, force, method and precision, and compile in a short time."""
    candidates = [case for case in all_cases()[0] if case.way == "varied batch" and case.world == "turned"]
    code = {case: compiled_as(case) for case in candidates}
    efforts = {case: math.prod(COMPILATION.get(value, 1.0) for value in case) for case in candidates}

    def gain(count, case, chosen):
        is_compiled = any(code[case] == code[other] for other in chosen)
        return count / (0.1 if is_compiled else efforts[case])

    return cases_with_each_value(candidates, 5, gain)


@cache
def short_cases():
    """Choose short cases with each value. The test command runs them; `pytest -m slow` runs all others."""
    return cases_with_each_value(
        covering_cases()[0], len(FACTORS), lambda count, case, chosen: count / math.sqrt(effort(case))
    )
