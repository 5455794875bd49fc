"""Simulate a slider with a hinged steel bar, an example of C# tree solvers.

The slider moves along x, has no mass, and starts at 1 m/s. The bar turns about z and starts at 30 degrees. It has a
mass of 1 kg and measures 30 cm x 2 cm x 2.111 cm. Its center of mass is 14.905 cm from the hinge. There is no gravity.
The first simulation applies a force of 5 N to the slider. The second prescribes a sinusoidal motion of the slider.
Writes slider_and_bar.png.
"""

import numpy as np

import rbchain as rb
from rbchain.model.materials import density_of

SIZE, TO_CENTER = (0.30, 0.02, 0.02111), 0.14905
END, STEPS = 1.0, 20

builder = rb.ModelBuilder(name="slider_and_bar", gravity=(0, 0, 0))
builder.add_body("slider", joint=rb.Prismatic(axis=(1, 0, 0)))
builder.add_body(
    "bar",
    parent="slider",
    joint=rb.Revolute(axis=(0, 0, 1)),
    inertia=rb.Inertia.box(SIZE, mass=1.0, cg=(TO_CENTER, 0, 0)),
)
model = builder.build()
print(f"a bar of solid steel has a mass of {rb.Inertia.box(SIZE, density=density_of('steel')).mass:.3f} kg")


def run_to(end, steps, motor):
    """Return the motion with all steps, and its largest unbalanced force (N)."""
    motion = model.simulate(
        [0.0, np.pi / 6], [1.0, 0.0], end, method="rk4", step=end / steps, save_at=steps + 1, drives=[motor]
    )
    residual = model.force_balance_residual(motion.q, motion.qd, motion.tau)
    return motion, np.abs(residual[..., :3]).max()


MOTORS = {
    "force of 5 N": rb.PrescribedForce("slider", 5.0),
    "position 0.2 sin(10 t) m": rb.PrescribedPosition("slider", rb.Signal.sines(0.2, 10.0)),
}
for name, motor in MOTORS.items():
    motion, residual = run_to(END, STEPS, motor)
    print(f"\n{name}:\n   t (s)   slider (m)    bar (rad)        (m/s)      (rad/s)    motor (N)")
    for t, q, qd, tau in zip(motion.t, motion.q, motion.qd, motion.tau, strict=True):
        print(f"{t:8.2f}" + "".join(f"{x:13.6f}" for x in (*q, *qd, tau[0])))
    print(f"largest unbalanced force: {residual:.1e} N")

# The motor force is the only force along x, so the momentum of the bar (1 kg) changes by force times time.
for steps in (STEPS, 10 * STEPS):
    motion, _ = run_to(END, steps, MOTORS["force of 5 N"])
    momentum = motion.qd[:, 0] - TO_CENTER * np.sin(motion.q[:, 1]) * motion.qd[:, 1]
    print(f"{steps} steps: the momentum changes by {np.ptp(momentum[[0, -1]]):.6f} N s; expected {5.0 * END:.6f} N s")

motion.plot("states").savefig("slider_and_bar.png")
