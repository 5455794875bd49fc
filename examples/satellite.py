"""How probable is it that the wings of a satellite latch late?

Springs open the wings against the friction of their hinges, which depends on the temperature. The study is
satellite.toml. Subset simulation finds the late deployments, which are rare in a Monte Carlo study of the same size.
Writes satellite.png. Pass a number of samples and another limit in s as arguments, for Monte Carlo sampling.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import rbchain as rb


def time_of_last_latch(model, motion):
    """Return the time in s at which both wings have latched, (samples,); NaN if a wing does not latch."""
    return np.max([latch.t[..., 0] for latch in motion.events], axis=0)


def main(limit=16.0, method="subset", simulations=20_000):
    study = rb.Study.read(Path(__file__).with_suffix(".toml"))
    question = {"above": limit, "method": method, "simulations": simulations, "undefined": "failure"}
    found = study.probability("deployment", **question)
    print(found)

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    motions = {"sample 0": study.sample(0, save_at=121)[-1], "most probable late sample": found.motion(save_at=121)}
    for (label, motion), color in zip(motions.items(), ("tab:blue", "tab:orange"), strict=True):
        for name, style in (("left", "-"), ("right", ":")):
            angle = np.rad2deg(motion.of_joint(name).q)
            left.plot(motion.t, angle, style, color=color, label=f"{name} wing, {label}")
    left.axvline(limit, color="tab:red", linestyle="--", label="limit")
    left.set(xlabel="t (s)", ylabel="angle (deg)", xlim=(0.0, 1.5 * limit))
    left.legend(loc="lower right", fontsize="small")
    right.barh(found.importance.parameter.values, found.importance)
    right.invert_yaxis()
    right.set(xlabel="share in the failures", title=f"P = {found.estimate:.1g}, {found.simulations} simulations")
    figure.savefig("satellite.png")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(float(sys.argv[2]), "monte_carlo", int(sys.argv[1]))
    else:
        main()
