"""Rows of `Work.dof` (n + 1, ROWS, lanes): the first row of each quantity, and its size if it is not one row.

Docstrings of kernels name these rows without the module ("Reads R"). Spatial vectors are in world axes, about the joint
origin of dof i, angular before linear.
"""

R = 0  # 9: rotation from frame i to world axes
LEVER = 9  # 3: from the parent's joint origin to the joint origin of dof i, world axes, m
V = 12  # 6: velocity of frame i (angular, linear at the joint origin), world axes, rad/s and m/s
U = 18  # 6: U = IA S, the force of a unit acceleration of the dof
DINV = 24  # 1 / D, D = S^T IA S + armature; 1/(kg m^2) or 1/kg
FORCE = 25  # u = tau - S^T pA, N m or N
A = 26  # 6: acceleration of frame i, rad/s^2 and m/s^2; gravity counts as an upward acceleration of the base
F = 32  # 6: force transmitted across the joint (RNEA, residual), N m and N
POSITION = 38  # 3: of the joint origin in the world or from the first joint origin, world axes, m
SCALE = 41  # 2: largest rotational and translational inertia at later dofs of the joint: scales of round-off in D
ROWS = 43
# The sweeps of the mass matrix and of the Coriolis matrix do not use the 23 rows from U to POSITION. In water, they
# keep composite added masses in the first 21 of these rows.
COMPOSITE = U  # 21: added mass of the subtree: J (6), H (9), M (6)
