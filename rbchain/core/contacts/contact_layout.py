"""Arrays that describe dry friction, joint stops and contacts, and their working memory.

An element is the friction of a dof (one row), one stop of a dof (one row), or a contact of two bodies. A contact has
three rows, the normal and two tangents, or only the row of the normal.

The velocity of a row is u = J v, and its impulse p acts on the dofs as J^T p:

    friction of a dof   u = v_i                        p is between two limits
    lower stop          u = v_i    gap = q_i - lower   p >= 0
    upper stop          u = -v_i   gap = upper - q_i   p >= 0
    contact             u = velocity of the second body relative to the first at the points that are closest to each
                            other, along the normal, which points to the second body, and two tangents
                        p of the normal is >= 0, and p of the tangents is in a disk

The shapes of contacts, and their kinds, are in `contact_shapes`.

The constants are the rows of `Contacts.rows`. The constants of elements are in `element_layout`.

The kernels of this package use these arguments, in SI units:

* `q` (nq, lanes) and `qd` (n, lanes) are positions, rad or m, and velocities, rad/s or m/s, of the dofs.
* `contacts` is a Contacts, `modes` a `contact_modes.ContactModes`, `numbers` (count, lanes) `BlockActions.numbers`.
* e is the number of an element, `table` is `Contacts.table`, and `at` the index of the first number of the element.
* `row` is the number of a row; for all rows of a contact, it is the row of the normal. `rows` is `Contacts.rows`.
* `lane` is the number of one lane.
* Vectors (3), Motion and Force are tuples in world axes. Motion and Force of a body refer to its joint origin.
"""

from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import kernel
from ..lanes.lane_records import lane_record
from . import element_layout as element

# --- rows of `Contacts.rows` ---
GAP = 0  # m or rad; only of stops and of the normal rows of contacts
VELOCITY = 1  # u = J v, m/s or rad/s
BOUND = 2  # least u of a row with a gap, m/s or rad/s
IMPULSE = 3  # p, N s or N m s
LOWER, UPPER = 4, 5  # limits of p; for the tangents of a contact, a radius that is added to mu p_n
FRICTION = 6  # mu, at the normal row of a contact
DIAGONAL = 7  # J H^-1 J^T of the row, 1/kg or 1/(kg m^2)
INVERSE = 8  # its reciprocal; 0 if no impulse changes u; both tangents have the same number
START_VELOCITY = 9  # u at the start of a step
IMPACT = 10  # 1 if an impact is possible in the step, else 0
STICKS = 11  # 1 if the friction of the dof, or of the contact, sticks, else 0
RIGHT, PIVOT = 12, 13  # right-hand side and reciprocal pivot of a Newton step of the solver
NEWTON_IMPULSE, NEWTON_VELOCITY = 14, 15  # p and u before the Newton steps of a round
FREE_VELOCITY = 16  # u at the end of a step without impulses
IMPACT_TIME = 17  # time of an impact, as a fraction of the step
IS_CLIPPED = 18  # 1 if the rebound ends within the step, else 0
STORED = 19  # p, while the solver computes corrections of positions
STUCK = 20  # 1 if the row stuck at the end of the last step, 2 if an interval of sticking is recorded, else 0
RESIDUAL = 21  # residual of the solver, in the first row
COUPLES = 22  # 0 if a row of a Newton step has no entries to the right of its diagonal
BIAS = 23  # d u / dt without accelerations of the joints, m/s^2 or rad/s^2
NORMAL = 24  # 3: direction of a row of a contact in world axes; the normal points to the second body
PLACE = 27  # in lane 0: number of the row at this place of the matrix of a Newton step
RESPONDS = 28  # in the first row and lane 0: 1 if the step has computed the responses
CHANGE = 29  # change of u by a Newton step
STEP_IMPULSE, STEP_VELOCITY = 30, 31  # p and u before a Newton step
GIVEN_VELOCITY = 32  # u without impulses, from which the solver starts
GIVEN_DIAGONAL, GIVEN_INVERSE = 33, 34  # DIAGONAL and INVERSE before the solver adds to W
BEST_IMPULSE = 35  # p before the solver adds to the diagonal of W
REACHED_IMPULSE = 36  # p with the last added number for which the solver succeeded
SWEEP_INVERSE = 37  # INVERSE before a Newton step multiplies it
RESTITUTION_IMPULSE = 38  # p with restitution, while the law of impacts limits the energy
SHIFT = 39  # velocity at the end of a step minus the velocity at which the impulses of the row act
LEVER = 40  # 3: lever of the point of the second body, at the normal row of a contact, world axes, m
OTHER_LEVER = 43  # 3: lever of the point of the first body; not set if it is the world
BASIS = 46  # 6: row of B (`contact_reduction`), the Force on the body of a unit impulse about its joint origin
SLOPE, SOLVED = 52, 53  # M and t of a Newton step (`contact_reduction`)
TURN = 54  # term of the direction of the tangents, or the direction (`contact_reduction`)
SOLVED_CHANGE = 55  # change of u by a Newton step of `contact_reduction`
REDUCES = 56  # in the first row: 1 if Newton steps use `contact_reduction`, else 0
ROWS = 57


class Contacts(NamedTuple):
    """The dry friction, joint stops and contacts of the samples in one block; m is the number of rows.

    c is the number of unknowns of a Newton step of `contact_reduction`, or zero.

    * `table` (element.ROWS, elements) is described in `element_layout`, `rows` (m, ROWS, lanes) above.
    * `jacobian` (m, n, lanes) is J.
    * `responses` (m, n, lanes) are the velocities H^-1 J^T that unit impulses of the rows cause.
    * `matrix` (m, m, lanes) is J H^-1 J^T. `linear` (m, m, lanes) is the matrix of a Newton step. Its first rows and
      columns belong to the elements that the step changes.
    * `bodies` (c, n, lanes) are the velocities that unit forces on the bodies cause, `reduced` (c, c, lanes) is L^T,
      and `sums` (c, 7, lanes) contains S and forces on the bodies (`contact_reduction`).
    * `changes` (2, n, lanes) is memory for changes of velocities, rad/s or m/s, and of positions along the tangent
      space, rad or m. Time stepping keeps DINV in `changes[1]` (`core.motion.moreau`).
    """

    table: np.ndarray
    rows: Annotated[np.ndarray, "m", ROWS]
    jacobian: Annotated[np.ndarray, "m", "n"]
    responses: Annotated[np.ndarray, "m", "n"]
    matrix: Annotated[np.ndarray, "m", "m"]
    linear: Annotated[np.ndarray, "m", "m"]
    bodies: Annotated[np.ndarray, "c", "n"]
    reduced: Annotated[np.ndarray, "c", "c"]
    sums: Annotated[np.ndarray, "c", 7]
    changes: Annotated[np.ndarray, 2, "n"]


_size_of_contacts, _carve_contacts = lane_record(Contacts, "m", "n", "c")


@kernel
def is_contact(e, table):
    """Whether an element is a contact of two bodies."""
    return table[element.KIND, e] >= element.FIRST_SHAPE


@kernel
def has_tangents(e, table):
    """Whether an element has three rows: the normal and two tangents."""
    return table[element.SIZE, e] == 3


@kernel
def is_one_of_points(e, table):
    """Whether an element is one of three or more contacts with tangents of a body with the world."""
    return table[element.POINTS, e] >= 3


@kernel
def row_count(table):
    """Return the number of rows of all elements."""
    count = 0
    for e in range(table.shape[1]):
        count += table[element.SIZE, e]
    return count


@kernel
def unknown_count(table):
    """Return the number of unknowns of a Newton step of `contact_reduction`, or zero."""
    groups = 0
    for e in range(table.shape[1]):
        groups = max(groups, table[element.GROUP, e] + 1)
    return 6 * groups


def contacts_size(table, n):
    """Return how many numbers per lane `contacts_in` needs. Called in Python."""
    return _size_of_contacts(int(table[element.SIZE].sum()), n, 6 * int(table[element.GROUP].max() + 1))


@kernel
def contacts_in(memory, first, width, table, n):
    """Create the Contacts of a block in the flat array `memory`, starting at index `first`."""
    return _carve_contacts(memory, first, width, table, row_count(table), n, unknown_count(table))
