"""Compute M, C, g and J of a three-link arm, and the actuator torques that hold it against an external force.

The arm is an example of the MATLAB manipulator calculator (docs/migration/matlab.md). Writes three_link_arm.png.
"""

import numpy as np

from rbchain.io.dh import DHLink, from_dh

l1, l2, l3 = 0.75, 1.0, 1.0
arm = from_dh(
    [
        DHLink(0.0, np.pi / 2, l1, mass=0.75, cg=(0, -l1 / 2, 0), radius=0.1, length=l1, friction=0.5),
        DHLink(l2, 0.0, 0.0, mass=1.0, cg=(-l2 / 2, 0, 0), radius=0.1, length=l2, friction=0.5),
        DHLink(l3, 0.0, 0.0, mass=1.0, cg=(-l3 / 2, 0, 0), radius=0.1, length=l3, friction=0.5),
    ],
    gravity=(0, 0, -9.81),
)
q, qd = np.array([0.3, 0.5, -0.4]), np.array([0.1, 0.2, -0.3])
np.set_printoptions(precision=4, suppress=True)
print("M =", arm.mass_matrix(q), "C =", arm.coriolis_matrix(q, qd), "g =", arm.gravity_forces(q), sep="\n")

J = arm.jacobian(q, "end_effector")
wrench = np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0])  # N and N m at the end effector, in world axes
held = arm.gravity_forces(q) - J.T @ wrench
print("actuator torques that hold the arm against 5 N upward at the end effector (N m):", held)
print("accelerations with these torques (rad/s^2):", arm.forward_dynamics(q, 0 * q, held + J.T @ wrench))
print("friction torques at the velocities qd (N m):", arm.passive_forces(q, qd))

arm.picture(q, show=("bodies", "centers", "frames", "reactions")).savefig("three_link_arm.png")
