"""Columns of sensitivities: the parameters with respect to which a motion is differentiated."""

from ...compiling.jit import kernel

# Rows of `SensitivitySettings.columns`, with one column for each parameter. Symmetric matrices have the entries of
# their upper triangle, row by row.
COLUMN_KIND = 0  # one of BY_POSITION, ...
COLUMN_DOF = 1  # the dof; for an inertial parameter, the dof of the body.
# The entry of a vector is 0 to 2, of the tensor 0 to 5, and of a matrix of a bushing 0 to 20. For a user function, it
# is the number of the parameter.
COLUMN_ENTRY = 2
COLUMN_DRIVE = COLUMN_ENTRY  # of a gain or of a value of a signal, the column of its drive
COLUMN_SIGNAL = 3  # of a value of a signal: the signal that is the derivative of the signal with respect to it
COLUMN_FORCE = COLUMN_SIGNAL  # of a parameter of a force between bodies, the column of its spring or bushing
COLUMN_FUNCTION = COLUMN_SIGNAL  # of a parameter of a user function, the number of its UserForces
COLUMN_ROWS = 4
(
    BY_POSITION,
    BY_VELOCITY,
    BY_FORCE,
    BY_MASS,
    BY_CG,
    BY_INERTIA,
    BY_ARMATURE,
    BY_STIFFNESS,
    BY_REST,
    BY_CUBIC_STIFFNESS,
    BY_DAMPING,
    BY_FRICTION,
    BY_STATIC_FRICTION,
    BY_KP,
    BY_KI,
    BY_KD,
    BY_SIGNAL_OF_FORCE,
    BY_REFERENCE,
    BY_ACCELERATION,
    BY_GEAR_FRICTION,
    BY_SPRING_STIFFNESS,
    BY_SPRING_DAMPING,
    BY_REST_LENGTH,
    BY_BUSHING_STIFFNESS,
    BY_BUSHING_DAMPING,
    BY_GRAVITY,
    BY_USER_PARAMETER,
    BY_TRANSLATION,
    BY_ROTATION,
    BY_AXIS,
    BY_POINT_A,
    BY_POINT_B,
    BY_ORIGIN_A,
    BY_ORIGIN_B,
    BY_TURN_A,
    BY_TURN_B,
) = range(36)
INERTIAL = (BY_MASS, BY_CG, BY_INERTIA)
OF_BODIES = (*INERTIAL, BY_GRAVITY)
#: Geometry of a joint: the translation and the rotation of its placement, and the directions of its axes.
OF_GEOMETRY = (BY_TRANSLATION, BY_ROTATION, BY_AXIS)
OF_ACTUATORS = (BY_FORCE, BY_KP, BY_KI, BY_KD, BY_SIGNAL_OF_FORCE, BY_REFERENCE, BY_GEAR_FRICTION, BY_USER_PARAMETER)
#: Parameters that change the acceleration that a computed torque commands, if their drive is one.
OF_FEEDBACK = (BY_KP, BY_KI, BY_KD, BY_REFERENCE)
#: Parameters of a drive: COLUMN_DRIVE is its column.
OF_DRIVES = (BY_KP, BY_KI, BY_KD, BY_SIGNAL_OF_FORCE, BY_REFERENCE)
OF_SIGNALS = (BY_SIGNAL_OF_FORCE, BY_REFERENCE, BY_ACCELERATION)
OF_MATRICES = (BY_BUSHING_STIFFNESS, BY_BUSHING_DAMPING)
#: The points of springs on bodies a and b, and the origins and the axes of the frames A and B of bushings.
OF_ENDS = (BY_POINT_A, BY_POINT_B, BY_ORIGIN_A, BY_ORIGIN_B, BY_TURN_A, BY_TURN_B)
OF_ENDS_A = (BY_POINT_A, BY_ORIGIN_A, BY_TURN_A)
OF_BUSHINGS = (*OF_MATRICES, BY_ORIGIN_A, BY_ORIGIN_B, BY_TURN_A, BY_TURN_B)
BETWEEN_BODIES = (BY_SPRING_STIFFNESS, BY_SPRING_DAMPING, BY_REST_LENGTH, *OF_MATRICES, *OF_ENDS)


@kernel
def rows_of_motion(block):
    """Return the number of rows of the state before the sensitivities."""
    linear = block.loads.actions.sensitivities.linear
    return block.q.shape[0] + block.qd.shape[0] + linear.by_integral.shape[1]


@kernel
def rows_of_column(block):
    """Return the number of rows of the state for one parameter."""
    return 2 * block.qd.shape[0] + block.loads.actions.sensitivities.linear.by_integral.shape[1]
