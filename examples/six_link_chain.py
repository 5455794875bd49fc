"""Simulate six planar links that fall under gravity, a benchmark of Fortran solvers.

Each link has a length of 0.25 m, a mass of 0.1 kg, its center of mass in the middle, and the inertia
(0, m l^2 / 12, m l^2 / 12). The joint axes are z, and gravity is 10 m/s^2 along -y. `Model.serial_chain(6)` builds the
same model; this example uses `ModelBuilder`. Writes six_link_chain.png.
"""

import numpy as np

import rbchain as rb

LENGTH, MASS = 0.25, 0.1

builder = rb.ModelBuilder(name="six_links", gravity=(0, -10, 0))
for i in range(6):
    builder.add_body(
        f"link{i + 1}",
        parent=f"link{i}" if i else None,
        joint=rb.Revolute(axis=(0, 0, 1)),
        placement=rb.Pose((LENGTH if i else 0, 0, 0)),
        inertia=rb.Inertia(MASS, cg=(LENGTH / 2, 0, 0), inertia=(0, MASS * LENGTH**2 / 12, MASS * LENGTH**2 / 12)),
    )
chain = builder.build()

straight = np.zeros(6)
print("accelerations at rest, stretched along x (rad/s^2):")
print(chain.forward_dynamics(straight, straight, straight).round(6))
print("largest unbalanced force or moment of a body (N, N m):")
print(f"{np.abs(chain.force_balance_residual(straight, straight, straight)).max():.1e}")

motion = chain.simulate(straight, straight, duration=2.0, save_at=81, rtol=1e-10, atol=1e-12)
kinetic, potential = chain.energy(motion.q, motion.qd)
print(f"simulation of 2 s: {motion.steps} steps, the energy changes by {np.ptp(kinetic + potential):.1e} J")
for t, q in zip(motion.t[::20], motion.q[::20], strict=True):
    tip = chain.frame_poses(q, "link6") @ rb.Pose((LENGTH, 0, 0))
    print(f"t = {t:.1f} s: tip at x = {tip.translation[0]:+.4f} m, y = {tip.translation[1]:+.4f} m")

figure = motion.plot("energy")
figure.savefig("six_link_chain.png")
