"""Rows of `BlockActions.joints` (ROWS, n, lanes), one column for each dof.

Forces are in N m or N, velocities in rad/s or m/s, and accelerations in rad/s^2 or m/s^2.
"""

ACTUATOR_FORCE = 0
PASSIVE_FORCE = 1
QDD = 2  # acceleration: an input if PRESCRIBED is 1, else a result
PRESCRIBED = 3
QD = 4  # velocity that the current sweep uses
STIFFNESS = 5  # - d force / d position, N m/rad or N/m
DAMPING = 6  # - d force / d velocity, N m s/rad or N s/m
IMPLICIT_INERTIA = 7  # h damping + h^2 stiffness, added to D in an implicit step of length h, kg m^2 or kg
GRAVITY_FORCE = 8  # joint force that balances gravity
COMPUTED_TORQUE = 9
USER_FORCE = 10
CONSTANT_FORCE = 11
STEP_LENGTH = 12  # h of an implicit step, s, in column 0 only
MODEL_ACCELERATION = 13  # acceleration of the controllers' model under computed torque
ROWS = 14
