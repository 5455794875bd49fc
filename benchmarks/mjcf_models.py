"""Compare the accelerations of all MJCF files in a folder with those of `mj_forward`.

Needs the extra `test`. Install the packages with the files into a separate folder, without dependencies:

    python -m pip install --no-deps --target mjcf_packages \\
        mujoco mujoco-core dm-control gymnasium gymnasium-robotics robosuite metaworld
    python -m benchmarks.mjcf_models mjcf_packages

The script prints one line per file with joints. The states are random. In MuJoCo, contacts, limits and actuators are
disabled, and also the parts that the warning of rbchain names. Equality constraints are removed from both. The exit
code is 1 if the accelerations of a loaded file differ.
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


def largest_difference(path, model, changes):
    """Return the largest relative error of the accelerations in random states."""
    engine, rng = Engine(path), np.random.default_rng(0)
    for change in changes:
        change(engine.model)
    worst = 0.0
    for _ in range(STATES):
        q, qd = model.random_state(rng)
        expected = engine.accelerations(model, q, qd)
        found = model.forward_dynamics(q, qd, passive=True)
        worst = max(worst, float(np.abs(found - expected).max() / np.abs(expected).max()))
    return worst


def judge(path):
    """Compare one file; return the verdict and its details."""
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
    model = model.open_tree().replace(friction=np.zeros(model.nv))
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
