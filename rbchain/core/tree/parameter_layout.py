"""Columns of the parameters: first column, and the number of columns if there are several.

Parameters are an array `(n + 1 + constraints, COLUMNS)` that all samples share, or `(n + 1 + constraints, COLUMNS,
lanes)` if samples differ. In water, they have COLUMNS_IN_WATER columns. Row n holds gravity, and a row of each
constraint follows (`constraint_layout`).
"""

PLACEMENT_ROTATION = 0  # 9: rotation from frame i at q = 0 to the parent's frame
PLACEMENT_TRANSLATION = 9  # 3: joint origin in the parent's frame, m
MASS = 12  # kg
CG = 13  # 3: center of mass in frame i, m
INERTIA = 16  # 6: about the center of mass, in the axes of frame i, kg m^2
ADVANCE = 22  # travel along the axis per unit of q: revolute 0, prismatic 1, screw its pitch (m/rad)
ARMATURE = 23  # reflected rotor inertia, kg m^2 or kg
AXIS = 24  # 3: the joint's axis in body axes, a unit vector
STIFFNESS = 27  # of the spring, N m/rad or N/m
REST = 28  # rest position of the spring, rad or m
CUBIC_STIFFNESS = 29  # N m/rad^3 or N/m^3
DAMPING = 30  # N m s/rad or N s/m
FRICTION = 31  # sliding friction, N m or N
BREAKAWAY = 32  # static friction minus sliding friction, N m or N
STRIBECK_RATE = 33  # reciprocal of the velocity at which half of BREAKAWAY remains, s/rad or s/m
FRICTION_VELOCITY = 34  # width of the regularized sign function, rad/s or m/s
LOWER, UPPER = 35, 36  # positions of the stops, rad or m
LIMIT_STIFFNESS = 37  # of the stops, N m/rad or N/m
LIMIT_DAMPING = 38  # relative increase of the stop's force per unit of velocity into it, s/rad or s/m
FRICTION_ASYMMETRY = 39  # added to the friction at positive velocity, subtracted at negative, N m or N
COLUMNS = 40
# further columns of models in water
ADDED_MASS = 40  # 21: about the joint origin, in the axes of frame i: J (6), H (9), M (6) of an `Inertia`
DISPLACED_MASS = 61  # mass of the displaced fluid, kg
BUOYANCY_CENTER = 62  # 3: in frame i, m
DRAG_ROTATION = 65  # 9: rotation from the drag frame to frame i
DRAG_ORIGIN = 74  # 3: origin of the drag frame, in frame i, m
LINEAR_DAMPING = 77  # 36: D1 in the drag frame, row by row, linear before angular
QUADRATIC_DAMPING = 113  # 36: D2, as D1
STRIP_FACTOR = 149  # drag per squared cross-flow velocity and length of the cylinder, kg/m^2
STRIP_LENGTH = 150  # length of the cylinder along z of the drag frame, m
TOTAL_INERTIA = 151  # 21: added mass and inertia of the rigid body, as ADDED_MASS
NET_MASS = 172  # mass minus displaced mass, kg
NET_MOMENT = 173  # 3: first moment of the mass minus first moment of the displaced mass, in frame i, kg m
COLUMNS_IN_WATER = 176
GRAVITY = 0  # 3: in row n, world axes, m/s^2
