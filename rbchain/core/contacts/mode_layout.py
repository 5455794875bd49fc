"""Modes of rows, and the rows of `ContactModes.rows` and `ContactModes.flags`."""

OPEN, HELD, SLIDING = 0.0, 1.0, 2.0

# --- rows of `ContactModes.rows` ---
MODE = 0  # OPEN, HELD or SLIDING
DIRECTION = 1  # direction of sliding at the start of the step: 1 or -1, or a component of a unit vector
HEADING = 2  # direction of sliding in the state of the last evaluation
ACCELERATION = 3  # a, without the forces of the rows, m/s^2 or rad/s^2
FORCE = 4  # p, N or N m
RIGHT = 5  # right-hand side and solution of the linear system
REST = 6  # right-hand side of the refinement
SOLUTION = 7  # solution without the refinement
INVERSE = 8  # 1 / pivot; 0 for rows that are not solved for
SCALE = 9  # largest diagonal entry of W in the rows of the element, 1/kg or 1/(kg m^2)
FRICTION = 10  # mu of the normal row of a contact; else 0
CAN_CHANGE = 11  # 1 if the row is closed and has no velocity, and so its mode follows from the forces
STUCK = 12  # 1 while an interval of sticking is recorded
WATCH = 13  # a number that is negative if the mode has to change; see `core.motion.contact_events`
WATCH_LOW, WATCH_HIGH = 14, 15  # the same at the bounds between which the length of a step is iterated
WATCH_START, START_VELOCITY = 16, 17  # WATCH, and u in m/s or rad/s, at the start of the step
VELOCITY_LOW, VELOCITY_HIGH = 18, 19  # u at the bounds
SPEED, BEND, TURN = 20, 21, 22  # bounds of the motion in a step: see `core.motion.motion_bounds`
# gap, m or rad, and its rate, at three places of an interval of a step: see `core.motion.contact_search`
GAP_START, GAP_MIDDLE, GAP_END = 23, 25, 27
REFERENCE = 29  # reference force: if rows depend on each other, p is the solution closest to it
SIZE = 30  # sum of the terms that cancel in the gap, m or rad
SLOWEST = 31  # speed below which the direction of sliding hardly turns, m/s
ROWS = 32

# --- rows of `ContactModes.flags` ---
FLAG_RESTARTS = 0  # 1 if an impact or a change of modes ends the step
FLAG_LOCATES = 1  # 1 while the length of a step is iterated
FLAG_LOW, FLAG_HIGH = 2, 3  # bounds of this length, s
FLAG_SIDE = 4  # bound that the last iteration has changed: -1 low, 1 high
FLAG_ITERATIONS = 5
FLAG_PROJECTIONS = 6  # number of projections of a state onto the active constraints
FLAG_CHOOSES = 7  # 1 while the modes of a lane that starts are chosen
FLAG_DWELLS = 8  # number of successive steps of almost no length that have ended with a change of modes
FLAG_CONTACT = 9  # fraction of the step after which a gap is closed that may open again; 1 if there is none
FLAG_FREE, FLAG_WIDTH = 10, 11  # start and length of the interval of a step in which contacts are searched
FLAG_PLACE, FLAG_TRIALS = 12, 13  # place in this interval at which gaps are evaluated; number of intervals
FLAG_ROWS = 14
