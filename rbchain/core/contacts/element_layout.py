"""Rows of `SharedActions.contacts`, and the numbers of each element in `BlockActions.numbers`.

An element is the friction of a dof, a stop of a dof, or a contact (`contact_layout`).
"""

# --- rows of `SharedActions.contacts`, one column for each element ---
KIND = 0
DOF = 1  # dof of the joint, or of the second body of a contact; n for the world
NUMBERS = 2  # index of the first of its numbers in `BlockActions.numbers`
ROW = 3  # its first row
SIGN = 4  # 1 for a lower and -1 for an upper stop, so that u = sign v_i; else 1
FORCE = 5  # number of its DryFriction, HardStops or contact among these forces
OTHER = 6  # dof of the first body of a contact; n for the world, and for other elements
SIZE = 7  # number of its rows
POINTS = 8  # number of contacts with tangents of its body with the world, if it is one of them; else 0
GROUP = 9  # number of its body, if all elements are points of bodies with three or more points on the world; else -1
ROWS = 10

FRICTION, STOP, FIRST_SHAPE = 0, 1, 2  # kinds; contacts have the kinds from FIRST_SHAPE on

# --- numbers of an element ---
FRICTION_KINETIC_FORWARD, FRICTION_STATIC_FORWARD = 0, 1  # friction of a motion in the positive direction, N m or N
FRICTION_KINETIC_BACKWARD, FRICTION_STATIC_BACKWARD = 2, 3
FRICTION_LIMITS = 4  # number of these limits
# Only of friction that grows with the force of the drives (`gear_friction`). Its limits are those of the last
# evaluation.
FRICTION_OF_GEAR = 4  # increase of the limits per force of the drives
FRICTION_WITHOUT_GEAR = 5  # the first of the four limits without drives, N m or N
NUMBER_RESTITUTION = 0  # of a stop or a contact
STOP_POSITION = 1  # m or rad
NUMBER_FRICTION = 1  # mu of a contact
NUMBER_SHAPE = 2  # the first number of the shape of a contact
