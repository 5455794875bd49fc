"""The three-link arm of the classical manipulator calculator, in air: M, C, g, J, and a hand that pushes."""

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
push = np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0])  # N and N m on the hand, in world axes
held = arm.gravity_forces(q) - J.T @ push
print("motors that hold it with 5 N pushing the hand up:", held)
print("and so the accelerations:", arm.forward_dynamics(q, 0 * q, held + J.T @ push))
print("friction at these velocities:", arm.passive_forces(q, qd))

arm.picture(q, show=("bodies", "centers", "frames", "reactions")).savefig("three_link_arm.png")
