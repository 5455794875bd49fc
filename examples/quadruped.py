"""How often does a quadruped fall over after a drop from 5 cm? Its friction, payload, delay and tilt are uncertain.

The robot is the A1 of the package example-robot-data (`pip install example-robot-data`). A digital PD controller at 500
Hz holds each of its 12 joints. Its torques take effect up to 12 ms late, and the trunk carries up to 5 kg. Writes the
animation quadruped.gif, and quadruped.png. Arguments: number of samples, and time of the motion in s.
"""

import sys
import sysconfig
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation
from scipy.stats import binomtest

import rbchain as rb

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
DURATION = float(sys.argv[2]) if len(sys.argv) > 2 else 1.5  # s
LOW = 0.15  # m, a robot has fallen if the center of its trunk is lower
FEET = ["FR_foot", "FL_foot", "RR_foot", "RL_foot"]
LEG = [0.0, 0.8, -1.6]  # hip, thigh and calf of a standing leg, rad

file = Path(sysconfig.get_path("purelib"), "cmeel.prefix/share/example-robot-data/robots/a1_description/urdf/a1.urdf")
if not file.exists():
    sys.exit(f"{file} does not exist. Install the robot with: pip install example-robot-data")
robot = rb.load(file, base=rb.Free())
robot = robot.replace(rotor_inertia=[0.0] * 6 + [0.01] * 12)  # kg m^2 at the joints; the file has none
stance = np.array([0.0, 0, 0, 0, 0, 0, 1, *(4 * LEG)])
stance[2] = 0.05 + 0.02 - robot.frame_poses(stance, FEET[0]).translation[2]  # the radius of a foot is 2 cm

drives = [
    rb.Sampled(rb.PID(joint, angle, kp=100.0, kd=3.0, limit=33.5), period=0.002)
    for joint, angle in zip(robot.joint_names[1:], stance[7:], strict=True)
]
contacts = robot.contacts(ground=rb.Plane((0, 0, 0), (0, 0, 1)), frames=[*FEET, "trunk"])
study = rb.Study(
    name="a quadruped that drops from 5 cm",
    model=robot,
    samples=COUNT,
    seed=1,
    drives=drives,
    forces=[*contacts, *robot.hard_stops()],
    vary={
        "{*_foot,trunk *}.friction": rb.Dispersion(rb.Uniform(0.3, 1.0), shared=True),
        "*_joint.delay": rb.Dispersion(rb.Discrete(0.002 * np.arange(7)), shared=True),  # s
        "base.payload": rb.Dispersion(rb.Uniform("0 kg", "5 kg"), point=(0, 0, 0.1)),
        "base.q.{3,4}": rb.Dispersion(rb.Uniform("-8 deg", "8 deg"), how="add"),
    },
    simulate={"duration": DURATION, "method": "moreau", "step": 1e-3, "save_at": 2, "q": stance},
    measures=[rb.Measure("height", "coordinate", frame="trunk", axis="z", over="min")],
)
results = study.run(progress=True)
fell = results.height.values < LOW
interval = binomtest(int(fell.sum()), COUNT).proportion_ci()  # exact (Clopper and Pearson 1934)
title = f"{fell.mean():.1%} fall (95 % interval: {interval.low:.1%} to {interval.high:.1%})"
print(f"{COUNT} robots: {title}")

motion = study.motions(min(16, COUNT), save_every=0.025)
shown = range(motion.q.shape[0])
bodies = [[f"{leg}_{part}" for part in ("hip", "thigh", "calf", "foot")] for leg in ("FR", "FL", "RL", "RR")]
legs = np.array([[robot.frame_poses(motion.q, body).translation for body in leg] for leg in bodies])
legs += np.array([[i % 4, i // 4, 0.0] for i in shown])[:, None]  # (legs, bodies, robots, times, 3), 1 m apart

figure = plt.figure(figsize=(9, 4), dpi=80, layout="constrained")
view = figure.add_subplot(1, 2, 1, projection="3d", proj_type="ortho", elev=20, azim=-60)
view.set(xlim=(-0.8, 3.6), ylim=(-0.8, 3.6), zlim=(0, 0.8), xticks=[], yticks=[], zticks=[])
view.set_box_aspect((1, 1, 0.18), zoom=1.3)
colors = ["tab:red" if fell[i] else "tab:blue" for i in shown]
lines = [[view.plot([], [], [], color=color, linewidth=2)[0] for _ in range(5)] for color in colors]
chart = figure.add_subplot(1, 2, 2)
delay = results.parameters.sel(parameter="*_joint.delay").values
for late in np.unique(delay):
    chart.bar(1e3 * late, 100 * fell[delay == late].mean(), width=1.5, color="tab:red")
chart.set(xlabel="delay (ms)", ylabel="share of falls (%)", title=title)


def draw(i: int) -> None:
    """Draw the trunks and the legs at saved time i."""
    for robot_lines, positions in zip(lines, np.moveaxis(legs[..., i, :], 2, 0), strict=True):
        for line, points in zip(robot_lines, [positions[[0, 1, 2, 3, 0], 0], *positions], strict=True):
            line.set_data_3d(*points.T)
    view.set_title(f"{motion.t[i]:.2f} s")


FuncAnimation(figure, draw, frames=len(motion.t)).save("quadruped.gif", writer="pillow", fps=20)
figure.savefig("quadruped.png")
