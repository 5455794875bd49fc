"""The classical example of C# tree solvers: a slider pushed by 5 N, and a steel bar hinged on it.

Without gravity: a slider along x that has no mass of its own, pushed by a motor, at first at 1 m/s; on it, about z, a
bar of 1 kg, 30 cm x 2 cm x 2.111 cm, its centre of mass 14.905 cm from the hinge, at first at 30 degrees. It runs to
a time in a number of steps, twice: with the push, and with a motor that moves the slider to and fro instead.
"""

import numpy as np

import rbchain as rb
from rbchain.model.materials import density_of

SIZE, TO_CENTRE = (0.30, 0.02, 0.02111), 0.14905
END, STEPS = 1.0, 20

builder = rb.ModelBuilder(name="slider_and_bar", gravity=(0, 0, 0))
builder.add_body("slider", joint=rb.Prismatic(axis=(1, 0, 0)))
builder.add_body(
    "bar",
    parent="slider",
    joint=rb.Revolute(axis=(0, 0, 1)),
    inertia=rb.Inertia.box(SIZE, mass=1.0, cg=(TO_CENTRE, 0, 0)),
)
world = builder.build()
print(f"of solid steel the bar would weigh {rb.Inertia.box(SIZE, density=density_of('steel')).mass:.3f} kg")


def run_to(end, steps, motor):
    """The motion, of which every step is kept, and the largest residual force in it (N)."""
    motion = world.simulate(
        [0.0, np.pi / 6], [1.0, 0.0], end, method="rk4", step=end / steps, save_at=steps + 1, drives=[motor]
    )
    residual = world.force_balance_residual(motion.q, motion.qd, motion.tau)
    return motion, np.abs(residual[..., :3]).max()


MOTORS = {
    "pushed by 5 N": rb.PrescribedForce("slider", 5.0),
    "moved by 0.2 sin(10 t) m": rb.PrescribedPosition("slider", rb.Signal.sines(0.2, 10.0)),
}
for name, motor in MOTORS.items():
    motion, residual = run_to(END, STEPS, motor)
    print(f"\n{name}:\n   t (s)   slider (m)    bar (rad)        (m/s)      (rad/s)    motor (N)")
    for t, q, qd, tau in zip(motion.t, motion.q, motion.qd, motion.tau, strict=True):
        print(f"{t:8.2f}" + "".join(f"{x:13.6f}" for x in (*q, *qd, tau[0])))
    print(f"largest residual force: {residual:.1e} N")

# Along x nothing but the motor acts: what the bar (1 kg) gains in momentum is its force times the time.
for steps in (STEPS, 10 * STEPS):
    motion, _ = run_to(END, steps, MOTORS["pushed by 5 N"])
    momentum = motion.qd[:, 0] - TO_CENTRE * np.sin(motion.q[:, 1]) * motion.qd[:, 1]
    print(f"{steps} steps: gained {np.ptp(momentum[[0, -1]]):.6f} N s of {5.0 * END:.6f} N s")

motion.plot("states").savefig("slider_and_bar.png")
