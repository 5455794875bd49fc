"""Every MJCF file of some packages: the accelerations that rbchain finds beside those of `mj_forward`.

Needs the `test` extra, and the packages in a folder of their own, without what they depend on:

    python -m pip install --no-deps --target mjcf_packages \\
        mujoco mujoco-core dm-control gymnasium gymnasium-robotics robosuite metaworld
    python -m benchmarks.mjcf_models mjcf_packages

Prints a line for each file, but for those without a joint. States are random. MuJoCo's contacts, limits and actuators
are disabled, and so are the parts of a file that rbchain's warning says it leaves out. Exits with 1 if rbchain loads a
file and disagrees.
"""

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

import mujoco
import numpy as np

import rbchain as rb
from tests.oracles.mjcf import OFF, Engine

AGREEMENT = 1e-9
STATES = 4
TENDON_FORCES = ("stiffness", "stiffnesspoly", "damping", "dampingpoly", "armature", "frictionloss")


def disable(flag):
    """A function that disables a feature in a model of MuJoCo."""

    def change(model):
        model.opt.disableflags |= int(flag)

    return change


def loosen_tendons(model):
    """Take all forces from the tendons of a model of MuJoCo."""
    for name in TENDON_FORCES:
        np.asarray(getattr(model, f"tendon_{name}", []))[:] = 0.0


#: What a warning names, and how MuJoCo goes without it.
LEFT_OUT = {
    "equality constraints": disable(OFF.mjDSBL_EQUALITY),
    "dry friction": disable(OFF.mjDSBL_FRICTIONLOSS),
    "tendons": loosen_tendons,
}


def largest_difference(path, model, changes):
    """Largest error of the accelerations in some random states, relative to the largest acceleration of each."""
    engine, rng = Engine(path), np.random.default_rng(0)
    for change in changes:
        change(engine.model)
    worst = 0.0
    for _ in range(STATES):
        q, qd = model.random_state(rng)
        expected = engine.accelerations(model, q, qd)
        found = model.forward_dynamics(q, qd, model.passive_forces(q, qd))
        worst = max(worst, float(np.abs(found - expected).max() / np.abs(expected).max()))
    return worst


def judge(path):
    """The verdict on one file, and what there is to say about it."""
    try:
        compiled = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        return "MuJoCo does not compile it", " ".join(str(error).split())
    if compiled.njnt == 0:
        return "no joint", ""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = rb.load(path)
    except (rb.FileFormatError, rb.ModelError) as error:
        return "refused", str(error).removeprefix(f"{path}: ")
    said = " ".join(str(warning.message) for warning in caught)
    without = [what for what in LEFT_OUT if what in said]
    model = model.vary(friction=np.zeros(model.nv))
    error = largest_difference(path, model, [LEFT_OUT[what] for what in without])
    if not error < AGREEMENT:
        return "DISAGREES", f"{error:.1e}, with {len(caught)} warnings: {said}"
    return "agrees", f"{error:.1e}" + (f", without {' and '.join(without)}" if without else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    verdicts = Counter()
    for path in sorted(folder.rglob("*.xml")):
        verdict, detail = judge(path)
        verdicts[verdict] += 1
        if verdict != "no joint":
            print(f"{path.relative_to(folder)}: {verdict}{detail and ': ' + detail}", flush=True)
    print("\n" + "\n".join(f"{count:4d} {verdict}" for verdict, count in verdicts.most_common()))
    return 1 if verdicts["DISAGREES"] else 0


if __name__ == "__main__":
    sys.exit(main())
