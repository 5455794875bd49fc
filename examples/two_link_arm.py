"""Compute M, C, g and J of a two-link arm in air and in water, and simulate it with a wrench at the end effector.

The arm is an example of the MATLAB manipulator calculator (docs/migration/matlab.md). Writes two_link_arm.png.
"""

import numpy as np

import rbchain as rb
from rbchain.io.dh import DHLink, from_dh, rotation_about

link = DHLink(a=1.0, alpha=0.0, d=0.0, mass=1.0, cg=(-0.5, 0, 0), radius=0.1, length=1.0, friction=0.5)
q, qd = np.deg2rad([90.0, -90.0]), np.array([0.2, -0.1])
tool_wrench = rb.Wrench("end_effector", force=(0.0, 0.0, -2.0))

for place, density in (("in air", 0.0), ("in water", 1000.0)):
    arm = from_dh(
        [link, link], base_rotation=rotation_about(0, np.pi / 2), gravity=(0, 0, -9.81), fluid_density=density
    )
    print(f"{place}:")
    for name, value in (
        ("M", arm.mass_matrix(q)),
        ("C", arm.coriolis_matrix(q, qd)),
        ("g", arm.gravity_forces(q)),
        ("J", arm.jacobian(q, "end_effector")),
    ):
        print(f"  {name} =", np.array2string(value, precision=4, suppress_small=True, prefix="  M = "))
    motion = arm.simulate(q, qd, duration=1.0, forces=[tool_wrench])
    print(f"  positions after 1 s with 2 N downward at the end effector: {np.rad2deg(motion.q[-1]).round(3)} degrees")

moved = from_dh([link, link], base_rotation=rotation_about(0, np.pi / 2), base_coordinates=(1, 2, 3, 0, 0, np.pi / 2))
print("position of the end effector with another base (m):", moved.frame_poses(q, "end_effector").translation.round(4))

arm.picture(q, show=("bodies", "ellipsoids", "frames")).savefig("two_link_arm.png")
