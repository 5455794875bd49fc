"""Study of a digital controller: 10,000 arms with seven joints move an unknown payload. How accurate is the tool?

The controller of each joint runs at 1 kHz. It does not know the payload, and knows the link masses only to 5 %. Its
torques take effect one period after the measurement. The encoders have 20 bits and white noise; the velocity is the
difference of two positions. Writes digital_arm.png. Arguments: number of samples, time of the motion in s, and a folder
for the results, for which `rbchain study report` writes a report.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import rbchain as rb

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
MOVE = float(sys.argv[2]) if len(sys.argv) > 2 else 0.4  # s
FOLDER = sys.argv[3] if len(sys.argv) > 3 else None
SETTLE = MOVE / 2
START = np.array([-0.4, 0.4, 0.0, 1.3, 0.0, 0.8, 0.0])  # rad
END = START + [0.3, 0.25, 0.15, -0.3, -0.2, 0.2, 0.3]
KP = [2500.0, 2500.0, 1600.0, 1600.0, 400.0, 400.0, 400.0]  # N m/rad

arm = rb.load(Path(__file__).parent / "seven_joint_arm.toml")
measured = {"resolution": 2 * np.pi / 2**20, "noise": 3e-6, "measures_velocity": True}  # rad
encoders = [rb.Encoder(joint, **measured) for joint in arm.joint_names]
drives = []
for i, joint in enumerate(arm.joint_names):
    step = END[i] - START[i]
    rest_to_rest = [START[i], 0, 0, 10 * step / MOVE**3, -15 * step / MOVE**4, 6 * step / MOVE**5]
    reference = rb.Signal([rest_to_rest, [END[i], 0, 0, 0, 0, 0]], breaks=[0, MOVE])
    limit = arm.effort_limit[i]
    pid = rb.PID(joint, reference, kp=KP[i], kd=0.05 * KP[i], limit=limit, gravity_compensation=True)
    drives.append(rb.Sampled(pid, period=1e-3, delay=1e-3, sensors=encoders))

study = rb.Study(
    name="an arm with a digital controller and an unknown payload",
    model=arm,
    samples=COUNT,
    seed=5,
    drives=drives,
    vary={
        "link7.payload": rb.Dispersion(rb.Uniform(0, 3), point=(0, 0, 0.1)),
        "*.mass_and_inertia": rb.Dispersion(rb.Normal(1, 0.05), how="multiply"),
        "*.friction": rb.Dispersion(rb.LogNormal(sigma=0.3), how="multiply"),
    },
    simulate={"duration": MOVE + SETTLE, "method": "implicit", "step": 1e-3, "save_at": 61, "q": START},
    measures=[
        {
            "name": "tool error",
            "quantity": "distance",
            "frame": "tool",
            "point": arm.frame_poses(END, "tool").translation,
        },
        {"name": "peak torque of the shoulder", "quantity": "torque", "joint": "joint2", "over": "peak"},
    ],
)
results = study.run(FOLDER, progress=True)
error = 1e3 * results["tool error"].values
payload = results["parameters"].sel(parameter="link7.payload").values
print(f"tool error: median {np.median(error):.2f} mm, 95 % below {np.quantile(error, 0.95):.2f} mm")
print(f"largest torque of the shoulder: {results['peak torque of the shoulder'].values.max():.0f} N m")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
left.hist(error, 60, orientation="horizontal")
left.set(xlabel="samples", ylabel=f"tool error {SETTLE:g} s after the motion / mm")
right.hexbin(payload, error, gridsize=40, mincnt=1, cmap="Blues")
right.set(xlabel="payload / kg", title="darker: more samples")
figure.tight_layout()
figure.savefig("digital_arm.png")
