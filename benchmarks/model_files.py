"""Compare all URDF and MJCF files in a folder with Pinocchio and MuJoCo.

Needs the `test` extra. The files of example-robot-data are in a folder of the test environment. Install packages with
other files into a separate folder, without dependencies:

    python -m pip install --no-deps --target packages \\
        mujoco mujoco-core dm-control gymnasium gymnasium-robotics robosuite metaworld
    python -m benchmarks.model_files packages

The script prints one line per file, and a table of the numbers of files that rbchain reads, that agree, that cause a
warning, and that raise an error, with the reasons. The states are random. URDF: joint forces for given accelerations,
with random states, compared with `pinocchio.rnea`. MJCF: accelerations under random controls, compared with
`mj_forward`. In MuJoCo, contacts and limits are disabled, and also the parts that rbchain's warning lists. Equality
constraints are removed from both; in these files, actuators are disabled too. The exit code is 1 if a file disagrees.

With `--motions`, it compares motions of 0.1 s of the MJCF files instead, from random states under random constant
controls, with `mj_step`. MuJoCo's steps become shorter until the states agree to 1e-6 of the largest entry. They are
steps of RK4 first, and then steps of the integrator `implicit`, extrapolated to the step zero, for stiff files. If
neither agrees, both are repeated for 0.002 s. Actuators act if rbchain has drives for all of them, and no drive acts on
a joint that an equality constraint couples to another.
"""

import argparse
import re
import sys
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin

import rbchain as rb
from rbchain.io.mjcf import state_from_mujoco, state_to_mujoco
from rbchain.io.xml_reading import root_name
from tests.oracles.mjcf import OFF, Engine

AGREEMENT = 1e-9
AGREEMENT_OF_MOTIONS = 1e-6
DURATIONS = 0.1, 0.002  # s
#: Numbers of steps of RK4, and of three extrapolated motions with first-order steps.
RK4_STEPS, IMPLICIT_STEPS = (100, 400, 1600, 6400, 25600), (1000, 2000, 4000, 8000)
MAX_STEPS = 40_000  # of rbchain
STATES = 4
BAD_ACCELERATION = int(mujoco.mjtWarning.mjWARN_BADQACC)
TENDON_FORCES = ("stiffness", "stiffnesspoly", "damping", "dampingpoly", "armature", "frictionloss")
COMPARED = ("revolute", "prismatic")  # joints of URDF files
AGREES, DISAGREES, REFUSED, OTHER = "agrees", "DISAGREES", "refused", "not compared"


def disable(flag):
    """Return a function that disables a feature of a MuJoCo model."""

    def change(model):
        model.opt.disableflags |= int(flag)

    return change


def loosen_tendons(model):
    """Remove all forces from the tendons of a MuJoCo model."""
    for name in TENDON_FORCES:
        np.asarray(getattr(model, f"tendon_{name}", []))[:] = 0.0


#: Parts that a warning names, and the functions that remove them from a MuJoCo model.
LEFT_OUT = {
    "equality constraints": disable(OFF.mjDSBL_EQUALITY),
    "dry friction": disable(OFF.mjDSBL_FRICTIONLOSS),
    "tendons": loosen_tendons,
}


def relative(found, expected):
    """Return the largest error, relative to the largest expected number."""
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-300))


def error_of_mjcf(path, model, without):
    """Return the largest error of accelerations in random states, and whether actuators act."""
    engine, rng = Engine(path), np.random.default_rng(0)
    has_actuators = len(model.inputs) == engine.model.nu > 0 and "equality constraints" not in without
    if has_actuators:
        engine.model.opt.disableflags &= ~int(OFF.mjDSBL_ACTUATION)
    for what in without:
        LEFT_OUT[what](engine.model)
    model, worst = model.open_tree().replace(friction=np.zeros(model.nv)), 0.0
    for _ in range(STATES):
        q, qd = model.random_state(rng)
        tau = 0.0
        if has_actuators:
            limited = engine.model.actuator_ctrllimited[:, None]
            low, high = np.where(limited, engine.model.actuator_ctrlrange, (-1.0, 1.0)).T
            engine.data.ctrl[:] = rng.uniform(low, high)
            driven = model.with_inputs(dict(zip(model.inputs, engine.data.ctrl.tolist(), strict=True)))
            expected, found = engine.accelerations(model, q, qd), driven.accelerations(q, qd)
        else:
            expected, found = engine.accelerations(model, q, qd), model.forward_dynamics(q, qd, tau, passive=True)
        worst = max(worst, relative(found, expected))
    return worst, has_actuators


def error_of_motion(path, model, without):
    """Return the error of a motion under random controls, and whether actuators act."""
    engine, rng = Engine(path).model, np.random.default_rng(0)
    for what in without:
        LEFT_OUT[what](engine)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = model.open_tree().replace(friction=np.zeros(model.nv))
    has_actuators = len(model.inputs) == engine.nu > 0 and not caught
    controls = np.zeros(engine.nu)
    if has_actuators:
        engine.opt.disableflags &= ~int(OFF.mjDSBL_ACTUATION)
        # steps of `filterexact` have the first order with RK4; `filter` is the same differential equation
        exact = engine.actuator_dyntype == int(mujoco.mjtDyn.mjDYN_FILTEREXACT)
        engine.actuator_dyntype[exact] = int(mujoco.mjtDyn.mjDYN_FILTER)
        low, high = np.where(engine.actuator_ctrllimited[:, None], engine.actuator_ctrlrange, (-1.0, 1.0)).T
        controls = rng.uniform(low, high)
        model = model.with_inputs(dict(zip(model.inputs, controls.tolist(), strict=True)))
    q, qd = model.random_state(rng)
    start, worst = state_to_mujoco(model, engine, q, 0.3 * qd), np.inf
    for duration in DURATIONS:
        end = end_of_motion(model, q, 0.3 * qd, duration, model.drives if has_actuators else ())
        for state in ends_in_mujoco(engine, start, controls, duration):
            if end is None or worst < AGREEMENT_OF_MOTIONS:
                break
            if not np.isfinite(state).all():  # unstable, as the steps are too long
                continue
            other = state_from_mujoco(model, engine, *np.split(state, [engine.nq]))
            difference = np.concatenate([model.difference(end[0], other[0]), end[1] - other[1]])
            size = max(np.abs(x).max() for x in other)
            worst = min(worst, float(np.abs(difference).max() / size))
    return worst, has_actuators


def end_of_motion(model, q, qd, duration, drives):
    """Return the state at the end of a motion in rbchain, or None if no method reaches it."""
    settings = {"rtol": 1e-10, "atol": 1e-12, "max_steps": MAX_STEPS, "save_at": [duration], "on_failure": "ignore"}
    for method in ("dop853", "radau"):
        try:
            motion = model.simulate(q, qd, duration, drives=drives, method=method, **settings)
        except rb.ArgumentError:  # radau does not support lags
            return None
        if motion.success:
            return motion.q[-1], motion.qd[-1]
    return None


def ends_in_mujoco(engine, start, controls, duration):
    """Yield better and better states at the end of a motion in MuJoCo."""
    for steps in RK4_STEPS:
        yield state_after(engine, start, controls, duration, steps, mujoco.mjtIntegrator.mjINT_RK4)
    table = [
        state_after(engine, start, controls, duration, n, mujoco.mjtIntegrator.mjINT_IMPLICIT) for n in IMPLICIT_STEPS
    ]
    for order in range(1, len(table)):
        table = [b + (b - a) / (2**order - 1) for a, b in pairwise(table)]
    yield table[0]


def state_after(engine, start, controls, duration, steps, integrator):
    """Return qpos and qvel after steps of an integrator of MuJoCo."""
    data = mujoco.MjData(engine)
    engine.opt.integrator, engine.opt.timestep = integrator, duration / steps
    data.qpos[:], data.qvel[:], data.ctrl[:] = *start, controls
    mujoco.mj_step(engine, data, steps)
    # MuJoCo resets the state if an acceleration is not finite
    is_reset = data.warning[BAD_ACCELERATION].number > 0
    return np.concatenate([data.qpos, data.qvel]) * (np.nan if is_reset else 1.0)


def error_of_urdf(path, model):
    """Return the largest error of joint forces in random states."""
    other, rng = pin.buildModelFromUrdf(str(path)), np.random.default_rng(0)
    data, worst = other.createData(), 0.0
    model = model.open_tree().replace(rotor_inertia=np.zeros(model.nv))
    for _ in range(STATES):
        q, qd = model.random_state(rng)
        qdd = rng.normal(size=model.nv)
        theirs, rows = [np.zeros(other.nq), np.zeros(other.nv), np.zeros(other.nv)], np.zeros(model.nv, int)
        for name, joint in zip(other.names[1:], other.joints[1:], strict=True):
            own = model.joint_names.index(name)
            place, i = model.position_index[own], model.velocity_index[own]
            rows[i] = joint.idx_v
            theirs[0][joint.idx_q : joint.idx_q + joint.nq] = (
                q[place] if joint.nq == 1 else (np.cos(q[place]), np.sin(q[place]))
            )
            theirs[1][joint.idx_v], theirs[2][joint.idx_v] = qd[i], qdd[i]
        expected = pin.rnea(other, data, *theirs)[rows]
        worst = max(worst, relative(model.inverse_dynamics(q, qd, qdd), expected))
    return worst


def judge(path, kind, of_motions):
    """Compare one file; return the verdict, its details, and whether rbchain warns.

    With `of_motions`, compare a motion.
    """
    if kind == "MJCF":
        try:
            compiled = mujoco.MjModel.from_xml_path(str(path))
        except ValueError as error:
            return OTHER, f"MuJoCo does not compile it: {' '.join(str(error).split())}", False
        if compiled.njnt == 0:
            return OTHER, "no joint", False
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = rb.load(path)
    except (rb.FileFormatError, rb.ModelError) as error:
        return REFUSED, str(error).removeprefix(f"{path}: "), False
    said = " ".join(str(warning.message) for warning in caught)
    if kind == "URDF":
        others = sorted(set(model.joint_types) - set(COMPARED))
        if others:
            return OTHER, f"joints of the types {', '.join(others)}", bool(caught)
        try:
            error, parts = error_of_urdf(path, model), []
        except (ValueError, RuntimeError) as fault:
            return OTHER, f"Pinocchio does not read it: {' '.join(str(fault).split())}", bool(caught)
    else:
        without = [what for what in LEFT_OUT if what in said]
        error, has_actuators = (error_of_motion if of_motions else error_of_mjcf)(path, model, without)
        parts = without + ["actuators"] * bool(compiled.nu and not has_actuators)
    detail = f"{error:.1e}" + (f", without {' and '.join(parts)}" if parts else "")
    bound = AGREEMENT_OF_MOTIONS if of_motions else AGREEMENT
    return (AGREES if error < bound else DISAGREES), detail, bool(caught)


def table(results):
    """Return the lines of the table of the verdicts of each kind of file."""
    heads = ["files", "read", "agree", "disagree", "refused", "warned", "not compared"]
    lines = [" " * 5 + "".join(f"{head:>13}" for head in heads)]
    for kind in ("URDF", "MJCF"):
        own = [(verdict, warned) for file, verdict, _, warned in results if file == kind]
        count = Counter(verdict for verdict, _ in own)
        warned, read = sum(warned for _, warned in own), count[AGREES] + count[DISAGREES]
        numbers = [len(own), read, count[AGREES], count[DISAGREES], count[REFUSED], warned, count[OTHER]]
        lines.append(f"{kind:5}" + "".join(f"{number:13,}" for number in numbers))
    reasons = Counter(
        re.sub(r"'[^']*'|[\d.]+", "...", detail)[:100] for _, verdict, detail, _ in results if verdict == REFUSED
    )
    return lines + [f"{count:5} refused: {reason}" for reason, count in reasons.most_common()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--motions", action="store_true", help="compare motions of MJCF files")
    given, results = parser.parse_args(), []
    folder = given.folder
    for path in sorted([*folder.rglob("*.urdf"), *folder.rglob("*.xml")]):
        kind = {"robot": "URDF", "mujoco": "MJCF"}.get(root_name(path))
        if kind is None or (given.motions and kind == "URDF"):
            continue
        verdict, detail, warned = judge(path, kind, given.motions)
        results.append((kind, verdict, detail, warned))
        print(f"{path.relative_to(folder)}: {verdict}{detail and ': ' + detail}{' (warned)' * warned}", flush=True)
    print("\n" + "\n".join(table(results)))
    return 1 if any(verdict == DISAGREES for _, verdict, _, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
