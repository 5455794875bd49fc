"""Compare the methods for rare events on a controlled arm of 7 joints, also with OpenTURNS on the same simulations.

    python benchmarks/rare_events.py [--openturns]

The arm moves to a point under PID control with the gravity compensation of its nominal model. Masses, centers of
gravity, friction, gains and initial angles vary (36 numbers). A failure is a tool error above the threshold at the end.
"""

import sys
import time

import numpy as np
from scipy import special

import rbchain as rb

DURATION = 2.0  # s
TARGET = [0.3, -0.6, 0.5, -0.9, 0.4, 0.7, -0.2]  # rad
JOINTS = [f"link{i}" for i in range(1, 8)]
KP = [400.0, 6000.0, 300.0, 1500.0, 60.0, 150.0, 10.0]  # N m/rad
KD = [60.0, 600.0, 40.0, 150.0, 8.0, 15.0, 1.0]  # N m s/rad
THRESHOLD = "30.5 mm"
SIZES: dict[str, dict] = {
    "form": {"coefficient_of_variation": 0.08},
    "importance": {"coefficient_of_variation": 0.06},
    "subset": {"stage": 2800},
}


def arm():
    """An arm of 7 joints about alternating axes, of 2.1 m and 14 kg."""
    builder = rb.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    for i, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1)]):
        builder.add_body(
            f"link{i + 1}",
            parent=f"link{i}" if i else None,
            joint=rb.Revolute(axis),
            placement=rb.Pose((0.0, 0.0, 0.3 if i else 0.0)),
            inertia=rb.Inertia.box([0.15, 0.15, 0.3], mass=2.0, cg=(0.0, 0.0, 0.15)),
            passive=rb.PassiveForces(damping=0.05),
            rotor_inertia=0.1,
        )
    builder.add_body("tool", parent="link7", joint=rb.Fixed(), placement=rb.Pose((0.0, 0.0, 0.3)))
    return builder.build()


def study():
    model = arm()
    goal = model.frame_poses(TARGET, "tool").translation
    drives = [
        rb.PID(name, angle, kp=kp, kd=kd, gravity_compensation=True)
        for name, angle, kp, kd in zip(JOINTS, TARGET, KP, KD, strict=True)
    ]
    return rb.Study(
        model,
        name="arm",
        samples=1000,
        seed=1,
        drives=drives,
        vary={
            "link[1-7].mass_and_inertia": rb.Dispersion(rb.Normal(1.0, 0.05), how="multiply"),
            "link[1-7].cg.x": rb.Dispersion(rb.Normal(0.0, "5 mm"), how="add"),
            "link[1-7].damping": rb.Dispersion(rb.LogNormal(1.0, 0.2), how="multiply"),
            "link[1-7].kp": rb.Dispersion(rb.Uniform(0.9, 1.1), how="multiply"),
            "link[1-7].q": rb.Dispersion(rb.Normal(0.0, "1 deg"), how="add"),
            "link7.payload": rb.Uniform(0.0, "1 kg"),
        },
        simulate=rb.Simulation(DURATION, method="rk4", step=2e-3, save_at=2),
        measures=[rb.Measure("tool error", "distance", frame="tool", point=goal.tolist())],
    )


def openturns(of_arm):
    """Estimate the same probability by the subset sampling and the FORM of OpenTURNS."""
    import openturns as ot

    dimension, threshold = len(of_arm.inputs), 1e-3 * float(THRESHOLD.split(maxsplit=1)[0])

    def margins(u):
        values = of_arm.plan.drawn.values(np.clip(special.ndtr(np.asarray(u)), 1e-16, 1 - 1e-16))
        return threshold - of_arm.evaluate(values)["tool error"].values[:, None]

    function = ot.PythonFunction(dimension, 1, func_sample=margins)
    vector = ot.RandomVector(ot.Normal(dimension))
    event = ot.ThresholdEvent(ot.CompositeRandomVector(ot.Function(function), vector), ot.Less(), 0.0)
    ot.RandomGenerator.SetSeed(1)
    sampling = ot.SubsetSampling(event)
    sampling.setMaximumOuterSampling(10)
    sampling.setBlockSize(1000)
    sampling.run()
    result = sampling.getResult()
    print(
        "OpenTURNS subset",
        result.getProbabilityEstimate(),
        result.getCoefficientOfVariation(),
        sampling.getStepsNumber(),
    )


def main():
    of_arm = study()
    print(len(of_arm.inputs), "random inputs")
    for method, settings in SIZES.items():
        start = time.perf_counter()
        found = of_arm.probability("tool error", above=THRESHOLD, method=method, **settings)
        print(found, f"({time.perf_counter() - start:.1f} s)\n", flush=True)
    if "--openturns" in sys.argv:
        openturns(of_arm)


if __name__ == "__main__":
    main()
