"""Run a Monte Carlo study of an underwater arm that holds its position in an unknown current.

The arm has three hollow aluminum cylinders, and a PID controller at each joint. The current, the density of the water
and the masses vary. Writes underwater_arm.png.

    python examples/underwater_arm.py [samples]
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import rbchain as rb

RADIUS, LENGTH = 0.05, 0.6


def arm():
    """Build an arm with a vertical shoulder axis and two horizontal elbow axes."""
    builder = rb.ModelBuilder(name="underwater arm", gravity=(0, 0, -9.81), fluid_density=1025.0)
    along = {"axis": (1, 0, 0), "cg": (LENGTH / 2, 0, 0)}
    mass = 1.7 * 1025.0 * np.pi * RADIUS**2 * LENGTH  # hollow: 1.7 times the mass of the displaced water
    water = rb.Immersion.cylinder(RADIUS, LENGTH, axis=(1, 0, 0), center=(LENGTH / 2, 0, 0), drag=1.1)
    for i, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 1, 0)]):
        builder.add_body(
            f"link{i + 1}",
            parent=None if i == 0 else f"link{i}",
            joint=rb.Revolute(axis=axis),
            placement=rb.Pose(translation=(0.0 if i == 0 else LENGTH, 0, 0)),
            inertia=rb.Inertia.cylinder(RADIUS, LENGTH, mass=mass, **along),
            immersion=water,
        )
    return builder.build()


def study(samples=2000):
    """Describe the study; the measure is the drift of the second elbow from its initial position."""
    model, q = arm(), np.array([0.3, 0.4, -0.8])
    elbow = model.body_poses(q).translation[2]
    return rb.Study(
        name="underwater arm in a current",
        model=model,
        samples=samples,
        seed=3,
        design="sobol",
        simulate={"duration": 3.0, "method": "rk4", "step": 4e-3, "save_at": 31, "q": q},
        drives=[
            rb.PID(joint, q[i], kp=600.0, kd=120.0, ki=300.0, gravity_compensation=True)
            for i, joint in enumerate(model.joint_names)
        ],
        forces=[rb.Current((0.0, 0.0, 0.0))],
        vary={
            "current.velocity.[xy]": rb.Dispersion(stats.norm(0.0, 0.5), how="add"),
            "fluid_density": stats.uniform(1000.0, 30.0),
            "*.mass_and_inertia": rb.Dispersion(stats.norm(1.0, 0.02), how="multiply"),
        },
        measures=[{"name": "drift", "quantity": "distance", "frame": "link3", "point": tuple(elbow), "over": "max"}],
    )


def main(samples=2000):
    """Run the study, print the drift and draw its distribution."""
    results = study(samples).run()
    low, median, high = np.nanquantile(results.drift, [0.05, 0.5, 0.95])
    print(f"drift of the elbow: median {median:.3f} m, 5 % and 95 % quantiles {low:.3f} and {high:.3f} m")
    print(f"{int((results.status != rb.Status.DONE).sum())} of {results.sizes['sample']} samples failed")
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.hist(results.drift, bins=40, color="#1f5a99")
    axes.set(xlabel="drift of the elbow (m)", ylabel="samples")
    figure.savefig("underwater_arm.png")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
