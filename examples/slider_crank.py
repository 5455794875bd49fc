"""Simulate 20,000 slider-crank presses with tolerances: how probable is it that a bearing force exceeds its limit?

The motor drives the crank through a gear whose friction grows with the torque. The study is slider_crank.toml. Writes
slider_crank.png. Pass another number of samples and another limit in kN as arguments.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import rbchain as rb

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
LIMIT = float(sys.argv[2]) if len(sys.argv) > 2 else 1.55  # kN

study = rb.Study.read(Path(__file__).with_suffix(".toml"))
found = study.probability("bearing force", above=LIMIT, method="monte_carlo", simulations=COUNT)
print(found)

figure = Figure(figsize=(9, 4), layout="constrained")
left, right = figure.subplots(1, 2)
first, failing = found.motion(0, save_at=451), found.motion(save_at=451)
for motion, label in ((first, "sample 0"), (failing, "most probable failing sample")):
    force = np.linalg.norm(motion.constraint_forces, axis=-1)  # N; NaN after the end of the stroke
    left.plot(np.rad2deg(motion.q[:, 0]), 1e-3 * force, label=label)
left.axhline(LIMIT, color="tab:red", linestyle="--", label="limit")
left.set(xlabel="angle of the crank (deg)", ylabel="force between rod and slider (kN)")
left.legend(loc="center left", fontsize="small")
names = found.importance.parameter.values
right.barh(names, found.importance)
right.invert_yaxis()
right.set(xlabel="share in the failures", title=f"P = {found.estimate:.1g} of {COUNT} samples")
figure.savefig("slider_crank.png")
