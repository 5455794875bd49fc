"""Arrays that describe dry friction, joint stops and contacts, and their working memory.

An element is the friction of a dof (one row), one stop of a dof (one row), or a contact of two bodies. A contact has
three rows, the normal and two tangents, or only the row of the normal.

The velocity of a row is u = J v, and its impulse p acts on the dofs as J^T p:

    friction of a dof   u = v_i                        p is between two limits
    lower stop          u = v_i    gap = q_i - lower   p >= 0
    upper stop          u = -v_i   gap = upper - q_i   p >= 0
    contact             u = velocity of the second body relative to the first at the points that are closest to each
                            other, along the normal, which points to the second body, and two tangents
                        p of the normal is >= 0, and p of the tangents is in a disc

The shapes of contacts, and their kinds, are in `contact_shapes`.

Each constant has the prefix of its array: ELEMENT_ of `SharedActions.contacts`, CONTACT_ of `Contacts.rows`.
"""

from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import kernel
from ..lanes.lane_records import lane_record

# --- rows of `SharedActions.contacts`, one column for each element ---
ELEMENT_KIND = 0
ELEMENT_DOF = 1  # dof of the joint, or of the second body of a contact; n for the world
ELEMENT_NUMBERS = 2  # index of the first of its numbers in `BlockActions.numbers`
ELEMENT_ROW = 3  # its first row
ELEMENT_SIGN = 4  # 1 for a lower and -1 for an upper stop, so that u = sign v_i; else 1
ELEMENT_FORCE = 5  # number of its DryFriction, HardStops or contact among these forces
ELEMENT_OTHER = 6  # dof of the first body of a contact; n for the world, and for other elements
ELEMENT_SIZE = 7  # number of its rows
ELEMENT_ROWS = 8

FRICTION, STOP, FIRST_SHAPE = 0, 1, 2  # kinds; contacts have the kinds from FIRST_SHAPE on

# --- numbers of an element ---
FRICTION_KINETIC_FORWARD, FRICTION_STATIC_FORWARD = 0, 1  # friction of a motion in the positive direction, N m or N
FRICTION_KINETIC_BACKWARD, FRICTION_STATIC_BACKWARD = 2, 3
NUMBER_RESTITUTION = 0  # of a stop or a contact
STOP_POSITION = 1  # m or rad
NUMBER_FRICTION = 1  # mu of a contact
NUMBER_SHAPE = 2  # the first number of the shape of a contact

# --- rows of `Contacts.rows` ---
CONTACT_GAP = 0  # m or rad; only of stops and of the normal rows of contacts
CONTACT_VELOCITY = 1  # u = J v, m/s or rad/s
CONTACT_BOUND = 2  # least u of a row with a gap
CONTACT_IMPULSE = 3  # p, N s or N m s
CONTACT_LOWER, CONTACT_UPPER = 4, 5  # limits of p; for the tangents of a contact, a radius that is added to mu p_n
CONTACT_FRICTION = 6  # mu, at the normal row of a contact
CONTACT_DIAGONAL = 7  # J H^-1 J^T of the row
CONTACT_INVERSE = 8  # its reciprocal; 0 if no impulse changes u; both tangents have the same number
CONTACT_START_VELOCITY = 9  # u at the start of a step
CONTACT_IMPACT = 10  # 1 if an impact is possible in the step, else 0
CONTACT_STICKS = 11  # 1 if the friction of the dof, or of the contact, sticks, else 0
CONTACT_RIGHT, CONTACT_PIVOT = 12, 13  # right-hand side and reciprocal pivot of a Newton step of the solver
CONTACT_NEWTON_IMPULSE, CONTACT_NEWTON_VELOCITY = 14, 15  # p and u before the Newton steps of a round
CONTACT_FREE_VELOCITY = 16  # u at the end of a step without impulses
CONTACT_IMPACT_TIME = 17  # time of an impact, as a fraction of the step
CONTACT_IS_CLIPPED = 18  # 1 if the rebound ends within the step, else 0
CONTACT_STORED = 19  # p, while the solver computes corrections of positions
CONTACT_STUCK = 20  # 1 if the row stuck at the end of the last step, 2 if an interval of sticking is recorded, else 0
CONTACT_RESIDUAL = 21  # residual of the solver, in the first row
CONTACT_COUPLES = 22  # 0 if a row of a Newton step has no entries to the right of its diagonal
CONTACT_BIAS = 23  # d u / dt without accelerations of the joints
CONTACT_NORMAL = 24  # 3: direction of a row of a contact in world axes; the normal points to the second body
CONTACT_PLACE = 27  # in lane 0: number of the row at this place of the matrix of a Newton step
CONTACT_RESPONDS = 28  # in the first row and lane 0: 1 if the step has computed the responses
CONTACT_CHANGE = 29  # change of u by a Newton step
CONTACT_STEP_IMPULSE, CONTACT_STEP_VELOCITY = 30, 31  # p and u before a Newton step
CONTACT_GIVEN_VELOCITY = 32  # u without impulses, from which the solver starts
CONTACT_GIVEN_DIAGONAL, CONTACT_GIVEN_INVERSE = 33, 34  # DIAGONAL and INVERSE before the solver adds to W
CONTACT_BEST_IMPULSE = 35  # p before the solver adds to the diagonal of W
CONTACT_REACHED_IMPULSE = 36  # p with the last added number for which the solver succeeded
CONTACT_SWEEP_INVERSE = 37  # CONTACT_INVERSE before a Newton step multiplies it
CONTACT_RESTITUTION_IMPULSE = 38  # p with restitution, while the law of impacts limits the energy
CONTACT_SHIFT = 39  # velocity at the end of a step minus the velocity at which the impulses of the row act
CONTACT_LEVER = 40  # 3: lever of the point of the second body, at the normal row of a contact, world axes, m
CONTACT_OTHER_LEVER = 43  # 3: lever of the point of the first body; not set if it is the world
CONTACT_ROWS = 46


class Contacts(NamedTuple):
    """The dry friction, joint stops and contacts of the samples in one block; m is the number of rows.

    * `table` (ELEMENT_ROWS, elements) and `rows` (m, CONTACT_ROWS, lanes) are described above.
    * `jacobian` (m, n, lanes) is J.
    * `responses` (m, n, lanes) are the velocities H^-1 J^T that unit impulses of the rows cause.
    * `matrix` (m, m, lanes) is J H^-1 J^T. `linear` (m, m, lanes) is the matrix of a Newton step. Its first rows and
      columns belong to the elements that the step changes.
    * `changes` (2, n, lanes) is memory for changes of velocities and of positions.
    """

    table: np.ndarray
    rows: Annotated[np.ndarray, "m", CONTACT_ROWS]
    jacobian: Annotated[np.ndarray, "m", "n"]
    responses: Annotated[np.ndarray, "m", "n"]
    matrix: Annotated[np.ndarray, "m", "m"]
    linear: Annotated[np.ndarray, "m", "m"]
    changes: Annotated[np.ndarray, 2, "n"]


_size_of_contacts, _carve_contacts = lane_record(Contacts, "m", "n")


@kernel
def is_contact(e, table):
    """Whether an element is a contact of two bodies."""
    return table[ELEMENT_KIND, e] >= FIRST_SHAPE


@kernel
def has_tangents(e, table):
    """Whether an element has three rows: the normal and two tangents."""
    return table[ELEMENT_SIZE, e] == 3


@kernel
def row_count(table):
    """Return the number of rows of all elements."""
    count = 0
    for e in range(table.shape[1]):
        count += table[ELEMENT_SIZE, e]
    return count


def contacts_size(table, n):
    """Return how many numbers per lane `contacts_in` needs. Called in Python."""
    return _size_of_contacts(int(table[ELEMENT_SIZE].sum()), n)


@kernel
def contacts_in(memory, first, width, table, n):
    """Create the Contacts of a block in the flat array `memory`, from index `first` on."""
    return _carve_contacts(memory, first, width, table, row_count(table), n)
